#pragma once
// Offsets in one arena for values with known live ranges.
//
//   std::vector<LiveRange> values = {{1024, 0, 3}, {1024, 4, 6}, {2048, 1, 5}};
//   lay_out(values)   ->   bytes 3072, live 3072; the first two share offset 0
//
// Best fit in the order of first use; if that wastes more than 1/50 and there are not too many
// values, also by falling size, and the smaller result is taken. Near-linear: the number of free
// blocks at one time stays small.

#include <cstdint>
#include <span>

#include "ir/alignment.h"

namespace piper::passes {

/// A value that needs `bytes` from time `first` to time `last`, both included.
struct LiveRange {
  std::int64_t bytes = 0;
  std::uint32_t first = 0, last = 0;
  std::int64_t offset = 0;       // the result, a multiple of kAlignment
  std::uint32_t kept_until = 0;  // if later than `last`: its bytes stay reserved until then

  std::uint32_t given() const { return kept_until > last ? kept_until : last; }
};

struct LayoutSize {
  std::int64_t bytes = 0;  // the end of the highest value
  // The largest sum of aligned sizes at one time: no layout is smaller. Reserved bytes do not
  // count.
  std::int64_t live = 0;
};

/// Fills the offsets. `values` ascend by `first`.
LayoutSize lay_out(std::span<LiveRange> values);

}  // namespace piper::passes
