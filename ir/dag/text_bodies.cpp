#include "ir/dag/parse_parts.h"
#include "ir/tensor/graph_text.h"
#include "ir/text/print_text.h"
#include "llvm/ADT/DenseMap.h"

namespace piper::dag {

namespace {

/// Names of the values that connect ports: the name of the first port that carries the value, with
/// a number if two values would share it.
class GlobalNames {
 public:
  explicit GlobalNames(const Dag& dag) {
    llvm::StringMap<std::uint32_t> used;
    for (const Body& body : dag.bodies) {
      for (const std::vector<BodyPort>* ports : {&body.inputs, &body.outputs}) {
        for (const BodyPort& port : *ports) {
          if (!port.global_value.valid()) continue;
          const auto [entry, fresh] = names_.try_emplace(port.global_value.value());
          if (!fresh) continue;
          std::string name(dag.context->text(body.graph.value(port.value).name));
          const std::uint32_t count = ++used[name];
          if (count > 1) {
            do {
              entry->second = name + ".no" + std::to_string(used[name]++);
            } while (!used.try_emplace(entry->second, 1).second);
          } else {
            entry->second = name;
          }
        }
      }
    }
  }
  /// Empty for a port that connects to nothing.
  std::string_view operator()(const BodyPort& port) const {
    const auto found = names_.find(port.global_value.value());
    return port.global_value.valid() && found != names_.end() ? std::string_view(found->second)
                                                              : std::string_view();
  }

 private:
  llvm::DenseMap<std::uint32_t, std::string> names_;
};

void print_ports(const Dag& dag, llvm::raw_ostream& os, const Body& body,
                 const std::vector<BodyPort>& ports, const GlobalNames& globals) {
  const SymbolTable& symbols = dag.context->symbols;
  os << '(';
  for (std::size_t i = 0; i < ports.size(); ++i) {
    const BodyPort& port = ports[i];
    os << (i > 0 ? ",\n    %" : "%");
    const std::string_view name = symbols.text(body.graph.value(port.value).name);
    print_name(os, name);
    os << ": " << port_kind_name(port.kind) << ' ';
    os << tensor::print(body.graph.type(port.value), symbols);
    print_layout(os, body.graph.value(port.value).layout, *dag.context);
    if (port.param.valid()) {
      os << " param ";
      print_name(os, symbols.text(dag.params[port.param.index()].name));
    }
    if (port.loss.valid()) {
      os << " loss ";
      print_name(os, symbols.text(dag.losses[port.loss.index()].name));
    }
    if (port.input.valid()) {
      os << " input ";
      print_name(os, symbols.text(dag.inputs[port.input.index()].name));
    }
    const std::string_view global = globals(port);
    if (global != name) {
      os << " as ";
      if (global.empty()) {
        os << "_";
      } else if (global == "_") {
        print_string(os, global);
      } else {
        print_name(os, global);
      }
    }
  }
  os << ')';
}

struct PendingPort {
  BodyPort port;
  std::string name;
  tensor::Type type;
  LayoutId layout;
  TextReader::Token where;
};

std::vector<PendingPort> parse_ports(TextReader& reader, const Dag& dag, NodeNames& names) {
  std::vector<PendingPort> ports;
  reader.expect("(");
  reader.list(")", [&] {
    PendingPort each;
    each.where = reader.peek();
    reader.expect("%");
    each.name = std::string(reader.name("a value"));
    reader.expect(":");
    const TextReader::Token kind = reader.peek();
    const std::string_view kind_text = reader.name("a kind of port");
    constexpr std::size_t kPortKinds = static_cast<std::size_t>(PortKind::count) + 1;
    std::size_t k = 0;
    while (k < kPortKinds && kind_text != port_kind_name(static_cast<PortKind>(k))) ++k;
    if (k == kPortKinds) {
      return reader.fail(
          Code::unknown_dag_name, kind,
          "`{}` is no kind of port: `data`, `saved`, `param`, `grad`, `loss_sum` or `count`",
          kind.text);
    }
    each.port.kind = static_cast<PortKind>(k);
    each.type = reader.type();
    each.layout = reader.layout(&dag.mesh, each.type);
    if (reader.accept("param"))
      each.port.param = tensor::ParamId(NodeNames::find(reader, names.params, "a parameter"));
    if (reader.accept("loss"))
      each.port.loss = tensor::LossId(NodeNames::find(reader, names.losses, "a loss"));
    if (reader.accept("input"))
      each.port.input = tensor::InputId(NodeNames::find(reader, names.inputs, "an input"));
    std::string global = each.name;
    bool connects = true;
    if (reader.accept("as")) {
      connects = !reader.at("_");
      global = std::string(reader.name("a value"));
    }
    if (connects) {
      const auto next = static_cast<std::uint32_t>(names.globals.size());
      each.port.global_value =
          tensor::ValueId(names.globals.try_emplace(global, next).first->second);
    }
    if ((each.port.kind == PortKind::param || each.port.kind == PortKind::grad) &&
        !each.port.param.valid()) {
      reader.fail(Code::malformed_dag_text, each.where,
                  "a port of kind `{}` needs `param` and a name", kind.text);
    }
    if ((each.port.kind == PortKind::loss_sum || each.port.kind == PortKind::count) &&
        !each.port.loss.valid()) {
      reader.fail(Code::malformed_dag_text, each.where,
                  "a port of kind `{}` needs `loss` and a name", kind.text);
    }
    ports.push_back(std::move(each));
  });
  return ports;
}

}  // namespace

void print_bodies(const Dag& dag, llvm::raw_ostream& os, LocationText& locations) {
  const GlobalNames globals(dag);
  for (const Body& body : dag.bodies) {
    os << "body @";
    print_name(os, dag.context->text(body.name));
    print_ports(dag, os, body, body.inputs, globals);
    os << "\n    -> ";
    print_ports(dag, os, body, body.outputs, globals);
    if (!body.graph.nodes().empty()) {
      os << " {\n";
      tensor::print_lines(body.graph, os, locations);
      os << '}';
    }
    os << '\n';
  }
}

void parse_body(TextReader& reader, Dag& dag, NodeNames& names) {
  Body body{{}, tensor::Graph(reader.context()), {}, {}};
  reader.expect("@");
  body.name = reader.symbol("a body");
  std::vector<PendingPort> inputs = parse_ports(reader, dag, names);
  reader.expect("->");
  std::vector<PendingPort> outputs = parse_ports(reader, dag, names);
  if (reader.failed()) return;
  const bool has_lines = reader.accept("{");
  if (has_lines) {
    tensor::parse_lines(reader, body.graph, &dag.mesh);
    reader.expect("}");
    if (reader.failed()) return;
  }
  llvm::DenseMap<Symbol, tensor::ValueId> values;
  for (std::size_t i = 0; i < body.graph.values().size(); ++i) {
    values.try_emplace(body.graph.values()[i].name, tensor::ValueId::at(i));
  }
  for (std::vector<PendingPort>* ports : {&inputs, &outputs}) {
    for (PendingPort& each : *ports) {
      const Symbol name = reader.context().symbol(each.name);
      const auto found = values.find(name);
      if (found == values.end()) {
        if (has_lines)
          return reader.fail(Code::unknown_dag_name, each.where, "the body has no value `%{}`",
                             each.name);
        // A body with a signature only: every port is a value without a definition.
        each.port.value = body.graph.add_leaf(each.type, name);
        body.graph.set_layout(each.port.value, each.layout);
        values.try_emplace(name, each.port.value);
      } else {
        each.port.value = found->second;
        if (body.graph.value(found->second).layout != each.layout) {
          return reader.fail(Code::misnamed_dag_value, each.where,
                             "the signature says another layout of `%{}` than the body", each.name);
        }
        if (body.graph.type(found->second) != each.type) {
          return reader.fail(
              Code::misnamed_dag_value, each.where,
              "the signature says that `%{}` is `{}`, the body that it is `{}`", each.name,
              tensor::print(each.type, reader.context().symbols),
              tensor::print(body.graph.type(found->second), reader.context().symbols));
        }
      }
      (ports == &inputs ? body.inputs : body.outputs).push_back(each.port);
    }
  }
  dag.bodies.push_back(std::move(body));
}

}  // namespace piper::dag
