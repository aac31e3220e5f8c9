#include <map>

#include "ir/verify/facts.h"

namespace piper::verify {

namespace {

/// Results of the order of a rank beside temporal edges: the claim of the rank, and its overlap
/// groups of chunks.
class Claims {
 public:
  explicit Claims(Facts& facts) : facts_(facts), dag_(facts.dag) {}

  void check() {
    if (dag_.level < Level::ordered) {
      if (!dag_.claims.empty())
        report(dag_.claims.front().loc,
               "ranks are claimed, and orders are not yet applied at level `{}`",
               dag::level_name(dag_.level));
      for (std::size_t i = 0; i < dag_.group.size(); ++i) {
        if (dag_.group[i] == Dag::kNoGroup) continue;
        return report(dag_.nodes[i].loc,
                      "`{}` is in an overlap group, and orders are not yet applied at level `{}`",
                      facts_.name(NodeId::at(i)), dag::level_name(dag_.level));
      }
      return;
    }
    disjoint();
    if (dag_.group.empty()) return;
    if (dag_.group.size() != dag_.nodes.size())
      return report(LocId(), "there are overlap groups for `{}` of `{}` nodes", dag_.group.size(),
                    dag_.nodes.size());
    const std::vector<bool> claimed = claimed_sets();
    for (std::size_t i = 0; i < dag_.nodes.size() && !facts_.enough(); ++i) {
      if (dag_.group[i] != Dag::kNoGroup) member(NodeId::at(i), claimed);
    }
  }

 private:
  template <typename... Args>
  void report(LocId loc, MessagePattern<std::type_identity_t<Args>...> pattern,
              const Args&... args) {
    facts_.sink.report(Code::wrong_claim, loc, pattern, args...);
  }
  const DeviceSet& set(std::size_t claim) const {
    return dag_.device_sets[dag_.claims[claim].devices];
  }

  /// Sets with the same whole axes have a device in common only if they are equal, so that only
  /// other pairs are compared one by one.
  void disjoint() {
    std::map<AxisMask, std::map<DeviceSetId, std::size_t>> by_axes;
    for (std::size_t c = 0; c < dag_.claims.size() && !facts_.enough(); ++c) {
      const AxisMask axes = set(c).whole_axes();
      for (const auto& [other_axes, claims] : by_axes) {
        for (const auto& [devices, other] : claims) {
          if (other_axes != axes && set(c).intersects(set(other))) return twice(c, other);
        }
      }
      const auto [entry, fresh] = by_axes[axes].try_emplace(dag_.claims[c].devices, c);
      if (!fresh) return twice(c, entry->second);
    }
  }

  void twice(std::size_t claim, std::size_t other) {
    const DeviceSetId devices = dag_.claims[claim].devices, others = dag_.claims[other].devices;
    auto builder =
        devices == others
            ? facts_.sink.report(Code::wrong_claim, dag_.claims[claim].loc,
                                 "the ranks `{}` are claimed twice", facts_.text(devices))
            : facts_.sink.report(Code::wrong_claim, dag_.claims[claim].loc,
                                 "the claims of `{}` and of `{}` have ranks in common",
                                 facts_.text(devices), facts_.text(others));
    builder.related(dag_.claims[other].loc, "the other claim");
  }

  /// Per device set: whether a claim contains some of its ranks.
  std::vector<bool> claimed_sets() const {
    std::vector<bool> claimed(dag_.device_sets.size(), false);
    for (std::size_t s = 0; s < claimed.size(); ++s) {
      for (std::size_t c = 0; c < dag_.claims.size() && !claimed[s]; ++c)
        claimed[s] = set(c).intersects(dag_.device_sets[DeviceSetId::at(s)]);
    }
    return claimed;
  }

  void member(NodeId id, const std::vector<bool>& claimed) {
    const Node& node = facts_.node(id);
    if (!runs_body(node.kind))
      return report(node.loc, "`{}` is in overlap group `{}`, which may contain only chunks",
                    facts_.name(id), dag_.group[id.index()]);
    if (claimed[node.devices.index()]) return;
    report(node.loc, "`{}` is in overlap group `{}`, and no claim has ranks of `{}`",
           facts_.name(id), dag_.group[id.index()], facts_.text(node.devices));
  }

  Facts& facts_;
  const Dag& dag_;
};

}  // namespace

void check_claims(Facts& facts) { Claims(facts).check(); }

}  // namespace piper::verify
