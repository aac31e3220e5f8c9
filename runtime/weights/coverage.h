#pragma once
// Whether strided copies fill a tensor, each of its elements once.
//
//   Coverage coverage(6);
//   coverage.add({.axes = {{3, 1, 2}}}, "even");
//   coverage.add({.to = 1, .axes = {{3, 1, 2}}}, "odd");
//   coverage.fault();   // nothing

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/weights/strided_copy.h"

namespace piper::runtime {

class Coverage {
 public:
  /// `elements`: of the tensor.
  explicit Coverage(std::uint64_t elements) : elements_(elements) {}

  /// A copy whose side `to` lies in the tensor. The name of its owner must outlive this.
  void add(StridedCopy copy, std::string_view owner);

  /// The first element that is not filled once, in words: "its element `5` is in no parameter".
  std::optional<std::string> fault();

 private:
  struct Part {
    StridedCopy copy;
    std::string_view owner;
  };
  bool is_one_permutation() const;
  std::optional<std::string> fault(std::uint64_t begin, std::uint64_t end);

  const std::uint64_t elements_;
  std::vector<Part> parts_;
  std::vector<bool> filled_;
};

}  // namespace piper::runtime
