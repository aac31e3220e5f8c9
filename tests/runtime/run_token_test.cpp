// The token of a run: where it comes from, what its proofs are worth, and what strangers get from a
// rendezvous that has one: neither a rank nor a word.
#include "runtime/processes/run_token.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <thread>

#include "runtime/processes/handshake.h"
#include "runtime/processes/sockets.h"
#include "tests/runtime/joined_ranks.h"
#include "tests/support/random_cases.h"
#include "tests/support/temporary_folder.h"

namespace piper::runtime {
namespace {

using testing::HasSubstr;
using testing::Not;

const std::string kToken(40, 't'), kOther(40, 'o');

TEST(RunToken, ComesFromAVariableOrAFile) {
  const test::TemporaryFolder folder;
  const auto file = [&](const char* name, const std::string& text, mode_t mode) {
    folder.write(name, text);
    const std::string path = (folder.path() / name).string();
    EXPECT_EQ(chmod(path.c_str(), mode), 0);
    return path;
  };
  EXPECT_EQ(read_run_token({}).token, "");
  EXPECT_EQ(read_run_token({{kTokenVariable, kToken}}).token, kToken);
  EXPECT_EQ(read_run_token({{kTokenFileVariable, file("good", kToken + "\n", 0600)}}).token,
            kToken);
  EXPECT_EQ(read_run_token({{kTokenFileVariable, file("old", kToken, 0400)}}).token, kToken);

  const std::pair<Environment, const char*> refused[] = {
      {{{kTokenVariable, "short"}},
       "the token in the environment variable `PIPER_RUN_TOKEN` has `5` characters, and a token has 32 to 256"},
      {{{kTokenVariable, std::string(257, 't')}}, "has `257` characters"},
      {{{kTokenVariable, kToken + " t"}}, "has characters that are not printable, or spaces"},
      {{{kTokenVariable, kToken}, {kTokenFileVariable, "f"}}, "are both set"},
      {{{kTokenFileVariable, "/no/such/file"}},
       "cannot be read from the file `/no/such/file`: No such"},
      {{{kTokenFileVariable, folder.path().string()}}, "is no regular file"},
      {{{kTokenFileVariable, file("group", kToken, 0640)}},
       "other users may read or change the file"},
      {{{kTokenFileVariable, file("all", kToken, 0604)}},
       "other users may read or change the file"},
      {{{kTokenFileVariable, file("long", std::string(5000, 't'), 0600)}},
       "characters, and a token"},
      {{{kTokenFileVariable, file("empty", "\n", 0600)}}, "has `0` characters"},
      {{{kTokenFileVariable, file("lines", kToken + "\n" + kToken, 0600)}}, "not printable"},
  };
  for (const auto& [environment, message] : refused) {
    const RunTokenRead read = read_run_token(environment);
    ASSERT_TRUE(read.failure) << message;
    EXPECT_EQ(read.failure->code, kBadToken);
    EXPECT_THAT(read.failure->message, HasSubstr(message));
    EXPECT_THAT(read.failure->message + read.failure->hint, Not(HasSubstr(kToken)));
    EXPECT_EQ(read.token, "");
  }
  const std::string pipe = (folder.path() / "pipe").string();
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_THAT(read_run_token({{kTokenFileVariable, pipe}}).failure->message,
              HasSubstr("is no regular file"));
}

TEST(RunToken, RandomOnesDiffer) {
  EXPECT_EQ(random_run_token().size(), 64u);
  EXPECT_NE(random_run_token(), random_run_token());
  EXPECT_EQ(read_run_token({{kTokenVariable, random_run_token()}}).failure, std::nullopt);
}

/// A proof holds for one role, rank, run and pair of numbers.
TEST(RunToken, AProofHoldsForOneClaim) {
  const Claim claim{Role::process, 3, "job", Nonce{1}, Nonce{2}};
  const Proof proof = prove(kToken, claim);
  EXPECT_TRUE(same_proof(proof, prove(kToken, claim)));
  EXPECT_FALSE(same_proof(proof, prove(kOther, claim)));
  EXPECT_FALSE(same_proof(proof, prove("", claim)));
  const Claim different[] = {
      {Role::rank_zero, 3, "job", Nonce{1}, Nonce{2}},
      {Role::process, 2, "job", Nonce{1}, Nonce{2}},
      {Role::process, 3, "joc", Nonce{1}, Nonce{2}},
      {Role::process, 3, "", Nonce{1}, Nonce{2}},
      {Role::process, 3, "job", Nonce{2}, Nonce{2}},
      {Role::process, 3, "job", Nonce{2}, Nonce{1}},
  };
  for (const Claim& other : different) EXPECT_FALSE(same_proof(proof, prove(kToken, other)));
}

/// Both ends of the handshake, with tokens of their own: whether rank 0 takes the process.
bool recognised(const std::string& of_process, const std::string& of_rank_zero,
                const std::string& run = "job") {
  const ProcessEnd process(of_process, {.rank = 1, .world = 2, .run = run});
  RankZeroEnd rank_zero;
  const auto answer = rank_zero.take_opening(of_rank_zero, "job", encode(process.opening()));
  const auto hello = process.take_answer(*answer);
  return hello && rank_zero.proves(of_rank_zero, *hello);
}

TEST(Handshake, NeedsOneTokenAtBothEnds) {
  EXPECT_TRUE(recognised("", ""));
  EXPECT_TRUE(recognised(kToken, kToken));
  EXPECT_FALSE(recognised(kToken, kOther));
  EXPECT_FALSE(recognised(kToken, ""));
  EXPECT_FALSE(recognised("", kToken));
  EXPECT_FALSE(recognised(kToken, kToken, "another run"));
}

/// A process says nothing of itself to a rank 0 that has another token.
TEST(Handshake, AFalseRankZeroGetsNoHello) {
  const ProcessEnd process(kToken, {.rank = 1, .world = 2, .run = "job"});
  RankZeroEnd stranger;
  const auto answer = stranger.take_opening(kOther, "job", encode(process.opening()));
  EXPECT_FALSE(process.take_answer(*answer));
  EXPECT_FALSE(process.take_answer(Answer{}));
}

/// Damaged messages never make rank 0 take a process, or a process take rank 0.
TEST(Handshake, DamagedMessagesProveNothing) {
  test::for_each_case(2000, [](test::Random& random) {
    const auto damage = [&](std::string body) {
      const std::size_t at = random.below(body.size());
      switch (random.below(3)) {
        case 0: return body.substr(0, at);
        case 1: return body.insert(at, 1, static_cast<char>(random.next()));
        default: body[at] = static_cast<char>(body[at] ^ (1 << random.below(8))); return body;
      }
    };
    const ProcessEnd process(kToken, {.rank = 1, .world = 2, .run = "job"});
    RankZeroEnd rank_zero;
    std::string opening = encode(process.opening());
    const std::uint64_t damaged = random.below(3);
    if (damaged == 0) opening = damage(opening);
    const auto answer = rank_zero.take_opening(kToken, "job", opening);
    if (!answer) return;
    const auto heard = decode_answer(damaged == 1 ? damage(encode(*answer)) : encode(*answer));
    const auto hello = heard ? process.take_answer(*heard) : std::nullopt;
    EXPECT_EQ(hello.has_value(), damaged == 2);
    if (!hello) return;
    const auto said = decode_hello(damage(encode(*hello)));
    // The name of the process and the size of the world are checked by their contents.
    if (said && rank_zero.proves(kToken, *said)) {
      EXPECT_EQ(said->rank, 1u);
      EXPECT_EQ(said->run, "job");
    }
  });
}

/// A hello of another connection gets no rank; on its own connection it does.
TEST(Handshake, AReplayedHelloProvesNothing) {
  const ProcessEnd process(kToken, {.rank = 1, .world = 2, .run = "job"});
  RankZeroEnd first, second;
  const auto answer = first.take_opening(kToken, "job", encode(process.opening()));
  const auto hello = process.take_answer(*answer);
  ASSERT_TRUE(hello);
  EXPECT_TRUE(second.take_opening(kToken, "job", encode(process.opening())));
  EXPECT_FALSE(second.proves(kToken, *hello));
  EXPECT_FALSE(RankZeroEnd().proves(kToken, *hello));
  EXPECT_TRUE(first.proves(kToken, *hello));
  EXPECT_FALSE(first.take_opening(kToken, "job", encode(process.opening())));
}

std::string frame(FrameKind kind, const std::string& body) {
  const auto size = static_cast<std::uint32_t>(body.size());
  return std::string(reinterpret_cast<const char*>(&size), sizeof size) + static_cast<char>(kind) +
         body;
}

/// All that rank 0 sends within a short time to a connection that sends `words`, and then a hello
/// with the proof of another token.
std::string words_for_a_stranger(std::uint16_t port, const std::string& words, bool says_hello) {
  std::string reason, heard;
  bool again = true;
  int socket = -1;
  while ((socket = connect_to("127.0.0.1", port, reason, again)) < 0)  // until rank 0 listens
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  EXPECT_GE(send(socket, words.data(), words.size(), MSG_NOSIGNAL), 0);
  for (int looks = 0; looks < 2; ++looks) {
    pollfd file{socket, POLLIN, 0};
    char bytes[4096];
    if (poll(&file, 1, 300) != 1) break;
    const ssize_t count = recv(socket, bytes, sizeof bytes, 0);
    if (count <= 0) break;
    heard.append(bytes, static_cast<std::size_t>(count));
    const auto answer = heard.size() > 5 ? decode_answer(heard.substr(5)) : std::nullopt;
    if (!says_hello || !answer) continue;
    const Proof proof = prove(kOther, {Role::process, 1, "secret-run", Nonce{}, answer->nonce});
    const std::string hello =
        frame(FrameKind::hello, encode(Hello{"secret-run", 1, 2, "p", proof}));
    EXPECT_GE(send(socket, hello.data(), hello.size(), MSG_NOSIGNAL), 0);
  }
  close(socket);
  return heard;
}

TEST(RunToken, StrangersLearnNothing) {
  const std::uint16_t port = free_port();
  const auto run = [&](std::uint32_t rank) {
    Launch launch = of_rank(rank, 2, port);
    launch.run = "secret-run";
    Failure failure;
    auto group = ProcessGroup::join(launch, {.seconds = 20, .token = kToken}, failure);
    ASSERT_TRUE(group) << failure.message;
    EXPECT_FALSE(group->agree({}));
    group->leave();
  };
  std::thread first(run, 0);
  const std::string opening = frame(FrameKind::open, encode(Opening{}));
  for (const auto& [words, says_hello] : {std::pair{std::string("GET / HTTP/1.1\r\n\r\n"), false},
                                          {opening, false},
                                          {opening, true}}) {
    const std::string heard = words_for_a_stranger(port, words, says_hello);
    EXPECT_THAT(heard, Not(HasSubstr("secret-run")));
    EXPECT_THAT(heard, Not(HasSubstr("process " + std::to_string(getpid()))));
    EXPECT_THAT(heard, Not(HasSubstr(kToken)));
    if (says_hello) {
      EXPECT_THAT(heard, HasSubstr("did not accept the proof"));
    }
  }
  std::thread second(run, 1);
  first.join();
  second.join();
}

/// The wrong token at one process: it ends at once and says so; the run waits on.
TEST(RunToken, AnotherTokenIsNamedAtBothEnds) {
  for (const std::string& other : {kOther, std::string()}) {
    const std::uint16_t port = free_port();
    std::vector<Failure> notices;
    std::thread first([&] {
      Failure failure;
      EXPECT_FALSE(ProcessGroup::join(
          of_rank(0, 2, port),
          {.seconds = 1,
           .token = kToken,
           .on_notice = [&](const Failure& notice) { notices.push_back(notice); }},
          failure));
      EXPECT_THAT(failure.message, HasSubstr("rank 1 of `2` has not connected"));
    });
    Failure failure;
    EXPECT_FALSE(ProcessGroup::join(of_rank(1, 2, port), {.seconds = 20, .token = other}, failure));
    first.join();
    EXPECT_EQ(failure.code, kProcessesApart);
    if (other.empty()) {
      EXPECT_THAT(failure.message, HasSubstr("it has another token, or none"));
      ASSERT_EQ(notices.size(), 1u);
      EXPECT_EQ(notices[0].code, kProcessRefused);
      EXPECT_THAT(notices[0].message, HasSubstr("did not prove that it belongs to this run"));
    } else {
      EXPECT_THAT(failure.message, HasSubstr("has not proved that it is rank 0 of this run"));
    }
  }
}

TEST(RunToken, IsNeededWhereOtherMachinesReachRankZero) {
  for (const auto& [host, reached] : {std::pair{"0.0.0.0", true},
                                      {"192.0.2.1", true},
                                      {"127.0.0.1", false},
                                      {"127.0.0.2", false},
                                      {"localhost", false}})
    EXPECT_EQ(is_reached_by_others(host), reached) << host;
  for (const std::uint32_t rank : {0u, 1u}) {
    Launch launch = of_rank(rank, 2, free_port());
    launch.host = "192.0.2.1";
    Failure failure;
    EXPECT_FALSE(ProcessGroup::join(launch, {.seconds = 20}, failure));
    EXPECT_EQ(failure.code, kTokenMissing);
    EXPECT_EQ(
        failure.message,
        "the processes of the run meet at `192.0.2.1`, which other machines reach, and the run has no token");
    EXPECT_THAT(failure.hint, HasSubstr("head -c 32 /dev/urandom"));
  }
}

}  // namespace
}  // namespace piper::runtime
