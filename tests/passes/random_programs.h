#pragma once
// Random legal programs for tests of orders and plans: model, placement, microbatches, copies, replicas, and an order sampled among all legal ones.
//
//   for_each_case(100, [](Random& random) {
//     RandomProgram program(random);
//     const std::optional<dag::Dag> dag = program.compile();
//     ...
//   });

#include <memory>
#include <string>

#include "ir/diagnostics/diagnostics.h"
#include "passes/pipeline.h"
#include "tests/support/random_cases.h"
#include "tests/support/sample_models.h"

namespace piper::test {

class RandomProgram {
 public:
  explicit RandomProgram(Random& random);

  Context context;
  DiagnosticSink sink{context.locations};
  directive::Strategy strategy;

  /// Compiles to a level; nothing when `sink` has errors, which a random program must not give.
  std::optional<dag::Dag> compile(dag::Level level = dag::Level::planned, bool forward_only = false);
  /// What went wrong, as text.
  std::string reports() const { return render_text(sink.sorted(), context.locations.files()); }

  /// The operations of one rank in the order sampled; group -1: in none.
  struct Op {
    Pass pass;
    std::vector<std::pair<Symbol, std::uint32_t>> at;
    int group = -1;
  };
  /// `ranks`: device set and operations. Consecutive operations of one group overlap.
  static directive::Order make_order(Context& context, const std::vector<std::pair<DeviceSetId, std::vector<Op>>>& ranks);

 private:
  tensor::Graph model() const;

  Random random_model_;
  int kind_ = 0;
  mutable std::unique_ptr<StrategyBuilder> build_;
};

}  // namespace piper::test
