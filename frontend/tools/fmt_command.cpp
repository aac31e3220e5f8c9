#include <filesystem>
#include <iterator>

#include "frontend/format/format.h"
#include "frontend/tools/commands.h"
#include "frontend/tools/session.h"

namespace piper::tools {
namespace {

/// The file has its old text or the new one, whatever happens: a full disk, a crash. Links stay links.
void replace_file(Session& session, const std::string& path, const std::string& text) {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::path real = fs::canonical(path, error);
  const fs::path aside = real.string() + ".formatted";
  if (!error && !session.write_file(aside.string(), text)) return;
  if (!error) fs::permissions(aside, fs::status(real, error).permissions(), error);
  if (!error) fs::rename(aside, real, error);
  if (error) session.sink().report(Code::unwritable_output, SourceRange(), "`{}` cannot be written: {}", path, reason(error.value()));
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
    const std::optional<FileId> file = source::open(path, {}, console.files, session.context().locations.files(), session.sink());
    if (!file) continue;
    const std::string_view text = session.context().locations.files().text(*file);
    const std::string formatted = format::format(text);
    if (formatted == text) continue;
    differs = true;
    if (arguments.check) {
      console.out << path << "\n";
    } else {
      replace_file(session, path, formatted);
    }
  }
  const int code = session.finish();
  return code == kClean && arguments.check && differs ? kDiagnostics : code;
}

}  // namespace piper::tools
