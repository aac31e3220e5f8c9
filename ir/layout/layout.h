#pragma once
// Layouts: what each mesh axis does to a value.
//
//   repeat    the value, bit-equal on all members of the axis             nothing is printed
//   cut       a block of one dimension (box.h says which)                 dp: batch
//   partial   a term; the value is the sum over the members               dp: +
//   flat      a block of a bucket, whose values lie end to end            dp: flat
//
// Several axes may shard one dimension or a bucket; they are listed outermost first.
//
//   dp: batch, tp: batch     dp shards the batch, tp each shard of dp

#include <compare>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "ir/symbol.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/SmallVector.h"

namespace piper {

enum class Share : std::uint8_t { repeat, cut, partial, flat };

/// The layout of a value along one axis.
struct AxisShare {
  Share share = Share::repeat;
  Symbol dim = {};  // cut: the dimension
  friend auto operator<=>(const AxisShare&, const AxisShare&) = default;

  static AxisShare cut(Symbol dim) { return {Share::cut, dim}; }
  static AxisShare partial() { return {Share::partial, {}}; }
  static AxisShare flat() { return {Share::flat, {}}; }
};

/// The axes along which a value is not replicated. Axes that shard the same dimension stand outermost
/// first.
struct Layout {
  struct Axis {
    Symbol name;
    AxisShare how;
    friend auto operator<=>(const Axis&, const Axis&) = default;
  };
  llvm::SmallVector<Axis, 2> axes;

  /// Adds an axis as the innermost of its dimension. It must be new; a replicating axis is not stored.
  void add(Symbol axis, AxisShare how) {
    if (how.share != Share::repeat) axes.push_back({axis, how});
  }
  AxisShare on(Symbol axis) const;
};

/// A layout of a table. The default one is replicated along all axes.
class LayoutId {
 public:
  constexpr LayoutId() = default;
  constexpr explicit LayoutId(std::uint32_t value) : value_(value) {}
  constexpr bool repeats() const { return value_ == 0; }
  constexpr std::uint32_t value() const { return value_; }
  friend constexpr auto operator<=>(LayoutId, LayoutId) = default;

 private:
  std::uint32_t value_ = 0;
};

/// Equal layouts have equal ids. The order of axes that shard different dimensions does not matter.
class LayoutTable {
 public:
  explicit LayoutTable(const SymbolTable& symbols) : symbols_(symbols) { intern({}); }
  LayoutId intern(Layout layout);
  const Layout& operator[](LayoutId id) const { return layouts_[id.value()]; }
  std::size_t size() const { return layouts_.size(); }

 private:
  const SymbolTable& symbols_;
  std::vector<Layout> layouts_;
  std::map<std::vector<Layout::Axis>, LayoutId> ids_;
};

/// `dp: batch, tp: +`; empty for a replicated value. `name` prints a name, with quotes if the surrounding text needs them; a dimension named like a
/// layout is always quoted.
std::string print(const Layout& layout, const SymbolTable& symbols, llvm::function_ref<std::string(std::string_view)> name);

}  // namespace piper
