#include "frontend/views/simulation.h"

#include <cstdio>

#include "passes/simulate/operations.h"

namespace piper::views {

namespace {

void report_assumed_rates(const dag::Dag& dag, const passes::ActionCosts& costs,
                          DiagnosticSink& sink) {
  const passes::AssumedRates assumed = passes::assumed_rates(dag, costs);
  const std::string dtype(tensor::dtype_name(dag.settings.dtype));
  const std::string owner = costs.machine
                                ? "the machine `" + costs.machine->name + "` does not state"
                                : "`--rates` and `--costs` do not state";
  if (assumed.flops || assumed.bytes) {
    const passes::MachineRates core;
    std::string lacks, taken;
    char number[32];
    const auto add = [&](const char* name, double value, const char* unit) {
      std::snprintf(number, sizeof number, "%.4g", value);
      lacks += (lacks.empty() ? "" : " and ") + std::string(name);
      taken += (taken.empty() ? "" : " and ") + std::string(number) + unit;
    };
    if (assumed.flops)
      add(("the operations per second in " + dtype).c_str(), core.flops, " operations");
    if (assumed.bytes) add("the bandwidth of device memory", core.bytes, " bytes");
    sink.report(Code::rates_assumed, SourceRange(),
                "{} {}: those of one core are taken, {} per second", owner, lacks, taken)
        .hint(
            "write `device(kind: h100, efficiency: 0.5)` or `device(flops: 67e12, bandwidth: 3000GiB)` in the machine, or `--rates flops=67e12,bytes=3e12`");
  }
  if (!assumed.links.empty()) {
    std::string axes;
    for (const std::string& axis : assumed.links) axes += (axes.empty() ? "`" : ", `") + axis + "`";
    char rates[80];
    std::snprintf(rates, sizeof rates,
                  "a latency of %.4g us and a bandwidth of %.4g bytes per second",
                  1e6 * costs.rates.latency, costs.rates.bandwidth);
    sink.report(Code::rates_assumed, SourceRange(),
                "the machine `{}` has no `link` of {}: {} are taken", costs.machine->name, axes,
                rates)
        .hint(
            "write `{}: link(bandwidth: 50GiB, latency: 5us)` in the machine, or `--rates bandwidth=5e10,latency=5e-6`",
            assumed.links.front());
  }
  if (assumed.kind != nullptr) {
    sink.report(Code::peaks_assumed, SourceRange(),
                "the devices of the machine `{}` work at the peaks of the data sheet of `{}`",
                costs.machine->name, assumed.kind)
        .hint("programs reach a part of them: write `device(kind: {}, efficiency: 0.5)`",
              assumed.kind);
  }
}

}  // namespace

std::optional<passes::Timeline> simulate(const SimulationCosts& costs, const dag::Dag& dag,
                                         DiagnosticSink& sink) {
  if (!costs.of_plan()) return passes::simulate_operations(dag, costs.operations, sink);
  if (costs.machine && !service::fits(costs.machine->machine, dag, sink)) return std::nullopt;
  passes::ActionCosts actions =
      service::costs_of(dag, costs.actions.value_or(service::MeasuredCosts()), sink);
  if (costs.machine) {
    actions.machine = costs.machine->machine;
    service::report_small_devices(*actions.machine, dag, sink);
  }
  report_assumed_rates(dag, actions, sink);
  return passes::simulate_actions(dag, actions);
}

}  // namespace piper::views
