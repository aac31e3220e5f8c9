#pragma once
// The text of a graph or a DAG for a reader: what repeats stands once.
//
//   %block.0.norm.0.gain = weight f32[dim: 64] "block.0.norm.0.gain" ones
//   ...
//   %block.0.add.1 = add(%block.0.add, %block.0.mlp.0.contract.1) : f32[batch: 8*, seq: 64, dim: 64] @F region stage[0].block[0]
//   ... the 22 lines from `%block.0.norm.0.gain` on stand 11 times more, the last time from `%block.11.norm.0.gain` on, where `%embed.0.add` is `%block.10.add.1`

#include <string>
#include <string_view>

namespace piper::views {

/// Runs of lines that follow each other and differ in nothing but the names that they define, and in what a reader can tell from the first repetition and from the
/// line in place of the others, which says how often they stand more. Operations, types, attributes, sizes, initial values and what flows inside a repetition are the
/// same. Of indices (`block[3]`, `mb1`) and of names from outside of a repetition:
/// - What the first line's name and the last one's show to move (`block` from 0 to 11) moves alike, each time as far, wherever that word stands with a number.
/// - Where another word's numbers move (`stage[0]` is `stage[1]`), or stay though the word moves, that is said; numbers of one word move alike, or stay.
/// - A name whose numbers do not move so is said by the last one: it is a value that stays, that moves as the indices do from the second repetition on, or that the
///   repetition before gives.
/// - Where more would have to be said than four things it is no run.
/// Lists of long lines are shortened likewise (short_lists.h). Not read back: the whole text is.
std::string folded(std::string_view text);

}  // namespace piper::views
