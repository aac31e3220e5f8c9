#pragma once
// Diagnostics: messages to the user. Codes come from `diagnostics.def`, messages are written at the
// emit site.
//
// Guarantees: `sorted()` is by file and position, without duplicates, and does not depend on the
// order of emission except between diagnostics at one place. The number of `{}` in a message is
// checked at compile time.
//
//   sink.report(Code::unknown_region, range, "no region is named `{}`", name)
//       .related(model_range, "model `{}` is declared here", model)
//       .hint("did you mean `{}`?", best);
//
// Voice: lower case, no full stop, code in backticks; first the observation, then the rule, then
// the hint.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "ir/location.h"

namespace piper {

enum class Severity : std::uint8_t { error, warning, note };

/// `error`, `warning`, `note`.
std::string_view severity_name(Severity severity);

/// The number is the value: `Code::unexpected_token` is 1010, shown as `P1010`.
enum class Code : std::uint16_t {
#define DIAGNOSTIC(number, name, severity) name = number,
#include "ir/diagnostics/diagnostics.def"
#undef DIAGNOSTIC
};

struct CodeInfo {
  Code code;
  std::string_view name;
  Severity severity;
};

/// All codes in ascending order.
std::span<const CodeInfo> all_codes();
/// `P1010`.
std::string code_text(Code code);
/// The code that `P1010` (or `p1010`, `1010`) means, if there is one.
std::optional<Code> parse_code(std::string_view text);
Severity severity_of(Code code);
/// The page of a code (Markdown), embedded in the binary; empty when it has none.
std::string_view page(Code code);

/// One argument of a message: text, a number, or a truth value.
class MessageArg {
 public:
  MessageArg(std::string_view text) : text_(text) {}
  MessageArg(const std::string& text) : text_(text) {}
  MessageArg(const char* text) : text_(text) {}
  MessageArg(char c) : text_(1, c) {}
  MessageArg(bool value) : text_(value ? "true" : "false") {}
  MessageArg(double value);
  template <typename T>
    requires(std::is_integral_v<T>)
  MessageArg(T value) : text_(std::to_string(value)) {}
  /// Types that convert to std::string_view, such as llvm::StringRef.
  template <typename T>
    requires(std::is_class_v<T> && std::is_convertible_v<const T&, std::string_view> &&
             !std::is_same_v<T, std::string> && !std::is_same_v<T, std::string_view>)
  MessageArg(const T& text) : text_(std::string_view(text)) {}

  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

/// A message with one `{}` per argument; another number of them does not compile. A lone brace is
/// itself.
template <typename... Args>
struct MessagePattern {
  consteval MessagePattern(const char* pattern) : text(pattern) {
    std::size_t found = 0;
    for (std::size_t i = 0; i + 1 < text.size(); ++i) found += text[i] == '{' && text[i + 1] == '}';
    if (found != sizeof...(Args)) throw "the number of {} differs from the number of arguments";
  }
  std::string_view text;
};

std::string format_message(std::string_view pattern, std::span<const MessageArg> args);

template <typename... Args>
std::string format_args(std::string_view pattern, const Args&... args) {
  if constexpr (sizeof...(Args) == 0) {
    return format_message(pattern, {});
  } else {
    const MessageArg list[] = {MessageArg(args)...};
    return format_message(pattern, list);
  }
}

struct Related {
  SourceRange range;
  std::string message;
  friend bool operator==(const Related&, const Related&) = default;
};

/// Puts `text` in place of a range, which may be empty.
struct Edit {
  SourceRange range;
  std::string text;
  friend bool operator==(const Edit&, const Edit&) = default;
};

/// An edit that a tool may apply without asking: the diagnostic disappears, and no new one is
/// reported before it. The edits do not overlap.
struct Fix {
  std::string title;  // `replace `stge` by `stage``
  std::vector<Edit> edits;
  friend bool operator==(const Fix&, const Fix&) = default;
};

struct Diagnostic {
  Code code{};
  Severity severity = Severity::error;
  std::string message;
  SourceRange range;  // invalid: concerns no file
  std::vector<Related> related;
  std::string hint;  // empty: none
  std::vector<Fix> fixes;
  friend bool operator==(const Diagnostic&, const Diagnostic&) = default;
};

class DiagnosticSink;

/// Adds to the diagnostic that `report` just made; must not outlive the sink.
class DiagnosticBuilder {
 public:
  template <typename... Args>
  DiagnosticBuilder& related(SourceRange range,
                             MessagePattern<std::type_identity_t<Args>...> pattern,
                             const Args&... args) {
    return add_related(range, format_args(pattern.text, args...));
  }
  /// Narrows the range to `text` if it begins with `text`.
  DiagnosticBuilder& narrow_to(std::string_view text);
  /// The primary line of `loc`.
  template <typename... Args>
  DiagnosticBuilder& related(LocId loc, MessagePattern<std::type_identity_t<Args>...> pattern,
                             const Args&... args) {
    return add_related(loc, format_args(pattern.text, args...));
  }
  template <typename... Args>
  DiagnosticBuilder& hint(MessagePattern<std::type_identity_t<Args>...> pattern,
                          const Args&... args) {
    return set_hint(format_args(pattern.text, args...));
  }
  /// Offers to put `text` in place of `range`. Does nothing if the range is outside the text that
  /// the user can edit.
  DiagnosticBuilder& fix(SourceRange range, std::string text) {
    return fix({{range, std::move(text)}});
  }
  /// Replaces the range of the diagnostic.
  DiagnosticBuilder& fix(std::string text);
  /// Several edits that have to be applied together.
  DiagnosticBuilder& fix(std::vector<Edit> edits);
  DiagnosticBuilder& fix(Fix fix);
  /// Asks whether `name` was meant, and offers a fix if the range of the diagnostic is exactly
  /// `written`.
  DiagnosticBuilder& did_you_mean(std::string_view name, std::string_view written);

 private:
  friend class DiagnosticSink;
  DiagnosticBuilder(DiagnosticSink& sink, std::size_t index) : sink_(&sink), index_(index) {}
  DiagnosticBuilder& add_related(SourceRange range, std::string message);
  DiagnosticBuilder& add_related(LocId loc, std::string message);
  DiagnosticBuilder& set_hint(std::string text);

  DiagnosticSink* sink_;
  std::size_t index_;
};

/// Collects the diagnostics of one compilation. The table must outlive the sink.
class DiagnosticSink {
 public:
  explicit DiagnosticSink(const LocationTable& locations) : locations_(&locations) {}

  /// Reports at a range; an invalid range means that the diagnostic belongs to no file.
  template <typename... Args>
  DiagnosticBuilder report(Code code, SourceRange range,
                           MessagePattern<std::type_identity_t<Args>...> pattern,
                           const Args&... args) {
    return add(code, range, format_args(pattern.text, args...));
  }
  /// Reports at the primary line of `loc`; the other lines of its call chain become related
  /// locations.
  template <typename... Args>
  DiagnosticBuilder report(Code code, LocId loc,
                           MessagePattern<std::type_identity_t<Args>...> pattern,
                           const Args&... args) {
    return add(code, loc, format_args(pattern.text, args...));
  }

  bool has_errors() const { return errors_ > 0; }
  /// Errors emitted, repeated ones included.
  std::size_t error_count() const { return errors_; }
  bool empty() const { return diagnostics_.empty(); }
  bool reported(Code code) const;
  /// By file, position, then emission; equal ones appear once.
  std::vector<Diagnostic> sorted() const;
  const LocationTable& locations() const { return *locations_; }

 private:
  friend class DiagnosticBuilder;
  DiagnosticBuilder add(Code code, SourceRange range, std::string message);
  DiagnosticBuilder add(Code code, LocId loc, std::string message);

  const LocationTable* locations_;
  std::vector<Diagnostic> diagnostics_;
  std::size_t errors_ = 0;
};

/// `file:line:column: error P1010: message`, the source line with carets, related locations, the
/// hint.
std::string render_text(std::span<const Diagnostic> diagnostics, const SourceTable& files);

/// One JSON object as a line:
/// `{"code":"P3007","severity":"error","message":..,"file":..,"range":..,"related":[..],"hint":..,"fixes":[..]}`. `file` and `range` are null if the diagnostic belongs to no file, `hint` is null if there is none. A fix is `{"title":..,"edits":[{"file":..,"start":..,
/// "end":..,"text":..}]}`. Positions are `{"line":..,"column":..}`, both from 1; a column counts
/// code points, and the end is exclusive.
std::string render_json(const Diagnostic& diagnostic, const SourceTable& files);

/// `{"schema":1,"diagnostics":[..]}`.
std::string render_json(std::span<const Diagnostic> diagnostics, const SourceTable& files);

}  // namespace piper
