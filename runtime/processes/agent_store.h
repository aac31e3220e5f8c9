#pragma once
// torchrun's store, by LibTorch's TCPStore, which implements its protocol: in a plugin, opened when
// a run needs it.
//
//   ProcessGroup::join(launch, {.agent_store = open_agent_store(options, failure)}, failure);

#include "runtime/options.h"
#include "runtime/processes/process_group.h"

namespace piper::runtime {

/// The functions of the plugin, under the name kAgentStoreEntry. All return 0, or 1 and a reason of
/// at most `bytes` bytes, with its terminating zero.
struct AgentStoreCalls {
  std::uint32_t abi_version;
  int (*set)(const char* host, std::uint16_t port, double seconds, const char* key,
             const char* value, char* reason, std::size_t bytes);
  /// Waits for the key. `value` has `bytes` bytes, too.
  int (*get)(const char* host, std::uint16_t port, double seconds, const char* key, char* value,
             char* reason, std::size_t bytes);
};
inline constexpr const char* kAgentStoreEntry = "piper_agent_store_calls";

/// Without functions, and with the reason in `failure`, if the plugin cannot be opened.
AgentStore open_agent_store(const Options& options, double seconds, Failure& failure);

}  // namespace piper::runtime
