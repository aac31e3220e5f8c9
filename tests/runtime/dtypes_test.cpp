// The tables of element types, one of the IR and one of the runtime, say the same.

#include "runtime/dtypes.h"

#include <gtest/gtest.h>

#include "backend/dtypes.h"

namespace piper::test {
namespace {

TEST(DTypes, TheRuntimeKnowsThoseOfTheIr) {
  for (std::size_t i = 0; i < tensor::kDTypes.size(); ++i) {
    const auto dtype = static_cast<tensor::DType>(i);
    const std::uint32_t abi = backend::abi_dtype(dtype);
    ASSERT_NE(runtime::dtype_name(abi), nullptr) << tensor::dtype_name(dtype);
    EXPECT_EQ(runtime::dtype_name(abi), tensor::dtype_name(dtype));
    EXPECT_EQ(runtime::element_bytes(abi), tensor::dtype_bytes(dtype)) << tensor::dtype_name(dtype);
    EXPECT_EQ(runtime::is_floating(abi), tensor::is_floating(dtype)) << tensor::dtype_name(dtype);
    EXPECT_EQ(runtime::wide_dtype(abi), backend::abi_dtype(tensor::wide(dtype)))
        << tensor::dtype_name(dtype);
    EXPECT_EQ(piper_wide_bytes(abi), tensor::dtype_bytes(tensor::wide(dtype)))
        << tensor::dtype_name(dtype);
  }
  EXPECT_EQ(runtime::dtype_name(static_cast<std::uint32_t>(tensor::kDTypes.size())), nullptr);
}

}  // namespace
}  // namespace piper::test
