#include <filesystem>
#include <iterator>

#include "frontend/format/same_program.h"
#include "frontend/parse/parse.h"
#include "frontend/source/write_file.h"
#include "frontend/tools/commands.h"
#include "frontend/tools/session.h"
#include "ir/diagnostics/report_again.h"

namespace piper::tools {
namespace {

/// Only a regular file can be replaced by one. For a folder, reading reports the error.
bool is_replaceable(const std::string& path) {
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::status(path, error);
  return !std::filesystem::is_other(status);
}

/// The text in the layout of the project; nothing if it has syntax errors, which are reported,
/// because the meaning of such a text is a guess.
std::optional<std::string> formatted(Session& session, FileId file) {
  const SourceTable& files = session.context().locations.files();
  DiagnosticSink found(session.context().locations);
  parse::parse(files, file, found);
  if (!found.has_errors()) return format::checked_format(files.text(file), file, session.sink());
  for (const Diagnostic& diagnostic : found.sorted()) report_again(diagnostic, session.sink());
  return std::nullopt;
}

}  // namespace

int run_fmt(Console& console, const Arguments& arguments) {
  Session session(console, arguments);
  bool differs = false;
  for (const std::string& path : arguments.positional) {
    if (path == "-") {
      const std::string text = console.in != nullptr
                                   ? std::string(std::istreambuf_iterator<char>(*console.in), {})
                                   : std::string();
      const std::optional<std::string> layout =
          formatted(session, session.context().locations.files().add("<stdin>", text));
      differs = differs || (layout && *layout != text);
      if (layout && !arguments.check) console.out << *layout;
      continue;
    }
    if (!arguments.check && !is_replaceable(path)) {
      session.sink().report(Code::unwritable_output, SourceRange(),
                            "`{}` cannot be written: it is no regular file", path);
      continue;
    }
    const std::optional<FileId> file =
        source::open(path, {}, console.files, session.context().locations.files(), session.sink());
    if (!file) continue;
    const std::string_view text = session.context().locations.files().text(*file);
    const std::optional<std::string> layout = formatted(session, *file);
    if (!layout || *layout == text) continue;
    differs = true;
    if (arguments.check) {
      console.out << path << "\n";
    } else if (const std::error_code error = source::write_file(path, *layout)) {
      session.sink().report(Code::unwritable_output, SourceRange(), "`{}` cannot be written: {}",
                            path, reason(error.value()));
    }
  }
  const int code = session.finish();
  return code == kClean && arguments.check && differs ? kDiagnostics : code;
}

}  // namespace piper::tools
