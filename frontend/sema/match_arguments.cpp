// Which argument of a call goes to which parameter.

#include "frontend/sema/analyser.h"
#include "ir/diagnostics/suggestion.h"

namespace piper::sema {

struct Analyser::Matching {
  static constexpr std::int32_t kDefault = -1;

  Matching(Analyser& analyser, ast::CallExpr& expr, const Callee& callee, std::vector<Type>& types)
      : analyser(analyser),
        expr(expr),
        callee(callee),
        types(types),
        matched(callee.params.size(), kDefault) {}

  /// Adds the declaration or signature of the callee.
  void note(DiagnosticBuilder diagnostic) {
    if (callee.declared.valid()) {
      diagnostic.related(callee.declared, "`{}` is declared here", callee.name);
    } else if (callee.row != nullptr) {
      diagnostic.hint("it is `{}`", callee.row->text);
    }
    ok = false;
  }

  void argument(std::uint32_t i, std::optional<Type> known) {
    const ast::Arg& arg = expr.args[i];
    if (!arg.name.missing()) return named(i, known);
    if (first_named != nullptr) {
      analyser.sink_
          .report(Code::positional_after_named, arg.range,
                  "an argument without a name follows `{}:`", first_named->name.name)
          .hint("positional arguments come first");
      ok = false;
      return;
    }
    const std::size_t param = position++;
    if (param < callee.params.size()) return give(param, i, known);
    if (callee.row != nullptr && callee.row->variadic) return one_more(i, known);
    // Only the first surplus argument is reported.
    if (param > callee.params.size()) return;
    const bool takes_named = callee.row != nullptr && callee.row->open;
    note(analyser.sink_.report(
        Code::too_many_arguments, arg.range, "`{}` takes {} argument{}{}", callee.name,
        callee.params.empty() ? "no" : std::to_string(callee.params.size()),
        callee.params.size() == 1 ? "" : "s", takes_named ? " without a name" : ""));
  }

  /// An element of a variadic call; a single list is expanded to its elements.
  void one_more(std::uint32_t i, std::optional<Type> known) {
    const ast::Arg& arg = expr.args[i];
    const Type element = callee.row->rest;
    const Type type = known ? *known : analyser.infer(*arg.value, element);
    const bool lone =
        expr.args.size() == 1 && type.list && converts(type, Type{element.kind, true});
    rest.push_back(i);
    if (!lone && analyser.report_mismatch(*arg.value, type, element,
                                          {.what = "", .name = "values", .owner = callee.name}))
      ok = false;
    types.push_back(lone || ok ? type : kError);
  }

  void named(std::uint32_t i, std::optional<Type> known) {
    const ast::Arg& arg = expr.args[i];
    first_named = first_named != nullptr ? first_named : &arg;
    std::size_t param = 0;
    while (param < callee.params.size() && callee.params[param].name != arg.name.name) ++param;
    if (param < callee.params.size()) return give(param, i, known);
    if (callee.row != nullptr && callee.row->open) return open(i, known);
    std::vector<std::string_view> names;
    for (const ParamView& view : callee.params) names.push_back(view.name);
    if (const std::string_view best = nearest_name(arg.name.name, names); !best.empty()) {
      auto diagnostic =
          analyser.sink_.report(Code::unknown_argument, arg.name.range,
                                "`{}` has no parameter `{}`", callee.name, arg.name.name);
      diagnostic.did_you_mean(best, arg.name.name);
      if (callee.declared.valid())
        diagnostic.related(callee.declared, "`{}` is declared here", callee.name);
      ok = false;
    } else {
      unknown.push_back(&arg.name);
    }
    // Checked for errors inside, and so that its names count as used.
    if (!llvm::isa<ast::OpExpr>(arg.value))
      analyser.infer(*arg.value,
                     arg.value->kind == ast::ExprKind::name ? Type{TypeKind::dimension} : kError);
  }

  /// An argument with a name of the caller's own.
  void open(std::uint32_t i, std::optional<Type> known) {
    const ast::Arg& arg = expr.args[i];
    for (const std::uint32_t other : rest) {
      if (expr.args[other].name.name != arg.name.name) continue;
      repeated(arg.name.range, arg.name.name, expr.args[other].name.range);
    }
    analyser.bind_label(arg.name);
    rest.push_back(i);
    analyser.argument(arg, callee.row->rest,
                      {.what = "", .name = arg.name.name, .owner = callee.name}, known);
  }

  void give(std::size_t param, std::uint32_t i, std::optional<Type> known) {
    const ast::Arg& arg = expr.args[i];
    const ParamView& view = callee.params[param];
    if (matched[param] != kDefault) {
      return repeated(arg.name.missing() ? arg.range : arg.name.range, view.name,
                      expr.args[static_cast<std::size_t>(matched[param])].range);
    }
    matched[param] = static_cast<std::int32_t>(i);
    types.push_back(analyser.argument(
        arg, view.type,
        {.what = "", .name = view.name, .owner = callee.name, .declared = view.range}, known));
  }

  void repeated(SourceRange at, std::string_view name, SourceRange first) {
    analyser.sink_.report(Code::repeated_argument, at, "`{}` is given twice", name)
        .related(first, "the first one is here");
    ok = false;
  }

  /// If there are several, the callee is probably wrong: one error.
  void report_unknown() {
    if (unknown.empty()) return;
    std::string names;
    for (const ast::Identifier* name : unknown)
      names += (names.empty() ? "`" : ", `") + std::string(name->name) + "`";
    note(analyser.sink_.report(Code::unknown_argument, unknown.front()->range,
                               "`{}` has no parameter {}", callee.name, names));
  }

  void report_missing() {
    std::string missing;
    for (std::size_t i = 0; i < callee.params.size(); ++i) {
      if (matched[i] == kDefault && !callee.params[i].optional)
        missing += (missing.empty() ? "`" : ", `") + std::string(callee.params[i].name) + "`";
    }
    if (callee.row != nullptr && callee.row->variadic && rest.empty()) missing = "a value";
    if (callee.row != nullptr && callee.row->id == Builtin::trim && rest.empty())
      missing = "a dimension, such as `mb: m`";
    // After another mistake in the arguments the missing ones would be a guess.
    if (missing.empty() || !ok) return;
    const SourceRange end{expr.range.file, expr.range.end - 1, expr.range.end};
    note(analyser.sink_.report(Code::missing_argument, end, "`{}` needs {}", callee.name, missing));
  }

  Analyser& analyser;
  ast::CallExpr& expr;
  const Callee& callee;
  std::vector<Type>& types;
  std::vector<std::int32_t> matched;            // per parameter: the argument
  std::vector<std::uint32_t> rest;              // arguments beside the parameters
  std::vector<const ast::Identifier*> unknown;  // arguments that no parameter is called like
  std::size_t position = 0;
  const ast::Arg* first_named = nullptr;
  bool ok = true;
};

bool Analyser::match(ast::CallExpr& expr, const Callee& callee, std::optional<Type> first,
                     std::vector<Type>& types) {
  Matching matching(*this, expr, callee, types);
  for (std::uint32_t i = 0; i < expr.args.size(); ++i)
    matching.argument(i, i == 0 ? first : std::nullopt);
  matching.report_unknown();
  matching.report_missing();
  expr.matched = syntax().copy(matching.matched);
  expr.rest = syntax().copy(matching.rest);
  return matching.ok;
}

}  // namespace piper::sema
