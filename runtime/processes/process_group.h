#pragma once
// The processes of a run, as seen by one of them: it finds the others, exchanges small values with
// them, sends and receives the first failure, and agrees with them on the step at which all stop.
//
// Guarantees: nothing waits for ever: the wait for missing processes ends after the seconds in the
// options, the wait for values and numbers when a process has failed, is gone, or has not answered
// for the limit of the heartbeats. Any thread may call. A message that does not fit, from rank 0 or for it, is a failure of the run (kBadMessage)
// and has no other effect.
//
//   Failure failure;
//   auto group = ProcessGroup::join(launch, {.seconds = 300}, failure);
//   if (auto differs = group->agree({{"programs", hash}, {"steps", "100"}})) ...;
//   group->set("id.3", bytes);
//   auto id = group->get("id.3");                 // empty: the reason is in group->failure()
//   group->send_bytes(Channel::parameters, values);
//   group->receive_bytes(Channel::parameters, 1, size);   // on rank 0
//   while (group->begin_step() == ProcessGroup::Begin::yes) ...;
//   group->leave();                               // all went well

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/processes/launch.h"
#include "runtime/processes/messages.h"
#include "runtime/processes/rendezvous.h"

namespace piper::runtime {

/// torchrun's store, if there is one: rank 0 publishes its port there. A launch with a store needs
/// both functions.
struct AgentStore {
  std::function<std::optional<Failure>(const Launch&, const std::string& key,
                                       const std::string& value)>
      set = {};
  std::function<std::optional<std::string>(const Launch&, const std::string& key, double seconds,
                                           Failure& failure)>
      get = {};
};

struct GroupOptions {
  double seconds = 300;                // until all have joined
  std::function<bool()> stopped = {};  // once it is true `join` returns null without a failure
  AgentStore agent_store = {};
  std::string token = {};  // of the run (run_token.h); empty: none
  Heartbeats heartbeats = {};
  // On rank 0: a warning about a refused process during the wait; called by `join`.
  std::function<void(const Failure&)> on_notice = {};
};

class ProcessGroup {
 public:
  /// Joins the others; rank 0 opens the rendezvous. Refuses to meet where other machines reach it
  /// without a token (kTokenMissing). Null with the reason in `failure`; null without
  /// one when stopped.
  static std::unique_ptr<ProcessGroup> join(const Launch& launch, const GroupOptions& options,
                                            Failure& failure);
  /// Without `leave` before, the others learn that this process has ended. Rank 0's waits for the
  /// others.
  ~ProcessGroup();

  const Launch& launch() const;

  /// Keys hold until the next `agree`: the values of different jobs of a run are separate.
  void set(const std::string& key, const std::string& value);
  /// Waits until a process has set it; empty if the run has failed.
  std::optional<std::string> get(const std::string& key);
  /// Compares facts, each with its name, with those of rank 0: kProgramsDiffer, or a failure of the
  /// run. Called by all, which wait for each other.
  std::optional<Failure> agree(const std::vector<std::pair<std::string, std::string>>& facts);
  /// Whether any process passes true; empty if the run has failed. Called by all, which wait for
  /// each other.
  std::optional<bool> any(bool says);

  /// The first failure of all processes; `fail` sends one to them.
  std::optional<Failure> failure() const;
  bool failed() const;
  void fail(const Failure& failure);
  /// The first failure: that of another process, if one arrives shortly, else `local`, which is
  /// sent to all.
  Failure first_cause(const Failure& local);

  /// The positions of this process's ranks, which heartbeats carry; called by another thread until
  /// it is replaced. Empty: none.
  void report_positions(std::function<std::vector<RankPosition>()> positions);
  /// The other processes as rank 0 had last heard of them when the run failed, the failed one
  /// first; empty before a failure, and where rank 0 itself is lost. After a failure of this process
  /// it waits shortly for them.
  std::vector<ProcessState> last_states();

  // ---- steps, counted over all runs
  enum class Begin { yes, wait, no };
  /// Whether one more step may begin; `wait`: the answer is not known yet.
  Begin begin_step();
  /// Makes all stop at one common step.
  void request_stop();

  /// Sends numbers of a step to rank 0.
  void send_report(std::uint64_t number, const std::string& bytes);
  /// The report with that number from one rank, if it has arrived.
  std::optional<std::string> take_report(std::uint32_t from, std::uint64_t number);

  // ---- any number of bytes, from each process to rank 0, in the order in which they are sent
  // through a channel. One thread at a time sends through a channel, and one receives from it.
  void send_bytes(Channel channel, std::string_view bytes);
  /// Waits for the next bytes; empty if the run has failed, as it does with more than `max_bytes`.
  std::optional<std::string> receive_bytes(Channel channel, std::uint32_t from,
                                           std::uint64_t max_bytes);
  /// Fails the run, because a process sent a value that does not fit.
  Failure fail_message(std::uint32_t from, const std::string& message);

  /// This process has done its part.
  void leave();

 private:
  struct Parts;
  explicit ProcessGroup(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

}  // namespace piper::runtime
