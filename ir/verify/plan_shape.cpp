#include <algorithm>
#include <map>
#include <set>
#include <span>
#include <unordered_map>
#include <vector>

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
    for (const auto& [before, after] : dag_.temporal) {
      // All work is on one stream, which keeps its order.
      if (is_communication(facts_.kind[before.index()]) ||
          is_communication(facts_.kind[after.index()]))
        plan_.issued_after.emplace_back(after.value(), before.value());
    }
    std::sort(plan_.issued_after.begin(), plan_.issued_after.end());
    return facts_.ok();
  }

 private:
  bool fail(const std::string& what, LocId loc = {}) {
    facts_.sink.report(Code::broken_dag, loc, "{}", what);
    return false;
  }
  std::string role_name(std::uint32_t role) const {
    return std::string(facts_.text(plan_.plan.roles[role].name));
  }

  bool tables() {
    const std::size_t axes = dag_.mesh.axes.size();
    std::uint64_t total = 0;
    for (std::uint32_t r = 0; r < plan_.plan.roles.size(); ++r) {
      const dag::Role& role = plan_.plan.roles[r];
      if (role.at.size() != axes)
        return fail("role `" + role_name(r) + "` has another number of axes than the mesh");
      for (std::size_t axis = 0; axis < axes; ++axis) {
        if (role.at[axis] < DeviceSet::kWhole ||
            role.at[axis] >= static_cast<std::int64_t>(dag_.mesh.axes[axis].size)) {
          return fail("role `" + role_name(r) + "` lies outside the mesh");
        }
      }
      plan_.first_action.push_back(static_cast<std::uint32_t>(total));
      total += role.actions.size();
      if (total > kNone / 2) return fail("there are too many actions");
      for (const Action& action : role.actions) {
        const bool fits =
            action.node.valid() && action.node.index() < dag_.nodes.size() &&
            action.stream.valid() && action.stream.index() < dag_.streams.size() &&
            std::size_t{action.first_wait} + action.num_waits <= role.waits.size() &&
            std::size_t{action.first_operand} + action.num_operands <= role.operands.size() &&
            (!action.communicator.valid() ||
             action.communicator.index() < plan_.plan.communicators.size());
        if (!fits) return fail("an action of role `" + role_name(r) + "` refers to nothing");
      }
      for (const dag::Operand& operand : role.operands) {
        if (!operand.buffer.valid() || operand.buffer.index() >= role.buffers.size())
          return fail("an operand of role `" + role_name(r) + "` names no buffer");
      }
      for (const dag::Wait& wait : role.waits) {
        if (!wait.stream.valid() || wait.stream.index() >= dag_.streams.size())
          return fail("a wait of role `" + role_name(r) + "` names no stream");
      }
      for (const dag::Buffer& buffer : role.buffers) {
        const bool fits = (!buffer.value.node.valid() ||
                           (buffer.value.node.index() < dag_.nodes.size() &&
                            buffer.value.index < facts_.outputs_of(buffer.value.node))) &&
                          (!buffer.bucket.valid() || buffer.bucket.index() < dag_.buckets.size());
        if (!fits) return fail("a buffer of role `" + role_name(r) + "` holds nothing that exists");
      }
    }
    plan_.first_action.push_back(static_cast<std::uint32_t>(total));
    for (const dag::Communicator& communicator : plan_.plan.communicators) {
      for (const dag::CommId comm : communicator.comms) {
        if (!comm.valid() || comm.index() >= dag_.comms.size())
          return fail("a communicator names a communication that does not exist", communicator.loc);
      }
      for (const DeviceSetId member : communicator.members) {
        if (!member.valid() || member.index() >= dag_.device_sets.size())
          return fail("a communicator names a device set that does not exist", communicator.loc);
      }
    }
    return true;
  }

  /// A role's devices are in a set if the role has every coordinate that the set fixes.
  bool in(const dag::Role& role, const DeviceSet& set) const {
    for (std::size_t axis = 0; axis < set.at.size(); ++axis) {
      if (set.at[axis] != DeviceSet::kWhole && set.at[axis] != role.at[axis]) return false;
    }
    return true;
  }

  /// Every device belongs to one role: the matching one with the most fixed coordinates. A role
  /// without devices, and a set with only some devices of a role, are refused.
  void coverage() {
    const std::vector<dag::Role>& roles = plan_.plan.roles;
    // Roles by the number of axes that they fix; most first.
    struct Group {
      AxisMask axes;
      std::unordered_map<std::uint64_t, std::uint32_t> roles;
    };
    std::vector<Group> groups;
    const auto key = [&](AxisMask axes, auto at) {
      std::uint64_t value = 0;
      for (std::size_t axis = 0; axis < dag_.mesh.axes.size(); ++axis) {
        if ((axes >> axis & 1) != 0)
          value = value * dag_.mesh.axes[axis].size + static_cast<std::uint64_t>(at(axis));
      }
      return value;
    };
    for (std::uint32_t r = 0; r < roles.size(); ++r) {
      const AxisMask axes =
          ~DeviceSet{roles[r].at}.whole_axes() & ((AxisMask{1} << dag_.mesh.axes.size()) - 1);
      auto group = std::find_if(groups.begin(), groups.end(),
                                [&](const Group& each) { return each.axes == axes; });
      if (group == groups.end()) group = groups.insert(groups.end(), Group{axes, {}});
      if (!group->roles
               .try_emplace(key(axes, [&](std::size_t axis) { return roles[r].at[axis]; }), r)
               .second) {
        facts_.sink.report(Code::wrong_roles, LocId(), "role `{}` has the devices of another role",
                           role_name(r));
        return;
      }
    }
    std::stable_sort(groups.begin(), groups.end(), [](const Group& a, const Group& b) {
      return __builtin_popcount(a.axes) > __builtin_popcount(b.axes);
    });
    std::vector<std::uint64_t> devices(roles.size(), 0);
    // Devices of each set that its roles have.
    std::vector<std::uint64_t> held(dag_.device_sets.size(), 0);
    const std::uint64_t total = dag_.mesh.devices();
    if (total > (1u << 24)) {
      facts_.sink.report(Code::wrong_roles, dag_.mesh.loc,
                         "a mesh of `{}` devices is too large to be checked", total);
      return;
    }
    find_uneven();
    std::vector<std::uint32_t> at(dag_.mesh.axes.size(), 0);
    for (std::uint64_t rank = 0; rank < total; ++rank) {
      std::uint32_t found = kNone;
      for (const Group& group : groups) {
        const auto role =
            group.roles.find(key(group.axes, [&](std::size_t axis) { return at[axis]; }));
        if (role == group.roles.end()) continue;
        found = role->second;
        break;
      }
      if (found == kNone) {
        facts_.sink.report(Code::wrong_roles, dag_.mesh.loc, "rank `{}` belongs to no role", rank);
        return;
      }
      ++devices[found];
      if (!uneven_.empty() && !extents_agree(found, rank, at)) return;
      for (std::size_t axis = at.size(); axis-- > 0;) {
        if (++at[axis] < dag_.mesh.axes[axis].size) break;
        at[axis] = 0;
      }
    }
    for (std::uint32_t r = 0; r < roles.size(); ++r) {
      if (devices[r] == 0)
        facts_.sink.report(Code::wrong_roles, LocId(), "role `{}` has no device of its own",
                           role_name(r));
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
        facts_.sink.report(Code::wrong_roles, dag_.mesh.loc,
                           "the roles that lie in `{}` have `{}` of its `{}` devices",
                           facts_.text(DeviceSetId::at(s)), held[s], set.devices(dag_.mesh));
        return;
      }
    }
  }

  /// Finds the dimensions of bodies that axes do not divide equally.
  void find_uneven() {
    for (const dag::Body& body : dag_.bodies) {
      for (const tensor::Value& value : body.graph.values()) {
        for (const tensor::Dim& dim : value.type.dims) {
          Divided divided{dim.extent, {}};
          std::int64_t shards = 1;
          for (const Layout::Axis& axis : dag_.context->layouts[value.layout].axes) {
            const std::size_t at = dag_.mesh.find(axis.name);
            if (at == dag_.mesh.axes.size() || axis.how != AxisLayout::sharded(dim.name)) continue;
            divided.axes.push_back(at);
            shards *= dag_.mesh.axes[at].size;
          }
          if (dim.extent % shards != 0) uneven_.insert(std::move(divided));
        }
      }
    }
  }

  /// The devices of a role have boxes of equal extents, because they run one program.
  bool extents_agree(std::uint32_t role, std::uint64_t rank, std::span<const std::uint32_t> at) {
    std::vector<std::int64_t> extents;
    for (const Divided& divided : uneven_) {
      std::int64_t extent = divided.extent;
      for (const std::size_t axis : divided.axes) {
        const auto members = static_cast<std::int64_t>(dag_.mesh.axes[axis].size);
        extent = extent / members + (at[axis] < extent % members ? 1 : 0);
      }
      extents.push_back(extent);
    }
    const auto [known, fresh] = extents_of_role_.try_emplace(role, extents);
    if (known->second == extents) return true;
    facts_.sink.report(Code::wrong_roles, dag_.mesh.loc,
                       "rank `{}` of role `{}` has boxes of other extents than the ranks before it",
                       rank, role_name(role));
    return false;
  }

  void actions() {
    std::vector<std::uint32_t> nodes_of(dag_.device_sets.size(), 0);
    for (const Node& node : dag_.nodes)
      nodes_of[node.devices.index()] += adds_in_place(node.kind) ? 0 : 1;
    std::vector<std::uint64_t> wanted(plan_.plan.roles.size(), 0);
    for (std::size_t s = 0; s < roles_in_.size(); ++s) {
      for (const std::uint32_t role : roles_in_[s]) wanted[role] += nodes_of[s];
    }
    std::vector<std::uint32_t> last(dag_.nodes.size(), kNone),
        held_by(dag_.device_sets.size(), kNone);
    plan_.role_of.reserve(plan_.first_action.back());
    plan_.steps.reserve(plan_.first_action.back());
    for (std::uint32_t r = 0; r < plan_.plan.roles.size(); ++r) {
      const dag::Role& role = plan_.plan.roles[r];
      for (std::uint32_t s = 0; s < held_by.size(); ++s) {
        if (in(role, dag_.device_sets[DeviceSetId(s)])) held_by[s] = r;
      }
      std::uint64_t own = 0;
      for (const Action& action : role.actions) {
        plan_.role_of.push_back(r);
        const Node& node = facts_.node(action.node);
        plan_.steps.push_back({action.node.value(),
                               is_communication(node.kind) ? node.comm.value() : kNone, 0,
                               action.position});
        if (adds_in_place(node.kind)) {
          facts_.sink.report(Code::wrong_actions, node.loc,
                             "role `{}` has an action for `{}`, and no device does work for it",
                             role_name(r), facts_.name(action.node));
          if (facts_.enough()) return;
          continue;
        }
        if (last[action.node.index()] == r) {
          facts_.sink.report(Code::wrong_actions, node.loc, "role `{}` runs `{}` twice",
                             role_name(r), facts_.name(action.node));
        } else if (held_by[node.devices.index()] != r) {
          facts_.sink.report(Code::wrong_actions, node.loc, "role `{}` runs `{}`, which is on `{}`",
                             role_name(r), facts_.name(action.node), facts_.text(node.devices));
        } else {
          ++own;
        }
        last[action.node.index()] = r;
        if (action.stream != node.stream) {
          facts_.sink.report(Code::wrong_stream, node.loc,
                             "role `{}` runs `{}` on stream `{}`, the node is on `{}`",
                             role_name(r), facts_.name(action.node),
                             facts_.text(dag_.streams[action.stream.index()].name),
                             facts_.text(dag_.streams[node.stream.index()].name));
        }
        if (facts_.enough()) return;
      }
      if (own == wanted[r]) continue;
      for (std::size_t i = 0; i < dag_.nodes.size() && !facts_.enough(); ++i) {
        const Node& node = dag_.nodes[i];
        if (last[i] != r && !adds_in_place(node.kind) && in(role, dag_.device_sets[node.devices])) {
          facts_.sink.report(Code::wrong_actions, node.loc, "role `{}` lacks `{}`", role_name(r),
                             facts_.name(NodeId::at(i)));
        }
      }
    }
  }

  /// Positions count per stream, and waits name actions that exist.
  void streams() {
    const std::size_t n = plan_.steps.size();
    plan_.action_at.resize(n);
    plan_.first_target.reserve(n + 1);
    plan_.first_target.push_back(0);
    std::vector<std::uint32_t> lane_of(dag_.streams.size(), kNone);  // of the current role
    for (std::uint32_t r = 0; r < plan_.plan.roles.size() && !facts_.enough(); ++r) {
      const dag::Role& role = plan_.plan.roles[r];
      const std::uint32_t first = plan_.first_action[r];
      const auto first_lane = static_cast<std::uint32_t>(plan_.lanes.size());
      plan_.first_lane.push_back(first_lane);
      Lane* lanes = nullptr;
      for (std::uint32_t i = 0; i < role.actions.size(); ++i) {
        const Action& action = role.actions[i];
        std::uint32_t& lane = lane_of[action.stream.index()];
        if (lane == kNone) {
          lane = static_cast<std::uint32_t>(plan_.lanes.size()) - first_lane;
          plan_.lanes.push_back({action.stream, 0, 0});
          lanes = plan_.lanes.data() + first_lane;
        }
        plan_.steps[first + i].lane = lane;
        std::uint32_t& size = lanes[lane].size;
        if (action.position != size) {
          facts_.sink.report(Code::wrong_actions, plan_.loc(first + i),
                             "`{}` says position `{}` in its stream, it is number `{}`",
                             plan_.name(first + i), action.position, size);
          return;
        }
        ++size;
      }
      std::uint32_t at = first;
      for (std::size_t k = first_lane; k < plan_.lanes.size(); ++k) {
        plan_.lanes[k].first = at;
        at += plan_.lanes[k].size;
      }
      for (std::uint32_t a = first; a < plan_.first_action[r + 1]; ++a)
        plan_.action_at[lanes[plan_.steps[a].lane].first + plan_.steps[a].position] = a;
      for (std::uint32_t i = 0; i < role.actions.size() && !facts_.enough(); ++i) {
        const Action& action = role.actions[i];
        for (std::uint32_t w = action.first_wait; w < action.first_wait + action.num_waits; ++w) {
          const dag::Wait& wait = role.waits[w];
          const std::uint32_t lane = lane_of[wait.stream.index()];
          if (wait.distance <= 1 && lane != kNone && wait.position < lanes[lane].size &&
              wait.stream != action.stream) {
            const std::uint32_t target = plan_.action_at[lanes[lane].first + wait.position];
            plan_.targets.push_back(target);
            if (wait.distance == 0 && target >= first + i) later(first + i, target);
            continue;
          }
          facts_.sink.report(Code::wrong_wait, plan_.loc(first + i),
                             "`{}` waits for action `{}` of stream `{}`, `{}` steps ago: {}",
                             plan_.name(first + i), wait.position,
                             facts_.text(dag_.streams[wait.stream.index()].name),
                             std::uint32_t{wait.distance},
                             wait.distance > 1              ? "a wait looks back one step at most"
                             : wait.stream == action.stream ? "a stream is in order anyway"
                                                            : "there is no such action");
        }
        plan_.first_target.push_back(static_cast<std::uint32_t>(plan_.targets.size()));
      }
      for (std::size_t k = first_lane; k < plan_.lanes.size(); ++k)
        lane_of[plan_.lanes[k].stream.index()] = kNone;
    }
    plan_.first_lane.push_back(static_cast<std::uint32_t>(plan_.lanes.size()));
  }

  /// Actions are enqueued in issue order, so the event of a later action would not be recorded yet.
  void later(std::uint32_t action, std::uint32_t target) {
    facts_.sink
        .report(Code::wrong_wait, plan_.loc(action),
                "`{}` waits for `{}`, which role `{}` issues after it", plan_.name(action),
                plan_.name(target), role_name(plan_.role_of[action]))
        .related(plan_.loc(target), "`{}` is here", plan_.name(target));
  }

  /// Every communication is in one communicator; at each member the order of actions is the
  /// communicator's.
  void communicators() {
    const auto& list = plan_.plan.communicators;
    std::vector<std::uint32_t> of_comm(dag_.comms.size(), kNone), number(dag_.comms.size(), 0);
    for (std::uint32_t c = 0; c < list.size() && !facts_.enough(); ++c) {
      const dag::Communicator& communicator = list[c];
      const bool pair = communicator.kind == dag::Communicator::Kind::pair;
      if (!communicator.stream.valid() || communicator.stream.index() >= dag_.streams.size()) {
        facts_.sink.report(Code::wrong_communicator, communicator.loc,
                           "a communicator has no stream");
        continue;
      }
      if (!pair && (communicator.window != 0 || communicator.min_window != 0)) {
        facts_.sink.report(Code::wrong_communicator, communicator.loc,
                           "a group has a window, which only pairs have");
        return;
      }
      for (std::uint32_t k = 0; k < communicator.comms.size(); ++k) {
        const dag::CommId id = communicator.comms[k];
        const dag::Comm& comm = dag_.comms[id.index()];
        const Node& first = facts_.node(comm.members[0]);
        if (of_comm[id.index()] != kNone) {
          facts_.sink.report(Code::wrong_communicator, first.loc,
                             "`{}` stands in two places of the communicators",
                             facts_.name(comm.members[0]));
          return;
        }
        of_comm[id.index()] = c;
        number[id.index()] = k;
        bool fits = pair == is_send(first.kind) &&
                    comm.members.size() == communicator.members.size() &&
                    communicator.axes == (pair ? 0 : comm.axes);
        for (std::size_t m = 0; fits && m < comm.members.size(); ++m) {
          fits = facts_.node(comm.members[m]).devices == communicator.members[m] &&
                 facts_.node(comm.members[m]).stream == communicator.stream;
        }
        if (!fits) {
          facts_.sink.report(Code::wrong_communicator, first.loc,
                             "`{}` does not have the members, axes or stream of its communicator",
                             facts_.name(comm.members[0]));
          return;
        }
      }
    }
    // Per role and communicator: the number that comes next.
    std::vector<std::uint32_t> next(list.size(), 0), role_stamp(list.size(), kNone);
    for (std::uint32_t a = 0; a < plan_.role_of.size() && !facts_.enough(); ++a) {
      const Action& action = plan_.action(a);
      const std::uint32_t comm = plan_.steps[a].comm;
      if (comm == kNone) {
        if (action.communicator.valid())
          facts_.sink.report(Code::wrong_communicator, plan_.loc(a),
                             "`{}` is no communication but names a communicator", plan_.name(a));
        continue;
      }
      const std::uint32_t c = of_comm[comm];
      if (c == kNone || action.communicator.value() != c) {
        facts_.sink.report(Code::wrong_communicator, plan_.loc(a),
                           "`{}` runs on another communicator than the one that lists it",
                           plan_.name(a));
        continue;
      }
      if (role_stamp[c] != plan_.role_of[a]) {
        role_stamp[c] = plan_.role_of[a];
        next[c] = 0;
      }
      if (number[comm] != next[c]) {
        const std::vector<dag::CommId>& comms = list[c].comms;
        const NodeId expected =
            dag_.comms[comms[std::min<std::size_t>(next[c], comms.size() - 1)].index()].members[0];
        facts_.sink
            .report(
                Code::wrong_communicator, plan_.loc(a),
                "role `{}` runs `{}` as number `{}` of its communicator, where the other member has `{}`",
                role_name(plan_.role_of[a]), plan_.name(a), next[c], facts_.name(expected))
            .related(facts_.loc(expected), "`{}` comes first here", facts_.name(expected));
        return;
      }
      ++next[c];
    }
  }

  PlanFacts& plan_;
  Facts& facts_;
  const Dag& dag_;
  std::vector<std::vector<std::uint32_t>> roles_in_;  // per device set in use
  /// A dimension and the axes that shard it, outermost first.
  struct Divided {
    std::int64_t extent = 0;
    std::vector<std::size_t> axes;
    friend auto operator<=>(const Divided&, const Divided&) = default;
  };
  std::set<Divided> uneven_;
  std::map<std::uint32_t, std::vector<std::int64_t>> extents_of_role_;
};

}  // namespace

bool check_plan_shape(PlanFacts& plan) { return Shape(plan).check(); }

}  // namespace piper::verify
