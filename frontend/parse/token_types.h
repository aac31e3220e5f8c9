#pragma once
// Predicates over the types of tokens of the generated lexer: which of them end and begin
// statements, operands and brackets.

#include <cstddef>

namespace piper::parse {

/// Whether a line end after a token of this type can end a statement.
bool can_end_statement(std::size_t type);

/// Whether an operand of an operator can end with a token of this type.
bool ends_operand(std::size_t type);

/// Whether this is a keyword that only begins items.
bool only_begins_item(std::size_t type);

/// Whether this is a keyword that only begins statements.
bool only_begins_statement(std::size_t type);

/// Whether tokens of this type never occur between `(` and `)` or `[` and `]`.
bool ends_brackets(std::size_t type);

/// Whether a token of this type continues the statement of the line before, and begins none.
bool continues_statement(std::size_t type);

/// Whether a token of this type makes the AST deeper: operators, `if`, and the ends of `( )` and
/// `[ ]`.
bool makes_deeper(std::size_t type);

/// The type of the bracket that closes `opener`, which is `(`, `[` or `{`.
std::size_t closer_of(std::size_t opener);

}  // namespace piper::parse
