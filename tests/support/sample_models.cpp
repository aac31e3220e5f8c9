#include "tests/support/sample_models.h"

#include <cstdio>
#include <cstdlib>

#include "ir/tensor/builder.h"

namespace piper::test {

using tensor::Builder;
using tensor::Built;
using tensor::DType;
using tensor::Graph;
using tensor::Op;
using tensor::Type;
using tensor::ValueId;

namespace {

ValueId must(const Built& built) {
  if (!built) {
    std::fprintf(stderr, "sample model: %s\n", built.error.c_str());
    std::abort();
  }
  return built.value;
}

/// A model under construction: regions by nesting, logical paths by the names given.
class Modeller {
 public:
  Modeller(Context& context, std::string name) : graph(context), build(graph), context_(context) {
    graph.name = name;
    file_ = context.locations.files().add_without_text("model.pipe");
    enter(name, 0);
  }

  Symbol dim(std::string_view name) { return context_.symbol(name); }
  Type type(DType dtype, std::vector<std::pair<std::string_view, std::int64_t>> dims) {
    Type type;
    type.dtype = dtype;
    for (const auto& [name, extent] : dims)
      type.dims.push_back({dim(name), extent, name == "batch"});
    return type;
  }
  void enter(std::string_view name, std::uint32_t index) {
    path_.push_back(region());
    region_ = graph.regions.child(region_, dim(name), index);
    names_.push_back(names_.empty() ? ""
                                    : names_.back() + (names_.back().empty() ? "" : ".") +
                                          std::string(name) + "." + std::to_string(index));
    at();
  }
  void leave() {
    region_ = path_.back();
    path_.pop_back();
    names_.pop_back();
    at();
  }
  RegionId region() const { return region_; }
  ValueId weight(std::string_view name, Type type, tensor::Init init = {}) {
    return build.weight((names_.back().empty() ? "" : names_.back() + ".") + std::string(name),
                        std::move(type), init);
  }

  Graph graph;
  Builder build;

 private:
  void at() {
    ++line_;
    SourceTable& files = context_.locations.files();
    const LocId loc = context_.locations.intern(
        {file_, files.offset(file_, {line_, 1}), files.offset(file_, {line_, 9})});
    build.at(region_, loc, names_.back());
  }

  Context& context_;
  FileId file_;
  RegionId region_;
  std::uint32_t line_ = 0;
  std::vector<RegionId> path_;
  std::vector<std::string> names_;
};

constexpr tensor::Init kOnes{tensor::Init::Kind::ones, 1};
constexpr tensor::Init kWide{tensor::Init::Kind::normal, 0.3};

}  // namespace

Graph mlp_chain(Context& context, const MlpSize& size) {
  Modeller m(context, "mlp");
  Builder& b = m.build;
  ValueId x = b.input("x", m.type(size.dtype, {{"batch", size.batch}, {"dim", size.dim}}));
  const ValueId target =
      b.input("target", m.type(size.dtype, {{"batch", size.batch}, {"dim", size.dim}}));
  for (std::uint32_t l = 0; l < size.layers; ++l) {
    m.enter("layer", l);
    const ValueId up =
        m.weight("up", m.type(size.dtype, {{"dim", size.dim}, {"hidden", size.hidden}}), kWide);
    const ValueId down =
        m.weight("down", m.type(size.dtype, {{"hidden", size.hidden}, {"dim", size.dim}}), kWide);
    const ValueId h = must(b.unary(Op::gelu, must(b.matmul(x, up))));
    x = must(b.binary(Op::add, x, must(b.matmul(h, down))));
    m.leave();
  }
  must(b.loss("mlp.loss.0", must(b.unary(Op::square, must(b.binary(Op::sub, x, target))))));
  return std::move(m.graph);
}

Graph products(Context& context, std::uint32_t layers, std::int64_t batch) {
  Modeller m(context, "line");
  Builder& b = m.build;
  const tensor::Type type = m.type(DType::f64, {{"batch", batch}, {"in", 2}});
  ValueId x = b.input("x", type);
  for (std::uint32_t l = 0; l < layers; ++l) {
    m.enter("layer", l);
    const ValueId w = m.weight(
        "w", m.type(DType::f64, {{l % 2 == 0 ? "in" : "out", 2}, {l % 2 == 0 ? "out" : "in", 2}}),
        kWide);
    x = must(b.matmul(x, w));
    m.leave();
  }
  const ValueId target = b.input(
      "target", m.type(DType::f64, {{"batch", batch}, {layers % 2 == 0 ? "in" : "out", 2}}));
  must(b.loss("line.loss.0", must(b.unary(Op::square, must(b.binary(Op::sub, x, target))))));
  return std::move(m.graph);
}

Graph small_gpt(Context& context, const GptSize& size) {
  Modeller m(context, "gpt");
  Builder& b = m.build;
  const DType dtype = size.dtype;
  const std::int64_t width = size.dim / size.heads;
  const ValueId tokens =
      b.input("tokens", m.type(DType::i64, {{"batch", size.batch}, {"seq", size.seq}}));
  const ValueId targets =
      b.input("targets", m.type(DType::i64, {{"batch", size.batch}, {"seq", size.seq}}));
  const auto norm = [&](ValueId x, std::uint32_t index) {
    m.enter("norm", index);
    const ValueId gain = m.weight("gain", m.type(dtype, {{"dim", size.dim}}), kOnes);
    const ValueId y = must(b.binary(Op::mul, must(b.along(Op::rms_norm, x, {}, 1e-5)), gain));
    m.leave();
    return y;
  };
  m.enter("embed", 0);
  const ValueId table =
      m.weight("token", m.type(dtype, {{"vocab", size.vocab}, {"dim", size.dim}}), kWide);
  const ValueId position =
      m.weight("position", m.type(dtype, {{"seq", size.seq}, {"dim", size.dim}}), kWide);
  ValueId x = must(b.binary(Op::add, must(b.lookup(table, tokens)), position));
  m.leave();
  for (std::uint32_t l = 0; l < size.layers; ++l) {
    m.enter("block", l);
    const ValueId n = norm(x, 0);
    m.enter("attention", 0);
    const Type projection =
        m.type(dtype, {{"dim", size.dim}, {"heads", size.heads}, {"width", width}});
    const ValueId q = m.weight("q", projection, kWide), k = m.weight("k", projection, kWide),
                  v = m.weight("v", projection, kWide);
    const ValueId out = m.weight(
        "out", m.type(dtype, {{"heads", size.heads}, {"width", width}, {"dim", size.dim}}), kWide);
    const ValueId mixed =
        must(b.attend(must(b.matmul(n, q)), must(b.matmul(n, k)), must(b.matmul(n, v)), true));
    const ValueId a = must(b.matmul(mixed, out));
    m.leave();
    const ValueId y = must(b.binary(Op::add, x, a));
    const ValueId n1 = norm(y, 1);
    m.enter("mlp", 0);
    const ValueId up =
        m.weight("up", m.type(dtype, {{"dim", size.dim}, {"hidden", 4 * size.dim}}), kWide);
    const ValueId down =
        m.weight("down", m.type(dtype, {{"hidden", 4 * size.dim}, {"dim", size.dim}}), kWide);
    const ValueId h = must(b.matmul(must(b.unary(Op::gelu, must(b.matmul(n1, up)))), down));
    m.leave();
    x = must(b.binary(Op::add, y, h));
    if (l == 0 && size.auxiliary_loss)
      must(b.loss("gpt.loss.1", must(b.scale(must(b.unary(Op::square, x)), 0.01))));
    m.leave();
  }
  m.enter("head", 0);
  const ValueId n = norm(x, 0);
  ValueId logits;
  if (size.tied) {
    logits = must(b.contract(n, table, {m.dim("dim")}));
  } else {
    logits = must(b.matmul(
        n, m.weight("out", m.type(dtype, {{"dim", size.dim}, {"vocab", size.vocab}}), kWide)));
  }
  m.leave();
  must(b.loss("gpt.loss.0", must(b.cross_entropy(logits, targets, m.dim("vocab"), size.ignore))));
  return std::move(m.graph);
}

Graph two_towers(Context& context, const TowersSize& size) {
  Modeller m(context, "towers");
  Builder& b = m.build;
  const ValueId left =
      b.input("left", m.type(size.dtype, {{"batch", size.batch}, {"dim", size.dim}}));
  const ValueId right =
      b.input("right", m.type(size.dtype, {{"batch", size.batch}, {"dim", size.dim}}));
  const ValueId label = b.input("label", m.type(size.dtype, {{"batch", size.batch}}));
  ValueId shared;
  if (size.tied)
    shared =
        m.weight("shared", m.type(size.dtype, {{"dim", size.dim}, {"hidden", size.dim}}), kWide);
  const auto tower = [&](std::string_view name, ValueId x) {
    m.enter(name, 0);
    for (std::uint32_t l = 0; l < size.layers; ++l) {
      m.enter("layer", l);
      const ValueId w =
          l == 0 && size.tied
              ? shared
              : m.weight("w", m.type(size.dtype, {{"dim", size.dim}, {"hidden", size.dim}}), kWide);
      x = must(b.rename(must(b.unary(Op::tanh, must(b.matmul(x, w)))),
                        {{m.dim("hidden"), m.dim("dim")}}));
      m.leave();
    }
    const ValueId out =
        m.weight("out", m.type(size.dtype, {{"dim", size.dim}, {"feature", size.out}}), kWide);
    x = must(b.matmul(x, out));
    m.leave();
    return x;
  };
  const ValueId a = tower("left", left);
  const ValueId c = tower("right", right);
  m.enter("join", 0);
  const ValueId score = must(b.sum(must(b.binary(Op::mul, a, c)), {m.dim("feature")}));
  m.leave();
  // softplus(s) - label * s: the logistic loss of label in {0, 1}.
  must(b.loss("towers.loss.0", must(b.binary(Op::sub, must(b.unary(Op::softplus, score)),
                                             must(b.binary(Op::mul, label, score))))));
  return std::move(m.graph);
}

Graph two_tasks(Context& context, bool tied, std::int64_t batch) {
  Modeller m(context, "tasks");
  Builder& b = m.build;
  const Type square = m.type(DType::f64, {{"dim", 4}, {"out", 3}});
  ValueId shared;
  if (tied) shared = m.weight("w", square, kWide);
  for (const std::string_view name : {"first", "second"}) {
    const ValueId x = b.input(name, m.type(DType::f64, {{"batch", batch}, {"dim", 4}}));
    m.enter(name, 0);
    const ValueId y =
        must(b.unary(Op::square, must(b.matmul(x, tied ? shared : m.weight("w", square, kWide)))));
    must(b.loss(std::string(name) + ".loss", y));
    m.leave();
  }
  return std::move(m.graph);
}

Graph coupled_model(Context& context, Op by) {
  Modeller m(context, "coupled");
  Builder& b = m.build;
  const Symbol batch = m.dim("batch");
  const ValueId x = b.input("x", m.type(DType::f64, {{"batch", 8}, {"dim", 4}}));
  const ValueId h =
      must(b.matmul(x, m.weight("w", m.type(DType::f64, {{"dim", 4}, {"out", 3}}), kWide)));
  const auto mixed = [&]() -> Built {
    switch (by) {
      case Op::sum: return b.binary(Op::sub, h, must(b.mean(h, {batch})));
      case Op::max: return b.binary(Op::sub, h, must(b.max(h, {batch})));
      case Op::contract:
        return b.contract(
            h, must(b.contract(h, must(b.rename(h, {{m.dim("out"), m.dim("other")}})), {batch})),
            {m.dim("out")});
      case Op::rename:
        return b.contract(h, must(b.rename(h, {{batch, m.dim("others")}})), {m.dim("out")});
      default: return b.along(by, h, batch);
    }
  };
  must(b.loss("coupled.loss.0", must(mixed())));
  return std::move(m.graph);
}

// ---- strategies

StrategyBuilder::StrategyBuilder(Context& context, std::vector<Index> mesh) : context_(context) {
  strategy_.mesh.name = context.symbol("cluster");
  for (const auto& [name, size] : mesh) strategy_.mesh.axes.push_back({context.symbol(name), size});
  strategy_.mesh.loc = next_line();
  strategy_.settings.steps = 3;
  strategy_.settings.dtype = DType::f64;
  strategy_.settings.loc = next_line();
  directive::Optimizer optimizer;
  optimizer.kind = directive::Optimizer::Kind::adamw;
  optimizer.lr.base = 1e-2;
  optimizer.weight_decay = 0.1;
  optimizer.loc = next_line();
  strategy_.settings.optimizer = optimizer;
  order_.loc = {};
}

LocId StrategyBuilder::next_line() {
  SourceTable& files = context_.locations.files();
  const FileId file = files.add_without_text("sample.pipe");
  ++line_;
  return context_.locations.intern(
      {file, files.offset(file, {line_, 1}), files.offset(file, {line_, 9})});
}

directive::Selector StrategyBuilder::selector(std::vector<Index> coordinates,
                                              std::optional<Pass> pass) {
  directive::Selector selector;
  selector.pass = pass;
  for (const auto& [name, index] : coordinates)
    selector.coordinates.push_back({context_.symbol(name), false, {index}, {}});
  return selector;
}

DeviceSetId StrategyBuilder::devices(const std::vector<Index>& fixed) {
  DeviceSet set{std::vector<std::int32_t>(strategy_.mesh.axes.size(), DeviceSet::kWhole)};
  for (const auto& [name, at] : fixed)
    set.at[strategy_.mesh.find(context_.symbol(name))] = static_cast<std::int32_t>(at);
  return strategy_.device_sets.intern(set);
}

StrategyBuilder& StrategyBuilder::partition(std::string_view into, std::uint32_t extent,
                                            std::vector<std::uint32_t> sizes,
                                            std::vector<Index> region) {
  return add(directive::Partition{
      selector(std::move(region)), {context_.symbol(into), extent}, std::move(sizes), next_line()});
}

StrategyBuilder& StrategyBuilder::split(std::vector<Index> into) {
  directive::Split split;
  split.dim = context_.symbol("batch");
  for (const auto& [name, extent] : into) split.into.push_back({context_.symbol(name), extent});
  split.loc = next_line();
  return add(std::move(split));
}

StrategyBuilder& StrategyBuilder::place(std::vector<Index> target, const std::vector<Index>& fixed,
                                        std::optional<Pass> pass) {
  directive::Place place{{selector(std::move(target), pass)}, devices(fixed), next_line()};
  place.targets[0].loc = place.loc;
  return add(std::move(place));
}

StrategyBuilder& StrategyBuilder::place_all(std::string_view name,
                                            const std::vector<Index>& fixed) {
  directive::Selector target;
  target.coordinates.push_back({context_.symbol(name), true, {}, {}});
  return add(directive::Place{{std::move(target)}, devices(fixed), next_line()});
}

StrategyBuilder& StrategyBuilder::replicate(std::vector<std::string_view> axes,
                                            std::optional<std::int64_t> bucket,
                                            std::vector<Index> region, std::uint32_t zero) {
  directive::Replicate replicate;
  replicate.targets.push_back(selector(std::move(region)));
  for (const std::string_view axis : axes) replicate.axes.push_back(context_.symbol(axis));
  replicate.bucket_bytes = bucket;
  replicate.zero = zero;
  replicate.loc = replicate.targets[0].loc = next_line();
  return add(std::move(replicate));
}

StrategyBuilder& StrategyBuilder::clip(double norm) {
  strategy_.settings.optimizer->clip = norm;
  return *this;
}

StrategyBuilder& StrategyBuilder::rank(const std::vector<Index>& fixed) {
  if (!order_.loc.valid()) order_.loc = next_line();
  order_.ranks.push_back(
      {devices(fixed), static_cast<std::uint32_t>(order_.children.size()), 0, next_line()});
  return *this;
}

StrategyBuilder& StrategyBuilder::op(Pass pass, std::vector<Index> coordinates,
                                     directive::CommClass part) {
  const LocId loc = next_line();
  directive::OrderOp op{pass, part, static_cast<std::uint32_t>(order_.coordinates.size()),
                        static_cast<std::uint32_t>(coordinates.size()), loc};
  for (const auto& [name, index] : coordinates)
    order_.coordinates.push_back({context_.symbol(name), index, false});
  order_.children.push_back(static_cast<std::uint32_t>(order_.steps.size()));
  order_.steps.push_back(
      {directive::OrderStep::Kind::op, static_cast<std::uint32_t>(order_.ops.size()), 1, loc});
  order_.ops.push_back(op);
  ++order_.ranks.back().num_steps;
  return *this;
}

StrategyBuilder& StrategyBuilder::one_f_one_b(std::uint32_t stages, std::uint32_t microbatches,
                                              bool halves) {
  const std::string axis(context_.text(strategy_.mesh.axes[0].name));
  for (std::uint32_t r = 0; r < stages; ++r) {
    rank({{axis, r}});
    std::uint32_t f = 0, b = 0;
    const auto backward = [&] {
      if (halves) {
        op(Pass::BI, {{"stage", r}, {"mb", b}});
        op(Pass::BW, {{"stage", r}, {"mb", b}});
      } else {
        op(Pass::B, {{"stage", r}, {"mb", b}});
      }
      ++b;
    };
    while (f < std::min(stages - 1 - r, microbatches)) op(Pass::F, {{"stage", r}, {"mb", f++}});
    while (f < microbatches) {
      op(Pass::F, {{"stage", r}, {"mb", f++}});
      backward();
    }
    while (b < microbatches) backward();
  }
  return *this;
}

StrategyBuilder& StrategyBuilder::line(std::uint32_t stages, std::uint32_t microbatches) {
  const std::string axis(context_.text(strategy_.mesh.axes[0].name));
  partition("stage", stages).split({{"mb", microbatches}});
  for (std::uint32_t s = 0; s < stages; ++s) place({{"stage", s}}, {{axis, s}});
  return *this;
}

directive::Strategy StrategyBuilder::strategy() const {
  directive::Strategy strategy = strategy_;
  if (!order_.ranks.empty()) strategy.directives.push_back(order_);
  return strategy;
}

}  // namespace piper::test
