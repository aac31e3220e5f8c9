#pragma once
// Declarations, builtins and keywords in words, for hover, completion and signature help.

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/lsp/request.h"
#include "ir/directive/directive_rows.h"

namespace piper::lsp {

/// `schedule gpipe(p: axis, m: int)`, `mesh pair(pp: 2)`, `param steps = 400`,
/// `train net = mlp(..) on pair`: without the body.
std::string headline(const ast::Item& item);
/// The name of a declaration; missing for a `use`.
const ast::Identifier* name_of(const ast::Item& item);
/// The declaration with its name at that place, of any file of the program.
const ast::Item* item_named_at(const sema::Program& program, SourceRange name);

/// The meaning of a keyword or a setting of a train, in one line; empty if unknown.
std::string_view meaning_of_word(std::string_view word);

/// A setting as a declaration: `bucket: bytes = 25MiB`.
std::string setting_text(const directive::SettingRow& setting);
/// The settings of the directive with that keyword; none if there is no such directive.
std::span<const directive::SettingRow> settings_of(std::string_view keyword);

/// A local in words, with its declaration: `let y: tensor`, `weight up[dim, hidden]`,
/// `parameter p: axis`.
std::string describe_local(Request& request, const ast::Module& module, SourceRange declaration);

/// Text in a block of the language.
std::string code_block(std::string_view code);

}  // namespace piper::lsp
