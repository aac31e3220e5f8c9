// Device programs: their contents, and that interpreting and generating them computes the same
// bits.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <map>
#include <set>

#include "backend/device_program/rank_tables.h"
#include "backend/emit_cpp/emit_program.h"
#include "ir/dag/parse.h"
#include "ir/dag/print.h"
#include "passes/pipeline.h"
#include "tests/backend/program_runs.h"
#include "tests/support/golden.h"
#include "tests/support/random_cases.h"
#include "tests/support/random_programs.h"
#include "tests/support/temporary_folder.h"

namespace piper::test {
namespace {

using backend::Engine;
using backend::Job;
using backend::JobOptions;

/// Bit for bit: NaN counts as equal to itself, 0 and -0 as different.
bool same_bits(const std::vector<double>& a, const std::vector<double>& b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(double)) == 0);
}

void expect_same(const ProgramRun& a, const ProgramRun& b, const std::string& what) {
  EXPECT_TRUE(same_bits(a.losses, b.losses)) << what;
  EXPECT_TRUE(same_bits(a.norms, b.norms)) << what;
  EXPECT_TRUE(same_bits(a.held_out, b.held_out)) << what;
  EXPECT_EQ(a.parameters.size(), b.parameters.size()) << what;
  for (const auto& [name, values] : a.parameters)
    EXPECT_TRUE(b.parameters.contains(name) && same_bits(values, b.parameters.at(name)))
        << what << ", " << name;
}

double distance(const ProgramRun& a, const ProgramRun& b) {
  double worst = 0;
  for (std::size_t i = 0; i < a.losses.size(); ++i)
    worst = std::max(worst, std::abs(a.losses[i] - b.losses[i]));
  for (const auto& [name, values] : a.parameters) {
    const auto other = b.parameters.find(name);
    if (other == b.parameters.end() || other->second.size() != values.size()) return INFINITY;
    for (std::size_t i = 0; i < values.size(); ++i)
      worst = std::max(worst, std::abs(values[i] - other->second[i]));
  }
  return worst;
}

TEST(Interpreter, FourDevicesComputeWhatOneDoes) {
  Context context;
  TestProgram four = gpt_program(context, tensor::DType::f64, true);
  ASSERT_TRUE(four);
  Context other;
  StrategyBuilder build(other, {{"pp", 1}});
  build.split({{"mb", 8}}).place({}, {{"pp", 0}}).clip(0.05);
  TestProgram one(other, small_gpt(other, {.layers = 2, .batch = 8}), build.strategy(), true);
  ASSERT_TRUE(one);
  const ProgramRun a = four.run({.engine = Engine::interpreter}, 3),
                   b = one.run({.engine = Engine::interpreter}, 3);
  ASSERT_EQ(a.losses.size(), 3u);
  ASSERT_FALSE(a.parameters.empty());
  EXPECT_NE(a.losses[0], a.losses[2]);
  EXPECT_GT(a.norms[0], 0.05);  // clipping does something
  EXPECT_LT(distance(a, b), 1e-12);
  ASSERT_EQ(a.held_out.size(), b.held_out.size());
  for (std::size_t i = 0; i < a.held_out.size(); ++i)
    EXPECT_NEAR(a.held_out[i], b.held_out[i], 1e-12);
}

TEST(DeviceProgram, RanksOfARoleShareOneProgram) {
  Context context;
  TestProgram program = gpt_program(context);
  ASSERT_TRUE(program);
  const auto job = program.job({.engine = Engine::interpreter});
  ASSERT_TRUE(job);
  const PiperJob& tables = job->tables();
  ASSERT_EQ(tables.num_ranks, 4u);
  ASSERT_EQ(job->training().roles.size(), 2u);
  // Row-major over pp, dp: ranks 0 and 1 replicate one stage.
  EXPECT_EQ(tables.ranks[0].program, tables.ranks[1].program);
  EXPECT_EQ(tables.ranks[2].program, tables.ranks[3].program);
  EXPECT_NE(std::string(tables.ranks[0].program->hash), tables.ranks[2].program->hash);
  ASSERT_GE(tables.ranks[0].program->num_intervals, 1u);
  const PiperInterval &first = tables.ranks[0].intervals[0], &second = tables.ranks[1].intervals[0];
  EXPECT_EQ(first.first, 0u);
  EXPECT_EQ(first.extent, tables.ranks[0].program->extents[0]);
  EXPECT_EQ(second.first, first.extent);
  EXPECT_EQ(first.extent + second.extent, first.global);
  std::map<std::uint32_t, std::vector<std::uint32_t>> members;
  for (std::uint32_t r = 0; r < tables.num_ranks; ++r) {
    std::set<std::uint32_t> own;
    for (std::uint32_t c = 0; c < tables.ranks[r].program->num_communicators; ++c) {
      const PiperCommunicator& each = tables.ranks[r].communicators[c];
      EXPECT_EQ(each.members[each.self], r);
      EXPECT_TRUE(own.insert(each.id).second);
      const std::vector<std::uint32_t> list(each.members, each.members + each.num_members);
      EXPECT_EQ(members.try_emplace(each.id, list).first->second, list) << each.id;
      // Stages meet stages of the same replica, replicas those of the same stage.
      if (each.kind == 0) {
        EXPECT_EQ(list[0] % 2, list[1] % 2);
      }
    }
  }
}

/// A dimension sharded over several axes: each axis divides the interval that the one before left,
/// in their order and not in that of the mesh.
TEST(DeviceProgram, RanksHaveTheIntervalsThatAxesLeave) {
  Context context;
  TestProgram program = gpt_program(context);
  ASSERT_TRUE(program);
  const backend::ProgramSet set = backend::make_programs(program.training());
  backend::DeviceProgram role = set.roles[1];  // of ranks 2 and 3: at (1, 0) and (1, 1)
  role.intervals = {{{full_interval(12), {}}, 12},
                    {{full_interval(12), {0, 1}}, 3},
                    {{full_interval(12), {1, 0}}, 3}};
  backend::CommunicatorIds ids(program.training(), 0);
  const auto intervals = [&](std::uint64_t rank) {
    std::vector<Interval> own;
    for (const PiperInterval& each :
         backend::RankTables(program.training(), role, ids, rank).intervals) {
      own.push_back({static_cast<std::int64_t>(each.first), static_cast<std::int64_t>(each.extent),
                     static_cast<std::int64_t>(each.global)});
    }
    return own;
  };
  EXPECT_EQ(intervals(2), (std::vector<Interval>{{0, 12, 12}, {6, 3, 12}, {3, 3, 12}}));
  EXPECT_EQ(intervals(3), (std::vector<Interval>{{0, 12, 12}, {9, 3, 12}, {9, 3, 12}}));
}

TEST(DeviceProgram, TokensAreIntegersNotFeatures) {
  const auto per_sample = [](Context& context, tensor::Graph model) {
    StrategyBuilder build(context, {{"d", 1}});
    build.line(1, 1);
    TestProgram program(context, std::move(model), build.strategy());
    const auto job = program.job({.engine = Engine::interpreter});
    EXPECT_TRUE(job);
    return job->tables().tokens_per_step / job->tables().samples_per_step;
  };
  Context text, features;
  EXPECT_EQ(per_sample(text, small_gpt(text, {.seq = 6})), 6u);
  EXPECT_EQ(per_sample(features, mlp_chain(features, {.dim = 6})), 1u);
}

TEST(DeviceProgram, MoreReplicasGiveTheSameProgram) {
  // The share of a rank stays the same, so only tables of ranks may differ. How many elements count
  // is found in every step: no program has the size of the batch.
  const auto hash = [](std::uint32_t replicas, std::int64_t batch) {
    Context context;
    StrategyBuilder build(context, {{"pp", 2}, {"dp", replicas}});
    build.line(2, 1).replicate({"dp"});
    TestProgram program(context, small_gpt(context, {.layers = 2, .batch = batch, .ignore = 0}),
                        build.strategy());
    std::string source;
    for (const backend::DeviceProgram& role : backend::make_programs(program.training()).roles)
      source += role.hash;
    return source;
  };
  const std::string two = hash(2, 8);
  EXPECT_EQ(two.size(), 64u);
  EXPECT_EQ(two, hash(4, 16));
  EXPECT_NE(two, hash(2, 16));
}

// The results depend on whose products they are, so ranks that choose otherwise do not run one
// program.
TEST(DeviceProgram, WhoseProductsIsPartOfTheHash) {
  Context context;
  StrategyBuilder build(context, {{"pp", 2}});
  build.line(2, 1);
  TestProgram program(context, mlp_chain(context, {.layers = 2}), build.strategy());
  const auto hash = [&](const char* products) {
    DiagnosticSink sink(context.locations);
    const auto job =
        backend::make_job(program.training(), nullptr,
                          {.engine = backend::Engine::interpreter, .products = products}, sink);
    return std::string(job->tables().ranks[0].program->hash);
  };
  EXPECT_EQ(hash("MKL").size(), 32u);
  EXPECT_EQ(hash("MKL"), hash("MKL"));
  EXPECT_NE(hash("MKL"), hash("large f32 by oneDNN"));
}

TEST(DeviceProgram, PrintsAndEmitsAsGoldens) {
  Context context;
  StrategyBuilder build(context, {{"pp", 2}});
  build.line(2, 2).one_f_one_b(2, 2).edit().settings.dtype = tensor::DType::f32;
  TestProgram program(
      context,
      mlp_chain(context,
                {.layers = 2, .batch = 4, .dim = 2, .hidden = 3, .dtype = tensor::DType::f32}),
      build.strategy());
  ASSERT_TRUE(program);
  const backend::ProgramSet set = backend::make_programs(program.training());
  ASSERT_EQ(set.roles.size(), 2u);
  std::string text;
  for (const backend::DeviceProgram& role : set.roles) text += print(role, set.bodies) + "\n";
  expect_golden("tests/backend/testdata/program/two_stages.program", text);
  expect_golden("tests/backend/testdata/program/two_stages.pp1.cpp.txt",
                emit_program(set.roles[1], set.bodies));
}

TEST(DeviceProgram, APlanReadFromItsTextGivesTheSameProgram) {
  std::size_t planned = 0;
  for_each_case(20, [&](Random& random) {
    Context context;
    RandomProgram drawn = random_program(context, random);
    TestProgram program(context, std::move(drawn.model), drawn.strategy);
    if (!program) return;
    ++planned;
    Context other;
    DiagnosticSink sink(other.locations);
    const FileId file = other.locations.files().add("plan.pir", dag::print(program.training()));
    const std::optional<dag::Dag> read = dag::parse(file, other, sink);
    ASSERT_TRUE(read) << drawn.source;
    const backend::ProgramSet written = backend::make_programs(program.training()),
                              again = backend::make_programs(*read);
    ASSERT_EQ(written.roles.size(), again.roles.size());
    for (std::size_t r = 0; r < written.roles.size(); ++r)
      EXPECT_EQ(print(written.roles[r], written.bodies), print(again.roles[r], again.bodies))
          << drawn.source;
  });
  EXPECT_GE(planned, 1u);
}

TEST(Generated, ComputesTheInterpretersBits) {
  const TemporaryFolder cache;
  for (const tensor::DType dtype : {tensor::DType::f64, tensor::DType::f32}) {
    Context context;
    TestProgram program = gpt_program(context, dtype, true);
    ASSERT_TRUE(program);
    JobOptions options;
    options.jit.cache_folder = cache.path();
    ASSERT_TRUE(program.job(options)->generated());
    const ProgramRun generated = program.run(options, 4),
                     interpreted = program.run({.engine = Engine::interpreter}, 4);
    ASSERT_EQ(generated.losses.size(), 4u);
    expect_same(generated, interpreted, std::string(tensor::dtype_name(dtype)));
    EXPECT_TRUE(program.sink.empty());
  }
}

TEST(Generated, ALongStepIsALoop) {
  // More compute actions than are written out one by one.
  const TemporaryFolder cache;
  Context context;
  StrategyBuilder build(context, {{"pp", 1}});
  build.split({{"mb", 256}}).place({}, {{"pp", 0}});
  TestProgram program(context,
                      mlp_chain(context, {.layers = 1, .batch = 256, .dim = 2, .hidden = 3}),
                      build.strategy());
  ASSERT_TRUE(program);
  const backend::ProgramSet set = backend::make_programs(program.training());
  ASSERT_GT(set.roles[0].streams[0].action_of.size(), backend::kStraightLine);
  EXPECT_NE(emit_program(set.roles[0], set.bodies).find("static const Action schedule[]"),
            std::string::npos);
  JobOptions options;
  options.jit.cache_folder = cache.path();
  expect_same(program.run(options, 2), program.run({.engine = Engine::interpreter}, 2), "loop");
}

TEST(Generated, ANormOverManyParametersHasScratch) {
  const TemporaryFolder cache;
  Context context;
  StrategyBuilder build(context, {{"pp", 1}});
  build.split({{"mb", 2}}).place({}, {{"pp", 0}}).clip(0.01);
  TestProgram program(context,
                      mlp_chain(context, {.layers = 14, .batch = 4, .dim = 2, .hidden = 2}),
                      build.strategy());
  ASSERT_TRUE(program);
  JobOptions options;
  options.jit.cache_folder = cache.path();
  const ProgramRun generated = program.run(options, 2);
  ASSERT_EQ(generated.norms.size(), 2u);
  EXPECT_GT(generated.norms[0], 0.01);
  expect_same(generated, program.run({.engine = Engine::interpreter}, 2), "28 parameters");
}

TEST(Generated, RandomProgramsComputeTheInterpretersBits) {
  const TemporaryFolder cache;
  for_each_case(6, [&](Random& random) {
    Context context;
    RandomProgram drawn = random_program(context, random);
    TestProgram program(context, std::move(drawn.model), drawn.strategy);
    if (!program) return;
    JobOptions options;
    options.jit.cache_folder = cache.path();
    expect_same(program.run(options, 2), program.run({.engine = Engine::interpreter}, 2),
                drawn.source);
  });
}

}  // namespace
}  // namespace piper::test
