#include "backend/cuda/launch.h"

#include <algorithm>

#include "backend/kernel/loops.h"
#include "backend/kernel/schedule_passes.h"

namespace piper::backend::cuda {

namespace {

constexpr std::int64_t kThreads = 256, kWarp = 32;

std::int64_t power_from(std::int64_t least) {
  std::int64_t power = 1;
  while (power < least) power *= 2;
  return power;
}

/// Whole warps, at most as many as there is work.
std::int64_t threads_for(std::int64_t work) {
  return std::clamp(power_from(work), kWarp, kThreads);
}

const Statement& sum_of(const Kernel& kernel) {
  return *std::find_if(kernel.statements.begin(), kernel.statements.end(),
                       [](const Statement& s) { return s.code == Code::store_add; });
}

}  // namespace

std::int64_t rows_per_block(const Kernel& kernel) {
  if (kernel.lanes.count > kWarp) return 1;
  return std::min(kThreads / kernel.lanes.count, power_from(product(kernel.rows)));
}

std::size_t kept_rows(const Kernel& kernel) {
  const Statement& sum = sum_of(kernel);
  std::size_t kept = 0;
  while (kept < kernel.rows.size() && sum.access.strides[kept] != 0) ++kept;
  return kept;
}

std::int64_t spread_loops(const Kernel& kernel) {
  const std::int64_t rows = product(kernel.rows), columns = product(kernel.columns);
  switch (kernel.form) {
    case Form::rows: return rows;
    case Form::order:
    case Form::scatter:
    case Form::join: return kernel.runs->positions;
    case Form::sums: {
      std::int64_t kept = columns;
      for (std::size_t loop = 0; loop < kept_rows(kernel); ++loop) kept *= kernel.rows[loop];
      return kept;
    }
    case Form::elements:
    case Form::sequence: break;
  }
  return rows * columns;
}

Launch launch_of(const Kernel& kernel) {
  const std::int64_t spread = spread_loops(kernel);
  const auto blocks_of = [](std::int64_t work, std::int64_t each) {
    return (work + each - 1) / each;
  };
  if (kernel.form == Form::rows) {
    const std::int64_t each = rows_per_block(kernel);
    return {blocks_of(spread, each), each * kernel.lanes.count, kernel.lanes.count > 1};
  }
  if (kernel.form == Form::order)
    return {1, std::clamp(power_from(spread), kWarp, std::int64_t{Lanes::kMax}), true};
  if (kernel.form == Form::scatter || kernel.form == Form::join) {
    return {spread, threads_for(kernel.runs->width / kernel.lanes.vector), false};
  }
  const std::int64_t vectors = spread / kernel.lanes.vector, threads = threads_for(vectors);
  return {blocks_of(vectors, threads), threads, false};
}

bool fits_in_32_bits(const Kernel& kernel, const KernelBody& body) {
  // A loop's last step may go beyond its end by the size of a block.
  constexpr std::int64_t kMax = (std::int64_t{1} << 31) - (std::int64_t{1} << 16);
  bool fits = product(kernel.rows) * product(kernel.columns) < kMax;
  for (const Statement& s : kernel.statements) {
    if (s.code == Code::load || is_effect(s.code))
      fits = fits && body.buffers[s.access.buffer].elements < kMax;
  }
  return fits;
}

}  // namespace piper::backend::cuda
