#pragma once
// Files of built objects in a folder that several processes use concurrently.
//
// Guarantees: a stored file appears whole or not at all; an object has a checksum of itself and its
// name after its last byte, so a truncated, altered or renamed one is rejected; a second store
// leaves the first file in place or replaces it by an equal one. Unfinished files of killed
// processes are removed by the next process that uses the folder alone. A checksum is no signature:
// a folder or file that another user may have made or changed (`trust.h`) is not used. Folders are
// created for this user alone.
//
//   ObjectCache cache("/home/me/.cache/piper");
//   if (cache.whole("pp0-1f2e.so")) dlopen(cache.path("pp0-1f2e.so").c_str(), ...);

#include <optional>
#include <string>
#include <string_view>
#include <system_error>

#include "backend/jit/trust.h"

namespace piper::backend {

class ObjectCache {
 public:
  /// Creates the folder; `error` is set if it is unusable: no file can be written in it, or it is
  /// distrusted.
  explicit ObjectCache(std::string folder);
  ~ObjectCache();
  ObjectCache(const ObjectCache&) = delete;
  ObjectCache& operator=(ObjectCache&& other) noexcept;

  std::error_code error() const { return error_; }
  /// The reason why another user may have changed the folder.
  const std::optional<Distrust>& distrust() const { return distrust_; }
  const std::string& folder() const { return folder_; }
  std::string path(const std::string& name) const { return folder_ + "/" + name; }
  /// A name for an unfinished file, unique among all processes and threads.
  std::string path_aside(const std::string& name) const;

  /// Stores a text, unless an equal one is there; returns the error.
  std::error_code store_text(const std::string& name, std::string_view text) const;
  /// Seals an object that was built at `aside` and moves it into place.
  std::error_code store_object(const std::string& aside, const std::string& name) const;
  /// Whether the object is there and unchanged. One of another user counts as missing, and
  /// `distrust` has the reason.
  bool whole(const std::string& name, std::optional<Distrust>& distrust) const;
  /// The whole text of a stored file; false if it cannot be read or is distrusted.
  bool read(const std::string& name, std::string& text) const;

 private:
  /// Takes the shared lock of the folder.
  void share();
  void remove_left_over() const;

  std::string folder_;
  int lock_ = -1;  // a lock file: shared while files are made, exclusive to remove leftovers
  std::error_code error_;
  std::optional<Distrust> distrust_;
};

/// The right to build one object of a folder: processes that start together build each once. It is
/// a lock of the kernel, on a byte of a file of the folder, so a killed process leaves none behind.
class BuildClaim {
 public:
  BuildClaim() = default;
  ~BuildClaim();
  BuildClaim(BuildClaim&& other) noexcept;
  BuildClaim& operator=(BuildClaim&&) = delete;

  /// False if another process has it. If the folder has no locks, everyone has it.
  bool take(const ObjectCache& cache, const std::string& name);

 private:
  int file_ = -1;
};

/// Folders of the cache with headers, by the digest of their texts.
inline constexpr std::string_view kHeaderFolder = "include-";

/// The whole file; false if it cannot be read.
bool read_file(const std::string& path, std::string& text);
/// 40 hexadecimal digits.
std::string digest(std::string_view text);

}  // namespace piper::backend
