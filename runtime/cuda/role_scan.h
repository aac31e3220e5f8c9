#pragma once
// The needs of a role in a step, found by letting its function enqueue on a device that runs
// nothing: so all of them are known, and allocated, before the first step.
//
// Guarantees: allocations, products and events that a step uses are those listed here; shapes of
// equal number are equal, and numbers are below PiperEnqueue::num_shapes; nothing depends on the
// rank of the role, except the samples that it loads.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "runtime/device_abi.h"
#include "runtime/failure.h"

namespace piper::runtime::cuda {

struct ScannedAction {
  std::uint32_t stream = 0, position = 0;
  std::vector<PiperWait> waits;
};

/// The position of a shape and an end in tables of planned calls.
inline std::size_t planned_at(const PiperCallShape& shape, std::uint32_t end) {
  return std::size_t{shape.number} * PIPER_CALL_ENDS + end;
}

/// A product that a step makes.
struct ScannedCall {
  PiperCallShape shape{};
  std::uint32_t end = PIPER_END_WRITES;
  // Bytes that the plan reserves for each of its calls: the same, because they follow from the
  // shape; the first of them may be skipped to begin at a multiple of PIPER_WORKSPACE_ALIGNMENT.
  std::uint64_t workspace = 0;
};

/// Room in host memory; offsets count from the start of a step's part.
struct ScannedReport {
  std::uint32_t action = 0, subject = 0, dtype = 0, count = 0;
  bool counted = false;      // the last number is an f64
  std::uint64_t offset = 0;  // of the first of eight bytes per number
};
struct ScannedCheck {
  std::uint32_t action = 0;
  const PiperCheck* check = nullptr;
};

/// Data that the host provides for a step. The offset counts from the first of the loads that are
/// carried together, or from the first of the others.
struct ScannedLoad {
  std::uint32_t action = 0, input = 0;
  std::uint64_t first = 0, samples = 0;
  std::uint64_t bytes = 0, offset = 0;
  bool carried() const { return bytes <= kMaxCarriedLoad; }

  /// Loads of at most this number of bytes go to the device in one copy per step, because the bytes
  /// of a small copy take less time than the copy itself. Larger ones would need memory beside the
  /// plan.
  static constexpr std::uint64_t kMaxCarriedLoad = 64 << 10;
};

struct RoleScan {
  std::vector<ScannedAction> actions;  // per action
  // Per queue and position: whether an action waits for its end.
  std::vector<std::vector<std::uint8_t>> awaited;
  std::vector<ScannedCall> products;   // distinct
  bool torch_attention = false;        // some attention is LibTorch's
  bool flash_attention = false;        // of bf16
  std::vector<ScannedReport> reports;  // as a step makes them
  std::vector<ScannedCheck> checks;
  std::vector<ScannedLoad> loads;  // as a step makes them; `first` is the rank's
  // The bytes of a step, each aligned: loads that go to the device together, loads that are copied
  // one by one, reports.
  std::uint64_t carried_bytes = 0, load_bytes = 0, report_bytes = 0;
};

/// Bytes of a sample of an input.
std::uint64_t sample_bytes(const PiperInput& input);

/// `rank`: any of the role. A failure if the role contradicts its tables.
std::optional<Failure> scan_role(const PiperEnqueue& role, const PiperJob& job,
                                 const PiperJobRank& rank, bool evaluation, RoleScan& scan);

}  // namespace piper::runtime::cuda
