#include "frontend/lower/evaluate/observations.h"

#include <algorithm>

#include "frontend/ast/source_text.h"
#include "frontend/ast/walk.h"
#include "frontend/lower/evaluate/value_text.h"

namespace piper::lower {

namespace {

constexpr std::uint32_t kLookedAt = 64;

std::string in_words(const Value& value, const tensor::Graph* model) {
  if (const auto* tensor = value.get<TensorValue>(); tensor != nullptr && model != nullptr)
    return tensor::print(model->value(tensor->id).type, model->context().symbols);
  const Values* list = value.shared<Values>();
  if (list == nullptr || list->size() > 8) return describe(value);
  std::string text;
  for (const Value& element : *list) text += (text.empty() ? "" : ", ") + in_words(element, model);
  return "[" + text + "]";
}

void add_value(Observations::Seen& seen, std::string words) {
  if (std::find(seen.values.begin(), seen.values.end(), words) != seen.values.end()) return;
  if (seen.values.size() == Observations::kShown) {
    seen.more = true;
  } else {
    seen.values.push_back(std::move(words));
  }
}

/// Whether both take from one end of one cursor: `BI a` takes the same element as `B a`.
bool same_end(const ast::OpExpr& a, const ast::OpExpr& b) {
  const auto backward = [](Pass pass) { return pass == Pass::B || pass == Pass::BI; };
  return (a.pass == b.pass || (backward(a.pass) && backward(b.pass))) &&
         ast::source_text(*a.operand) == ast::source_text(*b.operand);
}

}  // namespace

Observations::Observations(const ast::Module& of) : file_(of.file) {
  SourceRange loop;  // the outermost one around
  ast::NameVisitor visitor;
  visitor.statements = [&](const ast::Stmt& stmt) {
    if (llvm::isa<ast::RankStmt>(stmt)) loop = {};  // what goes around its steps is none of theirs
    const bool inside = loop.valid() && stmt.range.begin < loop.end;
    if (!inside && (llvm::isa<ast::RepeatStmt>(stmt) || llvm::isa<ast::ForStmt>(stmt)))
      loop = stmt.range;
  };
  visitor.expressions = [&](const ast::Expr& expr) {
    if (!loop.valid() || expr.range.begin > loop.end) return;
    const auto* op = llvm::dyn_cast<ast::OpExpr>(&expr);
    const auto* cursor =
        op != nullptr ? llvm::dyn_cast_or_null<ast::NameExpr>(op->operand) : nullptr;
    if (cursor == nullptr || cursor->referent != ast::Referent::local || op->pass == Pass::R)
      return;
    std::vector<Left>& ops = left_[loop];
    if (std::none_of(ops.begin(), ops.end(),
                     [&](const Left& known) { return same_end(*known.op, *op); }))
      ops.push_back({op});
  };
  for (const ast::Item* item : of.items) {
    loop = {};
    ast::walk_names(*item, visitor);
  }
}

std::span<Observations::Left> Observations::left_behind(SourceRange loop) {
  const auto found = left_.find(loop);
  if (found == left_.end() || found->second.front().seen.looked_at == kLookedAt) return {};
  return found->second;
}

std::span<const Observations::Left> Observations::left_behind(SourceRange loop) const {
  const auto found = left_.find(loop);
  return found != left_.end() ? std::span<const Left>(found->second) : std::span<const Left>();
}

void Observations::note_left(Left& left, std::int64_t count) {
  ++left.seen.looked_at;
  add_value(left.seen, std::to_string(count));
}

void Observations::note(SourceRange range, const Value& value,
                        const directive::Surroundings& around, const tensor::Graph* model) {
  if (range.file != file_ || value.none()) return;
  if (asked_ && asked_->range == range) {
    asked_->text = value_text(value, around, model);
    asked_->is_order = value.shared<OrderValue>() != nullptr;
  }
  Seen& seen = seen_[range];
  if (seen.more || seen.looked_at == kLookedAt) return;
  ++seen.looked_at;
  const std::size_t known = seen.values.size();
  add_value(seen, in_words(value, model));
  const auto* tensor = value.get<TensorValue>();
  if (seen.values.size() > known && tensor != nullptr && model != nullptr)
    seen.bytes.push_back(model->value(tensor->id).type.bytes());
}

const Observations::Seen* Observations::of(SourceRange range) const {
  const auto found = seen_.find(range);
  return found != seen_.end() ? &found->second : nullptr;
}

}  // namespace piper::lower
