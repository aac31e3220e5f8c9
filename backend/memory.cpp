#include "backend/memory.h"

#include <algorithm>
#include <cstring>
#include <new>

namespace piper::backend {

void FreeAligned::operator()(unsigned char* memory) const {
  ::operator delete[](memory, std::align_val_t(64));
}

Memory allocate(std::int64_t bytes) {
  const auto size = static_cast<std::size_t>(std::max<std::int64_t>(bytes, 64));
  Memory memory(static_cast<unsigned char*>(::operator new[](size, std::align_val_t(64))));
  std::memset(memory.get(), 0, size);
  return memory;
}

}  // namespace piper::backend
