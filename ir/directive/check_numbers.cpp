#include "ir/directive/check_numbers.h"

#include <concepts>
#include <optional>
#include <type_traits>
#include <vector>

namespace piper::directive {

namespace {

/// Checks the numbers of one line.
class NumberCheck : public IgnoreFields {
 public:
  NumberCheck(DirectiveKind kind, LocId line, DiagnosticSink& sink)
      : kind_(kind), line_(line), sink_(sink) {}

  void into(const NamedExtent& extent, const Number& bounds) {
    check(bounds, extent.extent, extent.loc);
  }
  void into(const std::vector<NamedExtent>& extents, const Number& bounds) {
    for (const NamedExtent& extent : extents) into(extent, bounds);
  }
  void setting(std::string_view name, const auto& value, LocId loc = {}) {
    if (const Number* const bounds = find_setting(kind_, name)->number) check(*bounds, value, loc);
  }

 private:
  void check(const Number& bounds, double value, LocId loc) {
    if (bounds.allows_factor(value)) return;
    sink_.report(bounds.code, narrowest(loc, line_), "{} is `{}`; {}", bounds.what, value,
                 bounds.rule);
  }
  void check(const Number& bounds, std::integral auto number, LocId loc) {
    const auto value = static_cast<std::int64_t>(number);
    if (bounds.allows(value)) return;
    DiagnosticBuilder builder =
        sink_.report(bounds.code, narrowest(loc, line_), "{}",
                     bounds.refusal(std::to_string(value), value < bounds.min_value));
    if (!bounds.hint.empty()) builder.hint("{}", bounds.hint);
  }
  template <typename Value>
  void check(const Number& bounds, const std::optional<Value>& value, LocId loc) {
    if (value) check(bounds, *value, loc);
  }
  void check(const Number& bounds, const std::vector<std::uint32_t>& values, LocId loc) {
    for (const std::uint32_t value : values) check(bounds, value, loc);
  }
  template <typename Word>
    requires std::is_enum_v<Word>
  void check(const Number&, Word, LocId) {}

  const DirectiveKind kind_;
  const LocId line_;
  DiagnosticSink& sink_;
};

}  // namespace

void check_numbers(const Directive& directive, DiagnosticSink& sink) {
  const DirectiveRow* const row = find_row(directive);
  const LocId line = std::visit([](const auto& written) { return written.loc; }, directive);
  if (row != nullptr) visit_fields(NumberCheck(row->kind, line, sink), directive);
}

}  // namespace piper::directive
