#pragma once
// Localising: cuts the body of one chunk and pass out of the model's differentiated graph, with local extents.
//
// Guarantees: the body's leaves are its input ports (model inputs, then values of other pieces, both in graph order, then parameters by
// id), all of them used; the outputs are the values that other pieces read, in graph order, then one gradient per parameter (the
// contributions of the piece, added in graph order), then loss sums. No two outputs are one value, none is a leaf or a view: where that
// would be so, a copy (`broadcast` to its own type) is appended. Integers under another name are named in each piece that reads them: they cross no border. The work is linear in the piece.
//
//   %y = contract(%x, %w) : f32[batch: 32*, hidden: 8]     divided by 4, piece {y}      %x = port f32[batch: 8*, dim: 4]
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

/// What `extract` gives: a body, or why the division does not come out even.
struct Extraction {
  dag::Body body;           // without a name
  std::string error;        // empty: none. Else in the user's words: "dimension `batch` of 30 samples does not divide into 4 equal parts"
  LocId error_loc;          // the operation or input whose type does not divide
};

/// Cuts bodies out of one graph, which must outlive the extractor and stay as it is.
class BodyExtractor {
 public:
  /// `chunk_of[n]` is the chunk of node n; what gives integers another name has none. An input port is `saved` when an earlier pass of its chunk made or read the value, an output
  /// port when only later passes of its chunk read it; else it is `data`. Model inputs are always `data`.
  /// Values have the layouts that `layouts` gives them; null: all repeat.
  BodyExtractor(const tensor::Graph& graph, std::span<const std::uint32_t> chunk_of, const ModelLayouts* layouts = nullptr);

  /// The body of the nodes `piece`, all of one chunk, in ascending order; sampled extents are divided by `divide`.
  Extraction extract(std::span<const tensor::NodeId> piece, std::int64_t divide) { return extract(piece, {}, divide, Use::once); }

  /// Of a chunk whose forward is `forward`: the operations that make the values which its backward reads, from what enters it. Without loss sums, which nothing needs again.
  std::vector<tensor::NodeId> again(std::span<const tensor::NodeId> forward);
  /// Its forward where `again` runs a second time: it keeps nothing that these make.
  Extraction extract_lean(std::span<const tensor::NodeId> forward, std::span<const tensor::NodeId> again, std::int64_t divide) { return extract(forward, again, divide, Use::lean); }
  /// The second time. All that it reads was kept.
  Extraction extract_again(std::span<const tensor::NodeId> again, std::int64_t divide) { return extract(again, again, divide, Use::again); }

 private:
  struct Cut;  // a body in the making
  enum class Use : std::uint8_t { once, lean, again };
  Extraction extract(std::span<const tensor::NodeId> piece, std::span<const tensor::NodeId> again, std::int64_t divide, Use use);
  /// Whether a value leaves the piece, and whether its chunk.
  struct Leaves {
    bool piece = false, chunk = false;
  };
  Leaves leaves(const Cut& cut, tensor::NodeId node, tensor::ValueId value) const;

  bool inside(tensor::NodeId node) const { return node.valid() && stamp_[node.index()] == epoch_; }
  /// What the piece reads and does not make, in the order of its ports.
  std::vector<tensor::ValueId> read_by(std::span<const tensor::NodeId> piece) const;
  void add_input(Cut& cut, tensor::ValueId value) const;
  /// The value in the piece, which names integers when it first reads them.
  tensor::ValueId local(Cut& cut, tensor::ValueId value) const;
  void add_node(Cut& cut, tensor::NodeId id) const;
  void add_outputs(Cut& cut) const;

  const tensor::Graph& graph_;
  const ModelLayouts* const layouts_;
  std::vector<std::uint32_t> chunk_of_;
  std::vector<std::uint32_t> first_use_, uses_;      // users of value v: uses_[first_use_[v] .. first_use_[v + 1]), node positions
  std::vector<std::uint32_t> stamp_;                 // epoch in which a node was in the piece
  std::vector<std::uint32_t> param_of_, input_of_, count_of_;  // per value: position in params, inputs, losses (whose count it is); kNone
  std::vector<std::uint32_t> grad_of_, loss_of_;     // per value: position in grads, losses; kNone
  std::vector<std::uint32_t> again_;                 // epoch in which a node was one of those that run again
  std::uint32_t epoch_ = 0;
};

/// Divides the sampled extents of `type`. Gives the dimension that does not divide, `type` unchanged; null when all do.
const tensor::Dim* divide_samples(tensor::Type& type, std::int64_t divide);

/// Equal bodies run the same code on the same ports: names, regions, places and the identity of parameters and values do not count.
bool same_body(const dag::Body& a, const dag::Body& b);
std::size_t hash_body(const dag::Body& body);

}  // namespace piper::passes
