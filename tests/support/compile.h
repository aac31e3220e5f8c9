#pragma once
// From a model and a strategy to a plan, for tests that do not look at the phases between.
//
//   const std::optional<dag::Dag> dag = test::compile(model, build.strategy(), sink, {});

#include <optional>

#include "passes/pipeline.h"

namespace piper::test {

inline std::optional<dag::Dag> compile(const tensor::Graph& model,
                                       const directive::Strategy& strategy, DiagnosticSink& sink,
                                       const passes::Options& options = {}) {
  const std::optional<passes::Prepared> prepared = passes::prepare(model, strategy, sink);
  return prepared ? passes::compile(*prepared, sink, options) : std::nullopt;
}

}  // namespace piper::test
