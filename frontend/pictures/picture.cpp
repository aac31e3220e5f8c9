#include "frontend/pictures/picture.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <set>
#include <utility>

#include "frontend/pictures/cell_labels.h"
#include "llvm/Support/JSON.h"

namespace piper::pictures {
namespace {

using passes::Timeline;
constexpr std::uint32_t kNone = Picture::kNone;

Cell cell_of(const Timeline& timeline, const Timeline::Operation& operation) {
  Cell cell{operation.pass,  timeline.names[operation.name],
            std::nullopt,    operation.mb,
            operation.slice, std::nullopt};
  if (operation.stage != kNone) cell.stage = operation.stage;
  if (operation.part != kNone) cell.part = operation.part;
  return cell;
}

/// Names of operations, and their stages among those of a rank: by the first rank that runs them.
void name_cells(Picture& picture) {
  const Timeline& timeline = picture.timeline;
  CellRows rows;
  std::vector<std::vector<std::uint32_t>> operations;  // per rank, those named by it
  std::vector<bool> named(timeline.operations.size(), false);
  for (const Timeline::Rank& rank : timeline.ranks) {
    rows.emplace_back();
    operations.emplace_back();
    for (const Timeline::Lane& lane : timeline.lanes_of(rank)) {
      for (std::uint32_t e = lane.first; e < lane.end; ++e) {
        const std::uint32_t operation = timeline.operation[e];
        if (!dag::runs_body(timeline.operations[operation].kind)) continue;
        rows.back().push_back(cell_of(timeline, timeline.operations[operation]));
        if (!named[operation]) operations.back().push_back(operation);
        named[operation] = true;
      }
    }
  }
  const CellLabels labels(rows);
  picture.cells.resize(timeline.operations.size());
  picture.tone.assign(timeline.operations.size(), 0);
  for (std::size_t row = 0; row < rows.size(); ++row) {
    // In the order in which the rank meets them.
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint8_t> stages;
    for (const std::uint32_t id : operations[row]) {
      const Timeline::Operation& operation = timeline.operations[id];
      picture.cells[id] = labels.of(row, cell_of(timeline, operation));
      if (operation.stage == kNone) continue;
      picture.tone[id] = stages
                             .emplace(std::pair(operation.stage, operation.copy),
                                      static_cast<std::uint8_t>(stages.size() % 2))
                             .first->second;
    }
  }
  for (std::size_t id = 0; id < timeline.operations.size(); ++id) {
    if (!dag::runs_body(timeline.operations[id].kind))
      picture.cells[id] = dag::kind_name(timeline.operations[id].kind);
  }
}

void find_places(Picture& picture, const LocationTable& locations) {
  std::map<LocId, std::uint32_t> known;
  for (const Timeline::Operation& operation : picture.timeline.operations) {
    const auto [entry, added] = known.emplace(operation.loc, kNone);
    if (added && operation.loc.valid()) {
      const SourceRange range = locations.primary(operation.loc);
      if (range.valid()) {
        const LineColumn at = locations.files().line_column(range.file, range.begin);
        entry->second = static_cast<std::uint32_t>(picture.places.size());
        picture.places.push_back(std::string(locations.files().name(range.file)) + ":" +
                                 std::to_string(at.line) + ":" + std::to_string(at.column));
      }
    }
    picture.place.push_back(entry->second);
  }
}

/// The inputs of each entry, along the edges of the DAG and through nodes that the timeline leaves
/// out.
class Inputs {
 public:
  Inputs(Picture& picture, const dag::Dag& dag)
      : picture_(picture),
        timeline_(picture.timeline),
        dag_(dag),
        operation_of_(dag.nodes.size(), kNone) {
    find_operations();
    find_entries();
  }

  void collect() {
    std::vector<std::vector<dag::NodeId>> nodes(timeline_.operations.size());
    for (const dag::NodeId id : dag_.order) {
      if (operation_of_[id.index()] != kNone) nodes[operation_of_[id.index()]].push_back(id);
    }
    picture_.first_input.reserve(timeline_.size() + 1);
    for (std::uint32_t e = 0; e < timeline_.size(); ++e) {
      picture_.first_input.push_back(static_cast<std::uint32_t>(picture_.inputs.size()));
      found_.clear();
      for (const dag::NodeId node : nodes[timeline_.operation[e]]) read_by(node, e);
      std::sort(found_.begin(), found_.end());
      found_.erase(std::unique(found_.begin(), found_.end()), found_.end());
      picture_.inputs.insert(picture_.inputs.end(), found_.begin(), found_.end());
    }
    picture_.first_input.push_back(static_cast<std::uint32_t>(picture_.inputs.size()));
  }

 private:
  /// An operation of an order is several chunks in a row on its devices.
  void find_operations() {
    // Pieces of two passes may alternate.
    std::vector<std::uint32_t> begins(dag_.nodes.size(), kNone),
        current(kPasses * dag_.device_sets.size(), kNone);
    for (std::uint32_t id = 0; id < timeline_.operations.size(); ++id) {
      if (timeline_.operations[id].first.valid())
        begins[timeline_.operations[id].first.index()] = id;
    }
    for (const dag::NodeId id : dag_.order) {
      const dag::Node& node = dag_.node(id);
      if (begins[id.index()] != kNone && !dag::runs_body(node.kind))
        operation_of_[id.index()] = begins[id.index()];
      if (!dag::runs_body(node.kind)) continue;
      std::uint32_t& running =
          current[kPasses * node.devices.index() + static_cast<std::size_t>(node.pass)];
      if (begins[id.index()] != kNone) running = begins[id.index()];
      operation_of_[id.index()] = running;
      if (running != kNone && timeline_.operations[running].last == id) running = kNone;
    }
  }

  void find_entries() {
    rank_of_.resize(timeline_.size());
    entries_.resize(timeline_.operations.size());
    for (const Timeline::Lane& lane : timeline_.lanes) {
      for (std::uint32_t e = lane.first; e < lane.end; ++e) {
        rank_of_[e] = lane.rank;
        entries_[timeline_.operation[e]].push_back(e);
      }
    }
  }

  void read_by(dag::NodeId id, std::uint32_t entry) {
    const dag::Node& node = dag_.node(id);
    if (dag::is_recv(node.kind)) {
      for (const dag::NodeId member : dag_.comms[node.comm.index()].members) {
        if (member != id) from(member, entry);
      }
    }
    dag::NodeId last;
    for (const dag::Input& input : dag_.inputs_of(node)) {
      // Another of its outputs.
      if (input.cls == dag::EdgeClass::param ||
          std::exchange(last, input.source.node) == input.source.node)
        continue;
      from(input.source.node, entry);
    }
  }

  void from(dag::NodeId source, std::uint32_t entry) {
    const std::uint32_t operation = operation_of_[source.index()];
    if (operation == kNone) return read_by(source, entry);
    if (operation == timeline_.operation[entry] || entries_[operation].empty()) return;
    const std::vector<std::uint32_t>& runs = entries_[operation];
    const auto here = std::find_if(runs.begin(), runs.end(), [&](std::uint32_t run) {
      return rank_of_[run] == rank_of_[entry];
    });
    found_.push_back(here == runs.end() ? runs.front() : *here);
  }

  Picture& picture_;
  const Timeline& timeline_;
  const dag::Dag& dag_;
  std::vector<std::uint32_t> operation_of_;          // per node
  std::vector<std::uint32_t> rank_of_;               // per entry
  std::vector<std::vector<std::uint32_t>> entries_;  // per operation
  std::vector<std::uint32_t> found_;
};

}  // namespace

Picture make_picture(std::string title, passes::Timeline timeline, const dag::Dag* dag,
                     const LocationTable& locations) {
  Picture picture;
  picture.title = std::move(title);
  picture.timeline = std::move(timeline);
  name_cells(picture);
  find_places(picture, locations);
  if (dag) {
    Inputs(picture, *dag).collect();
  } else {
    picture.first_input.assign(picture.timeline.size() + 1, 0);
  }
  return picture;
}

Together together_from(const Timeline& timeline, const Timeline::Lane& lane, std::uint32_t first) {
  std::uint32_t end = first + 1;
  const bool takes_time = timeline.finish[first] > timeline.start[first];
  while (takes_time && end < lane.end && timeline.group[first] != kNone &&
         timeline.group[end] == timeline.group[first] &&
         timeline.start[end] == timeline.start[first] &&
         timeline.finish[end] == timeline.finish[first]) {
    ++end;
  }
  return {first, end};
}

bool runs_groups_in_turn(const Timeline& timeline) {
  if (timeline.source != Timeline::Source::operations) return false;
  for (std::uint32_t entry = 1; entry < timeline.size(); ++entry) {
    const bool one_group = timeline.group[entry] != Timeline::kNone &&
                           timeline.group[entry] == timeline.group[entry - 1];
    if (one_group && timeline.start[entry] != timeline.start[entry - 1]) return true;
  }
  return false;
}

std::string time_text(double time, Timeline::Unit unit) {
  char text[48];
  if (unit == Timeline::Unit::cost) {
    std::snprintf(text, sizeof text, "%.6g", time);
    return text;
  }
  if (time == 0) return "0";
  const auto [scale, name] = time >= 1      ? std::pair(1.0, "s")
                             : time >= 1e-3 ? std::pair(1e3, "ms")
                             : time >= 1e-6 ? std::pair(1e6, "us")
                                            : std::pair(1e9, "ns");
  std::snprintf(text, sizeof text, "%.4g %s", time * scale, name);
  return text;
}

std::string share_text(double share) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f %%", share * 100);
  return text;
}

std::string xml_text(std::string_view text) {
  std::string out;
  for (const char c : llvm::json::fixUTF8(llvm::StringRef(text))) {
    switch (c) {
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '&': out += "&amp;"; break;
      case '"': out += "&quot;"; break;
      case '\'': out += "&#39;"; break;
      default: out += static_cast<unsigned char>(c) < 0x20 && c != '\t' && c != '\n' ? '?' : c;
    }
  }
  return out;
}

}  // namespace piper::pictures
