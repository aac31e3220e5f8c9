#pragma once
// Files in memory, in front of the disk.

#include <map>
#include <string>

#include "frontend/source/source_manager.h"

namespace piper::test {

class LayeredFiles : public source::FileSystem {
 public:
  explicit LayeredFiles(const std::map<std::string, std::string>& files) : files_(files) {}
  source::ReadResult read(std::string_view path, std::uint64_t limit) const override {
    const auto found = files_.find(std::string(path));
    return found != files_.end() ? source::ReadResult{found->second, "", 0}
                                 : disk_.read(path, limit);
  }

 private:
  const std::map<std::string, std::string>& files_;
  source::RealFileSystem disk_;
};

}  // namespace piper::test
