#include "runtime/cpu/arena.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "runtime/alignment.h"

namespace piper::runtime {
namespace {

// All ones: NaN in f64 and f32, -1 in i64, so that a read of unwritten memory shows.
constexpr unsigned char kPoison = 0xFF;
constexpr std::uint64_t kHugePage = 2u << 20;

}  // namespace

Arena::~Arena() {
  if (mapping_) munmap(mapping_, mapped_);
}

bool Arena::allocate(std::uint64_t bytes, const Options& options) {
  const std::uint64_t page = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  const std::uint64_t body = round_up(std::max(bytes, kAlignment), page);
  if (bytes > (std::uint64_t{1} << 46)) return false;
  // Small arenas share one mapping of the kernel, because a process has a limited number of them.
  const bool huge_pages = options.huge_pages && body >= kHugePage;
  mapped_ = body + page + (huge_pages ? kHugePage : 0);
  mapping_ = mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapping_ == MAP_FAILED) {
    mapping_ = nullptr;
    return false;
  }
  bytes_ = bytes;
  unsigned char* start = static_cast<unsigned char*>(mapping_);
  if (huge_pages) {
    start += round_up(reinterpret_cast<std::uintptr_t>(start), kHugePage) -
             reinterpret_cast<std::uintptr_t>(start);
    madvise(start, body, MADV_HUGEPAGE);
  }
  base_ = start;
  if (options.check_memory) {
    // The last byte of the arena is the last one before the guard.
    base_ = start + (body - aligned(bytes));
    std::memset(base_, kPoison, bytes);
    mprotect(start + body, page, PROT_NONE);
    poisoned_ = true;
  }
  return true;
}

void Arena::touch() {
  const std::uint64_t page = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  for (std::uint64_t at = 0; at < bytes_; at += page) {
    volatile unsigned char& byte = base_[at];
    byte = byte;
  }
  // The arena may begin in the middle of a page.
  if (bytes_ > 0) {
    volatile unsigned char& last = base_[bytes_ - 1];
    last = last;
  }
}

std::uint64_t Arena::touched_bytes() const {
  if (!poisoned_) return 0;
  std::uint64_t end = bytes_;
  while (end > 0 && base_[end - 1] == kPoison) --end;
  return end;
}

}  // namespace piper::runtime
