#pragma once
// The rows of directives.def as tables, for all code that reads, checks, describes or prints
// directives.
//
//   find_directive("place")->subject                          ->  Subject::targets
//   find_setting(DirectiveKind::offload, "window")->value     ->  "1"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace piper::directive {

struct Number;

/// The directives of the language, refused ones included.
enum class DirectiveKind : std::uint8_t {
#define DIRECTIVE(keyword, ...) keyword,
#define REFUSED(keyword, ...) keyword,
#include "ir/directive/directives.def"
};

/// The part of a directive behind its keyword: `model`, `batch`, `F stage[0], stage[1]` or
/// `p2p: model.send`.
enum class Subject : std::uint8_t { region, dimension, targets, named };

/// The clauses behind the subject, in the order in which they are written.
enum class Clause : std::uint8_t { into, in, on, over, by, with };
inline constexpr std::string_view kClauseWords[] = {"into", "in", "on", "over", "by", "with"};

/// The clauses that a directive needs and those that it may have.
struct Clauses {
  std::uint8_t needed = 0, optional = 0;  // bits by clause

  static constexpr std::uint8_t bit(Clause clause) {
    return static_cast<std::uint8_t>(1u << static_cast<unsigned>(clause));
  }
  constexpr bool needs(Clause clause) const { return (needed & bit(clause)) != 0; }
  constexpr bool takes(Clause clause) const { return ((needed | optional) & bit(clause)) != 0; }
};

struct DirectiveRow {
  DirectiveKind kind;
  std::string_view keyword;
  Subject subject;
  Clauses clauses;
  std::string_view meaning;
  std::string_view instead;  // of a refused directive: what to write; else empty

  constexpr bool works() const { return instead.empty(); }
};

enum class SettingType : std::uint8_t { count, bytes, counts, factor, word };

struct SettingRow {
  DirectiveKind directive;
  std::string_view name;
  SettingType type;
  const Number* number;    // its bounds; null for a word
  std::string_view value;  // the default as programs write it; empty: none
  std::string_view meaning;
  std::string_view refusal;  // reported for a value that is none of its words
};

/// All directives, in the order of DirectiveKind.
std::span<const DirectiveRow> directive_rows();
const DirectiveRow& row_of(DirectiveKind kind);
/// The directive with that keyword; null if there is none.
const DirectiveRow* find_directive(std::string_view keyword);

/// The settings of a directive, sorted by name.
std::span<const SettingRow> settings_of(DirectiveKind kind);
/// Null if the directive has no such setting.
const SettingRow* find_setting(DirectiveKind kind, std::string_view name);
/// The words of a setting, in the order of their enumerators; none for numbers.
std::span<const std::string_view> words_of(const SettingRow& setting);

}  // namespace piper::directive
