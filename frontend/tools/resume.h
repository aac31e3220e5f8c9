#pragma once
// `--resume` of a train: the checkpoint that it names, and the state that a run takes from it.
//
//   std::optional<Resumed> resumed = open_resumed(session);   // before anything is compiled
//   start_from(*resumed, tables);                             // before the executor is made
//   if (auto failure = take_state(*resumed, executor)) ...;

#include <memory>
#include <optional>
#include <string>

#include "frontend/tools/session.h"
#include "runtime/checkpoint/checkpoint.h"
#include "runtime/checkpoint/run_facts.h"
#include "runtime/executor/executor.h"

namespace piper::tools {

struct Resumed {
  std::unique_ptr<runtime::Checkpoint> checkpoint;
  std::string run;  // the folder that holds it
  runtime::Restored restored = runtime::Restored::all;

  bool continues() const { return restored == runtime::Restored::all; }
};

/// Opens a checkpoint. Nothing, and a diagnostic, if it cannot be read.
std::optional<Resumed> open_resumed(Session& session, const runtime::FoundCheckpoint& found);

/// Sets where the run begins: the steps of the job are then those that are left, or `steps` if the
/// command line says so.
void start_from(const Resumed& resumed, PiperJob& tables, std::optional<std::uint64_t> steps);

/// Compares the checkpoint with the run, and loads the state of its ranks.
std::optional<runtime::Failure> take_state(const Resumed& resumed,
                                           const runtime::Executor& executor);

/// The text with which a run begins: `resumed from run/step-300, 9600 samples`, and each setting that
/// differs from that of the checkpoint.
std::string resumed_text(const Resumed& resumed, const runtime::Executor& executor,
                         const PiperJob& tables);

}  // namespace piper::tools
