#include "backend/jit/check_chains.h"

#include "ir/tensor/builder.h"

namespace piper::backend {

namespace {

using dag::PortKind;
using tensor::Attrs;
using tensor::Built;
using tensor::Op;
using tensor::ValueId;

/// A body under construction.
class Chain {
 public:
  Chain(Context& context, tensor::DType dtype, std::int64_t batch, std::int64_t dim)
      : context_(context),
        batch_(context.symbol("batch")),
        dim_(context.symbol("dim")),
        extent_(dim),
        graph_(context),
        build_(graph_) {
    build_.at(RegionId(), LocId(), "check");
    const tensor::Type type{dtype, {{batch_, batch, true}, {dim_, dim, false}}};
    x = leaf("x", type);
    y = leaf("y", type);
  }

  /// A value with one row of the type of `x`.
  ValueId row() { return leaf("z", {graph_.type(x).dtype, {graph_.type(x).dims.back()}}); }

  // ---- operations; `at` and `places` count along `dim`
  ValueId op(Op op, std::vector<ValueId> operands) {
    return made(build_.op(op, std::move(operands)));
  }
  ValueId scale(ValueId a, double factor) { return made(build_.scale(a, factor)); }
  ValueId offset(ValueId a, double summand) { return made(build_.offset(a, summand)); }
  ValueId slice(ValueId a, std::int64_t from, std::int64_t to) {
    return made(build_.slice(a, from, to, dim_));
  }
  ValueId pad(ValueId a, std::int64_t before, std::int64_t after) {
    return made(build_.pad(a, before, after, dim_));
  }
  ValueId shift(ValueId a, std::int64_t places) { return made(build_.shift(a, places, dim_)); }
  ValueId concat(ValueId a, ValueId b) { return made(build_.concat(a, b, dim_)); }
  ValueId along(Op op, ValueId a) { return made(build_.along(op, a, dim_, 1e-3)); }
  ValueId sum_batch(ValueId a) { return sum(a, batch_); }
  ValueId sum_dim(ValueId a) { return sum(a, dim_); }

  void output(ValueId value, PortKind kind = PortKind::data) {
    outputs_.push_back(
        {.kind = kind, .value = value, .global_value = {}, .param = {}, .loss = {}, .input = {}});
  }
  std::int64_t extent() const { return extent_; }

  CheckChain finish(const std::string& name, const std::string& what) {
    const std::string type = print(graph_.type(x), context_.symbols);
    return {what + " in `" + type + "`",
            {context_.symbol(name), std::move(graph_), std::move(inputs_), std::move(outputs_)}};
  }

  ValueId x, y;

 private:
  ValueId leaf(const char* name, const tensor::Type& type) {
    const ValueId value = graph_.add_leaf(type, context_.symbol(name));
    inputs_.push_back({.kind = PortKind::data,
                       .value = value,
                       .global_value = {},
                       .param = {},
                       .loss = {},
                       .input = {}});
    return value;
  }
  ValueId sum(ValueId a, Symbol over) {
    Attrs attrs;
    attrs.dims = {over};
    return made(build_.op(Op::sum, {a}, std::move(attrs)));
  }
  /// Shapes are legal at every extent.
  static ValueId made(const Built& built) { return built.value; }

  Context& context_;
  const Symbol batch_, dim_;
  const std::int64_t extent_;
  tensor::Graph graph_;
  tensor::Builder build_;
  std::vector<dag::BodyPort> inputs_, outputs_;
};

/// The gradient of a weight that is multiplied before its product is sliced.
void padded_slices(Chain& c) {
  const std::int64_t kept = std::max<std::int64_t>(1, c.extent() - 1);
  const ValueId part = c.slice(c.scale(c.y, 0.125), 0, kept);
  c.output(c.sum_batch(c.op(Op::mul, {c.pad(part, c.extent() - kept, 0), c.x})), PortKind::grad);
}

void joined_slices(Chain& c) {
  const std::int64_t half = (c.extent() + 1) / 2;
  const ValueId turned =
      c.extent() == 1
          ? c.concat(c.x, c.y)
          : c.concat(c.slice(c.op(Op::mul, {c.x, c.y}), half, c.extent()), c.slice(c.x, 0, half));
  c.output(turned);
  c.output(c.sum_dim(c.op(Op::mul, {turned, c.extent() == 1 ? turned : c.y})));
}

void shifted_products(Chain& c) {
  const ValueId product = c.op(Op::mul, {c.shift(c.scale(c.x, 0.75), 1), c.y});
  const ValueId back = c.op(Op::mul, {c.shift(c.y, -1), c.x});
  const ValueId both = c.op(Op::sub, {product, back});
  c.output(both);
  c.output(c.sum_batch(both), PortKind::grad);
  c.output(c.sum_dim(both));
}

/// Additions that cancel in exact arithmetic.
void wide_pads(Chain& c) {
  const ValueId rounded = c.offset(c.offset(c.x, 1024), -1024);
  const ValueId wide = c.pad(rounded, 2, 3);
  c.output(wide);
  c.output(
      c.sum_batch(c.op(Op::mul, {c.slice(wide, 1, c.extent() + 1),
                                 c.op(Op::div, {c.x, c.offset(c.op(Op::square, {c.y}), 0.5)})})),
      PortKind::grad);
}

/// Numbers that are read only under a comparison with a shared row.
void selected_rows(Chain& c) { c.output(c.op(Op::select_lt, {c.x, c.row(), c.y})); }

/// Exponentials and sums of whole rows.
void rows(Chain& c) { c.output(c.along(Op::softmax, c.op(Op::add, {c.shift(c.x, 1), c.y}))); }

struct Row {
  const char* name;
  const char* what;
  void (*build)(Chain&);
};
constexpr Row kChains[] = {
    {"padded_slices", "sums of padded slices", padded_slices},
    {"joined_slices", "sums of joined slices", joined_slices},
    {"shifted_products", "sums of shifted products", shifted_products},
    {"wide_pads", "sums of padded quotients", wide_pads},
    {"selected_rows", "selection by a row", selected_rows},
    {"rows", "softmax of shifted rows", rows},
};

}  // namespace

std::vector<CheckChain> check_chains(Context& context, tensor::DType dtype, std::int64_t batch,
                                     std::int64_t dim) {
  std::vector<CheckChain> chains;
  for (const Row& row : kChains) {
    Chain chain(context, dtype, batch, dim);
    row.build(chain);
    chains.push_back(chain.finish(row.name, row.what));
  }
  return chains;
}

}  // namespace piper::backend
