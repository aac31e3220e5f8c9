#include "tests/bench/eager_gpt.h"

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/_foreach_add.h>
#include <ATen/ops/_foreach_mul.h>
#include <ATen/ops/_foreach_norm.h>
#include <ATen/ops/_fused_adamw.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/rms_norm.h>
#include <ATen/ops/scaled_dot_product_attention.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/CPUAllocator.h>
#include <c10/core/InferenceMode.h>

namespace piper::bench {
namespace {

/// Eager operators allocate and record as in any other program. The runtime's plugin replaces the
/// process's allocator and turns autograd off on its threads; this restores both.
class EagerScope {
 public:
  EagerScope() { c10::SetCPUAllocator(c10::GetDefaultCPUAllocator(), kHighest); }
  ~EagerScope() { c10::SetCPUAllocator(before_, kHighest); }
  EagerScope(const EagerScope&) = delete;

 private:
  // A lower priority than that of the one in place has no effect.
  static constexpr std::uint8_t kHighest = 255;
  c10::Allocator* before_ = c10::GetCPUAllocator();
  c10::InferenceMode autograd_{false};
};

struct Block {
  at::Tensor attention_gain, q, k, v, out, mlp_gain, up, down;
};

}  // namespace

struct EagerGpt::Model {
  Sizes sizes;
  int threads;
  std::vector<at::Tensor> weights, moments1, moments2, counts;
  at::Tensor token, position, head_gain, head;
  std::vector<Block> blocks;

  at::Tensor add(const std::function<std::vector<double>(const std::string&)>& read,
                 const std::string& name, std::vector<std::int64_t> dims) {
    std::vector<double> values = read(name);
    std::int64_t elements = 1;
    for (const std::int64_t extent : dims) elements *= extent;
    TORCH_CHECK(static_cast<std::int64_t>(values.size()) == elements, name, " has ", values.size(),
                " elements");
    at::Tensor weight =
        at::from_blob(values.data(), dims, at::kDouble).to(at::kFloat).requires_grad_();
    weights.push_back(weight);
    moments1.push_back(at::zeros_like(weight));
    moments2.push_back(at::zeros_like(weight));
    counts.push_back(at::zeros({}, at::kFloat));
    return weight;
  }

  at::Tensor norm(const at::Tensor& x, const at::Tensor& gain) const {
    return at::rms_norm(x, {sizes.dim}, gain, 1e-6);
  }

  at::Tensor attention(const at::Tensor& x, const Block& block) const {
    // [batch, seq, dim] -> [batch, head, seq, width]
    const auto heads = [&](const at::Tensor& weight) {
      return at::matmul(x, weight)
          .view({x.size(0), sizes.seq, sizes.heads, sizes.dim / sizes.heads})
          .transpose(1, 2);
    };
    const at::Tensor y = at::scaled_dot_product_attention(heads(block.q), heads(block.k),
                                                          heads(block.v), {}, 0.0, true);
    return at::matmul(y.transpose(1, 2).reshape(x.sizes()), block.out);
  }

  at::Tensor loss(const at::Tensor& tokens, const at::Tensor& targets) const {
    at::Tensor x = at::embedding(token, tokens) + position;
    for (const Block& block : blocks) {
      x = x + attention(norm(x, block.attention_gain), block);
      x = x + at::matmul(at::gelu(at::matmul(norm(x, block.mlp_gain), block.up)), block.down);
    }
    const at::Tensor logits = at::matmul(norm(x, head_gain), head);
    return at::cross_entropy_loss(logits.view({-1, sizes.vocab}), targets.view({-1}));
  }

  void update(double learning_rate) {
    const at::NoGradGuard without_autograd;
    std::vector<at::Tensor> gradients;
    for (const at::Tensor& weight : weights) gradients.push_back(weight.grad());
    const at::Tensor total = at::linalg_vector_norm(at::stack(at::_foreach_norm(gradients)));
    at::_foreach_mul_(gradients, (1.0 / (total + 1e-6)).clamp_max(1.0));
    at::_foreach_add_(counts, 1);
    at::_fused_adamw_(weights, gradients, moments1, moments2, {}, counts, learning_rate, 0.9, 0.999,
                      0.1, 1e-8, false, false);
    for (at::Tensor& weight : weights) weight.mutable_grad().reset();
  }
};

EagerGpt::EagerGpt(const Sizes& sizes, int threads,
                   const std::function<std::vector<double>(const std::string&)>& read)
    : model_(std::make_unique<Model>()) {
  const EagerScope scope;
  Model& model = *model_;
  model.sizes = sizes;
  model.threads = threads;
  const std::int64_t dim = sizes.dim;
  model.token = model.add(read, "embed.0.token", {sizes.vocab, dim});
  model.position = model.add(read, "embed.0.position", {sizes.seq, dim});
  for (std::int64_t l = 0; l < sizes.layers; ++l) {
    const auto add = [&](const char* name, std::vector<std::int64_t> dims) {
      return model.add(read, "block." + std::to_string(l) + "." + name, std::move(dims));
    };
    Block& block = model.blocks.emplace_back();
    block.attention_gain = add("norm.0.gain", {dim});
    block.q = add("attention.0.q", {dim, dim});
    block.k = add("attention.0.k", {dim, dim});
    block.v = add("attention.0.v", {dim, dim});
    block.out = add("attention.0.out", {dim, dim});
    block.mlp_gain = add("norm.1.gain", {dim});
    block.up = add("mlp.0.up", {dim, 4 * dim});
    block.down = add("mlp.0.down", {4 * dim, dim});
  }
  model.head_gain = model.add(read, "head.0.norm.0.gain", {dim});
  model.head = model.add(read, "head.0.out", {dim, sizes.vocab});
}

EagerGpt::~EagerGpt() = default;

double EagerGpt::step(const std::int64_t* tokens, const std::int64_t* targets, std::int64_t batch,
                      double learning_rate) {
  Model& model = *model_;
  const EagerScope scope;
  at::set_num_threads(model.threads);
  const auto view = [&](const std::int64_t* from) {
    return at::from_blob(const_cast<std::int64_t*>(from), {batch, model.sizes.seq}, at::kLong);
  };
  const at::Tensor loss = model.loss(view(tokens), view(targets));
  loss.backward();
  model.update(learning_rate);
  return loss.item<double>();
}

}  // namespace piper::bench
