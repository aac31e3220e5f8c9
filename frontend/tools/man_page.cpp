#include "frontend/tools/man_page.h"

#include "frontend/tools/arguments.h"
#include "frontend/tools/choices.h"
#include "frontend/tools/environment.h"
#include "llvm/ADT/StringRef.h"

namespace piper::tools {
namespace {

/// As it is printed: no letter of it commands troff.
std::string plain(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if ((c == '.' || c == '\'') && (result.empty() || result.back() == '\n')) result += "\\&";
    if (c == '\\') {
      result += "\\e";
    } else {
      result += c == '-' ? std::string("\\-") : std::string(1, c);
    }
  }
  return result;
}

/// Running text; lines that begin with blanks are lists, and stay lines.
std::string paragraphs(llvm::StringRef text) {
  std::string result;
  bool listed = false;
  for (llvm::StringRef rest = text.rtrim('\n'); !rest.empty();) {
    const auto [line, after] = rest.split('\n');
    rest = after;
    const bool list = line.starts_with("  ");
    if (list != listed) result += list ? ".PP\n.nf\n" : ".fi\n.PP\n";
    listed = list;
    result += plain(line) + "\n";
  }
  return result + (listed ? ".fi\n" : "");
}

std::string entry(std::string_view head, std::string_view value, const std::string& text) {
  return ".TP\n\\fB" + plain(head) + "\\fR" +
         (value.empty() ? "" : " \\fI" + plain(value) + "\\fR") + "\n" + plain(text) + "\n";
}

std::string section_of(const CommandRow& command) {
  std::string text = ".SS \"" + plain(command.usage) + "\"\n" + plain(command.summary) + ".\n";
  for (const char* part : {command.details, command.input}) {
    if (part[0] != '\0') text += ".PP\n" + paragraphs(part);
  }
  for (const OptionRow& option : option_rows()) {
    if (!takes(option, command.command) || std::string_view(option.name) == "--help") continue;
    text += entry(option.name, option.value,
                  std::string(option.summary) +
                      (option.initial[0] != '\0' ? " [" + std::string(option.initial) + "]" : ""));
  }
  return text;
}

}  // namespace

std::string man_page() {
  std::string text =
      std::string() +
      ".TH PIPER 1 \"\" \"Piper\" \"User Commands\"\n.ad l\n.nh\n"
      ".SH NAME\npiper \\- a compiler and runtime for distributed training\n"
      ".SH SYNOPSIS\n\\fBpiper\\fR \\fICOMMAND\\fR [\\fIARGUMENTS\\fR] [\\fIOPTIONS\\fR]\n"
      ".SH DESCRIPTION\nA strategy (how work and state are placed, replicated, split and ordered) is a short .pipe program, kept apart from the model and from the runtime.\n"
      "The compiler turns model and strategy into one training DAG of a step on all devices, proves that it cannot hang, and generates one program per device role,\n"
      "which the runtime builds, loads and runs.\n"
      ".SH OPTIONS\n" +
      entry("--help", "", "After a command: its arguments and options.") +
      entry("--version", "", "The version.") + ".SH COMMANDS\n";
  for (const CommandRow& command : command_rows()) text += section_of(command);
  text += ".SH ENVIRONMENT\n";
  for (const auto& [command, rows] :
       {std::pair{"train", environment_variables()}, {"repl", session_variables()}}) {
    text += "For \\fBpiper " + std::string(command) + "\\fR:\n";
    for (const runtime::OptionRow& option : rows)
      text +=
          entry(option.name, "",
                std::string(option.meaning) + " (" + option.type + ") [" + option.initial + "]");
  }
  return text +
         ".SH EXIT STATUS\n0 clean, 1 diagnostics or a failed run, 2 wrong usage, 130 interrupted.\n";
}

}  // namespace piper::tools
