#include "frontend/lsp/order_fixes.h"

#include <algorithm>

#include "frontend/ast/walk.h"
#include "frontend/lsp/names.h"

namespace piper::lsp {

namespace {

/// Each one is a check of the file.
constexpr std::size_t kMaxTried = 6;

/// A statement in its block.
struct Position {
  const ast::Block* block = nullptr;
  std::size_t index = 0;
};

/// The blocks around a place that lie in one order, the innermost first.
std::vector<Position> positions_at(const ast::Module& module, std::uint32_t at) {
  std::vector<Position> found;
  const NodesAt nodes = nodes_at(module, at);
  if (nodes.item == nullptr) return found;
  ast::NameVisitor visitor;
  visitor.statements = [&](const ast::Stmt& stmt) {
    // Statements outside of the steps of a rank are not part of the order.
    if (touches(stmt.range, at) && llvm::isa<ast::RankStmt>(stmt)) found.clear();
  };
  visitor.blocks = [&](const ast::Block& block) {
    for (std::size_t i = 0; i < block.statements.size(); ++i) {
      const SourceRange range = block.statements[i]->range;
      if (range.begin <= at && at < range.end) found.push_back({&block, i});
    }
  };
  ast::walk_names(*nodes.item, visitor);
  std::reverse(found.begin(), found.end());
  return found;
}

/// Moves statement `from` before statement `to` of its block; text between statements stays in
/// place.
Edit moved_before(Request& request, const ast::Block& block, std::size_t from, std::size_t to) {
  const SourceRange whole = cover(block.statements[to]->range, block.statements[from]->range);
  std::string text(request.text(block.statements[from]->range));
  for (std::size_t i = to; i < from; ++i) {
    const std::uint32_t end = block.statements[i]->range.end;
    text += request.text({whole.file, end, block.statements[i + 1]->range.begin});
    text += request.text(block.statements[i]->range);
  }
  return {whole, text};
}

/// The beginning of a statement, as a title shows it.
std::string shown(std::string_view statement) {
  const std::string_view line = statement.substr(0, statement.find('\n'));
  constexpr std::size_t kLongest = 40;
  return "`" + std::string(line.substr(0, kLongest)) +
         (line.size() < statement.size() || line.size() > kLongest ? "..." : "") + "`";
}

std::vector<Fix> moves(Request& request, std::uint32_t at) {
  std::vector<Fix> fixes;
  for (const Position& position : positions_at(*request.module(), at)) {
    const auto statements = position.block->statements;
    for (std::size_t later = position.index + 1;
         later < statements.size() && fixes.size() < kMaxTried; ++later) {
      const std::string title = "put " + shown(request.text(statements[later]->range)) +
                                " before " + shown(request.text(statements[position.index]->range));
      fixes.push_back({title, {moved_before(request, *position.block, later, position.index)}});
    }
  }
  return fixes;
}

std::vector<Fix> remaining_gradients(Request& request, std::uint32_t at) {
  const std::vector<Position> positions = positions_at(*request.module(), at);
  if (positions.empty()) return {};
  const ast::Block& body = *positions.back().block;
  const std::string added = "repeat left(BW) { BW }";
  const SourceRange last = body.statements.back()->range;
  const std::string_view text = request.text();
  const std::size_t line = text.rfind('\n', last.begin) + 1;
  const std::string_view before = text.substr(line, last.begin - line);
  const bool own_line = before.find_first_not_of(" \t") == std::string_view::npos;
  const std::string separator = own_line ? "\n" + std::string(before) : "; ";
  return {{"end the rank with `" + added + "`",
           {{{last.file, last.end, last.end}, separator + added}}}};
}

std::vector<Diagnostic> errors_of(service::Document& document, const Cancellation& cancellation) {
  auto checked = document.check(&cancellation);
  if (checked.status == service::Status::cancelled) throw Cancelled();
  std::erase_if(checked.diagnostics,
                [](const Diagnostic& each) { return each.severity != Severity::error; });
  return std::move(checked.diagnostics);
}

std::size_t count_of(const std::vector<Diagnostic>& diagnostics, Code code) {
  return static_cast<std::size_t>(
      std::count_if(diagnostics.begin(), diagnostics.end(),
                    [&](const Diagnostic& each) { return each.code == code; }));
}

}  // namespace

std::optional<Fix> order_fix(Request& request, Code code, std::uint32_t at) {
  if (code != Code::order_contradicts_data && code != Code::weight_gradients_left)
    return std::nullopt;
  if (request.module() == nullptr) return std::nullopt;
  const std::vector<Fix> fixes =
      code == Code::order_contradicts_data ? moves(request, at) : remaining_gradients(request, at);
  if (fixes.empty()) return std::nullopt;
  const std::vector<Diagnostic> before = errors_of(request.document(), request.cancellation());
  const std::string path = service::normal_path(request.document().path());
  for (const Fix& fix : fixes) {
    const std::string text = service::apply_fix(request.text(), request.file(), fix);
    const auto trial = request.project().with_texts({{path, text}});
    const std::vector<Diagnostic> after = errors_of(*trial->document(path), request.cancellation());
    if (after.size() < before.size() && count_of(after, code) < count_of(before, code)) return fix;
  }
  return std::nullopt;
}

}  // namespace piper::lsp
