#include <filesystem>
#include <iterator>

#include "frontend/format/format.h"
#include "frontend/source/write_file.h"
#include "frontend/tools/commands.h"
#include "frontend/tools/session.h"

namespace piper::tools {
namespace {

/// What is no file cannot be replaced by one. A folder is said to be one when it is read.
bool is_replaceable(const std::string& path) {
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::status(path, error);
  return !std::filesystem::is_other(status);
}

}  // namespace

int run_fmt(Console& console, const Arguments& arguments) {
  Session session(console, arguments);
  bool differs = false;
  for (const std::string& path : arguments.positional) {
    if (path == "-") {
      const std::string text = console.in != nullptr ? std::string(std::istreambuf_iterator<char>(*console.in), {}) : std::string();
      const std::string formatted = format::format(text);
      differs = differs || formatted != text;
      if (!arguments.check) console.out << formatted;
      continue;
    }
    if (!arguments.check && !is_replaceable(path)) {
      session.sink().report(Code::unwritable_output, SourceRange(), "`{}` cannot be written: it is no regular file", path);
      continue;
    }
    const std::optional<FileId> file = source::open(path, {}, console.files, session.context().locations.files(), session.sink());
    if (!file) continue;
    const std::string_view text = session.context().locations.files().text(*file);
    const std::string formatted = format::format(text);
    if (formatted == text) continue;
    differs = true;
    if (arguments.check) {
      console.out << path << "\n";
    } else if (const std::error_code error = source::write_file(path, formatted)) {
      session.sink().report(Code::unwritable_output, SourceRange(), "`{}` cannot be written: {}", path, reason(error.value()));
    }
  }
  const int code = session.finish();
  return code == kClean && arguments.check && differs ? kDiagnostics : code;
}

}  // namespace piper::tools
