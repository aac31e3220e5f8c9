// A part of the plugin with LibTorch: a client of the store that torchrun's agent keeps.
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include <chrono>
#include <cstring>
#include <exception>
#include <string>

#include "runtime/abi.h"
#include "runtime/processes/agent_store.h"

namespace piper::runtime {

namespace {

void put(const std::string& text, char* to, std::size_t bytes) {
  const std::size_t count = std::min(text.size(), bytes - 1);
  std::memcpy(to, text.data(), count);
  to[count] = 0;
}

template <typename Use>
int with_store(const char* host, std::uint16_t port, double seconds, char* reason,
               std::size_t bytes, const Use& use) {
  try {
    c10d::TCPStoreOptions options;
    options.port = port;
    options.waitWorkers = false;
    options.timeout = std::chrono::milliseconds(static_cast<std::int64_t>(seconds * 1000));
    use(*c10::make_intrusive<c10d::TCPStore>(host, options));
    return 0;
  } catch (const std::exception& error) {
    const std::string text = error.what();
    put(text.substr(0, text.find('\n')), reason, bytes);
    return 1;
  }
}

int set(const char* host, std::uint16_t port, double seconds, const char* key, const char* value,
        char* reason, std::size_t bytes) {
  return with_store(host, port, seconds, reason, bytes, [&](c10d::Store& store) {
    const std::string text = value;
    store.set(key, std::vector<std::uint8_t>(text.begin(), text.end()));
  });
}

int get(const char* host, std::uint16_t port, double seconds, const char* key, char* value,
        char* reason, std::size_t bytes) {
  return with_store(host, port, seconds, reason, bytes, [&](c10d::Store& store) {
    const std::vector<std::uint8_t> found = store.get(key);
    put(std::string(found.begin(), found.end()), value, bytes);
  });
}

constexpr AgentStoreCalls kCalls = {.abi_version = PIPER_ABI_VERSION, .set = set, .get = get};

}  // namespace

extern "C" __attribute__((visibility("default"))) const AgentStoreCalls* piper_agent_store_calls() {
  return &kCalls;
}

}  // namespace piper::runtime
