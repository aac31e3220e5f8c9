#include "tests/bench/schedule_program.h"

#include "backend/device_program/device_program.h"
#include "frontend/sema/program.h"
#include "frontend/source/source_manager.h"
#include "tests/support/compile.h"

namespace piper::bench {

ScheduleProgram::ScheduleProgram(const std::string& name,
                                 const std::vector<lower::Override>& values) {
  const source::RealFileSystem disk;
  const auto file = sema::open_library("std.schedules." + name, context_.locations.files());
  if (!file) return;
  const sema::Program program = sema::analyse(*file, disk, context_, sink_);
  if (program.ok)
    lowered_ = lower::lower_schedule(program, program.find_schedule(name), values, context_, sink_);
}

std::optional<dag::Dag> ScheduleProgram::compile(dag::Level level) {
  if (!lowered_) return std::nullopt;
  passes::Options options;
  options.stop_at = level;
  options.workspace_bytes = backend::workspace_bytes();
  return test::compile(lowered_->model, lowered_->strategy, sink_, options);
}

std::string ScheduleProgram::error() const {
  const std::string text = render_text(sink_.sorted(), context_.locations.files());
  return text.empty() ? "the schedule could not be made" : text;
}

}  // namespace piper::bench
