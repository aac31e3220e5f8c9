#include "passes/simulate/shares.h"

#include <algorithm>

#include "passes/order/list_schedule.h"

namespace piper::passes {

using namespace dag;

namespace {

/// Its backward makes nothing: neither it nor anything upstream is trained.
bool has_idle_backward(const Dag& dag, const Chunk& chunk) {
  return std::all_of(kAllPasses.begin(), kAllPasses.end(), [&](Pass pass) {
    const BodyId body = chunk.bodies[static_cast<std::size_t>(pass)];
    return !is_backward(pass) || !body.valid() || dag.bodies[body.index()].outputs.empty();
  });
}

/// Work of each chunk in one pass by the op table. A whole backward is its halves, and where a chunk has no halves by themselves both are weighed by the whole.
std::vector<double> work_of(const Dag& dag, std::span<const std::int64_t> costs, Pass pass) {
  const auto cost = [&](const Chunk& chunk, Pass of) {
    const BodyId body = chunk.bodies[static_cast<std::size_t>(of)];
    return body.valid() ? static_cast<double>(costs[body.index()]) : 0.0;
  };
  const auto backward = [&](const Chunk& chunk) {
    if (has_idle_backward(dag, chunk)) return 0.0;
    const double whole = cost(chunk, Pass::B);
    return whole > 0 ? whole : cost(chunk, Pass::BI) + cost(chunk, Pass::BW);
  };
  // Halves are compared with halves alone.
  const bool halves = std::all_of(dag.chunks.begin(), dag.chunks.end(), [&](const Chunk& chunk) { return cost(chunk, Pass::BI) > 0 || backward(chunk) == 0; });
  std::vector<double> work;
  for (const Chunk& chunk : dag.chunks) {
    work.push_back(!is_backward(pass) ? cost(chunk, Pass::F) : pass == Pass::B || !halves || backward(chunk) == 0 ? backward(chunk) : cost(chunk, pass));
  }
  return work;
}

}  // namespace

Shares::Shares(const Dag& dag) : dag_(dag) {
  const std::vector<std::int64_t> costs = body_costs(dag);
  constexpr std::uint32_t kNone = 0xFFFFFFFFu;
  std::vector<std::uint32_t> stage(dag.chunks.size(), kNone);
  std::uint32_t stages = 0;
  for (std::size_t c = 0; c < dag.chunks.size(); ++c) {
    const RegionId region = dag.chunks[c].region;
    const auto own = dag.stages.valid() && region.valid() ? dag.regions.coordinate(region, dag.stages) : std::nullopt;
    if (!own) continue;
    stage[c] = *own;
    stages = std::max(stages, *own + 1);
  }
  for (const Pass pass : kAllPasses) {
    std::vector<double> work = work_of(dag, costs, pass);
    std::vector<double> of_stage(stages, 0);
    std::vector<std::uint32_t> chunks_of_stage(stages, 0);
    double staged = 0, all = 0;
    for (std::size_t c = 0; c < work.size(); ++c) {
      all += work[c];
      if (stage[c] == kNone) continue;
      staged += work[c];
      of_stage[stage[c]] += work[c];
      ++chunks_of_stage[stage[c]];
    }
    std::vector<double>& shares = of_[static_cast<std::size_t>(pass)];
    for (std::size_t c = 0; c < work.size(); ++c) {
      if (stage[c] == kNone) {
        shares.push_back(all > 0 ? work[c] / all : 0);
        continue;
      }
      const double in_stage = of_stage[stage[c]] > 0 ? work[c] / of_stage[stage[c]] : is_backward(pass) ? 0 : 1.0 / chunks_of_stage[stage[c]];
      const double outside = all > 0 ? (all - staged) / all : 0;
      shares.push_back((1 - outside) * in_stage / stages);
    }
  }
}

double Shares::instance_factor(const Instance& instance) const {
  double factor = 1;
  for (std::size_t d = 0; d < dag_.dims.size(); ++d) {
    const bool slices = dag_.context->text(dag_.dims[d].name) == "slice";
    const bool divided = instance.at[d] != Instance::kNone;
    if (slices && divided) factor /= dag_.dims[d].extent;
    if (!slices && !divided) factor *= dag_.dims[d].extent;
  }
  return factor;
}

}  // namespace piper::passes
