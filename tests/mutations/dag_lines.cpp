#include "tests/mutations/dag_lines.h"

#include <algorithm>
#include <cctype>
#include <utility>

namespace piper::test {

namespace {

bool name_char(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.' || c == '_' || c == '%' ||
         c == ':' || c == '#';
}

}  // namespace

LineToken word(const std::string& line, std::size_t from) {
  while (from < line.size() && !name_char(line[from]) && line[from] != '"') ++from;
  LineToken token{from, from};
  bool quoted = false;
  while (token.end < line.size() &&
         (quoted || name_char(line[token.end]) || line[token.end] == '"')) {
    if (line[token.end] == '"') quoted = !quoted;
    ++token.end;
  }
  if (token.end > token.begin && line[token.end - 1] == ':') --token.end;
  return token;
}

std::string replace_token(const std::string& line, LineToken token, const std::string& text) {
  return line.substr(0, token.begin) + text + line.substr(token.end);
}

std::string token_text(const std::string& line, LineToken token) {
  return line.substr(token.begin, token.end - token.begin);
}

std::size_t find_attribute(const std::string& line, const std::string& key) {
  const std::size_t at = line.find(key);
  return at < line.find(" #") ? at : std::string::npos;
}

std::string node_name(const std::string& line) { return line.substr(2, line.find(" = ") - 2); }

std::string node_kind(const std::string& line) {
  const std::size_t from = line.find(" = ") + 3;
  return line.substr(from, line.find(' ', from) - from);
}

bool reads_node(const std::string& line, const std::string& name) {
  const std::size_t open = line.find(" (");
  if (open == std::string::npos || open > std::min(line.find(" on "), line.find(" over ")))
    return line.find(" from " + name + " ") != std::string::npos;
  const std::size_t close = line.find(')', open);
  for (LineToken token = word(line, open + 2); token.begin < close; token = word(line, token.end)) {
    const std::string operand = token_text(line, token);
    // of the step before
    if (line.substr(token.begin < 6 ? 0 : token.begin - 6, 6) == "param ") continue;
    if (operand == name || operand.starts_with(name + ":")) return true;
  }
  return line.find(" from " + name + " ") != std::string::npos;
}

std::vector<std::size_t> find_all(const std::string& text, const std::string& part) {
  std::vector<std::size_t> found;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
    found.push_back(at);
  return found;
}

DagLines::DagLines(const std::string& text) {
  std::size_t begin = 0;
  for (std::size_t end; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1)
    lines_.push_back(text.substr(begin, end - begin));
}

void DagLines::add(std::string title, std::size_t line, std::string replacement) {
  if (replacement != lines_[line])
    changes.push_back({std::move(title) + ": " + lines_[line], line, 1, {std::move(replacement)}});
}

void DagLines::delete_and_duplicate(std::size_t line, const std::string& kind) {
  changes.push_back({"delete " + kind + ": " + lines_[line], line, 1, {}});
  changes.push_back(
      {"duplicate " + kind + ": " + lines_[line], line, 1, {lines_[line], lines_[line]}});
}

void DagLines::swap(std::size_t a, std::size_t b) {
  LineChange change{"swap: " + lines_[a] + " | " + lines_[b], a, b - a + 1, {lines_[b]}};
  for (std::size_t i = a + 1; i < b; ++i) change.lines.push_back(lines_[i]);
  change.lines.push_back(lines_[a]);
  changes.push_back(std::move(change));
}

void DagLines::change_number(std::size_t line, const std::string& key,
                             const std::vector<std::int64_t>& by) {
  const std::string& text = lines_[line];
  const std::size_t at = text.find(key);
  if (at == std::string::npos) return;
  const std::size_t begin = at + key.size(), end = std::min(text.find(' ', begin), text.size());
  const std::int64_t value = std::stoll(text.substr(begin, end - begin));
  for (const std::int64_t change : by) {
    if (value + change >= 0)
      add("another" + key + std::to_string(value + change), line,
          text.substr(0, begin) + std::to_string(value + change) + text.substr(end));
  }
}

std::string DagLines::apply(const LineChange& change) const {
  std::string text;
  for (std::size_t i = 0; i < lines_.size(); ++i) {
    if (i == change.line) {
      for (const std::string& line : change.lines) text += line + '\n';
    }
    if (i < change.line || i >= change.line + change.removed) text += lines_[i] + '\n';
  }
  return text;
}

}  // namespace piper::test
