#include <fstream>
#include <iterator>

#include "frontend/format/format.h"
#include "frontend/tools/commands.h"
#include "frontend/tools/session.h"

namespace piper::tools {

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
      session.write_file(path, formatted);
    }
  }
  const int code = session.finish();
  return code == kClean && arguments.check && differs ? kDiagnostics : code;
}

}  // namespace piper::tools
