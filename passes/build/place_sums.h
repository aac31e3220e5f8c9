#pragma once
// Place sums: where, and in which order, the adjoints of a value that several pieces read are added up.
//
// A piece adds its own adjoints of a value to the sums that come to it, and one sum leaves it. A sum goes on to the next piece on the same devices that makes adjoints of that value; from the
// last of these to the last one of the next devices on the way back; from there to the piece that makes the value. So one sum of a value leaves a device set, and few messages carry it that the
// backward has not anyway. A sum stands only where no work waits for more than it would if all sums stood where their values are made.
//
//   a value of piece 0 on device 0, read by pieces 1 to 4, on devices 1, 2, 1, 2      piece 4:  s4              piece 2:  s4 + s2
//                                                                                     piece 3:  s3              piece 1:  ((s4 + s2) + s3) + s1, which goes to piece 0
//
// Guarantees: without pieces that share devices the order of additions is that of the model: from the last use to the first. The order is part of the DAG, so the one-device run has it too.

#include <cstdint>
#include <optional>
#include <span>

#include "ir/mesh.h"
#include "ir/tensor/graph.h"
#include "passes/build/pieces.h"

namespace piper::passes {

/// What a piece runs on.
struct PieceDevices {
  std::uint32_t number = 0;  // equal: the same devices, in all instances
  AxisMask axes = 0;         // over which its samples are divided
};

/// Moves sums between pieces whose backward operations stand with the forward ones, as `cut_pieces` leaves them; `devices`: per piece. Gives the model with the sums in their new order, where
/// that is another one; ids stay.
std::optional<tensor::Graph> place_sums(const tensor::Graph& model, Pieces& pieces, std::span<const PieceDevices> devices);

}  // namespace piper::passes
