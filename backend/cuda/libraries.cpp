#include "backend/cuda/libraries.h"

#include <dlfcn.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string_view>

#include "runtime/shared_library.h"

namespace piper::backend::cuda {

namespace fs = std::filesystem;

namespace {

std::string variable(const Environment& environment, const char* name) {
  const auto found = environment.find(name);
  return found == environment.end() ? std::string() : found->second;
}

/// Files of the folder whose names begin with `name`, newest first: `libnvrtc.so.13`.
std::vector<fs::path> files_named(const std::string& folder, const std::string& name) {
  std::vector<fs::path> found;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    if (entry.path().filename().string().starts_with(name)) found.push_back(entry.path());
  }
  std::sort(found.rbegin(), found.rend());
  return found;
}

template <typename Function>
Function function_of(void* library, const char* name) {
  return reinterpret_cast<Function>(dlsym(library, name));
}

/// 13010 of NCCL or cuBLASLt's 130100: major, minor, patch in decimal places.
std::string spelled(std::size_t version, std::size_t major, std::size_t minor) {
  return std::to_string(version / major) + "." + std::to_string(version % major / minor) + "." +
         std::to_string(version % minor);
}

Found find_library(const Environment& environment, const char* name, const char* file,
                   const char* wheel, const std::function<std::string(void*)>& version) {
  Found found;
  found.name = name;
  found.install = std::string("`pip install ") + wheel +
                  "`, or a CUDA toolkit; PIPER_CUDA_PATH names the folder";
  if (void* library = open_library(environment, file, {}, found.path, found.reason))
    found.version = version(library);
  return found;
}

/// `2.11.0+cu130`, as a wheel's version.py or an archive's build-version says; the library itself
/// would have to be loaded, which is half a gigabyte.
std::string torch_version(const fs::path& folder) {
  std::string line;
  if (std::ifstream archive(folder / "build-version"); std::getline(archive, line)) return line;
  std::ifstream wheel(folder / "version.py");
  while (std::getline(wheel, line)) {
    constexpr std::string_view kName = "__version__ = '";
    if (line.starts_with(kName)) return line.substr(kName.size(), line.rfind('\'') - kName.size());
  }
  return {};
}

/// The reason why piper cannot use a library; empty if it can.
std::string torch_refusal(const std::string& file, const std::string& version) {
  if (std::string broken = runtime::broken_library(file); !broken.empty()) return broken;
  if (version.substr(0, version.find('+')) == kTorchVersion) return {};
  return "`" + file + "` is of PyTorch " + (version.empty() ? "an unknown version" : version) +
         ", and piper needs " + kTorchVersion;
}

struct DeviceFunctions {
#define CUDA_FUNCTION(symbol, parameters) int(*symbol) parameters = nullptr;
#include "backend/cuda/device_functions.def"
#undef CUDA_FUNCTION

  /// The name of a function that the library lacks, or null.
  const char* find(void* library) {
    runtime::LibraryFunctions of(library);
#define CUDA_FUNCTION(symbol, parameters) of.get(symbol, #symbol);
#include "backend/cuda/device_functions.def"
#undef CUDA_FUNCTION
    return of.missing();
  }
};

Gpu describe(const DeviceFunctions& cuda, int gpu, int gpus) {
  // CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, _MINOR.
  constexpr int kMajor = 75, kMinor = 76;
  // CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK, _NATIVE_ATOMIC_SUPPORTED.
  constexpr int kPerformanceRank = 1, kNativeAtomicSupported = 3;
  Gpu made;
  char name[256] = {}, bus[32] = {};
  int major = 0, minor = 0;
  cuda.cuDeviceGetName(name, sizeof name - 1, gpu);
  cuda.cuDeviceGetPCIBusId(bus, sizeof bus - 1, gpu);
  cuda.cuDeviceGetAttribute(&major, kMajor, gpu);
  cuda.cuDeviceGetAttribute(&minor, kMinor, gpu);
  cuda.cuDeviceTotalMem_v2(&made.bytes, gpu);
  made.name = name;
  made.bus = bus;
  made.capability = "sm_" + std::to_string(major) + std::to_string(minor);
  for (int other = 0; other < gpus; ++other) {
    if (other == gpu) continue;
    Link& link = made.links.emplace_back(Link{.to = other});
    int reaches = 0, atomics = 0;
    link.reaches = cuda.cuDeviceCanAccessPeer(&reaches, gpu, other) == 0 && reaches != 0;
    link.atomics =
        cuda.cuDeviceGetP2PAttribute(&atomics, kNativeAtomicSupported, gpu, other) == 0 &&
        atomics != 0;
    cuda.cuDeviceGetP2PAttribute(&link.rank, kPerformanceRank, gpu, other);
  }
  return made;
}

}  // namespace

std::vector<std::string> cuda_folders(const Environment& environment) {
  std::vector<std::string> folders;
  const auto add = [&](const std::string& root) {
    if (root.empty()) return;
    // A toolkit, a folder with `nvidia` from wheels, or its `nvidia/cu13`, which has NCCL beside
    // it.
    for (const char* below :
         {"", "/lib64", "/lib", "/nvidia/cu13/lib", "/nvidia/nccl/lib", "/../nccl/lib"})
      folders.push_back(root + below);
  };
  const std::string chosen = variable(environment, "PIPER_CUDA_PATH");
  add(chosen);
  if (!chosen.empty()) return folders;
  for (const char* name : {"CUDA_HOME", "CUDA_PATH"}) add(variable(environment, name));
  add("/usr/local/cuda");
  add(PIPER_CUDA_WHEELS);
  return folders;
}

void* open_library(const Environment& environment, const std::string& name,
                   const std::function<const char*(void*)>& lacks, std::string& path,
                   std::string& reason) {
  const std::string chosen = variable(environment, "PIPER_CUDA_PATH");
  reason = "there is no `" + name + "`" + (chosen.empty() ? "" : " in `" + chosen + "`");
  const auto opened = [&](const std::string& from) -> void* {
    void* const library = runtime::open_shared_library(from, RTLD_NOW | RTLD_GLOBAL, reason);
    if (library == nullptr) return nullptr;
    if (const char* missing = lacks ? lacks(library) : nullptr) {
      reason = "`" + from + "` has no `" + missing + "`";
      return nullptr;
    }
    path = from;
    return library;
  };
  for (const std::string& folder : cuda_folders(environment)) {
    for (const fs::path& file : files_named(folder, name)) {
      if (void* library = opened(file.string())) return library;
    }
  }
  if (!chosen.empty()) return nullptr;
  // Libraries on the loader's path; the loader's error for a missing name has no information.
  const std::string before = reason;
  for (const char* ending : {".13", ".12", ".2", ""}) {
    if (void* library = opened(name + ending)) return library;
  }
  reason = before;
  return nullptr;
}

Devices find_devices() {
  Devices devices;
  devices.driver.name = "NVIDIA driver";
  devices.driver.install = "install the driver of the GPU; in a container, start it with the GPU";
  void* const library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    devices.driver.reason = runtime::loader_error();
    return devices;
  }
  DeviceFunctions cuda;
  if (const char* const lacking = cuda.find(library)) {
    devices.driver.reason = std::string("`libcuda.so.1` has no `") + lacking + "`";
    return devices;
  }
  if (const int failed = cuda.cuInit(0); failed != 0) {
    devices.driver.reason = "`cuInit` failed with " + std::to_string(failed) +
                            (failed == 100 ? ": there is no GPU" : "");
    return devices;
  }
  int number = 0, gpus = 0;
  cuda.cuDriverGetVersion(&number);
  devices.driver.path = "libcuda.so.1";
  devices.driver.version =
      "CUDA " + std::to_string(number / 1000) + "." + std::to_string(number % 1000 / 10);
  cuda.cuDeviceGetCount(&gpus);
  for (int gpu = 0; gpu < gpus; ++gpu) devices.gpus.push_back(describe(cuda, gpu, gpus));
  return devices;
}

Found find_torch_cuda(const Environment& environment) {
  Found torch;
  torch.name = "LibTorch for CUDA";
  torch.install = std::string("`pip install torch==") + kTorchVersion +
                  "`; PIPER_TORCH_PATH names its folder `torch`";
  const std::string chosen = variable(environment, "PIPER_TORCH_PATH"),
                    root = chosen.empty() ? std::string(PIPER_CUDA_WHEELS) : chosen;
  torch.reason =
      "there is no `libtorch_cuda.so` in `" + root + "`" +
      (chosen.empty() ? ", and PIPER_TORCH_PATH names no folder"
                      : ", which PIPER_TORCH_PATH names, nor in `lib` or `torch/lib` below");
  for (const char* below : {"", "/lib", "/torch/lib"}) {
    const fs::path folder = root + below;
    const std::vector<fs::path> files = files_named(folder.string(), "libtorch_cuda.so");
    if (files.empty()) continue;
    torch.version = torch_version(folder.parent_path());
    torch.reason = torch_refusal(files.front().string(), torch.version);
    if (torch.reason.empty()) torch.path = files.front().string();
    break;
  }
  return torch;
}

std::vector<Found> find_libraries(const Environment& environment) {
  std::vector<Found> found;
  std::string builtins, ignored;
  open_library(environment, "libnvrtc-builtins.so", {}, builtins, ignored);
  found.push_back(find_library(
      environment, "NVRTC", "libnvrtc.so", "nvidia-cuda-nvrtc==13.0.88", [](void* library) {
        int major = 0, minor = 0;
        const auto version = function_of<int (*)(int*, int*)>(library, "nvrtcVersion");
        return version != nullptr && version(&major, &minor) == 0
                   ? std::to_string(major) + "." + std::to_string(minor)
                   : std::string("unknown");
      }));
  found.push_back(
      find_library(environment, "cuBLASLt", "libcublasLt.so", "nvidia-cublas", [](void* library) {
        const auto version = function_of<std::size_t (*)()>(library, "cublasLtGetVersion");
        return version != nullptr ? spelled(version(), 10000, 100) : std::string("unknown");
      }));
  found.push_back(
      find_library(environment, "NCCL", "libnccl.so", "nvidia-nccl-cu13", [](void* library) {
        int number = 0;
        const auto version = function_of<int (*)(int*)>(library, "ncclGetVersion");
        return version != nullptr && version(&number) == 0
                   ? spelled(static_cast<std::size_t>(number), 10000, 100)
                   : std::string("unknown");
      }));
  found.push_back(find_torch_cuda(environment));
  return found;
}

}  // namespace piper::backend::cuda
