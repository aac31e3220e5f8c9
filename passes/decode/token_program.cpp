#include "passes/decode/token_program.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "ir/tensor/op_rules.h"
#include "ir/tensor/sample_coupling.h"
#include "passes/decode/sequence_rules.h"

namespace piper::passes {

using namespace tensor;
using dag::Body;
using dag::BodyPort;
using dag::PortKind;
using dag::TokenProgram;

namespace {

/// The product of the extents of the dimensions from `begin` to `end` - 1.
std::int64_t elements(const Type& type, std::size_t begin, std::size_t end) {
  std::int64_t count = 1;
  for (std::size_t d = begin; d < end; ++d) count *= type.dims[d].extent;
  return count;
}

/// The index of the dimension `name`, or the number of dimensions if there is none.
std::size_t position(const Type& type, Symbol name) {
  std::size_t d = 0;
  while (d < type.dims.size() && (!name.valid() || type.dims[d].name != name)) ++d;
  return d;
}

/// A graph with its ports, and the values of the model that it has.
class BodyCopy {
 public:
  BodyCopy(Context& context, std::string_view name)
      : body{context.symbol(name), Graph(context), {}, {}} {}

  ValueId input(Type type, Symbol name, ParamId param = {}) {
    BodyPort port;
    port.kind = param.valid() ? PortKind::param : PortKind::data;
    port.param = param;
    port.value = body.graph.add_leaf(std::move(type), name);
    body.inputs.push_back(port);
    return port.value;
  }

  /// Appends an output port. A leaf, a view and a value that is an output already are copied.
  std::uint32_t output(ValueId value) {
    Graph& graph = body.graph;
    const NodeId def = graph.value(value).def;
    const bool alias = !def.valid() || info(graph.node(def).op).code_class == CodeClass::view;
    const bool again = std::any_of(body.outputs.begin(), body.outputs.end(),
                                   [&](const BodyPort& port) { return port.value == value; });
    if (alias || again) {
      Attrs copy;
      copy.shape = graph.type(value);
      const ValueId operands[] = {value};
      value = graph.result(graph.node(graph.add(Op::broadcast, operands, std::move(copy), Pass::F,
                                                {}, {}, {}, graph.value(value).name)));
    }
    BodyPort port;
    port.value = value;
    body.outputs.push_back(port);
    return static_cast<std::uint32_t>(body.outputs.size() - 1);
  }

  Body body;
  std::map<ValueId, ValueId> values;  // of the model -> of the graph
};

class Rewriting {
 public:
  Rewriting(const Graph& model, LocId train, DiagnosticSink& sink)
      : model_(model),
        train_(train),
        sink_(sink),
        needed_(model.nodes().size(), 0),
        sequence_(model.values().size()),
        tables_(model.context(), "tables"),
        step_(model.context(), "token") {}

  std::optional<TokenProgram> run() {
    const std::size_t errors = sink_.error_count();
    if (!find_logits() || !find_tokens()) return std::nullopt;
    for (std::size_t n = 0; n < model_.nodes().size(); ++n) {
      if (needed_[n] && !add(NodeId::at(n))) return std::nullopt;
    }
    if (!finish() || sink_.error_count() > errors) return std::nullopt;
    return std::move(program_);
  }

 private:
  std::string text(Symbol name) const { return std::string(model_.context().text(name)); }
  std::string text(ValueId value) const {
    return print(model_.type(value), model_.context().symbols);
  }

  /// The logits of the only `cross_entropy`, and the operations that they need.
  bool find_logits() {
    const Node* found = nullptr;
    for (const Node& node : model_.nodes()) {
      if (node.op != Op::cross_entropy) continue;
      if (found != nullptr) {
        sink_
            .report(
                Code::no_next_token, node.loc,
                "the model has several `cross_entropy` losses, and a next token is predicted by one")
            .related(sink_.locations().range(found->loc), "another one is here");
        return false;
      }
      found = &node;
    }
    if (found == nullptr) {
      sink_.report(Code::no_next_token, train_,
                   "the model has no `cross_entropy` loss, so it predicts no next token");
      return false;
    }
    loss_ = found;
    logits_ = model_.operands(*found)[0];
    mark(logits_);
    for (std::size_t n = model_.nodes().size(); n-- > 0;) {
      if (!needed_[n]) continue;
      for (const ValueId operand : model_.operands(model_.nodes()[n])) mark(operand);
    }
    return true;
  }
  void mark(ValueId value) {
    if (const NodeId def = model_.value(value).def; def.valid()) needed_[def.index()] = 1;
  }

  /// The only input of the logits: tokens, sample by sample along the sequence.
  bool find_tokens() {
    std::vector<std::uint8_t> read(model_.values().size(), 0);
    read[logits_.index()] = 1;
    for (std::size_t n = 0; n < model_.nodes().size(); ++n) {
      if (!needed_[n]) continue;
      for (const ValueId operand : model_.operands(model_.nodes()[n])) read[operand.index()] = 1;
    }
    for (const Input& input : model_.inputs) {
      if (!read[input.value.index()]) continue;
      const Type& type = model_.type(input.value);
      const bool tokens = type.dtype == DType::i64 && type.dims.size() == 2 &&
                          type.dims[0].sampled != type.dims[1].sampled;
      if (!tokens || tokens_.valid()) {
        sink_
            .report(Code::no_next_token, input.loc,
                    "the logits depend on the input `{}`, which is `{}`{}", text(input.name),
                    text(input.value), tokens ? ", and on another one" : "")
            .hint("a model that is sampled reads tokens alone: one input `i64[batch, seq]`");
        return false;
      }
      tokens_ = input.value;
      const Dim& along = type.dims[type.dims[0].sampled ? 1 : 0];
      sequence_[tokens_.index()] = along.name;
      program_.positions = along.extent;
    }
    if (!tokens_.valid()) {
      sink_.report(Code::no_next_token, loss_->loc, "the logits depend on no input of the model");
      return false;
    }
    step_.values[tokens_] = step_.input(
        at_position(model_.type(tokens_), sequence_[tokens_.index()]), model_.value(tokens_).name);
    return true;
  }

  /// The type of a value of one sample, and with `sequence` of one position.
  static Type at_position(Type type, Symbol sequence = {}) {
    for (Dim& dim : type.dims) {
      if (dim.sampled || (sequence.valid() && dim.name == sequence)) dim.extent = 1;
    }
    return type;
  }

  bool add(NodeId id) {
    const Node& node = model_.node(id);
    if (couples_samples(model_, node, {}) || counts_samples(node)) {
      sink_
          .report(Code::mixes_positions, node.loc,
                  "{} joins the samples of a batch, and a text is sampled by itself",
                  in_words(node.op))
          .hint("only a model whose samples are independent can be sampled");
      return false;
    }
    for (const ValueId operand : model_.operands(node)) {
      if (sequence_[operand.index()].valid()) return add_to_step(node);
    }
    return add_to_tables(node);
  }

  /// Whether its values are numbers of samples.
  static bool counts_samples(const Node& node) {
    return node.op == Op::iota && node.attrs.shape.samples() != nullptr;
  }

  bool add_to_tables(const Node& node) {
    if (node.op == Op::dropout) {
      tables_.values[model_.result(node)] = in_tables(model_.operands(node)[0]);
      return true;
    }
    std::vector<ValueId> operands;
    for (const ValueId operand : model_.operands(node)) operands.push_back(in_tables(operand));
    return copy(node, operands, tables_, {});
  }

  /// A value that depends on no token, in the graph of the tables.
  ValueId in_tables(ValueId value) {
    const auto [entry, fresh] = tables_.values.try_emplace(value);
    if (fresh) {
      entry->second = tables_.input(at_position(model_.type(value)), model_.value(value).name,
                                    model_.param_of(value));
    }
    return entry->second;
  }

  bool add_to_step(const Node& node) {
    std::vector<OperandOfNode> shown;
    for (const ValueId operand : model_.operands(node))
      shown.push_back({&model_.type(operand), sequence_[operand.index()]});
    const SequenceUse use = sequence_use(node, shown, model_.context().symbols);
    if (!use.refused.empty()) {
      sink_.report(Code::mixes_positions, node.loc, "{}", use.refused).hint("{}", use.hint);
      return false;
    }
    std::vector<ValueId> operands;
    for (std::size_t i = 0; i < shown.size(); ++i) {
      const ValueId operand = model_.operands(node)[i];
      operands.push_back(shown[i].sequence.valid() ? step_.values.at(operand)
                                                   : source(operand, use.aligned));
    }
    for (std::size_t i = 0; i < node.num_results; ++i)
      sequence_[model_.result(node, i).index()] = use.result;
    if (node.op == Op::dropout) {
      step_.values[model_.result(node)] = operands[0];
      return true;
    }
    if (!copy(node, operands, step_, use)) return false;
    if (use.cached) {
      const Graph& graph = step_.body.graph;
      program_.cached.push_back(graph.value(step_.values.at(model_.result(node))).name);
    }
    if (node.op == Op::lookup && sequence_[model_.operands(node)[1].index()].valid()) {
      const std::int64_t rows = model_.type(model_.operands(node)[0]).dims.front().extent;
      program_.vocabulary = program_.vocabulary == 0 ? rows : std::min(program_.vocabulary, rows);
    }
    return true;
  }

  /// An input of the step: a value that depends on no token, or, if it lies along `sequence`, its
  /// row at the position.
  ValueId source(ValueId value, Symbol sequence) {
    const Type type = at_position(model_.type(value));
    const std::size_t along = position(type, sequence);
    const bool lies_along = along < type.dims.size();
    const Symbol row = lies_along ? sequence : Symbol();
    const auto [entry, fresh] = sources_.try_emplace({value, row});
    if (!fresh) return entry->second;
    TokenProgram::Source added;
    added.param = model_.param_of(value);
    if (!added.param.valid()) {
      const auto [table, first] = table_of_.try_emplace(value);
      if (first) table->second = tables_.output(in_tables(value));
      added.table = table->second;
    }
    if (lies_along) {
      added.blocks = elements(type, 0, along);
      added.row_elements = elements(type, along + 1, type.dims.size());
    }
    program_.sources.push_back(added);
    return entry->second =
               step_.input(at_position(type, row), model_.value(value).name, added.param);
  }

  bool copy(const Node& node, const std::vector<ValueId>& operands, BodyCopy& to,
            const SequenceUse& use) {
    Graph& graph = to.body.graph;
    Attrs attrs = node.attrs;
    if ((info(node.op).attributes & kShape) != 0)
      attrs.shape = at_position(std::move(attrs.shape), use.result);
    // The cache has no keys of later positions.
    if (use.cached) attrs.causal = false;
    std::vector<Type> types;
    for (const ValueId operand : operands) types.push_back(graph.type(operand));
    if (const Inferred found = infer(node.op, types, attrs, graph.context().symbols);
        !found.error.empty()) {
      sink_.report(Code::mixes_positions, node.loc, "{} has no form for one position: {}",
                   in_words(node.op), found.error);
      return false;
    }
    const Node& added = graph.node(graph.add(node.op, operands, std::move(attrs), Pass::F, {},
                                             node.loc, {}, model_.value(model_.result(node)).name));
    for (std::size_t i = 0; i < node.num_results; ++i)
      to.values[model_.result(node, i)] = graph.result(added, i);
    return true;
  }

  /// The output: a logit per class.
  bool finish() {
    const Type& type = model_.type(logits_);
    const Symbol sequence = sequence_[logits_.index()];
    const Symbol classes = loss_->attrs.dims[0];
    const bool single = std::all_of(type.dims.begin(), type.dims.end(), [&](const Dim& dim) {
      return dim.sampled || dim.name == sequence || dim.name == classes;
    });
    if (!single || classes == sequence || type.samples() == nullptr) {
      sink_.report(
          Code::no_next_token, loss_->loc,
          "the logits of `cross_entropy` are `{}`, and those of a next token have samples, positions and classes",
          text(logits_));
      return false;
    }
    program_.classes = type.dims[*type.find(classes)].extent;
    if (program_.vocabulary == 0) program_.vocabulary = program_.classes;
    step_.output(step_.values.at(logits_));
    program_.tables = std::move(tables_.body);
    program_.step = std::move(step_.body);
    return true;
  }

  const Graph& model_;
  const LocId train_;
  DiagnosticSink& sink_;
  const Node* loss_ = nullptr;
  ValueId logits_, tokens_;
  std::vector<std::uint8_t> needed_;  // per node: the logits depend on it
  // Per value: the dimension of its positions; invalid: it depends on no token.
  std::vector<Symbol> sequence_;
  BodyCopy tables_, step_;
  std::map<ValueId, std::uint32_t> table_of_;              // -> output of the tables
  std::map<std::pair<ValueId, Symbol>, ValueId> sources_;  // -> input of the step
  TokenProgram program_{{{}, Graph(model_.context()), {}, {}},
                        {{}, Graph(model_.context()), {}, {}},
                        {},
                        {},
                        0,
                        0,
                        0};
};

}  // namespace

std::optional<TokenProgram> make_token_program(const Graph& model, LocId train,
                                               DiagnosticSink& sink) {
  return Rewriting(model, train, sink).run();
}

}  // namespace piper::passes
