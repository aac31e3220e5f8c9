#include "passes/build/segments.h"

#include <algorithm>
#include <map>
#include <queue>

namespace piper::passes {

using namespace tensor;

namespace {

constexpr std::uint32_t kNone = Segments::kNone;
constexpr std::size_t kNearby = 4;

/// Edges between groups of operations.
struct Quotient {
  std::vector<std::vector<std::uint32_t>> next;

  Quotient(const Graph& model, std::span<const std::uint32_t> group, std::size_t groups)
      : next(groups) {
    for (std::size_t n = 0; n < model.nodes().size(); ++n) {
      if (group[n] == kNone) continue;
      for (const ValueId value : model.operands(model.nodes()[n])) {
        const NodeId def = model.value(value).def;
        if (!def.valid() || group[def.index()] == kNone || group[def.index()] == group[n]) continue;
        next[group[def.index()]].push_back(group[n]);
      }
    }
    for (auto& list : next) {
      std::sort(list.begin(), list.end());
      list.erase(std::unique(list.begin(), list.end()), list.end());
    }
  }

  /// Strongly connected components, numbered so that edges lead from higher to lower numbers or
  /// stay (Tarjan, without recursion).
  std::vector<std::uint32_t> components() const {
    const std::size_t size = next.size();
    std::vector<std::uint32_t> component(size, kNone), index(size, kNone), low(size), stack;
    struct Frame {
      std::uint32_t node;
      std::size_t edge;
    };
    std::vector<Frame> frames;
    std::uint32_t counter = 0, components = 0;
    for (std::uint32_t root = 0; root < size; ++root) {
      if (index[root] != kNone) continue;
      frames.push_back({root, 0});
      while (!frames.empty()) {
        Frame& frame = frames.back();
        const std::uint32_t v = frame.node;
        if (frame.edge == 0) {
          index[v] = low[v] = counter++;
          stack.push_back(v);
        }
        bool descended = false;
        while (frame.edge < next[v].size()) {
          const std::uint32_t w = next[v][frame.edge++];
          if (index[w] == kNone) {
            frames.push_back({w, 0});
            descended = true;
            break;
          }
          if (component[w] == kNone) low[v] = std::min(low[v], index[w]);
        }
        if (descended) continue;
        if (low[v] == index[v]) {
          for (;;) {
            const std::uint32_t w = stack.back();
            stack.pop_back();
            component[w] = components;
            if (w == v) break;
          }
          ++components;
        }
        frames.pop_back();
        if (!frames.empty()) low[frames.back().node] = std::min(low[frames.back().node], low[v]);
      }
    }
    return component;
  }
};

class Cutter {
 public:
  Cutter(const Graph& model, std::span<const Symbol> selected)
      : model_(model), selected_(selected) {}
  Segments run();

 private:
  void key_by_region();
  void split_cycles();
  void merge_back();
  std::vector<std::uint32_t> number();
  void fill(const std::vector<std::uint32_t>& segment_of_group);
  RegionId cut_path(RegionId region);

  const Graph& model_;
  std::span<const Symbol> selected_;
  Segments out_;
  std::vector<bool> live_;
  std::vector<std::uint32_t> group_;  // per node
  std::vector<RegionId> region_of_group_;
};

RegionId Cutter::cut_path(RegionId region) {
  std::vector<RegionId> kept;
  for (RegionId r = region; r.valid(); r = model_.regions.parent(r)) {
    if (std::find(selected_.begin(), selected_.end(), model_.regions.name(r)) != selected_.end())
      kept.push_back(r);
  }
  RegionId cut;
  for (std::size_t i = kept.size(); i-- > 0;)
    cut = out_.regions.child(cut, model_.regions.name(kept[i]), model_.regions.index(kept[i]));
  return cut;
}

void Cutter::key_by_region() {
  // By full path, the root last.
  std::vector<std::uint32_t> group_of_region(model_.regions.size() + 1, kNone);
  std::map<RegionId, std::uint32_t> group_of_cut;
  group_.assign(model_.nodes().size(), kNone);
  for (std::size_t n = 0; n < model_.nodes().size(); ++n) {
    if (!live_[n]) continue;
    const RegionId region = model_.nodes()[n].region;
    std::uint32_t& group = group_of_region[region.valid() ? region.index() : model_.regions.size()];
    if (group == kNone) {
      const RegionId cut = cut_path(region);
      const auto [entry, fresh] =
          group_of_cut.try_emplace(cut, static_cast<std::uint32_t>(region_of_group_.size()));
      if (fresh) region_of_group_.push_back(cut);
      group = entry->second;
    }
    group_[n] = group;
  }
}

/// Inside a cycle of regions, an operation's depth is the number of region boundaries on the
/// longest path to it. It grows at every boundary, so (region, depth) has no cycle.
void Cutter::split_cycles() {
  const Quotient quotient(model_, group_, region_of_group_.size());
  const std::vector<std::uint32_t> component = quotient.components();
  std::vector<std::uint32_t> size(component.size(), 0);
  for (const std::uint32_t c : component) ++size[c];
  std::vector<std::uint32_t> depth(group_.size(), 0);
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> finer;
  const std::vector<std::uint32_t> coarse = group_;
  for (std::size_t n = 0; n < group_.size(); ++n) {
    if (coarse[n] == kNone || size[component[coarse[n]]] == 1) continue;
    for (const ValueId value : model_.operands(model_.nodes()[n])) {
      const NodeId def = model_.value(value).def;
      if (!def.valid() || coarse[def.index()] == kNone ||
          component[coarse[def.index()]] != component[coarse[n]])
        continue;
      depth[n] =
          std::max(depth[n], depth[def.index()] + (coarse[def.index()] == coarse[n] ? 0u : 1u));
    }
    // The first depth of a region keeps its group.
    const auto [entry, fresh] = finer.try_emplace({coarse[n], depth[n]}, 0);
    if (fresh) {
      const bool first = finer.lower_bound({coarse[n], 0}) == entry &&
                         std::next(entry) == finer.upper_bound({coarse[n], kNone});
      entry->second = first ? coarse[n] : static_cast<std::uint32_t>(region_of_group_.size());
      if (!first) region_of_group_.push_back(region_of_group_[coarse[n]]);
    }
    group_[n] = entry->second;
  }
}

/// Depth cuts too finely if a cycle contains only a part of a region: neighbours of one region are
/// joined again if no path leads from one to the other through a third. Only the nearest earlier
/// ones are tried, so that the time stays near-linear.
void Cutter::merge_back() {
  const std::size_t groups = region_of_group_.size();
  Quotient quotient(model_, group_, groups);
  std::map<RegionId, std::vector<std::uint32_t>> of_region;
  std::vector<std::uint32_t> first_op(groups, kNone);
  for (std::size_t n = 0; n < group_.size(); ++n) {
    if (group_[n] != kNone && first_op[group_[n]] == kNone)
      first_op[group_[n]] = static_cast<std::uint32_t>(n);
  }
  for (std::uint32_t g = 0; g < groups; ++g) of_region[region_of_group_[g]].push_back(g);
  std::vector<std::uint32_t> into(groups);
  for (std::uint32_t g = 0; g < groups; ++g) into[g] = g;
  const auto target = [&](std::uint32_t g) {
    while (into[g] != g) g = into[g];
    return g;
  };
  std::vector<std::uint32_t> seen(groups, kNone), queue;
  std::uint32_t search = 0;
  /// Whether `to` is reached from `from` through a third group.
  const auto through_third = [&](std::uint32_t from, std::uint32_t to) {
    ++search;
    queue.assign(1, from);
    while (!queue.empty()) {
      const std::uint32_t g = queue.back();
      queue.pop_back();
      for (std::uint32_t next : quotient.next[g]) {
        next = target(next);
        if (next == from || seen[next] == search || (g == from && next == to)) continue;
        if (next == to) return true;
        seen[next] = search;
        queue.push_back(next);
      }
    }
    return false;
  };
  for (auto& [region, list] : of_region) {
    std::sort(list.begin(), list.end(),
              [&](std::uint32_t a, std::uint32_t b) { return first_op[a] < first_op[b]; });
    for (std::size_t i = 1; i < list.size(); ++i) {
      for (std::size_t j = i; j-- > 0 && i - j <= kNearby;) {
        const std::uint32_t a = target(list[j]), b = target(list[i]);
        if (a == b || through_third(a, b) || through_third(b, a)) continue;
        into[b] = a;
        quotient.next[a].insert(quotient.next[a].end(), quotient.next[b].begin(),
                                quotient.next[b].end());
        break;
      }
    }
  }
  for (std::uint32_t& group : group_) {
    if (group != kNone) group = target(group);
  }
}

/// Numbers segments in the topological order that follows the program: among ready segments, the
/// one with the earliest operation. Returns the segment of every group.
std::vector<std::uint32_t> Cutter::number() {
  const std::size_t groups = region_of_group_.size();
  const Quotient quotient(model_, group_, groups);
  std::vector<std::uint32_t> waits(groups, 0), first_op(groups, kNone),
      segment_of_group(groups, kNone);
  for (const auto& list : quotient.next) {
    for (const std::uint32_t g : list) ++waits[g];
  }
  for (std::size_t n = 0; n < group_.size(); ++n) {
    if (group_[n] != kNone && first_op[group_[n]] == kNone)
      first_op[group_[n]] = static_cast<std::uint32_t>(n);
  }
  std::priority_queue<std::pair<std::uint32_t, std::uint32_t>,
                      std::vector<std::pair<std::uint32_t, std::uint32_t>>, std::greater<>>
      ready;
  for (std::uint32_t g = 0; g < groups; ++g) {
    if (first_op[g] != kNone && waits[g] == 0) ready.push({first_op[g], g});
  }
  std::map<RegionId, std::uint32_t> numbers;
  while (!ready.empty()) {
    const std::uint32_t g = ready.top().second;
    ready.pop();
    segment_of_group[g] = static_cast<std::uint32_t>(out_.segments.size());
    out_.segments.push_back({region_of_group_[g], numbers[region_of_group_[g]]++, {}, {}});
    for (const std::uint32_t next : quotient.next[g]) {
      if (--waits[next] == 0) ready.push({first_op[next], next});
    }
  }
  return segment_of_group;
}

/// Gives each segment its operations, forward ones and those of their adjoints.
void Cutter::fill(const std::vector<std::uint32_t>& segment_of_group) {
  const auto nodes = model_.nodes();
  out_.segment_of.assign(nodes.size(), kNone);
  for (std::size_t n = 0; n < nodes.size(); ++n) {
    const std::size_t forward = nodes[n].pass == Pass::F ? n : nodes[n].origin.index();
    if (group_[forward] == kNone) continue;
    out_.segment_of[n] = segment_of_group[group_[forward]];
    Segments::Segment& segment = out_.segments[out_.segment_of[n]];
    (nodes[n].pass == Pass::F ? segment.forward : segment.backward).push_back(NodeId::at(n));
  }
}

Segments Cutter::run() {
  live_ = live_forward(model_);
  key_by_region();
  const std::size_t regions = region_of_group_.size();
  split_cycles();
  if (region_of_group_.size() > regions) merge_back();
  fill(number());
  return std::move(out_);
}

}  // namespace

bool names_integers(const Graph& model, const Node& node) {
  return node.op == Op::rename && !is_floating(model.type(model.result(node)).dtype);
}

ValueId named_leaf(const Graph& model, ValueId value) {
  for (NodeId def = model.value(value).def; def.valid() && names_integers(model, model.node(def));
       def = model.value(value).def)
    value = model.operands(model.node(def))[0];
  return value;
}

std::vector<bool> live_forward(const Graph& model) {
  const auto nodes = model.nodes();
  std::vector<bool> live(nodes.size(), false);
  for (const Loss& loss : model.losses) live[model.value(loss.sum).def.index()] = true;
  for (std::size_t n = nodes.size(); n-- > 0;) {
    if (nodes[n].pass != Pass::F || names_integers(model, nodes[n])) live[n] = false;
    if (!live[n]) continue;
    for (const ValueId value : model.operands(nodes[n])) {
      if (const NodeId def = model.value(value).def; def.valid()) live[def.index()] = true;
    }
  }
  return live;
}

Segments cut_segments(const Graph& model, std::span<const Symbol> selected) {
  return Cutter(model, selected).run();
}

}  // namespace piper::passes
