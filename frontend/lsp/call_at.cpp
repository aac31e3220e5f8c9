#include "frontend/lsp/call_at.h"

#include <algorithm>
#include <utility>

#include "frontend/ast/source_text.h"
#include "frontend/lsp/builtin_meanings.h"
#include "frontend/lsp/describe.h"

namespace piper::lsp {

namespace {

using parse::Lexeme;
using parse::LexemeKind;

Callee callee_of(const sema::Function& function) {
  const ast::FunctionItem& item = *function.syntax;
  Callee callee;
  callee.text = headline(item);
  callee.doc = item.doc;
  for (std::size_t i = 0; i < item.params.size(); ++i) {
    const ast::Param& param = item.params[i];
    callee.params.push_back({std::string(param.name.name),
                             ast::source_text(std::span(&param, 1)),
                             {},
                             i < function.params.size() ? function.params[i] : sema::Type(),
                             param.default_value != nullptr});
  }
  return callee;
}

Callee callee_of(const sema::Signature& row) {
  Callee callee;
  callee.text = row.text;
  callee.doc = meaning_of(row.id);
  callee.open = row.open;
  callee.variadic = row.variadic;
  callee.rest = row.rest;
  for (const sema::BuiltinParam& param : row.params) {
    std::string text = std::string(param.name) + ":";
    // As the signature writes it.
    std::size_t begin = std::min(callee.text.find("(" + text), callee.text.find(" " + text));
    if (begin != std::string::npos) {
      ++begin;
      std::size_t end = begin, depth = 0;
      for (; end < callee.text.size(); ++end) {
        const char c = callee.text[end];
        if (c == '(' || c == '[') ++depth;
        if (depth == 0 && (c == ',' || c == ')')) break;
        if (c == ')' || c == ']') --depth;
      }
      text = callee.text.substr(begin, end - begin);
    }
    callee.params.push_back({std::string(param.name), text,
                             std::string(meaning_of_argument(row.name, param.name)), param.type,
                             param.optional});
  }
  return callee;
}

}  // namespace

std::vector<Callee> callees_of(Request& request, std::string_view name, bool method) {
  std::vector<Callee> callees;
  if (const sema::Program* program = request.program(); program != nullptr && !method) {
    // Declarations of the file hide those of used files, which hide builtins.
    const sema::Module& own = *program->modules.front();
    for (const bool used : {false, true}) {
      for (const sema::Function& function : program->functions) {
        const bool here = function.module.index() == 0;
        const bool brought =
            std::find(own.uses.begin(), own.uses.end(), function.module) != own.uses.end();
        if (function.name() == name && callees.empty() && (used ? brought : here))
          callees.push_back(callee_of(function));
      }
    }
  }
  if (!callees.empty()) return callees;
  for (const sema::Signature* row : sema::find_builtins(name, method)) {
    if (!row->is_value) callees.push_back(callee_of(*row));
  }
  return callees;
}

std::optional<CallAt> call_at(Request& request, std::uint32_t at) {
  const std::string_view source = request.text();
  std::vector<Lexeme> before;
  for (const Lexeme& lexeme : parse::lexemes(source)) {
    if (lexeme.begin >= at) break;
    if (lexeme.kind == LexemeKind::comment) {
      if (lexeme.end >= at) return std::nullopt;
      continue;
    }
    before.push_back(lexeme);
  }
  const auto word = [&](std::size_t i) {
    return source.substr(before[i].begin, before[i].end - before[i].begin);
  };
  // Back to the `(` that is open; a statement of a block cannot be inside one.
  std::size_t depth = 0, open = before.size();
  while (open > 0) {
    const Lexeme& lexeme = before[open - 1];
    if (lexeme.kind == LexemeKind::close) ++depth;
    if (lexeme.kind == LexemeKind::open) {
      if (depth == 0) break;
      --depth;
    }
    --open;
  }
  if (open == 0 || word(open - 1) != "(" || open < 2 || before[open - 2].kind != LexemeKind::name)
    return std::nullopt;
  const std::size_t callee = open - 2;
  const std::string_view outer = callee > 0 ? word(callee - 1) : std::string_view();
  // A declaration is no call.
  if (outer == "def" || outer == "schedule" || outer == "model" || outer == "mesh")
    return std::nullopt;
  CallAt call;
  call.callees = callees_of(request, word(callee), outer == ".");
  std::size_t begin = open;  // of the argument
  depth = 0;
  const auto finish = [&](std::size_t end) {
    const bool named =
        end >= begin + 2 && before[begin].kind != LexemeKind::open && word(begin + 1) == ":";
    call.follows_name = call.follows_name || named;
    if (named) {
      call.named.insert(std::string(word(begin)));
    } else if (end > begin) {
      ++call.positional;
    }
  };
  for (std::size_t i = open; i < before.size(); ++i) {
    if (before[i].kind == LexemeKind::open) ++depth;
    if (before[i].kind == LexemeKind::close) --depth;
    if (depth > 0 || word(i) != ",") continue;
    finish(i);
    ++call.argument;
    begin = i + 1;
  }
  if (begin + 1 < before.size() && word(begin + 1) == ":") call.argument_name = word(begin);
  call.opens_name = !call.argument_name.empty();
  const bool typing = before.size() == begin + 1 && before[begin].end >= at;
  call.at_begin = before.size() == begin || typing;
  // Arguments after the cursor count as given too.
  std::size_t level = 0;
  std::string_view last, before_last;
  for (const Lexeme& lexeme : parse::lexemes(source.substr(at))) {
    const std::string_view text = source.substr(at + lexeme.begin, lexeme.end - lexeme.begin);
    if (text == "{" || text == "}" || (lexeme.kind == LexemeKind::close && level == 0)) break;
    if (lexeme.kind == LexemeKind::open) ++level;
    if (lexeme.kind == LexemeKind::close) --level;
    if (level == 0 && text == ":" && before_last == ",") call.named.insert(std::string(last));
    before_last = std::exchange(last, text);
  }
  return call;
}

}  // namespace piper::lsp
