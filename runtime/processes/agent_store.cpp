#include "runtime/processes/agent_store.h"

#include "runtime/device/library_calls.h"
#include "runtime/processes/peer_text.h"
#include "runtime/shared_library.h"

namespace piper::runtime {

namespace {

Failure unreachable(const Launch& launch, const char* reason) {
  return {
      .code = kProcessesApart,
      .message = "torchrun's store at `" + launch.host + ":" + std::to_string(launch.port) +
                 "` does not answer: " + peer_text(reason),
      .hint =
          "TORCHELASTIC_USE_AGENT_STORE says that torchrun listens there; if it does not, unset the variable, and rank 0 listens"};
}

}  // namespace

AgentStore open_agent_store(const Options& options, double seconds, Failure& failure) {
  const std::string path = torch_plugin_path(options);
  std::string reason = "`" + path + "` was built for another version";
  void* const library = open_shared_library(path, RTLD_NOW | RTLD_LOCAL, reason);
  using Entry = const AgentStoreCalls* (*)();
  const auto entry =
      library == nullptr ? nullptr : reinterpret_cast<Entry>(dlsym(library, kAgentStoreEntry));
  const AgentStoreCalls* const calls = entry == nullptr ? nullptr : entry();
  if (calls == nullptr || calls->abi_version != PIPER_ABI_VERSION) {
    failure = {
        .code = kPluginUnavailable,
        .message = "torchrun's store is reached by LibTorch, and " + reason,
        .hint =
            "name its folder in `PIPER_PLUGINS`, or set MASTER_PORT to another port and unset TORCHELASTIC_USE_AGENT_STORE"};
    return {};
  }
  constexpr std::size_t kBytes = 512;
  AgentStore store;
  store.set = [calls, seconds](const Launch& launch, const std::string& key,
                               const std::string& value) -> std::optional<Failure> {
    char reason[kBytes] = "";
    if (calls->set(launch.host.c_str(), launch.port, seconds, key.c_str(), value.c_str(), reason,
                   kBytes) == 0)
      return std::nullopt;
    return unreachable(launch, reason);
  };
  store.get = [calls](const Launch& launch, const std::string& key, double within,
                      Failure& failed) -> std::optional<std::string> {
    char reason[kBytes] = "", value[kBytes] = "";
    if (calls->get(launch.host.c_str(), launch.port, within, key.c_str(), value, reason, kBytes) ==
        0)
      return value;
    failed = unreachable(launch, reason);
    return std::nullopt;
  };
  return store;
}

}  // namespace piper::runtime
