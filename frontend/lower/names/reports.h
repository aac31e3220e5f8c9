#pragma once
// Diagnostics of a `names` item for one model. A line of the standard library is no place that the
// user can change, so that its diagnostics are at the name in the train, and the line is related.

#include <string>
#include <type_traits>
#include <utility>

#include "ir/diagnostics/diagnostics.h"

namespace piper::lower {

class NamesReports {
 public:
  /// `mention`: the place at which the train names the item; invalid if nothing does.
  NamesReports(DiagnosticSink& sink, SourceRange mention) : sink_(sink), mention_(mention) {}

  template <typename... Args>
  DiagnosticBuilder report(Code code, SourceRange at,
                           MessagePattern<std::type_identity_t<Args>...> pattern,
                           const Args&... args) {
    ++errors_;
    const bool elsewhere = mention_.valid() && sink_.locations().files().is_library(at.file);
    DiagnosticBuilder builder = sink_.report(code, elsewhere ? mention_ : at, pattern, args...);
    if (elsewhere) builder.related(at, "this is the line");
    return builder;
  }
  std::size_t errors() const { return errors_; }

 private:
  DiagnosticSink& sink_;
  const SourceRange mention_;
  std::size_t errors_ = 0;
};

}  // namespace piper::lower
