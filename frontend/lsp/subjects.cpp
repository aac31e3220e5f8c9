#include "frontend/lsp/subjects.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <unordered_map>

#include "frontend/views/orders_view.h"
#include "ir/byte_text.h"
#include "ir/diagnostics/counted.h"
#include "ir/tensor/op_rules.h"
#include "passes/order/orders_table.h"
#include "passes/simulate/operations.h"

namespace piper::lsp {

namespace {

/// Hover and hints make no plan with more operations than this.
constexpr std::size_t kSmall = 4096;

std::string percent(double share) {
  const auto tenths = static_cast<std::int64_t>(share * 1000 + 0.5);
  return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + "%";
}

/// `1.2 M`, `340 `: three digits at most.
std::string scaled(double value) {
  constexpr std::string_view kUnits[] = {"", "k", "M", "G", "T", "P"};
  std::size_t unit = 0;
  for (; value >= 999.5 && unit + 1 < std::size(kUnits); ++unit) value /= 1000;
  const bool whole = value >= 99.5 || value == std::floor(value);
  const auto tenths = static_cast<std::int64_t>(std::llround(value * 10));
  std::string text = whole ? std::to_string(std::llround(value))
                           : std::to_string(tenths / 10) + "." + std::to_string(tenths % 10);
  return text + " " + std::string(kUnits[unit]);
}

std::shared_ptr<const service::Subject> lowered(Request& request, const Subject& subject) {
  const service::Answer<service::Subject> found =
      request.document().subject(subject.plan.subject, &request.cancellation());
  if (found.status == service::Status::cancelled) throw Cancelled();
  return found.value;
}

/// The instance of the region that contains an operation: the outermost of that name.
std::optional<RegionId> instance_of(const RegionTable& regions, RegionId region, Symbol name) {
  std::optional<RegionId> found;
  for (; region.valid(); region = regions.parent(region)) {
    if (regions.name(region) == name) found = region;
  }
  return found;
}

struct RegionCost {
  double flops = 0;
  std::set<std::size_t> params;
};

/// The cost of the forward of each region of that name.
std::map<RegionId, RegionCost> costs_of(const tensor::Graph& model, std::string_view region) {
  const bool all = region == "model" || region == model.name;
  const Symbol name = model.context().symbol(region);
  std::unordered_map<std::uint32_t, std::size_t> params;
  for (std::size_t i = 0; i < model.params.size(); ++i)
    params.emplace(model.params[i].value.value(), i);
  std::map<RegionId, RegionCost> costs;
  for (const tensor::Node& node : model.nodes()) {
    if (node.pass != Pass::F) continue;
    const std::optional<RegionId> instance =
        all ? RegionId() : instance_of(model.regions, node.region, name);
    if (!instance) continue;
    RegionCost& cost = costs[*instance];
    std::vector<tensor::Type> operands, results;
    for (const tensor::ValueId operand : model.operands(node)) {
      operands.push_back(model.type(operand));
      if (const auto param = params.find(operand.value()); param != params.end())
        cost.params.insert(param->second);
    }
    for (std::size_t i = 0; i < node.num_results; ++i)
      results.push_back(model.type(model.result(node, i)));
    cost.flops += tensor::cost(node.op, operands, results, node.attrs).flops;
  }
  return costs;
}

}  // namespace

Subject subject_called(Request& request, std::string name) {
  Subject subject;
  subject.name = std::move(name);
  subject.plan.subject.name = subject.name;
  subject.plan.subject.values =
      request.document().default_values(subject.name, &request.cancellation());
  for (const lower::Override& value : subject.plan.subject.values)
    subject.sizes += (subject.sizes.empty() ? "" : " ") + value.name + "=" + value.value;
  return subject;
}

Subject subject_of(Request& request, const json::Object* named) {
  const auto name = named != nullptr ? named->getString("name") : std::nullopt;
  if (!name) throw Refusal{ErrorCode::invalid_params, "the request names no train and no schedule"};
  return subject_called(request, name->str());
}

bool is_subject(const service::Symbol& symbol) {
  return symbol.kind == service::SymbolKind::train || symbol.kind == service::SymbolKind::schedule;
}

std::shared_ptr<const service::Plan> plan_of(Request& request, const Subject& subject) {
  const service::Answer<service::Plan> plan =
      request.document().plan(subject.plan, &request.cancellation());
  if (plan.status == service::Status::cancelled) throw Cancelled();
  if (plan.value == nullptr)
    throw Refusal{ErrorCode::request_failed,
                  "`" + subject.name + "` has no plan: see its diagnostics"};
  return plan.value;
}

bool is_small(Request& request, const Subject& subject) {
  const std::shared_ptr<const service::Subject> found = lowered(request, subject);
  if (found == nullptr) return false;
  std::size_t operations = found->lowered.model.nodes().size(),
              parts = found->lowered.strategy.mesh.devices();
  for (const directive::Directive& directive : found->lowered.strategy.directives) {
    if (const auto* order = std::get_if<directive::Order>(&directive))
      operations += order->ops.size();
    const auto* split = std::get_if<directive::Split>(&directive);
    if (split == nullptr) continue;
    for (const directive::NamedExtent& into : split->into)
      parts *= std::min<std::size_t>(into.extent, kSmall);
    if (parts > kSmall) return false;
  }
  return operations <= kSmall && parts <= kSmall;
}

std::string measures_text(const Subject& subject, const service::Plan& plan) {
  std::int64_t peak = 0;
  for (const dag::Role& role : plan.dag.plan->roles) peak = std::max(peak, role.arena_bytes);
  DiagnosticSink unread(plan.dag.context->locations);
  const auto timeline = passes::simulate_operations(plan.dag, {}, unread);
  return (subject.sizes.empty() ? "" : subject.sizes + ": ") +
         (timeline ? "bubble " + percent(timeline->bubble_span) + ", " : "") + "peak " +
         bytes_text(peak);
}

std::string grid_of(const service::Plan& plan) {
  return views::grid_text(passes::orders_table(plan.dag), plan.dag, {});
}

std::string region_text(Request& request, const Subject& train, std::string_view region) {
  const std::shared_ptr<const service::Subject> found = lowered(request, train);
  if (found == nullptr) return {};
  const tensor::Graph* model = &found->lowered.model;
  std::shared_ptr<const service::Plan> plan;
  std::map<RegionId, RegionCost> costs = costs_of(*model, region);
  if (costs.empty() && is_small(request, train)) {
    // Stages are there when the model is cut.
    plan = plan_of(request, train);
    model = &plan->model;
    costs = costs_of(*model, region);
  }
  if (costs.empty()) return {};
  const auto words = [&](const RegionCost& cost) {
    double elements = 0;
    for (const std::size_t param : cost.params)
      elements += static_cast<double>(model->type(model->params[param].value).elements());
    const std::string params = scaled(elements);
    return scaled(cost.flops) + "flop in a forward of the batch, " + params +
           (params.ends_with(' ') ? "" : " ") + "parameters";
  };
  // Instances of one name are alike more often than not.
  std::vector<std::string> different;
  for (const auto& [instance, cost] : costs) {
    const std::string text = words(cost);
    if (std::find(different.begin(), different.end(), text) == different.end())
      different.push_back(text);
  }
  std::string text = "in `" + train.name + "`: ";
  if (costs.size() > 1)
    text += counted(static_cast<std::int64_t>(costs.size()), "region") + ", " +
            (different.size() == 1 ? "each " : "the first ");
  return text + different.front();
}

}  // namespace piper::lsp
