#include "passes/plan/plan_role.h"

#include <algorithm>

#include "ir/dag/terms.h"
#include "llvm/ADT/DenseMap.h"
#include "passes/plan/events.h"
#include "passes/plan/memory_layout.h"

namespace piper::passes {

using namespace dag;

namespace {

constexpr std::uint32_t kNone = 0xFFFFFFFFu;
// In the search for waits, offsets of the arena on the host start far beyond those of the device.
constexpr std::int64_t kHost = std::int64_t{1} << 60;
constexpr std::int64_t kScalarBytes = 64;  // PiperScalars of runtime/abi.h

/// A value of this step in the arena.
struct Value {
  Port port;  // invalid: workspace of the action `first`
  BufferClass cls = BufferClass::activations;
  BufferId buffer;
};

/// The memory of an output on this rank.
struct Place {
  std::uint32_t value = kNone;  // kNone: in a buffer of state
  BufferId state;
  std::int64_t offset = 0;
  bool adds = false;
};

class RoleProjection {
 public:
  explicit RoleProjection(const SharedFacts& facts)
      : facts_(facts),
        dag_(facts.dag),
        residences_(facts.residences),
        action_of_(facts.dag.nodes.size(), 0) {}

  Role run(std::span<const NodeId> nodes, std::span<const BucketId> buckets) {
    nodes_ = nodes;
    buckets_ = buckets;
    role_ = {};
    make_actions();
    lay_out_state();
    make_values();
    keep_what_is_sent();
    lay_out_values();
    make_operands();
    make_waits();
    return std::move(role_);
  }

 private:
  /// An input with its source as an action of this role; for an in-place sum the action of its last
  /// term; kNone: a parameter without an update in this program.
  struct Source {
    std::uint32_t action = kNone;
    std::uint32_t output = 0;
    EdgeClass cls = EdgeClass::data;
  };

  // Compact copies of the role's nodes and inputs, which are scattered over the DAG's large tables.
  const Node& node(std::uint32_t action) const { return node_[action]; }
  std::span<const Source> inputs(std::uint32_t action) const {
    return {inputs_.data() + first_input_[action], first_input_[action + 1] - first_input_[action]};
  }
  std::uint32_t action_of(NodeId node) const { return action_of_[node.index()]; }

  void make_actions() {
    role_.actions.reserve(nodes_.size());
    slots_.clear();
    node_.clear();
    inputs_.clear();
    first_input_.assign(1, 0);
    next_position_.clear();
    local_stream_.assign(dag_.streams.size(), kNone);
    for (std::uint32_t a = 0; a < nodes_.size(); ++a) {
      action_of_[nodes_[a].index()] = a;
      node_.push_back(dag_.node(nodes_[a]));
    }
    for (std::uint32_t a = 0; a < nodes_.size(); ++a) {
      polls_.visit();
      const Node& node = node_[a];
      for (const Input& input : dag_.inputs_of(node)) {
        const Port source =
            input.source.node.valid() ? last_term(dag_, input.source) : input.source;
        inputs_.push_back({source.node.valid() ? action_of_[source.node.index()] : kNone,
                           source.index, input.cls});
      }
      first_input_.push_back(static_cast<std::uint32_t>(inputs_.size()));
      std::uint32_t& local = local_stream_[node.stream.index()];
      if (local == kNone) {
        local = static_cast<std::uint32_t>(next_position_.size());
        next_position_.push_back(0);
      }
      Action action;
      action.node = nodes_[a];
      action.stream = node.stream;
      action.position = next_position_[local]++;
      if (node.comm.valid()) action.communicator = facts_.communicators.of_comm[node.comm.index()];
      slots_.push_back({local, static_cast<std::int32_t>(action.position)});
      role_.actions.push_back(action);
    }
  }

  // ---- state

  BufferId add_buffer(BufferClass cls, std::int64_t offset, std::int64_t bytes, Port value,
                      BucketId bucket) {
    role_.buffers.push_back({offset, bytes, value, bucket, cls});
    return BufferId::at(role_.buffers.size() - 1);
  }

  void lay_out_state() {
    parameters_.assign(dag_.buckets.size(), {});
    gradients_.assign(dag_.buckets.size(), {});
    std::int64_t on_device = 0;
    host_state_bytes_ = 0;
    const auto add_state = [&](BufferClass cls, std::int64_t bytes, BucketId bucket) {
      std::int64_t& at = is_on_host(cls) ? host_state_bytes_ : on_device;
      const BufferId buffer = add_buffer(cls, at, bytes, {}, bucket);
      at += bytes;
      return buffer;
    };
    for (const BucketId bucket : buckets_) {
      const BucketLayout& layout = residences_.layout(bucket);
      parameters_[bucket.index()] =
          add_state(BufferClass::parameters, layout.extent(BucketState::parameters), bucket);
      if (dag_.frozen(dag_.buckets[bucket.index()])) continue;
      gradients_[bucket.index()] =
          add_state(BufferClass::gradients, layout.extent(BucketState::gradients), bucket);
      if (layout.slots > 0)
        add_state(optimizer_class(dag_.buckets[bucket.index()]),
                  layout.slots * layout.extent(BucketState::slot), bucket);
    }
    add_buffer(BufferClass::scalars, on_device, kScalarBytes, {}, {});
    state_bytes_ = on_device + kScalarBytes;
  }

  // ---- values of the step

  const Place& place(std::uint32_t action, std::uint32_t output) const {
    return places_[first_place_[action] + output];
  }

  void make_values() {
    const auto count = static_cast<std::uint32_t>(nodes_.size());
    first_place_.assign(count + 1, 0);
    for (std::uint32_t a = 0; a < count; ++a)
      first_place_[a + 1] = first_place_[a] + node(a).num_outputs;
    places_.assign(first_place_.back(), {});
    value_of_sum_.clear();
    values_.clear();
    live_ranges_.clear();
    accesses_.clear();
    for (std::uint32_t a = 0; a < count; ++a) {
      polls_.visit();
      for (std::uint32_t i = 0; i < node(a).num_outputs; ++i)
        places_[first_place_[a] + i] = make_place(a, {nodes_[a], i});
      if (const std::int64_t scratch = facts_.workspaces[nodes_[a].index()]; scratch > 0)
        add_value({Port{}, BufferClass::workspace, {}}, scratch, a);
      for (const Source& input : inputs(a)) {
        if (input.cls == EdgeClass::param) continue;
        const std::uint32_t value = place(input.action, input.output).value;
        if (value == kNone) continue;
        live_ranges_[value].last = a;
        accesses_.emplace_back(value, a);
      }
    }
  }

  /// A live range begins with the first output in the value.
  Place make_place(std::uint32_t action, Port port) {
    const Residence at = residences_.of(port);
    if (!at.owner.node.valid()) return {kNone, state_buffer(at), at.offset, at.adds};
    std::uint32_t value = at.owner == port ? kNone : value_of(at.owner);
    if (value == kNone) {
      value = static_cast<std::uint32_t>(values_.size());
      add_value({at.owner, at.cls, {}}, at.extent, action);
      if (at.owner.node != port.node) value_of_sum_[at.owner.node] = value;
    } else if (accesses_.back() != std::pair(value, action)) {
      accesses_.emplace_back(value, action);
    }
    return {value, {}, at.offset, at.adds};
  }

  /// kNone: an in-place sum without terms so far.
  std::uint32_t value_of(Port owner) const {
    if (!adds_in_place(dag_.node(owner.node).kind))
      return place(action_of(owner.node), owner.index).value;
    const auto known = value_of_sum_.find(owner.node);
    return known == value_of_sum_.end() ? kNone : known->second;
  }

  void add_value(Value value, std::int64_t bytes, std::uint32_t action) {
    values_.push_back(value);
    live_ranges_.push_back({std::max<std::int64_t>(bytes, 1), action, action});
    accesses_.emplace_back(static_cast<std::uint32_t>(values_.size() - 1), action);
  }

  /// The bytes that a message reads are free when it has arrived. The next inputs and outputs get
  /// other bytes, so that work continues meanwhile; this costs one more message per direction in
  /// the arena.
  void keep_what_is_sent() {
    next_work_.resize(nodes_.size());
    const auto count = static_cast<std::uint32_t>(nodes_.size());
    std::uint32_t work = count - 1;
    for (std::uint32_t a = count; a-- > 0;) {
      next_work_[a] = work;
      if (runs_body(node(a).kind)) work = a;
    }
    for (LiveRange& value : live_ranges_) {
      if (is_send(node(value.last).kind)) value.kept_until = next_work_[value.last];
    }
  }

  /// Lays out the values on the host, or the others.
  LayoutSize lay_out_arena(bool host) {
    std::vector<std::uint32_t> there;
    std::vector<LiveRange> live_ranges;
    for (std::uint32_t v = 0; v < values_.size(); ++v) {
      if (is_on_host(values_[v].cls) != host) continue;
      there.push_back(v);
      live_ranges.push_back(live_ranges_[v]);
    }
    const LayoutSize size = lay_out(live_ranges);
    for (std::size_t i = 0; i < there.size(); ++i)
      live_ranges_[there[i]].offset = live_ranges[i].offset;
    return size;
  }

  void lay_out_values() {
    const bool host = std::any_of(values_.begin(), values_.end(),
                                  [](const Value& value) { return is_on_host(value.cls); });
    const LayoutSize size = host ? lay_out_arena(false) : lay_out(live_ranges_);
    role_.arena_bytes = state_bytes_ + size.bytes;
    role_.live_bytes = state_bytes_ + size.live;
    role_.host_bytes = host_state_bytes_ + (host ? lay_out_arena(true).bytes : 0);
    role_.buffers.reserve(role_.buffers.size() + values_.size());
    llvm::DenseMap<std::pair<std::int64_t, std::int64_t>, BufferId> workspaces;
    for (std::size_t v = 0; v < values_.size(); ++v) {
      const std::int64_t offset =
          (is_on_host(values_[v].cls) ? host_state_bytes_ : state_bytes_) + live_ranges_[v].offset;
      if (values_[v].cls != BufferClass::workspace) {
        values_[v].buffer =
            add_buffer(values_[v].cls, offset, live_ranges_[v].bytes, values_[v].port, {});
        continue;
      }
      const auto [entry, fresh] =
          workspaces.try_emplace({offset, live_ranges_[v].bytes}, BufferId());
      if (fresh)
        entry->second = add_buffer(BufferClass::workspace, offset, live_ranges_[v].bytes, {}, {});
      values_[v].buffer = entry->second;
    }
  }

  // ---- operands

  BufferId state_buffer(const Residence& at) const {
    return (at.cls == BufferClass::gradients ? gradients_ : parameters_)[at.bucket.index()];
  }

  Operand operand(const Place& at, bool adds = false) const {
    return {at.offset, at.value == kNone ? at.state : values_[at.value].buffer, adds};
  }

  /// A parameter, or a shard of its bucket, as the previous step left it.
  Operand parameter(std::uint32_t action, const Source& input, std::uint32_t port) const {
    const BucketId left_by =
        input.action != kNone ? node(input.action).subject.bucket() : node(action).subject.bucket();
    const Residence at =
        left_by.valid()
            ? residences_.parameter(left_by, input.output)
            : residences_.parameter(dag_.bodies[node(action).body.index()].inputs[port].param);
    return {at.offset, state_buffer(at), false};
  }

  void make_operands() {
    const auto scratch = std::count_if(values_.begin(), values_.end(), [](const Value& value) {
      return value.cls == BufferClass::workspace;
    });
    role_.operands.reserve(inputs_.size() + places_.size() + static_cast<std::size_t>(scratch));
    std::size_t workspace = 0;
    for (std::uint32_t a = 0; a < nodes_.size(); ++a) {
      polls_.visit();
      Action& action = role_.actions[a];
      action.first_operand = static_cast<std::uint32_t>(role_.operands.size());
      std::uint32_t port = 0;
      for (const Source& input : inputs(a)) {
        role_.operands.push_back(input.cls == EdgeClass::param
                                     ? parameter(a, input, port)
                                     : operand(place(input.action, input.output)));
        ++port;
      }
      for (std::uint32_t i = 0; i < node(a).num_outputs; ++i)
        role_.operands.push_back(operand(place(a, i), place(a, i).adds));
      if (facts_.workspaces[action.node.index()] > 0) {
        while (values_[workspace].cls != BufferClass::workspace) ++workspace;
        role_.operands.push_back({0, values_[workspace++].buffer, false});
      }
      action.num_operands =
          static_cast<std::uint32_t>(role_.operands.size()) - action.first_operand;
    }
  }

  // ---- waits

  void make_waits() {
    if (next_position_.size() < 2) return;
    group_accesses();
    find_predecessors();
    // Gradients of a bucket are written again only after their reduction in the previous step, or
    // after their update if only the reduction writes them.
    reduction_.assign(dag_.buckets.size(), kNone);
    update_.assign(dag_.buckets.size(), kNone);
    offload_.assign(dag_.buckets.size(), kNone);
    gather_.assign(dag_.buckets.size(), kNone);
    for (std::uint32_t a = 0; a < nodes_.size(); ++a) {
      if (!node(a).subject.bucket().valid()) continue;
      if (reduces_members(node(a).kind)) reduction_[node(a).subject.bucket().index()] = a;
      if (writes_state(node(a).kind)) update_[node(a).subject.bucket().index()] = a;
      if (leaves_device(node(a).kind)) offload_[node(a).subject.bucket().index()] = a;
      if (gathers_shards(node(a).kind) && place(a, 0).value == kNone)
        gather_[node(a).subject.bucket().index()] = a;
    }
    touched_.assign(dag_.buckets.size(), false);
    reported_.assign(2 * values_.size(), kNone);
    needs_.clear();
    first_need_.assign(1, 0);
    std::size_t value = 0;
    for (std::uint32_t a = 0; a < nodes_.size(); ++a) {
      const Node& node = this->node(a);
      // Terms of a sum are made one after the other on one stream, so a wait for the last one
      // covers all.
      for (const Source& input : inputs(a)) {
        if (input.action != kNone) need(a, input.action, input.cls == EdgeClass::param ? 1 : 0);
      }
      if (is_recv(node.kind)) need_window(a);
      // If nothing on the rank reads the gathered parameters, no other wait orders the next update
      // after the all-gather.
      if (writes_state(node.kind) && gather_[node.subject.bucket().index()] != kNone)
        need(a, gather_[node.subject.bucket().index()], 1);
      if (returns_to_device(node.kind) && node.subject.bucket().valid())
        need(a, offload_[node.subject.bucket().index()], 1);
      if (node.reduces_gradients() && node.num_inputs == 0)
        need(a, update_[node.subject.bucket().index()], 1);
      if (reduces_to_shards(node.kind) && dag_.leaves_shard(node) && !place(a, 0).adds)
        need(a, update_[node.subject.bucket().index()], 1);
      if (node.comm.valid()) need_step_before(a);
      for (; value < values_.size() && live_ranges_[value].first == a; ++value) {
        for (std::uint32_t i = first_predecessor_[value]; i < first_predecessor_[value + 1]; ++i) {
          // One action may write one small value per rank into the bytes of one earlier value,
          // which has one access per microbatch.
          const Need before = predecessors_[i];
          if (std::exchange(reported_[2 * before.action + before.distance], a) == a) continue;
          for (std::uint32_t k = first_access_[before.action]; k < first_access_[before.action + 1];
               ++k) {
            if (k == first_access_[before.action] || access_[k] != access_[k - 1])
              need(a, access_[k], before.distance);
          }
        }
      }
      for (std::uint32_t i = 0; runs_body(node.kind) && i < node.num_outputs; ++i) {
        if (place(a, i).value != kNone) continue;
        const std::size_t bucket = role_.buffers[place(a, i).state.index()].bucket.index();
        if (!touched_[bucket] && reduction_[bucket] != kNone) need(a, reduction_[bucket], 1);
        touched_[bucket] = true;
      }
      first_need_.push_back(static_cast<std::uint32_t>(needs_.size()));
    }
    const Events& events = chooser_.choose(slots_, next_position_.size(), first_need_, needs_);
    role_.waits.reserve(events.waits.size());
    for (std::uint32_t a = 0; a < nodes_.size(); ++a) {
      role_.actions[a].first_wait = events.first[a];
      role_.actions[a].num_waits = events.first[a + 1] - events.first[a];
    }
    for (const Need& wait : events.waits) {
      const Action& target = role_.actions[wait.action];
      role_.waits.push_back(
          {target.stream, target.position, static_cast<std::uint8_t>(wait.distance)});
    }
  }

  void need(std::uint32_t action, std::uint32_t target, std::uint32_t distance) {
    if (slots_[action].stream != slots_[target].stream) needs_.push_back({target, distance});
  }

  /// Communication that an order names waits for the order step before it, on any stream.
  void need_step_before(std::uint32_t action) {
    const auto& all = facts_.issued_after;
    const auto begin =
        std::lower_bound(all.begin(), all.end(), nodes_[action],
                         [](const auto& pair, NodeId node) { return pair.first < node; });
    for (auto pair = begin; pair != all.end() && pair->first == nodes_[action]; ++pair) {
      const std::uint32_t before = action_of(pair->second);
      if (before < nodes_.size() && nodes_[before] == pair->second) need(action, before, 0);
    }
  }

  /// Message j is posted after the first reader of message j - w, in this step or the one before.
  void need_window(std::uint32_t action) {
    const CommId comm = node(action).comm;
    const Communicator& communicator =
        facts_.communicators.list[facts_.communicators.of_comm[comm.index()].index()];
    const std::size_t count = communicator.comms.size();
    std::size_t number = facts_.communicators.number[comm.index()];
    std::uint32_t distance = 0;
    if (number < communicator.window) {
      number += count;
      distance = 1;
    }
    // More than a step ahead: the reader of this very message comes first.
    if (number < communicator.window) return;
    const NodeId reader =
        facts_.communicators.first_reader[communicator.comms[number - communicator.window].index()];
    if (reader.valid()) need(action, action_of(reader), distance);
  }

  /// Accesses by value, in issue order.
  void group_accesses() {
    first_access_.assign(values_.size() + 1, 0);
    for (const auto& [value, action] : accesses_) ++first_access_[value + 1];
    for (std::size_t i = 1; i < first_access_.size(); ++i) first_access_[i] += first_access_[i - 1];
    access_.resize(accesses_.size());
    next_access_.assign(first_access_.begin(), first_access_.end() - 1);
    for (const auto& [value, action] : accesses_) access_[next_access_[value]++] = action;
  }

  /// Cells between the offsets at which values begin or end. There are few distinct offsets.
  /// Returns their number.
  std::size_t number_cells() {
    cuts_.clear();
    cell_.clear();
    first_cell_.resize(values_.size());
    end_cell_.resize(values_.size());
    const auto cut = [&](std::int64_t offset) {
      const auto [entry, fresh] =
          cell_.try_emplace(offset / kAlignment, static_cast<std::uint32_t>(cuts_.size()));
      if (fresh) cuts_.push_back(offset / kAlignment);
      return entry->second;
    };
    for (std::size_t v = 0; v < values_.size(); ++v) {
      const std::int64_t begin = live_ranges_[v].offset + (is_on_host(values_[v].cls) ? kHost : 0);
      first_cell_[v] = cut(begin);
      end_cell_[v] = cut(begin + aligned(live_ranges_[v].bytes));
    }
    std::vector<std::uint32_t> by_place(cuts_.size()), number(cuts_.size());
    for (std::uint32_t i = 0; i < cuts_.size(); ++i) by_place[i] = i;
    std::sort(by_place.begin(), by_place.end(),
              [&](std::uint32_t x, std::uint32_t y) { return cuts_[x] < cuts_[y]; });
    for (std::uint32_t i = 0; i < cuts_.size(); ++i) number[by_place[i]] = i;
    for (std::size_t v = 0; v < values_.size(); ++v) {
      first_cell_[v] = number[first_cell_[v]];
      end_cell_[v] = number[end_cell_[v]];
    }
    return cuts_.size();
  }

  /// For each value: the previous holders of its bytes, in this step or the previous one.
  void find_predecessors() {
    const std::size_t cells = number_cells();
    holder_.assign(cells, kNone);
    for (std::uint32_t v = 0; v < values_.size(); ++v)
      std::fill(holder_.begin() + first_cell_[v], holder_.begin() + end_cell_[v], v);
    // The holders at the end of the step are those at the start of the next one.
    this_step_.assign(cells, false);
    first_predecessor_.assign(1, 0);
    predecessors_.clear();
    for (std::uint32_t v = 0; v < values_.size(); ++v) {
      Need before{kNone, 0};
      for (std::uint32_t c = first_cell_[v]; c < end_cell_[v]; ++c) {
        const Need found{holder_[c], this_step_[c] ? 0u : 1u};
        holder_[c] = v;
        this_step_[c] = true;
        if (found.action == kNone || found == before) continue;
        before = found;
        predecessors_.push_back(found);
      }
      first_predecessor_.push_back(static_cast<std::uint32_t>(predecessors_.size()));
    }
  }

  const SharedFacts& facts_;
  const Dag& dag_;
  const Residences& residences_;
  NodePolls polls_{dag_.context->cancellation};
  // Per node: its action; valid only for the role's own nodes.
  std::vector<std::uint32_t> action_of_;

  // For the current role.
  std::span<const NodeId> nodes_;
  std::span<const BucketId> buckets_;
  Role role_;
  std::vector<Node> node_;                  // per action
  std::vector<std::uint32_t> first_input_;  // per action, one more
  std::vector<Source> inputs_;
  std::vector<Slot> slots_;
  std::vector<std::uint32_t> local_stream_;       // per stream of the DAG: number on this rank
  std::vector<std::uint32_t> next_position_;      // per local stream
  std::vector<BufferId> parameters_, gradients_;  // per bucket
  std::int64_t state_bytes_ = 0, host_state_bytes_ = 0;

  std::vector<std::uint32_t> first_place_;              // per action, one more: into places_
  std::vector<Place> places_;                           // per output
  llvm::DenseMap<NodeId, std::uint32_t> value_of_sum_;  // of full gradients until their reduction
  std::vector<Value> values_;                           // ascending by the action that writes them
  std::vector<LiveRange> live_ranges_;                  // per value
  // Per action: the next one that runs a body, or the last of the step.
  std::vector<std::uint32_t> next_work_;

  // (value, action), ascending by action.
  std::vector<std::pair<std::uint32_t, std::uint32_t>> accesses_;
  std::vector<std::uint32_t> first_access_, next_access_, access_;
  // where values begin or end, in units of the alignment
  std::vector<std::int64_t> cuts_;
  llvm::DenseMap<std::int64_t, std::uint32_t> cell_;
  std::vector<std::uint32_t> first_cell_, end_cell_;  // per value
  std::vector<std::uint32_t> holder_;                 // per cell: the value that had it last
  std::vector<bool> this_step_;                       // per cell: that was in this step
  std::vector<std::uint32_t> first_predecessor_;
  std::vector<Need> predecessors_;  // `action` is a value here
  // Per bucket: the actions that reduce it, update it, gather its parameters after that, and
  // offload its optimizer state.
  std::vector<std::uint32_t> reduction_, update_, gather_, offload_;
  std::vector<bool> touched_;              // per bucket
  std::vector<std::uint32_t> first_need_;  // per action, one more
  std::vector<Need> needs_;
  // Per value and distance: the last action that waits for accesses to it.
  std::vector<std::uint32_t> reported_;
  WaitChooser chooser_;
};

}  // namespace

// The implementation is in the unnamed namespace, so the compiler knows all callers.
class RolePlanner::Projection : public RoleProjection {
  using RoleProjection::RoleProjection;
};

RolePlanner::RolePlanner(const SharedFacts& facts)
    : projection_(std::make_unique<Projection>(facts)) {}
RolePlanner::~RolePlanner() = default;
Role RolePlanner::plan(std::span<const NodeId> nodes, std::span<const BucketId> buckets) {
  return projection_->run(nodes, buckets);
}

}  // namespace piper::passes
