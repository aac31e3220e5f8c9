#pragma once
// `piper completion man`: the man page, from the tables of the command line.

#include <string>

namespace piper::tools {

/// For `man`, as troff.
std::string man_page();

}  // namespace piper::tools
