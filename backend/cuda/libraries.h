#pragma once
// Where the libraries of CUDA are: opened at run time, from the user's toolkit, from wheels, or from where `PIPER_CUDA_PATH` says. No header of theirs is used.
//
//   for (const Found& each : find_libraries(environment)) each.version;   // what `piper doctor` lists

#include <functional>
#include <map>
#include <string>
#include <vector>

namespace piper::backend::cuda {

/// Of LibTorch: attention.h counts what it allocates, and the plugin is built with it.
inline constexpr const char* kTorchVersion = "2.11.0";

using Environment = std::map<std::string, std::string>;

/// Folders that may have libraries of CUDA, best first. `PIPER_CUDA_PATH` and `PIPER_TORCH_PATH`, where one is set, are the only places of theirs.
std::vector<std::string> cuda_folders(const Environment& environment);

/// Opens the library whose file begins with `name`; it stays open. `lacks` gives the name of a function that it lacks, or null. Null, and the reason.
void* open_library(const Environment& environment, const std::string& name, const std::function<const char*(void*)>& lacks, std::string& path, std::string& reason);

struct Found {
  std::string name;     // `NVRTC`
  std::string path;     // empty: it is not there
  std::string version;  // `13.0`
  std::string reason;   // why it is not there
  std::string install;  // what to do then
};
/// From one GPU to another, as the driver tells it. It does not name NVLink, but has atomics of the other's memory there, and on PCIe none.
struct Link {
  int to = 0;
  bool reaches = false;    // the memory of the other: otherwise messages go through the host
  bool atomics = false;
  int rank = 0;            // among the links of this GPU: of how fast it is, 0 the fastest
};
struct Gpu {
  std::string name;        // `NVIDIA H200`
  std::string capability;  // `sm_90`
  std::string bus;         // `0000:19:00.0`
  std::size_t bytes = 0;
  std::vector<Link> links;  // to each of the others
};
struct Devices {
  Found driver;
  std::vector<Gpu> gpus;
};

/// The driver and what it lists. Starts the driver where there is one.
Devices find_devices();
/// LibTorch for CUDA; it is not opened. One that is cut off or of another version is not found, and the reason says so.
Found find_torch_cuda(const Environment& environment);
/// NVRTC, cuBLASLt, NCCL and LibTorch for CUDA.
std::vector<Found> find_libraries(const Environment& environment);

}  // namespace piper::backend::cuda
