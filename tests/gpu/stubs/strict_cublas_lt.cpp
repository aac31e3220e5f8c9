// A libcublasLt.so that multiplies nothing: it offers one algorithm for every product, and notices
// operands and workspaces that are not aligned (`RULE ...` in the file that STUB_CUDA_LOG names).

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>

#define EXPORTED extern "C" __attribute__((visibility("default")))

namespace {

constexpr int kSuccess = 0;

struct Heuristic {
  std::uint64_t algorithm[8];
  std::size_t workspace;
  int state;
  float waves;
  int reserved[4];
};

void rule(const char* text) {
  const char* const path = std::getenv("STUB_CUDA_LOG");
  std::FILE* const log = path == nullptr ? stderr : std::fopen(path, "a");
  std::fprintf(log, "RULE %s\n", text);
  if (path != nullptr) std::fclose(log);
}
int make(void** handle) {
  *handle = std::malloc(1);
  return kSuccess;
}
int drop(void* object) {
  std::free(object);
  return kSuccess;
}

}  // namespace

EXPORTED std::size_t cublasLtGetVersion() { return 130100; }
EXPORTED const char* cublasLtGetStatusString(int) { return "in the words of the stub"; }
EXPORTED int cublasLtCreate(void** handle) { return make(handle); }
EXPORTED int cublasLtDestroy(void* handle) { return drop(handle); }
EXPORTED int cublasLtMatmulDescCreate(void** call, int, int) { return make(call); }
EXPORTED int cublasLtMatmulDescDestroy(void* call) { return drop(call); }
EXPORTED int cublasLtMatmulDescSetAttribute(void*, int, const void*, std::size_t) {
  return kSuccess;
}
EXPORTED int cublasLtMatrixLayoutCreate(void** layout, int, std::uint64_t, std::uint64_t,
                                        std::int64_t) {
  return make(layout);
}
EXPORTED int cublasLtMatrixLayoutDestroy(void* layout) { return drop(layout); }
EXPORTED int cublasLtMatrixLayoutSetAttribute(void*, int, const void*, std::size_t) {
  return kSuccess;
}
EXPORTED int cublasLtMatmulPreferenceCreate(void** preference) { return make(preference); }
EXPORTED int cublasLtMatmulPreferenceDestroy(void* preference) { return drop(preference); }
EXPORTED int cublasLtMatmulPreferenceSetAttribute(void*, int, const void*, std::size_t) {
  return kSuccess;
}
EXPORTED int cublasLtMatmulAlgoGetHeuristic(void*, void*, void*, void*, void*, void*, void*, int,
                                            Heuristic* found, int* count) {
  std::memset(found, 0, sizeof *found);
  *count = 1;
  return kSuccess;
}
EXPORTED int cublasLtMatmul(void*, void*, const void*, const void* a, void*, const void* b, void*,
                            const void*, const void* c, void*, void* d, void*, const void*,
                            void* workspace, std::size_t, void* stream) {
  for (const void* const operand : {a, b, c, static_cast<const void*>(d)}) {
    if (reinterpret_cast<std::uintptr_t>(operand) % 64 != 0)
      rule("an operand of a product is not aligned");
  }
  if (reinterpret_cast<std::uintptr_t>(workspace) % 256 != 0)
    rule("the workspace of a product is not aligned");
  if (stream == nullptr) rule("a product on the default stream");
  return kSuccess;
}
