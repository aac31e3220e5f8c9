#pragma once
// Starts the processes of a run on this machine, and ends them all when one of them dies.
//
// Guarantees: when the call returns no process that it has started is left; if this process is
// killed, the kernel kills them. They share a new random token (run_token.h). A signal
// that this process listens for is passed on to each, once.
//
//   const ChildrenEnd end = run_children({.command = {"/proc/self/exe", "train", "gpt.pipe"}, .world = 4, .ranks = 8, ...});
//   if (end.failure) report(*end.failure);
//   return end.code;

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/failure.h"
#include "runtime/processes/launch.h"

namespace piper::runtime {

class Interrupt;

struct ChildrenOptions {
  std::vector<std::string> command;  // a program with its arguments
  Environment environment;           // of all processes; each has its place in the run beside
  std::uint32_t world = 1;
  std::uint32_t ranks = 0;                    // of the run
  const Interrupt* interrupt = nullptr;       // null: signals are not passed on
  std::function<void(std::string_view)> out;  // what process 0 prints as its result
  std::function<void(std::string_view)> err;  // all else, merged
  // After the first death the others report the cause and end by themselves within this time.
  std::chrono::milliseconds end_within = std::chrono::seconds(5);
};

struct ChildrenEnd {
  // The exit status of the process that ended the run: 0 if all have ended well.
  int code = 0;
  // The first process that did not end by itself: kProcessLost, or why none could be started.
  std::optional<Failure> failure = {};
};

ChildrenEnd run_children(const ChildrenOptions& options);

}  // namespace piper::runtime
