#include <algorithm>
#include <limits>
#include <unordered_map>

#include "ir/tensor/attr_fields.h"
#include "ir/tensor/graph_checks.h"
#include "ir/tensor/graph_text.h"

namespace piper::tensor {

namespace {

using Token = TextReader::Token;

class GraphParser {
 public:
  GraphParser(TextReader& in, Graph& graph, const Mesh* mesh)
      : in_(in), graph_(graph), mesh_(mesh) {
    for (std::size_t v = 0; v < graph.values().size(); ++v)
      values_.emplace(graph.values()[v].name, ValueId::at(v));
  }

  void lines() {
    while (!in_.failed() && !in_.at("}")) {
      if (in_.at_end()) return in_.expect("}");
      if (in_.at("%")) {
        value_line();
      } else if (in_.accept("loss")) {
        loss_line();
      } else if (in_.accept("grad")) {
        grad_line();
      } else {
        malformed(in_.peek(), "a line starts with `%`, `loss` or `grad`");
      }
    }
  }

 private:
  struct Result {
    Symbol name;
    SourceRange range;
  };

  std::string_view text(Symbol symbol) const { return graph_.context().text(symbol); }
  template <typename Where, typename... Args>
  void malformed(const Where& where, MessagePattern<std::type_identity_t<Args>...> pattern,
                 const Args&... args) {
    in_.fail(Code::malformed_tensor_text, where, pattern, args...);
  }
  Symbol quoted() { return in_.context().symbol(in_.string("a name")); }
  template <typename Number>
  Number integer(std::string_view expected) {
    return static_cast<Number>(in_.integer(expected, std::numeric_limits<Number>::min(),
                                           std::numeric_limits<Number>::max()));
  }

  Result result() {
    const Token first = in_.peek();
    in_.expect("%");
    const Symbol name = in_.symbol("a value");
    const Result result{name, in_.range_from(first)};
    if (!in_.failed() && values_.count(name) != 0) {
      in_.fail(Code::repeated_tensor_value, result.range, "a value named `%{}` exists already",
               text(name));
    }
    return result;
  }
  ValueId operand() {
    const Token first = in_.peek();
    in_.expect("%");
    const Symbol name = in_.symbol("a value");
    if (in_.failed()) return {};
    const auto found = values_.find(name);
    if (found == values_.end()) {
      in_.fail(Code::unknown_tensor_value, in_.range_from(first),
               "no value named `%{}` stands above this line", text(name));
      return {};
    }
    return found->second;
  }

  Type type() {
    const Token first = in_.peek();
    Type type = in_.type();
    if (in_.failed()) return type;
    if (auto why = check_type(type, graph_.context().symbols); !why.empty())
      in_.fail(Code::tensor_operands_do_not_fit, in_.range_from(first), "{}", why);
    return type;
  }

  RegionId region() {
    RegionId region;
    // The language nests calls far less deep; the limit bounds the recursion of printers.
    constexpr int kMaxDepth = 256;
    int depth = 0;
    do {
      const Token first = in_.peek();
      const Symbol name = in_.symbol("a region");
      in_.expect("[");
      const auto index = integer<std::uint32_t>("an index");
      in_.expect("]");
      if (in_.failed()) return {};
      if (++depth > kMaxDepth) return malformed(first, "regions nest deeper than 256"), RegionId();
      region = graph_.regions.child(region, name, index);
    } while (in_.accept("."));
    return region;
  }

  // ---- attributes

  void attr(std::vector<Symbol>& dims) {
    in_.expect("[");
    in_.list("]", [&] { dims.push_back(in_.symbol("a dimension")); });
  }
  void attr(Pieces& pieces) {
    in_.expect("[");
    in_.list("]", [&] {
      pieces.ends.push_back(integer<std::int64_t>("the end of a piece"));
      in_.expect(":");
      pieces.numbers.push_back(in_.number("a number"));
    });
  }
  void attr(double& value) { value = in_.number("a number"); }
  void attr(std::int64_t& value) { value = integer<std::int64_t>("a number"); }
  void attr(std::optional<std::int32_t>& value) { value = integer<std::int32_t>("a class number"); }
  void attr(bool& value) {
    value = in_.accept("true");
    if (!value) in_.expect("false");
  }
  void attr(Type& value) { value = type(); }
  void attr(Symbol& value) { value = quoted(); }
  void attr(DType& value) {
    const Token where = in_.peek();
    const std::optional<DType> dtype = parse_dtype(in_.name("an element type"));
    if (!dtype) return malformed(where, "`dtype` is `f64` or `f32`");
    value = *dtype;
  }

  Attrs attrs(Op op) {
    Attrs attrs;
    const std::uint16_t fields = info(op).attributes;
    if (fields == 0) return attrs;
    std::uint16_t seen = 0;
    in_.expect("{");
    in_.list("}", [&] {
      const Token where = in_.peek();
      const std::string name(in_.name("an attribute"));
      AttrField found = kNone;
      attr_fields(
          [&](AttrField field, std::string_view of, auto&) {
            if (of == name) found = field;
          },
          attrs);
      if ((fields & found) == 0)
        return malformed(where, "`{}` takes no attribute `{}`", info(op).name, name);
      if ((seen & found) != 0) return malformed(where, "attribute `{}` is given twice", name);
      seen |= found;
      in_.expect(":");
      attr_fields(
          [&](AttrField field, std::string_view, auto& value) {
            if (field == found) attr(value);
          },
          attrs);
    });
    if ((seen | kIgnore) != (fields | kIgnore))
      malformed(in_.previous(), "`{}` lacks an attribute", info(op).name);
    return attrs;
  }

  Init init() {
    Init init;
    const auto name =
        std::ranges::find_if(kInitNames, [&](std::string_view name) { return in_.accept(name); });
    if (name == std::end(kInitNames)) {
      in_.fail_expected("a way to start a parameter");
      return init;
    }
    init.kind = static_cast<Init::Kind>(name - std::begin(kInitNames));
    if (!has_scale(init.kind)) return init;
    in_.expect("(");
    init.scale = in_.number("a scale");
    in_.expect(")");
    return init;
  }

  // ---- lines

  void value_line() {
    std::vector<Result> results;
    do results.push_back(result());
    while (!in_.failed() && in_.accept(","));
    in_.expect("=");
    const Token word = in_.peek();
    const std::string name(in_.name("an operation"));
    if (in_.failed()) return;
    if (name == "input" || name == "weight" || name == "port" || name == "count") {
      if (results.size() != 1) return malformed(word, "`{}` makes one value", name);
      return leaf(results[0], name);
    }
    const auto op = parse_op(name);
    if (!op) return in_.fail(Code::unknown_tensor_op, word, "no operation is named `{}`", name);
    node(*op, results, word);
  }

  void leaf(const Result& result, std::string_view word) {
    const Token first = in_.peek();
    Type type = this->type();
    const SourceRange type_range = in_.range_from(first);
    const LayoutId layout = in_.layout(mesh_, type);
    if (in_.failed()) return;
    if (word == "port" || word == "count") return define_leaf(result, std::move(type), layout);
    const Symbol name = quoted();
    if (word == "input") {
      const LocId loc = in_.location();
      if (in_.failed()) return;
      define_leaf(result, std::move(type), layout);
      graph_.inputs.push_back({name, values_.at(result.name), loc});
      return;
    }
    if (!is_floating(type.dtype)) return malformed(type_range, "a weight has floating values");
    const Init init = this->init();
    const bool frozen = in_.accept("frozen");
    const double rate = factor("rate"), decay = factor("decay");
    const LocId loc = in_.location();
    if (in_.failed()) return;
    if (!params_.try_emplace(name, ParamId::at(graph_.params.size())).second) {
      return in_.fail(Code::repeated_tensor_value, result.range,
                      "a weight named \"{}\" exists already", text(name));
    }
    define_leaf(result, std::move(type), layout);
    graph_.params.push_back({name, values_.at(result.name), init, loc, frozen, rate, decay});
  }
  /// `rate 0.5`; 1 if the word is absent.
  double factor(std::string_view word) { return in_.accept(word) ? in_.number("a factor") : 1; }
  void define_leaf(const Result& result, Type type, LayoutId layout) {
    const ValueId value = graph_.add_leaf(std::move(type), result.name);
    graph_.set_layout(value, layout);
    values_.emplace(result.name, value);
  }

  void node(Op op, const std::vector<Result>& results, const Token& op_token) {
    std::vector<ValueId> operands;
    in_.expect("(");
    in_.list(")", [&] { operands.push_back(operand()); });
    Node node;
    node.op = op;
    node.attrs = attrs(op);
    in_.expect(":");
    const Token types_begin = in_.peek();
    std::vector<Type> types;
    std::vector<LayoutId> layouts;
    do {
      types.push_back(type());
      layouts.push_back(in_.layout(mesh_, types.back()));
    } while (!in_.failed() && in_.accept(","));
    const SourceRange types_range = in_.range_from(types_begin);
    in_.expect("@");
    pass_and_origin(node);
    node.loc = in_.location();
    if (in_.failed()) return;

    std::vector<Symbol> names;
    for (const Result& result : results) {
      for (const Symbol earlier : names) {
        if (earlier == result.name)
          return in_.fail(Code::repeated_tensor_value, result.range,
                          "a value named `%{}` exists already", text(result.name));
      }
      names.push_back(result.name);
    }
    std::vector<Type> operand_types;
    for (const ValueId operand : operands) operand_types.push_back(graph_.type(operand));
    const Inferred inferred = infer(op, operand_types, node.attrs, graph_.context().symbols);
    if (!inferred.error.empty())
      return in_.fail(Code::tensor_operands_do_not_fit, op_token, "{}", inferred.error);
    if (inferred.types != types || types.size() != names.size()) {
      return in_.fail(Code::tensor_types_differ, types_range, "`{}` gives {}", info(op).name,
                      types_text(inferred.types, graph_.context().symbols));
    }
    const Node& added = graph_.node(graph_.add_unchecked(std::move(node), operands, types, names));
    for (std::size_t i = 0; i < names.size(); ++i) {
      values_.emplace(names[i], graph_.result(added, i));
      graph_.set_layout(graph_.result(added, i), layouts[i]);
    }
  }

  /// `BI region mlp[0] of %mlp.0.sum`
  void pass_and_origin(Node& node) {
    const Token where = in_.peek();
    const auto pass = parse_pass(in_.name("a pass"));
    if (!in_.failed() && (!pass || *pass == Pass::B))
      return malformed(where, "the pass of an operation is `F`, `BI` or `BW`");
    if (in_.failed()) return;
    node.pass = *pass;
    if (in_.accept("region")) node.region = region();
    if (!in_.accept("of")) return;
    const Token begin = in_.peek();
    const ValueId origin = operand();
    if (in_.failed()) return;
    node.origin = graph_.value(origin).def;
    if (!node.origin.valid())
      malformed(in_.range_from(begin), "`of` names the result of an operation");
  }

  void loss_line() {
    const Token first = in_.peek();
    Loss loss;
    loss.name = quoted();
    in_.expect("elements");
    loss.elements = operand();
    in_.expect("sum");
    loss.sum = operand();
    in_.expect("count");
    loss.count = integer<std::int64_t>("a number of elements");
    if (in_.accept("ignore")) mask(loss);
    loss.loc = in_.location();
    if (in_.failed()) return;
    if (auto why = check_loss(graph_, loss); !why.empty())
      return in_.fail(Code::tensor_loss_mismatch, in_.range_from(first), "{}", why);
    graph_.losses.push_back(loss);
  }

  void mask(Loss& loss) {
    LossMask mask;
    mask.ignore = integer<std::int32_t>("a class number");
    in_.expect("of");
    const Token first = in_.peek();
    const ValueId targets = operand();
    if (in_.failed()) return;
    mask.targets = graph_.input_of(targets);
    if (!mask.targets.valid())
      in_.fail(Code::tensor_loss_mismatch, in_.range_from(first), "the mask of a loss is an input");
    in_.expect("leaves");
    mask.count = operand();
    loss.mask = mask;
  }

  void grad_line() {
    const Token first = in_.peek();
    const Symbol name = quoted();
    const ValueId value = operand();
    if (in_.failed()) return;
    const auto param = params_.find(name);
    if (param == params_.end())
      return in_.fail(Code::unknown_tensor_value, in_.range_from(first),
                      "no weight is named \"{}\"", text(name));
    if (auto why = check_grad(graph_, {param->second, value}); !why.empty())
      return in_.fail(Code::tensor_gradient_mismatch, in_.range_from(first), "{}", why);
    graph_.grads.push_back({param->second, value});
  }

  TextReader& in_;
  Graph& graph_;
  const Mesh* const mesh_;
  std::unordered_map<Symbol, ValueId> values_;
  std::unordered_map<Symbol, ParamId> params_;
};

}  // namespace

void parse_lines(TextReader& reader, Graph& graph, const Mesh* mesh) {
  GraphParser(reader, graph, mesh).lines();
}

std::optional<Graph> parse(std::string_view text, Context& context, DiagnosticSink& sink) {
  // Each text is a file of its own, so that texts parsed one after the other keep their lines.
  const FileId file = context.locations.files().add(
      "tensor." + std::to_string(context.locations.files().size()) + ".pir", std::string(text));
  TextReader in(file, context, sink);
  in.read_locations();
  Graph graph(context);
  in.expect("tensor");
  graph.name = std::string(in.name("a name"));
  in.expect("{");
  parse_lines(in, graph);
  in.expect("}");
  in.expect_end();
  if (in.failed() || !verify(graph, sink)) return std::nullopt;
  return graph;
}

}  // namespace piper::tensor
