#pragma once
// Builds generated programs with the host's compiler and loads them. Objects are cached by content.
//
// Guarantees: the key of an object is its source, the flags, the compiler's command, version and
// target and the text of the two headers, so an object that is found is the one that would be
// built. A file appears in the cache whole or not at all; the loser of a race uses the winner's
// file; an object that does not load is built again. The source is beside the object, and so is the
// compiler's output after a failure. Compilers are checked: beside the programs a small one with
// known results is built (`self_check.h`), and if its numbers differ no program is used.
//
//   std::vector<LoadedProgram> loaded;
//   if (build_programs(sources, {}, loaded, sink) == Built::done) loaded[0].program()->step;

#include <memory>
#include <string>
#include <vector>

#include "ir/diagnostics/diagnostics.h"
#include "runtime/device_abi.h"

namespace piper::backend {

/// The environment is not read; the caller gives all paths.
struct JitOptions {
  // A command with its first arguments; empty: g++, then c++ on the PATH.
  std::string compiler = {};
  // Created if missing; empty: programs are built in a temporary folder.
  std::string cache_folder = {};
  // Parent of the folder used if the cache cannot be written; empty: /tmp.
  std::string temporary_folder = {};
  std::uint32_t processes = 0;  // concurrent compilers; 0: one per core
  bool self_check = true;       // off if all results are compared anyway
  // A file: once it is readable, compilers are ended and nothing more is built; -1: none.
  int stop = -1;
};

/// The content of an object: a step for the CPU, or the function that enqueues a step on CUDA.
enum class ProgramSort : std::uint8_t { step, enqueue };

/// The source of one program: `name` is a part of file names; errors are reported at `train`.
struct ProgramSource {
  std::string name;
  std::string text;
  LocId train = {};
  ProgramSort sort = ProgramSort::step;
};

/// A loaded object, closed at the end.
class LoadedProgram {
 public:
  /// `table`: a PiperProgram or a PiperEnqueue, by the sort of the source.
  LoadedProgram(void* handle, const void* table, std::string path, bool cached);
  LoadedProgram(LoadedProgram&&) noexcept;
  LoadedProgram& operator=(LoadedProgram&&) = delete;
  ~LoadedProgram();

  const PiperProgram* program() const { return static_cast<const PiperProgram*>(table_); }
  const PiperEnqueue* enqueue() const { return static_cast<const PiperEnqueue*>(table_); }
  const std::string& path() const { return path_; }
  bool from_cache() const { return cached_; }

 private:
  void* handle_;
  const void* table_;
  std::string path_;
  bool cached_;
};

enum class Built : std::uint8_t {
  done,         // one loaded program per source, in their order
  no_compiler,  // no usable compiler, with a warning: the interpreter takes over
  failed,       // with an error
  stopped,      // by JitOptions::stop
};

Built build_programs(const std::vector<ProgramSource>& sources, const JitOptions& options,
                     std::vector<LoadedProgram>& loaded, DiagnosticSink& sink);

/// The flags of compiled programs; the machine flags among them.
std::string compiler_flags();
std::string machine_flags();

}  // namespace piper::backend
