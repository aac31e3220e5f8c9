#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "ir/verify/facts.h"

namespace piper::verify {

namespace {

/// Collectives of sharded parameters and gradients are named by the work whose gathered interval
/// they begin or end: the reader of an all-gather's result, and the backward whose gradients an
/// accumulate adds and a reduce_scatter reduces.
class GatherIntervals {
 public:
  explicit GatherIntervals(Facts& facts) : facts_(facts), dag_(facts.dag) {}

  void check() {
    if (!placed()) return;
    for (const NodeId id : facts_.around) {
      const Node& node = facts_.node(id);
      if (!node.chunk.valid()) continue;
      if (!sharded(node) && !copies_to_or_from_host(node.kind)) {
        facts_.sink.report(Code::broken_dag, node.loc,
                           "`{}` names work, but its bucket has no gathered intervals",
                           facts_.name(id));
        return;
      }
      called_.insert(id);
      if (!leaves_device(node.kind)) continue;
      for (const Input& input : dag_.inputs_of(node)) leaves_.emplace(input.source, id);
    }
    if (called_.empty()) return;
    for (std::uint32_t i = 0; i < dag_.nodes.size(); ++i) {
      const Node& node = dag_.nodes[i];
      for (const Input& input : dag_.inputs_of(node)) {
        if (!input.source.node.valid()) continue;
        const Node& maker = facts_.node(input.source.node);
        if (runs_body(node.kind) && (gathers_shards(maker.kind) || returns_to_device(maker.kind)))
          uses_.insert(gather_use(input.source.node, node));
        if (leaves_device(node.kind) && runs_body(maker.kind))
          uses_.insert(gather_use(NodeId(i), maker));
        if (const auto leaves = leaves_.find(input.source);
            leaves != leaves_.end() && runs_body(node.kind))
          uses_.insert(gather_use(leaves->second, node));
      }
    }
    for (const NodeId id : called_) {
      const Node& node = facts_.node(id);
      if (adds_in_place(node.kind) &&
          dag_.buckets[node.subject.bucket().index()].reduced == directive::Reduce::microbatch &&
          of_several(node)) {
        facts_.sink.report(
            Code::wrong_reduction, node.loc,
            "`{}` sums the gradients of more than one backward, and its bucket is reduced by microbatch",
            facts_.name(id));
      } else if (!(is_sum(node) ? sums(node) : uses_.contains(gather_use(id, node)))) {
        facts_.sink.report(
            copies_to_or_from_host(node.kind) ? Code::wrong_edge : Code::wrong_reduction, node.loc,
            "`{}` is named by work that neither reads nor makes its values", facts_.name(id));
      }
    }
  }

 private:
  /// Checks all-gathers that orders place, before gathered intervals are made: each serves work
  /// that reads its parameters, and follows earlier work of the same devices.
  bool placed() {
    std::set<std::pair<NodeId, NodeId>> seen;
    for (const dag::Dag::GatherInterval& gather : dag_.gather_intervals) {
      const auto refuse = [&](const std::string& what) {
        facts_.sink.report(Code::wrong_order, gather.loc, "`{}` is placed {}",
                           facts_.name(gather.whole), what);
        return false;
      };
      std::set<NodeId> behind;
      for (const NodeId use : gather.uses) {
        if (!gathers(gather.whole, use))
          return refuse("for `" + facts_.name(use) +
                        "`, which reads no parameters that it gathers");
        if (!seen.emplace(gather.whole, use).second)
          return refuse("twice for `" + facts_.name(use) + "`");
      }
      for (const NodeId before : gather.after) {
        if (!runs_body(facts_.node(before).kind))
          return refuse("behind `" + facts_.name(before) + "`, which is no work");
        const auto first = std::find_if(gather.uses.begin(), gather.uses.end(), [&](NodeId use) {
          return facts_.node(use).devices == facts_.node(before).devices;
        });
        if (first == gather.uses.end())
          return refuse("behind `" + facts_.name(before) + "`, which runs elsewhere");
        if (!facts_.position.empty() &&
            facts_.position[first->index()] <= facts_.position[before.index()]) {
          return refuse("behind `" + facts_.name(before) + "`, which does not run before `" +
                        facts_.name(*first) + "`");
        }
        if (!behind.insert(before).second)
          return refuse("behind `" + facts_.name(before) + "` twice");
      }
    }
    return true;
  }

  bool gathers(NodeId whole, NodeId use) const {
    const Node &maker = facts_.node(whole), &reader = facts_.node(use);
    const std::span<const Input> inputs = dag_.inputs_of(reader);
    return gathers_shards(maker.kind) && sharded(maker) && runs_body(reader.kind) &&
           std::any_of(inputs.begin(), inputs.end(),
                       [&](const Input& input) { return input.source.node == whole; });
  }

  using GatherUse = std::tuple<NodeId, dag::ChunkId, Pass, dag::Instance>;
  static GatherUse gather_use(NodeId collective, const Node& work) {
    return {collective, work.chunk, work.pass, work.instance};
  }

  /// A sum of gradients, on one device or over several.
  static bool is_sum(const Node& node) {
    return adds_in_place(node.kind) || reduces_to_shards(node.kind);
  }

  bool of_several(const Node& sum) const {
    const std::span<const Input> terms = dag_.inputs_of(sum);
    return std::any_of(terms.begin(), terms.end(), [&](const Input& term) {
      return term.source.node != terms.front().source.node;
    });
  }

  /// Whether its terms are made by the work that names it, or by a sum of that work.
  bool sums(const Node& node) const {
    const std::span<const Input> inputs = dag_.inputs_of(node);
    return std::any_of(inputs.begin(), inputs.end(), [&](const Input& input) {
      if (!input.source.node.valid()) return false;
      const Node& maker = facts_.node(input.source.node);
      return runs_body(maker.kind) == adds_in_place(node.kind) && maker.chunk == node.chunk &&
             maker.pass == node.pass && maker.instance == node.instance;
    });
  }

  bool sharded(const Node& node) const {
    if (!node.subject.bucket().valid()) return false;
    const dag::Bucket& bucket = dag_.buckets[node.subject.bucket().index()];
    return (is_sum(node) && dag_.shards_gradients(bucket)) ||
           (gathers_shards(node.kind) && dag_.shards_parameters(bucket));
  }

  Facts& facts_;
  const Dag& dag_;
  std::set<NodeId> called_;
  std::map<Port, NodeId> leaves_;  // values that are copied to the host -> the copy
  std::set<GatherUse> uses_;
};

}  // namespace

void check_gather_intervals(Facts& facts) { GatherIntervals(facts).check(); }

}  // namespace piper::verify
