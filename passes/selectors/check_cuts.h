#pragma once
// Lines that cut: what is wrong with `partition` and `split` by themselves and beside each other.
//
//   split batch into mb: 4; split batch into mb: 8   ->   P3202

#include "llvm/ADT/DenseSet.h"
#include "passes/selectors/nameable.h"

namespace piper::passes {

/// The partitions of a strategy as they are applied: outer ones first, whatever their order in the file. Those that cut each other's parts in a circle are left out, with all that need their parts.
std::vector<const directive::Partition*> in_order(const directive::Strategy& strategy);

/// Reports partitions of a part of some work, several of one name and those in a circle; the names of their parts are then uncertain.
void check_partitions(const Nameable& nameable, const directive::Strategy& strategy, llvm::DenseSet<Symbol>& uncertain, DiagnosticSink& sink);
/// The same of splits: several, one of an unknown dimension or into parts that the batch does not have, and dimensions that are called as regions, which nothing could name.
void check_splits(const Nameable& nameable, const directive::Strategy& strategy, llvm::DenseSet<Symbol>& uncertain, DiagnosticSink& sink);

}  // namespace piper::passes
