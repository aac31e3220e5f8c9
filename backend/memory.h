#pragma once
// Memory of bodies that run on the calling thread.

#include <cstdint>
#include <memory>

namespace piper::backend {

struct FreeAligned {
  void operator()(unsigned char* memory) const;
};
/// Aligned to 64 bytes, initially zero.
using Memory = std::unique_ptr<unsigned char[], FreeAligned>;
Memory allocate(std::int64_t bytes);

}  // namespace piper::backend
