#pragma once
// Element types by LibTorch's names. A new type needs a row here, or this does not compile.

#include <c10/core/ScalarType.h>

#include <cstdint>
#include <cstdlib>

#include "runtime/abi.h"

namespace piper::runtime {

/// A number outside PiperDType is a fault of this program.
inline c10::ScalarType scalar_type(std::uint32_t dtype) {
  switch (static_cast<PiperDType>(dtype)) {
    case PIPER_F64: return c10::ScalarType::Double;
    case PIPER_F32: return c10::ScalarType::Float;
    case PIPER_I64: return c10::ScalarType::Long;
    case PIPER_BF16: return c10::ScalarType::BFloat16;
  }
  std::abort();
}

}  // namespace piper::runtime
