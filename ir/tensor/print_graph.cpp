#include "ir/tensor/attr_fields.h"
#include "ir/tensor/graph_text.h"
#include "ir/text/print_text.h"

namespace piper::tensor {

std::string value_text(const Graph& graph, ValueId value) {
  return "%" + name_text(graph.context().text(graph.value(value).name));
}

std::string init_text(const Init& init) {
  std::string text(kInitNames[static_cast<std::size_t>(init.kind)]);
  if (has_scale(init.kind)) text += "(" + number_text(init.scale) + ")";
  return text;
}

namespace {

class GraphPrinter {
 public:
  GraphPrinter(const Graph& graph, llvm::raw_ostream& os, LocationText& locations,
               LineOptions options)
      : graph_(graph),
        symbols_(graph.context().symbols),
        os_(os),
        locations_(locations),
        options_(options) {}

  void lines() {
    const auto values = graph_.values();
    std::vector<std::uint32_t> param(values.size(), kNone), input(values.size(), kNone);
    for (std::size_t i = 0; i < graph_.params.size(); ++i)
      param[graph_.params[i].value.index()] = static_cast<std::uint32_t>(i);
    for (std::size_t i = 0; i < graph_.inputs.size(); ++i)
      input[graph_.inputs[i].value.index()] = static_cast<std::uint32_t>(i);
    std::vector<bool> count(values.size(), false);
    for (const Loss& loss : graph_.losses) {
      if (loss.mask) count[loss.mask->count.index()] = true;
    }
    std::size_t loss = 0;
    for (std::size_t v = 0; v < values.size(); ++v) {
      const Value& value = values[v];
      if (value.def.valid()) {
        if (value.result > 0) continue;
        // Losses stand before the backward pass begins.
        const Node& node = graph_.node(value.def);
        if (node.pass != Pass::F) print_losses(loss);
        print_node(node);
      } else if (param[v] != kNone) {
        const Param& p = graph_.params[param[v]];
        begin(ValueId::at(v), "weight ");
        os_ << ' ' << quoted(p.name) << ' ' << init_text(p.init) << (p.frozen ? " frozen" : "");
        if (p.rate != 1) os_ << " rate " << number_text(p.rate);
        if (p.decay != 1) os_ << " decay " << number_text(p.decay);
        end(p.loc);
      } else if (input[v] != kNone) {
        const Input& in = graph_.inputs[input[v]];
        begin(ValueId::at(v), "input ");
        os_ << ' ' << quoted(in.name);
        end(in.loc);
      } else {
        begin(ValueId::at(v), count[v] ? "count " : "port ");
        end({});
      }
    }
    print_losses(loss);
    for (const ParamGrad& grad : graph_.grads) {
      os_.indent(options_.indent) << "grad " << quoted(graph_.params[grad.param.index()].name)
                                  << ' ';
      value(grad.value);
      end({});
    }
  }

 private:
  static constexpr std::uint32_t kNone = 0xFFFFFFFFu;

  std::string quoted(Symbol name) const { return quoted_text(symbols_.text(name)); }
  void name(Symbol name) { print_name(os_, symbols_.text(name)); }
  void value(ValueId value) {
    os_ << '%';
    name(graph_.value(value).name);
  }
  void type_of(ValueId value) {
    os_ << print(graph_.type(value), symbols_);
    print_layout(os_, graph_.value(value).layout, graph_.context());
  }

  void begin(ValueId defined, llvm::StringRef word) {
    os_.indent(options_.indent);
    value(defined);
    os_ << " = " << word;
    type_of(defined);
  }
  void end(LocId loc) {
    locations_.print(os_, loc);
    os_ << '\n';
  }

  void print_region(RegionId region) {
    const RegionTable& table = graph_.regions;
    if (table.parent(region).valid()) {
      print_region(table.parent(region));
      os_ << '.';
    }
    // A dot separates the path, so a name that holds one is quoted.
    const std::string_view text = symbols_.text(table.name(region));
    os_ << (text.find('.') == std::string_view::npos ? name_text(text) : quoted_text(text)) << '['
        << table.index(region) << ']';
  }

  void print_attrs(const Node& node) {
    if (info(node.op).attributes == AttrField::kNone) return;
    const char* separator = " {";
    const auto print = [&](AttrField field, llvm::StringRef name, const auto& value) {
      if ((info(node.op).attributes & field) == 0 || is_absent(value)) return;
      os_ << separator << name << ": ";
      separator = ", ";
      attr(value);
    };
    attr_fields(print, node.attrs);
    os_ << '}';
  }
  template <typename Value>
  static bool is_absent(const Value&) {
    return false;
  }
  static bool is_absent(const std::optional<std::int32_t>& value) { return !value; }

  void attr(const std::vector<Symbol>& dims) {
    os_ << '[';
    for (std::size_t i = 0; i < dims.size(); ++i) {
      if (i > 0) os_ << ", ";
      name(dims[i]);
    }
    os_ << ']';
  }
  /// `[16: 0.5, 64: 1]`: the end and the number of each.
  void attr(const Pieces& pieces) {
    os_ << '[';
    for (std::size_t i = 0; i < pieces.ends.size(); ++i)
      os_ << (i > 0 ? ", " : "") << pieces.ends[i] << ": " << number_text(pieces.numbers[i]);
    os_ << ']';
  }
  void attr(double value) { print_number(os_, value); }
  void attr(std::int64_t value) { os_ << value; }
  void attr(const std::optional<std::int32_t>& value) { os_ << std::int64_t{*value}; }
  void attr(bool value) { os_ << (value ? "true" : "false"); }
  void attr(DType value) { os_ << dtype_name(value); }
  void attr(const Type& value) { os_ << print(value, symbols_); }
  void attr(Symbol value) { os_ << quoted(value); }

  void print_node(const Node& node) {
    os_.indent(options_.indent);
    for (std::size_t i = 0; i < node.num_results; ++i) {
      if (i > 0) os_ << ", ";
      value(graph_.result(node, i));
    }
    os_ << " = " << info(node.op).name << '(';
    bool first = true;
    for (const ValueId operand : graph_.operands(node)) {
      if (!first) os_ << ", ";
      first = false;
      value(operand);
    }
    os_ << ')';
    print_attrs(node);
    for (std::size_t i = 0; i < node.num_results; ++i) {
      os_ << (i == 0 ? " : " : ", ");
      type_of(graph_.result(node, i));
    }
    os_ << " @" << pass_name(node.pass);
    if (node.region.valid() && (options_.all_regions || !node.origin.valid() ||
                                graph_.node(node.origin).region != node.region)) {
      os_ << " region ";
      print_region(node.region);
    }
    if (node.origin.valid()) {
      os_ << " of ";
      value(graph_.result(graph_.node(node.origin)));
    }
    end(node.loc);
  }

  void print_losses(std::size_t& next) {
    for (; next < graph_.losses.size(); ++next) {
      const Loss& loss = graph_.losses[next];
      os_.indent(options_.indent) << "loss " << quoted(loss.name) << " elements ";
      value(loss.elements);
      os_ << " sum ";
      value(loss.sum);
      os_ << " count " << loss.count;
      if (loss.mask) {
        os_ << " ignore " << std::int64_t{loss.mask->ignore} << " of ";
        value(graph_.inputs[loss.mask->targets.index()].value);
        os_ << " leaves ";
        value(loss.mask->count);
      }
      end(loss.loc);
    }
  }

  const Graph& graph_;
  const SymbolTable& symbols_;
  llvm::raw_ostream& os_;
  LocationText& locations_;
  const LineOptions options_;
};

}  // namespace

void print_lines(const Graph& graph, llvm::raw_ostream& os, LocationText& locations,
                 LineOptions options) {
  GraphPrinter(graph, os, locations, options).lines();
}

std::string print(const Graph& graph, LocationForm form, bool all_regions) {
  std::string text;
  llvm::raw_string_ostream os(text);
  LocationText locations(graph.context().locations, form);
  os << "tensor " << name_text(graph.name) << " {\n";
  print_lines(graph, os, locations, {.indent = 2, .all_regions = all_regions});
  os << "}\n";
  locations.print_table(os);
  os.flush();
  return text;
}

}  // namespace piper::tensor
