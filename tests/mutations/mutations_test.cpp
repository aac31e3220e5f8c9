// Every deleted, duplicated, redirected and otherwise changed action, and every swap of dependent
// neighbours, is refused.

#include "tests/mutations/mutations.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <set>

#include "ir/dag/parse.h"
#include "ir/dag/print.h"
#include "tests/mutations/plan_changes.h"
#include "tests/mutations/text_changes.h"
#include "tests/support/file_test.h"
#include "tests/support/golden.h"

namespace piper::test {
namespace {

void expect_all_refused(const std::string& name, std::size_t at_least) {
  const MutationReport report =
      run_mutations(*read_text("tests/verify/testdata/legal/" + name + ".pir"));
  EXPECT_GE(report.tried, at_least);
  for (const std::string& survivor : report.survivors) ADD_FAILURE() << "not refused: " << survivor;
}

TEST(Mutations, PipelineOfTwoStages) { expect_all_refused("planned", 700); }
TEST(Mutations, ReplicasWithASplitBackward) { expect_all_refused("replicated", 400); }
TEST(Mutations, ShardedOptimizerState) { expect_all_refused("state_in_shares", 700); }
TEST(Mutations, ShardedGradients) { expect_all_refused("cut_gradients", 700); }
TEST(Mutations, ShardedParameters) { expect_all_refused("cut_parameters", 700); }
TEST(Mutations, FrozenShardedParameters) { expect_all_refused("frozen_shares", 700); }
TEST(Mutations, AMaskedLossAndItsCount) { expect_all_refused("masked_planned", 300); }
TEST(Mutations, ASendThatAnOrderNames) { expect_all_refused("named_send", 500); }
TEST(Mutations, ChunksThatShareABody) { expect_all_refused("shared_bodies", 1000); }
TEST(Mutations, ForwardAndBackwardApart) { expect_all_refused("apart", 1000); }
TEST(Mutations, SomeMicrobatchesAgainAndFrozenWeights) { expect_all_refused("recomputed", 700); }
TEST(Mutations, ForwardAlone) { expect_all_refused("held_out", 80); }

/// The changes of these texts alone.
PIPER_FILE_TEST(TextMutations, "tests/verify/testdata/legal", ".pir", [](const FileTest& test) {
  const std::vector<TextChange> changes = text_changes(test.text);
  EXPECT_GE(changes.size(), 15u);
  for (const TextChange& change : changes) {
    if (is_legal(change.text)) ADD_FAILURE() << "not refused: " << change.what;
  }
});

TEST(Mutations, EveryRuleOfTextsChangesALegalText) {
  std::set<std::string> changed;
  for (const std::filesystem::directory_entry& entry :
       std::filesystem::directory_iterator("tests/verify/testdata/legal")) {
    for (const TextChange& change : text_changes(read_text(entry.path()).value_or("")))
      changed.insert(change.rule);
  }
  for (const std::string& rule : text_rules())
    EXPECT_TRUE(changed.contains(rule)) << "no legal text has a line of this rule: " << rule;
}

PIPER_FILE_TEST(PlanMutations, "tests/verify/testdata/legal", ".pir", [](const FileTest& test) {
  Context context;
  DiagnosticSink sink(context.locations);
  const std::optional<dag::Dag> dag = dag::parse(test.text, context, sink);
  ASSERT_TRUE(dag);
  const std::vector<TextChange> changes = plan_changes(*dag, print(*dag));
  EXPECT_GE(changes.size(), 1u);
  for (const TextChange& change : changes) {
    if (is_legal(change.text)) ADD_FAILURE() << "not refused: " << change.what;
  }
});

TEST(Mutations, AnIllegalTextIsNoBase) {
  EXPECT_EQ(run_mutations("pir 2 planned\ngraph {\n}\n").tried, 0u);
}

}  // namespace
}  // namespace piper::test
