#include "frontend/repl/line_buffer.h"

#include <algorithm>
#include <cctype>
#include <utility>

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/ConvertUTF.h"
#include "llvm/Support/Unicode.h"

namespace piper::repl {
namespace {

std::size_t code_point_length(std::string_view text) {
  const std::size_t length = llvm::getNumBytesForUTF8(static_cast<llvm::UTF8>(text.front()));
  return std::clamp<std::size_t>(length, 1, text.size());
}

bool is_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || c == '_' ||
         static_cast<unsigned char>(c) >= 0x80;
}

}  // namespace

std::size_t columns_of(std::string_view text) {
  const int width = llvm::sys::unicode::columnWidthUTF8(llvm::StringRef(text.data(), text.size()));
  return width > 0 ? static_cast<std::size_t>(width) : 0;
}

std::size_t character_length(std::string_view text) {
  if (text.empty()) return 0;
  std::size_t length = code_point_length(text);
  while (length < text.size() && static_cast<unsigned char>(text[length]) >= 0x80) {
    const std::size_t next = code_point_length(text.substr(length));
    if (columns_of(text.substr(length, next)) > 0) break;
    length += next;
  }
  return length;
}

void LineBuffer::insert(std::string_view text) {
  text_.insert(cursor_, text);
  cursor_ += text.size();
}

void LineBuffer::set(std::string text) {
  text_ = std::move(text);
  cursor_ = text_.size();
}

std::string LineBuffer::take() {
  cursor_ = 0;
  return std::exchange(text_, {});
}

void LineBuffer::replace_before_cursor(std::size_t begin, std::string_view text) {
  text_.replace(begin, cursor_ - begin, text);
  cursor_ = begin + text.size();
}

std::size_t LineBuffer::before(std::size_t at) const {
  // From the beginning of the line, because the text before a mark determines the character that it
  // combines with.
  std::size_t last = line_begin(at);
  if (last == at) return at == 0 ? 0 : at - 1;
  for (std::size_t i = last; i < at; i += character_length(std::string_view(text_).substr(i)))
    last = i;
  return last;
}

std::size_t LineBuffer::behind(std::size_t at) const {
  return std::min(text_.size(), at + character_length(std::string_view(text_).substr(at)));
}

std::size_t LineBuffer::line_begin(std::size_t at) const {
  return at == 0 ? 0 : text_.rfind('\n', at - 1) + 1;
}
std::size_t LineBuffer::line_end(std::size_t at) const {
  return std::min(text_.find('\n', at), text_.size());
}

void LineBuffer::left() { cursor_ = before(cursor_); }
void LineBuffer::right() { cursor_ = behind(cursor_); }

void LineBuffer::word_left() {
  while (cursor_ > 0 && !is_word(text_[cursor_ - 1])) --cursor_;
  while (cursor_ > 0 && is_word(text_[cursor_ - 1])) --cursor_;
}

void LineBuffer::word_right() {
  while (cursor_ < text_.size() && !is_word(text_[cursor_])) ++cursor_;
  while (cursor_ < text_.size() && is_word(text_[cursor_])) ++cursor_;
}

void LineBuffer::home() { cursor_ = line_begin(cursor_); }
void LineBuffer::end() { cursor_ = line_end(cursor_); }

void LineBuffer::go_to_column(std::size_t begin, std::size_t column) {
  const std::size_t last = line_end(begin);
  cursor_ = begin;
  while (cursor_ < last &&
         columns_of(std::string_view(text_).substr(begin, cursor_ - begin)) < column)
    cursor_ = behind(cursor_);
}

bool LineBuffer::up() {
  const std::size_t begin = line_begin(cursor_);
  if (begin == 0) return false;
  go_to_column(line_begin(begin - 1),
               columns_of(std::string_view(text_).substr(begin, cursor_ - begin)));
  return true;
}

bool LineBuffer::down() {
  const std::size_t begin = line_begin(cursor_), last = line_end(cursor_);
  if (last == text_.size()) return false;
  go_to_column(last + 1, columns_of(std::string_view(text_).substr(begin, cursor_ - begin)));
  return true;
}

void LineBuffer::backspace() {
  const std::size_t begin = before(cursor_);
  text_.erase(begin, cursor_ - begin);
  cursor_ = begin;
}

void LineBuffer::erase() { text_.erase(cursor_, behind(cursor_) - cursor_); }

void LineBuffer::kill(std::size_t begin, std::size_t end) {
  killed_ = text_.substr(begin, end - begin);
  text_.erase(begin, end - begin);
  cursor_ = begin;
}

void LineBuffer::kill_to_end() { kill(cursor_, line_end(cursor_)); }
void LineBuffer::kill_to_begin() { kill(line_begin(cursor_), cursor_); }

void LineBuffer::kill_word() {
  const std::size_t end = cursor_;
  word_left();
  kill(cursor_, end);
}

void History::add(std::string entry) {
  if (!entry.empty() && (entries_.empty() || entries_.back() != entry))
    entries_.push_back(std::move(entry));
  rewind();
  typed_.clear();
}

bool History::back(std::string& shown) {
  if (at_ == 0) return false;
  if (at_ == entries_.size()) typed_ = shown;
  shown = entries_[--at_];
  return true;
}

bool History::forward(std::string& shown) {
  if (at_ == entries_.size()) return false;
  shown = ++at_ == entries_.size() ? typed_ : entries_[at_];
  return true;
}

}  // namespace piper::repl
