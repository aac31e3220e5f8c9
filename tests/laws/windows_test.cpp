// Windows bound how far messages run ahead: the least one that is legal and any larger one give the
// same bits, a smaller one is refused.

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/laws/law_runs.h"
#include "tests/support/compile.h"
#include "tests/support/random_programs.h"
#include "tests/support/sample_models.h"
#include "tests/support/temporary_folder.h"

namespace piper::test {
namespace {

constexpr std::uint32_t kMicrobatches = 5;
constexpr std::uint32_t kAmple = 100;

/// Two stages; the second reads the microbatches in `forward` order and gives gradients back in
/// `backward` order.
struct Orders {
  std::vector<std::uint32_t> forward, backward;
};

directive::Strategy strategy_of(Context& context, const Orders& orders,
                                std::optional<std::uint32_t> window) {
  StrategyBuilder build(context, {{"pp", 2}});
  build.line(2, kMicrobatches);
  build.rank({{"pp", 0}});
  for (std::uint32_t i = 0; i < kMicrobatches; ++i) build.op(Pass::F, {{"stage", 0}, {"mb", i}});
  for (std::uint32_t i = 0; i < kMicrobatches; ++i) build.op(Pass::B, {{"stage", 0}, {"mb", i}});
  build.rank({{"pp", 1}});
  for (const std::uint32_t i : orders.forward) build.op(Pass::F, {{"stage", 1}, {"mb", i}});
  for (const std::uint32_t i : orders.backward) build.op(Pass::B, {{"stage", 1}, {"mb", i}});
  directive::Stream stream;
  stream.name = context.symbol("p2p");
  stream.targets.assign(2, build.selector({}));
  stream.targets[0].part = directive::CommClass::send;
  stream.targets[1].part = directive::CommClass::recv;
  stream.window = window;
  stream.loc = build.next_line();
  for (directive::Selector& target : stream.targets) target.loc = stream.loc;
  build.add(std::move(stream));
  return build.strategy();
}

tensor::Graph model_of(Context& context) {
  return mlp_chain(context, {.layers = 2, .batch = kMicrobatches * 2, .dim = 3, .hidden = 4});
}

TEST(Windows, LeastOneMoreAndAmpleGiveTheSameBits) {
  std::uint32_t widest = 0;
  for_each_case(8, [&](Random& random) {
    Orders orders;
    for (std::uint32_t i = 0; i < kMicrobatches; ++i) orders.forward.push_back(i);
    orders.backward = orders.forward;
    random.shuffle(orders.forward);
    random.shuffle(orders.backward);
    SCOPED_TRACE("forward " + testing::PrintToString(orders.forward) + ", backward " +
                 testing::PrintToString(orders.backward));
    Context context;
    LawProgram chosen(context, model_of(context), strategy_of(context, orders, {}));
    ASSERT_TRUE(chosen);
    std::uint32_t least = 1;
    for (const dag::Communicator& communicator : chosen.dag().plan->communicators) {
      if (communicator.kind == dag::Communicator::Kind::pair)
        least = std::max(least, communicator.min_window);
    }
    widest = std::max(widest, least);
    const LawRun run = chosen.run({});
    ASSERT_EQ(run.losses.size(), static_cast<std::size_t>(kLawSteps));
    for (const std::uint32_t window : {least, least + 1, kAmple}) {
      LawProgram program(context, model_of(context), strategy_of(context, orders, window));
      ASSERT_TRUE(program) << "window " << window;
      for (const dag::Communicator& communicator : program.dag().plan->communicators) {
        if (communicator.kind == dag::Communicator::Kind::pair) {
          EXPECT_EQ(communicator.window, window);
        }
      }
      LawRunOptions delayed;
      delayed.delays = {random.next(), 200};
      EXPECT_EQ(first_bit_difference(program.run(delayed), run), "") << "window " << window;
    }
    // One below the least.
    DiagnosticSink sink(context.locations);
    tensor::Graph model = model_of(context);
    EXPECT_FALSE(test::compile(model, strategy_of(context, orders, least - 1), sink, {}));
    bool told = false;
    for (const Diagnostic& diagnostic : sink.sorted()) {
      EXPECT_EQ(diagnostic.code, Code::window_below_minimum) << diagnostic.message;
      told = told || least == 1 ||
             diagnostic.hint == "the least window for this order is " + std::to_string(least);
    }
    EXPECT_TRUE(told) << render_text(sink.sorted(), context.locations.files());
  });
  EXPECT_GT(widest, 2u);
}

std::uint32_t min_window(const dag::Dag& dag) {
  std::uint32_t least = 0;
  for (const dag::Communicator& communicator : dag.plan->communicators) {
    if (communicator.kind == dag::Communicator::Kind::pair)
      least = std::max(least, communicator.min_window);
  }
  return least;
}

TEST(Windows, RandomProgramsGiveTheSameBits) {
  const TemporaryFolder cache;
  int wide = 0, generated = 0;
  for_each_case(25, [&](Random& random) {
    Context context;
    const RandomProgram drawn = random_program(context, random, {.streams = false});
    LawProgram chosen(context, drawn.model, drawn.strategy);
    ASSERT_TRUE(chosen) << drawn.source;
    const std::uint32_t least = min_window(chosen.dag());
    if (least == 0) return;  // nothing is sent
    SCOPED_TRACE(with_line(drawn.source, "// the least window is " + std::to_string(least)));
    const LawRun run = chosen.run({});
    ASSERT_EQ(run.losses.size(), static_cast<std::size_t>(kLawSteps));
    const auto with_window = [&](std::uint32_t window) {
      return read_program(
          context, with_line(drawn.source, "stream p2p: model.send, model.recv with window: " +
                                               std::to_string(window)));
    };
    for (const std::uint32_t window : {least, least + 1, kAmple}) {
      const RandomProgram same = with_window(window);
      LawProgram program(context, same.model, same.strategy);
      ASSERT_TRUE(program) << "window " << window;
      EXPECT_EQ(min_window(program.dag()), least);
      LawRunOptions options;
      options.delays = {random.next(), 100};
      EXPECT_EQ(first_bit_difference(program.run(options), run), "") << "window " << window;
      if (window != least || least < 3 || generated > 0) continue;
      ++generated;
      options.engine = backend::Engine::generated;
      options.cache_folder = cache.path();
      EXPECT_EQ(first_bit_difference(program.run(options), run), "")
          << "window " << window << ", generated code";
    }
    wide += least > 2;
    if (least < 2) return;
    RandomProgram narrow = with_window(least - 1);
    DiagnosticSink sink(context.locations);
    EXPECT_FALSE(test::compile(narrow.model, narrow.strategy, sink, {}));
    ASSERT_TRUE(sink.has_errors());
    for (const Diagnostic& diagnostic : sink.sorted()) {
      if (diagnostic.severity != Severity::error) continue;
      EXPECT_EQ(diagnostic.code, Code::window_below_minimum) << diagnostic.message;
      EXPECT_EQ(diagnostic.hint, "the least window for this order is " + std::to_string(least));
    }
  });
  if (case_options().count == 0) {
    EXPECT_GT(wide, 0);
    EXPECT_EQ(generated, 1);
  }
}

/// Both later stages send gradients to the first, which reads those of one microbatch together: the
/// route is cut in two, for a window of one message each. The linear order may send the two kinds
/// in turns, as one sequence of messages that needs no cut; the plan must not be made of that.
TEST(Windows, ARouteThatTheOrderNeedsCutStaysCut) {
  const std::string source = R"(model layer(x: tensor[batch, wide]) -> tensor[batch, wide] {
    weight w[wide, other: 2] = normal(0.4)
    return rename(tanh(x @ w), other: wide)
}
model net(wide: int) {
    input x: tensor[batch, wide]
    let a = layer(x)
    let b = layer(a)
    loss layer(b) * a
}
mesh grid(pp: 2)
train drawn = net(wide: 2) on grid {
    data:  synthetic(batch: 3)
    optim: sgd(lr: 1e-2)
    steps: 3
    dtype: f64
    partition model into stage: 3 with sizes: [1, 1, 1]
    split batch into mb: 3
    for s in 0..3 { place stage[s] on pp[min(s, 1)] }
    order {
        rank r in pp {
            if r == 0 {
                for i in 0..3 { F stage[0] mb[i] }
                for i in 0..3 { B stage[0] mb[i] }
            } else {
                for i in 0..3 { F stage[1] mb[i]; F stage[2] mb[i] }
                for i in 0..3 { B stage[2] mb[i] }
                for i in 0..3 { B stage[1] mb[i] }
            }
        }
    }
}
)";
  Context context;
  const RandomProgram chosen = read_program(context, source),
                      least = read_program(
                          context,
                          with_line(source, "stream p2p: model.send, model.recv with window: 1"));
  LawProgram a(context, chosen.model, chosen.strategy), b(context, least.model, least.strategy);
  ASSERT_TRUE(a && b);
  EXPECT_EQ(min_window(b.dag()), 1u);
  EXPECT_EQ(first_bit_difference(a.run({}), b.run({})), "");
}

}  // namespace
}  // namespace piper::test
