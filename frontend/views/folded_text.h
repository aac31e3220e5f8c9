#pragma once
// The text of a graph or a DAG for a reader: repetitions are printed once.
//
//   %block.0.norm.0.gain = weight f32[dim: 64] "block.0.norm.0.gain" ones
//   ...
//   %block.0.add.1 = add(%block.0.add, %block.0.mlp.0.contract.1) : f32[batch: 8*, seq: 64, dim: 64] @F region stage[0].block[0]
//   ... the 22 lines from `%block.0.norm.0.gain` on stand 11 times more, the last time from `%block.11.norm.0.gain` on, where `%embed.0.add` is `%block.10.add.1`

#include <string>
#include <string_view>

namespace piper::views {

/// Folds runs of adjacent lines that differ only in the names that they define, and in parts that
/// follow from the first repetition and from the line in place of the others, which gives their
/// number. Operations, types, attributes, sizes, initial values and the data flow inside a
/// repetition are the same. Rules for indices (`block[3]`, `mb1`) and names from outside of a
/// repetition:
/// - A word that moves between the names of the first and the last line (`block` from 0 to 11)
///   moves by the same step at each occurrence with a number.
/// - If another word's numbers move (`stage[0]` is `stage[1]`), or stay though the word moves, the
///   line says so; numbers of one word move alike, or stay.
/// - For a name whose numbers do not move so, the line gives the last one: a value that stays, that
///   moves with the indices from the second repetition on, or that the repetition before gives.
/// - Lines that would need more than four such statements are not a run.
/// Lists of long lines are shortened likewise (short_lists.h). Not parsed back: the whole text is.
std::string folded(std::string_view text);

}  // namespace piper::views
