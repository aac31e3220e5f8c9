#include "passes/simulate/work_fraction.h"

#include <algorithm>
#include <numeric>
#include <span>

#include "passes/order/list_schedule.h"

namespace piper::passes {

using namespace dag;

namespace {

/// Its backward makes no gradients, because neither it nor any upstream chunk is trained.
bool has_idle_backward(const Dag& dag, const Chunk& chunk) {
  return std::all_of(kAllPasses.begin(), kAllPasses.end(), [&](Pass pass) {
    const BodyId body = chunk.bodies[static_cast<std::size_t>(pass)];
    return !is_backward(pass) || !body.valid() || dag.bodies[body.index()].outputs.empty();
  });
}

constexpr std::uint32_t kNoStage = 0xFFFFFFFFu;

double total(std::span<const double> work) {
  return std::accumulate(work.begin(), work.end(), 0.0);
}

/// Work of each chunk in one pass by the op table. A `B` is the sum of its halves; the halves of a
/// chunk without `BI` and `BW` have the weight of its `B`.
std::vector<double> work_by_cost(const Dag& dag, std::span<const std::int64_t> costs, Pass pass) {
  const auto cost = [&](const Chunk& chunk, Pass of) {
    const BodyId body = chunk.bodies[static_cast<std::size_t>(of)];
    return body.valid() ? static_cast<double>(costs[body.index()]) : 0.0;
  };
  const auto backward = [&](const Chunk& chunk) {
    if (has_idle_backward(dag, chunk)) return 0.0;
    const double whole = cost(chunk, Pass::B);
    return whole > 0 ? whole : cost(chunk, Pass::BI) + cost(chunk, Pass::BW);
  };
  // Halves are compared only with halves.
  const bool halves = std::all_of(dag.chunks.begin(), dag.chunks.end(), [&](const Chunk& chunk) {
    return cost(chunk, Pass::BI) > 0 || backward(chunk) == 0;
  });
  std::vector<double> work;
  for (const Chunk& chunk : dag.chunks) {
    work.push_back(!is_backward(pass)                                   ? cost(chunk, Pass::F)
                   : pass == Pass::B || !halves || backward(chunk) == 0 ? backward(chunk)
                                                                        : cost(chunk, pass));
  }
  return work;
}

/// The same for a chain of links: the gradient that its first link does not make, and the loss
/// after its last one, are no work of a schedule.
std::vector<double> work_by_links(const Dag& dag, Pass pass) {
  std::vector<double> work;
  for (const Chunk& chunk : dag.chunks) {
    const BodyId body = chunk.bodies[static_cast<std::size_t>(Pass::F)];
    if (!body.valid() || (is_backward(pass) && has_idle_backward(dag, chunk))) {
      work.push_back(0);
      continue;
    }
    const std::vector<BodyPort>& inputs = dag.bodies[body.index()].inputs;
    work.push_back(
        static_cast<double>(std::count_if(inputs.begin(), inputs.end(), [](const BodyPort& port) {
          return port.kind == PortKind::param;
        })));
  }
  return work;
}

/// The work of a pass in fractions of the model; backwards exclude untrained chunks.
std::vector<double> parts_of_model(const std::vector<double>& forward,
                                   const std::vector<double>& work,
                                   const std::vector<bool>& trained, Pass pass) {
  double in_pass = total(forward);
  if (is_backward(pass)) {
    in_pass = 0;
    for (std::size_t c = 0; c < forward.size(); ++c) in_pass += trained[c] ? forward[c] : 0;
  }
  const double all = total(work), model = total(forward),
               scale = all > 0 && model > 0 ? in_pass / model / all : 0;
  std::vector<double> parts;
  for (const double each : work) parts.push_back(each * scale);
  return parts;
}

/// Per chunk its stage.
std::vector<std::uint32_t> stages_of_chunks(const Dag& dag) {
  std::vector<std::uint32_t> stage(dag.chunks.size(), kNoStage);
  for (std::size_t c = 0; c < dag.chunks.size(); ++c) {
    const RegionId region = dag.chunks[c].region;
    const auto own = dag.stages.valid() && region.valid()
                         ? dag.regions.coordinate(region, dag.stages)
                         : std::nullopt;
    if (own) stage[c] = *own;
  }
  return stage;
}

/// All stages have equal fractions of the work inside stages, and the chunks of a stage divide its
/// fraction by their work.
std::vector<double> parts_of_equal_stages(const std::vector<double>& work,
                                          std::span<const std::uint32_t> stage, Pass pass) {
  std::uint32_t stages = 0;
  for (const std::uint32_t own : stage)
    stages = own == kNoStage ? stages : std::max(stages, own + 1);
  std::vector<double> of_stage(stages, 0), parts;
  std::vector<std::uint32_t> chunks_of_stage(stages, 0);
  double staged = 0;
  for (std::size_t c = 0; c < work.size(); ++c) {
    if (stage[c] == kNoStage) continue;
    staged += work[c];
    of_stage[stage[c]] += work[c];
    ++chunks_of_stage[stage[c]];
  }
  const double all = total(work);
  for (std::size_t c = 0; c < work.size(); ++c) {
    if (stage[c] == kNoStage) {
      parts.push_back(all > 0 ? work[c] / all : 0);
      continue;
    }
    const double in_stage = of_stage[stage[c]] > 0 ? work[c] / of_stage[stage[c]]
                            : is_backward(pass)    ? 0
                                                   : 1.0 / chunks_of_stage[stage[c]];
    const double outside = all > 0 ? (all - staged) / all : 0;
    parts.push_back((1 - outside) * in_stage / stages);
  }
  return parts;
}

}  // namespace

WorkFractions::WorkFractions(const Dag& dag, StageCosts stages) : dag_(dag) {
  const std::vector<std::int64_t> costs = body_costs(dag);
  const std::vector<std::uint32_t> stage = stages_of_chunks(dag);
  const bool of_train = !dag.settings.train.empty();
  const auto work = [&](Pass pass) {
    return of_train || stages == StageCosts::equal ? work_by_cost(dag, costs, pass)
                                                   : work_by_links(dag, pass);
  };
  std::vector<bool> trained;
  for (const Chunk& chunk : dag.chunks) trained.push_back(!has_idle_backward(dag, chunk));
  const std::vector<double> forward = work(Pass::F);
  for (const Pass pass : kAllPasses) {
    of_[static_cast<std::size_t>(pass)] = stages == StageCosts::equal
                                              ? parts_of_equal_stages(work(pass), stage, pass)
                                              : parts_of_model(forward, work(pass), trained, pass);
  }
}

double WorkFractions::instance_factor(const Instance& instance) const {
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
