#include "frontend/tools/arguments.h"

#include <algorithm>
#include <charconv>
#include <limits>

#include "frontend/lower/override_values.h"
#include "frontend/tools/choices.h"
#include "frontend/tools/prompt.h"
#include "frontend/views/tuning.h"
#include "llvm/ADT/StringRef.h"

namespace piper::tools {
namespace {

std::optional<std::uint64_t> parse_count(const std::string& text) {
  std::uint64_t value = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || rest != text.data() + text.size()) return std::nullopt;
  return value;
}

/// A number from `lowest` to `highest`.
std::optional<double> parse_number(const std::string& text, double lowest, double highest) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool legal = error == std::errc() && end == text.data() + text.size() && value >= lowest &&
                     value <= highest;
  return legal ? std::optional(value) : std::nullopt;
}

bool one_of(const std::string& word, std::initializer_list<const char*> words) {
  for (const char* candidate : words) {
    if (word == candidate) return true;
  }
  return false;
}

/// Stores the value of an option; an error text when it is no such value.
std::string store(const OptionRow& option, const std::string& value, Arguments& arguments) {
  const std::string name = option.name;
  if (value.empty() && option.value[0] != '\0')
    return "`" + name + "` lacks its value: write `" + name + " " + option.value + "`";
  if (name == "-D") {
    const std::size_t equals = value.find('=');
    if (equals == std::string::npos || equals == 0) return "`-D " + value + "` is no `NAME=VALUE`";
    arguments.overrides.push_back({value.substr(0, equals), value.substr(equals + 1)});
  } else if (name == "--format") {
    if (!one_of(value, {"text", "json", "pipe", "pir", "svg", "html", "perfetto"}))
      return "`--format " + value +
             "` is no format: write `text` or `json`, or one that `piper show --help` has";
    arguments.format = value;
  } else if (name == "-o") {
    arguments.output = value;
  } else if (name == "--minimize") {
    if (std::find(std::begin(views::kGoals), std::end(views::kGoals), value) ==
        std::end(views::kGoals))
      return "`--minimize " + value +
             "` is no figure: write `makespan`, `span`, `bubble`, `memory` or `traffic`";
    arguments.minimize = value;
  } else if (name == "--memory") {
    const std::optional<lower::Value> size = lower::parse_override(value, {sema::TypeKind::bytes});
    if (!size) return "`--memory " + value + "` is no size: write `--memory 24GiB`";
    arguments.memory = size->get<lower::ByteCount>()->bytes;
  } else if (name == "--level") {
    if (!one_of(value, {"built", "split", "placed", "communicating", "ordered", "planned"})) {
      return "`--level " + value +
             "` is no level: write `built`, `split`, `placed`, `communicating`, `ordered` or `planned`";
    }
    arguments.level = value;
  } else if (name == "--cost") {
    arguments.cost = value;
  } else if (name == "--rates") {
    arguments.rates = value;
  } else if (name == "--costs") {
    arguments.costs_file = value;
  } else if (name == "--machine") {
    arguments.machine = value;
  } else if (name == "--w") {
    arguments.kept_weights = value;
  } else if (name == "--keep") {
    arguments.kept_forward = value;
  } else if (name == "--stages") {
    if (!one_of(value, {"cost", "equal"}))
      return "`--stages " + value + "` is no rule: write `--stages cost` or `--stages equal`";
    arguments.stages = value;
  } else if (name == "--print-after") {
    if (!one_of(value, {"build", "split", "place", "replicate", "drop_backward", "communicate",
                        "order", "insert_collectives", "offload", "plan", "all"})) {
      return "`--print-after " + value +
             "` is no pass: write `build`, `split`, `place`, `replicate`, `drop_backward`, `communicate`, `order`, `insert_collectives`, `offload`, `plan` or `all`";
    }
    arguments.print_after = value;
  } else if (name == "--device") {
    if (!one_of(value, {"cpu", "cuda"}))
      return "`--device " + value + "` is no device: write `--device cpu` or `--device cuda`";
    arguments.device = value;
  } else if (name == "--transport") {
    if (value != "local")
      return "`--transport " + value + "` is not available: write `--transport local`";
    arguments.transport = value;
  } else if (name == "--out") {
    arguments.out_folder = value;
  } else if (name == "--resume") {
    arguments.resume = value;
  } else if (name == "--only") {
    if (value != "weights")
      return "`--only " + value + "` is no part of a checkpoint: write `--only weights`";
    arguments.only = value;
  } else if (name == "--log") {
    if (!one_of(value, {"csv", "tensorboard"}))
      return "`--log " + value + "` is no log: write `--log csv` or `--log tensorboard`";
    (value == "csv" ? arguments.log_csv : arguments.log_tensorboard) = true;
  } else if (name == "--dtype") {
    if (!one_of(value, {"f64", "f32", "bf16", "f16"}))
      return "`--dtype " + value + "` is no type: write `f64`, `f32`, `bf16` or `f16`";
    arguments.dtype = value;
  } else if (name == "--from") {
    arguments.from = value;
  } else if (name == "--prompt") {
    arguments.prompt = value;
  } else if (name == "--prompt-file") {
    arguments.prompt_file = value;
  } else if (name == "--prompt-ids") {
    if (!parse_ids(value))
      return "`--prompt-ids " + value + "` is no list of tokens: write `--prompt-ids 1,2,3`";
    arguments.prompt_ids = value;
  } else if (name == "--temperature") {
    arguments.temperature = parse_number(value, 0, std::numeric_limits<double>::max());
    if (!arguments.temperature) return "`--temperature " + value + "` is no number from 0 up";
  } else if (name == "--top-p") {
    arguments.top_p = parse_number(value, std::numeric_limits<double>::min(), 1);
    if (!arguments.top_p) return "`--top-p " + value + "` is no number above 0 and up to 1";
  } else if (name == "--names") {
    arguments.names = value;
  } else if (name == "--program") {
    arguments.program = value;
  } else if (name == "--script") {
    arguments.script = value;
  } else if (name == "--trace") {
    arguments.trace = value;
  } else if (name == "--profile") {
    arguments.profile = value;
  } else if (name == "--ema") {
    arguments.ema = true;
  } else if (name == "--locations") {
    arguments.locations = true;
  } else if (name == "--bodies") {
    arguments.bodies = true;
  } else if (name == "--reference") {
    arguments.reference = true;
  } else if (name == "--interpret") {
    arguments.interpret = true;
  } else if (name == "--dry-run") {
    arguments.dry_run = true;
  } else if (name == "--check") {
    arguments.check = true;
  } else if (name == "--stdio") {
    // There is no other way.
  } else if (name == "--help") {
    arguments.help = true;
  } else {
    const auto count = parse_count(value);
    if (!count) return "`" + name + " " + value + "` is no whole number";
    if (name == "-n") arguments.processes = count;
    if (name == "--steps") arguments.steps = count;
    if (name == "--tokens") arguments.tokens = count;
    if (name == "--seed") arguments.seed = count;
    if (name == "--tries") {
      if (*count == 0) return "`--tries 0` tries nothing: write a number from 1 up";
      arguments.tries = count;
    }
    if (name == "--top-k") {
      if (*count == 0) return "`--top-k 0` leaves no token: write a number from 1 up";
      arguments.top_k = count;
    }
    if (name == "--threads") {
      if (*count == 0 || *count > 1024) return "`--threads " + value + "` is outside 1 to 1024";
      arguments.threads = count;
    }
  }
  return {};
}

/// The error in the combination of words and options; empty if there is none.
std::string wrong_use(const CommandRow& command, const Arguments& arguments) {
  const std::size_t words = arguments.positional.size();
  if (words < command.least_words || words > command.most_words) {
    std::string counts = std::to_string(command.least_words);
    if (command.most_words == kAnyNumber) {
      counts += " or more";
    } else if (command.most_words > command.least_words) {
      counts += (command.most_words > command.least_words + 1 ? " to " : " or ") +
                std::to_string(command.most_words);
    }
    return "`" + std::string(command.name) + "` takes " + counts +
           (counts == "1" ? " argument" : " arguments") + " and has " + std::to_string(words) +
           ": write `" + command.usage + "`";
  }
  if (arguments.command == Command::compare) {
    constexpr std::size_t kMaxRows = 256;
    std::size_t rows = words;
    for (const lower::Override& size : arguments.overrides)
      rows *= std::min(views::alternatives(size).size(), kMaxRows + 1);
    if (rows > kMaxRows)
      return "`compare` has " + std::to_string(kMaxRows) + " rows at most, and these sizes are " +
             std::to_string(rows);
  }
  if (arguments.command == Command::build && arguments.output.empty())
    return "`build` needs a folder to write to: write `" + std::string(command.usage) + "`";
  if (arguments.command == Command::export_weights && arguments.output.empty())
    return "`export` needs a file or a folder to write to: write `" + std::string(command.usage) +
           "`";
  const int prompts = int(arguments.prompt.has_value()) + int(!arguments.prompt_file.empty()) +
                      int(!arguments.prompt_ids.empty());
  if (arguments.command == Command::sample && prompts != 1)
    return std::string(prompts == 0 ? "`sample` needs the beginning of a text"
                                    : "a text has one beginning") +
           ": write one of `--prompt TEXT`, `--prompt-file FILE` and `--prompt-ids 1,2,3`";
  if (!arguments.program.empty() && arguments.names.empty())
    return "`--program` has the model that names are resolved for: write `--names MAP`, too";
  if (arguments.steps == 0 && !(arguments.trace + arguments.profile).empty())
    return "`--trace` and `--profile` record a step: leave out `--steps 0`";
  if (!arguments.only.empty() && arguments.resume.empty())
    return "`--only` says what is taken from a checkpoint: write `--resume DIR`, too";
  if (arguments.processes == 0) return "`-n 0` starts no process: write a number from 1 up";
  if (arguments.processes.value_or(1) > 1 && !arguments.transport.empty())
    return "`-n` starts processes, and `--transport local` is for one: leave one out";
  if (arguments.reference && !arguments.resume.empty())
    return "`--resume` is of a training run: leave out `--reference`";
  if (arguments.reference && !arguments.trace.empty())
    return "`--trace` is of a training run: leave out `--reference`";
  if (arguments.reference && !arguments.profile.empty())
    return "`--profile` is of a training run: leave out `--reference`";
  const bool logs = arguments.log_csv || arguments.log_tensorboard;
  if (arguments.reference && logs) return "`--log` is of a training run: leave out `--reference`";
  const bool in_resumed_run = !arguments.resume.empty() && arguments.only.empty();
  if (logs && arguments.out_folder.empty() && !in_resumed_run)
    return "`--log` writes into the folder of the run: write `--out DIR`, too";
  if (!arguments.trace.empty() && arguments.trace == arguments.profile)
    return "`--trace` and `--profile` name one file: give each its own";
  const bool picture = (arguments.command == Command::compare && arguments.format == "html") ||
                       (arguments.command == Command::tune && arguments.format == "svg");
  if (arguments.command != Command::show && !picture &&
      !one_of(arguments.format, {"", "text", "json"}))
    return "`--format " + arguments.format + "` is only for `show`";
  const bool of_operations = !arguments.cost.empty() || !arguments.kept_weights.empty() ||
                             !arguments.kept_forward.empty() || !arguments.stages.empty();
  if (of_operations && !(arguments.rates + arguments.costs_file + arguments.machine).empty()) {
    return "costs of operations (`--cost`, `--w`, `--keep`, `--stages`) and of the plan's actions (`--rates`, `--costs`, `--machine`) are two simulations: write those of one";
  }
  return {};
}

/// The row of a command; null after setting `error`.
const CommandRow* find_command(const std::string& word, std::string& error) {
  std::vector<std::string> names;
  for (const CommandRow& row : command_rows()) {
    if (word == row.name) return &row;
    names.push_back(row.name);
  }
  const auto meant = nearest(word, names);
  error = "`" + word + "` is no command" +
          (meant ? "; did you mean `" + *meant + "`?" : "; `piper --help` lists them");
  return nullptr;
}

/// The row of an option of the command; null after setting `error`.
const OptionRow* find_option(const CommandRow& command, const std::string& name,
                             std::string& error) {
  const OptionRow* option = nullptr;
  std::vector<std::string> names;
  std::string owner;  // another command that has the option
  for (const OptionRow& row : option_rows()) {
    const bool here = takes(row, command.command);
    if (name == row.name && here) option = &row;
    if (here && row.name[1] == '-') names.push_back(row.name);
    for (const CommandRow& other : command_rows()) {
      if (name == row.name && owner.empty() && takes(row, other.command)) owner = other.name;
    }
  }
  if (option) return option;
  error = "`" + name + "` is no option of `piper " + command.name + "`";
  if (!owner.empty()) {
    error += ", but of `piper " + owner + "`";
  } else if (const auto meant = nearest(name, names)) {
    error += "; did you mean `" + *meant + "`?";
  } else {
    error += "; `piper " + std::string(command.name) + " --help` lists them";
  }
  return nullptr;
}

/// An option as it is written: `--steps=3`, `-Dp=4`, or the name alone.
struct WrittenOption {
  std::string name;
  std::optional<std::string> value;  // attached to the name
};

WrittenOption split_option(const std::string& word) {
  if (!word.starts_with("--"))
    return word.size() > 2 ? WrittenOption{word.substr(0, 2), word.substr(2)}
                           : WrittenOption{word, std::nullopt};
  const std::size_t equals = word.find('=');
  if (equals == std::string::npos) return {word, std::nullopt};
  return {word.substr(0, equals), word.substr(equals + 1)};
}

}  // namespace

bool parse_arguments(std::span<const std::string> words, Arguments& arguments, std::string& error) {
  arguments.words.assign(words.begin(), words.end());
  if (words.empty()) return true;
  if (words[0] == "--help" || words[0] == "-h") {
    arguments.help = true;
    return true;
  }
  if (words[0] == "--version") {
    arguments.version = true;
    return true;
  }
  const CommandRow* command = find_command(words[0], error);
  if (!command) return false;
  arguments.command = command->command;
  bool options_end = false;
  for (std::size_t at = 1; at < words.size(); ++at) {
    const std::string& word = words[at];
    if (options_end || word.size() < 2 || word[0] != '-') {
      arguments.positional.push_back(word);
      continue;
    }
    if (word == "--") {
      options_end = true;
      continue;
    }
    WrittenOption written = split_option(word == "-h" ? "--help" : word);
    const OptionRow* option = find_option(*command, written.name, error);
    if (!option) return false;
    const bool takes_value = option->value[0] != '\0';
    if (!takes_value && written.value) {
      error = "`" + written.name + "` takes no value";
      return false;
    }
    if (takes_value && !written.value) {
      if (++at == words.size()) {
        error = "`" + written.name + "` lacks its value: write `" + written.name + " " +
                option->value + "`";
        return false;
      }
      written.value = words[at];
    }
    error = store(*option, written.value.value_or(""), arguments);
    if (!error.empty()) return false;
  }
  if (!arguments.help) error = wrong_use(*command, arguments);
  return error.empty();
}

}  // namespace piper::tools
