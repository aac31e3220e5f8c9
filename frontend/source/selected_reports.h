#pragma once
// Passes selected diagnostics on to a sink and drops the rest: consequences of a mistake are not
// mistakes themselves.
//
//   SelectedReports reports(sink, [&](Code code, SourceRange at) { return lines.insert(line(at)).second; });
//   reports.report(Code::unexpected_token, range, "...");  // reaches the sink when it is the first of its line

#include <functional>
#include <optional>
#include <utility>

#include "ir/diagnostics/diagnostics.h"

namespace piper {

class SelectedReports {
 public:
  /// Whether a diagnostic is passed on.
  using Admit = std::function<bool(Code code, SourceRange at)>;

  SelectedReports(DiagnosticSink& sink, Admit admit) : sink_(&sink), admit_(std::move(admit)) {}

  template <typename... Args>
  DiagnosticBuilder report(Code code, SourceRange at,
                           MessagePattern<std::type_identity_t<Args>...> pattern,
                           const Args&... args) {
    if (severity_of(code) == Severity::error) ++errors_;
    if (admit_(code, at)) return sink_->report(code, at, pattern, args...);
    unread_.emplace(sink_->locations());
    return unread_->report(code, at, pattern, args...);
  }
  /// Errors that were reported here, passed on or not.
  std::size_t error_count() const { return errors_; }

 private:
  DiagnosticSink* sink_;
  Admit admit_;
  std::size_t errors_ = 0;
  std::optional<DiagnosticSink> unread_;
};

}  // namespace piper
