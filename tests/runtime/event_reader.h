#pragma once
// Reads TensorBoard's event files, with no code of the writer: its checksum takes one bit at a
// time.
//
//   std::string error;
//   for (const ReadEvent& event : read_events(bytes, error)) event.scalars["loss"];

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace piper::test {

/// CRC-32C, from its definition.
std::uint32_t slow_crc32c(std::string_view bytes);

struct ReadEvent {
  double wall_time = 0;
  std::int64_t step = 0;
  std::string file_version = {};
  std::map<std::string, float> scalars = {};
  std::optional<std::uint64_t> session_status = {};  // 1: START
};

/// The events of a file. `error` is set at the first byte that does not fit the format: the events
/// before are returned.
std::vector<ReadEvent> read_events(std::string_view bytes, std::string& error);

}  // namespace piper::test
