#include "frontend/parse/token_types.h"

#include "antlr4-runtime.h"
#include "frontend/parse/directive_tokens.h"
#include "grammar_generated/PipeLexer.h"

namespace piper::parse {

namespace {
using Lexer = generated::PipeLexer;
}  // namespace

bool can_end_statement(std::size_t type) {
  switch (type) {
    case Lexer::NAME:
    case Lexer::MODEL:
    case Lexer::NUMBER:
    case Lexer::STRING:
    case Lexer::TRUE:
    case Lexer::FALSE:
    case Lexer::PASS:
    case Lexer::RPAREN:
    case Lexer::RBRACKET:
    case Lexer::RBRACE: return true;
    default: return false;
  }
}

bool ends_operand(std::size_t type) {
  switch (type) {
    case Lexer::NAME:
    case Lexer::NUMBER:
    case Lexer::STRING:
    case Lexer::TRUE:
    case Lexer::FALSE:
    case Lexer::RPAREN:
    case Lexer::RBRACKET: return true;
    default: return false;
  }
}

bool only_begins_item(std::size_t type) {
  switch (type) {
    case Lexer::USE:
    case Lexer::PARAM:
    case Lexer::MESH:
    case Lexer::DEF:
    case Lexer::SCHEDULE:
    case Lexer::TRAIN:
    case Lexer::MACHINE:
    case Lexer::NAMES: return true;
    default: return false;
  }
}

bool only_begins_statement(std::size_t type) {
  switch (type) {
    case Lexer::LET:
    case Lexer::VAR:
    case Lexer::RETURN:
    case Lexer::REQUIRE:
    case Lexer::INPUT:
    case Lexer::WEIGHT:
    case Lexer::REGION:
    case Lexer::LOSS:
    case Lexer::RANK:
    case Lexer::REPEAT:
    case Lexer::AT: return true;
    default: return directive_of(type).has_value();
  }
}

bool ends_brackets(std::size_t type) {
  switch (type) {
    case Lexer::LBRACE:
    case Lexer::RBRACE:
    case Lexer::SEMI:
    case Lexer::ON:
    case Lexer::INTO:
    case Lexer::OVER:
    case Lexer::WITH:
    case Lexer::BACKWARD:
    case Lexer::ARROW: return true;
    default: return false;
  }
}

bool continues_statement(std::size_t type) {
  switch (type) {
      // clang-format off
    case Lexer::ELSE: case Lexer::PLUS: case Lexer::MINUS: case Lexer::STAR: case Lexer::SLASH:
    case Lexer::PERCENT: case Lexer::CONTRACT: case Lexer::RANGE: case Lexer::EQUAL:
    case Lexer::NOT_EQUAL: case Lexer::LESS: case Lexer::LESS_EQUAL: case Lexer::GREATER:
    case Lexer::GREATER_EQUAL: case Lexer::AND: case Lexer::OR: case Lexer::AMPERSAND:
    case Lexer::DOT: case Lexer::COMMA: case Lexer::WITH: case Lexer::ON: case Lexer::OVER:
    case Lexer::INTO: case Lexer::BY: case Lexer::BACKWARD: case Lexer::THEN: case Lexer::ARROW:
      // clang-format on
      return true;
    default: return false;
  }
}

bool makes_deeper(std::size_t type) {
  switch (type) {
      // clang-format off
    case Lexer::PLUS: case Lexer::MINUS: case Lexer::STAR: case Lexer::SLASH: case Lexer::PERCENT:
    case Lexer::CONTRACT: case Lexer::RANGE: case Lexer::BY: case Lexer::EQUAL:
    case Lexer::NOT_EQUAL: case Lexer::LESS: case Lexer::LESS_EQUAL: case Lexer::GREATER:
    case Lexer::GREATER_EQUAL: case Lexer::AND: case Lexer::OR: case Lexer::NOT: case Lexer::IF:
    case Lexer::DOT: case Lexer::RPAREN: case Lexer::RBRACKET:
      // clang-format on
      return true;
    default: return false;
  }
}

std::size_t closer_of(std::size_t opener) {
  return opener == Lexer::LPAREN     ? Lexer::RPAREN
         : opener == Lexer::LBRACKET ? Lexer::RBRACKET
                                     : Lexer::RBRACE;
}

}  // namespace piper::parse
