#include "passes/plan/requirements.h"

#include <algorithm>
#include <cstdio>
#include <optional>

#include "ir/byte_text.h"
#include "passes/plan/staging.h"
#include "passes/plan/traffic_table.h"
#include "passes/simulate/operations.h"

namespace piper::passes {

using namespace dag;
using directive::Measure;

namespace {

std::string ratio_text(double ratio) {
  char text[32];
  std::snprintf(text, sizeof text, "%.4g", ratio);
  return text;
}

template <typename Bytes>
Most most_of(const Dag& dag, const Bytes& bytes_of) {
  Most most;
  for (std::size_t i = 0; i < dag.plan->roles.size(); ++i) {
    const std::int64_t bytes = bytes_of(dag.plan->roles[i]);
    if (bytes > most.bytes) most = {bytes, i};
  }
  return most;
}

class Requirements {
 public:
  Requirements(const Dag& dag, DiagnosticSink& sink,
               const std::function<std::string()>& memory_advice)
      : dag_(dag), sink_(sink), memory_advice_(memory_advice) {}

  /// Checks the requirements that `looks` selects; bounds are on training.
  template <typename Looks>
  bool met(const Looks& looks) {
    bool met = true;
    for (const directive::Require& require : dag_.requirements) {
      if (!dag_.forward_only && looks(require.measure)) met &= check(require);
    }
    return met;
  }

 private:
  struct Found {
    double value;
    std::optional<std::size_t> role = {};
  };

  Found find(Measure measure) {
    const auto of = [](const Most& most) {
      return Found{static_cast<double>(most.bytes), most.role};
    };
    switch (measure) {
      case Measure::peak_memory: return of(peak_memory(dag_));
      case Measure::host_memory: return of(host_memory(dag_));
      case Measure::bubble: return {bubble_span(dag_)};
      case Measure::traffic: return {static_cast<double>(traffic(dag_))};
    }
    return {};
  }

  bool check(const directive::Require& require) {
    const Found found = find(require.measure);
    if (directive::holds(found.value, require.compare, require.bound)) return true;
    const auto text = [&](double value) {
      return directive::counts_bytes(require.measure) ? bytes_text(value) : ratio_text(value);
    };
    std::string where =
        found.role ? " on rank `" +
                         std::string(dag_.context->text(dag_.plan->roles[*found.role].name)) + "`"
                   : "";
    if (require.measure == Measure::peak_memory)
      where += directive::planned_for(dag_.settings.device);
    auto report = sink_.report(
        Code::measure_out_of_bounds, require.loc, "`{}` is {}{}, but {} {} is required{}",
        directive::kMeasureNames[static_cast<std::size_t>(require.measure)], text(found.value),
        where, directive::kCompareNames[static_cast<std::size_t>(require.compare)],
        text(require.bound), require.message.empty() ? "" : ": " + require.message);
    const bool bounded = require.compare == directive::Compare::less ||
                         require.compare == directive::Compare::less_equal;
    // A hint names only changes that were tried, and only for memory.
    if (!bounded || require.measure != Measure::peak_memory) return false;
    if (!advice_) advice_ = memory_advice_ ? memory_advice_() : "";
    if (!advice_->empty()) report.hint("{}", *advice_);
    return false;
  }

  const Dag& dag_;
  DiagnosticSink& sink_;
  const std::function<std::string()>& memory_advice_;
  std::optional<std::string> advice_;
};

}  // namespace

Most peak_memory(const Dag& dag) {
  return most_of(dag, [](const Role& role) { return role.arena_bytes; });
}
Most host_memory(const Dag& dag) {
  return most_of(dag,
                 [&](const Role& role) { return role.host_bytes + planned_staging(dag, role); });
}

std::int64_t traffic(const Dag& dag) {
  std::int64_t bytes = 0;
  for (const Comm& comm : dag.comms) {
    if (!copies_to_or_from_host(dag.node(comm.members.front()).kind))
      bytes += bytes_sent(dag, comm);
  }
  return bytes;
}

bool check_requirements(const Dag& dag, DiagnosticSink& sink,
                        const std::function<std::string()>& memory_advice) {
  return Requirements(dag, sink, memory_advice).met([](Measure) { return true; });
}

bool check_bubbles(const Dag& dag, DiagnosticSink& sink) {
  return Requirements(dag, sink, {}).met([](Measure measure) {
    return measure == Measure::bubble;
  });
}

}  // namespace piper::passes
