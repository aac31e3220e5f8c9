#include "frontend/repl/entry.h"

#include <algorithm>
#include <vector>

#include "frontend/parse/lexemes.h"
#include "ir/directive/directive_rows.h"

namespace piper::repl {
namespace {

using parse::Lexeme;
using parse::LexemeKind;

struct Statement {
  std::string_view word, belongs;
};

constexpr std::string_view kStrategy = "a schedule or train";

/// Statements other than directives.
constexpr Statement kStatements[] = {
    {"for", "a body in braces"},  {"repeat", "a body in braces"},
    {"if", "a body in braces"},   {"return", "a function, `def` or `model`"},
    {"require", kStrategy},       {"input", "a model"},
    {"weight", "a model"},        {"region", "a model"},
    {"loss", "a model"},          {"order", kStrategy},
    {"rank", "an order"},         {"cursor", "a rank of an order"},
    {"at", "a rank of an order"},
};

constexpr std::string_view kItems[] = {"use",   "param", "mesh",    "def",  "schedule",
                                       "model", "train", "machine", "names"};

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r\n") + 1 - first);
}

/// The lexemes of a text without its comments.
std::vector<Lexeme> words_of(std::string_view text) {
  std::vector<Lexeme> list = parse::lexemes(text);
  std::erase_if(list, [](const Lexeme& lexeme) { return lexeme.kind == LexemeKind::comment; });
  return list;
}

class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text), list_(words_of(text)) {}

  Entry read() const {
    Entry entry{.text = std::string(text_)};
    if (list_.empty()) return entry;
    const std::string_view first = at(0);
    entry.word = std::string(first);
    // `model` alone is an expression: the whole of the model that a schedule meets.
    const bool item = std::find(std::begin(kItems), std::end(kItems), first) != std::end(kItems) &&
                      list_[0].kind == LexemeKind::keyword;
    if (item && (first != "model" || (list_.size() > 1 && is_name(1)))) {
      entry.sort = EntrySort::item;
      entry.name = first == "use" ? path() : list_.size() > 1 ? std::string(at(1)) : "";
    } else if (first == "let" || first == "var") {
      entry.sort = EntrySort::binding;
      entry.name = list_.size() > 1 ? std::string(at(1)) : "";
    } else if (is_name(0) && list_.size() > 1 && at(1) == "=") {
      entry.sort = EntrySort::assignment;
      entry.name = std::string(first);
    } else {
      entry.belongs = belongs();
      entry.sort = entry.belongs.empty() ? EntrySort::expression : EntrySort::misplaced;
    }
    return entry;
  }

 private:
  std::string_view at(std::size_t i) const {
    return text_.substr(list_[i].begin, list_[i].end - list_[i].begin);
  }
  bool is_name(std::size_t i) const { return list_[i].kind == LexemeKind::name; }
  bool has(std::string_view word) const {
    for (std::size_t i = 0; i < list_.size(); ++i) {
      if (at(i) == word) return true;
    }
    return false;
  }
  std::string path() const {
    std::string path;
    for (std::size_t i = 1; i < list_.size(); ++i) path += at(i);
    return path;
  }
  /// The item of the statement; empty: an expression.
  std::string_view belongs() const {
    const std::string_view first = at(0);
    if (list_[0].kind == LexemeKind::pass) return "a rank of an order";
    if (is_name(0) && list_.size() > 1 && at(1) == ":") return "a train";
    if (list_[0].kind != LexemeKind::keyword) return {};
    if (first == "if" && has("then")) return {};
    if (directive::find_directive(first) != nullptr) return kStrategy;
    const auto found = std::find_if(std::begin(kStatements), std::end(kStatements),
                                    [&](const Statement& row) { return row.word == first; });
    return found == std::end(kStatements) ? std::string_view() : found->belongs;
  }

  std::string_view text_;
  std::vector<Lexeme> list_;
};

}  // namespace

Entry read_entry(std::string_view text) {
  const std::string_view line = trimmed(text);
  if (line.starts_with(':')) return {.sort = EntrySort::command, .text = std::string(line)};
  return Reader(line).read();
}

}  // namespace piper::repl
