#include "runtime/checkpoint/run_facts.h"

#include <set>

#include "runtime/checkpoint/state_tensors.h"
#include "runtime/dtypes.h"

namespace piper::runtime {

Manifest facts_of(const StateMemory& memory, const std::string& data) {
  Manifest facts;
  facts.batch = memory.job->samples_per_step;
  facts.seed = memory.job->seed;
  facts.train = memory.job->train;
  facts.optimizer = memory.job->optimizer.name;
  facts.data = data;
  std::set<std::string> types;
  for (const auto& [name, param] : RankParameters(memory.ranks).counted())
    types.insert(dtype_name(param->dtype));
  for (const std::string& type : types) facts.dtype += (facts.dtype.empty() ? "" : ", ") + type;
  return facts;
}

ResumePoint resume_point(const Manifest& checkpoint, std::uint64_t samples_per_step) {
  ResumePoint point{.step = checkpoint.step};
  if (checkpoint.batch != samples_per_step && samples_per_step > 0)
    point.step = checkpoint.samples / samples_per_step;
  point.further_updates =
      static_cast<std::int64_t>(checkpoint.updates) - static_cast<std::int64_t>(point.step);
  return point;
}

}  // namespace piper::runtime
