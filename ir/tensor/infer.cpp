#include "ir/tensor/infer.h"

#include <algorithm>
#include <cmath>

#include "ir/diagnostics/counted.h"

namespace piper::tensor {

namespace {

bool contains(std::span<const Symbol> dims, Symbol name) {
  return std::find(dims.begin(), dims.end(), name) != dims.end();
}

}  // namespace

Type without(const Type& type, std::span<const Symbol> dims) {
  Type rest{type.dtype, {}};
  for (const Dim& dim : type.dims) {
    if (!contains(dims, dim.name)) rest.dims.push_back(dim);
  }
  return rest;
}

std::string check_type(const Type& type, const SymbolTable& symbols) {
  if (type.dims.size() > kMaxDims)
    return "a type has " + std::to_string(type.dims.size()) + " dimensions, and at most " +
           std::to_string(kMaxDims) + " may stand in one";
  for (std::size_t i = 0; i < type.dims.size(); ++i) {
    const Dim& dim = type.dims[i];
    const std::string name = "`" + std::string(symbols.text(dim.name)) + "`";
    if (!dim.name.valid()) return "a dimension of `" + print(type, symbols) + "` has no name";
    if (dim.extent < 1)
      return "dimension " + name + " of `" + print(type, symbols) + "` has extent " +
             std::to_string(dim.extent);
    for (std::size_t j = 0; j < i; ++j) {
      if (type.dims[j].name == dim.name)
        return "dimension " + name + " occurs twice in `" + print(type, symbols) + "`";
    }
  }
  if (type.elements() > kMaxElements)
    return "`" + print(type, symbols) + "` has more than 2^48 elements";
  return {};
}

std::string ShapeRule::show_operands() const {
  std::string text;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    if (i > 0) text += i + 1 == operands.size() ? " and " : ", ";
    text += show(operands[i]);
  }
  return text;
}

std::string ShapeRule::all_floating(std::size_t from, std::size_t to) {
  for (std::size_t i = from; i < to; ++i) {
    if (!is_floating(operands[i].dtype))
      return show_op() + " takes floating values, and an operand is " + show(operands[i]);
    if (operands[i].dtype != operands[from].dtype) {
      mixes_dtypes_ = true;
      return show_op() + " takes operands of one element type: " + show(operands[from]) + " and " +
             show(operands[i]);
    }
  }
  return {};
}

std::string ShapeRule::all_in(const std::vector<Symbol>& dims, const Type& type) const {
  for (std::size_t i = 0; i < dims.size(); ++i) {
    if (!type.find(dims[i])) return show(type) + " has no dimension " + show(dims[i]);
    if (std::find(dims.begin(), dims.begin() + static_cast<std::ptrdiff_t>(i), dims[i]) !=
        dims.begin() + static_cast<std::ptrdiff_t>(i)) {
      return show_op() + " names dimension " + show(dims[i]) + " twice";
    }
  }
  return {};
}

std::string ShapeRule::same_type(std::size_t a, std::size_t b) const {
  if (operands[a] == operands[b]) return {};
  return "operands of " + show_op() + " must have one type: " + show(operands[a]) + " and " +
         show(operands[b]);
}

std::string ShapeRule::same_dim(const Dim& a, const Dim& b) const {
  if (a.extent != b.extent) {
    return "dimension " + show(a.name) + " is " + std::to_string(a.extent) +
           " in one operand and " + std::to_string(b.extent) + " in another: " + show_operands();
  }
  if (a.sampled != b.sampled) {
    return "dimension " + show(a.name) +
           " counts samples in one operand and not in another: " + show_operands();
  }
  return {};
}

Inferred ShapeRule::run() {
  if (operands.size() != info(op).operands) {
    return fail(show_op() + " takes " + std::to_string(info(op).operands) + " operands, not " +
                std::to_string(operands.size()));
  }
  if ((info(op).attributes & kScalar) != 0 && !std::isfinite(attrs.scalar))
    return fail("the constant of " + show_op() + " is not finite");
  if ((info(op).attributes & kScalar2) != 0 && !std::isfinite(attrs.scalar2))
    return fail("the second constant of " + show_op() + " is not finite");
  switch (op) {
      // clang-format off
    case Op::add: case Op::sub: case Op::mul: case Op::div: case Op::maximum: case Op::minimum:
    case Op::neg: case Op::scale: case Op::offset: case Op::exp: case Op::log: case Op::sqrt:
    case Op::rsqrt: case Op::square: case Op::sin: case Op::cos: case Op::tanh: case Op::sigmoid:
    case Op::softplus: case Op::relu: case Op::gelu: case Op::silu: case Op::relu_grad:
    case Op::gelu_grad: case Op::silu_grad: case Op::select_ge: case Op::select_lt:
      return pointwise();
    // clang-format on
    case Op::dropout:
      if (!(attrs.scalar >= 0 && attrs.scalar < 1))
        return fail("the rate of `dropout` lies in 0 to 1, 1 excluded");
      if (!attrs.seed.valid()) return fail("`dropout` has no name that keys its random numbers");
      return pointwise();
    case Op::cast: {
      if (!is_floating(operands[0].dtype) || !is_floating(attrs.dtype))
        return fail("`cast` is between floating types, not from " + show(operands[0]) + " to `" +
                    std::string(dtype_name(attrs.dtype)) + "`");
      return ok(Type{attrs.dtype, operands[0].dims});
    }
    case Op::fill:
      if (!is_floating(attrs.shape.dtype))
        return fail("`fill` makes floating values, not " + show(attrs.shape));
      if (auto why = check_type(attrs.shape, symbols); !why.empty()) return fail(why);
      return ok(attrs.shape);
    case Op::sum:
    case Op::max:
    case Op::max_grad: return reduce();
    case Op::softmax:
    case Op::softmax_grad:
    case Op::log_softmax:
    case Op::log_softmax_grad:
    case Op::rms_norm:
    case Op::rms_norm_grad:
    case Op::layer_norm:
    case Op::layer_norm_grad: return along_one();
    case Op::cross_entropy: return cross_entropy(false);
    case Op::cross_entropy_grad: return cross_entropy(true);
    case Op::lookup: return lookup();
    case Op::lookup_grad: return lookup_grad();
    case Op::iota: return iota();
    case Op::piecewise: return piecewise();
    case Op::slice: return slice();
    case Op::pad: return pad();
    case Op::shift: return shift();
    case Op::concat: return concat();
    case Op::rotary: return rotary();
    case Op::rename: return rename();
    case Op::broadcast: return broadcast();
    case Op::permute: return permute();
    case Op::contract: return contract();
    case Op::contract_add: return contract_add();
    case Op::attend: return attend();
    case Op::attend_grad: return attend_grad();
  }
  return fail("no such op");
}

Inferred ShapeRule::pointwise() {
  if (auto why = all_floating(0, operands.size()); !why.empty()) return fail(why);
  std::vector<Dim> all = operands[0].dims;
  for (std::size_t i = 1; i < operands.size(); ++i) {
    for (const Dim& dim : operands[i].dims) {
      const auto known =
          std::find_if(all.begin(), all.end(), [&](const Dim& d) { return d.name == dim.name; });
      if (known == all.end()) {
        all.push_back(dim);
      } else if (auto why = same_dim(*known, dim); !why.empty()) {
        return fail(why);
      }
    }
  }
  for (const Type& type : operands) {
    // The operand that has them all gives the memory order.
    if (type.dims.size() == all.size()) return ok(type);
  }
  Type result{operands[0].dtype, std::move(all)};
  if (auto why = check_type(result, symbols); !why.empty()) return fail(why);
  return ok(std::move(result));
}

Inferred ShapeRule::reduce() {
  if (auto why = all_floating(0, operands.size()); !why.empty()) return fail(why);
  if (auto why = all_in(attrs.dims, operands[0]); !why.empty()) return fail(why);
  if (op != Op::sum && attrs.dims.empty())
    return fail("`max` of " + show(operands[0]) + " names no dimension");
  Type rest = without(operands[0], attrs.dims);
  if (op == Op::sum) rest.dtype = wide(rest.dtype);
  if (op != Op::max_grad) return ok(std::move(rest));
  for (std::size_t i : {1, 2}) {
    if (operands[i] != rest)
      return fail("`max_grad` expects " + show(rest) + ", not " + show(operands[i]));
  }
  return ok(operands[0]);
}

Inferred ShapeRule::along_one() {
  if (auto why = all_floating(0, operands.size()); !why.empty()) return fail(why);
  if (attrs.dims.size() != 1)
    return fail(show_op() + " goes along one dimension, and " + std::to_string(attrs.dims.size()) +
                " are named");
  if (auto why = all_in(attrs.dims, operands[0]); !why.empty()) return fail(why);
  if ((info(op).attributes & kScalar) != 0 && attrs.scalar < 0)
    return fail("the epsilon of " + show_op() + " is negative");
  if (operands.size() == 2) {
    if (auto why = same_type(0, 1); !why.empty()) return fail(why);
  }
  return ok(operands[0]);
}

Inferred ShapeRule::cross_entropy(bool gradient) {
  const Type& logits = operands[0];
  const Type& targets = operands[1];
  if (auto why = all_floating(0, 1); !why.empty()) return fail(why);
  if (targets.dtype != DType::i64)
    return fail("the targets of `cross_entropy` are class numbers (i64), not " + show(targets));
  if (attrs.dims.size() != 1)
    return fail(show_op() + " goes along one dimension, and " + std::to_string(attrs.dims.size()) +
                " are named");
  if (auto why = all_in(attrs.dims, logits); !why.empty()) return fail(why);
  Type rest = without(logits, attrs.dims);
  if (targets.dims != rest.dims) {
    return fail("`cross_entropy` along " + show(attrs.dims[0]) + " of " + show(logits) +
                " takes targets " + show(Type{DType::i64, rest.dims}) + ", not " + show(targets));
  }
  rest.dtype = wide(rest.dtype);
  if (!gradient) return ok(std::move(rest));
  if (operands[2] != rest)
    return fail("`cross_entropy_grad` expects " + show(rest) + ", not " + show(operands[2]));
  return ok(logits);
}

Inferred ShapeRule::rename() {
  if (attrs.dims.size() != attrs.dims2.size())
    return fail("`rename` names " + counted(attrs.dims.size(), "dimension") + " and " +
                counted(attrs.dims2.size(), "new name"));
  if (auto why = all_in(attrs.dims, operands[0]); !why.empty()) return fail(why);
  Type result = operands[0];
  for (std::size_t i = 0; i < attrs.dims.size(); ++i)
    result.dims[*operands[0].find(attrs.dims[i])].name = attrs.dims2[i];
  if (auto why = check_type(result, symbols); !why.empty())
    return fail("`rename` of " + show(operands[0]) + ": " + why);
  return ok(std::move(result));
}

Inferred ShapeRule::broadcast() {
  if (auto why = all_floating(0, 1); !why.empty()) return fail(why);
  if (auto why = check_type(attrs.shape, symbols); !why.empty()) return fail(why);
  if (attrs.shape.dtype != operands[0].dtype)
    return fail("`broadcast` keeps the element type: " + show(operands[0]) + " to " +
                show(attrs.shape));
  for (const Dim& dim : operands[0].dims) {
    const auto at = attrs.shape.find(dim.name);
    if (!at || attrs.shape.dims[*at] != dim)
      return fail(show(operands[0]) + " does not spread over " + show(attrs.shape) +
                  ": dimension " + show(dim.name) + " differs");
  }
  return ok(attrs.shape);
}

Inferred ShapeRule::permute() {
  if (auto why = all_floating(0, 1); !why.empty()) return fail(why);
  if (auto why = all_in(attrs.dims, operands[0]); !why.empty()) return fail(why);
  if (attrs.dims.size() != operands[0].dims.size())
    return fail("`permute` names " + std::to_string(attrs.dims.size()) + " of the dimensions of " +
                show(operands[0]));
  Type result{operands[0].dtype, {}};
  for (Symbol name : attrs.dims) result.dims.push_back(operands[0].dims[*operands[0].find(name)]);
  return ok(std::move(result));
}

Inferred infer(Op op, std::span<const Type> operands, const Attrs& attrs,
               const SymbolTable& symbols, std::string_view called) {
  return ShapeRule(op, operands, attrs, symbols, called.empty() ? info(op).name : called).run();
}

}  // namespace piper::tensor
