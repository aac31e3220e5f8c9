#pragma once
// The indices of a partition's parts that a device set holds, by the places of a schedule. Built
// once for all ranks that ask for the same work, because each of P ranks would look at P places.
//
//   HeldTable table(asked, made, places, dims, sets);
//   table.held(devices, depth).indices   ->   {0, 4}

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "frontend/lower/schedule/device_set_index.h"
#include "ir/directive/directive.h"

namespace piper::lower {

class HeldTable {
 public:
  /// How much of the requested work a target of a `place` names, for each index that it names.
  enum class Covers : std::uint8_t { no, part, all };
  struct Placed {
    const directive::Place* place;
    const directive::Selector* target;
    // of the partition's parts; null if the target names none
    const directive::Coordinate* indices;
    Covers covers;
    Symbol part;  // on which it depends; none: the pass
  };
  struct Held {
    std::vector<std::uint32_t> indices;  // ascending
    // The devices of an index depend on this line: there is no result.
    const Placed* depends = nullptr;
    // The first applied line of another depth than `depth`.
    const directive::Place* outer = nullptr;
    std::size_t looked_at = 0;  // indices
  };

  /// `dims`: the dimensions of splits. The places and the device sets must outlive the table.
  HeldTable(const directive::Selector& asked, const directive::Partition& partition,
            std::span<const directive::Place* const> places, std::span<const Symbol> dims,
            const DeviceSetTable& sets);
  Held held(const DeviceSet& devices, std::uint32_t depth) const;
  /// The name of the partition's parts.
  Symbol partition_name() const { return partition_name_; }

 private:
  std::vector<Placed> placed_;  // by descending precedence
  // By index: positions in `placed_`, up to the first that places all of it.
  std::vector<std::vector<std::uint32_t>> chains_;
  DeviceSetIndex indices_;  // by each set of their chains
  const DeviceSetTable* sets_;
  Symbol partition_name_;
};

}  // namespace piper::lower
