#pragma once
// The command line: one table of commands and one of options, read by the parser and by `--help`.
//
//   Arguments arguments;
//   if (!parse_arguments({"show", "grid", "zbv", "-D", "p=4"}, arguments, error)) ...;

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/lower/lower.h"
#include "frontend/service/nearest.h"

namespace piper::tools {

enum class Command : std::uint8_t {
  check,
  show,
  simulate,
  compare,
  tune,
  train,
  sample,
  build,
  export_weights,
  explain,
  fmt,
  repl,
  lsp,
  completion,
  doctor,
  help
};

struct Arguments {
  Command command = Command::help;
  std::vector<std::string> words;          // all of the command line
  std::vector<std::string> positional;     // after the command
  std::vector<lower::Override> overrides;  // -D name=value, in order
  std::string format;                      // --format; empty: the command's own
  std::string output;                      // -o
  // Show dag --level; empty: planned, or that of the file.
  std::string level;
  std::string cost, rates, costs_file, machine;  // --cost, --rates, --costs, --machine
  std::string kept_weights, kept_forward;        // --w, --keep
  std::string stages;                            // --stages: `cost` or `equal`
  std::string minimize;                          // --minimize; empty: by the subject
  std::optional<std::int64_t> memory;            // --memory, in bytes
  std::optional<std::uint64_t> tries;            // --tries
  std::string print_after;                       // --print-after
  std::string device;                            // --device; empty: that of each train
  std::string transport;                         // --transport; empty: by the processes
  std::optional<std::uint64_t> processes;        // -n
  std::optional<std::uint64_t> steps;            // --steps
  std::optional<std::uint64_t> threads;          // --threads
  std::string out_folder;                        // --out
  std::string resume, only;                      // --resume, --only
  std::string dtype;                             // --dtype; empty: that of training
  std::string names, program;                    // --names, --program
  std::string trace, profile;                    // --trace, --profile
  std::string script;                            // --script
  bool log_csv = false;                          // --log csv
  bool log_tensorboard = false;                  // --log tensorboard
  bool ema = false;                              // --ema
  bool locations = false;                        // --locations
  bool bodies = false;                           // --bodies
  bool reference = false;                        // --reference
  bool interpret = false;                        // --interpret
  bool dry_run = false;                          // --dry-run
  bool check = false;                            // --check
  bool help = false;                             // --help
  bool version = false;                          // --version
  std::string from;                              // --from
  std::optional<std::string> prompt;             // --prompt
  std::string prompt_file, prompt_ids;           // --prompt-file, --prompt-ids
  std::optional<std::uint64_t> tokens;           // --tokens
  std::optional<double> temperature, top_p;      // --temperature, --top-p
  std::optional<std::uint64_t> top_k;            // --top-k
  std::optional<std::uint64_t> seed;             // --seed
};

/// The largest number of words of a command that takes any number.
inline constexpr std::size_t kAnyNumber = SIZE_MAX;

struct CommandRow {
  Command command;
  const char* name;
  const char* usage;
  std::size_t least_words, most_words;  // after the command, without options
  const char* summary;
  const char* details;
  const char* input;  // the legal values of IN or FILE; empty: the command reads none
};

struct OptionRow {
  const char* name;     // `--steps`
  const char* value;    // `N`; empty: a switch
  const char* initial;  // shown default; empty: none
  const char* summary;
  std::uint32_t commands;  // bit per Command
};

std::span<const CommandRow> command_rows();
std::span<const OptionRow> option_rows();

/// False, and `error` has the message and a correction.
bool parse_arguments(std::span<const std::string> words, Arguments& arguments, std::string& error);

/// The text of `piper --help`, or of `piper COMMAND --help`; `train` lists the environment of the
/// runtime too. In help_text.cpp.
std::string help_text(std::optional<Command> command);

}  // namespace piper::tools
