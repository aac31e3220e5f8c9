#include "passes/order/claimed_gathers.h"

#include <iterator>

namespace piper::passes {

using namespace dag;
using directive::RankSteps;

void ClaimedGathers::begin_rank() {
  of_rank_.clear();
  first_of_rank_ = out_.gathers.size();
}

void ClaimedGathers::name(NodeId work, bool late) {
  if (!step_) step_.emplace();
  for (const Input& input : dag_.inputs_of(dag_.node(work))) {
    if (!input.source.node.valid() || !gathers_for_work(dag_.node(input.source.node))) continue;
    if (late) {
      step_->late = work;
      return;
    }
    step_->uses[input.source.node].insert(work);
  }
}

bool ClaimedGathers::gathers_for_work(const Node& node) const {
  return gathers_shards(node.kind) &&
         dag_.shards_parameters(dag_.buckets[node.subject.bucket().index()]);
}

void ClaimedGathers::place(const RankOp& at, const std::vector<NodeId>& nodes, std::uint32_t claim,
                           const std::vector<std::uint32_t>& previous, std::uint64_t before) {
  const auto& [uses, late] = *step_;
  if (uses.empty() && late.valid()) return reports_.gathered_late(at, late, out_.loc[late.index()]);
  if (uses.empty()) return reports_.no_communication(at, nodes.front());
  for (const auto& [whole, work] : uses) {
    std::optional<LocId> repeated;
    for (const NodeId use : work) {
      places_.replace({whole, use}, claim, at, previous, before);
      const auto [known, fresh] = of_rank_.try_emplace({whole, use}, out_.gathers.size());
      if (fresh) continue;
      Dag::GatherInterval& earlier =
          out_.gathers[std::exchange(known->second, out_.gathers.size())];
      std::erase(earlier.uses, use);
      if (earlier.uses.empty()) repeated = earlier.loc;
    }
    out_.gathers.push_back({whole, {work.begin(), work.end()}, {}, at.op.loc});
    for (const std::uint32_t unit : previous)
      out_.gathers.back().after.push_back(graph_.front(unit));
    if (repeated) return reports_.repeated_communication(at, *repeated);
  }
}

void ClaimedGathers::join(const RankSteps& rank) {
  std::vector<Dag::GatherInterval> own(
      std::make_move_iterator(out_.gathers.begin() + static_cast<std::ptrdiff_t>(first_of_rank_)),
      std::make_move_iterator(out_.gathers.end()));
  out_.gathers.resize(first_of_rank_);
  for (Dag::GatherInterval& gather : own) {
    const auto [known, fresh] =
        joined_.try_emplace({gather.whole, gather.uses.front()}, out_.gathers.size());
    if (fresh) {
      for (const NodeId use : gather.uses) {
        if (const auto [other, alone] = joined_.try_emplace({gather.whole, use}, known->second);
            !alone && other->second != known->second)
          return reports_.gathered_differently(rank, gather, out_.gathers[other->second]);
      }
      out_.gathers.push_back(std::move(gather));
    } else if (Dag::GatherInterval& first = out_.gathers[known->second];
               first.uses == gather.uses) {
      first.after.insert(first.after.end(), gather.after.begin(), gather.after.end());
    } else {
      return reports_.gathered_differently(rank, gather, first);
    }
  }
}

}  // namespace piper::passes
