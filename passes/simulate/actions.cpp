#include "passes/simulate/actions.h"

#include <algorithm>

#include "ir/alignment.h"
#include "ir/dag/piece_text.h"
#include "passes/order/list_schedule.h"
#include "passes/simulate/clock.h"
#include "passes/simulate/figures.h"

namespace piper::passes {

using namespace dag;

namespace {

constexpr std::uint32_t kNone = Timeline::kNone;

constexpr std::size_t kClasses = static_cast<std::size_t>(BufferClass::scalars) + 1;

/// Actions of all roles are numbered through. An activity of the clock is one of them, or all members of a communication.
class Simulation {
 public:
  Simulation(const Dag& dag, const ActionCosts& costs) : dag_(dag), plan_(*dag.plan), costs_(costs), texts_(dag) {}

  Timeline run() {
    out_.unit = Timeline::Unit::seconds;
    out_.source = Timeline::Source::plan;
    number();
    connect();
    times_ = run_clock(network_);
    dag_.context->poll();
    operation_of_.assign(dag_.nodes.size(), kNone);
    for (std::uint32_t role = 0; role < plan_.roles.size(); ++role) add_rank(role);
    explain_waits();
    add_messages();
    for (std::uint32_t role = 0; role < plan_.roles.size(); ++role) add_memory(role);
    fill_figures(out_);
    return std::move(out_);
  }

 private:
  // ---- the network

  void number() {
    network_.duration.assign(dag_.comms.size(), 0);
    for (std::size_t c = 0; c < dag_.comms.size(); ++c) network_.duration[c] = communication_seconds(dag_.comms[c]);
    for (const Role& role : plan_.roles) {
      first_action_.push_back(static_cast<std::uint32_t>(activity_.size()));
      for (const Action& action : role.actions) {
        const Node& node = dag_.node(action.node);
        if (node.comm.valid()) {
          activity_.push_back(node.comm.value());
        } else {
          activity_.push_back(static_cast<std::uint32_t>(network_.duration.size()));
          network_.duration.push_back(work_seconds(node));
        }
      }
    }
    first_action_.push_back(static_cast<std::uint32_t>(activity_.size()));
  }

  /// Actions of a role by stream: its streams in the order of their first actions, `compute` first.
  struct Streams {
    std::vector<StreamId> ids;
    std::vector<std::vector<std::uint32_t>> actions;  // positions in Role::actions
  };
  Streams streams_of(const Role& role) const {
    Streams streams{{StreamId(0)}, {{}}};
    for (std::uint32_t a = 0; a < role.actions.size(); ++a) {
      const auto known = std::find(streams.ids.begin(), streams.ids.end(), role.actions[a].stream);
      if (known == streams.ids.end()) {
        streams.ids.push_back(role.actions[a].stream);
        streams.actions.push_back({a});
      } else {
        streams.actions[static_cast<std::size_t>(known - streams.ids.begin())].push_back(a);
      }
    }
    return streams;
  }

  void connect() {
    for (std::uint32_t r = 0; r < plan_.roles.size(); ++r) {
      const Role& role = plan_.roles[r];
      streams_.push_back(streams_of(role));
      const Streams& streams = streams_.back();
      const auto link = [&](std::uint32_t before, std::uint32_t action) {
        const std::uint32_t from = activity_[first_action_[r] + before], to = activity_[first_action_[r] + action];
        if (from == to) return;
        network_.links.push_back({from, to, 0});
        from_action_.push_back(first_action_[r] + before);
      };
      for (const std::vector<std::uint32_t>& actions : streams.actions) {
        for (std::size_t i = 1; i < actions.size(); ++i) link(actions[i - 1], actions[i]);
      }
      for (std::uint32_t a = 0; a < role.actions.size(); ++a) {
        for_each_wait(r, a, [&](std::uint32_t before) { link(before, a); });
      }
    }
  }

  /// The actions of this step whose ends an action waits for, beside the one before it in its stream.
  template <typename Visit>
  void for_each_wait(std::uint32_t r, std::uint32_t a, const Visit& visit) const {
    const Role& role = plan_.roles[r];
    const Action& action = role.actions[a];
    for (const Wait& wait : std::span(role.waits).subspan(action.first_wait, action.num_waits)) {
      if (wait.distance > 0) continue;
      const auto stream = std::find(streams_[r].ids.begin(), streams_[r].ids.end(), wait.stream) - streams_[r].ids.begin();
      visit(streams_[r].actions[static_cast<std::size_t>(stream)][wait.position]);
    }
  }

  // ---- what things cost

  /// Of a block of a bucket those of all blocks: `share_of` says which part of them is one device's.
  double bytes_of(Port port) const {
    const Node& maker = dag_.node(port.node);
    const double bytes = static_cast<double>(dag_.output_type(port).bytes());
    const BucketId id = maker.subject.bucket();
    if (!id.valid()) return bytes;
    const Bucket& bucket = dag_.buckets[id.index()];
    return dag_.leaves_block(maker) ? bytes * static_cast<double>(dag_.extent(bucket.flat)) : bytes;
  }

  /// What a node reads: contributions to a sum lie in one place.
  double bytes_of(const Node& node) const {
    double bytes = 0;
    std::uint32_t port = kNone;
    for (const Input& input : dag_.inputs_of(node)) {
      if (input.source.node.valid() && input.port != port) bytes += bytes_of(input.source);
      port = input.port;
    }
    return bytes;
  }

  double work_seconds(const Node& node) const {
    if (runs_body(node.kind)) return costs_.body[node.body.index()];
    double bytes = bytes_of(node);
    for (std::uint32_t i = 0; i < node.num_outputs; ++i) {
      bytes += bytes_of(Port{NodeId::at(static_cast<std::size_t>(&node - dag_.nodes.data())), i});
    }
    // An optimizer reads and writes its slots, each as large as the parameters.
    const double slots = writes_state(node.kind) ? 2 : 1;
    return slots * bytes * share_of(node) / costs_.rates.bytes;
  }

  /// The part of a bucket on which one device works: its block where the state is cut.
  double share_of(const Node& node) const {
    const BucketId bucket = node.subject.bucket();
    return bucket.valid() ? 1 / static_cast<double>(dag_.extent(dag_.buckets[bucket.index()].flat)) : 1;
  }

  /// A ring of n devices adds in 2 (n - 1) steps of 1/n of the bytes each, scatters the sum or unites blocks in half of them, and gathers in n - 1.
  double communication_seconds(const Comm& comm) const {
    const Node& front = dag_.node(comm.members.front());
    double bytes = 0;
    for (const NodeId member : comm.members) bytes += bytes_of(dag_.node(member));
    if (returns_to_device(front.kind) && front.num_inputs == 0) bytes = bytes_of(Port{comm.members.front(), 0});  // optimizer state, which lies there
    double joined = static_cast<double>(comm.members.size());
    for (std::size_t axis = 0; axis < dag_.mesh.axes.size(); ++axis) {
      if ((comm.axes >> axis & 1) != 0) joined *= dag_.mesh.axes[axis].size;
    }
    const MachineRates& rates = costs_.rates;
    switch (traits(front.kind).traffic) {
      case Traffic::none: return 0;
      case Traffic::send:
      case Traffic::recv:
      case Traffic::out:
      case Traffic::back: return rates.latency + bytes / rates.bandwidth;
      case Traffic::gather: return (joined - 1) * (rates.latency + bytes / static_cast<double>(comm.members.size()) / rates.bandwidth);
      case Traffic::scatter:
      case Traffic::unite: return (joined - 1) * (rates.latency + bytes / joined / rates.bandwidth);
      case Traffic::add: return 2 * (joined - 1) * (rates.latency + bytes * share_of(front) / static_cast<double>(comm.members.size()) / joined / rates.bandwidth);
    }
    return 0;
  }

  // ---- entries

  std::uint32_t operation(NodeId id) {
    std::uint32_t& known = operation_of_[id.index()];
    if (known != kNone) return known;
    known = static_cast<std::uint32_t>(out_.operations.size());
    const Node& node = dag_.node(id);
    Timeline::Operation& made = out_.operations.emplace_back();
    made.kind = node.kind;
    made.pass = node.pass;
    made.name = static_cast<std::uint32_t>(out_.names.size());
    if (runs_body(node.kind)) {
      made.name = chunk_name(node.chunk);
      place(node, made);
    } else {
      out_.names.push_back(dag_.name(id));
    }
    made.first = made.last = id;
    made.loc = node.loc;
    return known;
  }

  std::uint32_t chunk_name(ChunkId chunk) {
    chunk_names_.resize(dag_.chunks.size(), kNone);
    std::uint32_t& known = chunk_names_[chunk.index()];
    if (known == kNone) {
      known = static_cast<std::uint32_t>(out_.names.size());
      out_.names.push_back(texts_.of(chunk));
    }
    return known;
  }

  void place(const Node& node, Timeline::Operation& made) const {
    std::uint32_t per_copy = 1;
    for (std::size_t d = 0; d < dag_.dims.size(); ++d) {
      const std::string_view name = dag_.context->text(dag_.dims[d].name);
      const auto at = static_cast<std::uint32_t>(std::max(node.instance.at[d], 0));
      if (name == "copy") {
        made.copy = at;
      } else if (name == "slice") {
        made.slice = at;
      } else {
        made.mb = at;
        per_copy = dag_.dims[d].extent;
      }
    }
    made.mb += made.copy * per_copy;
  }

  void add_rank(std::uint32_t r) {
    const Role& role = plan_.roles[r];
    Timeline::Rank& rank = out_.ranks.emplace_back();
    rank.name = dag_.context->text(role.name);
    rank.replicas = replicas(r);
    rank.planned_bytes = role.arena_bytes;
    rank.first_lane = static_cast<std::uint32_t>(out_.lanes.size());
    entry_of_.resize(activity_.size(), kNone);
    const Streams& streams = streams_[r];
    for (std::size_t s = 0; s < streams.ids.size(); ++s) {
      const auto first = static_cast<std::uint32_t>(out_.size());
      out_.lanes.push_back({std::string(dag_.context->text(dag_.streams[streams.ids[s].index()].name)), r, first, first});
      for (const std::uint32_t a : streams.actions[s]) {
        const std::uint32_t id = first_action_[r] + a, activity = activity_[id];
        entry_of_[id] = static_cast<std::uint32_t>(out_.size());
        const NodeId node = role.actions[a].node;
        out_.add_entry(times_.start[activity], times_.finish[activity], operation(node), dag_.group.empty() ? kNone : dag_.group[node.index()]);
        action_of_.push_back(id);
        if (s == 0) rank.work += times_.finish[activity] - times_.start[activity];
      }
    }
    rank.end_lane = static_cast<std::uint32_t>(out_.lanes.size());
  }

  /// The devices of a role: those of its coordinates that no other role singles out.
  std::uint64_t replicas(std::uint32_t r) const {
    std::uint64_t devices = DeviceSet{plan_.roles[r].at}.devices(dag_.mesh);
    for (std::uint32_t other = 0; other < plan_.roles.size(); ++other) {
      const DeviceSet own{plan_.roles[r].at}, set{plan_.roles[other].at};
      if (other != r && own.contains(set)) devices -= std::min(devices, set.devices(dag_.mesh));
    }
    return devices;
  }

  void explain_waits() {
    for (const Timeline::Lane& lane : out_.lanes) {
      for (std::uint32_t entry = lane.first; entry < lane.end; ++entry) {
        const std::uint32_t action = action_of_[entry];
        if (entry > lane.first && out_.start[entry] <= out_.finish[entry - 1]) {
          out_.cause[entry] = entry - 1;
          out_.why[entry] = Timeline::Why::previous;
          continue;
        }
        const std::uint32_t link = times_.cause[activity_[action]];
        if (link == Times::kNone || out_.start[entry] == 0) continue;
        const std::uint32_t from = from_action_[link];
        out_.cause[entry] = entry_of_[from];
        const bool own = std::upper_bound(first_action_.begin(), first_action_.end(), from) == std::upper_bound(first_action_.begin(), first_action_.end(), action);
        out_.why[entry] = why(out_.operation_of(entry).kind, out_.operation_of(entry_of_[from]).kind, own);
      }
    }
  }

  static Timeline::Why why(NodeKind waits, NodeKind caused, bool own) {
    if (!own) return Timeline::Why::partner;
    // Nothing reads what a send leaves: its buffer is taken again.
    if (is_send(caused) || (is_recv(waits) && !is_communication(caused))) return Timeline::Why::window;
    return is_communication(caused) ? Timeline::Why::message : Timeline::Why::data;
  }

  void add_messages() {
    std::vector<std::uint32_t> send(dag_.comms.size(), kNone), recv(dag_.comms.size(), kNone);
    for (std::uint32_t entry = 0; entry < out_.size(); ++entry) {
      const Node& node = dag_.node(out_.operation_of(entry).first);
      if (!is_message(node.kind)) continue;
      std::uint32_t& end = is_send(node.kind) ? send[node.comm.index()] : recv[node.comm.index()];
      if (end == kNone) end = entry;
    }
    for (std::size_t c = 0; c < dag_.comms.size(); ++c) {
      if (send[c] == kNone || recv[c] == kNone) continue;
      const auto bytes = static_cast<std::int64_t>(bytes_of(dag_.node(out_.operation_of(send[c]).first)));
      out_.messages.push_back({send[c], recv[c], out_.start[send[c]], out_.finish[recv[c]], bytes});
    }
    std::stable_sort(out_.messages.begin(), out_.messages.end(), [](const auto& a, const auto& b) { return a.leaves < b.leaves; });
  }

  // ---- memory

  /// When an action takes its place in the arena: a communication when it is issued, before its partner has come.
  double posted(std::uint32_t r, std::uint32_t a, std::uint32_t before_in_stream) const {
    const std::uint32_t first = first_action_[r];
    double time = before_in_stream == kNone ? 0 : times_.finish[activity_[first + before_in_stream]];
    for_each_wait(r, a, [&](std::uint32_t before) { time = std::max(time, times_.finish[activity_[first + before]]); });
    return std::min(time, times_.start[activity_[first + a]]);
  }

  struct Change {
    double time;
    std::int64_t bytes;
    std::size_t cls;
  };

  /// A value lives from the start of the action that writes it, of a receive when it is issued, to the end of the last that reads it.
  std::vector<Change> changes(std::uint32_t r) const {
    const Role& role = plan_.roles[r];
    std::vector<std::uint32_t> before(role.actions.size(), kNone);
    for (const std::vector<std::uint32_t>& actions : streams_[r].actions) {
      for (std::size_t i = 1; i < actions.size(); ++i) before[actions[i]] = actions[i - 1];
    }
    std::vector<double> from(role.buffers.size(), -1), until(role.buffers.size(), 0);
    std::vector<Change> changes;
    for (std::uint32_t a = 0; a < role.actions.size(); ++a) {
      const Action& action = role.actions[a];
      const std::uint32_t activity = activity_[first_action_[r] + a];
      const double begin = posted(r, a, before[a]);
      for (const Operand& operand : std::span(role.operands).subspan(action.first_operand, action.num_operands)) {
        const std::size_t b = operand.buffer.index();
        if (role.buffers[b].cls == BufferClass::workspace) {
          changes.push_back({times_.start[activity], aligned(role.buffers[b].bytes), static_cast<std::size_t>(BufferClass::workspace)});
          changes.push_back({times_.finish[activity], -aligned(role.buffers[b].bytes), static_cast<std::size_t>(BufferClass::workspace)});
          continue;
        }
        from[b] = from[b] < 0 ? begin : std::min(from[b], begin);
        until[b] = std::max(until[b], times_.finish[activity]);
      }
    }
    for (std::size_t b = 0; b < role.buffers.size(); ++b) {
      const Buffer& buffer = role.buffers[b];
      if (is_on_host(buffer.cls)) continue;
      const std::size_t cls = static_cast<std::size_t>(buffer.cls);
      if (is_state(buffer.cls)) {
        changes.push_back({0, aligned(buffer.bytes), cls});
      } else if (from[b] >= 0) {
        changes.push_back({from[b], aligned(buffer.bytes), cls});
        changes.push_back({until[b], -aligned(buffer.bytes), cls});
      }
    }
    // At equal times ends come before starts.
    std::sort(changes.begin(), changes.end(), [](const Change& a, const Change& b) { return a.time != b.time ? a.time < b.time : a.bytes < b.bytes; });
    return changes;
  }

  void add_memory(std::uint32_t r) {
    Timeline::Rank& rank = out_.ranks[r];
    rank.first_curve = static_cast<std::uint32_t>(out_.curves.size());
    const std::vector<Change> changes = this->changes(r);
    std::int64_t all = 0;
    for (const Change& change : changes) {
      all += change.bytes;
      rank.peak_bytes = std::max(rank.peak_bytes, all);
    }
    for (std::size_t cls = 0; cls < kClasses; ++cls) {
      const auto first = static_cast<std::uint32_t>(out_.curve_time.size());
      std::int64_t bytes = 0;
      for (const Change& change : changes) {
        if (change.cls != cls) continue;
        bytes += change.bytes;
        if (out_.curve_time.size() > first && out_.curve_time.back() == change.time) {
          out_.curve_value.back() = static_cast<double>(bytes);
        } else {
          out_.curve_time.push_back(change.time);
          out_.curve_value.push_back(static_cast<double>(bytes));
        }
      }
      const auto end = static_cast<std::uint32_t>(out_.curve_time.size());
      if (end > first) out_.curves.push_back({r, static_cast<BufferClass>(cls), first, end});
    }
    rank.end_curve = static_cast<std::uint32_t>(out_.curves.size());
  }

  const Dag& dag_;
  const Plan& plan_;
  const ActionCosts& costs_;
  const PieceTexts texts_;
  Network network_;
  Times times_;
  Timeline out_;
  std::vector<std::uint32_t> first_action_;  // per role, one more
  std::vector<std::uint32_t> activity_;      // per action
  std::vector<std::uint32_t> from_action_;   // per link: the action whose end it is
  std::vector<Streams> streams_;             // per role
  std::vector<std::uint32_t> entry_of_;      // per action
  std::vector<std::uint32_t> action_of_;     // per entry
  std::vector<std::uint32_t> operation_of_;  // per node
  std::vector<std::uint32_t> chunk_names_;   // per chunk
};

}  // namespace

ActionCosts action_costs(const Dag& dag, const MachineRates& rates) {
  ActionCosts costs{rates, {}};
  for (const tensor::Cost& work : body_work(dag)) costs.body.push_back(work.flops / rates.flops + work.bytes / rates.bytes);
  return costs;
}

Timeline simulate_actions(const Dag& dag, const ActionCosts& costs) { return Simulation(dag, costs).run(); }

}  // namespace piper::passes
