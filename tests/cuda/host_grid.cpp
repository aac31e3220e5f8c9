#include "tests/cuda/host_grid.h"

#include <dlfcn.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <memory>
#include <vector>

#include <gtest/gtest.h>

namespace piper::test {

namespace {

struct Place {
  unsigned x;
};
/// As in host_shim.h.
struct Calls {
  Place thread, block;
  unsigned long long (*exchange)(unsigned mask, unsigned long long value, int distance);
  unsigned (*ballot)(unsigned mask, int value);
  int (*block_or)(int value);
};

// Saves the callee-saved registers and continues on another stack. The library's function for this
// calls the system twice at every switch.
extern "C" void piper_test_switch(void** from, void* to);
asm(R"(
.text
.globl piper_test_switch
.type piper_test_switch, @function
piper_test_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size piper_test_switch, . - piper_test_switch
)");
constexpr std::size_t kSaved = 6;  // registers

constexpr std::size_t kStack = 64 * 1024;
constexpr unsigned kWarp = 32;

/// A barrier of some threads of a block.
struct Rendezvous {
  unsigned expected = 0, arrived = 0;
  std::uint64_t round = 0;
  int any = 0, result = 0;
};

/// The threads of one block.
class Block {
 public:
  Block(Calls& calls, unsigned threads, const std::function<void()>& body)
      : calls_(calls), body_(body), threads_(threads) {
    // Stacks serve launch after launch.
    while (stacks_.size() < threads_.size()) stacks_.emplace_back(new char[kStack]);
  }

  void run() {
    current_block = this;
    warps_.assign((threads_.size() + kWarp - 1) / kWarp * kWarp, {});
    all_ = {};
    all_.expected = static_cast<unsigned>(threads_.size());
    for (unsigned t = 0; t < threads_.size(); ++t) {
      Thread& thread = threads_[t];
      // As if `enter` had been called: its frame begins eight bytes below a multiple of 16.
      const std::uintptr_t end =
          (reinterpret_cast<std::uintptr_t>(stacks_[t].get()) + kStack) / 16 * 16;
      void** top = reinterpret_cast<void**>(end) - 2;
      *top = reinterpret_cast<void*>(&Block::enter);
      std::fill(top - kSaved, top, nullptr);
      thread.context = top - kSaved;
      thread.done = false;
    }
    for (bool running = true; running;) {
      running = false;
      for (unsigned t = 0; t < threads_.size(); ++t) {
        if (threads_[t].done) continue;
        running = true;
        now_ = t;
        calls_.thread.x = t;
        piper_test_switch(&scheduler_, threads_[t].context);
      }
    }
  }

  unsigned long long exchange(unsigned mask, unsigned long long value, int distance) {
    threads_[now_].value = value;
    meet(group(mask));
    const unsigned long long other = threads_[now_ ^ static_cast<unsigned>(distance)].value;
    meet(group(mask));
    return other;
  }
  unsigned ballot(unsigned mask, int value) {
    threads_[now_].value = value != 0 ? 1 : 0;
    meet(group(mask));
    unsigned found = 0;
    for (unsigned l = 0; l < kWarp; ++l) {
      const std::size_t t = now_ / kWarp * kWarp + l;
      if (t < threads_.size() && (mask >> l & 1u) != 0 && threads_[t].value != 0) found |= 1u << l;
    }
    meet(group(mask));
    return found;
  }
  int block_or(int value) {
    all_.any |= value;
    meet(all_);
    return all_.result;
  }

  static inline Block* current_block = nullptr;

 private:
  struct Thread {
    void* context = nullptr;  // its stack, where it goes on
    unsigned long long value = 0;
    bool done = false;
  };

  /// The threads of the own warp that the mask names: they meet at its lowest one.
  Rendezvous& group(unsigned mask) {
    EXPECT_NE(mask >> (now_ % kWarp) & 1u, 0u) << "a thread is not in the mask that it waits with";
    Rendezvous& rendezvous =
        warps_[now_ / kWarp * kWarp + static_cast<unsigned>(std::countr_zero(mask))];
    rendezvous.expected = std::min(static_cast<unsigned>(std::popcount(mask)),
                                   static_cast<unsigned>(threads_.size()));
    return rendezvous;
  }
  void meet(Rendezvous& rendezvous) {
    const std::uint64_t round = rendezvous.round;
    if (++rendezvous.arrived == rendezvous.expected) {
      rendezvous.arrived = 0;
      rendezvous.result = std::exchange(rendezvous.any, 0);
      ++rendezvous.round;
    }
    const unsigned self = now_;
    while (rendezvous.round == round) piper_test_switch(&threads_[self].context, scheduler_);
  }
  static void enter() {
    Block& block = *current_block;
    block.body_();
    block.threads_[block.now_].done = true;
    piper_test_switch(&block.threads_[block.now_].context, block.scheduler_);
  }

  static inline std::vector<std::unique_ptr<char[]>> stacks_;

  Calls& calls_;
  const std::function<void()>& body_;
  std::vector<Thread> threads_;
  std::vector<Rendezvous> warps_;
  Rendezvous all_;
  void* scheduler_ = nullptr;
  unsigned now_ = 0;
};

Calls calls;

}  // namespace

HostGrid::HostGrid(void* library) {
  calls.exchange = [](unsigned mask, unsigned long long value, int distance) {
    return Block::current_block->exchange(mask, value, distance);
  };
  calls.ballot = [](unsigned mask, int value) { return Block::current_block->ballot(mask, value); };
  calls.block_or = [](int value) { return Block::current_block->block_or(value); };
  auto** shim = static_cast<Calls**>(dlsym(library, "piper_shim"));
  EXPECT_NE(shim, nullptr);
  if (shim != nullptr) *shim = &calls;
}

void HostGrid::run(const backend::cuda::Launch& launch, const std::function<void()>& thread) {
  const auto threads = static_cast<unsigned>(launch.threads);
  Block block(calls, launch.meets ? threads : 0, thread);
  for (std::int64_t b = 0; b < launch.blocks; ++b) {
    calls.block.x = static_cast<unsigned>(b);
    if (launch.meets) {
      block.run();
      continue;
    }
    for (unsigned t = 0; t < threads; ++t) {
      calls.thread.x = t;
      thread();
    }
  }
}

}  // namespace piper::test
