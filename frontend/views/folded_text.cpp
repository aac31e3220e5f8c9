#include "frontend/views/folded_text.h"

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

#include "ir/tensor/type.h"

namespace piper::views {
namespace {

constexpr std::size_t kMostPeriods = 96;  // of a line that occurs often, its next occurrences that may begin the run again
constexpr std::size_t kLeastSaved = 3;    // lines
constexpr std::size_t kMostNamed = 60;    // characters of a line that stand for it

bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }
bool in_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }
bool in_value(char c) { return in_word(c) || c == '.' || c == '-' || c == '$'; }

struct Line {
  std::string_view text;
  std::uint32_t shape = 0;      // equal for lines that may be the same
  std::uint32_t first_use = 0;  // into Lines::uses_
  std::uint32_t next = 0;       // the next line of the same shape; the number of lines if there is none
  std::uint32_t end = 0;        // the next line that stands further to the left, likewise: a run does not go on behind it
};

/// Lines by shape: without the names of values that lines before define, and without numbers but those of types, attributes and sizes.
class Lines {
 public:
  explicit Lines(std::string_view text) {
    while (!text.empty()) {
      const std::size_t end = std::min(text.find('\n'), text.size());
      lines_.push_back({text.substr(0, end)});
      text.remove_prefix(std::min(end + 1, text.size()));
    }
    for (std::size_t i = 0; i < lines_.size(); ++i) read(i);
    const auto count = static_cast<std::uint32_t>(lines_.size());
    std::vector<std::uint32_t> seen(shapes_.size(), count);
    for (std::uint32_t i = count; i-- > 0;) {
      Line& line = lines_[i];
      line.next = std::exchange(seen[line.shape], i);
      for (line.end = i + 1; line.end < count && indent(line.end) >= indent(i);) line.end = lines_[line.end].end;
    }
  }

  std::size_t size() const { return lines_.size(); }
  std::string_view text(std::size_t line) const { return lines_[line].text; }
  std::size_t indent(std::size_t line) const { return std::min(text(line).find_first_not_of(' '), text(line).size()); }
  std::size_t next(std::size_t line) const { return lines_[line].next; }
  std::size_t end(std::size_t line) const { return lines_[line].end; }

  bool same(std::size_t a, std::size_t b, std::size_t count) const {
    for (std::size_t i = 0; i < count; ++i) {
      const Line &x = lines_[a + i], &y = lines_[b + i];
      if (x.shape != y.shape) return false;
      for (std::size_t u = 0; u < num_uses(a + i); ++u) {
        // What is defined before the run is outside of it, wherever that is.
        const auto inside = [&](const Line& line) { return uses_[line.first_use + u] <= i ? uses_[line.first_use + u] : 0; };
        if (inside(x) != inside(y)) return false;
      }
    }
    return true;
  }

 private:
  std::size_t num_uses(std::size_t line) const { return (line + 1 < lines_.size() ? lines_[line + 1].first_use : uses_.size()) - lines_[line].first_use; }

  void read(std::size_t number) {
    Line& line = lines_[number];
    line.first_use = static_cast<std::uint32_t>(uses_.size());
    if (line.text == "}") defined_.clear();  // names hold inside of braces
    shape_.clear();
    const std::size_t begin = line.text.find_first_not_of(' ');
    const std::size_t equals = begin < line.text.size() && line.text[begin] == '%' ? line.text.find(" = ") : std::string_view::npos;
    const std::size_t body = equals == std::string_view::npos ? 0 : equals;
    for (std::size_t i = body; i < line.text.size();) i = part(number, i);
    for (std::size_t i = 0; i < body;) {
      const std::size_t end = line.text[i] == '%' ? value_end(line.text, i) : i + 1;
      if (line.text[i] == '%') {
        defined_[line.text.substr(i, end - i)] = number;
        shape_ += '%';
      }
      i = end;
    }
    line.shape = shapes_.try_emplace(shape_, static_cast<std::uint32_t>(shapes_.size())).first->second;
  }

  /// Adds what stands at `i` to the shape; the place behind it.
  std::size_t part(std::size_t number, std::size_t i) {
    const std::string_view text = lines_[number].text;
    if (text[i] == '%') {
      const std::size_t end = value_end(text, i);
      if (const auto found = defined_.find(text.substr(i, end - i)); found != defined_.end()) {
        shape_ += '%';
        uses_.push_back(number - found->second);
        return end;
      }
    } else if (text.substr(i, 3) == ") {") {
      return exact(text, i, text.find('}', i));
    } else if (in_word(text[i])) {
      std::size_t end = i;
      while (end < text.size() && in_word(text[end])) ++end;
      const std::string_view word = text.substr(i, end - i);
      if (text.substr(end, 1) == "[" && tensor::parse_dtype(word)) return exact(text, i, text.find(']', i));
      if (word == "bytes") return exact(text, i, text.find_first_of(" )", end + 1));
      for (const char c : word) {
        if (!is_digit(c)) shape_ += c;
        else if (shape_.empty() || shape_.back() != '#') shape_ += '#';
      }
      return end;
    }
    shape_ += text[i];
    return i + 1;
  }

  /// Everything up to `end`, with its numbers but those of names in quotes.
  std::size_t exact(std::string_view text, std::size_t i, std::size_t end) {
    bool quoted = false;
    for (end = std::min(end, text.size()); i < end; ++i) {
      if (text[i] == '"') quoted = !quoted;
      if (!quoted || !is_digit(text[i])) shape_ += text[i];
    }
    return end;
  }

  static std::size_t value_end(std::string_view text, std::size_t i) {
    if (text.substr(i + 1, 1) == "\"") {
      for (i += 2; i < text.size() && text[i] != '"'; ++i) i += text[i] == '\\';
      return std::min(i + 1, text.size());
    }
    for (++i; i < text.size() && in_value(text[i]);) ++i;
    return i;
  }

  std::vector<Line> lines_;
  std::vector<std::size_t> uses_;  // how many lines before it was defined
  std::unordered_map<std::string_view, std::size_t> defined_;
  std::unordered_map<std::string, std::uint32_t> shapes_;
  std::string shape_;
};

/// What a line is about: `%block.11.norm.0.gain`, `param block.0.bias`, `F stage[0] mb[3]`.
std::string subject(std::string_view line) {
  line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
  std::size_t end = line.size();
  for (const std::string_view behind : {" = ", " on ", " loc("}) end = std::min(end, line.find(behind));
  if (const std::size_t colon = line.find(": "); colon < line.find('[')) end = std::min(end, colon);
  return "`" + std::string(line.substr(0, std::min(end, kMostNamed))) + (end > kMostNamed ? "..." : "") + "`";
}

class Folder {
 public:
  explicit Folder(std::string_view text) : lines_(text) {}

  std::string run() {
    fold(0, lines_.size());
    return std::move(out_);
  }

 private:
  struct Repeats {
    std::size_t period = 0, times = 0;
  };

  void fold(std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end;) {
      const Repeats found = repeats(i, end);
      if (found.times == 0) {
        out_.append(lines_.text(i++)) += '\n';
        continue;
      }
      if (found.period == 1) {
        out_.append(lines_.text(i)) += '\n';
      } else {
        fold(i, i + found.period);
      }
      say(i, found);
      i += found.period * found.times;
    }
  }

  /// The run from `begin` on that leaves out most lines.
  Repeats repeats(std::size_t begin, std::size_t end) const {
    Repeats best;
    if (lines_.text(begin).substr(lines_.indent(begin), 1) == "}") return best;  // it ends what stands before it
    end = std::min(end, lines_.end(begin));
    std::size_t tried = 0, saved = kLeastSaved - 1;
    for (std::size_t again = lines_.next(begin); again < end && tried < kMostPeriods; again = lines_.next(again), ++tried) {
      const std::size_t period = again - begin;
      std::size_t times = 1;
      while (begin + (times + 1) * period <= end && lines_.same(begin, begin + times * period, period)) ++times;
      if ((times - 1) * period <= saved) continue;
      saved = (times - 1) * period;
      best = {period, times};
    }
    return best;
  }

  void say(std::size_t begin, Repeats found) {
    out_.append(lines_.indent(begin), ' ');
    const std::size_t more = found.times - 1;
    const std::string last = subject(lines_.text(begin + more * found.period));
    if (found.period == 1) {
      out_ += "... " + std::to_string(more) + " more like it, the last " + last + "\n";
      return;
    }
    out_ += "... the " + std::to_string(found.period) + " lines from " + subject(lines_.text(begin)) + " on stand " +
            (more == 1 ? "once more, from " : std::to_string(more) + " times more, the last time from ") + last + " on\n";
  }

  Lines lines_;
  std::string out_;
};

}  // namespace

std::string folded(std::string_view text) { return Folder(text).run(); }

}  // namespace piper::views
