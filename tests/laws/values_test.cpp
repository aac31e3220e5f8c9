// Law 1: a program computes what the unsplit model computes on one device, and the bits of the same
// microbatches on one device. Law 2, as far as running shows it: whatever the timing, it ends, with
// the same bits.

#include <gtest/gtest.h>

#include <limits>

#include "tests/laws/law_runs.h"
#include "tests/support/random_programs.h"
#include "tests/support/temporary_folder.h"

namespace piper::test {
namespace {

constexpr double kRounding = 1e-10;

TEST(Values, RandomProgramsComputeWhatOneDeviceDoes) {
  int cases = 0, moved = 0;
  for_each_law(60, {}, [&](DrawnLaw& law, Random&) {
    LawProgram unsplit = law.unsplit();
    ASSERT_TRUE(unsplit);
    const LawRun run = law.program.run({}), whole = unsplit.run({});
    ASSERT_EQ(run.losses.size(), static_cast<std::size_t>(kLawSteps));
    ++cases;
    // A model may squeeze its samples together until the loss is that of chance.
    moved += run.losses.front() != run.losses.back();
    EXPECT_EQ(first_difference(run, whole, kRounding), "");
    EXPECT_EQ(first_bit_difference(run, law.program.run_sequential()), "");
  });
  EXPECT_GE(moved, cases * 9 / 10);
}

void expect_values_of_one_device(const std::string& source) {
  Context context;
  const RandomProgram drawn = read_program(context, source);
  LawProgram program(context, drawn.model, drawn.strategy);
  LawProgram unsplit(context, drawn.model, one_device(context, drawn.strategy));
  ASSERT_TRUE(program && unsplit);
  const LawRun run = program.run({});
  EXPECT_EQ(first_difference(run, unsplit.run({}), kRounding), "");
  EXPECT_EQ(first_bit_difference(run, program.run_sequential()), "");
}

/// The programs of held-out data, forward alone, on the parameters that training left.
TEST(Values, HeldOutLossesAreThoseOfOneDevice) {
  int differ = 0;
  for_each_law(40, {}, [&](DrawnLaw& law, Random& random) {
    LawProgram unsplit = law.unsplit();
    ASSERT_TRUE(unsplit);
    LawRunOptions options;
    options.held_out_steps = 2;
    const LawRun whole = unsplit.run(options);
    options.delays = {random.next(), 100};
    const LawRun run = law.program.run(options);
    ASSERT_EQ(run.held_out.size(), 2u);
    EXPECT_EQ(first_difference(run, whole, kRounding), "");
    differ += run.held_out[0] != run.held_out[1];
  });
  if (case_options().count > 0) return;
  EXPECT_GT(differ, 20);  // two batches
}

/// In f32 a microbatch on one device is the judge: bits are all that its rounding leaves to
/// compare.
TEST(Values, InF32AllBitsAreThoseOfOneDevice) {
  for_each_law(25, {.dtype = "f32"}, [&](DrawnLaw& law, Random& random) {
    LawRunOptions options;
    options.delays = {random.next(), 100};
    const LawRun run = law.program.run(options);
    ASSERT_EQ(run.losses.size(), static_cast<std::size_t>(kLawSteps));
    EXPECT_EQ(first_bit_difference(run, law.program.run_sequential()), "");
  });
}

/// In bf16 every operation rounds, on every device: sharded, placed or recomputed operations round
/// alike.
TEST(Values, InBf16AllBitsAreThoseOfOneDevice) {
  const TemporaryFolder cache;
  int generated = 0;
  for_each_law(40, {.dtype = "bf16"}, [&](DrawnLaw& law, Random& random) {
    LawRunOptions options;
    options.delays = {random.next(), 100};
    options.held_out_steps = 1;
    const LawRun run = law.program.run(options);
    ASSERT_EQ(run.losses.size(), static_cast<std::size_t>(kLawSteps));
    EXPECT_EQ(first_bit_difference(run, law.program.run_sequential()), "");
    if (++generated > 3) return;
    options.engine = backend::Engine::generated;
    options.cache_folder = cache.path();
    EXPECT_EQ(first_bit_difference(law.program.run(options), run), "");
  });
}

TEST(Values, ADelayOfAnyActionChangesNoBit) {
  for_each_law(12, {}, [](DrawnLaw& law, Random& random) {
    const LawRun run = law.program.run({});
    for (int again = 0; again < 2; ++again) {
      LawRunOptions options;
      options.delays = {random.next(), 300};
      EXPECT_EQ(first_bit_difference(run, law.program.run(options)), "")
          << "delays of seed " << options.delays.seed;
    }
  });
}

/// No compiler is trusted: random programs, a third of which read elements at other positions. For
/// bf16 some of the programs above are generated.
TEST(Values, GeneratedCodeComputesTheInterpretersBits) {
  const TemporaryFolder cache;
  for (const char* dtype : {"f64", "f32"}) {
    for_each_law(15, {.dtype = dtype}, [&](DrawnLaw& law, Random&) {
      LawRunOptions options;
      options.engine = backend::Engine::generated;
      options.cache_folder = cache.path();
      EXPECT_EQ(first_bit_difference(law.program.run(options), law.program.run({})), "");
    });
  }
}

/// Both ranks hold copies of all weights. By dependence alone the gradients of `stage[0]` are whole
/// before those of `stage[1]`, by time after them: the group that reduces them has one sequence,
/// that of the linear order.
TEST(Values, ReductionsRunInTheSequenceOfTheirGroup) {
  const std::string source = R"(model layer0(x: tensor[batch, wide]) -> tensor[batch, wide] {
    weight gate[wide, inner: 2], up[wide, inner], down[inner, wide] = uniform(0.6)
    return (tanh(x @ gate) * (x @ up)) @ down + 0.5 * x
}
model layer1(x: tensor[batch, wide]) -> tensor[batch, wide] {
    weight gate[wide, inner: 4], up[wide, inner], down[inner, wide] = normal(0.4)
    return (tanh(x @ gate) * (x @ up)) @ down + 0.5 * x
}
model net(wide: int) {
    input x: tensor[batch, wide]
    let v1 = layer0(x)
    let v2 = layer1(x)
    let v3 = layer0(v2)
    let out = v1 + v3
    loss softplus(dot(out, out))
}
mesh grid(pp: 2, dp: 2)
train drawn = net(wide: 3) on grid {
    data:  synthetic(batch: 4)
    optim: sgd(lr: 1e-2)
    steps: 3
    dtype: f64
    seed:  667799431
    partition model into stage: 4
    split batch into mb: 2
    for s in 0..4, i in 0..2 { place F stage[s] mb[i] on pp[(s + i) % 2]; place B stage[s] mb[i] on pp[(s + i + 1) % 2] }
    replicate model over dp with bucket: 55
    order {
        rank r in pp {
            if r == 0 {
                F stage[1] mb[1]
                F stage[3] mb[1]
                BI stage[2] mb[1]
                BW stage[2] mb[1]
                B stage[0] mb[1]
                F stage[0] mb[0]
                F stage[2] mb[0]
                B stage[3] mb[0]
                BI stage[1] mb[0]
                BW stage[1] mb[0]
            } else {
                F stage[1] mb[0]
                F stage[2] mb[1]
                F stage[0] mb[1]
                B stage[3] mb[1]
                B stage[1] mb[1]
                F stage[3] mb[0]
                B stage[2] mb[0]
                B stage[0] mb[0]
            }
        }
    }
    stream p2p: model.send, model.recv with window: 100
}
)";
  expect_values_of_one_device(source);
}

/// Backward work without parameters, on a separate rank: nothing there reads the all-gather after
/// an update, and the update of the next step waits for it all the same.
TEST(Values, AnUpdateWaitsForAGatherThatNothingReads) {
  const std::string source = R"(model net() {
    input x: tensor[batch, dim]
    loss square(shift(shift(x)))
}
model shift(x: tensor[batch, dim]) -> tensor[batch, dim] {
    weight offset[dim] = normal(0.2)
    return 2.0 * x + offset
}
mesh grid(pp: 2, dp: 2)
train t = net() on grid {
    data:  synthetic(batch: 4, dim: 3)
    optim: adamw(lr: 1e-2)
    steps: 3
    dtype: f64
    partition model into stage: 2
    split batch into mb: 1
    place stage[0] on pp[0]
    place F stage[1] on pp[0]
    place B stage[1] on pp[1]
    replicate model over dp with zero: 2
}
)";
  expect_values_of_one_device(source);
}

/// Products of one value with several weights add their gradients to each other (`contract_add`),
/// also if the regions around them are sharded more finely than their own region: they have the
/// same waits, so they stay together.
TEST(Values, ProductsThatAddToEachOtherStayTogether) {
  const std::string model = R"(model inner(h: tensor[batch, wide]) -> tensor[batch, wide] {
    weight w[wide, out: wide] = uniform(0.8)
    return tanh(rename(h @ w, out: wide))
}
model mix(x: tensor[batch, dim]) -> tensor[batch, dim] {
    weight q[dim, wide: 3], k[dim, wide], v[dim, wide], back[wide, dim] = uniform(0.8)
    let a = inner(x @ q)
    let b = inner(a + x @ k)
    return x + inner(b * (x @ v)) @ back
}
model net(dim: int) {
    input x: tensor[batch, dim]
    weight q[dim, wide: 3], k[dim, wide], v[dim, wide], back[wide, dim] = uniform(0.8)
    let y = mix(x)
    let a = inner(y @ q)
    let b = inner(a + y @ k)
    let z = mix(y + inner(b * (y @ v)) @ back)
    loss softplus(dot(z, z))
}
mesh line(p: 3)
)";
  const char* const kCuts[] = {
      "partition mix into part: 3; for s in 0..3 { place part[s] on p[s] }; place model.rest on p[1]",
      "partition mix into part: 2 with sizes: [1, 2]; place part[0] on p[0]; place part[1] on p[1]; place model.rest on p[2]",
      "partition model into stage: 5; for s in 0..5 { place stage[s] on p[s % 3] }",
      "partition model into stage: 3 with sizes: [2, 1, 2]; for s in 0..3 { place stage[s] on p[2 - s] }",
      "place model on p[0]; place mix[0].inner[0], mix[1].inner[2] on p[1]; place inner[1], mix[1].inner[0] on p[2]",
      "place model on p[0]; place mix.inner on p[1]; place mix.rest on p[2]",
  };
  for (const std::string cut : kCuts) {
    for (const std::string dtype : {"f64", "f32", "bf16"}) {
      SCOPED_TRACE(cut + ", " + dtype);
      Context context;
      const RandomProgram drawn = read_program(
          context,
          model +
              "train drawn = net(4) on line {\n    data: synthetic(batch: 4); optim: sgd(lr: 0.1); steps: 3; dtype: " +
              dtype + "\n    split batch into mb: 2\n    " + cut + "\n}\n");
      LawProgram program(context, drawn.model, drawn.strategy);
      LawProgram unsplit(context, drawn.model, one_device(context, drawn.strategy));
      ASSERT_TRUE(program && unsplit);
      int added = 0;
      for (const dag::Body& body : program.dag().bodies) {
        for (const tensor::Node& node : body.graph.nodes())
          added += node.op == tensor::Op::contract_add;
      }
      EXPECT_GE(added, 4);
      const LawRun run = program.run({});
      if (dtype != "bf16") {
        EXPECT_EQ(first_difference(run, unsplit.run({}), dtype == "f64" ? kRounding : 1e-4), "");
      }
      EXPECT_EQ(first_bit_difference(run, program.run_sequential()), "");
    }
  }
}

TEST(Values, ComparisonsSeeOneBit) {
  LawRun a;
  a.losses = {1, 2, 3};
  a.norms = {1, 1, 1};
  a.sums = {{1, 2}, {3}};
  a.gradients["w"] = {{1, 2, 3}};
  a.parameters["w"] = {{4, 5}};
  EXPECT_EQ(first_bit_difference(a, a), "");
  EXPECT_EQ(first_difference(a, a, 0), "");
  LawRun b = a;
  b.parameters["w"][0][1] = 5 + 1e-15;
  EXPECT_NE(first_bit_difference(a, b), "");
  EXPECT_EQ(first_difference(a, b, 1e-14), "");
  b.parameters["w"][0][1] = 5 + 1e-9;
  EXPECT_NE(first_difference(a, b, kRounding), "");
  b = a;
  b.gradients["w"][0][0] = -1;
  EXPECT_NE(first_bit_difference(a, b), "");
  EXPECT_NE(first_difference(a, b, kRounding), "");
  b = a;
  b.sums[1][0] = 4;
  EXPECT_NE(first_bit_difference(a, b), "");
  b = a;
  b.held_out = {4};
  EXPECT_NE(first_difference(a, b, kRounding), "");
  b = a;
  b.losses[2] = std::numeric_limits<double>::quiet_NaN();
  EXPECT_NE(first_difference(a, b, kRounding), "");
}

}  // namespace
}  // namespace piper::test
