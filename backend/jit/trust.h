#pragma once
// Whether another user may have written files that are read back and run.
//
// Guarantees: a folder is trusted if it belongs to the user of this process, and only this user and
// root can write to it or replace it or a folder above it. In a sticky folder (`/tmp`) users cannot
// replace files of others. The walk follows links one by one and checks every folder on the path.
//
//   if (const std::optional<Distrust> distrust = distrust_of_folder("/home/me/.cache/piper")) print(distrust->path, distrust->reason);

#include <optional>
#include <string>

namespace piper::backend {

struct Distrust {
  std::string path;  // of the folder above, the link or the file at fault
  // `can be written by all users (mode 0777)`: continues a message after the path.
  std::string reason;
  bool mode = false;  // its permissions are at fault, not its owner
};

/// Nothing: the folder is trusted. It must exist.
std::optional<Distrust> distrust_of_folder(const std::string& folder);

/// The same for an open file; `path` is its name in reports.
std::optional<Distrust> distrust_of_file(int file, const std::string& path);

}  // namespace piper::backend
