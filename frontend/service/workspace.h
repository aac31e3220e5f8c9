#pragma once
// The files of an editing session: their unsaved texts, and a document for each version of each.
//
//   Workspace workspace(disk);
//   workspace.open("lib/net.pipe", text);
//   workspace.document("demo.pipe")->check();      // `use lib.net` reads the text above, not the file
//   workspace.edit("lib/net.pipe", {{{3, 5}, {3, 9}, "stage"}}, ColumnUnit::utf16);
//   workspace.document("demo.pipe")->check();      // a new document: a file that it uses has changed
//
// One thread opens, edits and asks for documents; each document may be given to a thread of its
// own, and outlives its workspace, not the disk.

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/service/document.h"

namespace piper::service {

/// The text between two positions, the second one exclusive, is replaced.
struct TextEdit {
  LineColumn start, end;
  std::string text;
};

/// Applies `edits` one after the other, each to the result of those before it.
std::string apply_edits(std::string text, std::span<const TextEdit> edits, ColumnUnit unit);
/// The text of a file with a fix applied; positions refer to the unchanged text, and edits of other
/// files are left out.
std::string apply_fix(std::string_view text, FileId file, const Fix& fix);

class Workspace {
 public:
  /// The disk must outlive the workspace and its documents. `clean` may be shared with other
  /// workspaces.
  explicit Workspace(const source::FileSystem& disk,
                     std::shared_ptr<CleanChecks> clean = std::make_shared<CleanChecks>())
      : disk_(disk), clean_(std::move(clean)) {}

  /// From here on the text replaces the file, saved or not.
  void open(std::string_view path, std::string text);
  bool is_open(std::string_view path) const { return texts_.contains(normal_path(path)); }
  /// Replaces the text, or parts of it, of a path that is open; false, and nothing changes, for
  /// another one.
  bool edit(std::string_view path, std::string text);
  bool edit(std::string_view path, std::span<const TextEdit> edits, ColumnUnit unit);
  /// The disk holds the text again; false for a path that is not open.
  bool close(std::string_view path);
  void choose(Choices choices);
  /// Call after another program has written the file on the disk.
  void changed_on_disk(std::string_view path) { forget(normal_path(path)); }
  /// The files of its documents that have changed on the disk since they were read, for a client
  /// that gets no notifications and polls.
  std::set<std::string> changed_on_disk() const;

  /// The newest version; the same one while nothing that it reads has changed. A path that cannot
  /// be read is a diagnostic of the document. The name of a library schedule is a path too.
  std::shared_ptr<Document> document(std::string_view path);

 private:
  void forget(const std::string& normal);

  const source::FileSystem& disk_;
  OpenTexts texts_;
  std::map<std::string, std::shared_ptr<Document>> documents_;  // by path as it was asked for
  Choices choices_;
  std::shared_ptr<CleanChecks> clean_;
  std::uint64_t versions_ = 0;
};

}  // namespace piper::service
