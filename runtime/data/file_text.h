#pragma once
// The bytes of a file, or of all files below a folder in sorted order of their paths, one after the other.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/failure.h"

namespace piper::runtime {

/// Nothing with the reason in `failure.message` (code kDataUnreadable); the caller adds the place. Hidden files are left out.
std::optional<std::vector<unsigned char>> read_text(const std::string& path, Failure& failure);

}  // namespace piper::runtime
