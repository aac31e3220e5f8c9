#include "frontend/service/cost_text.h"

#include <charconv>
#include <cstdio>
#include <set>
#include <span>
#include <type_traits>
#include <utility>
#include <variant>

#include "frontend/service/nearest.h"

namespace piper::service {

namespace {

using passes::MachineRates;
using passes::OperationCosts;

template <typename Costs>
struct CostRow {
  std::string_view name;
  std::variant<double Costs::*, std::optional<double> Costs::*> field;
  double least, most;
  std::string_view range;
};

// No time of a program in any unit is larger: sums of a million of them are exact enough.
constexpr CostRow<OperationCosts> kCosts[] = {
    {"f", &OperationCosts::f, 0, 1e12, "0 to 1e12"},
    {"b", &OperationCosts::b, 0, 1e12, "0 to 1e12"},
    {"bi", &OperationCosts::bi, 0, 1e12, "0 to 1e12"},
    {"bw", &OperationCosts::bw, 0, 1e12, "0 to 1e12"},
    {"r", &OperationCosts::r, 0, 1e12, "0 to 1e12"},
    {"pair", &OperationCosts::pair, 0, 1e12, "0 to 1e12"},
    {"p2p", &OperationCosts::p2p, 0, 1e12, "0 to 1e12"},
    {"w", &OperationCosts::w, 0, 1, "0 to 1"},
    {"keep", &OperationCosts::keep, 0, 1, "0 to 1"},
};
constexpr CostRow<MachineRates> kRates[] = {
    {"flops", &MachineRates::flops, 1, 1e21, "1 to 1e21"},
    {"bytes", &MachineRates::bytes, 1, 1e21, "1 to 1e21"},
    {"latency", &MachineRates::latency, 0, 1e6, "0 to 1e6"},
    {"bandwidth", &MachineRates::bandwidth, 1, 1e21, "1 to 1e21"},
};

/// `stages=equal`, of operations alone.
constexpr std::string_view kStages = "stages";
constexpr std::pair<std::string_view, passes::StageCosts> kStageCosts[] = {
    {"cost", passes::StageCosts::weighed}, {"equal", passes::StageCosts::equal}};

bool read_stages(std::string_view text, OperationCosts& costs, DiagnosticSink& sink) {
  for (const auto& [name, stages] : kStageCosts) {
    if (text == name) costs.stages = stages;
    if (text == name) return true;
  }
  sink.report(Code::bad_cost, SourceRange(),
              "`stages` is `{}`, which is no rule for the weight of a stage", text)
      .hint("write `stages=cost` or `stages=equal`");
  return false;
}

template <typename Costs>
const CostRow<Costs>* find_row(std::span<const CostRow<Costs>> rows, std::string_view name,
                               DiagnosticSink& sink) {
  std::vector<std::string> names;
  for (const CostRow<Costs>& row : rows) {
    if (row.name == name) return &row;
    names.emplace_back(row.name);
  }
  if (std::is_same_v<Costs, OperationCosts>) names.emplace_back(kStages);
  auto&& report = sink.report(Code::bad_cost, SourceRange(), "no cost is named `{}`", name);
  if (const auto meant = nearest(std::string(name), names)) {
    report.hint("did you mean `{}`?", *meant);
  } else {
    report.hint("the names are {}", quoted_list(names));
  }
  return nullptr;
}

/// The default of a cost.
template <typename Costs>
std::string usual(const CostRow<Costs>& row) {
  const Costs costs;
  const std::optional<double> value =
      std::visit([&](auto field) { return std::optional<double>(costs.*field); }, row.field);
  char text[32];
  std::snprintf(text, sizeof text, "%g", value ? *value : 1);
  return text;
}

template <typename Costs>
bool read_cost(std::string_view item, std::span<const CostRow<Costs>> rows, Costs& costs,
               std::set<std::string_view>& seen, DiagnosticSink& sink) {
  const std::size_t equals = item.find('=');
  const std::string_view name = item.substr(0, equals), text = equals == std::string_view::npos
                                                                   ? std::string_view()
                                                                   : item.substr(equals + 1);
  const bool is_stages = std::is_same_v<Costs, OperationCosts> && name == kStages;
  const CostRow<Costs>* row = is_stages ? nullptr : find_row(rows, name, sink);
  if (row == nullptr && !is_stages) return false;
  if (!seen.insert(name).second) {
    sink.report(Code::bad_cost, SourceRange(), "the cost `{}` is given twice", name)
        .hint("keep one of them");
    return false;
  }
  if constexpr (std::is_same_v<Costs, OperationCosts>) {
    if (is_stages) return read_stages(text, costs, sink);
  }
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool is_number = error == std::errc() && end == text.data() + text.size() && !text.empty();
  if (!is_number || !(value >= row->least && value <= row->most)) {  // which no NaN is
    sink.report(Code::bad_cost, SourceRange(), "the cost `{}` is `{}`, which is no number from {}",
                row->name, text, row->range)
        .hint("write `{}={}`", row->name, usual(*row));
    return false;
  }
  std::visit([&](auto field) { costs.*field = value; }, row->field);
  return true;
}

/// `seen`: the names in the text.
template <typename Costs>
bool read_items(std::string_view text, std::span<const CostRow<Costs>> rows, Costs& costs,
                std::set<std::string_view>& seen, DiagnosticSink& sink) {
  bool good = true;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find_first_of(", ", at), text.size());
    const std::string_view item = text.substr(at, end - at);
    if (!item.empty()) {
      good = read_cost(item, rows, costs, seen, sink) && good;
    } else if (end == text.size() || text[end] == ',') {
      sink.report(Code::bad_cost, SourceRange(), "a cost is missing in `{}`", text)
          .hint("write `{}=1`", rows.front().name);
      return false;
    }
    at = end + 1;
  }
  return good;
}

}  // namespace

bool read_costs(std::string_view text, OperationCosts& costs, DiagnosticSink& sink) {
  std::set<std::string_view> seen;
  if (!read_items<OperationCosts>(text, kCosts, costs, seen, sink)) return false;
  // The cost of whole backwards also sets their halves, because schedules with and without halves
  // are compared.
  if (seen.contains("b") && !seen.contains("bi") && !seen.contains("bw"))
    costs.bi = costs.bw = *costs.b / 2;
  return true;
}

namespace {

template <typename Costs>
std::string items_text(std::span<const CostRow<Costs>> rows, const Costs& costs) {
  std::string text;
  for (const CostRow<Costs>& row : rows) {
    const std::optional<double> value =
        std::visit([&](auto field) { return std::optional<double>(costs.*field); }, row.field);
    if (!value) continue;
    char number[32];
    std::snprintf(number, sizeof number, "%.6g", *value);
    text += (text.empty() ? "" : " ") + std::string(row.name) + "=" + number;
  }
  return text;
}

}  // namespace

std::string cost_text(const OperationCosts& costs) {
  std::string text = items_text<OperationCosts>(kCosts, costs);
  for (const auto& [name, stages] : kStageCosts) {
    if (costs.stages == stages) text += " " + std::string(kStages) + "=" + std::string(name);
  }
  return text;
}

bool read_rates(std::string_view text, MachineRates& rates, DiagnosticSink& sink) {
  std::set<std::string_view> seen;
  const bool good = read_items<MachineRates>(text, kRates, rates, seen, sink);
  rates.states_flops |= seen.contains("flops");
  rates.states_bytes |= seen.contains("bytes");
  rates.states_bandwidth |= seen.contains("bandwidth");
  return good;
}

std::string rate_text(const MachineRates& rates) { return items_text<MachineRates>(kRates, rates); }

}  // namespace piper::service
