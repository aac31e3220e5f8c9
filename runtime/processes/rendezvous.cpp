#include "runtime/processes/rendezvous.h"

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
#include <mutex>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/processes/messages.h"
#include "runtime/processes/peer_text.h"
#include "runtime/processes/sockets.h"

namespace piper::runtime {

namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::seconds kHelloWithin(10);  // of a connection
constexpr std::chrono::seconds kLeaveWithin(5);   // after a failure
// After this time without a hello a connection may be dropped for another.
constexpr std::chrono::milliseconds kStrangerRoom(250);
constexpr std::chrono::milliseconds kAcceptPause(100);
constexpr std::size_t kMaxStrangers = 256;  // connections without a valid hello
// Per poll, before known connections are served again.
constexpr std::size_t kMaxAccepts = 64;
constexpr std::size_t kMaxWaitingKeys = 1024;                   // of a process
constexpr std::size_t kMaxValueBytes = std::size_t{256} << 20;  // that a process sets
constexpr std::size_t kMaxUnsentBytes = std::size_t{256} << 20;
constexpr std::size_t kMaxNamed = 8;

struct Guest {
  explicit Guest(int socket, std::size_t max_body)
      : connection(socket, max_body), address(peer_address(socket)), since(Clock::now()) {}
  std::string description() const { return process + " at " + address; }

  Connection connection;
  std::string address;
  Clock::time_point since;
  bool joined = false, left = false;  // it has a rank, it has said goodbye
  bool refused = false;
  std::optional<std::uint64_t> challenge;  // sent after a valid hello
  std::uint32_t rank = 0;
  std::string process;  // `process 4711 on node7`
  std::size_t waiting_keys = 0, value_bytes = 0;
  std::optional<std::uint64_t> started;  // steps: its answer to hold, or its last count
};

}  // namespace

struct Rendezvous::Parts {
  Parts(const Launch& launch, double seconds)
      : launch(launch),
        seconds(seconds),
        until(Clock::now() +
              std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds))),
        came(launch.world) {}
  ~Parts() {
    for (const int file : {wakes, own_socket}) {
      if (file >= 0) close(file);
    }
  }

  /// Rank 0 is connected from the start. False with errno.
  bool connect_own() {
    int ends_of_pair[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends_of_pair) != 0) return false;
    own_socket = ends_of_pair[0];
    Guest& own = *guests.emplace_back(std::make_unique<Guest>(ends_of_pair[1], kMaxRendezvousBody));
    own.process = this_process();
    join(own);
    if (all_here) notify_here();
    return true;
  }

  void run() {
    for (;;) {
      if (ends.load() && may_leave()) return;
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
  Listeners listeners;
  int wakes = -1, own_socket = -1;
  std::atomic<bool> ends{false};
  std::thread thread;
  std::mutex notices_mutex;
  std::vector<Failure> notices;

 private:
  std::size_t joined() const {
    return static_cast<std::size_t>(std::count_if(guests.begin(), guests.end(),
                                                  [](const auto& guest) { return guest->joined; }));
  }

  bool may_leave() {
    if (!leaves_at) leaves_at = Clock::now() + kLeaveWithin;
    const bool open = std::any_of(guests.begin(), guests.end(),
                                  [](const auto& guest) { return guest->joined && !guest->left; });
    const bool unsent = std::any_of(guests.begin(), guests.end(), [](const auto& guest) {
      return guest->joined && guest->connection.sends();
    });
    // A process that joins a run after its failure must learn the reason, too, but no wait is
    // longer than the time for all to join.
    const bool waits =
        failed && !all_here &&
        !std::all_of(came.begin(), came.end(), [](bool has_come) { return has_come; }) &&
        Clock::now() < until;
    if (!open && !unsent && !waits) return true;
    // Without a failure the others are still at work, and may report one.
    return (failed || !all_here) && Clock::now() >= *leaves_at;
  }

  void forget(const Guest& guest) {
    for (auto& [key, waiting] : asked) std::erase(waiting, &guest);
  }

  void forget_closed() {
    std::erase_if(guests, [&](const auto& guest) {
      if (!guest->connection.closed()) return false;
      forget(*guest);
      return true;
    });
  }

  // ---- connections

  /// Rank 0 has not taken earlier reports yet: no more are read, so that the senders wait instead
  /// of this memory growing.
  bool reports_wait() const {
    return std::any_of(guests.begin(), guests.end(), [](const auto& guest) {
      return guest->joined && guest->rank == 0 && guest->connection.unsent() > kMaxUnsentBytes;
    });
  }
  bool is_read(const Guest& guest, bool reports_wait) const {
    return !reports_wait || (guest.joined && guest.rank == 0);
  }

  void wait() {
    std::vector<pollfd> files = {{wakes, POLLIN, 0}};
    // A listener that cannot accept stays ready: it is skipped for a while.
    if (Clock::now() >= accepts_at) {
      for (const int listener : listeners.sockets()) files.push_back({listener, POLLIN, 0});
    }
    const bool held = reports_wait();
    for (const auto& guest : guests) {
      files.push_back({guest->connection.socket(),
                       static_cast<short>((is_read(*guest, held) ? POLLIN : 0) |
                                          (guest->connection.sends() ? POLLOUT : 0)),
                       0});
    }
    poll(files.data(), files.size(), static_cast<int>(kAcceptPause.count()));
    std::uint64_t ignored = 0;
    if ((files[0].revents & POLLIN) != 0 && read(wakes, &ignored, sizeof ignored) < 0) return;
  }

  void accept_guests() {
    if (Clock::now() < accepts_at) return;
    for (const int listener : listeners.sockets()) {
      for (std::size_t n = 0; n < kMaxAccepts && accept_guest(listener); ++n) {}
    }
  }

  /// False if there is none, or no room for it now.
  bool accept_guest(int listener) {
    const auto strangers = static_cast<std::size_t>(std::count_if(
        guests.begin(), guests.end(), [](const auto& guest) { return !guest->joined; }));
    const bool full = strangers >= kMaxStrangers && !drop_oldest_stranger();
    const int made = full ? -1 : accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (made >= 0) {
      guests.push_back(std::make_unique<Guest>(made, kMaxHelloBody));
      return true;
    }
    if (!full && (errno == EINTR || errno == ECONNABORTED)) return true;
    if (!full && (errno == EAGAIN || errno == EWOULDBLOCK)) return false;
    if (!full && drop_oldest_stranger()) return true;
    accepts_at = Clock::now() + kAcceptPause;
    return false;
  }

  /// A process of the run sends its hello as soon as it is connected, so the oldest connection
  /// without a hello is the least likely to be one.
  bool drop_oldest_stranger() {
    auto oldest = guests.end();
    for (auto guest = guests.begin(); guest != guests.end(); ++guest) {
      if (!(*guest)->joined && (oldest == guests.end() || (*guest)->since < (*oldest)->since))
        oldest = guest;
    }
    if (oldest == guests.end() || Clock::now() - (*oldest)->since < kStrangerRoom) return false;
    guests.erase(oldest);
    return true;
  }

  static void drop(Guest& guest) { shutdown(guest.connection.socket(), SHUT_RDWR); }

  void hear(Guest& guest) {
    if (is_read(guest, reports_wait())) guest.connection.fill();
    guest.connection.flush();
    FrameKind kind{};
    std::string body;
    while (guest.connection.receive(kind, body)) {
      if (guest.joined ? take(guest, kind, body) : take_hello(guest, kind, body)) continue;
      if (guest.joined)
        break_off(guest,
                  std::string("it sent a message `") + name_of(kind) + "` that does not fit");
      return drop(guest);
    }
    if (!guest.joined) {
      if (Clock::now() - guest.since > kHelloWithin) drop(guest);
    } else if (guest.connection.broken()) {
      break_off(guest, "it sent bytes that are no message");
    } else if (guest.rank != 0 && guest.connection.unsent() > kMaxUnsentBytes) {
      break_off(guest, "it does not read the messages for it");
      drop(guest);
    } else if (guest.connection.closed() && !guest.left) {
      lose(guest);
    }
  }

  // ---- processes that join

  /// False if the connection does not belong to this run. A process gets its rank once it has given
  /// back the challenge: blindly sent bytes get none.
  bool take_hello(Guest& guest, FrameKind kind, const std::string& body) {
    if (kind == FrameKind::here) return take_answer(guest, body);
    const std::optional<Hello> hello =
        kind == FrameKind::hello && !guest.refused && !guest.challenge ? decode_hello(body)
                                                                       : std::nullopt;
    if (!hello) return false;
    guest.rank = hello->rank;
    guest.process = hello->process;
    auto refusal = mismatch(guest, *hello);
    if (!refusal) refusal = taken(guest);
    if (refusal) {
      refuse(guest, *refusal);
      return true;
    }
    guest.challenge = random() % kMaxCount;
    guest.connection.send(FrameKind::heard, encode(Heard{*guest.challenge, this_process()}));
    return true;
  }

  bool take_answer(Guest& guest, const std::string& body) {
    const auto number = decode_count(body);
    if (!number || !guest.challenge || number != guest.challenge || guest.refused) return false;
    if (const auto refusal = taken(guest)) {
      refuse(guest, *refusal);
      return true;
    }
    join(guest);
    if (failed) guest.connection.send(FrameKind::failed, encode(*failed));
    if (all_here) notify_here();
    return true;
  }

  std::uint64_t random() { return std::uint64_t{random_()} << 32 | random_(); }

  void refuse(Guest& guest, const Failure& refusal) {
    guest.refused = true;
    guest.connection.send(FrameKind::refused, encode(refusal));
    notify("refused " + guest.description() + ": " + refusal.message, refusal.hint);
  }

  static Failure apart(std::string message, std::string hint) {
    return {.code = kProcessesApart, .message = std::move(message), .hint = std::move(hint)};
  }
  std::string shown(const Guest& guest) const {
    return process_text(launch, guest.rank) + " (" + guest.process + ")";
  }

  /// The reason why a process does not belong to this run.
  std::optional<Failure> mismatch(const Guest& guest, const Hello& hello) const {
    if (hello.run != launch.run) {
      return apart("`" + guest.process + "` belongs to the run `" + peer_text(hello.run) +
                       "`, and rank 0 here to `" + peer_text(launch.run) + "`",
                   "two runs share `MASTER_PORT`: give one of them another");
    }
    if (hello.world != launch.world) {
      return apart(shown(guest) + " is one of " + std::to_string(hello.world) +
                       " processes, rank 0 one of " + std::to_string(launch.world),
                   "the number of processes is the same for all of a run");
    }
    if (hello.rank >= launch.world)
      return apart(
          shown(guest) + " is beyond the " + std::to_string(launch.world) + " processes of the run",
          "ranks count from 0");
    return std::nullopt;
  }

  /// The reason why its rank is not free.
  std::optional<Failure> taken(const Guest& guest) const {
    for (const auto& other : guests) {
      if (!other->joined || other->rank != guest.rank) continue;
      return apart(
          "two processes are rank " + std::to_string(guest.rank) + ": " + other->description() +
              " and " + guest.description(),
          "each process of a run has a rank of its own; two runs at once on one machine need ports of their own");
    }
    if (all_here)
      return apart(shown(guest) + " joins a run that has begun",
                   "a process that ended cannot join again: start the run anew");
    return std::nullopt;
  }

  void join(Guest& guest) {
    guest.joined = true;
    guest.connection.set_max_body(kMaxRendezvousBody);
    came[guest.rank] = true;
    all_here = joined() == launch.world;
  }

  void notify_here() {
    for (const auto& guest : guests) {
      if (guest->joined) guest->connection.set_max_body(kMaxBody);
    }
    notify_others(FrameKind::all_here, {});
  }

  /// Before all have joined the rank becomes free again, and is waited for.
  bool give_back(Guest& guest, const std::string& cause) {
    if (all_here || failed || guest.rank == 0) return false;
    guest.joined = false;
    guest.refused = true;
    drop(guest);
    notify(process_text(launch, guest.rank) + " (" + guest.description() +
               ") joined and left before all had joined: " + cause,
           "rank 0 waits for another process with that rank");
    return true;
  }

  void break_off(Guest& guest, const std::string& cause) {
    if (give_back(guest, cause)) return;
    fail(
        {.code = kBadMessage,
         .message = process_text(launch, guest.rank) + " (" + guest.description() +
                    ") is not understood: " + cause,
         .hint =
             "all processes of a run need one `piper`; a program that is none of them may have come with that rank"});
  }

  void lose(Guest& guest) {
    if (give_back(guest, "its connection was closed")) return;
    fail({.code = kProcessLost,
          .message = process_text(launch, guest.rank) + " (" + guest.process +
                     ") is gone: its connection was closed",
          .hint = "its own output, or the log of its machine, says why"});
  }

  /// Warnings are only given while processes join: a started run is not disturbed.
  void notify(std::string message, std::string hint) {
    if (all_here || failed || notes.size() == kMaxNamed) return;
    notes.push_back({message, {}});
    const std::lock_guard lock(notices_mutex);
    notices.push_back(
        {.code = kProcessRefused, .message = std::move(message), .hint = std::move(hint)});
  }

  Failure not_come() const {
    std::vector<bool> here(launch.world);
    for (const auto& guest : guests) {
      if (guest->joined) here[guest->rank] = true;
    }
    std::string missing;
    std::size_t count = 0;
    for (std::uint32_t rank = 0; rank < launch.world; ++rank) {
      if (here[rank] || ++count > kMaxNamed) continue;
      missing += (missing.empty() ? "" : ", ") + std::to_string(rank);
    }
    if (count > kMaxNamed) missing += " and " + std::to_string(count - kMaxNamed) + " more";
    const bool one_rank = launch.ranks == 0 || launch.ranks == launch.world;  // of each process
    const char* const word =
        count == 1 ? (one_rank ? "rank " : "process ") : (one_rank ? "ranks " : "processes ");
    Failure failure{
        .code = kProcessesApart,
        .message = "after `" + std::to_string(static_cast<long long>(seconds)) + "` seconds " +
                   word + missing + " of `" + std::to_string(launch.world) + "` " +
                   (count == 1 ? "has" : "have") + " not connected to port `" +
                   std::to_string(listeners.port()) + "`",
        .hint =
            "look at the output of the missing processes; PIPER_MEET_SECONDS sets how long all wait",
        .notes = notes};
    if (listeners.loopback())
      failure.notes.push_back(
          {"rank 0 listens at `" + launch.host + "`, which only its own machine can reach", {}});
    return failure;
  }

  // ---- messages of processes that have joined

  /// False if the message does not fit.
  bool take(Guest& guest, FrameKind kind, const std::string& body) {
    // Until all have joined a process only waits, or ends.
    if (!all_here && kind != FrameKind::fail) return false;
    switch (kind) {
      case FrameKind::set: return take_value(guest, body);
      case FrameKind::get: return take_question(guest, body);
      case FrameKind::fail: {
        auto failure = decode_failure(body);
        if (failure && !give_back(guest, failure->message)) fail(std::move(*failure));
        return failure.has_value();
      }
      case FrameKind::stop:
        if (!body.empty()) return false;
        if (!std::exchange(holds, true)) notify_others(FrameKind::hold, {});
        look_for_stop();
        return true;
      case FrameKind::started:
      case FrameKind::bye: return take_started(guest, kind, body);
      case FrameKind::report: {
        auto report = decode_report(body);
        if (!report) return false;
        const std::string forwarded = encode(ForwardedReport{guest.rank, std::move(*report)});
        for (const auto& other : guests) {
          if (other->joined && other->rank == 0)
            other->connection.send(FrameKind::report, forwarded);
        }
        return true;
      }
      case FrameKind::hello:
      case FrameKind::here:
      case FrameKind::heard:
      case FrameKind::all_here:
      case FrameKind::refused:
      case FrameKind::value:
      case FrameKind::failed:
      case FrameKind::hold:
      case FrameKind::stop_at: return false;
    }
    return false;
  }

  bool take_value(Guest& guest, const std::string& body) {
    auto pair = decode_key_value(body);
    if (!pair || (guest.value_bytes += body.size()) > kMaxValueBytes) return false;
    if (const auto waiting = asked.extract(pair->key)) {
      for (Guest* each : waiting.mapped()) {
        --each->waiting_keys;
        each->connection.send(FrameKind::value, body);
      }
    }
    values[std::move(pair->key)] = std::move(pair->value);
    return true;
  }

  bool take_question(Guest& guest, const std::string& body) {
    auto key = decode_key(body);
    if (!key) return false;
    if (const auto known = values.find(*key); known != values.end()) {
      guest.connection.send(FrameKind::value, encode(KeyValue{known->first, known->second}));
      return true;
    }
    if (guest.waiting_keys++ == kMaxWaitingKeys) return false;
    asked[std::move(*key)].push_back(&guest);
    return true;
  }

  bool take_started(Guest& guest, FrameKind kind, const std::string& body) {
    const auto count = decode_count(body);
    if (!count || guest.left) return false;
    guest.started = *count;
    if (kind == FrameKind::bye) {
      guest.left = true;
      max_started = std::max(max_started, *count);
    }
    look_for_stop();
    return true;
  }

  void notify_others(FrameKind kind, const std::string& body) {
    for (const auto& guest : guests) {
      if (guest->joined) guest->connection.send(kind, body);
    }
  }

  void fail(Failure failure) {
    if (failed) return;
    failed = std::move(failure);
    notify_others(FrameKind::failed, encode(*failed));
  }

  /// Once all have sent the number of steps they have started, all start as many as the furthest
  /// one.
  void look_for_stop() {
    if (!holds || notified_of_stop) return;
    std::uint64_t most = max_started;
    for (const auto& guest : guests) {
      if (!guest->joined) continue;
      if (!guest->started) return;
      most = std::max(most, *guest->started);
    }
    notified_of_stop = true;
    notify_others(FrameKind::stop_at, encode_count(most));
  }

  std::vector<std::unique_ptr<Guest>> guests;
  std::map<std::string, std::string> values;
  std::map<std::string, std::vector<Guest*>> asked;
  std::vector<bool> came;   // by rank: a process with it has joined
  std::vector<Note> notes;  // as the notices
  std::optional<Failure> failed;
  std::optional<Clock::time_point> leaves_at;
  Clock::time_point accepts_at{};
  std::random_device random_;
  bool all_here = false, holds = false, notified_of_stop = false;
  std::uint64_t max_started = 0;  // steps, of those that have left
};

Rendezvous::Rendezvous(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}

std::unique_ptr<Rendezvous> Rendezvous::open(const Launch& launch, double seconds,
                                             Failure& failure) {
  auto parts = std::make_unique<Parts>(launch, seconds);
  std::string reason;
  const std::uint16_t port = launch.agent_store ? 0 : launch.port;
  bool good = parts->listeners.open(launch.host, port, reason);
  parts->wakes = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (good && (parts->wakes < 0 || !parts->connect_own())) {
    good = false;
    reason = std::strerror(errno);
  }
  if (!good) {
    failure = {
        .code = kProcessesApart,
        .message = "rank 0 cannot listen at `" + launch.host + "` on port `" +
                   std::to_string(port) + "`: " + reason,
        .hint =
            "`MASTER_ADDR` is an address of this machine, `MASTER_PORT` a port that is free, the same for all processes; where another process is rank 0, too, this one needs a rank of its own"};
    return nullptr;
  }
  Parts& running = *parts;
  running.thread = std::thread([&running] { running.run(); });
  return std::unique_ptr<Rendezvous>(new Rendezvous(std::move(parts)));
}

Rendezvous::~Rendezvous() {
  parts_->ends.store(true);
  const std::uint64_t one = 1;
  // The thread also looks by itself.
  [[maybe_unused]] const ssize_t written = write(parts_->wakes, &one, sizeof one);
  parts_->thread.join();
}

std::uint16_t Rendezvous::port() const { return parts_->listeners.port(); }

int Rendezvous::take_own_socket() { return std::exchange(parts_->own_socket, -1); }

std::vector<Failure> Rendezvous::take_notices() {
  const std::lock_guard lock(parts_->notices_mutex);
  return std::exchange(parts_->notices, {});
}

}  // namespace piper::runtime
