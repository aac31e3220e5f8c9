#include "frontend/repl/changed_order.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <utility>

#include "ir/dag/segment_text.h"
#include "ir/dag/terms.h"

namespace piper::repl {
namespace {

using Op = passes::OrdersTable::Op;
using directive::Order;
using directive::OrderStep;

class OrderWriter {
 public:
  explicit OrderWriter(const dag::Dag& dag) : dag_(dag), texts_(dag) { find_named(); }

  void add_rank(const passes::OrdersTable::Row& row, DeviceSetId devices) {
    std::vector<std::uint32_t> top;
    const std::vector<std::vector<Named>> named = named_behind(row);
    count_operations(row);
    for (std::size_t i = 0; i < row.ops.size();) {
      std::size_t end = i + 1;
      while (row.ops[i].group && end < row.ops.size() && row.ops[end].group == row.ops[i].group)
        ++end;
      std::vector<std::uint32_t> members;
      const std::size_t first = i;
      for (; i < end; ++i) members.push_back(add_operation(row, row.ops[i], named[i]));
      members = joined_by_instance(row, first, members);
      top.push_back(members.size() == 1 ? members.front()
                                        : add_step(OrderStep::Kind::group, members,
                                                   order_.steps[members.front()].loc));
      for (std::size_t k = first; k < end; ++k) {
        for (const Named& behind : named[k]) {
          if (!in_pieces(row.ops[k], named[k]))
            top.push_back(add_communication(behind.communication));
        }
      }
    }
    directive::RankSteps rank;
    rank.devices = devices;
    rank.first_step = static_cast<std::uint32_t>(order_.children.size());
    rank.num_steps = static_cast<std::uint32_t>(top.size());
    order_.children.insert(order_.children.end(), top.begin(), top.end());
    if (!row.ops.empty()) rank.loc = row.ops.front().loc;
    if (!order_.loc.valid()) order_.loc = rank.loc;
    order_.ranks.push_back(rank);
  }
  Order take() { return std::move(order_); }

 private:
  /// A communication that an order names after a chunk of an operation.
  struct Named {
    std::uint32_t chunk = 0;  // its position among those of the operation
    dag::NodeId communication;
  };

  /// A communication that an order names, and the work before which it names it.
  void find_named() {
    for (const auto& [before, after] : dag_.temporal) {
      if (!dag::runs_body(dag_.node(after).kind)) named_.emplace(after, dag::NodeId());
    }
    if (named_.empty()) return;
    for (auto& [communication, work] : named_) {
      const dag::Node& node = dag_.node(communication);
      if (!dag::is_send(node.kind) && !node.reduces_gradients()) continue;
      for (const dag::Input& input : dag_.inputs_of(node)) {
        if (input.source.node.valid())
          dag::for_each_term(dag_, input.source,
                             [&, &made_by = work](dag::Port term) { made_by = term.node; });
      }
    }
    for (const dag::NodeId id : dag_.order) {
      if (!dag::runs_body(dag_.node(id).kind)) continue;
      for (const dag::Input& input : dag_.inputs_of(dag_.node(id))) {
        const auto read = named_.find(input.source.node);
        if (read != named_.end() &&
            (!read->second.valid() || dag_.node(read->second).pass == Pass::R))
          read->second = id;
      }
    }
  }

  /// For each operation of a row the communication that the order names after it, as written.
  std::vector<std::vector<Named>> named_behind(const passes::OrdersTable::Row& row) const {
    std::vector<std::vector<Named>> behind(row.ops.size());
    if (named_.empty()) return behind;
    using Place = std::pair<std::size_t, std::uint32_t>;  // operation, chunk
    std::map<dag::NodeId, Place> operation_of;
    for (std::size_t i = 0; i < row.ops.size(); ++i) {
      for (std::uint32_t k = 0; k < row.ops[i].num_nodes; ++k)
        operation_of[row.nodes[row.ops[i].first_node + k]] = {i, k};
    }
    // Members of a group are several before it.
    std::vector<std::pair<dag::NodeId, Place>> last;
    for (const auto& [before, after] : dag_.temporal) {
      const auto operation = operation_of.find(before);
      if (operation == operation_of.end() || !named_.contains(after)) continue;
      if (!dag_.device_sets[dag_.node(after).devices].contains(dag_.device_sets[row.devices]))
        continue;
      const auto known =
          std::find_if(last.begin(), last.end(),
                       [&, named = after](const auto& each) { return each.first == named; });
      if (known == last.end()) {
        last.emplace_back(after, operation->second);
      } else {
        known->second = std::max(known->second, operation->second);
      }
    }
    for (const auto& [communication, place] : last)
      behind[place.first].push_back({place.second, communication});
    return behind;
  }

  std::uint32_t add_communication(dag::NodeId communication) {
    const dag::Node& node = dag_.node(communication);
    const dag::Node& work = dag_.node(named_.at(communication));
    const directive::CommClass part = dag::is_send(node.kind)    ? directive::CommClass::send
                                      : dag::is_recv(node.kind)  ? directive::CommClass::recv
                                      : node.reduces_gradients() ? directive::CommClass::reduce
                                                                 : directive::CommClass::gather;
    return add_named(work.pass, part, texts_.of(work.chunk), work.instance, node.loc);
  }

  std::uint32_t add_step(OrderStep::Kind kind, const std::vector<std::uint32_t>& members,
                         LocId loc) {
    OrderStep step;
    step.kind = kind;
    step.first = static_cast<std::uint32_t>(order_.children.size());
    step.count = static_cast<std::uint32_t>(members.size());
    step.loc = loc;
    order_.children.insert(order_.children.end(), members.begin(), members.end());
    order_.steps.push_back(step);
    return static_cast<std::uint32_t>(order_.steps.size() - 1);
  }

  /// The instance and the outermost region of an operation.
  using Work = std::pair<std::vector<std::int32_t>, std::string_view>;
  Work work_of(const Op& op) const {
    const dag::Instance& instance = dag_.node(op.first).instance;
    const std::string_view region = op.region;
    return {{std::begin(instance.at), std::end(instance.at)}, region.substr(0, region.find('.'))};
  }

  void count_operations(const passes::OrdersTable::Row& row) {
    counts_.clear();
    for (const Op& op : row.ops) ++counts_[work_of(op)][op.pass];
  }

  /// Whether its chunks are named one by one: the name of the operation may mean chunks of others
  /// of the rank, too, or a communication is named between its chunks.
  bool in_pieces(const Op& op, const std::vector<Named>& named) {
    if (std::any_of(named.begin(), named.end(),
                    [&](const Named& behind) { return behind.chunk + 1 < op.num_nodes; }))
      return true;
    std::map<Pass, int>& count = counts_[work_of(op)];
    const bool half = op.pass == Pass::BI || op.pass == Pass::BW;
    // `BI` and `BW` name the same pieces.
    return count[op.pass] > 1 ||
           (half && (count[Pass::B] > 0 || count[Pass::BI] > 1 || count[Pass::BW] > 1)) ||
           (op.pass == Pass::B && count[Pass::BI] + count[Pass::BW] > 0);
  }

  /// The members of a group whose operations begin at `first`: those of one instance may need each
  /// other, so they are one member.
  std::vector<std::uint32_t> joined_by_instance(const passes::OrdersTable::Row& row,
                                                std::size_t first,
                                                const std::vector<std::uint32_t>& steps) {
    std::vector<std::pair<dag::Instance, std::vector<std::uint32_t>>> members;
    for (std::size_t i = 0; i < steps.size(); ++i) {
      const dag::Instance& instance = dag_.node(row.ops[first + i].first).instance;
      const auto known = std::find_if(members.begin(), members.end(),
                                      [&](const auto& member) { return member.first == instance; });
      if (known == members.end()) {
        members.push_back({instance, {steps[i]}});
      } else {
        known->second.push_back(steps[i]);
      }
    }
    if (members.size() < 2) return steps;
    std::vector<std::uint32_t> joined;
    for (const auto& [instance, parts] : members)
      joined.push_back(parts.size() == 1 ? parts.front()
                                         : add_step(OrderStep::Kind::sequence, parts,
                                                    order_.steps[parts.front()].loc));
    return joined;
  }

  std::uint32_t add_operation(const passes::OrdersTable::Row& row, const Op& op,
                              const std::vector<Named>& named) {
    if (!in_pieces(op, named))
      return add_named(op.pass, directive::CommClass::none, op.region, dag_.node(op.first).instance,
                       op.loc);
    std::vector<std::uint32_t> chunks;
    for (std::uint32_t i = 0; i < op.num_nodes; ++i) {
      const dag::Node& node = dag_.node(row.nodes[op.first_node + i]);
      chunks.push_back(add_named(op.pass, directive::CommClass::none, texts_.of(node.chunk),
                                 node.instance, op.loc));
      for (const Named& behind : named) {
        if (behind.chunk == i) chunks.push_back(add_communication(behind.communication));
      }
    }
    return chunks.size() == 1 ? chunks.front()
                              : add_step(OrderStep::Kind::sequence, chunks, op.loc);
  }

  std::uint32_t add_named(Pass pass, directive::CommClass part, std::string_view region,
                          const dag::Instance& instance, LocId loc) {
    directive::OrderOp made;
    made.pass = pass;
    made.part = part;
    made.loc = loc;
    made.first_coordinate = static_cast<std::uint32_t>(order_.coordinates.size());
    add_region(region, loc);
    for (std::size_t dim = 0; dim < dag_.dims.size(); ++dim) {
      if (instance.at[dim] != dag::Instance::kNone)
        add_coordinate(dag_.dims[dim].name, static_cast<std::uint32_t>(instance.at[dim]), false,
                       loc);
    }
    made.num_coordinates =
        static_cast<std::uint32_t>(order_.coordinates.size()) - made.first_coordinate;
    order_.ops.push_back(made);
    OrderStep step;
    step.first = static_cast<std::uint32_t>(order_.ops.size() - 1);
    step.count = 1;
    step.loc = loc;
    order_.steps.push_back(step);
    return static_cast<std::uint32_t>(order_.steps.size() - 1);
  }

  void add_coordinate(Symbol name, std::uint32_t index, bool all, LocId loc, bool rest = false) {
    order_.coordinates.push_back(
        {.name = name, .index = index, .all = all, .loc = loc, .rest = rest});
  }

  /// `stage[2]`, `stage[0].block[1]`, `block[1].rest[0]`: parts between points.
  void add_region(std::string_view region, LocId loc) {
    Symbol before;
    while (!region.empty()) {
      const std::size_t point = std::min(region.find('.'), region.size());
      std::string_view part = region.substr(0, point);
      region.remove_prefix(std::min(point + 1, region.size()));
      std::uint32_t index = 0;
      const std::size_t bracket = part.find('[');
      const bool all = bracket == std::string_view::npos;
      if (!all) std::from_chars(part.data() + bracket + 1, part.data() + part.size(), index);
      const std::string_view name = part.substr(0, bracket);
      const bool rest = name == "rest";
      const Symbol symbol = rest ? before : dag_.context->symbol(name);
      if (name == "model" && !rest) continue;
      add_coordinate(symbol, index, all, loc, rest);
      before = symbol;
    }
  }

  const dag::Dag& dag_;
  const dag::SegmentTexts texts_;
  std::map<dag::NodeId, dag::NodeId> named_;
  std::map<Work, std::map<Pass, int>> counts_;  // of the row: its operations
  Order order_;
};

}  // namespace

void move_operation(passes::OrdersTable& table, std::size_t row, std::size_t from, std::size_t to) {
  std::vector<Op>& ops = table.rows[row].ops;
  ops[from].group.reset();
  if (from < to) {
    std::rotate(ops.begin() + static_cast<std::ptrdiff_t>(from),
                ops.begin() + static_cast<std::ptrdiff_t>(from) + 1,
                ops.begin() + static_cast<std::ptrdiff_t>(to));
  } else {
    std::rotate(ops.begin() + static_cast<std::ptrdiff_t>(to),
                ops.begin() + static_cast<std::ptrdiff_t>(from),
                ops.begin() + static_cast<std::ptrdiff_t>(from) + 1);
  }
}

void swap_operations(passes::OrdersTable& table, std::size_t row, std::size_t a, std::size_t b) {
  std::vector<Op>& ops = table.rows[row].ops;
  std::swap(ops[a], ops[b]);
  std::swap(ops[a].group, ops[b].group);
}

std::optional<directive::Order> order_of(const passes::OrdersTable& table, const dag::Dag& dag,
                                         DeviceSetTable& device_sets) {
  OrderWriter writer(dag);
  for (const passes::OrdersTable::Row& row : table.rows) {
    if (std::any_of(row.ops.begin(), row.ops.end(),
                    [](const Op& op) { return op.part.has_value(); }))
      return std::nullopt;
    writer.add_rank(row, device_sets.intern(dag.device_sets[row.devices]));
  }
  return writer.take();
}

}  // namespace piper::repl
