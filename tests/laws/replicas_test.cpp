// Replicas cost nothing: the number of nodes and the programs do not depend on how many there are.

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "backend/emit_cpp/emit_program.h"
#include "tests/laws/law_runs.h"
#include "tests/support/sample_models.h"

namespace piper::test {
namespace {

struct Compiled {
  std::size_t nodes = 0, communicators = 0;
  std::uint64_t ranks = 0;
  std::vector<std::string> hashes;
  std::string sources;         // of all roles
  std::string without_places;  // the same, as if every microbatch began at sample 0
};

/// Two stages, 1F1B over microbatches of one sample per replica, clipped, in buckets. The mean is
/// over the targets that count: their number is known only at run time, so the computation of a
/// replica does not depend on the number of replicas.
Compiled compile(std::uint32_t replicas, std::uint32_t microbatches, bool halves) {
  Context context;
  StrategyBuilder build(context, {{"pp", 2}, {"dp", replicas}});
  build.line(2, microbatches).one_f_one_b(2, microbatches, halves).replicate({"dp"}, 256).clip(0.1);
  const std::int64_t batch = std::int64_t{microbatches} * replicas;
  LawProgram program(
      context,
      small_gpt(context,
                {.layers = 2, .batch = batch, .seq = 3, .dim = 4, .tied = true, .ignore = -1}),
      build.strategy());
  Compiled compiled;
  if (!program) return compiled;
  const dag::Dag& dag = program.dag();
  compiled.nodes = dag.nodes.size();
  compiled.communicators = dag.plan->communicators.size();
  compiled.ranks = 1;
  for (const MeshAxis& axis : dag.mesh.axes) compiled.ranks *= axis.size;
  backend::ProgramSet set = backend::make_programs(dag);
  for (backend::DeviceProgram& role : set.roles) {
    compiled.hashes.push_back(role.hash);
    compiled.sources += emit_program(role, set.bodies);
    for (backend::CallInterval& call : role.call_intervals) call.first = 0;
    role.hash.clear();
    compiled.without_places += emit_program(role, set.bodies);
  }
  return compiled;
}

TEST(Replicas, AnyNumberHasTheSamePrograms) {
  for (const bool halves : {false, true}) {
    const Compiled two = compile(2, 1, halves);
    EXPECT_EQ(two.ranks, 4u);
    EXPECT_EQ(two.hashes.size(), 2u);
    for (const std::uint32_t replicas : {8u, 64u}) {
      const Compiled more = compile(replicas, 1, halves);
      EXPECT_EQ(more.ranks, 2u * replicas);
      EXPECT_EQ(more.nodes, two.nodes);
      EXPECT_EQ(more.communicators, two.communicators);
      EXPECT_EQ(more.hashes, two.hashes);
      EXPECT_TRUE(more.sources == two.sources) << replicas << " replicas";
    }
  }
  EXPECT_NE(compile(2, 1, false).hashes, compile(2, 1, true).hashes);
}

TEST(Replicas, OnlyPlacesInTheBatchDependOnTheirNumber) {
  const Compiled two = compile(2, 3, true);
  EXPECT_FALSE(two.without_places.empty());
  for (const std::uint32_t replicas : {8u, 64u}) {
    const Compiled more = compile(replicas, 3, true);
    EXPECT_EQ(more.nodes, two.nodes);
    EXPECT_EQ(more.communicators, two.communicators);
    // The second microbatch begins where the first ends, and that is further on in a larger batch.
    EXPECT_NE(more.hashes, two.hashes);
    EXPECT_TRUE(more.without_places == two.without_places) << replicas << " replicas";
  }
}

/// Five samples of each microbatch over three replicas are 2, 2 and 1: two roles per stage, with
/// kernels of their own. The targets that count are also counted per replica.
TEST(Replicas, MayHaveDifferentNumbersOfSamples) {
  for (const std::uint32_t zero : {0u, 1u, 2u, 3u}) {
    SCOPED_TRACE("zero " + std::to_string(zero));
    Context context;
    StrategyBuilder build(context, {{"pp", 2}, {"dp", 3}});
    build.line(2, 2).one_f_one_b(2, 2).replicate({"dp"}, 256, {}, zero);
    const tensor::Graph model = small_gpt(
        context, {.layers = 2, .batch = 10, .seq = 3, .dim = 4, .tied = true, .ignore = -1});
    LawProgram program(context, model, build.strategy());
    LawProgram unsplit(context, model, one_device(context, build.strategy()));
    ASSERT_TRUE(program && unsplit);
    EXPECT_EQ(program.dag().plan->roles.size(), 4u);
    std::set<std::string> bodies;
    for (const backend::KernelBody& body : backend::make_programs(program.dag()).bodies)
      bodies.insert(body.name);
    // The first two replicas share a body. From `zero: 2` on, stages are divided at units.
    EXPECT_EQ(bodies.contains("stage0.F.1"), zero < 2);
    EXPECT_FALSE(bodies.contains("stage0.F.2"));
    const LawRun run = program.run({});
    EXPECT_EQ(first_bit_difference(run, program.run_sequential()), "");
    EXPECT_EQ(first_difference(run, unsplit.run({}), 1e-10), "");
  }
}

}  // namespace
}  // namespace piper::test
