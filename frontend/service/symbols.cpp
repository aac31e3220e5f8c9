#include "frontend/service/symbols.h"

#include <algorithm>
#include <unordered_map>

#include "frontend/ast/walk.h"

namespace piper::service {

namespace {

SymbolKind kind_of(ast::FunctionSort sort) {
  switch (sort) {
    case ast::FunctionSort::def: return SymbolKind::def;
    case ast::FunctionSort::schedule: return SymbolKind::schedule;
    case ast::FunctionSort::model: return SymbolKind::model;
  }
  return SymbolKind::def;
}

/// The uses of one file, in the order of the walk.
class Uses {
 public:
  explicit Uses(const sema::Program& program) : program_(program) {}

  void item(const ast::Item& item) {
    locals_.clear();
    if (const auto* train = llvm::dyn_cast<ast::TrainItem>(&item)) mesh_of(*train, program_.trains);
    if (const auto* machine = llvm::dyn_cast<ast::MachineItem>(&item))
      mesh_of(*machine, program_.machines);
    if (const auto* mesh = llvm::dyn_cast<ast::MeshItem>(&item); mesh != nullptr && mesh->is_view)
      base_of(*mesh);
    ast::NameVisitor visitor;
    visitor.declares = [&](const ast::Identifier& name) {
      if (name.binding != ast::kUnbound) locals_.insert_or_assign(name.binding, name.range);
    };
    visitor.reads = [&](const ast::Identifier& name) { local(name.range, name.binding); };
    visitor.dims = [&](const ast::Dim& dim) { dimension(dim.name); };
    visitor.assigns = [&](const ast::Identifier& name) { local(name.range, name.binding); };
    visitor.uses = [&](const ast::NameExpr& name) { use(name.range, name.referent, name.target); };
    visitor.calls = [&](const ast::CallExpr& call) {
      if (const auto* callee = llvm::dyn_cast<ast::NameExpr>(call.callee))
        use(callee->range, call.referent, call.target);
      if (call.referent == ast::Referent::function)
        named_arguments(call, program_.functions[call.target].syntax->params);
    };
    walk_names(item, visitor);
  }

  std::vector<Use> take() {
    std::sort(list_.begin(), list_.end(), [](const Use& a, const Use& b) {
      return std::tie(a.range, a.declaration) < std::tie(b.range, b.declaration);
    });
    list_.erase(std::unique(list_.begin(), list_.end(),
                            [](const Use& a, const Use& b) { return a.range == b.range; }),
                list_.end());
    return std::move(list_);
  }

 private:
  void use(SourceRange range, ast::Referent referent, std::uint32_t target) {
    if (referent == ast::Referent::local) local(range, target);
    if (referent == ast::Referent::param) add(range, program_.params[target].syntax->name.range);
    if (referent == ast::Referent::function)
      add(range, program_.functions[target].syntax->name.range);
    if (referent == ast::Referent::names) add(range, program_.names[target].syntax->name.range);
  }
  void local(SourceRange range, std::uint32_t slot) {
    if (const auto found = locals_.find(slot); found != locals_.end()) add(range, found->second);
  }
  /// The name of an argument is the parameter's.
  void named_arguments(const ast::CallExpr& call, std::span<const ast::Param> params) {
    for (std::size_t i = 0; i < call.matched.size(); ++i) {
      if (call.matched[i] < 0) continue;
      const ast::Identifier& name = call.args[static_cast<std::size_t>(call.matched[i])].name;
      if (!name.missing()) add(name.range, params[i].name.range);
    }
  }
  /// The first mention of a dimension declares it.
  void dimension(const ast::Identifier& name) {
    if (name.binding != ast::kUnbound && !locals_.emplace(name.binding, name.range).second)
      local(name.range, name.binding);
  }
  /// The mesh of a train or a machine.
  template <typename Item, typename Declared>
  void mesh_of(const Item& item, const std::vector<Declared>& all) {
    for (const Declared& each : all) {
      if (each.syntax != &item || !each.mesh.valid()) continue;
      add(item.mesh.range, program_.meshes[each.mesh.index()].syntax->name.range);
      axes_of(each.mesh);
    }
  }
  /// Axis i of its mesh is slot i of a train or machine.
  void axes_of(sema::MeshId mesh) {
    const auto axes = program_.meshes[mesh.index()].syntax->axes;
    for (std::size_t i = 0; i < axes.size(); ++i)
      locals_.insert_or_assign(static_cast<std::uint32_t>(i), axes[i].name.range);
  }
  void base_of(const ast::MeshItem& item) {
    for (const sema::Mesh& mesh : program_.meshes) {
      if (mesh.syntax == &item && mesh.base.valid())
        add(item.base.range, program_.meshes[mesh.base.index()].syntax->name.range);
    }
  }
  void add(SourceRange range, SourceRange declaration) { list_.push_back({range, declaration}); }

  const sema::Program& program_;
  std::unordered_map<std::uint32_t, SourceRange> locals_;  // of the item, by slot
  std::vector<Use> list_;
};

}  // namespace

std::string_view symbol_kind_name(SymbolKind kind) {
  constexpr std::string_view kNames[] = {"param", "mesh",  "def",     "schedule",
                                         "model", "train", "machine", "names"};
  return kNames[static_cast<std::size_t>(kind)];
}

std::vector<Symbol> symbols_of(const ast::Module& module) {
  std::vector<Symbol> symbols;
  const auto add = [&](SymbolKind kind, const ast::Item& item, const ast::Identifier& name) {
    if (!name.missing())
      symbols.push_back(
          {kind, std::string(name.name), item.range, name.range, std::string(item.doc)});
  };
  for (const ast::Item* item : module.items) {
    if (const auto* param = llvm::dyn_cast<ast::ParamItem>(item))
      add(SymbolKind::param, *item, param->name);
    if (const auto* mesh = llvm::dyn_cast<ast::MeshItem>(item))
      add(SymbolKind::mesh, *item, mesh->name);
    if (const auto* function = llvm::dyn_cast<ast::FunctionItem>(item))
      add(kind_of(function->sort), *item, function->name);
    if (const auto* train = llvm::dyn_cast<ast::TrainItem>(item))
      add(SymbolKind::train, *item, train->name);
    if (const auto* machine = llvm::dyn_cast<ast::MachineItem>(item))
      add(SymbolKind::machine, *item, machine->name);
    if (const auto* names = llvm::dyn_cast<ast::NamesItem>(item))
      add(SymbolKind::names, *item, names->name);
  }
  return symbols;
}

std::vector<Use> uses_of(const sema::Program& program) {
  Uses uses(program);
  for (const ast::Item* item : program.modules.front()->syntax.items) uses.item(*item);
  return uses.take();
}

}  // namespace piper::service
