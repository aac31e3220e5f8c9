#pragma once
// Selection: from a selector or one operation of an order to the chunks, instances and nodes it means.
//
// A selector is a conjunction: coordinates are looked up among the split dimensions first, then among the region names on a chunk's path
// (the innermost of that name counts); what is missing means all. Lookups read tables by name and index, so an operation of an order
// that names one instance costs a few reads whatever the size of the DAG.
//
//   Selection selection(dag);
//   std::vector<dag::NodeId> nodes;
//   selection.nodes(order, op, sink, nodes);   // `F stage[1] mb[3]` -> {F.stage1.mb3}

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ir/dag/dag.h"
#include "ir/diagnostics/diagnostics.h"
#include "llvm/ADT/DenseMap.h"

namespace piper::passes {

class Selection {
 public:
  /// `dag` must outlive the selection; its chunks, dimensions and compute nodes must stay (inputs may change, nodes may be appended).
  explicit Selection(const dag::Dag& dag);

  /// The chunks, ascending, and the instances (row-major over the dimensions) of a selector. Valid until the next call.
  struct Found {
    std::span<const dag::ChunkId> chunks;
    std::span<const std::uint32_t> instances;
  };
  /// Nothing after reporting which part matches nothing.
  std::optional<Found> find(const directive::Selector& selector, DiagnosticSink& sink);
  std::optional<Found> find(const directive::Order& order, const directive::OrderOp& op, DiagnosticSink& sink);

  /// Appends the compute nodes of an operation of an order, by chunk and instance. False after reporting that there are none.
  bool nodes(const directive::Order& order, const directive::OrderOp& op, DiagnosticSink& sink, std::vector<dag::NodeId>& out);
  /// Appends what a selector means: compute nodes, or with a part the communication that belongs to the chunks and instances: sends of
  /// what they make, receives of what they read, reductions of gradients they contribute to.
  bool nodes(const directive::Selector& selector, DiagnosticSink& sink, std::vector<dag::NodeId>& out);

  /// The product of the extents of all split dimensions.
  std::uint32_t num_instances() const { return num_instances_; }
  dag::Instance instance(std::uint32_t position) const;
  std::uint32_t position(const dag::Instance& instance) const;
  /// The compute node of a chunk, pass and instance; invalid where there is none.
  dag::NodeId work(dag::ChunkId chunk, Pass pass, std::uint32_t instance) const {
    return work_[(static_cast<std::size_t>(pass) * dag_.chunks.size() + chunk.index()) * num_instances_ + instance];
  }

 private:
  struct Term {
    Symbol name;
    bool all;
    std::span<const std::uint32_t> indices;
    LocId loc;
  };
  struct ByName {
    std::vector<dag::ChunkId> all;
    std::vector<std::vector<dag::ChunkId>> by_index;
  };

  /// Nothing, without a word, where no chunk or instance has all terms.
  std::optional<Found> find(std::span<const Term> terms);
  std::size_t dimension(Symbol name) const;
  /// The chunks of one region term, in `scratch` where it names several indices.
  std::span<const dag::ChunkId> chunks_of(const Term& term, std::vector<dag::ChunkId>& scratch) const;
  void report(std::span<const Term> terms, LocId loc, DiagnosticSink& sink) const;
  std::string text(const Term& term) const;
  std::span<const Term> terms_of(const directive::Order& order, const directive::OrderOp& op);
  std::span<const Term> terms_of(const directive::Selector& selector);

  const dag::Dag& dag_;
  std::uint32_t num_instances_ = 1;
  std::vector<dag::ChunkId> every_chunk_;
  std::vector<std::uint32_t> every_instance_;
  llvm::DenseMap<Symbol, std::uint32_t> position_of_name_;
  std::vector<ByName> names_;
  std::vector<dag::NodeId> work_;
  std::vector<Term> terms_;
  std::vector<dag::ChunkId> chunks_, scratch_, merged_;
  std::vector<std::uint32_t> instances_, next_;
};

/// Whether a `trim` of the order drops the operation.
bool is_trimmed(const directive::Order& order, const directive::OrderOp& op);

/// Reports a name that is neither a region nor a dimension, with the nearest of `known` as a hint.
void report_unknown_name(DiagnosticSink& sink, LocId loc, std::string_view name, std::span<const std::string_view> known);

/// Reports an index that a name does not have; it has those below `size`.
void report_missing_index(DiagnosticSink& sink, LocId loc, std::string_view name, std::uint32_t index, std::size_t size);

/// `stage[1] mb[0]`, with the pass in front and the part behind where they are named; `model` when it has no coordinate.
std::string print_selector(const directive::Selector& selector, const SymbolTable& symbols);

}  // namespace piper::passes
