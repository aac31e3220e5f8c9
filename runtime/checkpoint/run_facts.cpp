#include "runtime/checkpoint/run_facts.h"

#include <algorithm>
#include <set>

#include "runtime/checkpoint/json.h"
#include "runtime/checkpoint/state_tensors.h"
#include "runtime/dtypes.h"

namespace piper::runtime {
namespace {

/// `cosine from 0.001 to 0.0001, warm-up of 20 of 400 steps`.
std::string rate_text(const PiperOptimizer& optimizer) {
  constexpr const char* kSchedules[] = {"constant", "cosine", "linear"};
  std::string text = kSchedules[std::min<std::uint32_t>(optimizer.schedule, 2)];
  text += optimizer.schedule == 0 ? " " : " from ";
  append_json_number(text, optimizer.base);
  if (optimizer.schedule != 0) {
    text += " to ";
    append_json_number(text, optimizer.floor);
  }
  if (optimizer.warmup != 0) text += ", warm-up of " + std::to_string(optimizer.warmup);
  if (optimizer.schedule != 0 || optimizer.warmup != 0)
    text += (optimizer.warmup != 0 ? " of " : ", ") + std::to_string(optimizer.total) + " steps";
  return text;
}

}  // namespace

Manifest facts_of(const StateMemory& memory, const std::string& data) {
  Manifest facts;
  facts.batch = memory.job->samples_per_step;
  facts.seed = memory.job->seed;
  facts.train = memory.job->train;
  facts.optimizer = memory.job->optimizer.name;
  facts.rate = rate_text(memory.job->optimizer);
  facts.data = data;
  const RankParameters parameters(memory.ranks);
  std::set<std::string> types;
  for (const auto& [name, param] : parameters.counted()) types.insert(dtype_name(param->dtype));
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
