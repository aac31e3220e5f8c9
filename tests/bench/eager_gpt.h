#pragma once
// The demo's model and optimizer written by hand with LibTorch, as the baseline of a step: eager
// operators, autograd, the fused AdamW.
//
// Guarantees: computes the model and update of examples/gpt/gpt.pipe (std.models.gpt, AdamW with
// weight decay 0.1, clip 1.0), in f32. No LibTorch type leaves eager_gpt.cpp.
//
//   EagerGpt eager({.layers = 4, .dim = 256, .heads = 8, .vocab = 256, .seq = 128}, 2, read);
//   double loss = eager.step(tokens, targets, 32, 2e-3);

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace piper::bench {

class EagerGpt {
 public:
  struct Sizes {
    std::int64_t layers, dim, heads, vocab, seq;
  };

  /// `read` gives the first values of a parameter by its name in the `.pipe` program, row-major;
  /// throws c10::Error if their number is wrong. `threads`: of every operator.
  EagerGpt(const Sizes& sizes, int threads,
           const std::function<std::vector<double>(const std::string&)>& read);
  ~EagerGpt();

  /// One training step on `batch` samples of `seq` tokens, [batch, seq]; gives the loss before the
  /// update.
  double step(const std::int64_t* tokens, const std::int64_t* targets, std::int64_t batch,
              double learning_rate);

 private:
  struct Model;
  std::unique_ptr<Model> model_;
};

}  // namespace piper::bench
