// Communication that an order names: its legal positions, and the messages if it stands before the
// work that makes its values, after the work that reads them, or elsewhere on replicas.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "tests/tools/transcript.h"

namespace piper::test {
namespace {

using testing::HasSubstr;

constexpr const char* kModel = R"(model net(layers: int) {
    input x: tensor[batch, dim: 4]
    var h = x
    for l in 0..layers { h = layer(h) }
    loss square(h)
}
model layer(x: tensor[batch, dim]) -> tensor[batch, dim] {
    weight w[dim, out: dim]
    return x + rename(x @ w, out: dim)
}
mesh grid(pp: 2, dp: 2)
)";

using Steps = std::vector<std::string>;
Steps whole(int rank) {
  const std::string s = " stage[" + std::to_string(rank) + "] ";
  return rank == 0
             ? Steps{"F" + s + "mb[0]", "F" + s + "mb[1]", "B" + s + "mb[0]", "B" + s + "mb[1]"}
             : Steps{"F" + s + "mb[0]", "B" + s + "mb[0]", "F" + s + "mb[1]", "B" + s + "mb[1]"};
}
Steps halves(int rank) {
  Steps steps;
  for (const std::string& step : whole(rank)) {
    if (step[0] == 'F') {
      steps.push_back(step);
    } else {
      steps.push_back("BI" + step.substr(1));
      steps.push_back("BW" + step.substr(1));
    }
  }
  return steps;
}

/// A class of communication, and before which step of its rank it stands.
struct Class {
  const char* operation;
  int rank;
  Steps (*steps)(int rank);
  const char* zero;  // of the replicas
  int legal;
  int also_legal;          // another such place
  std::vector<int> early;  // before work that makes its values
  std::vector<int> late;   // behind work that needs it
  const char* late_code = "P3108";
};
const Class kClasses[] = {
    {"F stage[0].send mb[0]", 0, whole, "0", 1, 2, {0}, {3, 4}},
    {"B stage[1].send mb[0]", 1, whole, "0", 2, 3, {0, 1}, {}},
    {"F stage[1].recv mb[0]", 1, whole, "0", 0, -1, {}, {1, 2}},
    {"F stage[1].recv mb[1]", 1, whole, "0", 1, 2, {}, {3, 4}},
    {"B stage[0].recv mb[0]", 0, whole, "0", 1, 2, {}, {3, 4}},
    {"B stage[0].reduce", 0, whole, "0", 4, -1, {0, 1, 2, 3}, {}},
    {"B stage[1].reduce", 1, whole, "1", 4, -1, {0, 2, 3}, {}},
    {"B stage[1].reduce", 1, whole, "2", 4, -1, {0, 2, 3}, {}},
    {"B stage[0].reduce", 0, whole, "3", 4, -1, {0, 3}, {}},
    {"BW stage[0].reduce", 0, halves, "0", 6, -1, {0, 5}, {}},
    {"BI stage[1].send mb[0]", 1, halves, "0", 2, 3, {0, 1}, {}},
    {"F stage[0].gather mb[0..2]", 0, whole, "3", 0, -1, {}, {2, 3}, "P3112"},
    {"B stage[1].gather mb[0]", 1, whole, "3", 1, -1, {}, {2, 3}, "P3112"},
};

/// The position of the operation in the orders of the two replicas of its rank, or in their common
/// one: before that step; none: nowhere.
ToolResult check(const Class& one, std::optional<int> first, std::optional<int> second,
                 bool together = false) {
  std::string ranks;
  for (int rank = 0; rank < 2; ++rank) {
    for (int replica = 0; replica < (together ? 1 : 2); ++replica) {
      const std::string finer =
          ", d in dp[" + std::to_string(replica) + ".." + std::to_string(replica + 1) + "]";
      ranks += "        rank r in pp[" + std::to_string(rank) + ".." + std::to_string(rank + 1) +
               "]" + (together ? "" : finer) + " {\n";
      const Steps steps = one.steps(rank);
      const int at = rank == one.rank ? (replica == 0 ? first : second).value_or(-1) : -1;
      for (int i = 0; i <= static_cast<int>(steps.size()); ++i) {
        if (at == i) ranks += std::string("            ") + one.operation + "\n";
        if (i < static_cast<int>(steps.size()))
          ranks += "            " + steps[static_cast<std::size_t>(i)] + "\n";
      }
      ranks += "        }\n";
    }
  }
  const std::string text =
      std::string(kModel) +
      "train t = net(layers: 2) on grid {\n    data: synthetic(batch: 8)\n    optim: sgd(lr: 0.1)\n    steps: 1\n    partition model into stage: pp\n" +
      "    for s in 0..pp { place stage[s] on pp[s] }\n    split batch into mb: 2\n    replicate model over dp with zero: " +
      one.zero + "\n    order {\n" + ranks + "    }\n}\n";
  return run_tool({"check", "a.pipe"}, {{"a.pipe", text}});
}

std::string where(const Class& one, int at) {
  return std::string(one.operation) + " at " + std::to_string(at) + " with zero: " + one.zero;
}

void expect_refused(const Class& one, int at, const char* code) {
  const ToolResult run = check(one, at, at);
  EXPECT_EQ(run.exit_code, 1) << where(one, at);
  EXPECT_THAT(run.err, HasSubstr(std::string("error ") + code + ": ")) << where(one, at);
}

TEST(NamedCommunication, StandsBehindWhatItCarriesAndBeforeWhoReadsIt) {
  for (const Class& one : kClasses) {
    const ToolResult legal = check(one, one.legal, one.legal);
    EXPECT_EQ(legal.exit_code, 0) << where(one, one.legal) << "\n" << legal.err;
    for (const int at : one.early) expect_refused(one, at, "P3108");
    for (const int at : one.late) expect_refused(one, at, one.late_code);
  }
}

TEST(NamedCommunication, StandsAtOnePlaceInTheOrdersOfReplicas) {
  for (const Class& one : kClasses) {
    for (const bool in_first : {true, false}) {
      const ToolResult run = check(one, in_first ? std::optional(one.legal) : std::nullopt,
                                   in_first ? std::nullopt : std::optional(one.legal));
      EXPECT_EQ(run.exit_code, 1) << where(one, one.legal);
      EXPECT_THAT(run.err, HasSubstr("error P3108: ")) << where(one, one.legal);
      EXPECT_THAT(run.err, HasSubstr("this order does not name it")) << where(one, one.legal);
    }
    if (one.also_legal < 0) continue;
    const ToolResult moved = check(one, one.also_legal, one.also_legal);
    EXPECT_EQ(moved.exit_code, 0) << where(one, one.also_legal) << "\n" << moved.err;
    const ToolResult apart = check(one, one.legal, one.also_legal);
    EXPECT_EQ(apart.exit_code, 1) << where(one, one.also_legal);
    EXPECT_THAT(apart.err, HasSubstr("error P3108: ")) << where(one, one.also_legal);
    EXPECT_THAT(apart.err, HasSubstr("here it stands elsewhere")) << where(one, one.also_legal);
  }
}

// The grid shows the fault, and the hint can be followed.
TEST(NamedCommunication, IsToldLikeWork) {
  const ToolResult send = check(kClasses[0], 0, 0, true);
  EXPECT_THAT(
      send.err,
      HasSubstr(
          "`F stage[0].send mb[0]` waits for `F stage[0] mb[0]`, which the order of `pp[0]` puts after it"));
  EXPECT_THAT(send.err, HasSubstr("    pp[0]  [F0.send]\n"));
  EXPECT_THAT(
      send.err,
      HasSubstr(
          "hint: in the order of `pp[0]`, move `F stage[0].send mb[0]` behind `F stage[0] mb[0]`"));
  const ToolResult reduction = check(kClasses[5], 3, 3, true);
  EXPECT_THAT(
      reduction.err,
      HasSubstr(
          "`B stage[0].reduce` waits for `B stage[0] mb[1]`, which the order of `pp[0]` puts after it"));
  EXPECT_THAT(reduction.err, HasSubstr("[B.reduce]\n"));
  EXPECT_THAT(reduction.err, HasSubstr("move `B stage[0].reduce` behind `B stage[0] mb[1]`"));
}

// Members of a group have no order among them: an operation named by one does not stand before the
// work of another.
TEST(NamedCommunication, BesideWorkInAGroupWaitsForWhatStandsBeforeTheGroup) {
  const auto order = [](const std::string& steps) {
    return run_tool(
        {"check", "a.pipe"},
        {{"a.pipe",
          std::string(kModel) +
              "train t = net(layers: 2) on grid {\n    data: synthetic(batch: 8)\n    optim: sgd(lr: 0.1)\n    steps: 1\n    partition model into stage: pp\n" +
              "    for s in 0..pp { place stage[s] on pp[s] }\n    split batch into mb: 2\n    replicate model over dp\n    order { rank r in pp { " +
              steps + " B stage[r] } }\n}\n"}});
  };
  EXPECT_EQ(
      order(
          "if r == 0 { { F stage[0].send mb[1] } & { F stage[0] mb[1] } & { F stage[0] mb[0] } } else { F stage[1] }\n")
          .exit_code,
      0);
  EXPECT_EQ(
      order(
          "if r == 0 { { F stage[0].send mb[1]; F stage[0] mb[1] } & { F stage[0] mb[0] } } else { F stage[1] }\n")
          .exit_code,
      1);
}

// A route carries its messages in one order for both of its ends.
TEST(NamedCommunication, FollowsEachOtherOnARoute) {
  struct Row {
    std::string sender, receiver;
    int exit_code;
  };
  const std::string sends_0 = "F stage[0].send mb[0]; ", sends_1 = "F stage[0].send mb[1]; ",
                    receives_0 = "F stage[1].recv mb[0]; ", receives_1 = "F stage[1].recv mb[1]; ";
  const std::string work_0 = "F stage[1] mb[0]; ", work_1 = "F stage[1] mb[1]; ";
  const Row rows[] = {
      {sends_0 + sends_1, receives_0 + work_0 + receives_1 + work_1, 0},
      {sends_1 + sends_0, receives_1 + work_1 + receives_0 + work_0, 0},
      {sends_0 + sends_1, receives_1 + work_1 + receives_0 + work_0, 1},
      {sends_1 + sends_0, work_1 + work_0, 0},
      {sends_1 + sends_0, receives_0 + work_0 + receives_1 + work_1, 1},
      {"{ " + sends_1 + "} & { " + sends_0 + "}; ", receives_0 + receives_1 + work_0 + work_1, 0},
  };
  for (const Row& row : rows) {
    const std::string order = "if r == 0 { F stage[0]; " + row.sender + "B stage[0] } else { " +
                              row.receiver + "B stage[1] }";
    const std::string text =
        std::string(kModel) +
        "train t = net(layers: 2) on grid {\n    data: synthetic(batch: 8)\n    optim: sgd(lr: 0.1)\n    steps: 1\n    partition model into stage: pp\n" +
        "    for s in 0..pp { place stage[s] on pp[s] }\n    split batch into mb: 2\n    replicate model over dp\n    order { rank r in pp { " +
        order + " } }\n}\n";
    const ToolResult run = run_tool({"show", "program", "a.pipe"}, {{"a.pipe", text}});
    EXPECT_EQ(run.exit_code, row.exit_code) << order << "\n" << run.err;
    if (row.exit_code != 0) {
      EXPECT_THAT(run.err, HasSubstr("error P3108: ")) << order;
      continue;
    }
    // Programs of both ends list the messages as they are written.
    const bool first_is_1 = row.sender.find(sends_1 + sends_0) == 0;
    for (const char* kind : {"send", "recv"}) {
      const std::size_t first = run.out.find(std::string(kind) + ".F."),
                        end = run.out.find('\n', first);
      ASSERT_NE(first, std::string::npos) << run.out;
      if (row.sender.find('&') != std::string::npos) continue;
      EXPECT_EQ(run.out.substr(first, end - first).find("mb1") != std::string::npos, first_is_1)
          << kind << " of " << order << "\n"
          << run.out;
    }
  }
}

}  // namespace
}  // namespace piper::test
