#pragma once
// The text of a graph or a DAG for a reader: what repeats stands once.
//
//   %block.0.norm.0.gain = weight f32[dim: 64] "block.0.norm.0.gain" ones
//   ...
//   %block.0.add.1 = add(%block.0.add, %block.0.mlp.0.contract.1) : f32[batch: 8*, seq: 64, dim: 64] @F region stage[0].block[0]
//   ... the 22 lines from `%block.0.norm.0.gain` on stand 11 times more, the last time from `%block.11.norm.0.gain` on

#include <string>
#include <string_view>

namespace piper::views {

/// Runs of lines that follow each other and differ in nothing but names, places, indices and what they take from outside of themselves: operations, types,
/// attributes, sizes and what flows inside a run are the same. A line in their place says how often they stand more. Not read back: the whole text is.
std::string folded(std::string_view text);

}  // namespace piper::views
