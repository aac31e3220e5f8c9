#pragma once
// Helpers of the shape rules: the operands of one op, and error texts. Used by infer*.cpp alone.

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ir/tensor/op_rules.h"

namespace piper::tensor {

class ShapeRule {
 public:
  ShapeRule(Op op, std::span<const Type> operands, const Attrs& attrs, const SymbolTable& symbols,
            std::string_view called)
      : op(op), operands(operands), attrs(attrs), symbols(symbols), called(called) {}

  Inferred run();

  const Op op;
  const std::span<const Type> operands;
  const Attrs& attrs;
  const SymbolTable& symbols;
  const std::string_view called;  // the op's name in error texts

 private:
  // ---- results
  static Inferred ok(Type type) { return {{std::move(type)}, {}}; }
  static Inferred ok(std::vector<Type> types) { return {std::move(types), {}}; }
  Inferred fail(std::string why) const { return {{}, std::move(why), mixes_dtypes_}; }

  // ---- words
  std::string show(const Type& type) const { return "`" + print(type, symbols) + "`"; }
  std::string show(Symbol name) const { return "`" + std::string(symbols.text(name)) + "`"; }
  std::string show_op() const { return "`" + std::string(called) + "`"; }
  /// "`f32[a: 2]`, `f32[b: 3]` and `f32[]`".
  std::string show_operands() const;

  // ---- checks: an error text, empty if it holds
  std::string all_floating(std::size_t from, std::size_t to);
  std::string all_in(const std::vector<Symbol>& dims, const Type& type) const;
  /// One dimension is named, operand `i` has it, and it counts no samples.
  std::string goes_along_one(std::size_t i);
  std::string same_type(std::size_t a, std::size_t b) const;
  std::string same_dim(const Dim& a, const Dim& b) const;

  // ---- rules by kind (infer.cpp, infer_index.cpp, infer_library.cpp)
  Inferred pointwise();
  Inferred reduce();
  Inferred along_one();
  Inferred cross_entropy(bool gradient);
  Inferred lookup();
  Inferred lookup_grad();
  Inferred iota();
  Inferred piecewise();
  Inferred slice();
  Inferred pad();
  Inferred shift();
  Inferred concat();
  Inferred rotary();
  Inferred rename();
  Inferred broadcast();
  Inferred permute();
  Inferred contract();
  Inferred contract_add();
  Inferred attend();
  Inferred attend_grad();

  bool mixes_dtypes_ = false;  // the error of a check
};

/// Values with more elements are refused, so that sizes in bytes and offsets stay far below 2^63.
inline constexpr std::int64_t kMaxElements = std::int64_t{1} << 48;
/// Dimensions are found by their names, one after the other.
inline constexpr std::size_t kMaxDims = 256;

/// An error text if no value may have `type` (a repeated name, an extent below 1, too many
/// dimensions or elements), else empty.
std::string check_type(const Type& type, const SymbolTable& symbols);

/// `type` without the dimensions `dims`.
Type without(const Type& type, std::span<const Symbol> dims);

}  // namespace piper::tensor
