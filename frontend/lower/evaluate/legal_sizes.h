#pragma once
// The sizes nearest to given ones at which a schedule or model accepts its parameters.
//
//   require m >= 2*p else "..."   with p = 4, m = 6   ->   "`m` = 8"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "frontend/sema/program.h"

namespace piper::lower {

/// `given` has the value of each parameter that is an integer or the size of an axis. Tries other
/// values of one parameter (axes last), then of two; a parameter that has its default follows. A
/// size is accepted if every `require` of the body holds that uses only such parameters. "`m` = 4,
/// `m` = 8 or `group` = 5"; empty if all hold, or if no near sizes hold.
std::string nearest_legal_sizes(const sema::Function& function,
                                const std::vector<std::optional<std::int64_t>>& given);

}  // namespace piper::lower
