#include "frontend/pictures/cell_labels.h"

#include <algorithm>

namespace piper::pictures {
namespace {

/// A region as a selector names it, taken apart: `block[1].rest` -> {block, 1}, {rest, none}.
struct Component {
  std::string name, index;
};

std::vector<Component> components_of(std::string_view region) {
  std::vector<Component> components;
  while (!region.empty()) {
    const std::size_t end = std::min(region.find('.'), region.size());
    const std::string_view one = region.substr(0, end);
    const std::size_t bracket = std::min(one.find('['), one.size());
    const bool indexed = bracket < one.size();
    components.push_back(
        {std::string(one.substr(0, bracket)),
         indexed ? std::string(one.substr(bracket + 1, one.size() - bracket - 2)) : ""});
    region.remove_prefix(std::min(end + 1, region.size()));
  }
  // Work outside of all regions: `rest`.
  if (components.size() > 1 && components.front().name == "model" &&
      components.front().index.empty())
    components.erase(components.begin());
  return components;
}

/// A rank with several stages or regions needs them in the labels of its operations.
bool needs_region(const std::vector<Cell>& row) {
  return std::any_of(row.begin(), row.end(),
                     [&](const Cell& cell) { return cell.region != row.front().region; });
}

}  // namespace

CellLabels::CellLabels(const CellRows& rows) {
  std::set<std::string_view> regions, all;
  bool by_stage = true;  // every operation is of a whole stage
  for (const std::vector<Cell>& row : rows) {
    std::string_view before;
    for (const Cell& cell : row) {
      if (cell.region == before) continue;
      before = cell.region;
      all.insert(cell.region);
      by_stage = by_stage && cell.stage;
      if (!cell.stage) regions.insert(cell.region);
    }
  }
  for (const std::vector<Cell>& row : rows)
    with_region_.push_back(needs_region(row) || (!by_stage && all.size() > 1));
  shorten(regions);
}

std::string CellLabels::of(std::size_t row, const Cell& cell) const {
  std::string text(pass_name(cell.pass));
  if (with_region_[row]) text += region(cell) + ".";
  text += std::to_string(cell.mb);
  if (cell.slice > 0) text += "/" + std::to_string(cell.slice);
  return cell.part ? text + "#" + std::to_string(*cell.part) : text;
}

std::string CellLabels::legend(const CellRows& rows) const {
  std::string text;
  for (const bool by_stage : {true, false}) {
    for (std::size_t r = 0; r < rows.size(); ++r) {
      const auto shown = std::find_if(rows[r].begin(), rows[r].end(), [&](const Cell& cell) {
        return with_region_[r] && cell.stage.has_value() == by_stage;
      });
      if (shown == rows[r].end()) continue;
      text += (text.empty() ? "" : "; ") + of(r, *shown) + " is " +
              std::string(pass_name(shown->pass)) + " " + std::string(shown->region) +
              ", microbatch " + std::to_string(shown->mb);
      if (shown->slice > 0) text += ", slice " + std::to_string(shown->slice);
      break;
    }
  }
  if (text.empty()) return text;
  for (const auto& [name, word] : words_)
    text += (name == words_.begin()->first ? "; " : ", ") + word + " " + name;
  return text + "\n";
}

std::string CellLabels::region(const Cell& cell) const {
  if (cell.stage) return std::to_string(*cell.stage);
  return short_.find(cell.region)->second;
}

/// Each name as its shortest unique prefix, with an index if there is more than one.
void CellLabels::shorten(const std::set<std::string_view>& regions) {
  std::map<std::string, std::set<std::string>> indices;  // by the names on the way
  for (const std::string_view region : regions) {
    std::string way;
    for (const Component& each : components_of(region))
      indices[way += "." + each.name].insert(each.index), words_[each.name];
  }
  for (auto& [name, word] : words_) {
    for (std::size_t length = 1; length <= name.size(); ++length) {
      word = name.substr(0, length);
      if (std::none_of(words_.begin(), words_.end(), [&](const auto& other) {
            return other.first != name && other.first.starts_with(word);
          }))
        break;
    }
  }
  std::set<std::string> taken;
  bool distinct = true;
  for (const std::string_view region : regions) {
    std::string way, text;
    for (const Component& each : components_of(region)) {
      text += words_[each.name];
      if (indices[way += "." + each.name].size() > 1) text += each.index;
    }
    for (const Pass pass : kAllPasses)
      distinct = taken.insert(std::string(pass_name(pass)) + text).second && distinct;
    short_.emplace(region, std::move(text));
  }
  if (distinct) return;
  words_.clear();
  for (auto& [region, text] : short_) text = region;
}

}  // namespace piper::pictures
