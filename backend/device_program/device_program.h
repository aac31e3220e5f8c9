#pragma once
// Device programs: the instructions of each role, as tables of plain numbers with names beside
// them.
//
// Guarantees: a program has no rank constants; facts that differ between the ranks of a role
// (members of communicators, samples, shards of buckets) are read from tables of each rank
// (rank_tables.h). Nothing refers to the DAG, so a program may outlive it.
//
//   const ProgramSet programs = make_programs(dag);     // dag.level == planned
//   programs.roles[0].role == "pp0"
//   std::puts(print(programs.roles[0], programs.bodies).c_str());
//
//   program pp0: 26 actions on 2 streams, arena 20480 bytes, of them 8256 state
//     3 compute  F.stage0.mb1  @stage0.F(tokens 8448, token 0) -> (x 8704)  after p2p 0 of the step before  gpt.pipe:14:5

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "backend/kernel/kernel.h"
#include "ir/dag/plan.h"
#include "ir/layout/box.h"
#include "runtime/abi.h"

namespace piper::backend {

/// One action of a role.
struct Instruction {
  enum class Kind : std::uint8_t {
    run,          // a kernel body: chunk, sum_squares, norm or update
    load,         // one operand: the destination of the samples
    count,        // operands: targets of each instance, then the destination of the count
    report,       // one operand per value; the last one of a masked loss is its count, an f64
    communicate,  // an entry of its stream's table
  } kind = Kind::run;
  // In DeviceProgram::streams; position in it.
  std::uint32_t stream = 0, position = 0;
  std::uint32_t first_wait = 0, num_waits = 0;  // into DeviceProgram::waits
  // Into DeviceProgram::operands; run: inputs, outputs, workspace if the body needs one.
  std::uint32_t first_operand = 0, num_operands = 0;
  // Run: into ProgramSet::bodies; into DeviceProgram::accumulate, one per output.
  std::uint32_t body = 0, first_accumulate = 0;
  // Into DeviceProgram::call_intervals; run: intervals of the body; load: the samples.
  std::uint32_t first_interval = 0, num_intervals = 0;
  // Load: the input; report: the loss, or PIPER_NORM.
  std::uint32_t subject = 0;
  std::uint64_t elements = 0;    // count: elements of each operand, i64
  std::int32_t ignore = 0;       // count: the ignored target
  bool counted = false;          // report: of a masked loss
  PiperDType dtype = PIPER_F64;  // report: type of the values
};

/// The name and location of an action in messages.
struct ActionName {
  std::string name;
  std::uint32_t file = 0;                      // into DeviceProgram::files
  std::uint32_t line = 0, column = 0;          // line 0: no location
  std::uint32_t end_line = 0, end_column = 0;  // after the last character
};

struct ProgramStream {
  std::string name;
  bool high_priority = false;
  // Per position; empty for the compute stream, which is stream 0.
  std::vector<PiperCommAction> comm;
  std::vector<std::uint32_t> action_of;  // per position: into DeviceProgram::instructions
};

/// Samples, or elements of a bucket, of which every rank of the role has an interval. Calls add the
/// position in the whole batch.
struct ProgramInterval {
  Sharding cut;
  std::uint64_t extent = 0;  // of each rank's interval; the bodies are made for it
};

struct ProgramParam {
  std::string name;
  std::vector<std::int64_t> dims;
  PiperParam entry{};  // without the two pointers
};

struct DeviceProgram {
  std::string role;  // `pp0`
  std::string hash;  // 32 hex digits over everything below and the bodies that are run
  // Per mesh axis the coordinate, or DeviceSet::kWhole for any without a role of its own.
  std::vector<std::int32_t> at;
  std::uint64_t arena_bytes = 0, state_bytes = 0, host_bytes = 0, host_state_bytes = 0,
                scalars_offset = 0;

  std::vector<Instruction> instructions;  // issue order
  std::vector<ActionName> names;          // per instruction
  // Per instruction: position of its node in the global linear order.
  std::vector<std::uint32_t> places;
  std::vector<std::string> files;
  std::vector<PiperWait> waits;
  std::vector<PiperMessagePart> parts;
  std::vector<std::uint64_t> operands;  // bytes from the start of the arena
  std::vector<std::uint8_t> accumulate;
  std::vector<ProgramStream> streams;
  std::vector<ProgramParam> params;
  // communicators of the plan, ascending: PiperRank::communicators in this order.
  std::vector<dag::CommunicatorId> communicators;
  // PiperRank::intervals in this order; all distinct.
  std::vector<ProgramInterval> intervals;
  std::vector<CallInterval> call_intervals;
};

inline std::span<const std::uint64_t> operands_of(const DeviceProgram& program,
                                                  const Instruction& instruction) {
  return {program.operands.data() + instruction.first_operand, instruction.num_operands};
}
inline std::span<const PiperWait> waits_of(const DeviceProgram& program,
                                           const Instruction& instruction) {
  return {program.waits.data() + instruction.first_wait, instruction.num_waits};
}
inline std::span<const CallInterval> intervals_of(const DeviceProgram& program,
                                                  const Instruction& instruction) {
  return {program.call_intervals.data() + instruction.first_interval, instruction.num_intervals};
}

/// The programs of all roles of one DAG.
struct ProgramSet {
  std::vector<KernelBody> bodies;    // distinct; shared by the roles
  std::vector<DeviceProgram> roles;  // as in dag::Plan::roles
};

/// Bytes of workspace that one run of a chunk, sum_squares, norm or update node needs, which the
/// plan reserves as its last operand.
dag::WorkspaceBytes workspace_bytes(Target target = Target::cpu);

/// Projects a planned DAG without changing it, except that names and types for the optimizer's
/// bodies are interned in its context. The plan must have the workspaces of `target`.
ProgramSet make_programs(const dag::Dag& dag, Target target = Target::cpu);

/// The text of `show program`: one line per instruction in issue order.
std::string print(const DeviceProgram& program, const std::vector<KernelBody>& bodies);

/// `4096, 8192`.
std::string offsets_text(std::span<const std::uint64_t> offsets);

/// `F.stage0.mb3  gpt.pipe:14:5`, for a comment.
std::string title(const DeviceProgram& program, std::uint32_t instruction);

/// `p2p 3`, `p2p 3 of the step before`.
std::string wait_text(const DeviceProgram& program, const PiperWait& wait);

}  // namespace piper::backend
