#pragma once
// Counts the calls of operator new in the whole program.

#include <cstdint>

namespace piper::runtime {

std::uint64_t allocations();

}  // namespace piper::runtime
