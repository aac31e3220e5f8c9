#include "ir/dag/plan.h"

namespace piper::dag {

std::string_view buffer_class_name(BufferClass cls) {
  constexpr std::string_view kNames[] = {"parameters",    "gradients", "optimizer", "activations",
                                         "communication", "workspace", "scalars"};
  return kNames[static_cast<std::size_t>(cls)];
}

}  // namespace piper::dag
