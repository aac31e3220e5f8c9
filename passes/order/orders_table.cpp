#include "passes/order/orders_table.h"

#include <algorithm>
#include <array>
#include <tuple>
#include <variant>

#include "ir/dag/segment_text.h"

namespace piper::passes {

using namespace dag;

namespace {

constexpr std::uint32_t kNoRow = 0xFFFFFFFFu;

/// The role of each split dimension; kMaxSplitDims: none.
struct Dims {
  std::size_t mb = kMaxSplitDims, copy = kMaxSplitDims, slice = kMaxSplitDims;

  explicit Dims(const Dag& dag) {
    for (std::size_t i = 0; i < dag.dims.size(); ++i) {
      const std::string_view name = dag.context->text(dag.dims[i].name);
      (name == "copy" ? copy : name == "slice" ? slice : mb) = i;
    }
  }
  static std::uint32_t at(const Instance& instance, std::size_t dim) {
    return dim == kMaxSplitDims || instance.at[dim] == Instance::kNone
               ? 0
               : static_cast<std::uint32_t>(instance.at[dim]);
  }
};

class Table {
 public:
  explicit Table(const Dag& dag) : dag_(dag), dims_(dag), texts_(dag) {}

  OrdersTable run() {
    choose_rows();
    const std::uint32_t per_copy = dims_.mb == kMaxSplitDims ? 1 : dag_.dims[dims_.mb].extent;
    const std::uint32_t copies = dims_.copy == kMaxSplitDims ? 1 : dag_.dims[dims_.copy].extent;
    out_.microbatches = per_copy * copies;
    placed_.assign(copies, {});
    find_copies();
    count_segments();
    find_waited_for();
    for (const NodeId id : dag_.order) {
      const Node& node = dag_.node(id);
      if (!runs_body(node.kind)) continue;
      const RegionId region = dag_.chunks[node.chunk.index()].region;
      OrdersTable::Op op;
      op.pass = node.pass;
      if (dag_.stages.valid() && region.valid())
        op.stage = dag_.regions.coordinate(region, dag_.stages);
      op.copy = Dims::at(node.instance, dims_.copy);
      op.slice = Dims::at(node.instance, dims_.slice);
      op.mb = op.copy * per_copy + Dims::at(node.instance, dims_.mb);
      op.devices = node.devices;
      op.loc = node.loc;
      op.first = op.last = id;
      op.offloads = leaves_[id.index()];
      op.fetches = returns_[id.index()];
      if (!dag_.group.empty() && dag_.group[id.index()] != Dag::kNoGroup)
        op.group = dag_.group[id.index()];
      for (const std::uint32_t row : rows_of_[node.devices.index()]) {
        out_.rows[row].ops.push_back(op);
      }
      if (node.pass == Pass::F) place(op);
    }
    for (OrdersTable::Row& row : out_.rows) {
      members_in_text_order(row.ops);
      join_segments(row);
      number_parts(row.ops);
    }
    finish_placement();
    return std::move(out_);
  }

 private:
  /// Work whose values are copied to the host, and work that reads fetched values.
  void find_copies() {
    leaves_.assign(dag_.nodes.size(), false);
    returns_.assign(dag_.nodes.size(), false);
    if (std::none_of(dag_.nodes.begin(), dag_.nodes.end(),
                     [](const Node& node) { return copies_to_or_from_host(node.kind); }))
      return;
    for (std::size_t n = 0; n < dag_.nodes.size(); ++n) {
      const Node& node = dag_.nodes[n];
      if (!leaves_device(node.kind) && !runs_body(node.kind)) continue;
      for (const Input& input : dag_.inputs_of(node)) {
        if (!input.source.node.valid()) continue;
        if (leaves_device(node.kind)) leaves_[input.source.node.index()] = true;
        if (returns_to_device(dag_.node(input.source.node).kind)) returns_[n] = true;
      }
    }
  }

  /// The same stage, instance and place in the order.
  bool beside(const OrdersTable::Op& a, const OrdersTable::Op& b) const {
    return a.stage && a.stage == b.stage && a.devices == b.devices && a.group == b.group &&
           dag_.node(a.first).instance == dag_.node(b.first).instance;
  }

  /// Joins chunks to operations.
  void join_segments(OrdersTable::Row& row) const {
    std::vector<OrdersTable::Op> ops;
    std::vector<std::vector<NodeId>> nodes;
    for (OrdersTable::Op& segment : row.ops) {
      const std::size_t known = operation_of(segment, ops, nodes);
      if (known == ops.size()) {
        nodes.push_back({segment.first});
        ops.push_back(std::move(segment));
        continue;
      }
      OrdersTable::Op& whole = ops[known];
      whole.last = segment.last;
      whole.offloads |= segment.offloads;
      whole.fetches |= segment.fetches;
      nodes[known].push_back(segment.first);
    }
    for (std::size_t i = 0; i < ops.size(); ++i) {
      ops[i].first_node = static_cast<std::uint32_t>(row.nodes.size());
      ops[i].num_nodes = static_cast<std::uint32_t>(nodes[i].size());
      row.nodes.insert(row.nodes.end(), nodes[i].begin(), nodes[i].end());
      const bool whole = ops[i].stage && (nodes[i].size() > 1 ||
                                          segments_of_stage(*ops[i].stage, ops[i].pass) == 1);
      ops[i].region = whole ? stage_text(*ops[i].stage) : texts_.of(dag_.node(ops[i].first).chunk);
      ops[i].part_of_stage = ops[i].stage && ops[i].region != stage_text(*ops[i].stage);
    }
    row.ops = std::move(ops);
  }

  /// How many chunks of a stage run in a pass.
  std::uint32_t segments_of_stage(std::uint32_t stage, Pass pass) const {
    return stage < segments_.size() ? segments_[stage][static_cast<std::size_t>(pass)] : 0;
  }

  void find_waited_for() {
    waited_for_.assign(dag_.nodes.size(), false);
    for (const auto& [before, after] : dag_.temporal) {
      if (!runs_body(dag_.node(after).kind)) waited_for_[before.index()] = true;
    }
  }

  void count_segments() {
    for (const Chunk& chunk : dag_.chunks) {
      const auto stage = dag_.stages.valid() && chunk.region.valid()
                             ? dag_.regions.coordinate(chunk.region, dag_.stages)
                             : std::nullopt;
      if (!stage) continue;
      if (segments_.size() <= *stage) segments_.resize(*stage + 1, {});
      for (std::size_t pass = 0; pass < kPasses; ++pass)
        segments_[*stage][pass] += chunk.bodies[pass].valid() ? 1 : 0;
    }
  }

  /// The operation that a chunk continues; the number of operations if it begins one. The `R`s of
  /// several chunks alternate with their backwards, and become one operation before the backward,
  /// unless named communication that they may need waits for a chunk of the backward.
  std::size_t operation_of(const OrdersTable::Op& segment, std::vector<OrdersTable::Op>& ops,
                           std::vector<std::vector<NodeId>>& nodes) const {
    const std::size_t none = ops.size();
    if (none == 0 || !beside(ops.back(), segment)) return none;
    if (ops.back().pass == segment.pass) return none - 1;
    if (none == 1 || !beside(ops[none - 2], segment) || ops[none - 2].pass != segment.pass)
      return none;
    const auto comes_back = [](Pass pass) {
      return pass == Pass::R || pass == Pass::B || pass == Pass::BI;
    };
    const Pass between = ops.back().pass;
    if (!comes_back(between) || !comes_back(segment.pass) ||
        (between == Pass::R) == (segment.pass == Pass::R))
      return none;
    const auto is_waited_for = [&](NodeId node) { return waited_for_[node.index()]; };
    if (std::any_of(nodes[none - 2].begin(), nodes[none - 2].end(), is_waited_for) ||
        std::any_of(nodes[none - 1].begin(), nodes[none - 1].end(), is_waited_for))
      return none;
    if (between == Pass::R) {
      std::swap(ops[none - 2], ops[none - 1]);
      std::swap(nodes[none - 2], nodes[none - 1]);
    }
    ops[none - 2].alternates = true;
    return segment.pass == Pass::R ? none - 2 : none - 1;
  }

  std::string stage_text(std::uint32_t stage) const {
    return std::string(dag_.context->text(dag_.stages)) + "[" + std::to_string(stage) + "]";
  }

  /// Claimed ranks, then the smallest sets with chunks that intersect no claim.
  void choose_rows() {
    std::vector<DeviceSetId> rows;
    for (const directive::RankSteps& claim : dag_.claims) rows.push_back(claim.devices);
    const std::size_t claimed = rows.size();
    std::vector<bool> used(dag_.device_sets.size(), false);
    for (const Node& node : dag_.nodes) {
      if (runs_body(node.kind)) used[node.devices.index()] = true;
    }
    const auto set = [&](DeviceSetId id) -> const DeviceSet& { return dag_.device_sets[id]; };
    for (std::size_t s = 0; s < used.size(); ++s) {
      const DeviceSetId id = DeviceSetId::at(s);
      if (!used[s]) continue;
      bool own = true;
      for (std::size_t i = 0; i < claimed && own; ++i) own = !set(id).intersects(set(rows[i]));
      for (std::size_t other = 0; other < used.size() && own; ++other) {
        own = !used[other] || other == s || !set(id).contains(set(DeviceSetId::at(other)));
      }
      if (own) rows.push_back(id);
    }
    std::sort(rows.begin(), rows.end(),
              [&](DeviceSetId a, DeviceSetId b) { return set(a).at < set(b).at; });
    rows_of_.resize(used.size());
    for (std::uint32_t row = 0; row < rows.size(); ++row) {
      out_.rows.push_back({rows[row], {}, {}});
      for (std::size_t s = 0; s < used.size(); ++s) {
        if (used[s] && set(DeviceSetId::at(s)).contains(set(rows[row]))) rows_of_[s].push_back(row);
      }
    }
  }

  /// Stores the row that runs the forward of a stage.
  void place(const OrdersTable::Op& op) {
    if (!op.stage) {
      single_ = false;
      return;
    }
    std::vector<std::uint32_t>& rows = placed_[op.copy];
    if (rows.size() <= *op.stage) rows.resize(*op.stage + 1, kNoRow);
    out_.stages = std::max(out_.stages, *op.stage + 1);
    const std::vector<std::uint32_t>& here = rows_of_[op.devices.index()];
    if (here.size() != 1 || (rows[*op.stage] != kNoRow && rows[*op.stage] != here[0])) {
      single_ = false;
    } else {
      rows[*op.stage] = here[0];
    }
  }

  void finish_placement() {
    if (!single_ || out_.stages == 0) return;
    for (const std::vector<std::uint32_t>& rows : placed_) {
      if (rows.size() != out_.stages || std::find(rows.begin(), rows.end(), kNoRow) != rows.end())
        return;
    }
    out_.placement = std::move(placed_);
  }

  /// A region whose segments are placed or ordered separately runs as several operations with one
  /// name. A backward has the number of its forward.
  void number_parts(std::vector<OrdersTable::Op>& ops) const {
    const auto name = [](const OrdersTable::Op& op) {
      return std::tie(op.pass, op.region, op.mb, op.slice);
    };
    const auto chunk = [&](const OrdersTable::Op& op) {
      return std::min(dag_.node(op.first).chunk, dag_.node(op.last).chunk);
    };
    std::vector<OrdersTable::Op*> sorted;
    for (OrdersTable::Op& op : ops) sorted.push_back(&op);
    std::sort(sorted.begin(), sorted.end(), [&](const auto* a, const auto* b) {
      return std::tuple(name(*a), chunk(*a)) < std::tuple(name(*b), chunk(*b));
    });
    for (std::size_t i = 0, next = 0; i < sorted.size(); i = next) {
      while (next < sorted.size() && name(*sorted[next]) == name(*sorted[i])) ++next;
      for (std::size_t k = i; next > i + 1 && k < next; ++k)
        sorted[k]->part = static_cast<std::uint32_t>(k - i);
    }
  }

  /// The DAG has members of a group in the order in which they run; the table has them in written
  /// order: by the locations of their calls, outermost first. The first locations that differ are
  /// in the same body.
  void members_in_text_order(std::vector<OrdersTable::Op>& ops) const {
    const auto before = [&](const OrdersTable::Op& a, const OrdersTable::Op& b) {
      const std::vector<SourceRange> x = dag_.context->locations.frames(a.loc),
                                     y = dag_.context->locations.frames(b.loc);
      for (std::size_t i = 1; i <= std::min(x.size(), y.size()); ++i) {
        const SourceRange &p = x[x.size() - i], &q = y[y.size() - i];
        if (p.begin != q.begin) return p.begin < q.begin;
      }
      return false;
    };
    for (std::size_t i = 0; i < ops.size();) {
      std::size_t next = i + 1;
      while (ops[i].group && next < ops.size() && ops[next].group == ops[i].group) ++next;
      if (next > i + 1)
        std::stable_sort(ops.begin() + static_cast<std::ptrdiff_t>(i),
                         ops.begin() + static_cast<std::ptrdiff_t>(next), before);
      i = next;
    }
  }

  const Dag& dag_;
  Dims dims_;
  const SegmentTexts texts_;
  OrdersTable out_;
  std::vector<std::array<std::uint32_t, kPasses>> segments_;  // per stage and pass: its chunks
  // Per node: communication that an order names comes after it.
  std::vector<bool> waited_for_;
  // Per node: copies of its outputs and of its inputs.
  std::vector<bool> leaves_, returns_;
  // Per device set with chunks: the rows that it contains.
  std::vector<std::vector<std::uint32_t>> rows_of_;
  std::vector<std::vector<std::uint32_t>> placed_;  // per copy: the row of each stage
  bool single_ = true;
};

}  // namespace

OrdersTable orders_table(const Dag& dag) { return Table(dag).run(); }

}  // namespace piper::passes
