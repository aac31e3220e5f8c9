// A plugin of the runtime that computes on the threads of ranks and fails on the first thread of
// the process, where the one-device run calls it.
#include <unistd.h>

#include "runtime/device/library_calls.h"

namespace piper::runtime {
namespace {

int call_of_ranks(const PiperCall* call, LibraryReport* report) {
  if (call->shape->kind != PIPER_CALL_GEMM || gettid() != getpid())
    return builtin_library_calls().call(call, report);
  report->error = "this thread cannot be served";
  return kLibraryError;
}

}  // namespace
}  // namespace piper::runtime

extern "C" __attribute__((visibility("default"))) const piper::runtime::LibraryCalls*
piper_library_calls() {
  static const piper::runtime::LibraryCalls calls = [] {
    piper::runtime::LibraryCalls made = piper::runtime::builtin_library_calls();
    made.call = piper::runtime::call_of_ranks;
    return made;
  }();
  return &calls;
}
