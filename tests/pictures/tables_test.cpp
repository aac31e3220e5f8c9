// Tables of plans: memory and traffic add up to the plan's own totals.
#include <gtest/gtest.h>

#include "frontend/pictures/memory_view.h"
#include "frontend/pictures/traffic_view.h"
#include "frontend/service/compilation.h"
#include "frontend/views/schedule_page.h"
#include "llvm/Support/JSON.h"
#include "passes/plan/requirements.h"
#include "tests/pictures/xml.h"

namespace piper::test {
namespace {

/// The plans of inputs, given as in a command line.
void for_each_plan(const std::function<void(const std::string& what, const dag::Dag&)>& body) {
  struct Case {
    const char* input;
    std::vector<lower::Override> values;
  };
  const std::vector<Case> cases = {{"gpipe", {{"p", "3"}, {"m", "4"}}},
                                   {"zbv", {{"p", "4"}, {"m", "8"}}},
                                   {"dual_pipe", {{"p", "4"}, {"m", "8"}}},
                                   {"interleaved", {{"p", "2"}, {"v", "2"}, {"m", "4"}}},
                                   {"examples/gpt/gpt.pipe", {}},
                                   {"examples/two_towers/two_towers.pipe", {}},
                                   {"examples/memory/memory.pipe", {}}};
  const source::RealFileSystem files;
  for (const Case& each : cases) {
    service::Compilation compilation(files, each.values);
    DiagnosticSink sink(compilation.context().locations);
    ASSERT_TRUE(compilation.open(each.input, sink)) << each.input;
    for (service::Subject& subject : compilation.subjects("", sink)) {
      const auto dag = compilation.compile(subject, {}, sink);
      ASSERT_TRUE(dag) << each.input;
      body(std::string(each.input) + " " + subject.name, *dag);
    }
  }
}

/// Every line of an image ends inside it, with room for a label.
void expect_inside(const std::vector<XmlElement>& elements, const std::string& what) {
  double width = 0;
  for (const XmlElement& element : elements) {
    if (element.name == "svg") width = std::stod(element.attributes.at("width"));
    if (element.name == "line") {
      EXPECT_LE(std::stod(element.attributes.at("x2")), width - 80) << what;
    }
  }
  EXPECT_GT(width, 0) << what;
}

TEST(Memory, ClassesAddUpToThePlan) {
  for_each_plan([](const std::string& what, const dag::Dag& dag) {
    const auto rows = passes::memory_table(dag);
    ASSERT_EQ(rows.size(), dag.plan->roles.size()) << what;
    for (std::size_t r = 0; r < rows.size(); ++r) {
      EXPECT_EQ(rows[r].sum_of_peak(), dag.plan->roles[r].live_bytes)
          << what << " " << rows[r].role;
      EXPECT_LE(rows[r].sum_of_peak(), rows[r].arena) << what;
      EXPECT_GT(rows[r].sum_of_peak(), rows[r].sum_of_rest()) << what;
      EXPECT_TRUE(rows[r].at.valid()) << what;
    }
    std::string error;
    const auto elements = read_xml(pictures::memory_svg(rows, what), error);
    ASSERT_TRUE(elements) << error;
    expect_inside(*elements, what);
  });
}

/// Bars and the dashes of arenas, which may be larger than all that lives at once, end before the
/// image does.
TEST(Memory, ArenasLieInsideTheImage) {
  passes::MemoryRow row;
  row.role = "pp0";
  row.peak[0] = 100;
  for (const std::int64_t arena : {100, 150, 1000}) {
    row.arena = arena;
    std::string error;
    const auto elements = read_xml(pictures::memory_svg(std::span(&row, 1), "memory"), error);
    ASSERT_TRUE(elements) << error;
    expect_inside(*elements, std::to_string(arena));
  }
}

TEST(Traffic, CommunicatorsCountAllBytesSent) {
  for_each_plan([](const std::string& what, const dag::Dag& dag) {
    const auto rows = passes::traffic_table(dag);
    std::int64_t bytes = 0;
    std::uint64_t operations = 0;
    for (const passes::TrafficRow& row : rows) {
      // Copies to the host and back are listed, but are no traffic between devices.
      bytes += dag::copies_to_or_from_host(row.kind) ? 0 : row.bytes;
      operations += row.operations;
    }
    EXPECT_EQ(bytes, passes::traffic(dag)) << what;
    EXPECT_EQ(operations, dag.comms.size()) << what;
    EXPECT_GT(bytes, 0) << what;
    auto json = llvm::json::parse(pictures::traffic_json(rows, dag));
    ASSERT_TRUE(static_cast<bool>(json)) << what;
    EXPECT_EQ(json->getAsObject()->getInteger("bytes"), bytes) << what;
    std::string error;
    EXPECT_TRUE(read_xml(pictures::traffic_svg(rows, what), error)) << error;
  });
}

/// A page has the grid where its lines are no longer than those of a wide terminal, and else the
/// command that draws it.
TEST(SchedulePage, LeavesOutGridsThatAreTooWide) {
  for (const auto& [width, drawn] : {std::pair(8, true), {200, true}, {201, false}, {300, false}}) {
    views::SchedulePage page{"own", {{"p", "2"}}};
    page.grid = "rank 0\n" + std::string(static_cast<std::size_t>(width), 'x') + "\nrank 1\n";
    const std::string text = views::schedule_page_text(page, "piper show grid own");
    EXPECT_EQ(text.find("rank 1") != std::string::npos, drawn) << width;
    EXPECT_EQ(text.find("`piper show grid own` draws it.") == std::string::npos, drawn) << width;
  }
}

}  // namespace
}  // namespace piper::test
