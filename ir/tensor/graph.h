#pragma once
// The tensor graph: SSA values with named dimensions, operations in a topological order, regions
// and adjoint tags.
//
// One type serves the whole model and a chunk's body, whose samples are those of one microbatch.
// Nodes are stored in an order in which every operand precedes its user. Values are graph inputs or
// results of nodes. Storage is flat; ids are positions.
//
//   tensor gpt {
//     %tokens = input i64[batch: 32*, seq: 128]
//     %token = weight f32[vocab: 256, dim: 64] "embed.0.token" normal(0.02)
//     %x = lookup(%token, %tokens) @F region gpt[0].embed[0] : f32[batch: 32*, seq: 128, dim: 64]
//     ...
//     loss "gpt.loss.0" %elements sum %s
//     grad "embed.0.token" %dtoken
//   }

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "ir/pass.h"
#include "ir/region.h"
#include "ir/tensor/op.h"

namespace piper::tensor {

using ValueId = Id<struct ValueTag>;
using NodeId = Id<struct TensorNodeTag>;
using ParamId = Id<struct ParamTag>;  // position in Graph::params
using InputId = Id<struct InputTag>;  // position in Graph::inputs
using LossId = Id<struct LossTag>;    // position in Graph::losses

struct Value {
  Type type;
  NodeId def;                // invalid: an input, a weight or a port of the graph
  std::uint16_t result = 0;  // position among the results of `def`
  // Stable name for text and generated code; unique in the graph, derived from op and logical path.
  Symbol name;
  LayoutId layout = {};  // in bodies: its layout
};

struct Node {
  Op op{};
  Pass pass = Pass::F;  // F, BI or BW; B never occurs here
  RegionId region;      // innermost region; a backward op has that of its forward op
  // Backward ops: the forward op whose adjoint this is part of (an adjoint sum: the op that made
  // the value); else invalid.
  NodeId origin;
  LocId loc;
  std::uint32_t first_operand = 0, num_operands = 0;  // into Graph::operand pool
  std::uint32_t first_result = 0, num_results = 0;    // results are consecutive values
  Attrs attrs;
};

/// How a parameter starts. Values are a function of (seed, parameter name, element), whatever the
/// layout.
struct Init {
  enum class Kind : std::uint8_t { normal, uniform, zeros, ones, constant } kind = Kind::normal;
  // Normal: standard deviation; uniform: bound of [-scale, scale]; constant: the value.
  double scale = 0.02;
  friend bool operator==(const Init&, const Init&) = default;
};

/// A weight. One logical parameter may have any number of uses (tied weights).
struct Param {
  Symbol name;  // call path with per-callee counters: `block.3.attention.0.q`
  ValueId value;
  Init init;
  LocId loc;
  bool frozen = false;  // it keeps its initial values: no gradient, no update (`freeze`)
  // Factors of the learning rate and of the weight decay in its updates (`tune`, `decay: matrices`).
  double rate = 1, decay = 1;
};

/// A data input: its sampled dimension is the batch.
struct Input {
  Symbol name;  // `tokens`
  ValueId value;
  LocId loc;
};

/// Which elements of a loss count: those whose target is not `ignore`.
struct LossMask {
  InputId targets;
  std::int32_t ignore = 0;
  ValueId count;  // a leaf, f64[]: their number over the whole batch
  friend bool operator==(const LossMask&, const LossMask&) = default;
};

/// One `loss` statement. Its value is sum(elements) / count, count the number of elements over the
/// whole batch (weights are part of the expression); with a mask sum(elements) / max(1,
/// mask->count).
struct Loss {
  Symbol name;             // `gpt.loss.0`
  ValueId elements;        // every dimension counts
  ValueId sum;             // scalar, a node in F
  std::int64_t count = 0;  // elements over the whole batch
  LocId loc;
  std::optional<LossMask> mask = {};
};

/// The adjoint of one use of a parameter: a value without other uses, computed in the region of
/// that use. The owner of the parameter adds up its uses, so that chunks stay independent.
struct ParamGrad {
  ParamId param;
  ValueId value;
};

class Graph {
 public:
  explicit Graph(Context& context) : context_(&context) {}

  Context& context() const { return *context_; }

  // ---- reading
  std::span<const Node> nodes() const { return nodes_; }
  std::span<const Value> values() const { return values_; }
  const Node& node(NodeId id) const { return nodes_[id.index()]; }
  const Value& value(ValueId id) const { return values_[id.index()]; }
  const Type& type(ValueId id) const { return values_[id.index()].type; }
  std::span<const ValueId> operands(const Node& node) const {
    return {operands_.data() + node.first_operand, node.num_operands};
  }
  ValueId result(const Node& node, std::size_t i = 0) const {
    return ValueId(node.first_result + static_cast<std::uint32_t>(i));
  }

  // ---- building (append only; rewrites make a new graph)
  /// A value without a defining node: an input, a weight, or a port of a body. A name that is taken
  /// gets the next free number appended.
  ValueId add_leaf(Type type, Symbol name);
  /// Appends an op; its result types come from the op's shape rule. Operands must be legal for it:
  /// callers check with `infer` (op_rules.h) first. Results are named `name`, by default region
  /// path and op (`block.3.mlp.0.gelu`); further results get what they are appended (`.lse`), and a
  /// name that is taken the next free number.
  NodeId add(Op op, std::span<const ValueId> operands, Attrs attrs, Pass pass, RegionId region,
             LocId loc, NodeId origin = {}, Symbol name = {});

  std::string name;
  RegionTable regions;
  std::vector<Param> params;
  std::vector<Input> inputs;
  std::vector<Loss> losses;
  std::vector<ParamGrad> grads;  // empty before `differentiate`

  /// The parameter or input that a leaf is; invalid for other values. Linear in their number.
  ParamId param_of(ValueId value) const;
  InputId input_of(ValueId value) const;

  /// Mutable access for passes that rewrite regions in place (`partition`).
  std::vector<Node>& mutable_nodes() { return nodes_; }
  /// Mutable access for passes that divide extents in place.
  std::vector<Value>& mutable_values() { return values_; }
  void set_layout(ValueId value, LayoutId layout) { values_[value.index()].layout = layout; }
  /// Appends an op with known result types and names, for the parser. No rule is checked; `verify`
  /// does that.
  NodeId add_unchecked(Node node, std::span<const ValueId> operands, std::span<const Type> types,
                       std::span<const Symbol> names);

 private:
  Symbol unique(Symbol name);

  Context* context_;
  std::vector<Node> nodes_;
  std::vector<Value> values_;
  std::vector<ValueId> operands_;
  std::unordered_map<Symbol, std::uint32_t> taken_;  // value names; how often each was requested
};

}  // namespace piper::tensor
