// The DAG's text: names, messages and locations for bad text, and no bytes crash the parser or the
// verifier.

#include <gtest/gtest.h>

#include "ir/dag/parse.h"
#include "ir/dag/print.h"
#include "ir/text/location_text.h"
#include "ir/verify/verify.h"
#include "tests/diagnostics/findings.h"
#include "tests/support/damage.h"
#include "tests/support/file_test.h"
#include "tests/support/golden.h"
#include "tests/support/random_cases.h"

namespace piper::test {
namespace {

const std::vector<std::string> kLegal = {"built",   "split",   "placed",     "communicating",
                                         "ordered", "planned", "replicated", "held_out"};

std::string legal(const std::string& name) {
  return *read_text("tests/verify/testdata/legal/" + name + ".pir");
}

/// One error stands in each file, under its column.
PIPER_FILE_TEST(DagTextErrors, "tests/ir/testdata/dag_text", ".pir", [](const FileTest& test) {
  expect_findings(test, [](const std::string& path, const std::string& source) {
    Context context;
    DiagnosticSink sink(context.locations);
    const FileId file = context.locations.files().add(path, source);
    EXPECT_FALSE(dag::parse(file, context, sink).has_value());
    return findings(sink, file);
  });
});

/// Legal or refused with a diagnostic that has a place; a legal one prints and reads back to the
/// same text.
void expect_sane(const std::string& text) {
  Context context;
  DiagnosticSink sink(context.locations);
  const std::optional<dag::Dag> dag = dag::parse(text, context, sink);
  if (!dag) {
    EXPECT_EQ(sink.error_count(), 1u);
    for (const Diagnostic& diagnostic : sink.sorted())
      EXPECT_TRUE(diagnostic.range.valid()) << diagnostic.message;
    return;
  }
  EXPECT_TRUE(sink.empty());
  verify::verify(*dag, sink);
  const std::string printed = print(*dag);
  Context other;
  DiagnosticSink other_sink(other.locations);
  const std::optional<dag::Dag> again = dag::parse(printed, other, other_sink);
  ASSERT_TRUE(again) << render_text(other_sink.sorted(), other.locations.files()) << printed;
  EXPECT_EQ(print(*again), printed);
}

/// Editors on Windows write one; columns do not count it.
TEST(DagText, AByteOrderMarkIsNoPartOfTheText) {
  const std::string mark = "\xEF\xBB\xBF";
  const auto read = [](const std::string& text, std::string& told) {
    Context context;
    DiagnosticSink sink(context.locations);
    const std::optional<dag::Dag> dag = dag::parse(text, context, sink);
    told = render_text(sink.sorted(), context.locations.files());
    return dag ? print(*dag) : "";
  };
  for (const std::string& text : {legal("planned"), std::string("pir x planned\n")}) {
    std::string plain, marked;
    EXPECT_EQ(read(mark + text, marked), read(text, plain));
    EXPECT_EQ(marked, plain);
  }
  std::string told;
  EXPECT_EQ(read("pir 2 " + mark, told), "");
  EXPECT_NE(told, "");
}

/// `text`, read and printed; the message if it is refused.
std::string again(const std::string& text) {
  Context context;
  DiagnosticSink sink(context.locations);
  const std::optional<dag::Dag> dag = dag::parse(text, context, sink);
  return dag ? print(*dag) : sink.sorted().front().message;
}

/// The beginning of a text without a train.
const std::string kHead = "pir 2 built\ntrain \"\" {\n  steps 0\n  dtype f32\n  seed 0\n}\n";

TEST(DagText, LocationsAreNumberedInTheOrderOfTheirFirstUse) {
  EXPECT_EQ(
      again(
          "pir 2 built\n"
          "mesh line(pp: 2) #7\n"
          "stream a #9\n"
          "stream b #12\n"
          "stream c #7\n"
          "graph { } // the table need not begin a line\n"
          "  locations { 9 library \"std/a.pipe\":1:1-1:2 from \"b.pipe\":3:4-3:5 // a call\n"
          "  12 \"locations {\":5:6-7:8 3 \"unused\":1:1-1:1 7 unknown from \"b.pipe\":3:4-3:5 }"),
      kHead +
          "mesh line(pp: 2) #1\n"
          "stream a #2\n"
          "stream b #3\n"
          "stream c #1\n"
          "graph {\n"
          "}\n"
          "locations {\n"
          "  1 unknown from \"b.pipe\":3:4-3:5\n"
          "  2 library \"std/a.pipe\":1:1-1:2 from \"b.pipe\":3:4-3:5\n"
          "  3 \"locations {\":5:6-7:8\n"
          "}\n");
}

TEST(DagText, EqualPlacesOfOneTextHaveOneNumber) {
  EXPECT_EQ(again("pir 2 built\nstream a #1\nstream b #2\ngraph {\n}\n"
                  "locations {\n  1 \"a\":1:1-1:2\n  2 \"a\":1:1-1:2\n}\n"),
            kHead +
                "stream a #1\nstream b #1\ngraph {\n}\n"
                "locations {\n  1 \"a\":1:1-1:2\n}\n");
}

TEST(DagText, ANameIsNoTableOfLocations) {
  const std::string text =
      "pir 2 built\ntrain \"locations\" {\n  steps 0\n  dtype f32\n  seed 0\n}\ngraph {\n}\n";
  EXPECT_EQ(again(text), text);
}

/// The number of bytes is large enough that a search that is not linear would not end.
TEST(DagText, TheTableIsFoundInLinearTime) {
  for (const std::string line : {"// locations {\n", "locations \n", "\"locations {\" "}) {
    std::string text = "pir 2 built\n";
    while (text.size() < 4'000'000) text += line;
    EXPECT_NE(again(text), "");
  }
}

TEST(DagText, ALocationForReadersHasItsCalls) {
  LocationTable table;
  const FileId user = table.files().add("a \"b\"\\.pipe", "train\ncall\n");
  const FileId library = table.files().add("std/x.pipe", "\u00f6\u00e4\u00fc inner\n", true);
  const LocId loc =
      table.intern({library, 7, 12}, table.intern({user, 6, 10}, table.intern({user, 0, 5})));
  EXPECT_EQ(
      location_text(table, loc),
      R"(loc(library "std/x.pipe":1:5-1:10 from "a \"b\"\\.pipe":2:1-2:5 from "a \"b\"\\.pipe":1:1-1:6))");
}

/// Names are relative to the folder of the program, wherever that is.
TEST(DagText, NamesOfFilesAreThoseFromTheProgram) {
  struct Row {
    const char *program, *file, *name;
  };
  constexpr Row kRows[] = {
      {"net.pipe", "net.pipe", "net.pipe"},
      {"net.pipe", "parts/net.pipe", "parts/net.pipe"},
      {"a/net.pipe", "a/net.pipe", "net.pipe"},
      {"a/net.pipe", "a/parts/b.pipe", "parts/b.pipe"},
      {"/home/a/net.pipe", "/home/a/net.pipe", "net.pipe"},
      {"/home/a/net.pipe", "/home/b.pipe", "../b.pipe"},
      {"/home/a/net.pipe", "elsewhere.pipe", "elsewhere.pipe"},
      {"plans/net.pir", "net.pipe", "net.pipe"},
  };
  for (const Row& row : kRows) {
    Context context;
    SourceTable& files = context.locations.files();
    files.add("std/library.pipe", "", true);
    files.add(row.program, "text");
    dag::Dag dag(context);
    dag.streams.emplace_back().name = context.symbol("s");
    const FileId file = files.add_without_text(row.file);
    const std::uint32_t at = files.offset(file, {1, 1});
    dag.streams.back().loc = context.locations.intern({file, at, at});
    const std::string text = print(dag);
    EXPECT_NE(text.find("  1 \"" + std::string(row.name) + "\":1:1-1:1\n"), std::string::npos)
        << text;
  }
}

TEST(DagTextFuzz, CommunicationsThatNameNobody) {
  for (const char* name : {"planned", "replicated", "held_out"}) {
    const std::string text = legal(name);
    for (const std::string key : {" over ", " to ", " from "}) {
      for (std::size_t at = text.find(key); at != std::string::npos; at = text.find(key, at + 1)) {
        const std::size_t end = text.find_first_of(" \n", at + key.size());
        expect_sane(text.substr(0, at) + text.substr(std::min(end, text.size())));
      }
    }
  }
}

TEST(DagTextFuzz, ChangedBytes) {
  for_each_case(1500, [](Random& random) {
    std::string text = legal(random.pick(kLegal));
    for (std::uint64_t n = 1 + random.below(4); n > 0; --n) {
      const std::size_t at = random.below(text.size());
      switch (random.below(4)) {
        case 0: text[at] = static_cast<char>(random.below(256)); break;
        case 1: text.erase(at, 1 + random.below(20)); break;
        case 2: text.insert(at, 1, "()[]{}:,\"%#@+-_0 \n"[random.below(18)]); break;
        default: text.resize(at + 1); break;
      }
      if (text.empty()) return;
    }
    expect_sane(text);
  });
}

TEST(DagTextFuzz, ChangedTokens) {
  for_each_case(1500, [](Random& random) {
    std::vector<std::string> tokens = tokens_of(legal(random.pick(kLegal)));
    for (std::uint64_t n = 1 + random.below(3); n > 0; --n) {
      const std::size_t at = random.below(tokens.size());
      switch (random.below(5)) {
        case 0: tokens[at] = tokens[random.below(tokens.size())]; break;
        case 1: tokens.erase(tokens.begin() + static_cast<std::ptrdiff_t>(at)); break;
        case 2:
          tokens.insert(tokens.begin() + static_cast<std::ptrdiff_t>(at),
                        tokens[random.below(tokens.size())]);
          break;
        case 3: std::swap(tokens[at], tokens[random.below(tokens.size())]); break;
        default: {
          const std::vector<std::string> numbers = {
              "0", "-1", "1", "4294967295", "99999999999999999999", "1e400", "2147483647"};
          tokens[at] = random.pick(numbers);
          break;
        }
      }
    }
    std::string text;
    for (const std::string& token : tokens) text += token;
    expect_sane(text);
  });
}

TEST(DagNames, AreThoseOfTheText) {
  Context context;
  DiagnosticSink sink(context.locations);
  const std::optional<dag::Dag> dag = dag::parse(legal("replicated"), context, sink);
  ASSERT_TRUE(dag);
  EXPECT_EQ(dag->name(dag::NodeId(0)), "load.x.mb0.line");
  EXPECT_EQ(dag->name(dag::NodeId(3)), "BI.net0.mb0");
  EXPECT_EQ(dag->name(dag::NodeId(7)), "all_reduce.net.loss.0.line");
  EXPECT_EQ(dag->name(dag::NodeId(12)), "accumulate.net.0");
  EXPECT_EQ(dag->name(dag::NodeId(13)), "all_reduce.net.0");
}

TEST(DagNodes, InputsAreSortedByPortAndMayComeFromThePool) {
  Context context;
  dag::Dag dag(context);
  const dag::Input inputs[] = {{{dag::NodeId(0), 0}, 1, dag::EdgeClass::data},
                               {{dag::NodeId(0), 1}, 0, dag::EdgeClass::data}};
  const dag::NodeId a = dag.add({}, {});
  const dag::NodeId b = dag.add({}, inputs);
  EXPECT_EQ(dag.inputs_of(dag.node(a)).size(), 0u);
  EXPECT_EQ(dag.inputs_of(dag.node(b))[0].source.index, 1u);
  for (int i = 0; i < 10; ++i) dag.set_inputs(a, dag.inputs_of(dag.node(b)));
  EXPECT_EQ(dag.inputs_of(dag.node(a))[1].port, 1u);
}

}  // namespace
}  // namespace piper::test
