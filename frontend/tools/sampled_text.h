#pragma once
// The output of `piper sample`: bytes or numbers of tokens, as they are drawn.
//
// Bytes go to a file or a pipe as they are. A terminal gets UTF-8: each byte that is no part of a
// character, and each control character except newline and tab, is shown as U+FFFD. A character is
// written when its last byte is there.

#include <cstdint>
#include <ostream>
#include <string>
#include <string_view>

namespace piper::tools {

/// Bytes as text that a terminal may show.
class TerminalText {
 public:
  /// The text of the characters that are complete with these bytes.
  std::string add(std::string_view bytes);
  /// The text of the bytes that no character completes.
  std::string finish();

 private:
  std::string unfinished_;  // the beginning of a character
};

class SampledText {
 public:
  enum class Form { bytes, terminal, ids };
  SampledText(std::ostream& out, Form form) : out_(out), form_(form) {}

  /// A token of the prompt, or one that was drawn. Bytes are below 256.
  void add(std::int64_t token);
  /// The end of the output: a newline, unless it is bytes for a file or a pipe.
  void finish();

 private:
  std::ostream& out_;
  const Form form_;
  TerminalText text_;
  bool ends_line_ = true;  // the output so far is empty or ends in a newline
};

}  // namespace piper::tools
