#pragma once
// The CUDA form of a plan: as text of `show program`, and as the files of `build`.

#include <string>

#include "frontend/tools/session.h"

namespace piper::tools {

/// The calls of every role, and the communicators of every rank.
std::string cuda_program_text(const dag::Dag& dag, backend::Target target);

/// Writes kernels.cu, its headers, per role ROLE.cpp and ROLE.calls.txt, and kernels.txt; false
/// after a diagnostic.
bool build_cuda(Session& session, const dag::Dag& dag, const std::string& folder);

}  // namespace piper::tools
