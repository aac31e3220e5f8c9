#pragma once
// The text of an order whose steps are drawn, in a random form: explicit operations, numbered slots
// or cursors, with `repeat` around repetitions; one `rank` line for all ranks or one per rank.
//
//   OrderPrinter printer(context, random, strategy.mesh, axes);
//   for (const RankClaim& claim : claims) bodies.push_back(printer.body(steps_of(claim)));
//   printer.order(claims, bodies)

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "ir/directive/directive.h"
#include "tests/support/random_cases.h"

namespace piper::test {

/// One operation: a piece of a region in one pass and instance, or all that is on one rank, or the
/// one message that they send, or the one reduction of their gradients.
struct DrawnOperation {
  Pass pass = Pass::F;
  std::string work;  // `stage[0] mb[1]`
  std::string region;
  std::int32_t rank = 0;
  std::uint32_t vertex = 0;
  bool named = false;    // its communication; a separate step
  bool gathers = false;  // it reads parameters that are gathered for it
  bool again = false;    // its forward runs again before it, or before its group
};

/// A step: members of a group, each a sequence of operations.
using DrawnStep = std::vector<std::vector<DrawnOperation>>;

/// A rank in the order: its coordinates on the axes that identify ranks.
struct RankClaim {
  std::vector<std::uint32_t> at;
  bool claimed = true;
};

class OrderPrinter {
 public:
  /// `axes` of `mesh` identify the ranks, in this sequence.
  OrderPrinter(const Context& context, Random& random, const Mesh& mesh,
               const std::vector<std::size_t>& axes)
      : context_(context), random_(random), mesh_(mesh), axes_(axes) {}

  /// The lines of a rank that runs these steps.
  std::string body(const std::vector<DrawnStep>& steps);
  /// `order { ... }` with the `rank` lines; `bodies`: by claim, empty if it is not claimed.
  std::string order(const std::vector<RankClaim>& claims, const std::vector<std::string>& bodies);

 private:
  struct Cursors;
  /// Pending `BW`: work and the cursor that made it.
  using Pending = std::deque<std::pair<std::string, std::string>>;

  std::string axis_name(std::size_t axis) const;
  /// One `rank` line for all ranks, which distinguishes them inside.
  std::string one_rank_text(const std::vector<RankClaim>& claims,
                            const std::vector<std::string>& bodies) const;
  /// A `rank` line for each that is claimed, in any sequence.
  std::string ranks_text(const std::vector<RankClaim>& claims,
                         const std::vector<std::string>& bodies);
  /// Declares a cursor per region, or one for all if forwards and backwards on this rank have the
  /// same regions.
  std::string cursor_text(const std::vector<DrawnStep>& steps, Cursors& cursors,
                          const std::string& indent);
  std::string operation_text(const DrawnOperation& operation, const Cursors& cursors,
                             Pending& queue);

  const Context& context_;
  Random& random_;
  const Mesh& mesh_;
  const std::vector<std::size_t>& axes_;
};

}  // namespace piper::test
