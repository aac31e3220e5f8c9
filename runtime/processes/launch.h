#pragma once
// The rank and the world of this process, as set in the environment by torchrun, mpirun, Slurm or a
// person.
//
//   const LaunchRead read = read_launch(environment);
//   if (read.failure) ...;                 // P6020: `RANK` is 4 of 4 processes
//   if (!read.launch) ...;                 // this process is alone
//   read.launch->rank;

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/failure.h"
#include "runtime/options.h"

namespace piper::runtime {

struct Launch {
  std::uint32_t rank = 0, world = 1;
  std::uint32_t local_rank = 0;  // on its machine: the number of its GPU
  std::string host = {};         // the machine of rank 0, as others reach it
  std::uint16_t port = 0;        // the port on which rank 0 listens
  std::string run = {};          // identifies the run and the attempt, if it is restarted
  // Torchrun itself has a store at that address, which has the port of rank 0.
  bool agent_store = false;
  bool one_machine = false;  // all processes are on this machine, as their launcher says
  std::string by = {};       // the names of the variables used: `RANK and WORLD_SIZE`
  std::uint32_t ranks = 0;   // of the run, if processes have several; else 0
};

/// The ranks of one process of a run: consecutive ones.
struct ProcessRanks {
  std::uint32_t first = 0, count = 0;
  bool has(std::uint32_t rank) const { return rank - first < count; }
};
/// `ranks`: of the run. Processes have equal numbers of them; the first ones have one more if the
/// numbers do not divide.
ProcessRanks ranks_of(std::uint32_t process, std::uint32_t world, std::uint32_t ranks);
/// The process of every rank.
std::vector<std::uint32_t> processes_of_ranks(std::uint32_t world, std::uint32_t ranks);

/// A process in messages: `rank 2`, or, if it has several ranks, `process 1 (ranks 2 to 3)`.
std::string process_text(const Launch& launch, std::uint32_t process);

struct LaunchRead {
  std::optional<Launch> launch;    // empty: this process is alone
  std::optional<Failure> failure;  // kBadLaunch
};

inline constexpr std::uint32_t kMaxProcesses = 1u << 20;
inline constexpr std::size_t kMaxRunName = 1024;
inline constexpr const char* kRunVariable = "PIPER_RUN";

using Environment = std::map<std::string, std::string>;
LaunchRead read_launch(const Environment& environment);
/// The variables that a person sets; `--help` lists them.
std::span<const OptionRow> launch_rows();

/// `node-b[07-09,12],login` is node-b07, ...
std::string first_of_nodes(const std::string& nodes);

}  // namespace piper::runtime
