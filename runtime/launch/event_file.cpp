#include "runtime/launch/event_file.h"

#include <bit>

#include "runtime/crc32c.h"

namespace piper::runtime {
namespace {

// How the value of a field is written.
enum class Wire : std::uint8_t { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };

// Numbers of fields, of the .proto files.
constexpr std::uint32_t kEventWallTime = 1, kEventStep = 2, kEventFileVersion = 3,
                        kEventSummary = 5, kEventSessionLog = 7;
constexpr std::uint32_t kSummaryValue = 1, kValueTag = 1, kValueSimpleValue = 2;
constexpr std::uint32_t kSessionLogStatus = 1, kSessionLogStart = 1;

template <typename Unsigned>
void append_little_endian(std::string& out, Unsigned value) {
  for (std::size_t i = 0; i < sizeof(Unsigned); ++i)
    out += static_cast<char>(value >> (8 * i) & 0xFF);
}

void append_varint(std::string& out, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) out += static_cast<char>((value & 0x7F) | 0x80);
  out += static_cast<char>(value);
}

void append_key(std::string& out, std::uint32_t field, Wire wire) {
  append_varint(out, field << 3 | static_cast<std::uint32_t>(wire));
}

void append_bytes(std::string& out, std::uint32_t field, std::string_view bytes) {
  append_key(out, field, Wire::bytes);
  append_varint(out, bytes.size());
  out += bytes;
}

void append_number(std::string& out, std::uint32_t field, std::uint64_t value) {
  append_key(out, field, Wire::varint);
  append_varint(out, value);
}

std::string event_at(double wall_time) {
  std::string event;
  append_key(event, kEventWallTime, Wire::fixed64);
  append_little_endian(event, std::bit_cast<std::uint64_t>(wall_time));
  return event;
}

std::string event_of_step(double wall_time, std::uint64_t step) {
  std::string event = event_at(wall_time);
  append_number(event, kEventStep, step);
  return event;
}

}  // namespace

std::uint32_t masked_crc32c(std::string_view bytes) {
  return std::rotr(crc32c_of(bytes), 15) + 0xA282EAD8;
}

std::string event_record(std::string_view event) {
  std::string out;
  append_little_endian(out, std::uint64_t{event.size()});
  append_little_endian(out, masked_crc32c(out));
  out += event;
  append_little_endian(out, masked_crc32c(event));
  return out;
}

std::string version_event(double wall_time) {
  std::string event = event_at(wall_time);
  append_bytes(event, kEventFileVersion, "brain.Event:2");
  return event;
}

std::string start_event(double wall_time, std::uint64_t step) {
  std::string log;
  append_number(log, kSessionLogStatus, kSessionLogStart);
  std::string event = event_of_step(wall_time, step);
  append_bytes(event, kEventSessionLog, log);
  return event;
}

std::string scalars_event(double wall_time, std::uint64_t step, std::span<const Scalar> scalars) {
  std::string summary;
  for (const Scalar& scalar : scalars) {
    std::string value;
    append_bytes(value, kValueTag, scalar.tag);
    append_key(value, kValueSimpleValue, Wire::fixed32);
    append_little_endian(value, std::bit_cast<std::uint32_t>(scalar.value));
    append_bytes(summary, kSummaryValue, value);
  }
  std::string event = event_of_step(wall_time, step);
  append_bytes(event, kEventSummary, summary);
  return event;
}

}  // namespace piper::runtime
