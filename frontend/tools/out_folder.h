#pragma once
// The folder that `--out` names, held for one run: two runs in it would write over each other's
// files.
//
// Guarantees: the lock is the kernel's, so a killed run leaves none behind; child processes do not
// inherit it.
//
//   OutFolder folder;
//   if (!folder.hold(session)) return session.finish();   // P6113: `out` is in use by a run ...

#include <string>

#include "frontend/tools/session.h"

namespace piper::tools {

class OutFolder {
 public:
  OutFolder() = default;
  OutFolder(const OutFolder&) = delete;
  OutFolder& operator=(const OutFolder&) = delete;
  ~OutFolder();

  /// Makes and locks the folder of the command line; without `--out` there is nothing to do. False,
  /// and a diagnostic, when it cannot be made, or another run has it.
  bool hold(Session& session);

 private:
  bool lock(Session& session, const std::string& folder);

  std::string path_;  // of the file that is locked
  int file_ = -1;
};

}  // namespace piper::tools
