#include "frontend/lsp/matching_operations.h"

#include <algorithm>
#include <set>

#include "frontend/ast/source_text.h"
#include "frontend/ast/walk.h"
#include "frontend/lsp/names.h"

namespace piper::lsp {

namespace {

/// One moves a value that the other one waits for, or returns one that the other one took.
std::string_view partner_of(std::string_view part) {
  constexpr std::pair<std::string_view, std::string_view> kPairs[] = {
      {"send", "recv"}, {"gather", "reduce"}, {"enter", "leave"}};
  for (const auto& [a, b] : kPairs) {
    if (part == a) return b;
    if (part == b) return a;
  }
  return {};
}

/// `stage[r]` or `mb[i]`.
struct Place {
  std::string name, index;             // index: as it is written, empty where there is none
  std::optional<std::int64_t> number;  // of an index that is one
};

Place place_of(const ast::Expr& expr) {
  const auto* indexed = llvm::dyn_cast<ast::IndexExpr>(&expr);
  if (indexed == nullptr) return {ast::source_text(expr), {}, {}};
  Place place{ast::source_text(*indexed->base), {}, {}};
  for (const ast::Expr* index : indexed->indices)
    place.index += (place.index.empty() ? "" : ", ") + ast::source_text(*index);
  const auto* number = indexed->indices.size() == 1
                           ? llvm::dyn_cast<ast::NumberExpr>(indexed->indices.front())
                           : nullptr;
  if (number != nullptr && number->is_integer) place.number = number->integer;
  return place;
}

struct Operation {
  SourceRange range, pass_word, part_word;
  std::string text;              // of its work, with the part
  std::string_view part;         // of communication; empty: a pass
  std::optional<bool> backward;  // of a communication in an order; none in a stream
  Place region;
  std::vector<Place> dimensions;  // `mb[i]`

  bool is_at(std::uint32_t at) const {
    return (pass_word.valid() && touches(pass_word, at)) ||
           (part_word.valid() && touches(part_word, at));
  }
};

/// `stage[r].send`; null where that is no communication.
const ast::FieldExpr* communication(const ast::Expr* expr) {
  const auto* field = llvm::dyn_cast_or_null<ast::FieldExpr>(expr);
  return field != nullptr && !partner_of(field->field.name).empty() ? field : nullptr;
}

void set_part(Operation& operation, const ast::FieldExpr& field) {
  operation.part = field.field.name;
  operation.part_word = field.field.range;
  operation.region = place_of(*field.base);
}

Operation operation_of(const ast::OpExpr& op, std::set<const ast::Expr*>& taken) {
  Operation operation{
      op.range, op.pass_range,
      {},       op.operand != nullptr ? ast::source_text(*op.operand) : std::string(),
      {},       {},
      {},       {}};
  const auto* selector = llvm::dyn_cast_or_null<ast::SelectorExpr>(op.operand);
  const ast::FieldExpr* field = communication(selector != nullptr ? selector->head : op.operand);
  if (field == nullptr) return operation;
  taken.insert(field);
  set_part(operation, *field);
  operation.backward = op.pass != Pass::F && op.pass != Pass::R;
  for (const ast::Coordinate& coordinate :
       selector != nullptr ? selector->coordinates : std::span<const ast::Coordinate>()) {
    Place place{std::string(coordinate.dimension.name), {}, {}};
    if (coordinate.indices.size() == 1) {
      const auto* number = llvm::dyn_cast<ast::NumberExpr>(coordinate.indices.front());
      if (number != nullptr && number->is_integer) place.number = number->integer;
    }
    operation.dimensions.push_back(std::move(place));
  }
  return operation;
}

/// Whether `a` and `b` may name the same work: numbers are compared; other indices are known only
/// in a plan.
bool may_be_same(const std::vector<Place>& a, const std::vector<Place>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const Place& x, const Place& y) {
    return x.name == y.name && (!x.number || !y.number || *x.number == *y.number);
  });
}

/// Whether one is at the other end of the other. In an order a forward goes from a part of the
/// model to the next one, a backward to the one before.
bool meet(const Operation& a, const Operation& b) {
  if (a.region.name != b.region.name) return false;
  if (!a.backward) return a.region.index == b.region.index;
  if (!may_be_same(a.dimensions, b.dimensions)) return false;
  if (!a.region.number || !b.region.number) return true;
  const Operation& sends = a.part == "send" ? a : b;
  const Operation& receives = a.part == "send" ? b : a;
  return *receives.region.number == *sends.region.number + (*a.backward ? -1 : 1);
}

bool match(const Operation& a, const Operation& b) {
  if (a.part.empty() || a.part == b.part)
    return a.part == b.part && a.backward == b.backward && a.text == b.text;
  return b.part == partner_of(a.part) && a.backward == b.backward && meet(a, b);
}

std::vector<Operation> operations_of(const ast::Item& item) {
  std::vector<Operation> all;
  std::set<const ast::Expr*> taken;  // parts of operations
  ast::NameVisitor visitor;
  visitor.expressions = [&](const ast::Expr& expr) {
    if (const auto* op = llvm::dyn_cast<ast::OpExpr>(&expr)) {
      all.push_back(operation_of(*op, taken));
    } else if (const ast::FieldExpr* field = communication(&expr);
               field != nullptr && !taken.contains(field)) {
      Operation operation{field->range, {}, {}, ast::source_text(*field), {}, {}, {}, {}};
      set_part(operation, *field);
      all.push_back(std::move(operation));
    }
  };
  ast::walk_names(item, visitor);
  return all;
}

}  // namespace

std::vector<SourceRange> matching_operations(Request& request, std::uint32_t at) {
  const ast::Module* module = request.module();
  if (module == nullptr) return {};
  const NodesAt nodes = nodes_at(*module, at);
  if (nodes.item == nullptr) return {};
  const std::vector<Operation> all = operations_of(*nodes.item);
  const auto here =
      std::find_if(all.begin(), all.end(), [&](const Operation& each) { return each.is_at(at); });
  if (here == all.end()) return {};
  std::vector<SourceRange> ranges;
  for (const Operation& each : all) {
    if (match(*here, each)) ranges.push_back(each.range);
  }
  return ranges;
}

}  // namespace piper::lsp
