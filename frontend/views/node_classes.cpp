#include "frontend/views/node_classes.h"

#include <algorithm>
#include <compare>
#include <map>
#include <set>
#include <unordered_map>
#include <utility>

namespace piper::views {
namespace {

using dag::Dag;
using dag::Instance;
using dag::Node;
using dag::NodeId;

constexpr std::uint32_t kNoNode = 0xFFFFFFFFu;

/// The inputs of one node.
struct Part {
  std::uint32_t alike = 0;  // of its nodes
  std::vector<NodeId> nodes;
  friend auto operator<=>(const Part&, const Part&) = default;
};
struct Draft {
  dag::EdgeClass cls = dag::EdgeClass::data;
  std::uint32_t ports = 0;
  bool each = false;
  std::vector<Part> parts;
};

/// The distinct values of each member along a dimension.
using Values = std::vector<std::set<std::int32_t>>;

class Classes {
 public:
  explicit Classes(const Dag& dag) : dag_(dag) {}

  std::vector<NodeClass> run() {
    number_alike();
    std::unordered_map<std::string, std::size_t> known;
    std::vector<std::vector<NodeId>> groups;
    for (const NodeId node : order()) {
      const auto [found, is_new] = known.try_emplace(signature(node), groups.size());
      if (is_new) groups.emplace_back();
      groups[found->second].push_back(node);
    }
    std::vector<NodeClass> classes;
    for (std::vector<NodeId>& group : groups) add(std::move(group), classes);
    return classes;
  }

 private:
  std::vector<NodeId> order() const {
    if (dag_.order.size() == dag_.nodes.size()) return dag_.order;
    std::vector<NodeId> order;
    for (std::size_t i = 0; i < dag_.nodes.size(); ++i) order.push_back(NodeId::at(i));
    return order;
  }

  static void append(std::string& key, std::uint32_t number) {
    key.append(reinterpret_cast<const char*>(&number), sizeof number);
  }

  /// Nodes are alike if they differ only in indices, edges and locations.
  void number_alike() {
    std::unordered_map<std::string, std::uint32_t> known;
    for (std::size_t i = 0; i < dag_.nodes.size(); ++i) {
      const Node& node = dag_.nodes[i];
      std::string key = dag_.name(NodeId::at(i), "");
      key += '\0';
      for (const std::uint32_t number :
           {node.layout.value(), node.body.value(), node.devices.value(), node.stream.value(),
            node.num_outputs})
        append(key, number);
      for (const std::int32_t at : node.instance.at) key += at == Instance::kNone ? '-' : '#';
      if (node.comm.valid()) {
        append(key, dag_.comms[node.comm.index()].axes);
        append(key, static_cast<std::uint32_t>(dag_.comms[node.comm.index()].members.size()));
      }
      alike_.push_back(known.try_emplace(std::move(key), static_cast<std::uint32_t>(known.size()))
                           .first->second);
    }
  }

  /// Ports that read the same nodes together, in their order; then those of nodes that are alike.
  std::vector<Draft> drafts(const Node& node) const {
    std::vector<Draft> all;
    std::map<std::pair<dag::EdgeClass, std::vector<Part>>, std::size_t> known;
    const std::span<const dag::Input> inputs = dag_.inputs_of(node);
    for (std::size_t i = 0; i < inputs.size();) {
      std::vector<Part> parts;
      const dag::EdgeClass cls = inputs[i].cls;
      for (const std::uint32_t port = inputs[i].port; i < inputs.size() && inputs[i].port == port;
           ++i) {
        const NodeId source = inputs[i].source.node;
        const std::uint32_t alike = source.valid() ? alike_[source.index()] : kNoNode;
        auto part = std::find_if(parts.begin(), parts.end(),
                                 [&](const Part& each) { return each.alike == alike; });
        if (part == parts.end()) part = parts.insert(parts.end(), {alike, {}});
        part->nodes.push_back(source);
      }
      const auto [found, is_new] = known.try_emplace({cls, parts}, all.size());
      if (is_new) all.push_back({cls, 0, false, std::move(parts)});
      ++all[found->second].ports;
    }
    return each_together(std::move(all));
  }

  static std::vector<Draft> each_together(std::vector<Draft> drafts) {
    std::vector<Draft> all;
    std::map<std::tuple<dag::EdgeClass, std::uint32_t, std::uint32_t>, std::size_t> known;
    for (Draft& draft : drafts) {
      const bool one = draft.parts.size() == 1 && draft.parts[0].nodes.size() == 1 &&
                       draft.parts[0].alike != kNoNode;
      const auto found =
          one ? known.try_emplace({draft.cls, draft.parts[0].alike, draft.ports}, all.size())
              : std::pair(known.end(), true);
      if (found.second) {
        all.push_back(std::move(draft));
        continue;
      }
      Draft& first = all[found.first->second];
      first.each = true;
      first.parts[0].nodes.push_back(draft.parts[0].nodes[0]);
    }
    return all;
  }

  std::string signature(NodeId node) const {
    std::string key;
    append(key, alike_[node.index()]);
    for (const Draft& draft : drafts(dag_.node(node))) {
      append(key, static_cast<std::uint32_t>(draft.cls) * 2 + (draft.each ? 1 : 0));
      append(key, draft.ports);
      append(key, static_cast<std::uint32_t>(draft.parts.size()));
      for (const Part& part : draft.parts)
        append(key, part.alike), append(key, static_cast<std::uint32_t>(part.nodes.size()));
    }
    return key;
  }

  std::int32_t at(NodeId node, std::size_t dim) const { return dag_.node(node).instance.at[dim]; }

  /// One class if the members are at all combinations of their indices, otherwise several.
  void add(std::vector<NodeId> members, std::vector<NodeClass>& classes) const {
    std::size_t combinations = 1, last = 0;
    std::array<std::set<std::int32_t>, dag::kMaxSplitDims> values;
    for (std::size_t d = 0; d < dag::kMaxSplitDims; ++d) {
      for (const NodeId member : members) values[d].insert(at(member, d));
      combinations *= values[d].size();
      if (values[d].size() > 1) last = d;
    }
    if (combinations != members.size()) {
      std::map<std::int32_t, std::vector<NodeId>> apart;
      for (const NodeId member : members) apart[at(member, last)].push_back(member);
      if (apart.size() > 1) {
        for (auto& [_, some] : apart) add(std::move(some), classes);
        return;
      }
    }
    NodeClass made{std::move(members), {}, {}};
    for (std::size_t d = 0; d < dag::kMaxSplitDims; ++d) {
      if (*values[d].begin() != Instance::kNone)
        made.at[d] = {Indices::Kind::listed, 0, {values[d].begin(), values[d].end()}};
    }
    read(made);
    classes.push_back(std::move(made));
  }

  void read(NodeClass& made) const {
    std::vector<std::vector<Draft>> all;
    for (const NodeId member : made.members) all.push_back(drafts(dag_.node(member)));
    for (std::size_t r = 0; r < all[0].size(); ++r) {
      Reading& reading = made.readings.emplace_back();
      reading.cls = all[0][r].cls;
      reading.ports = all[0][r].ports;
      reading.each = all[0][r].each;
      for (std::size_t p = 0; p < all[0][r].parts.size(); ++p) {
        const std::vector<NodeId>& first = all[0][r].parts[p].nodes;
        Reading::Term& term = reading.terms.emplace_back(
            Reading::Term{first[0], static_cast<std::uint32_t>(first.size()), {}});
        if (!term.first.valid()) continue;
        std::vector<std::span<const NodeId>> nodes;
        for (const std::vector<Draft>& draft : all) nodes.emplace_back(draft[r].parts[p].nodes);
        term.at = indices_of(made, nodes);
      }
    }
  }

  /// The indices of the nodes that each member reads.
  IndexSet indices_of(const NodeClass& made,
                      const std::vector<std::span<const NodeId>>& nodes) const {
    IndexSet set;
    std::vector<std::size_t> combinations(nodes.size(), 1);
    for (std::size_t d = 0; d < dag::kMaxSplitDims; ++d) {
      Values values(nodes.size());
      for (std::size_t m = 0; m < nodes.size(); ++m) {
        for (const NodeId node : nodes[m]) values[m].insert(at(node, d));
        combinations[m] *= values[m].size();
      }
      set[d] = indices(made, d, values);
    }
    for (std::size_t m = 0; m < nodes.size(); ++m) {
      if (combinations[m] == nodes[m].size()) continue;
      for (Indices& indices : set) {
        if (indices.values.size() > 1) indices = {Indices::Kind::various, 0, {}};
      }
    }
    return set;
  }

  Indices indices(const NodeClass& made, std::size_t dim, const Values& values) const {
    const std::int32_t first = *values[0].begin(), offset = first - at(made.members[0], dim);
    const bool same = std::all_of(values.begin(), values.end(),
                                  [&](const auto& each) { return each == values[0]; });
    if (same && first == Instance::kNone) return {};
    if (made.at[dim].values.size() > 1) {
      bool follows = true;
      for (std::size_t m = 0; m < values.size(); ++m)
        follows = follows && values[m].size() == 1 &&
                  *values[m].begin() - at(made.members[m], dim) == offset;
      if (follows) return {Indices::Kind::own, offset, {}};
    }
    if (same) return {Indices::Kind::listed, 0, {values[0].begin(), values[0].end()}};
    return {Indices::Kind::various, 0, {}};
  }

  const Dag& dag_;
  std::vector<std::uint32_t> alike_;  // per node
};

/// `3`, or `[0..4, 6]`.
std::string list_text(const std::vector<std::int32_t>& values) {
  if (values.size() == 1) return std::to_string(values[0]);
  std::string text;
  for (std::size_t i = 0; i < values.size();) {
    std::size_t end = i + 1;
    while (end < values.size() && values[end] == values[end - 1] + 1) ++end;
    if (end - i < 3) end = i + 1;
    text += (text.empty() ? "[" : ", ") + std::to_string(values[i]);
    if (end > i + 1) text += ".." + std::to_string(values[end - 1] + 1);
    i = end;
  }
  return text + "]";
}

}  // namespace

std::string index_text(const Dag& dag, const IndexSet& at) {
  std::string text;
  for (std::size_t d = 0; d < dag.dims.size() && d < dag::kMaxSplitDims; ++d) {
    const Indices& indices = at[d];
    if (indices.kind == Indices::Kind::none) continue;
    text += "." + std::string(dag.context->text(dag.dims[d].name));
    switch (indices.kind) {
      case Indices::Kind::none: break;
      case Indices::Kind::own:
        if (indices.offset != 0)
          text += (indices.offset > 0 ? "+" : "") + std::to_string(indices.offset);
        break;
      case Indices::Kind::listed: text += list_text(indices.values); break;
      case Indices::Kind::various: text += "*"; break;
    }
  }
  return text;
}

std::vector<NodeClass> node_classes(const Dag& dag) { return Classes(dag).run(); }

}  // namespace piper::views
