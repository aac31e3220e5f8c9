#pragma once
// The costs of the combinations of choices of a program, and the best combination.
//
//   Tuning tuning(holes, "makespan", {});
//   search_choices(sizes_of(holes), initial, limits, [&](const Choice& choice) { return tuning.take(choice, ...); });
//   tuning.best();   // nothing if all were refused

#include <cstdint>
#include <list>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/views/choice_search.h"
#include "frontend/views/comparison.h"
#include "llvm/Support/JSON.h"

namespace piper::views {

/// A name with several values. `values` are as `-D` takes them, `literals` as the language writes
/// them; `initial` is the one that the program has by itself, if it is one of them.
struct Hole {
  std::string name;
  std::vector<std::string> values, literals;
  std::optional<std::size_t> initial = {};
};

/// Figures that may be made small, by their keys in JSON.
inline constexpr std::string_view kGoals[] = {"makespan", "span", "bubble", "memory", "traffic"};

class Tuning {
 public:
  struct Row {
    Choice choice;
    Compared figures;
  };
  /// A legal combination in a picture.
  struct Point {
    double bytes = 0, time = 0;
    std::string name;
  };

  /// A plan with an arena above `memory` bytes is refused.
  Tuning(std::span<const Hole> holes, std::string_view goal, std::optional<std::int64_t> memory);

  /// `zero=1 m=16`.
  std::string name_of(const Choice& choice) const;
  std::vector<lower::Override> overrides_of(const Choice& choice) const;

  /// The figure of a combination. `figures` is nothing if it was refused, and `errors` has the
  /// reasons.
  std::optional<double> take(const Choice& choice, std::optional<Compared> figures,
                             std::span<const std::string> errors);

  std::size_t tried() const { return tried_; }
  /// The one with the smallest figure; among equal ones with less memory, then less time, then the
  /// first.
  const Row* best() const;
  /// Combinations that no other beats in both time and memory, by time.
  const std::list<Row>& front() const { return front_; }
  const std::vector<Point>& points() const { return points_; }
  /// The goal if it is a time or a part of one; else the makespan.
  std::string_view time_key() const {
    return goal_ == "span" || goal_ == "bubble" ? std::string_view(goal_) : "makespan";
  }
  std::string_view goal() const { return goal_; }

  /// `48 of 48 combinations tried, 5 refused: P4305 4 times, memory above 2 GiB once`.
  std::string counts_text(std::uint64_t combinations) const;
  /// The chosen values and the reason: `chosen: zero=1 m=16, makespan 3.2 ms; as written 4.1 ms`.
  std::string reason_text() const;
  /// Counts, a table of the front, the best one and the one as written, and the reason.
  std::string text(std::uint64_t combinations) const;
  llvm::json::Object json(std::uint64_t combinations) const;

 private:
  bool is_initial(const Choice& choice) const;
  void add_to_front(Row row);
  llvm::json::Object values_json(const Choice& choice) const;

  std::vector<Hole> holes_;
  std::string goal_;
  std::optional<std::int64_t> memory_;
  std::size_t tried_ = 0;
  std::optional<Row> best_;
  std::optional<Row> as_written_;  // nothing if there is none, or if it was refused
  std::list<Row> front_;
  std::vector<Point> points_;
  std::map<std::string, std::size_t> refused_;  // by reason
};

}  // namespace piper::views
