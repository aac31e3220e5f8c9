#pragma once
// Facts of the DAG's text that printer and parser compute alike and that are not written: numbers
// of outputs, names of communicators, bodies.

#include <string>
#include <vector>

#include "ir/dag/plan.h"
#include "ir/text/location_text.h"
#include "ir/text/text_reader.h"

namespace piper::dag {

/// `stage2`, `stage2.block4.moe`; `.1` is appended for segment 1; work outside every region is
/// `model`.
std::string chunk_name(const RegionTable& regions, RegionId region, std::uint32_t segment,
                       const SymbolTable& symbols);
/// The number of input ports: one more than the last one with an edge.
std::uint32_t input_ports(const Dag& dag, const Node& node);
/// The number of outputs that follows from a node's kind, body, bucket and communication; any other
/// number is written out.
std::uint32_t implied_outputs(const Dag& dag, const Node& node);
/// `pp0.to.pp1`, `group.pp0`; `.no2` is appended to the second one of that name.
std::vector<std::string> communicator_names(const Dag& dag, const Plan& plan);

void print_bodies(const Dag& dag, llvm::raw_ostream& os, LocationText& locations);

}  // namespace piper::dag
