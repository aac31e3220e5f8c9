#include "runtime/executor/parameters.h"

#include <algorithm>

#include "runtime/device/state.h"
#include "runtime/dtypes.h"

namespace piper::runtime {

std::optional<ParameterValues> collect_parameter(std::span<const PiperJobRank> ranks,
                                                 std::string_view name, ParamTensor part,
                                                 const ReadArena& read) {
  std::optional<ParameterValues> out;
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    const PiperProgram& program = *ranks[r].program;
    for (std::uint32_t p = 0; p < program.num_params; ++p) {
      const PiperParam& param = program.params[p];
      if (!param.counted || name != param.name) continue;
      static_assert(PIPER_MAX_SLOTS == 4);
      const std::uint64_t offsets[] = {param.offset,          param.grad_offset,
                                       param.slot_offsets[0], param.slot_offsets[1],
                                       param.slot_offsets[2], param.slot_offsets[3]};
      const std::uint64_t offset = offsets[static_cast<std::size_t>(part)];
      if (offset == PIPER_NO_OFFSET) return std::nullopt;
      if (!out)
        out = ParameterValues{std::string(name),
                              {param.dims, param.dims + param.num_dims},
                              std::vector<double>(param.elements)};
      constexpr PiperSharded kWhat[] = {PIPER_SHARDED_PARAMETERS, PIPER_SHARDED_GRADIENTS,
                                        PIPER_SHARDED_OPTIMIZER,  PIPER_SHARDED_OPTIMIZER,
                                        PIPER_SHARDED_OPTIMIZER,  PIPER_SHARDED_OPTIMIZER};
      const Elements here =
          elements_here(param, kWhat[static_cast<std::size_t>(part)], ranks[r].intervals);
      if (here.first < here.end) {
        const std::uint32_t dtype = part == ParamTensor::values ? param.dtype : param.sum_dtype;
        const std::uint64_t size = element_bytes(dtype);
        const bool slot = part != ParamTensor::values && part != ParamTensor::gradient;
        const unsigned char* from = read(r, slot && param.slots_on_host != 0,
                                         offset + here.at * size, (here.end - here.first) * size);
        if (!from) return std::nullopt;
        for (std::uint64_t i = here.first; i < here.end; ++i)
          out->values[i] = element_as_double(from, dtype, i - here.first);
      }
      if (here.first == 0 && here.end == param.elements) return out;
    }
  }
  return out;
}

std::vector<std::string> counted_parameters(std::span<const PiperJobRank> ranks) {
  std::vector<std::string> names;
  for (const PiperJobRank& rank : ranks) {
    for (std::uint32_t p = 0; p < rank.program->num_params; ++p) {
      if (rank.program->params[p].counted) names.emplace_back(rank.program->params[p].name);
    }
  }
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

}  // namespace piper::runtime
