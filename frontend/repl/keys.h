#pragma once
// The input of a terminal, as keys.
//
//   KeyReader keys;
//   for (const Key& key : keys.read("\x1b[A")) ...   // up

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace piper::repl {

enum class KeySort : std::uint8_t {
  text,  // a character, or pasted text
  enter,
  tab,
  backspace,
  erase,
  left,
  right,
  up,
  down,
  home,
  end,
  word_left,
  word_right,
  kill_to_end,
  kill_to_begin,
  kill_word,
  yank,
  clear_screen,
  interrupt,
  end_of_input,
  suspend,
  unknown,
};

struct Key {
  KeySort sort = KeySort::unknown;
  std::string text = {};
  bool pasted = false;
};

/// Bytes may come in any pieces: an incomplete key waits for its rest.
class KeyReader {
 public:
  std::vector<Key> read(std::string_view bytes);
  /// No byte follows: a lone escape is a key.
  std::vector<Key> flush();
  bool waits() const { return !pending_.empty(); }

 private:
  /// Removes the first key from `pending_`; false if more bytes are needed.
  bool next(Key& key);
  bool next_escape(Key& key);

  std::string pending_;
};

}  // namespace piper::repl
