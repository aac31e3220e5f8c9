#include "frontend/tools/choices.h"

#include <iterator>

#include "frontend/views/tuning.h"

namespace piper::tools {

bool takes(const OptionRow& option, Command command) {
  return (option.commands >> static_cast<unsigned>(command) & 1) != 0;
}

std::vector<std::string_view> choices_of(const OptionRow& option) {
  const std::string_view name = option.name;
  if (name == "--format") {
    if (takes(option, Command::show))
      return {"text", "json", "pipe", "pir", "svg", "html", "perfetto"};
    if (takes(option, Command::compare)) return {"text", "json", "html"};
    if (takes(option, Command::tune)) return {"text", "json", "svg"};
    return {"text", "json"};
  }
  if (name == "--minimize") return {std::begin(views::kGoals), std::end(views::kGoals)};
  if (name == "--level") return {"built", "split", "placed", "communicating", "ordered", "planned"};
  if (name == "--print-after")
    return {"build",         "split",       "place", "replicate",
            "drop_backward", "communicate", "order", "insert_collectives",
            "offload",       "plan",        "all"};
  if (name == "--device") return {"cpu", "cuda"};
  if (name == "--transport") return {"local"};
  if (name == "--only") return {"weights"};
  if (name == "--log") return {"csv", "tensorboard"};
  if (name == "--dtype") return {"f64", "f32", "bf16", "f16"};
  return {};
}

std::vector<std::string_view> choices_of(Command command, std::size_t place) {
  if (place > 0) return {};
  if (command == Command::show)
    return {"ast",       "graph",   "orders",     "grid",  "timeline", "memory", "comm",
            "partition", "metrics", "checkpoint", "stuck", "dag",      "program"};
  if (command == Command::completion) return {"bash", "zsh", "fish", "man"};
  if (command != Command::help) return {};
  std::vector<std::string_view> commands;
  for (const CommandRow& row : command_rows()) commands.emplace_back(row.name);
  return commands;
}

WordKind word_kind(Command command) {
  switch (command) {
    case Command::check:
    case Command::show:
    case Command::simulate:
    case Command::compare:
    case Command::tune:
    case Command::build: return WordKind::input;
    case Command::train:
    case Command::sample:
    case Command::export_weights:
    case Command::fmt: return WordKind::program;
    case Command::explain: return WordKind::schedule_or_code;
    default: return WordKind::other;
  }
}

}  // namespace piper::tools
