#pragma once
// Forms of other languages: reported with the form of this language and replaced by it, so that one
// mistake gives one message.
//
//   let first = r == 0 && p > 1     ->   error P1018 at `&&`, hint: write `and`; the parser reads `and`

#include <span>
#include <string_view>

#include "frontend/parse/raw_token.h"
#include "frontend/source/selected_reports.h"

namespace piper::parse {

struct ForeignForm {
  enum class Where : std::uint8_t {
    anywhere,
    item,       // begins a declaration
    statement,  // begins a statement or a step
    clause,     // as `statement`, or after `}`; its line opens a block
    operand,    // after a value, on its line
    declared,   // after the first name of a statement
    let,        // after the name of a `let` or `var`
    step,       // after an operation, before another
    index,      // inside the brackets of an index
    argument,   // after the name that begins an argument
  };
  std::string_view text;
  Where where;
  std::string_view instead;  // what the parser reads in its place; it may be nothing
  // $name: the name before it; $rest: the statement after it; $left, $right: an index around it;
  // $next: one more than $right.
  std::string_view hint;
  std::string_view example;  // a declaration where the form is one, a statement otherwise
};

/// The table. A new form needs only a row: a test runs the examples.
std::span<const ForeignForm> foreign_forms();

void replace_foreign_forms(RawTokens& tokens, std::string_view text, FileId file,
                           SelectedReports& sink);

}  // namespace piper::parse
