#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <fstream>
#include <iterator>
#include <vector>

#include "runtime/cpu/arena.h"
#include "runtime/device/state.h"
#include "runtime/executor/parameters.h"
#include "runtime/kernel_math.h"
#include "runtime/options.h"
#include "tests/runtime/sample_jobs.h"

namespace piper::runtime {
namespace {

// The kernel gives a process a limited number of mappings, and there are many devices.
TEST(State, SmallArenasShareMappings) {
  const auto mappings = [] {
    std::ifstream file("/proc/self/maps");
    return std::count(std::istreambuf_iterator<char>(file), {}, '\n');
  };
  const auto before = mappings();
  std::vector<Arena> arenas(200);
  for (Arena& arena : arenas) ASSERT_TRUE(arena.allocate(5000, {}));
  EXPECT_LT(mappings() - before, 20);
}

TEST(State, FirstValuesDependOnNameSeedAndElementAlone) {
  constexpr std::uint64_t kElements = 10000;
  const auto values = [](std::uint64_t seed, const char* name, std::uint64_t padding, auto zero) {
    using T = decltype(zero);
    HandProgram program(0);
    program.allocate<double>(padding);
    const std::uint64_t at = program.allocate<T>(kElements),
                        gradient = program.allocate<T>(kElements);
    program.param(name, at, gradient, kElements, dtype_of<T>(), PIPER_NORMAL, 0.02);
    program.compute("F", {}, [](Step&) { return 0; });
    const PiperProgram* tables = program.finish();
    Arena arena;
    EXPECT_TRUE(arena.allocate(tables->arena_bytes, {}));
    initialise_parameters(*tables, seed, nullptr, arena.base(), nullptr);
    const T* const from = reinterpret_cast<const T*>(arena.base() + at);
    return std::vector<double>(from, from + kElements);
  };
  const auto first = values(1, "w", 0, 0.0);
  EXPECT_EQ(values(1, "w", 999, 0.0), first);
  EXPECT_NE(values(2, "w", 0, 0.0), first);
  EXPECT_NE(values(1, "v", 0, 0.0), first);
  const auto single = values(1, "w", 3, 0.0f);
  double sum = 0, squares = 0;
  for (std::size_t i = 0; i < first.size(); ++i) {
    EXPECT_EQ(single[i], static_cast<double>(static_cast<float>(first[i])));
    sum += first[i];
    squares += first[i] * first[i];
  }
  EXPECT_NEAR(sum / kElements, 0, 0.001);
  EXPECT_NEAR(std::sqrt(squares / kElements), 0.02, 0.0005);
}

/// Many first values are computed by several threads, in pieces: each equals the value computed
/// alone.
TEST(State, ManyFirstValuesAreThoseOfTheirElements) {
  constexpr std::uint64_t kPiece = 1 << 20, kElements = 2 * kPiece + 77;
  HandProgram program(0);
  const std::uint64_t at = program.allocate<float>(kElements),
                      gradient = program.allocate<float>(kElements);
  program.param("w", at, gradient, kElements, dtype_of<float>(), PIPER_NORMAL, 0.02);
  program.compute("F", {}, [](Step&) { return 0; });
  const PiperProgram* tables = program.finish();
  Arena arena;
  ASSERT_TRUE(arena.allocate(tables->arena_bytes, {}));
  initialise_parameters(*tables, 5, nullptr, arena.base(), nullptr);
  const float* const values = reinterpret_cast<const float*>(arena.base() + at);
  const piper_random_key key =
      piper_stream_key(5, PIPER_RANDOM_INIT, 0, 0, piper_name_hash("w", 1));
  for (const std::uint64_t i : {std::uint64_t{0}, kPiece - 1, kPiece, kPiece + 1, 2 * kPiece - 1,
                                2 * kPiece, kElements - 1}) {
    EXPECT_EQ(values[i], static_cast<float>(0.02 * piper_random_normal(key, i))) << i;
  }
  EXPECT_EQ(std::count(values, values + kElements, 0.0f), 0);
}

TEST(State, EveryKindOfFirstValue) {
  HandProgram program(0);
  const PiperInitKind kinds[] = {PIPER_UNIFORM, PIPER_ZEROS, PIPER_ONES, PIPER_CONSTANT};
  std::vector<std::uint64_t> at;
  for (const PiperInitKind kind : kinds) {
    at.push_back(program.allocate<double>(100));
    program.param("p" + std::to_string(kind), at.back(), PIPER_NO_OFFSET, 100, PIPER_F64, kind,
                  0.5);
  }
  program.compute("F", {}, [](Step&) { return 0; });
  const PiperProgram* tables = program.finish();
  Arena arena;
  ASSERT_TRUE(arena.allocate(tables->arena_bytes, {}));
  initialise_parameters(*tables, 3, nullptr, arena.base(), nullptr);
  const auto value = [&](std::size_t kind, std::size_t i) {
    return reinterpret_cast<const double*>(arena.base() + at[kind])[i];
  };
  double smallest = 1, largest = -1;
  for (std::size_t i = 0; i < 100; ++i) {
    smallest = std::min(smallest, value(0, i));
    largest = std::max(largest, value(0, i));
    EXPECT_EQ(value(1, i), 0);
    EXPECT_EQ(value(2, i), 1);
    EXPECT_EQ(value(3, i), 0.5);
  }
  EXPECT_GE(smallest, -0.5);
  EXPECT_LT(smallest, -0.4);
  EXPECT_LE(largest, 0.5);
  EXPECT_GT(largest, 0.4);
}

/// A bucket of two parameters, padded, of which ranks hold intervals of any extent: the values,
/// gradients and slot that `collect_parameter` assembles.
struct OfRank {
  HandProgram program;
  Arena arena;
  PiperJobRank job{};

  static constexpr std::uint64_t kFirst[] = {0, 8}, kElements[] = {7, 10}, kAll = 20;

  OfRank(PiperInterval own, PiperSharded sharded) : program(0) {
    const std::uint64_t values = program.allocate<double>(kAll),
                        gradients = program.allocate<double>(kAll),
                        slots = program.allocate<double>(kAll);
    program.end_state();
    const std::uint32_t interval = program.interval(own);
    const auto at = [&](PiperSharded what, std::uint64_t begin, std::uint64_t p) {
      return begin + (what <= sharded ? 0 : kFirst[p] * sizeof(double));
    };
    for (std::uint32_t p = 0; p < 2; ++p) {
      PiperParam& param = program.param(
          "p" + std::to_string(p), at(PIPER_SHARDED_PARAMETERS, values, p),
          at(PIPER_SHARDED_GRADIENTS, gradients, p), kElements[p], PIPER_F64, PIPER_NORMAL, 0.02);
      param.slot_offsets[0] = slots;
      param.first = kFirst[p];
      param.interval = interval;
      param.sharded = sharded;
    }
    program.compute("F", {}, [](Step&) { return 0; });
    job.program = program.finish();
    job.intervals = &own_;
    own_ = own;
    EXPECT_TRUE(arena.allocate(job.program->arena_bytes, {}));
    initialise_parameters(*job.program, 5, job.intervals, arena.base(), nullptr);
    for (std::uint64_t position = own.first; position < own.first + own.extent; ++position) {
      number(gradients, sharded >= PIPER_SHARDED_GRADIENTS ? position - own.first : position) =
          100.0 + static_cast<double>(position);
      number(slots, position - own.first) = 200.0 + static_cast<double>(position);
    }
  }
  double& number(std::uint64_t begin, std::uint64_t i) {
    return reinterpret_cast<double*>(arena.base() + begin)[i];
  }

 private:
  PiperInterval own_{};
};

TEST(State, AParameterIsMadeOfWhatItsRanksHave) {
  for (const std::vector<std::uint64_t>& extents : std::vector<std::vector<std::uint64_t>>{
           {20}, {13, 7}, {3, 0, 17}, {4, 4, 4, 4, 4}, {1, 8, 1, 10}}) {
    for (const PiperSharded sharded :
         {PIPER_SHARDED_OPTIMIZER, PIPER_SHARDED_GRADIENTS, PIPER_SHARDED_PARAMETERS}) {
      std::deque<OfRank> ranks;
      std::vector<PiperJobRank> jobs;
      std::uint64_t first = 0;
      for (const std::uint64_t extent : extents) {
        jobs.push_back(ranks.emplace_back(PiperInterval{first, extent, OfRank::kAll}, sharded).job);
        first += extent;
      }
      const auto read = [&](std::size_t rank, bool, std::uint64_t offset, std::uint64_t) {
        return ranks[rank].arena.base() + offset;
      };
      for (std::size_t p = 0; p < 2; ++p) {
        const std::string name = "p" + std::to_string(p);
        const piper_random_key key =
            piper_stream_key(5, PIPER_RANDOM_INIT, 0, 0, piper_name_hash(name.data(), name.size()));
        std::vector<double> values, gradient, slot;
        for (std::uint64_t i = 0; i < OfRank::kElements[p]; ++i) {
          values.push_back(0.02 * piper_random_normal(key, i));
          gradient.push_back(100.0 + static_cast<double>(OfRank::kFirst[p] + i));
          slot.push_back(200.0 + static_cast<double>(OfRank::kFirst[p] + i));
        }
        EXPECT_EQ(collect_parameter(jobs, name, ParamTensor::values, read)->values, values);
        EXPECT_EQ(collect_parameter(jobs, name, ParamTensor::gradient, read)->values, gradient);
        EXPECT_EQ(collect_parameter(jobs, name, ParamTensor::slot0, read)->values, slot);
      }
    }
  }
}

TEST(State, LearningRates) {
  PiperOptimizer optimizer{.name = "adamw",
                           .corrects_bias = 1,
                           .schedule = 1,
                           .base = 2e-3,
                           .floor = 1e-4,
                           .warmup = 10,
                           .total = 110,
                           .beta1 = 0.9,
                           .beta2 = 0.99,
                           .clips = 0,
                           .skips = 0,
                           .skip_above = 0,
                           .further_updates = 0};
  const auto rate = [&](std::uint64_t step) {
    return scalars_of_step(optimizer, step).learning_rate;
  };
  EXPECT_DOUBLE_EQ(rate(0), 2e-4);
  EXPECT_DOUBLE_EQ(rate(9), 2e-3);
  EXPECT_DOUBLE_EQ(rate(10), 2e-3);
  EXPECT_DOUBLE_EQ(rate(60), (2e-3 + 1e-4) / 2);
  EXPECT_GT(rate(109), 1e-4);
  EXPECT_DOUBLE_EQ(rate(110), 1e-4);
  EXPECT_DOUBLE_EQ(rate(500), 1e-4);
  // A warm-up that ends with the train or behind it: behind the train there is the floor.
  for (const std::uint64_t warmup : {5, 6}) {
    for (const std::uint32_t schedule : {0, 1, 2}) {
      const PiperOptimizer other{.name = "sgd",
                                 .corrects_bias = 0,
                                 .schedule = schedule,
                                 .base = 3e-3,
                                 .floor = schedule == 0 ? 0 : 1e-4,
                                 .warmup = warmup,
                                 .total = 5,
                                 .beta1 = 0,
                                 .beta2 = 0,
                                 .clips = 0,
                                 .skips = 0,
                                 .skip_above = 0,
                                 .further_updates = 0};
      const double part = 3e-3 / static_cast<double>(warmup);
      for (std::uint64_t step = 0; step < 5; ++step)
        EXPECT_DOUBLE_EQ(scalars_of_step(other, step).learning_rate,
                         part * static_cast<double>(step + 1));
      for (std::uint64_t step = 5; step < 8; ++step)
        EXPECT_DOUBLE_EQ(scalars_of_step(other, step).learning_rate, schedule == 0 ? 3e-3 : 1e-4);
    }
  }
  EXPECT_DOUBLE_EQ(scalars_of_step(optimizer, 0).bias1, 1 - 0.9);
  EXPECT_NEAR(scalars_of_step(optimizer, 2).bias2, 1 - 0.99 * 0.99 * 0.99, 1e-15);
  EXPECT_EQ(scalars_of_step(optimizer, 2).step, 3);
  // After a resume with another batch the bias follows the updates, and the rate the steps.
  const double rate_of_step = rate(2);
  optimizer.further_updates = 4;
  EXPECT_DOUBLE_EQ(scalars_of_step(optimizer, 2).bias1, 1 - std::pow(0.9, 7));
  EXPECT_EQ(rate(2), rate_of_step);
  optimizer.further_updates = -2;
  EXPECT_DOUBLE_EQ(scalars_of_step(optimizer, 2).bias1, 1 - 0.9);
  optimizer.further_updates = 0;
  optimizer.schedule = 2;
  EXPECT_DOUBLE_EQ(rate(35), 2e-3 - 0.25 * 1.9e-3);
  optimizer.schedule = 0;
  optimizer.corrects_bias = 0;
  EXPECT_DOUBLE_EQ(rate(4), 1e-3);
  EXPECT_DOUBLE_EQ(rate(90), 2e-3);
  EXPECT_EQ(scalars_of_step(optimizer, 0).bias1, 1);
  optimizer.warmup = 0;
  EXPECT_DOUBLE_EQ(rate(0), 2e-3);
  // The first step has the base, and the last one trains, even where it is the only one.
  for (const std::uint32_t schedule : {1u, 2u}) {
    optimizer.schedule = schedule;
    optimizer.floor = 0;
    optimizer.total = 1;
    EXPECT_DOUBLE_EQ(rate(0), 2e-3);
    optimizer.total = 4;
    EXPECT_DOUBLE_EQ(rate(0), 2e-3);
    EXPECT_GT(rate(3), 0);
    EXPECT_EQ(rate(4), 0);
  }
}

TEST(Options, ReadTheEnvironment) {
  Options options;
  const char* const good[] = {"PATH=/bin",
                              "PIPER_THREADS=3",
                              "PIPER_MATH=builtin",
                              "PIPER_STALL_SECONDS=0",
                              "PIPER_CHECK_MEMORY=1",
                              nullptr};
  EXPECT_FALSE(options.read_environment(good));
  EXPECT_EQ(options.threads, 3u);
  EXPECT_EQ(options.math, Math::builtin);
  EXPECT_EQ(options.stall_seconds, 0);
  EXPECT_TRUE(options.check_memory);
  for (const auto& [text, math] : {std::pair{"PIPER_MATH=mkl", Math::mkl},
                                   {"PIPER_MATH=onednn", Math::onednn},
                                   {"PIPER_MATH=auto", Math::automatic}}) {
    const char* const environment[] = {text, nullptr};
    EXPECT_FALSE(options.read_environment(environment));
    EXPECT_EQ(options.math, math) << text;
  }
  for (const char* bad : {"PIPER_THREADS=0", "PIPER_THREADS=x", "PIPER_THREADS=3 ",
                          "PIPER_MATH=", "PIPER_HUGE_PAGES=yes", "PIPER_SPIN=-1",
                          "PIPER_STALL_SECONDS=1e9", "PIPER_PLUGINS=", "PIPER_HEARTBEAT_SECONDS=0",
                          "PIPER_HEARTBEAT_SECONDS=nan", "PIPER_SILENCE_SECONDS=0.1",
                          // Less than two heartbeats.
                          "PIPER_SILENCE_SECONDS=1.5"}) {
    const char* const environment[] = {bad, nullptr};
    const auto failure = Options().read_environment(environment);
    ASSERT_TRUE(failure) << bad;
    EXPECT_EQ(failure->code, kBadOption);
  }
  const char* const environment[] = {"PIPER_THREADS=many", nullptr};
  EXPECT_EQ(Options().read_environment(environment)->message,
            "the environment variable `PIPER_THREADS` is `many`");
  for (std::size_t i = 1; i < option_rows().size(); ++i)
    EXPECT_LT(std::string(option_rows()[i - 1].name), option_rows()[i].name);
}

}  // namespace
}  // namespace piper::runtime
