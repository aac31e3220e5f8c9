#include "ir/directive/directive_rows.h"

#include <algorithm>

#include "ir/directive/directive.h"
#include "ir/directive/numbers.h"

namespace piper::directive {

namespace {

constexpr Clauses none;
constexpr Clauses need(Clause clause) { return {Clauses::bit(clause), 0}; }
constexpr Clauses may(Clause clause) { return {0, Clauses::bit(clause)}; }
constexpr Clauses operator|(Clauses a, Clauses b) {
  return {static_cast<std::uint8_t>(a.needed | b.needed),
          static_cast<std::uint8_t>(a.optional | b.optional)};
}

using enum Clause;

constexpr DirectiveRow kDirectives[] = {
#define DIRECTIVE(keyword, Line, subject, clauses, meaning) \
  {DirectiveKind::keyword, #keyword, Subject::subject, clauses, meaning, {}},
#define REFUSED(keyword, instead, subject, clauses, meaning) \
  {DirectiveKind::keyword, #keyword, Subject::subject, clauses, meaning, instead},
#include "ir/directive/directives.def"
};
static_assert(std::ranges::is_sorted(kDirectives, {}, &DirectiveRow::keyword));

constexpr SettingRow kSettings[] = {
#define SETTING(directive, name, type, number, value, meaning) \
  {DirectiveKind::directive, #name, SettingType::type, &number, value, meaning, {}},
#define CHOICE(directive, name, value, meaning, refusal) \
  {DirectiveKind::directive, #name, SettingType::word, nullptr, value, meaning, refusal},
#include "ir/directive/directives.def"
};
static_assert(std::ranges::is_sorted(kSettings, {}, [](const SettingRow& row) {
  return std::pair(row.directive, row.name);
}));

struct WordRow {
  DirectiveKind directive;
  std::string_view setting;
  std::size_t value;  // of the enumerator
};
constexpr WordRow kWordRows[] = {
#define WORD(directive, setting, Enum, word) \
  {DirectiveKind::directive, #setting, static_cast<std::size_t>(Enum::word)},
#include "ir/directive/directives.def"
};
constexpr std::string_view kWords[] = {
#define WORD(directive, setting, Enum, word) #word,
#include "ir/directive/directives.def"
};
/// The words of a setting stand together, in the order of the enumerators.
static_assert([] {
  for (std::size_t i = 0; i < std::size(kWordRows); ++i) {
    const bool first = i == 0 || kWordRows[i - 1].directive != kWordRows[i].directive ||
                       kWordRows[i - 1].setting != kWordRows[i].setting;
    if (kWordRows[i].value != (first ? 0 : kWordRows[i - 1].value + 1)) return false;
  }
  return true;
}());

}  // namespace

std::span<const DirectiveRow> directive_rows() { return kDirectives; }

const DirectiveRow& row_of(DirectiveKind kind) {
  return kDirectives[static_cast<std::size_t>(kind)];
}

const DirectiveRow* find_directive(std::string_view keyword) {
  const auto found = std::ranges::find(kDirectives, keyword, &DirectiveRow::keyword);
  return found != std::end(kDirectives) ? found : nullptr;
}

std::span<const SettingRow> settings_of(DirectiveKind kind) {
  const auto [begin, end] = std::ranges::equal_range(kSettings, kind, {}, &SettingRow::directive);
  return {begin, end};
}

const SettingRow* find_setting(DirectiveKind kind, std::string_view name) {
  const std::span<const SettingRow> settings = settings_of(kind);
  const auto found = std::ranges::find(settings, name, &SettingRow::name);
  return found != settings.end() ? &*found : nullptr;
}

std::span<const std::string_view> words_of(const SettingRow& setting) {
  const auto is_its_own = [&](const WordRow& row) {
    return row.directive == setting.directive && row.setting == setting.name;
  };
  const auto first = std::ranges::find_if(kWordRows, is_its_own);
  const auto last = std::find_if_not(first, std::end(kWordRows), is_its_own);
  return std::span(kWords).subspan(static_cast<std::size_t>(first - kWordRows),
                                   static_cast<std::size_t>(last - first));
}

}  // namespace piper::directive
