#pragma once
// Several programs beside each other, the best of each figure marked.

#include <list>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "frontend/pictures/picture.h"
#include "frontend/service/compilation.h"
#include "frontend/views/simulation.h"
#include "llvm/Support/JSON.h"
#include "passes/simulate/timeline.h"

namespace piper::views {

/// Less is better for every figure.
struct Compared {
  std::string name;
  passes::Timeline timeline;
  double peak = 0;
  std::int64_t bytes = 0, traffic = 0;
  std::size_t lines = 0;                          // of its declaration, without comments
  directive::Settings settings = {};              // with the device that its plan is for
  bool by_itself = false;                         // a schedule without a model of its own
  std::optional<pictures::Picture> picture = {};  // where one was asked for
};

/// The subject of a row, with costs and sizes.
struct Look {
  // A file, and a declaration of it; or a schedule of the library.
  std::string input, name;
  std::string shown;  // the name of the row
  const SimulationCosts& costs;
  std::span<const lower::Override> overrides;  // it gets those that it takes
  bool picture = false;
};

/// A line that says how much the figures of a schedule by itself mean.
std::string of_small_model(passes::Timeline::Unit unit);

/// A row of one plan with its timeline; `declaration` is the text whose lines are counted.
Compared compared(std::string name, passes::Timeline timeline, const dag::Dag& plan,
                  std::string_view declaration);
/// The text of the train or schedule of that name, or the only one; empty if unknown.
std::string_view declaration_text(const service::Compilation& compilation, const std::string& name);

/// Compiles and simulates it. The overrides that it takes are noted in `taken`. Nothing after an
/// error.
std::optional<Compared> look_at(service::Compilation& compilation, const Look& look,
                                std::vector<bool>& taken, DiagnosticSink& sink);
/// Splits `FILE.pipe:NAME`, one of several declarations; `FILE.pipe` and a name of the library stay
/// whole.
std::pair<std::string, std::string> taken_apart(const std::string& word);

/// One combination of sizes with several values, `m=4,8,16`; `name` is its label: ` m=4`. A single
/// one without a name if no size has several.
struct Sizes {
  std::string name;
  std::vector<lower::Override> overrides;
};
std::vector<Sizes> sweep(std::span<const lower::Override> overrides);
/// The values of one size: several where all are numbers, `m=4,8`.
std::vector<std::string> alternatives(const lower::Override& size);

/// The figure of a key, such as `makespan` and `bubble`, and its text with a unit.
double figure(const Compared& one, std::string_view key);
std::string figure_text(const Compared& one, std::string_view key);

/// A row for each.
std::string comparison_text(const std::list<Compared>& all);
/// An object for each.
llvm::json::Array comparison_json(const std::list<Compared>& all);

}  // namespace piper::views
