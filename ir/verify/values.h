#pragma once
// The values of a DAG: that none depends on itself, where each output's value was first made, and
// its type. Used inside ir/verify alone.

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "ir/verify/facts.h"

namespace piper::verify {

class Values {
 public:
  explicit Values(Facts& facts) : facts_(facts), dag_(facts.dag) {}

  /// Finds the origin and the type of every output; fills `follows_order`, `origin` and
  /// `output_bytes` of the facts. False after reporting that a value depends on itself.
  bool find();

  /// The type of the value of an output. `find` must have returned true.
  const tensor::Type& type(std::uint32_t output) const { return types_[output_type_[output]]; }
  /// Whether an output has the type of an input port of a body. `find` must have returned true.
  bool same_type(std::uint32_t output, dag::BodyId body, std::uint32_t input) const {
    return output_type_[output] == input_types_[first_input_type_[body.index()] + input];
  }

 private:
  /// True if there is a global order in which every node is after its dependencies, which proves
  /// the DAG acyclic. False proves nothing.
  bool follows_order();
  /// Kahn's algorithm over data and grad edges, and over communication: a recv depends on its send,
  /// a node that takes from members depends on the inputs of all of them. One such node per
  /// communication has these edges; the others depend on it.
  bool acyclic();
  void origins();
  /// Numbers of the types that occur, equal for equal types.
  std::uint32_t number_of(const tensor::Type& type);
  std::uint32_t find_number(const tensor::Type& type);
  /// A value that a recv, an all_gather_v or a copy passes on has the type of its origin.
  void types_of_outputs();

  Facts& facts_;
  const Dag& dag_;
  std::vector<tensor::Type> types_;     // the types that occur
  const tensor::Type* last_ = nullptr;  // the last one requested
  std::uint32_t last_number_ = 0;
  std::unordered_map<std::int64_t, std::vector<std::uint32_t>> alike_;  // by size: their numbers
  // Per body, and per input port of each: the type.
  std::vector<std::uint32_t> first_input_type_, input_types_;
  std::vector<std::uint32_t> output_type_;  // per output
};

}  // namespace piper::verify
