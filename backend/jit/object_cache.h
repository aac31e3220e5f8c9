#pragma once
// Files of built objects in a folder that several processes use at one time.
//
// Guarantees: a stored file appears whole or not at all; an object carries a checksum of itself and its name behind its last byte, so one that was cut
// short, altered or put under another name is not taken for whole; whoever stores second leaves the first one's file in place or puts an equal one there.
// What a process leaves in the making that was killed is removed by the next one that uses the folder while nobody else does.
// A checksum is no signature: a folder or file that another user can have made or changed (`trust.h`) is not used. Folders are made for this user alone.
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
  /// Makes the folder; `error` says why it cannot be used, if it cannot: no file can be written in it, or it is distrusted.
  explicit ObjectCache(std::string folder);
  ~ObjectCache();
  ObjectCache(const ObjectCache&) = delete;
  ObjectCache& operator=(ObjectCache&& other) noexcept;

  std::error_code error() const { return error_; }
  /// Why another user may have a hand in the folder.
  const std::optional<Distrust>& distrust() const { return distrust_; }
  const std::string& folder() const { return folder_; }
  std::string path(const std::string& name) const { return folder_ + "/" + name; }
  /// A name for a file in the making, of its own among all processes and threads.
  std::string path_aside(const std::string& name) const;

  /// Stores a text, unless an equal one is there; gives what was in the way.
  std::error_code store_text(const std::string& name, std::string_view text) const;
  /// Seals an object that was built at `aside` and moves it into place.
  std::error_code store_object(const std::string& aside, const std::string& name) const;
  /// The object is there and as it was stored. One of another user is not, and `distrust` says why.
  bool whole(const std::string& name, std::optional<Distrust>& distrust) const;
  /// The whole text of a stored file; false when it cannot be read or is distrusted.
  bool read(const std::string& name, std::string& text) const;

 private:
  /// Holds the folder among others who use it.
  void share();
  void remove_left_over() const;

  std::string folder_;
  int lock_ = -1;  // a file that is locked: shared while files are made, alone to remove what others have left
  std::error_code error_;
  std::optional<Distrust> distrust_;
};

/// Folders of the cache that headers lie in, by the digest of their texts.
inline constexpr std::string_view kHeaderFolder = "include-";

/// The whole file; false when it cannot be read.
bool read_file(const std::string& path, std::string& text);
/// 40 hexadecimal digits.
std::string digest(std::string_view text);

}  // namespace piper::backend
