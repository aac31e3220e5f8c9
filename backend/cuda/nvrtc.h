#pragma once
// NVRTC, opened at run time: CUDA C++ to a cubin, without driver or toolkit headers. Its functions
// are declared in nvrtc_functions.def.
//
//   std::string reason;
//   if (const auto nvrtc = Nvrtc::open(environment, reason)) {
//     const Compiled made = nvrtc->compile(kernels.source(), "sm_90a");
//     made.ok ? made.cubin : made.log;
//   }

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "backend/cuda/libraries.h"

namespace piper::backend::cuda {

/// The output of ptxas for one kernel.
struct KernelResources {
  std::uint32_t registers = 0;     // per thread
  std::uint32_t shared_bytes = 0;  // per block
  std::uint32_t stack_bytes = 0, spill_bytes = 0;
};

struct Compiled {
  bool ok = false;
  std::string cubin;
  std::string log;  // of NVRTC and ptxas
  std::map<std::string, KernelResources> kernels;
};

class Nvrtc {
 public:
  /// On failure null, and `reason` lists the searched folders.
  static std::shared_ptr<const Nvrtc> open(const Environment& environment, std::string& reason);

  const std::string& path() const { return path_; }
  int major() const { return major_; }
  std::string version() const { return std::to_string(major_) + "." + std::to_string(minor_); }
  /// `architecture`: `sm_90a`. It can include the headers of the program.
  Compiled compile(const std::string& source, const std::string& architecture) const;

 private:
  struct Functions;
  std::shared_ptr<const Functions> functions_;
  std::string path_;
  int major_ = 0, minor_ = 0;
};

/// The texts of the headers that kernels include.
std::string headers_text();
/// The kernels that the runtime itself launches (runtime/cuda/device_kernels.h).
std::string runtime_kernels_source();

/// The figures in the lines that `--ptxas-options=-v` adds to the log.
std::map<std::string, KernelResources> parse_resources(const std::string& log);

}  // namespace piper::backend::cuda
