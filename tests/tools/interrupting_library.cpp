// A plugin of the runtime that presses Ctrl-C once, in the middle of a step: before the matrix
// product whose element type and number INTERRUPT says, as `f32 1`.
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <string>

#include "runtime/device/library_calls.h"

namespace piper::runtime {
namespace {

int call_with_interrupt(const PiperCall* call, LibraryReport* report) {
  static const std::string when = std::getenv("INTERRUPT");
  static std::atomic<int> count{0};
  const PiperCallShape& shape = *call->shape;
  if (shape.kind == PIPER_CALL_GEMM &&
      when.starts_with(shape.of.gemm.dtype == PIPER_F32 ? "f32 " : "f64 ") &&
      ++count == std::stoi(when.substr(4)))
    std::raise(SIGINT);
  return builtin_library_calls().call(call, report);
}

}  // namespace
}  // namespace piper::runtime

extern "C" __attribute__((visibility("default"))) const piper::runtime::LibraryCalls*
piper_library_calls() {
  static const piper::runtime::LibraryCalls calls = [] {
    piper::runtime::LibraryCalls made = piper::runtime::builtin_library_calls();
    made.call = piper::runtime::call_with_interrupt;
    return made;
  }();
  return &calls;
}
