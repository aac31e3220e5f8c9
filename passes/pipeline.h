#pragma once
// The pipeline: a model and a strategy become a planned DAG. pipeline.cpp is the table of contents of the compiler.
//
//   auto prepared = passes::prepare(model, strategy, sink);     // model and strategy are those of lowering; forward only
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

/// A model as its strategy wants it, ready to be built: differentiated, without the gradients of what is frozen, its regions cut into the parts of the partitions; and that strategy, its lines
/// checked and its orders evaluated. `prepare` makes it.
struct Prepared {
  tensor::Graph model;
  directive::Strategy strategy;
};

/// Gives nothing, and at least one error in `sink`, when the lines of the strategy are wrong or do not fit the model. Throws Cancelled where the request of the model's context is no longer
/// wanted.
std::optional<Prepared> prepare(tensor::Graph model, directive::Strategy strategy, DiagnosticSink& sink);

struct Options {
  /// The last level to reach.
  dag::Level stop_at = dag::Level::planned;
  /// F alone, nothing saved, no update: the program of `held_out`. Bucket state lies at the same offsets as in the training program.
  bool forward_only = false;
  /// The same for bodies that `same_body` calls equal, for all norms, and for buckets of equal parameter types. None: nodes need no scratch.
  dag::WorkspaceBytes workspace_bytes;
  /// Runs ir/verify after every pass, not only after `build`; a failure there is a compiler bug and says so.
  bool verify_each = false;
  /// Called after every pass with its name.
  std::function<void(std::string_view pass, const dag::Dag&)> after;
  /// Asked where a required memory is exceeded: a hint. None: a general one.
  std::function<std::string()> memory_advice;
};

/// Gives nothing, and at least one error in `sink`, when the strategy cannot be applied to the model. Throws Cancelled as `prepare` does.
std::optional<dag::Dag> compile(const Prepared& prepared, DiagnosticSink& sink, const Options& options);

/// Whether what a pass made of a program is what its level allows (ir/verify). If not, it says so, and that the compiler is wrong. Who makes code of a plan asks this first.
bool keeps_promise(std::string_view pass, const dag::Dag& dag, DiagnosticSink& sink);

/// Takes a legal DAG of any level further, one that was read from text among them; `strategy` has its mesh, device sets and settings, and the directives of
/// which the passes to come make something. The result is verified. False, and at least one error in `sink`, when they cannot be applied.
bool advance(dag::Dag& dag, directive::Strategy strategy, DiagnosticSink& sink, const Options& options);

/// One rewrite of those that make a planned DAG of a built one, by its name (`split`, `communicate`), on a DAG as the one before it leaves it: for tests of a pass. False where it reports an
/// error.
bool run_pass(std::string_view name, dag::Dag& dag, directive::Strategy strategy, DiagnosticSink& sink, const Options& options);

}  // namespace piper::passes
