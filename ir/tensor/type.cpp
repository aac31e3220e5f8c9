#include "ir/tensor/type.h"

#include <algorithm>
#include <limits>

#include "ir/text/print_text.h"

namespace piper::tensor {

std::optional<DType> parse_dtype(std::string_view text) {
  for (std::size_t i = 0; i < kDTypes.size(); ++i) {
    if (text == kDTypes[i].name) return static_cast<DType>(i);
  }
  return std::nullopt;
}

std::int64_t Type::elements() const {
  // Extents may come from hand-written text: a product beyond 64 bits saturates at the largest
  // number that `bytes` can still scale.
  constexpr std::int64_t kLargest = std::numeric_limits<std::int64_t>::max() / 8;
  std::int64_t count = 1;
  for (const Dim& dim : dims) {
    if (__builtin_mul_overflow(count, dim.extent, &count) || count > kLargest) return kLargest;
  }
  return count;
}

std::optional<std::size_t> Type::find(Symbol name) const {
  for (std::size_t i = 0; i < dims.size(); ++i) {
    if (dims[i].name == name) return i;
  }
  return std::nullopt;
}

const Dim* Type::samples() const {
  const auto found =
      std::find_if(dims.begin(), dims.end(), [](const Dim& dim) { return dim.sampled; });
  return found == dims.end() ? nullptr : &*found;
}

std::string print(const Type& type, const SymbolTable& symbols) {
  std::string text(dtype_name(type.dtype));
  text += '[';
  for (std::size_t i = 0; i < type.dims.size(); ++i) {
    if (i > 0) text += ", ";
    text += name_text(symbols.text(type.dims[i].name)) + ": ";
    text += std::to_string(type.dims[i].extent);
    if (type.dims[i].sampled) text += '*';
  }
  return text + ']';
}

}  // namespace piper::tensor
