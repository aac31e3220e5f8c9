#pragma once
// Ranks as threads of this process: one device thread for each, and one progress thread for all
// communication.
//
//   auto device = make_cpu_device();
//   auto executor = Executor::create(job, std::move(device), options, failure);

#include <cstdint>
#include <memory>

#include "runtime/device/device.h"

namespace piper::runtime {

class Transport;

/// Perturbs timing in tests: every action and every communication is delayed by a random time, a
/// function of the seed.
struct RandomDelays {
  std::uint64_t seed = 0;
  std::uint32_t max_us = 0;  // 0: none
};

struct CpuOptions {
  RandomDelays delays = {};
  // Null: local, which reaches only ranks of this process.
  std::shared_ptr<Transport> transport = {};
};

/// The step loop allocates nothing and takes no lock.
std::unique_ptr<Device> make_cpu_device(CpuOptions options = {});

}  // namespace piper::runtime
