// A cancelled plan ends soon: passes and ir/verify poll by the number of visited items, and end at
// every poll.
#include <gtest/gtest.h>

#include <atomic>

#include "ir/verify/verify.h"
#include "passes/pipeline.h"
#include "tests/support/sample_models.h"

namespace piper::test {
namespace {

class Counter : public Cancellation {
 public:
  explicit Counter(std::size_t last = ~std::size_t{0}) : last_(last) {}
  bool requested() const override { return ++polls_ > last_; }
  std::size_t polls() const { return polls_; }

 private:
  const std::size_t last_;  // the polls that are let go on
  mutable std::atomic<std::size_t> polls_ = 0;
};

struct Program {
  Context context;
  DiagnosticSink sink{context.locations};
  StrategyBuilder build{context, {{"pp", 2}, {"dp", 2}}};
  tensor::Graph model;

  /// Every pass has something to do.
  explicit Program(std::uint32_t microbatches)
      : model(mlp_chain(context, {.layers = 4,
                                  .batch = 2 * static_cast<std::int64_t>(microbatches),
                                  .dim = 2,
                                  .hidden = 2})) {
    build.line(2, microbatches).replicate({"dp"}, {}, {}, 3).one_f_one_b(2, microbatches).clip(1.0);
    build.add(directive::Offload{{build.selector({{"stage", 0}})},
                                 1,
                                 directive::Offload::What::activations,
                                 build.next_line()});
  }

  template <typename After>
  void run(const Cancellation& cancellation, bool forward_only, const After& after) {
    context.cancellation = &cancellation;
    const std::optional<passes::Prepared> prepared = passes::prepare(model, build.strategy(), sink);
    ASSERT_TRUE(prepared);
    passes::Options options;
    options.forward_only = forward_only;
    options.after = after;
    const std::optional<dag::Dag> dag = passes::compile(*prepared, sink, options);
    ASSERT_TRUE(dag);
    ASSERT_TRUE(verify::verify(*dag, sink));
    after("verify", *dag);
    context.cancellation = nullptr;
  }
};

TEST(Cancellation, PassesPollByWhatTheyVisit) {
  for (const bool forward_only : {false, true}) {
    Program program(2500);
    const Counter counter;
    std::size_t polls = 0, nodes = 0, most = 0;
    program.run(counter, forward_only, [&](std::string_view pass, const dag::Dag& dag) {
      const std::size_t visited = std::min(nodes, dag.nodes.size());
      // A forward-only program offloads nothing, so its nodes are not visited.
      if (!forward_only || pass != "offload") {
        EXPECT_GE(counter.polls() - polls, visited / kNodesPerPoll) << pass << " of " << visited;
      }
      polls = counter.polls();
      nodes = dag.nodes.size();
      most = std::max(most, nodes);
    });
    EXPECT_GE(most, 3 * kNodesPerPoll);
  }
}

TEST(Cancellation, EveryPollEndsTheWork) {
  Program program(4);
  const Counter counter;
  program.run(counter, false, [](std::string_view, const dag::Dag&) {});
  ASSERT_GE(counter.polls(), 15u);
  for (std::size_t last = 0; last < counter.polls(); ++last) {
    Program again(4);
    const Counter cancelled(last);
    EXPECT_THROW(again.run(cancelled, false, [](std::string_view, const dag::Dag&) {}), Cancelled)
        << last;
  }
}

/// With several threads any of them may poll.
TEST(Cancellation, LargeProgramsEndAtAnyPoll) {
  Program program(2500);
  const Counter counter;
  program.run(counter, false, [](std::string_view, const dag::Dag&) {});
  for (std::size_t last = 1; last < counter.polls(); last += counter.polls() / 6) {
    Program again(2500);
    const Counter cancelled(last);
    EXPECT_THROW(again.run(cancelled, false, [](std::string_view, const dag::Dag&) {}), Cancelled)
        << last;
  }
}

}  // namespace
}  // namespace piper::test
