#pragma once
// Vertical positions of ranks and their lanes, and the words around them: shared by image and page.

#include <string>
#include <vector>

#include "frontend/pictures/picture.h"

namespace piper::pictures {

/// Heights by the number of ranks: a lane of communication is thinner than that of the computation,
/// one without entries takes no place.
class Rows {
 public:
  explicit Rows(const passes::Timeline& timeline);

  double height() const { return height_; }
  double rank_top(std::size_t rank) const { return rank_top_[rank]; }
  double rank_height(std::size_t rank) const { return rank_height_[rank]; }
  double lane_top(std::size_t lane) const { return lane_top_[lane]; }
  double lane_height(std::size_t lane) const { return lane_height_[lane]; }

 private:
  double height_ = 0;
  std::vector<double> rank_top_, rank_height_, lane_top_, lane_height_;
};

/// `rank 0`, `pp0 x 8` where eight devices do the same.
std::string rank_text(const passes::Timeline::Rank& rank);
/// The rule for stages, after figures: `, stages weighed by cost`; empty if no rule applies.
std::string stages_text(const passes::Timeline& timeline);
/// `makespan 48, bubble 12.5 % of the span and 25.0 % of the makespan`.
std::string figures_text(const passes::Timeline& timeline);
/// `BI: gradients of inputs`; for communication only the meaning.
std::string legend_text(Shade shade);

}  // namespace piper::pictures
