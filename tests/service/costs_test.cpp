// Costs as a text of assignments and as a file of bodies: values, refusals and warnings.

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include "frontend/service/cost_text.h"
#include "passes/simulate/actions.h"
#include "passes/simulate/operations.h"
#include "tests/service/compiled.h"

namespace piper::service {
namespace {

using passes::OperationCosts;

TEST(Costs, AreReadOrRefused) {
  const LocationTable locations;
  const auto read = [&](std::string_view text, OperationCosts& costs) {
    DiagnosticSink sink(locations);
    const bool good = read_costs(text, costs, sink);
    EXPECT_EQ(good, !sink.has_errors()) << text;
    EXPECT_TRUE(good || sink.reported(Code::bad_cost)) << text;
    return good;
  };
  OperationCosts costs;
  EXPECT_TRUE(read("f=2,bi=0.5 bw=1e3,pair=3, p2p=0,w=0.25,keep=1,r=1", costs));
  EXPECT_EQ(std::tuple(costs.f, costs.bi, costs.bw, *costs.pair, costs.p2p, costs.w),
            std::tuple(2.0, 0.5, 1000.0, 3.0, 0.0, 0.25));
  EXPECT_FALSE(costs.b);
  EXPECT_EQ(costs.stages, passes::StageCosts::weighed);
  EXPECT_TRUE(read("stages=equal", costs));
  EXPECT_EQ(costs.stages, passes::StageCosts::equal);
  // Halves are those of the whole where only that is given.
  for (const auto& [text, bi, bw] : {std::tuple("b=3", 1.5, 1.5),
                                     {"b=3,bi=1", 1.0, 1.0},
                                     {"b=3,bw=0.5", 1.0, 0.5},
                                     {"bi=4,b=3,bw=0.5", 4.0, 0.5}}) {
    OperationCosts halves;
    EXPECT_TRUE(read(text, halves));
    EXPECT_EQ(std::tuple(*halves.b, halves.bi, halves.bw), std::tuple(3.0, bi, bw)) << text;
  }
  for (const char* text :
       {"",         ",",         "f",      "f=",       "f=1,",
        "f=nan",    "f=-1",      "f=inf",  "f=1e13",   "f=1x",
        "w=1.5",    "keep=-0.1", "g=1",    "=1",       "f=1,f=2",
        "f=1,,b=2", "F=1",       "stages", "stages=1", "stages=cost,stages=equal"}) {
    OperationCosts unread;
    EXPECT_FALSE(read(text, unread)) << text;
  }
}

TEST(Costs, NamesInAFileAreComparedAsTheyAreWritten) {
  source::MemoryFileSystem disk;
  const auto read = [&](const std::string& bodies, const std::string& name) {
    disk.add(name, "{\"schema\": 1, \"bodies\": {" + bodies + "}}");
    LocationTable locations;
    SourceTable files;
    DiagnosticSink sink(locations);
    const auto costs = read_cost_file(name, disk, files, sink);
    EXPECT_EQ(costs.has_value(), !sink.reported(Code::bad_costs_file)) << bodies;
    return costs ? static_cast<int>(costs->bodies.size()) : -1;
  };
  EXPECT_EQ(read(R"("a": 1, "b": 2)", "plain"), 2);
  EXPECT_EQ(read(R"("a": 1, "a": 2)", "twice"), -1);
  EXPECT_EQ(read(R"("a\"": 1, "b\"": 2, "c\"": 3, "d\"": 4)", "quoted"), 4);
  EXPECT_EQ(read(R"("a\\": 1, "b\\": 2, "\\": 3)", "backslash"), 3);
  EXPECT_EQ(read(R"("\"a\"": 1, "b": 2, "\"a\"": 3)", "quoted-twice"), -1);
}

/// The warning counts both ways: bodies without a time, and times of no body.
TEST(Costs, CostsOfAnotherProgramAreReported) {
  Compiled compiled("gpipe", "", sizes(2, 2), dag::Level::planned);
  MeasuredCosts all;
  for (const dag::Body& body : compiled.dag().bodies)
    all.bodies.emplace_back(std::string(compiled.dag().context->text(body.name)), 0.5);
  MeasuredCosts more = all, fewer = all;
  more.bodies.emplace_back("nothing.F", 1);
  fewer.bodies.pop_back();
  for (const auto& [measured, told] : {std::pair(&all, false), {&more, true}, {&fewer, true}}) {
    const LocationTable locations;
    DiagnosticSink sink(locations);
    const passes::ActionCosts costs = costs_of(compiled.dag(), *measured, sink);
    EXPECT_EQ(sink.reported(Code::costs_of_another_program), told);
    EXPECT_EQ(costs.body[0], 0.5);
  }
}

}  // namespace
}  // namespace piper::service
