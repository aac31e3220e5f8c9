#pragma once
// Visits every node of a module, parents before children.
//
//   walk(module, [&](SourceRange range, bool is_error) { ... });

#include <functional>

#include "frontend/ast/module.h"

namespace piper::ast {

/// Gets the range of a node, and whether it stands for text that did not parse (or that is missing).
using VisitNode = std::function<void(SourceRange range, bool is_error)>;

void walk(const Module& module, const VisitNode& visit);

}  // namespace piper::ast
