#include "tests/passes/plan_checks.h"

#include <algorithm>
#include <map>
#include <vector>

#include "ir/dag/local_type.h"
#include "ir/dag/terms.h"

namespace piper::test {

using namespace dag;

namespace {

constexpr std::uint32_t kNone = 0xFFFFFFFFu;

std::vector<std::uint32_t> positions(const Dag& dag) {
  std::vector<std::uint32_t> position(dag.nodes.size(), kNone);
  for (std::uint32_t i = 0; i < dag.order.size(); ++i) position[dag.order[i].index()] = i;
  return position;
}

/// Bytes of the arena that one action reads or writes.
struct Access {
  std::int64_t begin = 0, end = 0;
  bool write = false;
  Port value;  // of data inputs: the value read; of outputs: the value written; else invalid
  bool overlaps(const Access& other) const { return begin < other.end && other.begin < end; }
};

/// Bytes of the host's arena count on behind all of the device's.
std::int64_t begin_of(const Role& role, const Operand& operand) {
  const Buffer& buffer = role.buffers[operand.buffer.index()];
  return buffer.offset + operand.offset + (is_on_host(buffer.cls) ? role.arena_bytes : 0);
}

std::vector<Access> accesses_of(const Dag& dag, const Role& role, const Action& action) {
  std::vector<Access> accesses;
  const Node& node = dag.node(action.node);
  std::uint32_t next = action.first_operand;
  const auto add = [&](std::int64_t bytes, bool write, Port value) {
    const Operand& operand = role.operands[next++];
    const std::int64_t begin = begin_of(role, operand);
    accesses.push_back({begin, begin + bytes, write, value});
  };
  for (const Input& input : dag.inputs_of(node)) {
    if (input.cls == EdgeClass::param && !runs_body(node.kind)) {
      // A block that the device keeps.
      add(role.buffers[role.operands[next].buffer.index()].bytes, false, {});
    } else if (input.cls == EdgeClass::param) {
      add(dag.param_types[dag.bodies[node.body.index()].inputs[input.port].param.index()].bytes(),
          false, {});
    } else {
      add(planned_bytes(dag, input.source), false, input.source);
    }
  }
  for (std::uint32_t i = 0; i < node.num_outputs; ++i)
    add(planned_bytes(dag, {action.node, i}), true, {action.node, i});
  // Workspace, optimizer, scalars: the whole buffer.
  while (next < action.first_operand + action.num_operands) {
    const Buffer& buffer = role.buffers[role.operands[next].buffer.index()];
    add(buffer.bytes, buffer.cls != BufferClass::scalars, {});
  }
  return accesses;
}

/// Happens-before of one rank over two steps: before[x][y] when x has ended before y starts. Step 1
/// follows at index n.
class Before {
 public:
  explicit Before(const Role& role)
      : n_(role.actions.size()),
        words_((2 * n_ + 63) / 64),
        rows_(2 * n_, std::vector<std::uint64_t>(words_, 0)) {
    // Actions stand in issue order, so one pass over predecessors closes the relation.
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::size_t> at;
    for (std::size_t a = 0; a < n_; ++a)
      at[{role.actions[a].stream.value(), role.actions[a].position}] = a;
    std::map<std::uint32_t, std::size_t> last;
    for (std::size_t x = 0; x < 2 * n_; ++x) {
      const Action& action = role.actions[x % n_];
      if (const auto found = last.find(action.stream.value()); found != last.end())
        add(found->second, x);
      last[action.stream.value()] = x;
      for (std::uint32_t w = 0; w < action.num_waits; ++w) {
        const Wait& wait = role.waits[action.first_wait + w];
        if (wait.distance > x / n_) continue;
        const std::size_t target =
            (x / n_ - wait.distance) * n_ + at.at({wait.stream.value(), wait.position});
        if (target >= x) forward_ = true;
        add(target, x);
      }
    }
  }
  /// Some wait is for a later action.
  bool forward() const { return forward_; }
  bool operator()(std::size_t x, std::size_t y) const {
    return (rows_[y][x / 64] >> (x % 64) & 1) != 0;
  }

 private:
  void add(std::size_t x, std::size_t y) {
    rows_[y][x / 64] |= std::uint64_t{1} << (x % 64);
    for (std::size_t w = 0; w < words_; ++w) rows_[y][w] |= rows_[x][w];
  }
  std::size_t n_, words_;
  std::vector<std::vector<std::uint64_t>> rows_;
  bool forward_ = false;
};

std::string check_role(const Dag& dag, const Role& role,
                       const std::vector<std::uint32_t>& position) {
  const std::string name(dag.context->text(role.name));
  const std::size_t n = role.actions.size();
  std::map<std::uint32_t, std::uint32_t> count;
  for (std::size_t a = 0; a < n; ++a) {
    const Action& action = role.actions[a];
    if (a > 0 && position[role.actions[a - 1].node.index()] >= position[action.node.index()])
      return name + ": issue order differs from the global one";
    if (count[action.stream.value()]++ != action.position)
      return name + ": positions do not count up";
    if (action.stream != dag.node(action.node).stream)
      return name + ": an action is on another stream than its node";
  }
  for (const Buffer& buffer : role.buffers) {
    if (buffer.offset < 0 || buffer.offset % 64 != 0 ||
        buffer.offset + buffer.bytes >
            (is_on_host(buffer.cls) ? role.host_bytes : role.arena_bytes))
      return name + ": a buffer outside the arena";
  }
  if (role.live_bytes > role.arena_bytes) return name + ": more live than there is";

  const Before before(role);
  if (before.forward()) return name + ": waits for a later action";
  std::vector<std::vector<Access>> accesses;
  for (const Action& action : role.actions) accesses.push_back(accesses_of(dag, role, action));
  const auto text = [&](std::size_t x) {
    return dag.name(role.actions[x % n].node) + (x < n ? "" : "'");
  };
  for (std::size_t y = 0; y < 2 * n; ++y) {
    for (std::size_t x = 0; x < y; ++x) {
      if (before(x, y) || before(y, x)) continue;
      for (const Access& a : accesses[x % n]) {
        for (const Access& b : accesses[y % n]) {
          if (a.overlaps(b) && (a.write || b.write))
            return name + ": " + text(x) + " and " + text(y) + " race";
        }
      }
    }
  }
  // A value that is read was last written by its producer; a sum by each of its terms, where it is
  // read.
  std::map<NodeId, std::size_t> at;
  for (std::size_t a = 0; a < n; ++a) at[role.actions[a].node] = a;
  for (std::size_t reader = n; reader < 2 * n; ++reader) {
    const Node& node = dag.node(role.actions[reader % n].node);
    std::uint32_t operand = role.actions[reader % n].first_operand;
    for (const Input& input : dag.inputs_of(node)) {
      const Operand& place = role.operands[operand++];
      if (input.cls == EdgeClass::param) continue;
      const std::int64_t begin = begin_of(role, place);
      const Access read{begin, begin + planned_bytes(dag, input.source), false, {}};
      std::vector<Port> makers;
      for_each_term(dag, input.source, [&](Port term) { makers.push_back(term); });
      std::size_t last = 0;
      for (const Port maker : makers) {
        const std::size_t producer = n + at.at(maker.node);
        if (!before(producer, reader))
          return name + ": " + text(reader) + " does not wait for " + text(producer);
        const std::vector<Access>& writes = accesses[producer % n];
        const bool there = std::any_of(writes.begin(), writes.end(), [&](const Access& access) {
          return access.write && access.value == maker && access.begin == read.begin;
        });
        if (!there)
          return name + ": " + text(reader) + " reads elsewhere than " + text(producer) + " writes";
        last = std::max(last, producer);
      }
      for (std::size_t other = 0; other < 2 * n; ++other) {
        const bool makes = other >= n && std::any_of(makers.begin(), makers.end(), [&](Port maker) {
                             return maker.node == role.actions[other % n].node;
                           });
        if (makes || other == reader || before(other, n + at.at(makers.front().node)) ||
            before(reader, other))
          continue;
        const std::vector<Access>& writes = accesses[other % n];
        const bool over = std::any_of(writes.begin(), writes.end(), [&](const Access& access) {
          return access.write && access.overlaps(read);
        });
        if (over)
          return name + ": " + text(other) + " overwrites what " + text(reader) + " reads from " +
                 text(last);
      }
    }
  }
  // The first contribution of a step writes, the others add.
  std::map<std::pair<std::uint32_t, std::int64_t>, bool> written;  // by buffer and offset
  for (const Action& action : role.actions) {
    const Node& node = dag.node(action.node);
    if (!runs_body(node.kind)) continue;
    const Body& body = dag.bodies[node.body.index()];
    std::uint32_t inputs = node.num_inputs == 0 ? 0 : dag.inputs_of(node).back().port + 1;
    for (std::uint32_t i = 0; i < node.num_outputs; ++i) {
      if (body.outputs[i].kind != PortKind::grad) continue;
      const Operand& operand = role.operands[action.first_operand + inputs + i];
      bool& first = written[{operand.buffer.value(), operand.offset}];
      if (operand.accumulate != first)
        return name + ": " + dag.name(action.node) +
               " adds where it should write, or the other way";
      first = true;
    }
  }
  return "";
}

/// Starts and ends of all actions of one step, with rendezvous and windows: acyclic?
std::string check_progress(const Dag& dag) {
  const Plan& plan = *dag.plan;
  std::vector<std::size_t> base;  // per role: its first action in the numbering of all
  std::size_t total = 0;
  for (const Role& role : plan.roles) {
    base.push_back(total);
    total += role.actions.size();
  }
  std::vector<std::vector<std::size_t>> next(2 * total);  // start of action i: 2i, end: 2i + 1
  std::vector<std::vector<std::size_t>> of_node(dag.nodes.size());
  for (std::size_t r = 0; r < plan.roles.size(); ++r) {
    const Role& role = plan.roles[r];
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::size_t> at;
    for (std::size_t a = 0; a < role.actions.size(); ++a) {
      at[{role.actions[a].stream.value(), role.actions[a].position}] = base[r] + a;
      of_node[role.actions[a].node.index()].push_back(base[r] + a);
    }
    for (std::size_t a = 0; a < role.actions.size(); ++a) {
      const Action& action = role.actions[a];
      const std::size_t id = base[r] + a;
      next[2 * id].push_back(2 * id + 1);
      if (action.position > 0)
        next[2 * at.at({action.stream.value(), action.position - 1}) + 1].push_back(2 * id);
      for (std::uint32_t w = 0; w < action.num_waits; ++w) {
        const Wait& wait = role.waits[action.first_wait + w];
        if (wait.distance == 0)
          next[2 * at.at({wait.stream.value(), wait.position}) + 1].push_back(2 * id);
      }
    }
  }
  for (const Comm& comm : dag.comms) {
    for (const NodeId x : comm.members) {
      for (const NodeId y : comm.members) {
        for (const std::size_t a : of_node[x.index()]) {
          for (const std::size_t b : of_node[y.index()]) next[2 * a].push_back(2 * b + 1);
        }
      }
    }
  }
  std::vector<std::uint32_t> position = positions(dag);
  for (const Communicator& communicator : plan.communicators) {
    for (std::size_t j = 1; j < communicator.comms.size(); ++j) {
      const auto front = [&](std::size_t i) {
        return position[dag.comms[communicator.comms[i].index()].members.front().index()];
      };
      if (front(j - 1) >= front(j))
        return "a communicator's operations do not stand in the global order";
    }
    if (communicator.kind != Communicator::Kind::pair) continue;
    for (std::size_t j = communicator.window; j < communicator.comms.size(); ++j) {
      const NodeId recv = dag.comms[communicator.comms[j].index()].members.back();
      const NodeId earlier =
          dag.comms[communicator.comms[j - communicator.window].index()].members.back();
      NodeId reader;
      for (std::size_t i = 0; i < dag.nodes.size(); ++i) {
        for (const Input& input : dag.inputs_of(dag.nodes[i])) {
          if (input.source.node == earlier && input.cls != EdgeClass::param &&
              (!reader.valid() || position[i] < position[reader.index()]))
            reader = NodeId::at(i);
        }
      }
      if (!reader.valid()) continue;
      for (const std::size_t a : of_node[reader.index()]) {
        for (const std::size_t b : of_node[recv.index()]) next[2 * a + 1].push_back(2 * b);
      }
    }
  }
  std::vector<std::uint32_t> missing(2 * total, 0);
  for (const auto& list : next) {
    for (const std::size_t to : list) ++missing[to];
  }
  std::vector<std::size_t> ready;
  for (std::size_t v = 0; v < 2 * total; ++v) {
    if (missing[v] == 0) ready.push_back(v);
  }
  std::size_t done = 0;
  while (!ready.empty()) {
    const std::size_t v = ready.back();
    ready.pop_back();
    ++done;
    for (const std::size_t to : next[v]) {
      if (--missing[to] == 0) ready.push_back(to);
    }
  }
  return done == 2 * total ? "" : "the rendezvous graph has a cycle";
}

}  // namespace

std::string check_order(const Dag& dag) {
  if (dag.order.size() != dag.nodes.size())
    return "the order has another number of nodes than the DAG";
  const std::vector<std::uint32_t> position = positions(dag);
  for (std::size_t i = 0; i < dag.nodes.size(); ++i) {
    if (position[i] == kNone) return dag.name(NodeId::at(i)) + " is not in the order";
    std::uint32_t last = 0, port = kNone, latest = 0;
    for (const Input& input : dag.inputs_of(dag.nodes[i])) {
      if (input.cls == EdgeClass::param) continue;
      if (position[input.source.node.index()] >= position[i])
        return dag.name(NodeId::at(i)) + " stands before " + dag.name(input.source.node);
      if (input.port == port && position[input.source.node.index()] < last)
        return dag.name(NodeId::at(i)) + ": contributions out of order";
      port = input.port;
      last = position[input.source.node.index()];
      latest = std::max(latest, last);
    }
    if (dag.nodes[i].stream.valid() == adds_in_place(dag.nodes[i].kind))
      return dag.name(NodeId::at(i)) + " has no stream, or should have none";
    for (std::uint32_t p = latest + 1; p < position[i] && adds_in_place(dag.nodes[i].kind); ++p) {
      if (!adds_in_place(dag.node(dag.order[p]).kind))
        return dag.name(NodeId::at(i)) + " stands apart from its last term";
    }
  }
  for (const auto& [before, after] : dag.temporal) {
    if (position[before.index()] >= position[after.index()])
      return dag.name(after) + " stands before " + dag.name(before);
  }
  for (const Comm& comm : dag.comms) {
    for (std::size_t i = 1; i < comm.members.size(); ++i) {
      if (position[comm.members[i].index()] != position[comm.members[0].index()] + i)
        return dag.name(comm.members[i]) + " stands apart from " + dag.name(comm.members[0]);
    }
  }
  return "";
}

std::string check_plan(const Dag& dag) {
  const std::vector<std::uint32_t> position = positions(dag);
  for (const Role& role : dag.plan->roles) {
    if (std::string found = check_role(dag, role, position); !found.empty()) return found;
  }
  return check_progress(dag);
}

}  // namespace piper::test
