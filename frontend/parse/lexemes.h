#pragma once
// The text as the lexer splits it, for code that needs words and not their meaning: formatting,
// colours, the words before a cursor.
//
//   for (const Lexeme& lexeme : lexemes("let x = 1  // one")) ...   // keyword, name, sign, number, comment
//
// Guarantees: in text order, without overlap; between two lexemes there are only blanks and line
// breaks. Never fails: text that is not a token is `unknown`.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace piper::parse {

enum class LexemeKind : std::uint8_t {
  keyword,
  pass,
  name,
  number,
  string,
  sign,
  open,
  close,
  comment,
  unknown
};

struct Lexeme {
  LexemeKind kind{};
  bool first_on_line = false;
  std::uint32_t begin = 0, end = 0;
};

std::vector<Lexeme> lexemes(std::string_view text);

/// A comment without the blanks at its end, which belong to the line end.
std::string_view without_blank_end(std::string_view comment);

/// Whether a statement or item that ends here needs another line: a bracket is open, the last token
/// cannot end a statement, or documentation comes last.
bool goes_on(std::string_view text);

/// The reserved words, sorted; pass letters are not among them.
std::vector<std::string> keywords();

}  // namespace piper::parse
