#pragma once
// The sources of `open_data` and their shared parts: shapes of inputs, and failures at the `data`
// line.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/abi.h"
#include "runtime/data/step_data.h"
#include "runtime/kernel_math.h"

namespace piper::runtime {

class TextFiles;

/// A model input as [outer][samples][inner].
struct InputShape {
  std::uint64_t outer = 1, batch = 1, inner = 1;
  std::uint32_t dtype = PIPER_F32;
  std::uint64_t name = 0;  // hash
};

InputShape shape_of(const PiperInput& input);

inline std::uint64_t hash_of(std::string_view name) {
  return piper_name_hash(name.data(), name.size());
}

/// A failure at the `data` line.
Failure at_data(const PiperData& data, std::uint32_t code, std::string message, std::string hint);

/// `bytes` and `tokens`: windows of a text. Null with the reason in `failure`.
std::unique_ptr<StepData> open_windows(const PiperData& data, std::span<const PiperInput> inputs,
                                       std::vector<InputShape> shapes, std::uint64_t seed,
                                       DataUse use, Failure& failure, TextFiles& texts);
/// `arrays`: rows of a file. Null with the reason in `failure`.
std::unique_ptr<StepData> open_arrays(const PiperData& data, std::span<const PiperInput> inputs,
                                      std::vector<InputShape> shapes, std::uint64_t seed,
                                      DataUse use, Failure& failure, TextFiles& texts);

}  // namespace piper::runtime
