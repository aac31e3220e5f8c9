// The commands in process: transcripts, and cases that they cannot express.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <sstream>
#include <thread>

#include "frontend/tools/arguments.h"
#include "frontend/tools/choices.h"
#include "frontend/tools/environment.h"
#include "llvm/Support/JSON.h"
#include "runtime/device/product_choice.h"
#include "tests/support/file_test.h"
#include "tests/support/golden.h"
#include "tests/support/process.h"
#include "tests/support/temporary_folder.h"
#include "tests/tools/transcript.h"

namespace piper::test {
namespace {

using testing::HasSubstr;

PIPER_FILE_TEST(Transcript, "tests/tools/testdata", ".transcript", [](const FileTest& test) {
  const TemporaryFolder folder;
  const std::string replayed = replay_transcript(test.text, folder.path());
  ASSERT_THAT(replayed, HasSubstr("-- exit ")) << "the transcript has no command";
  expect_golden(test.path, replayed);
});

constexpr const char* kTiny =
    "use std.models.mlp\n"
    "use std.schedules.one_f_one_b\n"
    "mesh pair(pp: 2)\n"
    "param rate = 0.05\n"
    "train tiny = mlp(layers: 2, features: 4, hidden: 6, classes: 3) on pair {\n"
    "    data:  synthetic(batch: 8, classes: 3)\n"
    "    optim: sgd(lr: rate)\n"
    "    steps: 3\n"
    "    one_f_one_b(pp, 2)\n"
    "}\n";
const std::map<std::string, std::string> kFiles = {{"tiny.pipe", kTiny}};

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

std::string joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

TEST(Help, EveryCommandAnswers) {
  for (const tools::CommandRow& row : tools::command_rows()) {
    const ToolResult asked = run_tool({row.name, "--help"});
    EXPECT_EQ(asked.exit_code, 0) << row.name;
    EXPECT_EQ(asked.err, "");
    EXPECT_EQ(run_tool({"help", row.name}).out, asked.out);
    for (const std::string& line : lines_of(asked.out)) EXPECT_LE(line.size(), 150u) << line;
  }
}

// The text has the scratch of an action, its body the required size. One byte less changes nothing
// else: sizes count in steps of 64.
TEST(Check, AWorkspaceThatIsTooSmallIsRefused) {
  std::string plan = run_tool({"show", "dag", "tiny.pipe"}, kFiles).out;
  EXPECT_EQ(run_tool({"check", "plan.pir"}, {{"plan.pir", plan}}).exit_code, 0);
  const std::size_t at = plan.find(" bytes ", plan.find("  buffer %workspace = ")) + 7,
                    end = plan.find('\n', at);
  ASSERT_LT(end, plan.size());
  const std::string needed = plan.substr(at, end - at), has = std::to_string(std::stoi(needed) - 1);
  plan.replace(at, end - at, has);
  const ToolResult checked = run_tool({"check", "plan.pir"}, {{"plan.pir", plan}});
  EXPECT_EQ(checked.exit_code, 1);
  EXPECT_THAT(checked.err, HasSubstr("error P4237: `F.stage0.mb0` has a workspace of `" + has +
                                     "` bytes on role `pp0`, and it needs `" + needed + "`"));
}

// Dropout belongs to training: with a rate of 0 the model that is evaluated is the same one.
TEST(HeldOut, DropoutKeepsEverything) {
  const std::map<std::string, std::string> files = {
      {"drop.pipe",
       "param rate = 0.5\n"
       "mesh one(d: 1)\n"
       "model net() {\n"
       "    input x: tensor[batch, dim: 6], label: i64[batch]\n"
       "    weight w[dim, class: 4] = normal(1.0)\n"
       "    loss cross_entropy(dropout(x, rate) @ w, label)\n"
       "}\n"
       "train drop = net() on one {\n"
       "    data:     synthetic(batch: 8, classes: 4)\n"
       "    held_out: synthetic(batch: 8, classes: 4)\n"
       "    optim:    sgd(lr: 0.0)\n"
       "    steps:    1\n"
       "    place model on d[0]\n"
       "}\n"}};
  const auto losses = [&](const char* rate) {
    const ToolResult run = run_tool({"train", "drop.pipe", "-D", std::string("rate=") + rate,
                                     "--interpret", "--format", "json"},
                                    files);
    EXPECT_EQ(run.exit_code, 0) << run.err;
    const llvm::json::Value value = llvm::cantFail(llvm::json::parse(run.out));
    const llvm::json::Object& told = *value.getAsObject();
    return std::pair(told.getNumber("first_loss").value(), told.getNumber("held_out_loss").value());
  };
  const auto [trained, held_out] = losses("0.5");
  const auto [trained_whole, held_out_whole] = losses("0.0");
  EXPECT_NE(trained, trained_whole);
  EXPECT_EQ(held_out, held_out_whole);
}

// One of two batches has one element that counts, the other four: the mean is over the five.
TEST(HeldOut, AMaskedLossIsTheMeanOverAllThatCounts) {
  const TemporaryFolder folder;
  const std::string text = folder.write("text", "babbbcccc"),
                    out = (folder.path() / "out").string();
  const std::map<std::string, std::string> files = {
      {"masked.pipe",
       "mesh one(d: 1)\n"
       "model net() {\n"
       "    input tokens: i64[batch, seq], targets: i64[batch, seq]\n"
       "    weight table[byte: 256, next: 256] = normal(1.0)\n"
       "    loss cross_entropy(lookup(table, tokens), targets, ignore: 98)\n"
       "}\n"
       "param text = \"\"\n"
       "train masked = net() on one {\n"
       "    data:     bytes(text, batch: 1, seq: 4)\n"
       "    held_out: bytes(text, batch: 1, seq: 4)\n"
       "    optim:    sgd(lr: 0.0)\n"
       "    steps:    1\n"
       "    place model on d[0]\n"
       "}\n"}};
  const ToolResult run = run_tool({"train", "masked.pipe", "-D", "text=" + text, "--interpret",
                                   "--format", "json", "--out", out},
                                  files);
  ASSERT_EQ(run.exit_code, 0) << run.err;
  double sum = 0;
  std::size_t batches = 0;
  for (const std::string& line : lines_of(read_text(out + "/metrics.jsonl").value_or(""))) {
    const llvm::json::Value step = llvm::cantFail(llvm::json::parse(line));
    if (step.getAsObject()->getString("phase") != "evaluation") continue;
    sum +=
        *step.getAsObject()->getObject("microbatches")->getArray("loss.0")->front().getAsNumber();
    ++batches;
  }
  EXPECT_EQ(batches, 2u);
  const llvm::json::Value told = llvm::cantFail(llvm::json::parse(run.out));
  EXPECT_DOUBLE_EQ(told.getAsObject()->getNumber("held_out_loss").value(), sum / 5);
}

// The output of `show dag -o` at each level is a program that `check` reads, accepts, and prints
// again unchanged.
TEST(DagFile, EveryLevelRoundTrips) {
  const TemporaryFolder folder;
  for (const char* level : {"built", "split", "placed", "communicating", "ordered", "planned"}) {
    const std::string path = (folder.path() / (std::string(level) + ".pir")).string();
    const ToolResult shown =
        run_tool({"show", "dag", "tiny.pipe", "--level", level, "-o", path}, kFiles);
    ASSERT_EQ(shown.exit_code, 0) << level << ": " << shown.err;
    EXPECT_EQ(shown.out, "");
    const ToolResult checked = run_tool({"check", path});
    EXPECT_EQ(checked.exit_code, 0) << level << ": " << checked.err;
    EXPECT_EQ(run_tool({"show", "dag", path}).out, read_text(path)) << level;
  }
}

TEST(DagFile, OrdersAreThoseOfTheSource) {
  const TemporaryFolder folder;
  const std::string path = (folder.path() / "tiny.pir").string();
  ASSERT_EQ(run_tool({"show", "dag", "tiny.pipe", "-o", path}, kFiles).exit_code, 0);
  for (const char* kind : {"orders", "grid"}) {
    const ToolResult of_source = run_tool({"show", kind, "tiny.pipe"}, kFiles);
    EXPECT_EQ(of_source.exit_code, 0);
    EXPECT_EQ(run_tool({"show", kind, path}).out, of_source.out);
  }
  EXPECT_EQ(run_tool({"show", "orders", path, "--format", "json"}).out,
            run_tool({"show", "orders", "tiny.pipe", "--format", "json"}, kFiles).out);
}

// `check` verifies the text itself: without any one of its actions the plan is refused.
TEST(DagFile, EveryMissingActionIsFound) {
  const ToolResult shown = run_tool({"show", "dag", "tiny.pipe"}, kFiles);
  ASSERT_EQ(shown.exit_code, 0);
  const std::vector<std::string> lines = lines_of(shown.out);
  std::size_t tried = 0;
  bool in_graph = false, in_role = false;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (!lines[i].starts_with("  ")) {
      in_graph = lines[i].starts_with("graph ");
      in_role = lines[i].starts_with("role ");
      continue;
    }
    if ((!in_graph && !in_role) || lines[i].starts_with("  buffer ")) continue;
    std::vector<std::string> damaged = lines;
    damaged.erase(damaged.begin() + static_cast<std::ptrdiff_t>(i));
    const ToolResult checked =
        run_tool({"check", "damaged.pir"}, {{"damaged.pir", joined(damaged)}});
    EXPECT_EQ(checked.exit_code, 1) << "without line " << i + 1 << ": " << lines[i];
    EXPECT_THAT(checked.err, HasSubstr("error P")) << lines[i];
    ++tried;
  }
  EXPECT_GT(tried, 40u) << shown.out;
}

// After every pass there is something to see, and the passes that `--print-after` knows are those
// that run.
TEST(PrintAfter, AllShowsEveryPass) {
  const ToolResult shown = run_tool({"check", "tiny.pipe", "--print-after", "all"}, kFiles);
  EXPECT_EQ(shown.exit_code, 0);
  std::vector<std::string> passes;
  for (const std::string& line : lines_of(shown.err)) {
    if (line.starts_with("// after ")) passes.push_back(line.substr(9, line.find(' ', 9) - 9));
  }
  EXPECT_THAT(passes, testing::ElementsAre("build", "split", "place", "replicate", "communicate",
                                           "order", "insert_collectives", "offload", "plan"));
  for (const std::string& pass : passes)
    EXPECT_THAT(run_tool({"check", "tiny.pipe", "--print-after", pass}, kFiles).err,
                HasSubstr("// after " + pass))
        << pass;
  const auto option =
      std::find_if(tools::option_rows().begin(), tools::option_rows().end(),
                   [](const auto& row) { return std::string_view(row.name) == "--print-after"; });
  ASSERT_NE(option, tools::option_rows().end());
  EXPECT_THAT(tools::choices_of(*option),
              testing::IsSupersetOf(std::vector<std::string_view>(passes.begin(), passes.end())));
  const std::string table = read_text("passes/README.md").value_or("");
  for (const std::string& pass : passes)
    EXPECT_THAT(table, HasSubstr("| `" + pass + "`: ")) << "the table of passes/README.md";
  EXPECT_THAT(shown.err, HasSubstr("// after offload (unchanged)\n// after plan\n"));
}

// Text cut off anywhere gives diagnostics, never a crash.
TEST(DagFile, TruncatedTextIsADiagnostic) {
  const std::string text = run_tool({"show", "dag", "tiny.pipe"}, kFiles).out;
  for (std::size_t part = 0; part < 8; ++part) {
    const std::string cut = text.substr(0, text.size() * part / 8 + 3);
    const ToolResult checked = run_tool({"check", "cut.pir"}, {{"cut.pir", cut}});
    EXPECT_EQ(checked.exit_code, 1) << part;
    EXPECT_THAT(checked.err, HasSubstr("cut.pir:")) << part;
  }
}

// docs/cli.md section 4: the JSON of orders, for a program with a single partition.
TEST(OrdersJson, HasEveryFieldOfItsSchema) {
  const ToolResult shown =
      run_tool({"show", "orders", "dual_pipe_v", "-D", "p=2", "-D", "m=6", "--format", "json"});
  ASSERT_EQ(shown.exit_code, 0) << shown.err;
  auto parsed = llvm::json::parse(shown.out);
  ASSERT_TRUE(static_cast<bool>(parsed));
  const llvm::json::Object& root = *parsed->getAsObject();
  EXPECT_EQ(root.getInteger("schema"), 1);
  EXPECT_EQ(root.getInteger("ranks"), 2);
  EXPECT_EQ(root.getInteger("stages"), 4);
  EXPECT_EQ(root.getInteger("microbatches"), 6);
  EXPECT_EQ(*root.getArray("placement"), (llvm::json::Array{llvm::json::Array{0, 1, 1, 0}}));
  const llvm::json::Array& orders = *root.getArray("orders");
  ASSERT_EQ(orders.size(), 2u);
  std::map<std::string, int> count;
  std::set<std::int64_t> groups;
  for (const llvm::json::Value& order : orders) {
    std::int64_t last_group = -1;
    for (const llvm::json::Value& value : *order.getAsArray()) {
      const llvm::json::Object& op = *value.getAsObject();
      const std::int64_t stage = *op.getInteger("stage");
      EXPECT_EQ(op.getString("region"), "stage[" + std::to_string(stage) + "]");
      EXPECT_EQ(op.get("copy"), nullptr);
      EXPECT_EQ(op.get("slice"), nullptr);
      EXPECT_EQ(op.get("devices"), nullptr);
      ++count[std::to_string(stage) + "." + std::to_string(*op.getInteger("mb")) +
              op.getString("op")->str()];
      if (const auto group = op.getInteger("group")) {
        EXPECT_TRUE(*group == last_group || *group == last_group + 1)
            << "groups are numbered from 0 per rank";
        last_group = *group;
        groups.insert(*group);
      }
    }
  }
  EXPECT_FALSE(groups.empty());
  // Every instance runs F once, and B once or BI and BW once.
  for (int stage = 0; stage < 4; ++stage) {
    for (int mb = 0; mb < 6; ++mb) {
      const std::string at = std::to_string(stage) + "." + std::to_string(mb);
      EXPECT_EQ(count[at + "F"], 1) << at;
      EXPECT_EQ(count[at + "B"] + count[at + "BI"], 1) << at;
      EXPECT_EQ(count[at + "BI"], count[at + "BW"]) << at;
    }
  }
}

TEST(OrdersJson, CopiesContinueTheMicrobatches) {
  const ToolResult shown =
      run_tool({"show", "orders", "dual_pipe", "-D", "p=4", "-D", "m=16", "--format", "json"});
  ASSERT_EQ(shown.exit_code, 0) << shown.err;
  auto parsed = llvm::json::parse(shown.out);
  ASSERT_TRUE(static_cast<bool>(parsed));
  const llvm::json::Object& root = *parsed->getAsObject();
  const std::int64_t microbatches = *root.getInteger("microbatches");
  const std::size_t copies = root.getArray("placement")->size();
  EXPECT_EQ(copies, 2u);
  std::set<std::int64_t> seen[2];
  for (const llvm::json::Value& order : *root.getArray("orders")) {
    for (const llvm::json::Value& value : *order.getAsArray()) {
      const llvm::json::Object& op = *value.getAsObject();
      const std::int64_t copy = op.getInteger("copy").value_or(0);
      ASSERT_LT(copy, 2);
      seen[copy].insert(*op.getInteger("mb"));
    }
  }
  EXPECT_EQ(*seen[0].begin(), 0);
  EXPECT_EQ(*seen[0].rbegin(), microbatches / 2 - 1);
  EXPECT_EQ(*seen[1].begin(), microbatches / 2);
  EXPECT_EQ(*seen[1].rbegin(), microbatches - 1);
}

// Without a single partition every operation names its devices.
TEST(OrdersJson, WithoutAPartitionOperationsNameDevices) {
  const ToolResult shown =
      run_tool({"show", "orders", "examples/two_towers/two_towers.pipe", "--format", "json"});
  ASSERT_EQ(shown.exit_code, 0) << shown.err;
  auto parsed = llvm::json::parse(shown.out);
  ASSERT_TRUE(static_cast<bool>(parsed));
  const llvm::json::Object& root = *parsed->getAsObject();
  EXPECT_EQ(root.get("stages"), nullptr);
  EXPECT_EQ(root.get("placement"), nullptr);
  std::int64_t rank = 0;
  for (const llvm::json::Value& order : *root.getArray("orders")) {
    EXPECT_FALSE(order.getAsArray()->empty());
    for (const llvm::json::Value& op : *order.getAsArray()) {
      EXPECT_EQ(*op.getAsObject()->getArray("devices"), llvm::json::Array{rank});
      EXPECT_EQ(op.getAsObject()->get("stage"), nullptr);
    }
    ++rank;
  }
  EXPECT_EQ(rank, 2);
}

TEST(Train, KeepsMetricsAndFlightRecords) {
  const TemporaryFolder folder;
  const std::string out = (folder.path() / "new" / "run").string();
  const ToolResult run = run_tool({"train", "tiny.pipe", "--interpret", "--out", out}, kFiles);
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("3 steps in "));
  const std::vector<std::string> metrics = lines_of(read_text(out + "/metrics.jsonl").value_or(""));
  ASSERT_EQ(metrics.size(), 3u);
  for (const std::string& line : metrics) {
    auto parsed = llvm::json::parse(line);
    ASSERT_TRUE(static_cast<bool>(parsed)) << line;
    EXPECT_GT(parsed->getAsObject()->getNumber("loss").value_or(0), 0) << line;
  }
  EXPECT_TRUE(std::filesystem::exists(out + "/flight.0"));
  EXPECT_TRUE(std::filesystem::exists(out + "/flight.1"));
}

// The driver's environment decides how programs are built and where they are kept; the process's
// own is ignored.
TEST(Train, BuildsAsTheEnvironmentSays) {
  const TemporaryFolder folder;
  const std::string cache = (folder.path() / "cache").string();
  const ToolResult built = run_tool({"train", "tiny.pipe", "--steps", "1"}, kFiles,
                                    {{"PIPER_CACHE", cache}, {"HOME", "/proc/nothing"}});
  EXPECT_EQ(built.exit_code, 0) << built.err;
  EXPECT_THAT(built.out, HasSubstr("generated code"));
  std::size_t objects = 0;
  for (const auto& entry : std::filesystem::directory_iterator(cache))
    objects += entry.path().extension() == ".so";
  EXPECT_EQ(objects, 3u);  // of two roles, and the self-check
}

// A message without its own line has the location of the train.
TEST(Train, APlaceForWhatDoesNotBuild) {
  const TemporaryFolder folder;
  const std::string compiler =
      folder.write("killed", "#!/bin/sh\nif [ \"$1\" != --version ]; then kill -KILL $$; fi\n");
  std::filesystem::permissions(compiler, std::filesystem::perms::owner_all);
  const ToolResult run =
      run_tool({"train", "tiny.pipe"}, kFiles,
               {{"CXX", compiler}, {"PIPER_CACHE", (folder.path() / "cache").string()}});
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_THAT(run.err, testing::StartsWith("tiny.pipe:5:7: error P5104: "));
}

TEST(Environment, CacheFolders) {
  const auto folder = [](const std::map<std::string, std::string>& environment) {
    return tools::jit_options(environment).cache_folder;
  };
  EXPECT_EQ(folder({{"PIPER_CACHE", "/a"}, {"XDG_CACHE_HOME", "/b"}, {"HOME", "/c"}}), "/a");
  EXPECT_EQ(folder({{"PIPER_CACHE", ""}, {"XDG_CACHE_HOME", "/b"}, {"HOME", "/c"}}), "/b/piper");
  EXPECT_EQ(folder({{"XDG_CACHE_HOME", ""}, {"HOME", "/c"}}), "/c/.cache/piper");
  EXPECT_EQ(folder({}), "");
  const backend::JitOptions options =
      tools::jit_options({{"CXX", "clang++ -O1"}, {"TMPDIR", "/t"}});
  EXPECT_EQ(options.compiler, "clang++ -O1");
  EXPECT_EQ(options.temporary_folder, "/t");
}

// Every name of the table can be set, and a command that reads none of them does not mention them.
TEST(Environment, KnownVariablesAreNotWarnedOf) {
  const LocationTable locations;
  std::map<std::string, std::string> known, misspelt;
  for (const runtime::OptionRow& row : tools::environment_variables()) {
    known[row.name] = "1";
    misspelt[row.name + std::string("_")] = "1";
  }
  DiagnosticSink sink(locations);
  tools::report_unknown_variables(known, sink);
  EXPECT_TRUE(sink.empty());
  tools::report_unknown_variables(misspelt, sink);
  std::size_t told = 0;
  for (const Diagnostic& diagnostic : sink.sorted())
    told += diagnostic.code == Code::unknown_variable &&
            diagnostic.hint.starts_with("did you mean `PIPER_");
  const auto own = std::count_if(known.begin(), known.end(),
                                 [](const auto& each) { return each.first.starts_with("PIPER_"); });
  EXPECT_EQ(told, static_cast<std::size_t>(own));
  EXPECT_EQ(run_tool({"check", "tiny.pipe"}, kFiles, {{"PIPER_THREAD", "2"}}).err, "");
}

// Two ranks see that the step went wrong, the one its loss, the other its norm; either may be the
// first.
TEST(Train, ALossThatIsNoNumberEndsTheRun) {
  const ToolResult run =
      run_tool({"train", "tiny.pipe", "--interpret", "-D", "rate=1e300"}, kFiles);
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_THAT(run.err,
              testing::ContainsRegex(
                  "tiny.pipe:[57]:[0-9]+: error P6001: rank [01], step 2, .*is nan at step `2`"));
  EXPECT_THAT(run.err, HasSubstr("hint: a smaller learning rate"));
  const ToolResult as_json = run_tool(
      {"train", "tiny.pipe", "--interpret", "-D", "rate=1e300", "--format", "json"}, kFiles);
  EXPECT_EQ(as_json.exit_code, 1);
  EXPECT_THAT(
      as_json.out,
      HasSubstr("{\"schema\":1,\"diagnostics\":[{\"code\":\"P6001\",\"severity\":\"error\""));
}

// With --format json standard output is one object, and messages for the reader go elsewhere.
TEST(Json, RunsPrintNothingElse) {
  const TemporaryFolder folder;
  const auto object = [](const ToolResult& result) {
    EXPECT_EQ(result.exit_code, 0) << result.err;
    auto parsed = llvm::json::parse(result.out);
    EXPECT_TRUE(static_cast<bool>(parsed)) << result.out;
    return parsed ? *parsed->getAsObject() : llvm::json::Object();
  };
  const llvm::json::Object train =
      object(run_tool({"train", "tiny.pipe", "--interpret", "--format", "json"}, kFiles));
  EXPECT_EQ(train.getString("train"), "tiny");
  EXPECT_EQ(train.getInteger("steps"), 3);
  EXPECT_EQ(train.getBoolean("interrupted"), false);
  for (const char* field : {"seconds", "samples_per_second", "first_loss", "last_loss"})
    EXPECT_GT(train.getNumber(field).value_or(0), 0) << field;
  EXPECT_EQ(train.getArray("last_step"), nullptr);
  const llvm::json::Object profiled =
      object(run_tool({"train", "tiny.pipe", "--interpret", "--profile",
                       folder.path() / "costs.json", "--format", "json"},
                      kFiles));
  ASSERT_EQ(profiled.getArray("last_step")->size(), 2u);
  for (const llvm::json::Value& rank : *profiled.getArray("last_step")) {
    double parts = 0;
    for (const char* part : {"products", "attention", "kernels", "communication", "idle"})
      parts += *rank.getAsObject()->getNumber(part);
    EXPECT_NEAR(parts, *rank.getAsObject()->getNumber("seconds"), 1e-6);
  }
  const llvm::json::Object reference = object(
      run_tool({"train", "tiny.pipe", "--interpret", "--reference", "--format", "json"}, kFiles));
  ASSERT_EQ(reference.getArray("reference")->size(), 2u);
  for (const llvm::json::Value& comparison : *reference.getArray("reference")) {
    for (const char* field : {"loss", "gradients", "parameters"})
      EXPECT_LE(*comparison.getAsObject()->getNumber(field),
                *comparison.getAsObject()->getNumber("bound"));
  }
  const llvm::json::Object built = object(
      run_tool({"build", "tiny.pipe", "-o", folder.path().string(), "--format", "json"}, kFiles));
  EXPECT_EQ(built.getArray("files")->size(), 2u);
  EXPECT_TRUE(built.getString("kernels").has_value());
}

// A tree with error nodes is shown as text; as JSON its errors are the one object.
TEST(Json, BrokenTreesPrintTheirErrors) {
  const ToolResult shown =
      run_tool({"show", "ast", "broken.pipe", "--format", "json"}, {{"broken.pipe", "train\n"}});
  EXPECT_EQ(shown.exit_code, 1);
  auto parsed = llvm::json::parse(shown.out);
  ASSERT_TRUE(static_cast<bool>(parsed)) << shown.out;
  EXPECT_NE(parsed->getAsObject()->getArray("diagnostics"), nullptr);
}

/// Trains until Ctrl-C, which comes after the second step.
ToolResult run_interrupted(const std::vector<std::string>& more) {
  const TemporaryFolder folder;
  const std::string metrics = (folder.path() / "metrics.jsonl").string();
  std::signal(SIGINT, SIG_DFL);  // a shell ignores it for background jobs
  std::jthread presses([&](const std::stop_token& stop) {
    while (!stop.stop_requested() && lines_of(read_text(metrics).value_or("")).size() < 2)
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    if (!stop.stop_requested()) std::raise(SIGINT);
  });
  std::vector<std::string> command = {"train",     "tiny.pipe", "--interpret",         "--steps",
                                      "100000000", "--out",     folder.path().string()};
  command.insert(command.end(), more.begin(), more.end());
  ToolResult run = run_tool(command, kFiles);
  presses.request_stop();
  EXPECT_EQ(run.exit_code, 130) << run.err;
  return run;
}

// Ctrl-C ends a run between two steps, with a special exit code.
TEST(Train, StopsAtAStepAfterCtrlC) {
  EXPECT_THAT(run_interrupted({}).out, HasSubstr("stopped after step "));
}

TEST(Json, InterruptedRunsSaySo) {
  const ToolResult run = run_interrupted({"--format", "json"});
  EXPECT_THAT(run.err, HasSubstr("stopped after step "));
  auto parsed = llvm::json::parse(run.out);
  ASSERT_TRUE(static_cast<bool>(parsed)) << run.out;
  const llvm::json::Object& told = *parsed->getAsObject();
  EXPECT_EQ(told.getBoolean("interrupted"), true);
  EXPECT_GE(told.getInteger("steps").value_or(0), 2);
  for (const char* field : {"first_loss", "last_loss"})
    EXPECT_GT(told.getNumber(field).value_or(0), 0) << field;
}

/// A model that writes its element type out is compared in f64 as one that leaves it to the train.

// those need more address space than any limit leaves
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST(Check, WithoutMemoryEndsInOneMessage) {
  const std::string command =
      "ulimit -v 130000; exec '" + test::program_path("piper") + "' check zbv -D p=64 -D m=256";
  const test::ProcessResult result = test::run_process({"/bin/sh", "-c", command});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_EQ(
      result.err,
      "error P6005: the machine has no memory left for this program\n  hint: run it on a machine with more, or make the program smaller\n");
}
#endif

TEST(Build, WritesSourcesPerRole) {
  const TemporaryFolder folder;
  const std::string out = (folder.path() / "sources").string();
  const ToolResult built = run_tool({"build", "tiny.pipe", "-o", out}, kFiles);
  ASSERT_EQ(built.exit_code, 0) << built.err;
  for (const char* role : {"pp0", "pp1"}) {
    const std::string source = read_text(out + "/" + role + ".cpp").value_or("");
    EXPECT_THAT(source, HasSubstr("#include \"runtime/abi.h\"")) << role;
    EXPECT_THAT(built.out, HasSubstr(std::string(role) + ".cpp\n"));
  }
  EXPECT_TRUE(std::filesystem::exists(out + "/runtime/abi.h"));
  EXPECT_TRUE(std::filesystem::exists(out + "/runtime/kernel_math.h"));
  EXPECT_THAT(built.out, HasSubstr(read_text(out + "/kernels.txt").value_or("missing")));
  // Small products are MKL's on every processor, and a library that is not here has no rate.
  const std::string rated = runtime::this_processor().avx512 ? " +[0-9.]+" : " +-";
  for (const auto& [math, library] :
       {std::pair<std::string, std::string>{"builtin", "builtin +[0-9.]+"},
        {"auto", "MKL +[0-9.]+"},
        {"mkl", "MKL +[0-9.]+"},
        {"onednn", "oneDNN" + rated}}) {
    EXPECT_THAT(run_tool({"build", "tiny.pipe", "-o", out}, kFiles, {{"PIPER_MATH", math}}).out,
                testing::ContainsRegex("4 x 6 x 4 nn f32 +[0-9]+ +0\\.[0-9]+  " + library + "\n"))
        << math;
  }
  const ToolResult refused =
      run_tool({"build", "tiny.pipe", "-o", out}, kFiles, {{"PIPER_MATH", "torch"}});
  EXPECT_THAT(refused.err,
              HasSubstr("error P6013: the environment variable `PIPER_MATH` is `torch`\n"));
}

}  // namespace
}  // namespace piper::test
