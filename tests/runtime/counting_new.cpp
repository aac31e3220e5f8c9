#include "tests/runtime/counting_new.h"

#include <atomic>
#include <cstdlib>
#include <new>

namespace {

std::atomic<std::uint64_t> count{0};

void* tried(std::size_t bytes) {
  count.fetch_add(1, std::memory_order_relaxed);
  return std::malloc(bytes ? bytes : 1);
}

void* counted(std::size_t bytes) {
  if (void* memory = tried(bytes)) return memory;
  throw std::bad_alloc();
}

}  // namespace

void* operator new(std::size_t bytes) { return counted(bytes); }
void* operator new[](std::size_t bytes) { return counted(bytes); }
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept { return tried(bytes); }
void* operator new[](std::size_t bytes, const std::nothrow_t&) noexcept { return tried(bytes); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }

namespace piper::runtime {

std::uint64_t allocations() { return count.load(std::memory_order_relaxed); }

}  // namespace piper::runtime
