#include "frontend/tools/cuda_job.h"

#include "backend/cuda/nvrtc.h"
#include "backend/jit/object_cache.h"
#include "frontend/tools/environment.h"
#include "frontend/tools/train_job.h"
#include "runtime/cuda/cuda_device.h"
#include "runtime/cuda/gpu_driver.h"
#include "runtime/cuda/nccl.h"
#include "runtime/device/library_calls.h"

namespace piper::tools {

namespace {

using backend::cuda::Compiled;
using backend::cuda::Nvrtc;
using runtime::Failure;

constexpr const char* kDoctor =
    "`piper doctor` lists what was found and what to install; `--device cpu` trains without a GPU";

Failure missing(std::string what) {
  return {.code = runtime::kCudaMissing, .message = std::move(what), .hint = kDoctor};
}

/// The GPU of this machine. Kernels that were compiled once are kept in the cache of programs.
class ThisMachine final : public CudaMachine {
 public:
  explicit ThisMachine(const std::map<std::string, std::string>& environment)
      : environment_(environment), cache_(jit_options(environment).cache_folder) {}

  std::unique_ptr<runtime::cuda::Driver> open(std::uint32_t gpu, Failure& failure) override {
    runtime::cuda::set_driver_defaults();
    const backend::cuda::Devices devices = backend::cuda::find_devices();
    if (devices.driver.path.empty()) {
      failure = missing("there is no NVIDIA driver: " + devices.driver.reason);
      return nullptr;
    }
    if (devices.gpus.empty()) {
      failure = missing("the NVIDIA driver lists no GPU");
      return nullptr;
    }
    // A launcher may show each process its own GPU alone.
    if (devices.gpus.size() == 1) gpu = 0;
    if (gpu >= devices.gpus.size()) {
      failure = missing("this is process " + std::to_string(gpu) +
                        " of its machine, whose NVIDIA driver lists " +
                        std::to_string(devices.gpus.size()) + " GPUs");
      return nullptr;
    }
    architecture_ = devices.gpus[gpu].capability;
    std::string reason;
    nvrtc_ = Nvrtc::open(environment_, reason);
    if (!nvrtc_) {
      failure = missing("NVRTC, which compiles kernels, is not here: " + reason);
      return nullptr;
    }
    runtime::cuda::GpuChoice choice;
    choice.gpu = static_cast<int>(gpu);
    choice.least_version = nvrtc_->major() * 1000;
    backend::cuda::open_library(environment_, "libcublasLt.so", {}, choice.cublas_lt,
                                choice.no_cublas_lt);
    const backend::cuda::Found torch = backend::cuda::find_torch_cuda(environment_);
    runtime::Options options;
    if (const auto folder = environment_.find("PIPER_PLUGINS"); folder != environment_.end())
      options.plugin_folder = folder->second;
    choice.torch = {runtime::torch_plugin_path(options), torch.path, torch.version, torch.reason,
                    choice.gpu};
    return runtime::cuda::open_gpu(choice, failure);
  }

  std::unique_ptr<runtime::cuda::Nccl> open_nccl(Failure& failure) override {
    std::string path, reason;
    if (backend::cuda::open_library(environment_, "libnccl.so", {}, path, reason) == nullptr) {
      failure = missing("NCCL, which carries messages between processes, is not here: " + reason);
      return nullptr;
    }
    return runtime::cuda::open_nccl(path, failure);
  }

  bool build(const backend::cuda::KernelSet& kernels, std::vector<std::string>& images,
             Failure& failure) override {
    return compile(kernels.source(), images, failure) &&
           compile(backend::cuda::runtime_kernels_source(), images, failure);
  }

 private:
  bool compile(const std::string& source, std::vector<std::string>& images, Failure& failure) {
    constexpr std::size_t kDigest = 40;
    const std::string name = "kernels-" +
                             backend::digest(architecture_ + "\n" + nvrtc_->version() + "\n" +
                                             backend::cuda::headers_text() + source)
                                 .substr(0, 24) +
                             ".cubin";
    std::string kept;
    if (!cache_.error() && cache_.read(name, kept) && kept.size() > kDigest) {
      const std::string seal = kept.substr(kept.size() - kDigest);
      kept.resize(kept.size() - kDigest);
      if (backend::digest(kept) == seal) {
        images.push_back(std::move(kept));
        return true;
      }
    }
    Compiled made = nvrtc_->compile(source, architecture_);
    if (!made.ok) {
      failure = {
          .code = static_cast<std::uint32_t>(Code::generated_code_refused),
          .message = "NVRTC " + nvrtc_->version() + " did not compile the kernels for " +
                     architecture_ + ": " + made.log.substr(0, made.log.find('\n')),
          .hint =
              "this is a fault of piper, not of the program, unless the GPU is newer than this NVRTC; `piper build --device cuda` writes the kernels"};
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

std::unique_ptr<CudaDevice> open_cuda(Session& session, RunProcesses& processes) {
  auto device = std::make_unique<CudaDevice>();
  runtime::ProcessGroup* const group = processes.group.get();
  device->processes = &processes;
  device->group = group;
  device->machine = session.console().cuda;
  if (device->machine == nullptr) {
    device->own = std::make_unique<ThisMachine>(session.console().environment);
    device->machine = device->own.get();
  }
  Failure failure;
  device->driver = device->machine->open(device->gpu(), failure);
  if (device->driver && group != nullptr) device->nccl = device->machine->open_nccl(failure);
  if (!device->driver || (group != nullptr && !device->nccl)) {
    failure.rank = group != nullptr ? device->rank() : Failure::kNoRank;
    // All processes report the first cause.
    if (group != nullptr) {
      group->fail(failure);
      failure = *group->failure();
    }
    report_failure(session, failure, {});
    return nullptr;
  }
  device->name = device->driver->device_name();
  if (group != nullptr) device->name += " each, with " + device->nccl->name();
  return device;
}

namespace {

/// The same without a word to the other processes.
std::unique_ptr<runtime::Executor> make_own_executor(const Session& session, CudaDevice& device,
                                                     const backend::Job& job, PiperJob& tables,
                                                     const runtime::ExecutorOptions& options,
                                                     Failure& failure) {
  if (!device.driver && !(device.driver = device.machine->open(device.gpu(), failure)))
    return nullptr;
  if (device.group != nullptr && !device.nccl &&
      !(device.nccl = device.machine->open_nccl(failure)))
    return nullptr;
  runtime::Processes processes;
  std::size_t first = 0;
  if (device.group != nullptr) {
    if (auto differs = agree_on_job(session, *device.processes, job.tables(), tables)) {
      failure = std::move(*differs);
      return nullptr;
    }
    first = device.rank();
    tables.ranks += first;
    tables.num_ranks = 1;
    processes = {device.group, &job.tables()};
  }
  runtime::cuda::GpuPrograms programs;
  if (!device.machine->build(job.kernels(), programs.images, failure)) return nullptr;
  for (std::size_t rank = first; rank < first + tables.num_ranks; ++rank) {
    programs.training.push_back(job.enqueue(rank, false));
    if (job.evaluation() != nullptr) programs.evaluation.push_back(job.enqueue(rank, true));
  }
  auto made = runtime::cuda::make_cuda_device(std::move(programs), std::move(device.driver),
                                              std::move(device.nccl));
  return runtime::Executor::create(tables, std::move(made), options, failure, processes);
}

}  // namespace

std::unique_ptr<runtime::Executor> make_cuda_executor(const Session& session, CudaDevice& device,
                                                      const backend::Job& job, PiperJob& tables,
                                                      const runtime::ExecutorOptions& options,
                                                      Failure& failure) {
  auto made = make_own_executor(session, device, job, tables, options, failure);
  // Processes that wait for this one get the reason of its failure.
  if (!made && device.group != nullptr && !(options.stopped && options.stopped()))
    device.group->fail(failure);
  return made;
}

}  // namespace piper::tools
