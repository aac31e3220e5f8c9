#include "frontend/tools/orders_table.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

namespace piper::tools {
namespace {

struct DimPositions {
  int mb = -1, copy = -1, slice = -1;
};

/// `copy` and `slice` go by name; the microbatches are the last other dimension.
DimPositions find_dims(const dag::Dag& dag) {
  DimPositions positions;
  for (std::size_t i = 0; i < dag.dims.size(); ++i) {
    const std::string_view name = dag.context->text(dag.dims[i].name);
    (name == "copy" ? positions.copy : name == "slice" ? positions.slice : positions.mb) = static_cast<int>(i);
  }
  return positions;
}

std::uint32_t extent(const dag::Dag& dag, int dim) { return dim < 0 ? 1 : dag.dims[static_cast<std::size_t>(dim)].extent; }
std::uint32_t index(const dag::Node& node, int dim) {
  return dim < 0 ? 0 : static_cast<std::uint32_t>(std::max<std::int32_t>(0, node.instance.at[static_cast<std::size_t>(dim)]));
}

/// The name of the single partition of the program, if there is one.
Symbol partition_name(std::span<const directive::Directive> directives) {
  Symbol name;
  for (const directive::Directive& directive : directives) {
    const auto* partition = std::get_if<directive::Partition>(&directive);
    if (!partition) continue;
    if (name.valid()) return {};
    name = partition->into.name;
  }
  return name;
}

/// Positions of an order's operations in its text, by pass and coordinates.
class TextPositions {
 public:
  TextPositions(const dag::Dag& dag, std::span<const directive::Directive> directives) : dag_(dag) {
    for (const directive::Directive& directive : directives) {
      const auto* order = std::get_if<directive::Order>(&directive);
      if (!order) continue;
      for (const directive::RankSteps& rank : order->ranks) {
        for (std::uint32_t i = 0; i < rank.num_steps; ++i) add(*order, order->children[rank.first_step + i]);
      }
    }
  }

  std::uint32_t of(const dag::Node& node) const {
    for (const std::vector<Symbol>& names : signatures_) {
      std::vector<std::uint32_t> key{static_cast<std::uint32_t>(node.pass)};
      for (const Symbol name : names) {
        const auto index = coordinate(node, name);
        if (!index) break;
        key.push_back(name.value());
        key.push_back(*index);
      }
      if (const auto found = positions_.find(key); found != positions_.end()) return found->second;
    }
    return 0;
  }

 private:
  void add(const directive::Order& order, std::uint32_t id) {
    const directive::OrderStep& step = order.steps[id];
    if (step.kind != directive::OrderStep::Kind::op) {
      for (std::uint32_t i = 0; i < step.num_children; ++i) add(order, order.children[step.first_child + i]);
      return;
    }
    const directive::OrderOp& op = order.ops[step.op];
    std::vector<Symbol> names;
    std::vector<std::uint32_t> key{static_cast<std::uint32_t>(op.pass)};
    for (std::uint32_t i = 0; i < op.num_coordinates; ++i) {
      const directive::OrderCoordinate& at = order.coordinates[op.first_coordinate + i];
      if (at.all) continue;
      names.push_back(at.name);
      key.push_back(at.name.value());
      key.push_back(at.index);
    }
    if (std::find(signatures_.begin(), signatures_.end(), names) == signatures_.end()) signatures_.push_back(names);
    positions_.try_emplace(std::move(key), next_++);
  }

  std::optional<std::uint32_t> coordinate(const dag::Node& node, Symbol name) const {
    for (std::size_t d = 0; d < dag_.dims.size(); ++d) {
      if (dag_.dims[d].name == name) return static_cast<std::uint32_t>(node.instance.at[d]);
    }
    return dag_.regions.coordinate(dag_.chunks[node.chunk.index()].region, name);
  }

  const dag::Dag& dag_;
  std::vector<std::vector<Symbol>> signatures_;
  std::map<std::vector<std::uint32_t>, std::uint32_t> positions_;
  std::uint32_t next_ = 1;
};

/// The operations of a rank with the members of each overlap group in text order.
std::vector<OrdersTable::Op> in_text_order(std::vector<OrdersTable::Op> ops) {
  for (std::size_t begin = 0; begin < ops.size();) {
    std::size_t end = begin + 1;
    while (end < ops.size() && ops[begin].group && ops[end].group == ops[begin].group) ++end;
    std::stable_sort(ops.begin() + static_cast<std::ptrdiff_t>(begin), ops.begin() + static_cast<std::ptrdiff_t>(end),
                     [](const OrdersTable::Op& a, const OrdersTable::Op& b) { return a.text_position < b.text_position; });
    begin = end;
  }
  return ops;
}

std::string label(const OrdersTable::Op& op, bool with_stage) {
  std::string text(pass_name(op.pass));
  if (with_stage) text += op.stage ? std::to_string(*op.stage) : op.region;
  if (with_stage) text += ".";
  return text + std::to_string(op.mb) + (op.slice > 0 ? "/" + std::to_string(op.slice) : "");
}

/// A rank with several stages or regions needs them in the labels of its operations.
bool needs_stage(const std::vector<OrdersTable::Op>& ops) {
  return std::any_of(ops.begin(), ops.end(), [&](const OrdersTable::Op& op) { return op.region != ops.front().region; });
}

}  // namespace

OrdersTable orders_table(const dag::Dag& dag, std::span<const directive::Directive> directives) {
  OrdersTable table;
  const DimPositions dims = find_dims(dag);
  const std::uint32_t per_copy = extent(dag, dims.mb);
  table.microbatches = per_copy * extent(dag, dims.copy);
  const Symbol partition = partition_name(directives);
  const bool grouped = std::any_of(dag.group.begin(), dag.group.end(), [](std::uint32_t group) { return group != dag::Dag::kNoGroup; });
  const TextPositions positions(dag, grouped ? directives : std::span<const directive::Directive>());

  for (const directive::RankSteps& claim : dag.claims) table.ranks.push_back(claim.devices);
  if (table.ranks.empty()) {
    for (const dag::Node& node : dag.nodes) {
      if (node.kind == dag::NodeKind::chunk && std::find(table.ranks.begin(), table.ranks.end(), node.devices) == table.ranks.end()) {
        table.ranks.push_back(node.devices);
      }
    }
    std::sort(table.ranks.begin(), table.ranks.end(), [&](DeviceSetId a, DeviceSetId b) { return dag.device_sets[a].at < dag.device_sets[b].at; });
  }
  table.orders.resize(table.ranks.size());
  std::vector<std::vector<std::uint32_t>> ranks_of(dag.device_sets.size());
  for (std::size_t set = 0; set < dag.device_sets.size(); ++set) {
    for (std::size_t r = 0; r < table.ranks.size(); ++r) {
      if (dag.device_sets[DeviceSetId::at(set)].intersects(dag.device_sets[table.ranks[r]])) ranks_of[set].push_back(static_cast<std::uint32_t>(r));
    }
  }

  // Stage numbers and what each chunk's region is called.
  bool single = partition.valid();
  std::vector<std::optional<std::uint32_t>> stage_of(dag.chunks.size());
  std::vector<std::string> region_of(dag.chunks.size());
  for (std::size_t c = 0; c < dag.chunks.size(); ++c) {
    stage_of[c] = dag.regions.coordinate(dag.chunks[c].region, partition);
    region_of[c] = dag.regions.print(dag.chunks[c].region, dag.context->symbols);
    single = single && stage_of[c].has_value();
    if (stage_of[c]) table.stages = std::max(table.stages, *stage_of[c] + 1);
  }
  if (!single) table.stages = 0;

  std::vector<double> end(dag.nodes.size(), 0), free(table.ranks.size(), 0);
  std::vector<std::uint32_t> chunks_per_rank(table.ranks.size(), 0);
  for (const dag::NodeId id : dag.order) {
    const dag::Node& node = dag.node(id);
    double ready = 0;
    for (const dag::Input& input : dag.inputs_of(node)) {
      if (input.cls != dag::EdgeClass::param && input.source.node.valid()) ready = std::max(ready, end[input.source.node.index()]);
    }
    if (node.kind == dag::NodeKind::recv) {
      for (const dag::NodeId member : dag.comms[node.comm.index()].members) ready = std::max(ready, end[member.index()]);
    }
    end[id.index()] = ready;
    if (node.kind != dag::NodeKind::chunk) continue;
    const std::vector<std::uint32_t>& ranks = ranks_of[node.devices.index()];
    for (const std::uint32_t r : ranks) ready = std::max(ready, free[r]);
    OrdersTable::Op op;
    op.pass = node.pass;
    op.region = region_of[node.chunk.index()];
    if (single) op.stage = stage_of[node.chunk.index()];
    op.copy = index(node, dims.copy);
    op.slice = index(node, dims.slice);
    op.mb = op.copy * per_copy + index(node, dims.mb);
    if (!dag.group.empty() && dag.group[id.index()] != dag::Dag::kNoGroup) op.group = dag.group[id.index()];
    if (op.group) op.text_position = positions.of(node);
    op.devices = node.devices;
    op.start = ready;
    op.end = ready + (node.pass == Pass::B ? 2 : 1);
    for (const std::uint32_t r : ranks) {
      std::vector<OrdersTable::Op>& order = table.orders[r];
      // The pieces of one region instance are one operation.
      if (!order.empty() && order.back().pass == op.pass && order.back().region == op.region && order.back().mb == op.mb && order.back().slice == op.slice) {
        op.end = order.back().end;
        continue;
      }
      order.push_back(op);
    }
    for (const std::uint32_t r : ranks) free[r] = op.end;
    end[id.index()] = op.end;
  }

  if (single) {
    table.placement.assign(extent(dag, dims.copy), std::vector<std::uint32_t>(table.stages, 0));
    std::vector<std::vector<DeviceSetId>> seen(table.placement.size(), std::vector<DeviceSetId>(table.stages));
    bool unique = true;
    for (const dag::Node& node : dag.nodes) {
      if (node.kind != dag::NodeKind::chunk) continue;
      DeviceSetId& set = seen[index(node, dims.copy)][*stage_of[node.chunk.index()]];
      unique = unique && (!set.valid() || set == node.devices);
      set = node.devices;
      const auto& ranks = ranks_of[node.devices.index()];
      unique = unique && ranks.size() == 1;
      if (!ranks.empty()) table.placement[index(node, dims.copy)][*stage_of[node.chunk.index()]] = ranks[0];
    }
    if (!unique) table.placement.clear();
  }
  return table;
}

std::string orders_text(const OrdersTable& table) {
  std::string text;
  for (std::size_t r = 0; r < table.orders.size(); ++r) {
    const bool with_stage = needs_stage(table.orders[r]);
    text += "rank " + std::to_string(r) + ":";
    const OrdersTable::Op* before = nullptr;
    const std::vector<OrdersTable::Op> ops = in_text_order(table.orders[r]);
    for (const OrdersTable::Op& op : ops) {
      text += before && op.group && before->group == op.group ? "&" : " ";
      text += label(op, with_stage);
      before = &op;
    }
    text += "\n";
  }
  return text;
}

std::string orders_json(const OrdersTable& table, const dag::Dag& dag) {
  using namespace llvm::json;
  Array orders;
  for (const auto& order : table.orders) {
    Array ops;
    for (const OrdersTable::Op& op : in_text_order(order)) {
      Object object{{"op", llvm::StringRef(pass_name(op.pass))}, {"region", op.region}, {"mb", op.mb}};
      if (!table.placement.empty()) object["stage"] = *op.stage;
      if (op.copy) object["copy"] = op.copy;
      if (op.slice) object["slice"] = op.slice;
      if (op.group) object["group"] = *op.group;
      if (table.placement.empty()) {
        Array devices;
        for (std::uint64_t rank = 0; rank < dag.mesh.devices(); ++rank) {
          if (dag.device_sets[op.devices].contains_device(coordinates_of(dag.mesh, rank))) devices.push_back(static_cast<std::int64_t>(rank));
        }
        object["devices"] = std::move(devices);
      }
      ops.push_back(std::move(object));
    }
    orders.push_back(std::move(ops));
  }
  Object root{{"schema", 1}, {"ranks", static_cast<std::int64_t>(table.ranks.size())}, {"microbatches", table.microbatches}};
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

std::string grid_text(const OrdersTable& table) {
  std::size_t width = 1;
  for (const auto& order : table.orders) {
    const bool with_stage = needs_stage(order);
    for (const OrdersTable::Op& op : order) {
      const double units = op.end - op.start;
      width = std::max(width, static_cast<std::size_t>(std::ceil(static_cast<double>(label(op, with_stage).size()) / units)));
    }
  }
  ++width;
  std::string text;
  for (std::size_t r = 0; r < table.orders.size(); ++r) {
    const bool with_stage = needs_stage(table.orders[r]);
    std::string row = "rank " + std::to_string(r);
    row.resize(std::max<std::size_t>(row.size(), 8), ' ');
    const std::size_t left = row.size();
    const OrdersTable::Op* before = nullptr;
    for (const OrdersTable::Op& op : table.orders[r]) {
      const auto column = left + static_cast<std::size_t>(std::lround(op.start)) * width;
      for (std::size_t at = row.size(); at < column; ++at) row += (at - left) % width == 0 ? '.' : ' ';
      std::string cell = label(op, with_stage);
      if (before && op.group && before->group == op.group && !row.empty() && row.back() == ' ') row.back() = '&';
      cell.resize(static_cast<std::size_t>(std::lround(op.end - op.start)) * width, ' ');
      row += cell;
      before = &op;
    }
    while (!row.empty() && row.back() == ' ') row.pop_back();
    text += row + "\n";
  }
  return text;
}

}  // namespace piper::tools
