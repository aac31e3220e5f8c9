#include "frontend/parse/ast_builder.h"

#include <algorithm>

#include "frontend/parse/directive_tokens.h"

namespace piper::parse {

using namespace ast;
using Grammar = AstBuilder::Grammar;
using antlr4::tree::ErrorNode;
using antlr4::tree::ParseTree;
using antlr4::tree::TerminalNode;

namespace {

/// A token that the error strategy made up, or none at all.
bool missing(const antlr4::Token* token) {
  return token == nullptr || token->getTokenIndex() == INVALID_INDEX;
}

bool has_token(const antlr4::ParserRuleContext* context, std::size_t type) {
  return const_cast<antlr4::ParserRuleContext*>(context)->getToken(type, 0) != nullptr;
}

template <typename T>
T* at(const std::vector<T*>& list, std::size_t index) {
  return index < list.size() ? list[index] : nullptr;
}

}  // namespace

SourceRange AstBuilder::range(const antlr4::Token* token) const {
  return {file_, static_cast<std::uint32_t>(token->getStartIndex()),
          static_cast<std::uint32_t>(token->getStopIndex())};
}

SourceRange AstBuilder::range(const Context* context) const {
  SourceRange result = range(context->start);
  if (context->stop != nullptr &&
      context->stop->getTokenIndex() >= context->start->getTokenIndex()) {
    result.end = static_cast<std::uint32_t>(context->stop->getStopIndex());
  } else {
    result.end = result.begin;  // nothing of it is there
  }
  return result;
}

SourceRange AstBuilder::behind(const Context* context) const {
  SourceRange whole = range(context);
  return {file_, whole.end, whole.end};
}

std::string_view AstBuilder::text(const antlr4::Token* token) const {
  return text_.substr(token->getStartIndex(), token->getStopIndex() - token->getStartIndex());
}

antlr4::Token* AstBuilder::first_token(const Context* context) {
  for (ParseTree* child : context->children) {
    if (auto* leaf = dynamic_cast<TerminalNode*>(child)) return leaf->getSymbol();
  }
  return nullptr;
}

/// The run of skipped tokens that begins at children[index], up to its separator; moves index
/// behind it.
SourceRange AstBuilder::error_range(const std::vector<ParseTree*>& children,
                                    std::size_t& index) const {
  SourceRange result;
  std::size_t depth = 0;
  while (index < children.size()) {
    auto* node = dynamic_cast<ErrorNode*>(children[index]);
    if (node == nullptr) break;
    ++index;
    const antlr4::Token* token = node->getSymbol();
    std::size_t type = token->getType();
    if (type == Grammar::SEMI && depth == 0) break;
    if (!missing(token)) result = cover(result, range(token));
    if (type == Grammar::LPAREN || type == Grammar::LBRACKET || type == Grammar::LBRACE) ++depth;
    if ((type == Grammar::RPAREN || type == Grammar::RBRACKET || type == Grammar::RBRACE) &&
        depth > 0)
      --depth;
  }
  return result;
}

void AstBuilder::build(Grammar::ProgramContext* program) {
  std::vector<Item*> items;
  for (std::size_t i = 0; i < program->children.size();) {
    if (auto* context = dynamic_cast<Grammar::ItemContext*>(program->children[i])) {
      items.push_back(item(context));
      auto doc = docs_.find(items.back()->range.begin);
      if (doc != docs_.end()) items.back()->doc = module_.copy(std::string_view(doc->second));
      ++i;
    } else if (dynamic_cast<ErrorNode*>(program->children[i]) != nullptr) {
      SourceRange skipped = error_range(program->children, i);
      if (skipped.valid()) items.push_back(module_.make<ErrorItem>(skipped));
    } else {
      ++i;
    }
  }
  module_.items = module_.copy(items);
}

Item* AstBuilder::item(Grammar::ItemContext* context) {
  SourceRange where = range(context), end = behind(context);
  if (auto* use = dynamic_cast<Grammar::UseItemContext*>(context)) {
    auto* node = module_.make<UseItem>(where);
    // A reserved word names no file, so it is not looked up.
    std::vector<Identifier> path;
    for (Grammar::NameContext* name : use->name()) {
      path.push_back(identifier(name, range(name)));
      if (const antlr4::Token* token = first_token(name);
          token != nullptr && token->getType() != Grammar::NAME)
        path.back().name = {};
    }
    node->path = module_.copy(path);
    return node;
  }
  if (auto* param_item = dynamic_cast<Grammar::ParamItemContext*>(context)) {
    auto* node = module_.make<ParamItem>(where);
    node->name = identifier(param_item->name(), end);
    node->has_choices = has_token(param_item, Grammar::IN);
    node->value = expr(param_item->expr(), end);
    return node;
  }
  if (auto* mesh = dynamic_cast<Grammar::MeshItemContext*>(context)) {
    auto* node = module_.make<MeshItem>(where);
    if (Grammar::MeshHeadContext* head = mesh->meshHead()) {
      node->name = identifier(head->name(0), end);
      node->is_view = has_token(head, Grammar::ASSIGN);
      if (node->is_view) node->base = identifier(head->name(1), behind(head));
    } else {
      node->name = identifier(nullptr, end);
    }
    std::vector<Pair> axes;
    for (Grammar::AxisContext* axis : mesh->axis()) axes.push_back(pair(axis->pair(), range(axis)));
    node->axes = module_.copy(axes);
    return node;
  }
  if (auto* function_item = dynamic_cast<Grammar::FunctionItemContext*>(context))
    return function(function_item);
  if (auto* train = dynamic_cast<Grammar::TrainItemContext*>(context)) {
    auto* node = module_.make<TrainItem>(where);
    Grammar::TrainHeadContext* head = train->trainHead();
    node->name = identifier(head != nullptr ? head->name(0) : nullptr, end);
    Grammar::ModelCallContext* call = head != nullptr ? head->modelCall() : nullptr;
    node->model =
        primary(call != nullptr ? call->primary() : nullptr, head != nullptr ? behind(head) : end);
    node->mesh =
        identifier(head != nullptr ? head->name(1) : nullptr, head != nullptr ? behind(head) : end);
    node->body = block(train->block(), end);
    return node;
  }
  if (auto* machine = dynamic_cast<Grammar::MachineItemContext*>(context)) {
    auto* node = module_.make<MachineItem>(where);
    Grammar::MachineHeadContext* head = machine->machineHead();
    node->name = identifier(head != nullptr ? head->name(0) : nullptr, end);
    node->mesh =
        identifier(head != nullptr ? head->name(1) : nullptr, head != nullptr ? behind(head) : end);
    node->body = block(machine->block(), end);
    return node;
  }
  if (auto* names_item = dynamic_cast<Grammar::NamesItemContext*>(context))
    return names(names_item);
  return module_.make<ErrorItem>(where);
}

Item* AstBuilder::function(Grammar::FunctionItemContext* context) {
  auto* node = module_.make<FunctionItem>(range(context));
  SourceRange end = behind(context);
  node->sort = has_token(context, Grammar::MODEL)      ? FunctionSort::model
               : has_token(context, Grammar::SCHEDULE) ? FunctionSort::schedule
                                                       : FunctionSort::def;
  Grammar::FunctionHeadContext* head = context->functionHead();
  node->name = identifier(head != nullptr ? head->name() : nullptr, end);
  if (head != nullptr && head->params() != nullptr) node->params = params(head->params()->param());
  if (head != nullptr && has_token(head, Grammar::ARROW))
    node->result = type(head->kind(), behind(head));
  node->body = block(context->block(), end);
  return node;
}

Block* AstBuilder::block(Grammar::BlockContext* context, SourceRange where) {
  auto* node = module_.make<Block>();
  node->range = context != nullptr ? range(context) : where;
  if (context == nullptr) return node;
  std::vector<Stmt*> statements;
  for (std::size_t i = 0; i < context->children.size();) {
    if (auto* child = dynamic_cast<Grammar::StmtContext*>(context->children[i])) {
      statements.push_back(stmt(child));
      ++i;
    } else if (dynamic_cast<ErrorNode*>(context->children[i]) != nullptr) {
      SourceRange skipped = error_range(context->children, i);
      if (skipped.valid()) statements.push_back(module_.make<ErrorStmt>(skipped));
    } else {
      ++i;
    }
  }
  node->statements = module_.copy(statements);
  return node;
}

Identifier AstBuilder::identifier(Grammar::NameContext* context, SourceRange where) {
  antlr4::Token* token = context != nullptr ? first_token(context) : nullptr;
  if (missing(token)) return {{}, context != nullptr ? behind(context) : where};
  return {module_.copy(text(token)), range(token)};
}

std::span<const Identifier> AstBuilder::identifiers(
    const std::vector<Grammar::NameContext*>& names) {
  std::vector<Identifier> list;
  for (Grammar::NameContext* name : names) list.push_back(identifier(name, range(name)));
  return module_.copy(list);
}

Pair AstBuilder::pair(Grammar::PairContext* context, SourceRange where) {
  if (context == nullptr) return {{{}, where}, error(where), where};
  return {identifier(context->name(), behind(context)), expr(context->expr(), behind(context)),
          range(context)};
}

std::span<const Pair> AstBuilder::settings(Grammar::SettingsContext* context) {
  std::vector<Pair> list;
  if (context != nullptr) {
    for (Grammar::SettingContext* setting : context->setting())
      list.push_back(pair(setting->pair(), range(setting)));
  }
  return module_.copy(list);
}

std::span<const Dim> AstBuilder::dims(const std::vector<Grammar::DimContext*>& contexts) {
  std::vector<Dim> list;
  for (Grammar::DimContext* context : contexts) {
    Expr* size =
        has_token(context, Grammar::COLON) ? expr(context->expr(), behind(context)) : nullptr;
    list.push_back({identifier(context->name(), behind(context)), size, range(context)});
  }
  return module_.copy(list);
}

TypeRef* AstBuilder::type(Grammar::KindContext* context, SourceRange where) {
  auto* node = module_.make<TypeRef>();
  node->range = context != nullptr ? range(context) : where;
  if (context == nullptr || context->children.empty()) return node;
  if (context->name() != nullptr) {
    node->name = identifier(context->name(), where);
    node->kind = node->name.missing()                    ? TypeKind::error
                 : has_token(context, Grammar::LBRACKET) ? TypeKind::shaped
                                                         : TypeKind::name;
    node->dims = dims(context->dim());
  } else if (has_token(context, Grammar::LBRACKET)) {
    node->kind = TypeKind::list;
    node->element = type(context->kind(), behind(context));
  } else if (antlr4::Token* word = first_token(context); !missing(word)) {
    node->kind = TypeKind::name;
    node->name = {module_.copy(text(word)), range(word)};
  }
  return node;
}

Param AstBuilder::param(Grammar::ParamContext* context) {
  SourceRange end = behind(context);
  Expr* value = has_token(context, Grammar::ASSIGN) ? expr(context->expr(), end) : nullptr;
  return {identifier(context->name(), end), type(context->kind(), end), value, range(context)};
}

std::span<const Param> AstBuilder::params(const std::vector<Grammar::ParamContext*>& contexts) {
  std::vector<Param> list;
  for (Grammar::ParamContext* context : contexts) list.push_back(param(context));
  return module_.copy(list);
}

std::span<const Target> AstBuilder::targets(Grammar::TargetsContext* context) {
  std::vector<Target> list;
  if (context != nullptr) {
    for (Grammar::TargetContext* target : context->target()) {
      Target& added = list.emplace_back();
      added.range = range(target);
      if (TerminalNode* pass = target->PASS(); pass != nullptr && !missing(pass->getSymbol())) {
        added.has_pass = true;
        added.pass = parse_pass(text(pass->getSymbol())).value_or(Pass::F);
      }
      added.selector = primary(target->primary(), behind(target));
    }
  }
  return module_.copy(list);
}

std::span<const Binding> AstBuilder::bindings(Grammar::EachContext* context) {
  std::vector<Binding> list;
  if (context != nullptr) {
    for (Grammar::BindingContext* binding : context->binding()) {
      SourceRange end = behind(binding);
      list.push_back(
          {identifier(binding->name(), end), expr(binding->expr(), end), range(binding)});
    }
  }
  return module_.copy(list);
}

Step AstBuilder::step(Grammar::StepContext* context, SourceRange where) {
  if (context == nullptr) return {{}, where};
  std::vector<StepMember> members;
  for (Grammar::MemberContext* member : context->member()) {
    StepMember& added = members.emplace_back();
    added.range = range(member);
    if (member->block() != nullptr) {
      added.block = block(member->block(), added.range);
    } else {
      added.op = op(member->op());
      if (added.op == nullptr) members.pop_back();  // nothing behind `&`, reported
    }
  }
  return {module_.copy(members), range(context)};
}

// Statements.

Stmt* AstBuilder::stmt(Grammar::StmtContext* context) {
  SourceRange where = range(context), end = behind(context);
  if (auto* let = dynamic_cast<Grammar::LetStmtContext*>(context)) {
    auto* node = module_.make<LetStmt>(where);
    node->names = identifiers(let->name());
    node->value = expr(let->expr(), end);
    return node;
  }
  if (auto* var = dynamic_cast<Grammar::VarStmtContext*>(context)) {
    auto* node = module_.make<VarStmt>(where);
    node->name = identifier(var->name(), end);
    node->value = expr(var->expr(), end);
    return node;
  }
  if (auto* simple = dynamic_cast<Grammar::SimpleStmtContext*>(context)) return simple_stmt(simple);
  if (auto* loop = dynamic_cast<Grammar::ForStmtContext*>(context)) {
    auto* node = module_.make<ForStmt>(where);
    node->bindings = bindings(loop->each());
    node->body = block(loop->block(), end);
    return node;
  }
  if (auto* repeat = dynamic_cast<Grammar::RepeatStmtContext*>(context)) {
    auto* node = module_.make<RepeatStmt>(where);
    node->count = expr(repeat->count() != nullptr ? repeat->count()->expr() : nullptr, end);
    node->body = block(repeat->block(), end);
    return node;
  }
  if (auto* conditional = dynamic_cast<Grammar::IfStmtContext*>(context))
    return if_stmt(conditional);
  if (auto* result = dynamic_cast<Grammar::ReturnStmtContext*>(context)) {
    auto* node = module_.make<ReturnStmt>(where);
    node->value = expr(result->expr(), end);
    return node;
  }
  if (auto* require = dynamic_cast<Grammar::RequireStmtContext*>(context)) {
    auto* node = module_.make<RequireStmt>(where);
    node->condition =
        expr(require->condition() != nullptr ? require->condition()->expr() : nullptr, end);
    if (TerminalNode* message = require->STRING();
        message != nullptr && !missing(message->getSymbol())) {
      node->message = module_.make<StringExpr>(range(message->getSymbol()));
      std::string_view quoted = text(message->getSymbol()).substr(1);
      node->message->value =
          module_.copy(quoted.ends_with('"') ? quoted.substr(0, quoted.size() - 1) : quoted);
    }
    return node;
  }
  if (auto* input = dynamic_cast<Grammar::InputStmtContext*>(context)) {
    auto* node = module_.make<InputStmt>(where);
    node->inputs = params(input->param());
    return node;
  }
  if (auto* weight = dynamic_cast<Grammar::WeightStmtContext*>(context)) {
    auto* node = module_.make<WeightStmt>(where);
    std::vector<WeightDecl> weights;
    for (Grammar::WeightDeclContext* decl : weight->weightDecl()) {
      weights.push_back({identifier(decl->name(), behind(decl)), dims(decl->dim()), range(decl)});
    }
    node->weights = module_.copy(weights);
    if (has_token(weight, Grammar::ASSIGN)) node->init = expr(weight->expr(), end);
    return node;
  }
  if (auto* region = dynamic_cast<Grammar::RegionStmtContext*>(context)) {
    auto* node = module_.make<RegionStmt>(where);
    node->name = identifier(region->name(), end);
    node->body = block(region->block(), end);
    return node;
  }
  if (auto* loss = dynamic_cast<Grammar::LossStmtContext*>(context)) {
    auto* node = module_.make<LossStmt>(where);
    node->value = expr(loss->expr(), end);
    return node;
  }
  if (auto* order = dynamic_cast<Grammar::OrderStmtContext*>(context)) {
    auto* node = module_.make<OrderStmt>(where);
    if (order->block() != nullptr) {
      node->body = block(order->block(), end);
    } else {
      node->value = expr(order->expr(), end);
    }
    return node;
  }
  if (auto* rank = dynamic_cast<Grammar::RankStmtContext*>(context)) {
    auto* node = module_.make<RankStmt>(where);
    node->bindings = bindings(rank->each());
    node->body = block(rank->block(), end);
    return node;
  }
  if (auto* cursor = dynamic_cast<Grammar::CursorStmtContext*>(context)) {
    auto* node = module_.make<CursorStmt>(where);
    node->name = identifier(cursor->name(), end);
    node->forward = expr(cursor->expr(0), end);
    if (has_token(cursor, Grammar::BACKWARD)) node->backward = expr(cursor->expr(1), end);
    return node;
  }
  if (auto* slot = dynamic_cast<Grammar::AtStmtContext*>(context)) {
    auto* node = module_.make<AtStmt>(where);
    node->slot = expr(slot->slot() != nullptr ? slot->slot()->expr() : nullptr, end);
    node->step = step(slot->step(), end);
    return node;
  }
  if (auto* steps = dynamic_cast<Grammar::StepStmtContext*>(context)) {
    auto* node = module_.make<StepStmt>(where);
    node->step = step(steps->step(), end);
    return node;
  }
  if (auto* line = dynamic_cast<Grammar::DirectiveStmtContext*>(context)) return directive(line);
  return module_.make<ErrorStmt>(where);
}

Stmt* AstBuilder::directive(Grammar::DirectiveStmtContext* context) {
  const std::optional<directive::DirectiveKind> kind = directive_of(context->start->getType());
  if (!kind) return module_.make<ErrorStmt>(range(context));
  SourceRange end = behind(context);
  auto* node = module_.make<DirectiveStmt>(range(context));
  node->directive = *kind;
  const directive::Subject subject = node->row().subject;
  const bool is_dimension = subject == directive::Subject::dimension;
  if (subject == directive::Subject::region)
    node->region =
        primary(context->region() != nullptr ? context->region()->primary() : nullptr, end);
  if (is_dimension || subject == directive::Subject::named)
    node->name = identifier(context->name(), end);
  if (!is_dimension) node->targets = targets(context->targets());
  std::vector<Pair> into;
  for (Grammar::ExtentContext* extent : context->extent())
    into.push_back(pair(extent->pair(), range(extent)));
  if (subject == directive::Subject::region && into.empty()) into.push_back(pair(nullptr, end));
  node->into = module_.copy(into);
  if (is_dimension) node->in = targets(context->targets());
  if (node->row().clauses.needs(directive::Clause::on))
    node->devices = expr(context->devices() != nullptr ? context->devices()->expr() : nullptr, end);
  if (context->axes() != nullptr) node->axes = identifiers(context->axes()->name());
  if (context->dimensions() != nullptr) node->dims = identifiers(context->dimensions()->name());
  node->settings = settings(context->settings());
  return node;
}

Stmt* AstBuilder::simple_stmt(Grammar::SimpleStmtContext* context) {
  SourceRange where = range(context), end = behind(context);
  Expr* first = primary(context->primary(), where);
  bool assigns = has_token(context, Grammar::ASSIGN), sets = has_token(context, Grammar::COLON);
  if (!assigns && !sets) {
    auto* node = module_.make<ExprStmt>(where);
    node->value = first;
    return node;
  }
  Identifier name{{}, first->range};
  if (auto* word = llvm::dyn_cast<NameExpr>(first)) {
    name.name = word->name;
  } else if (!llvm::isa<ErrorExpr>(first)) {
    sink_.report(Code::unexpected_token, first->range, "only a name can stand left of `{}`",
                 assigns ? "=" : ":");
  }
  Expr* value = expr(context->expr(), end);
  if (assigns) {
    auto* node = module_.make<AssignStmt>(where);
    node->name = name;
    node->value = value;
    return node;
  }
  auto* node = module_.make<SettingStmt>(where);
  node->setting = {name, value, where};
  return node;
}

Stmt* AstBuilder::if_stmt(Grammar::IfStmtContext* context) {
  auto* node = module_.make<IfStmt>(range(context));
  SourceRange end = behind(context);
  std::vector<Branch> branches;
  auto condition = [&](Grammar::ConditionContext* c) {
    return expr(c != nullptr ? c->expr() : nullptr, end);
  };
  branches.push_back({condition(context->condition()), block(context->block(), end)});
  for (Grammar::ElseBranchContext* branch : context->elseBranch()) {
    Block* body = block(branch->block(), behind(branch));
    if (node->otherwise != nullptr) {
      sink_.report(Code::unexpected_token, range(branch), "this `else` follows the last branch")
          .related(node->otherwise->range, "the branch without a condition is the last one");
    } else if (has_token(branch, Grammar::IF)) {
      branches.push_back({condition(branch->condition()), body});
    } else {
      node->otherwise = body;
    }
  }
  node->branches = module_.copy(branches);
  return node;
}

}  // namespace piper::parse
