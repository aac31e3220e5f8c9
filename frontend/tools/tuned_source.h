#pragma once
// The program of a .pipe file with chosen values in place of its choices.
//
//   param m in [8, 16]   ->   param m = 16

#include <map>
#include <string>

#include "frontend/sema/program.h"
#include "ir/location.h"

namespace piper::tools {

/// The text of the entry file. `chosen` has the literals of params by name; other names are left
/// out. `comment`: lines of text that are put before it.
std::string tuned_source(const sema::Program& program, const SourceTable& files,
                         const std::map<std::string, std::string>& chosen,
                         const std::string& comment);

}  // namespace piper::tools
