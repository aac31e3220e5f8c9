#pragma once
// Which statements stand in which body.
//
//   statement_keywords(BodySort::order)  ->  {"for", "if", "let", "rank", ...}

#include <cstdint>
#include <string_view>
#include <vector>

namespace piper::sema {

/// What a body may hold.
enum class BodySort : std::uint8_t { value, model, schedule, train, order, steps, machine };

/// The words that begin a statement there, sorted; of those that this version has.
std::vector<std::string_view> statement_keywords(BodySort body);

}  // namespace piper::sema
