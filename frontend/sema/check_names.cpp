// Scopes, and the resolution of names.

#include <algorithm>

#include "frontend/sema/analyser.h"
#include "frontend/source/word_of_hint.h"
#include "ir/diagnostics/suggestion.h"

namespace piper::sema {

const Analyser::Declaration* Analyser::find_declaration(std::string_view name, SourceRange at) {
  const auto& own = scopes_[body_.module.index()];
  if (const auto found = own.find(name); found != own.end()) return &found->second;

  const Declaration* best = nullptr;
  ModuleId best_module;
  const Declaration* other = nullptr;
  ModuleId other_module;
  bool best_is_main = false;
  for (const ModuleId used : program_.modules[body_.module.index()]->uses) {
    const auto& scope = scopes_[used.index()];
    const auto found = scope.find(name);
    if (found == scope.end()) continue;
    // A file that is named after the declaration gives the meaning that a reader expects.
    std::string_view path = program_.modules[used.index()]->name;
    if (path.ends_with(".pipe")) path.remove_suffix(5);
    const bool is_main = path.substr(path.find_last_of("./") + 1) == name;
    if (best == nullptr || (is_main && !best_is_main)) {
      best = &found->second;
      best_module = used;
      best_is_main = is_main;
      if (is_main) other = nullptr;
    } else if (is_main == best_is_main) {
      other = &found->second;
      other_module = used;
    }
  }
  if (other != nullptr) {
    sink_
        .report(Code::ambiguous_name, at, "`{}` is declared in `{}` and in `{}`", name,
                program_.modules[best_module.index()]->name,
                program_.modules[other_module.index()]->name)
        .related(best->range, "one is here")
        .related(other->range, "the other is here")
        .hint("use one of the two files only, or declare your own `{}`", name);
  }
  return best;
}

Analyser::Local* Analyser::find_local(std::string_view name) {
  for (std::size_t i = locals_.size(); i-- > 0;) {
    if (locals_[i].name == name) return &locals_[i];
  }
  return nullptr;
}

Analyser::Local& Analyser::declare_local(const ast::Identifier& name, Type type, LocalKind kind) {
  name.binding = body_.next_slot++;
  if (!name.missing()) {
    if (const Local* before = find_local(name.name)) {
      auto diagnostic =
          sink_.report(Code::repeated_local, name.range, "`{}` is declared already", name.name);
      diagnostic.related(before->range, "the first one is here");
      if (before->kind == LocalKind::var) {
        diagnostic.hint("to give it another value write `{} = ...`", name.name);
      } else {
        diagnostic.hint("choose another name: a local never hides another one of its body");
      }
    }
  }
  locals_.push_back({name.name, type, kind, name.binding, name.range,
                     name.missing() || name.name.starts_with('_')});
  return locals_.back();
}

void Analyser::pop_locals(std::size_t count) {
  ended_.insert(ended_.end(), locals_.begin() + static_cast<std::ptrdiff_t>(count), locals_.end());
  locals_.resize(count);
}

void Analyser::end_body() {
  pop_locals(0);
  // Code with errors may use them.
  if (sink_.error_count() != body_.errors ||
      context_.locations.files().is_library(program_.modules[body_.module.index()]->syntax.file))
    return;
  for (const Local& local : ended_) {
    if (local.used || (local.kind != LocalKind::let && local.kind != LocalKind::var)) continue;
    sink_.report(Code::unused_local, local.range, "`{}` is never used", local.name)
        .hint("remove it, or call it `_{}` to keep it", local.name)
        .fix(local.range, "_" + std::string(local.name));
  }
}

std::string_view Analyser::suggestion(std::string_view name, bool callee) {
  // A search among all names for each of thousands of errors takes long, and these are not shown.
  if (shows_no_more(program_.modules[body_.module.index()]->syntax.file)) return {};
  std::vector<std::string_view> known;
  const auto wanted = [&](DeclKind kind) {
    return callee ? kind == DeclKind::function
                  : kind != DeclKind::train && kind != DeclKind::machine;
  };
  if (!callee) {
    for (const Local& local : locals_) known.push_back(local.name);
  }
  const auto add = [&](ModuleId module) {
    for (const auto& [declared, declaration] : scopes_[module.index()]) {
      if (wanted(declaration.kind)) known.push_back(declared);
    }
  };
  add(body_.module);
  for (const ModuleId used : program_.modules[body_.module.index()]->uses) add(used);
  for (std::string_view builtin : builtin_names(false)) {
    if (find_builtins(builtin, false).front()->is_value != callee) known.push_back(builtin);
  }
  std::sort(known.begin(), known.end());
  return nearest_name(name, known);
}

bool Analyser::report_unavailable(std::string_view name, SourceRange at) {
  const Unavailable* row = find_unavailable(name);
  if (row == nullptr) return false;
  sink_.report(Code::not_available, at, "`{}` is not available in this version", name)
      .hint("{}", row->instead);
  return true;
}

bool Analyser::explain_axis(DiagnosticBuilder& diagnostic, std::string_view name) const {
  const Declaration self = declaration_of(body_.node);
  if (self.kind == DeclKind::param || self.kind == DeclKind::mesh) return false;
  if (self.kind == DeclKind::function &&
      program_.functions[self.index].sort() == ast::FunctionSort::model)
    return false;
  for (const Mesh& mesh : program_.meshes) {
    if (mesh.module != body_.module) continue;
    const std::span<const ast::Pair> axes = mesh.syntax->axes;
    const auto axis = std::find_if(axes.begin(), axes.end(),
                                   [&](const ast::Pair& pair) { return pair.name.name == name; });
    if (axis == axes.end()) continue;
    const std::string_view declared = mesh.syntax->name.name;
    diagnostic.related(axis->name.range, "`{}` is an axis of the mesh `{}`", name, declared);
    if (self.kind == DeclKind::train || self.kind == DeclKind::machine) {
      const bool train = self.kind == DeclKind::train;
      diagnostic.hint(
          "a {} sees the axes of the one mesh after its `on`: write `on {}`, or name an axis of `{}`",
          train ? "train" : "machine", declared,
          train ? program_.trains[self.index].syntax->mesh.name
                : program_.machines[self.index].syntax->mesh.name);
    } else {
      diagnostic.hint("a schedule or `def` is given its axes: add a parameter `{}: axis`", name);
    }
    return true;
  }
  return false;
}

namespace {

/// The form of `range(2, n)` in this language; empty if the call has another form.
std::string range_text(const ast::CallExpr& call) {
  const std::size_t count = call.args.size();
  if (count == 0 || count > 3) return {};
  std::vector<std::string> texts;
  for (const ast::Arg& argument : call.args) texts.push_back(ast::source_text(*argument.value));
  const std::string from_to = count == 1 ? "0.." + texts[0] : texts[0] + ".." + texts[1];
  return count == 3 ? from_to + " by " + texts[2] : from_to;
}

/// `forward(stage[r], mb[i])` as a step; empty if it is not a pass.
std::string step_text(std::string_view callee, const ast::CallExpr& call) {
  if (call.args.empty() || (callee != "forward" && callee != "fwd" && callee != "bwd")) return {};
  std::string text = callee == "bwd" ? "B" : "F";
  for (const ast::Arg& argument : call.args) text += " " + ast::source_text(*argument.value);
  return text;
}

}  // namespace

void Analyser::suggest_names_item(DiagnosticBuilder& diagnostic, std::string_view name) {
  const ast::Module& here = program_.modules[body_.module.index()]->syntax;
  if (shows_no_more(here.file)) return;
  std::vector<std::string_view> known;
  for (const Names& item : program_.names) {
    const std::span<const ModuleId> uses = program_.modules[body_.module.index()]->uses;
    if (item.module == body_.module ||
        std::find(uses.begin(), uses.end(), item.module) != uses.end())
      known.push_back(item.name());
  }
  std::sort(known.begin(), known.end());
  if (const std::string_view best = nearest_name(name, known); !best.empty()) {
    diagnostic.did_you_mean(best, name);
    return;
  }
  std::vector<std::string> modules = library_modules();
  std::erase_if(modules, [](const std::string& module) { return !is_library_names(module); });
  std::vector<std::string_view> items;
  for (const std::string& module : modules)
    items.push_back(std::string_view(module).substr(module.rfind('.') + 1));
  const auto same = std::find(items.begin(), items.end(), name);
  // `hf_llama` is of the model `llama`.
  const auto longer = std::find_if(items.begin(), items.end(), [&](std::string_view item) {
    return item.ends_with("_" + std::string(name));
  });
  const std::string_view best = same != items.end()     ? *same
                                : longer != items.end() ? *longer
                                                        : nearest_name(name, items);
  if (best.empty()) {
    diagnostic.hint("declare `names {} { ... }`, or name an item of `std.names`", name);
    return;
  }
  const std::string module = "std.names." + std::string(best);
  if (best != name) {
    diagnostic.hint("did you mean `{}`? `use {}` brings it", best, module);
  } else {
    diagnostic.hint("`use {}` brings it", module)
        .fix(Fix{"add `use " + module + "`", {use_line(here, module)}});
  }
}

void Analyser::report_unknown_name(std::string_view name, SourceRange at, const ast::CallExpr* call,
                                   Type hint) {
  const bool callee = call != nullptr;
  auto diagnostic = callee ? sink_.report(Code::unknown_name, at, "there is no function `{}`", name)
                           : sink_.report(Code::unknown_name, at, "there is no `{}` here", name);
  if (!callee && explain_axis(diagnostic, name)) return;
  const auto ended = std::find_if(ended_.rbegin(), ended_.rend(),
                                  [&](const Local& local) { return local.name == name; });
  if (!callee && ended != ended_.rend()) {
    diagnostic.related(ended->range, "`{}` ends with its block", name);
    if (ended->kind == LocalKind::let || ended->kind == LocalKind::var)
      diagnostic.hint("declare it before that block, as a `var` that the block gives its value");
    return;
  }
  if (hint.is(TypeKind::names)) return suggest_names_item(diagnostic, name);
  if (const std::string_view words = words_of(hint); !words.empty()) {
    const std::string_view best = suggestion(name, false);
    const auto rows = find_builtins(best, false);
    if (!rows.empty() && rows.front()->result == hint) {
      diagnostic.did_you_mean(best, name);
    } else {
      diagnostic.hint("{}", words);
    }
    return;
  }
  if (const std::string_view instead = instead_of_foreign(name); !instead.empty()) {
    const std::string range = callee && name == "range" ? range_text(*call) : std::string();
    const std::string step = callee ? step_text(name, *call) : std::string();
    if (!range.empty()) {
      diagnostic.hint("write `{}`, which leaves its end out", range);
    } else if (!step.empty()) {
      diagnostic.hint("a pass is not called like a function: write `{}`", step);
    } else {
      diagnostic.hint("{}", instead);
    }
    // For `memory` it is a name; for `length` a form, `len(values)`.
    if (const auto word = word_of_hint(instead);
        word && word->find_first_of("([ ") == std::string_view::npos)
      diagnostic.fix(at, std::string(*word));
    return;
  }
  if (const std::string_view best = suggestion(name, callee); !best.empty()) {
    diagnostic.did_you_mean(best, name);
    return;
  }
  // A library file of that name is a likelier cause than a missing declaration.
  for (const std::string& module : library_modules()) {
    if (std::string_view(module).substr(module.rfind('.') + 1) != name) continue;
    diagnostic.hint("`use {}` brings it", module)
        .fix(Fix{"add `use " + module + "`",
                 {use_line(program_.modules[body_.module.index()]->syntax, module)}});
    return;
  }
  const Local* local = callee ? find_local(name) : nullptr;
  if (local != nullptr) diagnostic.related(local->range, "`{}` is a value", name);
}

Analyser::Local* Analyser::use_local(const ast::Identifier& name, Type expected,
                                     std::string_view what) {
  if (name.missing()) return nullptr;
  Local* local = find_local(name.name);
  if (local == nullptr) {
    auto diagnostic =
        sink_.report(Code::unknown_name, name.range, "there is no {} `{}` here", what, name.name);
    if (expected == kAxis && explain_axis(diagnostic, name.name)) return nullptr;
    std::vector<std::string_view> known;
    for (const Local& other : locals_) {
      if (other.type == expected) known.push_back(other.name);
    }
    if (const std::string_view best = nearest_name(name.name, known); !best.empty()) {
      diagnostic.did_you_mean(best, name.name);
    } else if (!known.empty()) {
      std::string all;
      for (std::string_view other : known)
        all += (all.empty() ? "`" : ", `") + std::string(other) + "`";
      diagnostic.hint("there is {}", all);
    }
    return nullptr;
  }
  name.binding = local->slot;
  local->used = true;
  if (!local->type.is_error() && local->type != expected) {
    sink_
        .report(Code::type_mismatch, name.range, "`{}` is {}, not {}", name.name,
                with_article(local->type), with_article(expected))
        .related(local->range, "`{}` is declared here", name.name);
    return nullptr;
  }
  return local;
}

void Analyser::use_names(NamesId names, SourceRange at) {
  const std::size_t first = program_.functions.size() + program_.params.size() +
                            program_.meshes.size() + program_.trains.size() +
                            program_.machines.size();
  calls_[body_.node].push_back({static_cast<std::uint32_t>(first + names.index()), at});
  const Declaration self = declaration_of(body_.node);
  if (self.kind != DeclKind::train) return;
  std::vector<NamesUse>& uses = program_.trains[self.index].names;
  // The map of an item is the same at all its mentions.
  const bool mentioned = std::any_of(uses.begin(), uses.end(),
                                     [&](const NamesUse& use) { return use.names == names; });
  if (!mentioned) uses.push_back({names, at});
}

Type Analyser::name(ast::NameExpr& expr, Type hint) {
  if (hint.kind == TypeKind::selector) return selector_name(expr);
  if (hint.kind == TypeKind::dimension) {
    expr.referent = ast::Referent::label;
    expr.target = label(expr.name);
    return {TypeKind::dimension};
  }
  if (Local* local = find_local(expr.name)) {
    local->used = true;
    if (local->slot >= body_.visible_params && local->slot < body_.function->params.size()) {
      sink_
          .report(Code::used_before_declaration, expr.range, "`{}` is declared further right",
                  expr.name)
          .related(local->range, "here")
          .hint("defaults and sizes see the parameters before them");
      return kError;
    }
    expr.referent = ast::Referent::local;
    expr.target = local->slot;
    return local->type;
  }
  if (const Declaration* found = find_declaration(expr.name, expr.range)) {
    switch (found->kind) {
      case DeclKind::param:
        expr.referent = ast::Referent::param;
        expr.target = found->index;
        if (!param_known_[found->index]) {
          expr.referent = ast::Referent::unresolved;
          sink_
              .report(Code::used_before_declaration, expr.range, "`{}` is declared further down",
                      expr.name)
              .related(found->range, "here")
              .hint("a `param` sees the ones before it");
          return kError;
        }
        calls_[body_.node].push_back(
            {static_cast<std::uint32_t>(program_.functions.size()) + found->index, expr.range});
        return program_.params[found->index].type;
      case DeclKind::mesh:
        sink_.report(Code::not_a_value, expr.range, "`{}` is a mesh", expr.name)
            .related(found->range, "it is declared here")
            .hint(
                "name one of its axes: an axis `p` stands for all devices, `p[0]` for those at a coordinate");
        return kError;
      case DeclKind::function: {
        auto diagnostic =
            sink_.report(Code::not_a_value, expr.range, "`{}` is a function", expr.name);
        diagnostic.related(found->range, "it is declared here");
        if (hint.is(TypeKind::names)) {
          suggest_names_item(diagnostic, expr.name);
        } else {
          diagnostic.hint("to call it write `{}(...)`", expr.name);
        }
        return kError;
      }
      case DeclKind::machine:
        sink_.report(Code::not_a_value, expr.range, "`{}` is a machine", expr.name)
            .related(found->range, "it is declared here");
        return kError;
      case DeclKind::names:
        expr.referent = ast::Referent::names;
        expr.target = found->index;
        use_names(NamesId(found->index), expr.range);
        return {TypeKind::names};
      case DeclKind::train:
        sink_.report(Code::not_a_value, expr.range, "`{}` is a train", expr.name)
            .related(found->range, "it is declared here");
        return kError;
    }
  }
  if (const auto rows = find_builtins(expr.name, false); !rows.empty()) {
    if (!rows.front()->is_value) {
      sink_.report(Code::not_a_value, expr.range, "`{}` is a function", expr.name)
          .hint("to call it write `{}`", rows.front()->text);
      return kError;
    }
    expr.referent = ast::Referent::builtin;
    expr.target = static_cast<std::uint32_t>(rows.front()->id);
    return rows.front()->result;
  }
  if (!report_unavailable(expr.name, expr.range))
    report_unknown_name(expr.name, expr.range, nullptr, hint);
  return kError;
}

}  // namespace piper::sema
