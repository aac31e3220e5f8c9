#include "frontend/lower/names/config_facts.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

#include "ir/diagnostics/suggestion.h"

namespace piper::lower {

namespace {

std::string json_text(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string json = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      json += '\\';
      json += c;
    } else if (byte < 0x20) {
      json += "\\u00";
      json += kDigits[byte >> 4];
      json += kDigits[byte & 15u];
    } else {
      json += c;
    }
  }
  return json + "\"";
}

/// The shortest text with this value; a float without a fraction keeps its point.
std::string json_number(double value) {
  char buffer[32];
  const auto [end, status] = std::to_chars(buffer, buffer + sizeof(buffer), value);
  std::string text(buffer, status == std::errc() ? end : buffer);
  return text.find_first_of(".en") == std::string::npos ? text + ".0" : text;
}

std::string joined(const std::vector<std::string>& elements) {
  std::string text;
  for (const std::string& element : elements) text += (text.empty() ? "" : ", ") + element;
  return "[" + text + "]";
}

/// Nothing for a value that JSON has no form of.
std::optional<std::string> json_of(const Value& value) {
  if (const auto* number = value.get<std::int64_t>()) return std::to_string(*number);
  if (const auto* number = value.get<double>())
    return std::isfinite(*number) ? std::optional(json_number(*number)) : std::nullopt;
  if (const auto* truth = value.get<bool>()) return *truth ? "true" : "false";
  if (const auto* bytes = value.get<ByteCount>()) return std::to_string(bytes->bytes);
  if (const auto* text = value.shared<std::string>()) return json_text(*text);
  std::vector<std::string> elements;
  if (const auto* range = value.get<Range>()) {
    constexpr std::int64_t kMaxElements = 4096;
    if (range->size() > kMaxElements) return std::nullopt;
    for (std::int64_t i = 0; i < range->size(); ++i)
      elements.push_back(std::to_string(range->begin + i * range->step));
    return joined(elements);
  }
  const auto* list = value.shared<Values>();
  if (list == nullptr) return std::nullopt;
  for (const Value& element : *list) {
    std::optional<std::string> json = json_of(element);
    if (!json) return std::nullopt;
    elements.push_back(std::move(*json));
  }
  return joined(elements);
}

class Facts {
 public:
  Facts(const FactNames& names, NamesReports& reports) : names_(names), reports_(reports) {}

  std::optional<std::string> json(const ast::Expr& expr) {
    switch (expr.kind) {
      case ast::ExprKind::string: return json_text(llvm::cast<ast::StringExpr>(expr).value);
      case ast::ExprKind::boolean: return llvm::cast<ast::BoolExpr>(expr).value ? "true" : "false";
      case ast::ExprKind::number: return number(llvm::cast<ast::NumberExpr>(expr));
      case ast::ExprKind::unary:
        return "-" + number(llvm::cast<ast::NumberExpr>(*llvm::cast<ast::UnaryExpr>(expr).operand));
      case ast::ExprKind::name: return name(llvm::cast<ast::NameExpr>(expr));
      case ast::ExprKind::list: {
        std::vector<std::string> elements;
        for (const ast::Expr* element : llvm::cast<ast::ListExpr>(expr).elements) {
          std::optional<std::string> one = json(*element);
          if (!one) return std::nullopt;
          elements.push_back(std::move(*one));
        }
        return joined(elements);
      }
      default: return std::nullopt;  // refused by the analysis
    }
  }

 private:
  /// The text of the value, because JSON has no leading zeros.
  static std::string number(const ast::NumberExpr& expr) {
    return expr.is_integer ? std::to_string(expr.integer) : json_number(expr.real);
  }

  std::optional<std::string> name(const ast::NameExpr& expr) {
    for (const ModelArgument& argument : names_.arguments) {
      if (argument.name != expr.name) continue;
      std::optional<std::string> json = json_of(argument.value);
      if (!json)
        reports_
            .report(Code::fact_unknown, expr.range, "the argument `{}` of the model is {}",
                    expr.name, describe(argument.value))
            .hint("a fact is a number, a text, a truth value or a list of them");
      return json;
    }
    if (const auto found = names_.extents.find(expr.name); found != names_.extents.end()) {
      if (found->second.size() == 1) return std::to_string(*found->second.begin());
      reports_
          .report(Code::fact_unknown, expr.range,
                  "the dimension `{}` has extent `{}` in one parameter and `{}` in another",
                  expr.name, *found->second.begin(), *found->second.rbegin())
          .hint("give the model an argument of this name");
      return std::nullopt;
    }
    if (const auto found = names_.indices.find(expr.name); found != names_.indices.end())
      return std::to_string(found->second.size());
    if (expr.name == "none") return "null";
    unknown(expr);
    return std::nullopt;
  }

  void unknown(const ast::NameExpr& expr) {
    std::vector<std::string_view> known;
    for (const ModelArgument& argument : names_.arguments) known.push_back(argument.name);
    for (const auto& [dimension, extents] : names_.extents) known.push_back(dimension);
    for (const auto& [index, values] : names_.indices) known.push_back(index);
    auto report = reports_.report(Code::fact_unknown, expr.range,
                                  "the model has no argument and no dimension `{}`", expr.name);
    if (const std::string_view best = nearest_name(expr.name, known); !best.empty()) {
      report.hint("did you mean `{}`?", best);
    } else {
      report.hint("a text is written in quotes: `\"{}\"`", expr.name);
    }
  }

  const FactNames& names_;
  NamesReports& reports_;
};

}  // namespace

std::vector<ConfigFact> config_facts(const ast::NamesItem& item, const FactNames& names,
                                     NamesReports& reports) {
  std::vector<ConfigFact> facts;
  Facts values(names, reports);
  for (const ast::NamesLine& line : item.lines) {
    for (const ast::Pair& fact : line.facts) {
      if (std::optional<std::string> json = values.json(*fact.value))
        facts.push_back({std::string(fact.name.name), std::move(*json)});
    }
  }
  return facts;
}

}  // namespace piper::lower
