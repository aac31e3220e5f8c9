#pragma once
// What a terminal sends, as keys.
//
//   KeyReader keys;
//   for (const Key& key : keys.read("\x1b[A")) ...   // up

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace piper::repl {

enum class KeySort : std::uint8_t {
  text,        // a character, or what was pasted
  enter, tab, backspace, erase, left, right, up, down, home, end, word_left, word_right,
  kill_to_end, kill_to_begin, kill_word, yank, clear_screen, interrupt, end_of_input, suspend, unknown,
};

struct Key {
  KeySort sort = KeySort::unknown;
  std::string text = {};
  bool pasted = false;
};

/// Bytes may come in any pieces: what is not complete waits for the rest.
class KeyReader {
 public:
  std::vector<Key> read(std::string_view bytes);
  /// No byte follows: an escape that stands alone is one.
  std::vector<Key> flush();
  bool waits() const { return !pending_.empty(); }

 private:
  /// The key that `pending_` begins with, which is taken from it; false where more bytes are needed.
  bool next(Key& key);
  bool next_escape(Key& key);

  std::string pending_;
};

}  // namespace piper::repl
