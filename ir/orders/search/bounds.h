#pragma once
// Lower bounds of span and makespan that hold for all orders of placed parts under a cap.
//
//   1F1B's placement, p ranks, unit costs, split backward, cap p   ->   span >= 3m + p - 1

#include <vector>

#include "ir/orders/search/problem.h"

namespace piper::orders {

struct Bounds {
  double span = 0, makespan = 0;
  double of(Objective objective) const { return objective == Objective::span ? span : makespan; }
};

/// The largest of these. A rank
/// - does all of its work;
/// - runs only forwards from its first one to its first backward, at most as many as the cap lets
///   it hold, while the first instance goes to the last part and comes back;
/// - starts before another rank and ends after it, by the times of the parts between them, while the
///   other one does all work but the weight gradients that it may postpone;
/// - holds the activations of each part from its forward to the end of its backward, and no more
///   than the cap at any time.
/// The cap is at least the largest demand of one instance.
Bounds bounds(const SearchProblem& problem);

/// The activations that parts keep, and those that a rank may hold, in one unit.
struct KeptActivations {
  std::vector<double> of_part;
  double cap = 0;
};
/// The same, where parts keep different amounts, instead of the capacity of the problem.
Bounds bounds(const SearchProblem& problem, const KeptActivations& kept);

}  // namespace piper::orders
