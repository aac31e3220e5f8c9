#include "runtime/executor/check_tables.h"

#include <map>
#include <string>
#include <vector>

#include "runtime/dtypes.h"
#include "runtime/transport/transport.h"

namespace piper::runtime {
namespace {

Failure bad(std::uint32_t rank, const std::string& what) {
  return {
      .code = kBadJob,
      .message = what,
      .hint = "this is a fault of the compiler or of the caller of the runtime, not of the program",
      .rank = rank};
}

bool inside(std::uint64_t offset, std::uint64_t bytes, std::uint64_t end) {
  return offset <= end && bytes <= end - offset;
}

/// Flags that parts of an operation may have.
constexpr std::uint32_t flags_of(std::uint32_t op) {
  switch (static_cast<PiperCommOp>(op)) {
    case PIPER_SEND:
    case PIPER_RECV:
    case PIPER_ALL_REDUCE:
    case PIPER_ALL_GATHER_V:
    case PIPER_OFFLOAD:
    case PIPER_FETCH: return 0;
    case PIPER_REDUCE_SCATTER: return PIPER_SHARD_ONLY | PIPER_ACCUMULATE | PIPER_ZERO_FILL;
    case PIPER_ALL_GATHER: return PIPER_SHARD_ONLY;
  }
  return 0;
}

/// The rank's intervals have the extents that the program was generated for.
std::optional<Failure> check_intervals(std::uint32_t rank, const PiperProgram& program,
                                       const PiperInterval* intervals) {
  if (program.num_intervals && (!intervals || !program.extents))
    return bad(rank, "the intervals are missing");
  for (std::uint32_t i = 0; i < program.num_intervals; ++i) {
    const PiperInterval& own = intervals[i];
    if (!inside(own.first, own.extent, own.global))
      return bad(rank, "an interval reaches beyond its dimension");
    if (own.extent != program.extents[i])
      return bad(rank, "the program was generated for an interval of another extent");
  }
  return std::nullopt;
}

std::optional<Failure> check_part(std::uint32_t rank, const PiperProgram& program,
                                  const PiperCommunicator& communicator,
                                  const PiperInterval* intervals, std::uint32_t op,
                                  const PiperMessagePart& part) {
  if (dtype_name(part.dtype) == nullptr) return bad(rank, "a part has an unknown dtype");
  if ((part.flags & ~flags_of(op)) != 0)
    return bad(rank, "a part has a flag that its operation does not know");
  if (part.elements > (std::uint64_t{1} << 48)) return bad(rank, "a part is too large");
  if (part.interval != PIPER_ALL_POSITIONS &&
      (part.interval >= program.num_intervals || part.elements != intervals[part.interval].extent))
    return bad(rank, "a part is not the interval that it names");
  const std::uint64_t size = element_bytes(part.dtype),
                      first =
                          part.interval == PIPER_ALL_POSITIONS ? 0 : intervals[part.interval].first;
  const auto reaches = [&](std::uint32_t where_alone) {
    const bool alone = op == where_alone && (part.flags & PIPER_SHARD_ONLY) != 0;
    return (first +
            (alone ? piper_shard(part.elements, communicator.num_members, communicator.self).extent
                   : part.elements)) *
           size;
  };
  const bool reads = op == PIPER_SEND || (op != PIPER_RECV && part.in != PIPER_NO_OFFSET);
  if (reads && !inside(part.in, reaches(PIPER_ALL_GATHER),
                       op == PIPER_FETCH ? program.host_bytes : program.arena_bytes))
    return bad(rank, "a part is read outside the arena");
  if (op != PIPER_SEND && !inside(part.out, reaches(PIPER_REDUCE_SCATTER),
                                  op == PIPER_OFFLOAD ? program.host_bytes : program.arena_bytes))
    return bad(rank, "a part is written outside the arena");
  return std::nullopt;
}

std::optional<Failure> check_action(std::uint32_t rank, const PiperProgram& program,
                                    const PiperCommunicator* communicators,
                                    const PiperInterval* intervals, std::uint32_t stream,
                                    const PiperCommAction& action,
                                    std::vector<std::uint32_t>& stream_of) {
  if (action.op >= PIPER_COMM_OPS || action.communicator >= program.num_communicators ||
      action.action >= program.num_actions) {
    return bad(
        rank, "a communication refers to an operation, communicator or action that does not exist");
  }
  std::uint32_t& owner = stream_of[action.communicator];
  if (owner != 0 && owner != stream) return bad(rank, "a communicator is used on two streams");
  owner = stream;
  if (!inside(action.first_part, action.num_parts, program.num_parts) ||
      !inside(action.first_wait, action.num_waits, program.num_waits)) {
    return bad(rank, "a communication's parts or waits lie outside their table");
  }
  for (std::uint32_t i = 0; i < action.num_parts; ++i) {
    if (auto failure = check_part(rank, program, communicators[action.communicator], intervals,
                                  action.op, program.parts[action.first_part + i]))
      return failure;
  }
  for (std::uint32_t i = 0; i < action.num_waits; ++i) {
    const PiperWait& wait = program.waits[action.first_wait + i];
    if (wait.stream >= program.num_streams || wait.distance > 1 ||
        wait.position >= program.streams[wait.stream].num_actions) {
      return bad(rank, "a communication waits for an action that does not exist");
    }
  }
  return std::nullopt;
}

std::optional<Failure> check_param(std::uint32_t rank, const PiperProgram& program,
                                   const PiperInterval* intervals, const PiperParam& param) {
  const auto wrong = [&](const char* what) {
    return bad(rank, "the parameter `" + std::string(param.name) + "` " + what);
  };
  if (!is_floating(param.dtype) || param.sum_dtype != wide_dtype(param.dtype))
    return wrong("has a dtype that is not floating");
  if (param.average_slot > PIPER_MAX_SLOTS) return wrong("has its average in no slot");
  if (param.interval != PIPER_ALL_POSITIONS &&
      (param.interval >= program.num_intervals ||
       !inside(param.first, param.elements, intervals[param.interval].global))) {
    return wrong("lies outside its bucket");
  }
  const auto kept = [&](PiperSharded what) {
    const std::uint64_t size =
        element_bytes(what == PIPER_SHARDED_PARAMETERS ? param.dtype : param.sum_dtype);
    return (param.interval == PIPER_ALL_POSITIONS || what > static_cast<PiperSharded>(param.sharded)
                ? param.elements
                : intervals[param.interval].extent) *
           size;
  };
  struct Place {
    std::uint64_t offset, bytes, end;
  };
  const std::uint64_t slots_end =
      param.slots_on_host ? program.host_state_bytes : program.state_bytes;
  std::vector<Place> places = {
      {param.offset, kept(PIPER_SHARDED_PARAMETERS), program.state_bytes},
      {param.grad_offset, kept(PIPER_SHARDED_GRADIENTS), program.state_bytes}};
  for (const std::uint64_t slot : param.slot_offsets)
    places.push_back({slot, kept(PIPER_SHARDED_OPTIMIZER), slots_end});
  for (const Place& place : places) {
    if (place.offset != PIPER_NO_OFFSET && !inside(place.offset, place.bytes, place.end))
      return wrong("lies outside the state");
  }
  return std::nullopt;
}

std::optional<Failure> check_program(std::uint32_t rank, const PiperProgram& program,
                                     const PiperCommunicator* communicators,
                                     const PiperInterval* intervals, bool trains) {
  if (program.abi_version != PIPER_ABI_VERSION)
    return bad(rank,
               "the program was built for ABI version " + std::to_string(program.abi_version));
  if (!program.step) return bad(rank, "the program has no step function");
  if (program.num_streams == 0 || program.num_streams > PIPER_MAX_STREAMS) {
    return bad(rank, "the program has " + std::to_string(program.num_streams) +
                         " streams; between 1 and " + std::to_string(PIPER_MAX_STREAMS) +
                         " are possible");
  }
  if (program.state_bytes > program.arena_bytes || program.host_state_bytes > program.host_bytes)
    return bad(rank, "the state is larger than the arena");
  if (trains && !inside(program.scalars_offset, sizeof(PiperScalars), program.arena_bytes))
    return bad(rank, "the scalars lie outside the arena");
  if (program.num_communicators && !communicators)
    return bad(rank, "the communicators are missing");
  for (std::uint32_t c = 0; c < program.num_communicators; ++c) {
    const PiperCommunicator& communicator = communicators[c];
    if (communicator.num_members == 0 || communicator.self >= communicator.num_members ||
        communicator.members[communicator.self] != rank) {
      return bad(rank, "communicator `" + std::to_string(communicator.id) +
                           "` does not have this rank where it says");
    }
  }
  if (auto failure = check_intervals(rank, program, intervals)) return failure;
  std::vector<std::uint32_t> stream_of(program.num_communicators);
  for (std::uint32_t s = 0; s < program.num_streams; ++s) {
    const PiperStream& stream = program.streams[s];
    if ((s == 0) != (stream.comm == nullptr) && stream.num_actions)
      return bad(rank, "stream 0 alone computes; all others communicate");
    for (std::uint32_t i = 0; stream.comm && i < stream.num_actions; ++i) {
      if (auto failure =
              check_action(rank, program, communicators, intervals, s, stream.comm[i], stream_of))
        return failure;
    }
  }
  for (std::uint32_t p = 0; p < program.num_params; ++p) {
    if (auto failure = check_param(rank, program, intervals, program.params[p])) return failure;
  }
  return std::nullopt;
}

// All ranks are in the job: every member of a communicator must be one of them and describe it
// equally.
std::optional<Failure> check_members(const PiperJob& job, bool evaluation) {
  // Id -> one member's view, members seen.
  std::map<std::uint32_t, std::pair<const PiperCommunicator*, std::uint32_t>> seen;
  for (std::uint32_t r = 0; r < job.num_ranks; ++r) {
    const PiperJobRank& rank = job.ranks[r];
    const PiperProgram* program = evaluation ? rank.evaluation : rank.program;
    const PiperCommunicator* communicators =
        evaluation ? rank.evaluation_communicators : rank.communicators;
    for (std::uint32_t c = 0; program && c < program->num_communicators; ++c) {
      const PiperCommunicator& mine = communicators[c];
      auto& [first, count] = seen.try_emplace(mine.id, &mine, 0u).first->second;
      ++count;
      bool same = first->num_members == mine.num_members && first->kind == mine.kind;
      for (std::uint32_t m = 0; same && first->members != mine.members && m < mine.num_members; ++m)
        same = first->members[m] == mine.members[m];
      if (!same)
        return bad(rank.rank, "communicator `" + std::to_string(mine.id) +
                                  "` has other members on another rank");
    }
  }
  if (job.num_ranks != job.world) return std::nullopt;
  for (const auto& [id, entry] : seen) {
    if (entry.second != entry.first->num_members)
      return bad(entry.first->members[0],
                 "communicator `" + std::to_string(id) + "` lacks a member");
  }
  return std::nullopt;
}

}  // namespace

std::optional<Failure> check_tables(const PiperJob& job) {
  if (job.abi_version != PIPER_ABI_VERSION)
    return bad(Failure::kNoRank,
               "the job was built for ABI version " + std::to_string(job.abi_version));
  if (job.num_ranks == 0) return bad(Failure::kNoRank, "the job has no ranks");
  const bool evaluates = job.ranks[0].evaluation != nullptr;
  for (std::uint32_t r = 0; r < job.num_ranks; ++r) {
    const PiperJobRank& rank = job.ranks[r];
    if (!rank.program) return bad(rank.rank, "the rank has no program");
    if (auto failure =
            check_program(rank.rank, *rank.program, rank.communicators, rank.intervals, true))
      return failure;
    if ((rank.evaluation != nullptr) != evaluates)
      return bad(rank.rank, "some ranks have an evaluation program and others do not");
    if (!rank.evaluation) continue;
    if (auto failure = check_program(rank.rank, *rank.evaluation, rank.evaluation_communicators,
                                     rank.evaluation_intervals, false))
      return failure;
    if (rank.evaluation->state_bytes != rank.program->state_bytes ||
        rank.evaluation->host_state_bytes != rank.program->host_state_bytes)
      return bad(rank.rank, "the two programs lay out the state differently");
  }
  if (auto failure = check_members(job, false)) return failure;
  return check_members(job, true);
}

}  // namespace piper::runtime
