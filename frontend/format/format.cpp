#include "frontend/format/format.h"

#include <algorithm>
#include <optional>

#include "frontend/format/line_breaks.h"
#include "frontend/parse/parse.h"
#include "ir/diagnostics/diagnostics.h"
#include "llvm/Support/Unicode.h"

namespace piper::format {

namespace {

using parse::LexemeKind;

constexpr std::size_t kIndent = 4;
/// Neighbours that differ by more are no table.
constexpr std::size_t kWidestColumn = 40;

struct Line {
  std::size_t first = 0, last = 0;  // words, the last one exclusive
  std::size_t indent = 0;
  bool goes_on = false;  // a statement that an earlier line began
  std::string text;      // without indentation and a comment behind
  std::string comment;   // behind the text
};

std::size_t width(std::string_view text) {
  const int columns =
      llvm::sys::unicode::columnWidthUTF8(llvm::StringRef(text.data(), text.size()));
  return columns < 0 ? text.size() : static_cast<std::size_t>(columns);
}

/// The context of a line, from the words before it.
struct Before {
  std::size_t blocks = 0, brackets = 0;  // open ones
  Word word;                             // the last one that is no comment
  bool any = false;

  void add(const Word& next) {
    if (next.is("{")) ++blocks;
    if (next.is("}") && blocks > 0) --blocks;
    if (next.is("(") || next.is("[")) ++brackets;
    if ((next.is(")") || next.is("]")) && brackets > 0) --brackets;
    if (next.kind == LexemeKind::comment) return;
    word = next;
    any = true;
  }
};

/// The line of the words from `first` to `last`, without its text.
Line line_of(const std::vector<Word>& words, std::size_t first, std::size_t last,
             const Before& before) {
  Line line;
  line.first = first;
  line.last = last;
  const Word& word = words[first];
  const bool closes_block = word.is("}"), closes_bracket = word.is(")") || word.is("]");
  const bool inside = before.brackets > 0 && !(closes_bracket && before.brackets == 1);
  const bool unfinished = before.brackets == 0 && before.any && !can_end(before.word) &&
                          !before.word.is("{") && !before.word.is(";");
  const bool backward = before.brackets == 0 && word.is("backward");  // of the cursor above
  line.goes_on = before.brackets > 0 || unfinished || backward;
  line.indent = kIndent * (before.blocks - (closes_block && before.blocks > 0 ? 1 : 0) +
                           (inside || unfinished || backward ? 1 : 0));
  return line;
}

void write_text(const std::vector<Word>& words, Line& line) {
  for (std::size_t i = line.first; i < line.last; ++i) {
    if (words[i].kind == LexemeKind::comment && i > line.first) {
      line.comment = words[i].text;
      break;
    }
    line.text += words[i].text;
    const bool more = i + 1 < line.last && words[i + 1].kind != LexemeKind::comment;
    if (more && has_blank(words, i)) line.text += ' ';
  }
}

/// Looks no further than its place.
bool is_too_long(const std::vector<Word>& words, const Line& line) {
  std::size_t column = line.indent;
  for (std::size_t i = line.first; i < line.last; ++i) {
    if (words[i].kind == LexemeKind::comment && i > line.first) return false;
    column += width(words[i].text);
    if (column > kWidth) return true;
    if (i + 1 < line.last && has_blank(words, i)) ++column;
  }
  return false;
}

/// A block that begins and ends in the line.
std::optional<std::size_t> block_of(const std::vector<Word>& words, const Line& line) {
  for (std::size_t i = line.first; i < line.last; ++i) {
    if (words[i].is("{") && words[i].partner > i + 1 && words[i].partner < line.last) return i;
  }
  return std::nullopt;
}

/// The break of a line that is too long: before a word that follows a comma or an operator, in as
/// few brackets as possible, as far right as fits.
std::optional<std::size_t> break_of(const std::vector<Word>& words, const Line& line) {
  std::optional<std::size_t> best;
  std::size_t depth = 0, least = SIZE_MAX, column = line.indent;
  for (std::size_t i = line.first; i + 1 < line.last; ++i) {
    const Word& word = words[i];
    if (word.kind == LexemeKind::open) ++depth;
    if (word.kind == LexemeKind::close && depth > 0) --depth;
    column += width(word.text) + (has_blank(words, i) ? 1 : 0);
    if (column > kWidth + 1 && best) break;
    const bool breakable =
        word.is(",") || word.is("+") || word.is("and") || word.is("or") || word.is("@");
    if (!breakable || words[i + 1].kind == LexemeKind::comment) continue;
    if (depth <= least || !best) {
      best = i + 1;
      least = depth;
    }
  }
  return best;
}

/// The lines between the breaks, with more breaks in lines that are too long. Visits each word a
/// few times, however long its line is.
std::vector<Line> fit(std::vector<Word>& words) {
  std::vector<Line> lines;
  Before before;
  // of the line that comes next and of those that it was broken from
  std::vector<std::size_t> ends;
  bool has_blocks = true;  // may have
  for (std::size_t first = 0; first < words.size();) {
    if (ends.empty()) {
      std::size_t end = first + 1;
      while (end < words.size() && !words[end].breaks) ++end;
      ends.push_back(end);
      has_blocks = true;
    }
    Line line = line_of(words, first, ends.back(), before);
    if (is_too_long(words, line)) {
      // A block on one line first.
      const std::optional<std::size_t> block = has_blocks ? block_of(words, line) : std::nullopt;
      if (block) {
        open_up(words, *block);
        ends.clear();
        continue;
      }
      has_blocks = false;
      if (const std::optional<std::size_t> at = break_of(words, line)) {
        words[*at].breaks = true;
        ends.push_back(*at);
        continue;
      }
    }
    write_text(words, line);
    for (std::size_t i = line.first; i < line.last; ++i) before.add(words[i]);
    first = line.last;
    ends.pop_back();
    lines.push_back(std::move(line));
  }
  return lines;
}

/// A column of a line that its neighbours may share: which table, and the byte of the text where
/// blanks go.
struct Column {
  std::string_view table;
  std::size_t at = 0;
};

std::optional<Column> column_of(const std::vector<Word>& words, const Line& line) {
  // A comment after code is in the words of the line, and not in its text.
  const std::size_t end =
      words[line.last - 1].kind == LexemeKind::comment ? line.last - 1 : line.last;
  if (end < line.first + 3 || line.goes_on) return std::nullopt;
  const Word& first = words[line.first];
  // The byte of the text before the word.
  const auto before = [&](std::size_t word) {
    std::size_t at = 0;
    for (std::size_t i = line.first; i < word; ++i)
      at += words[i].text.size() + (has_blank(words, i) ? 1 : 0);
    return at;
  };
  const auto find = [&](std::string_view text) -> std::optional<std::size_t> {
    std::size_t depth = 0;
    for (std::size_t i = line.first; i < end; ++i) {
      if (depth == 0 && i > line.first && words[i].is(text)) return i;
      if (words[i].kind == LexemeKind::open) ++depth;
      if (words[i].kind == LexemeKind::close && depth > 0) --depth;
    }
    return std::nullopt;
  };
  // `block[l].attention.q: "..."[heads width, dim]`
  if (const std::optional<std::size_t> colon = find(":");
      colon && *colon + 2 < end && words[*colon + 1].kind == LexemeKind::string &&
      words[*colon + 2].is("["))
    return Column{"names", before(*colon + 1)};
  if (first.kind == LexemeKind::name && words[line.first + 1].is(":"))
    return Column{"setting", before(line.first + 2)};
  struct Row {
    std::string_view word, sign;
    bool behind;
  };
  constexpr Row kRows[] = {
      {"at", ":", true},      {"cursor", "=", false},       {"place", "on", false},
      {"repeat", "{", false}, {"replicate", "over", false}, {"shard", "over", false},
      {"stream", ":", true}};
  for (const Row& row : kRows) {
    if (!first.is(row.word)) continue;
    const std::optional<std::size_t> sign = find(row.sign);
    if (!sign || (row.behind && *sign + 1 >= end)) return std::nullopt;
    // A block that goes on on the next line is no row of a table.
    if (row.sign == "{" && words[*sign].partner >= line.last) return std::nullopt;
    return Column{row.word, before(row.behind ? *sign + 1 : *sign)};
  }
  return std::nullopt;
}

/// Whether the line belongs to a block of several lines beside `beside`.
bool is_of_long_block(const std::vector<Word>& words, const Line& beside, const Line& line) {
  if (line.indent > beside.indent) return true;
  return line.indent == beside.indent &&
         (words[line.first].is("}") || words[line.last - 1].is("{"));
}

void align(const std::vector<Word>& words, std::vector<Line>& lines) {
  for (std::size_t begin = 0; begin < lines.size();) {
    const std::optional<Column> column = column_of(words, lines[begin]);
    std::size_t end = begin + 1;
    if (!column) {
      begin = end;
      continue;
    }
    std::vector<std::size_t> rows = {begin}, columns = {column->at};
    std::size_t widest = width(lines[begin].text.substr(0, column->at)), narrowest = widest;
    for (std::size_t i = end; i < lines.size() && !words[lines[i].first].blank_before &&
                              lines[i].indent >= lines[begin].indent;
         ++i) {
      // One-line blocks are aligned even if longer ones are between them.
      if (column->table == "repeat" && is_of_long_block(words, lines[begin], lines[i])) continue;
      const std::optional<Column> next = column_of(words, lines[i]);
      if (!next || next->table != column->table || lines[i].indent != lines[begin].indent) break;
      rows.push_back(i);
      columns.push_back(next->at);
      const std::size_t here = width(lines[i].text.substr(0, next->at));
      widest = std::max(widest, here);
      narrowest = std::min(narrowest, here);
    }
    bool fits = widest - narrowest <= kWidestColumn;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const Line& row = lines[rows[i]];
      fits =
          fits &&
          row.indent + width(row.text) + widest - width(row.text.substr(0, columns[i])) <= kWidth;
    }
    for (std::size_t i = 0; i < rows.size() && fits; ++i) {
      std::string& text = lines[rows[i]].text;
      text.insert(columns[i], widest - width(text.substr(0, columns[i])), ' ');
    }
    end = rows.back() + 1;
    begin = end;
  }
}

/// Comments behind neighbouring lines begin in one column.
void align_comments(const std::vector<Word>& words, std::vector<Line>& lines) {
  for (std::size_t begin = 0; begin < lines.size();) {
    std::size_t end = begin + 1;
    if (lines[begin].comment.empty()) {
      begin = end;
      continue;
    }
    std::size_t widest = lines[begin].indent + width(lines[begin].text), narrowest = widest;
    for (;
         end < lines.size() && !lines[end].comment.empty() && !words[lines[end].first].blank_before;
         ++end) {
      const std::size_t here = lines[end].indent + width(lines[end].text);
      widest = std::max(widest, here);
      narrowest = std::min(narrowest, here);
    }
    const bool table = widest - narrowest <= kWidestColumn;
    for (std::size_t i = begin; i < end; ++i) {
      const std::size_t here = lines[i].indent + width(lines[i].text);
      lines[i].text += std::string((table ? widest - here : 0) + 2, ' ') + lines[i].comment;
    }
    begin = end;
  }
}

std::string formatted(std::string_view text) {
  std::vector<Word> words = words_of(text);
  std::vector<Line> lines = fit(words);
  align(words, lines);
  align_comments(words, lines);
  std::string result;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const Line& line = lines[i];
    const bool opens = i > 0 && words[lines[i - 1].last - 1].is("{");
    if (i > 0 && words[line.first].blank_before && !opens) result += '\n';
    result += std::string(line.indent, ' ') + line.text + '\n';
  }
  return result;
}

/// Whole lines that are not changed: declarations with syntax errors, and the text after them up to
/// the next one.
struct Zone {
  std::size_t begin = 0, end = 0;
};

std::vector<Zone> broken_zones(std::string_view text) {
  LocationTable locations;
  const FileId file = locations.files().add("", std::string(text));
  DiagnosticSink unread(locations);
  const ast::Module module = parse::parse(locations.files(), file, unread);
  std::vector<Zone> zones;
  if (module.faults.empty()) return zones;
  if (module.items.empty() || module.faults.front() < module.items.front()->range.begin)
    return {{0, text.size()}};
  for (std::size_t i = 0; i < module.items.size(); ++i) {
    const std::size_t begin = module.items[i]->range.begin;
    const std::size_t next =
        i + 1 < module.items.size() ? module.items[i + 1]->range.begin : text.size() + 1;
    const auto fault = std::lower_bound(module.faults.begin(), module.faults.end(), begin);
    const bool faulty = fault != module.faults.end() && *fault < next;
    if (!faulty && module.items[i]->kind != ast::ItemKind::error) continue;
    const std::size_t line = text.rfind('\n', begin == 0 ? 0 : begin - 1);
    const std::size_t from = begin == 0 || line == std::string_view::npos ? 0 : line + 1;
    const std::size_t last = next > text.size() ? text.size() : text.rfind('\n', next - 1);
    const std::size_t to = next > text.size()               ? text.size()
                           : last == std::string_view::npos ? from
                                                            : std::max(from, last + 1);
    if (!zones.empty() && from <= zones.back().end) {
      zones.back().end = std::max(zones.back().end, to);
    } else {
      zones.push_back({from, to});
    }
  }
  return zones;
}

/// `text` with `to` as every line end.
std::string with_line_ends(std::string_view text, std::string_view to) {
  std::string result;
  result.reserve(text.size());
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = text.find('\n', begin);
    std::string_view line = text.substr(begin, end - begin);
    while (end != std::string_view::npos && line.ends_with('\r')) line.remove_suffix(1);
    result += line;
    if (end == std::string_view::npos) break;
    result += to;
    begin = end + 1;
  }
  return result;
}

/// `format` for text whose lines end with `\n`.
std::string formatted_zones(std::string_view text) {
  std::string result;
  std::size_t begin = 0;
  const auto add_formatted = [&](std::size_t end) {
    if (end <= begin) return;
    const std::string part = formatted(text.substr(begin, end - begin));
    const std::size_t first = text.find_first_not_of(" \t\r", begin);
    if (begin > 0 && first < end && text[first] == '\n' && !part.empty()) result += '\n';
    result += part;
  };
  for (const Zone& zone : broken_zones(text)) {
    add_formatted(zone.begin);
    // The blank line before unchanged text.
    if (zone.begin > begin && !result.empty() &&
        text.substr(begin, zone.begin - begin).ends_with("\n\n"))
      result += '\n';
    result += text.substr(zone.begin, zone.end - zone.begin);
    begin = zone.end;
  }
  add_formatted(text.size());
  return result;
}

}  // namespace

std::string format(std::string_view text) {
  std::string_view mark;
  if (text.starts_with("\xEF\xBB\xBF")) {
    mark = text.substr(0, 3);
    text.remove_prefix(3);
  }
  // The first line decides all line ends, also in unchanged declarations: mixed line ends are a
  // mistake of an editor.
  const std::size_t first_end = text.find('\n');
  const bool carriage =
      first_end != std::string_view::npos && first_end > 0 && text[first_end - 1] == '\r';
  const std::string result = formatted_zones(with_line_ends(text, "\n"));
  return std::string(mark) + (carriage ? with_line_ends(result, "\r\n") : result);
}

}  // namespace piper::format
