#include "frontend/views/folded_text.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/temporary_folder.h"
#include "tests/support/text_edit.h"
#include "tests/tools/transcript.h"

namespace piper::test {
namespace {

const char* const kDeep = R"(
use std.models.gpt
mesh one(p: 1)
train deep = gpt(layers: 12, heads: 2, vocab: 16, dim: 8) on one {
    data:  synthetic(batch: 2, seq: 4, classes: 16)
    optim: sgd(lr: 0.1)
    steps: 1
    place model on p
}
)";

std::size_t count(const std::string& text, std::string_view wanted) {
  std::size_t found = 0;
  for (std::size_t at = text.find(wanted); at != std::string::npos; at = text.find(wanted, at + 1))
    ++found;
  return found;
}

TEST(FoldedText, BlocksThatDifferInNamesStandOnce) {
  EXPECT_EQ(views::folded(R"(tensor net {
  %x = input f32[dim: 8] "x"
  %layer.0.w = weight f32[dim: 8] "layer.0.w" ones
  %layer.0.mul = mul(%x, %layer.0.w) : f32[dim: 8] @F region layer[0]
  %layer.0.gelu = gelu(%layer.0.mul) : f32[dim: 8] @F region layer[0]
  %layer.1.w = weight f32[dim: 8] "layer.1.w" ones
  %layer.1.mul = mul(%layer.0.gelu, %layer.1.w) : f32[dim: 8] @F region layer[1]
  %layer.1.gelu = gelu(%layer.1.mul) : f32[dim: 8] @F region layer[1]
  %layer.2.w = weight f32[dim: 8] "layer.2.w" ones
  %layer.2.mul = mul(%layer.1.gelu, %layer.2.w) : f32[dim: 8] @F region layer[2]
  %layer.2.gelu = gelu(%layer.2.mul) : f32[dim: 8] @F region layer[2]
}
)"),
            R"(tensor net {
  %x = input f32[dim: 8] "x"
  %layer.0.w = weight f32[dim: 8] "layer.0.w" ones
  %layer.0.mul = mul(%x, %layer.0.w) : f32[dim: 8] @F region layer[0]
  %layer.0.gelu = gelu(%layer.0.mul) : f32[dim: 8] @F region layer[0]
  ... the 3 lines from `%layer.0.w` on stand 2 times more, the last time from `%layer.2.w` on, where `%x` is `%layer.1.gelu`
}
)");
}

TEST(FoldedText, DifferencesStay) {
  const std::string shapes =
      "  %a.0 = weight f32[dim: 1] ones\n  %a.1 = weight f32[dim: 2] ones\n  %a.2 = weight f32[dim: 3] ones\n  %a.3 = weight f32[dim: 4] ones\n";
  EXPECT_EQ(views::folded(shapes), shapes);
  const std::string attributes =
      "  %a = scale(%x) {scalar: 1} : f32[]\n  %b = scale(%x) {scalar: 2} : f32[]\n  %c = scale(%x) {scalar: 3} : f32[]\n  %d = scale(%x) {scalar: 4} : f32[]\n";
  EXPECT_EQ(views::folded(attributes), attributes);
  const std::string sizes =
      "  buffer %a:0 = state at 0 bytes 4\n  buffer %a:1 = state at 4 bytes 8\n  buffer %a:2 = state at 12 bytes 12\n  buffer %a:3 = state at 24 bytes 16\n";
  EXPECT_EQ(views::folded(sizes), sizes);
  // The second reads the value before, the first the one before that.
  const std::string flow =
      "  %a = f()\n  %b = g(%a)\n  %c = h(%a, %b)\n  %d = f()\n  %e = g(%d)\n  %f = h(%e, %d)\n";
  EXPECT_EQ(views::folded(flow), flow);
}

TEST(FoldedText, RunsKeepToTheirBraces) {
  const std::string text = "rank a {\n  F[0]\n}\nrank b {\n  F[0]\n}\nrank c {\n  F[0]\n}\n";
  EXPECT_EQ(
      views::folded(
          "rank p[0] {\n  F s[0]\n  B s[0]\n}\nrank p[1] {\n  F s[1]\n  B s[1]\n}\nend\n"),
      "rank p[0] {\n  F s[0]\n  B s[0]\n}\n... the 4 lines from `rank p[0] {` on stand once more, from `rank p[1] {` on, where `s[0]` is `s[1]`\nend\n");
  EXPECT_EQ(views::folded(text), text);
  EXPECT_EQ(views::folded(""), "");
  EXPECT_EQ(views::folded("  F m[0]\n  F m[1]\n  F m[2]\n  F m[3]\n"),
            "  F m[0]\n  ... 3 more like it, the last `F m[3]`\n");
}

std::string layers(const std::vector<std::string>& lines, std::size_t count) {
  std::string text;
  for (std::size_t i = 0; i < count * lines.size(); ++i) {
    std::string line = lines[i % lines.size()] + "\n";
    const std::size_t layer = i / lines.size();
    for (const auto& [mark, number] :
         {std::pair('L', layer + 1), std::pair('K', layer), std::pair('M', 9 - layer)}) {
      for (std::size_t at = line.find(mark); at != std::string::npos; at = line.find(mark))
        line.replace(at, 1, std::to_string(number));
    }
    text += line;
  }
  return text;
}

TEST(FoldedText, SaysWhatDoesNotFollowFromTheNames) {
  const auto tail = [](const std::string& text) { return text.substr(text.rfind("...")); };
  const std::string before = "  %x = input f32[]\n  %a.0.y = input f32[]\n";
  const auto folded = [&](const std::vector<std::string>& lines) {
    return tail(views::folded(before + layers(lines, 4)));
  };
  const std::string run =
      "... the 2 lines from `%a.1.w` on stand 3 times more, the last time from `%a.4.w` on";
  EXPECT_EQ(folded({"  %a.L.w = weight f32[]", "  %a.L.y = mul(%a.K.y, %a.L.w) : f32[]"}),
            run + "\n");
  EXPECT_EQ(folded({"  %a.L.w = weight f32[]", "  %a.L.y = mul(%a.0.y, %a.L.w) : f32[]"}),
            run + ", where `%a.0.y` stays\n");
  EXPECT_EQ(folded({"  %a.L.w = weight f32[]", "  %a.L.y = mul(%x, %a.L.w) : f32[]"}), run + "\n");
  EXPECT_EQ(
      folded({"  %a.L.w = weight f32[]", "  %a.L.y = mul(%x, %a.L.w) : f32[] @F region s[K]"}),
      run + ", where `s[0]` is `s[3]`\n");
  EXPECT_EQ(
      folded({"  %a.L.w = weight f32[]", "  %a.L.y = mul(%x, %a.L.w) : f32[] @F region s[M].a[L]"}),
      run + ", where `s[9]` is `s[6]`\n");
  EXPECT_EQ(
      folded({"  %a.L.w = weight f32[]", "  %a.L.y = mul(%x, %a.L.w) : f32[] @F region a[7].a[L]"}),
      run + ", where `a[7]` stays\n");
}

TEST(FoldedText, RunsEndWhereAStageDoes) {
  std::string text;
  for (int i = 0; i < 9; ++i)
    text += "  F s[" + std::to_string(i / 4) + "].a[" + std::to_string(i) + "]\n";
  EXPECT_EQ(
      views::folded(text),
      "  F s[0].a[0]\n  ... 3 more like it, the last `F s[0].a[3]`\n  ... the 4 lines from `F s[0].a[0]` on stand once more, from `F s[1].a[4]` on\n  F s[2].a[8]\n");
}

TEST(FoldedText, ListsOfLongLinesAreShort) {
  std::string line = "  F.s0 = F s0 @s0.F (load.x, param all_gather.s0.0";
  for (std::size_t i = 1; i < 60; ++i) line += ", param all_gather.s0.0:" + std::to_string(i);
  EXPECT_EQ(
      views::folded(line + ") on m[p: 0]\n"),
      "  F.s0 = F s0 @s0.F (load.x, param all_gather.s0.0, param all_gather.s0.0:1, ... 58 more like it, the last `param all_gather.s0.0:59`) on m[p: 0]\n");
  std::string words = "  bucket (", lines = "  bucket (\n";
  for (const char* c = "abcdefghijklmnopqrstuvwxyz"; *c != 0; ++c) {
    const std::string item(30, *c);
    words += (words.back() == '(' ? "" : ", ") + item;
    lines += "      " + item + "\n";
  }
  EXPECT_EQ(views::folded(words + ") end\n"), lines + "  ) end\n");
}

const char* const kWays = R"(
param way = 0
model net() {
    input x: tensor[batch, dim: 8], y: tensor[batch, dim]
    var h = x
    var old = x
    for l in 0..8 {
        let before = h
        h = layer(h, if way == 1 and l == 6 then 0.3 else 0.1, if way == 2 and l == 4 then 0.0 else 1.0, if way == 3 then old else x, if way == 4 and l == 5 then 24 else 16)
        if way == 5 { h = h + old }
        if way == 6 and l == 4 { h = h + x }
        if way == 7 and l == 4 { h = relu(h) }
        if way != 8 or l != 3 { old = before }
    }
    loss mean_squared(h, y)
}
model layer(x: tensor[batch, dim], p: float, gains: float, old: tensor[batch, dim], width: int) -> tensor[batch, dim] {
    weight up[dim, hidden: width], down[hidden, dim] = normal(p)
    weight gain[dim] = constant(gains)
    return old + gelu((rms_norm(x) * gain) @ up) @ down
}
mesh m(p: 2)
train t = net() on m {
    data: synthetic(batch: 8)
    optim: sgd(lr: 0.1)
    steps: 2
    partition model into stage: 2 with sizes: if way == 9 then [3, 5] else [4, 4]
    for s in 0..p { place stage[s] on p[s] }
    if way == 10 { freeze layer[3] }
    if way == 11 { recompute layer[2..4] }
}
)";

TEST(ShowForReaders, ProgramsThatDifferHaveTextsThatDiffer) {
  for (const char* kind : {"graph", "dag"}) {
    std::map<std::string, std::string> seen;  // the way, and the whole text, by the folded text
    for (int way = 0; way < 12; ++way) {
      const auto show = [&](const char* format) {
        std::vector<std::string> words = {
            "show", kind, "ways.pipe", "-D", "way=" + std::to_string(way), "--format", format};
        if (kind == std::string_view("dag")) words.emplace_back("--bodies");
        return run_tool(words, {{"ways.pipe", kWays}});
      };
      const ToolResult text = show("text");
      ASSERT_EQ(text.exit_code, 0) << way << text.err;
      const std::string whole = without_locations(show("pir").out);
      const auto [found, is_new] = seen.try_emplace(text.out, whole);
      EXPECT_TRUE(is_new || found->second == whole) << kind << " of way " << way << ":\n"
                                                    << text.out;
    }
    EXPECT_GE(seen.size(), 9u) << kind;
  }
}

TEST(ShowForReaders, TwelveLayersAreTwoScreens) {
  const ToolResult graph = run_tool({"show", "graph", "deep.pipe"}, {{"deep.pipe", kDeep}});
  ASSERT_EQ(graph.exit_code, 0) << graph.err;
  EXPECT_LE(count(graph.out, "\n"), 120u);
  EXPECT_EQ(count(graph.out, " loc("), 0u);
  const ToolResult whole =
      run_tool({"show", "graph", "deep.pipe", "--format", "pir"}, {{"deep.pipe", kDeep}});
  EXPECT_GE(count(whole.out, "\n"), 600u);
  EXPECT_GE(count(whole.out, " #"), 500u);
  const ToolResult located =
      run_tool({"show", "graph", "deep.pipe", "--locations"}, {{"deep.pipe", kDeep}});
  EXPECT_EQ(count(located.out, "\n"), count(graph.out, "\n"));
  EXPECT_GE(count(located.out, " loc("), 80u);
}

TEST(ShowForReaders, APipelineOfTwelveLayersIsTwoScreens) {
  const std::map<std::string, std::string> files = {{"piped.pipe", R"(
use std.models.gpt
use std.schedules.one_f_one_b
mesh line(p: 4)
train piped = gpt(layers: 12, heads: 4, vocab: 256, dim: 64) on line {
    data:  synthetic(batch: 32, seq: 64, classes: 256)
    optim: adamw(lr: 0.001)
    steps: 1
    one_f_one_b(p, 8)
}
)"}};
  for (const char* kind : {"graph", "dag"}) {
    const ToolResult text = run_tool({"show", kind, "piped.pipe", "--format", "text"}, files);
    ASSERT_EQ(text.exit_code, 0) << text.err;
    EXPECT_LE(count(text.out, "\n"), 120u) << text.out;
    EXPECT_EQ(count(text.out, " loc("), 0u);
    if (kind == std::string_view("graph")) continue;
    for (std::size_t at = 0; at < text.out.size(); at = text.out.find('\n', at) + 1)
      EXPECT_LE(text.out.find('\n', at) - at, 160u) << text.out.substr(at, 160);
  }
  EXPECT_GT(
      count(run_tool({"show", "dag", "piped.pipe", "--format", "text", "--bodies"}, files).out,
            " = contract("),
      20u);
}

// On a terminal a DAG is printed for a reader; a file or a pipe gets the text that `check` reads.
TEST(ShowForReaders, DagsAreWholeOffTheTerminal) {
  const std::map<std::string, std::string> files = {{"deep.pipe", kDeep}};
  const ToolResult piped = run_tool({"show", "dag", "deep.pipe"}, files);
  ASSERT_EQ(piped.exit_code, 0) << piped.err;
  EXPECT_EQ(run_tool({"check", "x.pir"}, {{"x.pir", piped.out}}).exit_code, 0);
  const ToolResult seen = run_tool({"show", "dag", "deep.pipe"}, files, {}, 100);
  EXPECT_LT(count(seen.out, "\n") * 2, count(piped.out, "\n"));
  EXPECT_EQ(count(seen.out, " loc("), 0u);
  EXPECT_EQ(run_tool({"show", "dag", "deep.pipe", "--format", "text"}, files).out, seen.out);
  EXPECT_EQ(run_tool({"show", "dag", "deep.pipe", "--format", "pir"}, files, {}, 100).out,
            piped.out);
  const TemporaryFolder folder;
  const std::string path = (folder.path() / "x.pir").string();
  EXPECT_EQ(run_tool({"show", "dag", "deep.pipe", "-o", path}, files, {}, 100).exit_code, 0);
  EXPECT_EQ(run_tool({"show", "dag", path}).out, piped.out);
  EXPECT_GT(
      count(run_tool({"show", "dag", "deep.pipe", "--locations"}, files, {}, 100).out, " loc("),
      20u);
}

TEST(ShowForReaders, LocationsAreOfTwoKinds) {
  const ToolResult grid =
      run_tool({"show", "grid", "deep.pipe", "--locations"}, {{"deep.pipe", kDeep}});
  EXPECT_EQ(grid.exit_code, 2);
  EXPECT_EQ(grid.err,
            "piper: `--locations` is of `show graph` and `show dag`: `show grid` has none\n");
}

}  // namespace
}  // namespace piper::test
