#pragma once
// Words for the rules and tokens of the grammar in messages, and its keywords under other spellings.
//
//   noun_of(Parser::RuleDevices)   ->   "a device set such as `p[0]`"
//   meant_keyword("palce")         ->   "place"

#include <cstddef>
#include <string>
#include <string_view>

#include "antlr4-runtime.h"

namespace piper::parse {

/// The name of a rule in messages; empty for rules that only structure the grammar.
std::string_view noun_of(std::size_t rule);

/// The name of a type of tokens in messages: its text in backquotes, or words such as `a name`.
std::string token_name(antlr4::Parser* parser, std::size_t type);

/// The keyword that a misspelt word at the start of a statement or item means; empty when none is
/// near.
std::string_view meant_keyword(std::string_view word);

/// The same among the keywords that begin items.
std::string_view meant_item_keyword(std::string_view word);

}  // namespace piper::parse
