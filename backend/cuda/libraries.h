#pragma once
// Finds and opens the libraries of CUDA at run time: from the user's toolkit, from wheels, or from
// `PIPER_CUDA_PATH`. None of their headers are used.
//
//   for (const Found& each : find_libraries(environment)) each.version;   // listed by `piper doctor`

#include <functional>
#include <map>
#include <string>
#include <vector>

namespace piper::backend::cuda {

/// The version of LibTorch whose allocations attention.h counts and with which the plugin is built.
inline constexpr const char* kTorchVersion = "2.11.0";

using Environment = std::map<std::string, std::string>;

/// Folders that may have libraries of CUDA, best first. If `PIPER_CUDA_PATH` or `PIPER_TORCH_PATH`
/// is set, only that folder is searched for its libraries.
std::vector<std::string> cuda_folders(const Environment& environment);

/// Opens the library whose file begins with `name`; it stays open. `lacks` returns the name of a
/// missing function, or null. On failure null, with the reason.
void* open_library(const Environment& environment, const std::string& name,
                   const std::function<const char*(void*)>& lacks, std::string& path,
                   std::string& reason);

struct Found {
  std::string name;     // `NVRTC`
  std::string path;     // empty: not found
  std::string version;  // `13.0`
  std::string reason;   // why it was not found
  std::string install;  // the remedy
};
/// The link from one GPU to another, as the driver reports it. The driver does not name NVLink, but
/// remote atomics are available on NVLink and not on PCIe.
struct Link {
  int to = 0;
  bool reaches = false;  // access to the other's memory; otherwise messages go through the host
  bool atomics = false;
  int rank = 0;  // speed rank among the links of this GPU, 0 is the fastest
};
struct Gpu {
  std::string name;        // `NVIDIA H200`
  std::string capability;  // `sm_90`
  std::string bus;         // `0000:19:00.0`
  std::size_t bytes = 0;
  std::vector<Link> links;  // to each other GPU
};
struct Devices {
  Found driver;
  std::vector<Gpu> gpus;
};

/// The driver and its devices. Initialises the driver if there is one.
Devices find_devices();
/// LibTorch for CUDA, without opening it. A truncated one or one of another version counts as not
/// found, with the reason.
Found find_torch_cuda(const Environment& environment);
/// NVRTC, cuBLASLt, NCCL and LibTorch for CUDA.
std::vector<Found> find_libraries(const Environment& environment);

}  // namespace piper::backend::cuda
