#include "frontend/tools/sampled_text.h"

#include "llvm/Support/ConvertUTF.h"

namespace piper::tools {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD

/// Bytes of the character that begins with `first`; 0: none does.
std::size_t length_of(unsigned char first) {
  if (first < 0x80) return 1;
  if (first >= 0xC2 && first <= 0xDF) return 2;
  if (first >= 0xE0 && first <= 0xEF) return 3;
  return first >= 0xF0 && first <= 0xF4 ? 4 : 0;
}

/// Whether the bytes are one character that a terminal shows and does not obey. C1 controls are
/// C2 80 to C2 9F.
bool is_shown(std::string_view character) {
  const auto first = static_cast<unsigned char>(character[0]);
  if (character.size() == 1)
    return character == "\n" || character == "\t" || (first >= 0x20 && first != 0x7F);
  if (first == 0xC2 && static_cast<unsigned char>(character[1]) < 0xA0) return false;
  const auto* begin = reinterpret_cast<const llvm::UTF8*>(character.data());
  return llvm::isLegalUTF8Sequence(begin, begin + character.size());
}

}  // namespace

std::string TerminalText::add(std::string_view bytes) {
  std::string text;
  for (const char byte : bytes) {
    const bool continues = (static_cast<unsigned char>(byte) & 0xC0) == 0x80;
    if (!unfinished_.empty() && !continues) text += finish();
    unfinished_ += byte;
    const std::size_t length = length_of(static_cast<unsigned char>(unfinished_[0]));
    if (unfinished_.size() < length) continue;
    text += length > 0 && is_shown(unfinished_) ? unfinished_ : std::string(kReplacement);
    unfinished_.clear();
  }
  return text;
}

std::string TerminalText::finish() {
  const std::string text = unfinished_.empty() ? std::string() : std::string(kReplacement);
  unfinished_.clear();
  return text;
}

void SampledText::add(std::int64_t token) {
  std::string text;
  switch (form_) {
    case Form::bytes: text = static_cast<char>(token); break;
    case Form::terminal: text = text_.add(std::string(1, static_cast<char>(token))); break;
    case Form::ids: text = (ends_line_ ? "" : ",") + std::to_string(token); break;
  }
  if (text.empty()) return;
  ends_line_ = text.ends_with('\n');
  out_ << text << std::flush;
}

void SampledText::finish() {
  const std::string text = text_.finish();
  if (!text.empty()) ends_line_ = false;
  out_ << text;
  if (form_ != Form::bytes && !ends_line_) out_ << "\n";
  out_ << std::flush;
}

}  // namespace piper::tools
