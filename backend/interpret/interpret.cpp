#include "backend/interpret/interpret.h"

#include <algorithm>

#include "backend/dtypes.h"
#include "backend/kernel/evaluate.h"

namespace piper::backend {

namespace {

/// Addresses of operands, first indices of intervals, and values of a report, per device thread,
/// because ranks of one role share the program.
struct Scratch {
  std::vector<void*> pointers;
  std::vector<std::uint64_t> firsts;
  std::vector<double> values;
};
Scratch& scratch() {
  static thread_local Scratch of_thread;
  return of_thread;
}

}  // namespace

Interpreted::Interpreted(const DeviceProgram& program, const std::vector<KernelBody>& bodies)
    : program_(program), bodies_(bodies) {
  for (const ActionName& name : program.names) {
    actions_.push_back({name.name.c_str(),
                        {program.files[name.file].c_str(), name.line, name.column, name.end_line,
                         name.end_column}});
  }
  for (const ProgramStream& stream : program.streams) {
    streams_.push_back({.name = stream.name.c_str(),
                        .num_actions = static_cast<std::uint32_t>(stream.action_of.size()),
                        .high_priority = stream.high_priority ? 1u : 0u,
                        .comm = stream.comm.empty() ? nullptr : stream.comm.data(),
                        .action_of = stream.action_of.data()});
  }
  for (const ProgramParam& param : program.params) {
    params_.push_back(param.entry);
    params_.back().name = param.name.c_str();
    params_.back().dims = param.dims.data();
  }
  for (const ProgramInterval& interval : program.intervals) extents_.push_back(interval.extent);
  for (const Instruction& each : program.instructions) {
    most_operands_ = std::max<std::size_t>(most_operands_, each.num_operands);
    max_intervals_ = std::max<std::size_t>(max_intervals_, each.num_intervals);
  }
  const auto count = [](const auto& list) { return static_cast<std::uint32_t>(list.size()); };
  tables_ = {.abi_version = PIPER_ABI_VERSION,
             .role = program.role.c_str(),
             .hash = program.hash.c_str(),
             .arena_bytes = program.arena_bytes,
             .state_bytes = program.state_bytes,
             .host_bytes = program.host_bytes,
             .host_state_bytes = program.host_state_bytes,
             .scalars_offset = program.scalars_offset,
             .num_actions = count(program.instructions),
             .num_waits = count(program.waits),
             .num_parts = count(program.parts),
             .num_streams = count(program.streams),
             .num_communicators = count(program.communicators),
             .num_intervals = count(extents_),
             .actions = actions_.data(),
             .waits = program.waits.data(),
             .parts = program.parts.data(),
             .streams = streams_.data(),
             .extents = extents_.data(),
             .num_params = count(params_),
             .params = params_.data(),
             .step = &Interpreted::step,
             .context = this};
}

int Interpreted::step(const PiperApi* api, PiperRank* rank) {
  const Interpreted& self = *static_cast<const Interpreted*>(rank->program->context);
  Scratch& space = scratch();
  if (space.pointers.size() < self.most_operands_) space.pointers.resize(self.most_operands_);
  if (space.firsts.size() < self.max_intervals_) space.firsts.resize(self.max_intervals_);
  if (space.values.size() < self.most_operands_) space.values.resize(self.most_operands_);
  for (const std::uint32_t index : self.program_.streams.front().action_of) {
    const Instruction& each = self.program_.instructions[index];
    for (const PiperWait& wait : waits_of(self.program_, each)) {
      if (piper_wait(api, rank, wait.stream, wait.position, wait.distance) != 0) return 1;
    }
    piper_begin(rank, 0, each.position);
    if (const int failed = self.execute(api, rank, index)) return failed;
    piper_end(api, rank, 0, each.position);
  }
  return 0;
}

int Interpreted::execute(const PiperApi* api, PiperRank* rank, std::uint32_t index) const {
  const Instruction& each = program_.instructions[index];
  const std::uint64_t* operands = program_.operands.data() + each.first_operand;
  const std::span<const CallInterval> intervals = intervals_of(program_, each);
  switch (each.kind) {
    case Instruction::Kind::run: {
      std::vector<void*>& pointers = scratch().pointers;
      std::vector<std::uint64_t>& firsts = scratch().firsts;
      std::transform(intervals.begin(), intervals.end(), firsts.begin(),
                     [&](const CallInterval& interval) { return interval.begin(*rank); });
      for (std::uint32_t i = 0; i < each.num_operands; ++i) pointers[i] = rank->arena + operands[i];
      const KernelBody& body = bodies_[each.body];
      for (std::uint32_t i = 0; !intervals.empty() && i < body.num_inputs + body.num_outputs; ++i) {
        const KernelBuffer& buffer = body.buffers[i];
        if (buffer.interval >= 0)
          pointers[i] =
              rank->arena + operands[i] +
              firsts[static_cast<std::size_t>(buffer.interval)] * tensor::dtype_bytes(buffer.dtype);
      }
      return evaluate(body, {.api = api,
                             .rank = rank,
                             .action = index,
                             .operands = {pointers.data(), each.num_operands},
                             .accumulate = {program_.accumulate.data() + each.first_accumulate,
                                            body.num_outputs},
                             .firsts = {firsts.data(), intervals.size()}});
    }
    case Instruction::Kind::load:
      return api->load(rank, index, each.subject, intervals.front().begin(*rank),
                       extents_[intervals.front().interval], rank->arena + operands[0]);
    case Instruction::Kind::count: {
      std::int64_t counted = 0;
      for (std::uint32_t i = 0; i + 1 < each.num_operands; ++i) {
        const auto* targets = reinterpret_cast<const std::int64_t*>(rank->arena + operands[i]);
        counted += static_cast<std::int64_t>(each.elements) -
                   std::count(targets, targets + each.elements, std::int64_t{each.ignore});
      }
      *reinterpret_cast<double*>(rank->arena + operands[each.num_operands - 1]) =
          static_cast<double>(counted);
      return 0;
    }
    case Instruction::Kind::report: {
      double* values = scratch().values.data();
      for (std::uint32_t i = 0; i < each.num_operands; ++i) {
        values[i] =
            element_as_double(rank->arena + operands[i], each.counted && i + 1 == each.num_operands
                                                             ? tensor::DType::f64
                                                             : row_of(each.dtype).dtype);
      }
      api->report(rank, each.subject, values, each.num_operands);
      return 0;
    }
    case Instruction::Kind::communicate: break;  // never on the compute stream
  }
  return 0;
}

}  // namespace piper::backend
