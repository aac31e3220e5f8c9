#include "frontend/lsp/scope.h"

#include <algorithm>
#include <set>

#include "frontend/ast/walk.h"
#include "frontend/lsp/names.h"

namespace piper::lsp {

namespace {

/// Collects the declarations before a place, in the blocks around it.
class Scope {
 public:
  explicit Scope(std::uint32_t at) : at_(at) {}

  void add(const ast::Identifier& name, sema::Type type, std::string detail) {
    if (!name.missing() && name.range.end < at_)
      locals_.push_back({std::string(name.name), type, std::move(detail), false});
  }
  void dims(std::span<const ast::Dim> list) {
    for (const ast::Dim& dim : list) {
      if (dim.name.missing() || dim.name.range.end >= at_) continue;
      const auto known = std::find_if(locals_.begin(), locals_.end(), [&](const LocalName& local) {
        return local.name == dim.name.name;
      });
      if (known == locals_.end()) {
        locals_.push_back(
            {std::string(dim.name.name), {sema::TypeKind::integer}, "dimension", true});
      } else {
        known->is_dimension = true;
      }
    }
  }
  void bindings(std::span<const ast::Binding> list, std::string_view detail) {
    for (const ast::Binding& binding : list)
      add(binding.name, sema::type_of(*binding.values).element(), std::string(detail));
  }
  void block(const ast::Block* body) {
    if (body == nullptr || !inside(body->range)) return;
    for (const ast::Stmt* stmt : body->statements) {
      if (stmt->range.begin >= at_) return;
      statement(*stmt);
    }
  }
  std::vector<LocalName> take() { return std::move(locals_); }

 private:
  static sema::Type input_type(const ast::TypeRef* type) {
    if (type == nullptr) return {};
    const std::string_view name = type->name.name;
    return {name == "i64"    ? sema::TypeKind::tensor_i64
            : name == "f64"  ? sema::TypeKind::tensor_f64
            : name == "f32"  ? sema::TypeKind::tensor_f32
            : name == "bf16" ? sema::TypeKind::tensor_bf16
                             : sema::TypeKind::tensor};
  }
  bool inside(SourceRange range) const { return range.begin < at_ && at_ <= range.end; }

  void statement(const ast::Stmt& stmt) {
    const bool behind = stmt.range.end < at_;  // its own names are known after it
    if (const auto* let = llvm::dyn_cast<ast::LetStmt>(&stmt); let != nullptr && behind) {
      for (const ast::Identifier& name : let->names)
        add(name,
            let->names.size() == 1 ? sema::type_of(*let->value)
                                   : sema::type_of(*let->value).element(),
            "let");
    } else if (const auto* var = llvm::dyn_cast<ast::VarStmt>(&stmt); var != nullptr && behind) {
      add(var->name, sema::Type::from_bits(var->type), "var");
    } else if (const auto* input = llvm::dyn_cast<ast::InputStmt>(&stmt); input != nullptr) {
      for (const ast::Param& param : input->inputs) {
        if (behind) add(param.name, input_type(param.type), "input");
        if (param.type != nullptr) dims(param.type->dims);
      }
    } else if (const auto* weight = llvm::dyn_cast<ast::WeightStmt>(&stmt)) {
      for (const ast::WeightDecl& decl : weight->weights) {
        if (behind) add(decl.name, {sema::TypeKind::tensor}, "weight");
        dims(decl.dims);
      }
    } else if (const auto* cursor = llvm::dyn_cast<ast::CursorStmt>(&stmt);
               cursor != nullptr && behind) {
      add(cursor->name, {sema::TypeKind::cursor}, "cursor");
    }
    if (behind) return;
    if (const auto* loop = llvm::dyn_cast<ast::ForStmt>(&stmt)) {
      if (inside(loop->body->range)) bindings(loop->bindings, "for");
      block(loop->body);
    } else if (const auto* repeat = llvm::dyn_cast<ast::RepeatStmt>(&stmt)) {
      block(repeat->body);
    } else if (const auto* conditional = llvm::dyn_cast<ast::IfStmt>(&stmt)) {
      for (const ast::Branch& branch : conditional->branches) block(branch.body);
      block(conditional->otherwise);
    } else if (const auto* region = llvm::dyn_cast<ast::RegionStmt>(&stmt)) {
      block(region->body);
    } else if (const auto* order = llvm::dyn_cast<ast::OrderStmt>(&stmt)) {
      block(order->body);
    } else if (const auto* rank = llvm::dyn_cast<ast::RankStmt>(&stmt)) {
      if (inside(rank->body->range)) {
        for (const ast::Binding& binding : rank->bindings)
          add(binding.name, {sema::TypeKind::integer}, "rank");
      }
      block(rank->body);
    } else if (const auto* step = llvm::dyn_cast<ast::StepStmt>(&stmt)) {
      for (const ast::StepMember& member : step->step.members) block(member.block);
    }
  }

  std::uint32_t at_;
  std::vector<LocalName> locals_;
};

class LabelCollector {
 public:
  explicit LabelCollector(const sema::Program& program) : program_(program) {}

  void item(const ast::Item& item) {
    ast::NameVisitor visitor;
    visitor.statements = [&](const ast::Stmt& stmt) {
      if (const auto* named = llvm::dyn_cast<ast::RegionStmt>(&stmt)) region(named->name.name);
      if (const auto* line = llvm::dyn_cast<ast::DirectiveStmt>(&stmt)) {
        for (const ast::Pair& pair : line->into) {
          if (line->row().subject == directive::Subject::region) {
            region(pair.name.name);
          } else {
            dimension(pair.name.name);
          }
        }
      }
    };
    visitor.calls = [&](const ast::CallExpr& call) {
      if (call.referent != ast::Referent::function) return;
      const sema::Function& callee = program_.functions[call.target];
      if (callee.sort() == ast::FunctionSort::model && !llvm::isa<ast::TrainItem>(item))
        region(callee.name());
      if (seen_.insert(call.target).second) this->item(*callee.syntax);
    };
    ast::walk_names(item, visitor);
  }
  Labels take() { return std::move(labels_); }

 private:
  static void add(std::vector<std::string>& list, std::string_view name) {
    if (!name.empty() && std::find(list.begin(), list.end(), name) == list.end())
      list.emplace_back(name);
  }
  void region(std::string_view name) { add(labels_.regions, name); }
  void dimension(std::string_view name) { add(labels_.dimensions, name); }

  const sema::Program& program_;
  std::set<std::uint32_t> seen_;
  Labels labels_;
};

}  // namespace

std::vector<LocalName> locals_at(Request& request, std::uint32_t at) {
  const ast::Module* module = request.module();
  const NodesAt nodes = module != nullptr ? nodes_at(*module, at) : NodesAt();
  if (nodes.item == nullptr) return {};
  const sema::Program& program = *request.program();
  Scope scope(at);
  if (const auto* item = llvm::dyn_cast<ast::FunctionItem>(nodes.item)) {
    for (const sema::Function& function : program.functions) {
      if (function.syntax != item) continue;
      for (std::size_t i = 0; i < item->params.size(); ++i) {
        scope.add(item->params[i].name,
                  i < function.params.size() ? function.params[i] : sema::Type(), "parameter");
        if (item->params[i].type != nullptr) scope.dims(item->params[i].type->dims);
      }
    }
    scope.block(item->body);
  }
  const auto* train = llvm::dyn_cast<ast::TrainItem>(nodes.item);
  const auto* machine = llvm::dyn_cast<ast::MachineItem>(nodes.item);
  if (train != nullptr || machine != nullptr) {
    const std::string_view on = train != nullptr ? train->mesh.name : machine->mesh.name;
    const ast::Block* body = train != nullptr ? train->body : machine->body;
    for (const sema::Mesh& mesh : program.meshes) {
      if (mesh.syntax->name.name != on) continue;
      std::vector<LocalName> axes;
      Scope all(UINT32_MAX);
      for (const ast::Pair& axis : mesh.syntax->axes)
        all.add(axis.name, {sema::TypeKind::axis}, "axis of " + std::string(on));
      axes = all.take();
      scope.block(body);
      std::vector<LocalName> locals = scope.take();
      axes.insert(axes.end(), locals.begin(), locals.end());
      return axes;
    }
    scope.block(body);
  }
  return scope.take();
}

Labels labels_at(Request& request, std::uint32_t at) {
  const ast::Module* module = request.module();
  const NodesAt nodes = module != nullptr ? nodes_at(*module, at) : NodesAt();
  if (nodes.item == nullptr) return {};
  LabelCollector collector(*request.program());
  collector.item(*nodes.item);
  Labels own = collector.take();
  // A function that is given to an order has its labels from the schedule that applies it.
  const auto* function = llvm::dyn_cast<ast::FunctionItem>(nodes.item);
  if (function == nullptr || function->sort != ast::FunctionSort::def) return own;
  LabelCollector of_file(*request.program());
  for (const ast::Item* item : module->items) {
    if (const auto* schedule = llvm::dyn_cast<ast::FunctionItem>(item);
        schedule != nullptr && schedule->sort == ast::FunctionSort::schedule)
      of_file.item(*schedule);
  }
  Labels labels = of_file.take();
  // Another file applies the function: these are the names of parts in the library.
  if (labels.regions.empty() && labels.dimensions.empty()) return {{"stage"}, {"mb", "copy"}};
  return labels;
}

}  // namespace piper::lsp
