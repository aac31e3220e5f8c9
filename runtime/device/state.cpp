#include "runtime/device/state.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <numbers>
#include <system_error>
#include <thread>
#include <vector>

#include "runtime/dtypes.h"
#include "runtime/kernel_math.h"

namespace piper::runtime {
namespace {

/// Calls `work(begin, end)` for pieces of the range, on as many threads as there are cores if it is
/// long: a model of 10^9 parameters would take a minute on one.
template <typename Work>
void in_pieces(std::uint64_t first, std::uint64_t end, const Work& work) {
  constexpr std::uint64_t kPiece = 1u << 20;
  std::atomic<std::uint64_t> next{first};
  const auto take = [&] {
    for (std::uint64_t begin = next.fetch_add(kPiece); begin < end; begin = next.fetch_add(kPiece))
      work(begin, std::min(begin + kPiece, end));
  };
  const std::uint64_t pieces = end > first ? (end - first + kPiece - 1) / kPiece : 0;
  std::vector<std::jthread> others;
  try {
    for (std::uint64_t t = 1;
         t < std::min<std::uint64_t>(pieces, std::thread::hardware_concurrency()); ++t)
      others.emplace_back(take);
  } catch (const std::system_error&) {
    // With fewer threads it takes longer.
  }
  take();
}

static_assert(PIPER_NORMAL == 0 && PIPER_UNIFORM == 1 && PIPER_ZEROS == 2 && PIPER_ONES == 3 &&
                  PIPER_CONSTANT == 4,
              "piper_first_value has these numbers");

template <typename T>
void fill(const FirstValues& values, std::uint64_t seed, T* to) {
  const PiperParam& param = *values.param;
  const piper_random_key key = first_values_key(param, seed);
  const Elements& here = values.elements;
  in_pieces(here.first, here.end, [&](std::uint64_t begin, std::uint64_t end) {
    for (std::uint64_t i = begin; i < end; ++i)
      to[here.at + (i - here.first)] =
          static_cast<T>(piper_first_value(param.init, param.scale, key, i));
  });
}

}  // namespace

Elements elements_here(const PiperParam& param, PiperSharded what, const PiperInterval* intervals) {
  const bool sharded = what <= static_cast<PiperSharded>(param.sharded);
  // Gradients that are not sharded hold the sum only in the rank's interval, at its position.
  const bool cut =
      param.interval != PIPER_ALL_POSITIONS && (sharded || what == PIPER_SHARDED_GRADIENTS);
  if (!cut) return {0, param.elements, 0};
  const PiperInterval& own = intervals[param.interval];
  const std::uint64_t first = std::max(own.first, param.first),
                      end = std::max(
                          first, std::min(own.first + own.extent, param.first + param.elements));
  return {first - param.first, end - param.first, first - (sharded ? own.first : param.first)};
}

std::uint64_t master_offset(const PiperParam& param) {
  if (param.sum_dtype == param.dtype) return PIPER_NO_OFFSET;
  std::uint64_t last = PIPER_NO_OFFSET;
  for (const std::uint64_t slot : param.slot_offsets) last = slot == PIPER_NO_OFFSET ? last : slot;
  return last;
}

std::uint64_t average_offset(const PiperParam& param) {
  return param.average_slot == 0 ? PIPER_NO_OFFSET : param.slot_offsets[param.average_slot - 1];
}

std::vector<FirstValues> first_values_of(const PiperProgram& program,
                                         const PiperInterval* intervals) {
  std::vector<FirstValues> list;
  for (std::uint32_t p = 0; p < program.num_params; ++p) {
    const PiperParam& param = program.params[p];
    list.push_back({&param, param.dtype, false, param.offset,
                    elements_here(param, PIPER_SHARDED_PARAMETERS, intervals)});
    for (const std::uint64_t slot : {average_offset(param), master_offset(param)}) {
      if (slot != PIPER_NO_OFFSET)
        list.push_back({&param, param.sum_dtype, param.slots_on_host != 0, slot,
                        elements_here(param, PIPER_SHARDED_OPTIMIZER, intervals)});
    }
  }
  return list;
}

piper_random_key first_values_key(const PiperParam& param, std::uint64_t seed) {
  return piper_stream_key(seed, PIPER_RANDOM_INIT, 0, 0,
                          piper_name_hash(param.name, std::strlen(param.name)));
}

void initialise_parameters(const PiperProgram& program, std::uint64_t seed,
                           const PiperInterval* intervals, unsigned char* arena,
                           unsigned char* host) {
  std::memset(arena, 0, program.state_bytes);
  for (const FirstValues& values : first_values_of(program, intervals)) {
    unsigned char* const to = (values.on_host ? host : arena) + values.offset;
    with_element(values.dtype,
                 [&](auto zero) { fill(values, seed, reinterpret_cast<decltype(zero)*>(to)); });
  }
}

PiperScalars scalars_of_step(const PiperOptimizer& optimizer, std::uint64_t step) {
  const double update = static_cast<double>(step + 1);
  const double warmup = static_cast<double>(optimizer.warmup),
               total = static_cast<double>(optimizer.total);
  double rate = optimizer.base;
  if (optimizer.schedule != 0 && update > total) {
    rate = optimizer.floor;
  } else if (update <= warmup) {
    rate = optimizer.base * update / warmup;
  } else if (optimizer.schedule != 0) {
    const double passed = (update - 1 - warmup) / (total - warmup);
    const double left =
        optimizer.schedule == 1 ? 0.5 * (1.0 + std::cos(std::numbers::pi * passed)) : 1.0 - passed;
    rate = optimizer.floor + (optimizer.base - optimizer.floor) * left;
  }
  PiperScalars scalars{.step = update, .learning_rate = rate, .bias1 = 1, .bias2 = 1, .one = 1};
  if (optimizer.corrects_bias != 0) {
    const double updates = update + static_cast<double>(optimizer.further_updates);
    scalars.bias1 = 1.0 - std::pow(optimizer.beta1, updates);
    scalars.bias2 = 1.0 - std::pow(optimizer.beta2, updates);
  }
  return scalars;
}

}  // namespace piper::runtime
