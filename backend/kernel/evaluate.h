#pragma once
// Executes a kernel body without a compiler: blocks of columns per statement, library calls through
// the PiperApi table.
//
// Guarantees: every result equals bit for bit that of the code which emit_bodies.h prints for the
// same body.

#include <cstdint>
#include <span>

#include "backend/kernel/kernel.h"

namespace piper::backend {

/// One call of a body. Pointers are 64-byte aligned and do not overlap, except for in-place outputs
/// and outputs of kind grad that belong to one parameter.
struct BodyCall {
  const PiperApi* api = nullptr;
  PiperRank* rank = nullptr;
  std::uint32_t action = 0;
  // Inputs, outputs, then the workspace if scratch_bytes > 0.
  std::span<void* const> operands;
  std::span<const std::uint8_t> accumulate;  // per output; only outputs of kind grad may be nonzero
  // Per interval of the body: its first index on this rank; seed and step come from `rank`.
  std::span<const std::uint64_t> firsts;
};

/// 0 on success; otherwise the reason was passed to `api->fail`.
int evaluate(const KernelBody& body, const BodyCall& call);

}  // namespace piper::backend
