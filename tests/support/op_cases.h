#pragma once
// Cases of every op in the table: legal operands with random numbers inside the op's domain, for
// tests that run over all ops.

#include <string>
#include <vector>

#include "tests/support/evaluate.h"
#include "tests/support/random_cases.h"

namespace piper::test {

struct OpCase {
  tensor::Op op{};
  std::string what;  // "broadcast over batch"
  std::vector<tensor::Type> operands;
  tensor::Attrs attrs;
};

/// `f64[batch: 4*, dim: 3]`; the text must be valid.
tensor::Type make_type(Context& context, std::string_view text);
/// `dims: a, b; dims2: c; scalar: 0.5; dtype: f64; causal: true; shape: f64[a: 2]; seed: x`; the
/// text must be valid.
tensor::Attrs make_attrs(Context& context, std::string_view text);

/// All cases of an op, in f64; extents are even, so that every dimension can be split in two.
std::vector<OpCase> cases_of(tensor::Op op, Context& context);

/// Random numbers for the operands of a case: inside the op's domain and in all parts of it
/// (`Reach` in op_cases.cpp), away from its kinks, indices within their table. An operand of an
/// adjoint op that must be the forward op's result is that result.
std::vector<Array> random_operands(const OpCase& op_case, const SymbolTable& symbols,
                                   Random& random);

/// The result types of a case.
std::vector<tensor::Type> result_types(const OpCase& op_case, const SymbolTable& symbols);

/// Numbers in [-bound, bound], none closer than 0.05 to zero.
Array random_array(const tensor::Type& type, Random& random, double bound = 1.5);

}  // namespace piper::test
