#include "frontend/pictures/layout.h"

#include <algorithm>

namespace piper::pictures {

using passes::Timeline;

Rows::Rows(const Timeline& timeline) {
  const std::size_t ranks = timeline.ranks.size();
  const double compute = ranks <= 8    ? 24
                         : ranks <= 32 ? 18
                         : ranks <= 64 ? 13
                                       : 11,
               gap = ranks <= 32 ? 3 : 1;
  lane_top_.assign(timeline.lanes.size(), 0);
  lane_height_.assign(timeline.lanes.size(), 0);
  for (const Timeline::Rank& rank : timeline.ranks) {
    rank_top_.push_back(height_);
    for (std::uint32_t l = rank.first_lane; l < rank.end_lane; ++l) {
      if (l > rank.first_lane && timeline.lanes[l].first == timeline.lanes[l].end) continue;
      lane_top_[l] = height_;
      lane_height_[l] = l == rank.first_lane ? compute : std::max(4.0, compute / 3);
      height_ += lane_height_[l];
    }
    rank_height_.push_back(height_ - rank_top_.back());
    height_ += gap;
  }
}

std::string rank_text(const Timeline::Rank& rank) {
  return rank.replicas > 1 ? rank.name + " x " + std::to_string(rank.replicas) : rank.name;
}

std::string stages_text(const Timeline& timeline) {
  const std::string_view text =
      timeline.source == Timeline::Source::operations ? text_of(timeline.stages) : "";
  return text.empty() ? "" : ", " + std::string(text);
}

std::string figures_text(const Timeline& timeline) {
  return "makespan " + time_text(timeline.makespan, timeline.unit) + ", bubble " +
         share_text(timeline.bubble_span) + " of the span and " +
         share_text(timeline.bubble_makespan) + " of the makespan" + stages_text(timeline);
}

std::string legend_text(Shade shade) {
  const ShadeRow& row = row_of(shade);
  return shade < Shade::message ? std::string(row.name) + ": " + std::string(row.means)
                                : std::string(row.means);
}

}  // namespace piper::pictures
