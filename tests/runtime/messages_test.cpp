// The messages between processes: decoders accept encoded messages, and nothing else; the bytes of
// a peer can at most end a connection.
#include "runtime/processes/messages.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <functional>
#include <limits>

#include "runtime/processes/peer_text.h"
#include "tests/support/random_cases.h"

namespace piper::runtime {
namespace {

constexpr std::uint64_t kMaxNumber = std::numeric_limits<std::uint64_t>::max();

/// A decoder, followed by the encoder; nothing where the decoder gives nothing.
using Recode = std::function<std::optional<std::string>(const std::string&)>;

template <typename Decode>
Recode recode(Decode decode) {
  return [decode](const std::string& body) -> std::optional<std::string> {
    const auto decoded = decode(body);
    return decoded ? std::optional(encode(*decoded)) : std::nullopt;
  };
}

struct Format {
  const char* name;
  std::string sample;
  Recode recode;
};

const Failure kFailure{.code = kNonFinite,
                       .message = "the loss is nan",
                       .hint = "h",
                       .rank = 1,
                       .step = 4,
                       .place = {"F.stage1", "a.pipe", 3, 5, 3, 9},
                       .notes = {{"n", {}}, {"m", {"B", "b.pipe", 1, 1, 2, 1}}}};

const std::vector<RankPosition> kPositions = {{2, Phase::evaluation, 5, 17, 16},
                                              {3, Phase::training, 6, 0, 0}};

std::vector<Format> formats() {
  return {
      {"opening", encode(Opening{Nonce{7, 8}}), recode(decode_opening)},
      {"answer", encode(Answer{Nonce{7, 8}, Proof{9}}), recode(decode_answer)},
      {"hello", encode(Hello{"job/0", 3, 8, "process 4711 on node7", Proof{9}}),
       recode(decode_hello)},
      {"heard", encode(Heard{"process 1 on node1"}), recode(decode_heard)},
      {"positions", encode(kPositions), recode(decode_positions)},
      {"states",
       encode(std::vector<ProcessState>{{1, "process 1 on node1", kPositions}, {3, "p", {}}}),
       recode([](const std::string& body) { return decode_states(body, 4); })},
      {"key and value", encode(KeyValue{"1.fact.steps", "100"}), recode(decode_key_value)},
      {"key", encode_key("1.fact.steps"),
       [](const std::string& body) {
         const auto key = decode_key(body);
         return key ? std::optional(encode_key(*key)) : std::nullopt;
       }},
      {"count", encode_count(41),
       [](const std::string& body) {
         const auto count = decode_count(body);
         return count ? std::optional(encode_count(*count)) : std::nullopt;
       }},
      {"report", encode(Report{41, "numbers"}), recode(decode_report)},
      {"forwarded report", encode(ForwardedReport{3, {41, "numbers"}}),
       recode([](const std::string& body) { return decode_forwarded(body, 4); })},
      {"piece", encode(Piece{7, "bytes"}), recode(decode_piece)},
      {"failure", encode(kFailure), recode(decode_failure)},
  };
}

TEST(Messages, AreTakenBackWholeOnly) {
  for (const Format& format : formats()) {
    SCOPED_TRACE(format.name);
    EXPECT_EQ(format.recode(format.sample), format.sample);
    for (std::size_t size = 0; size < format.sample.size(); ++size)
      EXPECT_FALSE(format.recode(format.sample.substr(0, size))) << size;
    EXPECT_FALSE(format.recode(format.sample + '\0'));
  }
}

/// A damaged body is refused or has values within bounds: encoding them gives a body that is taken
/// back.
TEST(Messages, DamagedBodiesAreRefusedOrWithinBounds) {
  test::for_each_case(3000, [](test::Random& random) {
    for (const Format& format : formats()) {
      SCOPED_TRACE(format.name);
      std::string body = format.sample;
      for (std::uint64_t edits = 1 + random.below(4); edits > 0; --edits) {
        const std::size_t at = random.below(body.size() + 1);
        switch (random.below(4)) {
          case 0: body.insert(at, 1, static_cast<char>(random.next())); break;
          case 1: body = body.substr(0, at); break;
          case 2:
            if (at + sizeof(std::uint64_t) <= body.size())
              body.replace(at, sizeof(std::uint64_t),
                           encode_count(random.chance(0.5) ? kMaxNumber >> random.below(64)
                                                           : random.next()));
            break;
          default:
            if (at < body.size()) body[at] = static_cast<char>(random.next());
        }
      }
      const auto again = format.recode(body);
      if (!again) continue;
      EXPECT_LE(again->size(), 4 * body.size() + kMaxPeerMessage);
      EXPECT_EQ(format.recode(*again), again);
    }
  });
}

TEST(Messages, NumbersAndTextsBeyondTheirBoundsAreRefused) {
  const std::string long_key(kMaxKey + 1, 'k');
  const auto hello = [](const std::string& run, std::uint64_t rank, std::uint64_t world,
                        std::size_t proof) {
    return decode_hello(
        Body().add(run).add(rank).add(world).add("p").add(std::string(proof, 'x')).bytes());
  };
  EXPECT_TRUE(hello("job", 1, 2, 32));
  EXPECT_FALSE(hello("job", std::uint64_t{1} << 32, 2, 32));
  EXPECT_FALSE(hello("job", 1, kMaxNumber, 32));
  EXPECT_FALSE(hello(std::string(kMaxRunName + 1, 'r'), 1, 2, 32));
  EXPECT_FALSE(hello("job", 1, 2, 31));
  EXPECT_FALSE(hello("job", 1, 2, 33));
  EXPECT_FALSE(decode_positions(encode_count(kMaxPositions + 1)));
  EXPECT_FALSE(decode_states(encode_count(kMaxStates + 1), 4));
  EXPECT_FALSE(decode_states(encode(std::vector<ProcessState>{{.process = 4}}), 4));
  EXPECT_FALSE(decode_key(encode_key(long_key)));
  EXPECT_FALSE(decode_key_value(encode(KeyValue{long_key, "v"})));
  EXPECT_FALSE(decode_count(encode_count(kMaxCount + 1)));
  EXPECT_FALSE(decode_forwarded(encode(ForwardedReport{4, {0, "x"}}), 4));
  EXPECT_FALSE(decode_piece(encode(Piece{kMaxNumber, "x"})));
  Failure failure = kFailure;
  failure.code = 70000;
  EXPECT_FALSE(decode_failure(encode(failure)));
  failure.code = 0;
  EXPECT_FALSE(decode_failure(encode(failure)));
  failure = kFailure;
  failure.rank = kMaxProcesses + 1;
  EXPECT_FALSE(decode_failure(encode(failure)));
}

TEST(Messages, TextsOfFailuresAreShownEscaped) {
  Failure failure = kFailure;
  failure.message = "\x1b]0;title\a" + std::string(10000, 'm');
  failure.place = {"a\nb", "a.pipe\r", 9, 1, 3, 1};
  const Failure shown = decode_failure(encode(failure)).value();
  EXPECT_TRUE(shown.message.starts_with("\\x1b]0;title\\x07mmm"));
  EXPECT_LE(shown.message.size(), kMaxPeerMessage);
  EXPECT_EQ(shown.place.action, "a\\x0ab");
  EXPECT_EQ(shown.place.file, "a.pipe\\x0d");
  EXPECT_EQ(shown.place.line, 0u);  // it ends before it begins
}

TEST(PeerText, IsFitForATerminal) {
  const std::pair<std::string, std::string> texts[] = {
      {"process 4711 on node7", "process 4711 on node7"},
      {"", ""},
      {"gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x98\x80",
       "gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x98\x80"},
      {"a\x1b[2Jb", "a\\x1b[2Jb"},
      {"a\r\n\tb\x7f", "a\\x0d\\x0a\\x09b\\x7f"},
      {std::string("a\0b", 3), "a\\x00b"},
      // The introducer of control sequences, as one character.
      {"\xc2\x9b"
       "31m",
       "\\xc2\\x9b31m"},
      {"\xe2\x80\xae"
       "evil",
       "\\xe2\\x80\\xaeevil"},  // writes from right to left
      {"\xff\xc3", "\\xff\\xc3"},
      // Overlong, a surrogate.
      {"\xc0\xaf\xe0\x80\xaf\xed\xa0\x80", "\\xc0\\xaf\\xe0\\x80\\xaf\\xed\\xa0\\x80"},
  };
  for (const auto& [text, shown] : texts) EXPECT_EQ(peer_text(text), shown);
  EXPECT_EQ(peer_text("abcdefgh", 8), "abcdefgh");
  EXPECT_EQ(peer_text("abcdefghi", 8), "abcde...");
  EXPECT_EQ(peer_text("abc\x1b\x1b", 8), "abc...");
  EXPECT_EQ(peer_text(std::string(1 << 20, 'x')).size(), kMaxPeerName);
}

/// A connection gives the frames that were sent, or is broken; it never keeps more than a frame of
/// the largest size.
TEST(Connection, TakesAnyBytes) {
  test::for_each_case(300, [](test::Random& random) {
    int sockets[2];
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets), 0);
    Connection connection(sockets[0], 64);
    std::string bytes;
    for (std::uint64_t frames = random.below(8); frames > 0; --frames) {
      const std::uint32_t size =
          static_cast<std::uint32_t>(random.chance(0.1) ? random.next() : random.below(70));
      bytes.append(reinterpret_cast<const char*>(&size), sizeof size);
      bytes += static_cast<char>(random.below(20));
      bytes += std::string(std::min(size, 70u), 'b');
    }
    if (random.chance(0.3))
      bytes += std::string(random.below(40), static_cast<char>(random.next()));
    ASSERT_EQ(write(sockets[1], bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
    close(sockets[1]);
    FrameKind kind{};
    std::string body;
    std::size_t taken = 0;
    for (int looks = 0; !connection.closed() && looks < 100; ++looks) {
      connection.fill();
      while (connection.receive(kind, body)) {
        EXPECT_LE(body.size(), 64u);
        EXPECT_NE(name_of(kind), nullptr);
        taken += 5 + body.size();
      }
    }
    EXPECT_TRUE(connection.closed());
    EXPECT_LE(taken, bytes.size());
  });
}

}  // namespace
}  // namespace piper::runtime
