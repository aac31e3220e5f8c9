// A model that reads token by token, over cached keys and values, gives at every position the logits
// of the whole forward.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "backend/decode/token_run.h"
#include "backend/dtypes.h"
#include "passes/decode/token_program.h"
#include "runtime/device/library_api.h"
#include "tests/support/evaluate.h"
#include "tests/support/random_programs.h"

namespace piper::test {
namespace {

using tensor::Op;

/// The logits of the only `cross_entropy`.
tensor::ValueId logits_of(const tensor::Graph& model) {
  for (const tensor::Node& node : model.nodes()) {
    if (node.op == Op::cross_entropy) return model.operands(node)[0];
  }
  return {};
}

tensor::InputId input_called(const tensor::Graph& model, std::string_view name) {
  for (std::size_t i = 0; i < model.inputs.size(); ++i) {
    if (model.context().text(model.inputs[i].name) == name) return tensor::InputId::at(i);
  }
  return {};
}

/// Random numbers for parameters, and class numbers below `bound` for inputs.
std::vector<std::pair<tensor::ValueId, Array>> random_values(const tensor::Graph& model,
                                                             std::uint64_t bound, Random& random) {
  std::vector<std::pair<tensor::ValueId, Array>> values;
  const auto add = [&](tensor::ValueId value, auto draw) {
    Array array{model.type(value), {}};
    for (std::int64_t i = 0; i < array.type.elements(); ++i) array.data.push_back(draw());
    values.emplace_back(value, std::move(array));
  };
  for (const tensor::Input& input : model.inputs)
    add(input.value, [&] { return static_cast<double>(random.below(bound)); });
  for (const tensor::Param& param : model.params)
    add(param.value, [&] { return random.unit() - 0.5; });
  return values;
}

/// Aligned copies of parameters, in their types.
class Parameters {
 public:
  Parameters(const tensor::Graph& model,
             const std::vector<std::pair<tensor::ValueId, Array>>& values) {
    for (const tensor::Param& param : model.params) {
      const auto found = std::find_if(values.begin(), values.end(),
                                      [&](const auto& one) { return one.first == param.value; });
      const auto bytes = static_cast<std::size_t>(model.type(param.value).bytes());
      memory_.emplace_back(std::aligned_alloc(64, (bytes + 63) / 64 * 64), std::free);
      backend::with_element(model.type(param.value).dtype, [&](auto zero) {
        using Element = decltype(zero);
        std::transform(found->second.data.begin(), found->second.data.end(),
                       static_cast<Element*>(memory_.back().get()),
                       [](double value) { return static_cast<Element>(value); });
      });
    }
  }
  const void* operator[](tensor::ParamId param) const { return memory_[param.index()].get(); }

 private:
  std::vector<std::unique_ptr<void, void (*)(void*)>> memory_;
};

/// The largest difference, relative to the larger of 1 and the logit, over all samples and
/// positions. `judge` gives the values to compare with: the model, or one without its dropout.
double largest_difference(const tensor::Graph& model, const tensor::Graph& judge,
                          const dag::TokenProgram& program, Random& random) {
  const auto values = random_values(model, static_cast<std::uint64_t>(program.vocabulary), random);
  Evaluator evaluate(judge);
  for (const auto& [value, array] : values) evaluate.set(value, array);
  evaluate.run();
  const Array& expected = evaluate.get(logits_of(judge));
  const Parameters parameters(model, values);

  const tensor::Type& type = expected.type;
  const auto stride = [](const tensor::Type& of, Symbol name) {
    std::int64_t stride = 1;
    for (std::size_t d = of.dims.size(); d-- > 0 && of.dims[d].name != name;)
      stride *= of.dims[d].extent;
    return stride;
  };
  const Array& tokens = evaluate.get(model.inputs[input_called(model, "tokens").index()].value);
  const tensor::Dim samples = *tokens.type.samples();
  const tensor::Dim positions = tokens.type.dims[tokens.type.dims[0] == samples ? 1 : 0];
  // The position may be renamed on the way to the logits.
  Symbol along, classes;
  for (const tensor::Node& node : judge.nodes()) {
    if (node.op == Op::cross_entropy) classes = node.attrs.dims[0];
  }
  for (const tensor::Dim& dim : type.dims) {
    if (!dim.sampled && dim.name != classes) along = dim.name;
  }
  double largest = 0;
  for (std::int64_t s = 0; s < samples.extent; ++s) {
    runtime::DirectCalls calls(runtime::builtin_library_calls());
    backend::TokenRun run(program, {&runtime::DirectCalls::api(), &calls,
                                    [&](tensor::ParamId param) { return parameters[param]; }});
    for (std::int64_t p = 0; p < positions.extent; ++p) {
      const std::int64_t token = static_cast<std::int64_t>(tokens.data[static_cast<std::size_t>(
          s * stride(tokens.type, samples.name) + p * stride(tokens.type, positions.name))]);
      if (!run.step(token)) {
        ADD_FAILURE() << calls.failure();
        return HUGE_VAL;
      }
      EXPECT_EQ(run.position(), p + 1);
      for (std::int64_t c = 0; c < program.classes; ++c) {
        const double is = run.logits()[static_cast<std::size_t>(c)],
                     should = expected.data[static_cast<std::size_t>(
                         s * stride(type, type.samples()->name) + p * stride(type, along) +
                         c * stride(type, classes))];
        const double difference = std::fabs(is - should) / std::max(std::fabs(should), 1.0);
        largest = std::isnan(difference) ? HUGE_VAL : std::max(largest, difference);
      }
    }
  }
  return largest;
}

std::string train(const std::string& call, const std::string& dtype = "f64") {
  return "mesh one(d: 1)\ntrain t = " + call +
         " on one {\n  data: synthetic(batch: 3, seq: 7, classes: 11)\n  optim: sgd(lr: 0.1)\n"
         "  steps: 1\n  dtype: " +
         dtype + "\n}\n";
}

/// A model of the text `body` between the tokens and `loss cross_entropy(y, targets)`.
std::string model_of(const std::string& body, const std::string& beside = "") {
  return beside +
         "model net(dim: int, vocab: int) {\n"
         "  input tokens: i64[batch, seq], targets: i64[batch, seq]\n"
         "  weight table[vocab, dim], out[dim, vocab]\n" +
         body + "  loss cross_entropy(y @ out, targets)\n}\n" + train("net(dim: 6, vocab: 11)");
}

struct Sampled {
  const char* name;
  std::string text;
};

std::vector<Sampled> sampled_models() {
  const std::string attention =
      "  weight q[dim, heads: 4, width: 3], k[dim, groups: 2, width], v[dim, groups, width]\n"
      "  weight o[heads, width, dim]\n";
  return {
      {"gpt", "use std.models.gpt\n" + train("gpt(layers: 2, dim: 8, heads: 2, vocab: 11)")},
      {"tied_gpt",
       "use std.models.gpt\n" + train("gpt(layers: 1, dim: 8, heads: 2, vocab: 11, tied: true)")},
      {"llama",
       "use std.models.llama\n" +
           train("llama(layers: 2, dim: 8, heads: 4, kv_heads: 2, vocab: 11, hidden: 12)")},
      {"qwen3", "use std.models.llama\n" +
                    train("llama(layers: 1, dim: 8, heads: 4, kv_heads: 1, width: 6, vocab: 11, "
                          "hidden: 12, qk_norm: true, tied: true)")},
      {"gpt2", "use std.models.gpt2\n" +
                   train("gpt2(layers: 2, dim: 8, heads: 2, vocab: 11, positions: 9)")},
      {"no_attention", model_of("  let y = lookup(table, tokens)\n")},
      {"position_last", model_of("  weight position[dim, seq]\n"
                                 "  let y = lookup(table, tokens) + position\n")},
      {"position_in_the_middle", model_of("  weight position[dim, seq, kinds: 2], mix[kinds]\n"
                                          "  let y = lookup(table, tokens) * (position @ mix)\n")},
      {"table_of_positions",
       model_of("  weight a[seq, dim], b[seq]\n"
                "  let y = lookup(table, tokens) + softmax(a, along: seq) * exp(b)\n")},
      {"grouped_queries",
       model_of(attention + "  let x = lookup(table, tokens)\n"
                            "  let y = x + attend(x @ q, x @ k, x @ v, causal: true) @ o\n")},
      {"rotary_and_scale",
       model_of("  weight q[dim, heads: 2, width: 4], k[dim, heads, width], v[dim, heads, width]\n"
                "  weight o[heads, width, dim]\n  let x = lookup(table, tokens)\n"
                "  let y = x + attend(rotary(x @ q), rotary(x @ k), x @ v, causal: true) @ o\n")},
      {"heads_attend_heads",
       model_of("  weight q[dim, kinds: 3, heads: 2, width: 2], k[dim, kinds, heads, width]\n"
                "  weight o[kinds, heads, width, dim]\n  let x = lookup(table, tokens)\n"
                "  let y = attend(x @ q, x @ k, x @ k) @ o\n")},
      {"heads_attend_earlier_heads",
       model_of("  weight q[dim, kinds: 3, heads: 2, width: 2], k[dim, kinds, heads, width]\n"
                "  weight o[kinds, heads, width, dim]\n  let x = lookup(table, tokens)\n"
                "  let y = attend(x @ q, x @ k, x @ k, causal: true) @ o\n")},
      {"causal_table",
       model_of("  weight lat[one: 1, seq, heads: 2, width: 2], k[one, seq, heads, width]\n"
                "  weight o[heads, one, width, dim]\n"
                "  let y = lookup(table, tokens) + attend(lat, k, k, causal: true) @ o\n")},
      {"memory_of_weights",
       model_of("  weight q[dim, heads: 2, width: 2], k[slots: 5, heads, width], "
                "o[heads, width, dim]\n"
                "  let x = lookup(table, tokens)\n"
                "  let y = x @ q @ k @ k @ o\n")},
      {"renamed_positions",
       model_of("  weight position[seq, dim]\n  let x = lookup(table, tokens)\n"
                "  let z = rename(x, seq: spot) + rename(position, seq: spot)\n"
                "  let y = rename(z, spot: seq)\n")},
      {"operations_along_others",
       model_of(
           "  weight up[dim, hidden: 8]\n"
           "  let h = softmax(lookup(table, tokens) @ up, along: hidden)\n"
           "  let parts = concat(slice(h, 2..5, along: hidden), slice(h, 0..3, along: hidden), "
           "along: hidden)\n"
           "  let y = layer_norm(shift(rename(parts, hidden: dim), 1, along: dim))\n")},
  };
}

class Sampling : public testing::TestWithParam<Sampled> {};

TEST_P(Sampling, EqualsTheForwardAtEveryPosition) {
  Context context;
  const RandomProgram read = read_program(context, GetParam().text);
  DiagnosticSink sink(context.locations);
  const auto program = passes::make_token_program(read.model, {}, sink);
  ASSERT_TRUE(program) << render_text(sink.sorted(), context.locations.files());
  EXPECT_EQ(program->positions, 7);
  EXPECT_EQ(program->classes, 11);
  EXPECT_EQ(program->vocabulary, 11);
  Random random(3);
  EXPECT_LE(largest_difference(read.model, read.model, *program, random), 1e-12);
}

INSTANTIATE_TEST_SUITE_P(Models, Sampling, testing::ValuesIn(sampled_models()),
                         [](const auto& info) { return std::string(info.param.name); });

/// In narrower types a token rounds as the whole forward does: the difference is that of sums in
/// another order.
TEST(Sampling, FollowsTheTypeOfTraining) {
  for (const auto& [dtype, bound] : {std::pair("f32", 1e-5), std::pair("bf16", 0.06)}) {
    for (const std::string model :
         {"gpt(layers: 1, dim: 8, heads: 2, vocab: 11)",
          "llama(layers: 1, dim: 8, heads: 4, kv_heads: 2, vocab: 11, hidden: 12)",
          "gpt2(layers: 1, dim: 8, heads: 2, vocab: 11, positions: 9)"}) {
      SCOPED_TRACE(model + " in " + dtype);
      Context context;
      const RandomProgram read =
          read_program(context, "use std.models." + model.substr(0, model.find('(')) + "\n" +
                                    train(model, dtype));
      DiagnosticSink sink(context.locations);
      const auto program = passes::make_token_program(read.model, {}, sink);
      ASSERT_TRUE(program);
      Random random(3);
      const double difference = largest_difference(read.model, read.model, *program, random);
      EXPECT_LE(difference, bound);
      EXPECT_GT(difference, 0);
    }
  }
}

/// Dropout gives its operand, so the whole forward is that of the model without it.
TEST(Sampling, LeavesOutDropout) {
  const auto text = [](const std::string& x, const std::string& position) {
    return model_of("  weight position[seq, dim]\n  let x = lookup(table, tokens) + " + position +
                    "\n  let y = " + x + " * 2\n");
  };
  for (const auto& [x, position] :
       {std::pair{"dropout(x, 0.5)", "position"}, {"x", "dropout(position, 0.5)"}}) {
    SCOPED_TRACE(text(x, position));
    Context context;
    const RandomProgram read = read_program(context, text(x, position)),
                        without = read_program(context, text("x", "position"));
    DiagnosticSink sink(context.locations);
    const auto program = passes::make_token_program(read.model, {}, sink);
    ASSERT_TRUE(program);
    Random random(3);
    EXPECT_LE(largest_difference(without.model, without.model, *program, random), 1e-12);
  }
}

/// Attention with a leading dimension beside the batch, which programs cannot write: each has keys
/// of its own.
TEST(Sampling, KeepsLeadingDimensionsApart) {
  Context context;
  tensor::Graph model(context);
  const auto dim = [&](const char* name, std::int64_t extent, bool sampled = false) {
    return tensor::Dim{context.symbol(name), extent, sampled};
  };
  const tensor::Dim batch = dim("batch", 2, true), seq = dim("seq", 5), parts = dim("parts", 3),
                    heads = dim("heads", 2), width = dim("width", 2), classes = dim("classes", 7);
  const auto leaf = [&](const char* name, tensor::DType dtype, std::vector<tensor::Dim> dims) {
    return model.add_leaf({dtype, std::move(dims)}, context.symbol(name));
  };
  const auto op = [&](Op op, std::vector<tensor::ValueId> operands, tensor::Attrs attrs) {
    return model.result(model.node(model.add(op, operands, std::move(attrs), Pass::F, {}, {})));
  };
  const auto along = [](std::vector<tensor::Dim> dims) {
    tensor::Attrs attrs;
    for (const tensor::Dim& dim : dims) attrs.dims.push_back(dim.name);
    return attrs;
  };
  const auto tokens = leaf("tokens", tensor::DType::i64, {batch, seq}),
             targets = leaf("targets", tensor::DType::i64, {batch, seq});
  const auto table = leaf("table", tensor::DType::f64, {dim("vocab", 7), parts, heads, width}),
             out = leaf("out", tensor::DType::f64, {parts, heads, width, classes});
  model.inputs = {{context.symbol("tokens"), tokens, {}}, {context.symbol("targets"), targets, {}}};
  model.params = {{context.symbol("table"), table, {}, {}}, {context.symbol("out"), out, {}, {}}};
  const auto x = op(Op::permute, {op(Op::lookup, {table, tokens}, {})},
                    along({batch, parts, seq, heads, width}));
  tensor::Attrs causal;
  causal.causal = true;
  causal.scalar = 0.5;
  const auto read = op(Op::permute, {op(Op::attend, {x, x, x}, causal)},
                       along({batch, seq, parts, heads, width}));
  const auto y = op(Op::contract, {read, out}, along({parts, heads, width}));
  const auto elements = op(Op::cross_entropy, {y, targets}, along({classes}));
  model.losses.push_back(
      {context.symbol("loss"), elements, op(Op::sum, {elements}, along({batch, seq})), 10, {}});
  DiagnosticSink sink(context.locations);
  const auto program = passes::make_token_program(model, {}, sink);
  ASSERT_TRUE(program) << render_text(sink.sorted(), context.locations.files());
  Random random(3);
  EXPECT_LE(largest_difference(model, model, *program, random), 1e-12);
}

/// Caches are in the element type, for all positions; grouped queries share those of their keys.
TEST(Sampling, CachesKeysAndValuesOfAllPositions) {
  Context context;
  const RandomProgram read = read_program(
      context, "use std.models.llama\n" +
                   train("llama(layers: 3, dim: 8, heads: 4, kv_heads: 2, vocab: 11, hidden: 12)"));
  DiagnosticSink sink(context.locations);
  const auto program = passes::make_token_program(read.model, {}, sink);
  ASSERT_TRUE(program);
  EXPECT_EQ(program->cached.size(), 3u);
  runtime::DirectCalls calls(runtime::builtin_library_calls());
  const backend::TokenRun run(
      *program, {&runtime::DirectCalls::api(), &calls, [](tensor::ParamId) { return nullptr; }});
  EXPECT_EQ(run.cache_bytes(), 2 * 3 * 7 * 2 * 2 * 8);
}

/// The losses of random models are seldom those of a next token. Each is refused with a line, or
/// computes the logits of the whole forward.
TEST(Sampling, RefusesOrEqualsRandomModels) {
  int sampled = 0, refused = 0;
  for_each_case(150, [&](Random& random) {
    Context context;
    const RandomProgram drawn = random_program(context, random, {.order = false, .dropout = false});
    SCOPED_TRACE(drawn.source);
    DiagnosticSink sink(context.locations);
    const auto program = passes::make_token_program(drawn.model, {}, sink);
    if (!program) {
      EXPECT_TRUE(sink.has_errors());
      ++refused;
      return;
    }
    EXPECT_TRUE(sink.empty());
    if (!input_called(drawn.model, "tokens").valid()) return;
    ++sampled;
    EXPECT_LE(largest_difference(drawn.model, drawn.model, *program, random), 1e-10);
  });
  RecordProperty("sampled", sampled);
  RecordProperty("refused", refused);
}

struct Refused {
  const char* name;
  std::string text;
  Code code;
  const char* message;
};

std::vector<Refused> refused_models() {
  const std::string x = "  let x = lookup(table, tokens)\n";
  const auto mixing = [&](const char* name, const std::string& body, const char* message) {
    return Refused{name, model_of(x + body), Code::mixes_positions, message};
  };
  const auto other = [](const char* name, const std::string& model, const char* message) {
    return Refused{name, model + train("net()"), Code::no_next_token, message};
  };
  const char* const kHeads =
      "  weight q[dim, heads: 2, width: 3], k[dim, heads, width], o[heads, width, dim]\n";
  return {
      mixing("shift", "  let y = shift(x, 1, along: seq)\n",
             "`shift` goes along `seq`, over all positions of the text"),
      mixing("slice", "  let y = x + sum(slice(x, 0..2, along: seq), along: seq)\n",
             "`slice` goes along `seq`, over all positions of the text"),
      mixing("sum", "  let y = x + sum(x, along: seq)\n",
             "`sum` goes along `seq`, over all positions of the text"),
      mixing("mean", "  let y = x + mean(x, along: seq)\n",
             "`sum` goes along `seq`, over all positions of the text"),
      mixing("max", "  let y = x + max(x, along: seq)\n",
             "`max` goes along `seq`, over all positions of the text"),
      mixing("softmax", "  let y = softmax(x, along: seq)\n",
             "`softmax` goes along `seq`, over all positions of the text"),
      mixing("norm", "  let y = layer_norm(x, along: seq)\n",
             "`layer_norm` goes along `seq`, over all positions of the text"),
      mixing("concat", "  let y = slice(concat(x, x, along: seq), 3..10, along: seq)\n",
             "`concat` goes along `seq`, over all positions of the text"),
      mixing("attention_over_all",
             std::string(kHeads) + "  let y = attend(x @ q, x @ k, x @ k) @ o\n",
             "`attend` without `causal: true` reads later positions"),
      mixing("attention_over_renamed",
             std::string(kHeads) + "  let z = rename(x, seq: keys)\n"
                                   "  let y = attend(x @ q, z @ k, z @ k) @ o\n",
             "`attend` without `causal: true` reads later positions"),
      {"two_positions",
       model_of(x + "  let y = sum(pairs(x, rename(x, seq: keys)), along: keys)\n",
                "model pairs(x: tensor[batch, seq, dim], z: tensor[batch, keys, dim])"
                " -> tensor[batch, seq, dim, keys] { return x * z }\n"),
       Code::mixes_positions, "`*` joins positions along `seq` with those along `keys`"},
      mixing("product_over_positions",
             "  weight mix[seq, places: 7]\n  let y = rename(x @ mix, places: seq)\n",
             "`@` goes along `seq`, over all positions of the text"),
      mixing("batch", "  let y = x - mean(x, along: batch)\n",
             "`sum` joins the samples of a batch, and a text is sampled by itself"),
      other("no_tokens",
            "model net() {\n  input x: tensor[batch, seq, dim: 4], targets: i64[batch, seq]\n"
            "  weight w[dim, classes: 11]\n  loss cross_entropy(x @ w, targets)\n}\n",
            "the logits depend on the input `x`, which is `f64[batch: 3*, seq: 7, dim: 4]`"),
      other("no_cross_entropy",
            "model net() {\n  input tokens: i64[batch, seq]\n  weight table[vocab: 11, dim: 4]\n"
            "  loss square(lookup(table, tokens))\n}\n",
            "the model has no `cross_entropy` loss, so it predicts no next token"),
      other("two_losses",
            "model net() {\n  input tokens: i64[batch, seq], targets: i64[batch, seq]\n"
            "  weight table[vocab: 11, dim: 11], other[vocab, dim]\n"
            "  loss cross_entropy(lookup(table, tokens), targets)\n"
            "  loss cross_entropy(lookup(other, tokens), targets)\n}\n",
            "the model has several `cross_entropy` losses, and a next token is predicted by one"),
      other("reads_targets",
            "model net() {\n  input tokens: i64[batch, seq], targets: i64[batch, seq]\n"
            "  weight table[vocab: 11, dim: 11]\n"
            "  loss cross_entropy(lookup(table, tokens) + lookup(table, targets), targets)\n}\n",
            "the logits depend on the input `targets`, which is `i64[batch: 3*, seq: 7]`, and on "
            "another one"),
      other("several_books",
            "model net() {\n  input tokens: i64[batch, seq], targets: i64[batch, seq, books: 2]\n"
            "  weight table[vocab: 11, books, dim: 11]\n"
            "  loss cross_entropy(lookup(table, tokens), targets)\n}\n",
            "the logits of `cross_entropy` are `f64[batch: 3*, seq: 7, books: 2, dim: 11]`, and "
            "those of a next token have samples, positions and classes"),
  };
}

class RefusedSampling : public testing::TestWithParam<Refused> {};

TEST_P(RefusedSampling, NamesTheOperation) {
  Context context;
  const RandomProgram read = read_program(context, GetParam().text);
  DiagnosticSink sink(context.locations);
  EXPECT_FALSE(passes::make_token_program(read.model, {}, sink));
  ASSERT_EQ(sink.sorted().size(), 1u) << render_text(sink.sorted(), context.locations.files());
  EXPECT_EQ(sink.sorted()[0].code, GetParam().code);
  EXPECT_EQ(sink.sorted()[0].message, GetParam().message);
}

INSTANTIATE_TEST_SUITE_P(Models, RefusedSampling, testing::ValuesIn(refused_models()),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace piper::test
