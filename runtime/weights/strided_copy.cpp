#include "runtime/weights/strided_copy.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <type_traits>

#include "runtime/half.h"
#include "runtime/kernel_math.h"

namespace piper::runtime {
namespace {

/// Gaps up to this many bytes are read with the elements around them: one call of the system costs
/// about as much.
constexpr std::uint64_t kReadGap = 4096;

template <typename Use>
decltype(auto) with_weight_type(StoredType type, Use&& use) {
  switch (type) {
    case StoredType::f64: return use(double{});
    case StoredType::f32: return use(float{});
    case StoredType::bf16: return use(piper_bf16{});
    case StoredType::f16: return use(Half{});
    default: std::abort();  // the types of a match are checked
  }
}

/// A value in another type. Narrow types take the f32 value, as the runtime rounds.
template <typename To, typename From>
To converted(From value) {
  if constexpr (std::is_same_v<To, From>) {
    return value;
  } else if constexpr (std::is_same_v<To, double> || std::is_same_v<To, float>) {
    return static_cast<To>(value);
  } else {
    return To(static_cast<float>(value));
  }
}

/// Whether finite values of one type may be infinite in another.
template <typename To, typename From>
constexpr bool may_overflow() {
  constexpr auto rank = [](auto zero) {
    if constexpr (std::is_same_v<decltype(zero), double>) return 3;
    if constexpr (std::is_same_v<decltype(zero), float>) return 2;
    return std::is_same_v<decltype(zero), piper_bf16> ? 1 : 0;
  };
  return rank(To{}) < rank(From{});
}

/// Converts `count` elements; both distances are in elements. The index of the first value that is
/// out of range, or `count`.
template <typename To, typename From>
std::uint64_t convert(const unsigned char* from, std::uint64_t from_distance, unsigned char* to,
                      std::uint64_t to_distance, std::uint64_t count) {
  if constexpr (std::is_same_v<To, From>) {
    if (from_distance == 1 && to_distance == 1) {
      std::memcpy(to, from, count * sizeof(To));
      return count;
    }
  }
  std::uint64_t first_beyond = count;
  for (std::uint64_t i = 0; i < count; ++i) {
    From value;
    std::memcpy(&value, from + i * from_distance * sizeof value, sizeof value);
    const To result = converted<To>(value);
    if constexpr (may_overflow<To, From>()) {
      if (std::isinf(static_cast<float>(result)) && first_beyond == count &&
          std::isfinite(static_cast<double>(value)))
        first_beyond = i;
    }
    std::memcpy(to + i * to_distance * sizeof result, &result, sizeof result);
  }
  return first_beyond;
}

/// The copy from the tensor to the parameter, along the factors.
StridedCopy along_factors(const MappedWeight& weight) {
  StridedCopy copy;
  copy.from = weight.offset;
  copy.to = weight.parameter_offset;
  const bool row_major = weight.parameter_strides.empty();
  std::uint64_t distance = 1;
  for (std::size_t k = weight.factors.size(); k-- > 0;) {
    const auto extent = static_cast<std::uint64_t>(weight.factors[k]);
    copy.axes.push_back(
        {extent, static_cast<std::uint64_t>(weight.strides[k]),
         row_major ? distance : static_cast<std::uint64_t>(weight.parameter_strides[k])});
    distance *= extent;
  }
  std::reverse(copy.axes.begin(), copy.axes.end());
  return copy;
}

/// Joins neighbouring axes that are one index of both sides, and leaves out those of one value.
void join_axes(std::vector<StridedAxis>& axes) {
  std::erase_if(axes, [](const StridedAxis& axis) { return axis.extent == 1; });
  for (std::size_t k = axes.size(); k-- > 1;) {
    StridedAxis& outer = axes[k - 1];
    const StridedAxis& inner = axes[k];
    if (outer.from != inner.from * inner.extent || outer.to != inner.to * inner.extent) continue;
    outer = {outer.extent * inner.extent, inner.from, inner.to};
    axes.erase(axes.begin() + static_cast<std::ptrdiff_t>(k));
  }
}

/// The axes from the outermost on, which is that with the largest distance.
class BoxSplitter {
 public:
  BoxSplitter(std::uint64_t begin, std::uint64_t end,
              const std::function<void(const StridedCopy&)>& use)
      : begin_(begin), end_(end), use_(use) {}

  void split(StridedCopy part) {
    const std::uint64_t last = part.last_to();
    if (last < begin_ || part.to >= end_) return;
    if (part.to >= begin_ && last < end_) return use_(part);
    // Not within the range as a whole, so it has an axis.
    const StridedAxis outer = part.axes.front();
    part.axes.erase(part.axes.begin());
    const std::uint64_t inner_last = part.last_to() - part.to, first_from = part.from,
                        first_to = part.to;
    for (std::uint64_t i = 0; i < outer.extent;) {
      part.from = first_from + i * outer.from;
      part.to = first_to + i * outer.to;
      if (part.to >= end_) return;
      // Further indices whose inner boxes lie in the range as a whole are one box.
      std::uint64_t count = 0;
      if (part.to >= begin_ && part.to + inner_last < end_)
        count = std::min(outer.extent - i, (end_ - 1 - inner_last - part.to) / outer.to + 1);
      if (count > 0) {
        StridedCopy box = part;
        box.axes.insert(box.axes.begin(), {count, outer.from, outer.to});
        use_(box);
        i += count;
      } else if (part.to + inner_last < begin_) {
        // The first index that reaches into the range.
        i += std::max<std::uint64_t>(1, (begin_ - inner_last - part.to) / outer.to);
      } else {
        split(part);
        ++i;
      }
    }
  }

 private:
  const std::uint64_t begin_, end_;
  const std::function<void(const StridedCopy&)>& use_;
};

}  // namespace

std::uint64_t StridedCopy::elements() const {
  std::uint64_t count = 1;
  for (const StridedAxis& axis : axes) count *= axis.extent;
  return count;
}

std::uint64_t StridedCopy::last_from() const {
  std::uint64_t last = from;
  for (const StridedAxis& axis : axes) last += (axis.extent - 1) * axis.from;
  return last;
}

std::uint64_t StridedCopy::last_to() const {
  std::uint64_t last = to;
  for (const StridedAxis& axis : axes) last += (axis.extent - 1) * axis.to;
  return last;
}

StridedCopy tensor_to_parameter(const MappedWeight& weight) { return along_factors(weight); }

StridedCopy parameter_to_tensor(const MappedWeight& weight) {
  StridedCopy copy = along_factors(weight);
  std::swap(copy.from, copy.to);
  for (StridedAxis& axis : copy.axes) std::swap(axis.from, axis.to);
  return copy;
}

void for_boxes_within(const StridedCopy& copy, std::uint64_t begin, std::uint64_t end,
                      const std::function<void(const StridedCopy&)>& use) {
  StridedCopy sorted = copy;
  std::stable_sort(sorted.axes.begin(), sorted.axes.end(),
                   [](const StridedAxis& a, const StridedAxis& b) { return a.to > b.to; });
  join_axes(sorted.axes);
  if (begin < end && copy.elements() > 0) BoxSplitter(begin, end, use).split(std::move(sorted));
}

void sort_by_source(StridedCopy& copy) {
  std::stable_sort(copy.axes.begin(), copy.axes.end(),
                   [](const StridedAxis& a, const StridedAxis& b) { return a.from > b.from; });
  join_axes(copy.axes);
}

/// Elements along the innermost axis of the source.
struct ElementCopier::Run {
  std::uint64_t from = 0, to = 0;
  StridedAxis axis;
  // The last position of the source that is worth reading with this run.
  std::uint64_t ahead = 0;
};

const unsigned char* ElementCopier::window(std::uint64_t first, std::uint64_t count,
                                           std::uint64_t ahead, const ElementSource& source,
                                           std::optional<Failure>& failure) {
  const std::uint64_t element = stored_type_bytes(source.type);
  if (first < window_first_ || first + count > window_end_) {
    const std::uint64_t read =
        std::max(count, std::min(window_bytes_ / element, std::max(ahead, first) - first + 1));
    window_.resize(read * element);
    window_first_ = window_end_ = first;
    failure = source.read(source.position + first * element, read * element, window_.data());
    if (failure) return nullptr;
    window_end_ = first + read;
  }
  return window_.data() + (first - window_first_) * element;
}

std::optional<Failure> ElementCopier::copy_run(const Run& run, const ElementSource& source,
                                               ElementBlock& block) {
  const std::uint64_t element = stored_type_bytes(source.type),
                      fits = std::max<std::uint64_t>(window_bytes_ / element, 1);
  const std::uint64_t distance = std::max<std::uint64_t>(run.axis.from, 1);
  const bool apart = distance > 1 && distance * element > kReadGap;
  const std::uint64_t at_once = apart ? 1 : (fits - 1) / distance + 1;
  std::optional<Failure> failure;
  for (std::uint64_t i = 0; i < run.axis.extent;) {
    const std::uint64_t count = std::min(at_once, run.axis.extent - i),
                        first = run.from + i * run.axis.from;
    const unsigned char* const from =
        window(first, (count - 1) * distance + 1, apart ? first : run.ahead, source, failure);
    if (from == nullptr) return failure;
    unsigned char* const to = block.bytes.data() + (run.to + i * run.axis.to - block.begin) *
                                                       stored_type_bytes(block.type);
    const std::uint64_t beyond = with_weight_type(source.type, [&](auto read) {
      return with_weight_type(block.type, [&](auto written) {
        return convert<decltype(written), decltype(read)>(from, distance, to, run.axis.to, count);
      });
    });
    if (beyond < count && !out_of_range) {
      out_of_range = {with_weight_type(source.type,
                                       [&](auto read) {
                                         std::memcpy(&read, from + beyond * distance * element,
                                                     sizeof read);
                                         return static_cast<double>(read);
                                       }),
                      first + beyond * distance};
    }
    i += count;
  }
  return std::nullopt;
}

std::optional<Failure> ElementCopier::copy(StridedCopy copy, const ElementSource& source,
                                           ElementBlock& block) {
  const std::uint64_t elements = copy.elements();
  if (elements == 0) return std::nullopt;
  sort_by_source(copy);
  if (copy.axes.empty()) copy.axes.push_back({1, 1, 1});
  window_first_ = window_end_ = 0;
  Run run;
  run.axis = copy.axes.back();
  copy.axes.pop_back();
  const std::uint64_t run_bytes =
      ((run.axis.extent - 1) * run.axis.from + 1) * stored_type_bytes(source.type);
  const std::uint64_t last = copy.last_from() + (run.axis.extent - 1) * run.axis.from;
  const bool dense = (last - copy.from) / 4 <= elements;
  // Runs one after the other: an odometer over the outer axes.
  std::vector<std::uint64_t> index(copy.axes.size(), 0);
  for (;;) {
    run.from = copy.from;
    run.to = copy.to;
    for (std::size_t k = 0; k < index.size(); ++k) {
      run.from += index[k] * copy.axes[k].from;
      run.to += index[k] * copy.axes[k].to;
    }
    const std::uint64_t gap_to_next =
        copy.axes.empty() ? 0 : copy.axes.back().from * stored_type_bytes(source.type);
    run.ahead = dense ? last : run.from + (run.axis.extent - 1) * run.axis.from;
    if (!dense && gap_to_next > 0 && gap_to_next <= run_bytes + kReadGap)
      run.ahead += (copy.axes.back().extent - 1 - index.back()) * copy.axes.back().from;
    if (auto failure = copy_run(run, source, block)) return failure;
    std::size_t k = index.size();
    while (k > 0 && ++index[k - 1] == copy.axes[k - 1].extent) index[--k] = 0;
    if (k == 0) return std::nullopt;
  }
}

bool is_weight_type(StoredType type) { return !is_integer(type) && type != StoredType::boolean; }

}  // namespace piper::runtime
