#include "runtime/weights/coverage.h"

#include <algorithm>
#include <utility>

#include "runtime/weights/weight_files.h"

namespace piper::runtime {
namespace {

/// Elements that are counted at once, one bit each.
constexpr std::uint64_t kWindow = std::uint64_t{1} << 26;

/// Calls `use` with the position on the side `to` of every element.
template <typename Use>
void for_each_position(const StridedCopy& box, const Use& use) {
  std::vector<std::uint64_t> index(box.axes.size(), 0);
  for (;;) {
    std::uint64_t position = box.to;
    for (std::size_t k = 0; k < index.size(); ++k) position += index[k] * box.axes[k].to;
    const StridedAxis inner = box.axes.empty() ? StridedAxis{} : box.axes.back();
    for (std::uint64_t i = 0; i < inner.extent; ++i) use(position + i * inner.to);
    std::size_t k = index.empty() ? 0 : index.size() - 1;
    while (k > 0 && ++index[k - 1] == box.axes[k - 1].extent) index[--k] = 0;
    if (k == 0) return;
  }
}

}  // namespace

void Coverage::add(StridedCopy copy, std::string_view owner) {
  parts_.push_back({std::move(copy), owner});
}

bool Coverage::is_one_permutation() const {
  if (parts_.size() != 1 || parts_[0].copy.to != 0) return false;
  std::vector<StridedAxis> axes = parts_[0].copy.axes;
  std::erase_if(axes, [](const StridedAxis& axis) { return axis.extent == 1; });
  std::sort(axes.begin(), axes.end(),
            [](const StridedAxis& a, const StridedAxis& b) { return a.to < b.to; });
  std::uint64_t distance = 1;
  for (const StridedAxis& axis : axes) {
    if (axis.to != distance) return false;
    distance *= axis.extent;
  }
  return distance == elements_;
}

std::optional<std::string> Coverage::fault() {
  if (is_one_permutation()) return std::nullopt;
  for (std::uint64_t begin = 0; begin < elements_; begin += kWindow) {
    if (auto found = fault(begin, std::min(begin + kWindow, elements_))) return found;
  }
  return std::nullopt;
}

std::optional<std::string> Coverage::fault(std::uint64_t begin, std::uint64_t end) {
  filled_.assign(end - begin, false);
  std::optional<std::string> found;
  for (const Part& part : parts_) {
    for_boxes_within(part.copy, begin, end, [&](const StridedCopy& box) {
      for_each_position(box, [&](std::uint64_t position) {
        if (filled_[position - begin] && !found)
          found = "its element `" + std::to_string(position) + "` is in " + shown_name(part.owner) +
                  " and in another place, too";
        filled_[position - begin] = true;
      });
    });
    if (found) return found;
  }
  const auto empty = std::find(filled_.begin(), filled_.end(), false);
  if (empty == filled_.end()) return std::nullopt;
  return "its element `" +
         std::to_string(begin + static_cast<std::uint64_t>(empty - filled_.begin())) +
         "` is in no parameter";
}

}  // namespace piper::runtime
