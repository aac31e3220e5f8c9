#pragma once
// A value in source form.
//
//   value_text(value, around)  ->  3   25MiB   0..8   p[0]   stage[1] mb[0..4]   [stage[0], stage[1]]

#include <string>

#include "frontend/lower/evaluate/value.h"
#include "ir/directive/print.h"

namespace piper::lower {

/// `model`: the graph of the value's tensors; null where there is none. Long lists are shortened to
/// the first elements and the number of the others. Values without a source form are in words, as
/// by `describe`.
std::string value_text(const Value& value, const directive::Surroundings& around,
                       const tensor::Graph* model);

}  // namespace piper::lower
