#include "frontend/tools/large_heap.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <system_error>
#include <utility>

#if defined(__GLIBC__) && defined(__linux__)
#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>
#endif

namespace piper::tools {

namespace {

constexpr std::size_t kPage = std::size_t{2} << 20;

std::uintptr_t reserved_end = 0;  // of the whole large pages; 0: there is no large heap

}  // namespace

void use_large_heap() {
#if defined(__GLIBC__) && defined(__linux__)
  static bool done = false;
  if (std::exchange(done, true)) return;
  constexpr int kReserve = 512 << 20;
  // No block is so large that it would be mapped by itself and returned at once, and the top of the
  // heap is never given back; all threads share it.
  if (mallopt(M_MMAP_THRESHOLD, 32 << 20) == 0 ||
      mallopt(M_TRIM_THRESHOLD, 2 * kReserve - 1) == 0 || mallopt(M_TOP_PAD, kReserve) == 0 ||
      mallopt(M_ARENA_MAX, 1) == 0)
    return;
  const auto before = reinterpret_cast<std::uintptr_t>(sbrk(0));
  // Larger than what is left at the top, so that the heap grows; volatile, so that the pair is not
  // optimised away.
  void* volatile block = std::malloc(1 << 20);
  std::free(block);
  const auto after = reinterpret_cast<std::uintptr_t>(sbrk(0));
  mallopt(M_TOP_PAD, 64 << 20);
  const std::uintptr_t first = (before + kPage - 1) / kPage * kPage;
  if (after <= first + kPage) return;
  const std::size_t pages = (after - first) / kPage;
  if (madvise(reinterpret_cast<void*>(first), pages * kPage, MADV_HUGEPAGE) == 0)
    reserved_end = first + pages * kPage;
#endif
}

HeapFiller::HeapFiller() {
#ifdef MADV_POPULATE_WRITE
  if (reserved_end == 0 || std::thread::hardware_concurrency() < 2) return;
  try {
    thread_ = std::thread([this] { serve(); });
  } catch (const std::system_error&) {
    // The system has no more threads: pages are cleared on first access.
  }
#endif
}

HeapFiller::~HeapFiller() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void HeapFiller::fill([[maybe_unused]] std::size_t bytes) {
#ifdef MADV_POPULATE_WRITE
  // The caller continues at the present end of the heap. It would wait for the pages that are being
  // cleared, so those before it are left to it.
  constexpr std::size_t kAhead = 2, kFew = 8;
  if (!thread_.joinable() || bytes < kFew * kPage) return;
  const std::size_t unused = mallinfo2().keepcost;
  const std::uintptr_t first =
      (reinterpret_cast<std::uintptr_t>(sbrk(0)) - unused + kPage - 1) / kPage * kPage +
      kAhead * kPage;
  {
    const std::lock_guard lock(mutex_);
    wanted_ = {first, std::min<std::uintptr_t>(reserved_end, first + bytes / kPage * kPage)};
  }
  changed_.notify_one();
#endif
}

void HeapFiller::serve() {
#ifdef MADV_POPULATE_WRITE
  // Without an idle core the caller keeps its core.
  const sched_param none{};
  pthread_setschedparam(pthread_self(), SCHED_IDLE, &none);
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return ending_ || wanted_.first < wanted_.end; });
    if (ending_) return;
    const std::uintptr_t page = wanted_.first;
    wanted_.first += kPage;
    lock.unlock();
    if (madvise(reinterpret_cast<void*>(page), kPage, MADV_POPULATE_WRITE) != 0) return;
    lock.lock();
  }
#endif
}

}  // namespace piper::tools
