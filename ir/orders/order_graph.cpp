#include "ir/orders/order_graph.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <unordered_map>

namespace piper::orders {

using directive::CommClass;
using directive::OrderCoordinate;
using directive::OrderOp;

namespace {

/// The barriers of a region in an instance: before and after its `F`, `R`, `B` or `BI`, and `BW`.
enum Barrier : std::uint32_t { kF, kAfterF, kR, kAfterR, kB, kAfterB, kW, kBarriers };

Barrier before(Pass pass) {
  switch (pass) {
    case Pass::F: return kF;
    case Pass::R: return kR;
    case Pass::B:
    case Pass::BI: return kB;
    case Pass::BW: return kW;
  }
  return kF;
}

struct PathElement {
  std::uint64_t name = 0;   // with `rest`
  std::uint64_t index = 0;  // 0: without one
  friend auto operator<=>(const PathElement&, const PathElement&) = default;
};

}  // namespace

class OrderGraphBuilder {
 public:
  OrderGraphBuilder(const OrderTree& tree, const Facts& facts, OrderGraph& graph)
      : tree_(tree), dims_(names_of(facts.dims)), graph_(graph) {}

  void run() {
    for (std::uint32_t r = 0; r < tree_.ranks.size(); ++r) {
      for (std::uint32_t s = 0; s < tree_.ranks[r].steps.size(); ++s)
        add(tree_.ranks[r].steps[s], r, s);
    }
    first_barrier_ = static_cast<std::uint32_t>(graph_.operations_.size());
    for (const auto& [operation, node, pass] : attached_) {
      edge(barrier(node, before(pass)), operation);
      if (pass != Pass::BW) edge(operation, barrier(node, static_cast<Barrier>(before(pass) + 1)));
    }
    connect_regions();
    connect_siblings();
    finish();
  }

 private:
  /// A region of an instance, or all of the instance.
  struct Node {
    bool whole_instance = false;
  };

  void add(const StepTree& step, std::uint32_t rank, std::uint32_t position) {
    // Several operations of a step run in data order: forwards ascend, backwards descend.
    std::vector<const OrderOp*> ops;
    for (const OrderOp& op : step.ops) ops.push_back(&op);
    if (ops.size() > 1) {
      std::stable_sort(ops.begin(), ops.end(), [&](const OrderOp* a, const OrderOp* b) {
        const bool forward = a->pass == Pass::F || a->pass == Pass::R;
        return forward ? path_of(*a) < path_of(*b) : path_of(*b) < path_of(*a);
      });
    }
    for (const OrderOp* op : ops) {
      const auto vertex = static_cast<std::uint32_t>(graph_.operations_.size());
      graph_.operations_.push_back({rank, position, length(*op)});
      if (op->part == CommClass::none) attached_.emplace_back(vertex, node_of(*op), op->pass);
    }
    for (const StepTree& child : step.children) add(child, rank, position);
  }

  bool is_dimension(const OrderCoordinate& at) const {
    return !at.rest && std::find(dims_.begin(), dims_.end(), at.name) != dims_.end();
  }

  std::vector<PathElement> path_of(const OrderOp& op) const {
    std::vector<PathElement> path;
    for (const OrderCoordinate& at : coordinates(op)) {
      if (!is_dimension(at))
        path.push_back({std::uint64_t{at.name.value()} << 1 | (at.rest ? 1 : 0),
                        at.all ? 0 : std::uint64_t{at.index} + 1});
    }
    return path;
  }

  std::span<const OrderCoordinate> coordinates(const OrderOp& op) const {
    return std::span(tree_.coordinates).subspan(op.first_coordinate, op.num_coordinates);
  }

  std::uint32_t node_of(const OrderOp& op) {
    std::vector<PathElement> instance;
    std::vector<std::uint64_t> named;
    for (const OrderCoordinate& at : coordinates(op)) {
      if (!is_dimension(at) || at.all) continue;
      instance.push_back({at.name.value(), std::uint64_t{at.index} + 1});
      named.push_back(at.name.value());
    }
    std::sort(instance.begin(), instance.end());
    std::sort(named.begin(), named.end());
    if (!dimensions_) dimensions_ = named;
    if (named != *dimensions_ && graph_.other_dimensions_ == nullptr)
      graph_.other_dimensions_ = &op;
    const auto [found, fresh] =
        instances_.try_emplace(std::move(instance), static_cast<std::uint32_t>(nodes_.size()));
    if (fresh) nodes_.push_back({true});
    std::uint32_t node = found->second;
    for (const PathElement& element : path_of(op)) {
      const auto [child, is_new] = children_.try_emplace(
          std::tuple(node, element.name, element.index), static_cast<std::uint32_t>(nodes_.size()));
      if (is_new) nodes_.push_back({false});
      node = child->second;
    }
    return node;
  }

  std::uint32_t barrier(std::uint32_t node, Barrier which) const {
    return first_barrier_ + node * kBarriers + which;
  }
  void edge(std::uint32_t from, std::uint32_t to) { edges_.emplace_back(from, to); }

  void connect_regions() {
    for (std::uint32_t node = 0; node < nodes_.size(); ++node) {
      edge(barrier(node, kAfterF), barrier(node, kR));
      edge(barrier(node, kAfterR), barrier(node, kB));
      edge(barrier(node, kAfterF), barrier(node, kB));
      edge(barrier(node, kAfterB), barrier(node, kW));
    }
    // Regions of other names in an instance need nothing of each other.
    for (const auto& [key, child] : children_) {
      const std::uint32_t parent = std::get<0>(key);
      if (nodes_[parent].whole_instance) continue;
      for (const Barrier entry : {kF, kR, kB, kW})
        edge(barrier(parent, entry), barrier(child, entry));
      for (const Barrier exit : {kAfterF, kAfterR, kAfterB})
        edge(barrier(child, exit), barrier(parent, exit));
    }
  }

  /// Parts of one name follow each other.
  void connect_siblings() {
    const std::tuple<std::uint32_t, std::uint64_t, std::uint64_t>* previous = nullptr;
    std::uint32_t last = 0;
    for (const auto& [key, child] : children_) {
      const bool follows = previous != nullptr && std::get<0>(*previous) == std::get<0>(key) &&
                           std::get<1>(*previous) == std::get<1>(key) && std::get<2>(*previous) > 0;
      if (follows) {
        edge(barrier(last, kAfterF), barrier(child, kF));
        edge(barrier(child, kAfterB), barrier(last, kB));
      }
      previous = &key;
      last = child;
    }
  }

  void finish() {
    const std::size_t size = first_barrier_ + nodes_.size() * kBarriers;
    graph_.indegree_.assign(size, 0);
    graph_.first_.assign(size + 1, 0);
    for (const auto& [from, to] : edges_) {
      ++graph_.first_[from + 1];
      ++graph_.indegree_[to];
    }
    for (std::size_t i = 0; i < size; ++i) graph_.first_[i + 1] += graph_.first_[i];
    graph_.targets_.resize(edges_.size());
    std::vector<std::uint32_t> next(graph_.first_.begin(), graph_.first_.end() - 1);
    for (const auto& [from, to] : edges_) graph_.targets_[next[from]++] = to;
  }

  const OrderTree& tree_;
  const std::vector<Symbol> dims_;
  OrderGraph& graph_;
  std::uint32_t first_barrier_ = 0;
  std::vector<Node> nodes_;
  std::map<std::vector<PathElement>, std::uint32_t> instances_;
  // Parent, name, index: siblings of one name are neighbours, and ascend.
  std::map<std::tuple<std::uint32_t, std::uint64_t, std::uint64_t>, std::uint32_t> children_;
  std::vector<std::tuple<std::uint32_t, std::uint32_t, Pass>> attached_;
  std::optional<std::vector<std::uint64_t>> dimensions_;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> edges_;
};

std::vector<Symbol> names_of(std::span<const directive::NamedExtent> extents) {
  std::vector<Symbol> names;
  for (const directive::NamedExtent& extent : extents) names.push_back(extent.name);
  return names;
}

OrderGraph::OrderGraph(const OrderTree& tree, const Facts& facts) {
  OrderGraphBuilder(tree, facts, *this).run();
}

std::optional<std::vector<std::vector<Interval>>> columns(const OrderTree& tree,
                                                          const OrderGraph& graph) {
  const std::span<const OrderGraph::Operation> operations = graph.operations();
  std::vector<std::uint32_t> missing = graph.indegree();
  const auto follows = [&](std::uint32_t vertex) {  // another operation of its rank
    return vertex + 1 < operations.size() && operations[vertex + 1].rank == operations[vertex].rank;
  };
  for (std::uint32_t vertex = 0; vertex < operations.size(); ++vertex) {
    if (follows(vertex)) ++missing[vertex + 1];
  }
  std::vector<std::int64_t> ready(graph.vertices(), 0);
  std::vector<std::uint32_t> open;
  for (std::uint32_t vertex = 0; vertex < graph.vertices(); ++vertex) {
    if (missing[vertex] == 0) open.push_back(vertex);
  }
  std::size_t done = 0;
  while (!open.empty()) {
    const std::uint32_t vertex = open.back();
    open.pop_back();
    ++done;
    const bool works = vertex < operations.size();
    const std::int64_t end = ready[vertex] + (works ? operations[vertex].length : 0);
    const auto release = [&](std::uint32_t to) {
      ready[to] = std::max(ready[to], end);
      if (--missing[to] == 0) open.push_back(to);
    };
    for (const std::uint32_t to : graph.successors(vertex)) release(to);
    if (works && follows(vertex)) release(vertex + 1);
  }
  if (done < graph.vertices()) return std::nullopt;
  std::vector<std::vector<Interval>> intervals(tree.ranks.size());
  for (std::size_t r = 0; r < tree.ranks.size(); ++r)
    intervals[r].assign(tree.ranks[r].steps.size(), {-1, -1});
  for (std::uint32_t vertex = 0; vertex < operations.size(); ++vertex) {
    Interval& interval = intervals[operations[vertex].rank][operations[vertex].step];
    if (interval.begin < 0) interval.begin = ready[vertex];
    interval.end = ready[vertex] + operations[vertex].length;
  }
  return intervals;
}

}  // namespace piper::orders
