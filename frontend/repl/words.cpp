#include "frontend/repl/words.h"

#include <algorithm>
#include <cctype>

namespace piper::repl {
namespace {

bool is_name(std::string_view text) {
  const auto letter = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '_';
  };
  return !text.empty() && !std::isdigit(static_cast<unsigned char>(text.front())) &&
         std::all_of(text.begin(), text.end(), letter);
}

}  // namespace

std::optional<Words> split_words(std::string_view text, std::string& error) {
  Words words;
  std::string word;
  bool begun = false, quoted = false, was_quoted = false;
  int brackets = 0;
  const auto end_word = [&] {
    if (!begun) return;
    const std::size_t equals = word.find('=');
    if (!was_quoted && equals != std::string::npos &&
        is_name(std::string_view(word).substr(0, equals))) {
      words.values.push_back({word.substr(0, equals), word.substr(equals + 1)});
    } else {
      words.plain.push_back(word);
    }
    word.clear();
    begun = was_quoted = false;
  };
  for (const char c : text) {
    const bool blank = c == ' ' || c == '\t' || c == '\n' || c == '\r';
    if (blank && !quoted && brackets == 0) {
      end_word();
    } else if (c == '"') {
      quoted = !quoted;
      was_quoted = was_quoted || word.empty();
      begun = true;
    } else {
      if (!quoted && c == '[') ++brackets;
      if (!quoted && c == ']' && brackets > 0) --brackets;
      word += c;
      begun = true;
    }
  }
  if (quoted || brackets > 0) {
    error = quoted ? "a `\"` is not closed" : "a `[` is not closed";
    return std::nullopt;
  }
  end_word();
  return words;
}

std::string text_of(const std::vector<lower::Override>& values) {
  std::string text;
  for (const lower::Override& value : values)
    text += (text.empty() ? "" : " ") + value.name + "=" + value.value;
  return text;
}

}  // namespace piper::repl
