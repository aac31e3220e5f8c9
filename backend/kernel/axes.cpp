#include "backend/kernel/axes.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "runtime/kernel_math.h"

namespace piper::backend {

using tensor::Graph;
using tensor::Node;
using tensor::Op;
using tensor::ValueId;

bool is_subset(const Space& a, const Space& b) {
  return std::includes(b.begin(), b.end(), a.begin(), a.end());
}

bool disjoint(const Space& a, const Space& b) {
  return std::none_of(a.begin(), a.end(),
                      [&](Axis axis) { return std::binary_search(b.begin(), b.end(), axis); });
}

Space without(const Space& a, const Space& b) {
  Space rest;
  std::set_difference(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(rest));
  return rest;
}

Axes::Axes(const Graph& graph) : graph_(graph) {
  name_axes();
  find_sources();
  fold_constants();
}

void Axes::name_axes() {
  // At first every (name, extent) is an axis; axes that occur together in a value must stay
  // distinct.
  std::map<std::pair<std::uint32_t, std::int64_t>, Axis> known;
  axes_.resize(graph_.values().size());
  for (std::size_t i = 0; i < axes_.size(); ++i) {
    for (const tensor::Dim& dim : graph_.values()[i].type.dims) {
      const auto [entry, is_new] =
          known.try_emplace({dim.name.value(), dim.extent}, static_cast<Axis>(extents_.size()));
      if (is_new) extents_.push_back(dim.extent);
      axes_[i].push_back(entry->second);
    }
  }
  std::vector<std::set<Axis>> together(extents_.size());
  for (const auto& axes : axes_) {
    for (Axis a : axes) {
      for (Axis b : axes) {
        if (a != b) together[a].insert(b);
      }
    }
  }

  std::vector<Axis> parent(extents_.size());
  std::iota(parent.begin(), parent.end(), Axis{0});
  const auto find = [&](Axis a) {
    while (parent[a] != a) a = parent[a] = parent[parent[a]];
    return a;
  };
  joined_.resize(graph_.nodes().size());
  for (std::size_t i = 0; i < graph_.nodes().size(); ++i) {
    const Node& node = graph_.nodes()[i];
    if (node.op != Op::rename) continue;
    const auto from = of(graph_.operands(node)[0]), to = of(graph_.result(node));
    bool join = true;
    for (std::size_t d = 0; d < from.size(); ++d) {
      const Axis a = find(from[d]), b = find(to[d]);
      join &= a == b || !together[a].contains(b);
    }
    if (!join) continue;
    joined_[i] = true;
    for (std::size_t d = 0; d < from.size(); ++d) {
      const Axis a = find(from[d]), b = find(to[d]);
      // The join of another dimension may have put these two into one value.
      if (a == b || together[a].contains(b)) continue;
      parent[b] = a;
      for (Axis c : together[b]) {
        together[c].erase(b);
        together[c].insert(a);
        together[a].insert(c);
      }
    }
    for (std::size_t d = 0; d < from.size(); ++d)
      joined_[i] = joined_[i] && find(from[d]) == find(to[d]);
  }
  for (auto& axes : axes_) {
    for (Axis& axis : axes) axis = find(axis);
  }
}

void Axes::find_sources() {
  const std::size_t count = graph_.values().size();
  for (std::size_t i = 0; i < count; ++i) {
    const ValueId value = ValueId::at(i);
    sources_.push_back(value);
    memories_.push_back(value);
  }
  for (std::size_t i = 0; i < graph_.nodes().size(); ++i) {
    const Node& node = graph_.nodes()[i];
    const ValueId result = node.num_results > 0 ? graph_.result(node) : ValueId();
    if (node.op == Op::rename)
      memories_[result.index()] = memories_[graph_.operands(node)[0].index()];
    if (node.op == Op::permute || node.op == Op::broadcast ||
        (node.op == Op::rename && joined_[i])) {
      sources_[result.index()] = sources_[graph_.operands(node)[0].index()];
    }
  }
}

void Axes::fold_constants() {
  constants_.resize(graph_.values().size());
  for (const Node& node : graph_.nodes()) {
    if (node.num_results != 1) continue;
    const auto operands = graph_.operands(node);
    const auto number = [&](std::size_t i) { return constants_[operands[i].index()]; };
    if (!std::all_of(operands.begin(), operands.end(),
                     [&](ValueId v) { return constants_[v.index()].has_value(); }))
      continue;
    std::optional<double> folded;
    switch (node.op) {
      case Op::fill: folded = node.attrs.scalar; break;
      case Op::rename:
      case Op::broadcast:
      case Op::permute:
      case Op::cast: folded = *number(0); break;
      case Op::neg: folded = -*number(0); break;
      case Op::scale: folded = *number(0) * node.attrs.scalar; break;
      case Op::offset: folded = *number(0) + node.attrs.scalar; break;
      case Op::add: folded = *number(0) + *number(1); break;
      case Op::sub: folded = *number(0) - *number(1); break;
      case Op::mul: folded = *number(0) * *number(1); break;
      default: break;
    }
    // Narrow numbers are computed at their uses, where results are rounded; plain constants may be
    // rounded here.
    const tensor::DType dtype = graph_.type(graph_.result(node)).dtype;
    const bool computes = node.op == Op::scale || node.op == Op::offset || node.op == Op::add ||
                          node.op == Op::sub || node.op == Op::mul;
    if (folded && tensor::is_narrow(dtype))
      folded = computes ? std::nullopt
                        : std::optional<double>(piper_round_bf16(static_cast<float>(*folded)));
    if (folded) constants_[graph_.result(node).index()] = folded;
  }
}

Space Axes::space(ValueId value) const {
  Space space(of(value).begin(), of(value).end());
  std::sort(space.begin(), space.end());
  return space;
}

Axis Axes::axis(ValueId value, Symbol dim) const {
  return of(value)[*graph_.type(value).find(dim)];
}

}  // namespace piper::backend
