#pragma once
// Results of error-free checks of trains and schedules, keyed by all text that they may have read:
// a later version of a file checks only changes.
//
//   const DeclarationTexts texts(program, files);
//   const DeclarationTexts::Scope scope = texts.scope_of(range_of_schedule, values);
//   if (auto known = clean.find(scope.key)) report known->moved(scope.items, files);  // its warnings, at the present places
//
// Checks with errors are not kept: their text is being edited.

#include <cstdint>
#include <list>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "frontend/lower/lower.h"

namespace piper::service {

struct CleanCheck {
  // that a schedule was checked at; empty for a train; none: it was not compiled
  std::optional<std::string> sizes;
  std::vector<Diagnostic> diagnostics;  // warnings and notes
  std::vector<SourceRange> items;       // of the entry file, which the check may have read
  std::vector<std::string> files;       // names of the other files, by number

  /// The diagnostics at the present places of the same items and files. Nothing if one of them is
  /// outside of these.
  std::optional<std::vector<Diagnostic>> moved(std::span<const SourceRange> items_now,
                                               const SourceTable& files_now) const;
};

/// Thread-safe.
class CleanChecks {
 public:
  using Key = std::pair<std::uint64_t, std::uint64_t>;

  /// Keeps at most `max_entries` checks; the least recently used is dropped.
  explicit CleanChecks(std::size_t max_entries = 4096) : max_entries_(max_entries) {}

  std::optional<CleanCheck> find(const Key& key) const;
  void add(const Key& key, CleanCheck check);

 private:
  using Kept = std::list<std::pair<Key, CleanCheck>>;
  const std::size_t max_entries_;
  mutable std::mutex mutex_;
  mutable Kept entries_;  // asked for last first
  std::map<Key, Kept::iterator> known_;
};

/// The declarations of the entry file, and which of them each may read: those that its text names,
/// transitively. Params and meshes, and every other file, may be read by all.
class DeclarationTexts {
 public:
  DeclarationTexts(const sema::Program& program, const SourceTable& files);

  struct Scope {
    CleanChecks::Key key;  // of all that may be read
    // of the entry file, as many and in the same order wherever the key is the same
    std::vector<SourceRange> items;
  };
  /// The scope of the declaration that begins where `range` does, checked with `values`.
  Scope scope_of(SourceRange range, std::span<const lower::Override> values) const;

 private:
  struct Declaration {
    SourceRange range;
    std::string_view text;
    std::string state;               // beside the text
    std::vector<std::size_t> named;  // declarations
  };
  std::vector<Declaration> declarations_;
  std::string read_by_all_;
  std::vector<SourceRange> items_read_by_all_;
};

}  // namespace piper::service
