#include "passes/build/freeze.h"

#include <algorithm>
#include <string>
#include <variant>
#include <vector>

#include "passes/selectors/select.h"

namespace piper::passes {

using directive::Selector;

namespace {

bool names_part(const directive::Strategy& strategy, const Selector& selector) {
  return std::any_of(strategy.directives.begin(), strategy.directives.end(),
                     [&](const directive::Directive& directive) {
                       const auto* partition = std::get_if<directive::Partition>(&directive);
                       return partition != nullptr &&
                              std::any_of(selector.coordinates.begin(), selector.coordinates.end(),
                                          [&](const directive::Coordinate& c) {
                                            return c.name == partition->into.name;
                                          });
                     });
}

template <typename Visit>
void for_each_target(const directive::Strategy& strategy, Visit visit) {
  for (const directive::Directive& directive : strategy.directives) {
    const auto* freeze = std::get_if<directive::Freeze>(&directive);
    if (freeze == nullptr) continue;
    for (const Selector& target : freeze->targets)
      visit(target, directive::narrowest(target.loc, freeze->loc));
  }
}

bool stands_in(const tensor::Graph& model, RegionId region, const Selector& selector) {
  return std::all_of(selector.coordinates.begin(), selector.coordinates.end(),
                     [&](const directive::Coordinate& c) {
                       return has_coordinate(model.regions, model.context(), region, c);
                     });
}

/// Selects the lines that name stages of a partition, or the others.
bool freeze(tensor::Graph& model, const directive::Strategy& strategy, bool parts,
            DiagnosticSink& sink) {
  constexpr std::uint32_t kNone = 0xFFFFFFFFu;
  std::vector<std::uint32_t> param_of(model.values().size(), kNone);
  for (std::size_t p = 0; p < model.params.size(); ++p)
    param_of[model.params[p].value.index()] = static_cast<std::uint32_t>(p);
  const std::size_t errors = sink.error_count();
  LocId last;
  for_each_target(strategy, [&](const Selector& target, LocId loc) {
    if (names_part(strategy, target) != parts) return;
    bool work = false, any = false;
    for (const tensor::Node& node : model.nodes()) {
      if (node.pass != Pass::F || !stands_in(model, node.region, target)) continue;
      work = true;
      for (const tensor::ValueId operand : model.operands(node)) {
        if (param_of[operand.index()] == kNone) continue;
        model.params[param_of[operand.index()]].frozen = any = true;
      }
    }
    last = loc;
    if (any || !work) return;  // coordinates without common work are reported elsewhere
    sink.report(Code::nothing_to_freeze, loc, "`freeze` names `{}`, which uses no weight",
                print_selector(target, model.context().symbols))
        .hint("name regions that have weights, or leave the line out");
  });
  const bool all =
      !model.params.empty() && std::all_of(model.params.begin(), model.params.end(),
                                           [](const tensor::Param& param) { return param.frozen; });
  if (all && last.valid()) {
    sink.report(Code::nothing_left_to_train, last,
                "every weight of the model is frozen, so nothing is left to train")
        .hint("name fewer regions: a train needs at least one weight that a step changes");
  }
  return sink.error_count() == errors;
}

}  // namespace

bool freezes_parts(const directive::Strategy& strategy) {
  bool any = false;
  for_each_target(
      strategy, [&](const Selector& target, LocId) { any = any || names_part(strategy, target); });
  return any;
}

bool freeze(tensor::Graph& model, const directive::Strategy& strategy, DiagnosticSink& sink) {
  return freeze(model, strategy, false, sink);
}
bool freeze_parts(tensor::Graph& model, const directive::Strategy& strategy, DiagnosticSink& sink) {
  return freeze(model, strategy, true, sink);
}

}  // namespace piper::passes
