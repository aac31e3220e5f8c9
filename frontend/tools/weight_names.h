#pragma once
// `names` items as the maps of the runtime, which has no types of the compiler.
//
//   const auto map = map_of_names(session, subject->lowered, "hf_llama");
//   if (!map) return session.finish();

#include <optional>
#include <string>

#include "frontend/tools/session.h"
#include "ir/weight_map.h"
#include "runtime/weights/weight_map.h"

namespace piper::tools {

runtime::WeightMap runtime_map(const WeightMap& map);

/// The item of that name for the model of a train: one of the program, or one of `std.names`, which
/// Compilation::add_library_names has loaded. Nothing, and a diagnostic, if there is none or it does
/// not fit the model.
std::optional<runtime::WeightMap> map_of_names(Session& session, const lower::Lowered& lowered,
                                               const std::string& name);

}  // namespace piper::tools
