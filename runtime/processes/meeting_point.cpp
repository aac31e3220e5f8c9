#include "runtime/processes/meeting_point.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <map>
#include <thread>
#include <vector>

#include "runtime/processes/frames.h"

namespace piper::runtime {

namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::seconds kHelloWithin(10);   // of a connection
constexpr std::chrono::seconds kLeaveWithin(5);    // after a failure
constexpr std::size_t kMostNamed = 8;

struct Guest {
  explicit Guest(int socket) : connection(socket), since(Clock::now()) {}
  Connection connection;
  Clock::time_point since;
  bool joined = false, left = false;  // it has said hello, goodbye
  std::uint32_t rank = 0;
  std::string who;                    // `process 4711 on node7`
  std::optional<std::uint64_t> begun;  // steps: its answer to hold, or its last word
};

}  // namespace

struct MeetingPoint::Parts {
  Parts(const Launch& launch, double seconds) : launch(launch), seconds(seconds), until(Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds))) {}
  ~Parts() {
    if (listener >= 0) close(listener);
    if (wakes >= 0) close(wakes);
  }

  void run() {
    for (;;) {
      const bool leaving = ends.load();
      if (leaving && may_leave()) return;
      wait();
      accept_guests();
      for (std::size_t g = 0; g < guests.size(); ++g) hear(*guests[g]);
      if (!all_here && !failed && Clock::now() >= until) fail(not_come());
      forget_closed();
    }
  }

  const Launch launch;
  const double seconds;
  const Clock::time_point until;
  std::uint16_t port = 0;
  int listener = -1, wakes = -1;
  std::atomic<bool> ends{false};
  std::thread thread;

 private:
  std::size_t joined() const {
    return static_cast<std::size_t>(std::count_if(guests.begin(), guests.end(), [](const auto& guest) { return guest->joined; }));
  }

  bool may_leave() {
    if (!leaves_at) leaves_at = Clock::now() + kLeaveWithin;
    const bool open = std::any_of(guests.begin(), guests.end(), [](const auto& guest) { return guest->joined && !guest->left; });
    const bool unsent = std::any_of(guests.begin(), guests.end(), [](const auto& guest) { return guest->joined && guest->connection.sends(); });
    // Who comes late to what has failed already shall learn why, too, but nobody is waited for longer than all may take to come.
    const bool waits = failed && !all_here && hellos < launch.world && Clock::now() < until;
    if (!open && !unsent && !waits) return true;
    // Without a failure the others are still at work, and may find one.
    return (failed || !all_here) && Clock::now() >= *leaves_at;
  }

  void forget_closed() {
    std::erase_if(guests, [&](const auto& guest) {
      if (!guest->connection.closed()) return false;
      for (auto& [key, waiting] : asked) std::erase(waiting, guest.get());
      return true;
    });
  }

  void wait() {
    std::vector<pollfd> files = {{listener, POLLIN, 0}, {wakes, POLLIN, 0}};
    for (const auto& guest : guests) files.push_back({guest->connection.socket(), static_cast<short>(POLLIN | (guest->connection.sends() ? POLLOUT : 0)), 0});
    poll(files.data(), files.size(), 100);
    std::uint64_t ignored = 0;
    if ((files[1].revents & POLLIN) != 0 && read(wakes, &ignored, sizeof ignored) < 0) return;
  }

  void accept_guests() {
    for (int made = accept(listener, nullptr, nullptr); made >= 0; made = accept(listener, nullptr, nullptr)) guests.push_back(std::make_unique<Guest>(made));
  }

  void hear(Guest& guest) {
    guest.connection.fill();
    guest.connection.flush();
    FrameKind kind{};
    std::string body;
    while (guest.connection.receive(kind, body)) {
      if (!guest.joined && kind != FrameKind::hello) return drop(guest);
      take(guest, kind, body);
    }
    if (!guest.joined && Clock::now() - guest.since > kHelloWithin) return drop(guest);
    if (guest.connection.closed() && guest.joined && !guest.left) fail(lost(guest));
  }

  static void drop(Guest& guest) { shutdown(guest.connection.socket(), SHUT_RDWR); }

  void take(Guest& guest, FrameKind kind, const std::string& body) {
    BodyReader read(body);
    switch (kind) {
      case FrameKind::hello: return welcome(guest, read);
      case FrameKind::set: {
        const std::string key = read.text();
        const std::string& value = values[key] = read.text();
        for (Guest* each : asked[key]) answer(*each, key, value);
        asked.erase(key);
        return;
      }
      case FrameKind::get: {
        const std::string key = read.text();
        const auto known = values.find(key);
        return known != values.end() ? answer(guest, key, known->second) : asked[key].push_back(&guest);
      }
      case FrameKind::fail: return fail(unpacked_failure(body));
      case FrameKind::stop:
        if (!holds) tell_all(FrameKind::hold, {});
        holds = true;
        return look_for_stop();
      case FrameKind::begun: guest.begun = read.number(); return look_for_stop();
      case FrameKind::bye:
        guest.begun = read.number();
        guest.left = true;
        most_begun = std::max(most_begun, *guest.begun);
        return look_for_stop();
      case FrameKind::report:
        for (const auto& each : guests) {
          if (each->joined && each->rank == 0) each->connection.send(FrameKind::report, Body().add(std::uint64_t{guest.rank}).add(body).bytes());
        }
        return;
      case FrameKind::heard: case FrameKind::all_here: case FrameKind::refused: case FrameKind::value: case FrameKind::failed: case FrameKind::hold: case FrameKind::stop_at: return drop(guest);
    }
    drop(guest);
  }

  static void answer(Guest& guest, const std::string& key, const std::string& value) { guest.connection.send(FrameKind::value, Body().add(key).add(value).bytes()); }

  void tell_all(FrameKind kind, const std::string& body) {
    for (const auto& guest : guests) {
      if (guest->joined) guest->connection.send(kind, body);
    }
  }

  void welcome(Guest& guest, BodyReader& read) {
    const std::string run = read.text();
    guest.rank = static_cast<std::uint32_t>(read.number());
    const std::uint64_t world = read.number();
    guest.who = read.text();
    if (!read.whole()) return drop(guest);
    ++hellos;
    const auto refuse = [&](std::string message, std::string hint) {
      const Failure failure{.code = kProcessesApart, .message = std::move(message), .hint = std::move(hint)};
      guest.connection.send(FrameKind::refused, packed(failure));
      // Who has come already would wait in vain.
      if (!all_here) fail(failure);
    };
    const std::string rank = "rank " + std::to_string(guest.rank);
    if (run != launch.run) {
      return refuse("`" + guest.who + "` belongs to the run `" + run + "`, and rank 0 here to `" + launch.run + "`", "two runs share `MASTER_PORT`: give one of them another");
    }
    if (world != launch.world) {
      return refuse(rank + " (" + guest.who + ") is one of " + std::to_string(world) + " processes, rank 0 one of " + std::to_string(launch.world), "the number of processes is the same for all of a run");
    }
    for (const auto& other : guests) {
      if (!other->joined || other->rank != guest.rank || other.get() == &guest) continue;
      return refuse("two processes are " + rank + ": " + other->who + " and " + guest.who, "each process of a run has a rank of its own; two runs at once on one machine need ports of their own");
    }
    if (all_here) return refuse(rank + " (" + guest.who + ") comes to a run that has begun", "a process that ended cannot join again: start the run anew");
    guest.joined = true;
    guest.connection.send(FrameKind::heard, this_process());
    if (failed) guest.connection.send(FrameKind::failed, packed(*failed));
    if (joined() < launch.world) return;
    all_here = true;
    tell_all(FrameKind::all_here, {});
  }

  void fail(Failure failure) {
    if (failed) return;
    failed = std::move(failure);
    tell_all(FrameKind::failed, packed(*failed));
  }

  Failure not_come() const {
    std::vector<bool> here(launch.world);
    for (const auto& guest : guests) {
      if (guest->joined) here[guest->rank] = true;
    }
    std::string missing;
    std::size_t count = 0;
    for (std::uint32_t rank = 0; rank < launch.world; ++rank) {
      if (here[rank] || ++count > kMostNamed) continue;
      missing += (missing.empty() ? "" : ", ") + std::to_string(rank);
    }
    if (count > kMostNamed) missing += " and " + std::to_string(count - kMostNamed) + " more";
    return {.code = kProcessesApart,
            .message = "after `" + std::to_string(static_cast<long long>(seconds)) + "` seconds " + (count == 1 ? "rank " : "ranks ") + missing + " of `" + std::to_string(launch.world) +
                       "` " + (count == 1 ? "has" : "have") + " not come to port `" + std::to_string(port) + "`",
            .hint = "look at the output of the processes that are missing; PIPER_MEET_SECONDS says how long all wait"};
  }

  Failure lost(const Guest& guest) const {
    return {.code = kProcessLost,
            .message = "rank " + std::to_string(guest.rank) + " (" + guest.who + ") is gone: its connection was closed",
            .hint = "its own output, or the log of its machine, says why"};
  }

  /// Once all have said how many steps they have begun, all begin as many as the one that is farthest.
  void look_for_stop() {
    if (!holds || told_stop) return;
    std::uint64_t most = most_begun;
    for (const auto& guest : guests) {
      if (!guest->joined) continue;
      if (!guest->begun) return;
      most = std::max(most, *guest->begun);
    }
    told_stop = true;
    tell_all(FrameKind::stop_at, Body().add(most).bytes());
  }

  std::vector<std::unique_ptr<Guest>> guests;
  std::map<std::string, std::string> values;
  std::map<std::string, std::vector<Guest*>> asked;
  std::optional<Failure> failed;
  std::optional<Clock::time_point> leaves_at;
  bool all_here = false, holds = false, told_stop = false;
  std::uint64_t hellos = 0;
  std::uint64_t most_begun = 0;  // steps, of those that have left
};

MeetingPoint::MeetingPoint(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}

std::unique_ptr<MeetingPoint> MeetingPoint::open(const Launch& launch, double seconds, Failure& failure) {
  auto parts = std::make_unique<Parts>(launch, seconds);
  parts->port = launch.agent_store ? 0 : launch.port;
  parts->listener = listen_on(parts->port);
  const int error = errno;
  parts->wakes = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (parts->listener < 0 || parts->wakes < 0) {
    failure = {.code = kProcessesApart, .message = "rank 0 cannot listen on port `" + std::to_string(launch.port) + "` of this machine: " + (error == EADDRINUSE ? "another process has it" : std::strerror(error)),
               .hint = "set `MASTER_PORT` to a port that is free, the same for all processes; where another process is rank 0, too, this one needs a rank of its own"};
    return nullptr;
  }
  Parts& running = *parts;
  running.thread = std::thread([&running] { running.run(); });
  return std::unique_ptr<MeetingPoint>(new MeetingPoint(std::move(parts)));
}

MeetingPoint::~MeetingPoint() {
  parts_->ends.store(true);
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(parts_->wakes, &one, sizeof one);  // it looks by itself, too
  parts_->thread.join();
}

std::uint16_t MeetingPoint::port() const { return parts_->port; }

}  // namespace piper::runtime
