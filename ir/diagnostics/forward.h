#pragma once
// Limits the errors of a pass: one error per code and range, and not more than fit on a page.
//
//   DiagnosticSink found(sink.locations());
//   place(dag, strategy, found);
//   forward(found, sink);  // 64 ranks with the same mistake in one line give one error with the number of the others

#include "ir/diagnostics/diagnostics.h"

namespace piper {

/// Errors that are shown; the others are counted by P2324.
inline constexpr std::size_t kShownErrors = 20;

/// Reports, at the last of them, that `hidden` errors of `subject` (`file`) are not shown; does
/// nothing if there are none.
template <typename Place>
void report_not_shown(DiagnosticSink& sink, Place last, std::size_t hidden,
                      std::string_view subject) {
  if (hidden == 0) return;
  sink.report(Code::errors_not_shown, last, "{} further error{} not shown, the last one is here",
              hidden, hidden == 1 ? " is" : "s are")
      .hint("they are of the same {}; mend the first {} and check again", subject, kShownErrors);
}

/// Adds the diagnostics of `from` to `to`. The first of several errors with the same code and range
/// is reported, with the number of the others; warnings are copied unchanged.
void forward(const DiagnosticSink& from, DiagnosticSink& to);

}  // namespace piper
