#include "backend/kernel/fuse_items.h"

#include <algorithm>

namespace piper::backend {

using tensor::CodeClass;
using tensor::Node;
using tensor::NodeId;
using tensor::Op;
using tensor::ValueId;

namespace {

/// Finds the values that need items or calls, the memory in which they are made, and the items.
class Items {
 public:
  Items(const dag::Body& body, const Axes& axes, Target target, Fusion& out)
      : body_(body), graph_(body.graph), axes_(axes), target_(target), out_(out) {}
  void run();

 private:
  void find_live();
  void find_output_ports();
  void find_addends(const std::vector<int>& uses, const std::vector<int>& ports);
  void find_rounded(const std::vector<int>& uses, const std::vector<int>& ports);
  void add_node(NodeId id);
  void add_call(NodeId id);
  /// Whether an op reads operand `i` at other positions than its own element, so that it must be in
  /// memory.
  static bool reads_elsewhere(Op op, std::size_t i) {
    return op == Op::lookup ? i == 0 : moves(op);
  }
  static bool moves(Op op) {
    return tensor::info(op).code_class == CodeClass::index && op != Op::lookup &&
           op != Op::lookup_grad;
  }
  /// The kind of the item, and its axes.
  void set_kind(Item& item);
  void add_copy(int port);
  void add_addend(NodeId id);
  void read(Item& item, ValueId operand);
  void read_memory(Item& item, ValueId operand);
  bool leaf(ValueId value) const { return !graph_.value(value).def.valid(); }
  Op op_of(ValueId value) const { return graph_.node(graph_.value(value).def).op; }
  bool is_view(ValueId value) const {
    return !leaf(value) && (op_of(value) == Op::permute || op_of(value) == Op::broadcast);
  }
  void need_memory(ValueId value) {
    const ValueId memory = axes_.memory(value);
    if (axes_.constant(memory) || is_view(memory)) copied_[memory.index()] = true;
  }

  const dag::Body& body_;
  const tensor::Graph& graph_;
  const Axes& axes_;
  const Target target_;
  Fusion& out_;
  std::vector<bool> live_;  // nodes
  // Nodes: the cast whose result a product gives, or invalid; empty: none.
  std::vector<ValueId> rounded_;
  std::vector<bool> copied_;            // values: views and constants that must be in memory
  std::vector<int> item_of_, call_of_;  // per value: its maker
  std::vector<int> copies_;             // ports that are written by a copy
};

void Items::find_live() {
  live_.assign(graph_.nodes().size(), false);
  const auto mark = [&](ValueId value) {
    if (!leaf(value)) live_[graph_.value(value).def.index()] = true;
  };
  for (const dag::BodyPort& port : body_.outputs) mark(port.value);
  for (std::size_t i = graph_.nodes().size(); i-- > 0;) {
    if (!live_[i]) continue;
    for (ValueId operand : graph_.operands(graph_.nodes()[i])) mark(operand);
  }
}

void Items::find_output_ports() {
  const std::size_t count = graph_.values().size();
  out_.output_port.assign(count, -1);
  copied_.assign(count, false);
  std::vector<int> uses(count, 0), ports(count, 0);
  for (std::size_t i = 0; i < graph_.nodes().size(); ++i) {
    const Node& node = graph_.nodes()[i];
    if (!live_[i] || node.op == Op::rename) continue;
    for (ValueId operand : graph_.operands(node)) {
      ++uses[axes_.memory(operand).index()];
      ++uses[axes_.memory(axes_.source(operand)).index()];
    }
  }
  for (const dag::BodyPort& port : body_.outputs) ++ports[axes_.memory(port.value).index()];

  for (std::size_t p = 0; p < body_.outputs.size(); ++p) {
    const dag::BodyPort& port = body_.outputs[p];
    const ValueId value = axes_.memory(port.value);
    const int number = static_cast<int>(p);
    if (!leaf(value) && port.kind != dag::PortKind::grad && out_.output_port[value.index()] < 0)
      out_.output_port[value.index()] = number;
  }
  for (std::size_t p = 0; p < body_.outputs.size(); ++p) {
    const dag::BodyPort& port = body_.outputs[p];
    const ValueId value = axes_.memory(port.value);
    const int number = static_cast<int>(p);
    if (!leaf(value) && out_.output_port[value.index()] == number) {
      need_memory(value);
      continue;
    }
    const bool direct = port.kind == dag::PortKind::grad && !leaf(value) &&
                        ports[value.index()] == 1 && uses[value.index()] == 0 &&
                        op_of(value) != Op::attend && op_of(value) != Op::attend_grad &&
                        op_of(value) != Op::contract_add;
    if (direct) {
      out_.output_port[value.index()] = number;
      need_memory(value);
    } else {
      copies_.push_back(number);
    }
  }

  find_addends(uses, ports);
  if (target_ != Target::cpu) find_rounded(uses, ports);

  for (std::size_t i = 0; i < graph_.nodes().size(); ++i) {
    const Node& node = graph_.nodes()[i];
    if (!live_[i]) continue;
    const auto operands = graph_.operands(node);
    const auto code = tensor::info(node.op).code_class;
    if (code == CodeClass::library) {
      for (ValueId operand : operands.first(node.op == Op::contract_add ? 2 : operands.size()))
        need_memory(operand);
    }
    for (std::size_t o = 0; o < operands.size(); ++o) {
      if (reads_elsewhere(node.op, o)) need_memory(operands[o]);
    }
    if (node.op == Op::rename && axes_.source(graph_.result(node)) == graph_.result(node) &&
        !axes_.constant(graph_.result(node))) {
      need_memory(operands[0]);
    }
  }
}

/// An addend that is a product without other readers is made in the memory of the sum (each reader
/// of a value's own memory counts twice).
void Items::find_addends(const std::vector<int>& uses, const std::vector<int>& ports) {
  out_.into.assign(graph_.values().size(), ValueId());
  for (std::size_t i = 0; i < graph_.nodes().size(); ++i) {
    const Node& node = graph_.nodes()[i];
    if (!live_[i] || node.op != Op::contract_add) continue;
    const ValueId addend = axes_.memory(graph_.operands(node)[2]);
    const bool product =
        !leaf(addend) && (op_of(addend) == Op::contract || op_of(addend) == Op::contract_add);
    if (product && uses[addend.index()] == 2 && ports[addend.index()] == 0)
      out_.into[addend.index()] = graph_.result(node);
  }
}

/// A bf16 product that only a cast reads gives the result of the cast: the library rounds its sums
/// as it writes them. Impossible if it adds to its result.
void Items::find_rounded(const std::vector<int>& uses, const std::vector<int>& ports) {
  rounded_.assign(graph_.nodes().size(), ValueId());
  for (std::size_t i = 0; i < graph_.nodes().size(); ++i) {
    const Node& cast = graph_.nodes()[i];
    if (!live_[i] || cast.op != Op::cast ||
        graph_.type(graph_.result(cast)).dtype != tensor::DType::bf16)
      continue;
    const ValueId product = axes_.memory(graph_.operands(cast)[0]), result = graph_.result(cast);
    const int output_port = out_.output_port[result.index()];
    if (leaf(product) || op_of(product) != Op::contract || uses[product.index()] != 2 ||
        ports[product.index()] != 0)
      continue;
    if (graph_.type(graph_.operands(graph_.node(graph_.value(product).def))[0]).dtype !=
        tensor::DType::bf16)
      continue;
    if (output_port >= 0 &&
        body_.outputs[static_cast<std::size_t>(output_port)].kind == dag::PortKind::grad)
      continue;
    rounded_[graph_.value(product).def.index()] = result;
    live_[i] = false;
  }
}

void Items::read(Item& item, ValueId operand) {
  if (axes_.constant(operand)) return;
  const ValueId source = axes_.source(operand);
  item.reads.push_back(source);
  if (leaf(source)) return;
  if (const ValueId memory = axes_.memory(source); memory != source)
    return read_memory(item, memory);
  if (const int maker = item_of_[source.index()]; maker >= 0) item.registers.push_back(maker);
  if (const int maker = call_of_[source.index()]; maker >= 0) item.calls.push_back(maker);
}

void Items::read_memory(Item& item, ValueId operand) {
  const ValueId memory = axes_.memory(operand);
  if (leaf(memory)) return;
  if (const int maker = item_of_[memory.index()]; maker >= 0) item.memory.push_back(maker);
  if (const int maker = call_of_[memory.index()]; maker >= 0) item.calls.push_back(maker);
}

void Items::add_call(NodeId id) {
  const Node& node = graph_.node(id);
  LibraryNode call{id, {}, {}, rounded_.empty() ? ValueId() : rounded_[id.index()]};
  auto operands = graph_.operands(node);
  if (node.op == Op::contract_add && !out_.into[axes_.memory(operands[2]).index()].valid()) {
    call.items.push_back(static_cast<int>(out_.items.size()));
    add_addend(id);
    operands = operands.first(2);
  }
  for (ValueId operand : operands) {
    const ValueId memory = axes_.memory(operand);
    if (const int maker = item_of_[memory.index()]; maker >= 0) call.items.push_back(maker);
    if (const int maker = call_of_[memory.index()]; maker >= 0) call.calls.push_back(maker);
  }
  const int number = static_cast<int>(out_.calls.size());
  for (std::size_t r = 0; r < node.num_results; ++r)
    call_of_[(call.rounded.valid() ? call.rounded : graph_.result(node, r)).index()] = number;
  out_.calls.push_back(std::move(call));
}

void Items::add_addend(NodeId id) {
  Item item;
  item.kind = Item::Kind::addend;
  item.node = id;
  item.result = graph_.result(graph_.node(id));
  item.space = axes_.space(item.result);
  read(item, graph_.operands(graph_.node(id))[2]);
  out_.items.push_back(std::move(item));
}

void Items::add_node(NodeId id) {
  const Node& node = graph_.node(id);
  if (tensor::info(node.op).code_class == CodeClass::library) return add_call(id);

  const auto operands = graph_.operands(node);
  const ValueId result = graph_.result(node);
  const bool constant = axes_.constant(result).has_value();
  const bool view = node.op == Op::rename || node.op == Op::permute || node.op == Op::broadcast;
  if (node.op == Op::rename || ((constant || view) && !copied_[result.index()])) return;

  Item item;
  item.node = id;
  item.result = result;
  item.space = axes_.space(result);
  if (!constant) {
    set_kind(item);
    for (std::size_t i = 0; i < operands.size(); ++i) {
      if (reads_elsewhere(node.op, i)) {
        read_memory(item, operands[i]);
      } else {
        read(item, operands[i]);
      }
    }
  }
  item_of_[result.index()] = static_cast<int>(out_.items.size());
  out_.items.push_back(std::move(item));
}

void Items::set_kind(Item& item) {
  const Node& node = graph_.node(item.node);
  const auto operands = graph_.operands(node);
  const auto axes_named = [&](ValueId value) {
    Space axes;
    for (Symbol dim : node.attrs.dims) axes.push_back(axes_.axis(value, dim));
    std::sort(axes.begin(), axes.end());
    return axes;
  };
  const auto axes_of_rows = [&](ValueId table) {
    const auto all = axes_.of(table);
    Space columns(all.begin() + 1, all.end());
    std::sort(columns.begin(), columns.end());
    return columns;
  };
  switch (node.op) {
    case Op::sum:
      item.space = axes_.space(operands[0]);
      item.summed = axes_named(operands[0]);
      item.kind = item.summed.empty() ? Item::Kind::pointwise : Item::Kind::sum;
      break;
    case Op::lookup:
      item.kind = Item::Kind::gather;
      item.columns = axes_of_rows(operands[0]);
      break;
    case Op::lookup_grad:
      item.kind = Item::Kind::scatter;
      item.space = axes_.space(operands[1]);
      item.columns = axes_of_rows(item.result);
      break;
    default:
      if (moves(node.op)) item.kind = Item::Kind::moved;
      if (tensor::info(node.op).code_class != CodeClass::reduction) break;
      item.kind = Item::Kind::along;
      item.space = axes_.space(operands[0]);
      item.columns = axes_named(operands[0]);
      break;
  }
}

void Items::add_copy(int port) {
  const ValueId value = body_.outputs[static_cast<std::size_t>(port)].value;
  Item item;
  item.port = port;
  item.space = axes_.space(value);
  // A materialised view or constant is copied from memory only if the memory belongs to another
  // value; its registers are available anyway.
  read(item, value);
  out_.items.push_back(std::move(item));
}

void Items::run() {
  find_live();
  find_output_ports();
  item_of_.assign(graph_.values().size(), -1);
  call_of_.assign(graph_.values().size(), -1);
  for (std::size_t i = 0; i < graph_.nodes().size(); ++i) {
    if (live_[i]) add_node(NodeId::at(i));
  }
  for (int port : copies_) add_copy(port);
}

}  // namespace

void find_items(const dag::Body& body, const Axes& axes, Target target, Fusion& out) {
  Items(body, axes, target, out).run();
}

}  // namespace piper::backend
