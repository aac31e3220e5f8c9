#include "runtime/cuda/gpu.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>

#include "runtime/device/idle_time.h"

namespace piper::runtime::cuda {

namespace {

/// Errors of enqueued work, which any later call may return: the device runs nothing more. Names
/// and numbers are those of CUresult.
bool is_device_failure(Status status) {
  switch (status) {
    case 214:
    case 220:
    case 226:  // ECC_UNCORRECTABLE, NVLINK_UNCORRECTABLE, CONTAINED
    case 700:
    case 702:  // ILLEGAL_ADDRESS, LAUNCH_TIMEOUT
    case 710:
    case 714:
    case 715:  // ASSERT, HARDWARE_STACK_ERROR, ILLEGAL_INSTRUCTION
    case 716:
    case 717:
    case 718:  // MISALIGNED_ADDRESS, INVALID_ADDRESS_SPACE, INVALID_PC
    case 719:
    case 721:  // LAUNCH_FAILED, TENSOR_MEMORY_LEAK
    case 911:
    case 999: return true;  // EXTERNAL_DEVICE, UNKNOWN
    default: return false;
  }
}

}  // namespace

PiperRank& GpuRank::active() { return ranks[static_cast<std::size_t>(gpu->phase)]; }
GpuProgram& GpuRank::program() { return programs[static_cast<std::size_t>(gpu->phase)]; }

bool Gpu::device_failed() {
  if (failure || capturing) return failure.has_value();
  const CudaStream cuda_stream = origin().cuda_stream;
  Status status = driver->record(transferred, cuda_stream);
  if (status == kSuccess) status = driver->query(transferred);
  if (is_device_failure(status)) failure = device_failure(*this, status);
  return failure.has_value();
}

bool Gpu::done(Status status, const char* call, const GpuRank* rank, std::uint32_t action) {
  if (status == kSuccess) return true;
  if (failure) return false;
  if (is_device_failure(status)) {
    failure = device_failure(*this, status);
    return false;
  }
  if (is_of_library(status) && device_failed()) return false;
  failure = Failure{.code = kCudaCallFailed,
                    .message = std::string("`") + call + "` failed on " + driver->device_name() +
                               ": " + driver->text_of(status)};
  if (status == kOutOfDeviceMemory) {
    failure->code = kCudaOutOfMemory;
    failure->hint =
        "smaller microbatches, more stages or `replicate` need less per device; `piper show memory` lists the memory of each";
  }
  if (rank != nullptr) {
    failure->rank = rank->job->rank;
    if (action != kNoAction)
      failure->place = location_of(*rank->ranks[static_cast<std::size_t>(phase)].program, action);
  }
  return false;
}

int Gpu::fail_at(const GpuRank& rank, std::uint32_t action, std::uint32_t code, std::string message,
                 std::string hint, const PiperSourceLocation* where) {
  if (failure) return 1;
  const PiperRank& active = rank.ranks[static_cast<std::size_t>(phase)];
  failure = Failure{
      .code = code, .message = std::move(message), .hint = std::move(hint), .rank = rank.job->rank};
  failure->step = active.global_step;
  failure->place = location_of(*active.program, action);
  if (where != nullptr && where->line != 0)
    failure->place = location_of(std::move(failure->place.action), *where);
  return 1;
}

bool Gpu::wait_for(Event event) {
  using Clock = IdleTime::Clock;
  constexpr int kLooks = 200;
  IdleTime idle(Clock::now());
  std::uint64_t before = 0;
  for (int looks = 0;; ++looks) {
    const Status status = driver->query(event);
    if (status != kNotReady) return done(status, "cuEventQuery");
    if (looks < kLooks) continue;
    if (auto lost = exchange ? exchange->lost() : std::nullopt) {
      if (!failure) failure = failure_of_others(*this, std::move(*lost));
      driver->abandon();
      return false;
    }
    std::uint64_t moved = 0;
    for (const auto& rank : ranks) {
      for (const GpuStream& stream : rank->streams) moved += stream.ended();
    }
    const std::chrono::duration<double> idled = idle.look(moved != before, Clock::now());
    before = moved;
    if (options.stall_seconds > 0 && idled.count() >= options.stall_seconds) {
      if (!failure) failure = device_stalled(*this, options.stall_seconds);
      driver->abandon();
      return false;
    }
    std::this_thread::sleep_for(std::chrono::microseconds(20));
  }
}

bool Gpu::fork_streams() {
  if (!done(driver->record(origin().ready, origin().cuda_stream), "cuEventRecord")) return false;
  for (const auto& rank : ranks) {
    for (const GpuStream& stream : rank->streams) {
      if (stream.cuda_stream != origin().cuda_stream &&
          !done(driver->wait(stream.cuda_stream, origin().ready), "cuStreamWaitEvent", rank.get()))
        return false;
    }
  }
  return true;
}

bool Gpu::join_streams() {
  for (const auto& rank : ranks) {
    for (const GpuStream& stream : rank->streams) {
      if (stream.cuda_stream == origin().cuda_stream) continue;
      if (!done(driver->record(stream.ready, stream.cuda_stream), "cuEventRecord", rank.get()))
        return false;
      if (!done(driver->wait(origin().cuda_stream, stream.ready), "cuStreamWaitEvent", rank.get()))
        return false;
    }
  }
  return true;
}

bool Gpu::upload(GpuRank& rank, unsigned char* to, const void* from, std::uint64_t bytes) {
  const CudaStream cuda_stream = rank.streams.front().cuda_stream;
  for (std::uint64_t at = 0; at < bytes; at += kBounceBytes) {
    const std::uint64_t count = std::min(kBounceBytes, bytes - at);
    std::memcpy(bounce, static_cast<const unsigned char*>(from) + at, count);
    if (!done(driver->copy(cuda_stream, to + at, bounce, count), "cuMemcpyAsync", &rank) ||
        !done(driver->record(transferred, cuda_stream), "cuEventRecord", &rank) ||
        !wait_for(transferred))
      return false;
  }
  return true;
}

bool Gpu::download(GpuRank& rank, void* to, const unsigned char* from, std::uint64_t bytes) {
  const CudaStream cuda_stream = rank.streams.front().cuda_stream;
  for (std::uint64_t at = 0; at < bytes; at += kBounceBytes) {
    const std::uint64_t count = std::min(kBounceBytes, bytes - at);
    if (!done(driver->copy(cuda_stream, bounce, from + at, count), "cuMemcpyAsync", &rank) ||
        !done(driver->record(transferred, cuda_stream), "cuEventRecord", &rank) ||
        !wait_for(transferred))
      return false;
    std::memcpy(static_cast<unsigned char*>(to) + at, bounce, count);
  }
  return true;
}

Status Gpu::move(CudaStream cuda_stream, const void* from, void* to, std::uint64_t bytes) {
  constexpr std::uint64_t kThreads = 256, kTile = 16, kMaxMoved = 64;
  const std::uint64_t blocks = std::clamp<std::uint64_t>(bytes / (kThreads * kTile), 1, kMaxMoved),
                      stride = blocks * kThreads;
  const void* const arguments[] = {&from, &to, &bytes, &stride};
  return driver->launch(cuda_stream, kernels.move, blocks, kThreads, arguments);
}

bool Gpu::signal(GpuRank& rank, std::uint32_t stream) {
  GpuStream& own = rank.streams[stream];
  const std::uint32_t more = own.captured - own.signalled;
  if (more == 0) return true;
  std::vector<std::uint32_t>& signalled_with = rank.program().signalled_with[stream];
  std::fill(signalled_with.begin() + own.signalled, signalled_with.begin() + own.captured,
            own.captured - 1);
  own.signalled = own.captured;
  own.calls = 0;
  // A graph writes the same word in every launch, so a kernel counts there. It counts in memory of
  // the device: to read the word it would wait for the host's memory.
  const void* const arguments[] = {&own.graph_ended, &own.graph_progress, &more};
  return done(driver->launch(own.cuda_stream, kernels.advance, 1, 1, arguments), "cuLaunchKernel",
              &rank);
}

int Gpu::end_action(GpuRank& rank, std::uint32_t stream, std::uint32_t action) {
  GpuProgram& program = rank.program();
  GpuStream& own = rank.streams[stream];
  if (!times.end_action(rank, stream, action)) return 1;
  const std::uint64_t step = rank.active().step;
  const std::size_t at = end_slot(program.scan->actions[action].position, step);
  const bool awaited = program.ends[stream][at] != nullptr;
  if (capturing) {
    ++own.captured;
    // An action that others wait for, or that may wait for others, is signalled by itself:
    // otherwise an ended action could be taken for one that another waits for.
    if ((stream != 0 || awaited || own.calls >= kCallsUnsignalled) && !signal(rank, stream))
      return 1;
  } else {
    ++own.enqueued;
    if (!done(driver->write(own.cuda_stream, own.progress, ++own.single), "cuStreamWriteValue32",
              &rank, action))
      return 1;
  }
  if (!awaited) return 0;
  program.recorded[stream][at] = step + 1;
  return done(driver->record(program.ends[stream][at], own.cuda_stream), "cuEventRecord", &rank,
              action)
             ? 0
             : 1;
}

}  // namespace piper::runtime::cuda
