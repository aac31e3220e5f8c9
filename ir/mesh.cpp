#include "ir/mesh.h"

namespace piper {

std::uint64_t Mesh::devices() const {
  std::uint64_t count = 1;
  for (const MeshAxis& axis : axes) count *= axis.size;
  return count;
}

std::size_t Mesh::find(Symbol axis) const {
  std::size_t i = 0;
  while (i < axes.size() && axes[i].name != axis) ++i;
  return i;
}

AxisMask DeviceSet::whole_axes() const {
  AxisMask mask = 0;
  for (std::size_t i = 0; i < at.size(); ++i) {
    if (at[i] == kWhole) mask |= AxisMask{1} << i;
  }
  return mask;
}

bool DeviceSet::intersects(const DeviceSet& other) const {
  for (std::size_t i = 0; i < at.size(); ++i) {
    if (at[i] != kWhole && other.at[i] != kWhole && at[i] != other.at[i]) return false;
  }
  return true;
}

bool DeviceSet::contains(const DeviceSet& other) const {
  for (std::size_t i = 0; i < at.size(); ++i) {
    if (at[i] != kWhole && at[i] != other.at[i]) return false;
  }
  return true;
}

std::uint64_t DeviceSet::devices(const Mesh& mesh) const {
  std::uint64_t count = 1;
  for (std::size_t i = 0; i < at.size(); ++i) count *= at[i] == kWhole ? mesh.axes[i].size : 1;
  return count;
}

bool DeviceSet::contains_device(const std::vector<std::uint32_t>& coordinates) const {
  for (std::size_t i = 0; i < at.size(); ++i) {
    if (at[i] != kWhole && static_cast<std::uint32_t>(at[i]) != coordinates[i]) return false;
  }
  return true;
}

DeviceSetId DeviceSetTable::intern(const DeviceSet& set) {
  const auto [entry, fresh] = ids_.try_emplace(set.at, DeviceSetId::at(sets_.size()));
  if (fresh) sets_.push_back(set);
  return entry->second;
}

std::string place_name(const DeviceSet& set, const Mesh& mesh, const SymbolTable& symbols) {
  std::string name;
  for (std::size_t i = 0; i < set.at.size(); ++i) {
    if (set.at[i] == DeviceSet::kWhole) continue;
    if (!name.empty()) name += '.';
    name += symbols.text(mesh.axes[i].name);
    name += std::to_string(set.at[i]);
  }
  return name.empty() ? std::string(symbols.text(mesh.name)) : name;
}

std::string print(const DeviceSet& set, const Mesh& mesh, const SymbolTable& symbols) {
  std::string text = std::string(symbols.text(mesh.name)) + "[";
  bool first = true;
  for (std::size_t i = 0; i < set.at.size(); ++i) {
    if (set.at[i] == DeviceSet::kWhole) continue;
    if (!first) text += ", ";
    first = false;
    text += std::string(symbols.text(mesh.axes[i].name)) + ": " + std::to_string(set.at[i]);
  }
  return text + "]";
}

std::vector<std::uint32_t> coordinates_of(const Mesh& mesh, std::uint64_t rank) {
  std::vector<std::uint32_t> coordinates(mesh.axes.size());
  for (std::size_t i = mesh.axes.size(); i-- > 0;) {
    coordinates[i] = static_cast<std::uint32_t>(rank % mesh.axes[i].size);
    rank /= mesh.axes[i].size;
  }
  return coordinates;
}

std::uint64_t rank_of(const Mesh& mesh, const std::vector<std::uint32_t>& coordinates) {
  std::uint64_t rank = 0;
  for (std::size_t i = 0; i < mesh.axes.size(); ++i)
    rank = rank * mesh.axes[i].size + coordinates[i];
  return rank;
}

}  // namespace piper
