// Folding and growing selections: by the nodes of the syntax tree.

#include <algorithm>

#include "frontend/ast/walk.h"
#include "frontend/lsp/methods.h"

namespace piper::lsp {

json::Value folding_range(Request& request) {
  json::Array folds;
  const ast::Module* module = request.module();
  if (module == nullptr) return folds;
  const auto line = [&](std::uint32_t offset) {
    return static_cast<std::int64_t>(request.files().line_column(request.file(), offset).line) - 1;
  };
  const auto fold = [&](std::int64_t first, std::int64_t last, const char* kind) {
    if (last <= first) return;
    json::Object made{{"startLine", first}, {"endLine", last}};
    if (kind != nullptr) made["kind"] = kind;
    folds.push_back(std::move(made));
  };
  ast::NameVisitor visitor;
  // The line of the `}` stays.
  const auto fold_braces = [&](SourceRange range) {
    fold(line(range.begin), line(std::max(range.end, std::uint32_t{1}) - 1) - 1, nullptr);
  };
  visitor.blocks = [&](const ast::Block& block) { fold_braces(block.range); };
  visitor.names_items = [&](const ast::NamesItem& names) { fold_braces(names.body); };
  const ast::Item* first_use = nullptr;
  const ast::Item* last_use = nullptr;
  for (const ast::Item* item : module->items) {
    ast::walk_names(*item, visitor);
    if (!llvm::isa<ast::UseItem>(item)) continue;
    if (first_use == nullptr) first_use = item;
    last_use = item;
  }
  if (first_use != nullptr)
    fold(line(first_use->range.begin), line(last_use->range.begin), "imports");
  // Comments on lines of their own, one after the other.
  std::int64_t first = -1, last = -2;
  for (const ast::Comment& comment : module->comments) {
    if (comment.place != ast::CommentPlace::before) continue;
    const std::int64_t here = line(comment.range.begin);
    if (here != last + 1) {
      if (first >= 0) fold(first, last, "comment");
      first = here;
    }
    last = here;
  }
  if (first >= 0) fold(first, last, "comment");
  return folds;
}

json::Value selection_range(Request& request) {
  const json::Array* positions = request.params().getArray("positions");
  if (positions == nullptr) throw Refusal{ErrorCode::invalid_params, "`positions` is missing"};
  json::Array list;
  const ast::Module* module = request.module();
  for (const json::Value& position : *positions) {
    const std::uint32_t at = request.offset(&position);
    std::vector<SourceRange> around;
    if (module != nullptr) {
      around.push_back(module->range);
      ast::walk(*module, [&](SourceRange range, bool) {
        if (range.end > range.begin && touches(range, at)) around.push_back(range);
      });
    }
    if (around.empty()) around.push_back({request.file(), at, at});
    // Each inside the one before.
    std::stable_sort(around.begin(), around.end(), [](SourceRange a, SourceRange b) {
      return a.end - a.begin > b.end - b.begin;
    });
    json::Value nested = nullptr;
    SourceRange outer;
    for (const SourceRange range : around) {
      if (outer.valid() && (range == outer || range.begin < outer.begin || range.end > outer.end))
        continue;
      json::Object made{{"range", request.file().valid()
                                      ? request.json(range)
                                      : json::Object{{"start", to_json(LineColumn())},
                                                     {"end", to_json(LineColumn())}}}};
      if (outer.valid()) made["parent"] = std::move(nested);
      nested = std::move(made);
      outer = range;
    }
    list.push_back(std::move(nested));
  }
  return list;
}

}  // namespace piper::lsp
