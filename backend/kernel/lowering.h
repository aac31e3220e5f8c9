#pragma once
// The lowering of one fused step: the state that its parts share, and the construction of
// statements. `lower_nest` is the entry.
//
// Guarantees: equal statements without effect are one; every statement has a flag for one value per
// row; values that other steps read are stored at their definition.
//
//   Kernel kernel = Lowering(body, axes, fusion, step, buffers, target).run();

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "backend/kernel/lower_kernel.h"
#include "backend/kernel/schedule_passes.h"

namespace piper::backend {

class Lowering {
 public:
  Lowering(const dag::Body& body, const Axes& axes, const Fusion& fusion, const FusedStep& step,
           const StepBuffers& buffers, Target target)
      : body_(body),
        graph_(body.graph),
        axes_(axes),
        fusion_(fusion),
        step_(step),
        buffers_(buffers),
        target_(target) {}

  Kernel run();

 private:
  friend class Along;
  using Id = std::int32_t;  // position in the kernel's statements

  void choose_loops();
  void lower(const Item& item);
  /// Ops along the columns of a row: softmax, norms, maxima and cross-entropy (lower_along.cpp).
  void along(const Item& item);
  void sum(const Item& item);
  void gather(const Item& item);
  /// Parts of a dimension and rotations: loads from other positions than the element's own.
  void moved(const Item& item);
  void scatter(const Item& item);
  Id pointwise(const Item& item);
  void dropout_strides(Statement& s, tensor::ValueId value);

  // ---- statements
  Id add(Statement s);
  Id constant(tensor::DType dtype, double number) {
    Statement s;
    s.code = Code::constant;
    s.dtype = dtype;
    s.scalar = number;
    return add(std::move(s));
  }
  Id op(Code code, std::string name, Id a, Id b = -1, Id c = -1) {
    Statement s;
    s.code = code;
    s.dtype = dtype_of(a);
    s.operands[0] = a;
    s.operands[1] = b;
    s.operands[2] = c;
    s.brief = brief_ && has_brief_form(code);
    s.name = std::move(name);
    return add(std::move(s));
  }
  Id cast(Id a, tensor::DType dtype) {
    if (dtype_of(a) == dtype) return a;
    Statement s;
    s.code = Code::cast;
    s.dtype = dtype;
    s.operands[0] = a;
    s.name = kernel_.statements[static_cast<std::size_t>(a)].name;
    return add(std::move(s));
  }
  /// The result of an operation of type `dtype`, rounded if `dtype` is narrower than the type of
  /// the computation.
  Id rounded(Id a, tensor::DType dtype);
  /// Whether all its results are bf16 numbers.
  bool is_rounded(Id a) const;
  tensor::DType dtype_of(Id id) const {
    return kernel_.statements[static_cast<std::size_t>(id)].dtype;
  }
  Id number(Id like, double value) { return constant(dtype_of(like), value); }

  // ---- values
  Id value(tensor::ValueId operand);
  Id load(tensor::ValueId memory, std::span<const Axis> axes);
  Access access(BufferIndex buffer, std::span<const Axis> axes) const;
  /// The element of `operand` at the position in `result` plus `places` along `dim`, if the
  /// position in `result` is in [first, end); else `otherwise`, or 0.
  Id load_moved(tensor::ValueId operand, tensor::ValueId result, Symbol dim, std::int64_t places,
                std::int64_t first, std::int64_t end, Id otherwise = -1);
  /// A statement that walks with the positions of an axis.
  Statement walk_along(Axis axis) const;
  Id position(Axis axis, tensor::DType dtype);
  void define(tensor::ValueId result, Id id);
  void store(BufferIndex buffer, std::span<const Axis> axes, Id id);
  SourceLocation place(const tensor::Node& node) const {
    return location_of(graph_.context().locations, node.loc);
  }
  std::string name(tensor::ValueId value) const {
    return short_name(graph_.context().text(graph_.value(value).name));
  }

  const dag::Body& body_;
  const tensor::Graph& graph_;
  const Axes& axes_;
  const Fusion& fusion_;
  const FusedStep& step_;
  const StepBuffers& buffers_;
  const Target target_;
  Kernel kernel_;
  std::vector<Axis> loops_;   // rows, then columns; extents above 1
  std::size_t num_rows_ = 0;  // number of rows among them
  Space columns_;             // all column axes, also of extent 1
  bool brief_ = false;        // of the current op
  std::map<tensor::ValueId, Id> defined_;
};

}  // namespace piper::backend
