#include "ir/layout/layout.h"

#include <algorithm>

namespace piper {

AxisLayout Layout::on(Symbol axis) const {
  for (const Axis& each : axes) {
    if (each.name == axis) return each.how;
  }
  return {};
}

namespace {

/// Axes of one dimension or bucket keep their order; these groups are sorted by the first name in
/// each, so that the result does not depend on symbol numbers.
void sort_groups(Layout& layout, const SymbolTable& symbols) {
  const auto together = [](const AxisLayout& a, const AxisLayout& b) {
    return a == b && a.kind != LayoutKind::partial;
  };
  const auto first_name = [&](const Layout::Axis& axis) {
    std::string_view first = symbols.text(axis.name);
    for (const Layout::Axis& other : layout.axes) {
      if (together(axis.how, other.how)) first = std::min(first, symbols.text(other.name));
    }
    return first;
  };
  std::vector<std::pair<std::string_view, Layout::Axis>> keyed;
  for (const Layout::Axis& axis : layout.axes) keyed.emplace_back(first_name(axis), axis);
  std::stable_sort(keyed.begin(), keyed.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  for (std::size_t i = 0; i < keyed.size(); ++i) layout.axes[i] = keyed[i].second;
}

}  // namespace

LayoutId LayoutTable::intern(Layout layout) {
  sort_groups(layout, symbols_);
  const auto [entry, fresh] = ids_.try_emplace({layout.axes.begin(), layout.axes.end()},
                                               static_cast<std::uint32_t>(layouts_.size()));
  if (fresh) layouts_.push_back(std::move(layout));
  return entry->second;
}

std::string print(const Layout& layout, const SymbolTable& symbols,
                  llvm::function_ref<std::string(std::string_view)> name) {
  std::string text;
  for (const Layout::Axis& axis : layout.axes) {
    text += (text.empty() ? "" : ", ") + name(symbols.text(axis.name)) + ": ";
    switch (axis.how.kind) {
      case LayoutKind::replicated: break;
      case LayoutKind::partial: text += '+'; break;
      case LayoutKind::flat_sharded: text += "flat"; break;
      case LayoutKind::sharded: {
        const std::string_view dim = symbols.text(axis.how.dim);
        text += dim == "flat" ? "\"flat\"" : name(dim);
      }
    }
  }
  return text;
}

}  // namespace piper
