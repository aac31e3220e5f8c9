#pragma once
// The files of the editor and the disk: open texts with their versions, the values of the settings,
// the library as files.
//
// Two workspaces have the same texts: one thread answers requests from the first, another compiles
// plans from the second, so that a large plan never makes a hover wait. All functions may be called
// by any thread; a document of a lane belongs to the lane's thread.

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/service/workspace.h"

namespace piper::lsp {

enum class Lane : std::uint8_t { answers, checks };

struct OpenFile {
  std::string path, uri;  // as the client writes it
  std::int64_t version = 0;
};

/// A diagnostic that a check showed: bytes of its file.
struct Found {
  std::uint32_t begin = 0, end = 0;
  Code code{};
};

class Project {
 public:
  /// Library files that an editor shows are written below `cache_folder`. The disk must outlive the
  /// project.
  Project(const source::FileSystem& disk, std::string cache_folder)
      : Project(disk, std::move(cache_folder), std::make_shared<service::CleanChecks>()) {}

  void open(std::string_view uri, std::int64_t version, std::string text);
  /// False for a file that is not open.
  bool edit(std::string_view uri, std::int64_t version, std::span<const service::TextEdit> edits,
            ColumnUnit unit);
  bool edit(std::string_view uri, std::int64_t version, std::string text);
  bool close(std::string_view uri);
  void changed_on_disk(std::string_view path);
  /// The files that have changed on the disk since they were read.
  std::set<std::string> changed_on_disk() const;
  /// False if nothing changes.
  bool choose(service::Choices choices);
  /// The train that the settings name; empty: none.
  std::string chosen_train() const;
  void set_folders(std::vector<std::string> folders);

  std::vector<OpenFile> open_files() const;
  std::optional<OpenFile> find(std::string_view path) const;
  /// A workspace of its own with the open texts, with some texts replaced, to try a change.
  std::unique_ptr<service::Workspace> with_texts(
      const std::map<std::string, std::string>& texts) const;
  /// The newest version, of a lane that other threads do not use.
  std::shared_ptr<service::Document> document(Lane lane, std::string_view path);
  /// Whether `document` is the newest version.
  bool is_newest(Lane lane, const service::Document& document);
  /// The files to look for uses and declarations in: those that are open, and the `.pipe` files of
  /// the folders.
  std::vector<std::string> paths() const;

  /// The diagnostics of the last check of a file in it.
  void set_found(const std::string& path, std::vector<Found> found);
  std::vector<Found> found(std::string_view path) const;

  /// The URI of a file of a document. A library file is written to the cache first; empty if that
  /// fails.
  std::string uri(const SourceTable& files, FileId file) const;
  /// Writes a text for the editor to show; gives its URI, empty when that fails.
  std::string show(const std::string& name, const std::string& text) const;

 private:
  Project(const source::FileSystem& disk, std::string cache_folder,
          const std::shared_ptr<service::CleanChecks>& clean)
      : disk_(disk),
        lanes_{service::Workspace(disk_, clean), service::Workspace(disk_, clean)},
        cache_folder_(std::move(cache_folder)) {}
  std::string write(const std::string& name, std::string_view text, bool once) const;

  mutable std::mutex mutex_;
  source::UnblockingFileSystem disk_;
  service::Workspace lanes_[2];
  std::map<std::string, OpenFile, std::less<>> open_;  // by path
  std::map<std::string, std::vector<Found>, std::less<>> found_;
  std::vector<std::string> folders_;
  service::Choices choices_;
  const std::string cache_folder_;
};

}  // namespace piper::lsp
