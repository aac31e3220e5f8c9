#pragma once
// What a pass found, made readable: of one code and place one error, and not more than fit on a page.
//
//   DiagnosticSink found(sink.locations());
//   place(dag, strategy, found);
//   forward(found, sink);  // of 64 ranks with the same mistake in one line one, and how many more there are

#include "ir/diagnostics/diagnostics.h"

namespace piper {

/// Errors that are shown; the others are counted by P2324.
inline constexpr std::size_t kShownErrors = 20;

/// Says at the last of them that `hidden` errors of `what` (`file`) are not shown; nothing where there are none.
template <typename Place>
void report_not_shown(DiagnosticSink& sink, Place last, std::size_t hidden, std::string_view what) {
  if (hidden == 0) return;
  sink.report(Code::errors_not_shown, last, "{} further error{} not shown, the last one is here", hidden, hidden == 1 ? " is" : "s are")
      .hint("they are of the same {}; mend the first {} and check again", what, kShownErrors);
}

/// Adds to `to` what `from` holds. Of errors with the same code and range the first is told, with the number of the others; warnings are told
/// as they are.
void forward(const DiagnosticSink& from, DiagnosticSink& to);

}  // namespace piper
