#include "runtime/launch/metrics.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <limits>
#include <set>

#include "runtime/trace/flight.h"
#include "tests/runtime/sample_jobs.h"
#include "tests/support/golden.h"
#include "tests/support/temporary_folder.h"

namespace piper::runtime {
namespace {

const std::vector<std::string> kNames = {"gpt.loss.0"};
const char* const kMemory = "42MiB";

struct Sample {
  std::vector<double> losses = {2.5};
  std::vector<std::vector<double>> sums = {{3.5, 1.5}};
  std::vector<double> counts = {2};
  StepRecord record;
  Sample() {
    record.step = 119;
    record.local_step = 19;
    record.steps = 300;
    record.loss = 2.5;
    record.losses = losses;
    record.microbatch_sums = sums;
    record.counts = counts;
    record.samples = 4;
    record.gradient_norm = 0.826;
    record.learning_rate = 1.9e-3;
    record.seconds = 0.5;
    record.throughput = {9876, true};
  }
};

TEST(Metrics, OneObjectPerStep) {
  Sample sample;
  const std::vector<std::uint64_t> bytes = {1024, 2048};
  EXPECT_EQ(
      metrics_json(sample.record, kNames, bytes),
      R"({"schema":1,"phase":"training","step":120,"loss":2.5,"losses":{"gpt.loss.0":2.5},"microbatches":{"gpt.loss.0":[3.5,1.5]},"counts":{"gpt.loss.0":2},"samples":4,)"
      R"("norm":0.826,"lr":0.0019,"seconds":0.5,"tokens_per_second":9876,"peak_bytes":[1024,2048]})");
  sample.record.skipped = true;
  sample.record.gradient_norm = std::numeric_limits<double>::infinity();
  EXPECT_NE(metrics_json(sample.record, kNames, bytes)
                .find(R"("norm":null,"lr":0.0019,"skipped":true,"seconds":0.5)"),
            std::string::npos);
  sample.record.skipped = false;
  sample.record.phase = Phase::evaluation;
  sample.record.gradient_norm.reset();
  sample.losses[0] = sample.record.loss = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(
      metrics_json(sample.record, kNames, {}),
      R"({"schema":1,"phase":"evaluation","after":0,"step":120,"loss":null,"losses":{"gpt.loss.0":null},"microbatches":{"gpt.loss.0":[3.5,1.5]},"counts":{"gpt.loss.0":2},"samples":4,)"
      R"("seconds":0.5,"tokens_per_second":9876,"peak_bytes":[]})");
}

TEST(Metrics, TheLineOfProgress) {
  Sample sample;
  EXPECT_EQ(ProgressLine::text(sample.record, 9876, kMemory, 115),
            "step 120/400  loss 2.5000  norm 0.826  lr 1.90e-03  9.9 k tokens/s  42MiB  left 1:55");
  EXPECT_EQ(
      ProgressLine::text(sample.record, 123, kMemory, 7322),
      "step 120/400  loss 2.5000  norm 0.826  lr 1.90e-03  123 tokens/s  42MiB  left 2:02:02");
  sample.record.throughput.tokens = false;  // features of a sample are no tokens
  EXPECT_EQ(ProgressLine::text(sample.record, 123, kMemory, 0),
            "step 120/400  loss 2.5000  norm 0.826  lr 1.90e-03  123 samples/s  42MiB  left 0:00");
  EXPECT_NE(metrics_json(sample.record, kNames, {}).find(R"("samples_per_second":9876,)"),
            std::string::npos);
  sample.record.throughput.tokens = true;
  EXPECT_EQ(ProgressLine::text(sample.record, 123, "", 0),
            "step 120/400  loss 2.5000  norm 0.826  lr 1.90e-03  123 tokens/s  left 0:00");
}

TEST(Metrics, TheLineOfASkippedStep) {
  Sample sample;
  sample.record.skipped = true;
  EXPECT_EQ(ProgressLine::text(sample.record, 123, "", 0),
            "step 120/400  loss 2.5000  norm 0.826, skipped  lr 1.90e-03  123 tokens/s  left 0:00");
}

TEST(Metrics, ANarrowLineLeavesOutWholeFields) {
  Sample sample;
  const std::string whole = ProgressLine::text(sample.record, 9876, kMemory, 115);
  EXPECT_EQ(ProgressLine::text(sample.record, 9876, kMemory, 115, whole.size()), whole);
  EXPECT_EQ(ProgressLine::text(sample.record, 9876, kMemory, 115, whole.size() - 1),
            "step 120/400  loss 2.5000  norm 0.826  lr 1.90e-03  9.9 k tokens/s  left 1:55");
  EXPECT_EQ(ProgressLine::text(sample.record, 9876, kMemory, 115, 59),
            "step 120/400  loss 2.5000  9.9 k tokens/s  left 1:55");
  EXPECT_EQ(ProgressLine::text(sample.record, 9876, kMemory, 115, 40),
            "step 120/400  loss 2.5000  left 1:55");
  EXPECT_EQ(ProgressLine::text(sample.record, 9876, kMemory, 115, 3), "step 120/400");
}

TEST(Metrics, ATerminalsLineIsRewritten) {
  Sample sample;
  std::string out;
  unsigned columns = 30;
  ProgressLine line([&](const std::string& text) { out += text; }, [&] { return columns; },
                    kMemory);
  const auto start = ProgressLine::Clock::now();
  line.show(sample.record, start);
  line.show(sample.record, start + std::chrono::milliseconds(10));  // too soon
  columns = 14;
  sample.record.local_step = 299;
  sample.record.step = 399;
  line.show(sample.record, start + std::chrono::milliseconds(20));  // the last one is always shown
  line.finish();
  EXPECT_EQ(out, "\rstep 120/400  loss 2.5000\x1b[K\rstep 400/400\x1b[K\n");
}

TEST(Metrics, ElsewhereALineNowAndThen) {
  Sample sample;
  int lines = 0;
  ProgressLine line([&](const std::string& text) { lines += text.back() == '\n'; }, {}, kMemory);
  const auto start = ProgressLine::Clock::now();
  for (int i = 0; i < 100; ++i)
    line.show(sample.record, start + std::chrono::milliseconds(100 * i));
  line.finish();
  EXPECT_EQ(lines, 2);
}

TEST(Metrics, AFolderOfTheRun) {
  const test::TemporaryFolder folder;
  const std::string out = folder.path() / "a" / "b";
  std::filesystem::create_directories(out);
  HandJob job(2);
  add_pipeline(job);
  ExecutorOptions options;
  options.out_folder = out;
  auto executor = create(job.finish(), options);
  MetricsFile file;
  ASSERT_FALSE(file.open(out, {"square"}, executor->arena_bytes()));
  EXPECT_EQ(
      executor->run(Phase::training, 3, [&](const StepRecord& step) { return file.write(step); })
          .ended,
      Ended::finished);
  std::ifstream in(out + "/metrics.jsonl");
  std::string line;
  int lines = 0;
  while (std::getline(in, line))
    EXPECT_EQ(line.find("{\"schema\":1,\"phase\":\"training\",\"step\":" + std::to_string(++lines)),
              0u);
  EXPECT_EQ(lines, 3);
  // The flight records stay readable after the run.
  const auto record = read_flight(flight_path(out, 1));
  ASSERT_TRUE(record);
  EXPECT_EQ(record->rank, 1u);
  EXPECT_EQ(record->step, 2u);
  EXPECT_EQ(record->ended[0], 3u * (kMicrobatches + 1));
  EXPECT_EQ(record->ended[1], 3u * kMicrobatches);
  EXPECT_EQ(record->events, 3u * (kMicrobatches + 1));
  EXPECT_GE(record->ring[1].end_ns, record->ring[1].begin_ns);
  EXPECT_GE(record->ring[1].begin_ns, record->ring[0].end_ns);
  EXPECT_STREQ(record->hash, "0123456789abcdef");
  EXPECT_FALSE(read_flight(out + "/metrics.jsonl"));
}

// A record is never cut while another process has it mapped, which would end that process.
TEST(Metrics, ARecordIsAFileOfItsOwn) {
  const test::TemporaryFolder folder;
  const std::string path = flight_path(folder.path(), 0);
  FlightFile first, second;
  ASSERT_FALSE(first.open(path, 0));
  first.record()->step = 7;
  ASSERT_FALSE(second.open(path, 0));
  second.record()->step = 1;
  EXPECT_EQ(first.record()->step, 7u);
  EXPECT_EQ(read_flight(path)->step, 1u);
  for (const char* name : {"flight.12", "flight.", "flight.1x", "metrics.jsonl"})
    folder.write(name, "");
  ASSERT_FALSE(remove_flights(folder.path()));
  std::set<std::string> left;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path()))
    left.insert(entry.path().filename());
  EXPECT_EQ(left, (std::set<std::string>{"flight.", "flight.1x", "metrics.jsonl"}));
}

TEST(Metrics, ThoseOfAnEarlierRunAreKept) {
  const test::TemporaryFolder folder;
  const auto kept = [&] {
    std::string name;
    EXPECT_FALSE(keep_earlier_metrics(folder.path(), name));
    EXPECT_FALSE(std::filesystem::exists(folder.path() / "metrics.jsonl"));
    return name;
  };
  EXPECT_EQ(kept(), "");
  folder.write("metrics.jsonl", "");
  EXPECT_EQ(kept(), "") << "there is nothing to keep";
  folder.write("metrics.jsonl", "one");
  EXPECT_EQ(kept(), folder.path() / "metrics.1.jsonl");
  folder.write("metrics.jsonl", "two");
  EXPECT_EQ(kept(), folder.path() / "metrics.2.jsonl");
  EXPECT_EQ(std::filesystem::file_size(folder.path() / "metrics.1.jsonl"), 3u);
  folder.write("metrics.jsonl", "three");
  MetricsFile file;
  ASSERT_TRUE(file.open(folder.path(), kNames, {})) << "what is there is not written over";
  EXPECT_EQ(std::filesystem::file_size(folder.path() / "metrics.jsonl"), 5u);
}

TEST(Metrics, NonFilesAreRefused) {
  const test::TemporaryFolder folder;
  const std::string path = folder.path() / "metrics.jsonl";
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  std::string name;
  const auto failure = keep_earlier_metrics(folder.path(), name);
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->message,
            "cannot write `" + path + "`: it is no plain file; no metrics would be kept");
}

/// A run that goes on keeps the lines of the steps before it, in one piece.
TEST(Metrics, LaterStepsAreTrimmed) {
  const auto training = [](int step) {
    return R"({"schema":1,"phase":"training","step":)" + std::to_string(step) + ",\"loss\":1}\n";
  };
  const auto held_out = [](int after, int step) {
    return R"({"schema":1,"phase":"evaluation","step":)" + std::to_string(step) +
           ",\"after\":" + std::to_string(after) + "}\n";
  };
  const std::string begin = training(1) + training(2) + held_out(2, 1) + held_out(2, 7),
                    end = training(3) + held_out(3, 1) + training(4);
  struct Row {
    const char* name;
    std::string before;
    std::uint64_t steps;
    std::string after;
  };
  for (const Row& row :
       {Row{"later steps", begin + end, 2, begin}, Row{"none", begin + end, 4, begin + end},
        Row{"all", begin + end, 0, ""}, Row{"an empty file", "", 3, ""},
        Row{"half a line", begin + R"({"schema":1,"phase":"training","st)", 2, begin},
        Row{"a line without its end", begin + R"({"phase":"training","step":1})", 2, begin},
        Row{"lines of something else", "notes\n" + begin + "{}\n[1]\n{\"step\":-1}\n\n", 2, begin},
        // A run before it went on from step 1, too.
        Row{"steps again", training(1) + training(2) + training(2), 1, training(1)}}) {
    SCOPED_TRACE(row.name);
    const test::TemporaryFolder folder;
    folder.write("metrics.jsonl", row.before);
    folder.write(".metrics.partial",
                 "of a run that was killed, and longer than what is kept of this one");
    ASSERT_FALSE(trim_metrics(folder.path(), row.steps));
    EXPECT_EQ(test::read_text(folder.path() / "metrics.jsonl"), row.after);
    EXPECT_FALSE(std::filesystem::exists(folder.path() / ".metrics.partial"));
  }
  const test::TemporaryFolder folder;
  EXPECT_FALSE(trim_metrics(folder.path(), 3)) << "there are no metrics";
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

/// Nothing else is waited for, and nothing outside of the folder is written.
TEST(Metrics, OnlyAFileIsTrimmed) {
  const test::TemporaryFolder folder, other;
  const std::string path = folder.path() / "metrics.jsonl", mine = other.write("mine", "text");
  for (const int kind : {0, 1, 2}) {
    if (kind == 0) {
      ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
    } else if (kind == 1) {
      std::filesystem::create_directory(path);
    } else {
      std::filesystem::create_symlink(mine, path);
    }
    const auto failure = trim_metrics(folder.path(), 3);
    ASSERT_TRUE(failure);
    EXPECT_EQ(failure->code, kOutputUnwritable);
    EXPECT_EQ(failure->message,
              "cannot write `" + path +
                  "`: it is no plain file; the metrics of the run before are unchanged");
    std::filesystem::remove(path);
  }
  folder.write("metrics.jsonl", "");
  std::filesystem::create_symlink(mine, folder.path() / ".metrics.partial");
  EXPECT_FALSE(trim_metrics(folder.path(), 3));
  EXPECT_EQ(test::read_text(mine), "text");
}

TEST(Metrics, AFolderThatCannotBeMade) {
  const test::TemporaryFolder folder;
  const std::string in_the_way = folder.write("file", "x");
  MetricsFile file;
  const auto failure = file.open(in_the_way + "/out", kNames, {});
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->code, kOutputUnwritable);
  EXPECT_EQ(failure->message,
            "cannot write `" + in_the_way + "/out`: Not a directory; no metrics would be kept");
}

TEST(Metrics, AFullDiskSaysWhatIsLost) {
  // A limit on the size of files acts as a full disk does.
  const test::TemporaryFolder folder;
  MetricsFile file;
  ASSERT_FALSE(file.open(folder.path(), kNames, {}));
  const Sample sample;
  ASSERT_FALSE(file.write(sample.record));
  const auto whole = std::filesystem::file_size(folder.path() / "metrics.jsonl");
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  const auto handler = signal(SIGXFSZ, SIG_IGN);
  const rlimit small{whole + 100, before.rlim_max};
  setrlimit(RLIMIT_FSIZE, &small);
  const auto failure = file.write(sample.record);
  setrlimit(RLIMIT_FSIZE, &before);
  signal(SIGXFSZ, handler);
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->code, kOutputUnwritable);
  EXPECT_EQ(failure->message, "cannot write `" + (folder.path() / "metrics.jsonl").native() +
                                  "`: File too large; the metrics from step `120` on are lost");
  EXPECT_EQ(std::filesystem::file_size(folder.path() / "metrics.jsonl"), whole)
      << "half a line is left";
}

}  // namespace
}  // namespace piper::runtime
