#pragma once
// How many threads a kernel is started with. All of it follows from the loop nest.

#include <cstdint>

#include "backend/kernel/kernel.h"

namespace piper::backend::cuda {

struct Launch {
  std::int64_t blocks = 1;
  std::int64_t threads = 1;  // of a block; known when the kernel is compiled
  bool meets = false;        // the threads of a block exchange values or wait for each other
};

Launch launch_of(const Kernel& kernel);

/// form rows: rows that one block works on, a power of two.
std::int64_t rows_per_block(const Kernel& kernel);

/// The loops that are spread over blocks and threads: all of them for elements; those of the result for sums, the parts among them; positions of the index for order, scatter and join.
std::int64_t spread_loops(const Kernel& kernel);

/// form sums: how many row loops the results have; the others run in order.
std::size_t kept_rows(const Kernel& kernel);

/// Whether 32 bits hold every position of the nest.
bool fits_in_32_bits(const Kernel& kernel, const KernelBody& body);

}  // namespace piper::backend::cuda
