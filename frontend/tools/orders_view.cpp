#include "frontend/tools/orders_view.h"

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"
#include "passes/order/grid_line.h"
#include "passes/simulate/work_times.h"

namespace piper::tools {
namespace {

using Op = passes::OrdersTable::Op;
using Row = passes::OrdersTable::Row;

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
    components.push_back({std::string(one.substr(0, bracket)), indexed ? std::string(one.substr(bracket + 1, one.size() - bracket - 2)) : ""});
    region.remove_prefix(std::min(end + 1, region.size()));
  }
  // What stands in no region: `rest`.
  if (components.size() > 1 && components.front().name == "model" && components.front().index.empty()) components.erase(components.begin());
  return components;
}

/// What operations are called in a cell, and what the words there mean.
class Labels {
 public:
  explicit Labels(const passes::OrdersTable& table) {
    std::set<std::string> regions, all;
    for (const Row& row : table.rows) {
      for (const Op& op : row.ops) {
        all.insert(op.region);
        by_stage_ = by_stage_ && is_stage(op);
        if (!is_stage(op)) regions.insert(op.region);
      }
    }
    for (const Row& row : table.rows) with_region_.push_back(needs_region(row) || (!by_stage_ && all.size() > 1));
    shorten(regions);
  }

  std::string of(std::size_t row, const Op& op) const {
    std::string text(pass_name(op.pass));
    if (with_region_[row]) text += region(op) + ".";
    text += std::to_string(op.mb);
    if (op.slice > 0) text += "/" + std::to_string(op.slice);
    return op.part ? text + "#" + std::to_string(*op.part) : text;
  }

  /// One line: a cell of each kind that has more than one number, and what the letters are short for.
  std::string legend(const passes::OrdersTable& table) const {
    std::string text;
    for (const bool by_stage : {true, false}) {
      for (std::size_t r = 0; r < table.rows.size(); ++r) {
        const std::vector<Op>& ops = table.rows[r].ops;
        const auto shown = std::find_if(ops.begin(), ops.end(), [&](const Op& op) { return with_region_[r] && is_stage(op) == by_stage; });
        if (shown == ops.end()) continue;
        text += (text.empty() ? "" : "; ") + of(r, *shown) + " is " + std::string(pass_name(shown->pass)) + " " + shown->region + ", microbatch " + std::to_string(shown->mb);
        if (shown->slice > 0) text += ", slice " + std::to_string(shown->slice);
        break;
      }
    }
    if (text.empty()) return text;
    for (const auto& [name, word] : words_) text += (name == words_.begin()->first ? "; " : ", ") + word + " " + name;
    return text + "\n";
  }

 private:
  static bool is_stage(const Op& op) { return op.stage && !op.part_of_stage; }

  /// A rank with several stages or regions needs them in the labels of its operations.
  static bool needs_region(const Row& row) {
    return std::any_of(row.ops.begin(), row.ops.end(), [&](const Op& op) { return op.region != row.ops.front().region; });
  }

  std::string region(const Op& op) const {
    if (is_stage(op)) return std::to_string(*op.stage);
    return short_.at(op.region);
  }

  /// Each name by as few letters as tell it from the others, an index where there is more than one.
  void shorten(const std::set<std::string>& regions) {
    std::map<std::string, std::set<std::string>> indices;  // by the names on the way
    for (const std::string& region : regions) {
      std::string way;
      for (const Component& each : components_of(region)) indices[way += "." + each.name].insert(each.index), words_[each.name];
    }
    for (auto& [name, word] : words_) {
      for (std::size_t length = 1; length <= name.size(); ++length) {
        word = name.substr(0, length);
        if (std::none_of(words_.begin(), words_.end(), [&](const auto& other) { return other.first != name && other.first.starts_with(word); })) break;
      }
    }
    std::set<std::string> taken;
    bool distinct = true;
    for (const std::string& region : regions) {
      std::string way, text;
      for (const Component& each : components_of(region)) {
        text += words_[each.name];
        if (indices[way += "." + each.name].size() > 1) text += each.index;
      }
      short_[region] = text;
      for (const Pass pass : kAllPasses) distinct = taken.insert(std::string(pass_name(pass)) + text).second && distinct;
    }
    if (distinct) return;
    words_.clear();
    for (auto& [region, text] : short_) text = region;
  }

  std::vector<bool> with_region_;             // per row
  bool by_stage_ = true;                      // every operation is of a whole stage
  std::map<std::string, std::string> words_;  // for names
  std::map<std::string, std::string> short_;  // for regions that are no stages
};

}  // namespace

std::string orders_text(const passes::OrdersTable& table) {
  const Labels labels(table);
  std::string text;
  for (std::size_t r = 0; r < table.rows.size(); ++r) {
    text += "rank " + std::to_string(r) + ":";
    const Op* before = nullptr;
    for (const Op& op : table.rows[r].ops) {
      text += before && op.group && before->group == op.group ? "&" : " ";
      text += labels.of(r, op);
      before = &op;
    }
    text += "\n";
  }
  return text + labels.legend(table);
}

std::string orders_json(const passes::OrdersTable& table, const dag::Dag& dag) {
  using namespace llvm::json;
  Array orders;
  for (const Row& row : table.rows) {
    Array ops;
    for (const Op& op : row.ops) {
      Object object{{"op", llvm::StringRef(pass_name(op.pass))}, {"region", op.region}, {"mb", op.mb}};
      if (op.copy) object["copy"] = op.copy;
      if (op.slice) object["slice"] = op.slice;
      if (op.part) object["part"] = *op.part;
      if (op.group) object["group"] = *op.group;
      if (table.placement.empty()) {
        Array devices;
        for (std::uint64_t rank = 0; rank < dag.mesh.devices(); ++rank) {
          if (dag.device_sets[op.devices].contains_device(coordinates_of(dag.mesh, rank))) devices.push_back(static_cast<std::int64_t>(rank));
        }
        object["devices"] = std::move(devices);
      } else {
        object["stage"] = *op.stage;
      }
      ops.push_back(std::move(object));
    }
    orders.push_back(std::move(ops));
  }
  Object root{{"schema", 1}, {"ranks", static_cast<std::int64_t>(table.rows.size())}, {"microbatches", table.microbatches}};
  if (table.stages) root["stages"] = table.stages;
  if (!table.placement.empty()) {
    Array placement;
    for (const auto& copy : table.placement) placement.push_back(Array(copy));
    root["placement"] = std::move(placement);
  }
  root["orders"] = std::move(orders);
  std::string text;
  llvm::raw_string_ostream(text) << Value(std::move(root));
  return text + "\n";
}

std::string grid_text(const passes::OrdersTable& table, const dag::Dag& dag) {
  const passes::WorkGraph graph(dag);
  const passes::RoleTable roles(dag, {});
  const passes::WorkTimes times(dag, graph, roles, passes::unit_rules(dag, graph, roles));
  const auto start = [&](const Op& op) { return static_cast<std::uint32_t>(times.start(graph.unit_of(op.first))); };
  const auto end = [&](const Op& op) { return static_cast<std::uint32_t>(times.finish(graph.unit_of(op.last))); };
  std::size_t width = 1;
  const Labels labels(table);
  for (std::size_t r = 0; r < table.rows.size(); ++r) {
    for (const Op& op : table.rows[r].ops) {
      const std::uint32_t units = end(op) - start(op);
      width = std::max(width, (labels.of(r, op).size() + units - 1) / units);
    }
  }
  ++width;
  std::string text;
  for (std::size_t r = 0; r < table.rows.size(); ++r) {
    std::vector<Op> ops = table.rows[r].ops;
    std::stable_sort(ops.begin(), ops.end(), [&](const Op& a, const Op& b) { return start(a) < start(b); });
    std::vector<passes::GridCell> cells;
    for (const Op& op : ops) {
      const bool joined = &op != &ops.front() && op.group && (&op - 1)->group == op.group;
      cells.push_back({start(op), end(op), labels.of(r, op), joined});
    }
    std::string name = "rank " + std::to_string(r);
    name.resize(std::max<std::size_t>(name.size() + 1, 8), ' ');
    text += grid_line(std::move(name), cells, 0, width) + "\n";
  }
  return text + labels.legend(table);
}

}  // namespace piper::tools
