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

std::string meeting_host(const Launch& launch) {
  return launch.agent_store && launch.one_machine ? "127.0.0.1" : launch.host;
}

std::optional<std::uint16_t> find_port(const Launch& launch, const GroupOptions& options,
                                       const Rendezvous* rendezvous, Failure& failure) {
  if (!launch.agent_store) return launch.port;
  if (rendezvous != nullptr) {
    auto unset =
        options.agent_store.set(launch, address_key(launch), std::to_string(rendezvous->port()));
    if (!unset) return rendezvous->port();
    failure = std::move(*unset);
    return std::nullopt;
  }
  const auto found = options.agent_store.get(launch, address_key(launch), options.seconds, failure);
  if (!found) return std::nullopt;
  std::uint16_t port = 0;
  const char* const last = found->data() + found->size();
  const auto [end, error] = std::from_chars(found->data(), last, port);
  if (error == std::errc() && end == last && port > 0) return port;
  failure = {.code = kProcessesApart,
             .message = "torchrun's store has `" + peer_text(*found) + "` for the port of rank 0",
             .hint = "another program writes to that store: give this run another"};
  return std::nullopt;
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
  return Failure{.code = kTokenMissing,
                 .message = "the processes of the run meet at `" + launch.host +
                            "`, which other machines reach, and the run has no token",
                 .hint = std::string("make one, `") + kMakeToken + "`, and give all of them `" +
                         kTokenFileVariable + "=run.token`, or its text in `" + kTokenVariable +
                         "`"};
}

}  // namespace piper::runtime
