// The text of tensor graphs: exact round trip, diagnostics of bad text, `verify`.

#include <gtest/gtest.h>

#include <set>

#include "ir/tensor/builder.h"
#include "ir/tensor/graph_text.h"
#include "tests/support/file_test.h"
#include "tests/support/golden.h"
#include "tests/support/op_cases.h"
#include "tests/support/tensor_models.h"

namespace piper::test {
namespace {

using namespace tensor;

std::string diagnostics(const DiagnosticSink& sink, const Context& context) {
  return render_text(sink.sorted(), context.locations.files());
}

/// print(parse(print(graph))) == print(graph), in a separate context.
void expect_round_trip(const Graph& graph) {
  const std::string text = print(graph);
  Context context;
  DiagnosticSink sink(context.locations);
  const auto parsed = parse(text, context, sink);
  ASSERT_TRUE(parsed) << diagnostics(sink, context) << text;
  EXPECT_EQ(print(*parsed), text);
  EXPECT_EQ(parsed->values().size(), graph.values().size());
  EXPECT_EQ(parsed->nodes().size(), graph.nodes().size());
}

TEST(TensorText, ModelsRoundTrip) {
  Context context;
  for (const Graph& graph :
       {gpt_model(context, {}), mlp_model(context, {}), two_tower_model(context, {})}) {
    DiagnosticSink sink(context.locations);
    EXPECT_TRUE(verify(graph, sink)) << diagnostics(sink, context);
    expect_round_trip(graph);
  }
}

TEST(TensorText, EveryOpRoundTrips) {
  for (const OpInfo& op : all_ops()) {
    Context context;
    for (const OpCase& c : cases_of(op.op, context)) {
      Graph graph(context);
      Builder build(graph);
      std::vector<ValueId> operands;
      for (const Type& type : c.operands)
        operands.push_back(graph.add_leaf(type, context.symbol("operand")));
      ASSERT_TRUE(build.op(c.op, operands, c.attrs)) << op.name;
      expect_round_trip(graph);
    }
  }
}

TEST(TensorText, StrangeNamesNumbersAndPlacesRoundTrip) {
  Context context;
  const FileId file = context.locations.files().add("a \"b\".pipe", "let x = 1\nlet y = 2\n");
  const LocId loc = context.locations.intern({file, 4, 9});
  Graph graph(context);
  graph.name = "a b";
  Builder build(graph);
  build.at(graph.regions.child(graph.regions.child({}, context.symbol("two words"), 7),
                               context.symbol("dotted.name"), 0),
           loc, "p\n\"q\"");
  const Dim strange{context.symbol("a: 2"), 3, true};
  ValueId x = build.input("in\\put", {DType::f64, {strange}});
  build.weight("", {DType::f64, {}}, {Init::Kind::uniform, 0.1 + 0.2});
  for (const double number : {5e-324, 1.7976931348623157e308, 0.1, -0.0, 1.0 / 3.0, 1e23})
    x = build.scale(x, number).value;
  ASSERT_TRUE(build.loss("l", x));
  expect_round_trip(graph);
  EXPECT_NE(print(graph).find("locations {\n  1 \"a \\\"b\\\".pipe\":1:5-1:10\n}\n"),
            std::string::npos)
      << print(graph);
}

TEST(TensorText, NamesAreUniqueAndSpeak) {
  Context context;
  const Graph graph = gpt_model(context, {});
  std::set<std::string> names;
  for (std::size_t v = 0; v < graph.values().size(); ++v)
    EXPECT_TRUE(names.insert(value_text(graph, ValueId::at(v))).second);
  EXPECT_TRUE(names.count("%block.0.mlp.0.gelu"));
  EXPECT_TRUE(names.count("%block.0.attention.0.attend.lse"));
  EXPECT_TRUE(names.count("%tokens"));
}

PIPER_FILE_TEST(TensorText, "tests/ir/testdata/tensor_text", ".pir", [](const FileTest& test) {
  Context context;
  DiagnosticSink sink(context.locations);
  const auto parsed = parse(test.text, context, sink);
  expect_golden(test.beside(".out"), parsed ? print(*parsed) : diagnostics(sink, context));
  EXPECT_EQ(parsed.has_value(), !sink.has_errors());
});

TEST(TensorText, MutatedTextIsRefusedOrWellFormed) {
  Context context;
  std::vector<std::string> seeds;
  for (const Graph& graph :
       {gpt_model(context, {}), mlp_model(context, {}), two_tower_model(context, {})})
    seeds.push_back(print(graph));
  for_each_case(3000, [&](Random& random) {
    std::string text = random.pick(seeds);
    for (std::uint64_t edits = 1 + random.below(3); edits > 0; --edits) {
      const std::size_t at = random.below(text.size()), size = random.below(12);
      switch (random.below(4)) {
        case 0: text.erase(at, size); break;
        case 1: text.insert(at, 1, static_cast<char>(random.below(256))); break;
        case 2: text.insert(at, text.substr(random.below(text.size()), size)); break;
        default: text[at] = "%{}[]():*@,\"\\0-9.e"[random.below(18)];
      }
    }
    Context fresh;
    DiagnosticSink sink(fresh.locations);
    const auto parsed = parse(text, fresh, sink);
    ASSERT_EQ(parsed.has_value(), !sink.has_errors()) << text;
    if (parsed) expect_round_trip(*parsed);
  });
}

TEST(TensorText, TruncatedTextIsRefused) {
  Context context;
  const std::string text = print(mlp_model(context, {}));
  for (std::size_t size = 0; size + 2 < text.size(); size += 3) {
    Context fresh;
    DiagnosticSink sink(fresh.locations);
    EXPECT_FALSE(parse(text.substr(0, size), fresh, sink)) << size;
    EXPECT_TRUE(sink.has_errors());
  }
}

TEST(TensorText, AHundredThousandNodes) {
  Context context;
  Graph graph(context);
  Builder build(graph);
  build.at({}, {}, "chain.0");
  ValueId x = build.input("x", make_type(context, "f32[batch: 4*]"));
  for (int i = 0; i < 100'000; ++i) x = build.unary(Op::tanh, x).value;
  ASSERT_TRUE(build.loss("l", x));
  expect_round_trip(graph);
}

// ---- verify, on graphs that no builder makes

class TensorVerify : public ::testing::Test {
 protected:
  Context context;
  Graph graph{context};
  Type row = make_type(context, "f32[batch: 4*]");

  void expect_refused(Code code) {
    DiagnosticSink sink(context.locations);
    EXPECT_FALSE(verify(graph, sink));
    bool found = false;
    for (const Diagnostic& diagnostic : sink.sorted()) found = found || diagnostic.code == code;
    EXPECT_TRUE(found) << diagnostics(sink, context);
  }
  NodeId tanh(ValueId operand, Type type, std::string_view name) {
    Node node;
    node.op = Op::tanh;
    const Symbol names[] = {context.symbol(name)};
    const ValueId operands[] = {operand};
    return graph.add_unchecked(node, operands, std::span(&type, 1), names);
  }
};

TEST_F(TensorVerify, AnOperandThatIsMadeLater) {
  graph.add_leaf(row, context.symbol("x"));
  tanh(ValueId(2), row, "a");
  tanh(ValueId(0), row, "b");
  expect_refused(Code::tensor_order);
}

TEST_F(TensorVerify, ATypeThatTheRuleDoesNotGive) {
  tanh(graph.add_leaf(row, context.symbol("x")), make_type(context, "f32[batch: 2*]"), "a");
  expect_refused(Code::tensor_types_differ);
}

TEST_F(TensorVerify, OperandsThatDoNotFit) {
  tanh(graph.add_leaf(make_type(context, "i64[batch: 4*]"), context.symbol("x")), row, "a");
  expect_refused(Code::tensor_operands_do_not_fit);
}

TEST_F(TensorVerify, ARepeatedName) {
  tanh(graph.add_leaf(row, context.symbol("x")), row, "x");
  expect_refused(Code::repeated_tensor_value);
}

TEST_F(TensorVerify, ALossWhoseCountIsWrong) {
  Builder build(graph);
  build.loss("l", graph.add_leaf(row, context.symbol("x")));
  graph.losses[0].count = 2;
  expect_refused(Code::tensor_loss_mismatch);
}

TEST_F(TensorVerify, AGradientOfAnotherType) {
  Builder build(graph);
  const ValueId w = build.weight("w", make_type(context, "f32[dim: 2]"), {});
  const ValueId operands[] = {w};
  const NodeId node = graph.add(Op::tanh, operands, {}, Pass::BW, {}, {});
  graph.grads.push_back({ParamId(0), graph.result(graph.node(node))});
  DiagnosticSink sink(context.locations);
  EXPECT_TRUE(verify(graph, sink)) << diagnostics(sink, context);
  graph.grads[0].value = build.sum(w, {context.symbol("dim")}).value;
  expect_refused(Code::tensor_gradient_mismatch);
}

}  // namespace
}  // namespace piper::test
