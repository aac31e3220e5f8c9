#include "ir/dag/print_plan.h"

#include "ir/dag/field_writer.h"
#include "ir/dag/text_names.h"
#include "ir/directive/print.h"
#include "ir/text/print_text.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/StringMap.h"

namespace piper::dag {

NamePrinter::NamePrinter(const Dag& dag, llvm::raw_ostream& os)
    : dag_(dag), os_(os), symbols_(dag.context->symbols), locations_(dag.context->locations) {
  starts_.reserve(dag_.nodes.size() + 1);
  llvm::raw_string_ostream all(names_);
  for (std::size_t i = 0; i < dag_.nodes.size(); ++i) {
    starts_.push_back(static_cast<std::size_t>(all.tell()));
    print_name(all, dag_.name(NodeId::at(i)));
  }
  starts_.push_back(static_cast<std::size_t>(all.tell()));
}

void NamePrinter::symbol(Symbol name) { print_name(os_, symbols_.text(name)); }

void NamePrinter::devices(DeviceSetId set) {
  print_device_set(os_, dag_.device_sets[set], dag_.mesh, symbols_);
}

void NamePrinter::port(Port port) {
  node_name(port.node);
  if (port.index > 0) os_ << ':' << port.index;
}

void NamePrinter::axes(AxisMask mask) {
  bool first = true;
  for (std::size_t i = 0; i < dag_.mesh.axes.size(); ++i) {
    if ((mask >> i & 1) == 0) continue;
    if (!first) os_ << ", ";
    first = false;
    symbol(dag_.mesh.axes[i].name);
  }
}

namespace {

class PlanPrinter {
 public:
  explicit PlanPrinter(NamePrinter& names)
      : names_(names),
        dag_(names.dag()),
        os_(names.stream()),
        symbols_(dag_.context->symbols),
        fields_(names) {}

  void print(const Plan& plan) {
    const std::vector<std::string> communicators = communicator_names(dag_, plan);
    for (std::size_t i = 0; i < plan.communicators.size(); ++i)
      communicator(plan.communicators[i], communicators[i]);
    for (const Role& each : plan.roles) role(each, communicators);
  }

 private:
  void communicator(const Communicator& communicator, const std::string& name) {
    os_ << "communicator ";
    print_name(os_, name);
    communicator_fields(fields_, communicator);
    os_ << " {\n";
    for (const CommId comm : communicator.comms) {
      os_ << "  ";
      names_.node_name(dag_.comms[comm.index()].members.front());
      os_ << '\n';
    }
    os_ << "}\n";
  }

  void role(const Role& role, const std::vector<std::string>& communicators) {
    os_ << "role ";
    names_.symbol(role.name);
    os_ << " at ";
    print_device_set(os_, {role.at}, dag_.mesh, symbols_);
    role_fields(fields_, role);
    os_ << " {\n";
    std::vector<std::string> names = buffer_names(role);
    for (std::size_t i = 0; i < role.buffers.size(); ++i) buffer(role.buffers[i], names[i]);
    // Waits name the action that they wait for: the first one at that position.
    llvm::DenseMap<std::uint64_t, std::uint32_t> at;
    llvm::DenseMap<NodeId, std::uint32_t> first;
    at.reserve(static_cast<unsigned>(role.actions.size()));
    first.reserve(static_cast<unsigned>(role.actions.size()));
    for (std::size_t i = 0; i < role.actions.size(); ++i) {
      const Action& action = role.actions[i];
      at.try_emplace(std::uint64_t{action.stream.value()} << 32 | action.position,
                     static_cast<std::uint32_t>(i));
      first.try_emplace(action.node, static_cast<std::uint32_t>(i));
    }
    std::vector<std::uint32_t> count(dag_.streams.size(), 0);
    for (const Action& action : role.actions) {
      os_ << "  ";
      names_.node_name(action.node);
      os_ << " on ";
      names_.symbol(dag_.streams[action.stream.index()].name);
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
        if (wait.distance > 1) os_ << unsigned{wait.distance} << ' ';
        const auto target = at.find(std::uint64_t{wait.stream.value()} << 32 | wait.position);
        if (target != at.end() &&
            first.lookup(role.actions[target->second].node) == target->second) {
          names_.node_name(role.actions[target->second].node);
        } else {
          names_.symbol(dag_.streams[wait.stream.index()].name);
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
    os_ << name << " = " << buffer_class_name(buffer.cls);
    if (buffer.bucket.valid()) {
      os_ << " bucket ";
      names_.symbol(dag_.buckets[buffer.bucket.index()].name);
    }
    buffer_fields(fields_, buffer);
    os_ << '\n';
  }

  /// The name of a buffer in the operands: `%F.stage0.mb0:0` for a value, `%gradients.stage0.0`,
  /// `%workspace`; a repeated one gets `#2`.
  std::vector<std::string> buffer_names(const Role& role) {
    std::vector<std::string> names;
    names.reserve(role.buffers.size());
    llvm::StringMap<std::uint32_t> used;
    for (const Buffer& buffer : role.buffers) {
      std::string name = "%";
      llvm::raw_string_ostream os(name);
      if (buffer.value.node.valid()) {
        os << names_.node_text(buffer.value.node) << ':' << buffer.value.index;
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

  void action_operands(const Role& role, const Action& action,
                       const std::vector<std::string>& names) {
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

  NamePrinter& names_;
  const Dag& dag_;
  llvm::raw_ostream& os_;
  const SymbolTable& symbols_;
  FieldWriter fields_;
};

}  // namespace

void print_plan(const Plan& plan, NamePrinter& names) { PlanPrinter(names).print(plan); }

}  // namespace piper::dag
