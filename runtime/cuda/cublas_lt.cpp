#include "runtime/cuda/cublas_lt.h"

#include <algorithm>
#include <cstdlib>
#include <iterator>

#include "runtime/device_abi.h"
#include "runtime/shared_library.h"

namespace piper::runtime::cuda {

namespace {

// Numbers of cublasLt.h and library_types.h.

// CUDA_R_32F, CUDA_R_64F, CUDA_R_16BF.
constexpr int kReal32 = 0, kReal64 = 1, kBrain16 = 14;
// CUBLAS_COMPUTE_32F: no TF32; CUBLAS_COMPUTE_64F.
constexpr int kCompute32 = 68, kCompute64 = 70;
// CUBLASLT_MATMUL_DESC_TRANSA, _TRANSB.
constexpr int kTransposeA = 3, kTransposeB = 4;
constexpr std::int32_t kTransposed = 1;  // CUBLAS_OP_T
// CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, _STRIDED_BATCH_OFFSET.
constexpr int kBatchCount = 5, kBatchStride = 6;
// CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, _REDUCTION_SCHEME_MASK, _MIN_ALIGNMENT_A_BYTES, then B,
// C, D.
constexpr int kMaxWorkspace = 1, kReductions = 3, kAlignmentA = 5;
// CUBLASLT_REDUCTION_SCHEME_NONE, _COMPUTE_TYPE.
constexpr std::uint32_t kNoReduction = 0, kInSumType = 2;
constexpr int kNotSupported = 15;  // CUBLAS_STATUS_NOT_SUPPORTED

/// The layout of a product's operands, and the type of its sums.
struct Numbers {
  int operands, sums, compute;
};
Numbers numbers_of(std::uint32_t dtype) {
  switch (static_cast<PiperDType>(dtype)) {
    case PIPER_F64: return {kReal64, kReal64, kCompute64};
    case PIPER_F32: return {kReal32, kReal32, kCompute32};
    case PIPER_BF16: return {kBrain16, kReal32, kCompute32};
    case PIPER_I64: break;  // there are no integer products
  }
  std::abort();
}

}  // namespace

struct CublasLt::Functions {
#define CUBLAS_LT_FUNCTION(result, symbol, parameters) result(*symbol) parameters = nullptr;
#include "runtime/cuda/cublas_lt_functions.def"
#undef CUBLAS_LT_FUNCTION

  /// The name of a function that the library lacks, or null.
  const char* find(void* library) {
    LibraryFunctions of(library);
#define CUBLAS_LT_FUNCTION(result, symbol, parameters) of.get(symbol, #symbol);
#include "runtime/cuda/cublas_lt_functions.def"
#undef CUBLAS_LT_FUNCTION
    return of.missing();
  }
};

/// `a` and `b` are cuBLASLt's: the caller's b and a.
struct CublasLt::Plan {
  explicit Plan(const Functions& functions) : functions(functions) {}
  Plan(const Plan&) = delete;
  ~Plan() {
    if (call != nullptr) functions.cublasLtMatmulDescDestroy(call);
    for (void* layout : {a, b, c}) {
      if (layout != nullptr) functions.cublasLtMatrixLayoutDestroy(layout);
    }
  }
  const Functions& functions;
  void *call = nullptr, *a = nullptr, *b = nullptr, *c = nullptr;
  std::vector<CublasLtHeuristic> algorithms;  // best first
  bool f64 = false, adds = false;
};

std::unique_ptr<CublasLt> CublasLt::open(const std::string& path, std::string& reason) {
  void* const library = open_shared_library(path, RTLD_NOW | RTLD_LOCAL, reason);
  if (library == nullptr) return nullptr;
  std::unique_ptr<CublasLt> made(new CublasLt);
  made->functions_ = std::make_unique<Functions>();
  if (const char* missing = made->functions_->find(library)) {
    reason = "`" + path + "` has no `" + missing + "`";
    return nullptr;
  }
  if (const int status = made->functions_->cublasLtCreate(&made->handle_); status != 0) {
    reason = "`cublasLtCreate` failed with " + made->text_of(status);
    made->handle_ = nullptr;
    return nullptr;
  }
  return made;
}

CublasLt::~CublasLt() {
  plans_.clear();
  if (handle_ != nullptr) functions_->cublasLtDestroy(handle_);
}

std::string CublasLt::text_of(int status) const {
  const char* const text = functions_->cublasLtGetStatusString(status);
  return "cublasStatus_t " + std::to_string(status) +
         (text != nullptr ? ": " + std::string(text) : "");
}

int CublasLt::plan(const PiperGemm& call, std::uint32_t end, std::uint64_t workspace,
                   PlannedCall* made) {
  const Functions& lt = *functions_;
  Plan& plan = *plans_.emplace_back(std::make_unique<Plan>(lt));
  const Numbers types = numbers_of(call.dtype);
  plan.f64 = types.sums == kReal64;
  plan.adds = end == PIPER_END_ADDS;
  int status = lt.cublasLtMatmulDescCreate(&plan.call, types.compute, types.sums);
  const auto then = [&](auto&& next) {
    if (status == 0) status = next();
  };
  const auto layout = [&](void** to, int type, std::int64_t rows, std::int64_t columns) {
    then([&] {
      return lt.cublasLtMatrixLayoutCreate(to, type, static_cast<std::uint64_t>(rows),
                                           static_cast<std::uint64_t>(columns), rows);
    });
    const auto count = static_cast<std::int32_t>(call.batch);
    const std::int64_t stride = rows * columns;
    then([&] {
      return lt.cublasLtMatrixLayoutSetAttribute(*to, kBatchCount, &count, sizeof count);
    });
    then([&] {
      return lt.cublasLtMatrixLayoutSetAttribute(*to, kBatchStride, &stride, sizeof stride);
    });
  };
  // b is stored [k][n], or [n][k]: n x k in columns, or its transpose. Likewise a.
  layout(&plan.a, types.operands, call.transpose_b != 0 ? call.k : call.n,
         call.transpose_b != 0 ? call.n : call.k);
  layout(&plan.b, types.operands, call.transpose_a != 0 ? call.m : call.k,
         call.transpose_a != 0 ? call.k : call.m);
  layout(&plan.c, end == PIPER_END_ROUNDS ? types.operands : types.sums, call.n, call.m);
  if (call.transpose_b != 0)
    then([&] {
      return lt.cublasLtMatmulDescSetAttribute(plan.call, kTransposeA, &kTransposed,
                                               sizeof kTransposed);
    });
  if (call.transpose_a != 0)
    then([&] {
      return lt.cublasLtMatmulDescSetAttribute(plan.call, kTransposeB, &kTransposed,
                                               sizeof kTransposed);
    });
  // Sums are split only if no other algorithm exists, and in their own type: never with rounding in
  // between.
  for (const std::uint32_t reductions : {kNoReduction, kInSumType}) {
    if (plan.algorithms.empty()) then([&] { return find_algorithms(plan, reductions, workspace); });
  }
  if (status == 0 && plan.algorithms.empty()) status = kNotSupported;
  *made = reinterpret_cast<PlannedCall>(&plan);
  return status;
}

int CublasLt::find_algorithms(Plan& plan, std::uint32_t reductions, std::uint64_t workspace) const {
  const Functions& lt = *functions_;
  constexpr int kMax = 8;
  CublasLtHeuristic found[kMax] = {};
  int count = 0;
  void* preference = nullptr;
  int status = lt.cublasLtMatmulPreferenceCreate(&preference);
  const auto prefer = [&](int attribute, const auto& value) {
    if (status == 0)
      status = lt.cublasLtMatmulPreferenceSetAttribute(preference, attribute, &value, sizeof value);
  };
  prefer(kMaxWorkspace, workspace);
  prefer(kReductions, reductions);
  constexpr std::uint32_t alignment = 64;  // of operands in an arena
  for (int matrix = 0; matrix < 4; ++matrix) prefer(kAlignmentA + matrix, alignment);
  if (status == 0)
    status = lt.cublasLtMatmulAlgoGetHeuristic(handle_, plan.call, plan.a, plan.b, plan.c, plan.c,
                                               preference, kMax, found, &count);
  if (preference != nullptr) lt.cublasLtMatmulPreferenceDestroy(preference);
  if (status == kNotSupported) return 0;
  std::copy_if(found, found + count, std::back_inserter(plan.algorithms),
               [&](const CublasLtHeuristic& each) {
                 return each.state == 0 && each.workspace <= workspace;
               });
  return status;
}

int CublasLt::multiply(PlannedCall product, const PiperCall& call, void* stream) const {
  Plan& plan = *reinterpret_cast<Plan*>(product);
  const double one64 = 1, beta64 = plan.adds ? 1 : 0;
  const float one32 = 1, beta32 = plan.adds ? 1 : 0;
  const void* const one = plan.f64 ? static_cast<const void*>(&one64) : &one32;
  const void* const beta = plan.f64 ? static_cast<const void*>(&beta64) : &beta32;
  const auto with = [&](const CublasLtHeuristic& each) {
    return functions_->cublasLtMatmul(handle_, plan.call, one, call.in[1], plan.a, call.in[0],
                                      plan.b, beta, call.out[0], plan.c, call.out[0], plan.c,
                                      &each.algorithm, call.workspace, each.workspace, stream);
  };
  int status = with(plan.algorithms.front());
  // An algorithm of cuBLASLt's heuristic may turn out to be unsupported at its first use.
  while (status == kNotSupported && plan.algorithms.size() > 1) {
    plan.algorithms.erase(plan.algorithms.begin());
    status = with(plan.algorithms.front());
  }
  return status;
}

}  // namespace piper::runtime::cuda
