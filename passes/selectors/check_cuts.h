#pragma once
// Checks `partition` and `split` lines by themselves and beside each other.
//
//   split batch into mb: 4; split batch into mb: 8   ->   P3202

#include "llvm/ADT/DenseSet.h"
#include "passes/selectors/nameable.h"

namespace piper::passes {

/// The partitions of a strategy in the order of application: outer ones first, whatever their order
/// in the file. Partitions that name each other's parts in a cycle are left out, with all that need
/// their parts.
std::vector<const directive::Partition*> in_order(const directive::Strategy& strategy);

/// Reports partitions of a part of some work, several with one name, and cycles; the names of their
/// parts are then uncertain.
void check_partitions(const Nameable& nameable, const directive::Strategy& strategy,
                      llvm::DenseSet<Symbol>& uncertain, DiagnosticSink& sink);
/// The same for splits: several, one of an unknown dimension or into parts that the batch does not
/// have, and dimensions with the name of a region, which no selector could name.
void check_splits(const Nameable& nameable, const directive::Strategy& strategy,
                  llvm::DenseSet<Symbol>& uncertain, DiagnosticSink& sink);

}  // namespace piper::passes
