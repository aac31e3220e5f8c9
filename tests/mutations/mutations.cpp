#include "tests/mutations/mutations.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "ir/dag/parse.h"
#include "ir/dag/print.h"
#include "ir/verify/verify.h"

namespace piper::test {

namespace {

using dag::Action;
using dag::Dag;

/// A change: lines [line, line + removed) become `lines`.
struct Change {
  std::string what;
  std::size_t line = 0;
  std::size_t removed = 1;
  std::vector<std::string> lines;
};

struct Token {
  std::size_t begin = 0, end = 0;
};

class Mutator {
 public:
  Mutator(const Dag& dag, const std::string& text) : dag_(dag) {
    std::size_t begin = 0;
    for (std::size_t end; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1) lines_.push_back(text.substr(begin, end - begin));
  }

  void collect() {
    enum class Section { header, graph, communicator, role } section = Section::header;
    std::size_t role = 0, action = 0, buffer = 0;
    std::vector<std::size_t> nodes;
    for (std::size_t i = 0; i < lines_.size(); ++i) {
      const std::string& line = lines_[i];
      if (line == "graph {") {
        section = Section::graph;
      } else if (line.starts_with("communicator ")) {
        section = Section::communicator;
        via_.push_back(line.substr(13, line.find(' ', 13) - 13));
      } else if (line.starts_with("role ")) {
        role = section == Section::role ? role + 1 : 0;
        section = Section::role;
        action = buffer = 0;
      } else if (line.starts_with("  ") && section != Section::header) {
        if (section == Section::graph) nodes.push_back(i);
        if (section == Section::communicator) delete_and_duplicate(i, "entry");
        if (section == Section::role && line.starts_with("  buffer ")) buffers_.push_back({i, role, buffer++});
        if (section == Section::role && !line.starts_with("  buffer ")) actions_.push_back({i, role, action++});
      }
    }
    for (std::size_t k = 0; k < nodes.size(); ++k) node(nodes[k], k, nodes);
    for (std::size_t k = 0; k < actions_.size(); ++k) act(k);
    for (const BufferLine& line : buffers_) move_onto_state(line);
  }

  std::vector<Change> changes;
  std::size_t independent = 0;

  std::string apply(const Change& change) const {
    std::string text;
    for (std::size_t i = 0; i < lines_.size(); ++i) {
      if (i == change.line) {
        for (const std::string& line : change.lines) text += line + '\n';
      }
      if (i < change.line || i >= change.line + change.removed) text += lines_[i] + '\n';
    }
    return text;
  }

 private:
  struct Place {
    std::size_t line, role, action;
  };
  struct BufferLine {
    std::size_t line, role, buffer;
  };

  void add(std::string what, std::size_t line, std::string replacement) {
    if (replacement != lines_[line]) changes.push_back({std::move(what) + ": " + lines_[line], line, 1, {std::move(replacement)}});
  }
  void delete_and_duplicate(std::size_t line, const std::string& kind) {
    changes.push_back({"delete " + kind + ": " + lines_[line], line, 1, {}});
    changes.push_back({"duplicate " + kind + ": " + lines_[line], line, 1, {lines_[line], lines_[line]}});
  }

  static bool name_char(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.' || c == '_' || c == '%' || c == ':' || c == '#'; }
  /// The word that begins at or after `from`, quotes included.
  static Token word(const std::string& line, std::size_t from) {
    while (from < line.size() && !name_char(line[from]) && line[from] != '"') ++from;
    Token token{from, from};
    bool quoted = false;
    while (token.end < line.size() && (quoted || name_char(line[token.end]) || line[token.end] == '"')) {
      if (line[token.end] == '"') quoted = !quoted;
      ++token.end;
    }
    if (token.end > token.begin && line[token.end - 1] == ':' ) --token.end;
    return token;
  }
  static std::string with(const std::string& line, Token token, const std::string& text) {
    return line.substr(0, token.begin) + text + line.substr(token.end);
  }
  static std::string at(const std::string& line, Token token) { return line.substr(token.begin, token.end - token.begin); }

  // ---- nodes -------------------------------------------------------------------------------------------------------------

  /// Where an attribute begins; a location's chain of calls has words of its own.
  static std::size_t attribute(const std::string& line, const std::string& key) {
    const std::size_t at = line.find(key);
    return at < line.find(" loc(") ? at : std::string::npos;
  }
  static std::string node_name(const std::string& line) { return line.substr(2, line.find(" = ") - 2); }
  static std::string node_kind(const std::string& line) {
    const std::size_t from = line.find(" = ") + 3;
    return line.substr(from, line.find(' ', from) - from);
  }

  void node(std::size_t line, std::size_t number, const std::vector<std::size_t>& nodes) {
    const std::string text = lines_[line];
    delete_and_duplicate(line, "node");
    // Another node of the same kind and the next one: what is redirected goes there.
    std::optional<std::size_t> alike;
    for (std::size_t k = 1; k < nodes.size() && !alike; ++k) {
      const std::size_t other = nodes[(number + k) % nodes.size()];
      if (node_kind(lines_[other]) == node_kind(text)) alike = other;
    }
    for (const char* key : {" to ", " from "}) {
      const std::size_t from = attribute(text, key);
      if (from == std::string::npos || !alike) continue;
      const std::size_t theirs = attribute(lines_[*alike], key);
      if (theirs == std::string::npos) continue;
      const std::size_t skip = std::string(key).size();
      add("redirect peer", line, with(text, word(text, from + skip), at(lines_[*alike], word(lines_[*alike], theirs + skip))));
    }
    for (const char* key : {" on ", " stream "}) {
      const std::size_t from = attribute(text, key);
      if (from == std::string::npos) continue;
      // Up to the next attribute.
      const std::size_t skip = std::string(key).size();
      const auto value = [&](const std::string& of, std::size_t begin) {
        std::size_t end = begin;
        bool quoted = false;
        while (end < of.size() && (quoted || of[end] != ' ' || of.substr(begin, end - begin).find('[') != std::string::npos)) {
          if (of[end] == '"') quoted = !quoted;
          if (!quoted && of[end] == ']') return Token{begin, end + 1};
          if (!quoted && of[end] == ' ' && of.find('[', begin) > end) break;
          ++end;
        }
        return Token{begin, end};
      };
      const Token own = value(text, from + skip);
      for (const std::size_t other : nodes) {
        const std::size_t theirs = attribute(lines_[other], key);
        if (theirs == std::string::npos) continue;
        const std::string replacement = at(lines_[other], value(lines_[other], theirs + skip));
        if (replacement == at(text, own)) continue;
        add(std::string("redirect") + key, line, with(text, own, replacement));
        break;
      }
    }
    const std::size_t open = text.find(" (");
    const std::size_t attributes = text.find(" on ");
    if (open == std::string::npos || open > attributes) return;
    const std::size_t close = text.find(')', open);
    for (Token token = word(text, open + 2); token.begin < close && token.end <= close; token = word(text, token.end)) {
      const std::string operand = at(text, token);
      if (operand == "param" || operand == "grad" || operand == "data" || operand.empty()) continue;
      // The same place of another node of this kind, then any other node.
      std::set<std::string> others;
      if (alike) {
        const std::string& theirs = lines_[*alike];
        const std::size_t begin = theirs.find(" (");
        if (begin != std::string::npos) {
          for (Token each = word(theirs, begin + 2); each.begin < theirs.find(')', begin); each = word(theirs, each.end)) {
            const std::string name = at(theirs, each);
            if (name != "param" && name != "grad" && name != "data") others.insert(name);
          }
        }
      }
      others.insert(node_name(lines_[nodes[(number + 1) % nodes.size()]]));
      others.erase(operand);
      for (const std::string& other : others) add("redirect source `" + operand + "` to `" + other + "`", line, with(text, token, other));
    }
    if (number + 1 < nodes.size() && reads(lines_[nodes[number + 1]], node_name(text))) swap(line, nodes[number + 1]);
  }

  static bool reads(const std::string& line, const std::string& name) {
    const std::size_t open = line.find(" (");
    if (open == std::string::npos || open > line.find(" on ")) return line.find(" from " + name + " ") != std::string::npos;
    const std::size_t close = line.find(')', open);
    for (Token token = word(line, open + 2); token.begin < close; token = word(line, token.end)) {
      const std::string operand = at(line, token);
      if (line.substr(token.begin < 6 ? 0 : token.begin - 6, 6) == "param ") continue;  // of the step before
      if (operand == name || operand.starts_with(name + ":")) return true;
    }
    return line.find(" from " + name + " ") != std::string::npos;
  }

  void swap(std::size_t a, std::size_t b) {
    Change change{"swap: " + lines_[a] + " | " + lines_[b], a, b - a + 1, {lines_[b]}};
    for (std::size_t i = a + 1; i < b; ++i) change.lines.push_back(lines_[i]);
    change.lines.push_back(lines_[a]);
    changes.push_back(std::move(change));
  }

  // ---- actions -----------------------------------------------------------------------------------------------------------

  const Action& action(const Place& place) const { return dag_.plan->roles[place.role].actions[place.action]; }

  void act(std::size_t k) {
    const Place& place = actions_[k];
    const std::string& text = lines_[place.line];
    delete_and_duplicate(place.line, "action");
    waits(place);
    operands(place);
    const std::size_t via = text.find(" via ");
    if (via != std::string::npos) {
      for (const std::string& other : via_) {
        const Token token = word(text, via + 5);
        if (other != at(text, token)) add("redirect communicator", place.line, with(text, token, other));
      }
    }
    if (k + 1 == actions_.size() || actions_[k + 1].role != place.role) return;
    if (dependent(place, actions_[k + 1])) {
      swap(place.line, actions_[k + 1].line);
    } else {
      ++independent;
    }
  }

  void waits(const Place& place) {
    const std::string& text = lines_[place.line];
    const std::size_t after = text.find(" after ");
    if (after == std::string::npos) return;
    std::size_t end = text.size();
    for (const char* section : {" reads (", " writes (", " uses ("}) end = std::min(end, text.find(section, after));
    std::vector<std::string> list;
    for (std::size_t from = after + 7; from < end;) {
      const std::size_t comma = std::min(text.find(", ", from), end);
      list.push_back(text.substr(from, comma - from));
      from = comma + 2;
    }
    const dag::Role& role = dag_.plan->roles[place.role];
    for (std::size_t w = 0; w < list.size(); ++w) {
      const auto joined = [&](const std::string& replacement) {
        std::string all;
        for (std::size_t i = 0; i < list.size(); ++i) {
          const std::string& each = i == w ? replacement : list[i];
          if (!each.empty()) all += (all.empty() ? " after " : ", ") + each;
        }
        return text.substr(0, after) + all + text.substr(end);
      };
      add("delete wait `" + list[w] + "`", place.line, joined(""));
      // An earlier action of the same stream says less.
      const dag::Wait& wait = role.waits[action(place).first_wait + w];
      for (const Action& other : role.actions) {
        if (other.stream != wait.stream || other.position + 1 != wait.position) continue;
        add("redirect wait `" + list[w] + "`", place.line, joined((wait.distance > 0 ? "previous " : "") + dag_.name(other.node)));
      }
      if (wait.distance == 0) add("wait for the step before instead of `" + list[w] + "`", place.line, joined("previous " + list[w]));
    }
  }

  void operands(const Place& place) {
    const std::string& text = lines_[place.line];
    const dag::Role& role = dag_.plan->roles[place.role];
    std::size_t end = text.find(" uses (");
    if (end == std::string::npos) end = text.size();
    // Names of all buffers, as the role declares them.
    std::vector<std::string> names;
    for (std::size_t i = place.line - place.action; i-- > 0 && lines_[i].starts_with("  buffer ");) {
      names.push_back(lines_[i].substr(9, lines_[i].find(" = ") - 9));
    }
    std::reverse(names.begin(), names.end());
    std::size_t index = 0;
    for (std::size_t from = text.find('%'); from < end; from = text.find('%', from + 1), ++index) {
      const Token token = word(text, from);
      const auto own = std::find(names.begin(), names.end(), at(text, token));
      if (own == names.end()) continue;
      const auto number = static_cast<std::size_t>(own - names.begin());
      // What nobody reads may be written anywhere that is free.
      if (from > text.find("writes (") && unread(place, index)) continue;
      // Another name for the same bytes leaves the plan as it is.
      for (std::size_t k = 1; k < names.size(); ++k) {
        const std::size_t other = (number + k) % names.size();
        if (role.buffers[other].offset == role.buffers[number].offset) continue;
        add("redirect operand `" + at(text, token) + "` to `" + names[other] + "`", place.line, with(text, token, names[other]));
        break;
      }
      std::string moved = text;
      moved.insert(token.end, " + 64");
      if (text.compare(token.end, 3, " + ") != 0) add("move operand `" + at(text, token) + "`", place.line, moved);
      const dag::Operand& operand = role.operands[action(place).first_operand + index];
      const std::size_t inputs = text.find("writes (");
      if (operand.accumulate) {
        std::string written = text;
        written.erase(token.begin - 1, 1);
        add("write instead of add `" + at(text, token) + "`", place.line, written);
      } else if (from > inputs) {
        std::string added = text;
        added.insert(token.begin, "+");
        add("add instead of write `" + at(text, token) + "`", place.line, added);
      }
    }
  }

  /// What holds from step to step has bytes that nothing else may write, however long before or after. Gradients hold for a part of the step only.
  void move_onto_state(const BufferLine& place) {
    const std::vector<dag::Buffer>& buffers = dag_.plan->roles[place.role].buffers;
    const auto lasts = [](const dag::Buffer& buffer) {
      return buffer.cls == dag::BufferClass::parameters || buffer.cls == dag::BufferClass::optimizer || buffer.cls == dag::BufferClass::scalars;
    };
    std::vector<std::int64_t> state;
    for (const dag::Buffer& buffer : buffers) {
      if (lasts(buffer)) state.push_back(buffer.offset);
    }
    if (state.empty() || lasts(buffers[place.buffer])) return;
    const std::string onto = std::to_string(state[place.buffer % state.size()]);
    std::string moved = lines_[place.line];
    const std::size_t begin = moved.find(" at ") + 4;
    moved.replace(begin, moved.find(' ', begin) - begin, onto);
    add("move buffer to byte `" + onto + "`", place.line, moved);
  }

  /// The operand at that position is an output that no node reads.
  bool unread(const Place& place, std::size_t operand) const {
    const dag::NodeId node = action(place).node;
    std::size_t inputs = 0;
    for (const dag::Input& input : dag_.inputs_of(dag_.node(node))) inputs = std::max<std::size_t>(inputs, input.port + 1);
    if (operand < inputs) return false;
    const auto port = static_cast<std::uint32_t>(operand - inputs);
    for (const dag::Node& other : dag_.nodes) {
      for (const dag::Input& input : dag_.inputs_of(other)) {
        if (input.source.node == node && input.source.index == port) return false;
      }
    }
    return port < dag_.node(node).num_outputs;
  }

  // ---- which neighbours may be swapped -----------------------------------------------------------------------------------

  struct Range {
    std::int64_t begin, end;
    bool write;
  };
  std::vector<Range> ranges(const Place& place) const {
    const dag::Role& role = dag_.plan->roles[place.role];
    const Action& a = action(place);
    const dag::Node& node = dag_.node(a.node);
    std::vector<Range> result;
    std::uint32_t inputs = 0;
    for (const dag::Input& input : dag_.inputs_of(node)) inputs = std::max(inputs, input.port + 1);
    for (std::uint32_t i = 0; i < a.num_operands; ++i) {
      const dag::Operand& operand = role.operands[a.first_operand + i];
      const dag::Buffer& buffer = role.buffers[operand.buffer.index()];
      std::int64_t bytes = buffer.bytes - operand.offset;
      if (i < inputs) {
        for (const dag::Input& input : dag_.inputs_of(node)) {
          if (input.port == i && input.source.node.valid()) bytes = dag_.output_type(input.source).bytes();
        }
      } else if (i < inputs + node.num_outputs) {
        bytes = dag_.output_type({a.node, i - inputs}).bytes();
      }
      result.push_back({buffer.offset + operand.offset, buffer.offset + operand.offset + bytes, i >= inputs});
    }
    return result;
  }

  /// Neighbours on one stream that touch the same bytes, one writing, or stand in one communicator.
  bool dependent(const Place& a, const Place& b) const {
    const Action& first = action(a);
    const Action& second = action(b);
    if (first.communicator.valid() && first.communicator == second.communicator) return true;
    if (first.stream != second.stream) return false;
    for (const Range& x : ranges(a)) {
      for (const Range& y : ranges(b)) {
        if ((x.write || y.write) && x.begin < y.end && y.begin < x.end && !(x.write && y.write && scratch(a, x) && scratch(b, y))) return true;
      }
    }
    return false;
  }

  /// Workspace holds nothing between actions.
  bool scratch(const Place& place, const Range& range) const {
    for (const dag::Buffer& buffer : dag_.plan->roles[place.role].buffers) {
      if (buffer.cls == dag::BufferClass::workspace && range.begin >= buffer.offset && range.end <= buffer.offset + buffer.bytes) return true;
    }
    return false;
  }

  const Dag& dag_;
  std::vector<std::string> lines_;
  std::vector<std::string> via_;
  std::vector<Place> actions_;
  std::vector<BufferLine> buffers_;
};

}  // namespace

bool is_legal(std::string_view text) {
  Context context;
  DiagnosticSink sink(context.locations);
  const std::optional<Dag> dag = dag::parse(text, context, sink);
  return dag && verify::verify(*dag, sink);
}

MutationReport run_mutations(std::string_view text, std::size_t limit) {
  MutationReport report;
  Context context;
  DiagnosticSink sink(context.locations);
  const std::optional<Dag> dag = dag::parse(text, context, sink);
  if (!dag || dag->level != dag::Level::planned || !verify::verify(*dag, sink)) {
    report.survivors.push_back("the text is no legal plan:\n" + render_text(sink.sorted(), context.locations.files()));
    return report;
  }
  // Printed text has one node or action per line and no comments; ids are those of its own parse.
  const std::string printed = print(*dag);
  Context own;
  DiagnosticSink own_sink(own.locations);
  const std::optional<Dag> parsed = dag::parse(printed, own, own_sink);
  if (!parsed) {
    report.survivors.push_back("the printed text cannot be parsed");
    return report;
  }
  Mutator mutator(*parsed, printed);
  mutator.collect();
  report.independent = mutator.independent;
  const std::size_t all = mutator.changes.size();
  const std::size_t tries = limit == 0 ? all : std::min(limit, all);
  for (std::size_t k = 0; k < tries; ++k) {
    const Change& change = mutator.changes[k * all / tries];
    ++report.tried;
    if (is_legal(mutator.apply(change))) report.survivors.push_back(change.what);
  }
  return report;
}

}  // namespace piper::test
