#pragma once
// The contents of the frames between the processes of a run. A decoder returns nothing for a body
// that is too short or too long, or that has a number or a text beyond its bounds. It passes texts
// that are shown (failures, names of processes) through `peer_text`.
//
//   connection.send(FrameKind::hello, encode(Hello{launch.run, launch.rank, launch.world, this_process()}));
//   const auto hello = decode_hello(body);   // nothing: drop the connection

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/failure.h"
#include "runtime/processes/frames.h"
#include "runtime/processes/launch.h"

namespace piper::runtime {

// ---- bounds, in bytes unless a line says otherwise
inline constexpr std::size_t kMaxHelloBody = 4096;  // before a process is known
inline constexpr std::size_t kMaxRendezvousBody = std::size_t{64} << 10;  // until all have joined
inline constexpr std::size_t kMaxBody = std::size_t{64} << 20;
inline constexpr std::size_t kMaxKey = 1024;
inline constexpr std::uint64_t kMaxCount = std::uint64_t{1} << 62;  // steps
// Reports with numbers from here on are pieces.
inline constexpr std::uint64_t kFirstPiece = std::uint64_t{1} << 63;
inline constexpr std::size_t kMaxNotes = 64;  // of a failure

struct Hello {
  std::string run;
  std::uint32_t rank = 0, world = 0;
  std::string process;  // `process 4711 on node7`
};
std::string encode(const Hello& hello);
std::optional<Hello> decode_hello(std::string_view body);

/// The answer to a hello.
struct Heard {
  std::uint64_t challenge = 0;  // at most kMaxCount; the process gives it back
  std::string process;          // the process of rank 0
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

}  // namespace piper::runtime
