#include "runtime/weights/whole_parameters.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "runtime/device/state.h"
#include "runtime/dtypes.h"

namespace piper::runtime {
namespace {

constexpr std::uint64_t kAlignment = 64;

}  // namespace

WholeParameters::WholeParameters(std::vector<InitialisedParameter> parameters)
    : parameters_(std::move(parameters)) {
  std::uint64_t bytes = 0;
  for (const InitialisedParameter& parameter : parameters_) {
    PiperParam& param = params_.emplace_back();
    param.name = parameter.name.c_str();
    param.offset = bytes;
    param.grad_offset = PIPER_NO_OFFSET;
    std::fill(std::begin(param.slot_offsets), std::end(param.slot_offsets), PIPER_NO_OFFSET);
    param.elements = 1;
    for (const std::int64_t dim : parameter.dims) param.elements *= static_cast<std::uint64_t>(dim);
    param.dtype = param.sum_dtype = parameter.dtype;
    param.init = parameter.init;
    param.scale = parameter.scale;
    param.counted = 1;
    param.num_dims = static_cast<std::uint32_t>(parameter.dims.size());
    param.dims = parameter.dims.data();
    param.interval = PIPER_ALL_POSITIONS;
    bytes += param.elements * element_bytes(param.dtype);
    bytes += (kAlignment - bytes % kAlignment) % kAlignment;
  }
  program_.params = params_.data();
  program_.num_params = static_cast<std::uint32_t>(params_.size());
  program_.state_bytes = program_.arena_bytes = bytes;
  rank_.program = &program_;
  job_.ranks = &rank_;
  job_.num_ranks = job_.world = 1;
}

WholeParameters::~WholeParameters() { std::free(arena_); }

std::unique_ptr<WholeParameters> WholeParameters::create(
    std::vector<InitialisedParameter> parameters, std::uint64_t seed, Failure& failure) {
  std::unique_ptr<WholeParameters> memory(new WholeParameters(std::move(parameters)));
  const std::uint64_t bytes = std::max(memory->program_.state_bytes, kAlignment);
  memory->arena_ = static_cast<unsigned char*>(std::aligned_alloc(kAlignment, bytes));
  if (memory->arena_ == nullptr) {
    failure = {.code = kOutOfMemory,
               .message = "no memory for the parameters: `" + std::to_string(bytes) + "` bytes"};
    return nullptr;
  }
  initialise_parameters(memory->program_, seed, nullptr, memory->arena_, nullptr);
  return memory;
}

StateMemory WholeParameters::memory() {
  StateMemory memory;
  memory.job = &job_;
  memory.ranks = {&rank_, 1};
  memory.local = [](std::size_t rank) { return std::optional(rank); };
  memory.read = [this](std::size_t, bool, std::uint64_t offset, std::uint64_t) {
    return static_cast<const unsigned char*>(arena_ + offset);
  };
  memory.write = [this](std::size_t, bool, std::uint64_t offset, const void* from,
                        std::uint64_t bytes) {
    std::memcpy(arena_ + offset, from, bytes);
    return true;
  };
  memory.failure = [] { return std::optional<Failure>(); };
  return memory;
}

}  // namespace piper::runtime
