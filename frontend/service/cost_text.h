#pragma once
// Costs as text: of operations, `f=1,bi=1,bw=1,pair=2.5,p2p=0.1`; rates of a machine,
// `flops=1e12,bandwidth=50e9`; measured times, a JSON file.
//
//   {"schema": 1, "rates": {"flops": 1e12}, "bodies": {"stage0.F": 0.0021, "stage0.B": 0.0043}, "actions": {"update.stage0.0": 0.0001}}

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "frontend/source/source_manager.h"
#include "ir/diagnostics/diagnostics.h"
#include "passes/simulate/actions.h"
#include "passes/simulate/costs.h"

namespace piper::service {

/// Changes the costs that the text names, separated by commas or spaces. False after reporting an
/// error.
bool read_costs(std::string_view text, passes::OperationCosts& costs, DiagnosticSink& sink);
bool read_rates(std::string_view text, passes::MachineRates& rates, DiagnosticSink& sink);

/// `f=1 bi=1 bw=1 p2p=0 ...`: the form that `read_costs` reads, for all costs with a value.
std::string cost_text(const passes::OperationCosts& costs);
/// `flops=4e+10 bytes=1e+10 ...`, likewise of `read_rates`.
std::string rate_text(const passes::MachineRates& rates);

/// The contents of a file of costs: seconds of one run of bodies, and of other actions of the
/// compute stream, by name; rates for the rest.
struct MeasuredCosts {
  passes::MachineRates rates;
  std::vector<std::pair<std::string, double>> bodies, actions;
};

/// Nothing after reporting an error in the file.
std::optional<MeasuredCosts> read_cost_file(std::string_view path, const source::FileSystem& disk,
                                            SourceTable& files, DiagnosticSink& sink);

/// The text of such a file.
std::string cost_file_text(const MeasuredCosts& costs);

/// Costs of a plan's actions. Bodies without a measured time have that of the op table; with a
/// warning if the file is one of another program.
passes::ActionCosts costs_of(const dag::Dag& dag, const MeasuredCosts& measured,
                             DiagnosticSink& sink);

}  // namespace piper::service
