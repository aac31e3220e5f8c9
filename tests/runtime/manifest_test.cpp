// The description of a checkpoint, and the checksums of its files.
#include "runtime/checkpoint/manifest.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "runtime/checkpoint/piece_sums.h"
#include "runtime/checkpoint/run_facts.h"
#include "runtime/crc32.h"
#include "tests/support/random_cases.h"

namespace piper::runtime {
namespace {

using test::for_each_case;
using test::Random;

Manifest sample() {
  return {.step = 300,
          .samples = 9600,
          .updates = 301,
          .batch = 32,
          .seed = UINT64_MAX,
          .train = "gpt \"small\" \\ caf\xC3\xA9\n",
          .dtype = "f32",
          .optimizer = "adamw",
          .rate = "constant 0.001",
          .data = "bytes, windows of 128",
          .held_out_loss = 2.75,
          .files = {{"model-00001-of-00002.safetensors", kCheckedBytes + 1, {0, 0xFFFFFFFF}},
                    {"model_2.safetensors", 8, {0x0A0B0C0D}},
                    {"empty", 0, {}}}};
}

TEST(Manifest, IsReadAsItWasWritten) {
  const Manifest manifest = sample();
  const std::string text = manifest_json(manifest);
  std::string error;
  const auto read = parse_manifest(text, error);
  ASSERT_TRUE(read) << error;
  EXPECT_EQ(manifest_json(*read), text);
  EXPECT_EQ(read->seed, manifest.seed);
  EXPECT_EQ(read->train, manifest.train);
  EXPECT_EQ(read->held_out_loss, 2.75);
  ASSERT_EQ(read->files.size(), 3u);
  EXPECT_EQ(read->files[0].crc32, manifest.files[0].crc32);
}

struct Edit {
  const char* from;  // in the text of a legal manifest
  const char* to;
  const char* error;  // part of it
};

constexpr Edit kRefused[] = {
    {"{\"schema\"", "[\"schema\"", "expected"},
    {"\"schema\":1", "\"schema\":2", "its schema is `2`, and this version reads `1`"},
    {"\"schema\":1,", "", "no number `schema`"},
    {"\"held_out_loss\":2.75", "\"held_out_loss\":\"low\"", "its `held_out_loss` is no number"},
    {"\"step\":300", "\"step\":-300", "no number `step`"},
    {"\"step\":300", "\"step\":300.5", "no number `step`"},
    {"\"step\":300", "\"step\":3e2", "no number `step`"},
    {"\"step\":300", "\"step\":\"300\"", "no number `step`"},
    {"\"step\":300", "\"step\":18446744073709551616", "no number `step`"},
    {"\"step\":300", "\"step\":301", "checksum"},
    {"\"updates\":301", "\"update\":301", "no number `updates`"},
    {"\"batch\":32,", "", "no number `batch`"},
    {"\"optimizer\":\"adamw\"", "\"optimizer\":1", "no text `optimizer`"},
    {"\"optimizer\":\"adamw\"", "\"optimizer\":\"adams\"", "checksum"},
    {"\"rate\":", "\"rates\":", "no text `rate`"},
    {"\"files\":[", "\"files\":{", "expected"},
    {"\"files\":", "\"file\":", "no list `files`"},
    {"\"model_2.safetensors\"", "\"../model.safetensors\"", "no legal name"},
    {"\"model_2.safetensors\"", "\".model\"", "no legal name"},
    {"\"model_2.safetensors\"", "\"\"", "no legal name"},
    {"\"model_2.safetensors\"", "\"a/b\"", "no legal name"},
    {"\"model_2.safetensors\"", "\"a\\u0000b\"", "no legal name"},
    {"\"model_2.safetensors\"", "1", "no legal name"},
    {"\"model_2.safetensors\"", "\"empty\"", "it has `empty` twice"},
    {"\"bytes\":8", "\"bytes\":-8", "no number `bytes`"},
    {"\"bytes\":8", "\"bytes\":0", "one checksum for every 4 MiB"},
    {"\"bytes\":8", "\"bytes\":4194305", "one checksum for every 4 MiB"},
    {"\"bytes\":8", "\"bytes\":18446744073709551615", "one checksum for every 4 MiB"},
    {"[\"0a0b0c0d\"]", "[\"0a0b0c0\"]", "not 8 hexadecimal digits"},
    {"[\"0a0b0c0d\"]", "[\"0a0b0c0dd\"]", "not 8 hexadecimal digits"},
    {"[\"0a0b0c0d\"]", "[\"0a0b0c0D\"]", "not 8 hexadecimal digits"},
    {"[\"0a0b0c0d\"]", "[\" a0b0c0d\"]", "not 8 hexadecimal digits"},
    {"[\"0a0b0c0d\"]", "[168496141]", "not 8 hexadecimal digits"},
    {"[\"0a0b0c0d\"]", "\"0a0b0c0d\"", "one checksum for every 4 MiB"},
    {"[\"0a0b0c0d\"]", "[\"0a0b0c0e\"]", "checksum"},
    {"}\n", "}", "checksum"},
    {"}\n", "} \n", "checksum"},
    {"}\n", "}\n\n", "checksum"},
    {"}\n", "}x", "expected the end"},
};

TEST(Manifest, OtherTextsAreRefused) {
  const std::string legal = manifest_json(sample());
  for (const Edit& edit : kRefused) {
    SCOPED_TRACE(std::string(edit.from) + " -> " + edit.to);
    std::string text = legal;
    const std::size_t at = text.rfind(edit.from);
    ASSERT_NE(at, std::string::npos);
    text.replace(at, std::string(edit.from).size(), edit.to);
    std::string error;
    EXPECT_FALSE(parse_manifest(text, error));
    EXPECT_NE(error.find(edit.error), std::string::npos) << error;
  }
  std::string error;
  for (const char* text : {"", "{}", "null", "[]", "1", "\"step\""}) {
    EXPECT_FALSE(parse_manifest(text, error)) << text;
    EXPECT_NE(error, "") << text;
  }
}

/// No bit of it may change unseen, and none of its beginnings is a manifest.
TEST(Manifest, EveryChangedBitIsSeen) {
  const std::string legal = manifest_json(sample());
  std::string error;
  for (std::size_t i = 0; i < legal.size(); ++i) {
    EXPECT_FALSE(parse_manifest(legal.substr(0, i), error)) << i;
    for (int bit = 0; bit < 8; ++bit) {
      std::string text = legal;
      text[i] = static_cast<char>(text[i] ^ (1 << bit));
      EXPECT_FALSE(parse_manifest(text, error)) << i << ", bit " << bit;
    }
  }
}

/// The sums of a file that is written in parts are those of its pieces.
TEST(PieceSums, PartsOfAnySizeGiveTheSumsOfTheWhole) {
  for_each_case(12, [](Random& random) {
    std::vector<std::string> contents(static_cast<std::size_t>(random.between(1, 3)));
    std::vector<ManifestFile> files;
    std::vector<PartSum> sums;
    for (std::size_t f = 0; f < contents.size(); ++f) {
      std::string& content = contents[f];
      // Some are shorter than a piece, some end at the end of one.
      content.resize(random.pick(std::vector<std::size_t>{
          0, 1, 77, kCheckedBytes - 1, kCheckedBytes, kCheckedBytes + 1, 2 * kCheckedBytes}));
      for (std::size_t i = 0; i < content.size(); i += 1 + random.below(4096))
        content[i] = static_cast<char>(random.next());
      files.push_back({"file" + std::to_string(f), content.size(), {}});
      for (std::size_t at = 0; at < content.size();) {
        const std::size_t part = std::min(
            content.size() - at,
            static_cast<std::size_t>(1 + random.below(random.chance(0.5) ? 200'000 : 6'000'000)));
        add_sums(f, at, content.data() + at, part, sums);
        at += part;
      }
    }
    random.shuffle(sums);
    const auto sent = sums_from_bytes(sums_as_bytes(sums));
    ASSERT_TRUE(sent);
    ASSERT_TRUE(combine_sums(*sent, files));
    for (std::size_t f = 0; f < files.size(); ++f) {
      std::vector<std::uint32_t> expected;
      for (std::size_t at = 0; at < contents[f].size(); at += kCheckedBytes)
        expected.push_back(crc32_of(contents[f].data() + at,
                                    std::min<std::size_t>(kCheckedBytes, contents[f].size() - at)));
      EXPECT_EQ(files[f].crc32, expected);
    }
    if (sums.empty()) return;
    // One part less, one twice, one moved, one of no file.
    const std::size_t chosen = random.below(sums.size());
    std::vector<PartSum> wrong = sums;
    wrong.erase(wrong.begin() + static_cast<std::ptrdiff_t>(chosen));
    EXPECT_FALSE(combine_sums(wrong, files));
    wrong = sums;
    wrong.push_back(sums[chosen]);
    EXPECT_FALSE(combine_sums(wrong, files));
    for (const int change : {0, 1, 2, 3}) {
      wrong = sums;
      if (change == 0) wrong[chosen].position += 1;
      if (change == 1) wrong[chosen].bytes += 1;
      if (change == 2) wrong[chosen].bytes = 0;
      if (change == 3) wrong[chosen].file = files.size();
      EXPECT_FALSE(combine_sums(wrong, files)) << change;
    }
  });
}

TEST(PieceSums, BytesOfAnotherProcessAreChecked) {
  const PartSum sum{1, 2, 3, 4};
  std::string bytes = sums_as_bytes({&sum, 1});
  ASSERT_TRUE(sums_from_bytes(bytes));
  EXPECT_TRUE(sums_from_bytes("")->empty());
  EXPECT_FALSE(sums_from_bytes(bytes.substr(1)));
  EXPECT_FALSE(sums_from_bytes(bytes + "x"));
  bytes.back() = 1;  // a checksum beyond 32 bits
  EXPECT_FALSE(sums_from_bytes(bytes));
}

TEST(ResumePoint, IsCountedInSamples) {
  struct Row {
    std::uint64_t step, batch, updates, now;  // `now`: the batch of the run that goes on
    std::uint64_t first_step;
    std::int64_t further_updates;
  };
  for (const Row& row :
       {Row{10, 8, 10, 8, 10, 0}, Row{10, 8, 10, 16, 5, 5}, Row{10, 8, 10, 4, 20, -10},
        Row{10, 8, 10, 3, 26, -16}, Row{5, 16, 10, 16, 5, 5}, Row{5, 16, 10, 8, 10, 0},
        Row{0, 8, 0, 3, 0, 0}, Row{1, 8, 1, 100, 0, 1}, Row{10, 8, 10, 0, 10, 0}}) {
    const ResumePoint point = resume_point({.step = row.step,
                                            .samples = row.step * row.batch,
                                            .updates = row.updates,
                                            .batch = row.batch},
                                           row.now);
    EXPECT_EQ(point.step, row.first_step) << row.step << " of " << row.batch << " to " << row.now;
    EXPECT_EQ(point.further_updates, row.further_updates)
        << row.step << " of " << row.batch << " to " << row.now;
  }
}

}  // namespace
}  // namespace piper::runtime
