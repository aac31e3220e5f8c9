#include "runtime/cuda/nccl.h"

#include <climits>

#include "runtime/shared_library.h"

namespace piper::runtime::cuda {

namespace {

// Numbers of nccl.h.
constexpr unsigned kMagic = 0xcafebeef;  // NCCL_API_MAGIC
constexpr int kUndefined = INT_MIN;      // NCCL_CONFIG_UNDEF_INT
constexpr int kSum = 0;                  // ncclSum
constexpr int kMinVersion = 21803;       // the first version with the settings of NcclConfig
constexpr int kInt64 = 4, kFloat32 = 7, kFloat64 = 8, kBfloat16 = 9;

int type_of(std::uint32_t dtype) {
  switch (static_cast<PiperDType>(dtype)) {
    case PIPER_F64: return kFloat64;
    case PIPER_F32: return kFloat32;
    case PIPER_I64: return kInt64;
    case PIPER_BF16: return kBfloat16;
  }
  return -1;
}

struct NcclFunctions {
#define NCCL_FUNCTION(result, symbol, parameters) result(*symbol) parameters = nullptr;
#include "runtime/cuda/nccl_functions.def"
#undef NCCL_FUNCTION

  /// The name of a function that the library lacks, or null.
  const char* find(void* library) {
    LibraryFunctions of(library);
#define NCCL_FUNCTION(result, symbol, parameters) of.get(symbol, #symbol);
#include "runtime/cuda/nccl_functions.def"
#undef NCCL_FUNCTION
    return of.missing();
  }
};

std::string spelled(int version) {
  return std::to_string(version / 10000) + "." + std::to_string(version % 10000 / 100) + "." +
         std::to_string(version % 100);
}

class LibraryNccl final : public Nccl {
 public:
  LibraryNccl(const NcclFunctions& functions, int version) : nccl_(functions), version_(version) {}

  std::string name() const override { return "NCCL " + spelled(version_); }
  std::string text_of(NcclResult result, NcclCommunicator communicator) const override {
    std::string text = nccl_.ncclGetErrorString(result);
    if (const char* last = nccl_.ncclGetLastError(communicator); last != nullptr && *last != 0)
      text += ": " + std::string(last);
    while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
    return text;
  }

  NcclResult make_id(NcclId* id) override { return nccl_.ncclGetUniqueId(id); }
  NcclResult open(NcclCommunicator* made, std::uint32_t members, const NcclId& id,
                  std::uint32_t self, std::uint32_t most_blocks) override {
    NcclConfig config{.size = sizeof(NcclConfig),
                      .magic = kMagic,
                      .version = kMinVersion,
                      .blocking = 0,
                      .cga_cluster_size = kUndefined,
                      .min_ctas = kUndefined,
                      .max_ctas = most_blocks == 0 ? kUndefined : static_cast<int>(most_blocks),
                      .net_name = nullptr,
                      .split_share = kUndefined};
    void* communicator = nullptr;
    const NcclResult result = nccl_.ncclCommInitRankConfig(&communicator, static_cast<int>(members),
                                                           id, static_cast<int>(self), &config);
    *made = static_cast<NcclCommunicator>(communicator);
    return result;
  }
  NcclResult state(NcclCommunicator communicator, NcclResult* state) override {
    return nccl_.ncclCommGetAsyncError(communicator, state);
  }
  NcclResult finalize(NcclCommunicator communicator) override {
    return nccl_.ncclCommFinalize(communicator);
  }
  NcclResult destroy(NcclCommunicator communicator) override {
    return nccl_.ncclCommDestroy(communicator);
  }
  NcclResult abort(NcclCommunicator communicator) override {
    return nccl_.ncclCommAbort(communicator);
  }

  NcclResult group_start() override { return nccl_.ncclGroupStart(); }
  NcclResult group_end() override { return nccl_.ncclGroupEnd(); }
  NcclResult enqueue(NcclCommunicator communicator, CudaStream cuda_stream,
                     const NcclCall& call) override {
    const int type = type_of(call.dtype), peer = static_cast<int>(call.peer);
    switch (call.kind) {
      case NcclKind::send:
        return nccl_.ncclSend(call.from, call.count, type, peer, communicator, cuda_stream);
      case NcclKind::receive:
        return nccl_.ncclRecv(call.to, call.count, type, peer, communicator, cuda_stream);
      case NcclKind::all_reduce:
        return nccl_.ncclAllReduce(call.from, call.to, call.count, type, kSum, communicator,
                                   cuda_stream);
      case NcclKind::broadcast:
        return nccl_.ncclBroadcast(call.from, call.to, call.count, type, peer, communicator,
                                   cuda_stream);
      case NcclKind::reduce:
        return nccl_.ncclReduce(call.from, call.to, call.count, type, kSum, peer, communicator,
                                cuda_stream);
      case NcclKind::reduce_scatter:
        return nccl_.ncclReduceScatter(call.from, call.to, call.count, type, kSum, communicator,
                                       cuda_stream);
      case NcclKind::all_gather:
        return nccl_.ncclAllGather(call.from, call.to, call.count, type, communicator, cuda_stream);
    }
    return kNcclInvalidUsage;
  }

 private:
  const NcclFunctions nccl_;
  const int version_;
};

}  // namespace

const char* name_of(NcclKind kind) {
  constexpr const char* kNames[] = {"ncclSend",      "ncclRecv",   "ncclAllReduce",
                                    "ncclBroadcast", "ncclReduce", "ncclReduceScatter",
                                    "ncclAllGather"};
  return kNames[static_cast<std::size_t>(kind)];
}

std::unique_ptr<Nccl> open_nccl(const std::string& path, Failure& failure) {
  std::string reason;
  void* const library = open_shared_library(path, RTLD_NOW | RTLD_LOCAL, reason);
  if (library == nullptr) {
    failure = {.code = kCudaMissing,
               .message = "NCCL, which several processes need, is not here: " + reason,
               .hint = "`piper doctor` lists what was found and what to install"};
    return nullptr;
  }
  NcclFunctions functions;
  const char* const lacking = functions.find(library);
  int version = 0;
  if (functions.ncclGetVersion != nullptr) functions.ncclGetVersion(&version);
  if (version < kMinVersion || lacking != nullptr) {
    failure = {
        .code = kCudaTooOld,
        .message =
            "NCCL in `" + path + "` is version " + spelled(version) +
            (lacking != nullptr ? ", and lacks `" + std::string(lacking) + "`" : std::string()) +
            "; " + spelled(kMinVersion) + " or newer is needed",
        .hint =
            "`pip install nvidia-nccl-cu13`, or a newer system package; PIPER_CUDA_PATH names the folder"};
    return nullptr;
  }
  return std::make_unique<LibraryNccl>(functions, version);
}

}  // namespace piper::runtime::cuda
