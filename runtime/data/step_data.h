#pragma once
// Where the inputs of a step come from. Sample i of step s is a function of (seed, s, i) alone, so neither layout nor timing changes it.
//
//   Failure failure;
//   std::unique_ptr<StepData> data = open_data(job.data, inputs, seed, DataUse::training, failure);
//   data->load(0, step, first, samples, to);   // samples first .. first + samples of the step's batch

#include <cstdint>
#include <memory>
#include <span>

#include "runtime/abi.h"
#include "runtime/failure.h"

namespace piper::runtime {

class TextFiles;

enum class DataUse : std::uint8_t { training, held_out };

class StepData {
 public:
  virtual ~StepData() = default;
  /// Writes samples [first, first + samples) of step `step` of input `input`, dense, in the input's order of dimensions. Never allocates.
  virtual void load(std::uint32_t input, std::uint64_t step, std::uint64_t first, std::uint64_t samples, void* to) const = 0;
  /// Steps that go over everything once; 0 where there is no end.
  virtual std::uint64_t covering_steps() const = 0;
};

/// Null, with the failure, when the data cannot be read, is too short, or does not fit the inputs. Kind 0 gives data without inputs.
/// bytes: training draws windows of seq + 1 bytes at random; held_out takes windows side by side, from the start; with more of them than
/// `max_steps` steps hold (0: no limit) they are spread evenly. Texts that `texts` has are not read again.
std::unique_ptr<StepData> open_data(const PiperData& data, std::span<const PiperInput> inputs, std::uint64_t seed, DataUse use,
                                    std::uint64_t max_steps, Failure& failure, TextFiles* texts = nullptr);

}  // namespace piper::runtime
