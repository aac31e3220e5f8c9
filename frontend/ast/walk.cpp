#include "frontend/ast/walk.h"

namespace piper::ast {

namespace {

class Walker {
 public:
  Walker(const VisitNode& visit, const NameVisitor& names) : visit_(visit), names_(names) {}

  void item(const Item& item) {
    visit_(item.range, item.kind == ItemKind::error);
    switch (item.kind) {
      case ItemKind::error: return;
      case ItemKind::use: return names(llvm::cast<UseItem>(item).path);
      case ItemKind::param: return name(llvm::cast<ParamItem>(item).name), expr(llvm::cast<ParamItem>(item).value);
      case ItemKind::mesh: {
        const auto& node = llvm::cast<MeshItem>(item);
        name(node.name);
        if (node.is_view) name(node.base);
        return pairs(node.axes);
      }
      case ItemKind::function: {
        const auto& node = llvm::cast<FunctionItem>(item);
        name(node.name);
        params(node.params);
        type(node.result);
        return block(node.body);
      }
      case ItemKind::train: {
        const auto& node = llvm::cast<TrainItem>(item);
        name(node.name);
        expr(node.model);
        name(node.mesh);
        return block(node.body);
      }
      case ItemKind::machine: {
        const auto& node = llvm::cast<MachineItem>(item);
        name(node.name);
        name(node.mesh);
        return block(node.body);
      }
    }
  }

 private:
  void name(const Identifier& name) { visit_(name.range, name.missing()); }
  void declare(const Identifier& declared) {
    name(declared);
    if (names_.declares) names_.declares(declared);
  }
  void names(std::span<const Identifier> list) {
    for (const Identifier& each : list) name(each);
  }
  void axes(std::span<const Identifier> list) {
    names(list);
    for (const Identifier& each : list) {
      if (names_.reads) names_.reads(each);
    }
  }
  void pair(const Pair& pair) {
    visit_(pair.range, false);
    name(pair.name);
    expr(pair.value);
  }
  void pairs(std::span<const Pair> list) {
    for (const Pair& each : list) pair(each);
  }
  void dims(std::span<const Dim> list) {
    for (const Dim& dim : list) {
      visit_(dim.range, false);
      if (names_.dims) names_.dims(dim);
      name(dim.name);
      expr(dim.size);
    }
  }
  void type(const TypeRef* type_ref) {
    if (type_ref == nullptr) return;
    visit_(type_ref->range, type_ref->kind == TypeKind::error);
    if (type_ref->kind == TypeKind::name || type_ref->kind == TypeKind::shaped) name(type_ref->name);
    dims(type_ref->dims);
    type(type_ref->element);
  }
  void params(std::span<const Param> list) {
    for (const Param& param : list) {
      visit_(param.range, false);
      declare(param.name);
      type(param.type);
      expr(param.default_value);
    }
  }
  void targets(std::span<const Target> list) {
    for (const Target& target : list) {
      visit_(target.range, false);
      expr(target.selector);
    }
  }
  void bindings(std::span<const Binding> list) {
    for (const Binding& binding : list) {
      visit_(binding.range, false);
      declare(binding.name);
      expr(binding.values);
    }
  }
  void exprs(ExprList list) {
    for (const Expr* each : list) expr(each);
  }

  void block(const Block* body) {
    if (body == nullptr) return;
    visit_(body->range, false);
    if (names_.blocks) names_.blocks(*body);
    for (const Stmt* each : body->statements) stmt(*each);
  }
  void step(const Step& step) {
    visit_(step.range, step.members.empty());
    for (const StepMember& member : step.members) {
      visit_(member.range, false);
      expr(member.op);
      block(member.block);
    }
  }

  void expr(const Expr* node);
  void stmt(const Stmt& stmt);

  const VisitNode& visit_;
  const NameVisitor& names_;
};

void Walker::expr(const Expr* node) {
  if (node == nullptr) return;
  visit_(node->range, node->kind == ExprKind::error);
  if (names_.expressions) names_.expressions(*node);
  if (auto* used = llvm::dyn_cast<NameExpr>(node); used != nullptr && names_.uses) names_.uses(*used);
  if (auto* list = llvm::dyn_cast<ListExpr>(node)) {
    exprs(list->elements);
  } else if (auto* comprehension = llvm::dyn_cast<ComprehensionExpr>(node)) {
    bindings(comprehension->bindings);
    exprs(comprehension->elements);
  } else if (auto* unary = llvm::dyn_cast<UnaryExpr>(node)) {
    expr(unary->operand);
  } else if (auto* binary = llvm::dyn_cast<BinaryExpr>(node)) {
    visit_(binary->op_range, false);
    expr(binary->left);
    expr(binary->right);
  } else if (auto* conditional = llvm::dyn_cast<ConditionalExpr>(node)) {
    expr(conditional->condition);
    expr(conditional->then_value);
    expr(conditional->else_value);
  } else if (auto* index = llvm::dyn_cast<IndexExpr>(node)) {
    expr(index->base);
    exprs(index->indices);
  } else if (auto* field = llvm::dyn_cast<FieldExpr>(node)) {
    expr(field->base);
    name(field->field);
  } else if (auto* call = llvm::dyn_cast<CallExpr>(node)) {
    if (names_.calls) names_.calls(*call);
    expr(call->callee);
    for (const Arg& arg : call->args) {
      visit_(arg.range, false);
      if (!arg.name.missing()) name(arg.name);
      expr(arg.value);
    }
  } else if (auto* selector = llvm::dyn_cast<SelectorExpr>(node)) {
    expr(selector->head);
    for (const Coordinate& coordinate : selector->coordinates) {
      visit_(coordinate.range, false);
      name(coordinate.dimension);
      exprs(coordinate.indices);
    }
  } else if (auto* op = llvm::dyn_cast<OpExpr>(node)) {
    visit_(op->pass_range, false);
    expr(op->operand);
  }
}

void Walker::stmt(const Stmt& stmt) {
  visit_(stmt.range, stmt.kind == StmtKind::error);
  if (names_.statements) names_.statements(stmt);
  if (auto* let = llvm::dyn_cast<LetStmt>(&stmt)) {
    for (const Identifier& each : let->names) declare(each);
    expr(let->value);
  } else if (auto* var = llvm::dyn_cast<VarStmt>(&stmt)) {
    declare(var->name);
    expr(var->value);
  } else if (auto* assign = llvm::dyn_cast<AssignStmt>(&stmt)) {
    name(assign->name);
    if (names_.assigns) names_.assigns(assign->name);
    expr(assign->value);
  } else if (auto* value = llvm::dyn_cast<ExprStmt>(&stmt)) {
    expr(value->value);
  } else if (auto* loop = llvm::dyn_cast<ForStmt>(&stmt)) {
    bindings(loop->bindings);
    block(loop->body);
  } else if (auto* repeat = llvm::dyn_cast<RepeatStmt>(&stmt)) {
    expr(repeat->count);
    block(repeat->body);
  } else if (auto* conditional = llvm::dyn_cast<IfStmt>(&stmt)) {
    for (const Branch& branch : conditional->branches) {
      expr(branch.condition);
      block(branch.body);
    }
    block(conditional->otherwise);
  } else if (auto* result = llvm::dyn_cast<ReturnStmt>(&stmt)) {
    expr(result->value);
  } else if (auto* require = llvm::dyn_cast<RequireStmt>(&stmt)) {
    expr(require->condition);
    expr(require->message);
  } else if (auto* setting = llvm::dyn_cast<SettingStmt>(&stmt)) {
    pair(setting->setting);
  } else if (auto* input = llvm::dyn_cast<InputStmt>(&stmt)) {
    params(input->inputs);
  } else if (auto* weight = llvm::dyn_cast<WeightStmt>(&stmt)) {
    for (const WeightDecl& decl : weight->weights) {
      visit_(decl.range, false);
      declare(decl.name);
      dims(decl.dims);
    }
    expr(weight->init);
  } else if (auto* region = llvm::dyn_cast<RegionStmt>(&stmt)) {
    name(region->name);
    block(region->body);
  } else if (auto* loss = llvm::dyn_cast<LossStmt>(&stmt)) {
    expr(loss->value);
  } else if (auto* partition = llvm::dyn_cast<PartitionStmt>(&stmt)) {
    expr(partition->region);
    pair(partition->into);
    pairs(partition->settings);
  } else if (auto* split = llvm::dyn_cast<SplitStmt>(&stmt)) {
    name(split->dimension);
    pairs(split->into);
    targets(split->targets);
  } else if (auto* place = llvm::dyn_cast<PlaceStmt>(&stmt)) {
    targets(place->targets);
    expr(place->devices);
  } else if (auto* replicate = llvm::dyn_cast<ReplicateStmt>(&stmt)) {
    targets(replicate->targets);
    axes(replicate->axes);
    pairs(replicate->settings);
  } else if (auto* shard = llvm::dyn_cast<ShardStmt>(&stmt)) {
    targets(shard->targets);
    axes(shard->axes);
    names(shard->dims);
    pairs(shard->settings);
  } else if (auto* treat = llvm::dyn_cast<TreatStmt>(&stmt)) {
    targets(treat->targets);
    pairs(treat->settings);
  } else if (auto* stream = llvm::dyn_cast<StreamStmt>(&stmt)) {
    name(stream->name);
    targets(stream->targets);
    pairs(stream->settings);
  } else if (auto* order = llvm::dyn_cast<OrderStmt>(&stmt)) {
    expr(order->value);
    block(order->body);
  } else if (auto* rank = llvm::dyn_cast<RankStmt>(&stmt)) {
    bindings(rank->bindings);
    block(rank->body);
  } else if (auto* cursor = llvm::dyn_cast<CursorStmt>(&stmt)) {
    declare(cursor->name);
    expr(cursor->forward);
    expr(cursor->backward);
  } else if (auto* at = llvm::dyn_cast<AtStmt>(&stmt)) {
    expr(at->slot);
    step(at->step);
  } else if (auto* steps = llvm::dyn_cast<StepStmt>(&stmt)) {
    step(steps->step);
  }
}

}  // namespace

void walk(const Module& module, const VisitNode& visit) {
  const NameVisitor nobody;
  Walker walker(visit, nobody);
  for (const Item* item : module.items) walker.item(*item);
}

void walk_names(const Item& item, const NameVisitor& visitor) {
  const VisitNode pass_by = [](SourceRange, bool) {};
  Walker(pass_by, visitor).item(item);
}

}  // namespace piper::ast
