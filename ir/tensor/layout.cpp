// Layout rules: the layouts of results that follow from layouts of operands, and what that means
// for samples.

#include <algorithm>

#include "ir/tensor/op_rules.h"

namespace piper::tensor {

namespace {

bool contains(const std::vector<Symbol>& dims, Symbol name) {
  return std::find(dims.begin(), dims.end(), name) != dims.end();
}

class Rows {
 public:
  Rows(Op op, std::span<const Type> operands, std::span<const Type> results, const Attrs& attrs)
      : op_(op), operands_(operands), results_(results), attrs_(attrs) {}

  std::vector<Row> list() {
    add(parts({}), results_of({}));
    by_dimensions();
    by_summands();
    return std::move(rows_);
  }

 private:
  using Layouts = llvm::SmallVector<AxisLayout, 4>;
  using ResultLayouts = llvm::SmallVector<AxisLayout, 3>;

  // Narrow partial values are each rounded by themselves, as those of a microbatch are.
  void add(Layouts operands, ResultLayouts results) {
    rows_.push_back({std::move(operands), std::move(results)});
  }

  /// The operands, sharded along `dim` if they have it.
  Layouts parts(Symbol dim) const { return shard_where_present<Layouts>(operands_, dim); }
  ResultLayouts results_of(Symbol dim) const {
    return shard_where_present<ResultLayouts>(results_, dim);
  }
  ResultLayouts partial_results() const {
    return ResultLayouts(results_.size(), AxisLayout::partial());
  }
  template <typename List>
  static List shard_where_present(std::span<const Type> types, Symbol dim) {
    List layouts;
    for (const Type& type : types)
      layouts.push_back(dim.valid() && type.find(dim) ? AxisLayout::sharded(dim) : AxisLayout());
    return layouts;
  }

  /// Elementwise along `dim`.
  void along(Symbol dim) { add(parts(dim), results_of(dim)); }
  /// Sharded operands give partial results, because the op sums along `dim`.
  void to_summands(Symbol dim) { add(parts(dim), partial_results()); }
  /// Linear in these operands together.
  void linear(std::initializer_list<std::size_t> in) {
    Layouts layouts(operands_.size());
    for (const std::size_t i : in) layouts[i] = AxisLayout::partial();
    add(std::move(layouts), partial_results());
  }

  /// The dimensions of all types, each once.
  std::vector<Symbol> dimensions() const {
    std::vector<Symbol> dims;
    for (const std::span<const Type> types : {operands_, results_}) {
      for (const Type& type : types) {
        for (const Dim& dim : type.dims) {
          if (!contains(dims, dim.name)) dims.push_back(dim.name);
        }
      }
    }
    return dims;
  }

  void by_dimensions() {
    if (op_ == Op::attend || op_ == Op::attend_grad) return attention();
    for (const Symbol dim : dimensions()) by_dimension(dim);
  }

  void by_dimension(Symbol dim) {
    const bool named = contains(attrs_.dims, dim);
    switch (op_) {
      case Op::contract:
      case Op::sum: return named ? to_summands(dim) : along(dim);
      case Op::contract_add:
        if (!named) return along(dim);
        to_summands(dim);
        rows_.back().operands[2] = AxisLayout::partial();
        return;
      case Op::rename: {
        if (!operands_[0].find(dim)) return;  // a new name: the row of the old name covers it
        const auto at = std::find(attrs_.dims.begin(), attrs_.dims.end(), dim);
        return add(
            parts(dim),
            results_of(at == attrs_.dims.end()
                           ? dim
                           : attrs_.dims2[static_cast<std::size_t>(at - attrs_.dims.begin())]));
      }
        // clang-format off
      case Op::max: case Op::max_grad: case Op::softmax: case Op::softmax_grad:
      case Op::log_softmax: case Op::log_softmax_grad: case Op::rms_norm: case Op::rms_norm_grad:
      case Op::layer_norm: case Op::layer_norm_grad: case Op::cross_entropy:
      case Op::cross_entropy_grad: case Op::slice: case Op::pad: case Op::shift: case Op::concat:
      case Op::rotary: return named ? void() : along(dim);
      // clang-format on
      case Op::lookup:
        // Rows that other parts hold.
        return dim == operands_[0].dims[0].name && !operands_[1].find(dim) ? void() : lookup(dim);
      case Op::lookup_grad:
        if (operands_[0].find(dim)) return to_summands(dim);
        return operands_[1].find(dim) ? along(dim) : void();
      case Op::dropout:
        // Its random numbers are keyed by position within a sample.
        return is_sampled(dim) ? along(dim) : void();
      case Op::iota:
      case Op::piecewise:
        return;  // its elements depend on the global position
                 // clang-format off
      case Op::add: case Op::sub: case Op::mul: case Op::div: case Op::maximum: case Op::minimum:
      case Op::neg: case Op::scale: case Op::offset: case Op::exp: case Op::log: case Op::sqrt:
      case Op::rsqrt: case Op::square: case Op::sin: case Op::cos: case Op::tanh: case Op::sigmoid:
      case Op::softplus: case Op::relu: case Op::gelu: case Op::silu: case Op::relu_grad:
      case Op::gelu_grad: case Op::silu_grad: case Op::select_ge: case Op::select_lt: case Op::cast:
      case Op::fill: case Op::broadcast: case Op::permute: return along(dim);
      case Op::attend: case Op::attend_grad: return;
                 // clang-format on
    }
  }

  bool is_sampled(Symbol dim) const { return operands_[0].dims[*operands_[0].find(dim)].sampled; }

  /// Any dimension of the table except its rows, and any of the indices.
  void lookup(Symbol dim) {
    Layouts layouts(2);
    layouts[operands_[1].find(dim) ? 1 : 0] = AxisLayout::sharded(dim);
    add(std::move(layouts), results_of(dim));
  }

  void attention() {
    const bool gradient = op_ == Op::attend_grad;
    const Type &q = operands_[0], &k = operands_[1];
    const std::size_t rank = q.dims.size();
    // `of_key` is the layout of keys and values; all others are sharded like the queries.
    const auto add_sharded = [&](Symbol of_query, AxisLayout of_key, AxisLayout of_key_gradient) {
      Layouts layouts(operands_.size(), AxisLayout::sharded(of_query));
      layouts[1] = layouts[2] = of_key;
      ResultLayouts results(results_.size(), AxisLayout::sharded(of_query));
      if (gradient) results[1] = results[2] = of_key_gradient;
      add(std::move(layouts), std::move(results));
    };
    for (std::size_t i = 0; i + 3 < rank; ++i) {  // every head of every position stays whole
      const AxisLayout cut = AxisLayout::sharded(q.dims[i].name);
      add_sharded(q.dims[i].name, cut, cut);
    }
    // A shard has its query heads and the key heads that they use.
    const AxisLayout heads = AxisLayout::sharded(k.dims[k.dims.size() - 2].name);
    add_sharded(q.dims[rank - 2].name, heads, heads);
    // Without a causal mask, queries attend independently.
    if (!attrs_.causal) add_sharded(q.dims[rank - 3].name, {}, AxisLayout::partial());
  }

  void by_summands() {
    switch (op_) {
        // clang-format off
      case Op::add: case Op::sub: case Op::concat: return linear({0, 1});
      case Op::mul: case Op::contract: return linear({0}), linear({1});
      case Op::contract_add: return linear({0, 2}), linear({1, 2});
      case Op::div: case Op::neg: case Op::scale: case Op::cast: case Op::dropout: case Op::sum:
      case Op::slice: case Op::pad: case Op::shift: case Op::rotary: case Op::lookup:
      case Op::rename: case Op::broadcast: case Op::permute: return linear({0});
      case Op::relu_grad: case Op::gelu_grad: case Op::silu_grad: case Op::softmax_grad:
      case Op::log_softmax_grad: case Op::rms_norm_grad: case Op::layer_norm_grad:
      case Op::lookup_grad: return linear({1});
      case Op::select_ge: case Op::select_lt: case Op::max_grad: case Op::cross_entropy_grad:
        return linear({2});
      // clang-format on
      case Op::attend:
        linear({2});
        rows_.back().results[1] = {};  // the log-sums do not depend on v
        return;
        // clang-format off
      case Op::attend_grad: return linear({5});
      case Op::maximum: case Op::minimum: case Op::offset: case Op::exp: case Op::log:
      case Op::sqrt: case Op::rsqrt: case Op::square: case Op::sin: case Op::cos: case Op::tanh:
      case Op::sigmoid: case Op::softplus: case Op::relu: case Op::gelu: case Op::silu:
      case Op::fill: case Op::iota: case Op::piecewise: case Op::max: case Op::softmax:
      case Op::log_softmax:
      case Op::rms_norm: case Op::layer_norm: case Op::cross_entropy: return;
        // clang-format on
    }
  }

  const Op op_;
  const std::span<const Type> operands_, results_;
  const Attrs& attrs_;
  std::vector<Row> rows_;
};

}  // namespace

std::vector<Row> rows(Op op, std::span<const Type> operands, std::span<const Type> results,
                      const Attrs& attrs) {
  return Rows(op, operands, results, attrs).list();
}

Sampling sampling(Op op, std::span<const Type> operands, std::span<const Type> results,
                  const Attrs& attrs) {
  const auto sampled = std::find_if(operands.begin(), operands.end(),
                                    [](const Type& type) { return type.samples() != nullptr; });
  if (sampled == operands.end()) return Sampling::independent;
  const Symbol samples = sampled->samples()->name;
  const auto along_samples = [&](const Type& type) {
    return type.find(samples) ? AxisLayout::sharded(samples) : AxisLayout();
  };
  const auto all = [](std::span<const AxisLayout> layouts, std::span<const Type> types,
                      const auto& wanted) {
    return std::equal(
        layouts.begin(), layouts.end(), types.begin(), types.end(),
        [&](const AxisLayout& layout, const Type& type) { return layout == wanted(type); });
  };
  for (const Row& row : rows(op, operands, results, attrs)) {
    if (!all(row.operands, operands, along_samples)) continue;
    if (all(row.results, results, along_samples)) return Sampling::independent;
    if (all(row.results, results, [](const Type&) { return AxisLayout::partial(); }))
      return Sampling::summed;
  }
  return Sampling::coupled;
}

}  // namespace piper::tensor
