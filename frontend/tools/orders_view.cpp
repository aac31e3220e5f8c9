#include "frontend/tools/orders_view.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "frontend/pictures/cell_labels.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"
#include "passes/order/work_graph.h"

namespace piper::tools {
namespace {

using Op = passes::OrdersTable::Op;
using Row = passes::OrdersTable::Row;

/// The operations of a table by name.
pictures::CellRows cells_of(const passes::OrdersTable& table) {
  pictures::CellRows rows;
  for (const Row& row : table.rows) {
    std::vector<pictures::Cell>& cells = rows.emplace_back();
    cells.reserve(row.ops.size());
    for (const Op& op : row.ops) cells.push_back({op.pass, op.region, op.part_of_stage ? std::nullopt : op.stage, op.mb, op.slice, op.part});
  }
  return rows;
}

/// What its operations are called.
class Labels {
 public:
  explicit Labels(const passes::OrdersTable& table) : rows_(cells_of(table)), labels_(rows_) {}
  std::string of(std::size_t row, const Op& op) const { return labels_.of(row, {op.pass, op.region, op.part_of_stage ? std::nullopt : op.stage, op.mb, op.slice, op.part}); }
  std::string legend() const { return labels_.legend(rows_); }

 private:
  const pictures::CellRows rows_;
  const pictures::CellLabels labels_;
};

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
      if (runs_body(node.kind)) {
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
  return text + labels.legend();
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
  const Labels labels(table);
  for (std::size_t r = 0; r < table.rows.size(); ++r) {
    for (const Op& op : table.rows[r].ops) width = std::max(width, static_cast<std::size_t>(std::ceil(static_cast<double>(labels.of(r, op).size()) / units(op))));
  }
  ++width;
  std::string text;
  for (std::size_t r = 0; r < table.rows.size(); ++r) {
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
      std::string cell = labels.of(r, op);
      cell.resize(static_cast<std::size_t>(std::lround(units(op))) * width, ' ');
      line += cell;
      before = &op;
    }
    while (line.back() == ' ') line.pop_back();
    text += line + "\n";
  }
  return text + labels.legend();
}

}  // namespace piper::tools
