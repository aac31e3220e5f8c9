#pragma once
// Extracts the body of one chunk and pass from the model's differentiated graph, with local
// extents.
//
// Guarantees: the body's leaves are its input ports (model inputs, then values of other segments,
// both in graph order, then parameters by id), all of them used; the outputs are the values that
// other segments read, in graph order, then one gradient per parameter (the contributions of the
// segment, added in graph order), then loss sums. Outputs are distinct values and no leaves or
// views; otherwise a copy (`broadcast` to its own type) is appended. Renamed integers are renamed
// in each segment that reads them, so they cross no boundary. The work is linear in the segment.
//
//   %y = contract(%x, %w) : f32[batch: 32*, hidden: 8]     divided by 4, segment {y}    %x = port f32[batch: 8*, dim: 4]
//   %z = gelu(%y) : f32[batch: 32*, hidden: 8]             ------------------------>     %w = port f32[dim: 4, hidden: 8]
//                                                                                        %y = contract(%x, %w) : f32[batch: 8*, hidden: 8]
//                                                          inputs: x data, w param       outputs: y data

#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "ir/dag/body.h"
#include "passes/build/derive_layouts.h"

namespace piper::passes {

/// The result of `extract`: a body, or an error if an extent does not divide.
struct Extraction {
  dag::Body body;  // without a name
  // Empty, or in the user's words: "dimension `batch` of 30 samples does not divide into 4 equal
  // parts".
  std::string error;
  LocId error_loc;  // the operation or input whose type does not divide
};

/// Extracts bodies from one graph, which must outlive the extractor and must not change.
class BodyExtractor {
 public:
  /// `chunk_of[n]` is the chunk of node n; renamings of integers have none. An input port is
  /// `saved` when an earlier pass of its chunk made or read the value, an output port when only
  /// later passes of its chunk read it; else it is `data`. Model inputs are always `data`. Values
  /// have the layouts of `layouts`; null: all are replicated.
  BodyExtractor(const tensor::Graph& graph, std::span<const std::uint32_t> chunk_of,
                const ModelLayouts* layouts = nullptr);

  /// The body of the nodes `segment`, all of one chunk, in ascending order; sampled extents are
  /// divided by `divide`.
  Extraction extract(std::span<const tensor::NodeId> segment, std::int64_t divide) {
    return extract(segment, {}, divide, Use::once);
  }

  /// The operations of `R` for a chunk with forward `forward`: those that compute the values that
  /// its backward reads, from the chunk's inputs. Without loss sums, which are needed once.
  std::vector<tensor::NodeId> again(std::span<const tensor::NodeId> forward);
  /// The forward if `again` is recomputed: it saves no results of these operations.
  Extraction extract_recomputed(std::span<const tensor::NodeId> forward,
                                std::span<const tensor::NodeId> again, std::int64_t divide) {
    return extract(forward, again, divide, Use::recomputed_forward);
  }
  /// The body of `R`; all of its inputs are saved values.
  Extraction extract_again(std::span<const tensor::NodeId> again, std::int64_t divide) {
    return extract(again, again, divide, Use::again);
  }

 private:
  struct Cut;  // a body under construction
  enum class Use : std::uint8_t { once, recomputed_forward, again };
  Extraction extract(std::span<const tensor::NodeId> segment, std::span<const tensor::NodeId> again,
                     std::int64_t divide, Use use);
  /// Whether a value leaves the segment, and whether it leaves its chunk.
  struct Leaves {
    bool segment = false, chunk = false;
  };
  Leaves leaves(const Cut& cut, tensor::NodeId node, tensor::ValueId value) const;

  bool inside(tensor::NodeId node) const { return node.valid() && stamp_[node.index()] == epoch_; }
  /// The inputs of the segment, in the order of its ports.
  std::vector<tensor::ValueId> read_by(std::span<const tensor::NodeId> segment) const;
  void add_input(Cut& cut, tensor::ValueId value) const;
  /// The value inside the segment; renames integers at their first read.
  tensor::ValueId local(Cut& cut, tensor::ValueId value) const;
  void add_node(Cut& cut, tensor::NodeId id) const;
  void add_outputs(Cut& cut) const;

  const tensor::Graph& graph_;
  const ModelLayouts* const layouts_;
  std::vector<std::uint32_t> chunk_of_;
  // Users of value v: uses_[first_use_[v] .. first_use_[v + 1]), node positions.
  std::vector<std::uint32_t> first_use_, uses_;
  std::vector<std::uint32_t> stamp_;  // epoch in which a node was in the segment
  // Per value: position in params, inputs, losses (whose count it is); kNone.
  std::vector<std::uint32_t> param_of_, input_of_, count_of_;
  std::vector<std::uint32_t> grad_of_, loss_of_;  // per value: position in grads, losses; kNone
  std::vector<std::uint32_t> again_;              // epoch in which a node was recomputed
  std::uint32_t epoch_ = 0;
};

/// Divides the sampled extents of `type`. Returns the first dimension that does not divide, with
/// `type` unchanged; null if all do.
const tensor::Dim* divide_samples(tensor::Type& type, std::int64_t divide);

/// Equal bodies run the same code on the same ports: names, regions, locations and the identity of
/// parameters and values are ignored.
bool same_body(const dag::Body& a, const dag::Body& b);
std::size_t hash_body(const dag::Body& body);

}  // namespace piper::passes
