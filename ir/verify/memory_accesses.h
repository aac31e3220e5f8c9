#pragma once
// The accesses of the actions of one role to its arena, and the cells that they divide it into.
// Used inside ir/verify alone.

#include <cstdint>
#include <span>
#include <vector>

#include "ir/verify/plan_facts.h"

namespace piper::verify {

/// An access of an action to a range of cells; the same in both steps.
struct Access {
  enum class Kind : std::uint8_t {
    read_value,
    read_sum,
    read_state,
    read_param,
    write_value,
    write_sum,
    write_garbage,
    write_param,
    write_state
  } kind = Kind::write_garbage;
  std::uint32_t first = 0, last = 0;  // cells
  std::uint32_t buffer = kNone;
  std::int64_t base = 0;
  // The output, for a term the output of its sum; read_state, write_state: the bucket.
  std::uint32_t id = kNone;
  // read_sum: contributions; read_param, write_param: the parameter; write_value: the input that
  // may have been there; write_sum: number of the contribution.
  std::uint32_t other = kNone;
};

/// Numbers the offsets at which accesses begin and end. There are few distinct ones.
class CellEdges {
 public:
  /// Forgets all offsets.
  void clear();
  /// The number of an offset: a new one if it has none yet.
  std::uint32_t at(std::int64_t byte);
  /// The offsets, by number.
  const std::vector<std::int64_t>& bytes() const { return bytes_; }

 private:
  std::size_t start(std::int64_t byte) const;
  std::uint32_t add(std::int64_t byte, std::size_t slot);

  std::vector<std::uint32_t> slots_;
  std::vector<std::int64_t> bytes_;
};

/// A cell is a range of bytes that every access covers entirely or not at all. Cells are numbered
/// in the order of their bytes.
class MemoryAccesses {
 public:
  MemoryAccesses(const PlanFacts& plan, const Sums& sums)
      : facts_(plan.facts), dag_(plan.facts.dag), sums_(sums) {}

  /// Collects the accesses of this role, and divides its arena into cells.
  void set_role(const RoleView& view);

  /// The accesses of an action, by its number in the role: reads, then writes; one per operand, and
  /// those to optimizer state and padding.
  std::span<const Access> of(std::size_t local) const {
    return std::span(accesses_).subspan(first_access_[local],
                                        first_access_[local + 1] - first_access_[local]);
  }
  std::size_t num_cells() const { return edges_.bytes().size(); }
  /// The offset at which a cell begins, in bytes from the start of the arena in its memory.
  std::int64_t byte_of(std::uint32_t cell) const;

 private:
  /// The numbers of a buffer's first byte and of the one after its last; most operands are whole
  /// buffers, named several times.
  struct Ends {
    std::uint32_t first = kNone, last = kNone;
  };

  void add(Access access, std::int64_t bytes);
  void add_whole(Access access, std::uint32_t number);
  /// A collective on a sharded bucket includes its padding. It writes the padding of full gradients
  /// and parameters with a live range within the step: with zeros, or with the members' padding. No
  /// other value uses the padding of state (`check_state`).
  void gaps(const Action& action, const RoleView::Entry& entry, std::uint32_t inputs);
  Access read_of(const RoleView::Entry& entry, const RoleView::Port& port) const;
  Access write_of(const RoleView::Entry& entry, std::span<const RoleView::Port> ports,
                  std::uint32_t out) const;
  std::uint32_t param_of(const RoleView::Entry& entry, const Input& edge) const;

  const Facts& facts_;
  const Dag& dag_;
  const Sums& sums_;
  const dag::Role* role_ = nullptr;
  CellEdges edges_;
  std::vector<Ends> ends_of_buffer_;
  std::vector<Access> accesses_;
  std::vector<std::uint32_t> first_access_;  // per action, one more
};

}  // namespace piper::verify
