#include "frontend/lsp/statement_at.h"

#include <algorithm>

namespace piper::lsp {

namespace {

using parse::Lexeme;
using parse::LexemeKind;

bool ends_value(LexemeKind kind, std::string_view text) {
  if (kind == LexemeKind::name || kind == LexemeKind::number || kind == LexemeKind::string ||
      kind == LexemeKind::pass)
    return true;
  if (kind == LexemeKind::close) return true;
  return text == "true" || text == "false" || text == "model";
}

/// The sort of a block, from the words before its `{`.
class Blocks {
 public:
  void open(const std::vector<std::string_view>& header) {
    sema::BodySort sort = sorts_.empty() ? sema::BodySort::value : sorts_.back();
    const std::string_view first = header.empty() ? std::string_view() : header.front();
    if (sorts_.empty()) {
      item_ = first;
      if (first == "model") sort = sema::BodySort::model;
      if (first == "schedule") sort = sema::BodySort::schedule;
      if (first == "train") sort = sema::BodySort::train;
      if (first == "machine") sort = sema::BodySort::machine;
      const bool gives = header.size() > 2 && header[header.size() - 2] == "->";
      if (first == "def" && gives && header.back() == "order") sort = sema::BodySort::order;
      if (first == "def" && gives && header.back() == "steps") sort = sema::BodySort::steps;
    } else if (first == "order") {
      sort = sema::BodySort::order;
    } else if (first == "rank") {
      sort = sema::BodySort::steps;
    }
    sorts_.push_back(sort);
    const bool chained = first == "else" && header.size() > 1 && header[1] == "if";
    conditional_.push_back(first == "if" || chained);
  }
  /// Whether it was the block of an `if`.
  bool close() {
    if (sorts_.empty()) return false;
    const bool conditional = conditional_.back();
    sorts_.pop_back();
    conditional_.pop_back();
    if (sorts_.empty()) item_ = {};
    return conditional;
  }
  void reset() {
    sorts_.clear();
    conditional_.clear();
  }
  std::size_t depth() const { return sorts_.size(); }
  sema::BodySort sort() const { return sorts_.empty() ? sema::BodySort::value : sorts_.back(); }
  std::string_view item() const { return item_; }

 private:
  std::vector<sema::BodySort> sorts_;
  std::vector<bool> conditional_;
  std::string_view item_;
};

bool begins_declaration(std::string_view word, LexemeKind kind) {
  return word == "use" || word == "param" || word == "mesh" || word == "def" ||
         word == "schedule" || word == "train" || word == "machine" ||
         (word == "names" && kind == LexemeKind::keyword);  // elsewhere it is a name
}

}  // namespace

bool StatementAt::has(std::string_view text) const { return !last_of({text}).empty(); }

std::string_view StatementAt::last_of(std::initializer_list<std::string_view> texts) const {
  std::size_t depth = 0;
  for (std::size_t i = words.size(); i-- > 0;) {
    if (words[i].kind == LexemeKind::close) ++depth;
    if (words[i].kind == LexemeKind::open) depth -= depth > 0 ? 1 : 0;
    if (depth == 0 && std::find(texts.begin(), texts.end(), word(i)) != texts.end()) return word(i);
  }
  return {};
}

bool StatementAt::after_value() const {
  return !words.empty() && ends_value(words.back().kind, last());
}

std::size_t StatementAt::depth() const {
  std::size_t depth = 0;
  for (const Lexeme& lexeme : words) {
    if (lexeme.kind == LexemeKind::open) ++depth;
    if (lexeme.kind == LexemeKind::close && depth > 0) --depth;
  }
  return depth;
}

bool StatementAt::in_default() const {
  std::size_t open = 0;
  bool inside = false;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i].kind == parse::LexemeKind::open) ++open;
    if (words[i].kind == parse::LexemeKind::close && open > 0) --open;
    if (open == 1 && word(i) == ",") inside = false;
    if (open == 1 && word(i) == "=") inside = true;
  }
  return inside && open > 0;
}

std::size_t StatementAt::innermost() const {
  std::size_t depth = 0;
  for (std::size_t i = words.size(); i-- > 0;) {
    if (words[i].kind == LexemeKind::close) ++depth;
    if (words[i].kind != LexemeKind::open) continue;
    if (depth == 0) return i;
    --depth;
  }
  return words.size();
}

StatementAt statement_at(Request& request, std::uint32_t at) {
  StatementAt found;
  found.source = request.text();
  found.typed = {request.file(), at, at};
  Blocks blocks;
  std::size_t brackets = 0;
  std::uint32_t closed = 0;
  std::vector<Lexeme>& words = found.words;
  const auto text = [&](const Lexeme& lexeme) {
    return found.source.substr(lexeme.begin, lexeme.end - lexeme.begin);
  };
  for (const Lexeme& lexeme : parse::lexemes(found.source)) {
    if (lexeme.begin >= at) break;
    const bool is_word = lexeme.kind == LexemeKind::keyword || lexeme.kind == LexemeKind::name ||
                         lexeme.kind == LexemeKind::pass;
    if (lexeme.kind == LexemeKind::comment || lexeme.kind == LexemeKind::string ||
        lexeme.kind == LexemeKind::number) {
      const bool inside =
          lexeme.kind == LexemeKind::string
              ? lexeme.end > at ||
                    (lexeme.end == at && (at - lexeme.begin < 2 || found.source[at - 1] != '"'))
              : lexeme.end >= at;
      if (inside) found.nowhere = true;
      if (lexeme.kind == LexemeKind::comment) continue;
    }
    if (lexeme.first_on_line) {
      const bool declares =
          begins_declaration(text(lexeme), lexeme.kind) && !(is_word && lexeme.end >= at);
      if (declares) {
        blocks.reset();
        brackets = 0;
        words.clear();
      } else if (brackets == 0 && !words.empty() &&
                 ends_value(words.back().kind, text(words.back())) && text(lexeme) != "{" &&
                 text(lexeme) != "backward") {
        words.clear();
      }
    }
    if (is_word && lexeme.end >= at) {
      found.typed = {found.typed.file, lexeme.begin, lexeme.end};
      break;
    }
    const std::string_view sign = text(lexeme);
    if (sign == "{") {
      std::vector<std::string_view> header;
      for (const Lexeme& each : words) header.push_back(text(each));
      blocks.open(header);
      words.clear();
      brackets = 0;
    } else if (sign == "}") {
      found.behind_if = blocks.close();
      closed = lexeme.end;
      words.clear();
      brackets = 0;
    } else if (sign == ";") {
      words.clear();
      brackets = 0;
    } else {
      if (lexeme.kind == LexemeKind::open) ++brackets;
      if (lexeme.kind == LexemeKind::close && brackets > 0) --brackets;
      words.push_back(lexeme);
    }
  }
  // A cursor on another line than a complete statement begins the next one.
  const std::uint32_t cursor = found.typed.begin;
  if (brackets == 0 && !words.empty() && ends_value(words.back().kind, text(words.back())) &&
      found.source.substr(words.back().end, cursor - words.back().end).find('\n') !=
          std::string_view::npos) {
    words.clear();
  }
  found.behind_if =
      found.behind_if && words.empty() &&
      found.source.substr(closed, cursor - closed).find_first_not_of(' ') == std::string_view::npos;
  found.in_body = blocks.depth() > 0;
  found.in_block = blocks.depth() > 1;
  found.body = blocks.sort();
  found.item = found.in_body ? blocks.item() : found.first();
  return found;
}

}  // namespace piper::lsp
