#include "passes/simulate/actions.h"

#include <algorithm>
#include <map>

#include "ir/alignment.h"
#include "ir/dag/segment_text.h"
#include "llvm/ADT/DenseMap.h"
#include "passes/order/list_schedule.h"
#include "passes/simulate/action_seconds.h"
#include "passes/simulate/device_classes.h"
#include "passes/simulate/fair_sharing.h"
#include "passes/simulate/figures.h"

namespace piper::passes {

using namespace dag;

namespace {

constexpr std::uint32_t kNone = Timeline::kNone;

constexpr std::size_t kClasses = static_cast<std::size_t>(BufferClass::scalars) + 1;

/// Actions are numbered over all ranks, which are classes of devices. An activity of the clock is
/// one of them, or all members of a communication.
class Simulation {
 public:
  Simulation(const Dag& dag, const ActionCosts& costs)
      : dag_(dag),
        plan_(*dag.plan),
        machine_(costs.machine ? &*costs.machine : nullptr),
        classes_(dag, machine_),
        seconds_(dag, costs),
        texts_(dag) {}

  Timeline run() {
    out_.unit = Timeline::Unit::seconds;
    out_.source = Timeline::Source::plan;
    number();
    connect();
    times_ = shares() ? fair_sharing_times(network_, sharing(), *dag_.context)
                      : asap_times(network_, *dag_.context);
    dag_.context->poll();
    operation_of_.assign(dag_.nodes.size(), kNone);
    for (std::uint32_t rank = 0; rank < classes_.size(); ++rank) {
      dag_.context->poll();
      add_rank(rank);
    }
    explain_waits();
    add_messages();
    for (std::uint32_t rank = 0; rank < classes_.size(); ++rank) add_memory(rank);
    fill_figures(out_);
    return std::move(out_);
  }

 private:
  // ---- the network

  void number() {
    for (std::uint32_t r = 0; r < classes_.size(); ++r) {
      devices_.push_back(machine_ != nullptr ? machine_->device(classes_[r].coordinates)
                                             : MachineDevice());
      first_action_.push_back(static_cast<std::uint32_t>(activity_.size()));
      for (const Action& action : role_of(r).actions) {
        const Node& node = dag_.node(action.node);
        const std::uint32_t next = static_cast<std::uint32_t>(network_.duration.size());
        const std::uint32_t activity =
            node.comm.valid()
                ? activity_of_
                      .try_emplace({node.comm.value(),
                                    instance_of(classes_[r], dag_.comms[node.comm.index()])},
                                   next)
                      .first->second
                : next;
        activity_.push_back(activity);
        if (activity < next) continue;
        comm_.push_back(node.comm);
        transfer_.push_back(node.comm.valid() ? seconds_.transfer(dag_.comms[node.comm.index()])
                                              : TransferTime());
        if (copies_to_or_from_host(node.kind))
          transfer_.back().bandwidth = devices_[r].host.value_or(transfer_.back().bandwidth);
        network_.duration.push_back(node.comm.valid() ? transfer_.back().seconds()
                                                      : seconds_.work(node, devices_[r].rates) /
                                                            devices_[r].speed.value_or(1));
      }
    }
    first_action_.push_back(static_cast<std::uint32_t>(activity_.size()));
  }

  const Role& role_of(std::uint32_t rank) const { return plan_.roles[classes_[rank].role]; }

  /// Devices that differ on an axis that all members have whole and that takes no part in the
  /// communication run separate instances of it.
  std::uint32_t instance_of(const DeviceClass& device, const Comm& comm) const {
    std::uint32_t instance = 0;
    for (std::size_t axis = 0; axis < dag_.mesh.axes.size(); ++axis) {
      if (classes_.parts(axis) < 2 || (comm.axes >> axis & 1) != 0) continue;
      const bool whole = std::all_of(comm.members.begin(), comm.members.end(), [&](NodeId member) {
        return dag_.device_sets[dag_.node(member).devices].at[axis] == DeviceSet::kWhole;
      });
      if (whole) instance = instance * classes_.parts(axis) + device.parts[axis];
    }
    return instance;
  }

  // ---- shared links

  bool shares() const {
    if (machine_ == nullptr) return false;
    const bool links =
        std::any_of(machine_->axes.begin(), machine_->axes.end(),
                    [](const Machine::Axis& axis) { return axis.link && axis.link->shared > 1; });
    return links || std::any_of(devices_.begin(), devices_.end(), [](const MachineDevice& device) {
             return device.overlap.value_or(1) > 1;
           });
  }

  /// A link has its bandwidth in each direction: sends use one, receives the other, rings both.
  Sharing sharing() const {
    Sharing made;
    made.transfer.resize(network_.duration.size());
    made.ranks.resize(network_.duration.size());
    for (const MachineDevice& device : devices_) made.overlap.push_back(device.overlap.value_or(1));
    for (std::size_t activity = 0; activity < comm_.size(); ++activity) {
      if (!comm_[activity].valid()) continue;
      const TransferTime& time = transfer_[activity];
      made.transfer[activity] = {time.latency, time.bytes, time.bandwidth, {}};
    }
    std::map<std::pair<std::size_t, std::uint64_t>, std::uint32_t> links;
    for (std::uint32_t r = 0; r < classes_.size(); ++r) {
      const Role& role = role_of(r);
      const std::vector<SharedLink> shared = shared_links(r, links, made.capacity);
      for (std::uint32_t a = 0; a < role.actions.size(); ++a) {
        const std::uint32_t activity = activity_[first_action_[r] + a];
        made.ranks[activity].push_back(r);
        if (!comm_[activity].valid()) continue;
        for (const SharedLink& link : shared) {
          if ((transfer_[activity].axes >> link.axis & 1) != 0)
            use_link(link, role.actions[a].node, made.transfer[activity]);
        }
      }
    }
    return made;
  }

  /// Links that a rank's devices share with others: that of an axis, in either direction.
  struct SharedLink {
    std::size_t axis = 0;
    std::uint32_t first = 0;  // the link for sends; the one for receives is the next
    double devices = 0;       // of the rank
  };
  std::vector<SharedLink> shared_links(
      std::uint32_t rank, std::map<std::pair<std::size_t, std::uint64_t>, std::uint32_t>& links,
      std::vector<double>& capacity) const {
    std::vector<SharedLink> found;
    for (std::size_t axis = 0; axis < machine_->axes.size(); ++axis) {
      const auto& link = machine_->axes[axis].link;
      if (!link || link->shared == 1) continue;
      const LinkGroup group = *link_group(machine_->axes, link->shared);
      const auto [known, added] =
          links.try_emplace({axis, classes_.group_of(classes_[rank], group)},
                            static_cast<std::uint32_t>(capacity.size()));
      if (added) capacity.insert(capacity.end(), 2, link->bandwidth);
      found.push_back({axis, known->second,
                       static_cast<double>(classes_.devices_in_group(classes_[rank], group))});
    }
    return found;
  }

  void use_link(const SharedLink& link, NodeId id, Sharing::Transfer& transfer) const {
    const NodeKind kind = dag_.node(id).kind;
    for (const bool receives : {false, true}) {
      if (is_message(kind) && is_send(kind) == receives) continue;
      const std::uint32_t used = link.first + (receives ? 1 : 0);
      const auto known = std::find_if(transfer.uses.begin(), transfer.uses.end(),
                                      [&](const auto& use) { return use.first == used; });
      if (known == transfer.uses.end()) {
        transfer.uses.emplace_back(used, link.devices);
      } else {
        known->second += link.devices;
      }
    }
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
    for (std::uint32_t r = 0; r < classes_.size(); ++r) {
      const Role& role = role_of(r);
      streams_.push_back(streams_of(role));
      const Streams& streams = streams_.back();
      const auto link = [&](std::uint32_t before, std::uint32_t action) {
        const std::uint32_t from = activity_[first_action_[r] + before],
                            to = activity_[first_action_[r] + action];
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

  /// The actions of this step whose ends an action waits for, except the previous one of its
  /// stream.
  template <typename Visit>
  void for_each_wait(std::uint32_t r, std::uint32_t a, const Visit& visit) const {
    const Role& role = role_of(r);
    const Action& action = role.actions[a];
    for (const Wait& wait : std::span(role.waits).subspan(action.first_wait, action.num_waits)) {
      if (wait.distance > 0) continue;
      const auto stream = std::find(streams_[r].ids.begin(), streams_[r].ids.end(), wait.stream) -
                          streams_[r].ids.begin();
      visit(streams_[r].actions[static_cast<std::size_t>(stream)][wait.position]);
    }
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
    const Role& role = role_of(r);
    Timeline::Rank& rank = out_.ranks.emplace_back();
    rank.name = classes_[r].name;
    rank.replicas = classes_[r].replicas;
    rank.planned_bytes = role.arena_bytes;
    rank.first_lane = static_cast<std::uint32_t>(out_.lanes.size());
    entry_of_.resize(activity_.size(), kNone);
    const Streams& streams = streams_[r];
    for (std::size_t s = 0; s < streams.ids.size(); ++s) {
      const auto first = static_cast<std::uint32_t>(out_.size());
      out_.lanes.push_back(
          {std::string(dag_.context->text(dag_.streams[streams.ids[s].index()].name)), r, first,
           first});
      for (const std::uint32_t a : streams.actions[s]) {
        const std::uint32_t id = first_action_[r] + a, activity = activity_[id];
        entry_of_[id] = static_cast<std::uint32_t>(out_.size());
        const NodeId node = role.actions[a].node;
        out_.add_entry(times_.start[activity], times_.finish[activity], operation(node),
                       dag_.group.empty() ? kNone : dag_.group[node.index()]);
        action_of_.push_back(id);
        if (s == 0) rank.work += times_.finish[activity] - times_.start[activity];
      }
    }
    rank.end_lane = static_cast<std::uint32_t>(out_.lanes.size());
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
        const bool own = std::upper_bound(first_action_.begin(), first_action_.end(), from) ==
                         std::upper_bound(first_action_.begin(), first_action_.end(), action);
        out_.why[entry] =
            why(out_.operation_of(entry).kind, out_.operation_of(entry_of_[from]).kind, own);
      }
    }
  }

  static Timeline::Why why(NodeKind waits, NodeKind caused, bool own) {
    if (!own) return Timeline::Why::partner;
    // A send has no reader; later actions wait for it to reuse its buffer.
    if (is_send(caused) || (is_recv(waits) && !is_communication(caused)))
      return Timeline::Why::window;
    return is_communication(caused) ? Timeline::Why::message : Timeline::Why::data;
  }

  void add_messages() {
    std::vector<std::uint32_t> send(comm_.size(), kNone), recv(comm_.size(), kNone);
    for (std::uint32_t entry = 0; entry < out_.size(); ++entry) {
      const Node& node = dag_.node(out_.operation_of(entry).first);
      if (!is_message(node.kind)) continue;
      const std::uint32_t activity = activity_[action_of_[entry]];
      std::uint32_t& end = is_send(node.kind) ? send[activity] : recv[activity];
      if (end == kNone) end = entry;
    }
    for (std::size_t c = 0; c < comm_.size(); ++c) {
      if (send[c] == kNone || recv[c] == kNone) continue;
      const auto bytes =
          static_cast<std::int64_t>(seconds_.bytes_of(dag_.node(out_.operation_of(send[c]).first)));
      out_.messages.push_back({send[c], recv[c], out_.start[send[c]], out_.finish[recv[c]], bytes});
    }
    std::stable_sort(out_.messages.begin(), out_.messages.end(),
                     [](const auto& a, const auto& b) { return a.leaves < b.leaves; });
  }

  // ---- memory

  /// The time at which an action's outputs become live: for a communication when it is issued,
  /// before its partner arrives.
  double posted(std::uint32_t r, std::uint32_t a, std::uint32_t before_in_stream) const {
    const std::uint32_t first = first_action_[r];
    double time =
        before_in_stream == kNone ? 0 : times_.finish[activity_[first + before_in_stream]];
    for_each_wait(r, a, [&](std::uint32_t before) {
      time = std::max(time, times_.finish[activity_[first + before]]);
    });
    return std::min(time, times_.start[activity_[first + a]]);
  }

  struct Change {
    double time;
    std::int64_t bytes;
    std::size_t cls;
  };

  /// A value is live from the start of its writer (for a receive, from its issue) to the end of its
  /// last reader.
  std::vector<Change> changes(std::uint32_t r) const {
    const Role& role = role_of(r);
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
      for (const Operand& operand :
           std::span(role.operands).subspan(action.first_operand, action.num_operands)) {
        const std::size_t b = operand.buffer.index();
        if (role.buffers[b].cls == BufferClass::workspace) {
          changes.push_back({times_.start[activity], aligned(role.buffers[b].bytes),
                             static_cast<std::size_t>(BufferClass::workspace)});
          changes.push_back({times_.finish[activity], -aligned(role.buffers[b].bytes),
                             static_cast<std::size_t>(BufferClass::workspace)});
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
    std::sort(changes.begin(), changes.end(), [](const Change& a, const Change& b) {
      return a.time != b.time ? a.time < b.time : a.bytes < b.bytes;
    });
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
  const Machine* machine_;
  const DeviceClasses classes_;  // the ranks
  const ActionSeconds seconds_;
  const SegmentTexts texts_;
  Network network_;
  Times times_;
  Timeline out_;
  std::vector<MachineDevice> devices_;       // per rank
  std::vector<std::uint32_t> first_action_;  // per rank, one more
  // By communication and instance.
  llvm::DenseMap<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> activity_of_;
  std::vector<CommId> comm_;                 // per activity; invalid: work
  std::vector<TransferTime> transfer_;       // per activity, for communications
  std::vector<std::uint32_t> activity_;      // per action
  std::vector<std::uint32_t> from_action_;   // per link: the action whose end it follows
  std::vector<Streams> streams_;             // per rank
  std::vector<std::uint32_t> entry_of_;      // per action
  std::vector<std::uint32_t> action_of_;     // per entry
  std::vector<std::uint32_t> operation_of_;  // per node
  std::vector<std::uint32_t> chunk_names_;   // per chunk
};

/// A rate of the data sheet holds for the device, and neither `efficiency` nor `speed` lowers it.
bool works_at_peak(const MachineDevice& device, tensor::DType dtype) {
  const DeviceRates& rates = device.rates;
  if (rates.kind == nullptr || rates.efficiency || device.speed.value_or(1) < 1) return false;
  const DeviceRates sheet = find_processor(rates.kind)->rates();
  return flops_of(rates, dtype) == flops_of(sheet, dtype) || rates.bandwidth == sheet.bandwidth;
}

/// The axes without a link that communication crosses.
std::vector<std::string> assumed_links(const Dag& dag, const ActionCosts& costs) {
  std::vector<std::string> axes;
  if (!costs.machine || costs.rates.states_bandwidth) return axes;
  const ActionSeconds seconds(dag, costs);
  AxisMask crossed = 0;
  for (const Comm& comm : dag.comms)
    crossed = static_cast<AxisMask>(crossed | seconds.crossed(comm));
  for (std::size_t axis = 0; axis < costs.machine->axes.size(); ++axis) {
    if ((crossed >> axis & 1) != 0 && !costs.machine->axes[axis].link)
      axes.push_back(costs.machine->axes[axis].name);
  }
  return axes;
}

}  // namespace

ActionCosts action_costs(const Dag& dag, const MachineRates& rates) {
  return {rates, std::vector<double>(dag.bodies.size(), -1), {}, {}};
}

AssumedRates assumed_rates(const Dag& dag, const ActionCosts& costs) {
  AssumedRates assumed;
  const bool measured = std::all_of(costs.body.begin(), costs.body.end(),
                                    [](double seconds) { return seconds >= 0; });
  const DeviceClasses classes(dag, costs.machine ? &*costs.machine : nullptr);
  for (std::size_t i = 0; !measured && i < classes.size(); ++i) {
    const MachineDevice device =
        costs.machine ? costs.machine->device(classes[i].coordinates) : MachineDevice();
    const DeviceRates& rates = device.rates;
    assumed.flops |= !flops_of(rates, dag.settings.dtype) && !costs.rates.states_flops;
    assumed.bytes |= !rates.bandwidth && !costs.rates.states_bytes;
    if (works_at_peak(device, dag.settings.dtype)) assumed.kind = rates.kind;
  }
  assumed.links = assumed_links(dag, costs);
  return assumed;
}

Timeline simulate_actions(const Dag& dag, const ActionCosts& costs) {
  return Simulation(dag, costs).run();
}

}  // namespace piper::passes
