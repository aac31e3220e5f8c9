#pragma once
// The orders of the claimed ranks, one by one, for reports about contradictions between them.

#include <span>
#include <string>
#include <vector>

#include "passes/order/apply_orders.h"

namespace piper::passes {

class OrderClaims {
 public:
  static constexpr std::uint32_t kNone = 0xFFFFFFFFu;

  /// All must outlive it.
  OrderClaims(const dag::Dag& dag, const ClaimedOrder& claimed, const WorkGraph& graph);

  std::uint32_t size() const { return static_cast<std::uint32_t>(claimed_.first_of_claim.size()); }
  /// `edges`: consecutive steps of a claim's order; `named`: (step, communication named after it).
  std::span<const Adjacency::Pair> edges(std::uint32_t claim) const {
    return part(claimed_.edges, &ClaimedOrder::First::edge, claim);
  }
  std::span<const Adjacency::Pair> named(std::uint32_t claim) const {
    return part(claimed_.named, &ClaimedOrder::First::named, claim);
  }
  /// (named communication, later work that makes its values).
  std::span<const Adjacency::Pair> late(std::uint32_t claim) const {
    return part(claimed_.late, &ClaimedOrder::First::late, claim);
  }
  /// The chunks of a claim's order, in text order.
  const std::vector<std::uint32_t>& units(std::uint32_t claim) const { return units_[claim]; }

  /// The first claim that puts `to` directly after `from`. kNone: no claim does.
  std::uint32_t of_edge(std::uint32_t from, std::uint32_t to) const;
  /// The end of a message that runs on the devices of the claim, the only one that its order can
  /// name; other units have one end.
  dag::NodeId member(std::uint32_t unit, std::uint32_t claim) const;
  /// The operation that names the work of a unit, in this claim if possible.
  LocId loc(std::uint32_t unit, std::uint32_t claim) const;
  /// The work of a unit in the words of an order.
  std::string text(std::uint32_t unit, std::uint32_t claim) const;
  /// The rank by its coordinates: `pp[1]`, `pp[1] dp[0]`; all devices: the name of the mesh.
  std::string rank_text(std::uint32_t claim) const;

 private:
  std::span<const Adjacency::Pair> part(std::span<const Adjacency::Pair> all,
                                        std::uint32_t ClaimedOrder::First::* first,
                                        std::uint32_t claim) const {
    const std::size_t begin = claimed_.first_of_claim[claim].*first;
    const std::size_t end =
        claim + 1 < size() ? claimed_.first_of_claim[claim + 1].*first : all.size();
    return all.subspan(begin, end - begin);
  }

  const dag::Dag& dag_;
  const ClaimedOrder& claimed_;
  const WorkGraph& graph_;
  std::vector<std::vector<std::uint32_t>> units_;
};

}  // namespace piper::passes
