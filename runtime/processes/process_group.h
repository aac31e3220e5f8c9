#pragma once
// The processes of a run, as one of them sees it: it meets the others, exchanges small values with them, tells and learns of the first failure, and agrees with them on where to stop.
//
// Guarantees: nothing waits for ever: for those who have not come as long as the options say, for values and numbers until somebody has failed or is gone. Any thread may call. A message that does not fit, from
// rank 0 or for it, is a failure of the run (kBadMessage) and leads nowhere else.
//
//   Failure failure;
//   auto group = ProcessGroup::join(launch, {.seconds = 300}, failure);
//   if (auto differs = group->agree({{"programs", hash}, {"steps", "100"}})) ...;
//   group->set("id.3", bytes);
//   auto id = group->get("id.3");                 // nothing: group->failure() says why
//   group->send_bytes(values);                    // and on rank 0: group->receive_bytes(1, size)
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

namespace piper::runtime {

/// torchrun's store, where there is one: rank 0 tells there on which port it listens. A launch that has one needs both functions.
struct AgentStore {
  std::function<std::optional<Failure>(const Launch&, const std::string& key, const std::string& value)> set = {};
  std::function<std::optional<std::string>(const Launch&, const std::string& key, double seconds, Failure& failure)> get = {};
};

struct GroupOptions {
  double seconds = 300;                  // until all are there
  std::function<bool()> stopped = {};    // once it is true `join` gives nothing, and no failure
  AgentStore agent_store = {};
  std::function<void(const Failure&)> on_notice = {};  // on rank 0: a warning while it waits, of a process that was refused; called by `join`
};

class ProcessGroup {
 public:
  /// Meets the others; rank 0 opens the place for it. Null with the reason in `failure`; null without one when stopped.
  static std::unique_ptr<ProcessGroup> join(const Launch& launch, const GroupOptions& options, Failure& failure);
  /// Without `leave` before, the others learn that this process has ended. That of rank 0 waits for the others.
  ~ProcessGroup();

  const Launch& launch() const;

  /// Keys are those since the last `agree`: what the jobs of a run tell each other is apart.
  void set(const std::string& key, const std::string& value);
  /// Waits until somebody has set it; nothing when the run has failed.
  std::optional<std::string> get(const std::string& key);
  /// Compares facts, each with its name, with those of rank 0: kProgramsDiffer, or a failure of the run. Called by all, which wait for each other.
  std::optional<Failure> agree(const std::vector<std::pair<std::string, std::string>>& facts);
  /// Whether one of all says so; nothing when the run has failed. Called by all, which wait for each other.
  std::optional<bool> any(bool says);

  /// The first failure of all processes; tells them of one.
  std::optional<Failure> failure() const;
  bool failed() const;
  void fail(const Failure& failure);
  /// Whose failure is first: that of another process, if one comes shortly, else this one, which all are told.
  Failure first_cause(const Failure& own);

  // ---- steps, counted over all runs
  enum class Begin { yes, wait, no };
  /// Whether one more step may begin; `wait`: that is being found out.
  Begin begin_step();
  /// All shall stop at a step that is the same for them.
  void request_stop();

  /// Numbers of a step, from whoever has them to rank 0.
  void send_report(std::uint64_t number, const std::string& bytes);
  /// Those with that number from one rank, if they have come.
  std::optional<std::string> take_report(std::uint32_t from, std::uint64_t number);

  // ---- any number of bytes, from each process to rank 0, in the order in which they are sent
  void send_bytes(std::string_view bytes);
  /// Waits for the next; nothing when the run has failed, as it does with more than `max_bytes`.
  std::optional<std::string> receive_bytes(std::uint32_t from, std::uint64_t max_bytes);
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
