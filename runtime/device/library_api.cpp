#include "runtime/device/library_api.h"

namespace piper::runtime {

#define CALL(name, KIND, operands, results, family) \
  static_assert((operands) <= PIPER_MAX_CALL_OPERANDS && (results) <= PIPER_MAX_CALL_RESULTS);
#include "runtime/calls.def"
#undef CALL

std::string library_failure(int status, const LibraryReport& report) {
  if (status == kLibraryOverrun)
    return "a library call wanted `" + std::to_string(report.value) +
           "` bytes more than its planned workspace";
  return report.error ? report.error : "a library call failed";
}

struct DirectHost {
  static DirectCalls& calls(PiperRank* rank) { return *static_cast<DirectCalls*>(rank->runtime); }
  static const LibraryCalls* library(PiperRank* rank, std::uint32_t) {
    return &calls(rank).library_;
  }
  static int failed(PiperRank* rank, std::uint32_t, int status, const LibraryReport& report) {
    calls(rank).failure_ = library_failure(status, report);
    return status;
  }
  static int fail(PiperRank* rank, std::uint32_t, const PiperSourceLocation*, const char* message,
                  std::int64_t value) {
    calls(rank).failure_ = std::string(message) + ": `" + std::to_string(value) + "`";
    return 1;
  }
};

const PiperApi& DirectCalls::api() {
  static constexpr PiperApi kApi = [] {
    PiperApi api{};
    api.abi_version = PIPER_ABI_VERSION;
    api.fail = DirectHost::fail;
    api.call = LibraryApi<DirectHost>::call;
    return api;
  }();
  return kApi;
}

}  // namespace piper::runtime
