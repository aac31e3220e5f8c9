#include "passes/plan/requirements.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <optional>

#include "passes/plan/traffic_table.h"
#include "passes/simulate/work_times.h"

namespace piper::passes {

using namespace dag;
using directive::Measure;

namespace {

/// The idle part of the longest span of a role, at unit costs (DESIGN.md section 8).
double bubble_of(const Dag& dag) {
  const WorkGraph graph(dag);
  const RoleTable roles(dag, {});
  const WorkRules rules = unit_rules(dag, graph, roles);
  const WorkTimes times(dag, graph, roles, rules);
  double span = 0, most = 0;
  for (const std::vector<std::uint32_t>& sequence : rules.sequences) {
    if (sequence.empty()) continue;
    double work = 0;
    for (const std::uint32_t unit : sequence) work += rules.cost[unit];
    span = std::max(span, times.finish(sequence.back()) - times.start(sequence.front()));
    most = std::max(most, work);
  }
  return span == 0 ? 0 : 1 - most / span;
}

std::string ratio_text(double ratio) {
  char text[32];
  std::snprintf(text, sizeof text, "%.4g", ratio);
  return text;
}

}  // namespace

std::string bytes_text(double bytes) {
  constexpr const char* kUnits[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
  std::size_t unit = 0;
  while (bytes >= 1024 && unit + 1 < std::size(kUnits)) {
    bytes /= 1024;
    ++unit;
  }
  char text[48];
  const bool whole = std::floor(bytes) == bytes;
  std::snprintf(text, sizeof text, whole ? "%.0f%s%s" : "%.1f%s%s", bytes, unit == 0 ? " " : "", kUnits[unit]);
  return text;
}

Measures measure(const Dag& dag) {
  Measures measures;
  for (std::size_t i = 0; i < dag.plan->roles.size(); ++i) {
    if (dag.plan->roles[i].arena_bytes <= measures.peak_memory) continue;
    measures.peak_memory = dag.plan->roles[i].arena_bytes;
    measures.peak_role = i;
  }
  measures.bubble = bubble_of(dag);
  for (const Comm& comm : dag.comms) {
    if (!copies_to_or_from_host(dag.node(comm.members.front()).kind)) measures.traffic += bytes_sent(dag, comm);
  }
  return measures;
}

bool check_requirements(const Dag& dag, DiagnosticSink& sink, const std::function<std::string()>& memory_advice) {
  if (dag.requirements.empty() || dag.forward_only) return true;
  const Measures measures = measure(dag);
  bool met = true;
  std::optional<std::string> advice;
  for (const directive::Require& require : dag.requirements) {
    constexpr const char* kNames[] = {"peak_memory", "bubble", "traffic"};
    constexpr const char* kCompares[] = {"<", "<=", ">", ">=", "==", "!="};
    const double found = require.measure == Measure::peak_memory ? static_cast<double>(measures.peak_memory)
                         : require.measure == Measure::bubble    ? measures.bubble
                                                                 : static_cast<double>(measures.traffic);
    if (directive::holds(found, require.compare, require.bound)) continue;
    met = false;
    const auto text = [&](double value) { return require.measure == Measure::bubble ? ratio_text(value) : bytes_text(value); };
    std::string where;
    if (require.measure == Measure::peak_memory) {
      where = " on rank `" + std::string(dag.context->text(dag.plan->roles[measures.peak_role].name)) + "`";
    }
    const char* name = kNames[static_cast<std::size_t>(require.measure)];
    auto report = sink.report(Code::measure_out_of_bounds, require.loc, "`{}` is {}{}, but {} {} is required{}", name, text(found), where,
                              kCompares[static_cast<std::size_t>(require.compare)], text(require.bound), require.message.empty() ? "" : ": " + require.message);
    const bool bounded = require.compare == directive::Compare::less || require.compare == directive::Compare::less_equal;
    if (!bounded) {
      report.hint("the program is what it is: change the bound");
    } else if (require.measure == Measure::peak_memory) {
      if (!advice) advice = memory_advice ? memory_advice() : "";
      if (advice->empty()) advice = "more stages or microbatches make the parts smaller, an order that starts backwards earlier keeps fewer of them";
      report.hint("{}", *advice);
    } else if (require.measure == Measure::bubble) {
      report.hint("more microbatches, or an order with `BI` and `BW`, leave less time idle");
    } else {
      report.hint("fewer stages, or larger parts per device, send less");
    }
  }
  return met;
}

}  // namespace piper::passes
