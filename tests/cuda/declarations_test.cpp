// What is declared of CUDA's driver (runtime/cuda/driver_functions.def, backend/cuda/device_functions.def) and of NCCL (runtime/cuda/nccl_functions.def) against the headers, where they are unpacked: as many parameters, each of the same
// sort and size.

#include <gtest/gtest.h>

#include <filesystem>

#include "tests/support/fetched.h"
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
#define CUDA_FUNCTION(symbol, parameters)                                                             \
  using own_##symbol = int parameters;                                                                \
  static_assert(same_call<own_##symbol, decltype(::symbol)>::value, #symbol " has other parameters"); \
  static_assert(same_types<own_##symbol, decltype(::symbol)>::value, #symbol " has parameters of other types");
#include "runtime/cuda/driver_functions.def"
#undef CUDA_FUNCTION
#define CUDA_FUNCTION(symbol, parameters)                                                                    \
  using listing_##symbol = int parameters;                                                                   \
  static_assert(same_call<listing_##symbol, decltype(::symbol)>::value, #symbol " has other parameters");     \
  static_assert(same_types<listing_##symbol, decltype(::symbol)>::value, #symbol " has parameters of other types");
#include "backend/cuda/device_functions.def"

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

TEST(CudaDeclarations, OfTheDriver) {
  const std::string headers = std::string(PIPER_CUDA_HEADERS);
  if (headers.empty() || !std::filesystem::exists(headers + "/cuda.h")) PIPER_NOT_FETCHED("there is no cuda.h in `" + headers + "`: the pinned wheel `nvidia-cuda-runtime` has it");
  const TemporaryFolder folder;
  const std::string source = folder.write("compare.cpp", std::string(kAlike) + kDriver);
  const auto compiled = run_process({"g++", "-std=c++20", "-fsyntax-only", "-I.", "-isystem", headers, "-include", "cuda.h", source});
  EXPECT_EQ(compiled.exit_code, 0) << compiled.err.substr(0, 4000);
}

constexpr const char* kNccl = R"(
#include "runtime/cuda/nccl.h"
using piper::runtime::cuda::NcclConfig, piper::runtime::cuda::NcclId;

#define NCCL_FUNCTION(result, symbol, parameters)                                                     \
  using own_##symbol = result parameters;                                                             \
  static_assert(same_call<own_##symbol, decltype(::symbol)>::value, #symbol " has other parameters"); \
  static_assert(same_types<own_##symbol, decltype(::symbol)>::value, #symbol " has parameters of other types");
#include "runtime/cuda/nccl_functions.def"

static_assert(sizeof(NcclId) == sizeof(ncclUniqueId));
static_assert(offsetof(NcclConfig, size) == offsetof(ncclConfig_t, size) && offsetof(NcclConfig, magic) == offsetof(ncclConfig_t, magic) && offsetof(NcclConfig, version) == offsetof(ncclConfig_t, version));
static_assert(offsetof(NcclConfig, blocking) == offsetof(ncclConfig_t, blocking) && offsetof(NcclConfig, cga_cluster_size) == offsetof(ncclConfig_t, cgaClusterSize));
static_assert(offsetof(NcclConfig, min_ctas) == offsetof(ncclConfig_t, minCTAs) && offsetof(NcclConfig, max_ctas) == offsetof(ncclConfig_t, maxCTAs));
static_assert(offsetof(NcclConfig, net_name) == offsetof(ncclConfig_t, netName) && offsetof(NcclConfig, split_share) == offsetof(ncclConfig_t, splitShare));
constexpr ncclConfig_t kInitial = NCCL_CONFIG_INITIALIZER;
static_assert(kInitial.magic == 0xcafebeef && kInitial.blocking == INT_MIN && kInitial.netName == nullptr && kInitial.splitShare == INT_MIN);
static_assert(NCCL_CONFIG_UNDEF_INT == INT_MIN && NCCL_VERSION(2, 18, 3) == 21803 && NCCL_VERSION_CODE >= 21803);
static_assert(ncclSuccess == 0 && ncclInvalidUsage == 5 && ncclRemoteError == 6 && ncclInProgress == 7);
static_assert(ncclInt64 == 4 && ncclFloat32 == 7 && ncclFloat64 == 8 && ncclSum == 0);
)";

/// What nccl.h includes of CUDA, as far as it needs that.
constexpr const char* kOfCuda = "#pragma once\n#include <stddef.h>\n#define CUDART_VERSION 12000\ntypedef struct CUstream_st* cudaStream_t;\n";

TEST(CudaDeclarations, OfNccl) {
  const std::string headers = PIPER_NCCL_HEADERS;
  if (!std::filesystem::exists(headers + "/nccl.h")) GTEST_SKIP() << "there is no nccl.h in `" << headers << "`: the wheel `nvidia-nccl-cu13` has it, 0.2 GB for a header; `cmake -DPIPER_NCCL_HEADERS=DIR` names another folder";
  const TemporaryFolder folder;
  for (const char* name : {"cuda_runtime.h", "cuda_fp16.h", "cuda_bf16.h", "cuda_fp8.h"}) folder.write(name, kOfCuda);
  const std::string source = folder.write("compare.cpp", std::string(kAlike) + kNccl);
  const auto compiled = run_process({"g++", "-std=c++20", "-fsyntax-only", "-I.", "-I" + folder.path().string(), "-isystem", headers, "-include", "nccl.h", source});
  EXPECT_EQ(compiled.exit_code, 0) << compiled.err.substr(0, 4000);
}

}  // namespace
}  // namespace piper::test
