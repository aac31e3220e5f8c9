// Random graphs: whatever fuses, the results are those of the reference, and generated code equals
// the evaluator bit for bit.

#include <gtest/gtest.h>

#include <algorithm>

#include "ir/tensor/builder.h"
#include "runtime/kernel_math.h"
#include "tests/backend/kernel_runs.h"
#include "tests/support/op_cases.h"

namespace piper::test {
namespace {

using tensor::Attrs;
using tensor::Built;
using tensor::Dim;
using tensor::DType;
using tensor::Op;
using tensor::Type;
using tensor::ValueId;

/// Grows a graph op by op over a few dimensions whose extents are shorter and longer than the
/// lanes.
class RandomGraph {
 public:
  RandomGraph(Context& context, Random& random, DType dtype)
      : context_(context), random_(random), dtype_(dtype), graph_(context), build_(graph_) {
    const std::vector<std::int64_t> extents = {1, 2, 3, 5, 7, 13, 16, 17, 31, 33, 35, 64, 67};
    for (const char* name : {"batch", "seq", "dim", "heads"}) {
      dims_.push_back({context.symbol(name),
                       name == std::string("heads") ? 2 : random.pick(extents),
                       name == std::string("batch")});
    }
    build_.at(RegionId(), LocId(), "random");
    for (int i = 0; i < 3; ++i) leaf(random_type());
  }

  void grow(int ops) {
    for (int made = 0, tries = 0; made < ops && tries < ops * 20; ++tries) {
      const ValueId value = step();
      if (!value.valid() || graph_.type(value).elements() > 20000) continue;
      values_.push_back(value);
      ++made;
    }
  }

  void add_to(KernelRuns& runs, const std::string& what) {
    // Outputs: values without a reader, and a few others; some of them gradients that are added.
    std::vector<bool> read(graph_.values().size(), false);
    for (const auto& node : graph_.nodes()) {
      for (ValueId operand : graph_.operands(node)) read[operand.index()] = true;
    }
    std::vector<ValueId> outputs;
    for (std::size_t v = 0; v < read.size(); ++v) {
      if (graph_.values()[v].type.dtype == DType::i64) continue;
      if ((!read[v] && graph_.values()[v].def.valid()) || random_.chance(0.15))
        outputs.push_back(ValueId::at(v));
    }
    if (outputs.empty()) return;
    if (random_.chance(0.2)) outputs.push_back(outputs[0]);
    dag::Body body = make_body(graph_, outputs, "random");
    std::vector<std::uint8_t> accumulate(outputs.size(), 0);
    for (std::size_t o = 0; o < outputs.size(); ++o) {
      if (!random_.chance(0.4)) continue;
      body.outputs[o].kind = dag::PortKind::grad;
      accumulate[o] = random_.chance(0.7) ? 1 : 0;
    }
    // f32: comparisons of rounded values may differ from the reference, and in bf16 chains of
    // operations may cancel the rest: there bits are compared.
    const double tolerance = dtype_ == DType::f64                ? 1e-10
                             : decides_ || dtype_ == DType::bf16 ? 0
                                                                 : 2e-3;
    runs.add(what, std::move(body), inputs_, accumulate, tolerance);
  }

 private:
  Type random_type() {
    Type type{dtype_, {}};
    for (const Dim& dim : dims_) {
      if (random_.chance(0.6)) type.dims.push_back(dim);
    }
    if (random_.chance(0.2)) random_.shuffle(type.dims);
    return type;
  }
  ValueId leaf(Type type, std::int64_t classes = 0) {
    const ValueId value =
        graph_.add_leaf(type, context_.symbol("x" + std::to_string(inputs_.size())));
    Array array{type, {}};
    if (type.dtype == DType::i64) {
      for (std::int64_t i = 0; i < type.elements(); ++i)
        array.data.push_back(
            static_cast<double>(random_.below(static_cast<std::uint64_t>(classes))));
    } else {
      array = random_array(type, random_);
      if (dtype_ == DType::f32) {
        for (double& number : array.data) number = static_cast<float>(number);
      } else if (dtype_ == DType::bf16) {
        for (double& number : array.data) number = piper_round_bf16(static_cast<float>(number));
      }
      values_.push_back(value);
    }
    inputs_.push_back(std::move(array));
    return value;
  }
  ValueId any() {
    // Recent values more often: chains fuse.
    if (random_.chance(0.5))
      return values_[values_.size() - 1 - random_.below(std::min<std::size_t>(3, values_.size()))];
    return random_.pick(values_);
  }
  ValueId give(const Built& built) { return built ? built.value : ValueId(); }
  ValueId op(Op op, std::vector<ValueId> operands, Attrs attrs = {}) {
    for (ValueId operand : operands) {
      if (!operand.valid()) return {};
    }
    return give(build_.op(op, std::move(operands), std::move(attrs)));
  }
  ValueId positive(double least) { return give(build_.offset(op(Op::square, {any()}), least)); }
  /// A value of the type of `like`.
  ValueId partner(ValueId like) {
    if (!like.valid()) return {};
    std::vector<ValueId> same;
    for (ValueId value : values_) {
      if (graph_.type(value) == graph_.type(like)) same.push_back(value);
    }
    return same.empty() || random_.chance(0.3) ? leaf(graph_.type(like)) : random_.pick(same);
  }
  std::vector<Symbol> some_dims(const Type& type, std::size_t most) {
    std::vector<Symbol> names;
    for (const Dim& dim : type.dims) names.push_back(dim.name);
    random_.shuffle(names);
    names.resize(std::min(names.size(), 1 + random_.below(most)));
    return names;
  }

  ValueId step();
  ValueId pointwise();
  ValueId along();
  ValueId shapes();
  ValueId parts();
  ValueId library();

  Context& context_;
  Random& random_;
  DType dtype_;
  tensor::Graph graph_;
  tensor::Builder build_;
  std::vector<Dim> dims_;
  std::vector<ValueId> values_;
  std::vector<Array> inputs_;
  bool decides_ = false;
};

ValueId RandomGraph::pointwise() {
  const ValueId a = any();
  switch (random_.below(15)) {
    case 0: return op(Op::add, {a, any()});
    case 1: return op(Op::sub, {a, any()});
    case 2: return op(Op::mul, {op(Op::tanh, {a}), any()});
    case 3: return op(Op::div, {a, positive(1.0)});
    case 4: return op(Op::neg, {a});
    case 5: return give(build_.scale(a, 0.75));
    case 6: return op(Op::exp, {op(Op::tanh, {a})});
    case 7: return op(Op::log, {positive(0.5)});
    case 8: return op(Op::gelu, {a});
    case 9: return op(Op::gelu_grad, {a, partner(a)});
    case 10: return op(Op::sigmoid, {a});
    case 11: return op(Op::softplus, {op(Op::tanh, {a})});
    case 12: {
      decides_ = true;
      const ValueId b = any();
      return random_.chance(0.5) ? op(Op::maximum, {a, b}) : op(Op::select_lt, {a, b, any()});
    }
    case 13: return op(random_.chance(0.5) ? Op::sin : Op::cos, {a});
    default: return op(Op::silu_grad, {a, partner(a)});
  }
}

ValueId RandomGraph::along() {
  const ValueId a = any();
  const Type type = graph_.type(a);
  if (type.dims.empty()) return {};
  const Symbol dim = random_.pick(type.dims).name;
  Attrs attrs;
  attrs.dims = {dim};
  attrs.scalar = 1e-3;
  switch (random_.below(13)) {
    case 0: return op(Op::softmax, {a}, attrs);
    case 1: return op(Op::softmax_grad, {a, partner(a)}, attrs);
    case 2: return op(Op::log_softmax, {a}, attrs);
    case 3: return op(Op::log_softmax_grad, {op(Op::tanh, {a}), partner(a)}, attrs);
    case 4: return op(Op::rms_norm, {a}, attrs);
    case 5: return op(Op::rms_norm_grad, {a, partner(a)}, attrs);
    case 6: return op(Op::layer_norm, {a}, attrs);
    case 7: return op(Op::layer_norm_grad, {a, partner(a)}, attrs);
    case 8: {
      decides_ = true;
      attrs.dims = some_dims(type, 2);
      const ValueId y = op(Op::max, {a}, attrs);
      return random_.chance(0.5) ? y : op(Op::max_grad, {a, y, partner(y)}, attrs);
    }
    case 9:
    case 10: {
      attrs.dims = some_dims(type, type.dims.size());
      return op(Op::sum, {op(Op::tanh, {a})}, attrs);
    }
    default: {
      Type rest{DType::i64, {}};
      for (const Dim& d : type.dims) {
        if (d.name != dim) rest.dims.push_back(d);
      }
      const ValueId targets = leaf(rest, type.dims[*type.find(dim)].extent);
      const ValueId loss = op(Op::cross_entropy, {a, targets}, attrs);
      return random_.chance(0.5) ? loss
                                 : op(Op::cross_entropy_grad, {a, targets, partner(loss)}, attrs);
    }
  }
}

ValueId RandomGraph::shapes() {
  const ValueId a = any();
  const Type type = graph_.type(a);
  Attrs attrs;
  switch (random_.below(4)) {
    case 0: {
      if (type.dims.empty()) return {};
      attrs.dims = {random_.pick(type.dims).name};
      attrs.dims2 = {context_.symbol("other" + std::to_string(random_.below(2)))};
      return op(Op::rename, {a}, attrs);
    }
    case 1: {
      for (const Dim& dim : type.dims) attrs.dims.push_back(dim.name);
      random_.shuffle(attrs.dims);
      return op(Op::permute, {a}, attrs);
    }
    case 2: {
      attrs.shape = type;
      for (const Dim& dim : dims_) {
        if (!type.find(dim.name) && random_.chance(0.5))
          attrs.shape.dims.insert(
              attrs.shape.dims.begin() +
                  static_cast<std::ptrdiff_t>(random_.below(attrs.shape.dims.size() + 1)),
              dim);
      }
      return op(Op::broadcast, {a}, attrs);
    }
    default:
      attrs.shape = random_type();
      attrs.scalar = 0.5;
      return op(Op::fill, {}, attrs);
  }
}

/// Parts of a dimension: ops that read elements at other positions.
ValueId RandomGraph::parts() {
  const ValueId a = any();
  const Type type = graph_.type(a);
  std::vector<Dim> unsampled;
  for (const Dim& dim : type.dims) {
    if (!dim.sampled) unsampled.push_back(dim);
  }
  if (unsampled.empty()) return {};
  const Dim dim = random_.pick(unsampled);
  switch (random_.below(6)) {
    case 0: {
      const std::int64_t from = random_.between(0, static_cast<int>(dim.extent) - 1);
      return give(build_.slice(
          a, from, random_.between(static_cast<int>(from) + 1, static_cast<int>(dim.extent)),
          dim.name));
    }
    case 1: return give(build_.pad(a, random_.between(0, 3), random_.between(0, 17), dim.name));
    case 2:
      return give(build_.shift(
          a, random_.between(-static_cast<int>(dim.extent), static_cast<int>(dim.extent)),
          dim.name));
    case 3: {
      Type other = type;
      other.dims[*other.find(dim.name)].extent = random_.between(1, 20);
      return give(build_.concat(a, random_.chance(0.5) ? a : leaf(other), dim.name));
    }
    case 4: return give(build_.iota(a, 0.5, random_.chance(0.5) ? 0.25 : -1, dim.name));
    default: {
      Type table{dtype_, {}};
      for (const Dim& each : type.dims) {
        if (each.name == dim.name || random_.chance(0.5)) table.dims.push_back(each);
      }
      Attrs attrs;
      attrs.dims = {dim.name};
      table.dims[*table.find(dim.name)].extent /= 2;
      if (dim.extent % 2 != 0) return {};
      return op(Op::rotary, {a, leaf(table), leaf(table)}, attrs);
    }
  }
}

ValueId RandomGraph::library() {
  const ValueId a = any();
  const Type type = graph_.type(a);
  if (type.dims.empty()) return {};
  if (random_.chance(0.4)) {
    Type indices{DType::i64, {}};
    for (const Dim& dim : dims_) {
      if (!type.find(dim.name) && random_.chance(0.6)) indices.dims.push_back(dim);
    }
    const ValueId looked = op(Op::lookup, {a, leaf(indices, type.dims[0].extent)});
    if (!looked.valid() || random_.chance(0.5)) return looked;
    Attrs attrs;
    attrs.shape = type;
    return op(Op::lookup_grad, {graph_.operands(graph_.node(graph_.value(looked).def))[1], looked},
              attrs);
  }
  const Symbol dim = random_.pick(type.dims).name;
  for (int tries = 0; tries < 8; ++tries) {
    const ValueId b = any();
    if (!graph_.type(b).find(dim)) continue;
    Attrs attrs;
    attrs.dims = {dim};
    const ValueId made = op(Op::contract, {op(Op::tanh, {a}), op(Op::tanh, {b})}, attrs);
    if (!made.valid()) continue;
    if (dtype_ == DType::bf16 && random_.chance(0.5)) {
      if (random_.chance(0.3)) values_.push_back(made);
      return give(build_.cast(made, dtype_));
    }
    if (random_.chance(0.5)) return made;
    // Added to another value of its type, or to a product, which often has no other reader.
    const auto factors = graph_.operands(graph_.node(graph_.value(made).def));
    const ValueId x = factors[0], y = factors[1];
    const ValueId sum = random_.chance(0.5) ? partner(made) : made;
    const ValueId longer = op(Op::contract_add, {op(Op::sin, {x}), y, sum}, attrs);
    return random_.chance(0.5) ? longer
                               : op(Op::contract_add, {x, op(Op::cos, {y}), longer}, attrs);
  }
  return {};
}

ValueId RandomGraph::step() {
  const double kind = random_.unit();
  if (kind < 0.45) return pointwise();
  if (kind < 0.67) return along();
  if (kind < 0.8) return parts();
  return kind < 0.9 ? shapes() : library();
}

class KernelRandom : public testing::TestWithParam<backend::Target> {};

TEST_P(KernelRandom, Graphs) {
  Context context;
  KernelRuns runs(GetParam());
  for_each_case(60, [&](Random& random) {
    const bool narrow = random.chance(0.25);
    RandomGraph graph(context, random,
                      narrow               ? DType::bf16
                      : random.chance(0.6) ? DType::f64
                                           : DType::f32);
    graph.grow(static_cast<int>(random.between(2, 18)));
    graph.add_to(runs, "random graph " + std::to_string(runs.size()));
  });
  runs.check("-O1");
}

INSTANTIATE_TEST_SUITE_P(Targets, KernelRandom,
                         testing::Values(backend::Target::cpu, backend::Target::cuda));

}  // namespace
}  // namespace piper::test
