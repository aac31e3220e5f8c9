#pragma once
// `show memory`: bytes by class of every role, between steps and at the peak.

#include <span>
#include <string>
#include <string_view>

#include "passes/plan/memory_table.h"

namespace piper::pictures {

/// The colour of a class in images.
std::string_view colour_of(dag::BufferClass cls);

/// Classes that no role uses are left out.
std::string memory_text(std::span<const passes::MemoryRow> rows, const dag::Dag& dag);
std::string memory_json(std::span<const passes::MemoryRow> rows, const dag::Dag& dag);
/// Two bars per role, at rest and at the peak, one path per class.
std::string memory_svg(std::span<const passes::MemoryRow> rows, std::string_view title);

}  // namespace piper::pictures
