#pragma once
// Compares the source files of the processes of a run: a difference is named by its file and line.
//
//   if (auto differs = compare_sources(group, files)) ...;   // P6022: rank 1 has another `gpt.pipe` than rank 0 ...

#include <optional>

#include "ir/location.h"
#include "runtime/processes/process_group.h"

namespace piper::tools {

/// Called by all processes, which wait for each other, after `ProcessGroup::agree`. The failure of
/// a process points to the first line of its own file that differs.
std::optional<runtime::Failure> compare_sources(runtime::ProcessGroup& group,
                                                const SourceTable& files);

}  // namespace piper::tools
