#pragma once
// The page of a schedule of the standard library: its documentation, its figures and its grid at
// the given sizes, and the others beside it.

#include <list>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "frontend/views/comparison.h"

namespace piper::views {

struct SchedulePage {
  std::string name;
  // those given, and 4 for each other axis, 8 for each other number
  std::vector<lower::Override> sizes;
  std::string prose = {}, figures = {}, grid = {};
  std::list<Compared> all = {};  // it and the others that have such sizes
  std::string without = {};      // the skipped ones, with reasons
};

/// `name` is one of `Compilation::library_schedules`. Nothing after an error.
std::optional<SchedulePage> schedule_page(const source::FileSystem& files, const std::string& name,
                                          std::span<const lower::Override> given,
                                          const SimulationCosts& costs, DiagnosticSink& sink,
                                          service::Compilation& compilation);

/// `draw`: the command that draws a grid too wide for a page.
std::string schedule_page_text(const SchedulePage& page, const std::string& draw);

}  // namespace piper::views
