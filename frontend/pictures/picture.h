#pragma once
// A timeline with details for a reader: the input of the printers of this folder.
//
//   Picture picture = make_picture("zbv -D p=4 -D m=8", std::move(timeline), &dag, dag.context->locations);
//   write(timeline_svg(picture));
//   write(timeline_page(std::array{std::move(picture), std::move(other)}));
//
// Guarantees: indices are in range; a picture refers to nothing outside itself.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "frontend/pictures/shade.h"
#include "ir/dag/dag.h"
#include "passes/simulate/timeline.h"

namespace piper::pictures {

struct Picture {
  static constexpr std::uint32_t kNone = passes::Timeline::kNone;

  std::string title;
  passes::Timeline timeline;

  // Per operation
  std::vector<std::string> cells;  // `F0`, `BI2.1`: as in a grid
  // 0: of the first stage of its rank (or of its first copy), 1: of another.
  std::vector<std::uint8_t> tone;
  std::vector<std::uint32_t> place;  // into `places`; kNone: none
  std::vector<std::string> places;   // `net.pipe:12:9`

  // Per entry, the entries that it read, ascending. Entry e has [first_input[e], first_input[e +
  // 1])
  std::vector<std::uint32_t> first_input;
  std::vector<std::uint32_t> inputs;

  std::string_view colour(std::uint32_t operation) const {
    return row_of(shade_of(timeline.operations[operation])).colours[tone[operation]];
  }
  std::span<const std::uint32_t> inputs_of(std::uint32_t entry) const {
    return {inputs.data() + first_input[entry], first_input[entry + 1] - first_input[entry]};
  }
};

/// `dag`: the one of the timeline; null: the picture has no inputs.
Picture make_picture(std::string title, passes::Timeline timeline, const dag::Dag* dag,
                     const LocationTable& locations);

/// Entries of a lane that run together: [first, end) with equal times, which share the lane's
/// height.
struct Together {
  std::uint32_t first = 0, end = 0;
  std::uint32_t size() const { return end - first; }
};
/// The group that begins with `first`, the first entry of its group in the lane.
Together together_from(const passes::Timeline& timeline, const passes::Timeline::Lane& lane,
                       std::uint32_t first);

/// `12`, `3.5`, `0.3333`: costs; `12.3 ms`: seconds. Members of overlap groups run one after the
/// other, although grids draw them together: a timeline at costs without `pair`.
bool runs_groups_in_turn(const passes::Timeline& timeline);
inline constexpr const char* kGroupsInTurn =
    "members of overlap groups run one after the other here; the cost `pair` runs a forward and a backward together, as grids draw them\n";

std::string time_text(double time, passes::Timeline::Unit unit);
/// `8.3 %`.
std::string share_text(double share);
/// For `<`, `>`, `&` and quotes of text between tags and in attributes; characters that are illegal
/// in XML become `?`.
std::string xml_text(std::string_view text);

}  // namespace piper::pictures
