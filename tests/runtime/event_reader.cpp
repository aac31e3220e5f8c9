#include "tests/runtime/event_reader.h"

#include <cstring>

namespace piper::test {
namespace {

/// Takes numbers and texts from the beginning of some bytes; `failed` after a take beyond the end.
class Bytes {
 public:
  explicit Bytes(std::string_view bytes) : bytes_(bytes) {}

  bool empty() const { return bytes_.empty(); }
  bool failed() const { return failed_; }

  std::string_view take(std::uint64_t count) {
    if (count > bytes_.size()) {
      failed_ = true;
      bytes_ = {};
      return {};
    }
    const std::string_view taken = bytes_.substr(0, count);
    bytes_.remove_prefix(count);
    return taken;
  }
  template <typename Number>
  Number number() {  // of a little-endian machine
    Number value{};
    const std::string_view taken = take(sizeof value);
    if (!failed_) std::memcpy(&value, taken.data(), sizeof value);
    return value;
  }
  std::uint64_t varint() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      const std::string_view taken = take(1);
      if (failed_) return 0;
      const auto byte = static_cast<unsigned char>(taken[0]);
      value |= static_cast<std::uint64_t>(byte & 0x7F) << shift;
      if (byte < 0x80) return value;
    }
    failed_ = true;
    return 0;
  }
  std::string_view counted() { return take(varint()); }

 private:
  std::string_view bytes_;
  bool failed_ = false;
};

constexpr std::uint64_t key(std::uint64_t field, std::uint64_t wire) { return field << 3 | wire; }

bool read_value(Bytes bytes, std::map<std::string, float>& scalars) {
  std::string tag;
  std::optional<float> value;
  while (!bytes.empty()) {
    switch (bytes.varint()) {
      case key(1, 2): tag = bytes.counted(); break;
      case key(2, 5): value = bytes.number<float>(); break;
      default: return false;
    }
  }
  return !bytes.failed() && value && !tag.empty() && scalars.emplace(tag, *value).second;
}

bool read_summary(Bytes bytes, std::map<std::string, float>& scalars) {
  while (!bytes.empty()) {
    if (bytes.varint() != key(1, 2) || !read_value(Bytes(bytes.counted()), scalars)) return false;
  }
  return !bytes.failed();
}

bool read_event(Bytes bytes, ReadEvent& event) {
  while (!bytes.empty()) {
    switch (bytes.varint()) {
      case key(1, 1): event.wall_time = bytes.number<double>(); break;
      case key(2, 0): event.step = static_cast<std::int64_t>(bytes.varint()); break;
      case key(3, 2): event.file_version = bytes.counted(); break;
      case key(5, 2):
        if (!read_summary(Bytes(bytes.counted()), event.scalars)) return false;
        break;
      case key(7, 2): {
        Bytes log(bytes.counted());
        if (log.varint() != key(1, 0)) return false;
        event.session_status = log.varint();
        if (log.failed() || !log.empty()) return false;
        break;
      }
      default: return false;
    }
  }
  return !bytes.failed();
}

/// The checksum of TFRecord's documentation: `((crc >> 15) | (crc << 17)) + 0xa282ead8`.
std::uint32_t masked(std::string_view bytes) {
  const std::uint32_t crc = slow_crc32c(bytes);
  return ((crc >> 15) | (crc << 17)) + 0xA282EAD8U;
}

}  // namespace

std::uint32_t slow_crc32c(std::string_view bytes) {
  std::uint32_t crc = ~0U;
  for (const char c : bytes) {
    crc ^= static_cast<unsigned char>(c);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0x82F63B78U : 0);
  }
  return ~crc;
}

std::vector<ReadEvent> read_events(std::string_view bytes, std::string& error) {
  std::vector<ReadEvent> events;
  error.clear();
  for (Bytes file(bytes); !file.empty();) {
    const std::string_view length_bytes = file.take(8);
    const auto length_sum = file.number<std::uint32_t>();
    if (file.failed() || masked(length_bytes) != length_sum) {
      error = "the length of a record";
      return events;
    }
    const std::string_view text = file.take(Bytes(length_bytes).number<std::uint64_t>());
    const auto sum = file.number<std::uint32_t>();
    if (file.failed() || masked(text) != sum) {
      error = "the bytes of a record";
      return events;
    }
    ReadEvent event;
    if (!read_event(Bytes(text), event)) {
      error = "the fields of an event";
      return events;
    }
    events.push_back(event);
  }
  return events;
}

}  // namespace piper::test
