#include "frontend/repl/keys.h"

#include <algorithm>
#include <utility>

#include "llvm/Support/ConvertUTF.h"

namespace piper::repl {
namespace {

constexpr std::string_view kPasteBegins = "\x1b[200~", kPasteEnds = "\x1b[201~";

struct Sequence {
  std::string_view bytes;
  KeySort sort;
};

constexpr Sequence kSequences[] = {
    {"\x1b[A", KeySort::up},
    {"\x1b[B", KeySort::down},
    {"\x1b[C", KeySort::right},
    {"\x1b[D", KeySort::left},
    {"\x1bOA", KeySort::up},
    {"\x1bOB", KeySort::down},
    {"\x1bOC", KeySort::right},
    {"\x1bOD", KeySort::left},
    {"\x1b[H", KeySort::home},
    {"\x1b[F", KeySort::end},
    {"\x1bOH", KeySort::home},
    {"\x1bOF", KeySort::end},
    {"\x1b[1~", KeySort::home},
    {"\x1b[4~", KeySort::end},
    {"\x1b[7~", KeySort::home},
    {"\x1b[8~", KeySort::end},
    {"\x1b[3~", KeySort::erase},
    {"\x1b[1;5C", KeySort::word_right},
    {"\x1b[1;5D", KeySort::word_left},
    {"\x1b[1;3C", KeySort::word_right},
    {"\x1b[1;3D", KeySort::word_left},
    {"\x1b"
     "b",
     KeySort::word_left},
    {"\x1b"
     "f",
     KeySort::word_right},
    {"\x1b\x7f", KeySort::kill_word},
};

KeySort control_key(char c) {
  switch (c) {
    case '\r':
    case '\n': return KeySort::enter;
    case '\t': return KeySort::tab;
    case '\x7f':
    case '\b': return KeySort::backspace;
    case 1: return KeySort::home;
    case 2: return KeySort::left;
    case 3: return KeySort::interrupt;
    case 4: return KeySort::end_of_input;
    case 5: return KeySort::end;
    case 6: return KeySort::right;
    case 11: return KeySort::kill_to_end;
    case 12: return KeySort::clear_screen;
    case 14: return KeySort::down;
    case 16: return KeySort::up;
    case 21: return KeySort::kill_to_begin;
    case 23: return KeySort::kill_word;
    case 25: return KeySort::yank;
    case 26: return KeySort::suspend;
    default: return KeySort::unknown;
  }
}

/// Pasted text with line breaks of one sort, and without control characters of a terminal.
std::string cleaned(std::string_view text) {
  std::string clean;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '\r' && i + 1 < text.size() && text[i + 1] == '\n') continue;
    if (c == '\r' || c == '\n') {
      clean += '\n';
    } else if (c == '\t') {
      clean += "    ";
    } else if (static_cast<unsigned char>(c) >= 0x20 && c != '\x7f') {
      clean += c;
    }
  }
  return clean;
}

}  // namespace

std::vector<Key> KeyReader::read(std::string_view bytes) {
  pending_ += bytes;
  std::vector<Key> keys;
  for (Key key; !pending_.empty() && next(key); key = {}) keys.push_back(std::move(key));
  return keys;
}

std::vector<Key> KeyReader::flush() {
  if (pending_.starts_with(kPasteBegins)) return {};
  std::vector<Key> keys;
  if (!pending_.empty()) keys.push_back({KeySort::unknown});
  pending_.clear();
  return keys;
}

bool KeyReader::next(Key& key) {
  if (pending_.front() == '\x1b') return next_escape(key);
  const auto byte = static_cast<unsigned char>(pending_.front());
  if (byte < 0x20 || byte == 0x7F) {
    key.sort = control_key(pending_.front());
    pending_.erase(0, 1);
    return true;
  }
  const bool begins = byte >= 0xC2 && byte <= 0xF4;  // several bytes
  const std::size_t length = begins ? llvm::getNumBytesForUTF8(byte) : 1;
  if (pending_.size() < length) return false;
  const auto* first = reinterpret_cast<const llvm::UTF8*>(pending_.data());
  const bool legal =
      byte < 0x80 || (length > 1 && llvm::isLegalUTF8Sequence(first, first + length));
  key.sort = legal ? KeySort::text : KeySort::unknown;
  if (legal) key.text = pending_.substr(0, length);
  pending_.erase(0, legal ? length : 1);
  return true;
}

bool KeyReader::next_escape(Key& key) {
  if (pending_.starts_with(kPasteBegins)) {
    const std::size_t end = pending_.find(kPasteEnds);
    if (end == std::string::npos) return false;
    key = {
        KeySort::text,
        cleaned(std::string_view(pending_).substr(kPasteBegins.size(), end - kPasteBegins.size())),
        true};
    pending_.erase(0, end + kPasteEnds.size());
    return true;
  }
  for (const Sequence& sequence : kSequences) {
    if (!pending_.starts_with(sequence.bytes)) continue;
    key.sort = sequence.sort;
    pending_.erase(0, sequence.bytes.size());
    return true;
  }
  if (pending_.size() < 2) return false;
  // A sequence that means nothing here: up to its last byte.
  std::size_t end = 2;
  if (pending_[1] == '[' || pending_[1] == 'O') {
    while (end < pending_.size() && !(pending_[end] >= 0x40 && pending_[end] <= 0x7E)) ++end;
    if (end == pending_.size()) return false;
    ++end;
  }
  pending_.erase(0, end);
  return true;
}

}  // namespace piper::repl
