#pragma once
// Lines on a terminal that can be edited: history, several lines at once, pasted text, completion.
//
//   LineEditor editor(terminal);
//   editor.complete = [&](std::string_view text) { return completion_of(session, text); };
//   while (std::optional<std::string> entry = editor.read("piper> ", "  ...> ")) session.execute(*entry);

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/repl/keys.h"
#include "frontend/repl/line_buffer.h"

namespace piper::repl {

/// Reads keys and draws lines.
class Terminal {
 public:
  virtual ~Terminal() = default;
  enum class Wait : std::uint8_t { bytes, nothing, closed };
  /// Waits for bytes, at most `milliseconds`; `nothing` after that.
  virtual Wait read(std::string& bytes, int milliseconds) = 0;
  virtual void write(std::string_view bytes) = 0;
  virtual std::size_t columns() const = 0;
  /// Keys one by one, without echo; or back to normal, while a command runs.
  virtual void set_raw(bool raw) = 0;
  /// Stops the program as the shell's Ctrl-Z does, until it goes on.
  virtual void suspend() = 0;
};

/// Completions at the end of a text.
struct Completion {
  std::size_t begin = 0;                // of the word that is completed
  std::vector<std::string> candidates;  // sorted
};

class LineEditor {
 public:
  explicit LineEditor(Terminal& terminal) : terminal_(terminal) {}

  std::function<Completion(std::string_view text)> complete;
  /// Called while no keys come: whether there is news; `say` prints it.
  std::function<bool()> has_news;
  std::function<void()> say;
  /// Whether Enter starts a new line of the entry.
  std::function<bool(std::string_view text)> goes_on;
  /// Adds an entry of an earlier session.
  void remember(std::string entry) { history_.add(std::move(entry)); }

  /// An entry; nothing at the end of the input.
  std::optional<std::string> read(std::string_view prompt, std::string_view more);

 private:
  enum class After : std::uint8_t { goes_on, entered, dropped, ended };
  After take(const Key& key);
  void take_tab();
  void list(const std::vector<std::string>& candidates);
  void draw();
  void erase();
  void leave();

  Terminal& terminal_;
  LineBuffer buffer_;
  History history_;
  KeyReader keys_;
  std::vector<Key> ahead_;  // that came together with the last entry
  std::string prompt_, more_;
  std::size_t cursor_row_ = 0;  // of the drawn text
  bool tab_before_ = false;
};

}  // namespace piper::repl
