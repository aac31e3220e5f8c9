#pragma once
// A library call that owns its shape and its lists of addresses.
//
//   call(library, {gemm, a.data(), b.data(), c.data(), PIPER_END_ADDS}, &report)
//   call(library, {attend, {q, k, v}, {out, lse}, workspace.data(), workspace.size()}, &report)

#include <algorithm>
#include <initializer_list>

#include "runtime/device/library_calls.h"

namespace piper::test {

class TestCall {
 public:
  TestCall(const PiperGemm& gemm, const void* a, const void* b, void* c,
           std::uint32_t end = PIPER_END_WRITES, std::uint32_t number = 0)
      : shape_{.kind = PIPER_CALL_GEMM, .number = number, .of = {.gemm = gemm}},
        in_{a, b},
        out_{c},
        end_(end) {}
  /// An attention, or with six operands its gradient.
  TestCall(const PiperAttend& attend, std::initializer_list<const void*> in,
           std::initializer_list<void*> out, void* workspace, std::uint64_t workspace_bytes)
      : shape_{.kind = in.size() == 3 ? PIPER_CALL_ATTEND : PIPER_CALL_ATTEND_GRAD,
               .number = 0,
               .of = {.attend = attend}},
        workspace_(workspace),
        workspace_bytes_(workspace_bytes) {
    std::copy(in.begin(), in.end(), in_);
    std::copy(out.begin(), out.end(), out_);
  }
  /// A copy of a call whose kind exists.
  explicit TestCall(const PiperCall& call)
      : shape_(*call.shape),
        workspace_(call.workspace),
        workspace_bytes_(call.workspace_bytes),
        end_(call.end) {
    static constexpr std::size_t kNumbers[][2] = {
#define CALL(name, KIND, operands, results, family) {operands, results},
#include "runtime/calls.def"
#undef CALL
    };
    std::copy_n(call.in, kNumbers[shape_.kind][0], in_);
    std::copy_n(call.out, kNumbers[shape_.kind][1], out_);
  }

  PiperGemm& gemm() { return shape_.of.gemm; }
  PiperAttend& attend() { return shape_.of.attend; }
  void set_end(std::uint32_t end) { end_ = end; }
  void set_result(void* at) { out_[0] = at; }
  void set_workspace(void* workspace, std::uint64_t bytes) {
    workspace_ = workspace;
    workspace_bytes_ = bytes;
  }

  /// Valid while this object is unchanged.
  PiperCall get() const {
    return {.shape = &shape_,
            .in = in_,
            .out = out_,
            .workspace = workspace_,
            .workspace_bytes = workspace_bytes_,
            .end = end_};
  }

 private:
  PiperCallShape shape_;
  const void* in_[PIPER_MAX_CALL_OPERANDS] = {};
  void* out_[PIPER_MAX_CALL_RESULTS] = {};
  void* workspace_ = nullptr;
  std::uint64_t workspace_bytes_ = 0;
  std::uint32_t end_ = PIPER_END_WRITES;
};

/// The status of a call of the library.
inline int call(const runtime::LibraryCalls& library, const TestCall& call,
                runtime::LibraryReport* report) {
  const PiperCall request = call.get();
  return library.call(&request, report);
}

}  // namespace piper::test
