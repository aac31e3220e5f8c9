#include <algorithm>

#include "ir/diagnostics/diagnostics.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

namespace piper {

namespace {

bool continues(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) == 0x80; }

/// How many columns a line shows: code points.
std::size_t count_columns(std::string_view line) {
  const auto starts = static_cast<std::size_t>(
      std::count_if(line.begin(), line.end(), [](char byte) { return !continues(byte); }));
  return starts + (!line.empty() && continues(line[0]) ? 1 : 0);
}

/// The columns [from, to) of a line (code points), with characters that would harm a terminal
/// replaced.
std::vector<std::string> columns_of(std::string_view line, std::size_t from, std::size_t to) {
  std::vector<std::string> columns;
  std::size_t column = 0;
  for (std::size_t i = 0; i < line.size() && column < to; ++column) {
    auto first = static_cast<unsigned char>(line[i]);
    std::size_t length = first < 0x80 ? 1 : first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
    std::size_t end = i + 1;
    while (end < line.size() && continues(line[end])) ++end;
    if (column < from) {
      i = end;
      continue;
    }
    std::string point(line.substr(i, end - i));
    if (first == '\t') {
      point = "\t";
    } else if (first < 0x20 || first == 0x7F || end - i != length || !llvm::json::isUTF8(point)) {
      point = "\xEF\xBF\xBD";
    }
    columns.push_back(std::move(point));
    i = end;
  }
  return columns;
}

/// The line with carets below it. Long lines show the part around the carets.
void append_source_line(std::string& out, const SourceTable& files, SourceRange range,
                        LineColumn begin, LineColumn end) {
  constexpr std::size_t kWidest = 200, kBefore = 80;
  if (!files.has_text(range.file)) return;
  const std::string_view line = files.line_text(range.file, begin.line);
  const std::size_t count = count_columns(line);
  const std::size_t from = std::min<std::size_t>(begin.column - 1, count);
  const std::size_t to =
      end.line == begin.line ? std::min<std::size_t>(end.column - 1, count) : count;
  const std::size_t first = count > kWidest && from > kBefore ? from - kBefore : 0;
  const std::size_t last = std::min(count, first + kWidest);
  const std::vector<std::string> columns = columns_of(line, first, last);

  std::string number = std::to_string(begin.line);
  number.insert(0, number.size() < 4 ? 4 - number.size() : 0, ' ');
  std::string text = "\n" + number + " | ";
  std::string carets = "\n" + std::string(number.size(), ' ') + " | ";
  if (first > 0) text += "...", carets += "   ";
  for (const std::string& column : columns) text += column;
  if (last < count) text += "...";
  const auto mark = [&](std::size_t column, char shown) {
    return columns[column - first] == "\t" ? '\t' : shown;
  };
  for (std::size_t i = first; i < from; ++i) carets += mark(i, ' ');
  carets += '^';
  for (std::size_t i = from + 1; i < std::min(to, last); ++i) carets += mark(i, '^');
  out += text + carets;
}

std::string place(const SourceTable& files, SourceRange range, LineColumn begin) {
  return std::string(files.name(range.file)) + ':' + std::to_string(begin.line) + ':' +
         std::to_string(begin.column) + ": ";
}

void append_located(std::string& out, const SourceTable& files, SourceRange range,
                    std::string_view text) {
  if (!range.valid()) {
    out += text;
    return;
  }
  LineColumn begin = files.line_column(range.file, range.begin);
  out += place(files, range, begin);
  out += text;
  append_source_line(out, files, range, begin, files.line_column(range.file, range.end));
}

void write_position(llvm::json::OStream& json, const SourceTable& files, const char* name,
                    FileId file, std::uint32_t offset) {
  const LineColumn at = files.line_column(file, offset);
  json.attributeObject(name, [&] {
    json.attribute("line", at.line);
    json.attribute("column", at.column);
  });
}

void write_place(llvm::json::OStream& json, const SourceTable& files, SourceRange range) {
  if (!range.valid()) {
    json.attribute("file", nullptr);
    json.attribute("range", nullptr);
    return;
  }
  json.attribute("file", llvm::json::fixUTF8(llvm::StringRef(files.name(range.file))));
  json.attributeObject("range", [&] {
    write_position(json, files, "start", range.file, range.begin);
    write_position(json, files, "end", range.file, range.end);
  });
}

void write_fix(llvm::json::OStream& json, const Fix& fix, const SourceTable& files) {
  json.object([&] {
    json.attribute("title", llvm::json::fixUTF8(fix.title));
    json.attributeArray("edits", [&] {
      for (const Edit& edit : fix.edits) {
        json.object([&] {
          json.attribute("file", llvm::json::fixUTF8(llvm::StringRef(files.name(edit.range.file))));
          write_position(json, files, "start", edit.range.file, edit.range.begin);
          write_position(json, files, "end", edit.range.file, edit.range.end);
          json.attribute("text", llvm::json::fixUTF8(edit.text));
        });
      }
    });
  });
}

void write_diagnostic(llvm::json::OStream& json, const Diagnostic& diagnostic,
                      const SourceTable& files) {
  json.object([&] {
    json.attribute("code", code_text(diagnostic.code));
    json.attribute("severity", llvm::StringRef(severity_name(diagnostic.severity)));
    json.attribute("message", llvm::json::fixUTF8(diagnostic.message));
    write_place(json, files, diagnostic.range);
    json.attributeArray("related", [&] {
      for (const Related& related : diagnostic.related) {
        json.object([&] {
          json.attribute("message", llvm::json::fixUTF8(related.message));
          write_place(json, files, related.range);
        });
      }
    });
    if (diagnostic.hint.empty()) {
      json.attribute("hint", nullptr);
    } else {
      json.attribute("hint", llvm::json::fixUTF8(diagnostic.hint));
    }
    json.attributeArray("fixes", [&] {
      for (const Fix& fix : diagnostic.fixes) write_fix(json, fix, files);
    });
  });
}

}  // namespace

std::string render_text(std::span<const Diagnostic> diagnostics, const SourceTable& files) {
  std::string out;
  for (const Diagnostic& diagnostic : diagnostics) {
    std::string head =
        std::string(severity_name(diagnostic.severity)) + ' ' + code_text(diagnostic.code) + ": ";
    append_located(out, files, diagnostic.range, head + diagnostic.message);
    out += '\n';
    for (const Related& related : diagnostic.related) {
      out += "  ";
      append_located(out, files, related.range, related.message);
      out += '\n';
    }
    if (!diagnostic.hint.empty()) out += "  hint: " + diagnostic.hint + '\n';
  }
  return out;
}

std::string render_json(const Diagnostic& diagnostic, const SourceTable& files) {
  std::string out;
  llvm::raw_string_ostream stream(out);
  llvm::json::OStream json(stream);
  write_diagnostic(json, diagnostic, files);
  return out;
}

std::string render_json(std::span<const Diagnostic> diagnostics, const SourceTable& files) {
  std::string out;
  llvm::raw_string_ostream stream(out);
  llvm::json::OStream json(stream);
  json.object([&] {
    json.attribute("schema", 1);
    json.attributeArray("diagnostics", [&] {
      for (const Diagnostic& diagnostic : diagnostics) write_diagnostic(json, diagnostic, files);
    });
  });
  return out;
}

}  // namespace piper
