#pragma once
// The processes of a run: those that `train -n` starts, and those that the environment says a
// launcher has started. Each has its share of the ranks.
//
//   const auto launch = launch_of_run(session, subject, failed);
//   if (!launch) if (const auto code = start_processes(session, subject)) return *code;   // this one supervises them
//   RunProcesses processes = join_processes(session, launch, options);
//   if (processes.failed) return session.finish();

#include <memory>
#include <optional>
#include <string>

#include "frontend/tools/session.h"
#include "runtime/executor/executor.h"
#include "runtime/options.h"
#include "runtime/processes/process_group.h"

namespace piper::tools {

struct RunProcesses {
  bool failed = false;                                // after a diagnostic
  std::unique_ptr<runtime::ProcessGroup> group = {};  // null: this process has all ranks
  // The fingerprint of the initial weights, which all processes read; empty without any.
  std::string weights = {};

  /// The first of several processes keeps and prints the results.
  bool first() const { return group == nullptr || group->launch().rank == 0; }
  /// The ranks of this process among those of the run.
  runtime::ProcessRanks ranks(std::uint32_t ranks_of_run) const;
  /// Sends the failure to the other processes.
  void fail(const runtime::Failure& failure) const {
    if (group != nullptr) group->fail(failure);
  }
};

/// The place of this process in a run; nothing if it has all ranks. Refuses, with a diagnostic and
/// `failed`, an environment that does not fit the program or the command line.
std::optional<runtime::Launch> launch_of_run(Session& session, const Session::Subject& subject,
                                             bool& failed);

/// With `-n N` and no launcher: starts N processes with this command line, waits for them, and
/// returns the exit code. Otherwise nothing.
std::optional<int> start_processes(Session& session, const Session::Subject& subject);

/// Connects to the others, if there is a launch, and compares with them all that results depend on
/// and that is known before compilation: versions, source files, options.
RunProcesses join_processes(Session& session, const std::optional<runtime::Launch>& launch,
                            const runtime::Options& options);

/// Compares the compiled programs and the settings of a run with those of the other processes.
/// `local`: the job as this process runs it.
std::optional<runtime::Failure> agree_on_job(const Session& session, const RunProcesses& processes,
                                             const PiperJob& job, const PiperJob& local);

/// The executor of a job on the CPU: of all ranks, or of those of this process, which reach the
/// others over UCX; then `tables` keep only its ranks. Null with the reason in `failure`; null
/// without one when stopped.
std::unique_ptr<runtime::Executor> make_cpu_executor(const Session& session,
                                                     const RunProcesses& processes,
                                                     const PiperJob& job, PiperJob& tables,
                                                     const runtime::ExecutorOptions& options,
                                                     runtime::Failure& failure);

}  // namespace piper::tools
