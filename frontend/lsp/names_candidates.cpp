#include "frontend/lsp/names_candidates.h"

#include <algorithm>
#include <set>

#include "frontend/ast/source_text.h"
#include "frontend/lsp/describe.h"
#include "frontend/lsp/weight_paths.h"

namespace piper::lsp {

namespace {

class LineCompleter {
 public:
  LineCompleter(Request& request, const StatementAt& statement)
      : request_(request),
        statement_(statement),
        paths_(weight_paths(*request.program())),
        left_(left_side(statement)) {}

  std::vector<Candidate> run() {
    if (statement_.in_block) return std::move(list_);  // facts: keys of a file that is not known
    if (statement_.words.empty()) {
      begin_line();
    } else if (is_right()) {
      right_side();
    } else if (statement_.last() == ".") {
      next_part();
    } else if (statement_.depth() > 0) {
      in_brackets();
    }
    return std::move(list_);
  }

 private:
  /// How many words are before the `:` of the line: one of a split is in brackets.
  static std::size_t left_side(const StatementAt& statement) {
    std::size_t depth = 0;
    for (std::size_t i = 0; i < statement.words.size(); ++i) {
      const parse::LexemeKind kind = statement.words[i].kind;
      if (kind == parse::LexemeKind::open) ++depth;
      if (kind == parse::LexemeKind::close && depth > 0) --depth;
      if (depth == 0 && statement.word(i) == ":") return i;
    }
    return statement.words.size();
  }
  bool is_right() const { return left_ < statement_.words.size(); }

  void word(std::string_view text, std::string_view meaning) {
    list_.push_back({std::string(text), CandidateKind::keyword, std::string(meaning), {}, {}, "7"});
  }

  void begin_line() {
    word("config", "facts of the model: `config { rope_theta: 10000 }`");
    word("ignore", "tensors that a file may have besides: `ignore \"lm_head.weight\"`");
    std::set<std::string> written = written_paths();
    for (const WeightPath& path : paths_) {
      if (std::string text = text_of(path); written.insert(text).second) add(text, path);
    }
  }

  /// The paths of the lines of the item, one for each parameter of a tuple.
  std::set<std::string> written_paths() {
    std::set<std::string> written;
    for (const ast::Item* item : request_.module()->items) {
      const auto* names = llvm::dyn_cast<ast::NamesItem>(item);
      if (names == nullptr || !touches(names->range, statement_.typed.begin)) continue;
      for (const ast::NamesLine& line : names->lines) {
        ast::NamesLine one = line;
        one.dims = {};
        one.is_tuple = false;
        for (const ast::Identifier& parameter : line.last) {
          one.last = {&parameter, 1};
          written.insert(ast::path_text(one));
        }
      }
    }
    return written;
  }

  /// The names of the parts before the cursor; those of a tuple that is being written are none.
  std::vector<std::string_view> parts() const {
    std::vector<std::string_view> names;
    std::size_t depth = 0;
    for (std::size_t i = 0; i < left_; ++i) {
      const parse::LexemeKind kind = statement_.words[i].kind;
      if (kind == parse::LexemeKind::open) ++depth;
      if (kind == parse::LexemeKind::close && depth > 0) --depth;
      if (kind == parse::LexemeKind::name && depth == 0) names.push_back(statement_.word(i));
    }
    return names;
  }

  static bool begins_with(const WeightPath& path, const std::vector<std::string_view>& names) {
    if (path.parts.size() < names.size()) return false;
    return std::equal(
        names.begin(), names.end(), path.parts.begin(),
        [](std::string_view name, const WeightPath::Part& part) { return name == part.name; });
  }

  void next_part() {
    const std::vector<std::string_view> names = parts();
    for (const WeightPath& path : paths_) {
      if (!begins_with(path, names)) continue;
      if (path.parts.size() == names.size()) {
        add(std::string(path.weight->name.name), path);
      } else {
        const WeightPath::Part& part = path.parts[names.size()];
        list_.push_back({part.name,
                         CandidateKind::struct_,
                         "call of the model `" + part.name + "`",
                         {},
                         part.repeated ? part.name + "[l]" : "",
                         "1"});
      }
    }
  }

  void in_brackets() {
    const std::size_t open = statement_.innermost();
    if (statement_.word(open) == "(") {
      const std::vector<std::string_view> names = parts();
      for (const WeightPath& path : paths_) {
        if (path.parts.size() == names.size() && begins_with(path, names))
          add(std::string(path.weight->name.name), path);
      }
    } else if (statement_.word(open) == "[") {
      dimensions();
    }
  }

  void right_side() {
    if (statement_.depth() == 0) {
      if (statement_.last() == "]") word("or", "`or none`: a model may lack the parameter");
      if (statement_.last() == "or") word("none", "a model may lack the parameter");
      return;
    }
    dimensions();
    for (std::size_t i = 0; i < left_; ++i) {
      if (statement_.word(i) == "(") return word("of", "the position of the parameter");
    }
  }

  /// The factors of a dimension that the left side splits, `width = half: 2 pair`; empty without a
  /// split.
  std::vector<std::string_view> factors_of(std::string_view dimension) const {
    std::vector<std::string_view> factors;
    bool inside = false;
    for (std::size_t i = 1; i < left_; ++i) {
      if (statement_.word(i) == "=") inside = statement_.word(i - 1) == dimension;
      if (statement_.word(i) == "," || statement_.word(i) == "]") inside = false;
      if (inside && statement_.words[i].kind == parse::LexemeKind::name)
        factors.push_back(statement_.word(i));
    }
    return factors;
  }

  /// The dimensions of the parameter of the line that are not written yet on this side; on the
  /// right side the factors of a dimension take its place.
  void dimensions() {
    std::vector<std::string_view> names = parts();
    std::set<std::string_view> given;
    const auto offer = [&](std::string_view name, std::string_view meaning) {
      if (given.insert(name).second)
        list_.push_back(
            {std::string(name), CandidateKind::property, std::string(meaning), {}, {}, "1"});
    };
    for (std::size_t i = statement_.innermost(); i < statement_.words.size(); ++i)
      given.insert(statement_.word(i));
    for (const WeightPath& path : paths_) {
      const bool tuple = path.parts.size() == names.size() && begins_with(path, names);
      const bool one = path.parts.size() + 1 == names.size() &&
                       names.back() == path.weight->name.name &&
                       begins_with(path, {names.begin(), names.end() - 1});
      if (!tuple && !one) continue;
      for (const ast::Dim& dim : path.weight->dims) {
        std::vector<std::string_view> factors;
        if (is_right()) factors = factors_of(dim.name.name);
        for (const std::string_view factor : factors)
          offer(factor, "factor of `" + std::string(dim.name.name) + "`");
        if (factors.empty()) offer(dim.name.name, "dimension");
      }
      return;
    }
  }

  void add(const std::string& label, const WeightPath& path) {
    list_.push_back(
        {label,
         CandidateKind::variable,
         "weight " + std::string(path.weight->name.name) + ast::source_text(path.weight->dims),
         {},
         {},
         "1"});
  }

  Request& request_;
  const StatementAt& statement_;
  const std::vector<WeightPath> paths_;
  const std::size_t left_;  // words of the left side
  std::vector<Candidate> list_;
};

}  // namespace

std::vector<Candidate> names_candidates(Request& request, const StatementAt& statement) {
  return LineCompleter(request, statement).run();
}

}  // namespace piper::lsp
