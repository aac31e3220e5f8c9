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

enum class LayoutKind : std::uint8_t { replicated, sharded, partial, flat_sharded };

/// The layout of a value along one axis.
struct AxisLayout {
  LayoutKind kind = LayoutKind::replicated;
  Symbol dim = {};  // cut: the dimension
  friend auto operator<=>(const AxisLayout&, const AxisLayout&) = default;

  static AxisLayout sharded(Symbol dim) { return {LayoutKind::sharded, dim}; }
  static AxisLayout partial() { return {LayoutKind::partial, {}}; }
  static AxisLayout flat_sharded() { return {LayoutKind::flat_sharded, {}}; }
};

/// The axes along which a value is not replicated. Axes that shard the same dimension stand
/// outermost first.
struct Layout {
  struct Axis {
    Symbol name;
    AxisLayout how;
    friend auto operator<=>(const Axis&, const Axis&) = default;
  };
  llvm::SmallVector<Axis, 2> axes;

  /// Adds an axis as the innermost of its dimension. It must be new; a replicating axis is not
  /// stored.
  void add(Symbol axis, AxisLayout how) {
    if (how.kind != LayoutKind::replicated) axes.push_back({axis, how});
  }
  AxisLayout on(Symbol axis) const;
};

/// A layout of a table. The default one is replicated along all axes.
class LayoutId {
 public:
  constexpr LayoutId() = default;
  constexpr explicit LayoutId(std::uint32_t value) : value_(value) {}
  constexpr bool replicated() const { return value_ == 0; }
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

/// `dp: batch, tp: +`; empty for a replicated value. `name` prints a name, with quotes if the
/// surrounding text needs them; a dimension named like a layout is always quoted.
std::string print(const Layout& layout, const SymbolTable& symbols,
                  llvm::function_ref<std::string(std::string_view)> name);

}  // namespace piper
