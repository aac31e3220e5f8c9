#pragma once
// Library calls (runtime/calls.def): a small table of C functions, provided by the plugin with
// LibTorch or by Piper's own loops. The plugin is opened at the first call, so a run that needs neither
// loads nothing.
//
// A function returns 0, or nonzero with `*error` (static storage) and `*value`; no exception leaves
// it.

#include <cstdint>
#include <mutex>

#include "runtime/abi.h"
#include "runtime/failure.h"
#include "runtime/options.h"

namespace piper::runtime {

enum LibraryStatus : int { kLibraryDone = 0, kLibraryError = 1, kLibraryOverrun = 2 };

struct LibraryReport {
  const char* error = nullptr;
  std::int64_t value = 0;
};

struct LibraryCalls {
  std::uint32_t abi_version;
  const char* name;
  /// Called once, before all others: the library of the products. Nonzero if this machine does not
  /// have it.
  int (*choose)(Math math);
  /// The first call in every device thread that computes.
  void (*begin_thread)(std::uint32_t threads);
  /// Makes a call on this thread.
  int (*call)(const PiperCall* call, LibraryReport* report);
  /// 1 before the end of a process that used it if static destructors may be skipped: `_exit` is
  /// then worthwhile.
  int skip_destructors;
};

/// Reasons that every library of a CPU gives.
inline constexpr const char* kUnknownLibraryCall = "the library does not have this call";
inline constexpr const char* kNoSuchEnd = "products on a CPU write or add their sums";

/// Piper's own loops: correct in f32, f64 and bf16, deterministic, and slow. For tests and machines
/// without LibTorch, on request only.
const LibraryCalls& builtin_library_calls();

/// The name of the plugin's entry: `const LibraryCalls* piper_library_calls()`.
inline constexpr const char* kLibraryEntry = "piper_library_calls";

/// The path of the plugin with LibTorch.
std::string torch_plugin_path(const Options& options);

/// Opens the library that the options ask for, once, at the first need.
class LibrarySwitch {
 public:
  /// Construct it while no other thread reads the environment: it makes threads that help inside a
  /// library call poll only briefly for the next one.
  explicit LibrarySwitch(const Options& options);
  /// Null with the reason in `failure`.
  const LibraryCalls* get(Failure& failure);
  bool skip_destructors() const { return calls_ && calls_->skip_destructors; }

 private:
  Options options_;
  std::mutex mutex_;
  const LibraryCalls* calls_ = nullptr;
};

}  // namespace piper::runtime
