#include "tests/support/op_cases.h"

#include <cassert>
#include <charconv>
#include <cmath>

#include "ir/tensor/op_rules.h"

namespace piper::test {

using namespace tensor;

namespace {

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

/// The parts between `separator`s that stand outside brackets.
std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  int depth = 0;
  std::size_t begin = 0;
  for (std::size_t i = 0; i <= text.size(); ++i) {
    if (i == text.size() || (text[i] == separator && depth == 0)) {
      if (const auto part = trimmed(text.substr(begin, i - begin)); !part.empty())
        parts.push_back(part);
      begin = i + 1;
    } else {
      depth += text[i] == '[' ? 1 : text[i] == ']' ? -1 : 0;
    }
  }
  return parts;
}

std::vector<Symbol> names(Context& context, std::string_view text) {
  std::vector<Symbol> symbols;
  for (const auto part : split(text, ',')) symbols.push_back(context.symbol(part));
  return symbols;
}

/// How far the numbers of an op's operands go. Drawn is a mix: small ones, moderate ones, and ones
/// up to `most`, so that an op that saturates or bends anywhere below it is met on both sides. An
/// op without a row has the default.
struct Reach {
  Op op;
  double most = 8;
  bool positive = false;  // the first operand; down to 1/20
  double divisor = 0;     // the second operand stands no closer to 0
};
constexpr Reach kReaches[] = {
    // Beyond, one element hides the differences of all others; runtime/kernel_math.h is tested
    // alone.
    {.op = Op::exp, .most = 6},
    {.op = Op::log, .most = 30, .positive = true},
    {.op = Op::sqrt, .most = 30, .positive = true},
    {.op = Op::rsqrt, .most = 30, .positive = true},
    {.op = Op::div, .divisor = 0.3},
    {.op = Op::sin, .most = 100},
    {.op = Op::cos, .most = 100},
    {.op = Op::tanh, .most = 25},
    {.op = Op::sigmoid, .most = 40},
    {.op = Op::softplus, .most = 40},
    {.op = Op::silu, .most = 40},
    {.op = Op::silu_grad, .most = 40},
    // It takes exponentials of logarithms of probabilities.
    {.op = Op::log_softmax_grad, .most = 4},
    {.op = Op::attend, .most = 3},  // scores are products of two
    {.op = Op::attend_grad, .most = 3},
};

Reach reach_of(Op op) {
  for (const Reach& reach : kReaches) {
    if (reach.op == op) return reach;
  }
  return {.op = op};
}

/// A fifth of the numbers near 0, a fifth up to 1.5, the rest up to `most`; none closer than 0.05
/// to zero.
double mixed(Random& random, double most) {
  const double kind = random.unit(), sign = random.chance(0.5) ? 1 : -1;
  const double bound = kind < 0.2 ? 0.2 : kind < 0.4 ? 1.5 : most;
  return sign * (0.05 + random.unit() * (bound - 0.05));
}

struct Row {
  Op op;
  const char* what;
  const char* operands;  // separated by `;`
  const char* attrs;
};

// Every op has a row; a test fails for an op without one.
constexpr Row kRows[] = {
    {Op::add, "equal shapes", "f64[batch: 4*, dim: 6]; f64[batch: 4*, dim: 6]", ""},
    {Op::add, "broadcast over batch", "f64[batch: 4*, seq: 2, dim: 6]; f64[seq: 2, dim: 6]", ""},
    {Op::add, "another memory order", "f64[batch: 4*, dim: 6]; f64[dim: 6, batch: 4*]", ""},
    {Op::add, "a scalar", "f64[]; f64[batch: 4*]", ""},
    {Op::sub, "equal shapes", "f64[batch: 4*, dim: 6]; f64[batch: 4*, dim: 6]", ""},
    {Op::sub, "outer", "f64[batch: 4*]; f64[dim: 6]", ""},
    {Op::mul, "gain", "f64[batch: 4*, dim: 6]; f64[dim: 6]", ""},
    {Op::mul, "outer", "f64[batch: 4*, seq: 2]; f64[seq: 2, dim: 2]", ""},
    {Op::div, "equal shapes", "f64[batch: 4*, dim: 6]; f64[batch: 4*, dim: 6]", ""},
    {Op::div, "by a row", "f64[batch: 4*, dim: 6]; f64[batch: 4*]", ""},
    {Op::maximum, "equal shapes", "f64[batch: 4*, dim: 6]; f64[batch: 4*, dim: 6]", ""},
    {Op::maximum, "broadcast", "f64[dim: 6]; f64[batch: 4*, dim: 6]", ""},
    {Op::minimum, "equal shapes", "f64[batch: 4*, dim: 6]; f64[batch: 4*, dim: 6]", ""},
    {Op::minimum, "broadcast", "f64[batch: 4*, dim: 6]; f64[dim: 6]", ""},
    {Op::neg, "matrix", "f64[batch: 4*, dim: 6]", ""},
    {Op::scale, "matrix", "f64[batch: 4*, dim: 6]", "scalar: -1.75"},
    {Op::offset, "matrix", "f64[batch: 4*, dim: 6]", "scalar: 0.3"},
    {Op::exp, "matrix", "f64[batch: 4*, dim: 6]", ""},
    {Op::log, "matrix", "f64[batch: 4*, dim: 6]", ""},
    {Op::sqrt, "matrix", "f64[batch: 4*, dim: 6]", ""},
    {Op::rsqrt, "matrix", "f64[batch: 4*, dim: 6]", ""},
    {Op::square, "matrix", "f64[batch: 4*, dim: 6]", ""},
    {Op::sin, "matrix", "f64[batch: 4*, dim: 6]", ""},
    {Op::cos, "matrix", "f64[batch: 4*, dim: 6]", ""},
    {Op::tanh, "matrix", "f64[batch: 4*, dim: 6]", ""},
    {Op::sigmoid, "matrix", "f64[batch: 4*, dim: 6]", ""},
    {Op::softplus, "matrix", "f64[batch: 4*, dim: 6]", ""},
    {Op::relu, "matrix", "f64[batch: 4*, dim: 6]", ""},
    {Op::gelu, "matrix", "f64[batch: 4*, dim: 6]", ""},
    {Op::silu, "matrix", "f64[batch: 4*, dim: 6]", ""},
    {Op::relu_grad, "matrix", "f64[batch: 4*, dim: 6]; f64[batch: 4*, dim: 6]", ""},
    {Op::gelu_grad, "matrix", "f64[batch: 4*, dim: 6]; f64[batch: 4*, dim: 6]", ""},
    {Op::silu_grad, "matrix", "f64[batch: 4*, dim: 6]; f64[batch: 4*, dim: 6]", ""},
    {Op::select_ge, "broadcast", "f64[batch: 4*, dim: 6]; f64[dim: 6]; f64[batch: 4*, dim: 6]", ""},
    {Op::select_lt, "broadcast", "f64[batch: 4*, dim: 6]; f64[dim: 6]; f64[batch: 4*, dim: 6]", ""},
    {Op::dropout, "matrix", "f64[batch: 4*, dim: 6]", "scalar: 0.25; seed: mlp.0.dropout.0"},
    {Op::dropout, "weight", "f64[in: 4, dim: 6]", "scalar: 0.25; seed: mlp.0.dropout.0"},
    {Op::cast, "to itself", "f64[batch: 4*, dim: 6]", "dtype: f64"},
    {Op::fill, "matrix", "", "scalar: 0.125; shape: f64[batch: 4*, dim: 6]"},
    {Op::iota, "positions", "", "scalar: 1; scalar2: 0; shape: f64[seq: 6]"},
    {Op::iota, "downwards", "", "scalar: -0.5; scalar2: 3.25; shape: f64[dim: 2]"},
    {Op::piecewise, "three", "", "pieces: [2: 0.5, 3: -1, 6: 2]; shape: f64[seq: 6]"},
    {Op::piecewise, "beyond the last", "", "pieces: [8: 0.25, 40: 3]; shape: f64[dim: 16]"},
    {Op::piecewise, "one", "", "pieces: [6: 1.5]; shape: f64[dim: 6]"},
    {Op::slice, "last", "f64[batch: 4*, dim: 6]", "dims: dim; from: 1; extent: 4"},
    {Op::slice, "middle", "f64[batch: 4*, seq: 6, dim: 2]", "dims: seq; from: 4; extent: 2"},
    {Op::slice, "one", "f64[batch: 4*, seq: 6, dim: 2]", "dims: seq; from: 3; extent: 1"},
    {Op::slice, "all", "f64[batch: 4*, dim: 6]", "dims: dim; from: 0; extent: 6"},
    {Op::pad, "last", "f64[batch: 4*, dim: 2]", "dims: dim; from: 1; extent: 6"},
    {Op::pad, "front", "f64[batch: 4*, seq: 2, dim: 4]", "dims: seq; from: 2; extent: 4"},
    {Op::pad, "behind", "f64[batch: 4*, seq: 2, dim: 4]", "dims: seq; from: 0; extent: 6"},
    {Op::shift, "forward", "f64[batch: 4*, seq: 4, dim: 2]", "dims: seq; from: 1"},
    {Op::shift, "backward", "f64[batch: 4*, dim: 6]", "dims: dim; from: -2"},
    {Op::shift, "nowhere", "f64[batch: 4*, dim: 6]", "dims: dim; from: 0"},
    {Op::concat, "last", "f64[batch: 4*, dim: 2]; f64[batch: 4*, dim: 4]", "dims: dim"},
    {Op::concat, "first", "f64[seq: 2, batch: 4*]; f64[seq: 6, batch: 4*]", "dims: seq"},
    {Op::concat, "another memory order",
     "f64[batch: 4*, seq: 2, dim: 4]; f64[dim: 4, batch: 4*, seq: 4]", "dims: seq"},
    {Op::rotary, "heads",
     "f64[batch: 2*, seq: 4, heads: 2, width: 6]; f64[seq: 4, width: 3]; f64[seq: 4, width: 3]",
     "dims: width"},
    {Op::rotary, "not the last",
     "f64[batch: 2*, width: 4, seq: 2]; f64[width: 2, seq: 2]; f64[width: 2, seq: 2]",
     "dims: width"},
    {Op::sum, "inner", "f64[batch: 4*, seq: 2, dim: 6]", "dims: seq"},
    {Op::sum, "all", "f64[batch: 4*, dim: 6]", "dims: batch, dim"},
    {Op::sum, "none", "f64[]", "dims:"},
    {Op::max, "inner", "f64[batch: 4*, seq: 2, dim: 6]", "dims: seq"},
    {Op::max, "two", "f64[seq: 2, batch: 4*, dim: 6]", "dims: dim, seq"},
    {Op::max_grad, "inner",
     "f64[batch: 4*, seq: 2, dim: 6]; f64[batch: 4*, dim: 6]; f64[batch: 4*, dim: 6]", "dims: seq"},
    {Op::max_grad, "two", "f64[seq: 2, batch: 4*, dim: 6]; f64[batch: 4*]; f64[batch: 4*]",
     "dims: dim, seq"},
    {Op::softmax, "last", "f64[batch: 4*, dim: 6]", "dims: dim"},
    {Op::softmax, "middle", "f64[batch: 4*, seq: 2, dim: 6]", "dims: seq"},
    {Op::softmax_grad, "last", "f64[batch: 4*, dim: 6]; f64[batch: 4*, dim: 6]", "dims: dim"},
    {Op::log_softmax, "last", "f64[batch: 4*, dim: 6]", "dims: dim"},
    {Op::log_softmax, "middle", "f64[batch: 4*, seq: 2, dim: 6]", "dims: seq"},
    {Op::log_softmax_grad, "last", "f64[batch: 4*, dim: 6]; f64[batch: 4*, dim: 6]", "dims: dim"},
    {Op::rms_norm, "last", "f64[batch: 4*, dim: 6]", "dims: dim; scalar: 1e-05"},
    {Op::rms_norm, "middle", "f64[batch: 4*, dim: 6, seq: 2]", "dims: dim; scalar: 0.1"},
    {Op::rms_norm_grad, "last", "f64[batch: 4*, dim: 6]; f64[batch: 4*, dim: 6]",
     "dims: dim; scalar: 1e-05"},
    {Op::layer_norm, "last", "f64[batch: 4*, dim: 6]", "dims: dim; scalar: 1e-05"},
    {Op::layer_norm, "middle", "f64[batch: 4*, dim: 6, seq: 2]", "dims: dim; scalar: 0.1"},
    {Op::layer_norm_grad, "last", "f64[batch: 4*, dim: 6]; f64[batch: 4*, dim: 6]",
     "dims: dim; scalar: 1e-05"},
    {Op::cross_entropy, "last", "f64[batch: 4*, seq: 2, vocab: 6]; i64[batch: 4*, seq: 2]",
     "dims: vocab"},
    {Op::cross_entropy, "middle", "f64[batch: 4*, vocab: 6, seq: 2]; i64[batch: 4*, seq: 2]",
     "dims: vocab"},
    {Op::cross_entropy, "ignored", "f64[batch: 4*, seq: 2, vocab: 6]; i64[batch: 4*, seq: 2]",
     "dims: vocab; ignore: 2"},
    {Op::cross_entropy, "ignored_middle",
     "f64[batch: 4*, vocab: 6, seq: 2]; i64[batch: 4*, seq: 2]", "dims: vocab; ignore: 0"},
    {Op::cross_entropy_grad, "ignored",
     "f64[batch: 4*, seq: 2, vocab: 6]; i64[batch: 4*, seq: 2]; f64[batch: 4*, seq: 2]",
     "dims: vocab; ignore: 2"},
    {Op::cross_entropy_grad, "last",
     "f64[batch: 4*, seq: 2, vocab: 6]; i64[batch: 4*, seq: 2]; f64[batch: 4*, seq: 2]",
     "dims: vocab"},
    {Op::lookup, "rows", "f64[vocab: 6, dim: 2]; i64[batch: 4*, seq: 2]", ""},
    {Op::lookup, "single numbers", "f64[vocab: 6]; i64[batch: 4*]", ""},
    {Op::lookup_grad, "rows", "i64[batch: 4*, seq: 2]; f64[batch: 4*, seq: 2, dim: 2]",
     "shape: f64[vocab: 6, dim: 2]"},
    {Op::rename, "one", "f64[batch: 4*, seq: 2]", "dims: seq; dims2: key"},
    {Op::rename, "swap", "f64[batch: 4*, seq: 2, key: 2]", "dims: seq, key; dims2: key, seq"},
    {Op::broadcast, "one dimension", "f64[batch: 4*]", "shape: f64[batch: 4*, dim: 6]"},
    {Op::broadcast, "a scalar", "f64[]", "shape: f64[batch: 4*, dim: 6]"},
    {Op::broadcast, "another order", "f64[dim: 6, batch: 4*]",
     "shape: f64[batch: 4*, seq: 2, dim: 6]"},
    {Op::permute, "three", "f64[batch: 4*, seq: 2, dim: 6]", "dims: seq, dim, batch"},
    {Op::contract, "weight", "f64[batch: 4*, seq: 2, dim: 6]; f64[dim: 6, hidden: 2]", "dims: dim"},
    {Op::contract, "weight transposed", "f64[batch: 4*, dim: 6]; f64[hidden: 2, dim: 6]",
     "dims: dim"},
    {Op::contract, "sum over samples",
     "f64[batch: 4*, seq: 2, dim: 6]; f64[batch: 4*, seq: 2, hidden: 2]", "dims: batch, seq"},
    {Op::contract, "batched",
     "f64[experts: 2, slot: 4, dim: 6]; f64[experts: 2, dim: 6, hidden: 2]", "dims: dim"},
    {Op::contract, "batched, both transposed",
     "f64[experts: 2, dim: 6, slot: 4]; f64[experts: 2, hidden: 2, dim: 6]", "dims: dim"},
    {Op::contract, "two summed",
     "f64[batch: 4*, heads: 2, width: 2]; f64[heads: 2, width: 2, dim: 6]", "dims: heads, width"},
    {Op::contract, "matrix and vector", "f64[batch: 4*, dim: 6]; f64[dim: 6]", "dims: dim"},
    {Op::contract, "row by row", "f64[batch: 4*, dim: 6]; f64[batch: 4*, dim: 6]", "dims: dim"},
    {Op::contract_add, "weight",
     "f64[batch: 4*, seq: 2, hidden: 2]; f64[dim: 6, hidden: 2]; f64[batch: 4*, seq: 2, dim: 6]",
     "dims: hidden"},
    {Op::contract_add, "batched",
     "f64[experts: 2, slot: 4, dim: 6]; f64[experts: 2, dim: 6, hidden: 2]; f64[experts: 2, slot: 4, hidden: 2]",
     "dims: dim"},
    {Op::attend, "causal",
     "f64[batch: 2*, seq: 4, heads: 2, width: 2]; f64[batch: 2*, seq: 4, heads: 2, width: 2]; f64[batch: 2*, seq: 4, heads: 2, width: 2]",
     "causal: true; scalar: 0.7071067811865476"},
    {Op::attend, "grouped heads",
     "f64[batch: 2*, seq: 4, heads: 4, width: 2]; f64[batch: 2*, seq: 4, kv_heads: 2, width: 2]; f64[batch: 2*, seq: 4, kv_heads: 2, width: 2]",
     "causal: true; scalar: 0.5"},
    {Op::attend, "across, wider values",
     "f64[batch: 2*, seq: 4, heads: 2, width: 2]; f64[batch: 2*, key: 6, heads: 2, width: 2]; f64[batch: 2*, key: 6, heads: 2, value: 4]",
     "causal: false; scalar: 0.5"},
    {Op::attend_grad, "causal",
     "f64[batch: 2*, seq: 4, heads: 2, width: 2]; f64[batch: 2*, seq: 4, heads: 2, width: 2]; f64[batch: 2*, seq: 4, heads: 2, width: 2]; "
     "f64[batch: 2*, seq: 4, heads: 2, width: 2]; f64[batch: 2*, heads: 2, seq: 4]; f64[batch: 2*, seq: 4, heads: 2, width: 2]",
     "causal: true; scalar: 0.7071067811865476"},
    {Op::attend_grad, "grouped heads",
     "f64[batch: 2*, seq: 4, heads: 4, width: 2]; f64[batch: 2*, seq: 4, kv_heads: 2, width: 2]; f64[batch: 2*, seq: 4, kv_heads: 2, width: 2]; "
     "f64[batch: 2*, seq: 4, heads: 4, width: 2]; f64[batch: 2*, heads: 4, seq: 4]; f64[batch: 2*, seq: 4, heads: 4, width: 2]",
     "causal: true; scalar: 0.5"},
};

}  // namespace

Type make_type(Context& context, std::string_view text) {
  text = trimmed(text);
  const std::size_t bracket = text.find('[');
  assert(bracket != std::string_view::npos && text.back() == ']');
  Type type;
  const auto dtype = parse_dtype(text.substr(0, bracket));
  assert(dtype);
  type.dtype = *dtype;
  for (const auto entry : split(text.substr(bracket + 1, text.size() - bracket - 2), ',')) {
    const std::size_t colon = entry.find(':');
    assert(colon != std::string_view::npos);
    Dim dim;
    dim.name = context.symbol(entry.substr(0, colon));
    std::string_view extent = trimmed(entry.substr(colon + 1));
    dim.sampled = extent.back() == '*';
    if (dim.sampled) extent.remove_suffix(1);
    std::from_chars(extent.data(), extent.data() + extent.size(), dim.extent);
    type.dims.push_back(dim);
  }
  return type;
}

/// `[2: 0.5, 6: 2]`: the end and the number of each.
Pieces make_pieces(std::string_view text) {
  Pieces pieces;
  for (const auto piece : split(text.substr(1, text.size() - 2), ',')) {
    const std::size_t colon = piece.find(':');
    const std::string_view end = trimmed(piece.substr(0, colon)),
                           number = trimmed(piece.substr(colon + 1));
    std::from_chars(end.data(), end.data() + end.size(), pieces.ends.emplace_back());
    std::from_chars(number.data(), number.data() + number.size(), pieces.numbers.emplace_back());
  }
  return pieces;
}

Attrs make_attrs(Context& context, std::string_view text) {
  Attrs attrs;
  for (const auto entry : split(text, ';')) {
    const std::size_t colon = entry.find(':');
    assert(colon != std::string_view::npos);
    const std::string_view field = trimmed(entry.substr(0, colon)),
                           value = trimmed(entry.substr(colon + 1));
    if (field == "dims") attrs.dims = names(context, value);
    else if (field == "dims2") attrs.dims2 = names(context, value);
    else if (field == "scalar")
      std::from_chars(value.data(), value.data() + value.size(), attrs.scalar);
    else if (field == "scalar2")
      std::from_chars(value.data(), value.data() + value.size(), attrs.scalar2);
    else if (field == "from")
      std::from_chars(value.data(), value.data() + value.size(), attrs.from);
    else if (field == "extent")
      std::from_chars(value.data(), value.data() + value.size(), attrs.extent);
    else if (field == "dtype") attrs.dtype = *parse_dtype(value);
    else if (field == "causal") attrs.causal = value == "true";
    else if (field == "shape") attrs.shape = make_type(context, value);
    else if (field == "ignore")
      std::from_chars(value.data(), value.data() + value.size(), attrs.ignore.emplace());
    else if (field == "seed") attrs.seed = context.symbol(value);
    else if (field == "pieces") attrs.pieces = make_pieces(value);
    else assert(false && "no such attribute");
  }
  return attrs;
}

std::vector<OpCase> cases_of(Op op, Context& context) {
  std::vector<OpCase> cases;
  for (const Row& row : kRows) {
    if (row.op != op) continue;
    OpCase made{op, row.what, {}, make_attrs(context, row.attrs)};
    for (const auto type : split(row.operands, ';'))
      made.operands.push_back(make_type(context, type));
    cases.push_back(std::move(made));
  }
  return cases;
}

std::vector<Type> result_types(const OpCase& op_case, const SymbolTable& symbols) {
  Inferred inferred = infer(op_case.op, op_case.operands, op_case.attrs, symbols);
  assert(inferred.error.empty());
  return std::move(inferred.types);
}

Array random_array(const Type& type, Random& random, double bound) {
  Array array{type, {}};
  for (std::int64_t i = 0; i < type.elements(); ++i) {
    double number = (2 * random.unit() - 1) * bound;
    if (std::abs(number) < 0.05) number += number < 0 ? -0.05 : 0.05;
    array.data.push_back(number);
  }
  return array;
}

std::vector<Array> random_operands(const OpCase& op_case, const SymbolTable& symbols,
                                   Random& random) {
  const Reach reach = reach_of(op_case.op);
  std::vector<Array> operands;
  for (const Type& type : op_case.operands) {
    Array array{type, {}};
    for (std::int64_t i = 0; i < type.elements(); ++i) {
      // Class and row numbers: below the smallest table in the cases.
      array.data.push_back(type.dtype == DType::i64 ? static_cast<double>(random.below(6))
                                                    : mixed(random, reach.most));
    }
    operands.push_back(std::move(array));
  }
  if (reach.positive) {
    for (double& number : operands[0].data) number = std::abs(number);
  }
  if (reach.divisor > 0) {
    for (double& number : operands[1].data) number += number < 0 ? -reach.divisor : reach.divisor;
  }
  switch (op_case.op) {
    case Op::max_grad: {
      const OpCase forward{Op::max, "", {op_case.operands[0]}, op_case.attrs};
      operands[1] = evaluate_op(Op::max, std::span(operands).first(1),
                                result_types(forward, symbols), op_case.attrs)[0];
      break;
    }
    case Op::attend_grad: {
      const OpCase forward{
          Op::attend, "", {op_case.operands.begin(), op_case.operands.begin() + 3}, op_case.attrs};
      std::vector<Array> made = evaluate_op(Op::attend, std::span(operands).first(3),
                                            result_types(forward, symbols), op_case.attrs);
      operands[3] = made[0];
      operands[4] = made[1];
      break;
    }
    default: break;
  }
  return operands;
}

}  // namespace piper::test
