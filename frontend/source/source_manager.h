#pragma once
// Source files into the SourceTable, from a file system that is passed in.
//
// Guarantees: a file is read once per name; a file that cannot be read is a diagnostic at the place
// that named it.
//
//   RealFileSystem disk;
//   std::optional<FileId> file = source::open("demo.pipe", {}, disk, table.files(), sink);

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "ir/diagnostics/diagnostics.h"

namespace piper::source {

/// The result of reading a file: its text, or the reason why there is none.
struct ReadResult {
  std::optional<std::string> text;
  std::string error;  // in lower case, such as `no such file or directory`
  // The size if it exceeds `limit`; then there is neither text nor error.
  std::uint64_t too_large = 0;
};

/// The source of files.
class FileSystem {
 public:
  virtual ~FileSystem() = default;
  /// Reads at most `limit` bytes.
  virtual ReadResult read(std::string_view path, std::uint64_t limit) const = 0;
};

/// The disk. Paths are relative to the working directory.
class RealFileSystem : public FileSystem {
 public:
  ReadResult read(std::string_view path, std::uint64_t limit) const override;
};

/// Another file system without files that block a reader: pipes, terminals. For servers, which no
/// user can interrupt.
class UnblockingFileSystem : public FileSystem {
 public:
  /// `files` must outlive it.
  explicit UnblockingFileSystem(const FileSystem& files) : files_(files) {}
  ReadResult read(std::string_view path, std::uint64_t limit) const override;

 private:
  const FileSystem& files_;
};

/// Files in memory, for tests, the REPL and embedding.
class MemoryFileSystem : public FileSystem {
 public:
  void add(std::string path, std::string text) {
    files_.insert_or_assign(std::move(path), std::move(text));
  }
  ReadResult read(std::string_view path, std::uint64_t limit) const override;

 private:
  std::map<std::string, std::string, std::less<>> files_;
};

/// The largest source file in bytes; programs are far smaller. Texts of DAGs have a line per
/// operation and device, and offsets 32 bits.
constexpr std::uint64_t kMaxFileSize = 16u << 20, kMaxDagSize = std::uint64_t{2} << 30;

/// The file of that path, read when `files` does not have it yet. `named_at` is where the path was
/// written (invalid: command line). Reports P1001 and P1003.
std::optional<FileId> open(std::string_view path, SourceRange named_at,
                           const FileSystem& file_system, SourceTable& files, DiagnosticSink& sink);

}  // namespace piper::source
