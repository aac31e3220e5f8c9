// Data files of every format, damaged in every place: cut at every length, every bit of a header
// flipped, and counts made huge. A file is refused with a reason, or is read to its end within its
// bounds; the sanitizers see everything else.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "runtime/checkpoint/manifest.h"
#include "runtime/data/array_file.h"
#include "runtime/data/file_text.h"
#include "runtime/data/table.h"
#include "runtime/data/token_file.h"
#include "runtime/weights/weight_files.h"
#include "tests/runtime/data_files.h"
#include "tests/support/temporary_folder.h"

namespace piper::runtime {
namespace {

using test::bytes_of;
using test::bytes_of_all;
using test::npy;
using test::TemporaryFolder;

constexpr std::uint64_t kMaxRead = 5000;  // tokens, or rows

/// The failure of a file; nothing if it was read.
using Outcome = std::optional<Failure>;

struct Format {
  const char* name;
  std::string file;     // the name of the damaged file
  std::string content;  // legal
  std::function<Outcome(const std::string& path)> read;
  std::set<std::uint32_t> codes;                             // of refusals
  std::size_t begin = 0, end = std::string::npos;            // the range in which bytes are changed
  std::function<void(const TemporaryFolder&)> prepare = {};  // files beside it
};

Outcome read_all_arrays(const std::string& path) {
  const TableInput inputs[] = {{.name = "x", .numbers = 2, .integers = false, .single = true},
                               {.name = "label", .numbers = 1, .integers = true, .single = false}};
  Failure failure;
  const auto rows = read_arrays(path, inputs, failure);
  if (!rows) return failure;
  for (std::uint64_t row = 0; row < std::min(rows->rows, kMaxRead); ++row) {
    for (std::uint32_t input = 0; input < 2; ++input) {
      float x[2];
      std::int64_t label = 0;
      const RowTarget target =
          input == 0 ? RowTarget{.inner = 2, .stride = 2, .dtype = PIPER_F32, .to = x}
                     : RowTarget{.inner = 1, .stride = 1, .dtype = PIPER_I64, .to = &label};
      if (auto wrong = rows->read(input, row, target)) return wrong;
    }
  }
  EXPECT_FALSE(rows->fingerprint_text().empty());
  return std::nullopt;
}

Outcome read_one_array(const std::string& path) {
  const TableInput input{.name = "x", .numbers = 2, .integers = false, .single = true};
  Failure failure;
  const auto rows = read_arrays(path, std::span(&input, 1), failure);
  if (!rows) return failure;
  for (std::uint64_t row = 0; row < std::min(rows->rows, kMaxRead); ++row) {
    float x[2];
    const RowTarget target{.inner = 2, .stride = 2, .dtype = PIPER_F32, .to = x};
    if (auto wrong = rows->read(0, row, target)) return wrong;
  }
  return std::nullopt;
}

Outcome read_tokens(const std::string& path) {
  Failure failure;
  const auto tokens = TokenFile::open(path, std::nullopt, failure);
  if (!tokens) return failure;
  const std::uint64_t count = std::min(tokens->size(), kMaxRead);
  std::vector<std::int64_t> ids(count + 1);
  for (const std::uint64_t first : {std::uint64_t{0}, tokens->size() - count}) {
    if (count == 0) continue;
    if (auto wrong = tokens->read(first, count, 1, ids.data())) return wrong;
    EXPECT_LE(tokens->position(first).token, tokens->size());
  }
  EXPECT_FALSE(tokens->fingerprint_text().empty());
  return std::nullopt;
}

Outcome read_weights(const std::string& path) {
  Failure failure;
  const auto files = WeightFiles::open(path, failure);
  if (!files) return failure;
  for (const auto& [name, tensor] : files->tensors()) {
    std::vector<unsigned char> bytes(tensor.stored.end - tensor.stored.begin);
    if (auto wrong = files->read(tensor.file, tensor.position, bytes.size(), bytes.data()))
      return wrong;
  }
  return std::nullopt;
}

/// The folder of a file.
Outcome read_folder_of(const std::string& path) {
  return read_weights(path.substr(0, path.rfind('/')));
}

Outcome read_manifest_file(const std::string& path) {
  Failure failure;
  const auto text = read_text(path, failure);
  if (!text) return failure;
  std::string error;
  if (parse_manifest({reinterpret_cast<const char*>(text->data()), text->size()}, error))
    return std::nullopt;
  return Failure{.code = kCheckpointUnreadable, .message = error, .hint = "h"};
}

std::string x_data() { return bytes_of_all<float>({1, 2, 3, 4, 5, 6}); }
std::string label_data() { return bytes_of_all<std::int64_t>({0, 1, 2}); }
std::string u16_data() { return bytes_of_all<std::uint16_t>({1, 2, 3, 4, 5, 6, 7, 8}); }

std::string tensors() {
  return test::safetensors(R"({"x":{"dtype":"F32","shape":[3,2],"data_offsets":[0,24]},)"
                           R"("label":{"dtype":"I64","shape":[3],"data_offsets":[24,48]}})",
                           x_data() + label_data());
}

std::string manifest() {
  Manifest manifest;
  manifest.step = 3;
  manifest.batch = 8;
  manifest.train = "t";
  manifest.data = "bytes, windows of 8 in epochs";
  manifest.files.push_back({"model.safetensors", 100, {0x01234567}});
  return manifest_json(manifest);
}

const std::set<std::uint32_t> kOfData = {kDataUnreadable, kDataTooShort, kDataMismatch,
                                         kDataDamaged};

std::vector<Format> formats() {
  const std::string x = npy("<f4", "(3, 2)", x_data()), label = npy("<i8", "(3,)", label_data());
  const auto megatron = [](const TemporaryFolder& folder) { folder.write("a.bin", u16_data()); };
  const auto weights = [](const TemporaryFolder& folder) {
    folder.write("a.safetensors", tensors());
  };
  return {
      {"npy 1", "a.npy", x, read_one_array, kOfData},
      {"npy 2", "a.npy", npy("<f4", "(3, 2)", x_data(), 2), read_one_array, kOfData},
      {"npz, stored", "a.npz", test::zip({{"x.npy", x}, {"label.npy", label}}), read_all_arrays,
       kOfData},
      {"npz, deflated", "a.npz", test::zip({{"x.npy", x, true}, {"label.npy", label, true}}),
       read_all_arrays, kOfData},
      {"npz, ZIP64", "a.npz", test::zip({{"x.npy", x, true}, {"label.npy", label}}, true),
       read_all_arrays, kOfData},
      {"arrays of safetensors", "a.safetensors", tensors(), read_all_arrays, kOfData},
      {"table", "a.csv", "x.0,x.1,label\n1,2,0\n3.5,-4e1,1\n5,6,2\n", read_all_arrays, kOfData},
      {"raw tokens", "a.bin", u16_data(), read_tokens, kOfData},
      {"llm.c", "a.bin", test::llm_c(20240520, 1, 8, u16_data()), read_tokens, kOfData, 0, 16},
      {"npy of tokens", "a.npy", npy("<u2", "(8,)", u16_data()), read_tokens, kOfData},
      {"Megatron", "a.idx", test::megatron_index(8, {3, 0, 5}, {0, 6, 6}, {0, 1, 3}), read_tokens,
       kOfData, 0, std::string::npos, megatron},
      {"weights", "a.safetensors", tensors(), read_weights, {kWeightsUnreadable}},
      {"index of weights",
       "model.safetensors.index.json",
       R"({"metadata":{"total_size":48},"weight_map":{"x":"a.safetensors","label":"a.safetensors"}})",
       read_folder_of,
       {kWeightsUnreadable},
       0,
       std::string::npos,
       weights},
      {"manifest", "manifest.json", manifest(), read_manifest_file, {kCheckpointUnreadable}},
  };
}

class Damage {
 public:
  explicit Damage(const Format& format) : format_(format) {
    if (format.prepare) format.prepare(folder_);
  }

  /// Reads a content; a refusal has a known code and a reason that a terminal shows.
  Outcome read(const std::string& content) {
    const Outcome outcome = format_.read(folder_.write(format_.file, content));
    if (!outcome) return outcome;
    EXPECT_TRUE(format_.codes.contains(outcome->code)) << describe(*outcome);
    EXPECT_FALSE(outcome->message.empty());
    EXPECT_TRUE(std::all_of(outcome->message.begin(), outcome->message.end(), [](char c) {
      return c >= 0x20 && c < 0x7f;
    })) << outcome->message;
    return outcome;
  }

 private:
  const Format& format_;
  const TemporaryFolder folder_;
};

TEST(DamagedData, LegalFilesAreRead) {
  for (const Format& format : formats()) {
    const Outcome outcome = Damage(format).read(format.content);
    EXPECT_FALSE(outcome) << format.name << ": " << describe(*outcome);
  }
}

TEST(DamagedData, EveryOtherLength) {
  for (const Format& format : formats()) {
    SCOPED_TRACE(format.name);
    Damage damage(format);
    std::size_t refused = 0;
    for (std::size_t size = 0; size < format.content.size(); ++size)
      refused += damage.read(format.content.substr(0, size)).has_value();
    // Raw ids have no length, and a table may lose its last line or digits of it.
    const std::string name = format.name;
    const bool any = name == "raw tokens" || name == "llm.c" || name == "table";
    if (!any) {
      EXPECT_EQ(refused, format.content.size());
    }
    EXPECT_GT(refused, 0u);
    for (const char* const tail : {"\n", "}", "0", "garbage behind the end"})
      damage.read(format.content + tail);
  }
}

TEST(DamagedData, EveryFlippedBit) {
  for (const Format& format : formats()) {
    SCOPED_TRACE(format.name);
    Damage damage(format);
    for (std::size_t at = format.begin; at < std::min(format.end, format.content.size()); ++at) {
      for (int bit = 0; bit < 8; ++bit) {
        std::string content = format.content;
        content[at] = static_cast<char>(content[at] ^ (1 << bit));
        damage.read(content);
      }
    }
  }
}

/// A number of any width that a format may have at any place.
TEST(DamagedData, HugeCountsAnywhere) {
  const std::string counts[] = {
      bytes_of<std::uint16_t>(0xFFFF),
      bytes_of<std::uint16_t>(0x7FFF),
      bytes_of<std::uint32_t>(0xFFFFFFFF),
      bytes_of<std::uint32_t>(0x7FFFFFFF),
      bytes_of<std::uint32_t>(0x80000000),
      bytes_of<std::uint64_t>(~std::uint64_t{0}),
      bytes_of<std::uint64_t>(~std::uint64_t{0} >> 1),
      bytes_of<std::uint64_t>(std::uint64_t{1} << 62),
      bytes_of<std::uint64_t>(0),
      "999999999999999999999",
      "4611686018427387904",
  };
  for (const Format& format : formats()) {
    SCOPED_TRACE(format.name);
    Damage damage(format);
    for (std::size_t at = format.begin; at < std::min(format.end, format.content.size()); ++at) {
      for (const std::string& count : counts) {
        std::string content = format.content;
        if (at + count.size() > content.size()) continue;
        damage.read(content.replace(at, count.size(), count));
        // Digits in place of a digit: a longer text.
        if (count[0] > '0' && count[0] <= '9' && format.content[at] >= '0' &&
            format.content[at] <= '9')
          damage.read(std::string(format.content).replace(at, 1, count));
      }
    }
  }
}

}  // namespace
}  // namespace piper::runtime
