#include "ir/tensor/op.h"

#include <unordered_map>

namespace piper::tensor {

namespace {

constexpr OpInfo kOps[] = {
#define OP(name, operands, results, attributes, code_class) \
  {Op::name, #name, operands, results, attributes, CodeClass::code_class},
#include "ir/tensor/ops.def"
#undef OP
};

}  // namespace

std::span<const OpInfo> all_ops() { return kOps; }

const OpInfo& info(Op op) { return kOps[static_cast<std::size_t>(op)]; }

std::string in_words(Op op) {
  switch (op) {
    case Op::add: return "`+`";
    case Op::sub:
    case Op::neg: return "`-`";
    case Op::mul: return "`*`";
    case Op::div: return "`/`";
    case Op::contract: return "`@`";
    case Op::offset: return "adding a number";
    case Op::scale: return "multiplying by a number";
    default: return "`" + std::string(info(op).name) + "`";
  }
}

std::optional<Op> parse_op(std::string_view name) {
  static const auto* const kByName = [] {
    auto* map = new std::unordered_map<std::string_view, Op>;
    for (const OpInfo& row : kOps) map->emplace(row.name, row.op);
    return map;
  }();
  const auto found = kByName->find(name);
  if (found == kByName->end()) return std::nullopt;
  return found->second;
}

}  // namespace piper::tensor
