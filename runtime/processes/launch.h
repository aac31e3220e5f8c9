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

#include "runtime/failure.h"
#include "runtime/options.h"

namespace piper::runtime {

struct Launch {
  std::uint32_t rank = 0, world = 1;
  std::uint32_t local_rank = 0;  // on its machine: the number of its GPU
  std::string host;              // the machine of rank 0, as others reach it
  std::uint16_t port = 0;        // the port on which rank 0 listens
  std::string run = {};          // identifies the run and the attempt, if it is restarted
  // Torchrun itself has a store at that address, which has the port of rank 0.
  bool agent_store = false;
  std::string by = {};  // the names of the variables used: `RANK and WORLD_SIZE`
};

struct LaunchRead {
  std::optional<Launch> launch;    // empty: this process is alone
  std::optional<Failure> failure;  // kBadLaunch
};

inline constexpr std::uint32_t kMaxProcesses = 1u << 20;
inline constexpr std::size_t kMaxRunName = 1024;

using Environment = std::map<std::string, std::string>;
LaunchRead read_launch(const Environment& environment);
/// The variables that a person sets; `--help` lists them.
std::span<const OptionRow> launch_rows();

/// `node-b[07-09,12],login` is node-b07, ...
std::string first_of_nodes(const std::string& nodes);

}  // namespace piper::runtime
