#pragma once
// The reference evaluator of tensor graphs: one plain loop per op over named coordinates, slow and
// simple.
//
// It shares no code with the backend or the runtime. Arithmetic is in double; results of f32 type
// are rounded to f32 after each op.
//
//   Evaluator evaluate(graph);
//   evaluate.set(x, {type, numbers});
//   evaluate.run();
//   evaluate.get(loss).data[0]

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "ir/tensor/graph.h"

namespace piper::test {

/// A tensor's numbers, row-major in the memory order of its type. Integers are stored exactly.
struct Array {
  tensor::Type type;
  std::vector<double> data;
};

/// Whether dropout keeps an element: of (op name, row-major position in the operand).
using DropoutMask = std::function<bool(Symbol seed, std::size_t element)>;

class Evaluator {
 public:
  explicit Evaluator(const tensor::Graph& graph, DropoutMask keeps = {})
      : graph_(graph), keeps_(std::move(keeps)), values_(graph.values().size()) {}

  /// The numbers of a leaf.
  void set(tensor::ValueId value, Array array) { values_[value.index()] = std::move(array); }
  /// Evaluates all nodes, or those of `nodes` in that order.
  void run();
  void run(std::span<const tensor::NodeId> nodes);
  const Array& get(tensor::ValueId value) const { return values_[value.index()]; }
  /// Sum over all losses of sum / count.
  double total_loss() const;
  /// The sum of all contributions to a parameter's gradient.
  Array gradient(tensor::ParamId param) const;

 private:
  /// The counts of masked losses, from their targets.
  void count_targets();

  const tensor::Graph& graph_;
  DropoutMask keeps_;
  std::vector<Array> values_;
};

/// One op on given operands.
std::vector<Array> evaluate_op(tensor::Op op, std::span<const Array> operands,
                               std::span<const tensor::Type> results, const tensor::Attrs& attrs,
                               const DropoutMask& keeps = {});

/// The part of `array` at [begin, begin + extent) along `dim`.
Array slice(const Array& array, Symbol dim, std::int64_t begin, std::int64_t extent);
/// The parts joined along `dim`.
Array concatenate(std::span<const Array> parts, Symbol dim);

}  // namespace piper::test
