#pragma once
// The statements that each sort of body may hold.
//
//   statement_keywords(BodySort::order)  ->  {"for", "if", "let", "rank", ...}

#include <cstdint>
#include <string_view>
#include <vector>

namespace piper::sema {

/// The sort of a body, which decides its statements.
enum class BodySort : std::uint8_t { value, model, schedule, train, order, steps, machine };

/// The words that begin a statement there, sorted; only those that this version has.
std::vector<std::string_view> statement_keywords(BodySort body);

}  // namespace piper::sema
