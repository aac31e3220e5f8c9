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
#include <thread>
#include <utility>
#include <vector>

#include "runtime/processes/guest.h"
#include "runtime/processes/messages.h"
#include "runtime/processes/refusals.h"
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

Clock::duration time_of(double seconds) {
  return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

}  // namespace

struct Rendezvous::Parts {
  Parts(const Launch& launch, RendezvousOptions given)
      : launch(launch),
        options(std::move(given)),
        until(Clock::now() + time_of(options.seconds)),
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
      send_beats();
      if (!all_here && !failed && Clock::now() >= until)
        fail(not_come(launch, options.seconds, joined_ranks(), listeners, notes));
      forget_closed();
    }
  }

  const Launch launch;
  const RendezvousOptions options;
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

  std::vector<bool> joined_ranks() const {
    std::vector<bool> here(launch.world);
    for (const auto& guest : guests) {
      if (guest->joined) here[guest->rank] = true;
    }
    return here;
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
    // A process whose messages are left unread is not silent.
    if (!is_read(guest, reports_wait()) || guest.connection.fill()) guest.silence.end();
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
      lose(guest, std::nullopt);
    } else if (is_silent(guest)) {
      lose(guest, options.heartbeats.limit);
      drop(guest);  // a process that does not answer is not waited for either
    }
  }

  bool is_silent(Guest& guest) const {
    return guest.rank != 0 && !guest.left && guest.silence.lasts(options.heartbeats.limit);
  }

  void send_beats() {
    if (Clock::now() < beats_at) return;
    beats_at = Clock::now() + time_of(options.heartbeats.every);
    for (const auto& guest : guests) {
      if (guest->joined && guest->rank != 0) guest->connection.send(FrameKind::beat, {});
    }
  }

  // ---- processes that join

  /// False if the connection does not belong to this run. A process gets its rank once it has
  /// answered to this connection's own number: bytes sent blindly, or heard elsewhere, get none.
  bool take_hello(Guest& guest, FrameKind kind, const std::string& body) {
    if (guest.refused) return false;
    if (kind == FrameKind::open) {
      const auto answer = guest.handshake.take_opening(options.token, launch.run, body);
      if (answer) guest.connection.send(FrameKind::nonce, encode(*answer));
      return answer.has_value();
    }
    const auto hello =
        kind == FrameKind::hello && guest.handshake.opened() ? decode_hello(body) : std::nullopt;
    if (!hello) return false;
    if (!guest.handshake.proves(options.token, *hello)) return refuse_unproven(guest);
    guest.rank = hello->rank;
    guest.process = hello->process;
    auto refusal = mismatch(launch, guest, *hello);
    if (!refusal) refusal = taken(guest);
    if (refusal) {
      refuse(guest, *refusal);
      return true;
    }
    guest.connection.send(FrameKind::heard, encode(Heard{this_process()}));
    join(guest);
    if (failed) guest.connection.send(FrameKind::failed, encode(*failed));
    if (all_here) notify_here();
    return true;
  }

  /// Its words are not repeated: they may be anybody's.
  bool refuse_unproven(Guest& guest) {
    guest.refused = true;
    guest.connection.send(FrameKind::refused, encode(unproven()));
    notify(
        "refused a connection from " + guest.address +
            ": it did not prove that it belongs to this run",
        "if it is a process of the run, give it the token of rank 0; else somebody tries to join");
    return true;
  }

  void refuse(Guest& guest, const Failure& refusal) {
    guest.refused = true;
    guest.connection.send(FrameKind::refused, encode(refusal));
    notify("refused " + guest.description() + ": " + refusal.message, refusal.hint);
  }

  /// The reason why its rank is not free.
  std::optional<Failure> taken(const Guest& guest) const {
    for (const auto& other : guests) {
      if (!other->joined || other->rank != guest.rank) continue;
      return two_with_one_rank(*other, guest);
    }
    if (all_here) return joins_late(launch, guest);
    return std::nullopt;
  }

  void join(Guest& guest) {
    guest.joined = true;
    guest.silence.end();
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
    fail(broken_off(launch, guest, cause), &guest);
  }

  void lose(Guest& guest, std::optional<double> silent_seconds) {
    if (give_back(guest,
                  silent_seconds ? silence_text(*silent_seconds) : "its connection was closed"))
      return;
    fail(lost(launch, guest, silent_seconds), &guest);
  }

  /// Warnings are only given while processes join: a started run is not disturbed.
  void notify(std::string message, std::string hint) {
    if (all_here || failed || notes.size() == kMaxNamed) return;
    notes.push_back({message, {}});
    const std::lock_guard lock(notices_mutex);
    notices.push_back(
        {.code = kProcessRefused, .message = std::move(message), .hint = std::move(hint)});
  }

  // ---- messages of processes that have joined

  /// False if the message does not fit.
  bool take(Guest& guest, FrameKind kind, const std::string& body) {
    // Until all have joined a process only waits, or ends.
    if (!all_here && kind != FrameKind::fail && kind != FrameKind::beat) return false;
    switch (kind) {
      case FrameKind::set: return take_value(guest, body);
      case FrameKind::get: return take_question(guest, body);
      case FrameKind::fail: {
        auto failure = decode_failure(body);
        if (failure && !give_back(guest, failure->message)) fail(std::move(*failure), &guest);
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
      case FrameKind::beat: {
        auto positions = decode_positions(body);
        if (positions) guest.positions = std::move(*positions);
        return positions.has_value();
      }
      case FrameKind::open:
      case FrameKind::hello:
      case FrameKind::nonce:
      case FrameKind::heard:
      case FrameKind::all_here:
      case FrameKind::refused:
      case FrameKind::value:
      case FrameKind::states:
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

  /// `cause`: the process that has failed, whose state is sent first; null: none.
  void fail(Failure failure, const Guest* cause = nullptr) {
    if (failed) return;
    failed = std::move(failure);
    if (all_here) notify_others(FrameKind::states, encode(states(cause)));
    notify_others(FrameKind::failed, encode(*failed));
  }

  std::vector<ProcessState> states(const Guest* first) const {
    std::vector<ProcessState> states;
    const auto add = [&](const Guest& guest) {
      if (guest.joined) states.push_back({guest.rank, guest.process, guest.positions});
    };
    if (first != nullptr) add(*first);
    for (const auto& guest : guests) {
      if (guest.get() != first && states.size() < kMaxStates) add(*guest);
    }
    return states;
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
  Clock::time_point accepts_at{}, beats_at{};
  bool all_here = false, holds = false, notified_of_stop = false;
  std::uint64_t max_started = 0;  // steps, of those that have left
};

Rendezvous::Rendezvous(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}

std::unique_ptr<Rendezvous> Rendezvous::open(const Launch& launch, RendezvousOptions options,
                                             Failure& failure) {
  auto parts = std::make_unique<Parts>(launch, std::move(options));
  std::string reason;
  const std::uint16_t port = launch.agent_store ? 0 : launch.port;
  // A process that is alone expects no other.
  bool good = launch.world == 1 || parts->listeners.open(launch.host, port, reason);
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
