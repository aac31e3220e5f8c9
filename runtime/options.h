#pragma once
// The switches of the runtime, and the only place that reads the environment.
//
//   Options options;
//   if (auto failure = options.read_environment(environ)) ...;   // `PIPER_THREADS=x` is P6013
//   for (const OptionRow& row : option_rows()) print(row.name, row.type, row.initial, row.meaning);

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "runtime/failure.h"

namespace piper::runtime {

/// The library for matrix products and attention: LibTorch, with products of MKL, of oneDNN or of
/// whichever is faster on this processor, or Piper's own loops.
enum class Math : std::uint8_t { automatic, mkl, onednn, builtin };

struct Options {
  std::uint32_t threads = 1;  // threads of one device inside a library call
  Math math = Math::automatic;
  std::string plugin_folder;  // the folder of the plugins; empty: beside the executable
  // A run in which nothing has moved for this long is ended; 0: never.
  double stall_seconds = 300;
  // Polls before a thread sleeps; 0 on a machine with fewer cores than threads.
  std::uint32_t spin = 200;
  bool openmp_waits_as_set = false;  // the environment sets how OpenMP's threads wait for work
  bool huge_pages = true;            // ask for huge pages for the arenas
  bool builtin_attention = false;    // on CUDA attention always uses Piper's own kernels
  bool cuda_graphs = true;           // on CUDA steps are captured as graphs, after the first two
  bool cuda_deterministic = true;    // on CUDA flash attention adds its gradients in one order
  // How long the processes of a run wait for each other before step 1.
  std::uint32_t meet_seconds = 300;
  // Signs of life between the processes of a run; one that is silent for so long is lost (0: never).
  double heartbeat_seconds = 1, silence_seconds = 10;
  // Poison the arenas, guard their ends, count the bytes that are written.
  bool check_memory = false;

  /// Reads the variables of the table from `environment` (null-terminated, `NAME=value`); the
  /// failure names the variable.
  std::optional<Failure> read_environment(const char* const* environment);
};

/// One row of the table that `--help` prints.
struct OptionRow {
  const char* name;
  const char* type;
  const char* initial;
  const char* meaning;
};
std::span<const OptionRow> option_rows();

}  // namespace piper::runtime
