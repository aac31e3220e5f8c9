#include "frontend/views/tuning.h"

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

#include "ir/byte_text.h"
#include "ir/diagnostics/counted.h"

namespace piper::views {

Tuning::Tuning(std::span<const Hole> holes, std::string_view goal,
               std::optional<std::int64_t> memory)
    : holes_(holes.begin(), holes.end()), goal_(goal), memory_(memory) {}

std::string Tuning::name_of(const Choice& choice) const {
  std::string name;
  for (std::size_t i = 0; i < holes_.size(); ++i)
    name += (i == 0 ? "" : " ") + holes_[i].name + "=" + holes_[i].values[choice[i]];
  return name;
}

std::vector<lower::Override> Tuning::overrides_of(const Choice& choice) const {
  std::vector<lower::Override> overrides;
  for (std::size_t i = 0; i < holes_.size(); ++i)
    overrides.push_back({holes_[i].name, holes_[i].values[choice[i]]});
  return overrides;
}

bool Tuning::is_initial(const Choice& choice) const {
  for (std::size_t i = 0; i < holes_.size(); ++i) {
    if (choice[i] != holes_[i].initial) return false;
  }
  return true;
}

std::optional<double> Tuning::take(const Choice& choice, std::optional<Compared> figures,
                                   std::span<const std::string> errors) {
  ++tried_;
  if (figures && memory_ && figures->bytes > *memory_) {
    ++refused_["memory above " + bytes_text(*memory_)];
    return std::nullopt;
  }
  if (!figures) {
    ++refused_[errors.empty() ? "not compiled" : errors.front()];
    return std::nullopt;
  }
  const double value = figure(*figures, goal_);
  Row row{choice, std::move(*figures)};
  points_.push_back(
      {static_cast<double>(row.figures.bytes), figure(row.figures, time_key()), name_of(choice)});
  if (is_initial(choice)) {
    row.figures.name += " (as written)";
    as_written_ = row;
  }
  const auto figures_of = [&](const Row& tried) {
    return std::tuple(figure(tried.figures, goal_), tried.figures.bytes,
                      figure(tried.figures, time_key()));
  };
  if (!best_ || figures_of(row) < figures_of(*best_)) best_ = row;
  add_to_front(std::move(row));
  return value;
}

void Tuning::add_to_front(Row row) {
  const double time = figure(row.figures, time_key());
  const auto time_of = [&](const Row& other) { return figure(other.figures, time_key()); };
  for (const Row& other : front_) {
    if (time_of(other) <= time && other.figures.bytes <= row.figures.bytes) return;
  }
  front_.remove_if([&](const Row& other) {
    return time_of(other) >= time && other.figures.bytes >= row.figures.bytes;
  });
  const auto place = std::find_if(front_.begin(), front_.end(),
                                  [&](const Row& other) { return time_of(other) > time; });
  front_.insert(place, std::move(row));
}

const Tuning::Row* Tuning::best() const { return best_ ? &*best_ : nullptr; }

std::string Tuning::counts_text(std::uint64_t combinations) const {
  std::string text =
      std::to_string(tried_) + " of " + std::to_string(combinations) + " combinations tried";
  std::size_t refused = 0;
  std::string reasons;
  for (const auto& [reason, times] : refused_) {
    refused += times;
    reasons += (reasons.empty() ? "" : ", ") + reason + " " +
               (times == 1 ? "once" : std::to_string(times) + " times");
  }
  if (refused > 0) text += ", " + std::to_string(refused) + " refused: " + reasons;
  return text;
}

std::string Tuning::reason_text() const {
  if (!best_) return "";
  std::string text =
      "chosen: " + name_of(best_->choice) + ", " + goal_ + " " + figure_text(best_->figures, goal_);
  if (goal_ != "memory") text += ", memory " + figure_text(best_->figures, "memory");
  const bool is_written =
      std::all_of(holes_.begin(), holes_.end(), [](const Hole& hole) { return hole.initial; });
  if (!as_written_) return text + (is_written ? "; as written it is refused" : "");
  if (is_initial(best_->choice)) return text + ", as written";
  text += "; as written " + goal_ + " " + figure_text(as_written_->figures, goal_);
  if (goal_ != "memory") text += ", memory " + figure_text(as_written_->figures, "memory");
  return text;
}

std::string Tuning::text(std::uint64_t combinations) const {
  std::list<Compared> rows;
  std::set<Choice> shown;
  const auto show = [&](const Row& row) {
    if (shown.insert(row.choice).second) rows.push_back(row.figures);
  };
  for (const Row& row : front_) show(row);
  if (best_) show(*best_);
  if (as_written_) show(*as_written_);
  return counts_text(combinations) + "\n" + (rows.empty() ? "" : comparison_text(rows)) +
         reason_text() + "\n";
}

llvm::json::Object Tuning::values_json(const Choice& choice) const {
  llvm::json::Object values;
  for (std::size_t i = 0; i < holes_.size(); ++i)
    values[holes_[i].name] = llvm::json::fixUTF8(holes_[i].values[choice[i]]);
  return values;
}

llvm::json::Object Tuning::json(std::uint64_t combinations) const {
  llvm::json::Object refused;
  for (const auto& [reason, times] : refused_) refused[reason] = static_cast<std::int64_t>(times);
  std::list<Compared> rows;
  for (const Row& row : front_) rows.push_back(row.figures);
  llvm::json::Array front = comparison_json(rows);
  std::size_t place = 0;
  for (const Row& row : front_) (*front[place++].getAsObject())["values"] = values_json(row.choice);
  return llvm::json::Object{
      {"schema", 1},
      {"goal", goal_},
      {"combinations", combinations},
      {"tried", static_cast<std::int64_t>(tried_)},
      {"refused", std::move(refused)},
      {"chosen", best_ ? llvm::json::Value(values_json(best_->choice)) : nullptr},
      {"as_written", as_written_ ? llvm::json::Value(figure(as_written_->figures, goal_))
                                 : llvm::json::Value(nullptr)},
      {"front", std::move(front)}};
}

}  // namespace piper::views
