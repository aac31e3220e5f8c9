#include "tests/support/damage.h"

#include <algorithm>
#include <cctype>

namespace piper::test {

std::vector<std::string> tokens_of(const std::string& text) {
  std::vector<std::string> tokens;
  const auto inner = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.';
  };
  for (std::size_t i = 0; i < text.size();) {
    std::size_t end = i + 1;
    if (inner(text[i])) {
      while (end < text.size() && inner(text[end])) ++end;
    } else if (text[i] == '"') {
      while (end < text.size() && text[end] != '"' && text[end] != '\n') ++end;
      end = std::min(end + 1, text.size());
    } else if (text[i] == ' ') {
      while (end < text.size() && text[end] == ' ') ++end;
    }
    tokens.push_back(text.substr(i, end - i));
    i = end;
  }
  return tokens;
}

std::string damaged(const std::string& text, Random& random, const Damage& damage) {
  static const std::vector<std::string> kNumbers = {"0",
                                                    "1",
                                                    "2",
                                                    "3",
                                                    "5",
                                                    "-1",
                                                    "7",
                                                    "0.5",
                                                    "4294967295",
                                                    "9223372036854775807",
                                                    "99999999999999999999",
                                                    "1e400"};
  const std::size_t end = std::min(damage.end, text.size());
  std::vector<std::string> tokens = tokens_of(text.substr(damage.begin, end - damage.begin));
  for (std::int64_t count = random.between(1, damage.edits); count > 0 && tokens.size() > 1;
       --count) {
    const std::size_t at = random.below(tokens.size()), other = random.below(tokens.size());
    const auto position = tokens.begin() + static_cast<std::ptrdiff_t>(at);
    if (random.chance(0.6)) {  // a word for a word, a number for a number
      const auto kind = [](const std::string& token) {
        return std::isdigit(static_cast<unsigned char>(token[0]))   ? 0
               : std::isalpha(static_cast<unsigned char>(token[0])) ? 1
                                                                    : 2;
      };
      for (int tries = 0; tries < 20; ++tries) {
        const std::string& a = random.pick(tokens);
        std::string& b = tokens[random.below(tokens.size())];
        if (a == b || kind(a) == 2 || kind(a) != kind(b)) continue;
        b = a;
        break;
      }
      continue;
    }
    switch (random.below(6)) {
      case 0: tokens.erase(position); break;
      case 1: tokens.insert(position, tokens[other]); break;
      case 2: std::swap(tokens[at], tokens[other]); break;
      case 3: tokens[at] = random.pick(kNumbers); break;
      case 4:
        if (!damage.words.empty()) tokens[at] = random.pick(damage.words);
        break;
      default: {  // a whole line goes or comes twice
        std::size_t first = at, last = at;
        while (first > 0 && tokens[first - 1] != "\n") --first;
        while (last < tokens.size() && tokens[last] != "\n") ++last;
        std::vector<std::string> line(tokens.begin() + static_cast<std::ptrdiff_t>(first),
                                      tokens.begin() + static_cast<std::ptrdiff_t>(last));
        if (random.chance(0.5)) {
          tokens.erase(tokens.begin() + static_cast<std::ptrdiff_t>(first),
                       tokens.begin() + static_cast<std::ptrdiff_t>(last));
        } else {
          line.push_back("\n");
          tokens.insert(tokens.begin() + static_cast<std::ptrdiff_t>(first), line.begin(),
                        line.end());
        }
      }
    }
  }
  std::string result = text.substr(0, damage.begin);
  for (const std::string& token : tokens) result += token;
  return result + text.substr(end);
}

}  // namespace piper::test
