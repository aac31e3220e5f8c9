#include "frontend/views/folded_run.h"

#include <algorithm>
#include <cctype>

namespace piper::views {
namespace {

constexpr std::size_t kMaxSaid = 4;
constexpr std::size_t kMaxNamed = 60;  // characters of a line in statements about it

/// The index with the word before it, as in the line: `stage[0]`, `mb: 3`; from where the name
/// begins if it follows another number.
std::string_view shown(std::string_view line, const Index& index) {
  std::size_t begin = static_cast<std::size_t>(index.of.data() - line.data());
  const auto in_name = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.' || c == ':' ||
           c == '%';
  };
  const bool after_number = index.of == "." || index.of == ":";
  while (after_number && begin > 0 && in_name(line[begin - 1])) --begin;
  const std::size_t end =
      index.end + (line[index.begin - 1] == '[' && line.substr(index.end, 1) == "]" ? 1 : 0);
  return line.substr(begin, end - begin);
}

std::string quoted(std::string_view text) { return "`" + std::string(text) + "`"; }

std::string pair(std::string_view first, std::string_view last, bool always) {
  if (first == last) return quoted(first) + " stays";
  return quoted(first) + (always ? " is always " : " is ") + quoted(last);
}

}  // namespace

std::string_view subject(std::string_view line) {
  line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
  std::size_t end = line.size();
  for (const std::string_view behind : {" = ", " on ", " (", " loc("})
    end = std::min(end, line.find(behind));
  if (const std::size_t colon = line.find(": "); colon < line.find('[')) end = std::min(end, colon);
  line = line.substr(0, end);
  if (line.ends_with(',')) line.remove_suffix(1);
  const std::size_t cut =
      line.size() > kMaxNamed ? line.rfind(' ', kMaxNamed) : std::string_view::npos;
  return line.substr(0, cut);
}

bool FoldedRun::add() {
  const std::size_t at = begin_ + times_ * period_;
  if (at + period_ > lines_->size()) return false;
  if (times_ == 1 ? !learn(at) : !go_on(at)) return false;
  if (!take(at)) return false;
  ++times_;
  return true;
}

/// Learns from the second repetition which indices move, and how far.
bool FoldedRun::learn(std::size_t at) {
  moves_.clear();
  for (std::size_t i = 0; i < period_; ++i) {
    if (!same_flow(begin_ + i, at + i, i) || !learn_moves(begin_ + i, at + i)) return false;
  }
  learn_names();
  find_moves_said();
  return moves_said_.size() <= kMaxSaid;
}

bool FoldedRun::go_on(std::size_t at) const {
  if (!names_move_on(at)) return false;
  for (std::size_t i = 0; i < period_; ++i) {
    if (!same_flow(begin_ + i, at + i, i) || !moves_on(begin_ + i, at + i)) return false;
  }
  return true;
}

/// Lines `i` of two repetitions are of one shape and take the same from their repetition.
bool FoldedRun::same_flow(std::size_t line, std::size_t other, std::size_t i) const {
  if (lines_->shape(line) != lines_->shape(other)) return false;
  const auto a = lines_->uses(line), b = lines_->uses(other);
  for (std::size_t u = 0; u < a.size(); ++u) {
    const bool inside = a[u].back <= i;
    if (inside != (b[u].back <= i) ||
        (inside && (a[u].back != b[u].back || a[u].place != b[u].place)))
      return false;
  }
  return true;
}

bool FoldedRun::learn_moves(std::size_t line, std::size_t other) {
  const auto a = lines_->numbers(line), b = lines_->numbers(other);
  for (std::size_t n = 0; n < a.size(); ++n) {
    const std::int64_t step = b[n].value - a[n].value;
    const auto [found, is_new] = moves_.try_emplace(a[n].of);
    Move& move = found->second;
    if (is_new || (step != 0 && move.step == 0)) {
      move.step = step;
      move.first = {line, n};
    }
    if (step != 0 && step != move.step) return false;
    if (move.values.try_emplace(a[n].value, Move::Value{step == 0, {line, n}})
            .first->second.stays != (step == 0))
      return false;
  }
  return true;
}

/// The visible moves: the indices in the names of the first repetition and the last.
void FoldedRun::learn_names() {
  const std::string_view first = subject(lines_->text(begin_)),
                         second = subject(lines_->text(begin_ + period_));
  names_.clear();
  named_ = without_indices(first) == without_indices(second);
  if (!named_) return;
  const std::vector<Index> a = indices(first), b = indices(second);
  for (std::size_t n = 0; n < a.size(); ++n) names_.push_back({a[n], b[n].value - a[n].value});
}

bool FoldedRun::names_move_on(std::size_t at) const {
  if (!named_) return true;
  const std::vector<Index> now = indices(subject(lines_->text(at)));
  if (now.size() != names_.size()) return false;
  for (std::size_t n = 0; n < now.size(); ++n) {
    if (now[n].value != names_[n].index.value + static_cast<std::int64_t>(times_) * names_[n].step)
      return false;
  }
  return without_indices(subject(lines_->text(at))) ==
         without_indices(subject(lines_->text(begin_)));
}

/// How far a reader sees an index move: as the same one in the names of the first repetition and
/// the last, or as others of its word there; none where those differ.
std::optional<std::int64_t> FoldedRun::named_step(const Index& first) const {
  const Name* same = nullptr;
  const Name* moving = nullptr;
  bool one = true;
  for (const Name& name : names_) {
    if (name.index.of != first.of) continue;
    if (name.index.value == first.value) {
      if (same != nullptr && same->step != name.step) return std::nullopt;
      same = &name;
    }
    if (name.step == 0) continue;
    one = one && (moving == nullptr || moving->step == name.step);
    moving = &name;
  }
  if (same != nullptr) return same->step;
  if (!one) return std::nullopt;
  return moving == nullptr ? 0 : moving->step;
}

void FoldedRun::find_moves_said() {
  moves_said_.clear();
  for (auto& [of, move] : moves_) find_moves_said(move);
  std::sort(moves_said_.begin(), moves_said_.end());
}

void FoldedRun::find_moves_said(Move& move) {
  const auto index = [&](Place place) { return lines_->numbers(place.line)[place.slot]; };
  move.said = move.step != 0 && named_step(index(move.first)) != move.step;
  for (const auto& [_, value] : move.values)
    move.said = move.said || (!value.stays && named_step(index(value.first)) != move.step);
  if (move.said) moves_said_.push_back(move.first);
  for (const auto& [_, value] : move.values) {
    const Index first = index(value.first);
    const bool named = std::any_of(names_.begin(), names_.end(), [&](const Name& name) {
      return name.index.of == first.of && name.index.value == first.value;
    });
    if (value.stays && (named_step(first) != 0 || (move.said && !named)))
      moves_said_.push_back(value.first);
  }
}

std::int64_t FoldedRun::step(const Index& first) const {
  const auto found = moves_.find(first.of);
  if (found == moves_.end()) return named_step(first).value_or(0);
  const Move& move = found->second;
  if (const auto value = move.values.find(first.value); value != move.values.end())
    return value->second.stays ? 0 : move.step;
  return move.said ? move.step : named_step(first).value_or(0);
}

bool FoldedRun::moves_on(std::size_t line, std::size_t other) const {
  const auto a = lines_->numbers(line), b = lines_->numbers(other);
  for (std::size_t n = 0; n < a.size(); ++n) {
    if (b[n].value - a[n].value != static_cast<std::int64_t>(times_) * step(a[n])) return false;
  }
  return true;
}

/// Whether the values that the repetition at `at` takes from outside continue those of the ones
/// before.
bool FoldedRun::take(std::size_t at) {
  std::vector<Taken> taken = taken_;
  std::unordered_map<std::string_view, std::uint32_t> by_name;  // of the second repetition
  std::size_t slot = 0;
  if (times_ == 1) taken.clear(), slots_.clear();
  for (std::size_t i = 0; i < period_; ++i) {
    const auto first = lines_->uses(begin_ + i), now = lines_->uses(at + i);
    for (std::size_t u = 0; u < first.size(); ++u) {
      if (first[u].back <= i) continue;
      if (times_ == 1) {
        const auto [found, is_new] =
            by_name.try_emplace(first[u].name, static_cast<std::uint32_t>(taken.size()));
        if (is_new) taken.emplace_back().first = first[u].name;
        slots_.push_back(found->second);
      }
      if (!update(taken[slots_[slot++]], now[u], at + i - now[u].back)) return false;
    }
  }
  if (moves_said_.size() + num_taken_said(taken) > kMaxSaid) return false;
  taken_ = std::move(taken);
  return true;
}

bool FoldedRun::update(Taken& taken, const Use& use, std::size_t line) const {
  // One name of the first repetition is one in each.
  if (taken.seen == times_) return taken.now == use.name;
  const auto times = static_cast<std::int64_t>(times_);
  taken.seen = times_;
  if (times_ == 1) {
    taken.second = use.name;
    taken.follows = moved(taken.first, 1) == use.name;
    taken.travels = line >= begin_;
  } else {
    // If names move by themselves, so do lines.
    const bool steady = line < begin_ || line == taken.line + period_ || use.name == taken.now;
    taken.follows = taken.follows && steady && moved(taken.first, times) == use.name;
    taken.follows_later =
        taken.follows_later && steady && moved(taken.second, times - 1) == use.name;
    taken.stays = taken.stays && use.name == taken.now;
    taken.travels = taken.travels && line == taken.line + period_;
  }
  taken.now = use.name;
  taken.line = line;
  // It would be said to stay.
  if (!taken.follows && !taken.stays && use.name == taken.first) return false;
  return taken.follows || taken.follows_later || taken.stays || taken.travels;
}

std::size_t FoldedRun::num_taken_said(const std::vector<Taken>& taken) {
  return static_cast<std::size_t>(
      std::count_if(taken.begin(), taken.end(), [](const Taken& each) { return !each.follows; }));
}

std::string FoldedRun::moved(std::string_view name, std::int64_t times) const {
  std::string out;
  std::size_t at = 0;
  for (const Index& index : indices(name)) {
    out.append(name.substr(at, index.begin - at)) +=
        std::to_string(index.value + times * step(index));
    at = index.end;
  }
  return out.append(name.substr(at));
}

std::string FoldedRun::said(const Taken& taken) const {
  return pair(taken.first, taken.now,
              times_ > 2 && taken.stays && moved(taken.second, 1) != taken.second);
}

std::string FoldedRun::said(Place place) const {
  const auto text = [&](std::size_t line) {
    return shown(lines_->text(line), lines_->numbers(line)[place.slot]);
  };
  return pair(text(place.line), text(place.line + (times_ - 1) * period_), false);
}

std::vector<std::string> FoldedRun::said() const {
  std::vector<std::string> all;
  for (const Place place : moves_said_) all.push_back(said(place));
  for (const Taken& taken : taken_) {
    if (!taken.follows) all.push_back(said(taken));
  }
  return all;
}

}  // namespace piper::views
