#include <filesystem>
#include <fstream>

#include "backend/device_program/device_program.h"
#include "backend/emit_cpp/emit_program.h"
#include "backend/jit/jit.h"
#include "frontend/tools/commands.h"
#include "frontend/tools/program_view.h"
#include "frontend/tools/session.h"

namespace piper::tools {
namespace {

/// Writes a file; false, and a diagnostic, when that fails.
bool write_file(Session& session, const std::filesystem::path& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  if (file) return true;
  session.sink().report(Code::unwritable_output, SourceRange(), "`{}` cannot be written", path.string());
  return false;
}

}  // namespace

int run_build(Console& console, const Arguments& arguments) {
  if (arguments.positional.empty() || arguments.positional.size() > 2 || arguments.output.empty()) {
    console.err << "piper: `build` takes a file and a folder: `piper build FILE -o DIR`\n";
    return kUsage;
  }
  Session session(console, arguments);
  if (!session.open(arguments.positional[0])) return session.finish();
  auto subject = session.subject(arguments.positional.size() > 1 ? arguments.positional[1] : "", false);
  if (!subject) return session.finish();
  const auto dag = session.compile(*subject, dag::Level::planned);
  if (!dag) return session.finish();
  std::error_code error;
  std::filesystem::create_directories(arguments.output, error);
  const std::filesystem::path folder = arguments.output;
  if (!backend::write_headers(folder.string())) {
    session.sink().report(Code::unwritable_output, SourceRange(), "`{}` cannot be written", folder.string());
    return session.finish();
  }
  const backend::ProgramSet programs = backend::make_programs(*dag);
  for (const backend::DeviceProgram& role : programs.roles) {
    if (!write_file(session, folder / (role.role + ".cpp"), backend::emit_program(role, programs.bodies))) return session.finish();
    console.out << (folder / (role.role + ".cpp")).string() << "\n";
  }
  const std::string table = kernel_table(*dag);
  if (write_file(session, folder / "kernels.txt", table)) console.out << table;
  return session.finish();
}

}  // namespace piper::tools
