#pragma once
// Files of built objects in a folder that several processes use at one time.
//
// Guarantees: a stored file appears whole or not at all; an object carries a checksum behind its last byte, so one that was cut short or
// altered is not taken for whole; whoever stores second leaves the first one's file in place or puts an equal one there.
//
//   ObjectCache cache("/home/me/.cache/piper");
//   if (cache.whole("pp0-1f2e.so")) dlopen(cache.path("pp0-1f2e.so").c_str(), ...);

#include <string>
#include <string_view>
#include <system_error>

namespace piper::backend {

class ObjectCache {
 public:
  /// Makes the folder; `error` says why no file can be written in it, if none can.
  explicit ObjectCache(std::string folder);

  std::error_code error() const { return error_; }
  const std::string& folder() const { return folder_; }
  std::string path(const std::string& name) const { return folder_ + "/" + name; }
  /// A name for a file in the making, of its own among all processes and threads.
  std::string path_aside(const std::string& name) const;

  /// Stores a text, unless an equal one is there; gives what was in the way.
  std::error_code store_text(const std::string& name, std::string_view text) const;
  /// Seals an object that was built at `aside` and moves it into place.
  std::error_code store_object(const std::string& aside, const std::string& name) const;
  /// The object is there and as it was stored.
  bool whole(const std::string& name) const;

 private:
  std::string folder_;
  std::error_code error_;
};

/// The whole file; false when it cannot be read.
bool read_file(const std::string& path, std::string& text);
/// 40 hexadecimal digits.
std::string digest(std::string_view text);

}  // namespace piper::backend
