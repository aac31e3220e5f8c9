#pragma once
// Matrix products of cuBLASLt, opened at run time; cublas_lt_functions.def declares the functions
// used. Matrices are row-major here and column-major there: c^T = b^T a^T.
//
//   std::string reason;
//   auto products = CublasLt::open("/usr/local/cuda/lib64/libcublasLt.so.13", reason);

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runtime/cuda/driver.h"

namespace piper::runtime::cuda {

/// As cublasLt.h declares them: cublasLtMatmulAlgo_t, cublasLtMatmulHeuristicResult_t.
struct CublasLtAlgorithm {
  std::uint64_t data[8];
};
struct CublasLtHeuristic {
  CublasLtAlgorithm algorithm;
  std::size_t workspace;
  int state;
  float waves;
  int reserved[4];
};

class CublasLt {
 public:
  /// Null, with the reason. A context is current.
  static std::unique_ptr<CublasLt> open(const std::string& path, std::string& reason);
  ~CublasLt();
  CublasLt(const CublasLt&) = delete;

  /// `cublasStatus_t 13: the function failed to launch on the GPU`, in the words of cuBLASLt.
  std::string text_of(int status) const;

  /// `end`: a PiperCallEnd. Keeps the algorithms that cuBLASLt ranks best among those that need no
  /// more workspace and do not split sums, because split sums need scratch that grows; if there are
  /// none, those that split sums and add the parts in the type of the sums. A cublasStatus_t.
  int plan(const PiperGemm& call, std::uint32_t end, std::uint64_t workspace, PlannedCall* created);
  /// Uses the best of them that cuBLASLt accepts, the same from then on.
  int multiply(PlannedCall product, const PiperCall& call, void* stream) const;

 private:
  struct Functions;
  struct Plan;
  CublasLt() = default;
  int find_algorithms(Plan& plan, std::uint32_t reductions, std::uint64_t workspace) const;

  std::unique_ptr<Functions> functions_;
  void* handle_ = nullptr;
  std::vector<std::unique_ptr<Plan>> plans_;
};

}  // namespace piper::runtime::cuda
