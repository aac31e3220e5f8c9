#pragma once
// Expands an in-place sum (nodes.def) into its terms; any other value is its own single term.

#include "ir/dag/dag.h"

namespace piper::dag {

/// Visits the terms in the order in which they are added.
template <typename Visit>
void for_each_term(const Dag& dag, Port value, Visit visit) {
  const Node& maker = dag.node(value.node);
  if (!adds_in_place(maker.kind)) return visit(value);
  for (const Input& term : dag.inputs_of(maker, value.index)) visit(term.source);
}

/// The term that completes the value.
inline Port last_term(const Dag& dag, Port value) {
  const Node& maker = dag.node(value.node);
  return adds_in_place(maker.kind) ? dag.inputs_of(maker, value.index).back().source : value;
}

}  // namespace piper::dag
