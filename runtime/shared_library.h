#pragma once
// Functions of a library that is opened at run time.
//
//   void* const library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);   // null: loader_error() says why
//   LibraryFunctions functions(library);
//   functions.get(init, "cuInit");
//   functions.missing();

#include <dlfcn.h>

#include <string>

namespace piper::runtime {

/// Why the last dlopen gave nothing.
inline std::string loader_error() {
  const char* const said = dlerror();
  return said != nullptr ? said : "no reason given";
}

class LibraryFunctions {
 public:
  explicit LibraryFunctions(void* library) : library_(library) {}

  /// Null where the library lacks it.
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
