#pragma once
// From the lines of a `machine` to the value that the simulator reads.

#include <string>
#include <vector>

#include "frontend/lower/evaluate/evaluator.h"

namespace piper::lower {

class MachineBuilder {
 public:
  /// `mesh` has its axes.
  MachineBuilder(Evaluator& evaluator, std::string name, const Mesh& mesh);

  void line(const ast::SettingStmt& stmt, Frame& frame);
  Machine finish() { return std::move(machine_); }

 private:
  Evaluator& evaluator_;
  Machine machine_;
};

}  // namespace piper::lower
