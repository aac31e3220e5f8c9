#pragma once
// The kinds of nodes of a training DAG (nodes.def), their traits, and the subject of a node.

#include <array>
#include <cassert>
#include <compare>
#include <cstdint>
#include <optional>
#include <string_view>

#include "ir/ids.h"
#include "ir/tensor/graph.h"

namespace piper::dag {

using BucketId = Id<struct BucketTag>;

enum class NodeKind : std::uint8_t {
#define NODE(name, comm_op, subjects, state, in_place) name,
#include "ir/dag/nodes.def"
#undef NODE
};

/// The data movement of a kind between devices, or between a device and its host. Collectives are
/// last; copies to and from the host are collectives with one member.
enum class CommOp : std::uint8_t {
  none,
  send,
  recv,
  all_reduce,
  all_gather_v,
  reduce_scatter,
  all_gather,
  offload,
  fetch
};

/// The possible subjects of a node.
enum class SubjectKind : std::uint8_t { nothing, input, loss, count, bucket, norm };

class SubjectKinds {
 public:
  constexpr SubjectKinds(SubjectKind kind) : bits_(1u << static_cast<unsigned>(kind)) {}
  constexpr bool has(SubjectKind kind) const {
    return (bits_ >> static_cast<unsigned>(kind) & 1u) != 0;
  }
  friend constexpr SubjectKinds operator|(SubjectKinds a, SubjectKinds b) {
    a.bits_ |= b.bits_;
    return a;
  }

 private:
  unsigned bits_;
};
constexpr SubjectKinds operator|(SubjectKind a, SubjectKind b) {
  return SubjectKinds(a) | SubjectKinds(b);
}

struct NodeTraits {
  std::string_view name;
  CommOp comm_op;
  SubjectKinds subjects;
  bool state;
  bool in_place;
};

inline constexpr auto kNodeTraits = std::to_array<NodeTraits>({
#define NODE(name, comm_op, subjects, state, in_place) \
  {#name, CommOp::comm_op, subjects, state, in_place},
#include "ir/dag/nodes.def"
#undef NODE
});
constexpr const NodeTraits& traits(NodeKind kind) {
  return kNodeTraits[static_cast<std::size_t>(kind)];
}

constexpr std::string_view kind_name(NodeKind kind) { return traits(kind).name; }
/// Nothing if no kind has that name.
std::optional<NodeKind> parse_kind(std::string_view name);

/// It has a chunk and a body: work of the model.
constexpr bool runs_body(NodeKind kind) { return kind == NodeKind::chunk; }
constexpr bool is_send(NodeKind kind) { return traits(kind).comm_op == CommOp::send; }
constexpr bool is_recv(NodeKind kind) { return traits(kind).comm_op == CommOp::recv; }
constexpr bool is_message(NodeKind kind) { return is_send(kind) || is_recv(kind); }
constexpr bool is_collective(NodeKind kind) { return traits(kind).comm_op >= CommOp::all_reduce; }
/// Its outputs are in the memory of the host.
constexpr bool leaves_device(NodeKind kind) { return traits(kind).comm_op == CommOp::offload; }
constexpr bool returns_to_device(NodeKind kind) { return traits(kind).comm_op == CommOp::fetch; }
constexpr bool copies_to_or_from_host(NodeKind kind) {
  return leaves_device(kind) || returns_to_device(kind);
}
constexpr bool is_communication(NodeKind kind) { return traits(kind).comm_op != CommOp::none; }
/// Each member receives the sum, or its shard of it.
constexpr bool reduces_members(NodeKind kind) {
  return traits(kind).comm_op == CommOp::all_reduce ||
         traits(kind).comm_op == CommOp::reduce_scatter;
}
/// Each member receives the full sum.
constexpr bool reduces_to_all(NodeKind kind) { return traits(kind).comm_op == CommOp::all_reduce; }
constexpr bool reduces_to_shards(NodeKind kind) {
  return traits(kind).comm_op == CommOp::reduce_scatter;
}
constexpr bool gathers_shards(NodeKind kind) { return traits(kind).comm_op == CommOp::all_gather; }
constexpr bool gathers_lists(NodeKind kind) { return traits(kind).comm_op == CommOp::all_gather_v; }
constexpr bool writes_state(NodeKind kind) { return traits(kind).state; }
constexpr bool may_speak_of(NodeKind kind, SubjectKind subject) {
  return traits(kind).subjects.has(subject);
}
/// A sum into which each producer adds its term: no instruction of a program.
constexpr bool adds_in_place(NodeKind kind) { return traits(kind).in_place; }

/// The subject of a node: an input, a loss, the count of a masked loss, a bucket, the norm of the
/// gradients; or nothing.
class Subject {
 public:
  constexpr Subject() = default;
  static constexpr Subject of_input(tensor::InputId input) {
    return {SubjectKind::input, input.value()};
  }
  static constexpr Subject of_loss(tensor::LossId loss) {
    return {SubjectKind::loss, loss.value()};
  }
  static constexpr Subject of_count(tensor::LossId loss) {
    return {SubjectKind::count, loss.value()};
  }
  static constexpr Subject of_bucket(BucketId bucket) {
    return {SubjectKind::bucket, bucket.value()};
  }
  static constexpr Subject of_norm() { return {SubjectKind::norm, 0}; }

  constexpr SubjectKind kind() const { return static_cast<SubjectKind>(bits_ >> kIndexBits); }
  /// Invalid if the subject is of another kind.
  constexpr tensor::InputId input() const { return id<tensor::InputId>(SubjectKind::input); }
  constexpr tensor::LossId loss() const { return id<tensor::LossId>(SubjectKind::loss); }
  constexpr tensor::LossId count() const { return id<tensor::LossId>(SubjectKind::count); }
  constexpr BucketId bucket() const { return id<BucketId>(SubjectKind::bucket); }
  constexpr bool is_norm() const { return kind() == SubjectKind::norm; }

  friend constexpr auto operator<=>(Subject, Subject) = default;

 private:
  static constexpr int kIndexBits = 27;  // a model has fewer inputs, losses and parameters
  constexpr Subject(SubjectKind kind, std::uint32_t index)
      : bits_(static_cast<std::uint32_t>(kind) << kIndexBits | index) {
    assert(index >> kIndexBits == 0);
  }
  template <typename AnyId>
  constexpr AnyId id(SubjectKind wanted) const {
    return kind() == wanted ? AnyId(bits_ & ((1u << kIndexBits) - 1)) : AnyId();
  }

  std::uint32_t bits_ = 0;
};

}  // namespace piper::dag
