#include "frontend/pictures/packed.h"

#include <algorithm>
#include <cmath>

#include "llvm/Support/Base64.h"
#include "llvm/Support/Compression.h"

namespace piper::pictures {
namespace {

/// A common divisor of all numbers; a fraction of the largest if they have none.
double tick_of(std::span<const double> column) {
  double most = 0;
  for (const double value : column) most = std::max(most, std::abs(value));
  if (most == 0) return 1;
  for (const double tick : {1.0, 0.5, 0.25, 0.125, 0.1, 0.05, 0.01, 0.001}) {
    if (most / tick > 1e12) break;
    const bool fits = std::all_of(column.begin(), column.end(), [&](double value) {
      const double count = value / tick;
      return std::abs(count - std::round(count)) < 1e-6 && (value == 0 || std::round(count) != 0);
    });
    if (fits) return tick;
  }
  return most / 1099511627776.0;  // 2^40
}

}  // namespace

void Packer::put(std::int64_t difference) {
  std::uint64_t value = difference >= 0 ? static_cast<std::uint64_t>(difference) * 2
                                        : static_cast<std::uint64_t>(-(difference + 1)) * 2 + 1;
  for (; value >= 0x80; value >>= 7) bytes_.push_back(static_cast<std::uint8_t>(value | 0x80));
  bytes_.push_back(static_cast<std::uint8_t>(value));
}

llvm::json::Object Packer::add(std::span<const std::int64_t> column) {
  llvm::json::Object place{{"at", static_cast<std::int64_t>(bytes_.size())},
                           {"count", static_cast<std::int64_t>(column.size())}};
  std::int64_t before = 0;
  for (const std::int64_t value : column) {
    put(value - before);
    before = value;
  }
  return place;
}

llvm::json::Object Packer::add(std::span<const std::uint32_t> column) {
  llvm::json::Object place{{"at", static_cast<std::int64_t>(bytes_.size())},
                           {"count", static_cast<std::int64_t>(column.size())}};
  std::int64_t before = 0;
  for (const std::uint32_t value : column) {
    put(std::int64_t{value} - before);
    before = value;
  }
  return place;
}

llvm::json::Object Packer::add_times(std::span<const double> column) {
  const double tick = tick_of(column);
  std::vector<std::int64_t> ticks;
  ticks.reserve(column.size());
  for (const double value : column) ticks.push_back(std::llround(value / tick));
  llvm::json::Object place = add(ticks);
  place["tick"] = tick;
  return place;
}

llvm::json::Object Packer::add_texts(std::span<const std::string> texts) {
  const std::size_t first = bytes_.size();
  for (const std::string& text : texts)
    bytes_.insert(bytes_.end(), text.c_str(), text.c_str() + text.size() + 1);
  return llvm::json::Object{{"at", static_cast<std::int64_t>(first)},
                            {"size", static_cast<std::int64_t>(bytes_.size() - first)}};
}

const char* Packer::encoding() const {
  return llvm::compression::zlib::isAvailable() ? "deflate" : "raw";
}

std::string Packer::text() const {
  if (!llvm::compression::zlib::isAvailable()) return llvm::encodeBase64(bytes_);
  llvm::SmallVector<std::uint8_t> compressed;
  llvm::compression::zlib::compress(bytes_, compressed);
  return llvm::encodeBase64(compressed);
}

}  // namespace piper::pictures
