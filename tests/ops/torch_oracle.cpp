#include "tests/ops/torch_oracle.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <cstdlib>
#include <limits>
#include <unordered_map>

namespace piper::test {

using namespace tensor;  // LibTorch's names are all written with `at::`

namespace {

at::ScalarType scalar_type(DType dtype) {
  return dtype == DType::f64 ? at::kDouble : dtype == DType::f32 ? at::kFloat : at::kLong;
}

std::vector<std::int64_t> sizes(const Type& type) {
  std::vector<std::int64_t> list;
  for (const Dim& dim : type.dims) list.push_back(dim.extent);
  return list;
}

at::Tensor to_torch(const Array& array) {
  return at::tensor(at::ArrayRef<double>(array.data.data(), array.data.size()), at::kDouble)
      .reshape(sizes(array.type))
      .to(scalar_type(array.type.dtype));
}

Array from_torch(const at::Tensor& tensor, const Type& type) {
  TORCH_CHECK(tensor.sizes() == at::IntArrayRef(sizes(type)), "LibTorch gives another shape");
  const at::Tensor flat = tensor.detach().to(at::kDouble).contiguous();
  return {type, {flat.data_ptr<double>(), flat.data_ptr<double>() + flat.numel()}};
}

/// A tensor with the names of its dimensions.
struct Named {
  at::Tensor tensor;
  Type type;

  std::int64_t position(Symbol name) const { return static_cast<std::int64_t>(*type.find(name)); }
  std::vector<std::int64_t> positions(const std::vector<Symbol>& names) const {
    std::vector<std::int64_t> list;
    for (const Symbol name : names) list.push_back(position(name));
    return list;
  }
  /// The tensor with the dimensions of `target` in its order, extent 1 for missing ones.
  at::Tensor aligned(const Type& target) const {
    std::vector<std::int64_t> order;
    std::vector<std::int64_t> shape;
    for (const Dim& dim : target.dims) {
      if (type.find(dim.name)) order.push_back(position(dim.name));
      shape.push_back(type.find(dim.name) ? dim.extent : 1);
    }
    return tensor.permute(order).reshape(shape);
  }
};

at::Tensor einsum(const Named& a, const Named& b, const Type& result) {
  std::unordered_map<Symbol, char> letters;
  const auto word = [&](const Type& type) {
    std::string text;
    for (const Dim& dim : type.dims)
      text += letters.try_emplace(dim.name, static_cast<char>('a' + letters.size())).first->second;
    return text;
  };
  const std::string left = word(a.type), right = word(b.type);
  return at::einsum(left + "," + right + "->" + word(result), {a.tensor, b.tensor});
}

std::vector<at::Tensor> attend(const std::vector<Named>& in, const Attrs& attrs) {
  // [.., position, head, width] -> [.., head, position, width]
  const at::Tensor q = in[0].tensor.transpose(-3, -2), k = in[1].tensor.transpose(-3, -2),
                   v = in[2].tensor.transpose(-3, -2);
  const std::int64_t groups = q.size(-3) / k.size(-3);
  const at::Tensor keys = k.repeat_interleave(groups, -3), values = v.repeat_interleave(groups, -3);
  const at::Tensor out =
      at::scaled_dot_product_attention(q, keys, values, {}, 0.0, attrs.causal, attrs.scalar);
  at::Tensor scores = at::matmul(q, keys.transpose(-1, -2)) * attrs.scalar;
  if (attrs.causal) {
    const at::Tensor later = at::ones({q.size(-2), k.size(-2)}, at::kBool).triu(1);
    scores = scores.masked_fill(later, -std::numeric_limits<double>::infinity());
  }
  return {out.transpose(-3, -2), at::logsumexp(scores, {-1})};
}

at::Tensor normalised(const Named& x, const Attrs& attrs, bool centred) {
  const std::int64_t dim = x.position(attrs.dims[0]);
  const at::Tensor last = x.tensor.movedim(dim, -1);
  const std::int64_t size = last.size(-1);
  const at::Tensor y = centred ? at::layer_norm(last, {size}, {}, {}, attrs.scalar)
                               : at::rms_norm(last, {size}, {}, attrs.scalar);
  return y.movedim(-1, dim);
}

at::Tensor cross_entropy(const Named& logits, const at::Tensor& targets, const Attrs& attrs) {
  const at::Tensor last = logits.tensor.movedim(logits.position(attrs.dims[0]), -1);
  return at::cross_entropy_loss(last.reshape({-1, last.size(-1)}), targets.reshape({-1}), {},
                                at::Reduction::None, attrs.ignore.value_or(-100))
      .reshape(targets.sizes());
}

std::vector<at::Tensor> forward(Op op, const std::vector<Named>& in,
                                const std::vector<Type>& results, const Attrs& attrs,
                                const DropoutMask& keeps);

/// LibTorch's derivative of `op` with respect to its operands `wanted`, for the adjoint `dy` of its
/// first result.
std::vector<at::Tensor> derivative(Op op, std::vector<Named> in, const std::vector<Type>& results,
                                   const Attrs& attrs, const at::Tensor& dy,
                                   const std::vector<std::size_t>& wanted) {
  for (const std::size_t i : wanted)
    in[i].tensor = in[i].tensor.detach().clone().set_requires_grad(true);
  forward(op, in, results, attrs, {})[0].backward(dy);
  std::vector<at::Tensor> grads;
  for (const std::size_t i : wanted) grads.push_back(in[i].tensor.grad());
  return grads;
}

std::vector<at::Tensor> forward(Op op, const std::vector<Named>& in,
                                const std::vector<Type>& results, const Attrs& attrs,
                                const DropoutMask& keeps) {
  // Small tensors gain nothing from OpenMP's threads, and the thread sanitizer does not see their
  // uninstrumented barriers.
  [[maybe_unused]] static const bool one_thread = (at::set_num_threads(1), true);
  const auto x = [&](std::size_t i) { return in[i].aligned(results[0]); };
  const auto raw = [&](std::size_t i) { return in[i].tensor; };
  const auto dim = [&] { return in[0].position(attrs.dims[0]); };
  switch (op) {
    case Op::add: return {x(0) + x(1)};
    case Op::sub: return {x(0) - x(1)};
    case Op::mul: return {x(0) * x(1)};
    case Op::div: return {x(0) / x(1)};
    case Op::maximum: return {at::maximum(x(0), x(1))};
    case Op::minimum: return {at::minimum(x(0), x(1))};
    case Op::neg: return {-x(0)};
    case Op::scale: return {x(0) * attrs.scalar};
    case Op::offset: return {x(0) + attrs.scalar};
    case Op::exp: return {at::exp(x(0))};
    case Op::log: return {at::log(x(0))};
    case Op::sqrt: return {at::sqrt(x(0))};
    case Op::rsqrt: return {at::rsqrt(x(0))};
    case Op::square: return {at::square(x(0))};
    case Op::sin: return {at::sin(x(0))};
    case Op::cos: return {at::cos(x(0))};
    case Op::tanh: return {at::tanh(x(0))};
    case Op::sigmoid: return {at::sigmoid(x(0))};
    // LibTorch's default takes x itself from 20 on, which is off by 2e-9 there.
    case Op::softplus: return {at::softplus(x(0), 1, 500)};
    case Op::relu: return {at::relu(x(0))};
    case Op::gelu: return {at::gelu(x(0))};
    case Op::silu: return {at::silu(x(0))};
    case Op::relu_grad: return derivative(Op::relu, {in[0]}, results, attrs, x(1), {0});
    case Op::gelu_grad: return derivative(Op::gelu, {in[0]}, results, attrs, x(1), {0});
    case Op::silu_grad: return derivative(Op::silu, {in[0]}, results, attrs, x(1), {0});
    case Op::select_ge: return {at::where(x(0) >= x(1), x(2), at::zeros({}, x(2).options()))};
    case Op::select_lt: return {at::where(x(0) < x(1), x(2), at::zeros({}, x(2).options()))};
    case Op::dropout: {
      Array mask{results[0], {}};
      for (std::size_t i = 0; i < static_cast<std::size_t>(results[0].elements()); ++i)
        mask.data.push_back(keeps(attrs.seed, i) ? 1 : 0);
      return {x(0) * to_torch(mask) / (1 - attrs.scalar)};
    }
    case Op::cast: return {x(0).to(scalar_type(attrs.dtype))};
    case Op::fill:
      return {at::full(sizes(attrs.shape), attrs.scalar, scalar_type(attrs.shape.dtype))};
    case Op::iota:
      return {at::arange(attrs.shape.elements(), scalar_type(attrs.shape.dtype)) * attrs.scalar +
              attrs.scalar2};
    case Op::piecewise: {
      const auto& [ends, numbers] = attrs.pieces;
      const at::Tensor piece =
          at::bucketize(at::arange(attrs.shape.elements(), at::kLong), at::tensor(ends),
                        /*out_int32=*/false, /*right=*/true);
      return {at::tensor(numbers, scalar_type(attrs.shape.dtype)).index_select(0, piece)};
    }
    case Op::slice: return {at::slice(raw(0), dim(), attrs.from, attrs.from + attrs.extent)};
    case Op::pad: {
      const std::int64_t behind = attrs.extent - attrs.from - raw(0).size(dim());
      return {
          at::constant_pad_nd(raw(0).movedim(dim(), -1), {attrs.from, behind}).movedim(-1, dim())};
    }
    // `roll` brings in at one end the elements that leave at the other; the padding separates them.
    case Op::shift: {
      const std::int64_t size = raw(0).size(dim());
      return {at::slice(at::roll(at::constant_pad_nd(raw(0).movedim(dim(), -1), {size, size}),
                                 attrs.from, -1),
                        -1, size, 2 * size)
                  .movedim(-1, dim())};
    }
    case Op::concat: {
      std::vector<std::int64_t> order;
      for (const Dim& each : in[0].type.dims) order.push_back(in[1].position(each.name));
      return {at::cat({raw(0), raw(1).permute(order)}, dim())};
    }
    case Op::rotary: {
      const std::vector<at::Tensor> halves = at::chunk(raw(0), 2, dim());
      Type half = in[0].type;
      half.dims[static_cast<std::size_t>(dim())].extent /= 2;
      const at::Tensor cosine = in[1].aligned(half), sine = in[2].aligned(half);
      return {at::cat(
          {halves[0] * cosine - halves[1] * sine, halves[1] * cosine + halves[0] * sine}, dim())};
    }
    case Op::sum:
      return {attrs.dims.empty() ? raw(0) : at::sum(raw(0), in[0].positions(attrs.dims))};
    case Op::max: return {at::amax(raw(0), in[0].positions(attrs.dims))};
    case Op::max_grad: return derivative(Op::max, {in[0]}, {in[1].type}, attrs, raw(2), {0});
    case Op::softmax: return {at::softmax(raw(0), dim())};
    case Op::softmax_grad:
      return {at::_softmax_backward_data(raw(1), raw(0), dim(), raw(0).scalar_type())};
    case Op::log_softmax: return {at::log_softmax(raw(0), dim())};
    case Op::log_softmax_grad:
      return {at::_log_softmax_backward_data(raw(1), raw(0), dim(), raw(0).scalar_type())};
    case Op::rms_norm: return {normalised(in[0], attrs, false)};
    case Op::layer_norm: return {normalised(in[0], attrs, true)};
    case Op::rms_norm_grad: return derivative(Op::rms_norm, {in[0]}, results, attrs, raw(1), {0});
    case Op::layer_norm_grad:
      return derivative(Op::layer_norm, {in[0]}, results, attrs, raw(1), {0});
    case Op::cross_entropy: return {cross_entropy(in[0], raw(1), attrs)};
    case Op::cross_entropy_grad:
      return derivative(Op::cross_entropy, {in[0], in[1]}, {in[2].type}, attrs, raw(2), {0});
    case Op::lookup:
      return {
          at::embedding(raw(0).reshape({raw(0).size(0), -1}), raw(1)).reshape(sizes(results[0]))};
    case Op::lookup_grad: {
      const Named table{at::zeros(sizes(attrs.shape), raw(1).options()), attrs.shape};
      return derivative(Op::lookup, {table, in[0]}, {in[1].type}, attrs, raw(1), {0});
    }
    case Op::rename: return {raw(0)};
    case Op::broadcast: return {x(0).expand(sizes(attrs.shape))};
    case Op::permute: return {raw(0).permute(in[0].positions(attrs.dims))};
    case Op::contract: return {einsum(in[0], in[1], results[0])};
    case Op::contract_add: return {raw(2) + einsum(in[0], in[1], results[0])};
    case Op::attend: return attend(in, attrs);
    case Op::attend_grad:
      return derivative(Op::attend, {in[0], in[1], in[2]}, {in[3].type, in[4].type}, attrs, raw(5),
                        {0, 1, 2});
  }
  std::abort();
}

}  // namespace

std::vector<Array> torch_op(Op op, const std::vector<Array>& operands,
                            const std::vector<Type>& results, const Attrs& attrs,
                            const DropoutMask& keeps) {
  std::vector<Named> in;
  for (const Array& array : operands) in.push_back({to_torch(array), array.type});
  const std::vector<at::Tensor> made = forward(op, in, results, attrs, keeps);
  std::vector<Array> out;
  for (std::size_t i = 0; i < results.size(); ++i) out.push_back(from_torch(made[i], results[i]));
  return out;
}

TorchStep torch_step(const Graph& graph, const std::map<ValueId, Array>& leaves,
                     const DropoutMask& keeps) {
  std::vector<at::Tensor> values(graph.values().size());
  for (const auto& [value, array] : leaves) values[value.index()] = to_torch(array);
  for (const Param& param : graph.params) values[param.value.index()].set_requires_grad(true);
  for (const Node& node : graph.nodes()) {
    if (node.pass != Pass::F) continue;
    std::vector<Named> in;
    for (const ValueId operand : graph.operands(node))
      in.push_back({values[operand.index()], graph.type(operand)});
    std::vector<Type> results;
    for (std::size_t i = 0; i < node.num_results; ++i)
      results.push_back(graph.type(graph.result(node, i)));
    const std::vector<at::Tensor> made = forward(node.op, in, results, node.attrs, keeps);
    for (std::size_t i = 0; i < results.size(); ++i) values[node.first_result + i] = made[i];
  }
  // The mean is taken by LibTorch, not by the graph's own sum and count.
  at::Tensor total = at::zeros({}, at::kDouble);
  for (const Loss& loss : graph.losses) {
    const at::Tensor elements = values[loss.elements.index()].to(at::kDouble);
    if (loss.mask) {
      const at::Tensor counts =
          values[graph.inputs[loss.mask->targets.index()].value.index()].ne(loss.mask->ignore);
      total = total + elements.sum() / counts.sum().clamp_min(1);
    } else {
      total = total + elements.mean();
    }
  }
  total.backward();
  TorchStep step;
  step.loss = total.item<double>();
  for (const Param& param : graph.params)
    step.gradients.push_back(
        from_torch(values[param.value.index()].grad(), graph.type(param.value)));
  return step;
}

}  // namespace piper::test
