#pragma once
// The pipeline: a model and a strategy become a planned DAG. pipeline.cpp is the table of contents
// of the compiler.
//
//   auto prepared = passes::prepare(model, strategy, sink);     // model and strategy come from lowering; forward only
//   auto dag = passes::compile(*prepared, sink, {});
//   dag->level == dag::Level::planned, and verify(*dag, sink) finds nothing

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>

#include "ir/dag/plan.h"
#include "ir/diagnostics/diagnostics.h"
#include "ir/directive/directive.h"
#include "ir/tensor/graph.h"

namespace piper::passes {

/// A model prepared for its strategy: differentiated, without gradients of frozen parameters, its
/// regions partitioned into stages; and the strategy, with checked lines and evaluated orders.
struct Prepared {
  tensor::Graph model;
  directive::Strategy strategy;
};

/// Returns nothing, with at least one error in `sink`, if the lines of the strategy are wrong or do
/// not fit the model. Throws Cancelled if the request of the model's context was cancelled.
std::optional<Prepared> prepare(tensor::Graph model, directive::Strategy strategy,
                                DiagnosticSink& sink);

struct Options {
  /// The last level to reach.
  dag::Level stop_at = dag::Level::planned;
  /// Only F, nothing saved, no update: the program of `held_out`. Bucket state has the same offsets
  /// as in the training program.
  bool forward_only = false;
  /// Must be equal for bodies that `same_body` calls equal, for all norms, and for buckets of equal
  /// parameter types. None: nodes need no scratch.
  dag::WorkspaceBytes workspace_bytes;
  /// Runs ir/verify after every pass, not only after `build`; a failure is reported as a compiler
  /// bug.
  bool verify_each = false;
  /// Called after every pass with its name.
  std::function<void(std::string_view pass, const dag::Dag&)> after;
  /// Called for a hint if required memory is exceeded. None: a general hint.
  std::function<std::string()> memory_advice;
};

/// Returns nothing, with at least one error in `sink`, if the strategy cannot be applied to the
/// model. Throws Cancelled as `prepare` does.
std::optional<dag::Dag> compile(const Prepared& prepared, DiagnosticSink& sink,
                                const Options& options);

/// Whether ir/verify accepts the result of a pass. If not, reports that as a compiler bug. Code
/// generators call this for a plan first.
bool keeps_promise(std::string_view pass, const dag::Dag& dag, DiagnosticSink& sink);

/// Takes a legal DAG of any level, also one read from text, to a later level; `strategy` has its
/// mesh, device sets and settings, and the directives for the remaining passes. The result is
/// verified. False, with at least one error in `sink`, if they cannot be applied.
bool advance(dag::Dag& dag, directive::Strategy strategy, DiagnosticSink& sink,
             const Options& options);

/// Runs one rewrite by its name (`split`, `communicate`) on the result of the previous one, for
/// tests of a pass. False if it reports an error.
bool run_pass(std::string_view name, dag::Dag& dag, directive::Strategy strategy,
              DiagnosticSink& sink, const Options& options);

}  // namespace piper::passes
