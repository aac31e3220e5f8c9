#include "runtime/processes/reach_rank_zero.h"

#include <charconv>
#include <thread>

#include "runtime/processes/peer_text.h"
#include "runtime/processes/sockets.h"

namespace piper::runtime {

namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds kLook(100);

std::string address_key(const Launch& launch) { return "piper/" + launch.run + "/address"; }

}  // namespace

std::optional<Failure> find_rendezvous(Launch& launch, const GroupOptions& options,
                                       const Rendezvous* rendezvous) {
  if (!launch.agent_store) return std::nullopt;
  if (rendezvous != nullptr) {
    auto failure =
        options.agent_store.set(launch, address_key(launch), std::to_string(rendezvous->port()));
    launch.port = rendezvous->port();
    return failure;
  }
  Failure failure;
  const auto found = options.agent_store.get(launch, address_key(launch), options.seconds, failure);
  if (!found) return failure;
  const auto [end, error] =
      std::from_chars(found->data(), found->data() + found->size(), launch.port);
  if (error == std::errc() && end == found->data() + found->size() && launch.port > 0)
    return std::nullopt;
  return Failure{
      .code = kProcessesApart,
      .message = "torchrun's store has `" + peer_text(*found) + "` for the port of rank 0",
      .hint = "another program writes to that store: give this run another"};
}

int reach_rank_zero(const Launch& launch, const GroupOptions& options,
                    std::chrono::steady_clock::time_point until, Failure& failure, bool& stopped) {
  for (;;) {
    std::string reason;
    bool again = true;
    const int made = connect_to(launch.host, launch.port, reason, again);
    if (made >= 0) return made;
    if (!again || Clock::now() >= until) {
      failure = {
          .code = kProcessesApart,
          .message =
              process_text(launch, launch.rank) + " does not reach rank 0 at `" + launch.host +
              ":" + std::to_string(launch.port) + "`" +
              (again ? " within `" + std::to_string(static_cast<long long>(options.seconds)) +
                           "` seconds"
                     : "") +
              ": " + reason,
          .hint =
              "`MASTER_ADDR` and `MASTER_PORT` are the address of rank 0 for the others; check that it runs, and look at its output"};
      return -1;
    }
    if ((stopped = options.stopped && options.stopped())) return -1;
    std::this_thread::sleep_for(kLook);
  }
}

std::optional<Failure> missing_token(const Launch& launch, const GroupOptions& options) {
  if (!options.token.empty() || launch.world == 1 || !is_reached_by_others(launch.host))
    return std::nullopt;
  return Failure{
      .code = kTokenMissing,
      .message = "the processes of the run meet at `" + launch.host +
                 "`, which other machines reach, and have no token to know each other by",
      .hint = std::string("make one, `") + kMakeToken + "`, and give all of them `" +
              kTokenFileVariable + "=run.token`, or its text in `" + kTokenVariable + "`"};
}

}  // namespace piper::runtime
