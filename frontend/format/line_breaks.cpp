#include "frontend/format/line_breaks.h"

#include <algorithm>

namespace piper::format {

namespace {

using parse::LexemeKind;

bool is_operand_end(const Word& word) {
  return word.kind == LexemeKind::name || word.kind == LexemeKind::number ||
         word.kind == LexemeKind::string || word.kind == LexemeKind::close || word.is("true") ||
         word.is("false") || word.is("model");
}

/// A block whose contents take several lines has its brackets at line ends.
void break_blocks(std::vector<Word>& words) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (!words[i].is("{") || words[i].partner == i) continue;
    const std::size_t close = words[i].partner;
    bool several = false;
    for (std::size_t j = i + 1; j < close; ++j)
      several = several || words[j].breaks || words[j].kind == LexemeKind::comment;
    if (close == i + 1) {
      words[close].breaks = false;
    } else if (several || words[close].breaks) {
      if (words[i + 1].kind != LexemeKind::comment) words[i + 1].breaks = true;
      words[i + 1].blank_before = false;
      words[close].breaks = true;
      words[close].blank_before = false;
    }
  }
}

}  // namespace

bool can_end(const Word& word) { return is_operand_end(word) || word.kind == LexemeKind::pass; }

void match_brackets(std::vector<Word>& words) {
  std::vector<std::size_t> open;
  for (std::size_t i = 0; i < words.size(); ++i) {
    words[i].partner = i;
    if (words[i].kind == LexemeKind::open) open.push_back(i);
    if (words[i].kind != LexemeKind::close || open.empty()) continue;
    words[i].partner = open.back();
    words[open.back()].partner = i;
    open.pop_back();
  }
}

std::vector<Word> words_of(std::string_view text) {
  std::vector<Word> words;
  std::uint32_t end = 0;
  for (const parse::Lexeme& lexeme : parse::lexemes(text)) {
    Word word;
    word.text = text.substr(lexeme.begin, lexeme.end - lexeme.begin);
    word.kind = lexeme.kind;
    word.begin = lexeme.begin;
    const std::string_view between = text.substr(end, lexeme.begin - end);
    word.breaks = lexeme.first_on_line;
    word.blank_before = std::count(between.begin(), between.end(), '\n') > 1;
    if (word.is("*") || word.is("/") || word.is("%")) {
      word.spaced = !between.empty() || (lexeme.end < text.size() &&
                                         (text[lexeme.end] == ' ' || text[lexeme.end] == '\t' ||
                                          text[lexeme.end] == '\n' || text[lexeme.end] == '\r'));
    }
    if (word.kind == LexemeKind::comment) {
      word.text = parse::without_blank_end(word.text);
      if (!words.empty()) words.back().spaced = true;  // blanks will stand before the comment
    }
    words.push_back(word);
    end = lexeme.end;
  }
  match_brackets(words);
  break_blocks(words);
  return words;
}

void open_up(std::vector<Word>& words, std::size_t open) {
  const std::size_t close = words[open].partner;
  std::size_t kept = open + 1, depth = 0;
  bool breaks = true;
  for (std::size_t i = open + 1; i < close; ++i) {
    if (depth == 0 && words[i].is(";")) {
      breaks = true;
      continue;
    }
    const bool has_partner = words[i].partner != i;
    if (has_partner && words[i].kind == LexemeKind::open) ++depth;
    if (has_partner && words[i].kind == LexemeKind::close) --depth;
    words[kept] = words[i];
    if (breaks) words[kept].breaks = true;
    breaks = false;
    ++kept;
  }
  words[close].breaks = true;
  words.erase(words.begin() + static_cast<std::ptrdiff_t>(kept),
              words.begin() + static_cast<std::ptrdiff_t>(close));
  match_brackets(words);
}

bool has_blank(const std::vector<Word>& words, std::size_t left) {
  const Word& a = words[left];
  const Word& b = words[left + 1];
  if (b.is(",") || b.is(";") || b.is(":") || b.is(")") || b.is("]") || b.is(".") || b.is(".."))
    return false;
  if (a.is("(") || a.is("[") || a.is(".") || a.is("..")) return false;
  if ((b.is("(") || b.is("[")) && (a.kind == LexemeKind::name || a.is(")") || a.is("]")))
    return false;
  if (b.is("[") && a.kind == LexemeKind::string) return false;  // a tensor of a file
  // `-x`
  const auto is_sign = [&](std::size_t i) {
    return words[i].is("-") && (i == 0 || !is_operand_end(words[i - 1]));
  };
  if (is_sign(left)) return false;
  for (const Word* word : {&a, &b}) {
    if (word->is("*") || word->is("/") || word->is("%")) return word->spaced;
  }
  return true;
}

}  // namespace piper::format
