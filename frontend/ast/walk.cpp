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
      case ItemKind::param:
        return name(llvm::cast<ParamItem>(item).name), expr(llvm::cast<ParamItem>(item).value);
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
      case ItemKind::names: {
        const auto& node = llvm::cast<NamesItem>(item);
        name(node.name);
        visit_(node.body, false);
        if (names_.names_items) names_.names_items(node);
        for (const NamesLine& line : node.lines) names_line(line);
        return;
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
    if (type_ref->kind == TypeKind::name || type_ref->kind == TypeKind::shaped)
      name(type_ref->name);
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
  void file_name(const FileName& file) {
    visit_(file.range, file.pieces.empty());
    for (const FileNamePiece& piece : file.pieces) {
      if (!piece.hole.missing()) name(piece.hole);
    }
  }
  void names_line(const NamesLine& line) {
    visit_(line.range, line.kind == NamesLineKind::error);
    if (names_.names_lines) names_.names_lines(line);
    if (line.kind == NamesLineKind::map) {
      visit_(line.path_range, false);
      for (const NamesPart& part : line.parts) {
        visit_(part.range, false);
        name(part.name);
        if (!part.index.missing()) name(part.index);
      }
      names(line.last);
      for (const NamesDim& dim : line.dims) {
        visit_(dim.range, false);
        name(dim.name);
        for (const NamesFactor& factor : dim.factors) {
          visit_(factor.range, false);
          name(factor.name);
        }
      }
      file_name(line.file);
      for (const FileDim& dim : line.file_dims) {
        visit_(dim.range, false);
        names(dim.names);
      }
    }
    pairs(line.facts);
    for (const FileName& file : line.ignored) file_name(file);
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
  void directive(const DirectiveStmt& node) {
    const directive::Subject subject = node.row().subject;
    expr(node.region);
    if (subject == directive::Subject::dimension || subject == directive::Subject::named)
      name(node.name);
    targets(node.targets);
    pairs(node.into);
    targets(node.in);
    expr(node.devices);
    axes(node.axes);
    names(node.dims);
    pairs(node.settings);
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
  if (auto* used = llvm::dyn_cast<NameExpr>(node); used != nullptr && names_.uses)
    names_.uses(*used);
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
  switch (stmt.kind) {
    case StmtKind::error: return;
    case StmtKind::let: {
      const auto& node = llvm::cast<LetStmt>(stmt);
      for (const Identifier& each : node.names) declare(each);
      expr(node.value);
      return;
    }
    case StmtKind::var: {
      const auto& node = llvm::cast<VarStmt>(stmt);
      declare(node.name);
      expr(node.value);
      return;
    }
    case StmtKind::assign: {
      const auto& node = llvm::cast<AssignStmt>(stmt);
      name(node.name);
      if (names_.assigns) names_.assigns(node.name);
      expr(node.value);
      return;
    }
    case StmtKind::expr: {
      const auto& node = llvm::cast<ExprStmt>(stmt);
      expr(node.value);
      return;
    }
    case StmtKind::for_loop: {
      const auto& node = llvm::cast<ForStmt>(stmt);
      bindings(node.bindings);
      block(node.body);
      return;
    }
    case StmtKind::repeat: {
      const auto& node = llvm::cast<RepeatStmt>(stmt);
      expr(node.count);
      block(node.body);
      return;
    }
    case StmtKind::conditional: {
      const auto& node = llvm::cast<IfStmt>(stmt);
      for (const Branch& branch : node.branches) {
        expr(branch.condition);
        block(branch.body);
      }
      block(node.otherwise);
      return;
    }
    case StmtKind::return_value: {
      const auto& node = llvm::cast<ReturnStmt>(stmt);
      expr(node.value);
      return;
    }
    case StmtKind::require: {
      const auto& node = llvm::cast<RequireStmt>(stmt);
      expr(node.condition);
      expr(node.message);
      return;
    }
    case StmtKind::setting: {
      const auto& node = llvm::cast<SettingStmt>(stmt);
      pair(node.setting);
      return;
    }
    case StmtKind::input: {
      const auto& node = llvm::cast<InputStmt>(stmt);
      params(node.inputs);
      return;
    }
    case StmtKind::weight: {
      const auto& node = llvm::cast<WeightStmt>(stmt);
      for (const WeightDecl& decl : node.weights) {
        visit_(decl.range, false);
        declare(decl.name);
        dims(decl.dims);
      }
      expr(node.init);
      return;
    }
    case StmtKind::region: {
      const auto& node = llvm::cast<RegionStmt>(stmt);
      name(node.name);
      block(node.body);
      return;
    }
    case StmtKind::loss: {
      const auto& node = llvm::cast<LossStmt>(stmt);
      expr(node.value);
      return;
    }
    case StmtKind::directive: return directive(llvm::cast<DirectiveStmt>(stmt));
    case StmtKind::order: {
      const auto& node = llvm::cast<OrderStmt>(stmt);
      expr(node.value);
      block(node.body);
      return;
    }
    case StmtKind::rank: {
      const auto& node = llvm::cast<RankStmt>(stmt);
      bindings(node.bindings);
      block(node.body);
      return;
    }
    case StmtKind::cursor: {
      const auto& node = llvm::cast<CursorStmt>(stmt);
      declare(node.name);
      expr(node.forward);
      expr(node.backward);
      return;
    }
    case StmtKind::at: {
      const auto& node = llvm::cast<AtStmt>(stmt);
      expr(node.slot);
      step(node.step);
      return;
    }
    case StmtKind::step: {
      const auto& node = llvm::cast<StepStmt>(stmt);
      step(node.step);
      return;
    }
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
