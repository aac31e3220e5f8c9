#pragma once
// Static types of expressions. The shape of a tensor is not part of its type: extents are known
// when a model is elaborated.
//
//   0..m is `[int]`, `stage[r] mb[0..m]` is `selector`, `tensor[batch, dim]` is `tensor`

#include <cstdint>
#include <string_view>

#include "frontend/ast/expr.h"

namespace piper::sema {

enum class TypeKind : std::uint8_t {
  error,  // reported already; fits everything
  none,   // the result of a call without a result
  integer,
  floating,
  boolean,
  string,
  bytes,  // an amount of memory
  axis,   // converts to int (its size) and to devices (all of it)
  devices,
  selector,
  cursor,  // second class: a local or an argument, never stored or returned
  order,
  steps,   // only as the result of a function
  tensor,  // of the element type of the train
  tensor_f64,
  tensor_f32,
  tensor_bf16,
  tensor_i64,
  dimension,    // the name of a dimension: `along: seq`
  op,           // `F a` as an argument
  measure,      // `peak_memory`, `host_memory`, `bubble`, `traffic`
  initializer,  // `normal(0.02)`
  data,         // `bytes("web.txt", batch: 32, seq: 128)`
  optimizer,    // `adamw(lr: 1e-3)`
  rate,         // `cosine(3e-4, warmup: 20)`; numbers convert to it
  every,        // `every(100, keep: 3)`
  sampling,     // `epoch`
  objective,    // `span`
  token_type,   // `u16`
  weights,      // `weights("model.safetensors")`
  fallback,     // `init`, as the value of `missing`
  decay,        // `matrices`
  norm_test,    // `norm > 10`, as the value of `skip_step`
  names,        // a `names` item: the tensors of a file for the parameters of a model
  dtype,        // `f64`
  platform,     // `cuda`
  device,       // `device(memory: 80GiB)`
  processor,    // `h100`
  link,         // `link(bandwidth: 50GiB)`
  any,          // element type of the empty list; in signatures: every type
  number,       // only in signatures: int, float or bytes
};

struct Type {
  TypeKind kind = TypeKind::error;
  bool list = false;  // a list inside a list is spliced, so there is one level

  constexpr std::uint16_t bits() const {
    return static_cast<std::uint16_t>(static_cast<unsigned>(kind) | (list ? 0x100u : 0u));
  }
  static constexpr Type from_bits(std::uint16_t bits) {
    return {static_cast<TypeKind>(bits & 0xFFu), (bits & 0x100u) != 0};
  }
  constexpr bool is(TypeKind scalar) const { return kind == scalar && !list; }
  constexpr bool is_error() const { return kind == TypeKind::error; }
  constexpr bool is_tensor() const {
    return !list && kind >= TypeKind::tensor && kind <= TypeKind::tensor_i64;
  }
  constexpr bool is_number() const {
    return !list && (kind == TypeKind::integer || kind == TypeKind::floating ||
                     kind == TypeKind::bytes || kind == TypeKind::axis);
  }
  constexpr Type element() const { return {kind, false}; }
  friend constexpr bool operator==(Type, Type) = default;
};

/// As a program writes it: `int`, `[selector]`, `tensor`.
std::string_view type_name(Type type);

/// The static type of an analysed expression: of its value before any conversion to the expected
/// type.
inline Type type_of(const ast::Expr& expr) { return Type::from_bits(expr.type); }

}  // namespace piper::sema
