#pragma once
// The op table: for each op its arity, attributes, code-generation class, and (in op_rules.h)
// shape, derivative, layout and cost.

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "ir/tensor/type.h"

namespace piper::tensor {

enum class Op : std::uint8_t {
#define OP(name, operands, results, attributes, code_class) name,
#include "ir/tensor/ops.def"
#undef OP
};

/// The kind of code that an op becomes; see ops.def.
enum class CodeClass : std::uint8_t { pointwise, reduction, view, index, library };

enum AttrField : std::uint16_t {
  kNone = 0,
  kDims = 1,
  kDims2 = 2,
  kScalar = 4,
  kDType = 8,
  kCausal = 16,
  kShape = 32,
  kSeed = 64,
  kIgnore = 128,
  kScalar2 = 256,
  kFrom = 512,
  kExtent = 1024,
  kPieces = 2048,
};

/// A number for each position of [0, last end): piece i, which ends before `ends[i]`, has
/// `numbers[i]`. Ends ascend.
struct Pieces {
  std::vector<std::int64_t> ends;
  std::vector<double> numbers;
  friend bool operator==(const Pieces&, const Pieces&) = default;
};

/// The attributes of one op; only the fields named in its row are set, printed and compared.
struct Attrs {
  std::vector<Symbol> dims;
  std::vector<Symbol> dims2;
  double scalar = 0;
  double scalar2 = 0;
  // Slice: the first position taken; pad, shift: the new position of the operand's first one.
  std::int64_t from = 0;
  std::int64_t extent = 0;  // slice, pad: of the result
  DType dtype = DType::f32;
  bool causal = false;
  Type shape;   // fill, iota, piecewise, broadcast, lookup_grad: the result's type
  Symbol seed;  // dropout: the logical op name that keys its random numbers
  // cross_entropy: positions with this target give 0 and no gradient.
  std::optional<std::int32_t> ignore;
  Pieces pieces;  // piecewise
  friend bool operator==(const Attrs&, const Attrs&) = default;
};

struct OpInfo {
  Op op;
  std::string_view name;
  std::uint8_t operands;
  std::uint8_t results;
  std::uint16_t attributes;  // AttrField bits
  CodeClass code_class;
};

std::span<const OpInfo> all_ops();
const OpInfo& info(Op op);
/// The name in messages about programs, which have operators for some ops: "`@`", "adding a
/// number".
std::string in_words(Op op);
std::optional<Op> parse_op(std::string_view name);

}  // namespace piper::tensor
