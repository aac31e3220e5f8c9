#include "frontend/tools/arguments.h"
#include "frontend/tools/choices.h"
#include "frontend/tools/environment.h"

namespace piper::tools {

std::string help_text(std::optional<Command> command) {
  // A row of two columns; a long first one gets a line of its own.
  const auto row = [](const std::string& head, std::size_t width, const std::string& text) {
    std::string line = "  " + head;
    if (line.size() + 2 > width) return line + "\n" + std::string(width, ' ') + text + "\n";
    line.resize(width, ' ');
    return line + text + "\n";
  };
  std::string text;
  if (command && *command != Command::help) {
    const CommandRow& shown = command_rows()[static_cast<unsigned>(*command)];
    text = "usage: " + std::string(shown.usage) + " [OPTIONS]\n\n" + shown.details + "\n\n" +
           shown.input + (shown.input[0] ? "\n" : "") + "Options:\n";
    for (const OptionRow& option : option_rows()) {
      if (!takes(option, *command)) continue;
      const std::string initial = option.initial[0] ? " [" + std::string(option.initial) + "]" : "";
      text +=
          row(std::string(option.name) + (option.value[0] ? " " + std::string(option.value) : ""),
              24, option.summary + initial);
    }
    const std::vector<runtime::OptionRow> variables =
        *command == Command::train  ? environment_variables()
        : *command == Command::repl ? session_variables()
                                    : std::vector<runtime::OptionRow>();
    if (!variables.empty()) {
      text += "\nEnvironment:\n";
      for (const runtime::OptionRow& option : variables) {
        text += row(std::string(option.name) + "=" + option.type, 36,
                    std::string(option.meaning) + " [" + option.initial + "]");
      }
    }
  } else {
    text =
        "piper: a compiler and runtime for distributed training\n\nusage: piper COMMAND [ARGUMENTS] [OPTIONS]\n\nCommands:\n";
    for (const CommandRow& shown : command_rows()) text += row(shown.name, 12, shown.summary);
    text +=
        "\n`piper COMMAND --help` shows the arguments and options of a command, `piper --version` the version.\n";
  }
  return text +
         "\nExit codes: 0 clean, 1 diagnostics or a failed run, 2 wrong usage, 130 interrupted.\n";
}

}  // namespace piper::tools
