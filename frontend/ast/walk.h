#pragma once
// Visits every node of a module, parents before children.
//
//   walk(module, [&](SourceRange range, bool is_error) { ... });

#include <functional>

#include "frontend/ast/module.h"

namespace piper::ast {

/// Gets the range of a node, and whether its text did not parse or is missing.
using VisitNode = std::function<void(SourceRange range, bool is_error)>;

void walk(const Module& module, const VisitNode& visit);

/// Names of values by their use, and nodes by kind; empty functions are not called.
struct NameVisitor {
  // Parameters, `let`, `var`, loops, cursors, weights, inputs.
  std::function<void(const Identifier& name)> declares;
  std::function<void(const Identifier& name)> assigns;
  std::function<void(const Identifier& name)> reads;  // axes after `over`
  std::function<void(const NameExpr& name)> uses;     // callees too
  std::function<void(const CallExpr& call)> calls;
  // All nodes of a kind, whatever they name.
  std::function<void(const Expr& expr)> expressions;
  std::function<void(const Stmt& stmt)> statements;
  std::function<void(const Block& block)> blocks;
  std::function<void(const Dim& dim)> dims;
  std::function<void(const NamesItem& item)> names_items;
  std::function<void(const NamesLine& line)> names_lines;
};

void walk_names(const Item& item, const NameVisitor& visitor);

}  // namespace piper::ast
