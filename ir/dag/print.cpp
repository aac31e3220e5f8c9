#include "ir/dag/print.h"

#include <algorithm>

#include "ir/dag/text_names.h"
#include "ir/directive/print.h"
#include "ir/directive/text_reader.h"
#include "llvm/ADT/DenseMap.h"

namespace piper::dag {

namespace {

using directive::print_device_set;
using directive::print_name;
using directive::print_number;
using directive::print_string;
using directive::print_type;

llvm::StringRef ref(std::string_view text) { return {text.data(), text.size()}; }

class Printer {
 public:
  Printer(const Dag& dag, llvm::raw_ostream& os) : dag_(dag), os_(os), symbols_(dag.context->symbols) {}

  void print(std::span<const directive::Directive> directives) {
    name_nodes();
    os_ << "pir 1 " << ref(level_name(dag_.level));
    if (dag_.forward_only) os_ << " forward_only";
    os_ << '\n';
    directive::print(dag_.settings, os_, *dag_.context);
    strategy_facts();
    model_facts();
    if (!directives.empty()) {
      os_ << "directives {\n";
      for (const directive::Directive& each : directives) {
        directive::print(each, os_, {*dag_.context, dag_.mesh, dag_.device_sets}, 2);
      }
      os_ << "}\n";
    }
    print_bodies(dag_, os_);
    graph();
    if (dag_.plan) plan(*dag_.plan);
  }

 private:
  void name_nodes() {
    starts_.reserve(dag_.nodes.size() + 1);
    llvm::raw_string_ostream all(names_);
    for (std::size_t i = 0; i < dag_.nodes.size(); ++i) {
      starts_.push_back(static_cast<std::size_t>(all.tell()));
      print_name(all, dag_.name(NodeId::at(i)));
    }
    starts_.push_back(static_cast<std::size_t>(all.tell()));
  }

  void node_name(NodeId id) { os_ << llvm::StringRef(names_).slice(starts_[id.index()], starts_[id.index() + 1]); }
  void symbol(Symbol name) { print_name(os_, symbols_.text(name)); }
  void devices(DeviceSetId set) { print_device_set(os_, dag_.device_sets[set], dag_.mesh, symbols_); }

  void port(Port port) {
    node_name(port.node);
    if (port.index > 0) os_ << ':' << port.index;
  }

  void location(LocId loc) {
    if (!loc.valid()) return;
    if (loc.index() >= locations_.size()) locations_.resize(loc.index() + 1);
    std::string& text = locations_[loc.index()];
    if (text.empty()) text = dag_.context->locations.print(loc);
    os_ << ' ' << text;
  }

  void axes(AxisMask mask) {
    bool first = true;
    for (std::size_t i = 0; i < dag_.mesh.axes.size(); ++i) {
      if ((mask >> i & 1) == 0) continue;
      if (!first) os_ << ", ";
      first = false;
      symbol(dag_.mesh.axes[i].name);
    }
  }

  void strategy_facts() {
    if (dag_.mesh.name.valid()) {
      os_ << "mesh ";
      symbol(dag_.mesh.name);
      os_ << '(';
      for (std::size_t i = 0; i < dag_.mesh.axes.size(); ++i) {
        if (i > 0) os_ << ", ";
        symbol(dag_.mesh.axes[i].name);
        os_ << ": " << dag_.mesh.axes[i].size;
      }
      os_ << ')';
      location(dag_.mesh.loc);
      os_ << '\n';
    }
    for (const SplitDim& dim : dag_.dims) {
      os_ << "split ";
      symbol(dim.of);
      os_ << " into ";
      symbol(dim.name);
      os_ << ": " << dim.extent;
      location(dim.loc);
      os_ << '\n';
    }
  }

  void model_facts() {
    for (std::size_t i = 0; i < dag_.params.size(); ++i) {
      os_ << "param ";
      symbol(dag_.params[i].name);
      os_ << ": ";
      print_type(os_, dag_.param_types[i], symbols_);
      constexpr std::string_view kInits[] = {"normal", "uniform", "zeros", "ones", "constant"};
      const tensor::Init& init = dag_.params[i].init;
      os_ << " = " << ref(kInits[static_cast<std::size_t>(init.kind)]) << '(';
      print_number(os_, init.scale);
      os_ << ')';
      location(dag_.params[i].loc);
      os_ << '\n';
    }
    for (std::size_t i = 0; i < dag_.inputs.size(); ++i) {
      os_ << "input ";
      symbol(dag_.inputs[i].name);
      os_ << ": ";
      print_type(os_, dag_.input_types[i], symbols_);
      location(dag_.inputs[i].loc);
      os_ << '\n';
    }
    for (const tensor::Loss& loss : dag_.losses) {
      os_ << "loss ";
      symbol(loss.name);
      os_ << ": " << loss.count;
      if (loss.mask) {
        os_ << " ignore " << std::int64_t{loss.mask->ignore} << " of ";
        symbol(dag_.inputs[loss.mask->targets.index()].name);
      }
      location(loss.loc);
      os_ << '\n';
    }
    for (const Chunk& chunk : dag_.chunks) {
      os_ << "chunk ";
      symbol(chunk.name);
      os_ << " of ";
      region(chunk.region);
      if (chunk.piece > 0) os_ << " piece " << chunk.piece;
      for (std::size_t pass = 0; pass < 4; ++pass) {
        if (!chunk.bodies[pass].valid()) continue;
        os_ << ' ' << ref(pass_name(static_cast<Pass>(pass))) << " @";
        symbol(dag_.bodies[chunk.bodies[pass].index()].name);
      }
      location(chunk.loc);
      os_ << '\n';
    }
    for (const Bucket& bucket : dag_.buckets) {
      os_ << "bucket ";
      symbol(bucket.name);
      os_ << " (";
      for (std::size_t i = 0; i < bucket.params.size(); ++i) {
        if (i > 0) os_ << ", ";
        symbol(dag_.params[bucket.params[i].index()].name);
      }
      os_ << ')';
      for (std::size_t i = 0; i < bucket.homes.size(); ++i) {
        os_ << (i == 0 ? " on " : ", ");
        devices(bucket.homes[i]);
      }
      if (bucket.reduce != 0) {
        os_ << " over ";
        axes(bucket.reduce);
      }
      location(bucket.loc);
      os_ << '\n';
    }
    for (const Stream& stream : dag_.streams) {
      os_ << "stream ";
      symbol(stream.name);
      if (stream.high_priority) os_ << " high_priority";
      if (stream.window) os_ << " window " << *stream.window;
      location(stream.loc);
      os_ << '\n';
    }
    for (const directive::Require& require : dag_.requirements) {
      directive::print(directive::Directive(require), os_, {*dag_.context, dag_.mesh, dag_.device_sets}, 0);
    }
    for (const directive::RankSteps& claim : dag_.claims) {
      os_ << "claim ";
      devices(claim.devices);
      location(claim.loc);
      os_ << '\n';
    }
  }

  void region(RegionId id) {
    if (!id.valid()) {
      os_ << "model";
      return;
    }
    std::vector<RegionId> path;
    for (RegionId each = id; each.valid(); each = dag_.regions.parent(each)) path.push_back(each);
    for (std::size_t i = path.size(); i-- > 0;) {
      if (symbols_.text(dag_.regions.name(path[i])) == "model") {
        os_ << "\"model\"";
      } else {
        symbol(dag_.regions.name(path[i]));
      }
      os_ << '[' << dag_.regions.index(path[i]) << ']';
      if (i > 0) os_ << '.';
    }
  }

  // ---- the graph -------------------------------------------------------------------------------------------------------

  void graph() {
    // `after` lists per node, in the order of the temporal edges.
    after_first_.assign(dag_.nodes.size() + 1, 0);
    for (const auto& [before, after] : dag_.temporal) ++after_first_[after.index() + 1];
    for (std::size_t i = 0; i < dag_.nodes.size(); ++i) after_first_[i + 1] += after_first_[i];
    after_.resize(dag_.temporal.size());
    std::vector<std::uint32_t> fill(after_first_.begin(), after_first_.end() - 1);
    for (const auto& [before, after] : dag_.temporal) after_[fill[after.index()]++] = before;

    std::vector<bool> seen(dag_.nodes.size(), false);
    bool ordered = dag_.order.size() == dag_.nodes.size();
    for (const NodeId id : dag_.order) {
      if (!ordered || id.index() >= seen.size() || seen[id.index()]) {
        ordered = false;
        break;
      }
      seen[id.index()] = true;
    }
    os_ << "graph {\n";
    for (std::size_t i = 0; i < dag_.nodes.size(); ++i) node(ordered ? dag_.order[i] : NodeId::at(i));
    os_ << "}\n";
    if (!ordered && dag_.level >= Level::ordered) {
      os_ << "order {\n";
      for (const NodeId id : dag_.order) {
        os_ << "  ";
        node_name(id);
        os_ << '\n';
      }
      os_ << "}\n";
    }
  }

  void node(NodeId id) {
    const Node& node = dag_.nodes[id.index()];
    os_ << "  ";
    node_name(id);
    os_ << " = ";
    head(node);
    operands(node);
    if (node.comm.valid()) members(id, node);
    if (node.num_outputs != implied_outputs(dag_, node)) os_ << " outputs " << node.num_outputs;
    if (node.devices.valid()) {
      os_ << " on ";
      devices(node.devices);
    }
    if (node.cut != 0) {
      os_ << " cut ";
      axes(node.cut);
    }
    if (node.stream.valid()) {
      os_ << " stream ";
      symbol(dag_.streams[node.stream.index()].name);
    }
    if (id.index() < dag_.group.size() && dag_.group[id.index()] != Dag::kNoGroup) os_ << " group " << dag_.group[id.index()];
    for (std::uint32_t i = after_first_[id.index()]; i < after_first_[id.index() + 1]; ++i) {
      os_ << (i == after_first_[id.index()] ? " after " : ", ");
      node_name(after_[i]);
    }
    location(node.loc);
    os_ << '\n';
  }

  void chunk_of(const Node& node) {
    os_ << ' ' << ref(pass_name(node.pass)) << ' ';
    symbol(dag_.chunks[node.chunk.index()].name);
  }

  void head(const Node& node) {
    if (node.kind == NodeKind::chunk) {
      os_ << ref(pass_name(node.pass)) << ' ';
      symbol(dag_.chunks[node.chunk.index()].name);
    } else {
      os_ << ref(kind_name(node.kind));
      switch (node.kind) {
        case NodeKind::load:
          os_ << ' ';
          symbol(dag_.inputs[node.subject].name);
          break;
        case NodeKind::report:
          os_ << ' ';
          if (node.subject == Node::kNormReport) {
            os_ << "norm";
          } else {
            os_ << "loss ";
            symbol(dag_.losses[node.subject].name);
          }
          break;
        case NodeKind::all_reduce:
        case NodeKind::all_gather:
          if (!node.bucket.valid() && node.subject < dag_.losses.size()) {
            os_ << " loss ";
            symbol(dag_.losses[node.subject].name);
          } else if (node.sums_counts()) {
            os_ << " count ";
            symbol(dag_.losses[node.subject - Node::kCounts].name);
          }
          break;
        case NodeKind::count:
          os_ << ' ';
          symbol(dag_.losses[node.subject].name);
          break;
        default:
          break;
      }
      if (node.chunk.valid()) chunk_of(node);
      if (node.bucket.valid()) {
        os_ << " bucket ";
        symbol(dag_.buckets[node.bucket.index()].name);
      }
    }
    bool any = false;
    for (std::size_t i = 0; i < dag_.dims.size() && i < kMaxSplitDims; ++i) {
      if (node.instance.at[i] == Instance::kNone) continue;
      os_ << (any ? ", " : " [");
      any = true;
      symbol(dag_.dims[i].name);
      os_ << ": " << node.instance.at[i];
    }
    if (any) os_ << ']';
    if (node.body.valid()) {
      os_ << " @";
      symbol(dag_.bodies[node.body.index()].name);
    }
  }

  void source(const Input& edge) {
    if (!edge.source.node.valid()) {
      os_ << "_:" << edge.source.index;
    } else {
      port(edge.source);
    }
  }

  void operands(const Node& node) {
    const std::span<const Input> inputs = dag_.inputs_of(node);
    if (inputs.empty()) return;
    constexpr llvm::StringRef kClasses[] = {"data ", "param ", "grad "};
    os_ << " (";
    std::uint32_t expected = 0;
    for (std::size_t i = 0; i < inputs.size();) {
      std::size_t end = i + 1;
      while (end < inputs.size() && inputs[end].port == inputs[i].port) ++end;
      if (i > 0) os_ << ", ";
      if (inputs[i].port != expected) os_ << inputs[i].port << ": ";
      expected = inputs[i].port + 1;
      if (inputs[i].cls != EdgeClass::data) os_ << kClasses[static_cast<std::size_t>(inputs[i].cls)];
      for (std::size_t j = i; j < end; ++j) {
        if (j > i) os_ << " + ";
        if (inputs[j].cls != inputs[i].cls) os_ << kClasses[static_cast<std::size_t>(inputs[j].cls)];
        source(inputs[j]);
      }
      i = end;
    }
    os_ << ')';
  }

  void members(NodeId id, const Node& node) {
    const Comm& comm = dag_.comms[node.comm.index()];
    if (node.kind == NodeKind::send || node.kind == NodeKind::recv) {
      const bool send = node.kind == NodeKind::send;
      const std::size_t peer = send ? 1 : 0;
      if (comm.members.size() > peer) {
        os_ << (send ? " to " : " from ");
        node_name(comm.members[peer]);
      }
    } else {
      os_ << " over ";
      if (comm.axes == 0) {
        os_ << "()";
      } else {
        axes(comm.axes);
      }
      if (comm.members.size() != 1 || comm.members[0] != id) {
        os_ << " with (";
        for (std::size_t i = 0; i < comm.members.size(); ++i) {
          if (i > 0) os_ << ", ";
          node_name(comm.members[i]);
        }
        os_ << ')';
      }
    }
    if (comm.loc.valid() && comm.loc != node.loc && (comm.members.empty() || comm.members[0] == id)) {
      os_ << " at";
      location(comm.loc);
    }
  }

  // ---- the plan --------------------------------------------------------------------------------------------------------

  void plan(const Plan& plan) {
    const std::vector<std::string> communicators = communicator_names(dag_, plan);
    for (std::size_t i = 0; i < plan.communicators.size(); ++i) communicator(plan.communicators[i], communicators[i]);
    for (const Role& each : plan.roles) role(each, communicators);
  }

  void communicator(const Communicator& communicator, const std::string& name) {
    os_ << "communicator ";
    print_name(os_, name);
    const bool pair = communicator.kind == Communicator::Kind::pair;
    os_ << (pair ? " pair (" : " group (");
    for (std::size_t i = 0; i < communicator.members.size(); ++i) {
      if (i > 0) os_ << ", ";
      devices(communicator.members[i]);
    }
    os_ << ')';
    if (communicator.axes != 0) {
      os_ << " over ";
      axes(communicator.axes);
    }
    if (communicator.stream.valid()) {
      os_ << " stream ";
      symbol(dag_.streams[communicator.stream.index()].name);
    }
    if (pair) os_ << " window " << communicator.window << " least " << communicator.least_window;
    location(communicator.loc);
    os_ << " {\n";
    for (const CommId comm : communicator.comms) {
      os_ << "  ";
      node_name(dag_.comms[comm.index()].members.front());
      os_ << '\n';
    }
    os_ << "}\n";
  }

  void role(const Role& role, const std::vector<std::string>& communicators) {
    os_ << "role ";
    symbol(role.name);
    os_ << " at ";
    print_device_set(os_, {role.at}, dag_.mesh, symbols_);
    os_ << " arena " << role.arena_bytes << " live " << role.live_bytes << " {\n";
    std::vector<std::string> names = buffer_names(role);
    for (std::size_t i = 0; i < role.buffers.size(); ++i) buffer(role.buffers[i], names[i]);
    // Waits name the action they are for: the first one at that position.
    llvm::DenseMap<std::uint64_t, std::uint32_t> at;
    llvm::DenseMap<NodeId, std::uint32_t> first;
    at.reserve(static_cast<unsigned>(role.actions.size()));
    first.reserve(static_cast<unsigned>(role.actions.size()));
    for (std::size_t i = 0; i < role.actions.size(); ++i) {
      const Action& action = role.actions[i];
      at.try_emplace(std::uint64_t{action.stream.value()} << 32 | action.position, static_cast<std::uint32_t>(i));
      first.try_emplace(action.node, static_cast<std::uint32_t>(i));
    }
    std::vector<std::uint32_t> count(dag_.streams.size(), 0);
    for (const Action& action : role.actions) {
      os_ << "  ";
      node_name(action.node);
      os_ << " on ";
      symbol(dag_.streams[action.stream.index()].name);
      if (action.position != count[action.stream.index()]) os_ << " at " << action.position;
      count[action.stream.index()] = action.position + 1;
      if (action.communicator.valid()) {
        os_ << " via ";
        print_name(os_, communicators[action.communicator.index()]);
      }
      for (std::uint32_t i = 0; i < action.num_waits; ++i) {
        const Wait& wait = role.waits[action.first_wait + i];
        os_ << (i == 0 ? " after " : ", ");
        if (wait.distance > 0) os_ << "previous ";
        if (wait.distance > 1) os_ << wait.distance << ' ';
        const auto target = at.find(std::uint64_t{wait.stream.value()} << 32 | wait.position);
        if (target != at.end() && first.lookup(role.actions[target->second].node) == target->second) {
          node_name(role.actions[target->second].node);
        } else {
          symbol(dag_.streams[wait.stream.index()].name);
          os_ << '#' << wait.position;
        }
      }
      action_operands(role, action, names);
      os_ << '\n';
    }
    os_ << "}\n";
  }

  void buffer(const Buffer& buffer, const std::string& name) {
    os_ << "  buffer ";
    os_ << name << " = " << ref(buffer_class_name(buffer.cls));
    if (buffer.bucket.valid()) {
      os_ << " bucket ";
      symbol(dag_.buckets[buffer.bucket.index()].name);
    }
    os_ << " at " << buffer.offset << " bytes " << buffer.bytes << '\n';
  }

  /// What a buffer is called in the operands: `%F.stage0.mb0:0` for a value, `%gradients.stage0.0`, `%workspace`; a repeated one gets `#2`.
  std::vector<std::string> buffer_names(const Role& role) {
    std::vector<std::string> names;
    names.reserve(role.buffers.size());
    llvm::StringMap<std::uint32_t> used;
    for (const Buffer& buffer : role.buffers) {
      std::string name = "%";
      llvm::raw_string_ostream os(name);
      if (buffer.value.node.valid()) {
        const std::size_t node = buffer.value.node.index();
        os << llvm::StringRef(names_).slice(starts_[node], starts_[node + 1]) << ':' << buffer.value.index;
      } else {
        std::string plain(buffer_class_name(buffer.cls));
        if (buffer.bucket.valid()) {
          plain += '.';
          plain += symbols_.text(dag_.buckets[buffer.bucket.index()].name);
        }
        print_name(os, plain);
      }
      os.flush();
      const std::uint32_t count = ++used[name];
      if (count > 1) name += "#" + std::to_string(count);
      names.push_back(std::move(name));
    }
    return names;
  }

  void action_operands(const Role& role, const Action& action, const std::vector<std::string>& names) {
    const Node& node = dag_.nodes[action.node.index()];
    const std::uint32_t inputs = input_ports(dag_, node);
    constexpr llvm::StringRef kOpen[] = {" reads (", " writes (", " uses ("};
    int open = -1;
    for (std::uint32_t i = 0; i < action.num_operands; ++i) {
      const Operand& operand = role.operands[action.first_operand + i];
      const int section = i < inputs ? 0 : i < inputs + node.num_outputs ? 1 : 2;
      if (section == open) {
        os_ << ", ";
      } else {
        if (open >= 0) os_ << ')';
        os_ << kOpen[section];
        open = section;
      }
      if (operand.accumulate) os_ << '+';
      os_ << names[operand.buffer.index()];
      if (operand.offset != 0) os_ << " + " << operand.offset;
    }
    if (action.num_operands > 0) os_ << ')';
  }

  const Dag& dag_;
  llvm::raw_ostream& os_;
  const SymbolTable& symbols_;
  std::string names_;                 // of all nodes, as they stand in the text
  std::vector<std::size_t> starts_;
  std::vector<std::string> locations_;
  std::vector<std::uint32_t> after_first_;
  std::vector<NodeId> after_;
};

}  // namespace

void print(const Dag& dag, llvm::raw_ostream& os, std::span<const directive::Directive> directives) {
  Printer(dag, os).print(directives);
}

std::string print(const Dag& dag, std::span<const directive::Directive> directives) {
  std::string text;
  llvm::raw_string_ostream os(text);
  print(dag, os, directives);
  os.flush();
  return text;
}

}  // namespace piper::dag
