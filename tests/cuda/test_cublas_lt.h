#pragma once
// The offers and records of the test libcublasLt.so: dlsym(library, "test_cublas_lt").

#include <cstddef>
#include <cstdint>
#include <vector>

namespace piper::test {

struct TestCublasLt {
  struct Offer {
    std::uint64_t number = 0;  // in the algorithm
    std::size_t workspace = 0;
    int state = 0;     // a cublasStatus_t
    bool runs = true;  // false: it turns out to be not supported
  };
  std::vector<Offer> whole = {{1}};  // if split sums are not wanted
  std::vector<Offer> split = {};
  std::vector<std::uint64_t> ran = {};
  std::vector<std::uint32_t> reductions = {};  // that were requested, one call after the other
  int objects = 0;  // existing handles, descriptors, layouts, preferences
};

}  // namespace piper::test
