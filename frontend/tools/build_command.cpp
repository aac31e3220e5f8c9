#include <filesystem>

#include "backend/device_program/device_program.h"
#include "backend/emit_cpp/emit_program.h"
#include "embedded/program_headers.h"
#include "frontend/tools/commands.h"
#include "frontend/tools/cuda_view.h"
#include "frontend/tools/product_view.h"
#include "frontend/tools/program_view.h"
#include "frontend/tools/session.h"
#include "frontend/tools/train_job.h"
#include "llvm/Support/JSON.h"

namespace piper::tools {

int run_build(Console& console, const Arguments& arguments) {
  Session session(console, arguments);
  if (!session.open(arguments.positional[0])) return session.finish();
  auto subject =
      session.subject(arguments.positional.size() > 1 ? arguments.positional[1] : "", false);
  if (!subject) return session.finish();
  const auto options = runtime_options(session);
  if (!options) return session.finish();
  if (subject->lowered.strategy.settings.device == directive::Platform::cuda) {
    const auto planned = session.compile(*subject, dag::Level::planned);
    if (planned) build_cuda(session, *planned, arguments.output);
    return session.finish();
  }
  const auto dag = session.compile(*subject, dag::Level::planned);
  if (!dag) return session.finish();
  const std::filesystem::path folder = arguments.output;
  if (!session.make_folder(folder.string())) return session.finish();
  for (const embedded::File& header : embedded::program_headers()) {
    const std::filesystem::path path = folder / header.path;
    if (!session.make_folder(path.parent_path().string()) ||
        !session.write_file(path.string(), std::string(header.text)))
      return session.finish();
  }
  const backend::ProgramSet programs = backend::make_programs(*dag);
  llvm::json::Array files;
  for (const backend::DeviceProgram& role : programs.roles) {
    if (!session.write_file((folder / (role.role + ".cpp")).string(),
                            backend::emit_program(role, programs.bodies)))
      return session.finish();
    files.push_back((folder / (role.role + ".cpp")).string());
    session.words() << (folder / (role.role + ".cpp")).string() << "\n";
  }
  std::vector<ProductRow> products = products_of(programs, options->math);
  runtime::LibrarySwitch library(*options);
  runtime::Failure failure;
  const runtime::LibraryCalls* const calls = products.empty() ? nullptr : library.get(failure);
  if (calls) measure(products, *calls);
  std::string table =
      kernel_table(programs) + (products.empty() ? "" : "\n") + product_table(products);
  if (!calls && !products.empty()) table += "rates not measured: " + failure.message + "\n";
  if (!session.write_file((folder / "kernels.txt").string(), table)) return session.finish();
  session.words() << table;
  if (arguments.format == "json") {
    std::string text;
    llvm::raw_string_ostream(text)
        << llvm::json::Value(llvm::json::Object{{"schema", 1},
                                                {"files", std::move(files)},
                                                {"kernels", kernel_table(programs)},
                                                {"products", product_json(products)}});
    console.out << text << "\n";
  }
  return session.finish();
}

}  // namespace piper::tools
