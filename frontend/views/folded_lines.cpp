#include "frontend/views/folded_lines.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <utility>

#include "ir/tensor/type.h"

namespace piper::views {
namespace {

constexpr std::size_t kMaxDigits = 15;

bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }
bool in_name(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_'; }
bool in_word(char c) { return in_name(c) || is_digit(c); }
bool in_value(char c) { return in_word(c) || c == '.' || c == '-' || c == '$'; }

/// The word that ends before `end`; empty if there is none.
std::string_view word_before(std::string_view text, std::size_t end) {
  std::size_t begin = end;
  while (begin > 0 && in_name(text[begin - 1])) --begin;
  return text.substr(begin, end - begin);
}

/// The word whose index is the number at `i`; empty if it measures.
std::string_view indexed(std::string_view text, std::size_t i) {
  if (i == 0) return {};
  const char c = text[i - 1];
  if (in_name(c)) return word_before(text, i);
  if (c == '.' || c == '[' || c == ':' || c == '#') {
    const std::string_view word = word_before(text, i - 1);
    if (!word.empty()) return word;
    return i > 1 && (is_digit(text[i - 2]) || text[i - 2] == ']') ? text.substr(i - 1, 1)
                                                                  : std::string_view();
  }
  if (c != ' ' || i < 2) return {};
  if (text[i - 2] == '+') return text.substr(i - 2, 1);
  return word_before(text, i - (text[i - 2] == ':' ? 2 : 1));
}

/// The end of the number at `i`, with its exponent or unit if it measures: `1e-06`.
std::size_t measure_end(std::string_view text, std::size_t i) {
  std::size_t end = i;
  while (end < text.size() &&
         (in_word(text[end]) || text[end] == '.' || (text[end] == '-' && text[end - 1] == 'e')))
    ++end;
  return end;
}

std::optional<Index> index_at(std::string_view text, std::size_t i) {
  Index index{.of = indexed(text, i), .begin = i, .end = i};
  while (index.end < text.size() && is_digit(text[index.end])) ++index.end;
  const std::size_t length = index.end - i;
  if (index.of.empty() || length > kMaxDigits || (length > 1 && text[i] == '0'))
    return std::nullopt;
  if (text[i - 1] == ' ' && measure_end(text, i) != index.end) return std::nullopt;
  std::from_chars(text.data() + i, text.data() + index.end, index.value);
  return index;
}

std::size_t value_end(std::string_view text, std::size_t i) {
  if (text.substr(i + 1, 1) == "\"") {
    for (i += 2; i < text.size() && text[i] != '"'; ++i) i += text[i] == '\\';
    return std::min(i + 1, text.size());
  }
  for (++i; i < text.size() && in_value(text[i]);) ++i;
  return i;
}

template <class Item>
std::span<const Item> items(const std::vector<Item>& of, std::size_t begin, std::size_t end) {
  return std::span(of).subspan(begin, end - begin);
}

}  // namespace

std::vector<Index> indices(std::string_view text) {
  std::vector<Index> found;
  for (std::size_t i = 0; i < text.size();) {
    const std::optional<Index> index = is_digit(text[i]) ? index_at(text, i) : std::nullopt;
    if (index) found.push_back(*index);
    i = index ? index->end : is_digit(text[i]) ? measure_end(text, i) : i + 1;
  }
  return found;
}

std::string without_indices(std::string_view text) {
  std::string out;
  std::size_t at = 0;
  for (const Index& index : indices(text))
    out.append(text.substr(at, index.begin - at)), at = index.end;
  return out.append(text.substr(at));
}

FoldedLines::FoldedLines(std::string_view text) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    lines_.push_back({text.substr(0, end)});
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  for (std::size_t i = 0; i < lines_.size(); ++i) read(i);
  const auto count = static_cast<std::uint32_t>(lines_.size());
  std::vector<std::uint32_t> seen(shapes_.size(), count);
  for (std::uint32_t i = count; i-- > 0;) {
    Line& line = lines_[i];
    line.next = std::exchange(seen[line.shape], i);
    for (line.end = i + 1; line.end < count && indent(line.end) >= indent(i);)
      line.end = lines_[line.end].end;
  }
}

std::size_t FoldedLines::indent(std::size_t line) const {
  return std::min(text(line).find_first_not_of(' '), text(line).size());
}

std::span<const FoldedLines::Use> FoldedLines::uses(std::size_t line) const {
  return items(uses_, lines_[line].first_use,
               line + 1 < size() ? lines_[line + 1].first_use : uses_.size());
}

std::span<const Index> FoldedLines::numbers(std::size_t line) const {
  return items(numbers_, lines_[line].first_number,
               line + 1 < size() ? lines_[line + 1].first_number : numbers_.size());
}

void FoldedLines::read(std::size_t number) {
  Line& line = lines_[number];
  line.first_use = static_cast<std::uint32_t>(uses_.size());
  line.first_number = static_cast<std::uint32_t>(numbers_.size());
  if (line.text == "}") defined_.clear();  // names hold inside of braces
  shape_.clear();
  const std::size_t begin = indent(number);
  const std::size_t equals = begin < line.text.size() && line.text[begin] == '%'
                                 ? line.text.find(" = ")
                                 : std::string_view::npos;
  const std::size_t body = equals == std::string_view::npos ? 0 : equals;
  for (std::size_t i = body; i < line.text.size();) i = part(number, i);
  define(number, body);
  line.shape =
      shapes_.try_emplace(shape_, static_cast<std::uint32_t>(shapes_.size())).first->second;
}

/// The values before `end`.
void FoldedLines::define(std::size_t number, std::size_t end) {
  const std::string_view text = lines_[number].text;
  std::uint32_t place = 0;
  for (std::size_t i = 0; i < end;) {
    if (text[i] != '%') {
      ++i;
      continue;
    }
    const std::size_t behind = value_end(text, i);
    defined_[text.substr(i, behind - i)] = {number, place++};
    shape_ += '%';
    i = behind;
  }
}

/// Adds the token at `i` to the shape; returns the position after it.
std::size_t FoldedLines::part(std::size_t number, std::size_t i) {
  const std::string_view text = lines_[number].text;
  if (text[i] == '%') {
    const std::size_t end = value_end(text, i);
    const std::string_view name = text.substr(i, end - i);
    if (const auto found = defined_.find(name); found != defined_.end()) {
      shape_ += '%';
      uses_.push_back(
          {name, static_cast<std::uint32_t>(number - found->second.line), found->second.place});
      return end;
    }
  } else if (text.substr(i, 3) == ") {") {
    return exact(text, i, text.find('}', i));
  } else if (in_name(text[i])) {
    std::size_t end = i;
    while (end < text.size() && in_word(text[end])) ++end;
    const std::string_view word = text.substr(i, end - i);
    if (text.substr(end, 1) == "[" && tensor::parse_dtype(word))
      return exact(text, i, text.find(']', i));
    if (word == "bytes") return exact(text, i, text.find_first_of(" )", end + 1));
    while (i < text.size() && in_name(text[i])) shape_ += text[i++];
    return i;
  } else if (is_digit(text[i])) {
    return digits(text, i);
  }
  shape_ += text[i];
  return i + 1;
}

/// The number at `i`, which stays in the shape if it measures.
std::size_t FoldedLines::digits(std::string_view text, std::size_t i) {
  if (const std::optional<Index> index = index_at(text, i)) {
    numbers_.push_back(*index);
    shape_ += '#';
    return index->end;
  }
  const std::size_t end = measure_end(text, i);
  shape_.append(text.substr(i, end - i));
  return end;
}

/// Everything up to `end`, with its numbers but the indices of names in quotes.
std::size_t FoldedLines::exact(std::string_view text, std::size_t i, std::size_t end) {
  bool quoted = false;
  for (end = std::min(end, text.size()); i < end;) {
    if (text[i] == '"') quoted = !quoted;
    if (quoted && is_digit(text[i])) {
      i = digits(text, i);
    } else {
      shape_ += text[i++];
    }
  }
  return end;
}

}  // namespace piper::views
