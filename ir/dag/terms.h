#pragma once
// What values are made of: a sum in place (nodes.def) of its terms, which others make, and any other of itself.

#include "ir/dag/dag.h"

namespace piper::dag {

/// In the order in which they are added.
template <typename Visit>
void for_each_term(const Dag& dag, Port value, Visit visit) {
  const Node& maker = dag.node(value.node);
  if (!adds_in_place(maker.kind)) return visit(value);
  for (const Input& term : dag.inputs_of(maker, value.index)) visit(term.source);
}

/// With it the value is complete.
inline Port last_term(const Dag& dag, Port value) {
  const Node& maker = dag.node(value.node);
  return adds_in_place(maker.kind) ? dag.inputs_of(maker, value.index).back().source : value;
}

}  // namespace piper::dag
