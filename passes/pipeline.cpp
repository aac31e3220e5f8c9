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
#include "passes/communicate/communicate.h"
#include "passes/order/evaluate_orders.h"
#include "passes/order/offload.h"
#include "passes/order/order.h"
#include "passes/order/rounds.h"
#include "passes/plan/plan.h"
#include "passes/plan/requirements.h"
#include "passes/selectors/check_lines.h"
#include "passes/selectors/check_selectors.h"
#include "passes/selectors/nameable.h"
#include "passes/transform/place.h"
#include "passes/transform/replicate.h"
#include "passes/transform/split.h"

namespace piper::passes {

using namespace dag;

namespace {

/// A step from the model that lowering gives to one of which a DAG is built. False after reporting.
using Preparation = bool (*)(tensor::Graph& model, directive::Strategy& strategy, DiagnosticSink& sink);

constexpr Preparation kPreparations[] = {
    [](auto&, auto& strategy, auto&) { return evaluate_orders(strategy), true; },
    [](auto& model, auto& strategy, auto& sink) { return check_lines(nameable(model, strategy.settings), strategy, sink); },
    // What is frozen decides what is differentiated.
    [](auto& model, auto& strategy, auto& sink) { return freeze(model, strategy, sink); },
    // Lines that freeze parts speak of those that are balanced without them.
    [](auto& model, auto& strategy, auto& sink) { return !freezes_parts(strategy) || (partition_forward(model, strategy, sink) && freeze_parts(model, strategy, sink)); },
    [](auto& model, auto&, auto& sink) { return differentiate(model, sink); },
    // Parts are balanced by the costs of forward and backward.
    [](auto& model, auto& strategy, auto& sink) { return freezes_parts(strategy) || partition(model, strategy, sink); },
    [](auto& model, auto& strategy, auto& sink) { return check_parts_meet(nameable(model, strategy.settings), strategy, sink); },
};

/// A rewrite of a DAG at a level: it gives the next one, or what the rewrites after it take.
struct Rewrite {
  std::string_view name;
  Level from, to;
  bool (*run)(Dag& dag, const directive::Strategy& strategy, const Options& options, DiagnosticSink& sink);
  bool forward_only = false;  // for held-out programs alone
};

/// What stands around the chunks follows from them alone, and communicate makes its own: it is there where somebody looks.
void complete(Dag& dag) {
  if (dag.level < Level::communicating) surround(dag);
}

/// Of a prepared model `build` makes the DAG that they take further.
constexpr Rewrite kRewrites[] = {
    {"split", Level::built, Level::split, [](Dag& dag, const auto& strategy, const auto&, auto& sink) { return split(dag, strategy, sink); }},
    {"place", Level::split, Level::placed, [](Dag& dag, const auto& strategy, const auto&, auto& sink) { return place(dag, strategy, sink); }},
    // Replication speaks of the axes that placement leaves whole; the two together reach the level.
    {"replicate", Level::split, Level::placed, [](Dag& dag, const auto& strategy, const auto&, auto& sink) { return replicate(dag, strategy, sink); }},
    // The homes of parameters are those of training: a forward-only program reads them where training updates them.
    {"drop_backward", Level::placed, Level::placed, [](Dag& dag, const auto&, const auto&, auto&) { return drop_backward(dag), true; }, true},
    {"communicate", Level::placed, Level::communicating, [](Dag& dag, const auto& strategy, const auto&, auto& sink) { return communicate(dag, strategy, sink); }},
    {"order", Level::communicating, Level::ordered, [](Dag& dag, const auto& strategy, const auto&, auto& sink) { return order(dag, strategy, sink); }},
    // Runs of work follow from its order.
    {"rounds", Level::ordered, Level::ordered, [](Dag& dag, const auto& strategy, const auto&, auto& sink) { return make_rounds(dag, strategy, sink); }},
    {"offload", Level::ordered, Level::ordered, [](Dag& dag, const auto& strategy, const auto&, auto& sink) { return offload(dag, strategy, sink); }},
    {"plan", Level::ordered, Level::planned, [](Dag& dag, const auto&, const auto& options, auto& sink) {
       plan(dag, options.workspace_bytes);
       return check_requirements(dag, sink, options.memory_advice);
     }},
};

/// Shows and verifies what a pass has made; on the way to a level there is no level to verify. False: the pass is wrong.
bool look_at(std::string_view name, Level to, bool verifies, Dag& dag, const Options& options, DiagnosticSink& sink) {
  dag.context->poll();
  if (options.after || verifies) complete(dag);
  if (options.after) options.after(name, dag);
  return !verifies || dag.level < to || keeps_promise(name, dag, sink);
}

/// Stops at the first pass that reports an error.
bool rewrite(Dag& dag, const directive::Strategy& strategy, DiagnosticSink& sink, const Options& options) {
  const Level start = dag.level;
  const std::size_t errors = sink.error_count();
  for (const Rewrite& rewrite : kRewrites) {
    if (rewrite.from < start || (rewrite.forward_only && !options.forward_only)) continue;
    if (rewrite.to > options.stop_at) break;
    if (!rewrite.run(dag, strategy, options, sink) || sink.error_count() > errors || !look_at(rewrite.name, rewrite.to, options.verify_each, dag, options, sink)) return false;
  }
  complete(dag);
  return true;
}

/// The lines of a DAG that comes from a text: their orders evaluated, and checked as far as they name what it has.
bool read_lines(const Dag& dag, directive::Strategy& strategy, DiagnosticSink& sink) {
  evaluate_orders(strategy);
  const Nameable named = nameable(dag);
  return check_lines(named, strategy, sink) && check_parts_meet(named, strategy, sink);
}

}  // namespace

bool keeps_promise(std::string_view pass, const Dag& dag, DiagnosticSink& sink) {
  if (verify::verify(dag, sink)) return true;
  sink.report(Code::compiler_bug, LocId(), "pass `{}` left a graph that its level does not allow; this is a mistake of the compiler, not of the program", pass)
      .hint("please report it, with the program");
  return false;
}

std::optional<Prepared> prepare(tensor::Graph model, directive::Strategy strategy, DiagnosticSink& sink) {
  DiagnosticSink found(sink.locations());
  const bool good = std::all_of(std::begin(kPreparations), std::end(kPreparations), [&](const Preparation& preparation) {
    model.context().poll();
    return preparation(model, strategy, found);
  });
  forward(found, sink);
  return good ? std::optional(Prepared{std::move(model), std::move(strategy)}) : std::nullopt;
}

std::optional<Dag> compile(const Prepared& prepared, DiagnosticSink& sink, const Options& options) {
  DiagnosticSink found(sink.locations());
  std::optional<Dag> dag = build(prepared.model, prepared.strategy);
  // Always verified: it is small, since it knows no microbatch and no device, and it has the bodies that kernels are made of.
  if (!look_at("build", Level::built, true, *dag, options, found) || !rewrite(*dag, prepared.strategy, found, options)) dag.reset();
  forward(found, sink);
  return dag;
}

bool advance(Dag& dag, directive::Strategy strategy, DiagnosticSink& sink, const Options& options) {
  // The text may say what no rewrite looks at, as an order that no plan can keep: nobody gets a plan of it.
  return read_lines(dag, strategy, sink) && rewrite(dag, strategy, sink, options) && verify::verify(dag, sink);
}

bool run_pass(std::string_view name, Dag& dag, directive::Strategy strategy, DiagnosticSink& sink, const Options& options) {
  const auto* const found = std::find_if(std::begin(kRewrites), std::end(kRewrites), [&](const Rewrite& rewrite) { return rewrite.name == name; });
  const bool ran = found != std::end(kRewrites) && read_lines(dag, strategy, sink) && found->run(dag, strategy, options, sink);
  complete(dag);
  return ran;
}

}  // namespace piper::passes
