#include "runtime/checkpoint/piece_sums.h"

#include <algorithm>
#include <cstring>
#include <tuple>

#include "runtime/crc32.h"

namespace piper::runtime {

void add_sums(std::uint64_t file, std::uint64_t position, const void* data, std::uint64_t bytes,
              std::vector<PartSum>& sums) {
  const auto* from = static_cast<const unsigned char*>(data);
  while (bytes > 0) {
    const std::uint64_t part = std::min(bytes, kCheckedBytes - position % kCheckedBytes);
    sums.push_back({file, position, part, crc32_of(from, part)});
    from += part;
    position += part;
    bytes -= part;
  }
}

bool combine_sums(std::vector<PartSum> sums, std::span<ManifestFile> files) {
  std::sort(sums.begin(), sums.end(), [](const PartSum& a, const PartSum& b) {
    return std::tie(a.file, a.position) < std::tie(b.file, b.position);
  });
  auto sum = sums.begin();
  for (std::size_t f = 0; f < files.size(); ++f) {
    ManifestFile& file = files[f];
    file.crc32.clear();
    for (std::uint64_t position = 0; position < file.bytes;) {
      const std::uint64_t end = std::min(file.bytes, position + kCheckedBytes);
      std::uint32_t crc = 0;
      while (position < end) {
        if (sum == sums.end() || sum->file != f || sum->position != position || sum->bytes == 0 ||
            sum->bytes > end - position)
          return false;
        crc = crc32_joined(crc, sum->crc32, sum->bytes);
        position += sum->bytes;
        ++sum;
      }
      file.crc32.push_back(crc);
    }
  }
  return sum == sums.end();
}

std::string sums_as_bytes(std::span<const PartSum> sums) {
  std::string bytes(sums.size() * sizeof(PartSum), '\0');
  for (std::size_t i = 0; i < sums.size(); ++i) {
    const PartSum& sum = sums[i];
    const std::uint64_t words[] = {sum.file, sum.position, sum.bytes, sum.crc32};
    static_assert(sizeof words == sizeof(PartSum));
    std::memcpy(bytes.data() + i * sizeof words, words, sizeof words);
  }
  return bytes;
}

std::optional<std::vector<PartSum>> sums_from_bytes(std::string_view bytes) {
  if (bytes.size() % sizeof(PartSum) != 0) return std::nullopt;
  std::vector<PartSum> sums(bytes.size() / sizeof(PartSum));
  for (std::size_t i = 0; i < sums.size(); ++i) {
    std::uint64_t words[4];
    std::memcpy(words, bytes.data() + i * sizeof words, sizeof words);
    if (words[3] > UINT32_MAX) return std::nullopt;
    sums[i] = {words[0], words[1], words[2], static_cast<std::uint32_t>(words[3])};
  }
  return sums;
}

}  // namespace piper::runtime
