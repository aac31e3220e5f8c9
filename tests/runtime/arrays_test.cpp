// `arrays`: numbers of a file, by line and column, and refusals with their location.

#include <gtest/gtest.h>

#include <set>

#include "runtime/data/step_data.h"
#include "runtime/data/table.h"
#include "tests/support/temporary_folder.h"

namespace piper::runtime {
namespace {

constexpr std::int64_t kPlane[] = {4, 2, 2}, kLine[] = {4};
constexpr PiperInput kInputs[] = {
    {.name = "x", .dtype = PIPER_F32, .num_dims = 3, .dims = kPlane, .sample_dim = 0},
    {.name = "label", .dtype = PIPER_I64, .num_dims = 1, .dims = kLine, .sample_dim = 0}};
constexpr PiperInput kOne[] = {
    {.name = "y", .dtype = PIPER_F64, .num_dims = 1, .dims = kLine, .sample_dim = 0}};

PiperData arrays(const std::string& path) {
  return {.kind = 3,
          .path = path.c_str(),
          .batch = 4,
          .seq = 0,
          .classes = 0,
          .batches = 0,
          .where = {"data", {"a.pipe", 7, 3, 7, 7}},
          .sampling = PIPER_REPLACEMENT,
          .token_type = PIPER_TOKENS_BY_FILE};
}

/// Line r has the numbers 10 r to 10 r + 3, in columns that stand in another order, and the label
/// r.
std::string rows(int number, const char* comma) {
  std::string text;
  for (const char* name : {"x.2", "label", "other", "x.0", "x.1", "x.3"})
    text += std::string(text.empty() ? "" : comma) + name;
  text += "\n";
  for (int r = 0; r < number; ++r) {
    const auto cell = [&](int k) { return std::to_string(10 * r + k); };
    text += cell(2) + comma + std::to_string(r) + comma + "7" + comma + cell(0) + comma + cell(1) +
            comma + cell(3) + "\r\n\n";
  }
  return text;
}

TEST(Arrays, SamplesAreLinesOfTheFile) {
  const test::TemporaryFolder folder;
  Failure failure;
  for (const char* comma : {", ", ",", "\t", "  "}) {
    const std::string path = folder.write("points.csv", rows(9, comma));
    const auto data = open_data(arrays(path), kInputs, 5, DataUse::training, failure);
    ASSERT_TRUE(data) << failure.message;
    EXPECT_EQ(data->batches().taken, 0u);
    std::set<std::int64_t> drawn;
    for (std::uint64_t step = 0; step < 40; ++step) {
      float x[4][4], part[2][4];
      std::int64_t label[4];
      data->load(0, step, 0, 4, x);
      data->load(1, step, 0, 4, label);
      data->load(0, step, 2, 2, part);
      for (int s = 0; s < 4; ++s) {
        for (int k = 0; k < 4; ++k) {
          EXPECT_EQ(x[s][k], static_cast<float>(10 * label[s] + k));
          if (s >= 2) {
            EXPECT_EQ(part[s - 2][k], x[s][k]);  // in any member's part
          }
        }
        drawn.insert(label[s]);
      }
    }
    EXPECT_EQ(drawn.size(), 9u);
  }
}

TEST(Arrays, HeldOutLinesComeInOrder) {
  const test::TemporaryFolder folder;
  Failure failure;
  const std::string path = folder.write("points.csv", rows(8, ","));
  const auto data = open_data(arrays(path), kInputs, 5, DataUse::held_out, failure);
  ASSERT_TRUE(data) << failure.message;
  EXPECT_EQ(data->batches().taken, 2u);
  for (std::uint64_t step = 0; step < 2; ++step) {
    std::int64_t label[4];
    data->load(1, step, 0, 4, label);
    for (std::uint64_t s = 0; s < 4; ++s)
      EXPECT_EQ(label[s], static_cast<std::int64_t>(4 * step + s));
  }
}

struct Refusal {
  const char* text;
  const char* expected;  // code, line and column, message
};

TEST(Arrays, RefusesWhatIsNoTableOfTheInputs) {
  const test::TemporaryFolder folder;
  for (const Refusal& each :
       {Refusal{"", "6007 1:1 the file is empty"},
        Refusal{"y\n\n", "6007 2:1 there is no line of numbers below the header"},
        Refusal{"x,z\n1,2\n", "6008 1:1 no column is called `y`: the first line names `x`, `z`"},
        Refusal{"y,y\n1,2\n", "6008 1:3 two columns are called `y`"},
        Refusal{"y.0,y.1\n1,2\n",
                "6008 1:5 the input `y` has `1` numbers per sample, and there is a column `y.1`"},
        Refusal{"y,z\n1,2\n3, nan\n4, 5\n6\n",
                "6008 5:1 the line has `1` numbers, and the header names `2` columns"},
        Refusal{"y,z\n1,2,3\n",
                "6008 2:5 the line has `3` numbers, and the header names `2` columns"},
        Refusal{"z,y\n1,2\n3, nan\n", "6008 3:4 `nan` is no finite number"},
        Refusal{"y\n1\n1.5e\n", "6008 3:1 `1.5e` is no finite number"},
        Refusal{"y\n1\n\x1b[2J7777777777777777777777777777777777777777\n",
                "6008 3:1 `?[2J777777777777777777777777777777777777...` is no finite number"},
        Refusal{"y,z\n1,2\n,3\n", "6008 3:1 `` is no finite number"}}) {
    const std::string path = folder.write("points.csv", each.text);
    Failure failure;
    EXPECT_FALSE(open_data(arrays(path), kOne, 0, DataUse::training, failure)) << each.text;
    EXPECT_EQ(std::to_string(failure.code) + " " + std::to_string(failure.place.line) + ":" +
                  std::to_string(failure.place.column) + " " + failure.message,
              each.expected);
    EXPECT_EQ(failure.place.file, path);
    EXPECT_FALSE(failure.hint.empty());
    ASSERT_EQ(failure.notes.size(), 1u);
    EXPECT_EQ(failure.notes[0].place.line, 7u);
  }
  Failure failure;
  const std::string path =
      folder.write("points.csv", "x.0,x.1,x.2,x.3,label\n1,2,3,4,5\n1,2,3,4,2.5\n");
  EXPECT_FALSE(open_data(arrays(path), kInputs, 0, DataUse::training, failure));
  EXPECT_EQ(failure.message, "`2.5` is no integer");
  constexpr PiperInput kSingle[] = {
      {.name = "y", .dtype = PIPER_F32, .num_dims = 1, .dims = kLine, .sample_dim = 0}};
  EXPECT_FALSE(open_data(arrays(folder.write("large.csv", "y\n1\n1e39\n")), kSingle, 0,
                         DataUse::training, failure));
  EXPECT_EQ(failure.message, "`1e39` is no finite number in f32");
  EXPECT_FALSE(open_data(arrays(folder.path()), kInputs, 0, DataUse::training, failure));
  EXPECT_EQ(failure.message, "cannot read `" + std::string(folder.path()) + "`: it is a folder");
  EXPECT_EQ(failure.place.file, "a.pipe");
}

}  // namespace
}  // namespace piper::runtime
