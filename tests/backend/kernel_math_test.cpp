// Accuracy of runtime/kernel_math.h against the C library (in long double), its special values, and its random numbers.

#include "runtime/kernel_math.h"

#include <cmath>
#include <functional>
#include <limits>
#include <random>
#include <set>
#include <vector>

#include <gtest/gtest.h>

namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

/// Distance in units of the last place of T at `expected`, but no finer than at the least normal number.
template <typename T>
double ulps(T found, long double expected) {
  if (std::isnan(found) && std::isnan(expected)) return 0;
  if (std::isinf(found) || std::isinf(static_cast<T>(expected))) return found == static_cast<T>(expected) ? 0 : kInf;
  const long double size = std::max(std::fabs(expected), static_cast<long double>(std::numeric_limits<T>::min()));
  const long double unit = std::ldexp(1.0L, std::ilogb(size) - std::numeric_limits<T>::digits + 1);
  return static_cast<double>(std::fabs(static_cast<long double>(found) - expected) / unit);
}

template <typename T>
double worst(double low, double high, const std::function<T(T)>& ours, const std::function<long double(long double)>& exact) {
  std::mt19937_64 random(7);
  std::uniform_real_distribution<double> uniform(low, high);
  double worst = 0;
  for (int i = 0; i < 40000; ++i) {
    const T x = static_cast<T>(uniform(random));
    worst = std::max(worst, ulps<T>(ours(x), exact(static_cast<long double>(x))));
  }
  return worst;
}

long double softplus(long double x) { return std::max(x, 0.0L) + std::log1p(std::exp(-std::fabs(x))); }
long double sigmoid(long double x) { return 1 / (1 + std::exp(-x)); }

template <typename T>
void check_accuracy(double exp_range, double bound) {
  EXPECT_LE((worst<T>(-exp_range, exp_range, [](T x) { return piper_exp(x); }, [](long double x) { return std::exp(x); })), bound);
  EXPECT_LE((worst<T>(-1, 1, [](T x) { return piper_exp(x); }, [](long double x) { return std::exp(x); })), bound);
  EXPECT_LE((worst<T>(0, 3, [](T x) { return piper_log(x); }, [](long double x) { return std::log(x); })), bound);
  EXPECT_LE((worst<T>(0, 1e30, [](T x) { return piper_log(x); }, [](long double x) { return std::log(x); })), bound);
  EXPECT_LE((worst<T>(0, 1e-3, [](T x) { return piper_log1p(x); }, [](long double x) { return std::log1p(x); })), bound);
  EXPECT_LE((worst<T>(0, 2, [](T x) { return piper_log1p(x); }, [](long double x) { return std::log1p(x); })), bound);
  EXPECT_LE((worst<T>(-2, 2, [](T x) { return piper_tanh(x); }, [](long double x) { return std::tanh(x); })), bound);
  EXPECT_LE((worst<T>(-20, 20, [](T x) { return piper_tanh(x); }, [](long double x) { return std::tanh(x); })), bound);
  EXPECT_LE((worst<T>(-20, 20, [](T x) { return piper_softplus(x); }, softplus)), bound + 2);
  EXPECT_LE((worst<T>(-20, 20, [](T x) { return piper_sigmoid(x); }, sigmoid)), bound + 2);
}

TEST(KernelMath, Float) {
  check_accuracy<float>(87, 3);
  EXPECT_LE((worst<float>(-6, 6, [](float x) { return piper_erf(x); }, [](long double x) { return std::erf(x); })), 8);
}

TEST(KernelMath, Double) {
  check_accuracy<double>(700, 3);
  EXPECT_LE((worst<double>(-6, 6, [](double x) { return piper_erf(x); }, [](long double x) { return std::erf(x); })), 4);
  EXPECT_LE((worst<double>(-0.1, 0.1, [](double x) { return piper_erf(x); }, [](long double x) { return std::erf(x); })), 4);
}

template <typename T>
void check_special_values() {
  const T infinity = std::numeric_limits<T>::infinity(), nan = std::numeric_limits<T>::quiet_NaN();
  EXPECT_EQ(piper_exp(T(0)), T(1));
  EXPECT_EQ(piper_exp(-infinity), T(0));
  EXPECT_EQ(piper_exp(infinity), infinity);
  EXPECT_EQ(piper_exp(T(1000)), infinity);
  EXPECT_EQ(piper_exp(T(-1000)), T(0));
  EXPECT_EQ(piper_log(T(1)), T(0));
  EXPECT_EQ(piper_log(T(0)), -infinity);
  EXPECT_EQ(piper_log(infinity), infinity);
  EXPECT_TRUE(std::isnan(piper_log(T(-1))));
  EXPECT_EQ(piper_tanh(infinity), T(1));
  EXPECT_EQ(piper_tanh(-infinity), T(-1));
  EXPECT_EQ(piper_tanh(T(0)), T(0));
  EXPECT_EQ(piper_sigmoid(-infinity), T(0));
  EXPECT_EQ(piper_sigmoid(infinity), T(1));
  EXPECT_EQ(piper_softplus(infinity), infinity);
  EXPECT_EQ(piper_softplus(-infinity), T(0));
  EXPECT_NEAR(piper_erf(T(5)), T(1), 1e-6);
  EXPECT_EQ(piper_erf(T(0)), T(0));
  const T least = std::numeric_limits<T>::denorm_min() * T(4);
  EXPECT_NEAR(piper_log(least), std::log(least), 1e-5 * std::fabs(std::log(least)));
  for (const T value : {piper_exp(nan), piper_log(nan), piper_log1p(nan), piper_tanh(nan), piper_sigmoid(nan), piper_softplus(nan), piper_erf(nan),
                        piper_sqrt(nan), piper_rsqrt(nan), piper_relu(nan), piper_gelu(nan), piper_silu(nan)}) {
    EXPECT_TRUE(std::isnan(value));
  }
}

TEST(KernelMath, SpecialValues) {
  check_special_values<float>();
  check_special_values<double>();
  EXPECT_GT(piper_exp(-740.0), 0.0) << "subnormal results come out";
  EXPECT_TRUE(std::isnan(piper_exp(kNan)));
}

// Known answers of Random123 for Philox 4x32-10.
TEST(KernelMath, PhiloxKnownAnswers) {
  const piper_philox zero = piper_philox_4x32(0, 0, 0, 0, {0, 0});
  EXPECT_EQ(std::vector<unsigned>(zero.word, zero.word + 4), (std::vector<unsigned>{0x6627e8d5u, 0xe169c58du, 0xbc57ac4cu, 0x9b00dbd8u}));
  const unsigned f = 0xffffffffu;
  const piper_philox ones = piper_philox_4x32(f, f, f, f, {f, f});
  EXPECT_EQ(std::vector<unsigned>(ones.word, ones.word + 4), (std::vector<unsigned>{0x408f276du, 0x41c83b0eu, 0xa20bc7c6u, 0x6d5451fdu}));
  const piper_philox pi = piper_philox_4x32(0x243f6a88u, 0x85a308d3u, 0x13198a2eu, 0x03707344u, {0xa4093822u, 0x299f31d0u});
  EXPECT_EQ(std::vector<unsigned>(pi.word, pi.word + 4), (std::vector<unsigned>{0xd16cfe09u, 0x94fdccebu, 0x5001e420u, 0x24126ea1u}));
}

TEST(KernelMath, RandomMoments) {
  const piper_random_key key = piper_stream_key(3, PIPER_RANDOM_INIT, 0, 0, piper_name_hash("block.0.q", 9));
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
  const piper_random_key key = piper_stream_key(3, PIPER_RANDOM_DROPOUT, 1, 5, piper_name_hash("drop", 4));
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
