// A plugin of the runtime that computes on the threads of ranks and fails on the first thread of
// the process, where the one-device run calls it.
#include <unistd.h>

#include "runtime/device/library_calls.h"

namespace piper::runtime {
namespace {

int gemm_of_ranks(const PiperGemm* call, const void* a, const void* b, void* c,
                  std::uint32_t accumulate, LibraryReport* report) {
  if (gettid() != getpid()) return builtin_library_calls().gemm(call, a, b, c, accumulate, report);
  report->error = "this thread cannot be served";
  return kLibraryError;
}

}  // namespace
}  // namespace piper::runtime

extern "C" __attribute__((visibility("default"))) const piper::runtime::LibraryCalls*
piper_library_calls() {
  static const piper::runtime::LibraryCalls calls = [] {
    piper::runtime::LibraryCalls made = piper::runtime::builtin_library_calls();
    made.gemm = piper::runtime::gemm_of_ranks;
    return made;
  }();
  return &calls;
}
