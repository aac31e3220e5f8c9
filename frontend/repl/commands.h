#pragma once
// The commands of a session: one table, read by the session, by `:help` and by completion.

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "frontend/repl/words.h"

namespace piper::repl {

class Session;

/// The sort of words that a command takes, for completion.
enum class WordSort : std::uint8_t {
  nothing,
  subject,
  file,
  cost,
  rate,
  size,
  command,
  definition,
  explained
};

struct CommandRow {
  std::string_view name;
  std::string_view usage;
  std::string_view summary;
  std::string_view details;
  std::size_t min_words, max_words;  // words without those of the form `k=v`
  bool takes_values;                 // `k=v`
  bool sizes;                        // that are set for the session
  bool draws;                        // it runs again when sizes, costs or definitions change
  WordSort words;
  bool (*run)(Session& session, const Words& words);
};

std::span<const CommandRow> command_rows();
/// The row of a name; null for none.
const CommandRow* find_command(std::string_view name);

/// A list of all, or the description of one.
std::string help_text(const CommandRow* row);

}  // namespace piper::repl
