#pragma once
// Trains and schedules as an editor sees them: their sizes, their plans, and a short summary of
// these.

#include <string>

#include "frontend/lsp/request.h"

namespace piper::lsp {

struct Subject {
  std::string name, sizes;
  service::PlanRequest plan;

  std::string title() const { return name + (sizes.empty() ? "" : " at " + sizes); }
};

/// The subject of that name, with the sizes of a check.
Subject subject_called(Request& request, std::string name);
/// The train or schedule that the `data` of a lens or the argument of a command names; Refusal if
/// it names none.
Subject subject_of(Request& request, const json::Object* named);
bool is_subject(const service::Symbol& symbol);

/// Refusal where it has no plan.
std::shared_ptr<const service::Plan> plan_of(Request& request, const Subject& subject);
/// Whether the plan compiles quickly, and its grid fits beside the text.
bool is_small(Request& request, const Subject& subject);

/// `p=4 m=8: bubble 27.3%, peak 832 bytes`
std::string measures_text(const Subject& subject, const service::Plan& plan);
std::string grid_of(const service::Plan& plan);

/// The cost of the regions of that name in the model of a train:
/// `4 regions, each 1.2 Mflop forward, 3.1 k parameters`; empty where it has none.
std::string region_text(Request& request, const Subject& train, std::string_view region);

}  // namespace piper::lsp
