#pragma once
// Finds the chunks, instances and nodes that a selector or an operation of an order names.
//
// A selector is a conjunction: coordinates are looked up among the split dimensions first, then
// among the region names on a chunk's path (the innermost of that name counts); a missing
// coordinate means all. `R.rest` means the chunks whose innermost region is R. Lookups read tables
// by name and index, so an operation of an order that names one instance costs a few reads,
// independent of the size of the DAG.
//
//   Selection selection(dag);
//   std::vector<dag::NodeId> nodes;
//   selection.nodes(order, op, sink, nodes);   // `F stage[1] mb[3]` -> {F.stage1.mb3}

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ir/dag/dag.h"
#include "ir/diagnostics/diagnostics.h"
#include "ir/tensor/graph.h"

namespace piper::passes {

/// The instances of work, numbered row-major over the split dimensions.
class Instances {
 public:
  explicit Instances(const dag::Dag& dag) : dims_(std::min(dag.dims.size(), dag::kMaxSplitDims)) {
    for (std::size_t d = 0; d < dims_; ++d) size_ *= extents_[d] = dag.dims[d].extent;
  }
  /// The product of the extents of all split dimensions.
  std::uint32_t size() const { return size_; }
  dag::Instance at(std::uint32_t position) const {
    dag::Instance instance;
    for (std::size_t d = dims_; d-- > 0;) {
      instance.at[d] = static_cast<std::int32_t>(position % extents_[d]);
      position /= extents_[d];
    }
    return instance;
  }
  std::uint32_t position(const dag::Instance& instance) const {
    std::uint32_t position = 0;
    for (std::size_t d = 0; d < dims_; ++d)
      position = position * extents_[d] + static_cast<std::uint32_t>(std::max(instance.at[d], 0));
    return position;
  }

 private:
  std::size_t dims_;
  std::array<std::uint32_t, dag::kMaxSplitDims> extents_{};
  std::uint32_t size_ = 1;
};

/// The compute nodes by chunk, pass and instance.
class WorkTable {
 public:
  explicit WorkTable(const dag::Dag& dag);
  /// Invalid if there is none.
  dag::NodeId at(dag::ChunkId chunk, Pass pass, std::uint32_t instance) const {
    return of(chunk, pass)[instance];
  }
  /// By instance.
  std::span<const dag::NodeId> of(dag::ChunkId chunk, Pass pass) const {
    return std::span(nodes_).subspan(
        (static_cast<std::size_t>(pass) * chunks_ + chunk.index()) * instances_, instances_);
  }

 private:
  std::size_t chunks_;
  std::uint32_t instances_;
  std::vector<dag::NodeId> nodes_;
};

class Selection {
 public:
  /// `dag` must outlive the selection; its chunks and dimensions must stay, and its compute nodes
  /// from the first call of `nodes` on (inputs may change, nodes may be appended).
  explicit Selection(const dag::Dag& dag);

  /// The chunks, ascending, and the instances (row-major over the dimensions) of a selector. Valid
  /// until the next call.
  struct Found {
    std::span<const dag::ChunkId> chunks;
    std::span<const std::uint32_t> instances;
  };
  /// Nothing if no work has all coordinates.
  std::optional<Found> find(const directive::Selector& selector);
  std::optional<Found> find(const directive::Order& order, const directive::OrderOp& op);
  /// Nothing after reporting missing loose work, or parts without common work. Names and indices
  /// must exist.
  std::optional<Found> find(const directive::Selector& selector, DiagnosticSink& sink);
  std::optional<Found> find(const directive::Order& order, const directive::OrderOp& op,
                            DiagnosticSink& sink);

  /// The meaning of the coordinates of an operation, if it follows from each coordinate by itself.
  struct Named {
    enum class Kind : std::uint8_t {
      unread,
      segment,  // one instance of one chunk, the usual case
      other,    // call `find`
    } kind = Kind::unread;
    std::uint32_t num_coordinates = 0;
    dag::ChunkId chunk;
    std::uint32_t instance = 0;
  };
  /// Operations share their coordinates, so the meaning is computed once. Valid until the next
  /// call.
  const Named& named(const directive::Order& order, const directive::OrderOp& op);

  /// Appends the compute nodes of an operation of an order, by chunk and instance. False after
  /// reporting that there are none.
  bool nodes(const directive::Order& order, const directive::OrderOp& op, DiagnosticSink& sink,
             std::vector<dag::NodeId>& out);
  /// Appends the nodes of a selector: compute nodes, or with a part the communication of the chunks
  /// and instances: sends of their outputs, receives of their inputs, reductions of gradients to
  /// which they contribute, gathers of parameters of which they make gradients.
  bool nodes(const directive::Selector& selector, DiagnosticSink& sink,
             std::vector<dag::NodeId>& out);

  const Instances& instances() const { return instances_; }
  /// Made on demand.
  const WorkTable& work();

 private:
  /// Whether a selection contains work that contributes to a collective of a bucket, directly or
  /// through reduce_scatters, sums and updates.
  template <typename IsIn>
  bool adds_up(const dag::Node& collective, const IsIn& is_in) const;
  struct Term {
    Symbol name;
    bool all;
    std::span<const std::uint32_t> indices;
    LocId loc;
    bool rest;
  };
  struct Region {
    Symbol name;
    std::vector<dag::ChunkId> all;
    std::vector<std::vector<dag::ChunkId>> by_index;
    std::vector<dag::ChunkId> loose;  // in no region inside it
  };
  static constexpr std::uint32_t kNone = 0xFFFFFFFFu;
  /// The meaning of a symbol.
  struct Meaning {
    std::uint32_t dimension = kNone;  // of `dag_.dims`
    std::uint32_t region = kNone;     // of `regions_`
  };

  Meaning meaning(Symbol name) const {
    return name.index() < meanings_.size() ? meanings_[name.index()] : Meaning();
  }
  Meaning& define(Symbol name);
  Named read(const directive::Order& order, const directive::OrderOp& op) const;
  /// Nothing, without a report, if no chunk or instance has all terms.
  std::optional<Found> find(std::span<const Term> terms);
  /// The chunks of one region term, in `scratch` if it names indices.
  std::span<const dag::ChunkId> chunks_of(const Term& term,
                                          std::vector<dag::ChunkId>& scratch) const;
  /// Reports why no work has all terms.
  void report(std::span<const Term> terms, LocId loc, DiagnosticSink& sink) const;
  /// Reports that the last term names loose work that does not exist, or a segment that does not
  /// exist; false if both exist.
  bool report_rest(std::span<const Term> terms, LocId loc, DiagnosticSink& sink) const;
  std::string text(std::span<const Term> terms) const;
  std::span<const Term> terms_of(const directive::Order& order, const directive::OrderOp& op);
  std::span<const Term> terms_of(const directive::Selector& selector);

  const dag::Dag& dag_;
  const Instances instances_;
  std::vector<dag::ChunkId> every_chunk_;
  std::vector<std::uint32_t> every_instance_;
  std::vector<Region> regions_;
  std::vector<dag::ChunkId> loose_;  // in no region
  std::vector<Meaning> meanings_;    // per symbol
  std::optional<WorkTable> work_;
  const directive::Order* named_order_ = nullptr;
  // Per coordinate of that order; set at the first one of an operation.
  std::vector<Named> named_;
  std::vector<Term> terms_;
  std::vector<dag::ChunkId> chunks_, scratch_, merged_;
  std::vector<std::uint32_t> found_instances_, next_;
};

/// Reports a name that is neither a region nor a dimension, with the nearest of `known` as a hint;
/// `model` is the name of the train's model if it is known.
void report_unknown_name(DiagnosticSink& sink, LocId loc, std::string_view name,
                         std::span<const std::string_view> known, std::string_view model = {});

/// Reports an index that a name does not have; it has those below `size`.
void report_missing_index(DiagnosticSink& sink, LocId loc, std::string_view name,
                          std::uint32_t index, std::size_t size);

/// Reports a selector whose parts all match work, but no work has all of them.
void report_parts_apart(DiagnosticSink& sink, LocId loc, std::string_view parts);

/// Reports work that exists, but without the pass that is named.
void report_missing_pass(DiagnosticSink& sink, LocId loc, std::string_view work, Pass pass,
                         std::string_view hint);

/// Whether work in `region` has a coordinate; all work has `model`.
bool has_coordinate(const RegionTable& regions, const Context& context, RegionId region,
                    const directive::Coordinate& coordinate);

/// `stage[1] mb[0]`, with the pass before and the part after it if it names them; `model` without
/// coordinates.
std::string print_selector(const directive::Selector& selector, const SymbolTable& symbols);

}  // namespace piper::passes
