#pragma once
// The parameters of a model in the memory of this process, whole, as their initializers begin them:
// a run of one rank that has no program.
//
//   const auto model = WholeParameters::create(parameters, seed, failure);
//   if (auto failure = load_weights(model->memory(), *files, map)) ...;
//   export_weights(weights_of(model->memory()), map, ...);

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/abi.h"
#include "runtime/checkpoint/state_memory.h"
#include "runtime/failure.h"

namespace piper::runtime {

struct InitialisedParameter {
  std::string name = {};
  std::vector<std::int64_t> dims = {};
  std::uint32_t dtype = PIPER_F32;    // PiperDType, floating
  std::uint32_t init = PIPER_NORMAL;  // PiperInitKind
  double scale = 0;
};

class WholeParameters {
 public:
  /// Null with the reason in `failure` (kOutOfMemory).
  static std::unique_ptr<WholeParameters> create(std::vector<InitialisedParameter> parameters,
                                                 std::uint64_t seed, Failure& failure);
  ~WholeParameters();
  WholeParameters(const WholeParameters&) = delete;
  WholeParameters& operator=(const WholeParameters&) = delete;

  /// One local rank. This must outlive it.
  StateMemory memory();
  /// The values of a parameter, by its position: row-major, aligned to 64 bytes.
  const unsigned char* values(std::size_t parameter) const {
    return arena_ + params_[parameter].offset;
  }

 private:
  explicit WholeParameters(std::vector<InitialisedParameter> parameters);

  const std::vector<InitialisedParameter> parameters_;
  std::vector<PiperParam> params_;
  PiperProgram program_{};
  PiperJobRank rank_{};
  PiperJob job_{};
  unsigned char* arena_ = nullptr;
};

}  // namespace piper::runtime
