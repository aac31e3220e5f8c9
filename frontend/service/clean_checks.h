#pragma once
// Which trains and schedules were checked without a diagnostic, by all that the check may have read: a later version of a file checks only what changed.
//
//   const DeclarationTexts texts(program, files);
//   const CleanChecks::Key key = texts.key_of(range_of_schedule, values);
//   if (auto known = clean.find(key)) return *known;   // it gave nothing then, and gives nothing now
//
// What gave diagnostics is not kept: their places move with the text.

#include <cstdint>
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

/// Any thread may ask.
class CleanChecks {
 public:
  using Key = std::pair<std::uint64_t, std::uint64_t>;

  /// The sizes that a clean schedule was checked at; empty for a train.
  std::optional<std::string> find(const Key& key) const;
  void add(const Key& key, std::string sizes);

 private:
  mutable std::mutex mutex_;
  std::map<Key, std::string> known_;
};

/// The declarations of the entry file, and which of them each may read: those whose names stand in its text, and so on. Params and meshes, and every
/// other file, may be read by all.
class DeclarationTexts {
 public:
  DeclarationTexts(const sema::Program& program, const SourceTable& files);

  /// Of the declaration that begins where `range` does, checked with `values`.
  CleanChecks::Key key_of(SourceRange range, std::span<const lower::Override> values) const;

 private:
  struct Declaration {
    std::uint32_t begin = 0;
    std::string_view text;
    std::string state;               // beside the text
    std::vector<std::size_t> named;  // declarations
  };
  std::vector<Declaration> declarations_;
  std::string read_by_all_;
};

}  // namespace piper::service
