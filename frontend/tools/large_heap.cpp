#include "frontend/tools/large_heap.h"

#include <cstdint>
#include <cstdlib>
#include <utility>

#if defined(__GLIBC__) && defined(__linux__)
#include <malloc.h>
#include <sys/mman.h>
#include <unistd.h>
#endif

namespace piper::tools {

void use_large_heap() {
#if defined(__GLIBC__) && defined(__linux__)
  static bool done = false;
  if (std::exchange(done, true)) return;
  constexpr int kReserve = 512 << 20;
  constexpr std::uintptr_t kPage = std::uintptr_t{2} << 20;
  // No block is so large that it would be mapped by itself and returned at once, and the top of the heap is never given back;
  // all threads share it.
  if (mallopt(M_MMAP_THRESHOLD, 32 << 20) == 0 || mallopt(M_TRIM_THRESHOLD, 2 * kReserve - 1) == 0 || mallopt(M_TOP_PAD, kReserve) == 0 || mallopt(M_ARENA_MAX, 1) == 0) return;
  const auto before = reinterpret_cast<std::uintptr_t>(sbrk(0));
  // Larger than what is left at the top, so that the heap grows; volatile, so that the pair is not optimised away.
  void* volatile block = std::malloc(1 << 20);
  std::free(block);
  const auto after = reinterpret_cast<std::uintptr_t>(sbrk(0));
  mallopt(M_TOP_PAD, 64 << 20);
  const std::uintptr_t first = (before + kPage - 1) / kPage * kPage;
  if (after > first + kPage) madvise(reinterpret_cast<void*>(first), (after - first) / kPage * kPage, MADV_HUGEPAGE);
#endif
}

}  // namespace piper::tools
