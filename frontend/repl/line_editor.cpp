#include "frontend/repl/line_editor.h"

#include <algorithm>
#include <utility>

namespace piper::repl {
namespace {

constexpr int kIdle = 500, kEscape = 50;
constexpr std::size_t kMaxListed = 200;
constexpr std::string_view kPasteOn = "\x1b[?2004h", kPasteOff = "\x1b[?2004l";

/// The position of the cursor after writing texts one after the other.
struct Position {
  std::size_t row = 0, column = 0;

  void write(std::string_view text, std::size_t columns) {
    while (!text.empty()) {
      const std::size_t length = character_length(text);
      if (text.front() == '\n') {
        ++row;
        column = 0;
      } else {
        const std::size_t width = columns_of(text.substr(0, length));
        if (column + width > columns) {
          ++row;
          column = 0;
        }
        column += width;
      }
      text.remove_prefix(length);
    }
  }
};

std::string moved(std::size_t count, char direction) {
  return count == 0 ? "" : "\x1b[" + std::to_string(count) + direction;
}

std::string common_start(const std::vector<std::string>& words) {
  std::string common = words.front();
  for (const std::string& word : words) {
    const auto [end, other] = std::mismatch(common.begin(), common.end(), word.begin(), word.end());
    common.erase(end, common.end());
  }
  return common;
}

}  // namespace

void LineEditor::draw() {
  const std::size_t columns = std::max<std::size_t>(terminal_.columns(), 2);
  std::string out = "\r" + moved(cursor_row_, 'A') + "\x1b[J";
  Position end, cursor;
  const auto put = [&](std::string_view text) {
    for (const char c : text) out += c == '\n' ? "\r\n" : std::string(1, c);
    end.write(text, columns);
  };
  put(prompt_);
  const std::string_view text = buffer_.text();
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t line = std::min(text.find('\n', at), text.size());
    if (at > 0) put("\n" + more_);
    if (buffer_.cursor() >= at && buffer_.cursor() <= line) {
      put(text.substr(at, buffer_.cursor() - at));
      cursor = end;
      put(text.substr(buffer_.cursor(), line - buffer_.cursor()));
    } else {
      put(text.substr(at, line - at));
    }
    at = line + 1;
  }
  // A terminal wraps when the next character comes.
  for (Position* position : {&end, &cursor}) {
    if (position->column < columns) continue;
    ++position->row;
    position->column = 0;
    if (position == &end) out += "\r\n";
  }
  out += "\r" + moved(end.row - std::min(end.row, cursor.row), 'A') + moved(cursor.column, 'C');
  cursor_row_ = cursor.row;
  terminal_.write(out);
}

void LineEditor::erase() {
  terminal_.write("\r" + moved(cursor_row_, 'A') + "\x1b[J");
  cursor_row_ = 0;
}

/// Behind all that is drawn.
void LineEditor::leave() {
  LineBuffer kept = buffer_;
  buffer_.set(buffer_.text());
  draw();
  terminal_.write("\r\n");
  cursor_row_ = 0;
  buffer_ = std::move(kept);
}

std::optional<std::string> LineEditor::read(std::string_view prompt, std::string_view more) {
  prompt_ = prompt;
  more_ = more;
  cursor_row_ = 0;
  tab_before_ = false;
  history_.rewind();
  terminal_.set_raw(true);
  terminal_.write(kPasteOn);
  draw();
  std::vector<Key> keys = std::exchange(ahead_, {});
  std::optional<std::string> entry;
  for (bool open = true; open;) {
    for (std::size_t i = 0; i < keys.size() && open; ++i) {
      const After after = take(keys[i]);
      if (after == After::goes_on) continue;
      open = false;
      if (after == After::entered) entry = buffer_.take();
      if (after == After::dropped) entry = "";
      ahead_.assign(std::make_move_iterator(keys.begin() + static_cast<std::ptrdiff_t>(i) + 1),
                    std::make_move_iterator(keys.end()));
    }
    if (!open) break;
    if (!keys.empty()) draw();
    keys.clear();
    std::string bytes;
    switch (terminal_.read(bytes, keys_.waits() ? kEscape : kIdle)) {
      case Terminal::Wait::bytes: keys = keys_.read(bytes); break;
      case Terminal::Wait::nothing:
        keys = keys_.flush();
        if (has_news && has_news()) {
          erase();
          terminal_.set_raw(false);
          say();
          terminal_.set_raw(true);
          draw();
        }
        break;
      case Terminal::Wait::closed: open = false; break;
    }
  }
  terminal_.set_raw(false);
  terminal_.write(kPasteOff);
  if (entry) history_.add(*entry);
  return entry;
}

LineEditor::After LineEditor::take(const Key& key) {
  const bool tab_before = std::exchange(tab_before_, key.sort == KeySort::tab);
  std::string shown = buffer_.text();
  switch (key.sort) {
    case KeySort::text: buffer_.insert(key.text); break;
    case KeySort::enter:
      if (goes_on && goes_on(buffer_.text())) {
        buffer_.insert("\n");
        break;
      }
      leave();
      return After::entered;
    case KeySort::tab:
      tab_before_ = tab_before;
      take_tab();
      break;
    case KeySort::backspace: buffer_.backspace(); break;
    case KeySort::erase: buffer_.erase(); break;
    case KeySort::left: buffer_.left(); break;
    case KeySort::right: buffer_.right(); break;
    case KeySort::up:
      if (!buffer_.up() && history_.back(shown)) buffer_.set(shown);
      break;
    case KeySort::down:
      if (!buffer_.down() && history_.forward(shown)) buffer_.set(shown);
      break;
    case KeySort::home: buffer_.home(); break;
    case KeySort::end: buffer_.end(); break;
    case KeySort::word_left: buffer_.word_left(); break;
    case KeySort::word_right: buffer_.word_right(); break;
    case KeySort::kill_to_end: buffer_.kill_to_end(); break;
    case KeySort::kill_to_begin: buffer_.kill_to_begin(); break;
    case KeySort::kill_word: buffer_.kill_word(); break;
    case KeySort::yank: buffer_.yank(); break;
    case KeySort::clear_screen:
      terminal_.write("\x1b[H\x1b[2J");
      cursor_row_ = 0;
      break;
    case KeySort::interrupt:
      leave();
      buffer_.take();
      return After::dropped;
    case KeySort::end_of_input:
      if (!buffer_.text().empty()) {
        buffer_.erase();
        break;
      }
      leave();
      return After::ended;
    case KeySort::suspend:
      leave();
      terminal_.set_raw(false);
      terminal_.suspend();
      terminal_.set_raw(true);
      break;
    case KeySort::unknown: break;
  }
  return After::goes_on;
}

void LineEditor::take_tab() {
  const bool again = std::exchange(tab_before_, true);
  const std::string before = buffer_.text().substr(0, buffer_.cursor());
  const std::size_t line = before.rfind('\n') + 1;
  if (before.find_first_not_of(' ', line) == std::string::npos && !before.empty()) {
    buffer_.insert("    ");  // nothing to complete: the next indentation
    return;
  }
  if (!complete) return;
  const Completion found = complete(before);
  if (found.candidates.empty()) return;
  const std::string common = common_start(found.candidates);
  const bool only = found.candidates.size() == 1;
  if (common.size() > before.size() - found.begin || only) {
    const bool open = common.ends_with('=') || common.ends_with('/');
    buffer_.replace_before_cursor(found.begin, only && !open ? common + " " : common);
  } else if (again) {
    list(found.candidates);
  }
}

void LineEditor::list(const std::vector<std::string>& candidates) {
  leave();
  const std::size_t columns = std::max<std::size_t>(terminal_.columns(), 2);
  std::size_t width = 0;
  for (const std::string& candidate : candidates)
    width = std::max(width, columns_of(candidate) + 2);
  const std::size_t per_line = std::max<std::size_t>(1, (columns - 1) / width);
  std::string text;
  for (std::size_t i = 0; i < candidates.size() && i < kMaxListed; ++i) {
    text += candidates[i];
    const bool last = (i + 1) % per_line == 0 || i + 1 == candidates.size() || i + 1 == kMaxListed;
    text += last ? "\r\n" : std::string(width - columns_of(candidates[i]), ' ');
  }
  if (candidates.size() > kMaxListed)
    text += "and " + std::to_string(candidates.size() - kMaxListed) + " more\r\n";
  terminal_.write(text);
}

}  // namespace piper::repl
