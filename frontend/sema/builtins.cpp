#include "frontend/sema/builtins.h"

#include <algorithm>
#include <cassert>
#include <map>

namespace piper::sema {

namespace {

std::string_view trim_spaces(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

Type parse_type(std::string_view text) {
  struct Row {
    std::string_view name;
    TypeKind kind;
  };
  static constexpr Row kRows[] = {
      {"any", TypeKind::any},
      {"bool", TypeKind::boolean},
      {"bytes", TypeKind::bytes},
      {"data", TypeKind::data},
      {"decay", TypeKind::decay},
      {"device", TypeKind::device},
      {"devices", TypeKind::devices},
      {"link", TypeKind::link},
      {"platform", TypeKind::platform},
      {"processor", TypeKind::processor},
      {"dimension", TypeKind::dimension},
      {"dtype", TypeKind::dtype},
      {"every", TypeKind::every},
      {"fallback", TypeKind::fallback},
      {"float", TypeKind::floating},
      {"i64", TypeKind::tensor_i64},
      {"initializer", TypeKind::initializer},
      {"int", TypeKind::integer},
      {"measure", TypeKind::measure},
      {"names", TypeKind::names},
      {"number", TypeKind::number},
      {"objective", TypeKind::objective},
      {"op", TypeKind::op},
      {"optimizer", TypeKind::optimizer},
      {"order", TypeKind::order},
      {"rate", TypeKind::rate},
      {"sampling", TypeKind::sampling},
      {"selector", TypeKind::selector},
      {"string", TypeKind::string},
      {"tensor", TypeKind::tensor},
      {"token_type", TypeKind::token_type},
      {"weights", TypeKind::weights},
  };
  const bool list = text.front() == '[';
  if (list) text = text.substr(1, text.size() - 2);
  for (const Row& row : kRows) {
    if (row.name == text) return {row.kind, list};
  }
  assert(false && "a type in builtins.def is misspelt");
  return {};
}

/// Reads one row of builtins.def; the rows are ours, so their form is not checked beyond
/// assertions.
Signature parse_signature(Builtin id, std::string_view text) {
  Signature out;
  out.id = id;
  out.text = text;
  const std::size_t arrow = text.rfind("->");
  out.result = parse_type(trim_spaces(text.substr(arrow + 2)));
  const std::size_t open = text.find('(');
  out.is_value = open == std::string_view::npos;
  out.name = trim_spaces(text.substr(0, std::min(open, arrow)));
  if (out.name.starts_with("order.")) {
    out.is_method = true;
    out.name.remove_prefix(6);
  }
  if (out.is_value) return out;
  std::string_view list = text.substr(open + 1, text.rfind(')', arrow) - open - 1);
  while (!list.empty()) {
    std::size_t depth = 0;
    std::size_t end = 0;
    for (; end < list.size() && (depth > 0 || list[end] != ','); ++end) {
      if (list[end] == '[' || list[end] == '(') ++depth;
      if (list[end] == ']' || list[end] == ')') --depth;
    }
    const std::string_view param = trim_spaces(list.substr(0, end));
    list = end < list.size() ? list.substr(end + 1) : std::string_view();
    const std::size_t colon = param.find(':');
    const std::size_t equals = param.find(" = ");
    const std::string_view name = trim_spaces(param.substr(0, colon));
    std::string_view type = trim_spaces(
        param.substr(colon + 1, equals == std::string_view::npos ? equals : equals - colon - 1));
    if (type.ends_with("...")) {
      out.variadic = true;
      out.rest = parse_type(type.substr(0, type.size() - 3));
    } else if (name == "*") {
      out.open = true;
      out.rest = parse_type(type);
    } else {
      out.params.push_back(
          {name, parse_type(type), equals != std::string_view::npos,
           equals == std::string_view::npos ? std::string_view() : param.substr(equals + 3)});
    }
  }
  return out;
}

struct Table {
  std::vector<Signature> signatures;  // by Builtin
  std::map<std::string_view, std::vector<const Signature*>> by_name[2];
  std::vector<std::string_view> names[2];

  Table() {
    static constexpr std::string_view kTexts[] = {
#define BUILTIN(id, signature) signature,
#define UNAVAILABLE(name, instead)
#include "frontend/sema/builtins.def"
#undef BUILTIN
#undef UNAVAILABLE
    };
    for (std::size_t i = 0; i < std::size(kTexts); ++i)
      signatures.push_back(parse_signature(static_cast<Builtin>(i), kTexts[i]));
    for (const Signature& row : signatures) by_name[row.is_method][row.name].push_back(&row);
    for (int method = 0; method < 2; ++method) {
      for (const auto& [name, rows] : by_name[method]) names[method].push_back(name);
    }
  }
};

const Table& table() {
  static const Table kTable;
  return kTable;
}

}  // namespace

std::optional<directive::Measure> measure_of(Builtin id) {
  switch (id) {
#define MEASURE(name, unit) \
  case Builtin::name: return directive::Measure::name;
#include "ir/directive/measures.def"
#undef MEASURE
    default: return std::nullopt;
  }
}

std::optional<directive::Optimizer::Kind> optimizer_of(Builtin id) {
  switch (id) {
#define OPTIMIZER(name) \
  case Builtin::name: return directive::Optimizer::Kind::name;
#include "ir/directive/optimizers.def"
#undef OPTIMIZER
    default: return std::nullopt;
  }
}

const Signature& signature(Builtin id) { return table().signatures[static_cast<std::size_t>(id)]; }

std::span<const Signature* const> find_builtins(std::string_view name, bool method) {
  const auto& rows = table().by_name[method];
  const auto found = rows.find(name);
  if (found == rows.end()) return {};
  return found->second;
}

std::string_view instead_of_foreign(std::string_view name) {
  static constexpr Unavailable kRows[] = {
#define FOREIGN(name, instead) {#name, instead},
#include "frontend/sema/foreign_names.def"
#undef FOREIGN
  };
  const auto row =
      std::find_if(std::begin(kRows), std::end(kRows),
                   [&](const Unavailable& candidate) { return candidate.name == name; });
  return row == std::end(kRows) ? std::string_view() : row->instead;
}

const Unavailable* find_unavailable(std::string_view name) {
  static constexpr Unavailable kRows[] = {
#define BUILTIN(id, signature)
#define UNAVAILABLE(name, instead) {#name, instead},
#include "frontend/sema/builtins.def"
#undef BUILTIN
#undef UNAVAILABLE
  };
  for (const Unavailable& row : kRows) {
    if (row.name == name) return &row;
  }
  return nullptr;
}

std::span<const std::string_view> builtin_names(bool methods) { return table().names[methods]; }

}  // namespace piper::sema
