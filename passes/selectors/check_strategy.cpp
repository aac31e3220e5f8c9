#include "passes/selectors/check_strategy.h"

#include "ir/directive/check_numbers.h"
#include "llvm/ADT/DenseSet.h"
#include "passes/selectors/check_cuts.h"
#include "passes/selectors/check_lines.h"
#include "passes/selectors/check_orders.h"
#include "passes/selectors/check_selectors.h"

namespace piper::passes {

bool check_strategy(const Nameable& nameable, const directive::Strategy& strategy,
                    DiagnosticSink& sink) {
  const std::size_t errors = sink.error_count();
  for (const directive::Directive& directive : strategy.directives)
    directive::check_numbers(directive, sink);
  // Later checks use these numbers to count parts, and indices of untrimmed orders may not exist in
  // the program.
  if (sink.error_count() > errors || !check_trims(strategy, nameable.context, sink)) return false;
  llvm::DenseSet<Symbol> uncertain;
  check_partitions(nameable, strategy, uncertain, sink);
  check_splits(nameable, strategy, uncertain, sink);
  check_orders(strategy, nameable.context, sink.error_count() == errors, sink);
  const llvm::DenseSet<Symbol> unknown = check_names(nameable, strategy, uncertain, sink);
  check_lines(strategy, nameable.context, unknown, sink);
  return sink.error_count() == errors;
}

}  // namespace piper::passes
