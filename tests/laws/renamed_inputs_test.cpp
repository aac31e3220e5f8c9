// Law 1 for renamed integers, which no body saves: every reader, forward or backward, on the first
// stage or the last, reads the input itself.

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/laws/law_runs.h"

namespace piper::test {
namespace {

/// Every `from` of the text becomes `to`.
std::string with_all(std::string text, const std::string& from, const std::string& to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
  return text;
}

const char* const kModels = R"(use std.schedules.one_f_one_b
use std.schedules.gpipe
use std.schedules.zb_h1
model embed(t: i64[batch, seq]) -> tensor[batch, seq, dim: 3] {
    weight token[vocab: 7, dim: 3] = normal(0.5)
    return lookup(token, t)
}
model around(t: i64[batch, spot]) -> tensor[batch, spot, dim: 3] { return embed(t) }
model layer(x: tensor[batch, spot, dim]) -> tensor[batch, spot, dim] {
    weight w[dim, out: dim] = normal(0.5)
    return x + tanh(rename(x @ w, out: dim))
}
model layers(x: tensor[batch, spot, dim]) -> tensor[batch, spot, dim] {
    var h = x
    for l in 0..3 { h = layer(h) }
    return h
}
model scores(x: tensor[batch, seq, dim]) -> tensor[batch, seq, class: 7] {
    weight w[dim, class: 7] = normal(0.5)
    return x @ w
}
model scored(x: tensor[batch, seq, dim], t: i64[batch, seq]) -> tensor[batch, seq] { return cross_entropy(scores(x), t) }
)";

/// The path of the integers `X`, an `i64[batch, n]`, to their readers.
const char* const kViews[] = {
    "X",  // calls rename it
    "rename(X, n: seq)",
    "rename(rename(X, n: k), k: seq)",
    "rename(rename(X, n: k), k: n)",
};

/// The computation of `net` on the inputs `a` and `b`, where VIEW(a) is a view of `a`.
const char* const kConsumers[] = {
    "loss square(layers(embed(VIEW(a)))); loss 0.5 * square(around(VIEW(b)))",
    "loss scored(layers(embed(VIEW(a))), VIEW(b))",
    "loss cross_entropy(scores(layers(around(VIEW(a)))), VIEW(b), ignore: 2)",
    "loss scored(layers(embed(VIEW(a))), VIEW(a)); loss 0.1 * square(embed(b))",
    "let t = VIEW(a)\n    let h = layers(embed(t))\n    loss scored(h, t); loss 0.5 * cross_entropy(scores(h + embed(VIEW(b))), t, ignore: 3)",
};

/// On a mesh of axes `pp` and `dp`.
const char* const kStrategies[] = {
    "",
    "split batch into mb: 4",
    "one_f_one_b(pp, 4)",
    "gpipe(pp, 4); replicate model over dp",
    "zb_h1(pp, 4)",
    "one_f_one_b(pp, 2); replicate model over dp with zero: 3, prefetch: 1",
};

const char* const kRecomputes[] = {"", "recompute model"};

std::string text_of(const std::string& view, const std::string& consumer,
                    const std::string& strategy, const std::string& recompute) {
  std::string body = consumer;
  for (const std::string input : {"a", "b"})
    body = with_all(body, "VIEW(" + input + ")", with_all(view, "X", input));
  const std::string mesh = strategy.find("pp") == std::string::npos   ? "pp: 1, dp: 1"
                           : strategy.find("dp") == std::string::npos ? "pp: 2, dp: 1"
                                                                      : "pp: 2, dp: 2";
  return kModels +
         ("model net() {\n    input a: i64[batch, n], b: i64[batch, n]\n    " +
          with_all(body, "; loss", "\n    loss")) +
         "\n}\nmesh grid(" + mesh + ")\n" +
         "train t = net() on grid {\n    data:  synthetic(batch: 8, n: 5, classes: 7)\n    optim: adamw(lr: 1e-2, clip: 1.0)\n    steps: 3\n    dtype: f64\n    " +
         strategy + "\n    " + recompute + "\n}\n";
}

bool saves_integers(const dag::Dag& dag) {
  return std::any_of(dag.bodies.begin(), dag.bodies.end(), [](const dag::Body& body) {
    return std::any_of(body.outputs.begin(), body.outputs.end(), [&](const dag::BodyPort& port) {
      return !tensor::is_floating(body.graph.type(port.value).dtype);
    });
  });
}

TEST(RenamedInputs, ComputeWhatOneDeviceDoesWhoeverReadsThem) {
  for (const std::string view : kViews) {
    for (const std::string consumer : kConsumers) {
      for (const std::string strategy : kStrategies) {
        for (const std::string recompute : kRecomputes) {
          Context context;
          const RandomProgram read =
              read_program(context, text_of(view, consumer, strategy, recompute));
          SCOPED_TRACE(read.source);
          LawProgram program(context, read.model, read.strategy),
              unsplit(context, read.model, one_device(context, read.strategy));
          ASSERT_TRUE(program && unsplit);
          EXPECT_FALSE(saves_integers(program.dag()));
          LawRunOptions options;
          options.held_out_steps = 1;
          const LawRun run = program.run(options);
          EXPECT_EQ(first_difference(run, unsplit.run(options), 1e-10), "");
          EXPECT_EQ(first_bit_difference(run, program.run_sequential()), "");
        }
      }
    }
  }
}

}  // namespace
}  // namespace piper::test
