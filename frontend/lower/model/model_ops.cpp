// The tensor functions of the language: each call appends one op of the table, or a few.

#include <cmath>
#include <limits>

#include "frontend/lower/model/model_state.h"

namespace piper::lower {

using sema::Builtin;
using tensor::Built;
using tensor::Op;

namespace {

std::optional<Op> unary_op(Builtin id) {
  switch (id) {
    case Builtin::exp: return Op::exp;
    case Builtin::gelu: return Op::gelu;
    case Builtin::log: return Op::log;
    case Builtin::sin: return Op::sin;
    case Builtin::cos: return Op::cos;
    case Builtin::relu: return Op::relu;
    case Builtin::sigmoid: return Op::sigmoid;
    case Builtin::silu: return Op::silu;
    case Builtin::softplus: return Op::softplus;
    case Builtin::sqrt: return Op::sqrt;
    case Builtin::square: return Op::square;
    case Builtin::tanh: return Op::tanh;
    default: return std::nullopt;
  }
}

/// The class of ignored targets; nothing after a failure.
std::optional<std::int32_t> ignored_class(Evaluator& evaluator, std::int64_t number,
                                          SourceRange range, const Frame& frame) {
  if (number >= std::numeric_limits<std::int32_t>::min() &&
      number <= std::numeric_limits<std::int32_t>::max())
    return static_cast<std::int32_t>(number);
  evaluator.fail(Code::setting_out_of_range, range, frame,
                 "`ignore` of `cross_entropy` is `{}`; it must fit into 32 bits", number);
  return std::nullopt;
}

/// `rename(x, old: new)`.
std::vector<std::pair<Symbol, Symbol>> new_names(const ast::CallExpr& expr, Context& context) {
  std::vector<std::pair<Symbol, Symbol>> names;
  for (const std::uint32_t position : expr.rest) {
    const ast::Arg& arg = expr.args[position];
    names.emplace_back(context.symbol(arg.name.name),
                       context.symbol(llvm::cast<ast::NameExpr>(*arg.value).name));
  }
  return names;
}

}  // namespace

Value ModelBuilder::builtin(Builtin id, const ast::CallExpr& expr, Frame& frame) {
  Evaluator& evaluator = state_->evaluator;
  tensor::Builder& build = state_->build;
  // Arguments first: they append ops at their own places.
  std::vector<std::optional<Value>> values(expr.matched.size());
  const sema::Signature& signature = sema::signature(id);
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!signature.params[i].type.is(sema::TypeKind::dimension))
      values[i] = evaluator.argument(expr, i, frame);
    if (evaluator.failed()) return {};
  }
  const auto tensor = [&](std::size_t i) { return values[i]->get<TensorValue>()->id; };
  const auto number = [&](std::size_t i, double otherwise) {
    return values[i] ? evaluator.to_float(*values[i]) : otherwise;
  };
  const auto integer = [&](std::size_t i, std::int64_t otherwise) {
    return values[i] ? evaluator.to_int(*values[i]) : otherwise;
  };
  const auto range_of = [&](std::size_t i) {
    return expr.args[static_cast<std::size_t>(expr.matched[i])].range;
  };
  const auto along = [&](std::size_t i) { return state_->dimension_argument(expr, i); };
  const auto dims = [&](std::size_t i) {
    const Symbol named = along(i);
    const auto& type = state_->graph.type(tensor(0));
    return std::vector<Symbol>{named.valid() || type.dims.empty() ? named : type.dims.back().name};
  };
  if (!state_->has_dimensions(expr, signature, tensor(0), frame)) return {};
  state_->place(expr.range, frame);
  build.called(signature.name);
  Built built;
  if (const auto op = unary_op(id)) {
    built = build.unary(*op, tensor(0));
    return state_->check(built, expr.range, frame);
  }
  if (id == Builtin::maximum || id == Builtin::minimum || id == Builtin::mean_squared) {
    state_->look_for_pairs(signature.name,
                           *expr.args[static_cast<std::size_t>(expr.matched[0])].value, tensor(0),
                           tensor(1), expr.range, frame);
  }
  switch (id) {
    case Builtin::attend: {
      const bool causal = values[3] && *values[3]->get<bool>();
      if (values[4]) {
        tensor::Attrs attrs;
        attrs.causal = causal;
        attrs.scalar = evaluator.to_float(*values[4]);
        built = build.op(Op::attend, {tensor(0), tensor(1), tensor(2)}, attrs);
      } else {
        built = build.attend(tensor(0), tensor(1), tensor(2), causal);
      }
      break;
    }
    case Builtin::cross_entropy: {
      std::optional<std::int32_t> ignore;
      if (values[3]) {
        ignore = ignored_class(evaluator, evaluator.to_int(*values[3]), range_of(3), frame);
        if (!ignore) return {};
      }
      built = build.cross_entropy(tensor(0), tensor(1), along(2), ignore);
      break;
    }
    case Builtin::concat: built = build.concat(tensor(0), tensor(1), along(2)); break;
    case Builtin::iota: built = build.iota(tensor(0), number(2, 0), number(3, 1), along(1)); break;
    case Builtin::pad: built = build.pad(tensor(0), integer(1, 0), integer(2, 0), along(3)); break;
    case Builtin::rotary: {
      const Symbol named = along(1);
      built = build.rotary(tensor(0), named.valid() ? named : evaluator.context().symbol("seq"),
                           number(2, 10000));
      break;
    }
    case Builtin::shift: built = build.shift(tensor(0), integer(1, 0), along(2)); break;
    case Builtin::slice: {
      const Range* part = values[1]->get<Range>();
      if (part == nullptr || part->step != 1) {
        evaluator
            .fail(Code::setting_out_of_range, range_of(1), frame,
                  "`slice` takes neighbours, written as a range")
            .hint("write `slice(x, 2..5)` for the positions 2, 3 and 4");
        return {};
      }
      built = build.slice(tensor(0), part->begin, part->end, along(2));
      break;
    }
    case Builtin::dot: {
      built = build.binary(Op::mul, tensor(0), tensor(1));
      if (built) built = build.sum(built.value, dims(2));
      break;
    }
    case Builtin::dropout: {
      const double rate = number(1, 0);
      if (!(rate >= 0 && rate < 1)) {
        evaluator.fail(Code::setting_out_of_range, range_of(1), frame,
                       "`p` of `dropout` is `{}`; it must be at least 0 and below 1", rate);
        return {};
      }
      built = rate == 0 ? Built(tensor(0)) : build.dropout(tensor(0), rate);
      break;
    }
    case Builtin::layer_norm:
      built = build.along(Op::layer_norm, tensor(0), along(1), number(2, 1e-5));
      break;
    case Builtin::rms_norm:
      built = build.along(Op::rms_norm, tensor(0), along(1), number(2, 1e-6));
      break;
    case Builtin::softmax: built = build.along(Op::softmax, tensor(0), along(1)); break;
    case Builtin::log_softmax: built = build.along(Op::log_softmax, tensor(0), along(1)); break;
    case Builtin::lookup: built = build.lookup(tensor(0), tensor(1)); break;
    case Builtin::max: built = build.max(tensor(0), dims(1)); break;
    case Builtin::mean: built = build.mean(tensor(0), dims(1)); break;
    case Builtin::sum: built = build.sum(tensor(0), dims(1)); break;
    case Builtin::maximum: built = build.binary(Op::maximum, tensor(0), tensor(1)); break;
    case Builtin::mean_squared: {
      built = build.binary(Op::sub, tensor(0), tensor(1));
      if (built) built = build.unary(Op::square, built.value);
      break;
    }
    case Builtin::minimum: built = build.binary(Op::minimum, tensor(0), tensor(1)); break;
    case Builtin::rename:
    case Builtin::rename_indices:
      built = build.rename(tensor(0), new_names(expr, evaluator.context()));
      break;
    default: evaluator.set_failed(); return {};
  }
  return state_->check(built, expr.range, frame);
}

}  // namespace piper::lower
