#pragma once
// The model side of elaboration: calls of models append to a tensor graph.
//
//   ModelBuilder builder(evaluator, graph, settings, settings.dtype, false);
//   builder.build(train_call, frame)   ->  the graph has inputs, params, nodes, losses

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "frontend/lower/evaluate/evaluator.h"

namespace piper::lower {

/// Whether `clases: 4` in the data is a slip of the pen for the number of classes.
bool means_classes(std::string_view extent);

class ModelBuilder {
 public:
  /// Extents of inputs come from `settings.data`, the element type of `tensor[..]` from
  /// `settings.dtype`, which also replaces `own_dtype`, the train's, if the model writes that out.
  /// With `data_failed` inputs have no values.
  ModelBuilder(Evaluator& evaluator, tensor::Graph& graph, const directive::Settings& settings,
               tensor::DType own_dtype, bool data_failed);
  ~ModelBuilder();

  /// Runs the outermost model of a train. False, and a diagnostic, when extents of its inputs are
  /// not known or its shapes disagree.
  bool build(const ast::CallExpr& call, Frame& frame);
  /// The arguments of that model, in the order of its parameters.
  std::vector<ModelArgument> arguments() const;
  /// Whether the data gives values of every input; if not, a diagnostic has said so.
  bool data_fits() const;

  // ---- called by the evaluator
  /// A call of a model inside a model: a region of its own.
  Value call(const sema::Function& function, const ast::CallExpr& expr, Frame& frame);
  /// A builtin with a tensor among its arguments.
  Value builtin(sema::Builtin id, const ast::CallExpr& expr, Frame& frame);
  /// `a + b`, `2 * x`, `a @ b`: at least one side is a tensor, the other may be a number.
  Value binary(const ast::BinaryExpr& expr, const Value& left, const Value& right, Frame& frame);
  Value negate(const ast::UnaryExpr& expr, const Value& operand, Frame& frame);
  void input(const ast::InputStmt& stmt, Frame& frame);
  void weight(const ast::WeightStmt& stmt, Frame& frame);
  Flow region(const ast::RegionStmt& stmt, Frame& frame);
  void loss(const ast::LossStmt& stmt, Frame& frame);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace piper::lower
