// The DAG of `build` is verified on the way to a plan, before kernels are generated from it.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>

#include "tests/support/compile.h"
#include "tests/support/sample_models.h"

namespace piper::test {
namespace {

struct Fault {
  const char* name;
  std::function<void(tensor::Graph& model)> make;
  Code code;  // of the verifier's diagnostic
};

TEST(BuiltPromise, AWrongGraphIsAMistakeOfTheCompilerAndGetsNoKernels) {
  const Fault faults[] = {
      {"no gradient of the last parameter", [](tensor::Graph& model) { model.grads.pop_back(); },
       Code::broken_dag},
      {"a count of elements that no loss has",
       [](tensor::Graph& model) { ++model.losses.back().count; }, Code::wrong_report},
  };
  for (const Fault& fault : faults) {
    SCOPED_TRACE(fault.name);
    Context context;
    DiagnosticSink sink(context.locations);
    StrategyBuilder build(context, {{"pp", 2}});
    build.line(2, 2);
    std::optional<passes::Prepared> prepared =
        passes::prepare(mlp_chain(context), build.strategy(), sink);
    ASSERT_TRUE(prepared);
    fault.make(prepared->model);
    bool asked = false;
    passes::Options options;
    options.workspace_bytes = [&](const dag::Dag&, const dag::Node&) {
      return asked = true, std::int64_t{0};
    };
    EXPECT_FALSE(passes::compile(*prepared, sink, options));
    EXPECT_FALSE(asked);
    const std::vector<Diagnostic> told = sink.sorted();
    const auto has = [&](Code code) {
      return std::any_of(told.begin(), told.end(),
                         [&](const Diagnostic& each) { return each.code == code; });
    };
    EXPECT_TRUE(has(fault.code) && has(Code::compiler_bug))
        << render_text(told, context.locations.files());
  }
}

}  // namespace
}  // namespace piper::test
