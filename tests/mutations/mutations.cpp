#include "tests/mutations/mutations.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "ir/dag/parse.h"
#include "ir/dag/print.h"
#include "ir/verify/verify.h"
#include "tests/mutations/independence.h"
#include "tests/mutations/plan_changes.h"

namespace piper::test {

namespace {

using dag::Action;
using dag::Dag;
using dag::NodeId;

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
  Mutator(const Dag& dag, const std::string& text) : dag_(dag), independence_(dag) {
    std::size_t begin = 0;
    for (std::size_t end; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1)
      lines_.push_back(text.substr(begin, end - begin));
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
        communicator(i);
      } else if (line.starts_with("role ")) {
        role = section == Section::role ? role + 1 : 0;
        for (const char* key : {" arena ", " live ", " host "}) numbers(i, key, {-64, 64});
        section = Section::role;
        action = buffer = 0;
      } else if (section == Section::header && line.starts_with("loss ")) {
        // Signatures alone do not say how many elements a body sums.
        const bool known =
            std::any_of(dag_.bodies.begin(), dag_.bodies.end(),
                        [](const dag::Body& body) { return !body.graph.nodes().empty(); });
        if (known) numbers(i, ": ", {-1, 1, 64});
      } else if (section == Section::header && line.starts_with("body @")) {
        body(i);
      } else if (section == Section::header &&
                 (line.starts_with("claim ") || line.starts_with("train "))) {
        header(i);
      } else if (line.starts_with("  ") && section != Section::header) {
        if (section == Section::graph) nodes.push_back(i);
        if (section == Section::communicator) delete_and_duplicate(i, "entry");
        if (section == Section::role && line.starts_with("  buffer "))
          buffers_.push_back({i, role, buffer++});
        if (section == Section::role && !line.starts_with("  buffer "))
          actions_.push_back({i, role, action++});
      }
    }
    for (std::size_t k = 0; k < nodes.size(); ++k) node(nodes[k], k, nodes);
    for (std::size_t k = 0; k < actions_.size(); ++k) act(k);
    for (const BufferLine& line : buffers_) {
      move_onto_state(line);
      sizes_and_classes(line);
    }
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
    if (replacement != lines_[line])
      changes.push_back({std::move(what) + ": " + lines_[line], line, 1, {std::move(replacement)}});
  }
  void delete_and_duplicate(std::size_t line, const std::string& kind) {
    changes.push_back({"delete " + kind + ": " + lines_[line], line, 1, {}});
    changes.push_back(
        {"duplicate " + kind + ": " + lines_[line], line, 1, {lines_[line], lines_[line]}});
  }

  /// Each value of a body in another layout, in its signature and where it is made.
  void body(std::size_t first) {
    std::size_t end = first;
    while (lines_[end].back() == ',' || lines_[end + 1].starts_with("    -> ")) ++end;
    if (lines_[end].back() == '{')
      end = static_cast<std::size_t>(
          std::find(lines_.begin() + static_cast<std::ptrdiff_t>(end), lines_.end(), "}") -
          lines_.begin());
    std::set<std::string> values;
    for (std::size_t i = first; i <= end; ++i) {
      if (const std::size_t at = lines_[i].find('%');
          at != std::string::npos && lines_[i].find('<') != std::string::npos)
        values.insert(lines_[i].substr(at, lines_[i].find_first_of(": ,", at) - at));
    }
    for (const std::string& value : values) {
      for (const bool summand : {false, true}) {
        Change change{(summand ? "a summand: " : "held whole: ") + value + " of " + lines_[first],
                      first,
                      end - first + 1,
                      {}};
        for (std::size_t i = first; i <= end; ++i) {
          std::string line = lines_[i];
          const std::size_t at = line.find('%'), open = line.find('<'),
                            close = line.find('>', open);
          if (open != std::string::npos &&
              (line.compare(at, value.size() + 1, value + ":") == 0 ||
               line.compare(at, value.size() + 3, value + " = ") == 0)) {
            const std::size_t colon = line.find(':', open);
            line.replace(open, close - open + 1,
                         summand ? line.substr(open, colon - open) + ": +>" : "");
          }
          change.lines.push_back(std::move(line));
        }
        const bool changed = !std::equal(change.lines.begin(), change.lines.end(),
                                         lines_.begin() + static_cast<std::ptrdiff_t>(first));
        if (changed) changes.push_back(std::move(change));
      }
    }
  }

  static bool name_char(char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.' || c == '_' || c == '%' ||
           c == ':' || c == '#';
  }
  /// The word that begins at or after `from`, quotes included.
  static Token word(const std::string& line, std::size_t from) {
    while (from < line.size() && !name_char(line[from]) && line[from] != '"') ++from;
    Token token{from, from};
    bool quoted = false;
    while (token.end < line.size() &&
           (quoted || name_char(line[token.end]) || line[token.end] == '"')) {
      if (line[token.end] == '"') quoted = !quoted;
      ++token.end;
    }
    if (token.end > token.begin && line[token.end - 1] == ':') --token.end;
    return token;
  }
  static std::string with(const std::string& line, Token token, const std::string& text) {
    return line.substr(0, token.begin) + text + line.substr(token.end);
  }
  static std::string at(const std::string& line, Token token) {
    return line.substr(token.begin, token.end - token.begin);
  }

  // ---- header
  // ------------------------------------------------------------------------------------------------------------

  /// A claim, or the settings of the train: written twice.
  void header(std::size_t line) {
    std::size_t end = line + 1;
    while (lines_[line].starts_with("train ") && lines_[end - 1] != "}") ++end;
    const std::vector<std::string> block(lines_.begin() + static_cast<std::ptrdiff_t>(line),
                                         lines_.begin() + static_cast<std::ptrdiff_t>(end));
    std::vector<std::string> twice = block;
    twice.insert(twice.end(), block.begin(), block.end());
    changes.push_back({"duplicate: " + lines_[line], line, block.size(), twice});
    for (std::size_t i = line + 1; i + 1 < end; ++i)
      changes.push_back({"duplicate: " + lines_[i], i, 1, {lines_[i], lines_[i]}});
  }

  // ---- nodes
  // -------------------------------------------------------------------------------------------------------------

  /// The start of an attribute; a location's chain of calls has its own words.
  static std::size_t attribute(const std::string& line, const std::string& key) {
    const std::size_t at = line.find(key);
    return at < line.find(" loc(") ? at : std::string::npos;
  }
  static std::string node_name(const std::string& line) {
    return line.substr(2, line.find(" = ") - 2);
  }
  static std::string node_kind(const std::string& line) {
    const std::size_t from = line.find(" = ") + 3;
    return line.substr(from, line.find(' ', from) - from);
  }

  void node(std::size_t line, std::size_t number, const std::vector<std::size_t>& nodes) {
    const std::string text = lines_[line];
    delete_and_duplicate(line, "node");
    remove_wholly(line);
    attributes(line, number, nodes);
    // Another node of the same kind and the next one: redirected references go there.
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
      add("redirect peer", line,
          with(text, word(text, from + skip),
               at(lines_[*alike], word(lines_[*alike], theirs + skip))));
    }
    for (const char* key : {" on ", " stream "}) {
      const std::size_t from = attribute(text, key);
      if (from == std::string::npos) continue;
      // Up to the next attribute.
      const std::size_t skip = std::string(key).size();
      const auto value = [&](const std::string& of, std::size_t begin) {
        std::size_t end = begin;
        bool quoted = false;
        while (end < of.size() && (quoted || of[end] != ' ' ||
                                   of.substr(begin, end - begin).find('[') != std::string::npos)) {
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
    const std::size_t attributes = std::min(text.find(" on "), text.find(" over "));
    if (open == std::string::npos || open > attributes) return;
    const std::size_t close = text.find(')', open);
    for (Token token = word(text, open + 2); token.begin < close && token.end <= close;
         token = word(text, token.end)) {
      const std::string operand = at(text, token);
      if (operand == "param" || operand == "grad" || operand == "data" || operand.empty()) continue;
      // The same place of another node of this kind, then any other node.
      std::set<std::string> others;
      if (alike) {
        const std::string& theirs = lines_[*alike];
        const std::size_t begin = theirs.find(" (");
        if (begin != std::string::npos) {
          for (Token each = word(theirs, begin + 2); each.begin < theirs.find(')', begin);
               each = word(theirs, each.end)) {
            const std::string name = at(theirs, each);
            if (name != "param" && name != "grad" && name != "data") others.insert(name);
          }
        }
      }
      others.insert(node_name(lines_[nodes[(number + 1) % nodes.size()]]));
      others.erase(operand);
      for (const std::string& other : others)
        add("redirect source `" + operand + "` to `" + other + "`", line, with(text, token, other));
    }
    if (number + 1 < nodes.size() && reads(lines_[nodes[number + 1]], node_name(text)))
      swap(line, nodes[number + 1]);
  }

  static bool reads(const std::string& line, const std::string& name) {
    const std::size_t open = line.find(" (");
    if (open == std::string::npos || open > std::min(line.find(" on "), line.find(" over ")))
      return line.find(" from " + name + " ") != std::string::npos;
    const std::size_t close = line.find(')', open);
    for (Token token = word(line, open + 2); token.begin < close; token = word(line, token.end)) {
      const std::string operand = at(line, token);
      // of the step before
      if (line.substr(token.begin < 6 ? 0 : token.begin - 6, 6) == "param ") continue;
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

  /// Attributes that identify the subject of a line: the chunk and pass of a message, samples,
  /// axes, classes of edges, temporal edges.
  void attributes(std::size_t line, std::size_t number, const std::vector<std::size_t>& nodes) {
    const std::string& text = lines_[line];
    const dag::Node& node = dag_.nodes[number];
    if (is_message(node.kind)) {
      const Token pass = word(text, text.find(" = ") + 3 + node_kind(text).size());
      add("another pass", line, with(text, pass, node.pass == Pass::F ? "B" : "F"));
      for (const dag::Chunk& chunk : dag_.chunks) {
        const std::string name(dag_.context->text(chunk.name));
        // A recv may name any chunk that reads it.
        if (!reads_as(NodeId(static_cast<std::uint32_t>(number)), chunk))
          add("another chunk", line, with(text, word(text, pass.end), name));
      }
    }
    if (const std::size_t layout = attribute(text, " <"); layout != std::string::npos) {
      add("undivided samples", line,
          text.substr(0, layout) + text.substr(text.find('>', layout) + 1));
    }
    const std::size_t stream = text.find(" stream "),
                      end_of_line =
                          std::min(text.size(),
                                   text.find(" loc(", stream == std::string::npos ? 0 : stream));
    if (!runs_body(node.kind)) {
      const std::size_t after = std::min(end_of_line, attribute(text, " after "));
      add("in an overlap group", line, text.substr(0, after) + " group 0" + text.substr(after));
    }
    for (std::size_t grad = text.find("grad "); grad < text.find(" on ");
         grad = text.find("grad ", grad + 1)) {
      add("gradient as data", line, text.substr(0, grad) + text.substr(grad + 5));
    }
    if (adds_in_place(node.kind)) {
      add("on a stream", line,
          text.substr(0, end_of_line) + " stream " +
              std::string(dag_.context->text(dag_.streams.front().name)) +
              text.substr(end_of_line));
      for (const std::size_t plus : places(text, " + "))
        add("a term less", line,
            text.substr(0, plus) +
                text.substr(std::min(text.find_first_of(" ,)", plus + 3), text.size())));
      act_for(node_name(text));
    }
    if (const std::size_t over = attribute(text, " over "); over != std::string::npos) {
      const std::size_t end = std::min(text.find(" with ", over), text.find(" on ", over));
      add("joins no axis", line, text.substr(0, over + 6) + "()" + text.substr(end));
    }
    // After later nodes, itself, and nodes that none of its devices runs.
    const auto ordered_after = [&](const std::string& other) {
      const bool has = attribute(text, " after ") != std::string::npos;
      add("order after `" + other + "`", line,
          text.substr(0, end_of_line) + (has ? ", " : " after ") + other +
              text.substr(end_of_line));
    };
    ordered_after(node_name(text));
    if (number + 1 < nodes.size()) ordered_after(node_name(lines_[nodes[number + 1]]));
    for (std::size_t before = number; before-- > 0;) {
      if (dag_.device_sets[dag_.nodes[before].devices].intersects(dag_.device_sets[node.devices]))
        continue;
      ordered_after(node_name(lines_[nodes[before]]));
      break;
    }
  }

  /// An action of a node for which no device does work, in front of the others of each role.
  void act_for(const std::string& name) {
    for (const Place& place : actions_) {
      if (place.action == 0)
        changes.push_back(
            {"an action: " + name,
             place.line,
             1,
             {"  " + name + " on " + std::string(dag_.context->text(dag_.streams.front().name)),
              lines_[place.line]}});
    }
  }

  static std::vector<std::size_t> places(const std::string& text, const std::string& what) {
    std::vector<std::size_t> found;
    for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1))
      found.push_back(at);
    return found;
  }

  bool reads_as(NodeId recv, const dag::Chunk& chunk) const {
    return std::any_of(dag_.nodes.begin(), dag_.nodes.end(), [&](const dag::Node& node) {
      const std::span<const dag::Input> inputs = dag_.inputs_of(node);
      return runs_body(node.kind) && dag_.chunks[node.chunk.index()].name == chunk.name &&
             std::any_of(inputs.begin(), inputs.end(),
                         [&](const dag::Input& input) { return input.source.node == recv; });
    });
  }

  /// A node is gone, with its actions, buffers and messages, where nothing else names it.
  void remove_wholly(std::size_t line) {
    const std::string name = node_name(lines_[line]);
    Change change{"delete wholly: " + name, line, lines_.size() - line, {}};
    for (std::size_t i = line + 1; i < lines_.size(); ++i) {
      const std::string& each = lines_[i];
      const bool own = each.starts_with("  " + name + " ") || each == "  " + name ||
                       each.starts_with("  buffer %" + name + ":");
      if (!own) change.lines.push_back(each);
    }
    changes.push_back(std::move(change));
  }

  // ---- heads of communicators and roles, buffers
  // --------------------------------------------------------------------------

  /// The number behind a key, changed by each of `by`.
  void numbers(std::size_t line, const std::string& key, const std::vector<std::int64_t>& by) {
    const std::string& text = lines_[line];
    const std::size_t at = text.find(key);
    if (at == std::string::npos) return;
    const std::size_t begin = at + key.size(), end = std::min(text.find(' ', begin), text.size());
    const std::int64_t value = std::stoll(text.substr(begin, end - begin));
    for (const std::int64_t change : by) {
      if (value + change >= 0)
        add("another" + key + std::to_string(value + change), line,
            text.substr(0, begin) + std::to_string(value + change) + text.substr(end));
    }
  }

  void communicator(std::size_t line) {
    const std::string& text = lines_[line];
    numbers(line, " min ", {-1, 1});
    const std::size_t open = text.find('('), close = text.find(')', open),
                      middle = text.find("], ", open);
    if (middle < close) {
      add("members in another order", line,
          text.substr(0, open + 1) + text.substr(middle + 3, close - middle - 3) + ", " +
              text.substr(open + 1, middle - open) + text.substr(close));
      add("a member less", line, text.substr(0, open + 1) + text.substr(middle + 3));
    }
    const Token stream = word(text, text.find(" stream ") + 8);
    for (const dag::Stream& other : dag_.streams)
      add("another stream", line, with(text, stream, std::string(dag_.context->text(other.name))));
    if (const std::size_t over = attribute(text, " over "); over != std::string::npos)
      add("joins no axis", line, text.substr(0, over) + text.substr(text.find(" stream ")));
  }

  void sizes_and_classes(const BufferLine& place) {
    const dag::Buffer& buffer = dag_.plan->roles[place.role].buffers[place.buffer];
    // The scratch of an action is not a fact of this text.
    if (buffer.cls == dag::BufferClass::workspace) return;
    numbers(place.line, " bytes ", {-1, 1, 64});
    const std::string& text = lines_[place.line];
    const Token own = word(text, text.find(" = ") + 3);
    for (const char* cls : {"activations", "communication", "workspace", "scalars", "gradients",
                            "unreduced", "gathered", "offloaded"}) {
      if (text.substr(own.begin, own.end - own.begin) != cls)
        add("another class", place.line, with(text, own, cls));
    }
  }

  // ---- actions
  // -----------------------------------------------------------------------------------------------------------

  const Action& action(const Place& place) const {
    return dag_.plan->roles[place.role].actions[place.action];
  }

  void act(std::size_t k) {
    const Place& place = actions_[k];
    const std::string& text = lines_[place.line];
    delete_and_duplicate(place.line, "action");
    waits(place);
    operands(place);
    for (const auto& [from, to] : {std::pair{" reads (", " writes ("},
                                   {" writes (", " uses ("},
                                   {" writes (", " reads ("}}) {
      if (const std::size_t found = text.find(from); found != std::string::npos) {
        add(std::string("call what it") + from + to, place.line,
            text.substr(0, found) + to + text.substr(found + std::string(from).size()));
      }
    }
    const std::size_t via = text.find(" via ");
    if (via != std::string::npos) {
      for (const std::string& other : via_) {
        const Token token = word(text, via + 5);
        if (other != at(text, token))
          add("redirect communicator", place.line, with(text, token, other));
      }
    }
    if (k + 1 == actions_.size() || actions_[k + 1].role != place.role) return;
    if (independence_.dependent(dag_.plan->roles[place.role], action(place),
                                action(actions_[k + 1]))) {
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
    for (const char* section : {" reads (", " writes (", " uses ("})
      end = std::min(end, text.find(section, after));
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
        add("redirect wait `" + list[w] + "`", place.line,
            joined((wait.distance > 0 ? "previous " : "") + dag_.name(other.node)));
      }
      if (wait.distance == 0)
        add("wait for the step before instead of `" + list[w] + "`", place.line,
            joined("previous " + list[w]));
    }
  }

  void operands(const Place& place) {
    const std::string& text = lines_[place.line];
    const dag::Role& role = dag_.plan->roles[place.role];
    std::size_t end = text.find(" uses (");
    if (end == std::string::npos) end = text.size();
    // Names of all buffers, as the role declares them.
    std::vector<std::string> names;
    for (std::size_t i = place.line - place.action;
         i-- > 0 && lines_[i].starts_with("  buffer ");) {
      names.push_back(lines_[i].substr(9, lines_[i].find(" = ") - 9));
    }
    std::reverse(names.begin(), names.end());
    std::size_t index = 0;
    for (std::size_t from = text.find('%'); from < end; from = text.find('%', from + 1), ++index) {
      const Token token = word(text, from);
      const auto own = std::find(names.begin(), names.end(), at(text, token));
      if (own == names.end()) continue;
      const auto number = static_cast<std::size_t>(own - names.begin());
      // A value without a reader may be written to any free memory.
      if (from > text.find("writes (") && independence_.unread(action(place).node, index)) continue;
      // The next buffer of other bytes, and another name for the same.
      bool elsewhere = false, same = false;
      for (std::size_t k = 1; k < names.size(); ++k) {
        const std::size_t other = (number + k) % names.size();
        bool& done = role.buffers[other].offset == role.buffers[number].offset ? same : elsewhere;
        if (done) continue;
        done = true;
        add("redirect operand `" + at(text, token) + "` to `" + names[other] + "`", place.line,
            with(text, token, names[other]));
      }
      std::string moved = text;
      moved.insert(token.end, " + 64");
      if (text.compare(token.end, 3, " + ") != 0)
        add("move operand `" + at(text, token) + "`", place.line, moved);
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

  /// State has bytes that nothing else may use, however long before or after.
  void move_onto_state(const BufferLine& place) {
    const std::vector<dag::Buffer>& buffers = dag_.plan->roles[place.role].buffers;
    const auto lasts = [](const dag::Buffer& buffer) {
      return is_state(buffer.cls) && !is_on_host(buffer.cls);
    };
    std::vector<std::int64_t> state;
    for (const dag::Buffer& buffer : buffers) {
      if (lasts(buffer)) state.push_back(buffer.offset);
    }
    if (state.empty() || is_state(buffers[place.buffer].cls) ||
        is_on_host(buffers[place.buffer].cls))
      return;
    const std::string onto = std::to_string(state[place.buffer % state.size()]);
    std::string moved = lines_[place.line];
    const std::size_t begin = moved.find(" at ") + 4;
    moved.replace(begin, moved.find(' ', begin) - begin, onto);
    add("move buffer to byte `" + onto + "`", place.line, moved);
  }

  const Dag& dag_;
  const Independence independence_;
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
    report.survivors.push_back("the text is no legal plan:\n" +
                               render_text(sink.sorted(), context.locations.files()));
    return report;
  }
  // Printed text has one node or action per line and no comments; ids are those of this parse.
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
  const std::vector<TextChange> more = plan_changes(*parsed, printed);
  const std::size_t more_tries = limit == 0 ? more.size() : std::min(limit, more.size());
  for (std::size_t k = 0; k < more_tries; ++k) {
    const TextChange& change = more[k * more.size() / more_tries];
    ++report.tried;
    if (is_legal(change.text)) report.survivors.push_back(change.what);
  }
  return report;
}

}  // namespace piper::test
