#include <algorithm>
#include <charconv>

#include "ir/tensor/graph_text.h"

namespace piper::tensor {

std::string number_text(double number) {
  char text[32];
  const auto end = std::to_chars(text, text + sizeof text, number).ptr;
  return std::string(text, end);
}

std::string quoted_text(std::string_view text) {
  static constexpr char kHex[] = "0123456789abcdef";
  std::string quoted = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      quoted += '\\';
      quoted += c;
    } else if (byte < 0x20 || byte == 0x7F) {
      quoted += "\\x";
      quoted += kHex[byte >> 4];
      quoted += kHex[byte & 15];
    } else {
      quoted += c;
    }
  }
  return quoted + '"';
}

std::string name_text(std::string_view name) {
  const auto letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '$';
  };
  const auto inner = [&](char c) {
    return letter(c) || (c >= '0' && c <= '9') || c == '.' || c == '-';
  };
  const bool plain =
      !name.empty() && letter(name.front()) && std::all_of(name.begin(), name.end(), inner);
  return plain ? std::string(name) : quoted_text(name);
}

std::string value_text(const Graph& graph, ValueId value) {
  return "%" + name_text(graph.context().text(graph.value(value).name));
}

std::string init_text(const Init& init) {
  switch (init.kind) {
    case Init::Kind::normal: return "normal(" + number_text(init.scale) + ")";
    case Init::Kind::uniform: return "uniform(" + number_text(init.scale) + ")";
    case Init::Kind::constant: return "constant(" + number_text(init.scale) + ")";
    case Init::Kind::zeros: return "zeros";
    case Init::Kind::ones: return "ones";
  }
  return {};
}

std::string layout_text(const Context& context, LayoutId layout) {
  return "<" +
         piper::print(context.layouts[layout], context.symbols,
                      [](std::string_view name) { return name_text(name); }) +
         ">";
}

namespace {

class GraphPrinter {
 public:
  GraphPrinter(const Graph& graph, PrintOptions options)
      : graph_(graph), options_(options), indent_(options.indent, ' ') {}

  std::string lines() {
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
        begin(ValueId::at(v), "weight ", value.type);
        text_ += " " + quoted(p.name) + " " + init_text(p.init) + (p.frozen ? " frozen" : "");
        if (p.rate != 1) text_ += " rate " + number_text(p.rate);
        if (p.decay != 1) text_ += " decay " + number_text(p.decay);
        end(p.loc);
      } else if (input[v] != kNone) {
        const Input& in = graph_.inputs[input[v]];
        begin(ValueId::at(v), "input ", value.type);
        text_ += " " + quoted(in.name);
        end(in.loc);
      } else {
        begin(ValueId::at(v), count[v] ? "count " : "port ", value.type);
        end({});
      }
    }
    print_losses(loss);
    for (const ParamGrad& grad : graph_.grads) {
      text_ += indent_ + "grad " + quoted(graph_.params[grad.param.index()].name) + " " +
               value_text(graph_, grad.value);
      end({});
    }
    return std::move(text_);
  }

 private:
  static constexpr std::uint32_t kNone = 0xFFFFFFFFu;

  std::string quoted(Symbol name) const { return quoted_text(graph_.context().text(name)); }
  std::string name(Symbol name) const { return name_text(graph_.context().text(name)); }

  void begin(ValueId value, std::string_view what, const Type& type) {
    text_ += indent_ + value_text(graph_, value) + " = ";
    text_ += what;
    print_type(type);
    print_layout(value);
  }
  void print_layout(ValueId value) {
    if (const LayoutId layout = graph_.value(value).layout; !layout.replicated())
      text_ += layout_text(graph_.context(), layout);
  }
  void end(LocId loc) {
    if (options_.locations && loc.valid()) text_ += " " + graph_.context().locations.print(loc);
    text_ += '\n';
  }

  void print_type(const Type& type) {
    text_ += dtype_name(type.dtype);
    text_ += '[';
    for (std::size_t i = 0; i < type.dims.size(); ++i) {
      if (i > 0) text_ += ", ";
      text_ += name(type.dims[i].name) + ": " + std::to_string(type.dims[i].extent);
      if (type.dims[i].sampled) text_ += '*';
    }
    text_ += ']';
  }

  void print_region(RegionId region) {
    const RegionTable& table = graph_.regions;
    if (table.parent(region).valid()) {
      print_region(table.parent(region));
      text_ += '.';
    }
    // A dot separates the path, so a name that holds one is quoted.
    const std::string_view text = graph_.context().text(table.name(region));
    text_ += text.find('.') == std::string_view::npos ? name_text(text) : quoted_text(text);
    text_ += "[" + std::to_string(table.index(region)) + "]";
  }

  void print_dims(std::string_view field, const std::vector<Symbol>& dims) {
    text_ += field;
    text_ += ": [";
    for (std::size_t i = 0; i < dims.size(); ++i) {
      if (i > 0) text_ += ", ";
      text_ += name(dims[i]);
    }
    text_ += ']';
  }

  /// `pieces: [16: 0.5, 64: 1]`: the end and the number of each.
  void print_pieces(const Pieces& pieces) {
    text_ += "pieces: [";
    for (std::size_t i = 0; i < pieces.ends.size(); ++i)
      text_ += (i > 0 ? ", " : "") + std::to_string(pieces.ends[i]) + ": " +
               number_text(pieces.numbers[i]);
    text_ += ']';
  }

  void print_attrs(const Node& node) {
    const std::uint16_t fields = info(node.op).attributes;
    if (fields == kNoFields) return;
    std::string_view separator = " {";
    const auto next = [&] {
      text_ += separator;
      separator = ", ";
    };
    const Attrs& attrs = node.attrs;
    if ((fields & kDims) != 0) next(), print_dims("dims", attrs.dims);
    if ((fields & kDims2) != 0) next(), print_dims("dims2", attrs.dims2);
    if ((fields & kScalar) != 0) next(), text_ += "scalar: " + number_text(attrs.scalar);
    if ((fields & kScalar2) != 0) next(), text_ += "scalar2: " + number_text(attrs.scalar2);
    if ((fields & kFrom) != 0) next(), text_ += "from: " + std::to_string(attrs.from);
    if ((fields & kExtent) != 0) next(), text_ += "extent: " + std::to_string(attrs.extent);
    if ((fields & kDType) != 0) next(), text_ += "dtype: " + std::string(dtype_name(attrs.dtype));
    if ((fields & kCausal) != 0) next(), text_ += attrs.causal ? "causal: true" : "causal: false";
    if ((fields & kShape) != 0) next(), text_ += "shape: ", print_type(attrs.shape);
    if ((fields & kSeed) != 0) next(), text_ += "seed: " + quoted(attrs.seed);
    if ((fields & kIgnore) != 0 && attrs.ignore)
      next(), text_ += "ignore: " + std::to_string(*attrs.ignore);
    if ((fields & kPieces) != 0) next(), print_pieces(attrs.pieces);
    text_ += '}';
  }
  static constexpr std::uint16_t kNoFields = AttrField::kNone;

  void print_node(const Node& node) {
    text_ += indent_;
    for (std::size_t i = 0; i < node.num_results; ++i) {
      if (i > 0) text_ += ", ";
      text_ += value_text(graph_, graph_.result(node, i));
    }
    text_ += " = ";
    text_ += info(node.op).name;
    text_ += '(';
    bool first = true;
    for (const ValueId operand : graph_.operands(node)) {
      if (!first) text_ += ", ";
      first = false;
      text_ += value_text(graph_, operand);
    }
    text_ += ')';
    print_attrs(node);
    for (std::size_t i = 0; i < node.num_results; ++i) {
      text_ += i == 0 ? " : " : ", ";
      print_type(graph_.type(graph_.result(node, i)));
      print_layout(graph_.result(node, i));
    }
    text_ += " @";
    text_ += pass_name(node.pass);
    if (node.region.valid() && (options_.all_regions || !node.origin.valid() ||
                                graph_.node(node.origin).region != node.region)) {
      text_ += " region ";
      print_region(node.region);
    }
    if (node.origin.valid())
      text_ += " of " + value_text(graph_, graph_.result(graph_.node(node.origin)));
    end(node.loc);
  }

  void print_losses(std::size_t& next) {
    for (; next < graph_.losses.size(); ++next) {
      const Loss& loss = graph_.losses[next];
      text_ += indent_ + "loss " + quoted(loss.name) + " elements " +
               value_text(graph_, loss.elements) + " sum " + value_text(graph_, loss.sum) +
               " count " + std::to_string(loss.count);
      if (loss.mask) {
        text_ += " ignore " + std::to_string(loss.mask->ignore) + " of " +
                 value_text(graph_, graph_.inputs[loss.mask->targets.index()].value) + " leaves " +
                 value_text(graph_, loss.mask->count);
      }
      end(loss.loc);
    }
  }

  const Graph& graph_;
  const PrintOptions options_;
  const std::string indent_;
  std::string text_;
};

}  // namespace

std::string print_lines(const Graph& graph, PrintOptions options) {
  return GraphPrinter(graph, options).lines();
}

std::string print(const Graph& graph, PrintOptions options) {
  const std::string indent(options.indent, ' ');
  std::string text = indent + "tensor " + name_text(graph.name) + " {\n";
  options.indent += 2;
  text += print_lines(graph, options);
  return text + indent + "}\n";
}

}  // namespace piper::tensor
