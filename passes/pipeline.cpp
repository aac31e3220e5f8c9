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
#include "passes/plan/memory_advice.h"
#include "passes/plan/plan.h"
#include "passes/plan/requirements.h"
#include "passes/selectors/check_lines.h"
#include "passes/selectors/check_selectors.h"
#include "passes/transform/place.h"
#include "passes/transform/replicate.h"
#include "passes/transform/split.h"

namespace piper::passes {

using namespace dag;

namespace {

/// A rewrite of a DAG at a level: it gives the next one, or what the rewrites after it take.
struct Rewrite {
  std::string_view name;
  Level from, to;
  bool (*run)(Dag& dag, const directive::Strategy& strategy, const Options& options, DiagnosticSink& sink);
  bool forward_only = false;  // for held-out programs alone
};

constexpr Rewrite kRewrites[] = {
    {"split", Level::built, Level::split, [](Dag& dag, const auto& strategy, const auto&, auto& sink) { return split(dag, strategy, sink); }},
    {"place", Level::split, Level::placed, [](Dag& dag, const auto& strategy, const auto&, auto& sink) { return place(dag, strategy, sink); }},
    // Replication speaks of the axes that placement leaves whole; the two together reach the level.
    {"replicate", Level::split, Level::placed, [](Dag& dag, const auto& strategy, const auto&, auto& sink) { return replicate(dag, strategy, sink); }},
    // The homes of parameters are those of training: a forward-only program reads them where training updates them.
    {"drop_backward", Level::placed, Level::placed, [](Dag& dag, const auto&, const auto&, auto&) { return drop_backward(dag), true; }, true},
    {"communicate", Level::placed, Level::communicating, [](Dag& dag, const auto&, const auto&, auto& sink) { return communicate(dag, sink); }},
    {"order", Level::communicating, Level::ordered, [](Dag& dag, const auto& strategy, const auto&, auto& sink) { return order(dag, strategy, sink); }},
    // Runs of work follow from its order.
    {"rounds", Level::ordered, Level::ordered, [](Dag& dag, const auto& strategy, const auto&, auto& sink) { return make_rounds(dag, strategy, sink); }},
    {"offload", Level::ordered, Level::ordered, [](Dag& dag, const auto& strategy, const auto&, auto& sink) { return offload(dag, strategy, sink); }},
    {"plan", Level::ordered, Level::planned, [](Dag& dag, const auto&, const auto& options, auto& sink) {
       plan(dag, options.workspace_bytes);
       return check_requirements(dag, sink, options.memory_advice);
     }},
};

/// What stands around the chunks follows from them alone, and communicate makes its own: it is there where somebody looks.
void complete(Dag& dag) {
  if (dag.level < Level::communicating) surround(dag);
}

/// Shows and verifies what a pass has made; on the way to a level there is no level to verify. False: the pass is wrong.
bool look_at(std::string_view name, Level to, Dag& dag, const Options& options, DiagnosticSink& sink) {
  dag.context->poll();
  if (options.after || options.verify_each) complete(dag);
  if (options.after) options.after(name, dag);
  if (!options.verify_each || dag.level < to || verify::verify(dag, sink)) return true;
  sink.report(Code::compiler_bug, LocId(), "pass `{}` left a graph that its level does not allow; this is a mistake of the compiler, not of the program", name)
      .hint("please report it, with the program");
  return false;
}

/// Stops at the first pass that reports an error.
bool rewrite(Dag& dag, const directive::Strategy& strategy, DiagnosticSink& sink, const Options& options) {
  const Level start = dag.level;
  const std::size_t errors = sink.error_count();
  for (const Rewrite& rewrite : kRewrites) {
    if (rewrite.from < start || (rewrite.forward_only && !options.forward_only)) continue;
    if (rewrite.to > options.stop_at) break;
    if (!rewrite.run(dag, strategy, options, sink) || sink.error_count() > errors || !look_at(rewrite.name, rewrite.to, dag, options, sink)) return false;
  }
  complete(dag);
  return true;
}

/// The costs that cut stages are those of forward and backward, so a line that freezes stages speaks of stages that are balanced without it.
bool freeze_parts(tensor::Graph& model, const directive::Strategy& strategy, DiagnosticSink& sink) {
  tensor::Graph cut = model;
  if (!differentiate(cut, sink) || !partition(cut, strategy, sink)) return false;
  model.regions = cut.regions;
  for (std::size_t n = 0; n < model.nodes().size(); ++n) model.mutable_nodes()[n].region = cut.nodes()[n].region;
  return freeze(model, strategy, true, sink) && differentiate(model, sink);
}

/// The model differentiated, with its partition.
bool prepare(tensor::Graph& model, const directive::Strategy& strategy, DiagnosticSink& sink) {
  // A model that has gradients was compiled before, and has its partition too.
  // The costs that balance stages are those of forward and backward, so the derivative comes first.
  if (!model.grads.empty()) return true;
  if (!freeze(model, strategy, false, sink)) return false;
  if (freezes_parts(strategy)) return freeze_parts(model, strategy, sink);
  if (!differentiate(model, sink)) return false;
  model.context().poll();
  return partition(model, strategy, sink);
}

/// What is wrong with the lines by themselves, once the model is known: passes refuse only what follows from the DAG.
bool check_lines(const tensor::Graph& model, const directive::Strategy& strategy, DiagnosticSink& sink) {
  const std::size_t errors = sink.error_count();
  llvm::DenseSet<Symbol> unknown;
  if (!check_transforms(strategy, model.context(), sink)) return false;  // indices of such orders are none of the program's
  check_splits(model, strategy, sink);
  if (!strategy.missing.unknown) report_selectors(model, strategy, sink, &unknown);
  check_places(strategy, model.context(), sink);
  check_replicates(strategy, model.context(), sink);
  check_streams(strategy, model.context(), sink, unknown);
  return sink.error_count() == errors;
}

std::optional<Dag> run(tensor::Graph& model, const directive::Strategy& strategy, DiagnosticSink& sink, const Options& options) {
  // What is frozen decides what is differentiated.
  if (!check_treatments(strategy, model.context(), sink) || !prepare(model, strategy, sink) || !check_lines(model, strategy, sink)) return std::nullopt;
  Dag dag = build(model, strategy);
  if (!look_at("build", Level::built, dag, options, sink) || !rewrite(dag, strategy, sink, options)) return std::nullopt;
  return dag;
}

}  // namespace

std::optional<Dag> compile(tensor::Graph& model, const directive::Strategy& written, DiagnosticSink& sink, const Options& options) {
  const std::optional<directive::Strategy> evaluated = evaluate_orders(written);
  const directive::Strategy& strategy = evaluated ? *evaluated : written;
  DiagnosticSink found(sink.locations());
  Options advised = options;
  if (!advised.memory_advice) advised.memory_advice = [&] { return memory_advice(model, strategy, options); };
  std::optional<Dag> dag = run(model, strategy, found, advised);
  if (found.has_errors()) dag.reset();
  forward(found, sink);
  return dag;
}

bool advance(Dag& dag, const directive::Strategy& written, DiagnosticSink& sink, const Options& options) {
  const std::optional<directive::Strategy> evaluated = evaluate_orders(written);
  const directive::Strategy& strategy = evaluated ? *evaluated : written;
  const std::size_t errors = sink.error_count();
  check_transforms(strategy, *dag.context, sink);
  check_places(strategy, *dag.context, sink);
  check_replicates(strategy, *dag.context, sink);
  check_treatments(strategy, *dag.context, sink);
  check_streams(strategy, *dag.context, sink);
  // The text may say what no rewrite looks at, as an order that no plan can keep: nobody gets a plan of it.
  return sink.error_count() == errors && rewrite(dag, strategy, sink, options) && verify::verify(dag, sink);
}

bool run_pass(std::string_view name, Dag& dag, const directive::Strategy& strategy, DiagnosticSink& sink, const Options& options) {
  const auto* const found = std::find_if(std::begin(kRewrites), std::end(kRewrites), [&](const Rewrite& rewrite) { return rewrite.name == name; });
  const std::size_t errors = sink.error_count();
  const bool ran = found != std::end(kRewrites) && found->run(dag, strategy, options, sink) && sink.error_count() == errors;
  complete(dag);
  return ran;
}

void check_rest(tensor::Graph& model, const directive::Strategy& written, DiagnosticSink& sink) {
  const std::optional<directive::Strategy> evaluated = evaluate_orders(written);
  const directive::Strategy& strategy = evaluated ? *evaluated : written;
  const directive::Missing& missing = strategy.missing;
  DiagnosticSink found(sink.locations());
  if (missing.model || (differentiate(model, found) && (missing.unknown || partition(model, strategy, found)))) check_lines(model, strategy, found);
  forward(found, sink);
}

}  // namespace piper::passes
