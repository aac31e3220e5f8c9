// Written types, shapes, parameters, inputs and weights.

#include "frontend/sema/analyser.h"
#include "frontend/source/word_of_hint.h"
#include "ir/diagnostics/suggestion.h"

namespace piper::sema {

Type Analyser::resolve_type(const ast::TypeRef& type) {
  struct Row {
    std::string_view name;
    TypeKind kind;
    bool shaped;
  };
  static constexpr Row kRows[] = {
      {"axis", TypeKind::axis, false},         {"bf16", TypeKind::tensor_bf16, true},
      {"bool", TypeKind::boolean, false},      {"bytes", TypeKind::bytes, false},
      {"cursor", TypeKind::cursor, false},     {"devices", TypeKind::devices, false},
      {"f32", TypeKind::tensor_f32, true},     {"f64", TypeKind::tensor_f64, true},
      {"float", TypeKind::floating, false},    {"i64", TypeKind::tensor_i64, true},
      {"int", TypeKind::integer, false},       {"order", TypeKind::order, false},
      {"selector", TypeKind::selector, false}, {"steps", TypeKind::steps, false},
      {"string", TypeKind::string, false},     {"tensor", TypeKind::tensor, true},
  };
  switch (type.kind) {
    case ast::TypeKind::error: return kError;
    case ast::TypeKind::list: {
      const Type element = resolve_type(*type.element);
      if (element.is_error()) return kError;
      if (element.list) {
        sink_.report(Code::misplaced_type, type.range, "a list of lists")
            .hint("a list inside a list is spliced, so this is `{}`", type_name(element));
        return element;
      }
      if (element == kCursor || element.is(TypeKind::steps)) {
        sink_
            .report(Code::misplaced_type, type.element->range, "there are no lists of `{}`",
                    type_name(element))
            .hint(
                "{}",
                element == kCursor
                    ? "a cursor is a local or an argument; lists hold the selectors that it walks through"
                    : "steps are called where they belong");
        return kError;
      }
      return {element.kind, true};
    }
    case ast::TypeKind::name:
    case ast::TypeKind::shaped: break;
  }
  if (type.name.missing()) return kError;
  const bool shaped = type.kind == ast::TypeKind::shaped;
  for (const Row& row : kRows) {
    if (row.name != type.name.name) continue;
    if (row.shaped && !shaped) {
      sink_.report(Code::misplaced_type, type.range, "`{}` has no shape", row.name)
          .hint("name its dimensions: `{}[batch, dim]`", row.name);
      return {row.kind};
    }
    if (!row.shaped && shaped) {
      sink_.report(Code::misplaced_type, type.range, "`{}` takes no dimensions", row.name)
          .hint("a list is `[{}]`; tensors are `tensor[...]` and `i64[...]`", row.name);
      return kError;
    }
    return {row.kind};
  }
  if (report_unavailable(type.name.name, type.name.range)) return kError;
  std::vector<std::string_view> names;
  for (const Row& row : kRows) names.push_back(row.name);
  auto diagnostic =
      sink_.report(Code::unknown_type, type.name.range, "there is no type `{}`", type.name.name);
  if (const std::string_view instead = instead_of_foreign(type.name.name); !instead.empty()) {
    diagnostic.hint("{}", instead);
    if (const auto word = word_of_hint(instead);
        word && word->find_first_of("([ ") == std::string_view::npos)
      diagnostic.fix(type.name.range, std::string(*word));
  } else if (const std::string_view best = nearest_name(type.name.name, names); !best.empty()) {
    diagnostic.did_you_mean(best, type.name.name);
  } else {
    diagnostic.hint(
        "types are `int`, `float`, `bool`, `string`, `bytes`, `axis`, `devices`, `selector`, `order`, `steps`, `cursor`, "
        "`tensor[...]`, `i64[...]` and lists `[T]`");
  }
  return kError;
}

void Analyser::dims(std::span<const ast::Dim> list, DimsOf of) {
  for (std::size_t i = 0; i < list.size(); ++i) {
    const ast::Dim& dim = list[i];
    if (dim.size != nullptr) expect(*dim.size, kInt, {.what = "the size of a dimension"});
    if (dim.name.missing()) continue;
    bool repeated = false;
    for (std::size_t j = 0; j < i && !repeated; ++j) repeated = list[j].name.name == dim.name.name;
    if (repeated) {
      sink_
          .report(Code::repeated_dimension, dim.name.range, "`{}` appears twice in one shape",
                  dim.name.name)
          .hint("names are unique within a shape: call one of them differently");
      continue;
    }
    Local* local = find_local(dim.name.name);
    if (local != nullptr) {
      local->used = true;
      dim.name.binding = local->slot;
      if (!local->type.is_error() && local->type != kInt) {
        sink_
            .report(Code::type_mismatch, dim.name.range,
                    "`{}` is {} here, not the size of a dimension", dim.name.name,
                    with_article(local->type))
            .related(local->range, "`{}` is declared here", dim.name.name);
      } else if (dim.size != nullptr && of != DimsOf::result) {
        sink_.report(Code::repeated_dimension, dim.range, "`{}` has a size already", dim.name.name)
            .related(local->range, "it is given here")
            .hint("write `{}` alone, or choose another name", dim.name.name);
      }
      continue;
    }
    // A dimension that the body makes: its size is known when that runs.
    if (of == DimsOf::result) continue;
    if (of == DimsOf::weight && dim.size == nullptr) {
      auto diagnostic = sink_.report(Code::unknown_dimension, dim.name.range,
                                     "the dimension `{}` has no size here", dim.name.name);
      std::vector<std::string_view> names;
      for (const Local& other : locals_) {
        if (other.type == kInt) names.push_back(other.name);
      }
      const std::string_view best = nearest_name(dim.name.name, names);
      if (!best.empty()) {
        diagnostic.did_you_mean(best, dim.name.name);
      } else {
        diagnostic.hint("give it one: `{}: SIZE`", dim.name.name);
      }
    }
    declare_local(dim.name, kInt, LocalKind::dimension);
  }
}

void Analyser::type_dims(const ast::TypeRef& type, DimsOf of) {
  if (type.kind == ast::TypeKind::list) type_dims(*type.element, of);
  if (type.kind == ast::TypeKind::shaped) dims(type.dims, of);
}

void Analyser::parameter(const ast::Param& param, std::size_t position, const Function& function) {
  type_dims(*param.type, DimsOf::parameter);
  if (param.default_value == nullptr) return;
  const Place place{.what = "", .name = param.name.name, .owner = function.name()};
  expect(*param.default_value, function.params[position], place);
}

void Analyser::input(const ast::InputStmt& stmt) {
  if (body_.depth > 1) {
    const SourceRange word{stmt.range.file, stmt.range.begin, stmt.range.begin + 5};
    sink_.report(Code::misplaced_statement, word, "`input` is inside a block")
        .hint("it belongs directly in the `model`");
  }
  for (const ast::Param& param : stmt.inputs) {
    Type type = resolve_type(*param.type);
    if (!type.is_error() && !type.is_tensor()) {
      sink_
          .report(Code::misplaced_type, param.type->range, "an input is a tensor, this is {}",
                  with_article(type))
          .hint(
              "write `i64[batch, seq]` or `tensor[batch, dim]`; a value that is not data is a parameter of the model");
      type = kError;
    }
    if (param.default_value != nullptr) {
      sink_.report(Code::misplaced_statement, param.default_value->range, "an input has no default")
          .hint("the `data` of the train gives it");
    }
    type_dims(*param.type, DimsOf::input);
    declare_local(param.name, type, LocalKind::input);
  }
}

void Analyser::weight(const ast::WeightStmt& stmt) {
  for (const ast::WeightDecl& weight : stmt.weights) {
    dims(weight.dims, DimsOf::weight);
    declare_local(weight.name, kTensor, LocalKind::weight);
  }
  if (stmt.init != nullptr) {
    const Type type = infer(*stmt.init, {TypeKind::initializer});
    if (type.is_error() || type.is(TypeKind::initializer)) return;
    auto diagnostic =
        sink_.report(Code::type_mismatch, stmt.init->range,
                     "this is {}; a weight begins with an initializer", with_article(type));
    if (type.is_number()) {
      diagnostic.hint("write `constant({})`", ast::source_text(*stmt.init));
    } else {
      diagnostic.hint("write `normal(0.02)`, `uniform(0.1)`, `constant(0.5)`, `ones` or `zeros`");
    }
  }
}

}  // namespace piper::sema
