// Pages that are cleared on another thread: the heap's contents stay, whenever the clearing is
// started and stopped.

#include "frontend/tools/large_heap.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

namespace piper::tools {
namespace {

TEST(HeapFiller, LeavesWhatTheHeapHolds) {
  use_large_heap();
  constexpr std::size_t kBlock = 1 << 16, kBlocks = 400;
  const std::size_t wanted = 64 << 20;
  for (int round = 0; round < 3; ++round) {
    HeapFiller filler;
    std::vector<std::unique_ptr<unsigned char[]>> blocks;
    for (std::size_t b = 0; b < kBlocks; ++b) {
      if (b % 100 == 0) filler.fill(wanted);
      blocks.emplace_back(new unsigned char[kBlock]);
      for (std::size_t i = 0; i < kBlock; ++i) blocks[b][i] = static_cast<unsigned char>(b + i);
    }
    for (std::size_t b = 0; b < kBlocks; ++b) {
      for (std::size_t i = 0; i < kBlock; ++i)
        ASSERT_EQ(blocks[b][i], static_cast<unsigned char>(b + i)) << b;
    }
  }
}

}  // namespace
}  // namespace piper::tools
