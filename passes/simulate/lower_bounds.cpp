#include "passes/simulate/lower_bounds.h"

#include <algorithm>
#include <limits>
#include <set>

namespace piper::passes {

namespace {

using orders::PartSeconds;

constexpr double kNotSeen = std::numeric_limits<double>::infinity();

/// The least times of the passes of one stage.
struct StageSeconds {
  double f = kNotSeen, b = kNotSeen, bi = kNotSeen, bw = kNotSeen;
  double& of(Pass pass) {
    return pass == Pass::F ? f : pass == Pass::B ? b : pass == Pass::BI ? bi : bw;
  }
};

/// The work of a timeline as parts of a chain.
class Chain {
 public:
  Chain(const Timeline& timeline, const OperationCosts& costs)
      : timeline_(timeline), costs_(costs) {}

  std::optional<orders::Bounds> bounds() {
    const bool ordered = timeline_.source == Timeline::Source::operations;
    if (!ordered || costs_.pair || !read_sizes() || !read_entries() || !exchanges())
      return std::nullopt;
    orders::SearchRule rule;
    rule.split_backward = split_;
    rule.comm = costs_.p2p;
    std::vector<PartSeconds> seconds;
    for (const StageSeconds& stage : stages_) {
      const bool halves = stage.bi != kNotSeen;
      if (halves && stage.b < (stage.bi + stage.bw) * (1 - 1e-9)) return std::nullopt;
      seconds.push_back({stage.f, halves ? stage.bi : stage.b, halves ? stage.bw : 0});
    }
    const orders::SearchProblem problem(work_, rule, seconds);
    const std::optional<orders::KeptActivations> kept = kept_activations();
    return kept ? orders::bounds(problem, *kept) : orders::bounds(problem);
  }

 private:
  bool read_sizes() {
    std::uint32_t stages = 0;
    for (const Timeline::Operation& operation : timeline_.operations) {
      const bool known = dag::runs_body(operation.kind) && operation.pass != Pass::R &&
                         operation.stage != Timeline::kNone && operation.part == Timeline::kNone &&
                         operation.slice == 0;
      if (!known) return false;
      stages = std::max(stages, operation.stage + 1);
      instances_ = std::max(instances_, operation.mb + 1);
    }
    if (stages == 0) return false;
    work_.part.extent = stages;
    stages_.resize(stages);
    work_.rank_of.assign(std::size_t{stages} * instances_, Timeline::kNone);
    for (const Timeline::Rank& rank : timeline_.ranks) {
      if (rank.alike != 1) return false;
      work_.ranks.emplace_back();
    }
    return true;
  }

  bool read_entries() {
    std::vector<std::uint8_t> seen(work_.rank_of.size(), 0);  // bit per pass
    for (const Timeline::Lane& lane : timeline_.lanes) {
      for (std::uint32_t entry = lane.first; entry < lane.end; ++entry) {
        const Timeline::Operation& operation = timeline_.operation_of(entry);
        const std::size_t piece = std::size_t{operation.mb} * work_.part.extent + operation.stage;
        std::uint32_t& rank = work_.rank_of[piece];
        const auto bit = static_cast<std::uint8_t>(1u << static_cast<unsigned>(operation.pass));
        if ((rank != Timeline::kNone && rank != lane.rank) || (seen[piece] & bit) != 0)
          return false;
        rank = lane.rank;
        seen[piece] |= bit;
        double& seconds = stages_[operation.stage].of(operation.pass);
        seconds = std::min(seconds, timeline_.finish[entry] - timeline_.start[entry]);
        split_ = split_ || operation.pass == Pass::BW;
      }
    }
    const auto complete = [](std::uint8_t bits) {
      const auto has = [&](Pass pass) { return (bits >> static_cast<unsigned>(pass) & 1) != 0; };
      return has(Pass::F) && (has(Pass::B) || (has(Pass::BI) && has(Pass::BW)));
    };
    return std::all_of(seen.begin(), seen.end(), complete);
  }

  /// Whether each stage reads the one before.
  bool exchanges() const {
    if (timeline_.stages == Timeline::Stages::links) return true;
    std::set<std::pair<std::uint32_t, std::uint32_t>> routes;
    for (const Timeline::Message& message : timeline_.messages) {
      const Timeline::Operation& from = timeline_.operation_of(message.from);
      const Timeline::Operation& to = timeline_.operation_of(message.to);
      if (from.pass == Pass::F && to.pass == Pass::F) routes.emplace(from.stage, to.stage);
    }
    for (std::uint32_t stage = 1; stage < work_.part.extent; ++stage) {
      if (!routes.contains({stage - 1, stage})) return false;
    }
    return true;
  }

  /// Nothing if the bounds do not know how activations are kept: they know those that a forward
  /// makes, as its time says, and that all stay until the backward, or `BW`, ends.
  std::optional<orders::KeptActivations> kept_activations() const {
    if (costs_.w != 1 || costs_.keep != 0 || costs_.f == 0) return std::nullopt;
    orders::KeptActivations kept;
    for (const StageSeconds& stage : stages_) kept.of_part.push_back(stage.f / costs_.f);
    for (const Timeline::Rank& rank : timeline_.ranks) kept.cap = std::max(kept.cap, rank.peak);
    kept.cap *= 1 + 1e-9;  // the peak is a sum of rounded numbers
    return kept;
  }

  const Timeline& timeline_;
  const OperationCosts& costs_;
  orders::PlacedParts work_;
  std::vector<StageSeconds> stages_;
  std::uint32_t instances_ = 0;
  bool split_ = false;
};

}  // namespace

std::optional<orders::Bounds> lower_bounds(const Timeline& timeline, const OperationCosts& costs) {
  return Chain(timeline, costs).bounds();
}

}  // namespace piper::passes
