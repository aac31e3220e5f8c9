#include "frontend/tools/run_processes.h"

#include <cstdio>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "backend/jit/object_cache.h"
#include "frontend/tools/compare_sources.h"
#include "frontend/tools/train_job.h"
#include "ir/diagnostics/counted.h"
#include "runtime/cpu/cpu_device.h"
#include "runtime/device/product_choice.h"
#include "runtime/launch/child_processes.h"
#include "runtime/launch/interrupt.h"
#include "runtime/processes/agent_store.h"
#include "runtime/processes/run_token.h"
#include "runtime/transport/process_transport.h"

namespace piper::tools {

namespace {

using Facts = std::vector<std::pair<std::string, std::string>>;

/// `mpirun starts 4 processes`, `RANK and WORLD_SIZE say that there are 4 processes`.
std::string launched_text(const runtime::Launch& launch) {
  const bool one = launch.by.find(' ') == std::string::npos;
  return launch.by + (one ? " starts " : " say that there are ") +
         counted(launch.world, "process", "processes");
}

bool on_cuda(const Session::Subject& subject) {
  return subject.lowered.strategy.settings.device == directive::Platform::cuda;
}

/// Facts that are known before compilation. `-D` and the sources come first: most others follow
/// from them.
Facts facts_of(Session& session, const runtime::Options& options) {
  const Arguments& arguments = session.arguments();
  std::string values;
  for (const lower::Override& value : arguments.overrides)
    values += (values.empty() ? "" : " ") + value.name + "=" + value.value;
  char heartbeats[64];  // in seconds
  std::snprintf(heartbeats, sizeof heartbeats, "%g and %g", options.heartbeat_seconds,
                options.silence_seconds);
  return {{"values of `-D`", values.empty() ? "none" : values},
          {"options", arguments.reference ? "--reference"
                      : !arguments.trace.empty() || !arguments.profile.empty()
                          ? "--trace or --profile"
                          : "neither --reference nor --trace nor --profile"},
          {"checkpoints", arguments.out_folder.empty() ? "none, without --out" : "in a folder"},
          {"start", arguments.resume.empty() ? "at the beginning"
                    : arguments.only.empty() ? "at a checkpoint"
                                             : "at the weights of a checkpoint"},
          {"version", std::string(PIPER_VERSION)},
          {"matrix products",
           std::string(runtime::rule_of_products(options.math, runtime::this_processor()))},
          {"threads of a rank", std::to_string(options.threads)},
          {"`PIPER_HEARTBEAT_SECONDS` and `PIPER_SILENCE_SECONDS`", heartbeats}};
}

/// The file of this program, so that lists of processes show it; the link itself if another file is
/// there by now.
std::string program_file(const std::string& link) {
  std::error_code error;
  const std::filesystem::path file = std::filesystem::read_symlink(link, error);
  return !error && std::filesystem::equivalent(file, link, error) ? file.string() : link;
}

std::string short_digest(const std::string& text) {
  return text.empty() ? "none" : backend::digest(text).substr(0, 12);
}

}  // namespace

runtime::ProcessRanks RunProcesses::ranks(std::uint32_t ranks_of_run) const {
  if (group == nullptr) return {0, ranks_of_run};
  return runtime::ranks_of(group->launch().rank, group->launch().world, ranks_of_run);
}

std::optional<runtime::Launch> launch_of_run(Session& session, const Session::Subject& subject,
                                             bool& failed) {
  const Arguments& arguments = session.arguments();
  if (!arguments.transport.empty() && !on_cuda(subject)) return std::nullopt;
  runtime::LaunchRead read = runtime::read_launch(session.console().environment);
  if (read.failure) {
    report_failure(session, *read.failure, {});
    failed = true;
    return std::nullopt;
  }
  if (!read.launch || (read.launch->world == 1 && !on_cuda(subject))) return std::nullopt;
  const auto& mesh = subject.lowered.strategy.mesh;
  const std::uint64_t devices = mesh.devices();
  runtime::Launch& launch = *read.launch;
  const bool cuda = on_cuda(subject);
  if (cuda ? launch.world != devices : launch.world > devices) {
    session.sink()
        .report(Code::bad_launch, mesh.loc, "{}, but the mesh has {}", launched_text(launch),
                counted(devices, "device"))
        .hint("start {}{}; without `RANK` and `WORLD_SIZE` one process runs all ranks{}",
              counted(devices, "process", "processes"), cuda ? ", one for each" : " at most",
              cuda ? " on one GPU" : "");
    failed = true;
  } else if (arguments.processes && *arguments.processes != launch.world) {
    session.sink()
        .report(Code::bad_launch, SourceRange(), "{}, and `-n` asks for {}", launched_text(launch),
                *arguments.processes)
        .hint("leave out `-n`: a launcher has started the processes");
    failed = true;
  }
  if (failed) return std::nullopt;
  launch.ranks = static_cast<std::uint32_t>(devices);
  return launch;
}

std::optional<int> start_processes(Session& session, const Session::Subject& subject) {
  const Arguments& arguments = session.arguments();
  Console& console = session.console();
  const std::uint64_t world = arguments.processes.value_or(1);
  if (world == 1) return std::nullopt;
  const auto& mesh = subject.lowered.strategy.mesh;
  if (console.program.empty()) {
    session.sink().report(Code::bad_launch, SourceRange(), "no processes can be started from here");
    return session.finish();
  }
  const runtime::Interrupt interrupt;
  // A run goes on when its reader is gone.
  const runtime::IgnoreBrokenPipes pipes;
  runtime::ChildrenOptions options{
      .command = {program_file(console.program)},
      .environment = console.environment,
      .world = static_cast<std::uint32_t>(world),
      .ranks = static_cast<std::uint32_t>(mesh.devices()),
      .interrupt = &interrupt,
      .out = [&](std::string_view text) { console.out << text << std::flush; },
      .err = [&](std::string_view text) { console.err << text << std::flush; }};
  options.command.insert(options.command.end(), arguments.words.begin(), arguments.words.end());
  const runtime::ChildrenEnd end = runtime::run_children(options);
  if (!end.failure) return end.code;
  report_failure(session, *end.failure, {});
  return session.finish();
}

RunProcesses join_processes(Session& session, const std::optional<runtime::Launch>& launch,
                            const runtime::Options& options) {
  RunProcesses processes;
  if (!launch) return processes;
  runtime::Failure failure;
  runtime::RunTokenRead read = runtime::read_run_token(session.console().environment);
  if (read.failure) {
    report_failure(session, *read.failure, {});
    processes.failed = true;
    return processes;
  }
  runtime::GroupOptions of_group{.seconds = static_cast<double>(options.meet_seconds)};
  of_group.token = std::move(read.token);
  of_group.heartbeats = {options.heartbeat_seconds, options.silence_seconds};
  of_group.on_notice = [&](const runtime::Failure& notice) {
    report_failure(session, notice, {});
    session.show_warnings();
  };
  if (launch->agent_store)
    of_group.agent_store = runtime::open_agent_store(options, of_group.seconds, failure);
  if (!launch->agent_store || of_group.agent_store.set)
    processes.group = runtime::ProcessGroup::join(*launch, of_group, failure);
  std::optional<runtime::Failure> differs;
  if (processes.group) differs = processes.group->agree(facts_of(session, options));
  if (processes.group && !differs)
    differs = compare_sources(*processes.group, session.context().locations.files());
  if (processes.group && !differs) return processes;
  report_failure(session, differs.value_or(failure), {});
  processes.failed = true;
  return processes;
}

std::optional<runtime::Failure> agree_on_job(const Session& session, const RunProcesses& processes,
                                             const PiperJob& job, const PiperJob& local) {
  if (processes.group == nullptr) return std::nullopt;
  std::string programs, held_out;
  for (std::uint32_t r = 0; r < job.num_ranks; ++r) {
    programs += std::string(job.ranks[r].program->hash) + "\n";
    if (job.ranks[r].evaluation != nullptr)
      held_out += std::string(job.ranks[r].evaluation->hash) + "\n";
  }
  return processes.group->agree(
      {{"initial weights", processes.weights.empty() ? "none" : processes.weights},
       {"programs", short_digest(programs)},
       {"programs for held-out data", short_digest(held_out)},
       {"first step", std::to_string(local.first_step)},
       {"steps", std::to_string(local.steps)},
       {"steps between evaluations", std::to_string(job.evaluate_every)},
       {"steps between checkpoints", std::to_string(job.checkpoint_every)},
       {"evaluations before checkpoints", job.checkpoint_best != 0 ? "all" : "none"},
       {"norm of skipped steps",
        job.optimizer.skips != 0 ? std::to_string(job.optimizer.skip_above) : "none"},
       {"order of samples", job.data.sampling == PIPER_EPOCH ? "epoch" : "replacement"},
       {"logs", std::string(session.arguments().log_csv ? "csv " : "") +
                    (session.arguments().log_tensorboard ? "tensorboard" : "")},
       {"seed", std::to_string(job.seed)}});
}

std::unique_ptr<runtime::Executor> make_cpu_executor(const Session& session,
                                                     const RunProcesses& processes,
                                                     const PiperJob& job, PiperJob& tables,
                                                     const runtime::ExecutorOptions& options,
                                                     runtime::Failure& failure) {
  if (processes.group == nullptr)
    return runtime::Executor::create(tables, runtime::make_cpu_device(), options, failure);
  const auto fail = [&](runtime::Failure reason) {
    failure = std::move(reason);
    processes.fail(failure);
    return nullptr;
  };
  if (auto differs = agree_on_job(session, processes, job, tables)) {
    failure = std::move(*differs);
    return nullptr;
  }
  const std::uint32_t world = processes.group->launch().world;
  std::shared_ptr<runtime::Transport> transport = runtime::open_process_transport(
      *processes.group, runtime::processes_of_ranks(world, job.world), failure);
  if (!transport) return fail(failure);
  const runtime::ProcessRanks ranks = processes.ranks(job.world);
  tables.ranks += ranks.first;
  tables.num_ranks = ranks.count;
  auto executor = runtime::Executor::create(
      tables, runtime::make_cpu_device({.transport = std::move(transport)}), options, failure,
      {processes.group.get(), &job});
  // Processes that wait for this one get the reason of its failure.
  if (!executor && !(options.stopped && options.stopped())) processes.fail(failure);
  return executor;
}

}  // namespace piper::tools
