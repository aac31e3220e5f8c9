#pragma once
// The library call of PiperApi, written once for every environment that runs programs.
//
//   struct Host {                                                              // how to use a rank's runtime pointer
//     static const LibraryCalls* library(PiperRank*, std::uint32_t action);    // null: the reason was kept, the step ends
//     static int failed(PiperRank*, std::uint32_t action, int status, const LibraryReport&);  // gives a nonzero status
//   };
//   constexpr PiperApi api = {.call = LibraryApi<Host>::call, ...};
//
//   DirectCalls calls(builtin_library_calls());   // no executor: a walk over bodies on this thread
//   rank.runtime = &calls;
//   evaluate(body, {&calls.api(), &rank, ...}) == 0 || puts(calls.failure().c_str());

#include <string>

#include "runtime/device/library_calls.h"

namespace piper::runtime {

/// Asks the host for the library, calls it, and reports a failure to the host. All is resolved at
/// compile time: a step makes no further call.
template <typename Host>
struct LibraryApi {
  static int call(PiperRank* rank, std::uint32_t action, const PiperCall* call) {
    const LibraryCalls* const library = Host::library(rank, action);
    if (!library) return 1;
    LibraryReport report;
    const int status = library->call(call, &report);
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

  /// `call` and `fail`; the others are null.
  static const PiperApi& api();
  const std::string& failure() const { return failure_; }

 private:
  friend struct DirectHost;
  const LibraryCalls& library_;
  std::string failure_;
};

}  // namespace piper::runtime
