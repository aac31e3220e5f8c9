#pragma once
// The training DAG as text, at every level (README.md in this folder shows each).
//
// Guarantees: print(parse(print(dag))) == print(dag); linear time; an illegal DAG prints too if its
// ids are inside its tables. Nodes are in the global order if the level has one, otherwise by id.
//
//   llvm::outs() << print(dag);

#include <span>
#include <string>

#include "ir/dag/plan.h"
#include "llvm/Support/raw_ostream.h"

namespace piper::dag {

void print(const Dag& dag, llvm::raw_ostream& os,
           std::span<const directive::Directive> directives = {});
std::string print(const Dag& dag, std::span<const directive::Directive> directives = {});

}  // namespace piper::dag
