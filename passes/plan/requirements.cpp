#include "passes/plan/requirements.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "passes/order/list_schedule.h"
#include "passes/order/roles.h"

namespace piper::passes {

using namespace dag;
using directive::Measure;

namespace {

/// Compute orders and data flow at unit costs; communication takes no time.
double bubble_of(const Dag& dag) {
  const RoleTable roles(dag, {});
  std::vector<std::int64_t> end(dag.nodes.size(), 0);
  std::vector<std::int64_t> free(roles.size(), 0), first(roles.size(), -1), last(roles.size(), 0), work(roles.size(), 0);
  const auto inputs_end = [&](const Node& node) {
    std::int64_t time = 0;
    for (const Input& input : dag.inputs_of(node)) {
      if (input.cls != EdgeClass::param) time = std::max(time, end[input.source.node.index()]);
    }
    return time;
  };
  for (const NodeId id : dag.order) {
    const Node& node = dag.node(id);
    if (node.comm.valid()) {
      for (const NodeId member : dag.comms[node.comm.index()].members) end[id.index()] = std::max(end[id.index()], inputs_end(dag.node(member)));
      continue;
    }
    std::int64_t start = inputs_end(node);
    const std::int64_t cost = unit_cost(node);
    if (runs_body(node.kind)) {
      for (const std::uint32_t role : roles.roles_of(node.devices)) start = std::max(start, free[role]);
      for (const std::uint32_t role : roles.roles_of(node.devices)) {
        if (first[role] < 0) first[role] = start;
        free[role] = last[role] = start + cost;
        work[role] += cost;
      }
    }
    end[id.index()] = start + cost;
  }
  std::int64_t span = 0, total = 0, busy = 0;
  for (std::size_t role = 0; role < roles.size(); ++role) {
    if (first[role] < 0) continue;
    span = std::max(span, last[role] - first[role]);
    total += work[role];
    ++busy;
  }
  return span == 0 ? 0 : 1 - static_cast<double>(total) / (static_cast<double>(busy) * static_cast<double>(span));
}

std::int64_t traffic_of(const Dag& dag) {
  std::int64_t bytes = 0;
  for (const Comm& comm : dag.comms) {
    std::int64_t contributed = 0;  // by one device of each member set
    for (const NodeId member : comm.members) {
      std::uint32_t port = 0xFFFFFFFFu;
      for (const Input& input : dag.inputs_of(dag.node(member))) {
        if (input.port != port) contributed += dag.output_type(input.source).bytes();
        port = input.port;
      }
    }
    const Node& front = dag.node(comm.members.front());
    const std::int64_t devices = static_cast<std::int64_t>(dag.device_sets[front.devices].devices(dag.mesh));
    std::int64_t joined = 1;  // devices of one set that take part together
    for (std::size_t i = 0; i < dag.mesh.axes.size(); ++i) {
      if ((comm.axes >> i & 1) != 0) joined *= dag.mesh.axes[i].size;
    }
    const std::int64_t groups = devices / joined;
    const std::int64_t members = joined * static_cast<std::int64_t>(comm.members.size());
    switch (traits(front.kind).traffic) {
      case Traffic::none: break;
      case Traffic::send:
      case Traffic::recv: bytes += contributed * devices; break;
      case Traffic::gather: bytes += groups * joined * contributed * (members - 1); break;
      // A ring sends every element 2 (n - 1) / n times from each of n devices; every member set holds as much.
      case Traffic::add: bytes += groups * 2 * (members - 1) * (contributed / static_cast<std::int64_t>(comm.members.size())); break;
    }
  }
  return bytes;
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
  measures.traffic = traffic_of(dag);
  return measures;
}

bool check_requirements(const Dag& dag, DiagnosticSink& sink) {
  if (dag.requirements.empty() || dag.forward_only) return true;
  const Measures measures = measure(dag);
  bool met = true;
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
    if (require.measure == Measure::peak_memory) {
      report.hint("more stages or microbatches make the parts smaller, an order that starts backwards earlier keeps fewer of them");
    } else if (require.measure == Measure::bubble) {
      report.hint("more microbatches, or an order with `BI` and `BW`, leave less time idle");
    } else {
      report.hint("fewer stages, or larger parts per device, send less");
    }
  }
  return met;
}

}  // namespace piper::passes
