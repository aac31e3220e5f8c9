#pragma once
// Names and locations in the text of a DAG, and the printing of communicators and roles. Used by
// `print.cpp` alone.

#include <string>
#include <vector>

#include "ir/dag/plan.h"
#include "ir/text/location_text.h"
#include "llvm/Support/raw_ostream.h"

namespace piper::dag {

/// Writes names that all parts of the text use.
class NamePrinter {
 public:
  NamePrinter(const Dag& dag, llvm::raw_ostream& os);

  const Dag& dag() const { return dag_; }
  llvm::raw_ostream& stream() { return os_; }
  llvm::StringRef node_text(NodeId id) const {
    return llvm::StringRef(names_).slice(starts_[id.index()], starts_[id.index() + 1]);
  }
  void node_name(NodeId id) { os_ << node_text(id); }
  void symbol(Symbol name);
  void devices(DeviceSetId set);
  void port(Port port);
  /// After a space; nothing for an invalid one.
  void location(LocId loc) { locations_.print(os_, loc); }
  void axes(AxisMask mask);

 protected:
  const Dag& dag_;
  llvm::raw_ostream& os_;
  const SymbolTable& symbols_;
  LocationText locations_;

 private:
  std::string names_;                // of all nodes
  std::vector<std::size_t> starts_;  // per node, one more: into names_
};

void print_plan(const Plan& plan, NamePrinter& names);

}  // namespace piper::dag
