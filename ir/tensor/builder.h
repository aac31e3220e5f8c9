#pragma once
// Building forward ops: the language's rules for dimension names, on top of `Graph`. Used by
// lowering, import and tests.
//
// Guarantees: every call checks the shape rule first and returns a value or an error in the user's
// words with the shapes shown; on failure nothing is appended. Products have the memory order that
// code generation needs.
//
//   Builder build(graph);
//   build.at(region, loc, "block.3.mlp.0");
//   Built h = build.matmul(x, up);            // [batch, seq, dim] @ [dim, hidden] -> [batch, seq, hidden]
//   if (!h) return sink.report(Code::..., loc, "{}", h.error);

#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "ir/tensor/op_rules.h"

namespace piper::tensor {

/// A value, or why there is none.
struct Built {
  ValueId value;
  std::string error;
  bool mixes_dtypes = false;  // the operands have different floating types

  Built() = default;
  Built(ValueId value) : value(value) {}
  static Built failed(std::string why, bool mixes_dtypes = false) {
    Built built;
    built.error = std::move(why);
    built.mixes_dtypes = mixes_dtypes;
    return built;
  }
  explicit operator bool() const { return value.valid(); }
};

/// The names that `left @ right` sums, in the order of `left`: the shared ones, except the leading
/// run common to both.
std::vector<Symbol> summed_names(const Type& left, const Type& right);

class Builder {
 public:
  explicit Builder(Graph& graph) : graph_(graph) {}

  /// Sets the place of the following ops: `path` is the logical call path (`block.3.mlp.0`) that
  /// names their results.
  void at(RegionId region, LocId loc, std::string path);
  /// The name of the following ops in error texts, until the next place; by default that of the
  /// table. The text must outlive them.
  void called(std::string_view name) { called_ = name; }
  /// The call path alone decides names; the location may change per expression.
  void at(LocId loc) { loc_ = loc; }

  // ---- leaves
  ValueId input(std::string_view name, Type type);
  ValueId weight(std::string_view name, Type type, Init init);

  // ---- any op of the table
  Built op(Op op, std::vector<ValueId> operands, Attrs attrs = {});

  // ---- pointwise, aligned by name
  Built binary(Op op, ValueId a, ValueId b) { return this->op(op, {a, b}); }
  Built unary(Op op, ValueId a) { return this->op(op, {a}); }
  Built scale(ValueId a, double factor);
  Built offset(ValueId a, double summand);
  Built cast(ValueId a, DType dtype);
  /// Its random numbers are keyed by the call path and the number of the dropout within it.
  Built dropout(ValueId a, double rate);

  // ---- along dimensions; `along` invalid: the last
  Built sum(ValueId a, std::vector<Symbol> dims);
  Built mean(ValueId a, std::vector<Symbol> dims);
  Built max(ValueId a, std::vector<Symbol> dims);
  /// softmax, log_softmax; rms_norm and layer_norm with their epsilon.
  Built along(Op op, ValueId a, Symbol along = {}, double epsilon = 0);
  Built cross_entropy(ValueId logits, ValueId targets, Symbol along = {},
                      std::optional<std::int32_t> ignore = {});

  // ---- shapes
  Built rename(ValueId a, std::vector<std::pair<Symbol, Symbol>> names);
  Built permute(ValueId a, std::vector<Symbol> dims);

  // ---- parts of one dimension; `along` invalid: the last
  /// The positions [from, to).
  Built slice(ValueId a, std::int64_t from, std::int64_t to, Symbol along = {});
  /// With `before` zeros in front and `after` behind.
  Built pad(ValueId a, std::int64_t before, std::int64_t after, Symbol along = {});
  /// Position i goes to i + places; vacated positions are 0.
  Built shift(ValueId a, std::int64_t places, Symbol along = {});
  Built concat(ValueId a, ValueId b, Symbol along = {});
  /// first, first + step, ...: as long as `like` along the dimension, of its element type.
  Built iota(ValueId like, double first, double step, Symbol along = {});
  /// Rotary embedding: pair i of the last dimension (i, i + half) of position t along `along` is
  /// turned by t base^(-i / half). Angles are computed in f64.
  Built rotary(ValueId a, Symbol along, double base);

  // ---- products
  /// `a @ b`: sums over the shared names except the leading run common to both, which is batched.
  Built matmul(ValueId a, ValueId b);
  /// Sums over `dims`; other shared names are batched. Copies an operand into another memory order
  /// if the product needs it.
  Built contract(ValueId a, ValueId b, std::vector<Symbol> dims);
  /// Scores are scaled by 1 / sqrt(width).
  Built attend(ValueId q, ValueId k, ValueId v, bool causal);
  Built lookup(ValueId table, ValueId indices) { return op(Op::lookup, {table, indices}); }

  /// A `loss` statement: appends the sum of `elements` and the loss's row. Elements made by a
  /// `cross_entropy` with `ignore` count where its target counts; fails if it is unknown how many
  /// count (`loss_mask.h`).
  Built loss(std::string_view name, ValueId elements);

 private:
  /// Casts a result that an op computed in the wide type back to the type of the operands.
  /// `unrounded` finds the wide value again, for losses.
  Built rounded(Built exact, DType dtype);
  ValueId unrounded(ValueId a) const;
  Symbol last_dim(ValueId a) const;
  /// `op` along one dimension, by default the last of the first operand.
  Built along_one(Op op, std::vector<ValueId> operands, Symbol along, Attrs attrs = {});
  Built ramp(Type type, double first, double step);
  /// The dimension of that name; nothing where `a` has none.
  const Dim* dim_of(ValueId a, Symbol name) const;
  std::string show(ValueId a) const {
    return "`" + print(graph_.type(a), graph_.context().symbols) + "`";
  }

  Graph& graph_;
  RegionId region_;
  LocId loc_;
  std::string path_;
  std::string_view called_;
  std::unordered_map<std::string, std::uint32_t> dropouts_;  // per call path
};

}  // namespace piper::tensor
