#include "frontend/tools/run_processes.h"

#include "frontend/tools/train_job.h"
#include "ir/diagnostics/counted.h"
#include "runtime/processes/agent_store.h"

namespace piper::tools {

void report_lone_processes(Session& session) {
  const runtime::LaunchRead read = runtime::read_launch(session.console().environment);
  if (!read.failure && (!read.launch || read.launch->world == 1)) return;
  session.sink()
      .report(
          Code::unknown_variable, SourceRange(),
          "{}, but each process trains all ranks by itself: without `--device cuda` this changes nothing",
          read.launch
              ? read.launch->by +
                    (read.launch->by.find(' ') == std::string::npos ? " starts "
                                                                    : " say that there are ") +
                    counted(read.launch->world, "process", "processes")
              : std::string("a launcher's variables are set"))
      .hint(
          "`--device cuda` gives each process a rank; on CPUs start one process, whose threads run all ranks");
}

RunProcesses join_processes(Session& session, const Session::Subject& subject,
                            const runtime::Options& options) {
  const runtime::LaunchRead read = runtime::read_launch(session.console().environment);
  if (read.failure) {
    report_failure(session, *read.failure, {});
    return {.failed = true};
  }
  if (!read.launch) return {};
  const auto& mesh = subject.lowered.strategy.mesh;
  const std::uint64_t devices = mesh.devices();
  if (read.launch->world != devices) {
    session.sink()
        .report(Code::bad_launch, mesh.loc, "{} {} {}, but the mesh has {}", read.launch->by,
                read.launch->by.find(' ') == std::string::npos ? "starts" : "say that there are",
                counted(read.launch->world, "process", "processes"), counted(devices, "device"))
        .hint(
            "start {}, one for each; without `RANK` and `WORLD_SIZE` one process runs all ranks on one GPU",
            counted(devices, "process", "processes"));
    return {.failed = true};
  }
  runtime::Failure failure;
  RunProcesses made;
  runtime::GroupOptions of_group{.seconds = static_cast<double>(options.meet_seconds)};
  of_group.on_notice = [&](const runtime::Failure& notice) {
    report_failure(session, notice, {});
    session.show_warnings();
  };
  if (read.launch->agent_store)
    of_group.agent_store = runtime::open_agent_store(options, of_group.seconds, failure);
  if (!read.launch->agent_store || of_group.agent_store.set)
    made.group = runtime::ProcessGroup::join(*read.launch, of_group, failure);
  if (!made.group) {
    report_failure(session, failure, {});
    made.failed = true;
  }
  return made;
}

}  // namespace piper::tools
