#pragma once
// Runs bodies three ways: with the reference evaluator of tests/support, with the kernel evaluator,
// and as generated code that the host compiler built.
//
//   KernelRuns runs;
//   runs.add("softmax", body, inputs);
//   runs.check();   // all of them in one generated file

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "backend/kernel/kernel.h"
#include "tests/support/evaluate.h"
#include "tests/support/random_cases.h"

namespace piper::test {

/// Plain loops for matrix products and attention, in the element type; failures are collected.
struct TestApi {
  TestApi();
  PiperApi api{};
  static inline std::vector<std::string> failures;  // "message: value"
};

/// A graph as a body: all leaves are input ports, `outputs` are data ports.
dag::Body make_body(tensor::Graph graph, const std::vector<tensor::ValueId>& outputs,
                    std::string_view name);

class KernelRuns {
 public:
  /// cuda: the generated code is CUDA C++, run by a driver on the device that the executable is
  /// linked with (tests/cuda/test_device.h), and the evaluator follows that target's order.
  explicit KernelRuns(backend::Target target = backend::Target::cpu) : target_(target) {}
  /// `accumulate`: per output of kind grad, whether the call adds. `tolerance` 0: no comparison
  /// with the reference.
  void add(std::string what, dag::Body body, std::vector<Array> inputs,
           std::vector<std::uint8_t> accumulate, double tolerance,
           const std::vector<int>& in_place = {}, DropoutMask keeps = {});
  /// Evaluates and builds everything; reports differences as test failures. `flags` go to the
  /// compiler of the CPU. Without a device the test is skipped.
  void check(const std::string& flags);
  std::string text() const;
  std::size_t size() const { return cases_.size(); }

  static constexpr std::uint64_t kSeed = 5, kStep = 3;
  // The key of dropout: samples from 8 + 8 on.
  static constexpr backend::CallInterval kSamples{8, 0};
  static constexpr PiperInterval kOwnSamples{8, 4, 16};
  static constexpr std::uint64_t kFirstSample = kSamples.first + kOwnSamples.first;

 private:
  struct Case {
    std::string what;
    std::unique_ptr<dag::Body> body;
    std::vector<Array> inputs;
    std::vector<std::uint8_t> accumulate;
    double tolerance = 0;
    std::vector<int> in_place;
    DropoutMask keeps;
    backend::KernelBody kernels;
    std::vector<std::uint64_t> offsets;
    std::uint64_t arena_bytes = 0;
  };
  std::vector<unsigned char> fresh_arena(const Case& c) const;
  std::vector<unsigned char> evaluated(const Case& c) const;
  void evaluate(const Case& c, const backend::KernelBody& kernels, unsigned char* arena) const;
  /// Runs generated code on an arena.
  using Run = std::function<void(std::size_t, const Case&, std::vector<unsigned char>& arena)>;
  void compare_all(const Run& run) const;
  Run generated(void* library) const;
  void compare_with_reference(const Case& c, const std::vector<unsigned char>& arena) const;

  const backend::Target target_;
  std::vector<Case> cases_;
};

/// Whether dropout keeps an element of a value of this type, by the kernels' key.
DropoutMask keeps_as_kernels(const tensor::Type& type, double rate, std::string name);

}  // namespace piper::test
