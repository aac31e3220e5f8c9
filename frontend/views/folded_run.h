#pragma once
// Adjacent repetitions of lines, from which a reader can reconstruct all by the first one and the
// statements about the last.
//
//   %block.1.norm = rms_norm(%block.0.add) : f32[dim: 8] @F region stage[0].block[1]
//   %block.1.add = add(%block.0.add, %block.1.norm) : f32[dim: 8] @F region stage[0].block[1]
//   %block.2.norm = rms_norm(%block.1.add) : f32[dim: 8] @F region stage[0].block[2]
//   ...

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "frontend/views/folded_lines.h"

namespace piper::views {

/// The beginning of a line up to its subject, which names a repetition: `%block.11.norm.0.gain`,
/// `param block.0.bias`, `F stage[0] mb[3]`.
std::string_view subject(std::string_view line);

class FoldedRun {
 public:
  FoldedRun(const FoldedLines& lines, std::size_t begin, std::size_t period)
      : lines_(&lines), begin_(begin), period_(period) {}

  /// Adds the next repetition; false if the next lines are not one.
  bool add();

  std::size_t begin() const { return begin_; }
  std::size_t period() const { return period_; }
  std::size_t times() const { return times_; }
  /// Lines that need not be shown.
  std::size_t saved() const { return (times_ - 1) * period_; }
  /// The first line names its repetition as the others do, so that a reader sees which indices
  /// move.
  bool is_named() const { return named_; }
  /// Statements about the last repetition that do not follow from the first line and the last one:
  /// "`%embed.0.add` is `%block.10.add.1`".
  std::vector<std::string> said() const;
  std::size_t num_said() const { return moves_said_.size() + num_taken_said(taken_); }

 private:
  using Use = FoldedLines::Use;

  /// The position of an index in the first repetition.
  struct Place {
    std::size_t line = 0, slot = 0;
    auto operator<=>(const Place&) const = default;
  };

  /// The indices of one word, in the whole run: by their values in the first repetition some stay,
  /// and the others move alike.
  struct Move {
    struct Value {
      bool stays = false;
      Place first;
    };
    std::int64_t step = 0;
    Place first;  // of those that move
    // No name shows the step: all move except those that names or words show to stay.
    bool said = false;
    std::unordered_map<std::int64_t, Value> values;
  };

  /// An index in the name of the first repetition, and its visible step.
  struct Name {
    Index index;
    std::int64_t step = 0;
  };

  /// A value from outside of the repetitions, by its name in the first one, and the properties of
  /// its names in the others so far:
  struct Taken {
    std::string_view first, second, now;
    std::size_t line = 0;  // that defines it
    std::size_t seen = 0;  // the last repetition that took it
    // Its indices move as those of the run do, from the first repetition on.
    bool follows = true;
    bool follows_later = true;  // from the second one on
    bool stays = true;          // it is the same from the second one on
    bool travels = true;        // the repetition before gives it, from the second one on
  };

  static std::size_t num_taken_said(const std::vector<Taken>& taken);

  bool same_flow(std::size_t line, std::size_t other, std::size_t i) const;
  bool learn_moves(std::size_t line, std::size_t other);
  void learn_names();
  void find_moves_said();
  void find_moves_said(Move& move);
  std::int64_t step(const Index& first) const;
  bool moves_on(std::size_t line, std::size_t other) const;
  std::optional<std::int64_t> named_step(const Index& first) const;
  bool names_move_on(std::size_t at) const;
  bool take(std::size_t at);
  bool update(Taken& taken, const Use& use, std::size_t line) const;
  bool learn(std::size_t at);
  bool go_on(std::size_t at) const;

  std::string moved(std::string_view name, std::int64_t times) const;
  std::string said(const Taken& taken) const;
  std::string said(Place place) const;

  const FoldedLines* lines_;
  std::size_t begin_, period_, times_ = 1;
  bool named_ = false;
  std::unordered_map<std::string_view, Move> moves_;
  std::vector<Name> names_;
  std::vector<Place> moves_said_;
  std::vector<Taken> taken_;
  std::vector<std::uint32_t> slots_;  // into taken_, in the order of the lines
};

}  // namespace piper::views
