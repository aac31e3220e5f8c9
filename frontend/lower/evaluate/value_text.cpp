#include "frontend/lower/evaluate/value_text.h"

#include <iterator>
#include <utility>

#include "llvm/Support/raw_ostream.h"

namespace piper::lower {
namespace {

constexpr std::size_t kShownElements = 64;

/// The largest unit that divides it.
std::string bytes_as_written(std::int64_t bytes) {
  constexpr std::pair<std::int64_t, const char*> kUnits[] = {{std::int64_t{1} << 30, "GiB"},
                                                             {std::int64_t{1} << 20, "MiB"},
                                                             {std::int64_t{1} << 10, "KiB"}};
  for (const auto& [unit, name] : kUnits) {
    if (bytes != 0 && bytes % unit == 0) return std::to_string(bytes / unit) + name;
  }
  return describe(Value(ByteCount{bytes}));
}

/// `0..4` for four of them and more, `3` for one.
std::string indices_as_written(const std::vector<std::uint32_t>& indices) {
  std::string text;
  for (std::size_t i = 0; i < indices.size();) {
    std::size_t end = i + 1;
    while (end < indices.size() && indices[end] == indices[end - 1] + 1) ++end;
    const bool range = end - i > 2;
    if (!range) end = i + 1;
    text += (text.empty() ? "" : ", ") + std::to_string(indices[i]);
    if (range) text += ".." + std::to_string(indices[end - 1] + 1);
    i = end;
  }
  return text;
}

std::string selector_as_written(const directive::Selector& selector, const SymbolTable& symbols) {
  std::string text = selector.pass ? std::string(pass_name(*selector.pass)) + " " : "";
  bool first = true;
  for (const directive::Coordinate& coordinate : selector.coordinates) {
    text += directive::coordinate_text(symbols.text(coordinate.name), coordinate.rest, first);
    if (!coordinate.all) text += "[" + indices_as_written(coordinate.indices) + "]";
    first = false;
  }
  if (first) text += "model";
  if (selector.part != directive::CommClass::none)
    text += "." + std::string(directive::part_name(selector.part));
  return text;
}

/// `pp[1]`, `pp[1] dp[0]` do not exist as one primary: each fixed axis by itself, and the mesh
/// where none is.
std::string devices_as_written(const DeviceSet& set, const directive::Surroundings& around) {
  std::string text;
  for (std::size_t axis = 0; axis < set.at.size(); ++axis) {
    if (set.at[axis] == DeviceSet::kWhole) continue;
    text += (text.empty() ? "" : " ") +
            std::string(around.context.text(around.mesh.axes[axis].name)) + "[" +
            std::to_string(set.at[axis]) + "]";
  }
  return text.empty() ? "all devices" : text;
}

std::string list_as_written(const Values& list, const directive::Surroundings& around,
                            const tensor::Graph* model) {
  std::string text;
  for (std::size_t i = 0; i < list.size() && i < kShownElements; ++i)
    text += (i == 0 ? "" : ", ") + value_text(list[i], around, model);
  if (list.size() > kShownElements)
    text += ", and " + std::to_string(list.size() - kShownElements) + " more";
  return "[" + text + "]";
}

}  // namespace

std::string value_text(const Value& value, const directive::Surroundings& around,
                       const tensor::Graph* model) {
  if (const auto* list = value.shared<Values>()) return list_as_written(*list, around, model);
  if (const auto* selector = value.shared<directive::Selector>())
    return selector_as_written(*selector, around.context.symbols);
  if (const auto* bytes = value.get<ByteCount>()) return bytes_as_written(bytes->bytes);
  if (const auto* devices = value.get<DeviceSetId>())
    return devices_as_written(around.device_sets[*devices], around);
  if (const auto* axis = value.get<AxisValue>())
    return std::string(around.context.text(around.mesh.axes[axis->axis].name)) + ", " +
           describe(value);
  if (const auto* tensor = value.get<TensorValue>(); tensor != nullptr && model != nullptr)
    return tensor::print(model->value(tensor->id).type, around.context.symbols);
  return describe(value);
}

}  // namespace piper::lower
