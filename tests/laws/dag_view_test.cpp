// The views of a DAG show all of it: unfolded, classes of nodes have every edge and lines every
// node, at each level.

#include "frontend/views/node_lines.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "tests/support/compile.h"
#include "tests/support/random_programs.h"

namespace piper::test {
namespace {

using dag::Level;
using dag::NodeId;
using views::Indices;

/// Sharded state, gathered and reduced several times; recomputed forwards, and offloaded values.
constexpr const char* kTreated[] = {R"(use std.models.mlp
use std.schedules.one_f_one_b
mesh c(pp: 2, dp: 2)
train net = mlp(layers: 6, features: 8, hidden: 8, classes: 4) on c {
    data: synthetic(batch: 16, classes: 4)
    optim: adamw(lr: 1e-3, clip: 1.0)
    steps: 2
    one_f_one_b(pp, 4)
    replicate model over dp with zero: 3, prefetch: 1
}
)",
                                    R"(use std.models.mlp
use std.schedules.interleaved
mesh c(pp: 2)
train net = mlp(layers: 6, features: 8, hidden: 8, classes: 4) on c {
    data: synthetic(batch: 16, classes: 4)
    optim: adamw(lr: 1e-3)
    steps: 2
    interleaved(pp, 4, v: 2)
    recompute layer[0..3]
    offload layer with window: 2
    offload model with what: optimizer
    freeze stem
}
)",
                                    R"(use std.models.mlp
use std.schedules.dual_pipe
mesh c(pp: 4)
train net = mlp(layers: 6, features: 8, hidden: 8, classes: 4) on c {
    data: synthetic(batch: 32, classes: 4)
    optim: sgd(lr: 1e-3)
    steps: 2
    dual_pipe(pp, 8)
}
)"};

/// How often each node is read, by its name without indices, and by the whole of it where that is
/// said.
using Reads = std::map<std::string, std::int64_t>;

class Unfolded {
 public:
  explicit Unfolded(const dag::Dag& dag) : dag_(dag), classes_(views::node_classes(dag)) {}

  void expect_all_nodes() const {
    std::set<NodeId> seen;
    for (const views::NodeClass& each : classes_) {
      std::vector<std::string> names = {};
      for (const NodeId member : each.members) {
        EXPECT_TRUE(seen.insert(member).second) << dag_.name(member);
        names.push_back(dag_.name(member));
      }
      EXPECT_EQ(sorted(names), sorted(unfolded(each.members[0], each.at, each.members[0])));
    }
    EXPECT_EQ(seen.size(), dag_.nodes.size());
  }

  void expect_all_edges() const {
    for (const views::NodeClass& each : classes_) {
      for (const NodeId member : each.members) expect_edges(each, member);
    }
  }

 private:
  static std::vector<std::string> sorted(std::vector<std::string> names) {
    std::sort(names.begin(), names.end());
    return names;
  }

  /// Those at all combinations of the indices, as `reader` sees them.
  std::vector<std::string> unfolded(NodeId like, const views::IndexSet& at, NodeId reader) const {
    std::vector<std::string> texts = {""};
    for (std::size_t d = 0; d < dag_.dims.size(); ++d) {
      if (at[d].kind == Indices::Kind::none) continue;
      std::vector<std::int32_t> values = at[d].values;
      if (at[d].kind == Indices::Kind::own)
        values = {dag_.node(reader).instance.at[d] + at[d].offset};
      std::vector<std::string> longer;
      for (const std::string& text : texts) {
        for (const std::int32_t value : values)
          longer.push_back(text + "." + std::string(dag_.context->text(dag_.dims[d].name)) +
                           std::to_string(value));
      }
      texts = std::move(longer);
    }
    std::vector<std::string> names;
    for (const std::string& text : texts) names.push_back(dag_.name(like, text));
    return names;
  }

  void expect_edges(const views::NodeClass& each, NodeId member) const {
    Reads whole, alike;
    for (const dag::Input& edge : dag_.inputs_of(dag_.node(member))) {
      const std::string cls = std::to_string(static_cast<int>(edge.cls)) + " ";
      ++whole[cls + (edge.source.node.valid() ? dag_.name(edge.source.node) : "")];
      ++alike[cls + (edge.source.node.valid() ? dag_.name(edge.source.node, "") : "")];
    }
    for (const views::Reading& reading : each.readings) {
      const std::string cls = std::to_string(static_cast<int>(reading.cls)) + " ";
      for (const views::Reading::Term& term : reading.terms) {
        alike[cls + (term.first.valid() ? dag_.name(term.first, "") : "")] -=
            std::int64_t{reading.ports} * term.nodes;
        const bool various = std::any_of(
            term.at.begin(), term.at.end(),
            [](const Indices& indices) { return indices.kind == Indices::Kind::various; });
        if (various || !term.first.valid()) continue;
        const std::vector<std::string> names = unfolded(term.first, term.at, member);
        EXPECT_EQ(names.size(), term.nodes);
        for (const std::string& name : names)
          EXPECT_GE(whole[cls + name] -= reading.ports, 0)
              << dag_.name(member) << " reads " << name;
      }
    }
    for (const auto& [name, left] : alike)
      EXPECT_EQ(left, 0) << dag_.name(member) << " reads " << name;
  }

  const dag::Dag& dag_;
  std::vector<views::NodeClass> classes_;
};

/// `F.mb0`, `F.mb1`, `F.mb4` of `F.mb[0..2, 4]`.
std::vector<std::string> names_of(const std::string& text) {
  const std::size_t open = text.find('['), close = text.find(']');
  if (open == std::string::npos) return {text};
  std::vector<std::string> names;
  for (std::size_t at = open + 1; at < close;) {
    const std::size_t end = std::min(text.find(", ", at), close), dots = text.find("..", at);
    const int first = std::stoi(text.substr(at));
    const int last = dots < end ? std::stoi(text.substr(dots + 2)) : first + 1;
    for (int i = first; i < last; ++i) {
      for (const std::string& rest : names_of(text.substr(close + 1)))
        names.push_back(text.substr(0, open) + std::to_string(i) + rest);
    }
    at = end + 2;
  }
  return names;
}

/// Nodes by the heading of their lines, as the text has them.
std::map<std::string, std::multiset<std::string>> nodes_of(const std::string& text) {
  std::map<std::string, std::multiset<std::string>> nodes;
  std::string heading;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = text.find('\n', at);
    const std::string line = text.substr(at, end - at);
    at = end + 1;
    if (line.starts_with("on ") || line.starts_with("graph {")) {
      heading = line;
    } else if (line == "}") {
      heading.clear();
    } else if (!heading.empty()) {
      std::size_t stop = 2;  // the name: blanks inside of brackets belong to it
      for (int depth = 0; stop < line.size() && (depth > 0 || line[stop] != ' '); ++stop)
        depth += line[stop] == '[' ? 1 : line[stop] == ']' ? -1 : 0;
      for (const std::string& name : names_of(line.substr(2, stop - 2)))
        nodes[heading].insert(name);
    }
  }
  return nodes;
}

void expect_all_of_it(RandomProgram& program, DiagnosticSink& sink) {
  for (const Level level : {Level::built, Level::split, Level::placed, Level::communicating,
                            Level::ordered, Level::planned}) {
    SCOPED_TRACE(level_name(level));
    passes::Options options;
    options.stop_at = level;
    const auto dag = compile(program.model, program.strategy, sink, options);
    ASSERT_TRUE(dag);
    const Unfolded unfolded(*dag);
    unfolded.expect_all_nodes();
    unfolded.expect_all_edges();
    std::map<std::string, std::multiset<std::string>> wanted;
    for (std::size_t n = 0; n < dag->nodes.size(); ++n) {
      const DeviceSetId devices = dag->nodes[n].devices;
      wanted[(devices.valid() ? "on " + dag->text(devices) : "graph") + " {"].insert(
          dag->name(NodeId::at(n)));
    }
    std::string text;
    llvm::raw_string_ostream os(text);
    views::node_lines(*dag, views::node_classes(*dag), false, os);
    ASSERT_EQ(nodes_of(text), wanted);
  }
}

TEST(DagView, HasEveryNodeAndEdge) {
  for_each_case(40, [](Random& random) {
    Context context;
    RandomProgram program = random_program(context, random);
    SCOPED_TRACE(program.source);
    DiagnosticSink sink(context.locations);
    expect_all_of_it(program, sink);
  });
}

TEST(DagView, HasThemWhereStateIsCutForwardsRunAgainAndValuesWaitOnTheHost) {
  for (const char* const source : kTreated) {
    Context context;
    RandomProgram program = read_program(context, source);
    SCOPED_TRACE(program.source);
    DiagnosticSink sink(context.locations);
    expect_all_of_it(program, sink);
  }
}

}  // namespace
}  // namespace piper::test
