#include "tests/cuda/watched_driver.h"

namespace piper::test {

using runtime::cuda::Status;

WatchedDriver::WatchedDriver(std::unique_ptr<runtime::cuda::Driver> driver, Watch& watch)
    : driver_(std::move(driver)), watch_(watch) {
  watch_.driver = driver_.get();
}

WatchedDriver::~WatchedDriver() { watch_.driver = nullptr; }

Status WatchedDriver::free_bytes(std::uint64_t* bytes) {
  const Status asked = driver_->free_bytes(bytes);
  if (asked != runtime::cuda::kSuccess || !watch_.leaves) return asked;
  std::uint64_t free = *bytes;
  const std::uint64_t leaves = *watch_.leaves;
  watch_.leaves.reset();
  // Memory that is free need not be so in one piece, nor to the byte.
  for (std::uint64_t piece = free > leaves ? free - leaves : 0; piece > 0 && free > leaves;) {
    unsigned char* held = nullptr;
    if (driver_->allocate(piece, &held) != runtime::cuda::kSuccess) {
      piece /= 2;
      continue;
    }
    if (driver_->free_bytes(&free) != runtime::cuda::kSuccess) break;
    if (free > leaves && piece > free - leaves) piece = free - leaves;
  }
  return asked;
}

}  // namespace piper::test
