#include "frontend/views/folded_text.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "frontend/views/folded_run.h"
#include "frontend/views/short_lists.h"

namespace piper::views {
namespace {

// of a line that occurs often, its next occurrences that may begin the run again
constexpr std::size_t kMaxPeriods = 96;
constexpr std::size_t kMinSaved = 3;  // lines
std::string name(std::string_view line) { return "`" + std::string(subject(line)) + "`"; }

class Folder {
 public:
  Folder(std::string_view text, const char* unit) : lines_(text), unit_(unit) {}

  std::string run() {
    fold(0, lines_.size());
    return std::move(out_);
  }

 private:
  void fold(std::size_t begin, std::size_t end) {
    std::optional<FoldedRun> found;
    for (std::size_t i = begin; i < end;) {
      if (!found) found = best_run(i, end);
      std::optional<FoldedRun> later = found && i + 1 < end ? best_run(i + 1, end) : std::nullopt;
      if (!found || (later && is_plainer(*later, *found))) {
        out_.append(lines_.text(i++)) += '\n';
        found = std::move(later);
        continue;
      }
      if (found->period() == 1) {
        out_.append(lines_.text(i)) += '\n';
      } else {
        fold(i, i + found->period());
      }
      say(*found);
      i += found->period() * found->times();
      found.reset();
    }
  }

  /// The same lines turned by one need fewer words.
  static bool is_plainer(const FoldedRun& later, const FoldedRun& run) {
    if (later.period() != run.period() || later.times() < run.times()) return false;
    return later.num_said() < run.num_said() ||
           (later.num_said() == run.num_said() && later.is_named() && !run.is_named());
  }

  /// The run from `begin` on that leaves out most lines.
  std::optional<FoldedRun> best_run(std::size_t begin, std::size_t end) const {
    std::optional<FoldedRun> best;
    const char first = lines_.text(begin).substr(lines_.indent(begin), 1).empty()
                           ? ' '
                           : lines_.text(begin)[lines_.indent(begin)];
    if (first == '}' || first == ')') return best;  // it ends the run before it
    end = std::min(end, lines_.end(begin));
    std::size_t tried = 0, saved = kMinSaved - 1;
    for (std::size_t again = lines_.next(begin); again < end && tried < kMaxPeriods;
         again = lines_.next(again), ++tried) {
      const std::size_t period = again - begin;
      if (end - begin < period + saved + 1) break;  // a longer one cannot save more
      FoldedRun run(lines_, begin, period);
      while (begin + (run.times() + 1) * period <= end && run.add()) {}
      if (run.saved() <= saved) continue;
      saved = run.saved();
      best.emplace(std::move(run));
    }
    return best;
  }

  void say(const FoldedRun& run) {
    out_.append(lines_.indent(run.begin()), ' ');
    const std::size_t more = run.times() - 1;
    const std::string last = name(lines_.text(run.begin() + more * run.period()));
    if (run.period() == 1) {
      out_ += "... " + std::to_string(more) + " more like it, the last " + last;
    } else {
      out_ += "... the " + std::to_string(run.period()) + " " + unit_ + " from " +
              name(lines_.text(run.begin())) + " on stand " +
              (more == 1 ? "once more, from "
                         : std::to_string(more) + " times more, the last time from ") +
              last + " on";
    }
    const std::vector<std::string> said = run.said();
    for (std::size_t i = 0; i < said.size(); ++i) {
      out_ += (i == 0 ? ", where " : i + 1 == said.size() ? " and " : ", ") + said[i];
    }
    out_ += "\n";
  }

  FoldedLines lines_;
  const char* unit_;  // `lines`, or `items` of a list
  std::string out_;
};

}  // namespace

std::string folded(std::string_view text) {
  const std::string short_lists =
      shorten_lists(text, [](std::string_view items) { return Folder(items, "items").run(); });
  return Folder(short_lists, "lines").run();
}

}  // namespace piper::views
