#include "frontend/tools/orders_view.h"

#include <algorithm>
#include <cmath>

#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"
#include "passes/work_graph.h"

namespace piper::tools {
namespace {

using Op = passes::OrdersTable::Op;
using Row = passes::OrdersTable::Row;

std::string label(const Op& op, bool with_stage) {
  std::string text(pass_name(op.pass));
  if (with_stage) text += (op.stage ? std::to_string(*op.stage) : op.region) + ".";
  text += std::to_string(op.mb);
  if (op.slice > 0) text += "/" + std::to_string(op.slice);
  return op.part ? text + "#" + std::to_string(*op.part) : text;
}

/// A rank with several stages or regions needs them in the labels of its operations.
bool needs_stage(const Row& row) {
  return std::any_of(row.ops.begin(), row.ops.end(), [&](const Op& op) { return op.region != row.ops.front().region; });
}

/// Start and end of every chunk at unit times, each rank in its order and the passes in theirs; other nodes end when what they wait for does.
struct Times {
  std::vector<double> start, end;
  explicit Times(const dag::Dag& dag) : start(dag.nodes.size(), 0), end(dag.nodes.size(), 0) {
    const passes::WorkGraph graph(dag);
    std::vector<double> free(dag.device_sets.size(), 0), ready(graph.units(), 0);
    for (const dag::NodeId id : dag.order) {
      const std::uint32_t unit = graph.unit_of(id);
      const dag::Node& node = dag.node(id);
      double& time = ready[unit];
      if (node.kind == dag::NodeKind::chunk) {
        time = std::max(time, free[node.devices.index()]);
        start[id.index()] = time;
        time += node.pass == Pass::B ? 2 : 1;
        for (std::size_t set = 0; set < free.size(); ++set) {
          if (dag.device_sets[DeviceSetId::at(set)].intersects(dag.device_sets[node.devices])) free[set] = std::max(free[set], time);
        }
      }
      end[id.index()] = time;
      for (const std::uint32_t next : graph.successors(unit)) ready[next] = std::max(ready[next], time);
    }
  }
};

}  // namespace

std::string orders_text(const passes::OrdersTable& table) {
  std::string text;
  for (std::size_t r = 0; r < table.rows.size(); ++r) {
    const bool with_stage = needs_stage(table.rows[r]);
    text += "rank " + std::to_string(r) + ":";
    const Op* before = nullptr;
    for (const Op& op : table.rows[r].ops) {
      text += before && op.group && before->group == op.group ? "&" : " ";
      text += label(op, with_stage);
      before = &op;
    }
    text += "\n";
  }
  return text;
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
  const Times times(dag);
  const auto start = [&](const Op& op) { return times.start[op.first.index()]; };
  const auto units = [&](const Op& op) { return times.end[op.last.index()] - start(op); };
  std::size_t width = 1;
  for (const Row& row : table.rows) {
    const bool with_stage = needs_stage(row);
    for (const Op& op : row.ops) width = std::max(width, static_cast<std::size_t>(std::ceil(static_cast<double>(label(op, with_stage).size()) / units(op))));
  }
  ++width;
  std::string text;
  for (std::size_t r = 0; r < table.rows.size(); ++r) {
    const bool with_stage = needs_stage(table.rows[r]);
    std::vector<Op> ops = table.rows[r].ops;
    std::stable_sort(ops.begin(), ops.end(), [&](const Op& a, const Op& b) { return start(a) < start(b); });
    std::string line = "rank " + std::to_string(r);
    line.resize(std::max<std::size_t>(line.size() + 1, 8), ' ');
    const std::size_t left = line.size();
    const Op* before = nullptr;
    for (const Op& op : ops) {
      const auto column = left + static_cast<std::size_t>(std::lround(start(op))) * width;
      for (std::size_t at = line.size(); at < column; ++at) line += (at - left) % width == 0 ? '.' : ' ';
      if (before && op.group && before->group == op.group && line.back() == ' ') line.back() = '&';
      std::string cell = label(op, with_stage);
      cell.resize(static_cast<std::size_t>(std::lround(units(op))) * width, ' ');
      line += cell;
      before = &op;
    }
    while (line.back() == ' ') line.pop_back();
    text += line + "\n";
  }
  return text;
}

}  // namespace piper::tools
