#pragma once
// Device programs as PiperPrograms without a compiler: tables, and a step function that evaluates
// the compute stream.
//
// Guarantees: the results are those of the generated program, bit for bit. All names are resolved
// before the first step; from the second step on only the evaluator of bodies allocates.
//
//   const Interpreted program(programs.roles[0], programs.bodies);
//   job_rank.program = &program.tables();

#include <cstdint>
#include <vector>

#include "backend/device_program/device_program.h"

namespace piper::backend {

/// One role. The device program and the bodies must outlive it.
class Interpreted {
 public:
  Interpreted(const DeviceProgram& program, const std::vector<KernelBody>& bodies);
  Interpreted(const Interpreted&) = delete;

  const PiperProgram& tables() const { return tables_; }

 private:
  static int step(const PiperApi* api, PiperRank* rank);
  int execute(const PiperApi* api, PiperRank* rank, std::uint32_t index) const;

  const DeviceProgram& program_;
  const std::vector<KernelBody>& bodies_;
  std::size_t most_operands_ = 0, max_intervals_ = 0;
  std::vector<std::uint64_t> extents_;
  std::vector<PiperActionInfo> actions_;
  std::vector<PiperStream> streams_;
  std::vector<PiperParam> params_;
  PiperProgram tables_{};
};

}  // namespace piper::backend
