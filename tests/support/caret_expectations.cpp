#include "tests/support/caret_expectations.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <iterator>
#include <optional>
#include <sstream>

#include "tests/support/golden.h"

namespace piper::test {
namespace {

constexpr int kFirstCaretColumn = 3;  // columns 1 and 2 hold the slashes of the comment

bool take(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

bool take_number(std::string_view& text, int& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc()) return false;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return true;
}

// `5` or `+2:5`; the line is relative to the line above the expectations.
bool take_position(std::string_view& text, int base_line, int& line, int& column) {
  line = base_line;
  if (take(text, "+")) {
    int further = 0;
    if (!take_number(text, further) || !take(text, ":")) return false;
    line += further;
  }
  return take_number(text, column);
}

// Messages are one line in the file; a line break in one is written `\n`.
std::string escape(std::string_view message) {
  std::string out;
  for (const char c : message) {
    if (c == '\n') out += "\\n";
    else if (c == '\\') out += "\\\\";
    else out += c;
  }
  return out;
}

std::string unescape(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 1 < text.size()) out += text[++i] == 'n' ? '\n' : text[i];
    else out += text[i];
  }
  return out;
}

// The rest after the range: ` error P2004: text`.
bool take_claim(std::string_view text, Finding& finding) {
  if (!take(text, " ")) return false;
  const std::size_t word = std::min(text.find_first_of(" :"), text.size());
  finding.severity = text.substr(0, word);
  text.remove_prefix(word);
  if (finding.severity.empty()) return false;
  if (take(text, " ")) {
    const std::size_t code = std::min(text.find(':'), text.size());
    finding.code = text.substr(0, code);
    text.remove_prefix(code);
    if (finding.code.empty() || finding.code.find(' ') != std::string::npos) return false;
  }
  if (!take(text, ": ")) return false;
  finding.message = unescape(text);
  return true;
}

// In an expectation comment the text after the slashes starts with `^` or `@`; every other comment
// is none.
bool looks_like_expectation(std::string_view line) {
  const std::size_t start = line.find_first_not_of(" \t");
  if (start == std::string_view::npos || !line.substr(start).starts_with("//")) return false;
  const std::size_t mark = line.find_first_not_of(" \t", start + 2);
  return mark != std::string_view::npos && (line[mark] == '^' || line[mark] == '@');
}

std::optional<Finding> parse_expectation(std::string_view line, int base_line) {
  Finding finding;
  finding.line = finding.end_line = base_line;
  const std::size_t mark = line.find_first_of("^@");
  std::string_view rest = line.substr(mark);
  if (take(rest, "@")) {
    if (take(rest, "none")) {
      finding.line = finding.end_line = 0;
    } else if (!take_position(rest, base_line, finding.line, finding.column) || !take(rest, "-") ||
               !take_position(rest, base_line, finding.end_line, finding.end_column)) {
      return std::nullopt;
    }
  } else {
    const std::size_t carets = std::min(rest.find_first_not_of('^'), rest.size());
    finding.column = static_cast<int>(mark) + 1;
    finding.end_column = finding.column + static_cast<int>(carets);
    rest.remove_prefix(carets);
  }
  if (!take_claim(rest, finding)) return std::nullopt;
  return finding;
}

std::string print_position(int line, int column, int base_line) {
  return (line == base_line ? "" : "+" + std::to_string(line - base_line) + ":") +
         std::to_string(column);
}

std::string print_expectation(const Finding& finding, int base_line) {
  std::string out = "//";
  if (finding.line == 0) {
    out += " @none";
  } else if (finding.line == base_line && finding.end_line == base_line &&
             finding.column >= kFirstCaretColumn && finding.end_column > finding.column) {
    out.append(static_cast<std::size_t>(finding.column - kFirstCaretColumn), ' ');
    out.append(static_cast<std::size_t>(finding.end_column - finding.column), '^');
  } else {
    out += " @" + print_position(finding.line, finding.column, base_line) + "-" +
           print_position(finding.end_line, finding.end_column, base_line);
  }
  out += " " + finding.severity + (finding.code.empty() ? "" : " " + finding.code) + ": " +
         escape(finding.message);
  return out;
}

std::string describe(const Finding& finding) {
  std::ostringstream out;
  out << "  line " << finding.line << " (expectations not counted), "
      << print_expectation(finding, finding.line).substr(2);
  if (finding.line != 0)
    out << "   [columns " << finding.column << "-" << finding.end_column << "]";
  out << '\n';
  return std::move(out).str();
}

}  // namespace

AnnotatedSource parse_annotated(std::string_view text) {
  AnnotatedSource result;
  int line_count = 0;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    if (looks_like_expectation(line)) {
      // Above the first line of source the range is written relative to that line.
      if (std::optional<Finding> finding = parse_expectation(line, std::max(line_count, 1))) {
        result.expected.push_back(*std::move(finding));
      } else {
        result.malformed.emplace_back(line);
      }
    } else {
      result.source.append(text.substr(0, end + 1));
      ++line_count;
    }
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return result;
}

std::string annotate(std::string_view source, std::vector<Finding> findings) {
  std::sort(findings.begin(), findings.end());
  std::string out;
  std::size_t next = 0;
  int line = 0;
  // A finding below the last line (an end of file that came too early) stands under that line.
  const auto add_findings = [&](bool all) {
    for (; next < findings.size() && (all || findings[next].line <= line); ++next) {
      out += print_expectation(findings[next], std::max(line, 1)) + "\n";
    }
  };
  while (!source.empty()) {
    const std::size_t end = source.find('\n');
    ++line;
    out.append(source.substr(0, end));
    source.remove_prefix(end == std::string_view::npos ? source.size() : end + 1);
    const bool last = source.empty();
    // The last line keeps its missing line break unless an expectation has to follow it.
    if (end != std::string_view::npos || next < findings.size()) out += '\n';
    add_findings(last);
  }
  add_findings(true);
  return out;
}

void expect_findings(const FileTest& test, const CheckSource& check) {
  const AnnotatedSource annotated = parse_annotated(test.text);
  std::vector<Finding> found = check(test.path, annotated.source);
  if (updating()) {
    const std::string text = annotate(annotated.source, std::move(found));
    if (text != test.text) write_text(test.path, text);
    return;
  }
  for (const std::string& line : annotated.malformed) {
    ADD_FAILURE() << test.path
                  << ": not an expectation of the form `//  ^^^ severity CODE: text`: " << line;
  }
  std::vector<Finding> expected = annotated.expected;
  std::sort(expected.begin(), expected.end());
  std::sort(found.begin(), found.end());
  std::vector<Finding> missing;
  std::vector<Finding> unexpected;
  std::set_difference(expected.begin(), expected.end(), found.begin(), found.end(),
                      std::back_inserter(missing));
  std::set_difference(found.begin(), found.end(), expected.begin(), expected.end(),
                      std::back_inserter(unexpected));
  if (missing.empty() && unexpected.empty()) return;
  std::ostringstream report;
  if (!missing.empty()) report << "expected, but not found:\n";
  for (const Finding& finding : missing) report << describe(finding);
  if (!unexpected.empty()) report << "found, but not expected (`--update` writes them down):\n";
  for (const Finding& finding : unexpected) report << describe(finding);
  ADD_FAILURE() << test.path << ":\n" << report.str();
}

}  // namespace piper::test
