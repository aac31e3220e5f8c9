#pragma once
// Functions of a library that is opened at run time.
//
//   std::string reason;
//   void* const library = open_shared_library("/opt/cuda/lib/libcublasLt.so.13", RTLD_NOW | RTLD_LOCAL, reason);   // null: `... is cut off: 100000 bytes of 106672304`
//   LibraryFunctions functions(library);
//   functions.get(init, "cuInit");
//   functions.missing();

#include <dlfcn.h>

#include <string>

namespace piper::runtime {

/// The reason why the last dlopen failed.
inline std::string loader_error() {
  const char* const said = dlerror();
  return said != nullptr ? said : "no reason given";
}

/// The reason why the file, or a library that the loader opens with it, is truncated:
/// `/opt/torch/lib/libc10.so` is cut off: 100000 bytes of 1335544. Empty if all are complete, and
/// if the file cannot be read: dlopen reports that.
std::string broken_library(const std::string& path);

/// dlopen, for names and for paths. Refuses a path if its file, or that of a library it needs, is
/// truncated: the loader would map it, and the process would die of SIGBUS at the first missing
/// page. On failure the result is null, and the reason names the file.
void* open_shared_library(const std::string& path, int flags, std::string& reason);

class LibraryFunctions {
 public:
  explicit LibraryFunctions(void* library) : library_(library) {}

  /// Null if the library lacks it.
  template <typename F>
  void get(F*& function, const char* name) {
    function = reinterpret_cast<F*>(dlsym(library_, name));
    if (function == nullptr) missing_ = name;
  }
  /// The name of a function that the library lacks, or null.
  const char* missing() const { return missing_; }

 private:
  void* library_;
  const char* missing_ = nullptr;
};

}  // namespace piper::runtime
