// `held_out`: the messages of `train` about it, and its loss as the mean computed by hand from the
// rows.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <optional>

#include "llvm/Support/JSON.h"
#include "tests/support/golden.h"
#include "tests/support/temporary_folder.h"
#include "tests/tools/transcript.h"

namespace piper::test {
namespace {

using testing::HasSubstr;
using testing::Not;

/// A train of one step that changes nothing, on four rows or a text, then on the held-out file.
std::string program(const std::string& model, const std::string& source,
                    const TemporaryFolder& folder, const std::string& lines,
                    const std::string& limit = "") {
  const std::string path = folder.path().string();
  return model + "mesh m(d: 2)\ntrain t = net() on m {\n    data:     " + source + "(\"" + path +
         "/train\", batch: 4" + (source == "bytes" ? ", seq: 3" : "") +
         ")\n    held_out: " + source + "(\"" + path + "/rest\", batch: 4" +
         (source == "bytes" ? ", seq: 3" : "") + limit +
         ")\n    optim:    sgd(lr: 0.0)\n    steps:    1\n" + lines + "}\n";
}

struct HeldOut {
  std::optional<double> loss;
  std::int64_t batches = 0, samples = 0;
};

HeldOut run(const std::string& text) {
  const ToolResult run =
      run_tool({"train", "t.pipe", "--interpret", "--format", "json"}, {{"t.pipe", text}});
  EXPECT_EQ(run.exit_code, 0) << run.out << run.err;
  auto value = llvm::json::parse(run.out);
  if (!value) return llvm::consumeError(value.takeError()), HeldOut();
  const llvm::json::Object& object = *value->getAsObject();
  const auto loss = object.getNumber("held_out_loss");
  return {loss ? std::optional(*loss) : std::nullopt,
          object.getInteger("held_out_batches").value_or(-1),
          object.getInteger("held_out_samples").value_or(-1)};
}

/// How samples are divided over microbatches and replicas.
const std::vector<std::string> kLines = {
    "", "    split batch into mb: 4\n", "    replicate model over d\n",
    "    split batch into mb: 2\n    replicate model over d\n"};

struct RowCase {
  const char* model;
  const char* columns;
  std::function<std::string(int row)> line;
  /// The loss over these rows, by hand.
  std::function<double(int rows)> mean;
};

double mean_over(int rows, const std::function<double(int)>& of_row) {
  double sum = 0;
  for (int row = 0; row < rows; ++row) sum += of_row(row);
  return sum / rows;
}

const std::vector<RowCase> kRowCases = {
    {"model net() {\n    input x: tensor[batch, dim: 1], y: tensor[batch, dim]\n    weight w[dim] = ones\n    loss mean_squared(x * w, y)\n}\n",
     "x,y", [](int row) { return std::to_string(row + 1) + "," + std::to_string(2 * row); },
     [](int rows) {
       return mean_over(rows,
                        [](int row) { return (row + 1.0 - 2.0 * row) * (row + 1.0 - 2.0 * row); });
     }},
    // Two losses, one of the input itself.
    {"model net() {\n    input id: tensor[batch]\n    weight w[one: 1] = ones\n    loss square(id * w)\n    loss id\n}\n",
     "id", [](int row) { return std::to_string(row + 1); },
     [](int rows) {
       return mean_over(rows, [](int row) { return (row + 1.0) * (row + 1.0) + (row + 1.0); });
     }},
    // Several elements per sample.
    {"model net() {\n    input x: tensor[batch, dim: 2]\n    weight w[dim] = ones\n    loss x * w\n}\n",
     "x.0,x.1", [](int row) { return std::to_string(row) + "," + std::to_string(5 * row); },
     [](int rows) { return mean_over(rows, [](int row) { return 3.0 * row; }); }},
    // Every third target does not count: a batch weighs by those that do.
    {"model net() {\n    input x: tensor[batch, class: 3], label: i64[batch]\n    weight w[class] = ones\n    loss cross_entropy(x * w, label, ignore: 2)\n}\n",
     "x.0,x.1,x.2,label",
     [](int row) { return std::to_string(row % 4) + ",1,0," + std::to_string(row % 3); },
     [](int rows) {
       double sum = 0, counted = 0;
       for (int row = 0; row < rows; ++row) {
         const double x[] = {row % 4 * 1.0, 1, 0};
         if (row % 3 == 2) continue;
         sum += std::log(std::exp(x[0]) + std::exp(x[1]) + std::exp(x[2])) - x[row % 3];
         ++counted;
       }
       return sum / std::max(1.0, counted);
     }},
};

TEST(HeldOut, EachRowCountsOnce) {
  for (const RowCase& each : kRowCases) {
    for (const int rows : {1, 2, 3, 4, 5, 10, 12, 13}) {
      const TemporaryFolder folder;
      const auto table = [&](int count) {
        std::string text = std::string(each.columns) + "\n";
        for (int row = 0; row < count; ++row) text += each.line(row) + "\n";
        return text;
      };
      folder.write("train", table(4));
      folder.write("rest", table(rows));
      for (const std::string& lines : kLines) {
        for (const char* dtype : {"f64", "f32"}) {
          const HeldOut held_out =
              run(program(each.model, "arrays", folder, lines + "    dtype:    " + dtype + "\n"));
          EXPECT_EQ(held_out.batches, (rows + 3) / 4);
          EXPECT_EQ(held_out.samples, rows);
          EXPECT_NEAR(held_out.loss.value_or(NAN), each.mean(rows),
                      std::string(dtype) == "f64" ? 1e-12 : 1e-5 * std::abs(each.mean(rows)))
              << each.model << lines << rows << " rows";
        }
      }
    }
  }
}

/// Numbers that bf16 has, with a sum that it has not.
TEST(HeldOut, InBf16SumsAreWide) {
  const TemporaryFolder folder;
  std::string text = "id\n";
  for (int row = 0; row < 7; ++row) text += row % 2 == 0 ? "256\n" : "1\n";
  folder.write("train", text);
  folder.write("rest", text);
  const HeldOut held_out = run(program(
      "model net() {\n    input id: tensor[batch]\n    weight w[one: 1] = ones\n    loss id * w\n}\n",
      "arrays", folder, "    dtype: bf16\n    replicate model over d\n"));
  EXPECT_NEAR(held_out.loss.value_or(NAN), (4 * 256.0 + 3) / 7, 1e-4);
}

constexpr const char* kTextModel =
    "model net() {\n    input tokens: i64[batch, seq], targets: i64[batch, seq]\n    weight w[vocab: 256] = ones\n    let number = iota(w, along: vocab)\n    loss lookup(number * w, tokens) - lookup(number, "
    "targets) * 2\n}\n";

double of_text(const std::string& text, std::size_t windows) {
  double sum = 0;
  for (std::size_t i = 0; i < 3 * windows; ++i)
    sum += static_cast<double>(text[i]) - 2.0 * static_cast<double>(text[i + 1]);
  return sum / (3.0 * static_cast<double>(windows));
}

TEST(HeldOut, EachWindowOfATextCountsOnce) {
  const std::string text = "Each window of this text counts once, however many of them there are.";
  for (const std::size_t windows : {1, 3, 4, 6, 9, 22}) {
    // The byte behind the last window, and a part of a window.
    for (const std::size_t rest : {1, 3}) {
      const TemporaryFolder folder;
      folder.write("train", text);
      folder.write("rest", text.substr(0, 3 * windows + rest));
      for (const std::string& lines : kLines) {
        const HeldOut held_out = run(program(kTextModel, "bytes", folder, lines));
        EXPECT_EQ(held_out.samples, static_cast<std::int64_t>(windows));
        EXPECT_NEAR(held_out.loss.value_or(NAN), of_text(text, windows), 1e-3) << windows << lines;
      }
    }
  }
}

/// A limit takes whole batches that are spread evenly, and the summary says so.
TEST(HeldOut, ALimitIsSaid) {
  const TemporaryFolder folder;
  std::string text = "x,y\n";
  for (int row = 0; row < 13; ++row) text += std::to_string(row * row) + ",0\n";
  folder.write("train", text);
  folder.write("rest", text);
  struct Case {
    int limit;
    std::vector<int> first_rows;
    const char* said;
  };
  const std::vector<Case> cases = {{1, {0}, "over 1 of 4 batches, 4 of 13 samples"},
                                   {2, {0, 8}, "over 2 of 4 batches, 8 of 13 samples"},
                                   {3, {0, 4, 8}, "over 3 of 4 batches, 12 of 13 samples"},
                                   {4, {0, 4, 8, 12}, "over 4 batches, 13 samples"},
                                   {64, {0, 4, 8, 12}, "over 4 batches, 13 samples"}};
  for (const Case& each : cases) {
    double sum = 0;
    int rows = 0;
    for (const int first : each.first_rows) {
      for (int row = first; row < std::min(13, first + 4); ++row, ++rows) sum += std::pow(row, 4);
    }
    const std::string source = program(kRowCases[0].model, "arrays", folder, "",
                                       ", batches: " + std::to_string(each.limit));
    EXPECT_NEAR(run(source).loss.value_or(NAN), sum / rows, 1e-3 * sum / rows) << each.limit;
    const ToolResult words = run_tool({"train", "t.pipe", "--interpret"}, {{"t.pipe", source}});
    EXPECT_THAT(words.out, HasSubstr(each.said));
  }
}

/// If samples depend on each other a short batch is another model; only full batches are taken.
TEST(HeldOut, AShortBatchOfDependentSamplesIsRefused) {
  const std::vector<const char*> mixing = {"square(softmax(x * w, along: batch))",
                                           "square(x * w - sum(x * w, along: batch))",
                                           "square(x * w) * sum(x * w, along: batch)"};
  for (const char* loss : mixing) {
    const std::string model =
        std::string(
            "model net() {\n    input x: tensor[batch]\n    weight w[one: 1] = ones\n    loss ") +
        loss + "\n}\n";
    const TemporaryFolder folder;
    folder.write("train", "x\n1\n2\n3\n4\n");
    for (const auto& [rows, limit, good] : {std::tuple{"x\n1\n2\n3\n4\n5\n", "", false},
                                            {"x\n1\n2\n3\n", "", false},
                                            {"x\n1\n2\n3\n4\n5\n", ", batches: 1", true},
                                            {"x\n1\n2\n3\n4\n", "", true}}) {
      folder.write("rest", rows);
      const std::string source = program(model, "arrays", folder, "", limit);
      const ToolResult trained = run_tool({"train", "t.pipe", "--interpret"}, {{"t.pipe", source}}),
                       checked = run_tool({"check", "t.pipe"}, {{"t.pipe", source}});
      EXPECT_EQ(trained.exit_code, good ? 0 : 1) << source << trained.err;
      EXPECT_EQ(trained.err.find("error P6035: the held-out data ends in a batch of ") !=
                    std::string::npos,
                !good)
          << trained.err;
      EXPECT_EQ(checked.err.find("warning P6107: the held-out data ends in a batch of ") !=
                    std::string::npos,
                !good)
          << checked.err;
    }
  }
}

struct Failing {
  const char* model;
  const char* train;
  const char* rest;
  std::vector<std::string> said;
};

/// A failure on held-out data names the position in the data, and the results of training are not
/// lost.
TEST(HeldOut, AFailureKeepsTheSummary) {
  const char* const squares =
      "model net() {\n    input x: tensor[batch, dim: 1], y: tensor[batch, dim]\n    weight w[dim] = ones\n    loss mean_squared(x * w, y)\n}\n";
  const char* const labels =
      "model net() {\n    input x: tensor[batch, class: 2], label: i64[batch]\n    weight w[class] = ones\n    loss cross_entropy(x * w, label)\n}\n";
  const std::vector<Failing> cases = {
      {squares,
       "x,y\n0,1\n",
       "x,y\n0,1\n0,2\n0,3\n0,4\n0,5\n0,1e30\n0,7\n0,8\n",
       {"error P6001: ", "held-out batch 2 of 2, rows 5 to 8",
        "the held-out loss `loss.0` is infinite"}},
      {squares,
       "x,y\n0,1\n",
       "x,y\n0,1\n0,2\n0,3\n0,4\n0,1e30\n",
       {"error P6001: ", "held-out batch 2 of 2, row 5", "the held-out loss `loss.0` is infinite"}},
      {squares,
       "x,y\n0,1\n",
       "x,y\n0,1e30\n",
       {"error P6001: ", "held-out batch 1 of 1, row 1", "the held-out loss `loss.0` is infinite"}},
      {labels,
       "x.0,x.1,label\n1,2,0\n",
       "x.0,x.1,label\n1,2,0\n1,2,0\n1,2,0\n1,2,0\n1,2,0\n1,2,7\n",
       {"error P6002: ", "held-out batch 2 of 2, rows 5 to 6"}},
  };
  for (const Failing& each : cases) {
    const TemporaryFolder folder;
    folder.write("train", each.train);
    folder.write("rest", each.rest);
    const std::string profile = (folder.path() / "costs.json").string();
    for (const std::string& lines : kLines) {
      folder.write("costs.json", "an earlier one");
      const ToolResult run = run_tool({"train", "t.pipe", "--interpret", "--profile", profile},
                                      {{"t.pipe", program(each.model, "arrays", folder, lines)}});
      EXPECT_EQ(run.exit_code, 1);
      for (const std::string& said : each.said) EXPECT_THAT(run.err, HasSubstr(said)) << lines;
      EXPECT_THAT(run.err, Not(HasSubstr("step 2"))) << run.err;
      EXPECT_THAT(run.err, Not(HasSubstr("learning rate")));
      EXPECT_THAT(run.out, HasSubstr("1 step in "));
      EXPECT_THAT(run.out, Not(HasSubstr("held-out loss")));
      EXPECT_THAT(read_text(profile).value_or(""), HasSubstr("{"));
    }
  }
}

/// A run that fails in training leaves the files of an earlier one as they are.
TEST(HeldOut, AFailureInTrainingKeepsEarlierFiles) {
  const TemporaryFolder folder;
  folder.write("train", "x,y\n0,1e30\n");
  folder.write("rest", "x,y\n0,1\n");
  for (const auto& [option, name] : {std::pair{"--profile", "costs.json"},
                                     {"--trace", "trace.json"},
                                     {"--trace", "trace.html"}}) {
    const std::string path = folder.write(name, "an earlier one");
    const ToolResult run =
        run_tool({"train", "t.pipe", "--interpret", option, path},
                 {{"t.pipe", program(kRowCases[0].model, "arrays", folder, "")}});
    EXPECT_EQ(run.exit_code, 1);
    EXPECT_THAT(run.err, HasSubstr("error P6001: "));
    EXPECT_EQ(read_text(path), "an earlier one") << name;
  }
}

}  // namespace
}  // namespace piper::test
