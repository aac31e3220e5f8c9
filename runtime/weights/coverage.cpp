#include <algorithm>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/weights/export_weights.h"

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

Failure incomplete(const std::string& tensor, const std::string& reason) {
  return {.code = kMapIncomplete,
          .message = "the names do not fill " + shown_name(tensor) + " exactly once: " + reason,
          .hint = "name a parameter for each of its elements, and one alone"};
}

class TensorCoverage {
 public:
  TensorCoverage(const std::string& tensor, std::uint64_t elements)
      : tensor_(tensor), elements_(elements) {}

  void add(const MappedWeight& weight) { weights_.push_back(&weight); }

  std::optional<Failure> check() {
    // A parameter under another name, and as it is.
    if (weights_.size() == 1) {
      StridedCopy copy = parameter_to_tensor(*weights_[0]);
      sort_by_source(copy);
      const bool one_run = copy.axes.empty() || (copy.axes.size() == 1 && copy.axes[0].to == 1);
      if (one_run && copy.to == 0 && copy.elements() == elements_) return std::nullopt;
    }
    for (std::uint64_t begin = 0; begin < elements_; begin += kWindow) {
      if (auto failure = check(begin, std::min(begin + kWindow, elements_))) return failure;
    }
    return std::nullopt;
  }

 private:
  std::optional<Failure> check(std::uint64_t begin, std::uint64_t end) {
    filled_.assign(end - begin, false);
    std::optional<Failure> failure;
    for (const MappedWeight* const weight : weights_) {
      for_boxes_within(parameter_to_tensor(*weight), begin, end, [&](const StridedCopy& box) {
        for_each_position(box, [&](std::uint64_t position) {
          if (filled_[position - begin] && !failure)
            failure = incomplete(tensor_, "its element `" + std::to_string(position) + "` is in " +
                                              shown_name(weight->parameter) +
                                              " and in another place, too");
          filled_[position - begin] = true;
        });
      });
      if (failure) return failure;
    }
    const auto empty = std::find(filled_.begin(), filled_.end(), false);
    if (empty == filled_.end()) return std::nullopt;
    return incomplete(
        tensor_, "its element `" +
                     std::to_string(begin + static_cast<std::uint64_t>(empty - filled_.begin())) +
                     "` is in no parameter");
  }

  const std::string tensor_;
  const std::uint64_t elements_;
  std::vector<const MappedWeight*> weights_;
  std::vector<bool> filled_;
};

}  // namespace

std::optional<Failure> check_coverage(const WeightMap& map) {
  std::map<std::string_view, TensorCoverage> tensors;
  for (const MappedWeight& weight : map.weights) {
    std::uint64_t elements = 1;
    for (const std::int64_t dim : weight.tensor_dims) elements *= static_cast<std::uint64_t>(dim);
    tensors.try_emplace(weight.tensor, weight.tensor, elements).first->second.add(weight);
  }
  for (auto& [name, tensor] : tensors) {
    if (auto failure = tensor.check()) return failure;
  }
  return std::nullopt;
}

}  // namespace piper::runtime
