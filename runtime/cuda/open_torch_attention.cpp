#include "runtime/cuda/torch_attention.h"
#include "runtime/shared_library.h"

namespace piper::runtime::cuda {

const TorchAttention* open_torch_attention(const TorchChoice& choice, bool deterministic,
                                           std::string& reason) {
  if (choice.library.empty()) {
    reason = choice.no_library;
    return nullptr;
  }
  void* const plugin = open_shared_library(choice.plugin, RTLD_NOW | RTLD_LOCAL, reason);
  if (plugin == nullptr) return nullptr;
  using Entry = const TorchAttention* (*)();
  const auto entry = reinterpret_cast<Entry>(dlsym(plugin, kTorchAttentionEntry));
  const TorchAttention* const torch = entry != nullptr ? entry() : nullptr;
  if (torch == nullptr || torch->version != kTorchAttentionVersion) {
    reason = "`" + choice.plugin + "` was built for another version of piper";
    return nullptr;
  }
  if (const char* const refused = torch->open(choice.library.c_str(), choice.version.c_str(),
                                              choice.gpu, deterministic ? 1 : 0)) {
    reason = refused;
    return nullptr;
  }
  return torch;
}

}  // namespace piper::runtime::cuda
