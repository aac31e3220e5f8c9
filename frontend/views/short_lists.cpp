#include "frontend/views/short_lists.h"

#include <algorithm>

namespace piper::views {
namespace {

constexpr std::size_t kLongest = 200;      // characters of a line that is not changed
constexpr std::size_t kLongestList = 600;  // of a list in its line
constexpr std::size_t kMinItems = 8;
constexpr std::size_t kIndent = 4;

/// The position after the quoted text at `i`.
std::size_t quote_end(std::string_view text, std::size_t i) {
  for (++i; i < text.size() && text[i] != '"'; ++i) i += text[i] == '\\';
  return std::min(i + 1, text.size());
}

/// The items of the list that opens before `begin`, a line each, and its closing bracket at `end`.
struct List {
  std::string items;
  std::size_t count = 0, end = 0;

  void add(std::string_view item) {
    items.append(item) += '\n';
    ++count;
  }
};

List read_list(std::string_view line, std::size_t begin) {
  List list;
  std::size_t item = begin, depth = 0;
  for (std::size_t i = begin; i < line.size();) {
    const char c = line[i];
    if (c == '"') {
      i = quote_end(line, i);
      continue;
    }
    if (depth == 0 && c == ')') {
      list.add(line.substr(item, i - item));
      list.end = i;
      return list;
    }
    if (c == '(' || c == '[' || c == '{') ++depth;
    if ((c == ')' || c == ']' || c == '}') && depth > 0) --depth;
    if (depth == 0 && line.substr(i, 2) == ", ") {
      list.add(line.substr(item, i - item));
      item = i + 2;
    }
    ++i;
  }
  return {};  // it goes on in the next line
}

void write_list(std::string_view items, std::size_t indent, std::string& out) {
  const bool in_line = items.size() <= kLongestList;
  while (!items.empty()) {
    const std::size_t end = items.find('\n');
    if (!in_line) out.append("\n").append(indent + kIndent, ' ');
    out.append(items.substr(0, end));
    items.remove_prefix(end + 1);
    if (in_line && !items.empty()) out += ", ";
  }
  if (!in_line) out.append("\n").append(indent, ' ');
}

void shorten(std::string_view line, const std::function<std::string(std::string_view)>& fold,
             std::string& out) {
  const std::size_t indent = std::min(line.find_first_not_of(' '), line.size());
  std::size_t written = 0;
  for (std::size_t i = 0; i < line.size();) {
    if (line[i] == '"') {
      i = quote_end(line, i);
      continue;
    }
    if (line[i++] != '(') continue;
    const List list = read_list(line, i);
    if (list.count < kMinItems) continue;
    out.append(line.substr(written, i - written));
    write_list(fold(list.items), indent, out);
    written = i = list.end;
  }
  out.append(line.substr(written)) += '\n';
}

}  // namespace

std::string shorten_lists(std::string_view text,
                          const std::function<std::string(std::string_view items)>& fold) {
  std::string out;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    if (line.size() > kLongest) {
      shorten(line, fold, out);
    } else {
      out.append(line) += '\n';
    }
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

}  // namespace piper::views
