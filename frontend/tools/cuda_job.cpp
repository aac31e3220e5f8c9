#include "frontend/tools/cuda_job.h"

#include "backend/cuda/nvrtc.h"
#include "backend/jit/object_cache.h"
#include "frontend/tools/environment.h"
#include "frontend/tools/train_job.h"
#include "runtime/cuda/cuda_executor.h"
#include "runtime/cuda/gpu_driver.h"

namespace piper::tools {

namespace {

using backend::cuda::Compiled;
using backend::cuda::Nvrtc;
using runtime::Failure;

constexpr const char* kDoctor = "`piper doctor` lists what was found and what to install; `--device cpu` trains without a GPU";

Failure missing(std::string what) { return {.code = runtime::kCudaMissing, .message = std::move(what), .hint = kDoctor}; }

/// The GPU of this machine. Kernels that were compiled once are kept in the cache of programs.
class ThisMachine final : public CudaMachine {
 public:
  explicit ThisMachine(const std::map<std::string, std::string>& environment) : environment_(environment), cache_(jit_options(environment).cache_folder) {}

  std::unique_ptr<runtime::cuda::Driver> open(Failure& failure) override {
    const backend::cuda::Devices devices = backend::cuda::find_devices();
    if (devices.driver.path.empty()) {
      failure = missing("there is no NVIDIA driver: " + devices.driver.reason);
      return nullptr;
    }
    if (devices.gpus.empty()) {
      failure = missing("the NVIDIA driver lists no GPU");
      return nullptr;
    }
    architecture_ = devices.gpus.front().capability;
    std::string reason;
    nvrtc_ = Nvrtc::open(environment_, reason);
    if (!nvrtc_) {
      failure = missing("NVRTC, which compiles kernels, is not here: " + reason);
      return nullptr;
    }
    runtime::cuda::GpuChoice choice;
    choice.least_version = nvrtc_->major() * 1000;
    backend::cuda::open_library(environment_, "libcublasLt.so", {}, choice.cublas_lt, choice.no_cublas_lt);
    return runtime::cuda::open_gpu(choice, failure);
  }

  bool build(const backend::cuda::KernelSet& kernels, std::vector<std::string>& images, Failure& failure) override {
    return compile(kernels.source(), images, failure) && compile(backend::cuda::runtime_kernels_source(), images, failure);
  }

 private:
  bool compile(const std::string& source, std::vector<std::string>& images, Failure& failure) {
    constexpr std::size_t kDigest = 40;
    const std::string name = "kernels-" + backend::digest(architecture_ + "\n" + nvrtc_->version() + "\n" + backend::cuda::headers_text() + source).substr(0, 24) + ".cubin";
    std::string kept;
    if (!cache_.error() && backend::read_file(cache_.path(name), kept) && kept.size() > kDigest) {
      const std::string seal = kept.substr(kept.size() - kDigest);
      kept.resize(kept.size() - kDigest);
      if (backend::digest(kept) == seal) {
        images.push_back(std::move(kept));
        return true;
      }
    }
    Compiled made = nvrtc_->compile(source, architecture_);
    if (!made.ok) {
      failure = {.code = static_cast<std::uint32_t>(Code::generated_code_refused),
                 .message = "NVRTC " + nvrtc_->version() + " did not compile the kernels for " + architecture_ + ": " + made.log.substr(0, made.log.find('\n')),
                 .hint = "this is a fault of piper, not of the program, unless the GPU is newer than this NVRTC; `piper build --device cuda` writes the kernels"};
      return false;
    }
    // A cache that cannot be written costs the next run a second.
    if (!cache_.error()) cache_.store_text(name, made.cubin + backend::digest(made.cubin));
    images.push_back(std::move(made.cubin));
    return true;
  }

  const std::map<std::string, std::string>& environment_;
  backend::ObjectCache cache_;
  std::shared_ptr<const Nvrtc> nvrtc_;
  std::string architecture_;
};

}  // namespace

std::unique_ptr<CudaDevice> open_cuda(Session& session) {
  auto device = std::make_unique<CudaDevice>();
  device->machine = session.console().cuda;
  if (device->machine == nullptr) {
    device->own = std::make_unique<ThisMachine>(session.console().environment);
    device->machine = device->own.get();
  }
  Failure failure;
  device->driver = device->machine->open(failure);
  if (!device->driver) {
    report_failure(session, failure, {});
    return nullptr;
  }
  device->name = device->driver->device_name();
  return device;
}

std::unique_ptr<runtime::Executor> make_cuda_executor(CudaDevice& device, const backend::Job& job, const runtime::ExecutorOptions& options, Failure& failure) {
  if (!device.driver && !(device.driver = device.machine->open(failure))) return nullptr;
  runtime::cuda::GpuPrograms programs;
  if (!device.machine->build(job.kernels(), programs.images, failure)) return nullptr;
  for (std::size_t rank = 0; rank < job.tables().num_ranks; ++rank) {
    programs.training.push_back(job.enqueue(rank, false));
    if (job.evaluation() != nullptr) programs.evaluation.push_back(job.enqueue(rank, true));
  }
  return runtime::cuda::create_cuda_executor(job.tables(), programs, std::move(device.driver), options, failure);
}

}  // namespace piper::tools
