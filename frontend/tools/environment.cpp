#include "frontend/tools/environment.h"

#include <algorithm>

#include "frontend/tools/arguments.h"
#include "runtime/processes/launch.h"

namespace piper::tools {

std::vector<runtime::OptionRow> environment_variables() {
  std::vector<runtime::OptionRow> rows = {
      {"CXX", "command", "g++, else c++", "builds the generated programs"},
      {"PIPER_CACHE", "folder", "XDG_CACHE_HOME/piper, else HOME/.cache/piper",
       "keeps what was built"},
      {"PIPER_CUDA_PATH", "folder", "CUDA_HOME, CUDA_PATH, /usr/local/cuda",
       "a CUDA toolkit, or unpacked wheels: the only place then"},
      {"PIPER_TORCH_PATH", "folder", "",
       "a LibTorch for CUDA: the folder of `libtorch_cuda.so`, or one above"},
      {"TMPDIR", "folder", "/tmp", "programs are built there when the cache cannot be written"},
  };
  for (const runtime::OptionRow& row : runtime::launch_rows()) rows.push_back(row);
  rows.insert(rows.end(), runtime::option_rows().begin(), runtime::option_rows().end());
  return rows;
}

std::vector<runtime::OptionRow> session_variables() {
  return {
      {"EDITOR", "command", "vi", "changes definitions, by `:edit`"},
      {"PIPER_HISTORY", "file",
       "XDG_STATE_HOME/piper/history, else HOME/.local/state/piper/history",
       "keeps the typed entries; empty: none"},
  };
}

void report_unknown_variables(const std::map<std::string, std::string>& environment,
                              DiagnosticSink& sink) {
  constexpr std::string_view kPrefix = "PIPER_";
  std::vector<std::string> known;  // behind the prefix, which makes names no more alike
  for (const auto& rows : {environment_variables(), session_variables()}) {
    for (const runtime::OptionRow& row : rows) {
      if (const std::string_view name = row.name; name.starts_with(kPrefix))
        known.emplace_back(name.substr(kPrefix.size()));
    }
  }
  for (auto variable = environment.lower_bound(std::string(kPrefix));
       variable != environment.end() && variable->first.starts_with(kPrefix); ++variable) {
    const std::string name = variable->first.substr(kPrefix.size());
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    auto&& builder = sink.report(
        Code::unknown_variable, SourceRange(),
        "piper reads no environment variable named `{}`: it changes nothing", variable->first);
    if (const auto meant = nearest(name, known)) {
      builder.hint("did you mean `{}{}`?", kPrefix, *meant);
    } else {
      builder.hint("`piper train --help` lists those that it reads");
    }
  }
}

namespace {

std::string value_of(const std::map<std::string, std::string>& environment, const char* name) {
  const auto found = environment.find(name);
  return found == environment.end() ? std::string() : found->second;
}

}  // namespace

std::string history_path(const std::map<std::string, std::string>& environment) {
  if (environment.contains("PIPER_HISTORY")) return value_of(environment, "PIPER_HISTORY");
  if (const std::string folder = value_of(environment, "XDG_STATE_HOME"); !folder.empty())
    return folder + "/piper/history";
  const std::string home = value_of(environment, "HOME");
  return home.empty() ? "" : home + "/.local/state/piper/history";
}

backend::JitOptions jit_options(const std::map<std::string, std::string>& environment) {
  const auto variable = [&](const char* name) { return value_of(environment, name); };
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
