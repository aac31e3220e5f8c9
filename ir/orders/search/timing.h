#pragma once
// The times of lists of operations: each rank runs its list in order, each operation as soon as its
// inputs are there.

#include "ir/orders/search/problem.h"

namespace piper::orders {

/// The figures of an order; the objective first, then the mean over ranks of the same figure.
struct Score {
  double value = 0, mean = 0;
  friend bool operator<(const Score& a, const Score& b) {
    return a.value < b.value || (a.value == b.value && a.mean < b.mean);
  }
};

/// Times lists again and again, without allocation after the first run.
class Timing {
 public:
  explicit Timing(const SearchProblem& problem);

  /// Nothing if ranks wait for each other forever.
  std::optional<Score> run(const CodeLists& lists);

  // ---- of the last run that gave a score

  /// An operation in its list.
  struct Place {
    std::uint32_t rank = 0, position = 0;
  };
  /// The operations that decide the objective, from the last to the first; each of them but the
  /// last waits for the next one.
  const std::vector<Place>& critical(const CodeLists& lists);

 private:
  struct Rank {
    std::uint32_t next = 0;
    double time = 0, first_start = 0;
  };
  /// The operation that an operation needs from its neighbour, and the delay of the message.
  struct Input {
    Code code = SearchProblem::kNone;
    double delay = 0;
  };

  void advance(const CodeLists& lists, std::uint32_t rank);

  const SearchProblem& problem_;
  std::vector<Input> input_;           // by code
  std::vector<std::uint32_t> reader_;  // by code: the rank that waits for it; kNone: none
  std::vector<std::size_t> first_;     // by code: its operations in `end_`
  std::vector<double> end_;            // by operation
  std::vector<std::uint32_t> done_;    // by code
  std::vector<Rank> at_;
  std::vector<std::uint32_t> open_;                           // ranks that may go on
  std::vector<Code> waits_for_;                               // by rank
  std::vector<std::vector<std::pair<double, bool>>> starts_;  // by rank, position: start, waited
  std::vector<std::vector<std::uint32_t>> position_;          // by code, occurrence
  std::vector<Place> critical_;
  std::uint64_t ran_ = 0;
};

}  // namespace piper::orders
