#pragma once
// Parameters as an export reads them: from a checkpoint, or from the memory of ranks.

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/checkpoint/checkpoint.h"
#include "runtime/checkpoint/state_memory.h"
#include "runtime/weights/strided_copy.h"

namespace piper::runtime {

struct StoredWeight {
  std::string name;
  std::vector<std::int64_t> dims;
  ElementSource source;  // all its elements, row-major
};

/// The weights of a checkpoint, or their moving averages where they have some, sorted by name. Their bytes are read without their checksums:
/// Checkpoint::verify_weights comes first. The checkpoint must outlive them.
std::vector<StoredWeight> weights_of(const Checkpoint& checkpoint, bool averages = false);

/// The parameters of ranks that are all local, sorted by name; unrounded where there are master
/// weights. The owner of the memory must outlive them.
std::vector<StoredWeight> weights_of(const StateMemory& memory);

}  // namespace piper::runtime
