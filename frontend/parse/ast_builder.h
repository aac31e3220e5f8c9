#pragma once
// Parse tree to AST, where contexts of broken text may lack any child.

#include <map>
#include <string>
#include <string_view>

#include "frontend/ast/module.h"
#include "frontend/source/selected_reports.h"
#include "grammar_generated/PipeParser.h"

namespace piper::parse {

class AstBuilder {
 public:
  using Grammar = generated::PipeParser;

  AstBuilder(std::string_view text, FileId file, const std::map<std::uint32_t, std::string>& docs,
             SelectedReports& sink, ast::Module& module)
      : text_(text), file_(file), docs_(docs), sink_(sink), module_(module) {}

  void build(Grammar::ProgramContext* program);

 private:
  using Context = antlr4::ParserRuleContext;

  // Places. Tokens carry byte offsets: getStartIndex, and getStopIndex behind the last byte.
  SourceRange range(const antlr4::Token* token) const;
  SourceRange range(const Context* context) const;
  SourceRange error_range(const std::vector<antlr4::tree::ParseTree*>& children,
                          std::size_t& index) const;
  std::string_view text(const antlr4::Token* token) const;
  static antlr4::Token* first_token(const Context* context);

  // Items.
  ast::Item* item(Grammar::ItemContext* context);
  ast::Item* function(Grammar::FunctionItemContext* context);

  // Lines of `names`.
  ast::Item* names(Grammar::NamesItemContext* context);
  ast::NamesLine names_line(Grammar::NamesLineContext* context);
  void map_line(Grammar::NamesLineContext* context, ast::NamesLine& line);
  ast::NamesPart names_part(const ast::Identifier& name, Grammar::PathIndexContext* index,
                            SourceRange where);
  std::span<const ast::NamesDim> names_dims(Grammar::PathIndexContext* context);
  void file_tensor(Grammar::FileTensorContext* context, ast::NamesLine& line, SourceRange where);
  /// The name between the quotes, with its holes.
  ast::FileName file_name(const antlr4::Token* token);
  std::span<const ast::FileName> file_names(Grammar::NamesLineContext* context);
  /// An integer without a unit, at least `minimum`; nothing, and a diagnostic, if it is none.
  std::optional<std::int64_t> whole_number(const antlr4::Token* token, std::int64_t minimum);

  // Statements.
  ast::Block* block(Grammar::BlockContext* context, SourceRange where);
  ast::Stmt* stmt(Grammar::StmtContext* context);
  ast::Stmt* simple_stmt(Grammar::SimpleStmtContext* context);
  ast::Stmt* if_stmt(Grammar::IfStmtContext* context);
  ast::Stmt* directive(Grammar::DirectiveStmtContext* context);
  ast::Step step(Grammar::StepContext* context, SourceRange where);

  // Parts.
  ast::Identifier identifier(Grammar::NameContext* context, SourceRange where);
  std::span<const ast::Identifier> identifiers(const std::vector<Grammar::NameContext*>& names);
  ast::Pair pair(Grammar::PairContext* context, SourceRange where);
  std::span<const ast::Pair> settings(Grammar::SettingsContext* context);
  std::span<const ast::Dim> dims(const std::vector<Grammar::DimContext*>& contexts);
  ast::TypeRef* type(Grammar::KindContext* context, SourceRange where);
  ast::Param param(Grammar::ParamContext* context);
  std::span<const ast::Param> params(const std::vector<Grammar::ParamContext*>& contexts);
  std::span<const ast::Target> targets(Grammar::TargetsContext* context);
  std::span<const ast::Binding> bindings(Grammar::EachContext* context);

  // Expressions; `where` is the place of an error node when there is nothing.
  ast::Expr* expr(Grammar::ExprContext* context, SourceRange where);
  ast::Expr* primary(Grammar::PrimaryContext* context, SourceRange where);
  ast::Expr* atom(Grammar::AtomContext* context, SourceRange where);
  ast::Expr* trailer(Grammar::TrailerContext* context, ast::Expr* base);
  ast::Expr* number(const antlr4::Token* token);
  ast::OpExpr* op(Grammar::OpContext* context);
  ast::ExprList elems(Grammar::ElemsContext* context);
  ast::Arg arg(Grammar::ArgContext* context);
  ast::Expr* error(SourceRange where) { return module_.make<ast::ErrorExpr>(where); }
  /// The empty range after a construct, the place of a missing part.
  SourceRange behind(const Context* context) const;

  std::string_view text_;
  FileId file_;
  const std::map<std::uint32_t, std::string>& docs_;
  SelectedReports& sink_;
  ast::Module& module_;
};

}  // namespace piper::parse
