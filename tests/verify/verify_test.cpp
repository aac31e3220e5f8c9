// Legal texts of every level pass, and round trip; texts with one thing wrong are refused, with the
// diagnostics of their golden.
//
// A wrong text is an `.edit` of a legal one: `base NAME`, then the removed and inserted lines
// (`tests/support/text_edit.h`).

#include <gtest/gtest.h>

#include <filesystem>
#include <set>
#include <sstream>

#include "ir/dag/parse.h"
#include "ir/dag/print.h"
#include "ir/verify/verify.h"
#include "tests/support/file_test.h"
#include "tests/support/golden.h"
#include "tests/support/text_edit.h"

namespace piper::test {
namespace {

std::string check(std::string_view text, bool with_lint) {
  Context context;
  DiagnosticSink sink(context.locations);
  const std::optional<dag::Dag> dag = dag::parse(text, context, sink);
  const bool ok = dag && verify::verify(*dag, sink);
  EXPECT_EQ(ok, !sink.has_errors());
  if (ok && with_lint) verify::lint(*dag, sink);
  return render_text(sink.sorted(), context.locations.files());
}

std::string without_comments(const std::string& text) {
  std::istringstream lines(text);
  std::string result;
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("//")) result += line + "\n";
  }
  return result;
}

PIPER_FILE_TEST(LegalDag, "tests/verify/testdata/legal", ".pir", [](const FileTest& test) {
  EXPECT_EQ(check(test.text, true), "");
  Context context;
  DiagnosticSink sink(context.locations);
  const std::optional<dag::Dag> dag = dag::parse(test.text, context, sink);
  ASSERT_TRUE(dag);
  EXPECT_EQ(print(*dag), without_comments(test.text));
});

// Text, flow and completeness of a kind that no legal text has would be checked by nothing.
TEST(LegalDag, EveryKindOfNodeStandsInSomePlan) {
  std::set<dag::NodeKind> seen;
  for (const std::filesystem::directory_entry& entry :
       std::filesystem::directory_iterator("tests/verify/testdata/legal")) {
    Context context;
    DiagnosticSink sink(context.locations);
    const std::optional<dag::Dag> dag =
        dag::parse(read_text(entry.path()).value_or(""), context, sink);
    ASSERT_TRUE(dag) << entry.path();
    if (dag->level != dag::Level::planned) continue;
    for (const dag::Node& node : dag->nodes) seen.insert(node.kind);
  }
  for (std::size_t i = 0; i < dag::kNodeTraits.size(); ++i) {
    EXPECT_TRUE(seen.contains(static_cast<dag::NodeKind>(i)))
        << "no legal text of level planned has a node `" << dag::kNodeTraits[i].name << "`";
  }
}

PIPER_FILE_TEST(WrongDag, "tests/verify/testdata/wrong", ".edit", [](const FileTest& test) {
  const std::size_t first = test.text.find('\n') + 1;
  ASSERT_TRUE(test.text.starts_with("base ")) << test.text;
  std::string error;
  const std::string legal =
      read_text("tests/verify/testdata/legal/" + test.text.substr(5, first - 6) + ".pir")
          .value_or("");
  const std::string text = edited(legal, std::string_view(test.text).substr(first), error);
  ASSERT_EQ(error, "");
  const std::string found = check(text, false);
  EXPECT_NE(found, "");
  expect_golden(test.beside(".out"), found);
});

/// Faults that a table can hold but no text can express.
std::string check_broken(void (*spoil)(dag::Dag&)) {
  Context context;
  DiagnosticSink sink(context.locations);
  std::optional<dag::Dag> dag =
      dag::parse(*read_text("tests/verify/testdata/legal/planned.pir"), context, sink);
  spoil(*dag);
  EXPECT_FALSE(verify::verify(*dag, sink));
  EXPECT_EQ(sink.sorted().size(), 1u);
  return sink.empty() ? "" : sink.sorted().front().message;
}

TEST(Tables, IdsOutsideOfTheirTablesAreToldInTheOrderOfTheTables) {
  EXPECT_EQ(check_broken([](dag::Dag& dag) { dag.comms.back().members.clear(); }),
            "a communication has no members");
  EXPECT_EQ(check_broken([](dag::Dag& dag) {
              dag.comms.front().members.back() = dag::NodeId::at(dag.nodes.size());
            }),
            "a communication refers to a node that does not exist");
  EXPECT_EQ(check_broken([](dag::Dag& dag) {
              dag.comms.front().members.front() = {};
              dag.comms.back().members.clear();
            }),
            "a communication refers to a node that does not exist");
  EXPECT_EQ(check_broken([](dag::Dag& dag) {
              dag.temporal.emplace_back(dag::NodeId::at(0), dag::NodeId());
            }),
            "a temporal edge refers to a node that does not exist");
  EXPECT_EQ(check_broken([](dag::Dag& dag) { dag.chunks[1].region = dag.chunks[0].region; }),
            "chunks `stage0` and `stage1` are the same part of the model");
  EXPECT_EQ(check_broken([](dag::Dag& dag) {
              dag.nodes.back().devices = DeviceSetId::at(dag.device_sets.size());
            }),
            "update node 24 refers outside the DAG's tables");
}

TEST(Lint, AnEventThatOthersImplyIsAWarning) {
  std::string text = *read_text("tests/verify/testdata/legal/planned.pir");
  const std::string wait = "F.stage1.mb1 on compute after recv.F.stage0.mb1.pp1";
  text.replace(text.find(wait), wait.size(), wait + ", recv.F.stage0.mb0.pp1");
  const std::string found = check(text, true);
  EXPECT_NE(
      found.find(
          "warning P4290: `F.stage1.mb1` waits for `recv.F.stage0.mb0.pp1`, which other events imply"),
      std::string::npos)
      << found;
  EXPECT_EQ(check(text, false), "");
}

}  // namespace
}  // namespace piper::test
