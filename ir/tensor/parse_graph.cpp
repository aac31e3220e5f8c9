#include <charconv>
#include <unordered_map>

#include "ir/tensor/graph_checks.h"
#include "ir/tensor/graph_text.h"

namespace piper::tensor {

namespace {

/// Text with a place in a file. A read that fails reports once and leaves `failed` set; the caller
/// returns at its next check.
class Reader {
 public:
  Reader(FileId file, std::size_t position, Context& context, DiagnosticSink& sink)
      : file_(file),
        text_(context.locations.files().text(file)),
        at_(std::min(position, text_.size())),
        context_(context),
        sink_(sink) {}

  bool failed() const { return failed_; }
  std::size_t position() const { return at_; }

  void skip_space() {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '/' && text_.substr(at_, 2) == "//") {
        while (at_ < text_.size() && text_[at_] != '\n') ++at_;
      } else if (c == ' ' || c == '\t' || c == '\n' || c == '\r') {
        ++at_;
      } else {
        return;
      }
    }
  }
  bool at_end() { return skip_space(), at_ == text_.size(); }
  bool next_is(std::string_view token) {
    return skip_space(), text_.substr(at_, token.size()) == token;
  }
  bool take(std::string_view token) {
    if (failed_ || !next_is(token)) return false;
    if (is_letter(token.front()) && at_ + token.size() < text_.size() &&
        is_inner(text_[at_ + token.size()]))
      return false;
    at_ += token.size();
    return true;
  }
  bool expect(std::string_view token) {
    if (take(token)) return true;
    return fail("`{}` is expected here", token);
  }

  /// A plain or quoted name. `dots`: whether a plain one may hold dots.
  Symbol name(bool dots = true) {
    skip_space();
    if (next_is("\"")) return quoted();
    const std::size_t begin = at_;
    if (at_ < text_.size() && is_letter(text_[at_])) {
      while (at_ < text_.size() && is_inner(text_[at_]) && (dots || text_[at_] != '.')) ++at_;
    }
    if (at_ == begin) return fail("a name is expected here"), Symbol();
    return context_.symbol(text_.substr(begin, at_ - begin));
  }
  Symbol quoted() {
    skip_space();
    if (!take("\"")) return fail("a name in quotes is expected here"), Symbol();
    std::string text;
    while (at_ < text_.size() && text_[at_] != '"' && text_[at_] != '\n') {
      char c = text_[at_++];
      if (c == '\\') {
        const char kind = at_ < text_.size() ? text_[at_++] : '\0';
        unsigned byte = 0;
        if (kind == 'x' && at_ + 2 <= text_.size() &&
            std::from_chars(text_.data() + at_, text_.data() + at_ + 2, byte, 16).ptr ==
                text_.data() + at_ + 2) {
          c = static_cast<char>(byte);
          at_ += 2;
        } else if (kind == '"' || kind == '\\') {
          c = kind;
        } else {
          return fail("`\\` begins `\\\"`, `\\\\` or `\\x` and two digits"), Symbol();
        }
      }
      text += c;
    }
    if (!take_here('"')) return fail("the name does not end on its line"), Symbol();
    return context_.symbol(text);
  }
  template <typename Number>
  Number number() {
    skip_space();
    Number value{};
    const auto [end, error] =
        std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
    if (error != std::errc()) return fail("a number is expected here"), Number{};
    at_ = static_cast<std::size_t>(end - text_.data());
    return value;
  }
  LocId location() {
    if (!next_is("loc(")) return {};
    std::string_view rest = text_.substr(at_);
    const auto loc = context_.locations.parse(rest);
    if (!loc) return fail("this is no location"), LocId();
    at_ = text_.size() - rest.size();
    return *loc;
  }

  /// The text from `begin` to here.
  SourceRange range(std::size_t begin) const {
    return {file_, static_cast<std::uint32_t>(begin), static_cast<std::uint32_t>(at_)};
  }
  std::size_t mark() { return skip_space(), at_; }

  template <typename... Args>
  bool fail(MessagePattern<std::type_identity_t<Args>...> pattern, const Args&... args) {
    const auto here = static_cast<std::uint32_t>(at_);
    return fail_at(Code::malformed_tensor_text,
                   {file_, here, here + (at_ < text_.size() ? 1u : 0u)}, pattern, args...);
  }
  template <typename... Args>
  bool fail_at(Code code, SourceRange range, MessagePattern<std::type_identity_t<Args>...> pattern,
               const Args&... args) {
    if (!failed_) sink_.report(code, range, pattern, args...);
    failed_ = true;
    return false;
  }

 private:
  static bool is_letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '$';
  }
  static bool is_inner(char c) {
    return is_letter(c) || (c >= '0' && c <= '9') || c == '.' || c == '-';
  }
  bool take_here(char c) {
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  FileId file_;
  std::string_view text_;
  std::size_t at_;
  Context& context_;
  DiagnosticSink& sink_;
  bool failed_ = false;
};

class GraphParser {
 public:
  GraphParser(Reader& in, Graph& graph) : in_(in), graph_(graph) {
    for (std::size_t v = 0; v < graph.values().size(); ++v)
      values_.emplace(graph.values()[v].name, ValueId::at(v));
  }

  bool lines() {
    while (!in_.failed() && !in_.next_is("}")) {
      if (in_.at_end()) return in_.fail("`}` is expected here");
      if (in_.next_is("%")) {
        value_line();
      } else if (in_.take("loss")) {
        loss_line();
      } else if (in_.take("grad")) {
        grad_line();
      } else {
        in_.fail("a line starts with `%`, `loss` or `grad`");
      }
    }
    return !in_.failed();
  }

 private:
  struct Result {
    Symbol name;
    SourceRange range;
  };

  std::string_view text(Symbol symbol) const { return graph_.context().text(symbol); }

  Result result() {
    const std::size_t begin = in_.mark();
    in_.expect("%");
    const Symbol name = in_.name();
    const Result result{name, in_.range(begin)};
    if (!in_.failed() && values_.count(name) != 0) {
      in_.fail_at(Code::repeated_tensor_value, result.range, "a value named `%{}` exists already",
                  text(name));
    }
    return result;
  }
  ValueId operand() {
    const std::size_t begin = in_.mark();
    in_.expect("%");
    const Symbol name = in_.name();
    if (in_.failed()) return {};
    const auto found = values_.find(name);
    if (found == values_.end()) {
      in_.fail_at(Code::unknown_tensor_value, in_.range(begin),
                  "no value named `%{}` stands above this line", text(name));
      return {};
    }
    return found->second;
  }

  Type type() {
    const std::size_t begin = in_.mark();
    const Symbol dtype_text = in_.name();
    if (in_.failed()) return {};
    const auto dtype = parse_dtype(text(dtype_text));
    if (!dtype)
      return in_.fail_at(Code::malformed_tensor_text, in_.range(begin), "`{}` is no element type",
                         text(dtype_text)),
             Type();
    Type type{*dtype, {}};
    in_.expect("[");
    if (!in_.take("]")) {
      do {
        Dim dim;
        dim.name = in_.name();
        in_.expect(":");
        dim.extent = in_.number<std::int64_t>();
        dim.sampled = in_.take("*");
        type.dims.push_back(dim);
      } while (in_.take(",") && !in_.failed());
      in_.expect("]");
    }
    if (in_.failed()) return {};
    if (auto why = check_type(type, graph_.context().symbols); !why.empty())
      in_.fail_at(Code::tensor_operands_do_not_fit, in_.range(begin), "{}", why);
    return type;
  }

  /// `<dp: batch, tp: +>` behind a type; without it the value is replicated.
  LayoutId layout(const Type& type) {
    Layout layout;
    if (!in_.take("<")) return {};
    do {
      const std::size_t begin = in_.mark();
      const Symbol axis = in_.name();
      in_.expect(":");
      const AxisLayout how = in_.take("+")      ? AxisLayout::partial()
                             : in_.take("flat") ? AxisLayout::flat_sharded()
                                                : AxisLayout::sharded(in_.name());
      if (in_.failed()) return {};
      if (layout.on(axis) != AxisLayout())
        return in_.fail_at(Code::malformed_tensor_text, in_.range(begin),
                           "`{}` shards this value twice", text(axis)),
               LayoutId();
      if (how.kind == LayoutKind::sharded && !type.find(how.dim)) {
        return in_.fail_at(Code::malformed_tensor_text, in_.range(begin),
                           "this value has no dimension `{}` to shard", text(how.dim)),
               LayoutId();
      }
      layout.add(axis, how);
    } while (in_.take(","));
    in_.expect(">");
    return graph_.context().layouts.intern(std::move(layout));
  }

  RegionId region() {
    RegionId region;
    // The language nests calls far less deep; the limit bounds the recursion of printers.
    constexpr int kMaxDepth = 256;
    int depth = 0;
    do {
      const Symbol name = in_.name(false);
      in_.expect("[");
      const auto index = in_.number<std::uint32_t>();
      in_.expect("]");
      if (in_.failed()) return {};
      if (++depth > kMaxDepth) return in_.fail("regions nest deeper than 256"), RegionId();
      region = graph_.regions.child(region, name, index);
    } while (in_.take("."));
    return region;
  }

  std::vector<Symbol> dims() {
    std::vector<Symbol> dims;
    in_.expect("[");
    if (in_.take("]")) return dims;
    do dims.push_back(in_.name());
    while (!in_.failed() && in_.take(","));
    in_.expect("]");
    return dims;
  }

  Pieces pieces() {
    Pieces pieces;
    in_.expect("[");
    do {
      pieces.ends.push_back(in_.number<std::int64_t>());
      in_.expect(":");
      pieces.numbers.push_back(in_.number<double>());
    } while (!in_.failed() && in_.take(","));
    in_.expect("]");
    return pieces;
  }

  Attrs attrs(Op op) {
    Attrs attrs;
    const std::uint16_t fields = info(op).attributes;
    if (fields == 0) return attrs;
    std::uint16_t seen = 0;
    in_.expect("{");
    while (!in_.failed()) {
      const Symbol field_name = in_.name();
      if (in_.failed()) return attrs;
      const std::string_view name = text(field_name);
      const std::uint16_t field = name == "dims"      ? kDims
                                  : name == "dims2"   ? kDims2
                                  : name == "scalar"  ? kScalar
                                  : name == "scalar2" ? kScalar2
                                  : name == "from"    ? kFrom
                                  : name == "extent"  ? kExtent
                                  : name == "dtype"   ? kDType
                                  : name == "causal"  ? kCausal
                                  : name == "shape"   ? kShape
                                  : name == "seed"    ? kSeed
                                  : name == "ignore"  ? kIgnore
                                  : name == "pieces"  ? kPieces
                                                      : kNone;
      if ((fields & field) == 0)
        return in_.fail("`{}` takes no attribute `{}`", info(op).name, name), attrs;
      if ((seen & field) != 0) return in_.fail("attribute `{}` is given twice", name), attrs;
      seen |= field;
      in_.expect(":");
      switch (field) {
        case kDims: attrs.dims = dims(); break;
        case kDims2: attrs.dims2 = dims(); break;
        case kScalar: attrs.scalar = in_.number<double>(); break;
        case kScalar2: attrs.scalar2 = in_.number<double>(); break;
        case kFrom: attrs.from = in_.number<std::int64_t>(); break;
        case kExtent: attrs.extent = in_.number<std::int64_t>(); break;
        case kShape: attrs.shape = type(); break;
        case kSeed: attrs.seed = in_.quoted(); break;
        case kIgnore: attrs.ignore = in_.number<std::int32_t>(); break;
        case kPieces: attrs.pieces = pieces(); break;
        case kCausal:
          attrs.causal = in_.take("true");
          if (!attrs.causal) in_.expect("false");
          break;
        default: {
          const std::optional<DType> dtype = parse_dtype(text(in_.name()));
          if (!dtype) return in_.fail("`dtype` is `f64` or `f32`"), attrs;
          attrs.dtype = *dtype;
        }
      }
      if (!in_.take(",")) break;
    }
    in_.expect("}");
    if (!in_.failed() && (seen | kIgnore) != (fields | kIgnore))
      in_.fail("`{}` lacks an attribute", info(op).name);
    return attrs;
  }

  Init init() {
    Init init;
    const auto scale = [&](Init::Kind kind) {
      init.kind = kind;
      in_.expect("(");
      init.scale = in_.number<double>();
      in_.expect(")");
    };
    if (in_.take("normal")) scale(Init::Kind::normal);
    else if (in_.take("uniform")) scale(Init::Kind::uniform);
    else if (in_.take("constant")) scale(Init::Kind::constant);
    else if (in_.take("zeros")) init.kind = Init::Kind::zeros;
    else if (in_.take("ones")) init.kind = Init::Kind::ones;
    else in_.fail("`normal`, `uniform`, `constant`, `zeros` or `ones` is expected here");
    return init;
  }

  void value_line() {
    std::vector<Result> results;
    do results.push_back(result());
    while (!in_.failed() && in_.take(","));
    in_.expect("=");
    const std::size_t begin = in_.mark();
    const Symbol word = in_.name();
    if (in_.failed()) return;
    const SourceRange word_range = in_.range(begin);
    if (const std::string_view what = text(word);
        what == "input" || what == "weight" || what == "port" || what == "count") {
      if (results.size() != 1)
        return (void)in_.fail_at(Code::malformed_tensor_text, word_range, "`{}` makes one value",
                                 what);
      return leaf(results[0], what);
    }
    const auto op = parse_op(text(word));
    if (!op)
      return (void)in_.fail_at(Code::unknown_tensor_op, word_range, "no operation is named `{}`",
                               text(word));
    node(*op, results, word_range);
  }

  void leaf(const Result& result, std::string_view what) {
    Type type = this->type();
    const LayoutId layout = this->layout(type);
    if (in_.failed()) return;
    if (what == "port" || what == "count") return define_leaf(result, std::move(type), layout);
    const Symbol name = in_.quoted();
    if (what == "input") {
      const LocId loc = in_.location();
      if (in_.failed()) return;
      define_leaf(result, std::move(type), layout);
      graph_.inputs.push_back({name, values_.at(result.name), loc});
      return;
    }
    if (!is_floating(type.dtype)) return (void)in_.fail("a weight has floating values");
    const Init init = this->init();
    const bool frozen = in_.take("frozen");
    const double rate = factor("rate"), decay = factor("decay");
    const LocId loc = in_.location();
    if (in_.failed()) return;
    if (!params_.try_emplace(name, ParamId::at(graph_.params.size())).second) {
      return (void)in_.fail_at(Code::repeated_tensor_value, result.range,
                               "a weight named \"{}\" exists already", text(name));
    }
    define_leaf(result, std::move(type), layout);
    graph_.params.push_back({name, values_.at(result.name), init, loc, frozen, rate, decay});
  }
  /// `rate 0.5`; 1 if the word is absent.
  double factor(std::string_view word) { return in_.take(word) ? in_.number<double>() : 1; }
  void define_leaf(const Result& result, Type type, LayoutId layout) {
    const ValueId value = graph_.add_leaf(std::move(type), result.name);
    graph_.set_layout(value, layout);
    values_.emplace(result.name, value);
  }

  void node(Op op, const std::vector<Result>& results, SourceRange op_range) {
    std::vector<ValueId> operands;
    in_.expect("(");
    if (!in_.take(")")) {
      do operands.push_back(operand());
      while (!in_.failed() && in_.take(","));
      in_.expect(")");
    }
    Node node;
    node.op = op;
    node.attrs = attrs(op);
    in_.expect(":");
    const std::size_t types_begin = in_.mark();
    std::vector<Type> types;
    std::vector<LayoutId> layouts;
    do {
      types.push_back(type());
      layouts.push_back(layout(types.back()));
    } while (!in_.failed() && in_.take(","));
    const SourceRange types_range = in_.range(types_begin);
    in_.expect("@");
    const std::size_t pass_begin = in_.mark();
    const Symbol pass_text = in_.name();
    if (in_.failed()) return;
    const auto pass = parse_pass(text(pass_text));
    if (!pass || *pass == Pass::B)
      return (void)in_.fail_at(Code::malformed_tensor_text, in_.range(pass_begin),
                               "the pass of an operation is `F`, `BI` or `BW`");
    node.pass = *pass;
    if (in_.take("region")) node.region = region();
    if (in_.take("of")) {
      const std::size_t begin = in_.mark();
      const ValueId origin = operand();
      if (in_.failed()) return;
      node.origin = graph_.value(origin).def;
      if (!node.origin.valid())
        return (void)in_.fail_at(Code::malformed_tensor_text, in_.range(begin),
                                 "`of` names the result of an operation");
    }
    node.loc = in_.location();
    if (in_.failed()) return;

    std::vector<Symbol> names;
    for (const Result& result : results) {
      for (const Symbol earlier : names) {
        if (earlier == result.name)
          return (void)in_.fail_at(Code::repeated_tensor_value, result.range,
                                   "a value named `%{}` exists already", text(result.name));
      }
      names.push_back(result.name);
    }
    std::vector<Type> operand_types;
    for (const ValueId operand : operands) operand_types.push_back(graph_.type(operand));
    const Inferred inferred = infer(op, operand_types, node.attrs, graph_.context().symbols);
    if (!inferred.error.empty())
      return (void)in_.fail_at(Code::tensor_operands_do_not_fit, op_range, "{}", inferred.error);
    if (inferred.types != types || types.size() != names.size()) {
      return (void)in_.fail_at(Code::tensor_types_differ, types_range, "`{}` gives {}",
                               info(op).name, types_text(inferred.types, graph_.context().symbols));
    }
    const Node& added = graph_.node(graph_.add_unchecked(std::move(node), operands, types, names));
    for (std::size_t i = 0; i < names.size(); ++i) {
      values_.emplace(names[i], graph_.result(added, i));
      graph_.set_layout(graph_.result(added, i), layouts[i]);
    }
  }

  void loss_line() {
    const std::size_t begin = in_.mark();
    Loss loss;
    loss.name = in_.quoted();
    if (in_.expect("elements")) loss.elements = operand();
    if (in_.expect("sum")) loss.sum = operand();
    if (in_.expect("count")) loss.count = in_.number<std::int64_t>();
    if (in_.take("ignore")) mask(loss);
    loss.loc = in_.location();
    if (in_.failed()) return;
    if (auto why = check_loss(graph_, loss); !why.empty())
      return (void)in_.fail_at(Code::tensor_loss_mismatch, in_.range(begin), "{}", why);
    graph_.losses.push_back(loss);
  }

  void mask(Loss& loss) {
    LossMask mask;
    mask.ignore = in_.number<std::int32_t>();
    if (in_.expect("of")) {
      const std::size_t begin = in_.mark();
      mask.targets = graph_.input_of(operand());
      if (!in_.failed() && !mask.targets.valid())
        in_.fail_at(Code::tensor_loss_mismatch, in_.range(begin), "the mask of a loss is an input");
    }
    if (in_.expect("leaves")) mask.count = operand();
    loss.mask = mask;
  }

  void grad_line() {
    const std::size_t begin = in_.mark();
    const Symbol name = in_.quoted();
    const ValueId value = operand();
    if (in_.failed()) return;
    const auto param = params_.find(name);
    if (param == params_.end())
      return (void)in_.fail_at(Code::unknown_tensor_value, in_.range(begin),
                               "no weight is named \"{}\"", text(name));
    if (auto why = check_grad(graph_, {param->second, value}); !why.empty())
      return (void)in_.fail_at(Code::tensor_gradient_mismatch, in_.range(begin), "{}", why);
    graph_.grads.push_back({param->second, value});
  }

  Reader& in_;
  Graph& graph_;
  std::unordered_map<Symbol, ValueId> values_;
  std::unordered_map<Symbol, ParamId> params_;
};

}  // namespace

bool parse_lines(FileId file, std::size_t& position, Graph& graph, DiagnosticSink& sink) {
  Reader in(file, position, graph.context(), sink);
  const bool ok = GraphParser(in, graph).lines();
  position = in.position();
  return ok;
}

std::optional<Graph> parse_at(FileId file, std::size_t& position, Context& context,
                              DiagnosticSink& sink) {
  Reader in(file, position, context, sink);
  Graph graph(context);
  in.expect("tensor");
  graph.name = context.text(in.name());
  in.expect("{");
  if (!in.failed() && GraphParser(in, graph).lines()) in.expect("}");
  position = in.position();
  if (in.failed()) return std::nullopt;
  return graph;
}

std::optional<Graph> parse(std::string_view text, Context& context, DiagnosticSink& sink) {
  // Each text is a file of its own, so that texts parsed one after the other keep their lines.
  const FileId file = context.locations.files().add(
      "tensor." + std::to_string(context.locations.files().size()) + ".pir", std::string(text));
  std::size_t position = 0;
  std::optional<Graph> graph = parse_at(file, position, context, sink);
  if (!graph) return std::nullopt;
  Reader rest(file, position, context, sink);
  if (!rest.at_end()) {
    rest.fail("the text continues after the graph");
    return std::nullopt;
  }
  if (!verify(*graph, sink)) return std::nullopt;
  return graph;
}

}  // namespace piper::tensor
