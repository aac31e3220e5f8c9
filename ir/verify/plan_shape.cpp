#include <algorithm>
#include <unordered_map>

#include "ir/dag/text_names.h"
#include "ir/verify/plan_facts.h"

namespace piper::verify {

namespace {

class Shape {
 public:
  explicit Shape(PlanFacts& plan) : plan_(plan), facts_(plan.facts), dag_(plan.facts.dag) {}

  bool check() {
    if (!tables()) return false;
    coverage();
    if (!facts_.ok()) return false;
    actions();
    if (!facts_.ok()) return false;
    streams();
    if (!facts_.ok()) return false;
    communicators();
    for (std::uint32_t r = 0; r < plan_.plan.roles.size() && !facts_.enough(); ++r) operands(r);
    return facts_.ok();
  }

 private:
  bool fail(const std::string& what, LocId loc = {}) {
    facts_.sink.report(Code::broken_dag, loc, "{}", what);
    return false;
  }
  std::string role_name(std::uint32_t role) const { return std::string(facts_.text(plan_.plan.roles[role].name)); }

  bool tables() {
    const std::size_t axes = dag_.mesh.axes.size();
    std::uint64_t total = 0;
    for (std::uint32_t r = 0; r < plan_.plan.roles.size(); ++r) {
      const dag::Role& role = plan_.plan.roles[r];
      if (role.at.size() != axes) return fail("role `" + role_name(r) + "` has another number of axes than the mesh");
      for (std::size_t axis = 0; axis < axes; ++axis) {
        if (role.at[axis] < DeviceSet::kWhole || role.at[axis] >= static_cast<std::int64_t>(dag_.mesh.axes[axis].size)) {
          return fail("role `" + role_name(r) + "` lies outside the mesh");
        }
      }
      plan_.first_action.push_back(static_cast<std::uint32_t>(total));
      total += role.actions.size();
      if (total > kNone / 2) return fail("there are too many actions");
      for (const Action& action : role.actions) {
        const bool fits = action.node.valid() && action.node.index() < dag_.nodes.size() && action.stream.valid() &&
                          action.stream.index() < dag_.streams.size() && std::size_t{action.first_wait} + action.num_waits <= role.waits.size() &&
                          std::size_t{action.first_operand} + action.num_operands <= role.operands.size() &&
                          (!action.communicator.valid() || action.communicator.index() < plan_.plan.communicators.size());
        if (!fits) return fail("an action of role `" + role_name(r) + "` refers to nothing");
      }
      for (const dag::Operand& operand : role.operands) {
        if (!operand.buffer.valid() || operand.buffer.index() >= role.buffers.size()) return fail("an operand of role `" + role_name(r) + "` names no buffer");
      }
      for (const dag::Wait& wait : role.waits) {
        if (!wait.stream.valid() || wait.stream.index() >= dag_.streams.size()) return fail("a wait of role `" + role_name(r) + "` names no stream");
      }
      for (const dag::Buffer& buffer : role.buffers) {
        const bool fits = (!buffer.value.node.valid() || (buffer.value.node.index() < dag_.nodes.size() && buffer.value.index < facts_.node(buffer.value.node).num_outputs)) &&
                          (!buffer.bucket.valid() || buffer.bucket.index() < dag_.buckets.size());
        if (!fits) return fail("a buffer of role `" + role_name(r) + "` holds nothing that exists");
      }
    }
    plan_.first_action.push_back(static_cast<std::uint32_t>(total));
    for (const dag::Communicator& communicator : plan_.plan.communicators) {
      for (const dag::CommId comm : communicator.comms) {
        if (!comm.valid() || comm.index() >= dag_.comms.size()) return fail("a communicator names a communication that does not exist", communicator.loc);
      }
      for (const DeviceSetId member : communicator.members) {
        if (!member.valid() || member.index() >= dag_.device_sets.size()) return fail("a communicator names a device set that does not exist", communicator.loc);
      }
    }
    return true;
  }

  /// A role's devices lie in a set when the set fixes no coordinate that the role does not have.
  bool in(const dag::Role& role, const DeviceSet& set) const {
    for (std::size_t axis = 0; axis < set.at.size(); ++axis) {
      if (set.at[axis] != DeviceSet::kWhole && set.at[axis] != role.at[axis]) return false;
    }
    return true;
  }

  /// Every device belongs to one role: the one that singles out most of its coordinates; a role of no device, and a set that holds only a
  /// part of a role's devices, are refused.
  void coverage() {
    const std::vector<dag::Role>& roles = plan_.plan.roles;
    // Roles by the axes they single out; most first.
    struct Group {
      AxisMask axes;
      std::unordered_map<std::uint64_t, std::uint32_t> roles;
    };
    std::vector<Group> groups;
    const auto key = [&](AxisMask axes, auto at) {
      std::uint64_t value = 0;
      for (std::size_t axis = 0; axis < dag_.mesh.axes.size(); ++axis) {
        if ((axes >> axis & 1) != 0) value = value * dag_.mesh.axes[axis].size + static_cast<std::uint64_t>(at(axis));
      }
      return value;
    };
    for (std::uint32_t r = 0; r < roles.size(); ++r) {
      const AxisMask axes = ~DeviceSet{roles[r].at}.whole_axes() & ((AxisMask{1} << dag_.mesh.axes.size()) - 1);
      auto group = std::find_if(groups.begin(), groups.end(), [&](const Group& each) { return each.axes == axes; });
      if (group == groups.end()) group = groups.insert(groups.end(), Group{axes, {}});
      if (!group->roles.try_emplace(key(axes, [&](std::size_t axis) { return roles[r].at[axis]; }), r).second) {
        facts_.sink.report(Code::wrong_roles, LocId(), "role `{}` has the devices of another role", role_name(r));
        return;
      }
    }
    std::stable_sort(groups.begin(), groups.end(), [](const Group& a, const Group& b) { return __builtin_popcount(a.axes) > __builtin_popcount(b.axes); });
    std::vector<std::uint64_t> devices(roles.size(), 0);
    std::vector<std::uint64_t> held(dag_.device_sets.size(), 0);  // devices of each set that its roles have
    const std::uint64_t total = dag_.mesh.devices();
    if (total > (1u << 24)) {
      facts_.sink.report(Code::wrong_roles, dag_.mesh.loc, "a mesh of `{}` devices is too large to be checked", total);
      return;
    }
    std::vector<std::uint32_t> at(dag_.mesh.axes.size(), 0);
    for (std::uint64_t rank = 0; rank < total; ++rank) {
      std::uint32_t found = kNone;
      for (const Group& group : groups) {
        const auto role = group.roles.find(key(group.axes, [&](std::size_t axis) { return at[axis]; }));
        if (role == group.roles.end()) continue;
        found = role->second;
        break;
      }
      if (found == kNone) {
        facts_.sink.report(Code::wrong_roles, dag_.mesh.loc, "rank `{}` belongs to no role", rank);
        return;
      }
      ++devices[found];
      for (std::size_t axis = at.size(); axis-- > 0;) {
        if (++at[axis] < dag_.mesh.axes[axis].size) break;
        at[axis] = 0;
      }
    }
    for (std::uint32_t r = 0; r < roles.size(); ++r) {
      if (devices[r] == 0) facts_.sink.report(Code::wrong_roles, LocId(), "role `{}` has no device of its own", role_name(r));
    }
    roles_in_.assign(dag_.device_sets.size(), {});
    std::vector<bool> used(dag_.device_sets.size(), false);
    for (const Node& node : dag_.nodes) used[node.devices.index()] = true;
    for (std::size_t s = 0; s < dag_.device_sets.size(); ++s) {
      if (!used[s]) continue;
      const DeviceSet& set = dag_.device_sets[DeviceSetId::at(s)];
      for (std::uint32_t r = 0; r < roles.size(); ++r) {
        if (!in(roles[r], set)) continue;
        held[s] += devices[r];
        roles_in_[s].push_back(r);
      }
      if (held[s] != set.devices(dag_.mesh)) {
        facts_.sink.report(Code::wrong_roles, dag_.mesh.loc, "the roles that lie in `{}` have `{}` of its `{}` devices", facts_.text(DeviceSetId::at(s)), held[s], set.devices(dag_.mesh));
        return;
      }
    }
  }

  void actions() {
    std::vector<std::uint32_t> nodes_of(dag_.device_sets.size(), 0);
    for (const Node& node : dag_.nodes) ++nodes_of[node.devices.index()];
    std::vector<std::uint64_t> wanted(plan_.plan.roles.size(), 0);
    for (std::size_t s = 0; s < roles_in_.size(); ++s) {
      for (const std::uint32_t role : roles_in_[s]) wanted[role] += nodes_of[s];
    }
    std::vector<std::uint32_t> last(dag_.nodes.size(), kNone);
    plan_.role_of.reserve(plan_.first_action.back());
    for (std::uint32_t r = 0; r < plan_.plan.roles.size(); ++r) {
      const dag::Role& role = plan_.plan.roles[r];
      std::uint64_t own = 0;
      for (const Action& action : role.actions) {
        plan_.role_of.push_back(r);
        const Node& node = facts_.node(action.node);
        if (last[action.node.index()] == r) {
          facts_.sink.report(Code::wrong_actions, node.loc, "role `{}` runs `{}` twice", role_name(r), facts_.name(action.node));
        } else if (!in(role, dag_.device_sets[node.devices])) {
          facts_.sink.report(Code::wrong_actions, node.loc, "role `{}` runs `{}`, which is on `{}`", role_name(r), facts_.name(action.node), facts_.text(node.devices));
        } else {
          ++own;
        }
        last[action.node.index()] = r;
        if (action.stream != node.stream) {
          facts_.sink.report(Code::wrong_stream, node.loc, "role `{}` runs `{}` on stream `{}`, the node is on `{}`", role_name(r), facts_.name(action.node),
                             facts_.text(dag_.streams[action.stream.index()].name), facts_.text(dag_.streams[node.stream.index()].name));
        }
        if (facts_.enough()) return;
      }
      if (own == wanted[r]) continue;
      for (std::size_t i = 0; i < dag_.nodes.size() && !facts_.enough(); ++i) {
        const Node& node = dag_.nodes[i];
        if (last[i] != r && in(role, dag_.device_sets[node.devices])) {
          facts_.sink.report(Code::wrong_actions, node.loc, "role `{}` lacks `{}`", role_name(r), facts_.name(NodeId::at(i)));
        }
      }
    }
  }

  /// Positions count per stream, and waits name actions that exist.
  void streams() {
    const std::size_t slots = plan_.plan.roles.size() * plan_.num_streams();
    plan_.stream_size.assign(slots, 0);
    for (std::uint32_t a = 0; a < plan_.role_of.size(); ++a) {
      const Action& action = plan_.action(a);
      std::uint32_t& size = plan_.stream_size[plan_.slot(plan_.role_of[a], action.stream)];
      if (action.position != size) {
        facts_.sink.report(Code::wrong_actions, plan_.loc(a), "`{}` says position `{}` in its stream, it is number `{}`", plan_.name(a), action.position, size);
        return;
      }
      ++size;
    }
    plan_.action_at_first.assign(slots + 1, 0);
    for (std::size_t s = 0; s < slots; ++s) plan_.action_at_first[s + 1] = plan_.action_at_first[s] + plan_.stream_size[s];
    plan_.action_at.resize(plan_.role_of.size());
    for (std::uint32_t a = 0; a < plan_.role_of.size(); ++a) {
      const Action& action = plan_.action(a);
      plan_.action_at[plan_.action_at_first[plan_.slot(plan_.role_of[a], action.stream)] + action.position] = a;
    }
    for (std::uint32_t a = 0; a < plan_.role_of.size() && !facts_.enough(); ++a) {
      for (const dag::Wait& wait : plan_.waits(a)) {
        if (wait.distance <= 1 && wait.position < plan_.stream_size[plan_.slot(plan_.role_of[a], wait.stream)] && wait.stream != plan_.action(a).stream) continue;
        facts_.sink.report(Code::wrong_wait, plan_.loc(a), "`{}` waits for action `{}` of stream `{}`, `{}` steps ago: {}", plan_.name(a), wait.position,
                           facts_.text(dag_.streams[wait.stream.index()].name), std::uint32_t{wait.distance},
                           wait.distance > 1 ? "a wait looks back one step at most" : wait.stream == plan_.action(a).stream ? "a stream is in order anyway" : "there is no such action");
      }
    }
  }

  /// Every communication is in one communicator; at each member the order of actions is the communicator's.
  void communicators() {
    const auto& list = plan_.plan.communicators;
    std::vector<std::uint32_t> of_comm(dag_.comms.size(), kNone), number(dag_.comms.size(), 0);
    for (std::uint32_t c = 0; c < list.size() && !facts_.enough(); ++c) {
      const dag::Communicator& communicator = list[c];
      const bool pair = communicator.kind == dag::Communicator::Kind::pair;
      if (!communicator.stream.valid() || communicator.stream.index() >= dag_.streams.size()) {
        facts_.sink.report(Code::wrong_communicator, communicator.loc, "a communicator has no stream");
        continue;
      }
      for (std::uint32_t k = 0; k < communicator.comms.size(); ++k) {
        const dag::CommId id = communicator.comms[k];
        const dag::Comm& comm = dag_.comms[id.index()];
        const Node& first = facts_.node(comm.members[0]);
        if (of_comm[id.index()] != kNone) {
          facts_.sink.report(Code::wrong_communicator, first.loc, "`{}` stands in two places of the communicators", facts_.name(comm.members[0]));
          return;
        }
        of_comm[id.index()] = c;
        number[id.index()] = k;
        bool fits = pair == (first.kind == NodeKind::send) && comm.members.size() == communicator.members.size() && (pair || comm.axes == communicator.axes);
        for (std::size_t m = 0; fits && m < comm.members.size(); ++m) {
          fits = facts_.node(comm.members[m]).devices == communicator.members[m] && facts_.node(comm.members[m]).stream == communicator.stream;
        }
        if (!fits) {
          facts_.sink.report(Code::wrong_communicator, first.loc, "`{}` does not have the members, axes or stream of its communicator", facts_.name(comm.members[0]));
          return;
        }
      }
    }
    // Per role and communicator: the number that comes next.
    std::vector<std::uint32_t> next(list.size(), 0), role_stamp(list.size(), kNone);
    for (std::uint32_t a = 0; a < plan_.role_of.size() && !facts_.enough(); ++a) {
      const Action& action = plan_.action(a);
      const Node& node = facts_.node(action.node);
      if (!is_comm(node.kind)) {
        if (action.communicator.valid()) facts_.sink.report(Code::wrong_communicator, node.loc, "`{}` is no communication but names a communicator", plan_.name(a));
        continue;
      }
      const std::uint32_t c = of_comm[node.comm.index()];
      if (c == kNone || action.communicator.value() != c) {
        facts_.sink.report(Code::wrong_communicator, node.loc, "`{}` runs on another communicator than the one that lists it", plan_.name(a));
        continue;
      }
      if (role_stamp[c] != plan_.role_of[a]) {
        role_stamp[c] = plan_.role_of[a];
        next[c] = 0;
      }
      if (number[node.comm.index()] != next[c]) {
        const NodeId expected = dag_.comms[list[c].comms[next[c]].index()].members[0];
        facts_.sink
            .report(Code::wrong_communicator, node.loc, "role `{}` runs `{}` as number `{}` of its communicator, where the other member has `{}`", role_name(plan_.role_of[a]),
                    plan_.name(a), next[c], facts_.name(expected))
            .related(facts_.loc(expected), "`{}` comes first here", facts_.name(expected));
        return;
      }
      ++next[c];
    }
  }

  /// Operands: number, inside their buffers, buffers inside the arena.
  void operands(std::uint32_t r) {
    const dag::Role& role = plan_.plan.roles[r];
    std::int64_t end = 0;
    for (const dag::Buffer& buffer : role.buffers) {
      if (buffer.offset < 0 || buffer.bytes < 0 || buffer.offset % 64 != 0 || buffer.offset > role.arena_bytes || buffer.bytes > role.arena_bytes - buffer.offset) {
        facts_.sink.report(Code::wrong_operand, LocId(), "a buffer of role `{}` at `{}` with `{}` bytes is not a part of its arena of `{}`, in steps of 64", role_name(r),
                           buffer.offset, buffer.bytes, role.arena_bytes);
        return;
      }
      end = std::max(end, buffer.offset + buffer.bytes);
    }
    if (role.live_bytes > role.arena_bytes || role.live_bytes < 0) {
      facts_.sink.report(Code::wrong_operand, LocId(), "role `{}` says that more bytes live than its arena has", role_name(r));
    }
    for (const Action& action : role.actions) {
      if (facts_.enough()) return;
      const Node& node = facts_.node(action.node);
      const std::uint32_t inputs = input_ports(dag_, node), values = inputs + node.num_outputs;
      if (action.num_operands < values || action.num_operands > values + 1) {
        facts_.sink.report(Code::wrong_operand, node.loc, "`{}` has `{}` operands where it needs `{}`", facts_.name(action.node), action.num_operands, values);
        continue;
      }
      if (action.num_operands > values && role.buffers[role.operands[action.first_operand + values].buffer.index()].cls != dag::BufferClass::workspace) {
        facts_.sink.report(Code::wrong_operand, node.loc, "the workspace of `{}` lies in a buffer of another class", facts_.name(action.node));
      }
      std::size_t edge = 0;
      const std::span<const Input> edges = dag_.inputs_of(node);
      for (std::uint32_t i = 0; i < action.num_operands; ++i) {
        const dag::Operand& operand = role.operands[action.first_operand + i];
        const dag::Buffer& buffer = role.buffers[operand.buffer.index()];
        const std::int64_t bytes = i < inputs ? input_bytes(edges, edge) : i < values ? dag_.output_type({action.node, i - inputs}).bytes() : 0;
        if (operand.offset < 0 || operand.offset > buffer.bytes || bytes > buffer.bytes - operand.offset) {
          facts_.sink.report(Code::wrong_operand, node.loc, "operand `{}` of `{}` takes `{}` bytes at `{}` of a buffer that has `{}`", i, facts_.name(action.node), bytes, operand.offset,
                             buffer.bytes);
        }
        const bool gradient = node.kind == NodeKind::chunk && i >= inputs && i < values &&
                              dag_.bodies[node.body.index()].outputs[i - inputs].kind == PortKind::grad;
        if (operand.accumulate && !gradient) {
          facts_.sink.report(Code::wrong_accumulation, node.loc, "operand `{}` of `{}` is added to what is there, but it is no gradient", i, facts_.name(action.node));
        }
        if (i >= inputs && i < values) {
          const bool state = buffer.cls == dag::BufferClass::parameters || buffer.cls == dag::BufferClass::optimizer || buffer.cls == dag::BufferClass::scalars;
          const bool own = node.kind == NodeKind::update && buffer.cls == dag::BufferClass::parameters && buffer.bucket == node.bucket;
          const bool labelled = !buffer.value.node.valid() || buffer.value == Port{action.node, i - inputs} || is_comm(node.kind);
          if ((state && !own) || !labelled) {
            facts_.sink.report(Code::wrong_operand, node.loc, "output `{}` of `{}` is written where something else belongs", i - inputs, facts_.name(action.node));
          }
        }
      }
    }
  }

  std::int64_t input_bytes(std::span<const Input> edges, std::size_t& edge) const {
    const Input& input = edges[edge];
    while (edge < edges.size() && edges[edge].port == input.port) ++edge;
    if (input.source.node.valid()) return dag_.output_type(input.source).bytes();
    return 0;
  }

  PlanFacts& plan_;
  Facts& facts_;
  const Dag& dag_;
  std::vector<std::vector<std::uint32_t>> roles_in_;  // per device set in use
};

}  // namespace

bool check_plan_shape(PlanFacts& plan) { return Shape(plan).check(); }

}  // namespace piper::verify
