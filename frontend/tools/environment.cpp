#include "frontend/tools/environment.h"

namespace piper::tools {

std::span<const runtime::OptionRow> build_variables() {
  static constexpr runtime::OptionRow kRows[] = {
      {"CXX", "command", "g++, else c++", "builds the generated programs"},
      {"PIPER_CACHE", "folder", "XDG_CACHE_HOME/piper, else HOME/.cache/piper", "keeps what was built"},
      {"TMPDIR", "folder", "/tmp", "programs are built there when the cache cannot be written"},
  };
  return kRows;
}

backend::JitOptions jit_options(const std::map<std::string, std::string>& environment) {
  const auto variable = [&](const char* name) {
    const auto found = environment.find(name);
    return found == environment.end() ? std::string() : found->second;
  };
  backend::JitOptions options;
  options.compiler = variable("CXX");
  options.temporary_folder = variable("TMPDIR");
  options.cache_folder = variable("PIPER_CACHE");
  if (!options.cache_folder.empty()) return options;
  if (const std::string folder = variable("XDG_CACHE_HOME"); !folder.empty()) {
    options.cache_folder = folder + "/piper";
  } else if (const std::string home = variable("HOME"); !home.empty()) {
    options.cache_folder = home + "/.cache/piper";
  }
  return options;
}

}  // namespace piper::tools
