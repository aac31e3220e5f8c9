// The table of contents of the compiler: one line per pass, in order.
#include "passes/pipeline.h"

#include <algorithm>

#include "ir/diagnostics/forward.h"
#include "ir/verify/verify.h"
#include "passes/build/build.h"
#include "passes/build/differentiate.h"
#include "passes/build/freeze.h"
#include "passes/build/partition.h"
#include "passes/build/surround.h"
#include "passes/build/tune.h"
#include "passes/communicate/communicate.h"
#include "passes/order/evaluate_orders.h"
#include "passes/order/insert_collectives.h"
#include "passes/order/offload.h"
#include "passes/order/order.h"
#include "passes/plan/plan.h"
#include "passes/plan/requirements.h"
#include "passes/selectors/check_selectors.h"
#include "passes/selectors/check_strategy.h"
#include "passes/selectors/nameable.h"
#include "passes/transform/place.h"
#include "passes/transform/replicate.h"
#include "passes/transform/split.h"

namespace piper::passes {

using namespace dag;

namespace {

/// A step that prepares the lowered model for `build`. False after reporting.
using Preparation = bool (*)(tensor::Graph& model, directive::Strategy& strategy,
                             DiagnosticSink& sink);

constexpr Preparation kPreparations[] = {
    [](auto&, auto& strategy, auto&) { return evaluate_orders(strategy), true; },
    [](auto& model, auto& strategy, auto& sink) {
      return check_strategy(nameable(model, strategy.settings), strategy, sink);
    },
    // Frozen parameters are not differentiated.
    [](auto& model, auto& strategy, auto& sink) { return freeze(model, strategy, sink); },
    // Lines that freeze stages of a balanced partition refer to stages balanced without these
    // lines.
    [](auto& model, auto& strategy, auto& sink) {
      return !freezes_parts(strategy) ||
             (partition_forward(model, strategy, sink) && freeze_parts(model, strategy, sink));
    },
    [](auto& model, auto&, auto& sink) { return differentiate(model, sink); },
    // Stages are balanced by the costs of forward and backward.
    [](auto& model, auto& strategy, auto& sink) {
      return freezes_parts(strategy) || partition(model, strategy, sink);
    },
    // Lines that tune weights may name stages.
    [](auto& model, auto& strategy, auto& sink) { return tune(model, strategy, sink); },
    [](auto& model, auto& strategy, auto& sink) {
      return check_parts_meet(nameable(model, strategy.settings), strategy, sink);
    },
};

/// A rewrite of a DAG from one level to the next, or to the input of the next rewrite.
struct Rewrite {
  std::string_view name;
  Level from, to;
  bool (*run)(Dag& dag, const directive::Strategy& strategy, const Options& options,
              DiagnosticSink& sink);
  bool forward_only = false;  // only for held-out programs
};

/// Loads, sums, updates and reports follow from the chunks alone and communicate makes them anew,
/// so they are built only for verification and printing.
void complete(Dag& dag) {
  if (dag.level < Level::communicating) surround(dag);
}

/// `build` makes the DAG for these rewrites from a prepared model.
constexpr Rewrite kRewrites[] = {
    {"split", Level::built, Level::split,
     [](Dag& dag, const auto& strategy, const auto&, auto& sink) {
       return split(dag, strategy, sink);
     }},
    {"place", Level::split, Level::placed,
     [](Dag& dag, const auto& strategy, const auto&, auto& sink) {
       return place(dag, strategy, sink);
     }},
    // Replication is over the axes that placement leaves whole, so only both together reach the
    // level.
    {"replicate", Level::split, Level::placed,
     [](Dag& dag, const auto& strategy, const auto&, auto& sink) {
       return replicate(dag, strategy, sink);
     }},
    // The owners of parameters are those of training: a forward-only program reads them where
    // training updates them.
    {"drop_backward", Level::placed, Level::placed,
     [](Dag& dag, const auto&, const auto&, auto&) { return drop_backward(dag), true; }, true},
    {"communicate", Level::placed, Level::communicating,
     [](Dag& dag, const auto& strategy, const auto&, auto& sink) {
       return communicate(dag, strategy, sink);
     }},
    {"order", Level::communicating, Level::ordered,
     [](Dag& dag, const auto& strategy, const auto&, auto& sink) {
       return order(dag, strategy, sink);
     }},
    // Gathered intervals follow from the order of work.
    {"insert_collectives", Level::ordered, Level::ordered,
     [](Dag& dag, const auto& strategy, const auto&, auto& sink) {
       return insert_collectives(dag, strategy, sink);
     }},
    {"offload", Level::ordered, Level::ordered,
     [](Dag& dag, const auto& strategy, const auto&, auto& sink) {
       return offload(dag, strategy, sink);
     }},
    {"plan", Level::ordered, Level::planned,
     [](Dag& dag, const auto&, const auto& options, auto& sink) {
       plan(dag, options.workspace_bytes);
       return check_requirements(dag, sink, options.memory_advice);
     }},
};

/// Shows and verifies the result of a pass; between levels there is nothing to verify. False: the
/// pass has a bug.
bool look_at(std::string_view name, Level to, bool verifies, Dag& dag, const Options& options,
             DiagnosticSink& sink) {
  dag.context->poll();
  if (options.after || verifies) complete(dag);
  if (options.after) options.after(name, dag);
  return !verifies || dag.level < to || keeps_promise(name, dag, sink);
}

/// Stops at the first pass that reports an error.
bool rewrite(Dag& dag, const directive::Strategy& strategy, DiagnosticSink& sink,
             const Options& options) {
  const Level start = dag.level;
  const std::size_t errors = sink.error_count();
  for (const Rewrite& rewrite : kRewrites) {
    if (rewrite.from < start || (rewrite.forward_only && !options.forward_only)) continue;
    if (rewrite.to > options.stop_at) break;
    if (!rewrite.run(dag, strategy, options, sink) || sink.error_count() > errors ||
        !look_at(rewrite.name, rewrite.to, options.verify_each, dag, options, sink))
      return false;
  }
  complete(dag);
  return true;
}

/// The lines for a DAG from a text: their orders evaluated, and checked as far as their names are
/// in the DAG.
bool read_lines(const Dag& dag, directive::Strategy& strategy, DiagnosticSink& sink) {
  evaluate_orders(strategy);
  const Nameable named = nameable(dag);
  return check_strategy(named, strategy, sink) && check_parts_meet(named, strategy, sink);
}

}  // namespace

bool keeps_promise(std::string_view pass, const Dag& dag, DiagnosticSink& sink) {
  if (verify::verify(dag, sink)) return true;
  sink.report(
          Code::compiler_bug, LocId(),
          "pass `{}` left a graph that its level does not allow; this is a mistake of the compiler, not of the program",
          pass)
      .hint("please report it, with the program");
  return false;
}

std::optional<Prepared> prepare(tensor::Graph model, directive::Strategy strategy,
                                DiagnosticSink& sink) {
  DiagnosticSink found(sink.locations());
  const bool good = std::all_of(std::begin(kPreparations), std::end(kPreparations),
                                [&](const Preparation& preparation) {
                                  model.context().poll();
                                  return preparation(model, strategy, found);
                                });
  forward(found, sink);
  return good ? std::optional(Prepared{std::move(model), std::move(strategy)}) : std::nullopt;
}

std::optional<Dag> compile(const Prepared& prepared, DiagnosticSink& sink, const Options& options) {
  DiagnosticSink found(sink.locations());
  std::optional<Dag> dag = build(prepared.model, prepared.strategy);
  // Always verified: it is small, because it has no microbatches and devices, and kernels are made
  // from its bodies.
  if (!look_at("build", Level::built, true, *dag, options, found) ||
      !rewrite(*dag, prepared.strategy, found, options))
    dag.reset();
  forward(found, sink);
  return dag;
}

bool advance(Dag& dag, directive::Strategy strategy, DiagnosticSink& sink, const Options& options) {
  // The text may contain errors that no rewrite checks, such as an order that no plan can keep, so
  // the plan is verified.
  return read_lines(dag, strategy, sink) && rewrite(dag, strategy, sink, options) &&
         verify::verify(dag, sink);
}

bool run_pass(std::string_view name, Dag& dag, directive::Strategy strategy, DiagnosticSink& sink,
              const Options& options) {
  const auto* const found =
      std::find_if(std::begin(kRewrites), std::end(kRewrites),
                   [&](const Rewrite& rewrite) { return rewrite.name == name; });
  const bool ran = found != std::end(kRewrites) && read_lines(dag, strategy, sink) &&
                   found->run(dag, strategy, options, sink);
  complete(dag);
  return ran;
}

}  // namespace piper::passes
