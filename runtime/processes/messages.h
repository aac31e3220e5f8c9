#pragma once
// The contents of the frames between the processes of a run. A decoder returns nothing for a body
// that is too short or too long, or that has a number or a text beyond its bounds. It passes texts
// that are shown (failures, names of processes) through `peer_text`.
//
//   connection.send(FrameKind::open, encode(Opening{nonce}));
//   const auto opening = decode_opening(body);   // nothing: drop the connection

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/failure.h"
#include "runtime/processes/frames.h"
#include "runtime/processes/launch.h"
#include "runtime/processes/run_token.h"
#include "runtime/trace/positions.h"

namespace piper::runtime {

// ---- bounds, in bytes unless a line says otherwise
inline constexpr std::size_t kMaxHelloBody = 4096;  // before a process is known
inline constexpr std::size_t kMaxRendezvousBody = std::size_t{64} << 10;  // until all have joined
inline constexpr std::size_t kMaxBody = std::size_t{64} << 20;
inline constexpr std::size_t kMaxKey = 1024;
inline constexpr std::uint64_t kMaxCount = std::uint64_t{1} << 62;  // steps
// Reports with numbers from here on are pieces of bytes.
inline constexpr std::uint64_t kFirstPiece = std::uint64_t{1} << 63;
// of one channel
inline constexpr std::uint64_t kMaxPieces = std::uint64_t{1} << 48;
inline constexpr std::size_t kMaxNotes = 64;       // of a failure
inline constexpr std::size_t kMaxPositions = 256;  // ranks of a process whose positions are sent
inline constexpr std::size_t kMaxStates = 64;      // processes whose states are sent

/// The first message of a process.
struct Opening {
  Nonce nonce{};
};
std::string encode(const Opening& opening);
std::optional<Opening> decode_opening(std::string_view body);

/// The answer of rank 0 to an opening.
struct Answer {
  Nonce nonce{};
  Proof proof{};
};
std::string encode(const Answer& answer);
std::optional<Answer> decode_answer(std::string_view body);

struct Hello {
  std::string run;
  std::uint32_t rank = 0, world = 0;
  std::string process;  // `process 4711 on node7`
  Proof proof{};
};
std::string encode(const Hello& hello);
std::optional<Hello> decode_hello(std::string_view body);

/// The answer to a hello.
struct Heard {
  std::string process;  // the process of rank 0
};
std::string encode(const Heard& heard);
std::optional<Heard> decode_heard(std::string_view body);

struct KeyValue {
  std::string key, value;
};
std::string encode(const KeyValue& pair);
std::optional<KeyValue> decode_key_value(std::string_view body);
std::string encode_key(std::string_view key);
std::optional<std::string> decode_key(std::string_view body);

std::string encode_count(std::uint64_t count);
std::optional<std::uint64_t> decode_count(std::string_view body);

/// The purposes of bytes for rank 0. Bytes of one channel arrive in their order; threads that send
/// through different channels need no order among each other.
enum class Channel : std::uint8_t { recorded, parameters, checkpoint };
inline constexpr std::uint64_t kChannels = 3;

/// The number of a piece: its channel, and its position among the pieces of that channel, which is
/// below kMaxPieces.
constexpr std::uint64_t piece_number(Channel channel, std::uint64_t position) {
  return kFirstPiece + static_cast<std::uint64_t>(channel) * kMaxPieces + position;
}
/// The channel of a piece with that number; empty if no channel has it, or if it is no piece.
constexpr std::optional<Channel> channel_of(std::uint64_t number) {
  if (number < kFirstPiece || number - kFirstPiece >= kChannels * kMaxPieces) return std::nullopt;
  return static_cast<Channel>((number - kFirstPiece) / kMaxPieces);
}

/// Numbers of a step, or a piece of bytes, for rank 0.
struct Report {
  std::uint64_t number = 0;
  std::string bytes;
};
std::string encode(const Report& report);
std::optional<Report> decode_report(std::string_view body);
/// The same with its sender, as rank 0 gets it.
struct ForwardedReport {
  std::uint32_t from = 0;
  Report report;
};
std::string encode(const ForwardedReport& forwarded);
/// `world`: ranks are below it.
std::optional<ForwardedReport> decode_forwarded(std::string_view body, std::uint32_t world);

/// A piece of bytes: the number of bytes that follow in further pieces, and its own bytes.
struct Piece {
  std::uint64_t remaining = 0;
  std::string bytes;
};
std::string encode(const Piece& piece);
std::optional<Piece> decode_piece(std::string_view body);

std::string encode(const Failure& failure);
std::optional<Failure> decode_failure(std::string_view body);

/// The positions of a process's ranks, the first kMaxPositions of them; at most that many.
std::string encode(const std::vector<RankPosition>& positions);
std::optional<std::vector<RankPosition>> decode_positions(std::string_view body);

/// A process of the run as rank 0 last heard of it.
struct ProcessState {
  std::uint32_t process = 0;  // its number
  std::string name = {};      // `process 4711 on node7`
  std::vector<RankPosition> positions = {};
};
/// The first kMaxStates.
std::string encode(const std::vector<ProcessState>& states);
/// `world`: the processes are below it.
std::optional<std::vector<ProcessState>> decode_states(std::string_view body, std::uint32_t world);

}  // namespace piper::runtime
