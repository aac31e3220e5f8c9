#pragma once
// The loop: lines in, entries to the session.

#include <cstdint>
#include <istream>
#include <optional>
#include <string>
#include <utility>

#include "frontend/repl/history_file.h"
#include "frontend/repl/line_editor.h"
#include "frontend/repl/session.h"

namespace piper::repl {

inline constexpr const char* kPrompt = "piper> ";
inline constexpr const char* kMore = "  ...> ";

/// Gathers lines until they are an entry.
class Lines {
 public:
  /// An entry where the line ends one.
  std::optional<std::string> add(std::string_view line);
  /// Whether an entry has begun.
  bool open() const { return !text_.empty(); }
  std::string take() { return std::exchange(text_, {}); }

 private:
  std::string text_;
};

/// The text before an answer: nothing, a prompt for a user, or the prompt and the line.
enum class Echo : std::uint8_t { nothing, prompt, line };
enum class Ended : std::uint8_t { well, failed, interrupted };

/// Answers lines to the end of `in`. `failed`: one of them did. Ctrl-C ends input that is not
/// typed.
Ended run_lines(Session& session, std::istream& in, Echo echo);

/// Answers entries of a terminal, until Ctrl-D or `:quit`. Earlier entries are found with the arrow
/// keys.
void run_terminal(Session& session, Terminal& terminal, const HistoryFile& history);

}  // namespace piper::repl
