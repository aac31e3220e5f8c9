#include "tests/support/golden.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <vector>

namespace piper::test {
namespace {

bool g_updating = false;

constexpr std::size_t kContextLines = 2;
constexpr std::size_t kShownLines = 40;

// A text without a final line break gets a last line that says so, as in diff.
std::vector<std::string_view> split_lines(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    lines.push_back(text.substr(0, end));
    if (end == std::string_view::npos) {
      lines.push_back("\\ no line break at the end");
      break;
    }
    text.remove_prefix(end + 1);
  }
  return lines;
}

}  // namespace

bool updating() { return g_updating; }
void set_updating(bool on) { g_updating = on; }

std::optional<std::string> read_text(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file || std::filesystem::is_directory(path)) return std::nullopt;
  std::ostringstream text;
  text << file.rdbuf();
  return std::move(text).str();
}

void write_text(const std::filesystem::path& path, std::string_view text) {
  std::error_code ignored;  // the write below reports a failure
  std::filesystem::create_directories(path.parent_path(), ignored);
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(text.data(), static_cast<std::streamsize>(text.size()));
  file.close();
  if (!file) ADD_FAILURE() << "cannot write " << path.string();
}

void expect_golden(const std::filesystem::path& path, std::string_view actual) {
  const std::optional<std::string> expected = read_text(path);
  if (updating()) {
    if (expected != actual) write_text(path, actual);
    return;
  }
  if (!expected) {
    ADD_FAILURE() << path.string() << " does not exist; `--update` writes it:\n"
                  << line_difference("", actual);
  } else if (*expected != actual) {
    ADD_FAILURE() << path.string() << " differs (`--update` rewrites it):\n"
                  << line_difference(*expected, actual);
  }
}

std::string line_difference(std::string_view expected, std::string_view actual) {
  const std::vector<std::string_view> a = split_lines(expected);
  const std::vector<std::string_view> b = split_lines(actual);
  std::size_t same_front = 0;
  while (same_front < std::min(a.size(), b.size()) && a[same_front] == b[same_front]) ++same_front;
  if (same_front == a.size() && same_front == b.size()) return {};
  std::size_t same_back = 0;
  while (same_back < std::min(a.size(), b.size()) - same_front &&
         a[a.size() - 1 - same_back] == b[b.size() - 1 - same_back]) {
    ++same_back;
  }

  std::ostringstream out;
  const auto show = [&out](char mark, const std::vector<std::string_view>& lines, std::size_t begin,
                           std::size_t end) {
    for (std::size_t i = begin; i < end && i < begin + kShownLines; ++i)
      out << mark << ' ' << lines[i] << '\n';
    if (end > begin + kShownLines)
      out << mark << " ... " << end - begin - kShownLines << " more lines\n";
  };
  const std::size_t first = same_front < kContextLines ? 0 : same_front - kContextLines;
  out << "line " << first + 1 << ":\n";
  show(' ', a, first, same_front);
  show('-', a, same_front, a.size() - same_back);
  show('+', b, same_front, b.size() - same_back);
  show(' ', a, a.size() - same_back, std::min(a.size(), a.size() - same_back + kContextLines));
  return std::move(out).str();
}

}  // namespace piper::test
