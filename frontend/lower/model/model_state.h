#pragma once
// The state of the model side of elaboration: the stack of model calls and the graph that they
// append to.

#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "frontend/lower/model/model_builder.h"
#include "ir/tensor/builder.h"

namespace piper::lower {

/// One call of a model that is being run.
struct ModelCall {
  std::string path;  // `block.3.attention.0.`; empty for the outermost model
  RegionId region;   // invalid for the outermost model: its work is `model` itself
  // Calls, regions and losses by name.
  std::unordered_map<std::string, std::uint32_t> counters;
  // Dimension names that differ: callee's, caller's.
  std::vector<std::pair<Symbol, Symbol>> to_caller;
};

/// A text about types for messages: without the mark of sample dimensions, which programs do not
/// write.
std::string in_words_of_programs(std::string text);

struct ModelBuilder::State {
  State(Evaluator& evaluator_in, tensor::Graph& graph_in, const directive::Settings& settings_in,
        tensor::DType own_dtype_in, bool data_failed_in)
      : evaluator(evaluator_in),
        graph(graph_in),
        settings(settings_in),
        own_dtype(own_dtype_in),
        data_failed(data_failed_in),
        build(graph_in) {}

  /// The location of the next ops is `range` of the current call.
  void place(SourceRange range, const Frame& frame) { place(range, frame, calls.back().region); }
  void place(SourceRange range, const Frame& frame, RegionId region);
  /// The value, or a diagnostic with the shapes.
  Value check(const tensor::Built& built, SourceRange range, const Frame& frame);
  Value weight(const ast::WeightDecl& decl, const tensor::Init& init, Frame& frame);
  /// The type of an input: extents by name from the train's data.
  std::optional<tensor::Type> input_type(const ast::Param& param, Frame& frame);
  bool gives_values(const directive::Data& data, std::string_view which, const ast::Param& param,
                    const tensor::Type& type, Frame& frame);
  bool go_on_without_data(bool broken_before);
  bool held_out_fits(const ast::Param& param, const tensor::Type& type);
  /// Gives dimension names of the callee's parameters their extents, and arguments the callee's
  /// names.
  void bind_shapes(const sema::Function& function, const ast::CallExpr& expr, Frame& callee,
                   const Frame& caller);
  /// The result of a model, in the caller's names, checked against the declared result.
  Value returned(const sema::Function& function, const Value& value, Frame& callee);
  /// The result of a failed call, so that its caller can be checked: a value of the declared type
  /// if that is known.
  Value stand_in(const sema::Function& function, Frame& callee);
  /// The element type that a written type such as `tensor[..]` or `i64[..]` means: the train's own
  /// one where it is lowered with another.
  tensor::DType dtype_of(sema::Type type) const;
  bool fits(const tensor::Type& type) const;
  std::string show(tensor::ValueId value) const { return show(graph.type(value)); }
  std::string show(const tensor::Type& type) const {
    return in_words_of_programs(tensor::print(type, evaluator.context().symbols));
  }
  /// Warns if an element-wise operation makes all pairs: each operand has a dimension that the
  /// other lacks. A product of operands that share none is an explicit outer product.
  void look_for_pairs(std::string_view operation, const ast::Expr& left, tensor::ValueId a,
                      tensor::ValueId b, SourceRange range, const Frame& frame);
  /// Warns if a product of two values with samples sums over more than one name: one of the names
  /// may be meant to be batched, but does not lead both operands. A product with a weight gives no
  /// warning: it has no samples, and its names are summed.
  void look_for_sums(const ast::BinaryExpr& product, tensor::ValueId a, tensor::ValueId b,
                     const Frame& frame);
  /// Whether `x` has the dimensions that the arguments of a builtin name, and one if they name
  /// none; reports an error if it has not.
  bool has_dimensions(const ast::CallExpr& expr, const sema::Signature& signature,
                      tensor::ValueId x, Frame& frame);
  /// The dimension that argument `param` of a builtin names; invalid when it is left out.
  Symbol dimension_argument(const ast::CallExpr& expr, std::size_t param) const;

  Evaluator& evaluator;
  tensor::Graph& graph;
  const directive::Settings& settings;
  // of the train; `settings.dtype` may replace it, where it is written out too
  const tensor::DType own_dtype;
  const bool data_failed;
  bool data_fits = true;  // gives values of every input
  tensor::Builder build;
  std::vector<ModelCall> calls;
  std::vector<ModelArgument> arguments;  // of the outermost model
  std::unordered_set<std::string> weights;
  // Names of dimensions of inputs that are too small; reported.
  std::unordered_set<std::uint32_t> zero_extents;
  // Names of dimensions of inputs without an extent; reported.
  std::unordered_set<std::uint32_t> unknown_extents;
  // Names of dimensions of inputs that the data gives otherwise; reported.
  std::unordered_set<std::uint32_t> differing_extents;
  // Though inputs need to know them; reported.
  std::unordered_set<const directive::Data*> without_classes;
};

}  // namespace piper::lower
