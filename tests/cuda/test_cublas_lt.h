#pragma once
// What the libcublasLt.so of tests offers and has seen: dlsym(library, "test_cublas_lt").

#include <cstddef>
#include <cstdint>
#include <vector>

namespace piper::test {

struct TestCublasLt {
  struct Offer {
    std::uint64_t number = 0;        // in the algorithm
    std::size_t workspace = 0;
    int state = 0;                   // a cublasStatus_t
    bool runs = true;                // or it turns out to be not supported
  };
  std::vector<Offer> whole = {{1}};  // for whoever wants no split sums
  std::vector<Offer> split = {};
  std::vector<std::uint64_t> ran = {};
  std::vector<std::uint32_t> reductions = {};  // that were asked for, one call after the other
  int objects = 0;                   // handles, descriptors, layouts, preferences that are there
};

}  // namespace piper::test
