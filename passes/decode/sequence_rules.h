#pragma once
// Which operations can run for one position of a sequence. Used by token_program.cpp alone.

#include <span>
#include <string>

#include "ir/tensor/graph.h"

namespace piper::passes {

/// An operand, and the dimension of its positions; invalid: it depends on no token.
struct OperandOfNode {
  const tensor::Type* type = nullptr;
  Symbol sequence;
};

struct SequenceUse {
  std::string refused;  // why the operation needs other positions; empty: it does not
  std::string hint;
  Symbol result;   // the dimension of the positions of its results
  Symbol aligned;  // operands that depend on no token are read at the position along it
  // It is attention over the keys up to its position.
  bool cached = false;
};

/// At least one operand depends on tokens.
SequenceUse sequence_use(const tensor::Node& node, std::span<const OperandOfNode> operands,
                         const SymbolTable& symbols);

}  // namespace piper::passes
