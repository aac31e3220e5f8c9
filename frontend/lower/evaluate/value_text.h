#pragma once
// A value as a person writes it.
//
//   value_text(value, around)  ->  3   25MiB   0..8   p[0]   stage[1] mb[0..4]   [stage[0], stage[1]]

#include <string>

#include "frontend/lower/evaluate/value.h"
#include "ir/directive/print.h"

namespace piper::lower {

/// `model`: the graph of the value's tensors; null where there is none. Of long lists the first elements and how many more there are. What the language has no
/// text for is in words, as `describe` says it.
std::string value_text(const Value& value, const directive::Surroundings& around, const tensor::Graph* model);

}  // namespace piper::lower
