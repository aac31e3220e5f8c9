#pragma once
// The ABI numbers of parameter initializations.

#include "backend/dtypes.h"
#include "ir/directive/directive.h"
#include "ir/tensor/graph.h"
#include "runtime/abi.h"

namespace piper::backend {

constexpr PiperInitKind abi_init(tensor::Init::Kind kind) {
  switch (kind) {
    case tensor::Init::Kind::normal: return PIPER_NORMAL;
    case tensor::Init::Kind::uniform: return PIPER_UNIFORM;
    case tensor::Init::Kind::zeros: return PIPER_ZEROS;
    case tensor::Init::Kind::ones: return PIPER_ONES;
    case tensor::Init::Kind::constant: break;
  }
  return PIPER_CONSTANT;
}

}  // namespace piper::backend
