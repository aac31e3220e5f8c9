// Scripts that complete the words of the command line in a shell, from the tables of commands and options.

#include "frontend/tools/commands.h"

namespace piper::tools {
namespace {

bool has(const OptionRow& option, const CommandRow& command) { return (option.commands >> static_cast<unsigned>(command.command) & 1) != 0; }

/// In single quotes, which all three shells read alike.
std::string quoted(std::string_view text) {
  std::string result = "'";
  for (const char c : text) result += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return result + "'";
}

std::string bash_script() {
  std::string commands, cases;
  for (const CommandRow& command : command_rows()) {
    commands += (commands.empty() ? "" : " ") + std::string(command.name);
    std::string options;
    for (const OptionRow& option : option_rows()) {
      if (has(option, command)) options += (options.empty() ? "" : " ") + std::string(option.name);
    }
    cases += "    " + std::string(command.name) + ") options=" + quoted(options) + " ;;\n";
  }
  return "_piper() {\n"
         "  local word=${COMP_WORDS[COMP_CWORD]} options=\n"
         "  if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
         "    COMPREPLY=($(compgen -W " + quoted(commands) + " -- \"$word\"))\n"
         "    return\n"
         "  fi\n"
         "  case ${COMP_WORDS[1]} in\n" + cases +
         "  esac\n"
         "  case $word in\n"
         "    -*) COMPREPLY=($(compgen -W \"$options\" -- \"$word\")) ;;\n"
         "    *) COMPREPLY=($(compgen -d -- \"$word\") $(compgen -f -- \"$word\" | grep -E '\\.(pipe|pir)$')) ;;\n"
         "  esac\n"
         "}\n"
         "complete -o filenames -F _piper piper\n";
}

/// What `_arguments` of zsh takes: brackets and colons in texts are its own.
std::string zsh_text(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c == '[' || c == ']' || c == ':') result += '\\';
    result += c;
  }
  return result;
}

std::string zsh_script() {
  std::string commands, cases;
  for (const CommandRow& command : command_rows()) {
    commands += "  " + quoted(std::string(command.name) + ":" + zsh_text(command.summary)) + "\n";
    cases += "  " + std::string(command.name) + ") _arguments";
    for (const OptionRow& option : option_rows()) {
      if (!has(option, command)) continue;
      cases += " \\\n    " + quoted("*" + std::string(option.name) + "[" + zsh_text(option.summary) + "]" + (option.value[0] != '\0' ? ":" + std::string(option.value) + ":" : ""));
    }
    cases += " \\\n    '*:file:_files -g \"*.(pipe|pir)\"' ;;\n";
  }
  return "#compdef piper\nlocal -a commands=(\n" + commands + ")\nif (( CURRENT == 2 )); then\n  _describe command commands\n  return\nfi\n" +
         "local command=$words[2]\n(( CURRENT-- ))\nshift words\ncase $command in\n" + cases + "esac\n";
}

std::string fish_script() {
  std::string text;
  for (const CommandRow& command : command_rows()) {
    text += "complete -c piper -f -n __fish_use_subcommand -a " + std::string(command.name) + " -d " + quoted(command.summary) + "\n";
    for (const OptionRow& option : option_rows()) {
      if (!has(option, command)) continue;
      const std::string_view name = option.name;
      const std::string flag = name.starts_with("--") ? "-l " + std::string(name.substr(2)) : "-s " + std::string(name.substr(1));
      text += "complete -c piper -n '__fish_seen_subcommand_from " + std::string(command.name) + "' " + flag + (option.value[0] != '\0' ? " -x" : "") + " -d " +
              quoted(option.summary) + "\n";
    }
  }
  return text;
}

}  // namespace

int run_completion(Console& console, const Arguments& arguments) {
  const std::string& shell = arguments.positional[0];
  if (shell == "bash") {
    console.out << bash_script();
  } else if (shell == "zsh") {
    console.out << zsh_script();
  } else if (shell == "fish") {
    console.out << fish_script();
  } else {
    console.err << "piper: `" << shell << "` is no shell that is known: write `bash`, `zsh` or `fish`\n";
    return kUsage;
  }
  return kClean;
}

}  // namespace piper::tools
