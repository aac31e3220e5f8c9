#pragma once
// The parameters that models of a program may have, by the calls in their texts: nothing is
// evaluated, so that half-typed programs have them too.
//
//   model net() { for l in 0..4 { h = block(h) } ... }   model block(...) { weight up[dim, hidden] }
//     ->  parts {block, repeated}, weight up[dim, hidden]

#include <string>
#include <vector>

#include "frontend/lsp/request.h"

namespace piper::lsp {

struct WeightPath {
  struct Part {
    std::string name;
    bool repeated = false;  // called in a loop, or more than once
  };
  std::vector<Part> parts;
  const ast::WeightDecl* weight = nullptr;
};

/// The parameters of the models of the trains, else of the models that no other model calls; in text
/// order. The first ones, if calls make very many.
std::vector<WeightPath> weight_paths(const sema::Program& program);

/// `block[l].attention.q`: indices get the names `l`, `m`, ...
std::string text_of(const WeightPath& path);

}  // namespace piper::lsp
