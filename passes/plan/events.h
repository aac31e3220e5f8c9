#pragma once
// Events: the orderings between the streams of one rank that data and memory require and other
// orderings do not imply.
//
// An action waits for the end of actions on other streams, in the same step or in the one before.
// An ordering that follows from stream order and earlier waits gets none. Linear: one vector of
// stream positions per action.

#include <cstdint>
#include <span>
#include <vector>

namespace piper::passes {

/// An action of one rank on its stream, numbered within the rank.
struct Slot {
  std::uint32_t stream = 0;
  std::int32_t position = 0;
};

/// The wait for another action of the same rank, `distance` (0 or 1) steps ago.
struct Need {
  std::uint32_t action = 0;
  std::uint32_t distance = 0;
  friend bool operator==(const Need&, const Need&) = default;
};

struct Events {
  std::vector<std::uint32_t> first;  // per action, one more
  std::vector<Need> waits;
};

/// Chooses the events of one rank after the other; its large tables are allocated once.
class WaitChooser {
 public:
  /// `slots`: actions in issue order; positions count up per stream. `needs` of action i are
  /// [first_need[i], first_need[i + 1]): at distance 0 earlier actions. The result is valid until
  /// the next call.
  const Events& choose(std::span<const Slot> slots, std::size_t streams,
                       std::span<const std::uint32_t> first_need, std::span<const Need> needs);

 private:
  /// Per action: how many actions of each stream have ended when it starts, in the second pass with
  /// those of the previous step. Rows are padded, so that they are copied and merged by vector
  /// instructions.
  class Clocks {
   public:
    /// A row is written before it is read.
    void resize(std::size_t actions, std::size_t streams);
    std::int32_t* row(std::size_t action) { return rows_.data() + action * width_; }
    void clear(std::int32_t* row) const;
    void copy(std::int32_t* to, const std::int32_t* from) const;
    void merge(std::int32_t* to, const std::int32_t* from) const;

   private:
    std::size_t width_ = 0;
    std::vector<std::int32_t> rows_;
  };

  void link_streams(std::size_t streams);
  /// Fills `sorted_` with the needs that `row`, the ends already implied, does not cover.
  void sort_needs(std::uint32_t action, std::uint32_t distance, const std::int32_t* row);
  void within_a_step();
  void across_steps();

  std::span<const Slot> slots_;
  std::span<const std::uint32_t> first_need_;
  std::span<const Need> needs_;
  Events events_;
  std::vector<std::int32_t> count_;      // per stream: its actions
  std::vector<std::uint32_t> last_;      // per stream: its last action
  std::vector<std::uint32_t> previous_;  // per action: the one before it in its stream
  // Needs of one action and distance, the latest first.
  std::vector<Need> sorted_;
  Clocks same_, next_;                                  // of the first step, and of the one after
  std::vector<std::uint32_t> first_same_, waits_same_;  // per action, one more; waits within a step
};

}  // namespace piper::passes
