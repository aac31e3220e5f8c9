// The declarations of CUDA's driver, NVRTC, cuBLASLt and NCCL (*_functions.def in runtime/cuda and
// backend/cuda) against the pinned headers, or against the declarations of NVIDIA's bindings for
// headers in large wheels: number, sort and size of parameters; structures and constants.

#include <gtest/gtest.h>

#include <filesystem>
#include <regex>
#include <set>

#include "tests/cuda/cython_header.h"
#include "tests/support/fetched.h"
#include "tests/support/golden.h"
#include "tests/support/process.h"
#include "tests/support/temporary_folder.h"

namespace piper::test {
namespace {

constexpr const char* kAlike = R"(#include <cstddef>
#include <type_traits>

template <class A, class B>
constexpr bool alike = (std::is_pointer_v<A> && std::is_pointer_v<B>) ||
                       (std::is_floating_point_v<A> == std::is_floating_point_v<B> && std::is_pointer_v<A> == std::is_pointer_v<B> && sizeof(A) == sizeof(B));
template <class F, class G> struct same_call : std::false_type {};
template <class R, class... A, class S, class... B> struct same_call<R(A...), S(B...)> : std::bool_constant<sizeof...(A) == sizeof...(B)> {};
template <class F, class G> struct same_types;
template <class R, class... A, class S, class... B> struct same_types<R(A...), S(B...)> : std::bool_constant<(alike<R, S> && ... && alike<A, B>)> {};
)";

constexpr const char* kDriver = R"(
static_assert(CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK == 1 && CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED == 3 && CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT == 16);
static_assert(CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY == 8 && CUDA_ERROR_INVALID_VALUE == 1);
static_assert(CU_MEMHOSTALLOC_PORTABLE == 1 && CU_MEMHOSTALLOC_DEVICEMAP == 2 && CU_STREAM_NON_BLOCKING == 1 && CU_EVENT_DISABLE_TIMING == 2 && CU_STREAM_WRITE_VALUE_DEFAULT == 0);
static_assert(CU_STREAM_CAPTURE_MODE_THREAD_LOCAL == 1);
static_assert(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR == 75 && CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR == 76);
static_assert(CUDA_SUCCESS == 0 && CUDA_ERROR_OUT_OF_MEMORY == 2 && CUDA_ERROR_NO_DEVICE == 100 && CUDA_ERROR_ECC_UNCORRECTABLE == 214 && CUDA_ERROR_NOT_READY == 600);
static_assert(CUDA_ERROR_ILLEGAL_ADDRESS == 700 && CUDA_ERROR_LAUNCH_TIMEOUT == 702 && CUDA_ERROR_ASSERT == 710 && CUDA_ERROR_HARDWARE_STACK_ERROR == 714);
static_assert(CUDA_ERROR_ILLEGAL_INSTRUCTION == 715 && CUDA_ERROR_MISALIGNED_ADDRESS == 716 && CUDA_ERROR_INVALID_ADDRESS_SPACE == 717 && CUDA_ERROR_INVALID_PC == 718);
static_assert(CUDA_ERROR_LAUNCH_FAILED == 719 && CUDA_ERROR_EXTERNAL_DEVICE == 911);

// Of products (runtime/cuda/cublas_lt.cpp).
#include <library_types.h>
static_assert(CUDA_R_32F == 0 && CUDA_R_64F == 1 && CUDA_R_16BF == 14);
)";

/// Compiles the declarations after a header.
void expect_alike(const std::string& own, const std::vector<std::string>& words,
                  const TemporaryFolder& folder) {
  std::vector<std::string> command = {"g++", "-std=c++20", "-fsyntax-only", "-I."};
  command.insert(command.end(), words.begin(), words.end());
  command.push_back(folder.write("compare.cpp", kAlike + own));
  const auto compiled = run_process(command);
  EXPECT_EQ(compiled.exit_code, 0) << compiled.err.substr(0, 4000);
}

/// A macro that compares a row of a .def with the function of that name.
std::string comparing(const std::string& macro, const std::string& result) {
  return "#define " + macro +
         R"(                                                                                           \
  using own_##symbol = )" +
         result +
         R"( parameters;                                                                        \
  static_assert(same_call<own_##symbol, decltype(::symbol)>::value, #symbol " has other parameters");                       \
  static_assert(same_types<own_##symbol, decltype(::symbol)>::value, #symbol " has parameters of other types");
)";
}

TEST(CudaDeclarations, AgreeWithTheDriver) {
  const std::string headers = std::string(PIPER_CUDA_HEADERS);
  if (headers.empty() || !std::filesystem::exists(headers + "/cuda.h"))
    PIPER_NOT_FETCHED("there is no cuda.h in `" + headers +
                      "`: the pinned wheel `nvidia-cuda-runtime` has it");
  const std::string macro = comparing("CUDA_FUNCTION(symbol, parameters)", "int");
  const TemporaryFolder folder;
  for (const char* rows :
       {"runtime/cuda/driver_functions.def", "backend/cuda/device_functions.def"}) {
    expect_alike(macro + "#include \"" + rows + "\"\n" + kDriver,
                 {"-isystem", headers, "-include", "cuda.h"}, folder);
  }
}

TEST(CudaDeclarations, AgreeWithNvrtc) {
  const std::string headers = PIPER_TEST_WHEELS "/nvidia/cu13/include";
  if (!std::filesystem::exists(headers + "/nvrtc.h"))
    PIPER_NOT_FETCHED("there is no nvrtc.h in `" + headers +
                      "`: the pinned wheel `nvidia-cuda-nvrtc` has it");
  expect_alike(
      comparing("NVRTC_FUNCTION(result, symbol, parameters)", "result") +
          "#include \"backend/cuda/nvrtc_functions.def\"\nstatic_assert(NVRTC_SUCCESS == 0);\n",
      {"-isystem", headers, "-include", "nvrtc.h"}, TemporaryFolder());
}

/// The names in the rows of a .def.
std::set<std::string> symbols_of(const std::string& rows, const std::string& prefix) {
  std::set<std::string> symbols;
  const std::string text = read_text(rows).value_or("");
  const std::regex name("\\b" + prefix + "[A-Z]\\w+(?=, \\()");
  for (auto found = std::sregex_iterator(text.begin(), text.end(), name);
       found != std::sregex_iterator(); ++found)
    symbols.insert(found->str());
  EXPECT_GE(symbols.size(), 10u);
  return symbols;
}

/// The bindings' declarations as a header that is included before others, after the types of CUDA.
std::vector<std::string> include_bindings(const TemporaryFolder& folder, const std::string& text) {
  const std::string types =
      "#include <cstdint>\n#include <cstddef>\nusing std::size_t;\ntypedef int cudaDataType, cudaDataType_t, libraryPropertyType;\ntypedef void* cudaStream_t;\n";
  return {"-include", folder.write("bindings.h", types + text)};
}

constexpr const char* kCublasLt = R"(
#include "runtime/cuda/cublas_lt.h"
using piper::runtime::cuda::CublasLtAlgorithm, piper::runtime::cuda::CublasLtHeuristic;
#include "runtime/cuda/cublas_lt_functions.def"

static_assert(sizeof(CublasLtAlgorithm) == sizeof(cublasLtMatmulAlgo_t) && sizeof(CublasLtHeuristic) == sizeof(cublasLtMatmulHeuristicResult_t));
static_assert(offsetof(CublasLtHeuristic, algorithm) == offsetof(cublasLtMatmulHeuristicResult_t, algo) && offsetof(CublasLtHeuristic, workspace) == offsetof(cublasLtMatmulHeuristicResult_t, workspaceSize));
static_assert(offsetof(CublasLtHeuristic, state) == offsetof(cublasLtMatmulHeuristicResult_t, state) && offsetof(CublasLtHeuristic, waves) == offsetof(cublasLtMatmulHeuristicResult_t, wavesCount));
static_assert(CUBLAS_COMPUTE_32F == 68 && CUBLAS_COMPUTE_64F == 70 && CUBLAS_OP_T == 1 && CUBLAS_STATUS_SUCCESS == 0 && CUBLAS_STATUS_NOT_SUPPORTED == 15);
static_assert(CUBLASLT_MATMUL_DESC_TRANSA == 3 && CUBLASLT_MATMUL_DESC_TRANSB == 4);
static_assert(CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT == 5 && CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET == 6);
static_assert(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES == 1 && CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK == 3);
static_assert(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES == 5 && CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES == 8);
static_assert(CUBLASLT_REDUCTION_SCHEME_NONE == 0 && CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE == 2);
)";

TEST(CudaDeclarations, AgreeWithCublasLt) {
  const std::string bindings = PIPER_TEST_WHEELS "/nvmath/bindings/";
  const auto cublas = read_text(bindings + "cycublas.pxd"),
             products = read_text(bindings + "cycublasLt.pxd");
  if (!cublas || !products)
    PIPER_NOT_FETCHED("there are no bindings of cuBLASLt in `" + bindings +
                      "`: the pinned wheel `nvmath-python` has them");
  const TemporaryFolder folder;
  const std::set<std::string> structures = {"cublasLtMatmulAlgo_t",
                                            "cublasLtMatmulHeuristicResult_t"};
  const std::string header =
      header_of_cython(*cublas, {}, {}) +
      header_of_cython(*products, structures,
                       symbols_of("runtime/cuda/cublas_lt_functions.def", "cublasLt"));
  expect_alike(comparing("CUBLAS_LT_FUNCTION(result, symbol, parameters)", "result") + kCublasLt,
               include_bindings(folder, header), folder);
}

constexpr const char* kNccl = R"(
#include "runtime/cuda/nccl.h"
using piper::runtime::cuda::NcclConfig, piper::runtime::cuda::NcclId;
#include "runtime/cuda/nccl_functions.def"

static_assert(sizeof(NcclId) == sizeof(ncclUniqueId));
static_assert(offsetof(NcclConfig, size) == offsetof(ncclConfig_t, size) && offsetof(NcclConfig, magic) == offsetof(ncclConfig_t, magic) && offsetof(NcclConfig, version) == offsetof(ncclConfig_t, version));
static_assert(offsetof(NcclConfig, blocking) == offsetof(ncclConfig_t, blocking) && offsetof(NcclConfig, cga_cluster_size) == offsetof(ncclConfig_t, cgaClusterSize));
static_assert(offsetof(NcclConfig, min_ctas) == offsetof(ncclConfig_t, minCTAs) && offsetof(NcclConfig, max_ctas) == offsetof(ncclConfig_t, maxCTAs));
static_assert(offsetof(NcclConfig, net_name) == offsetof(ncclConfig_t, netName) && offsetof(NcclConfig, split_share) == offsetof(ncclConfig_t, splitShare));
static_assert(ncclSuccess == 0 && ncclInvalidUsage == 5 && ncclRemoteError == 6 && ncclInProgress == 7);
static_assert(ncclInt64 == 4 && ncclFloat32 == 7 && ncclFloat64 == 8 && ncclBfloat16 == 9 && ncclSum == 0);
)";

TEST(CudaDeclarations, AgreeWithNccl) {
  const std::string bindings = PIPER_TEST_WHEELS "/nccl/bindings/cynccl.pxd";
  const auto text = read_text(bindings);
  if (!text) PIPER_NOT_FETCHED("there is no `" + bindings + "`: the pinned wheel `nccl4py` has it");
  const TemporaryFolder folder;
  const std::string header =
      header_of_cython(*text, {"ncclUniqueId", "ncclConfig_t"},
                       symbols_of("runtime/cuda/nccl_functions.def", "nccl"));
  expect_alike(comparing("NCCL_FUNCTION(result, symbol, parameters)", "result") + kNccl,
               include_bindings(folder, header), folder);
}

/// The parts of CUDA that nccl.h includes, as far as needed.
constexpr const char* kOfCuda =
    "#pragma once\n#include <stddef.h>\n#define CUDART_VERSION 12000\ntypedef struct CUstream_st* cudaStream_t;\n";

/// The bindings lack this: the values by which unset settings are recognised.
constexpr const char* kInitial = R"(
constexpr ncclConfig_t kInitial = NCCL_CONFIG_INITIALIZER;
static_assert(kInitial.magic == 0xcafebeef && kInitial.blocking == INT_MIN && kInitial.netName == nullptr && kInitial.splitShare == INT_MIN);
static_assert(NCCL_CONFIG_UNDEF_INT == INT_MIN && NCCL_VERSION(2, 18, 3) == 21803 && NCCL_VERSION_CODE >= 21803);
)";

TEST(CudaDeclarations, AgreeWithTheHeaderOfNccl) {
  const std::string headers = PIPER_NCCL_HEADERS;
  if (!std::filesystem::exists(headers + "/nccl.h"))
    GTEST_SKIP()
        << "there is no nccl.h in `" << headers
        << "`: the wheel `nvidia-nccl-cu13` has it, 0.2 GB for a header; `cmake -DPIPER_NCCL_HEADERS=DIR` names another folder";
  const TemporaryFolder folder;
  for (const char* name : {"cuda_runtime.h", "cuda_fp16.h", "cuda_bf16.h", "cuda_fp8.h"})
    folder.write(name, kOfCuda);
  expect_alike(comparing("NCCL_FUNCTION(result, symbol, parameters)", "result") + kNccl + kInitial,
               {"-I" + folder.path().string(), "-isystem", headers, "-include", "nccl.h"}, folder);
}

}  // namespace
}  // namespace piper::test
