#include "tests/mutations/text_changes.h"

#include <algorithm>
#include <regex>

namespace piper::test {

namespace {

/// Each place of a kind of line that `find` matches is replaced; `$1` is a group of it.
struct Rule {
  const char* what;
  const char* line;  // how a line begins that has it
  const char* find;
  const char* replacement;
};

constexpr Rule kRules[] = {
    {"another element type", "  dtype ", "f32", "f64"},
    {"another element type", "  dtype f64", "f64", "f32"},
    {"no number", "  optim ",
     R"((lr: \w+\(|floor: |momentum: |beta1: |beta2: |eps: |weight_decay: |clip: )[^,)]*)",
     "$1nan"},
    {"without an end", "  optim ",
     R"((lr: \w+\(|floor: |momentum: |beta1: |beta2: |eps: |weight_decay: |clip: )[^,)]*)",
     "$1inf"},
    {"a negative number", "  optim ",
     R"((lr: \w+\(|floor: |momentum: |beta1: |beta2: |eps: |weight_decay: |clip: )[^,)]*)", "$1-1"},
    {"a number above its range", "  optim ", R"((floor: |momentum: |beta1: |beta2: )[^,)]*)",
     "${1}2"},
    {"another extent of the samples", "  data ", R"((batch: )(\d+))", "${1}1$2"},
    {"another extent of the samples", "  held_out ", R"((batch: )(\d+))", "${1}1$2"},
    {"a negative number", "  seed ", R"((\d+))", "-1$1"},
    {"never", "  checkpoint ", R"(every \d+)", "every 0"},
    {"never", "  evaluate ", R"(every \d+)", "every 0"},
    {"a negative number", "  checkpoint ", R"((\d+))", "-1$1"},
    {"keeps evaluations", "  evaluate ", R"(every \d+)", "$& keep 1"},
    {"keeps the best evaluation", "  evaluate ", R"(every \d+)", "$& best"},
    {"above its range", "  ema ", R"(ema [\d.e-]+)", "ema 1"},
    {"no number", "  ema ", R"(ema [\d.e-]+)", "ema nan"},
    {"never", "  skip_step ", R"(> [\d.e+-]+)", "> 0"},
    {"a limit that is no number", "  skip_step ", R"(> [\d.e+-]+)", "> inf"},
    {"no file of weights", "  init ", R"("[^"]+")", "\"\""},
    {"another kind of port", "", R"((%\S+: )data )", "$1saved "},
    {"another kind of port", "body ", R"((\(%\S+: )saved )", "$1data "},
    {"another extent of an input", "  data ", R"((dim: )(\d+))", "${1}1$2"},
    {"an extent that no input has", "  data ", R"((batch: \d+))", "$1, nothing: 3"},
    {"another target is ignored", "loss ", R"( ignore (\d+))", " ignore 1$1"},
    {"no target is ignored", "loss ", R"( ignore \d+ of \w+)", ""},
    {"another region", "chunk ", R"( of (\w+)\[(\d)\])", " of $1[1$2]"},
    {"another piece", "chunk ", R"( of (\S+))", " of $1 piece 7"},
    {"keeps all the same", "chunk ", R"( recomputed @\S+)", ""},
    {"runs once", "chunk ", R"( R @\S+)", ""},
    {"trained", "param ", " frozen", ""},
    {"frozen", "param ", R"((\w\([-\d.e]+\))$)", "$1 frozen"},
    {"a negative factor", "param ", R"( (rate|decay) [\d.e+-]+)", " $1 -1"},
    {"a factor that is no number", "param ", R"( (rate|decay) [\d.e+-]+)", " $1 nan"},
    {"a factor of what is frozen", "param ", R"( frozen)", " frozen rate 2"},
    {"a factor of what is frozen", "param ", R"( frozen)", " frozen decay 0"},
    {"not reduced", "bucket ", R"( unreduced <[^<>]*>)", ""},
    {"state is whole", "bucket ", R"( state <[^<>]*>)", ""},
    {"gradients are whole", "bucket ", R"( gradients <[^<>]*> by \w+)", ""},
    {"gradients are whole", "bucket ", R"( gradients <[^<>]*> parameters)", " parameters"},
    {"parameters are cut", "bucket ", R"( gradients (<[^<>]*>) by)",
     " gradients $1 parameters $1 by"},
    {"parameters are whole", "bucket ", R"( parameters <[^<>]*>( by \w+)( prefetch \d+)?)", "$1"},
    {"parameters alone are cut", "bucket ", R"( state <[^<>]*> gradients <[^<>]*>)", ""},
    {"a port fewer", "    %", R"(^    %.*,$)", ""},
    {"the first port fewer", "body ", R"(\(%.*,$)", "("},
    {"a port twice", "body ", R"(\((%.*,)$)", "($1 $1"},
    {"the body of another pass", "chunk ", R"( (R|B|BI|BW|lean) @(\S+)\.(\w+))", " $1 @$2.F"},
    {"the body of another pass", "chunk ", R"( (F|R|BI|BW|lean) @(\S+)\.(\w+))", " $1 @$2.B"},
    {"lean, and nothing runs again", "chunk ", R"( (B|BI) (@\S+))", " $1 $2 lean $2"},
    {"a home twice", "bucket ", R"( on (\w+\[[^\]]*\]))", " on $1, $1"},
    {"another home", "bucket ", R"(\[(\w+): 0\])", "[$1: 1]"},
    {"another home", "bucket ", R"(\[(\w+): 1\])", "[$1: 0]"},
    {"gathered ahead and whole", "bucket ", R"(^((?!.* parameters <).*?)( offloaded)?$)",
     "$1 prefetch 5$2"},
    {"begins with something", "param ", R"( = (zeros|ones)\([^)]*\))", " = $1(3)"},
    {"another element type", "param ", ": f32", ": f64"},
    {"another element type", "param ", ": f64", ": f32"},
    {"another element type", "input ", ": f32", ": f64"},
    {"the other way", "require ", " < ", " > "},
    {"the other way", "require ", " <= ", " > "},
    {"connects to nothing", "",
     R"((%\S+: (?:data|saved|param|grad) \w+\[[^\]]*\](?:<[^<>]*>)?(?: (?:param|input) [\w.]+)?)(?: as \w+)?([,)]))",
     "$1 as _$2"},
    {"held whole", "", R"(<\w+: [^<>]*>)", ""},
    {"a summand", "", R"(<(\w+): \w+)", "<$1: +"},
    {"an order of axes", "", R"(<(\w+): (\w+), (\w+): (\w+)>)", "<$3: $4, $1: $2>"},
    {"a term less", "  accumulate.", R"( \+ [^ ,)]+)", ""},
    {"written twice", "  ", R"( = ([\w ]+?(?:\[[^\]]*\])? ?(?:@\S+ )?)\(([^,)+]+))",
     " = $1($2, $2"},
    {"written twice", "  ", R"(grad ([^ ,)]+))", "grad $1 + $1"},
    {"another number", "  1 \"", R"(^  1 )", "  2 "},
    {"from line 0", "  1 \"", R"(":\d+:)", "\":0:"},
    {"without an end", "  1 \"", R"(-\d+:\d+$)", ""},
    {"an end before its beginning", "  1 \"", R"(":(\d+))", "\":1$1"},
    {"without a caller", "  ", R"(( from "[^"]+":\d+:\d+-\d+:\d+)$)", " from"},
};

/// From level `ordered` on.
constexpr Rule kOrderOfTerms = {"another order", "  accumulate.", R"(grad ([^ ,)]+) \+ ([^ ,)]+))",
                                "grad $2 + $1"};

/// Settings without a default, written once a text.
constexpr const char* kSettings[] = {"  steps ", "  dtype ", "  seed ", "  data ", "  optim "};

/// Settings with an effect on a plan whose `optim` matches: the slots of its state, and a norm that
/// no clipping needs.
struct OptionalSetting {
  const char* line;
  const char* optim;
};
constexpr OptionalSetting kOptionalSettings[] = {
    {"  ema ", "^  optim "},
    {"  skip_step ", "^  optim (?!.*clip: )"},
};

std::string name_of(const Rule& rule) {
  return std::string(rule.what) + ", `" + rule.line + "` with `" + rule.find + "`";
}
std::string left_out(const char* setting) { return "left out, `" + std::string(setting) + "`"; }

class Changes {
 public:
  explicit Changes(std::string_view text) {
    std::size_t begin = 0;
    for (std::size_t end; (end = text.find('\n', begin)) != std::string_view::npos; begin = end + 1)
      lines_.emplace_back(text.substr(begin, end - begin));
  }

  std::vector<TextChange> all() {
    for (std::size_t i = 0; i < lines_.size() && lines_[i] != "}"; ++i) {
      for (const char* setting : kSettings) {
        // A schedule alone has neither data nor an optimizer.
        if (lines_[i].starts_with(setting)) add("left out", i, "", left_out(setting));
      }
      for (const OptionalSetting& setting : kOptionalSettings) {
        if (is_level("planned") && lines_[i].starts_with(setting.line) && any(setting.optim))
          add("left out", i, "", left_out(setting.line));
      }
    }
    for (const Rule& rule : kRules) {
      const std::regex find(rule.find);
      for (std::size_t i = 0; i < lines_.size(); ++i) {
        if (lines_[i].starts_with(rule.line)) replace(rule, find, i);
      }
    }
    for (const std::string& axis : axes()) {
      pairs(axis);
      buckets(axis);
    }
    early();
    sums();
    bodies();
    for (std::size_t i = 0; i < lines_.size(); ++i) doubled(i);
    return std::move(changes_);
  }

 private:
  bool is_level(std::string_view level) const {
    return std::find(lines_.begin(), lines_.end(), "pir 2 " + std::string(level)) != lines_.end();
  }
  bool any(const char* pattern) const {
    const std::regex find(pattern);
    return std::any_of(lines_.begin(), lines_.end(),
                       [&](const std::string& line) { return std::regex_search(line, find); });
  }

  /// Replaces every match of a line separately; the number of its location does not count.
  void replace(const Rule& rule, const std::regex& find, std::size_t line) {
    const std::string text = lines_[line].substr(0, lines_[line].find(" #")),
                      rest = lines_[line].substr(text.size());
    for (std::sregex_iterator match(text.begin(), text.end(), find), end; match != end; ++match) {
      add(rule.what, line,
          std::string(match->prefix()) + match->format(rule.replacement) +
              std::string(match->suffix()) + rest,
          name_of(rule));
    }
  }

  /// The axes of the mesh.
  std::vector<std::string> axes() const {
    std::vector<std::string> axes;
    const auto mesh = std::find_if(lines_.begin(), lines_.end(), [](const std::string& line) {
      return line.starts_with("mesh ");
    });
    const std::regex axis(R"((\w+): \d+)");
    for (std::sregex_iterator match(mesh->begin(), mesh->end(), axis), end; match != end; ++match)
      axes.push_back((*match)[1]);
    return axes;
  }

  /// Gradients and parameters of a bucket that says nothing of them are not laid out over an axis,
  /// and those of another over no other.
  void buckets(const std::string& axis) {
    for (std::size_t i = 0; i < lines_.size(); ++i) {
      if (!lines_[i].starts_with("bucket ") || lines_[i].find(" on ") == std::string::npos)
        continue;
      if (lines_[i].find('<') != std::string::npos) {
        add("parameters are cut over another axis", i,
            std::regex_replace(lines_[i], std::regex(R"(parameters <\w+: flat>)"),
                               "parameters <" + axis + ": flat>"));
        continue;
      }
      const std::size_t rest = lines_[i].find_last_of(']') + 1;
      add("made as summands", i,
          lines_[i].substr(0, rest) + " unreduced <" + axis + ": +>" + lines_[i].substr(rest));
      add("parameters are cut", i,
          lines_[i].substr(0, rest) + " parameters <" + axis + ": flat> by unit" +
              lines_[i].substr(rest));
    }
  }

  /// A message joins no axis.
  void pairs(const std::string& axis) {
    for (std::size_t i = 0; i < lines_.size(); ++i) {
      const std::size_t stream = lines_[i].find(" stream ");
      if (lines_[i].starts_with("communicator ") &&
          lines_[i].find(" pair (") != std::string::npos) {
        add("joins an axis", i,
            lines_[i].substr(0, stream) + " over " + axis + lines_[i].substr(stream));
      }
    }
  }

  /// Nodes have devices from level `placed` on, and an order from level `ordered` on.
  void early() {
    const bool without_devices = is_level("built") || is_level("split");
    if (!without_devices && !is_level("placed") && !is_level("communicating")) return;
    std::string mesh, first;
    for (std::size_t i = 0; i < lines_.size(); ++i) {
      std::smatch found;
      if (std::regex_search(lines_[i], found, std::regex(R"(^mesh (\w+))"))) mesh = found[1];
      if (!std::regex_search(lines_[i], found, std::regex(R"(^  ([\w.]+) = (\w+) )")) ||
          lines_[i].find(" : ") != std::string::npos)
        continue;
      if (first.empty()) first = found[1];
      const std::size_t end = std::min(lines_[i].find(" #"), lines_[i].size());
      const auto with = [&](const std::string& what) {
        return std::string(lines_[i]).insert(end, what);
      };
      if (without_devices) add("on devices", i, with(" on " + mesh + "[]"));
      if (found[1] != first) add("after another", i, with(" after " + first));
    }
  }

  /// From level `ordered` on terms are added as they are made.
  void sums() {
    if (!is_level("ordered") && !is_level("planned")) return;
    const std::regex find(kOrderOfTerms.find);
    for (std::size_t i = 0; i < lines_.size(); ++i) {
      if (lines_[i].starts_with(kOrderOfTerms.line)) replace(kOrderOfTerms, find, i);
    }
  }

  /// All that one body holds in parts it holds whole, while the other passes of its chunk do not.
  void bodies() {
    const std::regex layout("<\\w+: [^<>]*>");
    for (std::size_t i = 0; i < lines_.size(); ++i) {
      if (!lines_[i].starts_with("body @")) continue;
      TextChange change{"held whole: " + lines_[i], {}};
      bool inside = true, any = false;
      for (std::size_t k = 0; k < lines_.size(); ++k) {
        const std::string line =
            k >= i && inside ? std::regex_replace(lines_[k], layout, "") : lines_[k];
        any = any || line != lines_[k];
        inside = inside && (k < i || lines_[k] != "}");
        change.text += line + '\n';
      }
      if (any) changes_.push_back(std::move(change));
    }
  }

  /// A line twice; of a signature, the port in it. A bound may be required twice, and brackets hold
  /// lines.
  void doubled(std::size_t line) {
    const std::string& text = lines_[line];
    if (text.empty() || text.starts_with("//") || text.starts_with("require ") ||
        text.starts_with("}") || text.ends_with("{"))
      return;
    std::smatch port;
    if (std::regex_match(text, port,
                         std::regex(R"((body \S+\(|    -> \(|    )(%.*[^,)])([,)]+))"))) {
      add("a port twice", line,
          port[1].str() + port[2].str() + ", " + port[2].str() + port[3].str());
    } else {
      add("a line twice", line, text + '\n' + text);
    }
  }

  /// Adds a change that puts another line in the place of one; empty: removes it.
  void add(const std::string& what, std::size_t line, const std::string& replacement,
           std::string rule = {}) {
    if (replacement == lines_[line]) return;
    TextChange change{
        what + ": " + lines_[line] + "\n  becomes: " + replacement, {}, std::move(rule)};
    for (std::size_t i = 0; i < lines_.size(); ++i) {
      if (i != line) change.text += lines_[i] + '\n';
      if (i == line && !replacement.empty()) change.text += replacement + '\n';
    }
    changes_.push_back(std::move(change));
  }

  std::vector<std::string> lines_;
  std::vector<TextChange> changes_;
};

}  // namespace

std::vector<TextChange> text_changes(std::string_view text) { return Changes(text).all(); }

std::vector<std::string> text_rules() {
  std::vector<std::string> rules = {name_of(kOrderOfTerms)};
  for (const char* setting : kSettings) rules.push_back(left_out(setting));
  for (const OptionalSetting& setting : kOptionalSettings) rules.push_back(left_out(setting.line));
  for (const Rule& rule : kRules) rules.push_back(name_of(rule));
  return rules;
}

}  // namespace piper::test
