// Messages about ranks that wait for each other: their positions, the grid up to there, and a
// change that is really legal.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <regex>
#include <sstream>

#include "tests/support/random_cases.h"
#include "tests/tools/transcript.h"

namespace piper::test {
namespace {

using testing::HasSubstr;

std::string schedule(const std::string& ranks) {
  return "schedule own(p: axis, m: int) {\n    partition model into stage: p\n    split batch into mb: m\n    for s in 0..p { place stage[s] on p[s] }\n    order {\n" +
         ranks + "    }\n}\n";
}

ToolResult check(const std::string& ranks, int p, int m) {
  return run_tool(
      {"check", "a.pipe", "own", "-D", "p=" + std::to_string(p), "-D", "m=" + std::to_string(m)},
      {{"a.pipe", schedule(ranks)}});
}

struct StoryCase {
  const char* rank;  // for all ranks, with a cursor `a`
  int p, m;
  const char* told;  // without the lines of the source
};
constexpr StoryCase kStories[] = {
    {"repeat left(F a) { B a; F a }", 1, 2,
     "error P3108: `B stage[0] mb[0]` waits for `F stage[0] mb[0]`, which the order of `p[0]` puts after it\n"
     "`F stage[0] mb[0]` comes only here\n"
     "the grid up to there; in brackets what each rank is at:\n"
     "  p[0]  [B0]\n"
     "hint: put `F a` before `B a`\n"},
    // Two entries of one line: one line each.
    {"repeat r { F a }\nrepeat left(F a) { F a; BI a }\nrepeat left(B a) { BI a }\nrepeat left(BW a) { BW a }",
     2, 3,
     "error P3108: `p[0]` and `p[1]` wait for each other\n"
     "`p[0]` is at `BI stage[0] mb[0]` and waits for `BI stage[1] mb[0]` of `p[1]`\n"
     "`p[1]` is at `F stage[1] mb[1]` and waits for `F stage[0] mb[1]` of `p[0]`\n"
     "the grid up to there; in brackets what each rank is at:\n"
     "  p[0]  F0    [BI0]\n"
     "  p[1]  .     F0    [F1]\n"
     "hint: no move of a single operation was found to be enough: give one of these ranks an order in which what the others wait for comes first\n"},
    // One rank that does otherwise is the one to change.
    {"F a\nif r == 2 { F a; B a } else { B a; F a }\nB a", 3, 2,
     "error P3108: `p[1]` and `p[2]` wait for each other\n"
     "`p[1]` is at `B stage[1] mb[0]` and waits for `B stage[2] mb[0]` of `p[2]`\n"
     "`p[2]` is at `F stage[2] mb[1]` and waits for `F stage[1] mb[1]` of `p[1]`\n"
     "the grid up to there; in brackets what each rank is at:\n"
     "  p[1]  .    F0   [B0]\n"
     "  p[2]  .    .    F0   [F1]\n"
     "hint: in the order of `p[2]`, move `B stage[2] mb[0]` before `F stage[2] mb[1]`\n"},
};

/// The message and its notes, without locations and lines of the source.
std::string without_source(const std::string& err) {
  std::string told;
  std::istringstream stream(err);
  for (std::string line; std::getline(stream, line);) {
    if (line.find(" | ") != std::string::npos) continue;
    line = std::regex_replace(line, std::regex("^( *)a\\.pipe:\\d+:\\d+: "), "$1");
    told += (line.starts_with("  ") ? line.substr(2) : line) + "\n";
  }
  return told;
}

TEST(OrderCycle, TellsWhereRanksStand) {
  for (const StoryCase& each : kStories) {
    const ToolResult run =
        check("        rank r in p {\n            cursor a = stage[r] mb[0..m]\n" +
                  std::string(each.rank) + "\n        }\n",
              each.p, each.m);
    EXPECT_EQ(run.exit_code, 1);
    EXPECT_EQ(without_source(run.err), each.told) << each.rank;
  }
}

// A page, not one line per operation.
TEST(OrderCycle, LongOrdersHaveShortReports) {
  const ToolResult run = check(
      "        rank r in p {\n            cursor a = stage[r] mb[0..m]\n            repeat r { F a }\n            repeat left(F a) { F a; B a }\n            repeat left(B a) { B a }\n        }\n",
      64, 256);
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_THAT(run.err, HasSubstr("error P3108: "));
  EXPECT_LT(std::count(run.err.begin(), run.err.end(), '\n'), 40);
  std::istringstream stream(run.err);
  for (std::string line; std::getline(stream, line);) EXPECT_LT(line.size(), 160u) << line;
}

using Orders = std::vector<std::vector<std::string>>;

std::string ranks_text(const Orders& orders) {
  std::string text;
  for (std::size_t r = 0; r < orders.size(); ++r) {
    text += "        rank r in p[" + std::to_string(r) + ".." + std::to_string(r + 1) + "] {\n";
    for (const std::string& op : orders[r]) text += "            " + op + "\n";
    text += "        }\n";
  }
  return text;
}

/// 1F1B, each operation on a separate line.
Orders written_out(int p, int m) {
  Orders orders(static_cast<std::size_t>(p));
  for (int r = 0; r < p; ++r) {
    const auto add = [&](const char* pass, int mb) {
      orders[static_cast<std::size_t>(r)].push_back(
          std::string(pass) + " stage[" + std::to_string(r) + "] mb[" + std::to_string(mb) + "]");
    };
    int forward = 0, backward = 0;
    while (forward < std::min(p - 1 - r, m)) add("F", forward++);
    while (backward < m) {
      if (forward < m) add("F", forward++);
      add("B", backward++);
    }
  }
  return orders;
}

// One operation of a legal order is moved at random; after the move in the hint, the order is
// legal.
TEST(OrderCycle, ProposesWhatIsLegal) {
  const std::regex proposal(
      "hint: in the order of `p\\[(\\d+)\\]`, move `([^`]*)` (before|behind) `([^`]*)`\n");
  int proposed = 0;
  for_each_case(60, [&](Random& random) {
    const int p = static_cast<int>(random.between(2, 4)),
              m = static_cast<int>(random.between(2, 5));
    Orders orders = written_out(p, m);
    std::vector<std::string>& changed = orders[random.below(orders.size())];
    const std::size_t from = random.below(changed.size()), to = random.below(changed.size());
    const std::string op = changed[from];
    changed.erase(changed.begin() + static_cast<std::ptrdiff_t>(from));
    changed.insert(changed.begin() + static_cast<std::ptrdiff_t>(to), op);
    const ToolResult run = check(ranks_text(orders), p, m);
    if (run.exit_code == 0) return;
    EXPECT_THAT(run.err, HasSubstr("error P3108: "));
    // The operation can be moved back: a single legal move exists.
    std::smatch found;
    ASSERT_TRUE(std::regex_search(run.err, found, proposal)) << run.err;
    std::vector<std::string>& order = orders[std::stoul(found[1])];
    const auto at = std::find(order.begin(), order.end(), found[2].str());
    ASSERT_NE(at, order.end()) << run.err;
    order.erase(at);
    const auto place = std::find(order.begin(), order.end(), found[4].str());
    ASSERT_NE(place, order.end()) << run.err;
    order.insert(found[3] == "before" ? place : place + 1, found[2].str());
    EXPECT_EQ(check(ranks_text(orders), p, m).exit_code, 0) << run.err << ranks_text(orders);
    ++proposed;
  });
  EXPECT_GT(proposed, 0);
}

}  // namespace
}  // namespace piper::test
