// runtime/kernel_math.h against the C library (in long double), from subnormal numbers to overflow,
// and the random numbers of runtime/kernel_random.h. A function without a row or a separate test
// fails `TheTablesNameEveryFunctionOfTheHeader`.

#include "runtime/kernel_math.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <random>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/golden.h"

namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

/// A function under test: the implementation for one type, and the expected value.
template <typename T>
struct Function {
  std::function<T(T, T)> ours;  // the second argument: of functions of two
  double ulps = 0;
  double absolute = 0;  // times the larger of 1 and |x|, in addition to the units in the last place
};
using Exact = std::function<long double(long double, long double)>;

struct Row {
  const char* name;
  Exact exact;
  Function<float> in_float;
  Function<double> in_double;
  // Random numbers are drawn from here, besides the special values and all magnitudes.
  std::vector<std::pair<double, double>> ranges = {{-2, 2}, {-20, 20}};
  // The domain; NaN always goes through.
  double least = -kInf, most = kInf;
};

long double sigmoid(long double x) { return 1 / (1 + std::exp(-x)); }
long double gelu_slope(long double x) {
  return 0.5L * (1 + std::erf(x / std::sqrt(2.0L))) +
         x * std::exp(-x * x / 2) / std::sqrt(2 * M_PIl);
}

// Both types of one call.
#define UNARY(f) [](auto x, auto) { return f(x); }
#define BINARY(f) [](auto x, auto y) { return f(x, y); }

// Every function of kernel_math.h that maps numbers to a number.
const Row kRows[] = {
    {"abs", [](auto x, auto) { return std::fabs(x); }, {UNARY(piper_abs)}, {UNARY(piper_abs)}},
    {"copysign",
     [](auto x, auto y) { return std::copysign(x, y); },
     {BINARY(piper_copysign)},
     {BINARY(piper_copysign)}},
    {"max",
     [](auto x, auto y) { return x >= y ? x : y; },
     {BINARY(piper_max)},
     {BINARY(piper_max)}},
    {"min",
     [](auto x, auto y) { return x <= y ? x : y; },
     {BINARY(piper_min)},
     {BINARY(piper_min)}},
    {"sqrt",
     [](auto x, auto) { return std::sqrt(x); },
     {UNARY(piper_sqrt), 0.51},
     {UNARY(piper_sqrt), 0.51}},
    {"rsqrt",
     [](auto x, auto) { return 1 / std::sqrt(x); },
     {UNARY(piper_rsqrt), 2},
     {UNARY(piper_rsqrt), 2}},
    {"exp",
     [](auto x, auto) { return std::exp(x); },
     {UNARY(piper_exp), 3},
     {UNARY(piper_exp), 3},
     {{-1, 1}, {-104, 89}, {-746, 710}}},
    {"log",
     [](auto x, auto) { return std::log(x); },
     {UNARY(piper_log), 3},
     {UNARY(piper_log), 3},
     {{0, 3}, {0.5, 1.5}, {0, 1e30}}},
    {"log1p",
     [](auto x, auto) { return std::log1p(x); },
     {UNARY(piper_log1p), 3},
     {UNARY(piper_log1p), 3},
     {{0, 1e-3}, {0, 2}},
     0,
     kInf},
    // Below exp's overflow 0 comes out where the result could still be a subnormal number.
    {"sigmoid",
     [](auto x, auto) { return sigmoid(x); },
     {UNARY(piper_sigmoid), 5, 1e-37},
     {UNARY(piper_sigmoid), 5, 1e-307},
     {{-20, 20}, {-110, 110}, {-720, 720}}},
    {"softplus",
     [](auto x, auto) {
       return std::fmax(x, 0.0L) + (std::isnan(x) ? x : std::log1p(std::exp(-std::fabs(x))));
     },
     {UNARY(piper_softplus), 5},
     {UNARY(piper_softplus), 5},
     {{-20, 20}, {-110, 110}, {-750, 750}}},
    {"sin",
     [](auto x, auto) { return std::sin(x); },
     {UNARY(piper_sin), 1},
     {UNARY(piper_sin), 3},
     {{-1, 1}, {-10, 10}, {-1e4, 1e4}, {-1.3e8, 1.3e8}},
     -0x1p27,
     0x1p27},
    {"cos",
     [](auto x, auto) { return std::cos(x); },
     {UNARY(piper_cos), 1},
     {UNARY(piper_cos), 3},
     {{-1, 1}, {-10, 10}, {-1e4, 1e4}, {-1.3e8, 1.3e8}},
     -0x1p27,
     0x1p27},
    {"tanh",
     [](auto x, auto) { return std::tanh(x); },
     {UNARY(piper_tanh), 3},
     {UNARY(piper_tanh), 3}},
    {"erf",
     [](auto x, auto) { return std::erf(x); },
     {UNARY(piper_erf), 8},
     {UNARY(piper_erf), 4},
     {{-0.1, 0.1}, {-2, 2}, {-7, 7}}},
    {"relu", [](auto x, auto) { return x < 0 ? 0 : x; }, {UNARY(piper_relu)}, {UNARY(piper_relu)}},
    {"relu_grad",
     [](auto x, auto y) { return x > 0 ? y : 0; },
     {BINARY(piper_relu_grad)},
     {BINARY(piper_relu_grad)}},
    {"gelu",
     [](auto x, auto) { return 0.5L * x * (1 + std::erf(x / std::sqrt(2.0L))); },
     {UNARY(piper_gelu), 8, 3e-7},
     {UNARY(piper_gelu), 8, 2e-16},
     {{-2, 2}, {-10, 10}}},
    {"gelu_grad",
     [](auto x, auto y) { return y * gelu_slope(x); },
     {BINARY(piper_gelu_grad), 8, 3e-7},
     {BINARY(piper_gelu_grad), 8, 5e-16},
     {{-2, 2}, {-10, 10}},
     -1e15,
     1e15},
    {"silu",
     [](auto x, auto) { return x * sigmoid(x); },
     {UNARY(piper_silu), 6, 1e-37},
     {UNARY(piper_silu), 6, 1e-307},
     {{-20, 20}, {-110, 110}, {-720, 720}}},
    {"silu_grad",
     [](auto x, auto y) { return y * (sigmoid(x) * (1 + x * (1 - sigmoid(x)))); },
     {BINARY(piper_silu_grad), 8, 4e-7},
     {BINARY(piper_silu_grad), 8, 1e-15},
     {{-20, 20}, {-110, 110}},
     -1e15,
     1e15},
};
/// A function for operations on bf16. All 2^16 numbers are tried.
struct BriefRow {
  const char* name;
  std::function<float(float, float)> ours;
  Exact exact;
  // The absolute error allowed for rounded results, if larger than one unit in the last place of
  // bf16.
  double absolute = 0;
  // of 2^-7 <= |x| <= 8: the fraction that may round to a neighbour of the exact result
  double share = 0;
};
const BriefRow kBriefRows[] = {
    {"bf16_exp", UNARY(piper_bf16_exp), [](auto x, auto) { return std::exp(x); }, 0x1p-100, 0.001},
    {"bf16_sigmoid", UNARY(piper_bf16_sigmoid), [](auto x, auto) { return sigmoid(x); }, 0x1p-100,
     0.001},
    {"bf16_softplus", UNARY(piper_bf16_softplus),
     [](auto x, auto) {
       return std::fmax(x, 0.0L) + (std::isnan(x) ? x : std::log1p(std::exp(-std::fabs(x))));
     },
     0x1p-100, 0.001},
    {"bf16_tanh", UNARY(piper_bf16_tanh), [](auto x, auto) { return std::tanh(x); }, 0, 0.001},
    {"bf16_gelu", UNARY(piper_bf16_gelu),
     [](auto x, auto) { return x * std::erfc(-x / std::sqrt(2.0L)) / 2; }, 1.5e-6, 0.06},
    {"bf16_gelu_grad", BINARY(piper_bf16_gelu_grad),
     [](auto x, auto y) { return y * gelu_slope(x); }, 6e-6, 0.07},
    {"bf16_silu", UNARY(piper_bf16_silu), [](auto x, auto) { return x * sigmoid(x); }, 0x1p-100,
     0.002},
    {"bf16_silu_grad", BINARY(piper_bf16_silu_grad),
     [](auto x, auto y) { return y * (sigmoid(x) * (1 + x * (1 - sigmoid(x)))); }, 0x1p-100, 0.002},
};

// Functions that the other tests of this file call.
const std::set<std::string> kOthers = {"bisect",         "fma",           "clamp",
                                       "bf16_inverse",   "bf16_split",    "bf16_bits",
                                       "round_bf16",     "bits",          "from_bits",
                                       "infinity",       "quarter_turns", "sin_of_quarter",
                                       "cos_of_quarter", "join_sum",      "join_max",
                                       "philox_4x32",    "name_hash",     "stream_key",
                                       "random_u32",     "random_u32s",   "random_u64",
                                       "random_uniform", "random_normal", "first_value",
                                       "kept",           "dropout"};

/// Special values, numbers of every magnitude and sign, and the ranges of the row.
template <typename T>
std::vector<T> arguments(const Row& row) {
  using Limits = std::numeric_limits<T>;
  std::vector<T> all = {0,
                        1,
                        2,
                        4,
                        T(0.625),
                        T(6.5),
                        Limits::denorm_min(),
                        Limits::denorm_min() * 7,
                        Limits::min() / 2,
                        Limits::min(),
                        Limits::epsilon(),
                        1 - Limits::epsilon() / 2,
                        1 + Limits::epsilon(),
                        Limits::max() / 2,
                        Limits::max(),
                        Limits::infinity(),
                        Limits::quiet_NaN()};
  for (std::size_t i = 0, n = all.size(); i < n; ++i) all.push_back(-all[i]);
  std::mt19937_64 random(7);
  std::uniform_real_distribution<double> exponent(Limits::min_exponent - Limits::digits,
                                                  Limits::max_exponent),
      mantissa(1, 2);
  for (int i = 0; i < 2000; ++i) {
    const T x =
        static_cast<T>(std::ldexp(mantissa(random), static_cast<int>(exponent(random)) - 1));
    all.push_back(i % 2 == 0 ? x : -x);
  }
  for (const auto& [low, high] : row.ranges) {
    std::uniform_real_distribution<double> uniform(low, high);
    for (int i = 0; i < 4000; ++i) all.push_back(static_cast<T>(uniform(random)));
  }
  return all;
}

/// The error of `found`, as a fraction of the allowed one.
template <typename T>
double excess(T found, long double exact, T x, const Function<T>& function) {
  const T expected = static_cast<T>(exact);
  if (std::isnan(found) || std::isnan(exact))
    return std::isnan(found) && std::isnan(exact) ? 0 : kInf;
  if (found == expected) return 0;
  // The largest number and infinity are neighbours.
  const long double largest = std::numeric_limits<T>::max();
  const long double at = std::isinf(found) ? std::copysign(largest, found) : found,
                    to = std::isinf(expected) ? std::copysign(largest, expected) : exact;
  const long double size =
      std::max(std::fabs(to), static_cast<long double>(std::numeric_limits<T>::min()));
  const long double unit = std::ldexp(1.0L, std::ilogb(size) - std::numeric_limits<T>::digits + 1);
  const long double allowed =
      function.ulps * unit +
      function.absolute * std::max(1.0L, std::fabs(static_cast<long double>(x)));
  return allowed == 0 ? kInf : static_cast<double>(std::fabs(at - to) / allowed);
}

template <typename T>
void check_row(const Row& row, const Function<T>& function) {
  double worst = 0, checked = 0;
  T at = 0, other = 0;
  for (const T x : arguments<T>(row)) {
    if (static_cast<double>(x) < row.least || static_cast<double>(x) > row.most) continue;
    for (const T y : {T(1.5), T(-0.75)}) {
      const long double exact = row.exact(x, y);
      const T found = function.ours(x, y);
      const double off = excess(found, exact, x, function);
      ++checked;
      if (off > worst) worst = off, at = x, other = y;
      if (x == 0 && exact == 0) {
        EXPECT_EQ(std::signbit(found), std::signbit(exact)) << row.name << " of " << x << ", " << y;
      }
    }
  }
  EXPECT_GT(checked, 1000) << row.name;
  EXPECT_LE(worst, 1) << row.name << " of " << at << ", " << other << " is "
                      << function.ours(at, other) << " and should be " << row.exact(at, other);
}

TEST(KernelMath, EveryFunctionOfTheTableInFloat) {
  for (const Row& row : kRows) check_row(row, row.in_float);
}

TEST(KernelMath, EveryFunctionOfTheTableInDouble) {
  for (const Row& row : kRows) check_row(row, row.in_double);
}

TEST(KernelMath, BisectFindsThePieceOfEveryPosition) {
  for (const std::vector<std::int64_t>& ends :
       {std::vector<std::int64_t>{1}, {5}, {1, 2}, {3, 7, 8}, {2, 4, 6, 9, 20, 21, 40}}) {
    for (std::int64_t position = 0; position < ends.back() + 3; ++position) {
      const auto above = std::upper_bound(ends.begin(), ends.end(), position);
      const auto last = static_cast<std::ptrdiff_t>(ends.size()) - 1;
      EXPECT_EQ(piper_bisect(ends.data(), static_cast<int>(ends.size()), position),
                std::min(above - ends.begin(), last))
          << position << " of " << ends.size() << " pieces";
    }
  }
}

TEST(KernelMath, TheTablesNameEveryFunctionOfTheHeader) {
  std::set<std::string> defined, known = kOthers;
  for (const Row& row : kRows) known.insert(row.name);
  for (const BriefRow& row : kBriefRows) known.insert(row.name);
  const std::regex definition(R"(\bPIPER_MATH [A-Za-z_0-9 ]+ piper_([a-z_0-9]+)\()");
  for (const char* path : {"runtime/kernel_math.h", "runtime/kernel_random.h"}) {
    const std::string header = piper::test::read_text(path).value_or("");
    for (std::sregex_iterator found(header.begin(), header.end(), definition), end; found != end;
         ++found)
      defined.insert((*found)[1]);
  }
  EXPECT_EQ(defined, known)
      << "a function of the headers without a row, or a row without its function";
}

double unit_of_bf16(float x) { return std::ldexp(1.0, std::max(std::ilogb(x), -126) - 7); }

TEST(KernelMath, BriefFunctionsOfEveryNumberOfBf16) {
  for (const BriefRow& row : kBriefRows) {
    int differing = 0, common = 0;
    for (std::uint32_t bits = 0; bits < 1u << 16; ++bits) {
      const float x = piper_from_bits(bits << 16), y = 1.5f;
      const float found = piper_round_bf16(row.ours(x, y)),
                  expected = piper_round_bf16(static_cast<float>(row.exact(x, y)));
      if (std::isnan(x) || std::isinf(x)) {
        ASSERT_TRUE(std::isinf(x) || std::isnan(found)) << row.name << " loses a NaN";
        continue;
      }
      const double off = found == expected
                             ? 0
                             : std::abs(static_cast<double>(found) - static_cast<double>(expected));
      ASSERT_LE(off, std::max(unit_of_bf16(expected), row.absolute))
          << row.name << " of " << x << " is " << found << " and should be " << expected;
      if (std::abs(x) < 0x1p-7f || std::abs(x) > 8) continue;
      ++common;
      if (off > 0) ++differing;
    }
    EXPECT_LE(differing, row.share * common) << row.name;
  }
}

TEST(KernelMath, BriefFunctionsAtTheEnds) {
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(piper_bf16_exp(infinity), infinity);
  EXPECT_EQ(piper_bf16_exp(-infinity), 0) << "what is masked counts for nothing";
  EXPECT_EQ(piper_bf16_exp(0.0f), 1);
  EXPECT_EQ(piper_round_bf16(piper_bf16_sigmoid(infinity)), 1);
  EXPECT_EQ(piper_bf16_sigmoid(-infinity), 0);
  EXPECT_EQ(piper_bf16_softplus(infinity), infinity);
  EXPECT_EQ(piper_bf16_softplus(-infinity), 0);
  EXPECT_EQ(piper_bf16_gelu(infinity), infinity);
  EXPECT_EQ(piper_bf16_gelu(-1e30f), 0);
  EXPECT_EQ(piper_bf16_silu(-1e30f), 0);
  for (const auto& f : {piper_bf16_tanh, piper_bf16_gelu, piper_bf16_silu})
    EXPECT_TRUE(std::signbit(f(-0.0f)) && f(-0.0f) == 0);
  EXPECT_EQ(piper_fma(3, 5, 7), 22);
  EXPECT_EQ(piper_clamp(-7, -2, 3), -2);
  EXPECT_TRUE(std::isnan(piper_clamp(std::numeric_limits<float>::quiet_NaN(), -2, 3)));
  EXPECT_NEAR(piper_bf16_inverse(1.75f), 1 / 1.75, 1e-6);
  EXPECT_NEAR(piper_bf16_split(3).high + piper_bf16_split(3).low, 1, 1e-5);
}

/// The nearest number of 8 bits, by a plain definition: both neighbours among the 2^16, and which
/// of them is nearer; of two alike the even one.
float nearest_bf16(float x) {
  if (std::isnan(x)) return x;
  const std::uint32_t below = piper_bits(x) >> 16, above = below + 1;  // by magnitude
  const double exact = std::abs(static_cast<double>(x));
  const auto magnitude = [](std::uint32_t bits) {
    // The value after the largest number; from half-way to it on results are infinite.
    const double beyond = 0x1p128;
    const std::uint32_t of = bits & 0x7fff;
    return of == 0x7f80 ? beyond : static_cast<double>(piper_from_bits(of << 16));
  };
  if (std::isinf(x)) return x;
  const double down = exact - magnitude(below), up = magnitude(above) - exact;
  const std::uint32_t chosen = down < up || (down == up && (below & 1) == 0) ? below : above;
  return piper_from_bits(chosen << 16);
}

void check_bf16(float x) {
  const piper_bf16 stored = x;
  const float read = stored, rounded = piper_round_bf16(x), expected = nearest_bf16(x);
  if (std::isnan(x)) {
    ASSERT_TRUE(std::isnan(read) && std::isnan(rounded)) << std::hex << piper_bits(x);
    return;
  }
  ASSERT_EQ(piper_bits(rounded), piper_bits(expected))
      << x << " rounds to " << rounded << ", not to " << expected;
  ASSERT_EQ(piper_bits(read), piper_bits(rounded));
}

TEST(Bfloat16, EveryNumberIsItselfAndAllOthersRoundToTheNearest) {
  for (std::uint32_t bits = 0; bits < 1u << 16; ++bits) {
    const float x = piper_from_bits(bits << 16);
    piper_bf16 one;
    one.bits = static_cast<unsigned short>(bits);
    const float read = one;
    ASSERT_EQ(piper_bits(read), bits << 16);
    check_bf16(x);
    if (!std::isnan(x)) {
      ASSERT_EQ(piper_bits(piper_round_bf16(x)), bits << 16);
    }
    // Behind it: just beyond, the tie and its neighbours, just before the next.
    for (const std::uint32_t low : {0x0001u, 0x7fffu, 0x8000u, 0x8001u, 0xffffu})
      check_bf16(piper_from_bits(bits << 16 | low));
  }
  std::mt19937 random(7);
  for (int i = 0; i < 1000000; ++i)
    check_bf16(piper_from_bits(static_cast<std::uint32_t>(random())));
}

template <typename T>
void check_beyond() {
  EXPECT_EQ(piper_infinity(T(0)), std::numeric_limits<T>::infinity());
  for (const T x :
       {T(0x1p28), -T(0x1p28), std::numeric_limits<T>::max(), std::numeric_limits<T>::infinity()}) {
    EXPECT_TRUE(std::isnan(piper_sin(x)) && std::isnan(piper_cos(x))) << x;
  }
  for (const T x : {T(0), T(-0.0), T(1), T(-2.5), std::numeric_limits<T>::denorm_min(),
                    std::numeric_limits<T>::infinity()}) {
    EXPECT_EQ(piper_bits(piper_from_bits(piper_bits(x))), piper_bits(x));
  }
  T lanes[16];
  for (int l = 0; l < 16; ++l) lanes[l] = T(l * l % 7) - 3;
  EXPECT_EQ(piper_join_sum(lanes), std::accumulate(lanes, lanes + 16, T(0)));
  EXPECT_EQ(piper_join_max(lanes), *std::max_element(lanes, lanes + 16));
  for (int l = 0; l < 16; ++l) {  // each lane counts
    T one[16] = {};
    one[l] = T(l + 1);
    EXPECT_EQ(piper_join_sum(one), T(l + 1));
    EXPECT_EQ(piper_join_max(one), T(l + 1));
  }
}

TEST(KernelMath, BeyondTheTables) {
  check_beyond<float>();
  check_beyond<double>();
  piper_u64 quarter = 0;
  // 10 = 6 quarters and a bit.
  EXPECT_NEAR(piper_quarter_turns(10.0, &quarter), 10.0 - 3 * M_PI, 1e-15);
  EXPECT_EQ(quarter, 6u % 4);
  EXPECT_NEAR(piper_sin_of_quarter(0.5), std::sin(0.5), 1e-16);
  EXPECT_NEAR(piper_cos_of_quarter(0.5), std::cos(0.5), 1.2e-16);
  EXPECT_EQ(piper_name_hash("a", 1), 0xaf63dc4c8601ec8cull) << "the known answer of FNV-1a";
  const piper_random_key key = {1, 2};
  const piper_philox words = piper_philox_4x32(5, 1, 0, 0, key);
  unsigned both[8];
  piper_random_u32s<8>(key, (1ull << 34) | 20, both);
  for (unsigned w = 0; w < 4; ++w) {
    EXPECT_EQ(piper_random_u32(key, (1ull << 34) | (20 + w)), words.word[w]) << "the fifth four";
    EXPECT_EQ(both[w], words.word[w]);
    EXPECT_EQ(both[4 + w], piper_random_u32(key, (1ull << 34) | (24 + w)));
  }
  EXPECT_EQ(piper_random_u64(key, (1ull << 32) | 5),
            words.word[0] | (piper_u64{words.word[1]} << 32));
}

// Known answers of Random123 for Philox 4x32-10.
TEST(KernelMath, PhiloxKnownAnswers) {
  const piper_philox zero = piper_philox_4x32(0, 0, 0, 0, {0, 0});
  EXPECT_EQ(std::vector<unsigned>(zero.word, zero.word + 4),
            (std::vector<unsigned>{0x6627e8d5u, 0xe169c58du, 0xbc57ac4cu, 0x9b00dbd8u}));
  const unsigned f = 0xffffffffu;
  const piper_philox ones = piper_philox_4x32(f, f, f, f, {f, f});
  EXPECT_EQ(std::vector<unsigned>(ones.word, ones.word + 4),
            (std::vector<unsigned>{0x408f276du, 0x41c83b0eu, 0xa20bc7c6u, 0x6d5451fdu}));
  const piper_philox pi = piper_philox_4x32(0x243f6a88u, 0x85a308d3u, 0x13198a2eu, 0x03707344u,
                                            {0xa4093822u, 0x299f31d0u});
  EXPECT_EQ(std::vector<unsigned>(pi.word, pi.word + 4),
            (std::vector<unsigned>{0xd16cfe09u, 0x94fdccebu, 0x5001e420u, 0x24126ea1u}));
}

TEST(KernelMath, RandomMoments) {
  const piper_random_key key =
      piper_stream_key(3, PIPER_RANDOM_INIT, 0, 0, piper_name_hash("block.0.q", 9));
  const int n = 200000;
  double sum = 0, square = 0, fourth = 0, uniform = 0;
  for (int i = 0; i < n; ++i) {
    const double x = piper_random_normal(key, static_cast<piper_u64>(i));
    sum += x;
    square += x * x;
    fourth += x * x * x * x;
    const double u = piper_random_uniform(key, static_cast<piper_u64>(i));
    ASSERT_TRUE(u >= 0 && u < 1);
    uniform += u;
  }
  EXPECT_NEAR(sum / n, 0, 0.01);
  EXPECT_NEAR(square / n, 1, 0.015);
  EXPECT_NEAR(fourth / n, 3, 0.1);
  EXPECT_NEAR(uniform / n, 0.5, 0.005);
}

TEST(KernelMath, StreamsDiffer) {
  std::set<piper_u64> keys;
  for (piper_u64 seed : {0, 1}) {
    for (piper_u32 purpose : {0, 1, 2}) {
      for (piper_u64 step : {0ull, 1ull, 1ull << 32}) {
        for (piper_u64 sample : {0ull, 1ull, 1ull << 32}) {
          for (piper_u64 name : {piper_name_hash("a", 1), piper_name_hash("b", 1)}) {
            const piper_random_key key = piper_stream_key(seed, purpose, step, sample, name);
            keys.insert((piper_u64{key.high} << 32) | key.low);
          }
        }
      }
    }
  }
  EXPECT_EQ(keys.size(), 2u * 3 * 3 * 3 * 2);
}

TEST(KernelMath, DropoutKeepsTheMean) {
  const piper_random_key key =
      piper_stream_key(3, PIPER_RANDOM_DROPOUT, 1, 5, piper_name_hash("drop", 4));
  double sum = 0;
  int kept = 0;
  for (piper_u64 i = 0; i < 100000; ++i) {
    const float y = piper_dropout(1.0f, 0.25, key, i);
    sum += y;
    kept += y != 0;
  }
  EXPECT_NEAR(sum / 100000, 1.0, 0.01);
  EXPECT_NEAR(kept / 100000.0, 0.75, 0.01);
}

}  // namespace
