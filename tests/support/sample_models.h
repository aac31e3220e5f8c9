#pragma once
// Models and strategies for tests, built by hand: the input that the front end gives to the passes.
//
// Guarantees: the same arguments give the same model; every directive has its own location in
// `sample.pipe`, one line each in the order of the calls, so that diagnostics can be distinguished.
//
//   Context context;
//   tensor::Graph model = small_gpt(context, {.layers = 4, .batch = 16});
//   StrategyBuilder build(context, {{"pp", 2}, {"dp", 2}});
//   build.partition("stage", 2).split({{"mb", 4}}).place({{"stage", 0}}, {{"pp", 0}}).place({{"stage", 1}}, {{"pp", 1}}).replicate({"dp"});
//   test::compile(model, build.strategy(), sink, {});

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ir/directive/directive.h"
#include "ir/tensor/graph.h"

namespace piper::test {

// ---- models

struct MlpSize {
  std::uint32_t layers = 4;
  std::int64_t batch = 16, dim = 8, hidden = 12;
  tensor::DType dtype = tensor::DType::f64;
};
/// `mlp { layer[i] { up, gelu, down } }`, residual, and a squared error per element against
/// `target`.
tensor::Graph mlp_chain(Context& context, const MlpSize& size = {});

/// `line { layer[i] { w } }`: a product each, and a squared error per element against `target`: the
/// smallest model with stages, messages and gradients, whose texts fit a screen.
tensor::Graph products(Context& context, std::uint32_t layers, std::int64_t batch);

struct GptSize {
  std::uint32_t layers = 2;
  std::int64_t batch = 8, seq = 6, dim = 8, heads = 2, vocab = 11;
  tensor::DType dtype = tensor::DType::f64;
  bool tied = false;            // the head multiplies with the embedding table
  bool auxiliary_loss = false;  // a second loss on the activations after the first block
  std::optional<std::int32_t> ignore = {};  // targets of this class do not count
};
/// `gpt { embed, block[i] { norm, attention, norm, mlp }, head }` over tokens and targets.
tensor::Graph small_gpt(Context& context, const GptSize& size = {});

struct TowersSize {
  std::uint32_t layers = 2;
  std::int64_t batch = 12, dim = 6, out = 4;
  tensor::DType dtype = tensor::DType::f64;
  bool tied = false;  // both towers share the first weight
};
/// `towers { left { layer[i] }, right { layer[i] }, join }`: two branches and a logistic loss per
/// sample on their dot product.
tensor::Graph two_towers(Context& context, const TowersSize& size = {});

/// `tasks { first { w, square }, second { w, square } }`: two independent inputs and losses; tied:
/// one weight.
tensor::Graph two_tasks(Context& context, bool tied, std::int64_t batch = 8);

/// Samples that depend on each other by an operation over the batch; `sum`: minus their mean,
/// `contract`: times a sum of products over them, `rename`: compared with all others.
tensor::Graph coupled_model(Context& context, tensor::Op by);

// ---- strategies

using Index = std::pair<std::string_view, std::uint32_t>;

class StrategyBuilder {
 public:
  StrategyBuilder(Context& context, std::vector<Index> mesh);

  /// `stage[1] mb[3]`; no coordinates: the whole model.
  directive::Selector selector(std::vector<Index> coordinates, std::optional<Pass> pass = {});
  DeviceSetId devices(const std::vector<Index>& fixed);

  StrategyBuilder& partition(std::string_view into, std::uint32_t extent,
                             std::vector<std::uint32_t> sizes = {}, std::vector<Index> region = {});
  StrategyBuilder& split(std::vector<Index> into);
  StrategyBuilder& place(std::vector<Index> selector, const std::vector<Index>& fixed,
                         std::optional<Pass> pass = {});
  /// `place NAME on ...`: every index of the name.
  StrategyBuilder& place_all(std::string_view name, const std::vector<Index>& fixed);
  StrategyBuilder& replicate(std::vector<std::string_view> axes,
                             std::optional<std::int64_t> bucket = {},
                             std::vector<Index> region = {}, std::uint32_t zero = 0);
  StrategyBuilder& clip(double norm);

  /// One operation per call on the last rank started.
  StrategyBuilder& rank(const std::vector<Index>& fixed);
  StrategyBuilder& op(Pass pass, std::vector<Index> coordinates,
                      directive::CommClass part = directive::CommClass::none);
  /// 1F1B of `stages` stages over the first mesh axis, `microbatches` each; with `halves` the
  /// backward is BI then BW.
  StrategyBuilder& one_f_one_b(std::uint32_t stages, std::uint32_t microbatches,
                               bool halves = false);
  /// partition, split and place of a line: stage s on coordinate s of the first axis.
  StrategyBuilder& line(std::uint32_t stages, std::uint32_t microbatches);

  template <typename Directive>
  StrategyBuilder& add(Directive directive) {
    strategy_.directives.push_back(std::move(directive));
    return *this;
  }
  LocId next_line();
  /// All calls so far; the order of operations is one directive.
  directive::Strategy strategy() const;
  directive::Strategy& edit() { return strategy_; }

 private:
  Context& context_;
  directive::Strategy strategy_;
  directive::Order order_;
  std::uint32_t line_ = 0;
};

}  // namespace piper::test
