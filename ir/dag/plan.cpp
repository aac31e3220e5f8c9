#include "ir/dag/plan.h"

namespace piper::dag {

std::string_view buffer_class_name(BufferClass cls) {
  constexpr std::string_view kNames[] = {
      "parameters",    "gradients", "optimizer", "unreduced",           "gathered", "activations",
      "communication", "workspace", "offloaded", "offloaded_optimizer", "scalars"};
  return kNames[static_cast<std::size_t>(cls)];
}

bool is_state(BufferClass cls) {
  switch (cls) {
    case BufferClass::parameters:
    case BufferClass::gradients:
    case BufferClass::optimizer:
    case BufferClass::offloaded_optimizer:
    case BufferClass::scalars: return true;
    case BufferClass::unreduced:
    case BufferClass::gathered:
    case BufferClass::activations:
    case BufferClass::communication:
    case BufferClass::workspace:
    case BufferClass::offloaded: break;
  }
  return false;
}

BufferClass optimizer_class(const Bucket& bucket) {
  return bucket.state_on_host ? BufferClass::offloaded_optimizer : BufferClass::optimizer;
}

bool is_on_host(BufferClass cls) {
  return cls == BufferClass::offloaded || cls == BufferClass::offloaded_optimizer;
}

}  // namespace piper::dag
