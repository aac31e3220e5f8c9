// Entry of the analysis: files, declarations, bodies, recursion.

#include <algorithm>

#include "frontend/sema/analyser.h"
#include "frontend/sema/load.h"
#include "ir/diagnostics/suggestion.h"

namespace piper::sema {

void Analyser::declare_module(ModuleId id) {
  auto& scope = scopes_.emplace_back();
  const auto declare = [&](const ast::Identifier& name, DeclKind kind, std::size_t index) {
    if (name.missing()) return;
    const auto [found, added] =
        scope.emplace(name.name, Declaration{kind, static_cast<std::uint32_t>(index), name.range});
    if (added) return;
    refuse({kind, static_cast<std::uint32_t>(index)});
    refuse(found->second);
    sink_
        .report(Code::repeated_declaration, name.range, "`{}` is declared twice in this file",
                name.name)
        .related(found->second.range, "the first one is here");
  };
  for (const ast::Item* item : program_.modules[id.index()]->syntax.items) {
    if (const auto* param = llvm::dyn_cast<ast::ParamItem>(item)) {
      program_.params.push_back({param, id, kError, 0});
      declare(param->name, DeclKind::param, program_.params.size() - 1);
    } else if (const auto* mesh = llvm::dyn_cast<ast::MeshItem>(item)) {
      program_.meshes.push_back({mesh, id, 0, {}});
      declare(mesh->name, DeclKind::mesh, program_.meshes.size() - 1);
    } else if (const auto* function = llvm::dyn_cast<ast::FunctionItem>(item)) {
      Function& added = program_.functions.emplace_back();
      added.syntax = function;
      added.module = id;
      declare(function->name, DeclKind::function, program_.functions.size() - 1);
    } else if (const auto* train = llvm::dyn_cast<ast::TrainItem>(item)) {
      Train& added = program_.trains.emplace_back();
      added.syntax = train;
      added.module = id;
      declare(train->name, DeclKind::train, program_.trains.size() - 1);
    } else if (const auto* machine = llvm::dyn_cast<ast::MachineItem>(item)) {
      program_.machines.push_back({machine, id, {}});
      declare(machine->name, DeclKind::machine, program_.machines.size() - 1);
    } else if (const auto* names = llvm::dyn_cast<ast::NamesItem>(item)) {
      program_.names.push_back({names, id});
      declare(names->name, DeclKind::names, program_.names.size() - 1);
    }
  }
}

void Analyser::visit_module(ModuleId id, std::vector<bool>& seen,
                            std::vector<ModuleId>& used_first) {
  if (seen[id.index()]) return;
  seen[id.index()] = true;
  for (const ModuleId used : program_.modules[id.index()]->uses)
    visit_module(used, seen, used_first);
  used_first.push_back(id);
}

void Analyser::begin_body(BodySort sort, ModuleId module, const Function* function,
                          std::uint32_t node) {
  body_ = {};
  body_.sort = sort;
  body_.module = module;
  body_.function = function;
  body_.node = node;
  body_.errors = sink_.error_count();
  locals_.clear();
  ended_.clear();
}

void Analyser::run() {
  note_damage();
  for (std::size_t i = 0; i < program_.modules.size(); ++i) declare_module(ModuleId::at(i));
  const std::size_t functions = program_.functions.size(),
                    meshes = functions + program_.params.size(),
                    trains = meshes + program_.meshes.size();
  const std::size_t machines = trains + program_.trains.size(),
                    names = machines + program_.machines.size();
  param_known_.resize(program_.params.size());
  calls_.resize(names + program_.names.size());

  const auto check_all = [&](std::size_t first, auto& list, auto check) {
    for (std::size_t i = 0; i < list.size(); ++i)
      check_node(static_cast<std::uint32_t>(first + i),
                 [&](std::uint32_t node) { (this->*check)(list[i], node); });
  };
  check_all(0, program_.functions, &Analyser::check_signature);
  std::vector<bool> seen(program_.modules.size());
  std::vector<ModuleId> used_first;
  visit_module(ModuleId(0), seen, used_first);
  for (const ModuleId module : used_first) {
    for (std::size_t i = 0; i < program_.params.size(); ++i) {
      if (program_.params[i].module != module) continue;
      check_node(static_cast<std::uint32_t>(functions + i),
                 [&](std::uint32_t node) { check_param(program_.params[i], node); });
    }
  }
  check_all(meshes, program_.meshes, &Analyser::check_mesh);
  check_mesh_cycles();
  check_all(0, program_.functions, &Analyser::check_function);
  check_all(trains, program_.trains, &Analyser::check_train);
  check_all(machines, program_.machines, &Analyser::check_machine);
  check_all(names, program_.names, &Analyser::check_names_item);
  check_recursion();
  spread_unsoundness();
  report_how_many_more();
  program_.complete = !declarations_missing_;
}

bool& Analyser::sound(Declaration declaration) {
  switch (declaration.kind) {
    case DeclKind::param: return program_.params[declaration.index].sound;
    case DeclKind::mesh: return program_.meshes[declaration.index].sound;
    case DeclKind::function: return program_.functions[declaration.index].sound;
    case DeclKind::machine: return program_.machines[declaration.index].sound;
    case DeclKind::names: return program_.names[declaration.index].sound;
    case DeclKind::train: break;
  }
  return program_.trains[declaration.index].sound;
}

void Analyser::refuse(Declaration declaration) {
  sound(declaration) = false;
  if (declaration.kind == DeclKind::function)
    program_.functions[declaration.index].runnable = false;
  if (declaration.kind == DeclKind::train) program_.trains[declaration.index].runnable = false;
}

Analyser::Declaration Analyser::declaration_of(std::uint32_t node) const {
  if (node < program_.functions.size()) return {DeclKind::function, node};
  node -= static_cast<std::uint32_t>(program_.functions.size());
  if (node < program_.params.size()) return {DeclKind::param, node};
  node -= static_cast<std::uint32_t>(program_.params.size());
  if (node < program_.meshes.size()) return {DeclKind::mesh, node};
  node -= static_cast<std::uint32_t>(program_.meshes.size());
  if (node < program_.trains.size()) return {DeclKind::train, node};
  node -= static_cast<std::uint32_t>(program_.trains.size());
  if (node < program_.machines.size()) return {DeclKind::machine, node};
  return {DeclKind::names, node - static_cast<std::uint32_t>(program_.machines.size())};
}

void Analyser::spread_unsoundness() {
  struct Damage {
    bool any = false, in_statements = false;  // of a train or a schedule: in these alone
  };
  const auto damage_of = [&](const auto& declared, bool has_statements) {
    const Module& module = *program_.modules[declared.module.index()];
    const bool damaged = item_damaged(module.syntax, *declared.syntax);
    return Damage{module.lacks_uses || damaged,
                  !module.lacks_uses && damaged && has_statements &&
                      statements_damaged(module.syntax, *declared.syntax)};
  };
  std::vector<std::vector<std::uint32_t>> users(calls_.size());
  std::vector<std::uint32_t> pending;
  for (std::uint32_t node = 0; node < calls_.size(); ++node) {
    for (const Call& call : calls_[node]) users[call.callee].push_back(node);
    const Declaration declared = declaration_of(node);
    Damage damage;
    switch (declared.kind) {
      case DeclKind::param: damage = damage_of(program_.params[declared.index], false); break;
      case DeclKind::mesh: damage = damage_of(program_.meshes[declared.index], false); break;
      case DeclKind::function: {
        const Function& function = program_.functions[declared.index];
        damage = damage_of(function, function.sort() == ast::FunctionSort::schedule);
        break;
      }
      case DeclKind::train: damage = damage_of(program_.trains[declared.index], true); break;
      case DeclKind::machine: damage = damage_of(program_.machines[declared.index], false); break;
      case DeclKind::names: damage = damage_of(program_.names[declared.index], false); break;
    }
    if (damage.in_statements) sound(declared) = false;
    // A name that was found elsewhere may mean a declaration that did not parse.
    if ((damage.any && !damage.in_statements) || declarations_missing_) refuse(declared);
    if (!sound(declared)) pending.push_back(node);
  }
  while (!pending.empty()) {
    const std::uint32_t node = pending.back();
    pending.pop_back();
    for (const std::uint32_t user : users[node]) {
      if (std::exchange(sound(declaration_of(user)), false)) pending.push_back(user);
    }
  }
}

void Analyser::check_param(Param& param, std::uint32_t node) {
  begin_body(BodySort::value, param.module, nullptr, node);
  Type type = infer(*param.syntax->value);
  const std::size_t position = node - program_.functions.size();
  param_known_[position] = true;
  param.frame_size = body_.next_slot;
  if (type.is_error()) return;
  if (param.syntax->has_choices) {
    if (!type.list) {
      sink_.report(Code::not_iterable, param.syntax->value->range, "this is {}; `in` takes a list",
                   with_article(type));
      return;
    }
    type = type.element();
  }
  switch (type.kind) {
    case TypeKind::integer:
    case TypeKind::floating:
    case TypeKind::boolean:
    case TypeKind::string:
    case TypeKind::bytes:
    case TypeKind::any: param.type = type; return;
    default:
      sink_.report(Code::misplaced_type, param.syntax->value->range,
                   "a `param` is a number, a text, a truth value or a list of them, this is {}",
                   with_article(type));
  }
}

void Analyser::check_mesh(Mesh& mesh, std::uint32_t node) {
  begin_body(BodySort::value, mesh.module, nullptr, node);
  const std::span<const ast::Pair> axes = mesh.syntax->axes;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    expect(*axes[i].value, kInt, {.what = "the size of an axis"});
    bind_label(axes[i].name);
    for (std::size_t j = 0; j < i; ++j) {
      if (axes[i].name.missing() || axes[i].name.name != axes[j].name.name) continue;
      sink_
          .report(Code::repeated_declaration, axes[i].name.range, "the axis `{}` is declared twice",
                  axes[i].name.name)
          .related(axes[j].name.range, "the first one is here");
    }
  }
  mesh.frame_size = body_.next_slot;
  if (mesh.syntax->is_view) mesh.base = find_mesh(mesh.syntax->base);
  if (mesh.base.valid())
    calls_[node].push_back(
        {static_cast<std::uint32_t>(program_.functions.size() + program_.params.size()) +
             mesh.base.value(),
         mesh.syntax->base.range});
}

void Analyser::check_mesh_cycles() {
  for (Mesh& mesh : program_.meshes) {
    std::size_t steps = 0;
    for (MeshId base = mesh.base; base.valid() && steps <= program_.meshes.size(); ++steps) {
      const Mesh& next = program_.meshes[base.index()];
      if (&next != &mesh) {
        base = next.base;
        continue;
      }
      sink_
          .report(Code::bad_mesh, mesh.syntax->base.range,
                  "the devices of `{}` are those of `{}` itself", mesh.syntax->name.name,
                  mesh.syntax->name.name)
          .hint(
              "a view factors the devices of a mesh that says its own: `mesh cluster(pp: 4, dp: 2)`");
      mesh.base = MeshId();
      mesh.sound = false;
      break;
    }
  }
}

MeshId Analyser::find_mesh(const ast::Identifier& name) {
  if (name.missing()) return {};
  const Declaration* found = find_declaration(name.name, name.range);
  if (found != nullptr && found->kind == DeclKind::mesh) {
    calls_[body_.node].push_back(
        {static_cast<std::uint32_t>(program_.functions.size() + program_.params.size()) +
             found->index,
         name.range});
    return MeshId(found->index);
  }
  std::vector<std::string_view> meshes;
  for (const Mesh& mesh : program_.meshes) meshes.push_back(mesh.syntax->name.name);
  auto diagnostic =
      found != nullptr
          ? sink_.report(Code::unknown_name, name.range, "`{}` is not a mesh", name.name)
          : sink_.report(Code::unknown_name, name.range, "there is no mesh `{}`", name.name);
  const std::string_view best = nearest_name(name.name, meshes);
  if (found != nullptr) diagnostic.related(found->range, "it is declared here");
  if (!best.empty()) {
    diagnostic.did_you_mean(best, name.name);
  } else {
    diagnostic.hint("declare one: `mesh {}(pp: 2, dp: 2)`",
                    found != nullptr ? std::string_view("cluster") : name.name);
  }
  return {};
}

void Analyser::check_signature(Function& function, std::uint32_t node) {
  begin_body(BodySort::value, function.module, nullptr, node);
  const ast::FunctionItem& item = *function.syntax;
  function.result = item.result != nullptr ? resolve_type(*item.result) : kNone;
  const Type result = function.result;
  const auto bad_result = [&](std::string_view hint) {
    sink_
        .report(Code::misplaced_type, item.result->range, "a `{}` cannot give {}",
                ast::sort_text(item.sort), with_article(result))
        .hint("{}", hint);
    function.result = kError;
  };
  switch (item.sort) {
    case ast::FunctionSort::def:
      if (item.result == nullptr) {
        sink_
            .report(Code::missing_result_type, item.name.range, "`{}` has no result type",
                    item.name.name)
            .hint(
                "write the type after the parameters: `-> int`, `-> [selector]`, `-> steps`, `-> order`");
        function.result = kError;
      } else if (result == kCursor) {
        bad_result(
            "a cursor is a local or an argument; give the `[selector]` that it walks through");
      }
      break;
    case ast::FunctionSort::schedule:
      if (item.result != nullptr && !result.is_error())
        bad_result("it applies its directives; a function with a value is a `def`");
      break;
    case ast::FunctionSort::model:
      if (item.result != nullptr && !result.is_error() && !result.element().is_tensor())
        bad_result("a model gives tensors: `-> tensor[batch, dim]`");
      break;
  }
  for (const ast::Param& param : item.params) {
    Type type = resolve_type(*param.type);
    std::string_view hint;
    if (type.is(TypeKind::steps)) {
      hint = "steps are the result of a function, called where they belong";
    } else if (type == kCursor && !function.result.is(TypeKind::steps)) {
      hint = "cursors are passed to functions that give `steps`";
    } else if (item.sort == ast::FunctionSort::model &&
               (type.kind == TypeKind::axis || type.kind == TypeKind::devices ||
                type.kind == TypeKind::selector || type.kind == TypeKind::order)) {
      hint = "a model is independent of devices and stages; a schedule takes them";
    } else if (item.sort == ast::FunctionSort::schedule && type.element().is_tensor()) {
      hint = "a schedule meets a model when a train applies it, and sees no tensors";
    }
    if (!hint.empty()) {
      sink_
          .report(Code::misplaced_type, param.type->range, "a `{}` has no parameter of type `{}`",
                  ast::sort_text(item.sort), type_name(type))
          .hint("{}", hint);
      type = kError;
    }
    function.params.push_back(type);
  }
}

void Analyser::check_function(Function& function, std::uint32_t node) {
  const ast::FunctionItem& item = *function.syntax;
  BodySort sort = BodySort::value;
  if (item.sort == ast::FunctionSort::model) sort = BodySort::model;
  if (item.sort == ast::FunctionSort::schedule) sort = BodySort::schedule;
  if (item.sort == ast::FunctionSort::def && function.result == kOrder) sort = BodySort::order;
  if (item.sort == ast::FunctionSort::def && function.result.is(TypeKind::steps))
    sort = BodySort::steps;
  begin_body(sort, function.module, &function, node);
  for (std::size_t i = 0; i < item.params.size(); ++i)
    declare_local(item.params[i].name, function.params[i], LocalKind::parameter);
  for (std::size_t i = 0; i < item.params.size(); ++i) {
    body_.visible_params = i;
    parameter(item.params[i], i, function);
  }
  body_.visible_params = SIZE_MAX;
  if (item.result != nullptr) type_dims(*item.result, DimsOf::result);
  block(*item.body);
  end_body();
  function.frame_size = body_.next_slot;

  if (body_.first_rank.valid() && body_.first_return.valid()) {
    sink_
        .report(Code::unexpected_return, body_.first_return, "`{}` has ranks and returns an order",
                function.name())
        .related(body_.first_rank, "the first rank is here")
        .hint("an order is its ranks, or one returned value");
  }
  const bool must_return = (sort == BodySort::value || sort == BodySort::model) &&
                           function.result != kNone && !function.result.is_error();
  if (must_return && !returns(*item.body)) {
    const bool some = body_.first_return.valid();
    sink_
        .report(Code::missing_return, item.result->range, "`{}` gives {}, and {}", function.name(),
                with_article(function.result),
                some ? "a path through its body returns nothing" : "its body returns nothing")
        .hint("{}", some ? "let every branch return, or return at the end"
                         : "end the body with `return ...`");
  }
}

void Analyser::check_train(Train& train, std::uint32_t node) {
  begin_body(BodySort::train, train.module, nullptr, node);
  settings_seen_.clear();
  const ast::TrainItem& item = *train.syntax;
  train.mesh = find_mesh(item.mesh);
  declare_axes(train.mesh);
  if (refuses([&] { check_train_model(train); })) train.model = FunctionId();
  // Without its axes half of the body would be unknown names.
  if (train.mesh.valid()) block(*item.body);
  end_body();
  train.frame_size = body_.next_slot;
}

void Analyser::declare_axes(MeshId mesh) {
  if (!mesh.valid()) return;
  for (const ast::Pair& axis : program_.meshes[mesh.index()].syntax->axes) {
    // An axis is declared once, by its mesh: the label that its name is bound to there stays.
    ast::Identifier name{axis.name.name, axis.name.range};
    if (!name.missing() && find_local(name.name) != nullptr) name.name = {};
    declare_local(name, kAxis, LocalKind::axis);
  }
}

void Analyser::check_machine(Machine& machine, std::uint32_t node) {
  begin_body(BodySort::machine, machine.module, nullptr, node);
  settings_seen_.clear();
  machine.mesh = find_mesh(machine.syntax->mesh);
  declare_axes(machine.mesh);
  if (machine.mesh.valid()) block(*machine.syntax->body);
  end_body();
  machine.frame_size = body_.next_slot;
}

void Analyser::check_train_model(Train& train) {
  ast::Expr* expr = train.syntax->model;
  auto* node = llvm::dyn_cast<ast::CallExpr>(expr);
  if (node == nullptr) {
    if (llvm::isa<ast::ErrorExpr>(expr)) return;
    auto diagnostic = sink_.report(Code::train_without_model, expr->range,
                                   "this is no model; a train is given a call of a model");
    const auto* name = llvm::dyn_cast<ast::NameExpr>(expr);
    const Declaration* found =
        name != nullptr ? find_declaration(name->name, name->range) : nullptr;
    if (found != nullptr && found->kind == DeclKind::function) {
      diagnostic.related(found->range, "`{}` is declared here", name->name)
          .hint("write `{}(...)` with its arguments", name->name);
    } else {
      diagnostic.hint("declare one, `model net(...) { ... }`, and write `net(...)`");
    }
    return;
  }
  // The call is in the train but is elaborated as a model's.
  const BodySort sort = body_.sort;
  body_.sort = BodySort::model;
  const Type type = call(*node, true);
  body_.sort = sort;
  node->type = type.bits();
  if (node->referent == ast::Referent::function) {
    const Function& function = program_.functions[node->target];
    if (function.sort() == ast::FunctionSort::model) {
      train.model = FunctionId(node->target);
      return;
    }
    if (function.sort() == ast::FunctionSort::schedule) return;  // reported as a misplaced call
    sink_
        .report(Code::train_without_model, node->callee->range,
                "`{}` is a `def`; a train is given a model", function.name())
        .related(function.syntax->name.range, "it is declared here");
  } else if (node->referent == ast::Referent::builtin) {
    sink_.report(Code::train_without_model, node->callee->range,
                 "this is no model; a train is given a model");
  }
}

void Analyser::check_recursion() {
  // Depth first over the call graph; a call into the open path closes a cycle.
  enum class State : std::uint8_t { fresh, open, done };
  struct Frame {
    std::uint32_t node;
    std::size_t next = 0;
  };
  const auto name_of = [&](std::uint32_t node) {
    if (node < program_.functions.size()) return program_.functions[node].name();
    return program_.params[node - program_.functions.size()].syntax->name.name;
  };
  std::vector<State> states(calls_.size(), State::fresh);
  // Nothing calls a mesh, a train or a machine, and `names` call nothing.
  for (std::uint32_t root = 0; root < program_.functions.size() + program_.params.size(); ++root) {
    if (states[root] != State::fresh) continue;
    std::vector<Frame> path{{root}};
    states[root] = State::open;
    while (!path.empty()) {
      Frame& frame = path.back();
      if (frame.next == calls_[frame.node].size()) {
        states[frame.node] = State::done;
        path.pop_back();
        continue;
      }
      const Call& edge = calls_[frame.node][frame.next++];
      if (states[edge.callee] == State::open) {
        const auto start = std::find_if(
            path.begin(), path.end(), [&](const Frame& open) { return open.node == edge.callee; });
        std::string through;
        refuse(declaration_of(edge.callee));
        for (auto step = start + 1; step < path.end(); ++step)
          through +=
              (through.empty() ? " through `" : ", `") + std::string(name_of(step->node)) + "`";
        auto diagnostic = sink_.report(Code::recursion, edge.range, "`{}` calls itself{}",
                                       name_of(edge.callee), through);
        for (auto step = start; step + 1 != path.end(); ++step) {
          const Call& link = calls_[step->node][step->next - 1];
          diagnostic.related(link.range, "`{}` calls `{}`", name_of(step->node),
                             name_of(link.callee));
        }
        if (path.size() - static_cast<std::size_t>(start - path.begin()) > 1) {
          diagnostic.related(edge.range, "`{}` calls `{}`", name_of(frame.node),
                             name_of(edge.callee));
        }
        diagnostic.hint("there is no recursion, so that every program ends: write a `for`");
      } else if (states[edge.callee] == State::fresh) {
        states[edge.callee] = State::open;
        path.push_back({edge.callee});
      }
    }
  }
}

TrainId Program::find_train(std::string_view name) const {
  for (std::size_t i = 0; i < trains.size(); ++i) {
    if (trains[i].module == ModuleId(0) && trains[i].name() == name) return TrainId::at(i);
  }
  return {};
}

FunctionId Program::find_schedule(std::string_view name) const {
  for (std::size_t i = 0; i < functions.size(); ++i) {
    const Function& function = functions[i];
    if (function.module == ModuleId(0) && function.sort() == ast::FunctionSort::schedule &&
        function.name() == name)
      return FunctionId::at(i);
  }
  return {};
}

NamesId Program::find_names(std::string_view name) const {
  NamesId found;
  bool used = false;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (names[i].name() != name) continue;
    if (names[i].module == ModuleId(0)) return NamesId::at(i);
    const std::vector<ModuleId>& uses = modules.front()->uses;
    const bool is_used = std::find(uses.begin(), uses.end(), names[i].module) != uses.end();
    if (is_used || (!used && is_library_names(modules[names[i].module.index()]->name)))
      found = NamesId::at(i);
    used = used || is_used;
  }
  return found;
}

Program analyse(FileId entry, const source::FileSystem& file_system, Context& context,
                DiagnosticSink& sink, std::size_t shown_errors,
                std::span<const std::string> beside) {
  Program program;
  const std::size_t errors = sink.error_count();
  load_modules(entry, file_system, context, sink, program, shown_errors, beside);
  Analyser(program, context, sink, shown_errors).run();
  program.ok = sink.error_count() == errors;
  return program;
}

}  // namespace piper::sema
