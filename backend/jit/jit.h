#pragma once
// Builds generated programs with the host's compiler and loads them. Objects are cached by content.
//
// Guarantees: the key of an object is its source, the flags, the compiler's command, version and target and the text of the two headers, so an object that is
// found is the one that would be built. A file appears in the cache whole or not at all; who loses a race uses the winner's; an object that
// does not load is built again. The source lies beside the object, and so does what the compiler said when it failed. No compiler is trusted with the law of values: beside the
// programs a small one is built whose results are known (`self_check.h`), and where its numbers are others none of them is used.
//
//   std::vector<LoadedProgram> loaded;
//   if (build_programs(sources, {}, loaded, sink) == Built::done) loaded[0].program()->step;

#include <memory>
#include <string>
#include <vector>

#include "ir/diagnostics/diagnostics.h"
#include "runtime/device_abi.h"

namespace piper::backend {

/// Nothing here is read from the environment: whoever calls says where things are.
struct JitOptions {
  std::string compiler = {};          // a command with its first arguments; empty: g++, then c++ on the PATH
  std::string cache_folder = {};      // made when it is missing; empty: none, so programs are built in a temporary folder
  std::string temporary_folder = {};  // where a folder is made when the cache cannot be written; empty: /tmp
  std::uint32_t processes = 0;        // compilers at one time; 0: one per core
  bool self_check = true;             // off where all results are compared anyway
  int stop = -1;                      // a file: once it can be read, compilers are ended and nothing more is built; -1: none
};

/// What an object has: a step of the CPU, or the function that enqueues one on CUDA.
enum class ProgramSort : std::uint8_t { step, enqueue };

/// The source of one program: `name` is a part of file names; errors are told at `train`.
struct ProgramSource {
  std::string name;
  std::string text;
  LocId train = {};
  ProgramSort sort = ProgramSort::step;
};

/// A loaded object, closed at the end.
class LoadedProgram {
 public:
  /// `table`: a PiperProgram or a PiperEnqueue, as the source says.
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
  no_compiler,  // there is none that can be used, and a warning says so: the interpreter takes over
  failed,       // an error says why
  stopped,      // by JitOptions::stop
};

Built build_programs(const std::vector<ProgramSource>& sources, const JitOptions& options, std::vector<LoadedProgram>& loaded, DiagnosticSink& sink);

/// The flags that programs are compiled with; those of them that say for what machine.
std::string compiler_flags();
std::string machine_flags();

}  // namespace piper::backend
