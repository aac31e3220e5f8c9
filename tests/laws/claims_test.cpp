// Ranks that an order claims run its operations, whatever the others do: unclaimed ranks, and
// replicas with the same operations in other words.

#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>
#include <limits>
#include <variant>

#include "ir/dag/terms.h"
#include "passes/selectors/select.h"
#include "tests/support/compile.h"
#include "tests/support/random_programs.h"

namespace piper::test {
namespace {

const directive::Order* order_of(const directive::Strategy& strategy) {
  for (const directive::Directive& directive : strategy.directives) {
    if (const auto* order = std::get_if<directive::Order>(&directive)) return order;
  }
  return nullptr;
}

/// Counts of programs by property.
struct Drawn {
  int programs = 0, ordered = 0, partial = 0, alone = 0, all_but_one = 0, finer = 0, replicated = 0,
      halves = 0, groups = 0, named = 0, reduced = 0, gathered = 0;

  void count(const directive::Order& order, const directive::Strategy& strategy,
             const std::string& source) {
    std::uint64_t claimed = 0, least = std::numeric_limits<std::uint64_t>::max();
    bool fine = false;
    for (const directive::RankSteps& rank : order.ranks) {
      std::uint64_t devices = 1;
      int coordinates = 0;
      for (std::size_t axis = 0; axis < strategy.mesh.axes.size(); ++axis) {
        if (strategy.device_sets[rank.devices].at[axis] == DeviceSet::kWhole) {
          devices *= strategy.mesh.axes[axis].size;
        } else {
          coordinates += strategy.mesh.axes[axis].size > 1;
        }
      }
      fine = fine || coordinates > 1;
      claimed += devices;
      least = std::min(least, devices);
    }
    ++ordered;
    named += std::any_of(order.ops.begin(), order.ops.end(), [](const directive::OrderOp& op) {
      return op.part == directive::CommClass::send;
    });
    reduced += std::any_of(order.ops.begin(), order.ops.end(), [](const directive::OrderOp& op) {
      return op.part == directive::CommClass::reduce;
    });
    gathered += std::any_of(order.ops.begin(), order.ops.end(), [](const directive::OrderOp& op) {
      return op.part == directive::CommClass::gather;
    });
    finer += fine;
    if (order.ranks.empty() || claimed == strategy.mesh.devices()) return;
    ++partial;
    alone += order.ranks.size() == 1;
    all_but_one += claimed + least == strategy.mesh.devices();
    replicated += source.find("replicate model") != std::string::npos;
    halves += std::any_of(order.ops.begin(), order.ops.end(),
                          [](const directive::OrderOp& op) { return op.pass == Pass::BW; });
    groups +=
        std::any_of(order.steps.begin(), order.steps.end(), [](const directive::OrderStep& step) {
          return step.kind == directive::OrderStep::Kind::group;
        });
  }
};

class RankWalk {
 public:
  RankWalk(const dag::Dag& dag, const directive::Order& order, DiagnosticSink& sink)
      : dag_(dag), order_(order), selection_(dag), sink_(sink), position_(dag.nodes.size(), 0) {
    for (std::uint32_t i = 0; i < dag.order.size(); ++i) position_[dag.order[i].index()] = i;
    gathered_per_use_ =
        std::any_of(dag.buckets.begin(), dag.buckets.end(),
                    [](const dag::Bucket& bucket) { return bucket.gathered_per_use(); });
  }

  /// The last work of a step comes before the first of the next, and a message that is named after
  /// it.
  void expect_kept(const DeviceSet& devices, const directive::RankSteps& rank) {
    std::uint32_t done = 0;
    for (std::uint32_t i = 0; i < rank.num_steps; ++i) {
      const directive::OrderStep& step = order_.steps[order_.children[rank.first_step + i]];
      std::vector<std::uint32_t> at;
      collect(step, devices, at);
      if (step.kind == directive::OrderStep::Kind::op &&
          order_.ops[step.first].part != directive::CommClass::none) {
        // The last segment of a reduction in several stands where the order says.
        ASSERT_TRUE(at.size() == 1 || (gathered_per_use_ && !at.empty())) << "step " << i;
        EXPECT_GE(*std::max_element(at.begin(), at.end()), done) << "step " << i;
        continue;
      }
      ASSERT_FALSE(at.empty()) << "step " << i;
      EXPECT_GE(*std::min_element(at.begin(), at.end()), done) << "step " << i;
      done = *std::max_element(at.begin(), at.end()) + 1;
    }
  }

 private:
  void collect(const directive::OrderStep& step, const DeviceSet& devices,
               std::vector<std::uint32_t>& at) {
    if (step.kind != directive::OrderStep::Kind::op) {
      for (std::uint32_t i = 0; i < step.count; ++i)
        collect(order_.steps[order_.children[step.first + i]], devices, at);
      return;
    }
    for (std::uint32_t i = 0; i < step.count; ++i) collect(order_.ops[step.first + i], devices, at);
  }

  void collect(const directive::OrderOp& op, const DeviceSet& devices,
               std::vector<std::uint32_t>& at) {
    std::vector<dag::NodeId> nodes;
    ASSERT_TRUE(selection_.nodes(order_, op, sink_, nodes));
    const directive::CommClass part = op.part;
    for (const dag::NodeId node : nodes) {
      if (!dag_.device_sets[dag_.node(node).devices].contains(devices)) continue;
      if (part == directive::CommClass::none) {
        at.push_back(position_[node.index()]);
        continue;
      }
      for (std::size_t i = 0; i < dag_.nodes.size(); ++i) {
        const dag::Node& each = dag_.nodes[i];
        const bool gathers = part == directive::CommClass::gather;
        const bool named = part == directive::CommClass::send ? is_send(each.kind)
                           : gathers                          ? gathers_shards(each.kind)
                                                              : each.reduces_gradients();
        bool reads = named && (gathers ? this->reads(node, dag::NodeId::at(i)) ||
                                             this->reads(again_before(node), dag::NodeId::at(i))
                                       : this->reads(dag::NodeId::at(i), node));
        // The last gathered interval of a tied weight may be that of another user.
        reads = reads || (named && !gathers && gathered_per_use_ && each.subject.bucket().valid() &&
                          dag_.device_sets[each.devices].contains(devices) &&
                          contributes(node, each.subject.bucket()));
        if (reads && std::find(at.begin(), at.end(), position_[i]) == at.end())
          at.push_back(position_[i]);
      }
    }
  }

  bool reads(dag::NodeId reader, dag::NodeId maker) const {
    bool reads = false;
    for (const dag::Input& input :
         reader.valid() ? dag_.inputs_of(dag_.node(reader)) : std::span<const dag::Input>()) {
      if (input.source.node.valid())
        for_each_term(dag_, input.source,
                      [&](dag::Port term) { reads = reads || term.node == maker; });
    }
    return reads;
  }

  /// The forward that runs again for a backward, which alone may read the parameters that the order
  /// gathers for it.
  dag::NodeId again_before(dag::NodeId backward) const {
    const dag::Node& node = dag_.node(backward);
    for (std::size_t i = 0; is_backward(node.pass) && i < dag_.nodes.size(); ++i) {
      const dag::Node& each = dag_.nodes[i];
      if (runs_body(each.kind) && each.pass == Pass::R && each.chunk == node.chunk &&
          each.instance == node.instance && each.devices == node.devices)
        return dag::NodeId::at(i);
    }
    return {};
  }

  /// Whether a reduction of the bucket reads results of the work.
  bool contributes(dag::NodeId work, dag::BucketId bucket) const {
    for (std::size_t i = 0; i < dag_.nodes.size(); ++i) {
      if (dag_.nodes[i].reduces_gradients() && dag_.nodes[i].subject.bucket() == bucket &&
          reads(dag::NodeId::at(i), work))
        return true;
    }
    return false;
  }

  const dag::Dag& dag_;
  const directive::Order& order_;
  passes::Selection selection_;
  DiagnosticSink& sink_;
  std::vector<std::uint32_t> position_;
  bool gathered_per_use_ = false;
};

TEST(Claims, RanksRunWhatTheirOrderSays) {
  Drawn drawn;
  for_each_case(240, [&](Random& random) {
    Context context;
    RandomProgram program = random_program(context, random);
    SCOPED_TRACE(program.source);
    ++drawn.programs;
    const directive::Order* order = order_of(program.strategy);
    if (order == nullptr) return;
    drawn.count(*order, program.strategy, program.source);
    DiagnosticSink sink(context.locations);
    const auto dag = test::compile(program.model, program.strategy, sink, {});
    ASSERT_TRUE(dag) << render_text(sink.sorted(), context.locations.files());
    RankWalk walk(*dag, *order, sink);
    for (const directive::RankSteps& rank : order->ranks)
      walk.expect_kept(program.strategy.device_sets[rank.devices], rank);
  });
  std::cout << "of " << drawn.programs << " programs " << drawn.ordered
            << " have an order, of which " << drawn.finer << " tell replicas apart, " << drawn.named
            << " name messages, " << drawn.reduced << " reductions, " << drawn.gathered
            << " gathers and " << drawn.partial << " claim some ranks only: " << drawn.alone
            << " one, " << drawn.all_but_one << " all but one, " << drawn.replicated
            << " beside replicas, " << drawn.halves << " with BW, " << drawn.groups
            << " with overlap groups\n";
  if (case_options().count > 0) return;
  EXPECT_GE(drawn.finer, drawn.ordered / 10);
  EXPECT_GE(drawn.named, drawn.ordered / 12);
  EXPECT_GE(drawn.reduced, drawn.ordered / 20);
  EXPECT_GE(drawn.gathered, drawn.ordered / 40);
  EXPECT_GE(drawn.partial, drawn.ordered / 6);
  for (const int share :
       {drawn.alone, drawn.all_but_one, drawn.replicated, drawn.halves, drawn.groups})
    EXPECT_GE(share, drawn.partial / 8);
}

}  // namespace
}  // namespace piper::test
