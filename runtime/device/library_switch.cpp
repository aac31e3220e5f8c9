#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdlib>
#include <string>

#include "runtime/device/library_calls.h"
#include "runtime/shared_library.h"

namespace piper::runtime {
namespace {

std::string folder_of_executable() {
  char path[PATH_MAX];
  const ssize_t length = readlink("/proc/self/exe", path, sizeof(path));
  if (length <= 0) return ".";
  const std::string text(path, static_cast<std::size_t>(length));
  return text.substr(0, text.rfind('/'));
}

// The OpenMP runtime reads this when LibTorch is loaded. By default a thread polls 300,000 times,
// for milliseconds, for the next product before it sleeps. Between products a rank computes alone,
// and on busy cores the polling takes time from the very thread that is waited for. Waking a
// sleeping thread takes some ten microseconds, about as long as 1000 polls.
void look_only_shortly_for_work() { setenv("GOMP_SPINCOUNT", "1000", /*overwrite=*/0); }

}  // namespace

std::string torch_plugin_path(const Options& options) {
  return (options.plugin_folder.empty() ? folder_of_executable() : options.plugin_folder) +
         "/piper_torch_plugin.so";
}

LibrarySwitch::LibrarySwitch(const Options& options) : options_(options) {
  if (options_.math != Math::builtin && !options_.openmp_waits_as_set) look_only_shortly_for_work();
}

const LibraryCalls* LibrarySwitch::get(Failure& failure) {
  const std::lock_guard lock(mutex_);
  if (calls_) return calls_;
  if (options_.math == Math::builtin) return calls_ = &builtin_library_calls();
  const std::string path = torch_plugin_path(options_);
  const auto unavailable = [&](const std::string& reason) {
    failure = {
        .code = kPluginUnavailable,
        .message = reason,
        .hint =
            "name its folder in `PIPER_PLUGINS`, or run without LibTorch, slowly, with `PIPER_MATH=builtin`"};
    return nullptr;
  };
  // The mathematics library inside LibTorch asks for the folder, and ends the process if there is
  // none.
  char folder[PATH_MAX];
  if (!getcwd(folder, sizeof(folder)) && errno == ENOENT) {
    failure = {
        .code = kPluginUnavailable,
        .message = "LibTorch cannot be opened: the folder that the run was started in is gone",
        .hint = "change to an existing folder, and start it again"};
    return nullptr;
  }
  std::string reason;
  void* const library = open_shared_library(path, RTLD_NOW | RTLD_LOCAL, reason);
  if (!library) return unavailable(reason);
  using Entry = const LibraryCalls* (*)();
  const auto entry = reinterpret_cast<Entry>(dlsym(library, kLibraryEntry));
  if (!entry)
    return unavailable("`" + path + "` has no entry `" + std::string(kLibraryEntry) + "`");
  const LibraryCalls* calls = entry();
  if (calls->abi_version != PIPER_ABI_VERSION)
    return unavailable("`" + path + "` was built for another version");
  if (calls->choose(options_.math) != 0) {
    failure = {
        .code = kBadOption,
        .message =
            "the environment variable `PIPER_MATH` is `onednn`, which wants a processor with AVX-512",
        .hint = "unset it to use the faster library of this processor"};
    return nullptr;
  }
  return calls_ = calls;
}

}  // namespace piper::runtime
