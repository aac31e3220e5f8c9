#pragma once
// The bytes of TensorBoard's event files: records of TFRecord, each an `Event` in the encoding of
// Protocol Buffers.
//
//   std::string file = event_record(version_event(now));   // the first record of every file
//   file += event_record(start_event(now, 301));           // later steps of earlier files are void
//   const Scalar scalars[] = {{"loss", 2.5F}};
//   file += event_record(scalars_event(now, 301, scalars));
//
// A record: u64 length, u32 masked CRC-32C of those 8 bytes, the event, u32 masked CRC-32C of the
// event; all little-endian. Source: tensorflow/core/lib/io/record_writer.h and
// tensorboard/compat/proto/{event,summary}.proto.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace piper::runtime {

/// One point of one curve. TensorBoard keeps f32.
struct Scalar {
  std::string tag;
  float value = 0;
};

/// The checksum of a record: a CRC-32C, rotated and shifted, because a CRC of bytes that contain
/// their own CRC is a weak one.
std::uint32_t masked_crc32c(std::string_view bytes);

std::string event_record(std::string_view event);

/// `Event{wall_time, file_version: "brain.Event:2"}`. `wall_time`: seconds since 1970.
std::string version_event(double wall_time);
/// `Event{wall_time, step, session_log: {status: START}}`: readers discard the values of this step
/// and of later ones that they have read before.
std::string start_event(double wall_time, std::uint64_t step);
/// `Event{wall_time, step, summary: {value: {tag, simple_value}, ...}}`.
std::string scalars_event(double wall_time, std::uint64_t step, std::span<const Scalar> scalars);

}  // namespace piper::runtime
