#include "ir/byte_text.h"

#include <gtest/gtest.h>

namespace piper::test {
namespace {

TEST(ByteText, IsExactOrToOneDecimal) {
  EXPECT_EQ(bytes_text(0), "0 bytes");
  EXPECT_EQ(bytes_text(12), "12 bytes");
  EXPECT_EQ(bytes_text(640 * 1024), "640KiB");
  EXPECT_EQ(bytes_text(7.5 * 1024 * 1024 * 1024), "7.5GiB");
  EXPECT_EQ(bytes_text((1 << 20) + 1), "1.0MiB");
}

}  // namespace
}  // namespace piper::test
