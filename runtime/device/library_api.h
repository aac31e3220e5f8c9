#pragma once
// The library functions of PiperApi, written once for every environment that runs programs.
//
//   struct Host {                                                              // how to use a rank's runtime pointer
//     static const LibraryCalls* library(PiperRank*, std::uint32_t action);    // null: the reason was kept, the step ends
//     static int failed(PiperRank*, std::uint32_t action, int status, const LibraryReport&);  // gives a nonzero status
//   };
//   constexpr PiperApi api = {.gemm = LibraryApi<Host>::gemm, ...};
//
//   DirectCalls calls(builtin_library_calls());   // no executor: a walk over bodies on this thread
//   rank.runtime = &calls;
//   evaluate(body, {&calls.api(), &rank, ...}) == 0 || puts(calls.failure().c_str());

#include <string>

#include "runtime/device/library_calls.h"

namespace piper::runtime {

/// Each function asks the host for the library, calls it, and reports a failure to the host. All is
/// resolved at compile time: a step makes no further call.
template <typename Host>
struct LibraryApi {
  static int gemm(PiperRank* rank, std::uint32_t action, const PiperGemm* call, const void* a,
                  const void* b, void* c, std::uint32_t accumulate) {
    return with_library(rank, action, [&](const LibraryCalls& library, LibraryReport* report) {
      return library.gemm(call, a, b, c, accumulate, report);
    });
  }
  static int attend(PiperRank* rank, std::uint32_t action, const PiperAttend* call, const void* q,
                    const void* k, const void* v, void* out, void* lse, void* workspace,
                    std::uint64_t workspace_bytes) {
    return with_library(rank, action, [&](const LibraryCalls& library, LibraryReport* report) {
      return library.attend(call, q, k, v, out, lse, workspace, workspace_bytes, report);
    });
  }
  static int attend_grad(PiperRank* rank, std::uint32_t action, const PiperAttend* call,
                         const void* q, const void* k, const void* v, const void* out,
                         const void* lse, const void* dout, void* dq, void* dk, void* dv,
                         void* workspace, std::uint64_t workspace_bytes) {
    return with_library(rank, action, [&](const LibraryCalls& library, LibraryReport* report) {
      return library.attend_grad(call, q, k, v, out, lse, dout, dq, dk, dv, workspace,
                                 workspace_bytes, report);
    });
  }

 private:
  template <typename Call>
  static int with_library(PiperRank* rank, std::uint32_t action, const Call& call) {
    const LibraryCalls* const library = Host::library(rank, action);
    if (!library) return 1;
    LibraryReport report;
    const int status = call(*library, &report);
    return status == kLibraryDone ? 0 : Host::failed(rank, action, status, report);
  }
};

/// The failure in words.
std::string library_failure(int status, const LibraryReport& report);

/// PiperRank::runtime of a run without an executor: its calls go straight to a library, and the
/// last failure is kept.
class DirectCalls {
 public:
  explicit DirectCalls(const LibraryCalls& library) : library_(library) {}

  /// gemm, attend, attend_grad and fail; the others are null.
  static const PiperApi& api();
  const std::string& failure() const { return failure_; }

 private:
  friend struct DirectHost;
  const LibraryCalls& library_;
  std::string failure_;
};

}  // namespace piper::runtime
