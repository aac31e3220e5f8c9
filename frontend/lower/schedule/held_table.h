#pragma once
// Which indices of what a partition made a device set holds, by the places of a schedule. Built once for all ranks that ask for the same work, because each of P ranks
// would look at P places.
//
//   HeldTable table(asked, made, places, dims, sets);
//   table.held(devices).indices   ->   {0, 4}

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "frontend/lower/schedule/device_set_index.h"
#include "ir/directive/directive.h"

namespace piper::lower {

class HeldTable {
 public:
  /// How much of what is asked a target of a `place` names, for each index that it names.
  enum class Covers : std::uint8_t { no, part, all };
  struct Placed {
    const directive::Place* place;
    const directive::Selector* target;
    const directive::Coordinate* indices;  // of what the partition made; null where the target names none
    Covers covers;
    Symbol part;  // on which it depends; none: the pass
  };
  struct Held {
    std::vector<std::uint32_t> indices;       // ascending
    const Placed* depends = nullptr;          // where an index runs depends on this line: there is no answer
    const directive::Place* outer = nullptr;  // the first that decides, and has another depth than `depth`
    std::size_t looked_at = 0;                // indices
  };

  /// `dims`: what splits make. The places and the device sets must outlive the table.
  HeldTable(const directive::Selector& asked, const directive::Partition& made, std::span<const directive::Place* const> places, std::span<const Symbol> dims,
            const DeviceSetTable& sets);
  Held held(const DeviceSet& devices, std::uint32_t depth) const;
  /// The name of what the partition made.
  Symbol made() const { return made_; }

 private:
  std::vector<Placed> placed_;                      // those that hold over others first
  std::vector<std::vector<std::uint32_t>> chains_;  // by index: positions in `placed_`, up to the first that places all of it
  DeviceSetIndex indices_;                          // by each set of their chains
  const DeviceSetTable* sets_;
  Symbol made_;
};

}  // namespace piper::lower
