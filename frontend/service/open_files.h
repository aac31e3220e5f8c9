#pragma once
// The file system as a document sees it: texts that an editor holds replace the files on the disk.
//
//   OpenFiles files(disk, {{"lib/net.pipe", text}});
//   files.read("./lib/net.pipe", limit).text == text
//
// Guarantees: the open texts are those of its creation. Paths that differ only in `.` and `..` name
// one file.

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/source/source_manager.h"

namespace piper::service {

/// By normal path; a text is shared by all versions in which it is the same.
using OpenTexts = std::map<std::string, std::shared_ptr<const std::string>, std::less<>>;

/// `a/../b.pipe` is `b.pipe`. Links are not followed.
std::string normal_path(std::string_view path);

class OpenFiles : public source::FileSystem {
 public:
  /// The disk must outlive it.
  OpenFiles(const source::FileSystem& disk, OpenTexts texts)
      : disk_(&disk), texts_(std::move(texts)), asked_(std::make_unique<Asked>()) {}

  source::ReadResult read(std::string_view path, std::uint64_t limit) const override;

  /// Reading is over: no further file will be read.
  void end_reading() { asked_->ended = true; }
  /// Whether that file was read, or may still be. Thread-safe.
  bool may_read(std::string_view path) const;
  /// The files that have changed on the disk since they were read: written, removed or back.
  /// Thread-safe.
  std::vector<std::string> changed_on_disk() const;

 private:
  struct Asked {
    std::mutex mutex;
    // With a digest of the contents on the disk.
    std::map<std::string, std::uint64_t, std::less<>> paths;
    std::atomic<bool> ended = false;
  };

  const source::FileSystem* disk_;
  OpenTexts texts_;
  std::unique_ptr<Asked> asked_;
};

}  // namespace piper::service
