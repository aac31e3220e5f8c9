#include "passes/build/place_sums.h"

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "ir/tensor/op_rules.h"

namespace piper::passes {

using namespace tensor;

namespace {

constexpr std::uint32_t kNone = Segments::kNone;

/// The dependencies of the segments' backward work, a vertex per segment and pass, with every sum
/// at the producer of its value: the backward of a reader comes before that of the producer. Edges
/// lead to lower segments, or from BI to BW of one.
class BackwardOrder {
 public:
  static std::uint32_t vertex(std::uint32_t segment, Pass pass) {
    return 2 * segment + (pass == Pass::BW ? 1 : 0);
  }

  BackwardOrder(const Graph& model, const Segments& segments)
      : next_(2 * segments.segments.size()), seen_(next_.size(), 0) {
    add_computed(model, segments);
    add_read(model, segments);
    for (auto& list : next_) {
      std::sort(list.begin(), list.end());
      list.erase(std::unique(list.begin(), list.end()), list.end());
    }
  }

  bool reaches(std::uint32_t from, std::uint32_t to) {
    if (from == to) return true;
    ++search_;
    queue_.assign(1, from);
    while (!queue_.empty()) {
      const std::uint32_t at = queue_.back();
      queue_.pop_back();
      for (const std::uint32_t next : next_[at]) {
        if (next == to) return true;
        if (next / 2 < to / 2 || seen_[next] == search_) continue;
        seen_[next] = search_;
        queue_.push_back(next);
      }
    }
    return false;
  }

 private:
  void add(std::uint32_t from, std::uint32_t to) {
    if (from != to && (next_[from].empty() || next_[from].back() != to)) next_[from].push_back(to);
  }

  void add_computed(const Graph& model, const Segments& segments) {
    const auto nodes = model.nodes();
    for (std::size_t n = 0; n < nodes.size(); ++n) {
      if (nodes[n].pass == Pass::F || segments.segment_of[n] == kNone) continue;
      for (const ValueId value : model.operands(nodes[n])) {
        const NodeId def = model.value(value).def;
        if (!def.valid() || model.node(def).pass == Pass::F) continue;
        add(vertex(segments.segment_of[def.index()], model.node(def).pass),
            vertex(segments.segment_of[n], nodes[n].pass));
      }
    }
  }

  /// An adjoint may pass through a segment that reads the value without an operation there.
  void add_read(const Graph& model, const Segments& segments) {
    std::vector<bool> trainable(model.values().size(), false),
        has_data(model.values().size(), true);
    for (const Param& param : model.params) {
      trainable[param.value.index()] = !param.frozen;
      has_data[param.value.index()] = false;
    }
    const auto nodes = model.nodes();
    for (std::size_t n = 0; n < nodes.size(); ++n) {
      if (nodes[n].pass != Pass::F) continue;
      const auto operands = model.operands(nodes[n]);
      bool trains = false, data = false;
      for (std::size_t i = 0; i < operands.size(); ++i) {
        const std::size_t value = operands[i].index();
        data = data || has_data[value];
        if (!trainable[value] || !is_differentiable(nodes[n].op, i)) continue;
        trains = true;
        const NodeId def = model.value(operands[i]).def;
        if (!def.valid() || segments.segment_of[n] == kNone ||
            segments.segment_of[def.index()] == segments.segment_of[n])
          continue;
        const Pass pass = has_data[value] ? Pass::BI : Pass::BW;
        add(vertex(segments.segment_of[n], pass), vertex(segments.segment_of[def.index()], pass));
      }
      for (std::size_t i = 0; i < nodes[n].num_results; ++i) {
        trainable[model.result(nodes[n], i).index()] = trains;
        has_data[model.result(nodes[n], i).index()] = data;
      }
    }
  }

  std::vector<std::vector<std::uint32_t>> next_;
  std::vector<std::uint32_t> seen_, queue_;
  std::uint32_t search_ = 0;
};

/// A sum of the adjoints of all uses of one value: additions in their order, and their terms.
struct Sum {
  std::vector<NodeId> adds;
  std::vector<ValueId> terms;
};

/// Every term belongs to a later operation than the one that made the value.
std::vector<Sum> find_sums(const Graph& model, const Segments& segments) {
  const auto nodes = model.nodes();
  std::vector<Sum> sums;
  std::vector<std::uint32_t> sum_of(nodes.size(), kNone);
  for (std::size_t n = 0; n < nodes.size(); ++n) {
    const Node& node = nodes[n];
    if (node.pass == Pass::F || node.op != Op::add || segments.segment_of[n] == kNone) continue;
    const auto is_term = [&](ValueId value) {
      const NodeId def = model.value(value).def;
      return def.valid() && model.node(def).pass != Pass::F && model.node(def).origin > node.origin;
    };
    const auto operands = model.operands(node);
    if (!is_term(operands[1])) continue;
    const NodeId before = model.value(operands[0]).def;
    if (before.valid() && sum_of[before.index()] != kNone &&
        model.node(before).origin == node.origin) {
      Sum& sum = sums[sum_of[n] = sum_of[before.index()]];
      sum.adds.push_back(NodeId::at(n));
      sum.terms.push_back(operands[1]);
    } else if (is_term(operands[0])) {
      sum_of[n] = static_cast<std::uint32_t>(sums.size());
      sums.push_back({{NodeId::at(n)}, {operands[0], operands[1]}});
    }
  }
  // In the order of completion: a sum may be a term of a later one.
  std::sort(sums.begin(), sums.end(),
            [](const Sum& a, const Sum& b) { return a.adds.back() < b.adds.back(); });
  return sums;
}

/// A term, or a partial sum.
struct Partial {
  ValueId value;
  std::uint32_t vertex = 0;  // vertex of the work that makes it
  std::size_t site = 0;      // into sites_: the site that made it
};

/// A segment that makes adjoints of the value.
struct Site {
  std::uint32_t segment = 0;
  std::vector<ValueId> terms;
  std::size_t next = kNone;  // the next site on the same devices
};

class SumPlacer {
 public:
  SumPlacer(const Graph& model, Segments& segments, std::span<const SegmentDevices> devices)
      : model_(model),
        segment_of_(segments.segment_of),
        devices_(devices),
        order_(model, segments),
        readers_(model.nodes().size()) {
    find_readers();
  }

  void place(const Sum& sum);
  std::optional<Graph> reordered() const;

 private:
  using Operands = std::array<ValueId, 2>;

  void find_readers();
  std::uint32_t vertex_of(ValueId value) const {
    const NodeId def = model_.value(value).def;
    return BackwardOrder::vertex(segment_of_[def.index()], model_.node(def).pass);
  }
  std::uint32_t vertex(std::uint32_t segment) const {
    return BackwardOrder::vertex(segment, pass_);
  }
  bool shares(std::uint32_t a, std::uint32_t b) const {
    return devices_[a].number == devices_[b].number && devices_[a].axes == devices_[b].axes;
  }
  std::uint32_t segment_for(ValueId term, std::span<const std::uint32_t> readers);
  void find_sites(const Sum& sum);
  bool joins(const Partial& partial, std::size_t site);
  /// Takes the partial sums that join the terms of a site.
  std::vector<Partial> take(std::size_t site);
  /// Adds the terms up, in the segment.
  Partial add(std::span<const Partial> terms, std::uint32_t segment);

  const Graph& model_;
  std::vector<std::uint32_t>& segment_of_;
  const std::span<const SegmentDevices> devices_;
  BackwardOrder order_;
  // Per forward node: other segments with adjoints of its results, ascending.
  std::vector<std::vector<std::uint32_t>> readers_;
  std::map<NodeId, Operands> operands_;  // sums with other terms than in the model

  // For the current sum:
  std::span<const NodeId> left_;  // additions without terms yet
  std::vector<Site> sites_;       // the last segments first
  std::vector<Partial> pending_;  // not taken by any site
  Pass pass_ = Pass::BI;
  std::uint32_t maker_ = 0;  // the segment that makes the value
};

void SumPlacer::find_readers() {
  const auto nodes = model_.nodes();
  for (std::size_t n = 0; n < nodes.size(); ++n) {
    if (nodes[n].pass != Pass::F || segment_of_[n] == kNone) continue;
    const auto operands = model_.operands(nodes[n]);
    for (std::size_t i = 0; i < operands.size(); ++i) {
      const NodeId def = model_.value(operands[i]).def;
      if (def.valid() && segment_of_[def.index()] != segment_of_[n] &&
          is_differentiable(nodes[n].op, i))
        readers_[def.index()].push_back(segment_of_[n]);
    }
  }
  for (auto& list : readers_) {
    std::sort(list.begin(), list.end());
    list.erase(std::unique(list.begin(), list.end()), list.end());
  }
}

/// The segment of the use that a term belongs to: the one that makes it, or the one that it passes
/// through.
std::uint32_t SumPlacer::segment_for(ValueId term, std::span<const std::uint32_t> readers) {
  const std::uint32_t from = vertex_of(term), made = from / 2;
  if (made == maker_ || std::binary_search(readers.begin(), readers.end(), made)) return made;
  const auto may_be = [&](std::uint32_t segment) {
    return segment < made && order_.reaches(from, vertex(segment)) &&
           order_.reaches(vertex(segment), vertex(maker_));
  };
  const auto found = std::find_if(readers.rbegin(), readers.rend(), may_be);
  return found == readers.rend() ? made : *found;
}

void SumPlacer::find_sites(const Sum& sum) {
  const std::vector<std::uint32_t>& readers =
      readers_[model_.node(sum.adds.front()).origin.index()];
  std::map<std::uint32_t, std::vector<ValueId>, std::greater<>> terms;
  for (const ValueId term : sum.terms) terms[segment_for(term, readers)].push_back(term);
  sites_.clear();
  for (auto& [segment, of_segment] : terms) sites_.push_back({segment, std::move(of_segment)});
  std::map<std::pair<std::uint32_t, AxisMask>, std::size_t> next;
  for (std::size_t s = sites_.size(); s-- > 0;) {
    if (sites_[s].segment == maker_) continue;
    const SegmentDevices& devices = devices_[sites_[s].segment];
    const auto [entry, fresh] = next.try_emplace({devices.number, devices.axes}, s);
    if (!fresh) sites_[s].next = std::exchange(entry->second, s);
  }
}

/// A sum on the devices of the producer, or with a further addition on its own devices, stays on
/// them.
bool SumPlacer::joins(const Partial& partial, std::size_t site) {
  const auto stays = [&](std::size_t s) {
    return shares(sites_[s].segment, maker_) || (sites_[s].next != kNone && sites_[s].next >= site);
  };
  const std::uint32_t segment = sites_[site].segment, from = sites_[partial.site].segment;
  if (devices_[from].axes != devices_[segment].axes) return false;
  if (!shares(from, segment) && (stays(site) || stays(partial.site))) return false;
  return order_.reaches(partial.vertex, vertex(segment));
}

std::vector<Partial> SumPlacer::take(std::size_t site) {
  std::vector<Partial> taken, left;
  for (const Partial& partial : pending_) (joins(partial, site) ? taken : left).push_back(partial);
  pending_ = std::move(left);
  return taken;
}

Partial SumPlacer::add(std::span<const Partial> terms, std::uint32_t segment) {
  Partial sum = terms.front();
  for (const Partial& term : terms.subspan(1)) {
    const NodeId node = left_.front();
    left_ = left_.subspan(1);
    const Operands operands = {sum.value, term.value};
    const auto in_model = model_.operands(model_.node(node));
    if (!std::equal(operands.begin(), operands.end(), in_model.begin())) operands_[node] = operands;
    segment_of_[node.index()] = segment;
    sum.value = model_.result(model_.node(node));
    sum.vertex = vertex(segment);
  }
  return sum;
}

void SumPlacer::place(const Sum& sum) {
  left_ = sum.adds;
  pass_ = model_.node(sum.adds.front()).pass;
  maker_ = segment_of_[model_.node(sum.adds.front()).origin.index()];
  find_sites(sum);
  pending_.clear();
  for (std::size_t s = 0; s < sites_.size(); ++s) {
    std::vector<Partial> own;
    for (const ValueId term : sites_[s].terms) own.push_back({term, vertex_of(term), s});
    const std::uint32_t here = vertex(sites_[s].segment);
    const bool together = sites_[s].segment != maker_ && order_.reaches(here, vertex(maker_)) &&
                          std::all_of(own.begin(), own.end(), [&](const Partial& term) {
                            return order_.reaches(term.vertex, here);
                          });
    if (!together) {
      pending_.insert(pending_.end(), own.begin(), own.end());
      continue;
    }
    std::vector<Partial> terms = take(s);
    terms.insert(terms.end(), own.begin(), own.end());
    pending_.push_back(add(terms, sites_[s].segment));
    pending_.back().site = s;
  }
  add(pending_, maker_);
}

std::optional<Graph> SumPlacer::reordered() const {
  if (operands_.empty()) return std::nullopt;
  Graph made(model_.context());
  made.name = model_.name;
  made.regions = model_.regions;
  const auto values = model_.values();
  for (std::size_t v = 0; v < values.size();) {
    const NodeId def = values[v].def;
    if (!def.valid()) {
      made.add_leaf(values[v].type, values[v].name);
      ++v;
      continue;
    }
    const Node& node = model_.node(def);
    std::vector<Type> types;
    std::vector<Symbol> names;
    for (std::size_t i = 0; i < node.num_results; ++i, ++v) {
      types.push_back(values[v].type);
      names.push_back(values[v].name);
    }
    const auto other = operands_.find(def);
    made.add_unchecked(
        node,
        other == operands_.end() ? model_.operands(node) : std::span<const ValueId>(other->second),
        types, names);
  }
  made.params = model_.params;
  made.inputs = model_.inputs;
  made.losses = model_.losses;
  made.grads = model_.grads;
  return made;
}

/// Recomputes the operations of each segment.
void fill(const Graph& model, Segments& segments) {
  for (Segments::Segment& segment : segments.segments) segment.backward.clear();
  for (std::size_t n = 0; n < model.nodes().size(); ++n) {
    if (model.nodes()[n].pass != Pass::F && segments.segment_of[n] != kNone)
      segments.segments[segments.segment_of[n]].backward.push_back(NodeId::at(n));
  }
}

}  // namespace

std::optional<Graph> place_sums(const Graph& model, Segments& segments,
                                std::span<const SegmentDevices> devices) {
  if (segments.segments.size() < 2) return std::nullopt;
  SumPlacer placer(model, segments, devices);
  for (const Sum& sum : find_sums(model, segments)) placer.place(sum);
  fill(model, segments);
  return placer.reordered();
}

}  // namespace piper::passes
