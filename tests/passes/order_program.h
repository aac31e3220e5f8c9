#pragma once
// A pipeline whose orders and streams a test writes by hand.
//
//   OrderProgram program;
//   program.build.add(program.order({{program.rank(0), program.gpipe(0)}}));
//   const auto dag = program.compile();
//   ASSERT_TRUE(dag) << program.reports();

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ir/dag/plan.h"
#include "ir/diagnostics/diagnostics.h"
#include "tests/passes/ordered_ops.h"
#include "tests/support/sample_models.h"

namespace piper::test {

/// Two stages on two ranks and two microbatches by default; each test adds an order.
struct OrderProgram {
  Context context;
  DiagnosticSink sink{context.locations};
  std::uint32_t stages, microbatches;
  StrategyBuilder build;

  explicit OrderProgram(std::uint32_t stages = 2, std::uint32_t microbatches = 2)
      : stages(stages), microbatches(microbatches), build(context, {{"pp", stages}}) {
    build.line(stages, microbatches);
  }

  /// A pass of a stage for a microbatch; operations of one `group` overlap, -1 is no group.
  OrderedOp op(Pass pass, std::uint32_t stage, std::uint32_t mb, int group = -1);
  /// The devices of rank `r`.
  DeviceSetId rank(std::uint32_t r) { return build.devices({{"pp", r}}); }
  directive::Order order(const std::vector<std::pair<DeviceSetId, std::vector<OrderedOp>>>& ranks) {
    return make_order(context, ranks);
  }
  /// All forwards, then all backwards.
  std::vector<OrderedOp> gpipe(std::uint32_t stage);
  /// GPipe on rank 0; on rank 1 the second forward overlaps the first backward.
  directive::Order overlapped();
  /// A selector of one kind of communication of the work at these coordinates.
  directive::Selector part(std::vector<Index> coordinates, directive::CommClass part);
  /// Adds a `stream` directive; `window` may be empty.
  void stream(std::string_view name, std::vector<directive::Selector> targets,
              std::optional<std::uint32_t> window = {});

  /// The plan of an MLP of `batch` samples, verified after each pass; empty after an error.
  std::optional<dag::Dag> compile(std::int64_t batch = 8);
  /// All diagnostics as text; empty if there are none.
  std::string reports() { return render_text(sink.sorted(), context.locations.files()); }
  /// The chunks of one rank in their order: `F0.1 B1.1` is F of stage 0 and B of stage 1,
  /// microbatch 1; those of an overlap group in brackets.
  std::string sequence(const dag::Dag& dag, std::uint32_t r);
};

/// Compiles, expects exactly one error with this code and message, and returns it; if there is
/// none, the test fails and the diagnostic is empty.
Diagnostic expect_error(OrderProgram& program, Code code, std::string_view message,
                        std::int64_t batch = 8);

}  // namespace piper::test
