#include "runtime/processes/process_group.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <set>
#include <thread>

#include "runtime/processes/handshake.h"
#include "runtime/processes/messages.h"
#include "runtime/processes/peer_text.h"
#include "runtime/processes/reach_rank_zero.h"
#include "runtime/processes/refusals.h"
#include "runtime/processes/rendezvous.h"
#include "runtime/processes/silence.h"

namespace piper::runtime {

namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds kLook(100);
// After a failure that another process may have caused.
constexpr std::chrono::seconds kCauseWithin(2);
constexpr std::chrono::seconds kStatesWithin(2);  // after a failure of this process
constexpr std::chrono::seconds kHeardWithin(12);  // longer than the rendezvous waits for a hello
// The process that names the missing ones is the first to give up.
constexpr std::chrono::seconds kAfter(5);
constexpr std::size_t kMaxWaitingReports = std::size_t{1} << 16;  // of a process
// of data that is larger than a frame
constexpr std::size_t kPieceBytes = std::size_t{8} << 20;

Clock::duration span(double seconds) {
  return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

Failure bad_message_of(const Launch& launch, std::uint32_t from, const std::string& message) {
  return {.code = kBadMessage,
          .message = process_text(launch, from) + " sent " + message,
          .hint = "all processes of a run need one `piper`, the same files and the same options"};
}

}  // namespace

struct ProcessGroup::Parts {
  Parts(const Launch& launch, const GroupOptions& options)
      : launch(launch),
        heartbeats(options.heartbeats),
        has_token(!options.token.empty()),
        handshake(options.token, launch),
        wakes(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}
  ~Parts() { close(wakes); }

  const Launch launch;
  const Heartbeats heartbeats;
  const bool has_token;
  const ProcessEnd handshake;
  std::unique_ptr<Rendezvous> rendezvous;  // rank 0's
  std::unique_ptr<Connection> connection;  // owned by the thread, except for `send`
  std::thread thread;
  const int wakes;

  std::mutex mutex;
  std::condition_variable changed;
  std::vector<std::pair<FrameKind, std::string>> to_send;
  std::optional<Failure> failed;
  std::string first_process;  // the process of rank 0
  std::function<std::vector<RankPosition>()> positions;
  std::vector<ProcessState> states;
  Silence silence;  // of rank 0
  Clock::time_point beats_at = {};
  std::map<std::string, std::string> values;
  std::set<std::string> asked;  // keys without an answer yet
  std::map<std::pair<std::uint32_t, std::uint64_t>, std::string> reports;
  struct Sender {
    // By channel: pieces that have arrived, and those that `receive_bytes` has returned.
    std::array<std::uint64_t, kChannels> arrived{}, received{};
    // Numbers of steps not taken yet.
    std::size_t waiting = 0;
  };
  std::map<std::uint32_t, Sender> senders;      // on rank 0
  std::array<std::uint64_t, kChannels> sent{};  // pieces, by channel
  std::uint64_t agreements = 0, questions = 0;
  bool proven = false, heard = false, all_here = false, ends = false, left = false, holds = false,
       asked_to_stop = false;
  bool lost = false;  // the connection
  std::uint64_t started = 0;
  std::optional<std::uint64_t> stop_at;
  std::atomic<bool> has_failed{false};

  void send(FrameKind kind, std::string body) {
    const std::lock_guard lock(mutex);
    send_locked(kind, std::move(body));
  }
  void send_locked(FrameKind kind, std::string body) {
    to_send.emplace_back(kind, std::move(body));
    const std::uint64_t one = 1;
    // The thread also looks by itself.
    [[maybe_unused]] const ssize_t written = write(wakes, &one, sizeof one);
  }

  /// A key as sent.
  std::string whole_key(const std::string& key) const {
    return std::to_string(agreements) + "." + key;
  }

  void keep_failure(Failure failure) {
    if (!failed) failed = std::move(failure);
    has_failed.store(true);
  }

  /// Sends the failure to the other processes, too.
  void fail_all(const Failure& failure) {
    to_send.emplace_back(FrameKind::fail, encode(failure));
    keep_failure(failure);
  }

  void run() {
    for (;;) {
      pollfd files[] = {{connection->socket(),
                         static_cast<short>(POLLIN | (connection->sends() ? POLLOUT : 0)), 0},
                        {wakes, POLLIN, 0}};
      poll(files, 2, static_cast<int>(kLook.count()));
      std::uint64_t ignored = 0;
      while (read(wakes, &ignored, sizeof ignored) > 0) {}
      if (connection->fill()) silence.end();
      const std::lock_guard lock(mutex);
      FrameKind kind{};
      std::string body;
      while (connection->receive(kind, body)) {
        if ((!failed || kind == FrameKind::states) && !take(kind, body))
          fail_all(bad_message(kind));
      }
      add_beat();
      for (const auto& [sent, text] : to_send) connection->send(sent, text);
      to_send.clear();
      connection->flush();
      if (connection->closed()) {
        if (!left)
          keep_failure(heard && connection->broken() ? bad_message("bytes that are no message")
                                                     : no_answer());
        lost = true;
      } else if (is_silent()) {
        if (!left) keep_failure(no_beat());
        lost = true;
      }
      changed.notify_all();
      if (lost) return;
      if (!ends || connection->sends()) continue;
      // A socket that is closed with unread bytes resets the connection, and what rank 0 has not
      // received yet is lost: rank 0 closes first, once it has read everything.
      if (!heard) return;
      connection->end();
    }
  }

  void add_beat() {
    if (!heard || left || Clock::now() < beats_at) return;
    beats_at = Clock::now() + span(heartbeats.every);
    to_send.emplace_back(FrameKind::beat,
                         encode(positions ? positions() : std::vector<RankPosition>()));
  }

  /// Rank 0 lives in this process if it has the rendezvous.
  bool is_silent() { return heard && rendezvous == nullptr && silence.lasts(heartbeats.limit); }

  Failure no_beat() const {
    return {.code = kProcessLost,
            .message =
                "rank 0 (" + first_process + ") does not answer: " + silence_text(heartbeats.limit),
            .hint = silence_hint()};
  }

  Failure no_answer() const {
    if (!heard) {
      const std::string address = "`" + launch.host + ":" + std::to_string(launch.port) + "`";
      if (has_token && !proven)
        return {
            .code = kProcessesApart,
            .message = "the process that listens at " + address +
                       " has not proved that it is rank 0 of this run",
            .hint =
                "all processes of a run need one token and one `PIPER_RUN`, and a `MASTER_PORT` that no other run has"};
      return {.code = kProcessesApart,
              .message = "the process that listens at " + address + " is not rank 0 of this run",
              .hint = "set `MASTER_PORT` to a port of its own, the same for all processes"};
    }
    return {.code = kProcessLost,
            .message = "rank 0 (" + first_process + ") is gone: its connection was closed",
            .hint = "its own output, or the log of its machine, says why"};
  }

  Failure bad_message(const std::string& message) const {
    return {
        .code = kBadMessage,
        .message = process_text(launch, launch.rank) + " does not understand rank 0 (" +
                   first_process + "): it sent " + message,
        .hint =
            "all processes of a run need one `piper`; a program that is not rank 0 may listen at `MASTER_ADDR` and `MASTER_PORT`"};
  }
  Failure bad_message(FrameKind kind) const {
    return heard ? bad_message(std::string("a message `") + name_of(kind) + "` that does not fit")
                 : no_answer();
  }

  /// False if the message does not fit.
  bool take(FrameKind kind, const std::string& body) {
    // Rank 0 first shows that it belongs to the run, then whether this process does.
    if (!proven) return kind == FrameKind::nonce && take_answer(body);
    if (!heard && kind != FrameKind::heard && kind != FrameKind::refused) return false;
    switch (kind) {
      case FrameKind::heard: {
        auto answer = decode_heard(body);
        if (!answer || std::exchange(heard, true)) return false;
        first_process = std::move(answer->process);
        return true;
      }
      case FrameKind::beat: return body.empty();
      case FrameKind::states: {
        auto found = decode_states(body, launch.world);
        if (found) states = std::move(*found);
        return found.has_value();
      }
      case FrameKind::all_here:
        if (!body.empty() || std::exchange(all_here, true)) return false;
        connection->set_max_body(kMaxBody);
        return true;
      case FrameKind::refused:
      case FrameKind::failed: {
        auto failure = decode_failure(body);
        if (!failure) return false;
        heard = true;
        keep_failure(std::move(*failure));
        return true;
      }
      case FrameKind::value: {
        auto pair = decode_key_value(body);
        if (!pair || asked.erase(pair->key) == 0) return false;
        values[std::move(pair->key)] = std::move(pair->value);
        return true;
      }
      case FrameKind::hold:
        if (!body.empty() || std::exchange(holds, true)) return false;
        send_locked(FrameKind::started, encode_count(started));
        return true;
      case FrameKind::stop_at: {
        const auto count = decode_count(body);
        // It is the count of the furthest process.
        if (!count || !holds || stop_at || *count < started) return false;
        stop_at = count;
        return true;
      }
      case FrameKind::report: return take_report(body);
      case FrameKind::open:
      case FrameKind::hello:
      case FrameKind::nonce:
      case FrameKind::set:
      case FrameKind::get:
      case FrameKind::fail:
      case FrameKind::stop:
      case FrameKind::started:
      case FrameKind::bye: return false;
    }
    return false;
  }

  bool take_answer(const std::string& body) {
    const auto answer = decode_answer(body);
    const auto hello = answer ? handshake.take_answer(*answer) : std::nullopt;
    if (hello) send_locked(FrameKind::hello, encode(*hello));
    return proven = hello.has_value();
  }

  /// Pieces of a channel arrive in order.
  bool take_report(const std::string& body) {
    auto report = launch.rank == 0 ? decode_forwarded(body, launch.world) : std::nullopt;
    if (!report) return false;
    Sender& sender = senders[report->from];
    const std::uint64_t number = report->report.number;
    if (number >= kFirstPiece ? !is_next_piece(sender, number)
                              : sender.waiting++ == kMaxWaitingReports) {
      fail_all(bad_message_of(launch, report->from,
                              number >= kFirstPiece ? "pieces of bytes in another order"
                                                    : "numbers of more steps than rank 0 keeps"));
      return true;
    }
    reports[{report->from, number}] = std::move(report->report.bytes);
    return true;
  }

  static bool is_next_piece(Sender& sender, std::uint64_t number) {
    const auto channel = channel_of(number);
    return channel &&
           number == piece_number(*channel, sender.arrived[static_cast<std::size_t>(*channel)]++);
  }

  /// Waits until the condition holds, the run has failed, or the time is over (false).
  template <typename Condition>
  bool wait_until(std::unique_lock<std::mutex>& lock, Clock::time_point until,
                  const std::function<bool()>& stopped, const Condition& condition) {
    while (!condition() && !failed) {
      if (Clock::now() >= until || (stopped && stopped())) return false;
      changed.wait_for(lock, kLook);
    }
    return true;
  }
};

ProcessGroup::ProcessGroup(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}

std::unique_ptr<ProcessGroup> ProcessGroup::join(const Launch& given, const GroupOptions& options,
                                                 Failure& failure) {
  Launch launch = given;
  launch.host = meeting_host(given);
  if (auto missing = missing_token(launch, options)) {
    failure = std::move(*missing);
    return nullptr;
  }
  std::unique_ptr<Rendezvous> rendezvous;
  if (launch.rank == 0 &&
      !(rendezvous = Rendezvous::open(launch, {options.seconds, options.token, options.heartbeats},
                                      failure)))
    return nullptr;
  const auto port = find_port(given, options, rendezvous.get(), failure);
  if (!port) return nullptr;
  launch.port = *port;
  const Clock::time_point until = Clock::now() + span(options.seconds);
  bool stopped = false;
  const int socket = rendezvous ? rendezvous->take_own_socket()
                                : reach_rank_zero(launch, options, until, failure, stopped);
  if (socket < 0) return nullptr;
  std::unique_ptr<ProcessGroup> made(new ProcessGroup(std::make_unique<Parts>(launch, options)));
  Parts& parts = *made->parts_;
  parts.rendezvous = std::move(rendezvous);
  parts.connection = std::make_unique<Connection>(socket, kMaxRendezvousBody);
  if (parts.rendezvous) {
    parts.proven = parts.heard = true;
    parts.first_process = this_process();
  } else {
    parts.send(FrameKind::open, encode(parts.handshake.opening()));
  }
  parts.thread = std::thread([&parts] { parts.run(); });
  std::unique_lock lock(parts.mutex);
  if (!parts.wait_until(lock, Clock::now() + kHeardWithin, options.stopped,
                        [&] { return parts.heard; }) &&
      !(options.stopped && options.stopped()))
    parts.keep_failure(parts.no_answer());
  const auto all_here = [&] {
    if (parts.rendezvous && options.on_notice)
      std::ranges::for_each(parts.rendezvous->take_notices(), options.on_notice);
    return parts.all_here;
  };
  const bool came = parts.wait_until(lock, until + kAfter, options.stopped, all_here);
  if (came && !parts.failed) {
    lock.unlock();
    return made;
  }
  stopped = !parts.failed && options.stopped && options.stopped();
  if (!stopped) {
    failure = parts.failed
                  ? *parts.failed
                  : Failure{.code = kProcessesApart,
                            .message = "rank 0 did not say within `" +
                                       std::to_string(static_cast<long long>(options.seconds)) +
                                       "` seconds that all processes have joined"};
  }
  lock.unlock();
  return nullptr;
}

ProcessGroup::~ProcessGroup() {
  Parts& parts = *parts_;
  bool notified = false;
  {
    const std::lock_guard lock(parts.mutex);
    notified = parts.left || parts.failed;
  }
  if (!notified) {
    fail({.code = kProcessLost,
          .message = process_text(parts.launch, parts.launch.rank) + " (" + this_process() +
                     ") has ended before the run was over",
          .hint = "its own output has the reason; without one it was interrupted"});
  }
  {
    const std::lock_guard lock(parts.mutex);
    parts.left = parts.ends = true;
    const std::uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = write(parts.wakes, &one, sizeof one);
  }
  if (parts.thread.joinable()) parts.thread.join();
  parts.connection.reset();
  parts.rendezvous.reset();
}

const Launch& ProcessGroup::launch() const { return parts_->launch; }

void ProcessGroup::set(const std::string& key, const std::string& value) {
  const std::lock_guard lock(parts_->mutex);
  parts_->send_locked(FrameKind::set, encode(KeyValue{parts_->whole_key(key), value}));
}

std::optional<std::string> ProcessGroup::get(const std::string& key) {
  Parts& parts = *parts_;
  std::unique_lock lock(parts.mutex);
  const std::string whole = parts.whole_key(key);
  if (!parts.values.contains(whole) && parts.asked.insert(whole).second)
    parts.send_locked(FrameKind::get, encode_key(whole));
  parts.wait_until(lock, Clock::time_point::max(), {},
                   [&] { return parts.values.contains(whole); });
  if (parts.failed) return std::nullopt;
  return parts.values[whole];
}

std::optional<bool> ProcessGroup::any(bool says) {
  const Launch& launch = parts_->launch;
  const std::string word = "any." + std::to_string(parts_->questions++), own = says ? "yes" : "no";
  if (launch.rank != 0) {
    set(word + "." + std::to_string(launch.rank), own);
  } else {
    bool found = says;
    for (std::uint32_t rank = 1; rank < launch.world; ++rank) {
      const auto said = get(word + "." + std::to_string(rank));
      if (!said) return std::nullopt;
      found |= *said == "yes";
    }
    set(word, found ? "yes" : "no");
  }
  const auto answer = get(word);
  return answer ? std::optional(*answer == "yes") : std::nullopt;
}

std::optional<Failure> ProcessGroup::agree(
    const std::vector<std::pair<std::string, std::string>>& facts) {
  const Launch& launch = parts_->launch;
  {
    const std::lock_guard lock(parts_->mutex);
    ++parts_->agreements;
  }
  // A late process would find no other if they have already ended over a difference.
  if (!any(false)) return failure();
  for (const auto& [name, value] : facts) {
    const std::string key = "fact." + name;
    if (launch.rank == 0) {
      set(key, value);
      continue;
    }
    const auto first = get(key);
    if (!first) return failure();
    if (*first == value) continue;
    Failure differs{
        .code = kProgramsDiffer,
        .message = process_text(launch, launch.rank) + " has other " + name + " than rank 0: `" +
                   value + "` and `" + peer_text(*first) + "`",
        .hint =
            "all processes of a run need one `piper`, the same files, and the same `-D` and options"};
    fail(differs);
    return differs;
  }
  return any(false) ? std::nullopt : failure();
}

std::optional<Failure> ProcessGroup::failure() const {
  const std::lock_guard lock(parts_->mutex);
  return parts_->failed;
}

bool ProcessGroup::failed() const { return parts_->has_failed.load(); }

void ProcessGroup::fail(const Failure& failure) {
  const std::lock_guard lock(parts_->mutex);
  if (parts_->failed) return;
  parts_->send_locked(FrameKind::fail, encode(failure));
  parts_->keep_failure(failure);
}

Failure ProcessGroup::first_cause(const Failure& own) {
  std::unique_lock lock(parts_->mutex);
  parts_->wait_until(lock, Clock::now() + kCauseWithin, {}, [] { return false; });
  if (parts_->failed) return *parts_->failed;
  parts_->send_locked(FrameKind::fail, encode(own));
  parts_->keep_failure(own);
  return own;
}

void ProcessGroup::report_positions(std::function<std::vector<RankPosition>()> positions) {
  const std::lock_guard lock(parts_->mutex);
  parts_->positions = std::move(positions);
}

std::vector<ProcessState> ProcessGroup::last_states() {
  std::unique_lock lock(parts_->mutex);
  if (parts_->failed)
    parts_->changed.wait_for(lock, kStatesWithin,
                             [&] { return !parts_->states.empty() || parts_->lost; });
  return parts_->states;
}

ProcessGroup::Begin ProcessGroup::begin_step() {
  const std::lock_guard lock(parts_->mutex);
  if (parts_->stop_at && parts_->started >= *parts_->stop_at) return Begin::no;
  if (parts_->holds && !parts_->stop_at) return Begin::wait;
  ++parts_->started;
  return Begin::yes;
}

void ProcessGroup::request_stop() {
  const std::lock_guard lock(parts_->mutex);
  if (!std::exchange(parts_->asked_to_stop, true)) parts_->send_locked(FrameKind::stop, {});
}

void ProcessGroup::send_report(std::uint64_t number, const std::string& bytes) {
  parts_->send(FrameKind::report, encode(Report{number, bytes}));
}

std::optional<std::string> ProcessGroup::take_report(std::uint32_t from, std::uint64_t number) {
  const std::lock_guard lock(parts_->mutex);
  auto node = parts_->reports.extract({from, number});
  if (node) --parts_->senders[from].waiting;
  return node ? std::optional(std::move(node.mapped())) : std::nullopt;
}

void ProcessGroup::send_bytes(Channel channel, std::string_view bytes) {
  const std::lock_guard lock(parts_->mutex);
  std::uint64_t& sent = parts_->sent[static_cast<std::size_t>(channel)];
  do {
    const std::string_view piece = bytes.substr(0, kPieceBytes);
    bytes.remove_prefix(piece.size());
    parts_->send_locked(FrameKind::report,
                        encode(Report{piece_number(channel, sent++),
                                      encode(Piece{bytes.size(), std::string(piece)})}));
  } while (!bytes.empty());
}

std::optional<std::string> ProcessGroup::receive_bytes(Channel channel, std::uint32_t from,
                                                       std::uint64_t max_bytes) {
  std::unique_lock lock(parts_->mutex);
  std::uint64_t& received = parts_->senders[from].received[static_cast<std::size_t>(channel)];
  std::string bytes;
  std::optional<std::uint64_t> remaining;
  do {
    const std::pair key(from, piece_number(channel, received));
    parts_->wait_until(lock, Clock::time_point::max(), {},
                       [&] { return parts_->reports.contains(key); });
    if (parts_->failed) return std::nullopt;
    const auto piece = decode_piece(parts_->reports.extract(key).mapped());
    ++received;
    const bool fits = piece && piece->remaining <= max_bytes &&
                      piece->bytes.size() <= max_bytes - piece->remaining &&
                      (!remaining || piece->bytes.size() + piece->remaining == *remaining) &&
                      (piece->remaining == 0 || !piece->bytes.empty());
    if (!fits) {
      lock.unlock();
      fail_message(from, "bytes that do not fit");
      return std::nullopt;
    }
    bytes += piece->bytes;
    remaining = piece->remaining;
  } while (*remaining > 0);
  return bytes;
}

Failure ProcessGroup::fail_message(std::uint32_t from, const std::string& message) {
  Failure failure = bad_message_of(parts_->launch, from, message);
  fail(failure);
  return failure;
}

void ProcessGroup::leave() {
  const std::lock_guard lock(parts_->mutex);
  if (parts_->failed || parts_->left) return;
  parts_->left = true;
  parts_->send_locked(FrameKind::bye, encode_count(parts_->started));
}

}  // namespace piper::runtime
