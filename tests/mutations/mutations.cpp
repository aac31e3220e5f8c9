#include "tests/mutations/mutations.h"

#include <algorithm>
#include <optional>
#include <set>

#include "ir/dag/parse.h"
#include "ir/dag/print.h"
#include "ir/verify/verify.h"
#include "tests/mutations/dag_lines.h"
#include "tests/mutations/plan_changes.h"
#include "tests/mutations/plan_line_changes.h"

namespace piper::test {

namespace {

using dag::Dag;
using dag::NodeId;

class Mutator {
 public:
  Mutator(const Dag& dag, DagLines& lines) : dag_(dag), lines_(lines), plan_(dag, lines) {}

  void collect() {
    enum class Section { header, graph, communicator, role, locations } section = Section::header;
    std::vector<std::size_t> nodes;
    for (std::size_t i = 0; i < lines_.size(); ++i) {
      const std::string& line = lines_[i];
      if (line == "graph {") {
        section = Section::graph;
      } else if (line.starts_with("communicator ")) {
        section = Section::communicator;
        plan_.add_communicator(i);
      } else if (line.starts_with("role ")) {
        section = Section::role;
        plan_.add_role(i);
      } else if (line == "locations {") {
        section = Section::locations;
      } else if (section == Section::header && line.starts_with("loss ")) {
        // Signatures alone do not say how many elements a body sums.
        const bool known =
            std::any_of(dag_.bodies.begin(), dag_.bodies.end(),
                        [](const dag::Body& body) { return !body.graph.nodes().empty(); });
        if (known) lines_.change_number(i, ": ", {-1, 1, 64});
      } else if (section == Section::header && line.starts_with("body @")) {
        body(i);
      } else if (section == Section::header &&
                 (line.starts_with("claim ") || line.starts_with("train "))) {
        header(i);
      } else if (line.starts_with("  ") && section != Section::header) {
        if (section == Section::graph) nodes.push_back(i);
        if (section == Section::communicator) lines_.delete_and_duplicate(i, "entry");
        if (section == Section::role) plan_.add_role_line(i);
        if (section == Section::locations) lines_.delete_and_duplicate(i, "location");
      }
    }
    for (std::size_t k = 0; k < nodes.size(); ++k) node(nodes[k], k, nodes);
    plan_.change_actions_and_buffers();
  }

  std::size_t num_independent() const { return plan_.num_independent(); }

 private:
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
        LineChange change{
            (summand ? "a summand: " : "held whole: ") + value + " of " + lines_[first],
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
        if (changed) lines_.changes.push_back(std::move(change));
      }
    }
  }

  // ---- header

  /// A claim, or the settings of the train: written twice.
  void header(std::size_t line) {
    std::size_t end = line + 1;
    while (lines_[line].starts_with("train ") && lines_[end - 1] != "}") ++end;
    const std::vector<std::string> block(lines_.begin() + static_cast<std::ptrdiff_t>(line),
                                         lines_.begin() + static_cast<std::ptrdiff_t>(end));
    std::vector<std::string> twice = block;
    twice.insert(twice.end(), block.begin(), block.end());
    lines_.changes.push_back({"duplicate: " + lines_[line], line, block.size(), twice});
    for (std::size_t i = line + 1; i + 1 < end; ++i)
      lines_.changes.push_back({"duplicate: " + lines_[i], i, 1, {lines_[i], lines_[i]}});
  }

  // ---- nodes

  void node(std::size_t line, std::size_t number, const std::vector<std::size_t>& nodes) {
    const std::string text = lines_[line];
    lines_.delete_and_duplicate(line, "node");
    remove_wholly(line);
    attributes(line, number, nodes);
    // Another node of the same kind and the next one: redirected references go there.
    std::optional<std::size_t> alike;
    for (std::size_t k = 1; k < nodes.size() && !alike; ++k) {
      const std::size_t other = nodes[(number + k) % nodes.size()];
      if (node_kind(lines_[other]) == node_kind(text)) alike = other;
    }
    for (const char* key : {" to ", " from "}) {
      const std::size_t from = find_attribute(text, key);
      if (from == std::string::npos || !alike) continue;
      const std::size_t theirs = find_attribute(lines_[*alike], key);
      if (theirs == std::string::npos) continue;
      const std::size_t skip = std::string(key).size();
      lines_.add("redirect peer", line,
                 replace_token(text, word(text, from + skip),
                               token_text(lines_[*alike], word(lines_[*alike], theirs + skip))));
    }
    for (const char* key : {" on ", " stream "}) {
      const std::size_t from = find_attribute(text, key);
      if (from == std::string::npos) continue;
      // Up to the next attribute.
      const std::size_t skip = std::string(key).size();
      const auto value = [&](const std::string& of, std::size_t begin) {
        std::size_t end = begin;
        bool quoted = false;
        while (end < of.size() && (quoted || of[end] != ' ' ||
                                   of.substr(begin, end - begin).find('[') != std::string::npos)) {
          if (of[end] == '"') quoted = !quoted;
          if (!quoted && of[end] == ']') return LineToken{begin, end + 1};
          if (!quoted && of[end] == ' ' && of.find('[', begin) > end) break;
          ++end;
        }
        return LineToken{begin, end};
      };
      const LineToken own = value(text, from + skip);
      for (const std::size_t other : nodes) {
        const std::size_t theirs = find_attribute(lines_[other], key);
        if (theirs == std::string::npos) continue;
        const std::string replacement =
            token_text(lines_[other], value(lines_[other], theirs + skip));
        if (replacement == token_text(text, own)) continue;
        lines_.add(std::string("redirect") + key, line, replace_token(text, own, replacement));
        break;
      }
    }
    const std::size_t open = text.find(" (");
    const std::size_t attributes = std::min(text.find(" on "), text.find(" over "));
    if (open == std::string::npos || open > attributes) return;
    const std::size_t close = text.find(')', open);
    for (LineToken token = word(text, open + 2); token.begin < close && token.end <= close;
         token = word(text, token.end)) {
      const std::string operand = token_text(text, token);
      if (operand == "param" || operand == "grad" || operand == "data" || operand.empty()) continue;
      // The same place of another node of this kind, then any other node.
      std::set<std::string> others;
      if (alike) {
        const std::string& theirs = lines_[*alike];
        const std::size_t begin = theirs.find(" (");
        if (begin != std::string::npos) {
          for (LineToken each = word(theirs, begin + 2); each.begin < theirs.find(')', begin);
               each = word(theirs, each.end)) {
            const std::string name = token_text(theirs, each);
            if (name != "param" && name != "grad" && name != "data") others.insert(name);
          }
        }
      }
      others.insert(node_name(lines_[nodes[(number + 1) % nodes.size()]]));
      others.erase(operand);
      for (const std::string& other : others)
        lines_.add("redirect source `" + operand + "` to `" + other + "`", line,
                   replace_token(text, token, other));
    }
    if (number + 1 < nodes.size() && reads_node(lines_[nodes[number + 1]], node_name(text)))
      lines_.swap(line, nodes[number + 1]);
  }

  /// Attributes that identify the subject of a line: the chunk and pass of a message, samples,
  /// axes, classes of edges, temporal edges.
  void attributes(std::size_t line, std::size_t number, const std::vector<std::size_t>& nodes) {
    const std::string& text = lines_[line];
    const dag::Node& node = dag_.nodes[number];
    if (is_message(node.kind)) {
      const LineToken pass = word(text, text.find(" = ") + 3 + node_kind(text).size());
      lines_.add("another pass", line, replace_token(text, pass, node.pass == Pass::F ? "B" : "F"));
      for (const dag::Chunk& chunk : dag_.chunks) {
        const std::string name(dag_.context->text(chunk.name));
        // A recv may name any chunk that reads it.
        if (!reads_as(NodeId(static_cast<std::uint32_t>(number)), chunk))
          lines_.add("another chunk", line, replace_token(text, word(text, pass.end), name));
      }
    }
    if (const std::size_t layout = find_attribute(text, " <"); layout != std::string::npos) {
      lines_.add("undivided samples", line,
                 text.substr(0, layout) + text.substr(text.find('>', layout) + 1));
    }
    const std::size_t stream = text.find(" stream "),
                      end_of_line = std::min(
                          text.size(), text.find(" #", stream == std::string::npos ? 0 : stream));
    if (!runs_body(node.kind)) {
      const std::size_t after = std::min(end_of_line, find_attribute(text, " after "));
      lines_.add("in an overlap group", line,
                 text.substr(0, after) + " group 0" + text.substr(after));
    }
    for (std::size_t grad = text.find("grad "); grad < text.find(" on ");
         grad = text.find("grad ", grad + 1)) {
      lines_.add("gradient as data", line, text.substr(0, grad) + text.substr(grad + 5));
    }
    if (adds_in_place(node.kind)) {
      lines_.add("on a stream", line,
                 text.substr(0, end_of_line) + " stream " +
                     std::string(dag_.context->text(dag_.streams.front().name)) +
                     text.substr(end_of_line));
      for (const std::size_t plus : find_all(text, " + "))
        lines_.add("a term less", line,
                   text.substr(0, plus) +
                       text.substr(std::min(text.find_first_of(" ,)", plus + 3), text.size())));
      plan_.add_action_of(node_name(text));
    }
    if (const std::size_t over = find_attribute(text, " over "); over != std::string::npos) {
      const std::size_t end = std::min(text.find(" with ", over), text.find(" on ", over));
      lines_.add("joins no axis", line, text.substr(0, over + 6) + "()" + text.substr(end));
    }
    // After later nodes, itself, and nodes that none of its devices runs.
    const auto ordered_after = [&](const std::string& other) {
      const bool has = find_attribute(text, " after ") != std::string::npos;
      lines_.add("order after `" + other + "`", line,
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
    LineChange change{"delete wholly: " + name, line, lines_.size() - line, {}};
    for (std::size_t i = line + 1; i < lines_.size(); ++i) {
      const std::string& each = lines_[i];
      const bool own = each.starts_with("  " + name + " ") || each == "  " + name ||
                       each.starts_with("  buffer %" + name + ":");
      if (!own) change.lines.push_back(each);
    }
    lines_.changes.push_back(std::move(change));
  }

  const Dag& dag_;
  DagLines& lines_;
  PlanLineChanges plan_;
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
  DagLines lines(printed);
  Mutator mutator(*parsed, lines);
  mutator.collect();
  report.independent = mutator.num_independent();
  const std::size_t all = lines.changes.size();
  const std::size_t tries = limit == 0 ? all : std::min(limit, all);
  for (std::size_t k = 0; k < tries; ++k) {
    const LineChange& change = lines.changes[k * all / tries];
    ++report.tried;
    if (is_legal(lines.apply(change))) report.survivors.push_back(change.title);
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
