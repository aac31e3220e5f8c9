#pragma once
// Builtin names: functions, order methods, initialisers, settings, measures. One table,
// builtins.def.
//
// Signatures are text, as messages and editors show them; the table is read once.
//
//   signature(Builtin::attend).text   ->  "attend(q: tensor, k: tensor, v: tensor, causal: bool = false, scale: float = ...) -> tensor"
//   signature(Builtin::attend).params[3]  ->  {causal, bool, optional}

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "frontend/sema/type.h"
#include "ir/directive/directive.h"

namespace piper::sema {

enum class Builtin : std::uint16_t {
#define BUILTIN(id, signature) id,
#define UNAVAILABLE(name, instead)
#include "frontend/sema/builtins.def"
#undef BUILTIN
#undef UNAVAILABLE
};

struct BuiltinParam {
  std::string_view name;
  Type type;
  bool optional = false;
  std::string_view default_text;  // of an optional one, as shown
};

struct Signature {
  Builtin id{};
  std::string_view text;
  std::string_view name;   // of a method without `order.`
  bool is_value = false;   // used without parentheses: `ones`, `f64`, `peak_memory`
  bool is_method = false;  // of an order
  std::vector<BuiltinParam> params;
  bool variadic = false;  // further positional arguments of type `rest`
  bool open = false;      // further named arguments of type `rest`
  Type rest;
  Type result;
};

const Signature& signature(Builtin id);

/// The measure of a builtin of type `measure`; nothing for others.
std::optional<directive::Measure> measure_of(Builtin id);
/// The optimizer of a builtin; nothing for others.
std::optional<directive::Optimizer::Kind> optimizer_of(Builtin id);

/// All builtins of one name, methods or not; several if arguments distinguish them (`max` of
/// numbers and along a dimension).
std::span<const Signature* const> find_builtins(std::string_view name, bool method);

/// A name that the language knows and this version does not have.
struct Unavailable {
  std::string_view name;
  std::string_view instead;
};
const Unavailable* find_unavailable(std::string_view name);

/// The replacement for a name of another language (`float32`, `None`, `range`); empty if unknown.
std::string_view instead_of_foreign(std::string_view name);

/// Every name of the table, for suggestions and completion.
std::span<const std::string_view> builtin_names(bool methods);

}  // namespace piper::sema
