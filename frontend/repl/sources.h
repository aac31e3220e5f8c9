#pragma once
// The text of a session: a file that was loaded, the items that were typed, and the file and line
// of each place in it.
//
//   Sources sources;
//   sources.load("net.pipe", text);
//   sources.define({"schedule", "wave"}, "schedule wave(p: axis) { ... }");   // in place of the file's, if it has one
//   workspace.open(sources.path(), sources.text());
//
// The phases see one file. A reader sees the files and entries that it consists of: a `Shown` gives
// their names and lines.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/diagnostics/diagnostics.h"

namespace piper::repl {

/// An item of a text, with the comment above it.
struct Declaration {
  std::string name;
  std::uint32_t begin = 0, end = 0;
};
std::vector<Declaration> declarations_of(const std::string& text);

/// A part of the session's text, with the reader's name for it.
struct SourceFragment {
  std::string name, text;
  std::uint32_t begin = 0;
};

struct Composed {
  std::string text;
  std::vector<SourceFragment> fragments;  // ascending
};

/// Adds a piece of its own, which ends its line.
void append_fragment(Composed& to, std::string name, std::string_view text);
/// Adds text that no reader wrote.
void append_glue(Composed& to, std::string_view text);

/// A table of locations as a reader sees them: the same ids, other files.
class Shown {
 public:
  /// `path`: the file that is composed of the pieces.
  Shown(const LocationTable& locations, std::string_view path,
        const std::vector<SourceFragment>& fragments);

  const LocationTable& locations() const { return shown_; }
  SourceRange of(SourceRange range) const;
  Diagnostic of(Diagnostic diagnostic) const;

 private:
  LocationTable shown_;
  std::optional<FileId> composed_;
  std::vector<std::uint32_t> begins_;  // of the pieces
  std::vector<std::uint32_t> lengths_;
  std::vector<FileId> fragment_files_;
  FileId outside_;             // for places in no piece: ids stay those of the table
  std::vector<FileId> files_;  // of the others, by their id in the table
};

class Sources {
 public:
  /// Replaces the loaded file. Typed items stay, except those that the file redefines: all its
  /// declarations, or, for the same file, the changed ones.
  void load(std::string path, std::string text);
  /// Whether a file was loaded.
  bool has_file() const { return !file_.empty(); }
  const std::string& file() const { return file_; }
  const std::string& file_text() const { return file_text_; }

  /// The item of that name, whatever sort it had.
  void define(const std::string& name, std::string text);
  /// The text of a definition, with its comment; nothing where there is none.
  std::optional<std::string> definition(const std::string& name) const;
  /// Whether a definition of it was typed.
  bool is_typed(const std::string& name) const;

  /// The path of the session: its own `use` and paths are relative to it.
  std::string path() const { return has_file() ? file_ : "session.pipe"; }
  Composed composed() const;
  /// All loaded and typed text, as one file: retyped definitions take their place in the file.
  std::string saved() const;

 private:
  struct Typed {
    std::string name, text;
  };
  std::string file_, file_text_;
  std::vector<Typed> typed_;
};

}  // namespace piper::repl
