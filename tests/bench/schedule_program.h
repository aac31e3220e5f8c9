#pragma once
// A schedule of the standard library at a chosen size, with the chain of equal links that it gets
// without a model.
//
//   ScheduleProgram zbv("zbv", {{"p", "64"}, {"m", "256"}});
//   const std::optional<dag::Dag> dag = zbv.compile();
//   if (!dag) return state.SkipWithError(zbv.error().c_str());

#include <optional>
#include <string>
#include <vector>

#include "frontend/lower/lower.h"
#include "ir/dag/plan.h"

namespace piper::bench {

class ScheduleProgram {
 public:
  ScheduleProgram(const std::string& name, const std::vector<lower::Override>& values);

  /// The planned DAG, or one at an earlier level; empty: the reason is in `error`.
  std::optional<dag::Dag> compile(dag::Level level = dag::Level::planned);
  DiagnosticSink& sink() { return sink_; }
  std::string error() const;

 private:
  Context context_;
  DiagnosticSink sink_{context_.locations};
  std::optional<lower::Lowered> lowered_;
};

}  // namespace piper::bench
