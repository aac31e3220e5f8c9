#include "frontend/views/folded_text.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "tests/support/temporary_folder.h"
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
  for (std::size_t at = text.find(wanted); at != std::string::npos; at = text.find(wanted, at + 1)) ++found;
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
  ... the 3 lines from `%layer.0.w` on stand 2 times more, the last time from `%layer.2.w` on
}
)");
}

TEST(FoldedText, WhatDiffersStays) {
  const std::string shapes = "  %a.0 = weight f32[dim: 1] ones\n  %a.1 = weight f32[dim: 2] ones\n  %a.2 = weight f32[dim: 3] ones\n  %a.3 = weight f32[dim: 4] ones\n";
  EXPECT_EQ(views::folded(shapes), shapes);
  const std::string attributes = "  %a = scale(%x) {scalar: 1} : f32[]\n  %b = scale(%x) {scalar: 2} : f32[]\n  %c = scale(%x) {scalar: 3} : f32[]\n  %d = scale(%x) {scalar: 4} : f32[]\n";
  EXPECT_EQ(views::folded(attributes), attributes);
  const std::string sizes = "  buffer %a:0 = state at 0 bytes 4\n  buffer %a:1 = state at 4 bytes 8\n  buffer %a:2 = state at 12 bytes 12\n  buffer %a:3 = state at 24 bytes 16\n";
  EXPECT_EQ(views::folded(sizes), sizes);
  // The second reads the value before, the first the one before that.
  const std::string flow = "  %a = f()\n  %b = g(%a)\n  %c = h(%a, %b)\n  %d = f()\n  %e = g(%d)\n  %f = h(%e, %d)\n";
  EXPECT_EQ(views::folded(flow), flow);
}

TEST(FoldedText, RunsKeepToTheirBraces) {
  const std::string text = "rank a {\n  F[0]\n}\nrank b {\n  F[0]\n}\nrank c {\n  F[0]\n}\n";
  EXPECT_EQ(views::folded("rank p[0] {\n  F s[0]\n  B s[0]\n}\nrank p[1] {\n  F s[1]\n  B s[1]\n}\nend\n"),
            "rank p[0] {\n  F s[0]\n  B s[0]\n}\n... the 4 lines from `rank p[0] {` on stand once more, from `rank p[1] {` on\nend\n");
  EXPECT_EQ(views::folded(text), text);
  EXPECT_EQ(views::folded(""), "");
  EXPECT_EQ(views::folded("  F m[0]\n  F m[1]\n  F m[2]\n  F m[3]\n"), "  F m[0]\n  ... 3 more like it, the last `F m[3]`\n");
}

TEST(ShowForReaders, TwelveLayersAreTwoScreens) {
  const ToolResult graph = run_tool({"show", "graph", "deep.pipe"}, {{"deep.pipe", kDeep}});
  ASSERT_EQ(graph.exit_code, 0) << graph.err;
  EXPECT_LE(count(graph.out, "\n"), 120u);
  EXPECT_EQ(count(graph.out, " loc("), 0u);
  const ToolResult whole = run_tool({"show", "graph", "deep.pipe", "--format", "pir"}, {{"deep.pipe", kDeep}});
  EXPECT_GE(count(whole.out, "\n"), 600u);
  EXPECT_GE(count(whole.out, " loc("), 500u);
  const ToolResult located = run_tool({"show", "graph", "deep.pipe", "--locations"}, {{"deep.pipe", kDeep}});
  EXPECT_EQ(count(located.out, "\n"), count(graph.out, "\n"));
  EXPECT_GE(count(located.out, " loc("), 80u);
}

// On a terminal a DAG is for a reader; what a file or a pipe gets is what `check` reads.
TEST(ShowForReaders, DagsAreWholeOffTheTerminal) {
  const std::map<std::string, std::string> files = {{"deep.pipe", kDeep}};
  const ToolResult piped = run_tool({"show", "dag", "deep.pipe"}, files);
  ASSERT_EQ(piped.exit_code, 0) << piped.err;
  EXPECT_EQ(run_tool({"check", "x.pir"}, {{"x.pir", piped.out}}).exit_code, 0);
  const ToolResult seen = run_tool({"show", "dag", "deep.pipe"}, files, {}, 100);
  EXPECT_LT(count(seen.out, "\n") * 2, count(piped.out, "\n"));
  EXPECT_EQ(count(seen.out, " loc("), 0u);
  EXPECT_EQ(run_tool({"show", "dag", "deep.pipe", "--format", "text"}, files).out, seen.out);
  EXPECT_EQ(run_tool({"show", "dag", "deep.pipe", "--format", "pir"}, files, {}, 100).out, piped.out);
  const TemporaryFolder folder;
  const std::string path = (folder.path() / "x.pir").string();
  EXPECT_EQ(run_tool({"show", "dag", "deep.pipe", "-o", path}, files, {}, 100).exit_code, 0);
  EXPECT_EQ(run_tool({"show", "dag", path}).out, piped.out);
  EXPECT_GT(count(run_tool({"show", "dag", "deep.pipe", "--locations"}, files, {}, 100).out, " loc("), 50u);
}

TEST(ShowForReaders, LocationsAreOfTwoKinds) {
  const ToolResult grid = run_tool({"show", "grid", "deep.pipe", "--locations"}, {{"deep.pipe", kDeep}});
  EXPECT_EQ(grid.exit_code, 2);
  EXPECT_EQ(grid.err, "piper: `--locations` is of `show graph` and `show dag`: `show grid` has none\n");
}

}  // namespace
}  // namespace piper::test
