#include "runtime/processes/launch.h"

#include <algorithm>
#include <charconv>
#include <iterator>

namespace piper::runtime {

namespace {

constexpr std::uint16_t kPort = 29500;  // if no variable sets another

/// The variables of one launcher.
struct Names {
  const char *by, *rank, *world, *local_rank;
  // The number of processes on this machine, if the launcher sets it.
  const char* local_world = nullptr;
  // Another launcher may set the first two names, without the number on the machine: then that one
  // is meant.
  bool shares = false;
};
constexpr Names kByHand = {"RANK and WORLD_SIZE", "RANK", "WORLD_SIZE", "LOCAL_RANK",
                           "LOCAL_WORLD_SIZE"};
constexpr Names kOpenMpi = {"mpirun", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
                            "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"};
constexpr const char* kSlurm = "Slurm";
/// Inside a job of Slurm, processes of mpirun also have the numbers that Slurm gave to parts of
/// mpirun, so mpirun comes first. Slurm itself may set PMI_RANK, PMI_SIZE and PMIX_RANK.
constexpr Names kLaunchers[] = {
    kOpenMpi,
    // MVAPICH.
    {"mpirun", "MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_LOCAL_RANK",
     "MV2_COMM_WORLD_LOCAL_SIZE"},
    // MPICH and Intel MPI.
    {"mpirun", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS", true},
    {kSlurm, "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID"},
};

class Reader {
 public:
  explicit Reader(const Environment& environment) : environment_(environment) {}

  LaunchRead run() {
    const bool by_hand = has("RANK") || has("WORLD_SIZE");
    if (by_hand) {
      read(kByHand);
      // If mpirun sets the usual names, too, it sets equal numbers.
      if (!failure_ && has(kOpenMpi.rank) && number(kOpenMpi.rank, kMaxProcesses) != launch_.rank) {
        fail("`RANK` is `" + std::to_string(launch_.rank) + "`, but mpirun says `" +
                 text(kOpenMpi.rank) + "` in `" + kOpenMpi.rank + "`",
             "unset the one that is wrong");
      }
    } else {
      const auto* const launcher =
          std::find_if(std::begin(kLaunchers), std::end(kLaunchers),
                       [&](const Names& names) { return starts_several(names); });
      if (launcher == std::end(kLaunchers)) return {{}, std::move(failure_)};
      read(*launcher);
    }
    if (!failure_) read_rendezvous();
    if (failure_) return {{}, std::move(failure_)};
    return {std::move(launch_), {}};
  }

 private:
  bool has(const char* name) const { return !text(name).empty(); }
  std::string text(const char* name) const {
    const auto found = environment_.find(name);
    return found == environment_.end() ? std::string() : found->second;
  }
  void fail(std::string message, std::string hint) {
    if (!failure_)
      failure_ =
          Failure{.code = kBadLaunch, .message = std::move(message), .hint = std::move(hint)};
  }

  std::uint32_t number(const char* name, std::uint32_t most) {
    const std::string written = text(name);
    std::uint32_t value = 0;
    const auto [end, error] =
        std::from_chars(written.data(), written.data() + written.size(), value);
    if (error == std::errc() && end == written.data() + written.size() && value <= most)
      return value;
    fail("the environment variable `" + std::string(name) + "` is `" + written + "`",
         "write a number up to " + std::to_string(most) + ", or unset it");
    return 0;
  }

  /// A launcher of one process, such as a shell within a job of Slurm, does not count.
  bool starts_several(const Names& names) {
    return has(names.rank) && has(names.world) && (!names.shares || has(names.local_rank)) &&
           number(names.world, kMaxProcesses) > 1;
  }

  void read(const Names& names) {
    launch_.by = names.by;
    launch_.one_machine =
        names.local_world != nullptr && text(names.local_world) == text(names.world);
    for (const auto& [one, other] :
         {std::pair{names.rank, names.world}, {names.world, names.rank}}) {
      if (!has(one))
        return fail("`" + std::string(other) + "` is set, but not `" + one + "`",
                    "set both, or none: then one process runs all ranks");
    }
    launch_.rank = number(names.rank, kMaxProcesses);
    launch_.world = number(names.world, kMaxProcesses);
    if (failure_) return;
    if (launch_.world == 0)
      return fail("`" + std::string(names.world) + "` is `0`",
                  "it is the number of all processes of the run");
    if (launch_.rank >= launch_.world) {
      return fail("`" + std::string(names.rank) + "` is `" + std::to_string(launch_.rank) +
                      "` of `" + std::to_string(launch_.world) + "` processes",
                  "ranks count from 0");
    }
    if (has(names.local_rank)) {
      launch_.local_rank = number(names.local_rank, kMaxProcesses);
    } else if (launch_.world > 1) {
      fail("`" + std::string(names.rank) + "` and `" + names.world + "` are set, but not `" +
               names.local_rank + "`",
           "it is the number of the process, and of its GPU, on its machine, from 0");
    }
  }

  void read_rendezvous() {
    launch_.host = text("MASTER_ADDR");
    const bool slurm = launch_.by == kSlurm;
    if (launch_.host.empty() && slurm) launch_.host = first_of_nodes(text("SLURM_STEP_NODELIST"));
    if (launch_.host.empty() && (launch_.world == 1 || launch_.one_machine))
      launch_.host = "127.0.0.1";
    if (launch_.host.empty())
      return fail("there are `" + std::to_string(launch_.world) +
                      "` processes, but `MASTER_ADDR` is not set",
                  "it is the machine of rank 0, by a name that all others can reach");
    launch_.port = kPort;
    if (has("MASTER_PORT")) {
      launch_.port = static_cast<std::uint16_t>(number("MASTER_PORT", 65535));
      if (launch_.port == 0)
        fail("the environment variable `MASTER_PORT` is `0`",
             "write a number from 1 to 65535, or unset it");
    } else if (slurm) {
      // Jobs that share a machine get different ports.
      launch_.port =
          static_cast<std::uint16_t>(20000 + number("SLURM_JOB_ID", 0xFFFFFFFFu) % 12000);
    }
    launch_.agent_store = text("TORCHELASTIC_USE_AGENT_STORE") == "True";
    for (const char* name : {kRunVariable, "TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT",
                             "SLURM_JOB_ID", "SLURM_STEP_ID"})
      launch_.run += (launch_.run.empty() ? "" : "/") + text(name);
    if (launch_.run.size() > kMaxRunName)
      fail("the name of the run has " + std::to_string(launch_.run.size()) + " bytes",
           "`PIPER_RUN` and `TORCHELASTIC_RUN_ID` have a few hundred bytes at most");
  }

  const Environment& environment_;
  Launch launch_;
  std::optional<Failure> failure_;
};

}  // namespace

ProcessRanks ranks_of(std::uint32_t process, std::uint32_t world, std::uint32_t ranks) {
  const PiperInterval interval = piper_shard(ranks, world, process);
  return {static_cast<std::uint32_t>(interval.first), static_cast<std::uint32_t>(interval.extent)};
}

std::vector<std::uint32_t> processes_of_ranks(std::uint32_t world, std::uint32_t ranks) {
  std::vector<std::uint32_t> processes;
  for (std::uint32_t process = 0; process < world; ++process)
    processes.insert(processes.end(), ranks_of(process, world, ranks).count, process);
  return processes;
}

std::string process_text(const Launch& launch, std::uint32_t process) {
  if (launch.ranks == 0 || launch.ranks == launch.world) return "rank " + std::to_string(process);
  const ProcessRanks ranks = ranks_of(process, launch.world, launch.ranks);
  return "process " + std::to_string(process) +
         (ranks.count == 1 ? " (rank " + std::to_string(ranks.first) + ")"
                           : " (ranks " + std::to_string(ranks.first) + " to " +
                                 std::to_string(ranks.first + ranks.count - 1) + ")");
}

LaunchRead read_launch(const Environment& environment) { return Reader(environment).run(); }

std::span<const OptionRow> launch_rows() {
  static constexpr OptionRow kRows[] = {
      {"LOCAL_RANK", "number", "",
       "the number of this process, and of its GPU, on its machine; launchers set it"},
      {"MASTER_ADDR", "machine", "", "the address of the process of rank 0, for the others"},
      {"MASTER_PORT", "port", "29500",
       "the port of rank 0; inside a job of Slurm one of the job's"},
      {kRunVariable, "name", "",
       "the name of the run, the same for all its processes; another run at that port is refused"},
      {"PIPER_RUN_TOKEN", "32 to 256 characters", "",
       "the secret by which the processes of a run recognise each other; `-n` makes one"},
      {"PIPER_RUN_TOKEN_FILE", "file", "", "a file with that secret, which no other user may read"},
      {"RANK", "number", "", "the rank of this process; mpirun and Slurm set their own variables"},
      {"WORLD_SIZE", "number", "", "the number of processes; none: one process runs all ranks"},
  };
  return kRows;
}

std::string first_of_nodes(const std::string& nodes) {
  const std::size_t end = nodes.find_first_of("[,");
  if (end == std::string::npos || nodes[end] == ',') return nodes.substr(0, end);
  const std::size_t first_end = nodes.find_first_of("-,]", end);
  return nodes.substr(0, end) +
         (first_end == std::string::npos ? "" : nodes.substr(end + 1, first_end - end - 1));
}

}  // namespace piper::runtime
