#include "runtime/transport/element_sums.h"

#include "runtime/dtypes.h"

namespace piper::runtime {

namespace {

template <typename T>
void add(T* sum, const T* value, std::uint64_t count) {
  for (std::uint64_t i = 0; i < count; ++i) sum[i] = sum[i] + value[i];
}

}  // namespace

void add_elements(std::uint32_t dtype, unsigned char* sum, const unsigned char* value,
                  std::uint64_t count) {
  with_element(dtype, [&](auto zero) {
    add(reinterpret_cast<decltype(zero)*>(sum), reinterpret_cast<const decltype(zero)*>(value),
        count);
  });
}

}  // namespace piper::runtime
