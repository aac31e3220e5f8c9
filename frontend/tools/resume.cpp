#include "frontend/tools/resume.h"

#include <algorithm>

#include "frontend/tools/train_job.h"
#include "ir/diagnostics/counted.h"

namespace piper::tools {

std::optional<Resumed> open_resumed(Session& session, const runtime::FoundCheckpoint& found) {
  runtime::Failure failure;
  Resumed resumed;
  resumed.run = found.run;
  resumed.checkpoint = runtime::Checkpoint::open(found.folder, failure);
  if (!resumed.checkpoint) {
    report_failure(session, failure, {});
    return std::nullopt;
  }
  if (!session.arguments().only.empty()) resumed.restored = runtime::Restored::weights;
  return resumed;
}

void start_from(const Resumed& resumed, PiperJob& tables, std::optional<std::uint64_t> steps) {
  if (!resumed.continues()) return;
  const runtime::ResumePoint point =
      runtime::resume_point(resumed.checkpoint->manifest(), tables.samples_per_step);
  const std::uint64_t end = tables.first_step + tables.steps;
  tables.first_step = point.step;
  tables.steps = steps ? *steps : end - std::min(end, point.step);
  tables.optimizer.further_updates = point.further_updates;
}

std::optional<runtime::Failure> take_state(const Resumed& resumed,
                                           const runtime::Executor& executor) {
  const runtime::StateMemory memory = executor.state_memory();
  const runtime::RankParameters parameters(memory.ranks);
  const runtime::Manifest facts = runtime::facts_of(memory, executor.data_identity());
  if (auto differs = resumed.checkpoint->compare(parameters, facts, resumed.restored))
    return differs;
  return resumed.checkpoint->load(memory, resumed.restored);
}

namespace {

/// The words about moving averages that the run or the checkpoint lacks; null if there are none.
const char* averages_text(const Resumed& resumed, const runtime::Executor& executor) {
  const runtime::StateMemory memory = executor.state_memory();
  const runtime::RankParameters parameters(memory.ranks);
  const bool keeps =
      std::any_of(parameters.counted().begin(), parameters.counted().end(),
                  [](const auto& counted) { return counted.second->average_slot != 0; });
  const bool has = resumed.checkpoint->has_averages();
  if (keeps == has) return nullptr;
  return keeps
             ? "the checkpoint has no moving averages: they begin at its parameters\n"
             : "the checkpoint has moving averages, and this train keeps none: they are left out\n";
}

}  // namespace

std::string resumed_text(const Resumed& resumed, const runtime::Executor& executor,
                         const PiperJob& tables) {
  const runtime::Manifest& then = resumed.checkpoint->manifest();
  if (!resumed.continues())
    return "parameters of " + resumed.checkpoint->folder() + ", after " +
           counted(then.step, "step") + "\n";
  std::string text = "resumed from " + resumed.checkpoint->folder() + ", after " +
                     counted(then.samples, "sample") + "\n";
  if (then.batch != tables.samples_per_step)
    text += "the batch was " + std::to_string(then.batch) + " and is " +
            std::to_string(tables.samples_per_step) + ": those samples are " +
            counted(tables.first_step, "step") + "\n";
  const runtime::Manifest now =
      runtime::facts_of(executor.state_memory(), executor.data_identity());
  if (then.rate != now.rate)
    text += "the learning rate was " + then.rate + " and is " + now.rate + "\n";
  if (const char* const averages = averages_text(resumed, executor)) text += averages;
  if (tables.steps == 0)
    text += "the train has no further step: `steps` is " + std::to_string(tables.first_step) +
            " or less\n";
  return text;
}

}  // namespace piper::tools
