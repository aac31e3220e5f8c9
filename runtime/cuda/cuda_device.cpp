#include "runtime/cuda/cuda_device.h"

#include <cstring>
#include <optional>

#include "runtime/cuda/gpu.h"
#include "runtime/cuda/gpu_steps.h"
#include "runtime/cuda/loopback.h"
#include "runtime/cuda/nccl_exchange.h"

namespace piper::runtime::cuda {

namespace {

class CudaDevice final : public Device {
 public:
  CudaDevice(GpuPrograms programs, std::unique_ptr<Driver> driver, std::unique_ptr<Nccl> nccl)
      : programs_(std::move(programs)), driver_(std::move(driver)), nccl_(std::move(nccl)) {}

  bool open(const PiperJob& job, const DeviceOptions& options, const Processes& processes,
            Failure& failure) override;

  void begin_run(const DeviceRun& run) override {
    run_ = run;
    started_ = ended_ = 0;
    steps_->begin_run(run);
  }
  std::uint64_t most_steps() const override { return kStepsInFlight; }
  void begin_step(std::uint64_t step) override { started_ += steps_->enqueue(step); }
  /// Enqueued steps run.
  std::uint64_t take_back_steps() override { return started_; }
  std::uint64_t wait(std::uint64_t) override {
    ended_ += steps_->take_in(ended_);
    return ended_;
  }
  void look() override {
    if (started_ > 0) steps_->look(started_ - 1);
  }
  bool end_run() override;

  const Failure* failure() const override { return gpu_->failure ? &*gpu_->failure : nullptr; }
  void fail(Failure failure) override {
    if (!gpu_->failure) gpu_->failure = std::move(failure);
  }
  Failure located(Failure failure) const override {
    return failure_of_others(*gpu_, std::move(failure));
  }

  const ReportSlots& reports(std::size_t rank) const override { return gpu_->ranks[rank]->reports; }
  std::optional<std::vector<std::uint32_t>> reported(Phase phase) const override;
  std::vector<RecordedRank> recorded(std::uint64_t) const override {
    return has_recorded() ? gpu_->times.recorded() : std::vector<RecordedRank>();
  }
  const unsigned char* read(std::size_t rank, bool on_host, std::uint64_t offset,
                            std::uint64_t bytes) override;
  bool write(std::size_t rank, bool on_host, std::uint64_t offset, const void* from,
             std::uint64_t bytes) override;
  std::uint64_t arena_bytes(std::size_t rank) const override {
    return gpu_->ranks[rank]->arena_bytes;
  }
  const PiperFlight& flight(std::size_t rank) const override {
    return *gpu_->ranks[rank]->flight.record();
  }
  std::uint64_t touched_bytes(std::size_t rank) override;
  std::vector<Failure> warnings() const override { return gpu_->warnings; }
  bool skip_destructors() const override {
    return gpu_->failure && gpu_->failure->code == kStalled;
  }

 private:
  /// Whether the last step of the run has run, between timers.
  bool has_recorded() const { return run_.record && ended_ == run_.steps && ended_ > 0; }

  GpuPrograms programs_;  // until `open`, as the next two
  std::unique_ptr<Driver> driver_;
  std::unique_ptr<Nccl> nccl_;
  bool alone_ = true;  // all ranks are in this process
  std::optional<Gpu> gpu_;
  std::optional<GpuSteps> steps_;
  DeviceRun run_;
  std::uint64_t started_ = 0, ended_ = 0;
  std::vector<unsigned char> bytes_;  // result of the last `read`
};

bool CudaDevice::open(const PiperJob& job, const DeviceOptions& options, const Processes& processes,
                      Failure& failure) {
  alone_ = processes.group == nullptr;
  if (alone_ && job.num_ranks != job.world) {
    failure = {.code = kBadJob,
               .message = "on one GPU the ranks of other processes cannot be reached"};
    return false;
  }
  Gpu& gpu = gpu_.emplace(job, std::move(driver_));
  gpu.options = options.runtime;
  gpu.first_values = options.first_values;
  if (alone_) {
    gpu.exchange = std::make_unique<Loopback>(gpu);
  } else {
    gpu.exchange =
        std::make_unique<NcclExchange>(gpu, *processes.group, std::move(nccl_), *processes.whole);
  }
  if (auto found = set_up(gpu, programs_, options.out_folder)) {
    failure = std::move(*found);
    return false;
  }
  steps_.emplace(gpu);
  programs_ = {};
  return !(options.stopped && options.stopped());
}

/// Waits until every stream is idle, so that memory of the GPU can be read; also after a failure,
/// unless it is the GPU's.
bool CudaDevice::end_run() {
  Gpu& gpu = *gpu_;
  if (gpu.failure &&
      (!alone_ || gpu.failure->code == kCudaKernelFailed || gpu.failure->code == kStalled)) {
    if (!alone_) gpu.driver->abandon();  // work in flight waits for other processes
    return true;
  }
  for (const auto& rank : gpu.ranks) {
    for (const GpuStream& stream : rank->streams) {
      if (!gpu.done(gpu.driver->record(stream.ready, stream.cuda_stream), "cuEventRecord",
                    rank.get()) ||
          !gpu.wait_for(stream.ready))
        return true;
    }
  }
  if (!gpu.failure && has_recorded()) gpu.times.read();
  return true;
}

std::optional<std::vector<std::uint32_t>> CudaDevice::reported(Phase phase) const {
  std::vector<std::uint32_t> subjects;
  for (const auto& rank : gpu_->ranks) {
    for (const ScannedReport& report :
         rank->programs[static_cast<std::size_t>(phase)].scan->reports)
      subjects.push_back(report.subject);
  }
  return subjects;
}

const unsigned char* CudaDevice::read(std::size_t rank, bool on_host, std::uint64_t offset,
                                      std::uint64_t bytes) {
  GpuRank& from = *gpu_->ranks[rank];
  if (on_host) return from.host + offset;
  bytes_.resize(bytes);
  return gpu_->download(from, bytes_.data(), from.arena + offset, bytes) ? bytes_.data() : nullptr;
}

bool CudaDevice::write(std::size_t rank, bool on_host, std::uint64_t offset, const void* from,
                       std::uint64_t bytes) {
  GpuRank& to = *gpu_->ranks[rank];
  if (!on_host) return gpu_->upload(to, to.arena + offset, from, bytes);
  std::memcpy(to.host + offset, from, bytes);
  return true;
}

std::uint64_t CudaDevice::touched_bytes(std::size_t rank) {
  std::uint64_t end = arena_bytes(rank);
  const unsigned char* const bytes =
      gpu_->options.check_memory ? read(rank, false, 0, end) : nullptr;
  if (bytes == nullptr) return 0;
  while (end > 0 && bytes[end - 1] == 0xFF) --end;
  return end;
}

}  // namespace

std::unique_ptr<Device> make_cuda_device(GpuPrograms programs, std::unique_ptr<Driver> driver,
                                         std::unique_ptr<Nccl> nccl) {
  return std::make_unique<CudaDevice>(std::move(programs), std::move(driver), std::move(nccl));
}

}  // namespace piper::runtime::cuda
