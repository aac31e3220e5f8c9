#include "frontend/lower/model/model_builder.h"

#include <unordered_map>

#include "frontend/lower/model/model_state.h"

namespace piper::lower {

using llvm::cast;
using tensor::Built;
using tensor::Op;

ModelBuilder::ModelBuilder(Evaluator& evaluator, tensor::Graph& graph,
                           const directive::Settings& settings, tensor::DType own_dtype,
                           bool data_failed)
    : state_(std::make_unique<State>(evaluator, graph, settings, own_dtype, data_failed)) {}
ModelBuilder::~ModelBuilder() = default;

bool ModelBuilder::data_fits() const { return state_->data_fits; }

std::vector<ModelArgument> ModelBuilder::arguments() const { return state_->arguments; }

bool ModelBuilder::build(const ast::CallExpr& expr, Frame& frame) {
  Evaluator& evaluator = state_->evaluator;
  const sema::Function& function = evaluator.program().functions[expr.target];
  Frame callee = evaluator.bind(function, expr, frame);
  if (evaluator.failed()) return false;
  const auto params = function.syntax->params;
  for (std::size_t i = 0; i < params.size(); ++i)
    state_->arguments.push_back({std::string(params[i].name.name), callee.slots[i]});
  state_->calls.push_back({});
  evaluator.run(function, callee);
  state_->calls.pop_back();
  if (evaluator.broken()) return false;
  if (!state_->graph.losses.empty()) return true;
  evaluator
      .fail(Code::model_without_loss, function.syntax->name.range, callee,
            "the model `{}` has no loss, so there is nothing to train", function.name())
      .hint("add `loss cross_entropy(logits, targets)` or another value per sample");
  return false;
}

// ---- calls
// -----------------------------------------------------------------------------------------------------------

Value ModelBuilder::call(const sema::Function& function, const ast::CallExpr& expr, Frame& frame) {
  Evaluator& evaluator = state_->evaluator;
  Frame callee = evaluator.bind_arguments(function, expr, frame);
  if (evaluator.failed()) return {};
  ModelCall inner;
  const std::string name(function.name());
  const std::uint32_t index = state_->calls.back().counters[name]++;
  inner.path = state_->calls.back().path + name + "." + std::to_string(index) + ".";
  inner.region = state_->graph.regions.child(state_->calls.back().region,
                                             evaluator.context().symbol(name), index);
  state_->calls.push_back(std::move(inner));
  state_->bind_shapes(function, expr, callee, frame);
  if (!evaluator.failed()) evaluator.bind_defaults(function, expr, callee);
  Value result = evaluator.failed() ? Value() : evaluator.run(function, callee);
  if (!evaluator.failed() && !result.none()) result = state_->returned(function, result, callee);
  if (evaluator.failed() || (result.none() && evaluator.broken()))
    result = state_->stand_in(function, callee);
  state_->calls.pop_back();
  return result;
}

Flow ModelBuilder::region(const ast::RegionStmt& stmt, Frame& frame) {
  ModelCall& call = state_->calls.back();
  const std::string name(stmt.name.name);
  const RegionId outer = call.region;
  const std::uint32_t index = call.counters[name]++;
  call.region = state_->graph.regions.child(outer, state_->evaluator.context().symbol(name), index);
  const Flow flow = state_->evaluator.execute(*stmt.body, frame);
  state_->calls.back().region = outer;
  return flow;
}

// ---- leaves and losses
// -----------------------------------------------------------------------------------------------

void ModelBuilder::input(const ast::InputStmt& stmt, Frame& frame) {
  Evaluator& evaluator = state_->evaluator;
  if (state_->data_failed) return evaluator.set_failed();
  if (!state_->settings.data) {
    evaluator
        .fail(Code::data_missing, stmt.range, frame,
              "the model reads inputs, and the train has no `data`")
        .related(state_->settings.loc, "the train")
        .hint(
            "add `data: bytes(\"corpus.txt\", batch: 32, seq: 128)` or `data: synthetic(batch: 32)`");
    return;
  }
  for (const ast::Param& param : stmt.inputs) {
    const std::optional<tensor::Type> type = state_->input_type(param, frame);
    if (!type) {
      if (!evaluator.resume()) return;
      continue;
    }
    if (!state_->fits(*type)) {
      evaluator.fail(Code::tensor_too_large, param.range, frame,
                     "the input `{}` has more than 2^48 elements", param.name.name);
      if (!evaluator.resume()) return;
      continue;
    }
    state_->place(stmt.range, frame);
    const tensor::ValueId value = state_->build.input(param.name.name, *type);
    frame.slots[param.name.binding] = Value(TensorValue{value});
  }
}

void ModelBuilder::weight(const ast::WeightStmt& stmt, Frame& frame) {
  Evaluator& evaluator = state_->evaluator;
  tensor::Init init;
  if (stmt.init) {
    const Value value = evaluator.eval(*stmt.init, frame);
    if (evaluator.failed()) return;
    init = *value.shared<tensor::Init>();
  }
  for (const ast::WeightDecl& decl : stmt.weights) {
    const Value value = state_->weight(decl, init, frame);
    if (!evaluator.failed()) frame.slots[decl.name.binding] = value;
    if (!evaluator.resume()) return;
  }
}

Value ModelBuilder::State::weight(const ast::WeightDecl& decl, const tensor::Init& init,
                                  Frame& frame) {
  tensor::Type type;
  type.dtype = settings.dtype;
  for (const ast::Dim& dim : decl.dims) {
    Value& size = frame.slots[dim.name.binding];
    if (dim.size) size = evaluator.eval(*dim.size, frame);
    if (size.none()) evaluator.set_failed();
    if (evaluator.failed()) return {};
    const std::int64_t extent = evaluator.to_int(size);
    size = Value(extent);
    if (extent < 1) {
      evaluator.fail(Code::extent_not_positive, dim.range, frame,
                     "dimension `{}` of weight `{}` has extent `{}`; it must be at least 1",
                     dim.name.name, decl.name.name, extent);
      size = Value();
      return {};
    }
    type.dims.push_back({evaluator.context().symbol(dim.name.name), extent, false});
  }
  if (!fits(type)) {
    evaluator.fail(Code::tensor_too_large, decl.range, frame,
                   "the weight `{}` has more than 2^48 elements", decl.name.name);
    return {};
  }
  const std::string name = calls.back().path + std::string(decl.name.name);
  if (!weights.insert(name).second) {
    evaluator
        .fail(Code::weight_declared_twice, decl.name.range, frame,
              "the weight `{}` is declared a second time in one call", name)
        .hint("put what is repeated into a model of its own: each call has its own weights");
    return {};
  }
  place(decl.range, frame);
  return Value(TensorValue{build.weight(name, type, init)});
}

void ModelBuilder::loss(const ast::LossStmt& stmt, Frame& frame) {
  Evaluator& evaluator = state_->evaluator;
  const Value value = evaluator.eval(*stmt.value, frame);
  if (evaluator.failed()) return;
  const tensor::ValueId elements = value.get<TensorValue>()->id;
  const tensor::Type& type = state_->graph.type(elements);
  if (type.samples() == nullptr || !tensor::is_floating(type.dtype)) {
    evaluator
        .fail(Code::loss_without_samples, stmt.value->range, frame,
              "a loss is a value per sample, and this is `{}`", state_->show(type))
        .hint(
            "a loss has the dimension `batch` and a floating type; it is averaged over all its elements");
    return;
  }
  // The sum is in the region of its elements, so that a `place` of that region places the loss.
  const tensor::NodeId maker = state_->graph.value(elements).def;
  state_->place(stmt.range, frame,
                maker.valid() ? state_->graph.node(maker).region : state_->calls.back().region);
  ModelCall& call = state_->calls.back();
  const Built built =
      state_->build.loss(call.path + "loss." + std::to_string(call.counters["loss"]++), elements);
  if (!built) {
    evaluator.fail(Code::ignored_elements_mixed, stmt.value->range, frame, "{}", built.error)
        .hint(
            "give this `cross_entropy` a `loss` of its own, at most multiplied or divided by weights; several losses add up");
  }
}

// ---- operators
// -------------------------------------------------------------------------------------------------------

Value ModelBuilder::negate(const ast::UnaryExpr& expr, const Value& operand, Frame& frame) {
  state_->place(expr.range, frame);
  state_->build.called(ast::op_text(expr.op));
  return state_->check(state_->build.unary(Op::neg, operand.get<TensorValue>()->id), expr.range,
                       frame);
}

Value ModelBuilder::binary(const ast::BinaryExpr& expr, const Value& left, const Value& right,
                           Frame& frame) {
  Evaluator& evaluator = state_->evaluator;
  state_->place(expr.range, frame);
  tensor::Builder& build = state_->build;
  build.called(ast::op_text(expr.op));
  const TensorValue* a = left.get<TensorValue>();
  const TensorValue* b = right.get<TensorValue>();
  Built built;
  if (a && b) {
    if (expr.op != ast::BinaryOp::contract) {
      state_->look_for_pairs(ast::op_text(expr.op), *expr.left, a->id, b->id, expr.op_range, frame);
    } else {
      state_->look_for_sums(expr, a->id, b->id, frame);
    }
    switch (expr.op) {
      case ast::BinaryOp::add: built = build.binary(Op::add, a->id, b->id); break;
      case ast::BinaryOp::subtract: built = build.binary(Op::sub, a->id, b->id); break;
      case ast::BinaryOp::multiply: built = build.binary(Op::mul, a->id, b->id); break;
      case ast::BinaryOp::divide: built = build.binary(Op::div, a->id, b->id); break;
      case ast::BinaryOp::contract: built = build.matmul(a->id, b->id); break;
      default: evaluator.set_failed(); return {};
    }
    return state_->check(built, expr.op_range, frame);
  }
  const double number = evaluator.to_float(a ? right : left);
  const tensor::ValueId x = a ? a->id : b->id;
  switch (expr.op) {
    case ast::BinaryOp::add: built = build.offset(x, number); break;
    case ast::BinaryOp::subtract:
      if (a) {
        built = build.offset(x, -number);
      } else if ((built = build.unary(Op::neg, x))) {
        built = build.offset(built.value, number);
      }
      break;
    case ast::BinaryOp::multiply: built = build.scale(x, number); break;
    case ast::BinaryOp::divide:
      if (a) {
        if (number == 0) {
          evaluator.fail(Code::division_by_zero, expr.right->range, frame,
                         "a tensor is divided by 0");
          return {};
        }
        built = build.scale(x, 1 / number);
      } else {
        tensor::Attrs fill;
        fill.scalar = number;
        fill.shape = tensor::Type{state_->graph.type(x).dtype, {}};
        if ((built = build.op(Op::fill, {}, fill))) built = build.binary(Op::div, built.value, x);
      }
      break;
    default: evaluator.set_failed(); return {};
  }
  return state_->check(built, expr.op_range, frame);
}

}  // namespace piper::lower
