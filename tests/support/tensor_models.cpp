#include "tests/support/tensor_models.h"

#include <cstdio>
#include <cstdlib>

#include "ir/tensor/builder.h"
#include "tests/support/op_cases.h"

namespace piper::test {

using namespace tensor;

namespace {

/// The builder, with failures ending the test program: the models are right by construction.
class Model {
 public:
  Model(Context& context, std::string_view name, const ModelSize& size)
      : context_(context), size_(size), graph_(context), build_(graph_) {
    graph_.name = name;
    enter(name);
  }

  Symbol sym(std::string_view text) { return context_.symbol(text); }
  Dim dim(std::string_view name, std::int64_t extent, bool sampled = false) {
    return {sym(name), extent, sampled};
  }
  Dim batch() { return dim("batch", size_.batch, true); }
  ValueId take(const Built& built) {
    if (!built) std::fprintf(stderr, "%s\n", built.error.c_str()), std::abort();
    return built.value;
  }
  ValueId input(std::string_view name, DType dtype, std::vector<Dim> dims) {
    return build_.input(name, {dtype, std::move(dims)});
  }
  ValueId weight(std::string_view name, std::vector<Dim> dims, Init init = {}) {
    return build_.weight(path_.empty() ? std::string(name) : path_ + "." + std::string(name),
                         {size_.dtype, std::move(dims)}, init);
  }

  /// Ops that follow stand in a region `name[k]` inside the current one.
  void enter(std::string_view name, std::uint32_t k = 0) {
    region_ = graph_.regions.child(region_, sym(name), k);
    if (depth_++ > 0)
      path_ += (path_.empty() ? "" : ".") + std::string(name) + "." + std::to_string(k);
    build_.at(region_, {}, path_);
  }
  void leave() {
    region_ = graph_.regions.parent(region_);
    std::size_t dot = path_.rfind('.');
    dot = dot == std::string::npos ? 0 : path_.rfind('.', dot - 1);
    path_.resize(dot == std::string::npos ? 0 : dot);
    --depth_;
    build_.at(region_, {}, path_);
  }

  ValueId mm(ValueId a, ValueId b) { return take(build_.matmul(a, b)); }
  ValueId add(ValueId a, ValueId b) { return take(build_.binary(Op::add, a, b)); }
  ValueId norm(ValueId x, std::uint32_t k) {
    enter("norm", k);
    const ValueId gain = weight("gain", {dim("dim", size_.dim)}, {Init::Kind::ones, 0.02});
    const ValueId y =
        take(build_.binary(Op::mul, take(build_.along(Op::rms_norm, x, {}, 1e-5)), gain));
    leave();
    return y;
  }

  Context& context_;
  const ModelSize size_;
  Graph graph_;
  Builder build_;
  RegionId region_;
  std::string path_;
  int depth_ = 0;
};

}  // namespace

Graph gpt_model(Context& context, const ModelSize& size) {
  Model m(context, "gpt", size);
  const Dim seq = m.dim("seq", size.seq), dim = m.dim("dim", size.dim),
            vocab = m.dim("vocab", size.vocab);
  const Dim heads = m.dim("heads", size.heads), width = m.dim("width", size.dim / size.heads),
            hidden = m.dim("hidden", 4 * size.dim);
  const ValueId tokens = m.input("tokens", DType::i64, {m.batch(), seq}),
                targets = m.input("targets", DType::i64, {m.batch(), seq});
  m.enter("embed");
  const ValueId token = m.weight("token", {vocab, dim}),
                position = m.weight("position", {seq, dim});
  ValueId x = m.add(m.take(m.build_.lookup(token, tokens)), position);
  m.leave();
  for (std::int64_t l = 0; l < size.layers; ++l) {
    m.enter("block", static_cast<std::uint32_t>(l));
    ValueId n = m.norm(x, 0);
    m.enter("attention");
    const ValueId q = m.weight("q", {dim, heads, width}), k = m.weight("k", {dim, heads, width}),
                  v = m.weight("v", {dim, heads, width});
    const ValueId out = m.weight("out", {heads, width, dim});
    const ValueId attended =
        m.mm(m.take(m.build_.attend(m.mm(n, q), m.mm(n, k), m.mm(n, v), true)), out);
    m.leave();
    const ValueId y = m.add(x, attended);
    n = m.norm(y, 1);
    m.enter("mlp");
    const ValueId up = m.weight("up", {dim, hidden}), down = m.weight("down", {hidden, dim});
    const ValueId z = m.mm(m.take(m.build_.unary(Op::gelu, m.mm(n, up))), down);
    m.leave();
    x = m.add(y, z);
    m.leave();
  }
  m.enter("head");
  const ValueId logits = m.mm(m.norm(x, 0), token);  // tied: the embedding is the head
  m.leave();
  m.take(m.build_.loss("gpt.loss.0", m.take(m.build_.cross_entropy(logits, targets))));
  return std::move(m.graph_);
}

Graph mlp_model(Context& context, const ModelSize& size) {
  Model m(context, "mlp", size);
  const Dim in = m.dim("in", size.dim), out = m.dim("out", 2);
  ValueId x = m.input("x", size.dtype, {m.batch(), in});
  const ValueId y = m.input("y", size.dtype, {m.batch(), out});
  Dim last = in;
  for (std::uint32_t l = 0; l < 3; ++l) {
    m.enter("layer", l);
    const Dim next = l == 2 ? out : m.dim("h" + std::to_string(l), size.dim + l);
    x = m.add(m.mm(x, m.weight("w", {last, next})), m.weight("b", {next}, {Init::Kind::zeros, 0}));
    if (l < 2) x = m.take(m.build_.unary(l == 0 ? Op::tanh : Op::silu, x));
    last = next;
    m.leave();
  }
  const ValueId error = m.take(m.build_.unary(Op::square, m.take(m.build_.binary(Op::sub, x, y))));
  m.take(m.build_.loss("mlp.loss.0", m.take(m.build_.mean(error, {m.sym("out")}))));
  return std::move(m.graph_);
}

Graph two_tower_model(Context& context, const ModelSize& size) {
  Model m(context, "two_towers", size);
  const Dim in = m.dim("in", size.dim), hidden = m.dim("hidden", size.dim), code = m.dim("code", 4);
  const ValueId left = m.input("left", size.dtype, {m.batch(), in}),
                right = m.input("right", size.dtype, {m.batch(), in});
  const ValueId shared = m.weight("shared", {in, hidden});
  ValueId codes[2];
  for (std::uint32_t t = 0; t < 2; ++t) {
    m.enter("tower", t);
    const ValueId h = m.take(
        m.build_.unary(t == 0 ? Op::relu : Op::sigmoid, m.mm(t == 0 ? left : right, shared)));
    codes[t] =
        m.take(m.build_.along(Op::layer_norm, m.mm(h, m.weight("out", {code, hidden})), {}, 1e-3));
    m.leave();
  }
  const ValueId score =
      m.take(m.build_.sum(m.take(m.build_.binary(Op::mul, codes[0], codes[1])), {m.sym("code")}));
  const ValueId margin = m.weight("margin", {});
  const ValueId gap =
      m.take(m.build_.unary(Op::softplus, m.take(m.build_.binary(Op::sub, margin, score))));
  m.take(m.build_.loss("two_towers.loss.0", gap));
  const ValueId size_of_code =
      m.take(m.build_.max(m.take(m.build_.unary(Op::square, codes[0])), {m.sym("code")}));
  m.take(m.build_.loss("two_towers.loss.1", m.take(m.build_.scale(size_of_code, 0.1))));
  return std::move(m.graph_);
}

std::vector<ValueId> leaves(const Graph& graph) {
  std::vector<ValueId> values;
  for (const Input& input : graph.inputs) values.push_back(input.value);
  for (const Param& param : graph.params) values.push_back(param.value);
  return values;
}

std::vector<Array> random_leaves(const Graph& graph, const ModelSize& size, Random& random) {
  std::vector<Array> arrays;
  for (const ValueId leaf : leaves(graph)) {
    Array array = random_array(graph.type(leaf), random, 0.8);
    if (array.type.dtype == DType::i64) {
      for (double& number : array.data)
        number = static_cast<double>(random.below(static_cast<std::uint64_t>(size.vocab)));
    }
    arrays.push_back(std::move(array));
  }
  return arrays;
}

}  // namespace piper::test
