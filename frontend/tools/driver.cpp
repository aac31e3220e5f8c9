#include "frontend/tools/driver.h"

#include "frontend/tools/arguments.h"
#include "frontend/tools/commands.h"
#include "ir/diagnostics/diagnostics.h"

namespace piper::tools {

namespace {

int run_command(std::span<const std::string> words, Console& console) {
  Arguments arguments;
  std::string error;
  if (!parse_arguments(words, arguments, error)) {
    console.err << "piper: " << error << "\n";
    return kUsage;
  }
  if (words.empty()) {
    console.err << help_text(std::nullopt);
    return kUsage;
  }
  if (arguments.help) {
    console.out << help_text(arguments.command == Command::help ? std::nullopt
                                                                : std::optional(arguments.command));
    return kClean;
  }
  if (arguments.version) {
    console.out << "piper " << PIPER_VERSION << "\n";
    return kClean;
  }
  switch (arguments.command) {
    case Command::check: return run_check(console, arguments);
    case Command::show: return run_show(console, arguments);
    case Command::simulate: return run_simulate(console, arguments);
    case Command::compare: return run_compare(console, arguments);
    case Command::tune: return run_tune(console, arguments);
    case Command::train: return run_train(console, arguments);
    case Command::build: return run_build(console, arguments);
    case Command::sample: return run_sample(console, arguments);
    case Command::export_weights: return run_export(console, arguments);
    case Command::explain: return run_explain(console, arguments);
    case Command::fmt: return run_fmt(console, arguments);
    case Command::completion: return run_completion(console, arguments);
    case Command::repl: return run_repl(console, arguments);
    case Command::doctor: return run_doctor(console, arguments);
    case Command::lsp: return run_lsp(console, arguments);
    case Command::help: break;
  }
  if (arguments.positional.empty()) {
    console.out << help_text(std::nullopt);
    return kClean;
  }
  std::vector<std::string> names;
  for (const CommandRow& row : command_rows()) {
    if (arguments.positional[0] == row.name) {
      console.out << help_text(row.command);
      return kClean;
    }
    names.push_back(row.name);
  }
  const auto meant = nearest(arguments.positional[0], names);
  console.err << "piper: `" << arguments.positional[0] << "` is no command"
              << (meant ? "; did you mean `" + *meant + "`?" : "; `piper --help` lists them")
              << "\n";
  return kUsage;
}

}  // namespace

int run(std::span<const std::string> words, Console& console) {
  const int code = run_command(words, console);
  console.out.flush();
  console.err.flush();
  if (console.out) return code;
  const LocationTable locations;
  DiagnosticSink sink(locations);
  sink.report(Code::unwritable_output, SourceRange(),
              "standard output cannot be written: the output is incomplete");
  console.err << render_text(sink.sorted(), locations.files());
  return code == kClean ? kDiagnostics : code;
}

}  // namespace piper::tools
