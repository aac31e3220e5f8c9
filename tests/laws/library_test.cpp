// The law of values from `.pipe` text: every schedule of the standard library, replicated in small
// buckets, on a small GPT and on a model that draws random numbers.

#include <gtest/gtest.h>

#include "frontend/lower/lower.h"
#include "tests/laws/law_runs.h"
#include "tests/laws/library_cases.h"
#include "tests/support/library_declarations.h"

namespace piper::test {
namespace {

std::string dropout_source(const LibraryCase& each, const std::string& rate) {
  return std::string("use std.schedules.") + each.schedule + R"(
model noisy(layers: int) {
    input x: tensor[batch, wide: 4]
    var h = x
    for l in 0..layers { h = layer(h) }
    loss squares(h)
}
model layer(x: tensor[batch, wide]) -> tensor[batch, wide] {
    weight up[wide, inner: 2*wide] = normal(0.3)
    weight down[inner, wide] = normal(0.3)
    return x + dropout(gelu(x @ dropout(up, )" +
         rate + R"()), )" + rate + R"() @ down
}
model squares(x: tensor[batch, wide]) -> tensor[batch, wide] { return x * x }
mesh cluster(pp: )" +
         std::to_string(each.devices) + R"(, dp: 2)
train small = noisy(layers: 8) on cluster {
    data:  synthetic(batch: 16)
    optim: sgd(lr: 1e-3, momentum: 0.9)
    steps: 3
    seed:  7
    )" + each.call +
         R"(
    )" + (each.replicates ? "" : "replicate model over dp") +
         R"(
}
)";
}

/// A model of the library with small sizes; `data` fits its inputs.
std::string model_source(const LibraryCase& each, const LibraryDeclaration& model,
                         const std::string& data) {
  std::string arguments;
  for (const LibraryParam& param : model.params)
    arguments += (arguments.empty() ? "" : ", ") + param.name + ": " +
                 (param.name == "layers" ? "6"
                  : param.name == "dim"  ? "8"
                                         : "4");
  return "use " + model.module + "\nuse std.schedules." + each.schedule +
         "\nmesh cluster(pp: " + std::to_string(each.devices) + ")\ntrain small = " + model.name +
         "(" + arguments + ") on cluster {\n    data:  synthetic(batch: 16, " + data +
         ")\n    optim: sgd(lr: 1e-2)\n    steps: 3\n    " + each.call + "\n}\n";
}

class Library : public testing::TestWithParam<LibraryCase> {
 protected:
  void SetUp() override {
    ASSERT_NE(GetParam().devices, 0)
        << "`" << GetParam().call
        << "` compiles on the small GPT at none of the sizes that are tried";
  }
};

/// Compares the program's run, held up at random, with the same microbatches on one device bit for
/// bit, and in f64 with the unsplit model.
void expect_values_of_one_device(const std::string& text, LawRun& run,
                                 tensor::DType dtype = tensor::DType::f64) {
  SCOPED_TRACE(text);
  source::MemoryFileSystem files;
  files.add("small.pipe", text);
  Context context;
  DiagnosticSink sink(context.locations);
  const auto file = source::open("small.pipe", {}, files, context.locations.files(), sink);
  ASSERT_TRUE(file);
  const sema::Program analysed = sema::analyse(*file, files, context, sink);
  ASSERT_TRUE(analysed.ok) << render_text(sink.sorted(), context.locations.files());
  const auto lowered =
      lower::lower_train(analysed, analysed.find_train("small"), {}, context, sink, dtype);
  ASSERT_TRUE(lowered) << render_text(sink.sorted(), context.locations.files());
  LawProgram program(context, lowered->model, lowered->strategy);
  ASSERT_TRUE(program);
  LawRunOptions delayed;
  delayed.delays = {1, 100};
  run = program.run(delayed);
  ASSERT_EQ(run.losses.size(), static_cast<std::size_t>(kLawSteps));
  EXPECT_EQ(first_bit_difference(run, program.run_sequential()), "");
  if (dtype != tensor::DType::f64) return;
  LawProgram unsplit(context, lowered->model, one_device(context, lowered->strategy));
  ASSERT_TRUE(unsplit);
  EXPECT_EQ(first_difference(run, unsplit.run({}), 1e-10), "");
}

TEST_P(Library, ComputesWhatOneDeviceDoes) {
  LawRun run;
  expect_values_of_one_device(gpt_source(GetParam(), "zero: 3, prefetch: 1"), run);
}

TEST_P(Library, ComputesItWhereValuesAndStateWaitOnTheHost) {
  for (const char* window : {"1", "2"}) {
    LibraryCase recomputed_forward = GetParam();
    recomputed_forward.call += "\n    recompute block[3].attention";
    if (!recomputed_forward.offloads)
      recomputed_forward.call += std::string("\n    offload block with window: ") + window +
                                 "\n    offload model with what: optimizer";
    LawRun run;
    expect_values_of_one_device(gpt_source(recomputed_forward, "zero: 3"), run);
  }
}

TEST_P(Library, KeepsAllBitsInF32) {
  LawRun run;
  expect_values_of_one_device(gpt_source(GetParam()), run, tensor::DType::f32);
  expect_values_of_one_device(gpt_source(GetParam(), "zero: 2"), run, tensor::DType::f32);
  // Sharding changes no bit if gradients are reduced alike.
  LawRun gradients, parameters;
  expect_values_of_one_device(gpt_source(GetParam(), "zero: 2, reduce: unit"), gradients,
                              tensor::DType::f32);
  expect_values_of_one_device(gpt_source(GetParam(), "zero: 3, reduce: unit, prefetch: 2"),
                              parameters, tensor::DType::f32);
  EXPECT_EQ(first_bit_difference(gradients, parameters), "");
}

TEST_P(Library, KeepsAllBitsInBf16) {
  LawRun run;
  expect_values_of_one_device(gpt_source(GetParam()), run, tensor::DType::bf16);
  LibraryCase recomputed_forward = GetParam();
  recomputed_forward.call += "\n    recompute block[3].attention";
  if (!recomputed_forward.offloads)
    recomputed_forward.call +=
        "\n    offload block with window: 1\n    offload model with what: optimizer";
  expect_values_of_one_device(gpt_source(recomputed_forward, "zero: 3"), run, tensor::DType::bf16);
  LawRun gradients, parameters;
  expect_values_of_one_device(gpt_source(GetParam(), "zero: 2, reduce: unit"), gradients,
                              tensor::DType::bf16);
  expect_values_of_one_device(gpt_source(GetParam(), "zero: 3, reduce: unit, prefetch: 2"),
                              parameters, tensor::DType::bf16);
  EXPECT_EQ(first_bit_difference(gradients, parameters), "");
}

TEST_P(Library, DrawsTheRandomNumbersOfOneDevice) {
  LawRun half, none;
  expect_values_of_one_device(dropout_source(GetParam(), "0.5"), half);
  expect_values_of_one_device(dropout_source(GetParam(), "0.0"), none);
  ASSERT_FALSE(half.losses.empty() || none.losses.empty());
  EXPECT_NE(half.losses[0], none.losses[0]);
}

/// Each model of the library that the schedule fits; a model whose parts do not stand one after the
/// other may have too few of them.
TEST_P(Library, FitsTheModelsOfTheLibrary) {
  std::size_t fitting = 0;
  std::string why;
  for (const LibraryDeclaration& model : library_models()) {
    for (const char* data : {"classes: 2, seq: 3", "classes: 2"}) {
      const std::string text = model_source(GetParam(), model, data);
      if (!compiles(text, why)) continue;
      LawRun run;
      expect_values_of_one_device(text, run);
      ++fitting;
      break;
    }
  }
  EXPECT_GE(fitting, 2u) << why;
}

TEST(LibraryModels, EveryModelFitsASchedule) {
  for (const LibraryDeclaration& model : library_models()) {
    std::string why;
    const LibraryCase whole{"gpipe", "gpipe(pp, 4)", 2};
    EXPECT_TRUE(compiles(model_source(whole, model, "classes: 2, seq: 3"), why) ||
                compiles(model_source(whole, model, "classes: 2"), why))
        << why;
  }
}

INSTANTIATE_TEST_SUITE_P(Schedules, Library, testing::ValuesIn(library_cases()),
                         [](const auto& each) { return each.param.schedule; });

/// Every schedule on pipelines of two and of four ranks, on a GPT and on an MLP.
class LibraryOnRanks : public Library {};

TEST_P(LibraryOnRanks, TrainsTheSmallModels) {
  std::size_t trained = 0;
  std::string why;
  for (const LibraryDeclaration& model : library_models()) {
    if (model.name != "gpt" && model.name != "mlp") continue;
    const std::string data = model.name == "gpt" ? "classes: 2, seq: 3" : "classes: 2";
    const std::string text = model_source(GetParam(), model, data);
    ASSERT_TRUE(compiles(text, why)) << why;
    LawRun run;
    expect_values_of_one_device(text, run);
    ++trained;
  }
  EXPECT_EQ(trained, 2u);
}

INSTANTIATE_TEST_SUITE_P(Two, LibraryOnRanks, testing::ValuesIn(library_cases_on(2)),
                         [](const auto& info) { return info.param.schedule; });
INSTANTIATE_TEST_SUITE_P(Four, LibraryOnRanks, testing::ValuesIn(library_cases_on(4)),
                         [](const auto& info) { return info.param.schedule; });

/// Orders below stages name the regions around the ones with work: blocks, and inside a block with
/// overlap.
constexpr const char* kLooseWork[] = {
    R"(use std.models.gpt
mesh pair(d: 2, dp: 2)
train small = gpt(layers: 2, dim: 8, heads: 2, vocab: 11, tied: true) on pair {
    data:  synthetic(batch: 8, seq: 3, classes: 11)
    optim: adamw(lr: 1e-2, eps: 1e-4)
    steps: 3
    split batch into mb: 2
    replicate model over dp
    place block[0] on d[0]
    place block[1], tied_head, model on d[1]
    order {
        rank r in d[0] { F block[0] mb[0]; F block[0] mb[1]; B block[0] mb[0]; B block[0] mb[1] }
        rank r in d[1] {
            for i in 0..2 { F model.rest[0] mb[i] }
            for i in 0..2 { F block[1] mb[i]; F tied_head mb[i]; F model.rest[1] mb[i]; BI model.rest[1] mb[i]; BI tied_head mb[i]; BI block[1] mb[i] }
            BI model.rest[0] mb[1]; BI model.rest[0] mb[0]
            for i in 0..2 { BW model.rest[1] mb[i]; BW model.rest[0] mb[i]; BW tied_head mb[i]; BW block[1] mb[i] }
            B block[1].reduce
        }
    }
}
)",
    R"(use std.models.gpt
mesh pair(d: 2)
train small = gpt(layers: 2, dim: 8, heads: 2, vocab: 11) on pair {
    data:  synthetic(batch: 4, seq: 3, classes: 11)
    optim: adamw(lr: 1e-2, eps: 1e-4, clip: 0.1)
    steps: 3
    split batch into mb: 2
    place block[0], model.rest on d[0]
    place block[1], head on d[1]
    order {
        rank r in d[1] {
            F block[1].rest[0] mb[0]; F block[1].attention mb[0]; F block[1].rest[0] mb[1]; F block[1].rest[1] mb[0]
            F block[1].attention mb[1] & F block[1].mlp mb[0]
            F block[1].rest[2] mb[0]; F head mb[0]; B head mb[0]
            F block[1].rest[1] mb[1]; F block[1].mlp mb[1]; F block[1].rest[2] mb[1]; F head mb[1]
            B block[1] mb[0]; B head mb[1]; B block[1] mb[1]
        }
    }
}
)",
    R"(use std.schedules.gpipe
mesh line(pp: 4)
model tower(layers: int, dim: int) {
    input x: tensor[batch, dim], y: tensor[batch, dim]
    var h = x
    for l in 0..layers { region stage { h = layer(h) } }
    loss square(h - y)
    loss 0.01 * square(h - x)
}
model layer(x: tensor[batch, dim]) -> tensor[batch, dim] {
    weight up[dim, hidden: 4*dim], down[hidden, dim] = normal(0.02)
    return x + gelu(x @ up) @ down
}
train small = tower(layers: 4, dim: 4) on line {
    data:  synthetic(batch: 8)
    optim: sgd(lr: 0.1)
    steps: 3
    gpipe(pp, 4)
}
)",
};

TEST(LooseWork, ComputesWhatOneDeviceDoes) {
  for (const char* text : kLooseWork) {
    for (const tensor::DType dtype :
         {tensor::DType::f64, tensor::DType::f32, tensor::DType::bf16}) {
      LawRun run;
      expect_values_of_one_device(text, run, dtype);
    }
  }
}

}  // namespace
}  // namespace piper::test
