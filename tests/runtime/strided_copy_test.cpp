// Copies between tensors whose elements lie in another order, and the conversions of their types.
#include "runtime/weights/strided_copy.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>

#include "runtime/half.h"
#include "tests/runtime/weight_file_text.h"
#include "tests/support/random_cases.h"

namespace piper::runtime {
namespace {

using test::Random;

/// Every number of 16 bits comes back from its value.
TEST(Half, ComesBackFromItsFloat) {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    Half half;
    half.bits = static_cast<std::uint16_t>(bits);
    const float value = half;
    if (std::isnan(value)) {
      EXPECT_TRUE(std::isnan(static_cast<float>(Half(value))));
    } else {
      EXPECT_EQ(Half(value).bits, bits);
    }
  }
}

TEST(Half, IsTheNearest) {
  struct Row {
    float value;
    std::uint16_t bits;
  };
  for (const Row& row :
       {Row{1, 0x3c00}, Row{-2, 0xc000}, Row{65504, 0x7bff}, Row{65519.996f, 0x7bff},
        Row{65520, 0x7c00}, Row{1e30f, 0x7c00}, Row{0x1p-14f, 0x0400}, Row{0x1p-24f, 0x0001},
        Row{0x1p-25f, 0x0000}, Row{0x1.8p-25f, 0x0001}, Row{-0x1p-30f, 0x8000},
        // Ties go to the even neighbour.
        Row{1 + 0x1p-11f, 0x3c00}, Row{1 + 0x3p-11f, 0x3c02}, Row{0x3p-25f, 0x0002},
        Row{2 - 0x1p-11f, 0x4000}})
    EXPECT_EQ(Half(row.value).bits, row.bits) << row.value;
  // Between two neighbours the nearer one.
  test::for_each_case(200, [](Random& random) {
    Half low;
    low.bits = static_cast<std::uint16_t>(random.below(0x7bff));
    Half high = low;
    ++high.bits;
    const float a = low, b = high, value = a + (b - a) * static_cast<float>(random.unit());
    const float nearest = value - a == b - value  ? (low.bits % 2 ? b : a)
                          : value - a < b - value ? a
                                                  : b;
    EXPECT_EQ(static_cast<float>(Half(value)), nearest) << value;
  });
}

/// A copy between two tensors of equal size, by a random order of some factors.
StridedCopy random_copy(Random& random) {
  StridedCopy copy;
  std::uint64_t distance = 1;
  for (std::int64_t axes = random.between(0, 5); axes > 0; --axes) {
    const auto extent = static_cast<std::uint64_t>(random.between(1, 5));
    copy.axes.push_back({extent, distance, 0});
    distance *= extent;
  }
  random.shuffle(copy.axes);
  const std::uint64_t gap = random.chance(0.3) ? 2 : 1;
  distance = gap;
  for (std::size_t k = copy.axes.size(); k-- > 0;) {
    copy.axes[k].to = distance;
    distance *= copy.axes[k].extent;
  }
  random.shuffle(copy.axes);
  copy.from = random.below(4);
  copy.to = random.below(4);
  return copy;
}

/// The elements of a copy: positions of the source by those of the target.
void add_elements(const StridedCopy& copy, std::map<std::uint64_t, std::uint64_t>& elements) {
  for (std::uint64_t i = 0; i < copy.elements(); ++i) {
    std::uint64_t number = i, from = copy.from, to = copy.to;
    for (const StridedAxis& axis : copy.axes) {
      from += number % axis.extent * axis.from;
      to += number % axis.extent * axis.to;
      number /= axis.extent;
    }
    EXPECT_TRUE(elements.emplace(to, from).second) << to << " is copied twice";
  }
}

TEST(StridedCopy, BoxesHaveEachElementOfARangeOnce) {
  test::for_each_case(500, [](Random& random) {
    const StridedCopy copy = random_copy(random);
    std::map<std::uint64_t, std::uint64_t> all;
    add_elements(copy, all);
    EXPECT_EQ(all.rbegin()->first, copy.last_to());
    std::map<std::uint64_t, std::uint64_t> found;
    for (std::uint64_t begin = 0; begin <= copy.last_to();) {
      const std::uint64_t end = begin + static_cast<std::uint64_t>(random.between(1, 40));
      for_boxes_within(copy, begin, end, [&](const StridedCopy& box) {
        EXPECT_GE(box.to, begin);
        EXPECT_LT(box.last_to(), end);
        add_elements(box, found);
      });
      begin = end;
    }
    EXPECT_EQ(found, all);
  });
}

TEST(StridedCopy, AxesInTheOrderOfTheSourceAreTheSameElements) {
  test::for_each_case(200, [](Random& random) {
    StridedCopy copy = random_copy(random);
    std::map<std::uint64_t, std::uint64_t> before, after;
    add_elements(copy, before);
    sort_by_source(copy);
    add_elements(copy, after);
    EXPECT_EQ(before, after);
  });
  StridedCopy rows{.axes = {{4, 3, 3}, {3, 1, 1}}};
  sort_by_source(rows);
  ASSERT_EQ(rows.axes.size(), 1u);
  EXPECT_EQ(rows.axes[0].extent, 12u);
}

/// A source of bytes in memory that counts what is read.
struct CountedSource {
  std::string bytes;
  std::uint64_t calls = 0, read = 0, largest = 0;
  ElementSource of(StoredType type) {
    return {type, 0, [this](std::uint64_t position, std::uint64_t count, void* to) {
              EXPECT_LE(position + count, bytes.size());
              std::memcpy(to, bytes.data() + position, count);
              ++calls;
              read += count;
              largest = std::max(largest, count);
              return std::optional<Failure>();
            }};
  }
};

TEST(ElementCopier, CopiesThroughWindowsOfAnySize) {
  test::for_each_case(300, [](Random& random) {
    const StridedCopy copy = random_copy(random);
    std::vector<double> numbers(copy.last_from() + 1);
    for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<double>(i) + 0.5;
    CountedSource source{bytes_of<float>(numbers)};
    ElementCopier copier(static_cast<std::uint64_t>(random.between(4, 64)));
    ElementBlock block{.type = StoredType::f64};
    block.resize(copy.last_to() + 1);
    ASSERT_FALSE(copier.copy(copy, source.of(StoredType::f32), block));
    EXPECT_LE(source.largest, 64u);
    const std::vector<double> copied = numbers_of<double>({block.bytes.begin(), block.bytes.end()});
    std::map<std::uint64_t, std::uint64_t> elements;
    add_elements(copy, elements);
    for (const auto& [to, from] : elements) EXPECT_EQ(copied[to], numbers[from]);
  });
}

/// One column of a matrix is read element by element if its rows are long, and one row alone.
TEST(ElementCopier, ReadsLittleBesideTheElements) {
  constexpr std::uint64_t kRows = 64, kColumns = 8192;
  CountedSource source{std::string(kRows * kColumns * 4, '\0')};
  ElementCopier copier;
  ElementBlock block;
  block.resize(kColumns);
  const StridedCopy row{.from = 3 * kColumns, .axes = {{kColumns, 1, 1}}};
  ASSERT_FALSE(copier.copy(row, source.of(StoredType::f32), block));
  EXPECT_EQ(source.read, kColumns * 4);
  EXPECT_EQ(source.calls, 1u);
  source.calls = source.read = 0;
  const StridedCopy column{.from = 5, .axes = {{kRows, kColumns, 1}}};
  ASSERT_FALSE(copier.copy(column, source.of(StoredType::f32), block));
  EXPECT_EQ(source.read, kRows * 4);
  source.calls = source.read = 0;
  // A transposed matrix is read once, in its own order.
  block.resize(kRows * kColumns);
  const StridedCopy transposed{.axes = {{kColumns, 1, kRows}, {kRows, kColumns, 1}}};
  ASSERT_FALSE(copier.copy(transposed, source.of(StoredType::f32), block));
  EXPECT_EQ(source.read, kRows * kColumns * 4);
  EXPECT_LE(source.largest, std::uint64_t{4} << 20);
}

TEST(ElementCopier, ConvertsAsTheRuntimeRounds) {
  struct Row {
    StoredType type;
    std::string bytes;
    StoredType to;
    double value;
  };
  const double third = 1.0 / 3;
  const auto bf16 = [](double x) {
    return static_cast<double>(static_cast<float>(piper_bf16(static_cast<float>(x))));
  };
  // Rounded twice, by f32, this is the even neighbour; once it would be the upper one.
  const double twice = 1 + 0x1p-8 + 0x1p-30;
  for (const Row& row : std::vector<Row>{
           {StoredType::f64, bytes_of<double>({third}), StoredType::f64, third},
           {StoredType::f64, bytes_of<double>({third}), StoredType::f32, static_cast<float>(third)},
           {StoredType::f64, bytes_of<double>({third}), StoredType::bf16, bf16(third)},
           {StoredType::f64, bytes_of<double>({twice}), StoredType::bf16, 1},
           {StoredType::f32, bytes_of<float>({third}), StoredType::bf16, bf16(third)},
           {StoredType::f32, bytes_of<float>({third}), StoredType::f64, static_cast<float>(third)},
           {StoredType::f32, bytes_of<float>({1 + 0x1p-11}), StoredType::f16, 1},
           {StoredType::bf16, bytes_of<piper_bf16>({third}), StoredType::f32, bf16(third)},
           {StoredType::bf16, bytes_of<piper_bf16>({0.75}), StoredType::f16, 0.75},
           {StoredType::f16, bytes_of<Half>({-0x1p-24}), StoredType::f64, -0x1p-24},
           {StoredType::f16, bytes_of<Half>({65504}), StoredType::f32, 65504},
           {StoredType::f16, bytes_of<Half>({0.1}), StoredType::f16,
            static_cast<float>(Half(0.1f))},
       }) {
    CountedSource source{row.bytes};
    ElementCopier copier;
    ElementBlock block{.type = row.to};
    block.resize(1);
    ASSERT_FALSE(copier.copy({}, source.of(row.type), block));
    const std::string bytes(block.bytes.begin(), block.bytes.end());
    const double value = row.to == StoredType::f64    ? numbers_of<double>(bytes)[0]
                         : row.to == StoredType::f32  ? numbers_of<float>(bytes)[0]
                         : row.to == StoredType::bf16 ? numbers_of<piper_bf16>(bytes)[0]
                                                      : numbers_of<Half>(bytes)[0];
    EXPECT_EQ(value, row.value) << stored_type_name(row.type) << stored_type_name(row.to);
    EXPECT_FALSE(copier.out_of_range);
  }
}

TEST(ElementCopier, FindsTheFirstValueBeyondTheRange) {
  const double infinity = std::numeric_limits<double>::infinity();
  CountedSource source{bytes_of<double>({1, infinity, -1e39, 7e4, 1e300})};
  const StridedCopy all{.axes = {{5, 1, 1}}};
  for (const auto& [type, from] : {std::pair{StoredType::f64, -1},
                                   {StoredType::f32, 2},
                                   {StoredType::bf16, 2},
                                   {StoredType::f16, 2}}) {
    ElementCopier copier;
    ElementBlock block{.type = type};
    block.resize(5);
    ASSERT_FALSE(copier.copy(all, source.of(StoredType::f64), block));
    ASSERT_EQ(copier.out_of_range.has_value(), from >= 0);
    if (from < 0) continue;
    EXPECT_EQ(copier.out_of_range->value, -1e39);
    EXPECT_EQ(copier.out_of_range->from, 2u);
  }
}

}  // namespace
}  // namespace piper::runtime
