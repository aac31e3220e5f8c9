#include "ir/diagnostics/counted.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace piper {
namespace {

TEST(Counted, OneIsNotSeveral) {
  EXPECT_EQ(counted(0, "device"), "0 devices");
  EXPECT_EQ(counted(1u, "device"), "1 device");
  EXPECT_EQ(counted(std::uint64_t{2}, "entry", "entries"), "2 entries");
  EXPECT_EQ(counted(1, "entry", "entries"), "1 entry");
}

}  // namespace
}  // namespace piper
