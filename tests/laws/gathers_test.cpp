// Gathers of cut parameters that an order places: they stand where it says, for the work that it
// names, and change no bit.

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>

#include "tests/laws/law_runs.h"
#include "tests/support/compile.h"
#include "tests/support/random_programs.h"

namespace piper::test {
namespace {

/// Two stages on each of two ranks, each a unit; rank r has stages r and r + 2, `a` and `b`.
std::string two_units(const std::string& steps, const std::string& ranks = "rank r in pp") {
  std::string text =
      "model net() {\n"
      "    input x: tensor[batch, dim]\n"
      "    var h = x\n"
      "    for l in 0..4 { h = layer(h) }\n"
      "    loss square(h)\n"
      "}\n"
      "model layer(x: tensor[batch, dim]) -> tensor[batch, dim] {\n"
      "    weight up[dim, inner: 2*dim], down[inner, dim] = normal(0.4)\n"
      "    return x + gelu(x @ up) @ down\n"
      "}\n"
      "mesh line(pp: 2, dp: 2)\n"
      "train t = net() on line {\n"
      "    data:  synthetic(batch: 8, dim: 4)\n"
      "    optim: adamw(lr: 1e-2, clip: 1.0)\n"
      "    steps: 3\n"
      "    dtype: f64\n"
      "    partition model into stage: 4\n"
      "    for s in 0..4 { place stage[s] on pp[s % 2] }\n"
      "    split batch into mb: 2\n"
      "    replicate model over dp with zero: 3\n"
      "    order { " +
      ranks + " { " + steps +
      " } }\n"
      "}\n";
  for (const auto& [name, region] : {std::pair{" a", " stage[r]"}, {" b", " stage[r + 2]"}}) {
    for (std::size_t at = text.find("order {"); (at = text.find(name, at)) != std::string::npos;) {
      const char next = text[at + 2];
      if (next == ' ' || next == '.') text.replace(at, 2, region);
      ++at;
    }
  }
  return text;
}

std::string work_name(const dag::Dag& dag, const dag::Node& node) {
  return std::string(pass_name(node.pass)) +
         (dag.context->text(dag.chunks[node.chunk.index()].name).starts_with("stage0") ? "a"
                                                                                       : "b") +
         std::to_string(node.instance.at[0]);
}

/// The work of the first rank in its order, with gathers and the work they serve:
/// `(Fa0 Fa1) Fa0 Fa1`.
std::string first_rank(const dag::Dag& dag) {
  std::string text;
  for (const dag::NodeId id : dag.order) {
    const dag::Node& node = dag.node(id);
    if (dag.device_sets[node.devices].at[0] != 0 ||
        !(runs_body(node.kind) || gathers_shards(node.kind)))
      continue;
    text += text.empty() ? "" : " ";
    if (runs_body(node.kind)) {
      text += work_name(dag, node);
      continue;
    }
    std::string readers;
    for (const dag::NodeId reader : dag.order) {
      const std::span<const dag::Input> inputs = dag.inputs_of(dag.node(reader));
      if (std::any_of(inputs.begin(), inputs.end(),
                      [&](const dag::Input& input) { return input.source.node == id; }))
        readers += (readers.empty() ? "" : " ") + work_name(dag, dag.node(reader));
    }
    text += "(" + readers + ")";
  }
  return text;
}

TEST(Gathers, StandWhereTheOrderSays) {
  struct GatherRow {
    const char *steps, *order;
  };
  std::optional<LawRun> wanted;
  for (
      const GatherRow& row :
      {GatherRow{"F a mb[0..2]; F b mb[0..2]; B b mb[0..2]; B a mb[0..2]",
                 "(Fa0 Fa1) Fa0 Fa1 (Fb0 Fb1 Bb0 Bb1) Fb0 Fb1 Bb0 Bb1 (Ba0 Ba1) Ba0 Ba1"},
       // From the start of the step; the uninterrupted work after it also reads it.
       GatherRow{"F b.gather; F a mb[0..2]; F b mb[0..2]; B b mb[0..2]; B a mb[0..2]",
                 "(Fb0 Fb1 Bb0 Bb1) (Fa0 Fa1) Fa0 Fa1 Fb0 Fb1 Bb0 Bb1 (Ba0 Ba1) Ba0 Ba1"},
       GatherRow{"F a mb[0]; B a.gather; F a mb[1]; F b mb[0..2]; B b mb[0..2]; B a mb[0..2]",
                 "(Fa0 Fa1) Fa0 (Ba0 Ba1) Fa1 (Fb0 Fb1 Bb0 Bb1) Fb0 Fb1 Bb0 Bb1 Ba0 Ba1"},
       GatherRow{
           "F a mb[0..2]; F b mb[0..2]; B b mb[0..2]; B a.gather mb[0]; B a mb[0]; B a.gather mb[1]; B a mb[1]",
           "(Fa0 Fa1) Fa0 Fa1 (Fb0 Fb1 Bb0 Bb1) Fb0 Fb1 Bb0 Bb1 (Ba0) Ba0 (Ba1) Ba1"},
       // One for work that other work divides; the next that names it takes over.
       GatherRow{
           "F a.gather mb[0..2]; F a mb[0]; F b mb[0]; F a mb[1]; F b.gather; F b mb[1]; B b mb[0..2]; B a mb[0..2]",
           "(Fa0 Fa1) Fa0 (Fb0) Fb0 Fa1 (Fb1 Bb0 Bb1) Fb1 Bb0 Bb1 (Ba0 Ba1) Ba0 Ba1"},
       GatherRow{
           "F a.gather mb[[1, 0, 1]]; F a mb[0]; F b mb[0]; F a mb[1]; F b mb[1]; B b mb[0..2]; B a mb[0..2]",
           "(Fa0 Fa1) Fa0 (Fb0) Fb0 Fa1 (Fb1 Bb0 Bb1) Fb1 Bb0 Bb1 (Ba0 Ba1) Ba0 Ba1"},
       GatherRow{
           "F a.gather; F a mb[0]; F a.gather; F a mb[1]; F b mb[0..2]; B b mb[0..2]; B a mb[0..2]",
           "(Fa0) Fa0 (Fa1) Fa1 (Fb0 Fb1 Bb0 Bb1) Fb0 Fb1 Bb0 Bb1 (Ba0 Ba1) Ba0 Ba1"}}) {
    SCOPED_TRACE(row.steps);
    Context context;
    const RandomProgram read = read_program(context, two_units(row.steps));
    LawProgram program(context, read.model, read.strategy);
    ASSERT_TRUE(program);
    EXPECT_EQ(first_rank(program.dag()), row.order);
    const LawRun run = program.run({.held_out_steps = 1});
    EXPECT_EQ(first_bit_difference(run, program.run_sequential()), "");
    if (!wanted) wanted = run;
    EXPECT_EQ(first_difference(run, *wanted, 1e-10), "");
  }
}

// With `recompute` a gather for a backward also serves the recomputed forward before it.
TEST(Gathers, ServeRecomputedForwards) {
  Context context;
  const RandomProgram read = read_program(
      context,
      with_line(two_units("F a mb[0..2]; F b mb[0..2]; B b mb[0..2]; B a.gather; B a mb[0..2]"),
                "recompute stage[0]"));
  LawProgram program(context, read.model, read.strategy);
  ASSERT_TRUE(program);
  EXPECT_EQ(
      first_rank(program.dag()),
      "(Fa0 Fa1) Fa0 Fa1 (Fb0 Fb1 Bb0 Bb1) Fb0 Fb1 Bb0 Bb1 (Ra0 Ba0 Ra1 Ba1) Ra0 Ba0 Ra1 Ba1");
  EXPECT_EQ(first_bit_difference(program.run({}), program.run_sequential()), "");
}

TEST(Gathers, Refusals) {
  struct RefusedRow {
    std::string text;
    const char* code;
    const char* message;
  };
  const std::string finer = "rank r in pp, d in dp",
                    rest = "; F b mb[0..2]; B b mb[0..2]; B a mb[0..2]";
  const auto ahead = [](std::string text, int runs) {
    return text.replace(text.find("zero: 3"), 7, "zero: 3, prefetch: " + std::to_string(runs));
  };
  const std::string forwards =
      "F a.gather; F a mb[0..2]; F b.gather; F b mb[0..2]; B b.gather; B b mb[0..2]; ";
  for (const RefusedRow& row : {
           RefusedRow{two_units("F a mb[0..2]; F a.gather" + rest), "P3112",
                      "mb[1]`, which reads the parameters that it gathers"},
           RefusedRow{two_units("F a.gather mb[0]; F a mb[0]; F a.gather; F a mb[1]" + rest), "",
                      ""},
           RefusedRow{two_units("F a.gather mb[0]; F a.gather; F a mb[0..2]" + rest), "P3105",
                      "reads what the first brings"},
           RefusedRow{two_units("if d == 0 { F a.gather }; F a.gather; F a mb[0..2]" + rest, finer),
                      "P3105", "stands twice"},
           RefusedRow{
               two_units("if d == 0 { F a.gather } else { F a.gather mb[0] }; F a mb[0..2]" + rest,
                         finer),
               "P3112", "which gather together with it"},
           RefusedRow{two_units("if d == 0 { F a.gather }; F a mb[0..2]" + rest, finer), "P3108",
                      "which runs the same work"},
           RefusedRow{ahead(two_units(forwards + "B a.gather; B a mb[0..2]"), 2), "P3047",
                      "`prefetch: 2` has no effect"},
           RefusedRow{ahead(two_units(forwards + "B a.gather; B a mb[0..2]"), 0), "", ""},
           RefusedRow{ahead(two_units(forwards + "B a mb[0..2]"), 2), "", ""},
       }) {
    SCOPED_TRACE(row.text);
    Context context;
    RandomProgram read = read_program(context, row.text);
    DiagnosticSink sink(context.locations);
    const auto dag = test::compile(read.model, read.strategy, sink, {});
    const std::string told = render_text(sink.sorted(), context.locations.files());
    EXPECT_EQ(dag.has_value(), row.code[0] == '\0') << told;
    EXPECT_NE(told.find(row.code), std::string::npos) << told;
    EXPECT_NE(told.find(row.message), std::string::npos) << told;
  }
  // Whole parameters have no gather.
  std::string whole = two_units("F a.gather; F a mb[0..2]" + rest);
  whole.replace(whole.find("zero: 3"), 7, "zero: 1");
  Context context;
  RandomProgram read = read_program(context, whole);
  DiagnosticSink sink(context.locations);
  EXPECT_FALSE(test::compile(read.model, read.strategy, sink, {}));
  EXPECT_NE(render_text(sink.sorted(), context.locations.files()).find("P3111"), std::string::npos);
}

}  // namespace
}  // namespace piper::test
