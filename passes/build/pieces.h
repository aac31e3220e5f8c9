#pragma once
// Pieces: cuts the operations of a model into maximal convex pieces with one innermost selected region each.
//
// Guarantees: every forward operation that a loss needs is in exactly one piece, its backward operations are in the same one (sums of adjoints
// with what makes the value, until `place_sums` moves them); the pieces of the forward graph have a topological order, and they are numbered in
// one; a region gives several pieces only where one would wait for itself through others. Operations that no loss needs are in none, and neither
// is one that gives integers another name: they are an input of the model, which every piece that reads them reads, and names for itself.
//
//   embed -> block[0] -> block[1] -> head, only `block` selected:   pieces  model  block[0]  block[1]  model.1

#include <cstdint>
#include <span>
#include <vector>

#include "ir/tensor/graph.h"

namespace piper::passes {

struct Pieces {
  static constexpr std::uint32_t kNone = 0xFFFFFFFFu;
  struct Piece {
    RegionId region;           // of `regions`: the path cut to the selected names
    std::uint32_t number = 0;  // among the pieces of that region
    std::vector<tensor::NodeId> forward, backward;  // ascending
  };
  RegionTable regions;
  std::vector<Piece> pieces;
  std::vector<std::uint32_t> piece_of;  // per node of the model; kNone
};

/// Integers are inputs of the model, or these under other names: no other op makes them.
bool names_integers(const tensor::Graph& model, const tensor::Node& node);

/// The leaf that a value is: of integers under another name, what has the first one. Any other value is itself.
tensor::ValueId named_leaf(const tensor::Graph& model, tensor::ValueId value);

/// Per node: a forward operation that a loss depends on and that makes something; others belong to no piece.
std::vector<bool> live_forward(const tensor::Graph& model);

Pieces cut_pieces(const tensor::Graph& model, std::span<const Symbol> selected);

}  // namespace piper::passes
