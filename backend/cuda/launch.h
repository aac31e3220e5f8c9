#pragma once
// The launch configuration of a kernel, which follows from the loop nest.

#include <cstdint>

#include "backend/kernel/kernel.h"

namespace piper::backend::cuda {

struct Launch {
  std::int64_t blocks = 1;
  std::int64_t threads = 1;  // of a block; constant at compile time
  bool meets = false;        // the threads of a block exchange values or wait for each other
};

Launch launch_of(const Kernel& kernel);

/// form rows: number of rows per block, a power of two.
std::int64_t rows_per_block(const Kernel& kernel);

/// The loops that are distributed over blocks and threads: all of them for elements; those of the
/// result, including parts, for sums; positions of the index for order, scatter and join.
std::int64_t spread_loops(const Kernel& kernel);

/// form sums: the number of row loops of the results; the others run in order.
std::size_t kept_rows(const Kernel& kernel);

/// Whether 32 bits hold every position of the nest.
bool fits_in_32_bits(const Kernel& kernel, const KernelBody& body);

}  // namespace piper::backend::cuda
