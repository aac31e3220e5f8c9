// The table of contents of the compiler: one line per pass, in order.
#include "passes/pipeline.h"

#include <algorithm>

#include "ir/diagnostics/forward.h"
#include "ir/verify/verify.h"
#include "passes/build.h"
#include "passes/check_lines.h"
#include "passes/check_selectors.h"
#include "passes/communicate.h"
#include "passes/differentiate.h"
#include "passes/order.h"
#include "passes/partition.h"
#include "passes/place.h"
#include "passes/plan.h"
#include "passes/replicate.h"
#include "passes/split.h"
#include "passes/surround.h"

namespace piper::passes {

using namespace dag;

namespace {

std::optional<Dag> run(tensor::Graph& model, const directive::Strategy& strategy, DiagnosticSink& sink, const Options& options) {
  // A model that has gradients was compiled before, and has its partition too.
  if (model.grads.empty()) {
    // The costs that balance stages are those of forward and backward, so the derivative comes first.
    if (!differentiate(model, sink)) return std::nullopt;
    model.context().poll();
    if (!partition(model, strategy, sink)) return std::nullopt;
  }
  if (!check_split_names(model, strategy, sink)) return std::nullopt;
  std::optional<Dag> dag = build(model, strategy, sink);
  if (!dag) return std::nullopt;
  // What stands around the chunks follows from them alone, and communicate makes its own: it is there where somebody looks.
  const auto complete = [&](bool watched) {
    if (watched && dag->level < Level::communicating) surround(*dag);
    return watched;
  };
  const auto pass = [&](std::string_view name, bool good) {
    model.context().poll();
    if (!good) return false;
    if (sink.has_errors()) return true;  // what the pass made is for the checks of the passes after it alone
    complete(options.after || options.verify_each);
    if (options.after) options.after(name, *dag);
    if (!options.verify_each || verify::verify(*dag, sink)) return true;
    sink.report(Code::compiler_bug, LocId(), "pass `{}` left a graph that its level does not allow; this is a mistake of the compiler, not of the program", name)
        .hint("please report it, with the program");
    return false;
  };
  const auto reached = [&](Level level) { return complete(options.stop_at == level); };

  pass("build", true);
  if (reached(Level::built)) return dag;
  if (!pass("split", split(*dag, strategy, sink))) return std::nullopt;
  if (reached(Level::split)) return dag;
  // Orders speak of places and replicas, but what is wrong with them for itself is told whatever is wrong with those.
  const auto stop_at_orders = [&]() -> std::optional<Dag> {
    check_orders(*dag, strategy, sink);
    return std::nullopt;
  };
  if (!pass("place", place(*dag, strategy, sink))) return stop_at_orders();
  // Replication speaks of the axes that placement leaves whole.
  if (!pass("replicate", replicate(*dag, strategy, sink))) return stop_at_orders();
  if (reached(Level::placed)) return dag;
  // The homes of parameters are those of training: a forward-only program reads them where training updates them.
  if (options.forward_only) {
    drop_backward(*dag);
    pass("drop_backward", true);
  }
  // Where a rank is missing, or a backward is named both ways, there is no order of everything.
  const bool orders_stand = !strategy.missing.order && !sink.reported(Code::backward_named_both_ways);
  if (!pass("communicate", communicate(*dag, sink)) || !orders_stand) return stop_at_orders();
  if (reached(Level::communicating)) return dag;
  const bool planning = options.stop_at != Level::ordered;
  Sizes sizes;
  std::optional<Ordered> ordered = order(*dag, strategy, sink, [&] {
    if (planning) sizes = measure_sizes(*dag, options.workspace_bytes);
  });
  if (!pass("order", ordered.has_value())) return std::nullopt;
  if (reached(Level::ordered)) return dag;
  if (sink.has_errors()) return std::nullopt;  // a plan would measure another program
  if (!pass("plan", plan(*dag, std::move(*ordered), std::move(sizes), sink))) return std::nullopt;
  return dag;
}

/// What is wrong with the lines themselves, whatever pass stopped: it has not seen what the passes after it apply.
void report_lines(const tensor::Graph& model, const directive::Strategy& strategy, DiagnosticSink& sink) {
  llvm::DenseSet<Symbol> unknown;
  check_splits(model, strategy, sink);  // the others look whether the batch divides
  if (!strategy.missing.unknown) report_selectors(model, strategy, sink, &unknown);
  check_places(strategy, model.context(), sink);
  check_replicates(strategy, model.context(), sink);
  check_streams(strategy, model.context(), sink, unknown);
}

}  // namespace

std::optional<Dag> compile(tensor::Graph& model, const directive::Strategy& strategy, DiagnosticSink& sink, const Options& options) {
  DiagnosticSink found(sink.locations());
  std::optional<Dag> dag = run(model, strategy, found, options);
  if (found.has_errors()) dag.reset();
  if (!dag) report_lines(model, strategy, found);
  forward(found, sink);
  return dag;
}

void check_rest(tensor::Graph& model, directive::Strategy& strategy, DiagnosticSink& sink, const Options& options) {
  const directive::Missing& missing = strategy.missing;
  if (!missing.model && !missing.unknown && missing.names.empty()) {
    // What is measured is that of another program.
    if (missing.stream) std::erase_if(strategy.directives, [](const directive::Directive& directive) { return std::holds_alternative<directive::Require>(directive); });
    compile(model, strategy, sink, options);
    return;
  }
  DiagnosticSink found(sink.locations());
  if (!missing.model && differentiate(model, found) && !missing.unknown) partition(model, strategy, found);
  report_lines(model, strategy, found);
  forward(found, sink);
}

}  // namespace piper::passes
