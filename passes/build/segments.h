#pragma once
// Divides the operations of a model into maximal convex segments with one innermost selected region
// each.
//
// Guarantees: every forward operation that a loss needs is in exactly one segment, with its
// backward operations (sums of adjoints are with the producer of the value until `place_sums` moves
// them); segments are numbered in a topological order of the forward graph; a region has several
// segments only if a single one would be part of a cycle. Operations that no loss needs are in no
// segment, and neither are renamings of integers: every segment that reads renamed integers reads
// the model input and renames it itself.
//
//   embed -> block[0] -> block[1] -> head, only `block` selected:   segments  model  block[0]  block[1]  model.1

#include <cstdint>
#include <span>
#include <vector>

#include "ir/tensor/graph.h"

namespace piper::passes {

struct Segments {
  static constexpr std::uint32_t kNone = 0xFFFFFFFFu;
  struct Segment {
    RegionId region;           // of `regions`: the path reduced to the selected names
    std::uint32_t number = 0;  // among the segments of that region
    std::vector<tensor::NodeId> forward, backward;  // ascending
  };
  RegionTable regions;
  std::vector<Segment> segments;
  std::vector<std::uint32_t> segment_of;  // per node of the model; kNone
};

/// Integers are inputs of the model or renamings of them; no other op makes integers.
bool names_integers(const tensor::Graph& model, const tensor::Node& node);

/// For renamed integers the original leaf; any other value itself.
tensor::ValueId named_leaf(const tensor::Graph& model, tensor::ValueId value);

/// Per node: whether it is a forward operation on the way to a loss and no renaming; others belong
/// to no segment.
std::vector<bool> live_forward(const tensor::Graph& model);

Segments cut_segments(const tensor::Graph& model, std::span<const Symbol> selected);

}  // namespace piper::passes
