#pragma once
// Programs and schedules that tests of the simulator compile.
//
//   Compiled compiled("interleaved", "", sizes(4, 8, 2));
//   const auto timeline = compiled.simulate({.f = 1, .b = 2});
//   ASSERT_TRUE(timeline) << compiled.reports();

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "frontend/service/compilation.h"
#include "ir/machine.h"
#include "passes/order/orders_table.h"
#include "passes/simulate/actions.h"
#include "passes/simulate/operations.h"

namespace piper::service {

/// Parameters of a schedule: `p` ranks, `m` microbatches and, if `v` > 0, `v` stages per rank.
std::vector<lower::Override> sizes(int p, int m, int v = 0);

/// A schedule by itself, compiled.
class Compiled {
 public:
  /// Compiles the schedule `name` of `input`, or its only one if `name` is empty, up to `level`. If
  /// `text` is not empty, `input` is a file with that text. An error leaves no DAG and a report.
  Compiled(const std::string& input, const std::string& name,
           std::vector<lower::Override> overrides, dag::Level level = dag::Level::ordered,
           const std::string& text = "");

  /// The timeline of the orders; empty if there is no DAG or the simulation reports an error.
  std::optional<passes::Timeline> simulate(const passes::OperationCosts& costs);
  /// The table of the orders; there must be a DAG.
  passes::OrdersTable orders() const { return passes::orders_table(*dag_); }
  /// There must be one.
  const dag::Dag& dag() const { return *dag_; }
  DiagnosticSink& sink() { return *sink_; }
  /// All diagnostics as text; empty if there are none.
  std::string reports() const;

 private:
  source::MemoryFileSystem files_;
  std::optional<Compilation> compilation_;
  std::optional<DiagnosticSink> sink_;
  std::optional<dag::Dag> dag_;
};

/// A program, or a schedule of the library by itself, planned.
class Planned {
 public:
  /// If `text` is not empty, `input` is a file with that text. An error leaves no DAG.
  Planned(const std::string& input, std::vector<lower::Override> overrides,
          const std::string& text = "");

  /// There must be one.
  const dag::Dag& dag() const { return *dag_; }
  DiagnosticSink& sink() { return *sink_; }
  /// Costs of actions: `f` and `b` seconds for each forward and backward. All other work, and links
  /// that are named after no axis, take no time.
  passes::ActionCosts costs(double f, double b) const;
  /// A machine `lab` with the axes of the mesh, without links and devices.
  Machine machine() const;

 private:
  source::MemoryFileSystem files_;
  std::optional<Compilation> compilation_;
  std::optional<DiagnosticSink> sink_;
  std::optional<dag::Dag> dag_;
};

/// A line of a machine for the devices at this coordinate of an axis; all devices if it is negative.
MachineDevice device_at(const Machine& machine, std::size_t axis, int coordinate);

}  // namespace piper::service
