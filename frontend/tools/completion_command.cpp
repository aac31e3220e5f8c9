// Scripts that complete the words of the command line in a shell, and the man page, from the tables
// of commands and options.

#include "frontend/tools/choices.h"
#include "frontend/tools/commands.h"
#include "frontend/tools/man_page.h"
#include "frontend/tools/session.h"

namespace piper::tools {
namespace {

/// In single quotes, which all three shells read alike.
std::string quoted(std::string_view text) {
  std::string result = "'";
  for (const char c : text) result += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return result + "'";
}

template <typename Words>
std::string joined(const Words& words, std::string_view separator = " ") {
  std::string text;
  for (const auto& word : words)
    text += (text.empty() ? "" : std::string(separator)) + std::string(word);
  return text;
}

bool takes_value(const OptionRow& option) { return option.value[0] != '\0'; }
bool is_file(const OptionRow& option) { return std::string_view(option.value).starts_with("FILE"); }
bool is_folder(const OptionRow& option) {
  return std::string_view(option.value).starts_with("DIR");
}

/// The number of words of a command before its files: `show` has a KIND.
std::size_t words_before_input(Command command) { return choices_of(command, 0).empty() ? 0 : 1; }

std::string bash_words(std::string_view words) { return "_piper_words " + quoted(words); }

/// The command that completes the value of an option.
std::string bash_value(const OptionRow& option) {
  if (is_file(option)) return "_piper_take -f";
  if (is_folder(option)) return "_piper_take -d";
  const auto choices = choices_of(option);
  return choices.empty() ? ":" : bash_words(joined(choices));
}

std::string bash_input(WordKind kind, const std::string& schedules) {
  switch (kind) {
    case WordKind::input:
      return "_piper_take -d; _piper_take -f -X '!*.@(pipe|pir)'; " + bash_words(schedules);
    case WordKind::program: return "_piper_take -d; _piper_take -f -X '!*.pipe'";
    case WordKind::schedule_or_code: return bash_words(schedules);
    case WordKind::other: break;
  }
  return ":";
}

std::string bash_script(const std::string& schedules) {
  std::vector<std::string> commands;
  std::string values, options, words, with_value;
  for (const CommandRow& row : command_rows()) {
    const std::string name = row.name;
    commands.push_back(name);
    std::vector<std::string_view> names, valued;
    for (const OptionRow& option : option_rows()) {
      if (!takes(option, row.command)) continue;
      names.emplace_back(option.name);
      if (!takes_value(option)) continue;
      valued.emplace_back(option.name);
      values +=
          "    " + quoted(name + " " + option.name) + ") " + bash_value(option) + "; return ;;\n";
    }
    options += "    " + name + ") options=" + quoted(joined(names)) +
               " valued=" + quoted(" " + joined(valued) + " ") + " ;;\n";
    if (const auto choices = choices_of(row.command, 0); !choices.empty())
      words += "    " + quoted(name + " 0") + ") " + bash_words(joined(choices)) + " ;;\n";
    if (word_kind(row.command) != WordKind::other)
      words += "    " + quoted(name + " ") + "*) " + bash_input(word_kind(row.command), schedules) +
               " ;;\n";
  }
  commands.insert(commands.end(), {"--help", "--version"});
  return "# Adds what `compgen` gives, a line each: names may have blanks.\n"
         "_piper_take() {\n"
         "  local found\n"
         "  mapfile -t found < <(shopt -s extglob; compgen \"$@\" -- \"$word\")\n"
         "  COMPREPLY+=(\"${found[@]}\")\n"
         "}\n"
         "_piper_words() { _piper_take -W \"$1\"; }\n"
         "_piper() {\n"
         "  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} command=${COMP_WORDS[1]} options= valued= place=0 at\n"
         "  COMPREPLY=()\n"
         "  if [ \"$COMP_CWORD\" -eq 1 ]; then\n    " +
         bash_words(joined(commands)) +
         "\n    return\n  fi\n"
         "  # `--format=json` comes as three words.\n"
         "  if [ \"$word\" = = ]; then\n    word=\n  elif [ \"$before\" = = ]; then\n    before=${COMP_WORDS[COMP_CWORD-2]}\n  fi\n"
         "  case \"$command $before\" in\n" +
         values +
         "  esac\n"
         "  case $command in\n" +
         options +
         "  esac\n"
         "  case $word in -*)\n    _piper_words \"$options\"\n    return\n  esac\n"
         "  for ((at = 2; at < COMP_CWORD; ++at)); do\n"
         "    case ${COMP_WORDS[at]} in\n"
         "      -*) case $valued in *\" ${COMP_WORDS[at]} \"*) at=$((at + 1)) ;; esac ;;\n"
         "      *) place=$((place + 1)) ;;\n"
         "    esac\n"
         "  done\n"
         "  case \"$command $place\" in\n" +
         words +
         "  esac\n"
         "}\n"
         "complete -o filenames -F _piper piper\n";
}

/// A text for `_arguments` of zsh, with its brackets and colons escaped.
std::string zsh_text(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c == '[' || c == ']' || c == ':') result += '\\';
    result += c;
  }
  return result;
}

std::string zsh_value(const OptionRow& option) {
  const auto choices = choices_of(option);
  const std::string action = is_file(option)     ? "_files"
                             : is_folder(option) ? "_files -/"
                             : choices.empty()   ? ""
                                                 : "(" + joined(choices) + ")";
  std::string message;
  for (const char c : std::string_view(option.value))
    message += c == ':' ? std::string("\\:") : std::string(1, c);
  return ":" + message + ":" + action;
}

std::string zsh_input(WordKind kind, const std::string& schedules) {
  switch (kind) {
    case WordKind::input: return "'*:input:_piper_inputs'";
    case WordKind::program: return "'*:file:_files -g \"*.pipe\"'";
    case WordKind::schedule_or_code: return quoted("*:schedule:(" + schedules + ")");
    case WordKind::other: break;
  }
  return {};
}

std::string zsh_script(const std::string& schedules) {
  std::string commands, cases;
  for (const CommandRow& command : command_rows()) {
    commands += "  " + quoted(std::string(command.name) + ":" + zsh_text(command.summary)) + "\n";
    cases += "  " + std::string(command.name) + ") _arguments";
    for (const OptionRow& option : option_rows()) {
      if (takes(option, command.command))
        cases +=
            " \\\n    " + quoted("*" + std::string(option.name) + "[" + zsh_text(option.summary) +
                                 "]" + (takes_value(option) ? zsh_value(option) : ""));
    }
    if (const auto choices = choices_of(command.command, 0); !choices.empty())
      cases += " \\\n    " + quoted("1:word:(" + joined(choices) + ")");
    if (const std::string input = zsh_input(word_kind(command.command), schedules); !input.empty())
      cases += " \\\n    " + input;
    cases += " ;;\n";
  }
  return "#compdef piper\n_piper_inputs() {\n  _alternative 'files:file:_files -g \"*.(pipe|pir)\"' " +
         quoted("schedules:schedule of the library:(" + schedules + ")") + "\n}\n" +
         "local -a commands=(\n" + commands +
         ")\nif (( CURRENT == 2 )); then\n  _describe command commands\n  return\nfi\n" +
         "local command=$words[2]\n(( CURRENT-- ))\nshift words\ncase $command in\n" + cases +
         "esac\n";
}

std::string fish_script(const std::string& schedules) {
  std::string text;
  for (const CommandRow& command : command_rows()) {
    const std::string name = command.name,
                      head = "complete -c piper -n '__fish_seen_subcommand_from " + name;
    text += "complete -c piper -f -n __fish_use_subcommand -a " + name + " -d " +
            quoted(command.summary) + "\n";
    for (const OptionRow& option : option_rows()) {
      if (!takes(option, command.command)) continue;
      const std::string_view word = option.name;
      const std::string flag = word.starts_with("--") ? "-l " + std::string(word.substr(2))
                               : word.size() == 2     ? "-s " + std::string(word.substr(1))
                                                      : "-o " + std::string(word.substr(1));
      const auto choices = choices_of(option);
      const std::string value = !takes_value(option)                   ? ""
                                : is_file(option) || is_folder(option) ? " -r"
                                : choices.empty()                      ? " -x"
                                                  : " -x -a " + quoted(joined(choices));
      text += head + "' " + flag + value + " -d " + quoted(option.summary) + "\n";
    }
    const std::string words = std::to_string(2 + words_before_input(command.command));
    if (const auto choices = choices_of(command.command, 0); !choices.empty()) {
      text += head + "; and test (count (commandline -opc)) -eq 2' -f -a " +
              quoted(joined(choices)) + "\n";
    }
    const WordKind kind = word_kind(command.command);
    if (kind == WordKind::input || kind == WordKind::schedule_or_code)
      text += head + "; and test (count (commandline -opc)) -ge " + words + "' -a " +
              quoted(schedules) + "\n";
  }
  return text;
}

}  // namespace

int run_completion(Console& console, const Arguments& arguments) {
  Session session(console, arguments);
  const std::string schedules = joined(session.compilation().library_schedules());
  const std::string& shell = arguments.positional[0];
  if (shell == "bash") {
    console.out << bash_script(schedules);
  } else if (shell == "zsh") {
    console.out << zsh_script(schedules);
  } else if (shell == "fish") {
    console.out << fish_script(schedules);
  } else if (shell == "man") {
    console.out << man_page();
  } else {
    console.err
        << "piper: `" << shell
        << "` is no shell that is known: write `bash`, `zsh` or `fish`, or `man` for the man page\n";
    return kUsage;
  }
  return kClean;
}

}  // namespace piper::tools
