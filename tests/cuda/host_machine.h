#pragma once
// A machine whose GPU is the host, for `train --device cuda` as a command.

#include <map>
#include <string>
#include <vector>

#include "frontend/tools/cuda_job.h"
#include "tests/cuda/host_driver.h"
#include "tests/cuda/test_nccl.h"
#include "tests/support/temporary_folder.h"

namespace piper::test {

struct HostMachine final : tools::CudaMachine {
  std::unique_ptr<runtime::cuda::Driver> open(std::uint32_t gpu,
                                              runtime::Failure& failure) override;
  std::unique_ptr<runtime::cuda::Nccl> open_nccl(runtime::Failure& failure) override;
  /// Programs are the same in all tests: their objects are kept.
  bool build(const backend::cuda::KernelSet& kernels, std::vector<std::string>& images,
             runtime::Failure& failure) override;

  HostOptions options;
  TestNcclOptions nccl;  // with a folder; otherwise there is no NCCL
  std::uint32_t gpus = 8;
  HostDriver* driver = nullptr;  // the last one opened

  static inline TemporaryFolder folder;
  static inline std::map<std::string, std::string> objects;
  static inline std::string own;
};

struct Ended {
  int code = 0;
  std::string out, err;
};

/// `piper train` of a text; with a null machine on the real one.
Ended train(const std::string& text, HostMachine* machine, std::vector<std::string> words = {},
            std::map<std::string, std::string> environment = {});

/// The line of a text that contains `what`; empty if none does.
std::string line_with(const std::string& text, const std::string& what);

}  // namespace piper::test
