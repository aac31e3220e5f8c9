#include "passes/build/tune.h"

#include <algorithm>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "passes/selectors/select.h"

namespace piper::passes {

using directive::Selector;
using tensor::Op;

namespace {

constexpr std::uint32_t kNone = 0xFFFFFFFFu;

std::vector<std::uint32_t> params_by_value(const tensor::Graph& model) {
  std::vector<std::uint32_t> param_of(model.values().size(), kNone);
  for (std::size_t p = 0; p < model.params.size(); ++p)
    param_of[model.params[p].value.index()] = static_cast<std::uint32_t>(p);
  return param_of;
}

/// Whether the result has the elements of the operands, moved, rounded or multiplied by a number.
bool keeps_elements(Op op) {
  switch (op) {
    case Op::rename:
    case Op::permute:
    case Op::broadcast:
    case Op::cast:
    case Op::scale:
    case Op::neg:
    case Op::slice:
    case Op::pad:
    case Op::shift:
    case Op::concat: return true;
    default: return false;
  }
}

/// The number of operands, from the first on, that a product or a lookup reads as such.
std::size_t product_operands(Op op) {
  switch (op) {
    case Op::contract: return 2;
    case Op::attend: return 3;
    case Op::lookup: return 1;
    default: return 0;
  }
}

bool stands_in(const tensor::Graph& model, RegionId region, const Selector& selector) {
  return std::all_of(selector.coordinates.begin(), selector.coordinates.end(),
                     [&](const directive::Coordinate& c) {
                       return has_coordinate(model.regions, model.context(), region, c);
                     });
}

/// One factor of each parameter, with the line that gives it.
class Factors {
 public:
  Factors(const tensor::Graph& model, std::string_view setting, DiagnosticSink& sink)
      : model_(model), setting_(setting), sink_(sink), given_(model.params.size()) {}

  /// Reports another factor of an earlier line, once per line.
  void give(std::size_t param, double factor, LocId loc) {
    std::optional<Given>& given = given_[param];
    if (!given) given = Given{factor, loc};
    if (given->factor == factor || reported_ == loc) return;
    reported_ = loc;
    sink_
        .report(Code::tuned_twice, loc,
                "`tune` gives `{}` the {} `{}`, and another line gives it `{}`",
                model_.context().text(model_.params[param].name), setting_, factor, given->factor)
        .related(given->loc, "the other line is here")
        .hint("name regions that share no weight, or give both lines the same `{}`", setting_);
  }
  std::optional<double> of(std::size_t param) const {
    return given_[param] ? std::optional(given_[param]->factor) : std::nullopt;
  }

 private:
  struct Given {
    double factor = 1;
    LocId loc;
  };
  const tensor::Graph& model_;
  const std::string_view setting_;
  DiagnosticSink& sink_;
  std::vector<std::optional<Given>> given_;
  LocId reported_;
};

/// The trained parameters that the work of a target uses; nothing if it names no work.
std::optional<std::vector<std::uint32_t>> used_by(const tensor::Graph& model,
                                                  const std::vector<std::uint32_t>& param_of,
                                                  const Selector& target) {
  bool work = false;
  std::vector<std::uint32_t> used;
  for (const tensor::Node& node : model.nodes()) {
    if (node.pass != Pass::F || !stands_in(model, node.region, target)) continue;
    work = true;
    for (const tensor::ValueId operand : model.operands(node)) {
      const std::uint32_t param = param_of[operand.index()];
      if (param != kNone && !model.params[param].frozen) used.push_back(param);
    }
  }
  return work ? std::optional(std::move(used)) : std::nullopt;
}

}  // namespace

std::vector<bool> read_by_products(const tensor::Graph& model) {
  // Values that are products' operands, from the last node to the first.
  std::vector<bool> read(model.values().size(), false);
  for (std::size_t i = model.nodes().size(); i-- > 0;) {
    const tensor::Node& node = model.nodes()[i];
    if (node.pass != Pass::F) continue;
    const auto operands = model.operands(node);
    for (std::size_t o = 0; o < std::min(operands.size(), product_operands(node.op)); ++o)
      read[operands[o].index()] = true;
    if (!keeps_elements(node.op) || !read[model.result(node).index()]) continue;
    for (const tensor::ValueId operand : operands) read[operand.index()] = true;
  }
  std::vector<bool> params;
  for (const tensor::Param& param : model.params) params.push_back(read[param.value.index()]);
  return params;
}

bool tune(tensor::Graph& model, const directive::Strategy& strategy, DiagnosticSink& sink) {
  const std::size_t errors = sink.error_count();
  const std::vector<std::uint32_t> param_of = params_by_value(model);
  Factors rates(model, "rate", sink), decays(model, "decay", sink);
  for (const directive::Directive& directive : strategy.directives) {
    const auto* const line = std::get_if<directive::Tune>(&directive);
    if (line == nullptr) continue;
    for (const Selector& target : line->targets) {
      const auto used = used_by(model, param_of, target);
      if (!used) continue;  // coordinates without common work are reported elsewhere
      const LocId loc = directive::narrowest(target.loc, line->loc);
      for (const std::uint32_t param : *used) {
        if (line->rate) rates.give(param, *line->rate, loc);
        if (line->decay) decays.give(param, *line->decay, loc);
      }
      if (!used->empty()) continue;
      sink.report(Code::nothing_to_tune, loc, "`tune` names `{}`, which uses no trained weight",
                  print_selector(target, model.context().symbols))
          .hint("name regions that have weights which are not frozen, or leave the line out");
    }
  }
  const auto& optimizer = strategy.settings.optimizer;
  const bool matrices = optimizer && optimizer->decay == directive::Decay::matrices;
  const std::vector<bool> products = read_by_products(model);
  for (std::size_t p = 0; p < model.params.size(); ++p) {
    tensor::Param& param = model.params[p];
    if (param.frozen) continue;
    param.rate = rates.of(p).value_or(param.rate);
    param.decay = decays.of(p).value_or(matrices && !products[p] ? 0 : param.decay);
  }
  return sink.error_count() == errors;
}

}  // namespace piper::passes
