#include "ir/tensor/builder.h"

#include <algorithm>
#include <cmath>

#include "ir/tensor/loss_mask.h"
#include "ir/text/print_text.h"

namespace piper::tensor {

void Builder::at(RegionId region, LocId loc, std::string path) {
  region_ = region;
  loc_ = loc;
  path_ = std::move(path);
  called_ = {};
}

ValueId Builder::input(std::string_view name, Type type) {
  const Symbol symbol = graph_.context().symbol(name);
  const ValueId value = graph_.add_leaf(std::move(type), symbol);
  graph_.inputs.push_back({symbol, value, loc_});
  return value;
}

ValueId Builder::weight(std::string_view name, Type type, Init init) {
  const Symbol symbol = graph_.context().symbol(name);
  const ValueId value = graph_.add_leaf(std::move(type), symbol);
  graph_.params.push_back({symbol, value, init, loc_});
  return value;
}

Built Builder::op(Op op, std::vector<ValueId> operands, Attrs attrs) {
  std::vector<Type> types;
  for (const ValueId operand : operands) types.push_back(graph_.type(operand));
  Inferred inferred = infer(op, types, attrs, graph_.context().symbols, called_);
  if (!inferred.error.empty())
    return Built::failed(std::move(inferred.error), inferred.mixes_dtypes);
  const std::string name = (path_.empty() ? "" : path_ + ".") + std::string(info(op).name);
  const NodeId node = graph_.add(op, operands, std::move(attrs), Pass::F, region_, loc_, {},
                                 graph_.context().symbol(name));
  return graph_.result(graph_.node(node));
}

Built Builder::rounded(Built made, DType dtype) {
  return made && graph_.type(made.value).dtype != dtype ? cast(made.value, dtype) : made;
}

Built Builder::scale(ValueId a, double factor) {
  Attrs attrs;
  attrs.scalar = factor;
  return op(Op::scale, {a}, std::move(attrs));
}

Built Builder::offset(ValueId a, double summand) {
  Attrs attrs;
  attrs.scalar = summand;
  return op(Op::offset, {a}, std::move(attrs));
}

Built Builder::cast(ValueId a, DType dtype) {
  Attrs attrs;
  attrs.dtype = dtype;
  return op(Op::cast, {a}, std::move(attrs));
}

Built Builder::dropout(ValueId a, double rate) {
  Attrs attrs;
  attrs.scalar = rate;
  std::uint32_t& count = dropouts_[path_];
  attrs.seed = graph_.context().symbol((path_.empty() ? "" : path_ + ".") + "dropout." +
                                       std::to_string(count));
  Built built = op(Op::dropout, {a}, std::move(attrs));
  if (built) ++count;
  return built;
}

Built Builder::sum(ValueId a, std::vector<Symbol> dims) {
  Attrs attrs;
  attrs.dims = std::move(dims);
  return rounded(op(Op::sum, {a}, std::move(attrs)), graph_.type(a).dtype);
}

Built Builder::mean(ValueId a, std::vector<Symbol> dims) {
  double count = 1;
  for (const Symbol dim : dims) {
    if (const auto at = graph_.type(a).find(dim))
      count *= static_cast<double>(graph_.type(a).dims[*at].extent);
  }
  Attrs attrs;
  attrs.dims = std::move(dims);
  Built total = op(Op::sum, {a}, std::move(attrs));
  if (total) total = scale(total.value, 1.0 / count);
  return rounded(std::move(total), graph_.type(a).dtype);
}

Built Builder::max(ValueId a, std::vector<Symbol> dims) {
  Attrs attrs;
  attrs.dims = std::move(dims);
  return op(Op::max, {a}, std::move(attrs));
}

Symbol Builder::last_dim(ValueId a) const {
  return graph_.type(a).dims.empty() ? Symbol() : graph_.type(a).dims.back().name;
}

const Dim* Builder::dim_of(ValueId a, Symbol name) const {
  const auto at = graph_.type(a).find(name);
  return at ? &graph_.type(a).dims[*at] : nullptr;
}

Built Builder::along_one(Op op, std::vector<ValueId> operands, Symbol along, Attrs attrs) {
  if (!along.valid()) along = last_dim(operands[0]);
  if (!along.valid())
    return Built::failed("`" + std::string(info(op).name) + "` goes along a dimension, and " +
                         show(operands[0]) + " has none");
  attrs.dims = {along};
  return this->op(op, std::move(operands), std::move(attrs));
}

Built Builder::along(Op op, ValueId a, Symbol along, double epsilon) {
  Attrs attrs;
  if ((info(op).attributes & kScalar) != 0) attrs.scalar = epsilon;
  return along_one(op, {a}, along, std::move(attrs));
}

Built Builder::cross_entropy(ValueId logits, ValueId targets, Symbol along,
                             std::optional<std::int32_t> ignore) {
  Attrs attrs;
  attrs.ignore = ignore;
  return rounded(along_one(Op::cross_entropy, {logits, targets}, along, std::move(attrs)),
                 graph_.type(logits).dtype);
}

Built Builder::slice(ValueId a, std::int64_t from, std::int64_t to, Symbol along) {
  if (!along.valid()) along = last_dim(a);
  if (const Dim* dim = along.valid() ? dim_of(a, along) : nullptr;
      dim != nullptr && (from < 0 || to <= from || to > dim->extent)) {
    return Built::failed("`slice` takes " + std::to_string(from) + ".." + std::to_string(to) +
                         " of `" + std::string(graph_.context().text(along)) +
                         "`, which has the positions 0.." + std::to_string(dim->extent) + ": " +
                         show(a));
  }
  Attrs attrs;
  attrs.from = from;
  attrs.extent = to - from;
  return along_one(Op::slice, {a}, along, std::move(attrs));
}

Built Builder::pad(ValueId a, std::int64_t before, std::int64_t after, Symbol along) {
  Attrs attrs;
  attrs.from = before;
  const Dim* dim = dim_of(a, along.valid() ? along : last_dim(a));
  if (before < 0 || after < 0)
    return Built::failed("`pad` adds " + std::to_string(before) + " before and " +
                         std::to_string(after) + " after: neither may be below 0");
  if (dim != nullptr && (__builtin_add_overflow(before, after, &attrs.extent) ||
                         __builtin_add_overflow(attrs.extent, dim->extent, &attrs.extent))) {
    return Built::failed("`pad` of " + show(a) + " makes more elements than can be counted");
  }
  return along_one(Op::pad, {a}, along, std::move(attrs));
}

Built Builder::shift(ValueId a, std::int64_t places, Symbol along) {
  Attrs attrs;
  attrs.from = places;
  return along_one(Op::shift, {a}, along, std::move(attrs));
}

Built Builder::concat(ValueId a, ValueId b, Symbol along) {
  return along_one(Op::concat, {a, b}, along);
}

Built Builder::ramp(Type type, double first, double step) {
  Attrs attrs;
  attrs.scalar = step;
  attrs.scalar2 = first;
  attrs.shape = std::move(type);
  return op(Op::iota, {}, std::move(attrs));
}

Built Builder::iota(ValueId like, double first, double step, Symbol along) {
  if (!along.valid()) along = last_dim(like);
  const Dim* dim = along.valid() ? dim_of(like, along) : nullptr;
  if (dim == nullptr)
    return Built::failed("`iota` goes along a dimension, and " + show(like) + " has no such");
  return ramp({graph_.type(like).dtype, {*dim}}, first, step);
}

Built Builder::rotary(ValueId a, Symbol along, double base) {
  const Type type = graph_.type(a);
  const Dim* positions = dim_of(a, along);
  if (positions == nullptr)
    return Built::failed("`rotary` needs positions, and " + show(a) + " has no dimension `" +
                         std::string(graph_.context().text(along)) + "`: name theirs with `along`");
  if (!(base > 0) || !std::isfinite(base))
    return Built::failed("the base of `rotary` is a positive number, not " + number_text(base));
  Dim pairs = type.dims.back();
  if (pairs.name == along)
    return Built::failed(
        "`rotary` turns pairs along the last dimension, which cannot be that of the positions: " +
        show(a));
  if (pairs.extent % 2 != 0)
    return Built::failed("`rotary` turns pairs along `" +
                         std::string(graph_.context().text(pairs.name)) + "`, which is " +
                         std::to_string(pairs.extent) + " long, not even: " + show(a));
  pairs.extent /= 2;
  const Built position = ramp({DType::f64, {*positions}}, 0, 1);
  if (!position) return position;
  const Built exponent =
      ramp({DType::f64, {pairs}}, 0, -std::log(base) / static_cast<double>(pairs.extent));
  if (!exponent) return exponent;
  const ValueId angle = binary(Op::mul, position.value, unary(Op::exp, exponent.value).value).value;
  const auto table = [&](Op op) {
    const ValueId wide = unary(op, angle).value;
    return type.dtype == DType::f64 ? wide : cast(wide, type.dtype).value;
  };
  const ValueId cosine = table(Op::cos), sine = table(Op::sin);
  return along_one(Op::rotary, {a, cosine, sine}, {});
}

Built Builder::rename(ValueId a, std::vector<std::pair<Symbol, Symbol>> names) {
  Attrs attrs;
  for (const auto& [from, to] : names) {
    attrs.dims.push_back(from);
    attrs.dims2.push_back(to);
  }
  return op(Op::rename, {a}, std::move(attrs));
}

Built Builder::permute(ValueId a, std::vector<Symbol> dims) {
  Attrs attrs;
  attrs.dims = std::move(dims);
  return op(Op::permute, {a}, std::move(attrs));
}

std::vector<Symbol> summed_names(const Type& left, const Type& right) {
  std::size_t batched = 0;
  const std::size_t least = std::min(left.dims.size(), right.dims.size());
  while (batched < least && left.dims[batched].name == right.dims[batched].name) ++batched;
  std::vector<Symbol> summed;
  for (std::size_t i = batched; i < left.dims.size(); ++i) {
    const auto at = right.find(left.dims[i].name);
    if (at && *at >= batched) summed.push_back(left.dims[i].name);
  }
  return summed;
}

Built Builder::matmul(ValueId a, ValueId b) {
  const Type& left = graph_.type(a);
  const Type& right = graph_.type(b);
  std::vector<Symbol> summed = summed_names(left, right);
  if (summed.empty()) {
    const bool batched = !left.dims.empty() && right.find(left.dims.front().name);
    return Built::failed(
        "a product of " + show(a) + " and " + show(b) + " sums nothing: " +
        (batched ? "what they share leads in both and is batched" : "they share no dimension"));
  }
  return contract(a, b, std::move(summed));
}

Built Builder::contract(ValueId a, ValueId b, std::vector<Symbol> dims) {
  Attrs attrs;
  attrs.dims = dims;
  const Type& left = graph_.type(a);
  const Type& right = graph_.type(b);
  for (const Symbol dim : dims) {
    for (const ValueId operand : {a, b}) {
      if (!graph_.type(operand).find(dim)) {
        return Built::failed("a product over `" + std::string(graph_.context().text(dim)) +
                             "` needs that dimension in both: " + show(a) + " and " + show(b));
      }
    }
  }

  // The groups take their order from a; an operand with another memory order is copied into it.
  const GemmForm form = gemm_form(left, right, dims);
  const DType dtype = left.dtype;
  if (form.direct) return rounded(op(Op::contract, {a, b}, std::move(attrs)), dtype);
  const auto names = [](std::initializer_list<const std::vector<Dim>*> groups) {
    std::vector<Symbol> names;
    for (const auto* group : groups) {
      for (const Dim& dim : *group) names.push_back(dim.name);
    }
    return names;
  };
  const auto lies_as = [](const Type& type, const std::vector<Symbol>& order) {
    return std::equal(order.begin(), order.end(), type.dims.begin(), type.dims.end(),
                      [](Symbol name, const Dim& dim) { return name == dim.name; });
  };
  // Extents and element types are checked before a copy is made, on the same product with operands
  // in the right memory order.
  const auto a_order = names({&form.batched, &form.rest_a, &form.summed}),
             b_order = names({&form.batched, &form.summed, &form.rest_b});
  const auto ordered = [](const Type& type, const std::vector<Symbol>& order) {
    Type result{type.dtype, {}};
    for (const Symbol name : order) result.dims.push_back(type.dims[*type.find(name)]);
    return result;
  };
  const Type trial[] = {ordered(left, a_order), ordered(right, b_order)};
  if (Inferred inferred = infer(Op::contract, trial, attrs, graph_.context().symbols, called_);
      !inferred.error.empty())
    return Built::failed(std::move(inferred.error), inferred.mixes_dtypes);
  if (!lies_as(left, a_order) && !lies_as(left, names({&form.batched, &form.summed, &form.rest_a})))
    a = permute(a, a_order).value;
  if (!lies_as(graph_.type(b), b_order) &&
      !lies_as(graph_.type(b), names({&form.batched, &form.rest_b, &form.summed})))
    b = permute(b, b_order).value;
  return rounded(op(Op::contract, {a, b}, std::move(attrs)), dtype);
}

Built Builder::attend(ValueId q, ValueId k, ValueId v, bool causal) {
  Attrs attrs;
  attrs.causal = causal;
  const Type& query = graph_.type(q);
  attrs.scalar =
      query.dims.empty() ? 1.0 : 1.0 / std::sqrt(static_cast<double>(query.dims.back().extent));
  return op(Op::attend, {q, k, v}, std::move(attrs));
}

ValueId Builder::unrounded(ValueId a) const {
  const NodeId def = graph_.value(a).def;
  if (!def.valid() || graph_.node(def).op != Op::cast) return a;
  const ValueId from = graph_.operands(graph_.node(def))[0];
  return is_narrow(graph_.type(a).dtype) && graph_.type(from).dtype == wide(graph_.type(a).dtype)
             ? from
             : a;
}

Built Builder::loss(std::string_view name, ValueId elements) {
  elements = unrounded(elements);
  const MaskFound found = find_loss_mask(graph_, elements);
  if (!found.error.empty()) return Built::failed(found.error);
  std::vector<Symbol> all;
  for (const Dim& dim : graph_.type(elements).dims) all.push_back(dim.name);
  Attrs attrs;
  attrs.dims = std::move(all);
  // In the wide type of its elements, as it is added up further.
  const Built total = op(Op::sum, {elements}, std::move(attrs));
  if (!total) return total;
  std::optional<LossMask> mask;
  if (found.targets.valid())
    mask = {
        found.targets, found.ignore,
        graph_.add_leaf({DType::f64, {}}, graph_.context().symbol(std::string(name) + ".count"))};
  graph_.losses.push_back({graph_.context().symbol(name), elements, total.value,
                           graph_.type(elements).elements(), loc_, mask});
  return total;
}

}  // namespace piper::tensor
