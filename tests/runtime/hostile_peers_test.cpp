// Strangers and broken programs at the rendezvous: each case disturbs rank 0 before the other
// process joins and again during the run, which succeeds. Also a false rank 0.
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include "runtime/processes/messages.h"
#include "runtime/processes/sockets.h"
#include "tests/runtime/joined_ranks.h"
#include "tests/support/random_cases.h"

namespace piper::runtime {
namespace {

constexpr std::uint32_t kWorld = 2;

std::string frame(FrameKind kind, const std::string& body) {
  const auto size = static_cast<std::uint32_t>(body.size());
  return std::string(reinterpret_cast<const char*>(&size), sizeof size) + static_cast<char>(kind) +
         body;
}
constexpr Nonce kNonce = {1, 2, 3};
std::string opening() { return frame(FrameKind::open, encode(Opening{kNonce})); }
std::string hello(std::uint64_t rank, std::uint64_t world, const std::string& run = "",
                  const Proof& proof = {}) {
  return frame(FrameKind::hello,
               Body()
                   .add(run)
                   .add(rank)
                   .add(world)
                   .add("stranger")
                   .add(std::string_view(reinterpret_cast<const char*>(proof.data()), proof.size()))
                   .bytes());
}
std::string head(std::uint32_t size) {
  return std::string(reinterpret_cast<const char*>(&size), sizeof size) + '\0';
}

/// Connections to a port, which stay open until the end unless they are closed before.
class Stranger {
 public:
  explicit Stranger(std::uint16_t port) : port_(port) {}

  int connect() {
    std::string reason;
    bool again = true;
    int made = -1;
    while ((made = connect_to("127.0.0.1", port_, reason, again)) < 0)
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    connections_[made] = std::make_unique<Connection>(made, kMaxRendezvousBody);
    return made;
  }
  /// A connection that sends bytes.
  int say(const std::string& bytes) {
    const int made = connect();
    // Rank 0 may have closed it before all is sent.
    EXPECT_TRUE(::send(made, bytes.data(), bytes.size(), MSG_NOSIGNAL) >= 0 ||
                errno == ECONNRESET || errno == EPIPE);
    return made;
  }
  /// A connection with the hello of a process without a token, and further bytes behind it.
  int greet(std::uint64_t rank, std::uint64_t world, const std::string& run = "",
            const std::string& behind = "") {
    const int socket = say(opening());
    const auto found = read(socket, [](FrameKind kind) { return kind == FrameKind::nonce; });
    const auto answer = found ? decode_answer(found->second) : std::nullopt;
    EXPECT_TRUE(answer);
    if (!answer) return socket;
    const Claim claim{Role::process, static_cast<std::uint32_t>(rank), run, kNonce, answer->nonce};
    send_bytes(socket, hello(rank, world, run, prove("", claim)) + behind);
    return socket;
  }
  void leave(int socket) { connections_.erase(socket); }
  /// The kind of the first frame that comes back; nothing if the connection is closed.
  std::optional<FrameKind> answer(int socket) {
    const auto found = read(socket, [](FrameKind) { return true; });
    return found ? std::optional(found->first) : std::nullopt;
  }
  bool gets(int socket, FrameKind wanted) {
    return read(socket, [&](FrameKind kind) { return kind == wanted; }).has_value();
  }
  /// A connection that has taken a rank.
  int join(std::uint64_t rank, std::uint64_t world) {
    const int socket = greet(rank, world);
    EXPECT_TRUE(gets(socket, FrameKind::heard));
    return socket;
  }
  static void send_bytes(int socket, const std::string& bytes) {
    EXPECT_EQ(::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
  }

 private:
  /// The first frame that is wanted, of those that are not read yet; nothing if the connection is
  /// closed before.
  std::optional<std::pair<FrameKind, std::string>> read(
      int socket, const std::function<bool(FrameKind)>& wanted) {
    Connection& connection = *connections_.at(socket);
    FrameKind kind{};
    std::string body;
    for (;;) {
      while (connection.receive(kind, body)) {
        if (wanted(kind)) return std::pair(kind, body);
      }
      if (connection.closed()) return std::nullopt;
      connection.fill();
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }

  std::uint16_t port_;
  std::map<int, std::unique_ptr<Connection>> connections_;  // by socket
};

struct Case {
  const char* name;
  std::function<void(Stranger&)> act;
};

const std::vector<Case>& cases() {
  static const std::vector<Case> kCases = {
      {"ranks that no process has",
       [](Stranger& stranger) {
         for (const std::uint64_t rank :
              {std::uint64_t{2}, std::uint64_t{3}, std::uint64_t{0xFFFFFFFF},
               std::uint64_t{1} << 32, ~std::uint64_t{0}})
           stranger.greet(rank, kWorld);
       }},
      {"the rank of rank 0",
       [](Stranger& stranger) {
         EXPECT_EQ(stranger.answer(stranger.greet(0, kWorld)), FrameKind::refused);
       }},
      {"other worlds",
       [](Stranger& stranger) {
         for (const std::uint64_t world : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{3},
                                           std::uint64_t{1} << 33, ~std::uint64_t{0}})
           stranger.greet(1, world);
       }},
      {"another run",
       [](Stranger& stranger) {
         EXPECT_EQ(stranger.answer(stranger.greet(1, kWorld, "other\x1b[2J")), FrameKind::refused);
       }},
      {"huge lengths",
       [](Stranger& stranger) {
         for (const std::uint32_t size : {0xFFFFFFFFu, 0x7FFFFFFFu, 0x03FFFFF0u,
                                          static_cast<std::uint32_t>(kMaxHelloBody) + 1})
           stranger.say(head(size) + std::string(1 << 16, 'z'));
         stranger.say(
             opening() +
             frame(FrameKind::hello, Body().add(~std::uint64_t{0}).add(std::uint64_t{1}).bytes()));
       }},
      {"long texts",
       [](Stranger& stranger) { stranger.greet(1, kWorld, std::string(kMaxRunName + 1, 'r')); }},
      {"half a hello",
       [](Stranger& stranger) {
         const std::string whole = opening() + hello(1, kWorld);
         for (std::size_t size = 1; size < whole.size(); size += 5)
           stranger.say(whole.substr(0, size));
       }},
      {"half a hello, then gone",
       [](Stranger& stranger) {
         const std::string whole = opening() + hello(1, kWorld);
         for (std::size_t size = 1; size < whole.size(); size += 5)
           stranger.leave(stranger.say(whole.substr(0, size)));
       }},
      {"silence", [](Stranger& stranger) { stranger.connect(); }},
      {"many connections",
       [](Stranger& stranger) {
         for (int n = 0; n < 300; ++n) stranger.connect();
       }},
      {"garbage",
       [](Stranger& stranger) {
         test::Random random(7);
         for (int n = 0; n < 40; ++n) {
           std::string bytes(1 + random.below(300), '\0');
           for (char& byte : bytes) byte = static_cast<char>(random.next());
           if (random.chance(0.5)) bytes = head(static_cast<std::uint32_t>(bytes.size())) + bytes;
           stranger.say(bytes);
         }
       }},
      {"another protocol",
       [](Stranger& stranger) { stranger.say("GET / HTTP/1.1\r\n\r\n\xff\xff\xff\xff"); }},
      {"early close",
       [](Stranger& stranger) {
         for (int n = 0; n < 20; ++n) stranger.leave(stranger.connect());
       }},
      {"a hello, then gone",
       [](Stranger& stranger) { stranger.leave(stranger.say(hello(1, kWorld))); }},
      {"a hello without an opening", [](Stranger& stranger) { stranger.say(hello(1, kWorld)); }},
      {"an opening, then silence", [](Stranger& stranger) { stranger.say(opening()); }},
      {"an opening, and a hello that is guessed",
       [](Stranger& stranger) { stranger.say(opening() + hello(1, kWorld)); }},
      {"an opening twice", [](Stranger& stranger) { stranger.say(opening() + opening()); }},
      {"hello twice",
       [](Stranger& stranger) {
         stranger.answer(stranger.greet(5, kWorld, "", hello(1, kWorld)));
         stranger.greet(5, kWorld, "", opening());
       }},
      {"messages without a hello",
       [](Stranger& stranger) {
         for (int kind = 2; kind < 32; ++kind)
           stranger.say(frame(static_cast<FrameKind>(kind), encode(KeyValue{"1.any.0", "no"})));
       }},
      {"messages behind a hello",
       [](Stranger& stranger) {
         for (const FrameKind kind :
              {FrameKind::set, FrameKind::get, FrameKind::stop, FrameKind::started, FrameKind::bye,
               FrameKind::beat, FrameKind::report, FrameKind::value, FrameKind::stop_at}) {
           stranger.leave(stranger.say(opening() + hello(1, kWorld) + frame(kind, "")));
         }
       }},
      {"a failure behind a hello",
       [](Stranger& stranger) {
         stranger.leave(
             stranger.say(opening() + hello(1, kWorld) +
                          frame(FrameKind::fail,
                                encode(Failure{.code = kProcessLost, .message = "\x1b[31mred"}))));
       }},
  };
  return kCases;
}

void expect_printable(const Failure& failure) {
  for (const char byte : failure.message + failure.hint)
    EXPECT_GE(static_cast<unsigned char>(byte), 0x20) << failure.message;
}

class HostilePeers : public testing::TestWithParam<std::string> {};

/// With a token, and without one.
TEST_P(HostilePeers, NeverEndOrBlockARun) {
  for (const Case& hostile : cases()) {
    SCOPED_TRACE(hostile.name);
    const std::uint16_t port = free_port();
    GroupOptions options{.seconds = 20, .token = GetParam()};
    Stranger stranger(port);
    const auto use = [&](std::unique_ptr<ProcessGroup> group, const Failure& failure) {
      ASSERT_TRUE(group) << failure.message;
      const std::uint32_t rank = group->launch().rank;
      EXPECT_FALSE(group->agree({{"steps", "3"}}));
      if (rank == 1) group->send_bytes(Channel::parameters, "bytes");
      if (rank == 0) hostile.act(stranger);
      if (rank == 0) {
        EXPECT_EQ(group->receive_bytes(Channel::parameters, 1, 100), "bytes");
      }
      EXPECT_EQ(group->any(rank == 1), true);
      EXPECT_FALSE(group->failure()) << group->failure()->message;
      group->leave();
    };
    std::thread first([&] {
      Failure failure;
      GroupOptions of_first = options;
      of_first.on_notice = expect_printable;
      auto group = ProcessGroup::join(of_rank(0, kWorld, port), of_first, failure);
      use(std::move(group), failure);
    });
    hostile.act(stranger);
    Failure failure;
    auto group = ProcessGroup::join(of_rank(1, kWorld, port), options, failure);
    use(std::move(group), failure);
    first.join();
  }
}
INSTANTIATE_TEST_SUITE_P(Token, HostilePeers, testing::Values("", std::string(40, 't')));

/// Rank 0 may open few files, fewer than strangers connect.
TEST(BrokenPeers, MoreConnectionsThanFiles) {
  const std::uint16_t port = free_port();
  const pid_t child = fork();
  if (child == 0) {
    const rlimit few{64, 64};
    Failure failure;
    const bool limited = setrlimit(RLIMIT_NOFILE, &few) == 0;
    auto group = ProcessGroup::join(of_rank(0, kWorld, port), {.seconds = 20}, failure);
    const bool good = limited && group && !group->agree({});
    if (group) group->leave();
    group.reset();  // waits for rank 1, which `_exit` does not
    _exit(good ? 0 : 1);
  }
  Stranger stranger(port);
  for (int n = 0; n < 100; ++n) stranger.connect();
  Failure failure;
  {
    const auto group = ProcessGroup::join(of_rank(1, kWorld, port), {.seconds = 20}, failure);
    EXPECT_TRUE(group) << failure.message;
    const auto disagrees = group ? group->agree({}) : std::nullopt;
    EXPECT_FALSE(disagrees) << disagrees->message;
    if (group) group->leave();
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/// Processes that have a rank and break off before all have come: their ranks are free again,
/// whatever they sent.
TEST(BrokenPeers, ARankIsFreeAgainBeforeAllHaveCome) {
  const std::string last_words[] = {
      "",
      frame(FrameKind::fail, encode(Failure{.code = kProcessLost, .message = "\x1b[31mred"})),
      frame(FrameKind::set, encode(KeyValue{"k", "v"})),
      frame(FrameKind::bye, encode_count(3)),
      hello(1, 3),
      head(0xFFFFFFFF),
      frame(FrameKind::report, "")};
  const std::uint16_t port = free_port();
  std::vector<Failure> notices;
  const auto use = [](std::unique_ptr<ProcessGroup> group, const Failure& failure) {
    ASSERT_TRUE(group) << failure.message;
    EXPECT_FALSE(group->agree({}));
    group->leave();
  };
  const auto run = [&](std::uint32_t rank) {
    Failure failure;
    auto group = ProcessGroup::join(
        of_rank(rank, 3, port),
        {.seconds = 20, .on_notice = [&](const Failure& notice) { notices.push_back(notice); }},
        failure);
    use(std::move(group), failure);
  };
  std::thread first(run, 0);
  Stranger stranger(port);
  for (const std::string& words : last_words) {
    const int socket = stranger.join(1, 3);
    Stranger::send_bytes(socket, words);
    // A rank is given back when rank 0 has closed the connection.
    if (words.empty()) {
      stranger.leave(socket);
    } else {
      stranger.gets(socket, FrameKind::stop_at);
    }
  }
  std::thread second(run, 1), third(run, 2);
  for (std::thread* each : {&first, &second, &third}) each->join();
  EXPECT_EQ(notices.size(), std::size(last_words));
  for (const Failure& notice : notices) {
    EXPECT_EQ(notice.code, kProcessRefused);
    EXPECT_NE(notice.message.find("rank 1 (stranger at 127.0.0.1:"), std::string::npos)
        << notice.message;
    expect_printable(notice);
  }
}

/// The second of two processes with one rank ends at once and names both; rank 0 warns at once, and
/// says so again when it gives up.
TEST(BrokenPeers, TwoProcessesWithOneRankAreReported) {
  std::mutex mutex;
  std::vector<Failure> notices;
  std::vector<std::string> messages, notes;
  with_ranks(
      3,
      [&](std::uint32_t, std::unique_ptr<ProcessGroup> group, const Failure& failure) {
        EXPECT_FALSE(group);
        EXPECT_EQ(failure.code, kProcessesApart);
        const std::lock_guard lock(mutex);
        messages.push_back(failure.message);
        for (const Note& note : failure.notes) notes.push_back(note.text);
      },
      [](std::uint32_t rank, Launch& launch) { launch.rank = rank == 2 ? 1 : rank; }, 1,
      [&](const Failure& notice) { notices.push_back(notice); });
  std::sort(messages.begin(), messages.end());
  ASSERT_EQ(messages.size(), 3u);
  EXPECT_TRUE(messages[0].starts_with("after `1` seconds rank 2 of `3` has not connected"))
      << messages[0];
  EXPECT_EQ(messages[1], messages[0]);
  EXPECT_TRUE(messages[2].starts_with("two processes are rank 1: process ")) << messages[2];
  EXPECT_NE(messages[2].find(" at 127.0.0.1:"), std::string::npos) << messages[2];
  ASSERT_EQ(notices.size(), 1u);
  EXPECT_EQ(notices[0].code, kProcessRefused);
  EXPECT_NE(notices[0].message.find(messages[2]), std::string::npos) << notices[0].message;
  EXPECT_NE(std::find(notes.begin(), notes.end(), notices[0].message), notes.end());
}

/// The messages of a broken rank 0 to a process, and the message with which the process ends.
struct Broken {
  const char* name;
  std::string bytes;
  const char* message;
};

TEST(BrokenPeers, ARankZeroIsNotTrustedEither) {
  const std::string heard = frame(FrameKind::nonce, encode(Answer{})) +
                            frame(FrameKind::heard, encode(Heard{"rank\x1b[2J"}));
  const std::string here = heard + frame(FrameKind::all_here, "");
  const Broken broken[] = {
      {"garbage", std::string(100, '\xee'), "is not rank 0 of this run"},
      {"a frame too long", head(0xFFFFFFFF), "is not rank 0 of this run"},
      {"a refusal that is none", frame(FrameKind::refused, "no"), "is not rank 0 of this run"},
      {"half an answer", frame(FrameKind::heard, "rank 0"), "is not rank 0 of this run"},
      {"a value first", frame(FrameKind::value, encode(KeyValue{"k", "v"})),
       "is not rank 0 of this run"},
      {"garbage later", here + std::string(100, '\xee'), "sent bytes that are no message"},
      {"a number twice", heard + heard, "a message `nonce` that does not fit"},
      {"heard twice", heard + frame(FrameKind::heard, encode(Heard{"rank 0"})),
       "a message `heard` that does not fit"},
      {"half a list of states", here + frame(FrameKind::states, encode_count(3)),
       "a message `states` that does not fit"},
      {"states of no process",
       here + frame(FrameKind::states, encode(std::vector<ProcessState>{{.process = kWorld}})),
       "a message `states` that does not fit"},
      {"a beat with more", here + frame(FrameKind::beat, "x"),
       "a message `beat` that does not fit"},
      {"a message for rank 0", here + frame(FrameKind::set, encode(KeyValue{"k", "v"})),
       "a message `set` that does not fit"},
      {"a value that nobody asked for", here + frame(FrameKind::value, encode(KeyValue{"k", "v"})),
       "a message `value` that does not fit"},
      {"half a value", here + frame(FrameKind::value, encode(KeyValue{"k", "v"}).substr(0, 12)),
       "a message `value` that does not fit"},
      {"half a failure",
       here + frame(FrameKind::failed, encode(Failure{.message = "m"}).substr(0, 20)),
       "a message `failed` that does not fit"},
      {"a stop that nobody prepared", here + frame(FrameKind::stop_at, encode_count(7)),
       "a message `stop_at` that does not fit"},
      {"a report", here + frame(FrameKind::report, encode(ForwardedReport{0, {1, "x"}})),
       "a message `report` that does not fit"},
  };
  for (const Broken& each : broken) {
    SCOPED_TRACE(each.name);
    Listeners listeners;
    std::string reason;
    ASSERT_TRUE(listeners.open("127.0.0.1", 0, reason)) << reason;
    std::thread stranger([&] {
      int made = -1;
      while ((made = accept(listeners.sockets()[0], nullptr, nullptr)) < 0)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      EXPECT_EQ(::send(made, each.bytes.data(), each.bytes.size(), MSG_NOSIGNAL),
                static_cast<ssize_t>(each.bytes.size()));
      char ignored[256];
      while (recv(made, ignored, sizeof ignored, 0) > 0) {}
      close(made);
    });
    Failure failure;
    {
      const auto group =
          ProcessGroup::join(of_rank(1, kWorld, listeners.port()), {.seconds = 20}, failure);
      if (group) {
        EXPECT_FALSE(group->get("a key"));
        failure = group->failure().value();
      }
    }
    EXPECT_NE(failure.message.find(each.message), std::string::npos) << failure.message;
    expect_printable(failure);
    stranger.join();
  }
}

/// A process that joined and then sends a message that does not fit ends the run, and is named.
TEST(BrokenPeers, AProcessThatIsBrokenEndsTheRun) {
  constexpr std::uint64_t kPiece = piece_number(Channel::parameters, 0);
  const std::pair<const char*, std::string> broken[] = {
      {"`set` that does not fit", frame(FrameKind::set, "x")},
      {"`hello` that does not fit", hello(1, kWorld)},
      {"`all_here` that does not fit", frame(FrameKind::all_here, "")},
      {"`open` that does not fit", opening()},
      {"`beat` that does not fit", frame(FrameKind::beat, encode_count(kMaxPositions + 1))},
      {"`begun` that does not fit", frame(FrameKind::started, encode_count(kMaxCount + 1))},
      {"`get` that does not fit", frame(FrameKind::get, encode_key(std::string(kMaxKey + 1, 'k')))},
      {"`report` that does not fit", frame(FrameKind::report, encode_count(1))},
      {"bytes that are no message", head(0xFFFFFFFF)},
      {"rank 1 sent bytes that do not fit",
       frame(FrameKind::report, encode(Report{kPiece, encode(Piece{0, std::string(1000, 'b')})}))},
      {"rank 1 sent bytes that do not fit",
       frame(FrameKind::report, encode(Report{kPiece, encode(Piece{kMaxCount, "b"})}))},
      {"rank 1 sent bytes that do not fit", frame(FrameKind::report, encode(Report{kPiece, "b"}))},
      {"rank 1 sent pieces of bytes in another order",
       frame(FrameKind::report, encode(Report{kPiece + 1, encode(Piece{0, "b"})}))},
      {"rank 1 sent pieces of bytes in another order",  // that of no channel
       frame(FrameKind::report,
             encode(Report{kFirstPiece + kChannels * kMaxPieces, encode(Piece{0, "b"})}))},
  };
  for (const auto& [message, bytes] : broken) {
    SCOPED_TRACE(message);
    const std::uint16_t port = free_port();
    Stranger stranger(port);
    std::thread other([&, &bytes = bytes] {
      const int socket = stranger.join(1, kWorld);
      EXPECT_TRUE(stranger.gets(socket, FrameKind::all_here));
      Stranger::send_bytes(socket, bytes);
    });
    Failure failure;
    const auto group = ProcessGroup::join(of_rank(0, kWorld, port), {.seconds = 20}, failure);
    if (group) {  // else the message arrived before `join` returned
      EXPECT_FALSE(group->receive_bytes(Channel::parameters, 1, 100));
      failure = group->failure().value();
    }
    EXPECT_EQ(failure.code, kBadMessage);
    EXPECT_NE(failure.message.find(message), std::string::npos) << failure.message;
    other.join();
  }
}

}  // namespace
}  // namespace piper::runtime
