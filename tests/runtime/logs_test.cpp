// The logs beside metrics.jsonl: metrics.csv and TensorBoard's event files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <set>
#include <sstream>

#include "runtime/crc32c.h"
#include "runtime/launch/csv_log.h"
#include "runtime/launch/event_file.h"
#include "runtime/launch/tensorboard_log.h"
#include "runtime/launch/train.h"
#include "tests/runtime/event_reader.h"
#include "tests/runtime/sample_jobs.h"
#include "tests/support/temporary_folder.h"

namespace piper::runtime {
namespace {

namespace fs = std::filesystem;
using test::ReadEvent;
using test::TemporaryFolder;
using testing::ElementsAre;
using testing::EndsWith;
using testing::StartsWith;

const std::vector<std::string> kNames = {"gpt.loss.0", "gpt.loss.1"};

struct Sample {
  std::vector<double> losses = {2.5, 0.25};
  StepRecord record;
  explicit Sample(std::uint64_t step = 119) {
    record.step = step;
    record.loss = 2.75;
    record.losses = losses;
    record.samples = 4;
    record.gradient_norm = 0.826;
    record.learning_rate = 1.9e-3;
    record.seconds = 0.5;
    record.throughput = {9876, true};
  }
};

std::string read(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

std::set<std::string> names_in(const fs::path& folder) {
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) names.insert(entry.path().filename());
  return names;
}

/// The events of all files of a folder, in the order of the files' names, as TensorBoard reads
/// them.
std::vector<ReadEvent> events_in(const fs::path& folder) {
  std::vector<ReadEvent> events;
  for (const std::string& name : names_in(folder)) {
    std::string error;
    for (ReadEvent& event : test::read_events(read(folder / name), error))
      events.push_back(std::move(event));
    EXPECT_EQ(error, "") << name;
  }
  return events;
}

/// While it lives, no file can grow beyond `bytes`, which acts as a full disk does.
class FullDisk {
 public:
  explicit FullDisk(std::uint64_t bytes) : handler_(signal(SIGXFSZ, SIG_IGN)) {
    getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit small{bytes, before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &small);
  }
  ~FullDisk() {
    setrlimit(RLIMIT_FSIZE, &before_);
    signal(SIGXFSZ, handler_);
  }
  FullDisk(const FullDisk&) = delete;
  FullDisk& operator=(const FullDisk&) = delete;

 private:
  rlimit before_{};
  void (*handler_)(int);
};

TEST(Crc32c, KnownVectors) {
  std::string rising(32, '\0'), falling(32, '\0');
  for (int i = 0; i < 32; ++i) {
    rising[static_cast<std::size_t>(i)] = static_cast<char>(i);
    falling[static_cast<std::size_t>(i)] = static_cast<char>(31 - i);
  }
  // RFC 3720, section B.4.
  EXPECT_EQ(crc32c_of(std::string(32, '\0')), 0x8A9136AAu);
  EXPECT_EQ(crc32c_of(std::string(32, '\xFF')), 0x62A8AB43u);
  EXPECT_EQ(crc32c_of(rising), 0x46DD794Eu);
  EXPECT_EQ(crc32c_of(falling), 0x113FDB5Cu);
  constexpr unsigned char kReadCommand[48] = {
      0x01, 0xC0, 0, 0,    0, 0, 0, 0,    0,    0, 0, 0, 0, 0, 0, 0, 0x14, 0, 0, 0, 0, 0, 4, 0,
      0,    0,    0, 0x14, 0, 0, 0, 0x18, 0x28, 0, 0, 0, 0, 0, 0, 0, 2,    0, 0, 0, 0, 0, 0, 0};
  EXPECT_EQ(crc32c_of({reinterpret_cast<const char*>(kReadCommand), sizeof kReadCommand}),
            0xD9963A56u);
  EXPECT_EQ(crc32c_of("123456789"), 0xE3069283u);
  EXPECT_EQ(crc32c_of(""), 0u);
}

TEST(Crc32c, EqualsItsDefinition) {
  std::string bytes;
  for (std::uint32_t i = 0; i < 200; ++i) {
    EXPECT_EQ(crc32c_of(bytes), test::slow_crc32c(bytes)) << i;
    EXPECT_EQ(crc32c_of(std::string_view(bytes).substr(i / 3)),
              test::slow_crc32c(std::string_view(bytes).substr(i / 3)))
        << i;
    bytes += static_cast<char>(i * 2654435761u >> 24);
  }
}

TEST(EventFile, Framing) {
  const std::string file = event_record(version_event(1.5));
  // The first 12 bytes of every event file that TensorFlow writes.
  EXPECT_EQ(file.substr(0, 12), std::string("\x18\0\0\0\0\0\0\0\xA3\x7F\x4B\x22", 12));
  EXPECT_EQ(file.substr(12, 24), std::string("\x09\0\0\0\0\0\0\xF8\x3F\x1A\x0D"
                                             "brain.Event:2",
                                             24));
  EXPECT_EQ(file.size(), 8u + 4 + 24 + 4);
}

TEST(EventFile, EventsAreReadBack) {
  const Scalar scalars[] = {{"loss", 2.5F}, {"held_out/loss", -1e-30F}, {std::string(300, 'x'), 0}};
  const std::uint64_t far = std::uint64_t{1} << 62;
  const std::string file = event_record(version_event(1.7e9)) + event_record(start_event(2, 301)) +
                           event_record(scalars_event(1.7e9 + 0.25, far, scalars)) +
                           event_record(scalars_event(0, 0, {}));
  std::string error;
  const std::vector<ReadEvent> events = test::read_events(file, error);
  EXPECT_EQ(error, "");
  ASSERT_EQ(events.size(), 4u);
  EXPECT_EQ(events[0].file_version, "brain.Event:2");
  EXPECT_EQ(events[0].wall_time, 1.7e9);
  EXPECT_EQ(events[1].session_status, 1u);
  EXPECT_EQ(events[1].step, 301);
  EXPECT_EQ(events[2].step, static_cast<std::int64_t>(far));
  EXPECT_EQ(events[2].wall_time, 1.7e9 + 0.25);
  EXPECT_EQ(events[2].scalars,
            (std::map<std::string, float>{
                {"loss", 2.5F}, {"held_out/loss", -1e-30F}, {std::string(300, 'x'), 0}}));
  EXPECT_TRUE(events[3].scalars.empty());
  // The reader sees each damaged byte.
  for (std::size_t at = 0; at < file.size(); ++at) {
    std::string damaged = file;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x10);
    test::read_events(damaged, error);
    EXPECT_NE(error, "") << at;
  }
}

TEST(TensorboardLog, AnEventPerStep) {
  const TemporaryFolder folder;
  TensorboardLog log;
  ASSERT_FALSE(log.open(folder.path(), kNames, std::nullopt));
  EXPECT_THAT(fs::path(log.path()).filename().native(),
              testing::MatchesRegex("events.out.tfevents.[0-9]{10}.[-.A-Za-z0-9]+.[0-9]+"));
  Sample sample;
  ASSERT_FALSE(log.write(sample.record));
  // A reader sees each step while the run goes on.
  EXPECT_EQ(events_in(folder.path() / "tensorboard").size(), 2u);
  ASSERT_FALSE(log.write_held_out(120, 2.625));
  sample.record.step = 120;
  sample.record.loss = std::numeric_limits<double>::quiet_NaN();
  sample.record.gradient_norm.reset();
  sample.record.throughput.tokens = false;
  ASSERT_FALSE(log.write(sample.record));
  sample.record.phase = Phase::evaluation;
  ASSERT_FALSE(log.write(sample.record, 121));
  const std::vector<ReadEvent> events = events_in(folder.path() / "tensorboard");
  ASSERT_EQ(events.size(), 4u);
  EXPECT_EQ(events[0].file_version, "brain.Event:2");
  EXPECT_GT(events[0].wall_time, 1.7e9);
  EXPECT_EQ(events[1].step, 120);
  EXPECT_EQ(events[1].scalars, (std::map<std::string, float>{{"loss", 2.75F},
                                                             {"losses/gpt.loss.0", 2.5F},
                                                             {"losses/gpt.loss.1", 0.25F},
                                                             {"lr", 1.9e-3F},
                                                             {"norm", 0.826F},
                                                             {"tokens_per_second", 9876.F}}));
  EXPECT_EQ(events[2].step, 120);
  EXPECT_EQ(events[2].scalars, (std::map<std::string, float>{{"held_out/loss", 2.625F}}));
  EXPECT_EQ(events[3].step, 121);
  EXPECT_TRUE(std::isnan(events[3].scalars.at("loss")));
  EXPECT_FALSE(events[3].scalars.contains("norm"));
  EXPECT_EQ(events[3].scalars.at("samples_per_second"), 9876.F);
}

// TensorBoard reads the files of a folder in the order of their names.
TEST(TensorboardLog, ALaterFileHasALaterName) {
  const TemporaryFolder folder;
  folder.write("tensorboard/events.out.tfevents.4102444800.other-host.1", "");
  folder.write("tensorboard/events.out.tfevents.9999999999.broken-clock.1", "");
  folder.write("tensorboard/events.out.tfevents.word", "");
  folder.write("tensorboard/notes", "");
  for (std::uint64_t after = 3; after < 6; ++after) {
    TensorboardLog log;
    ASSERT_FALSE(log.open(folder.path(), kNames, after));
    EXPECT_THAT(log.path(), testing::HasSubstr("/events.out.tfevents." +
                                               std::to_string(4102444798 + after) + "."));
    std::string error;
    const std::vector<ReadEvent> events = test::read_events(read(log.path()), error);
    ASSERT_EQ(events.size(), 2u);
    EXPECT_EQ(events[1].session_status, 1u);
    EXPECT_EQ(events[1].step, static_cast<std::int64_t>(after + 1));
  }
}

TEST(TensorboardLog, AFolderThatCannotBeMade) {
  const TemporaryFolder folder;
  const std::string path = folder.path() / "tensorboard";
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  TensorboardLog log;
  const auto failure = log.open(folder.path(), kNames, std::nullopt);
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->code, kOutputUnwritable);
  EXPECT_EQ(failure->message,
            "cannot write `" + path + "`: Not a directory; no events would be kept");
}

TEST(CsvLog, ARowPerStepAndEvaluation) {
  const TemporaryFolder folder;
  CsvLog log;
  ASSERT_FALSE(log.open(folder.path(), kNames, "tokens", LogFile::Begin::fresh));
  Sample sample;
  ASSERT_FALSE(log.write(sample.record));
  ASSERT_FALSE(log.write_held_out(120, 2.625));
  sample.record.step = 120;
  sample.record.gradient_norm.reset();
  sample.losses = {std::numeric_limits<double>::quiet_NaN(),
                   -std::numeric_limits<double>::infinity()};
  sample.record.losses = sample.losses;
  sample.record.loss = std::numeric_limits<double>::infinity();
  ASSERT_FALSE(log.write(sample.record));
  sample.record.phase = Phase::evaluation;
  ASSERT_FALSE(log.write(sample.record, 121));
  EXPECT_EQ(
      read(folder.path() / "metrics.csv"),
      "step,loss,losses/gpt.loss.0,losses/gpt.loss.1,norm,lr,seconds,samples,tokens_per_second,held_out_loss\n"
      "120,2.75,2.5,0.25,0.826,0.0019,0.5,4,9876,\n"
      "120,,,,,,,,,2.625\n"
      "121,inf,nan,-inf,,0.0019,0.5,4,9876,\n");
}

TEST(CsvLog, NamesAreQuoted) {
  const std::vector<std::string> names = {"a,b", "say \"x\""};
  EXPECT_EQ(
      csv_header(names, "samples"),
      "step,loss,\"losses/a,b\",\"losses/say \"\"x\"\"\",norm,lr,seconds,samples,samples_per_second,held_out_loss\n");
}

TEST(CsvLog, GoesOnAfterTheRowsOfTheRun) {
  const TemporaryFolder folder;
  const fs::path path = folder.path() / "metrics.csv";
  for (const std::uint64_t step : {0, 1}) {
    CsvLog log;
    ASSERT_FALSE(log.open(folder.path(), kNames, "tokens", LogFile::Begin::after_those));
    ASSERT_FALSE(log.write(Sample(step).record));
  }
  const std::string rows =
      "1,2.75,2.5,0.25,0.826,0.0019,0.5,4,9876,\n"
      "2,2.75,2.5,0.25,0.826,0.0019,0.5,4,9876,\n";
  EXPECT_EQ(read(path), csv_header(kNames, "tokens") + rows);
  // Without a run before, what lies there is not written over.
  EXPECT_TRUE(CsvLog().open(folder.path(), kNames, "tokens", LogFile::Begin::fresh));
  // Other columns are refused.
  const std::vector<std::string> renamed = {"mlp.loss.0"};
  const auto failure = CsvLog().open(folder.path(), renamed, "tokens", LogFile::Begin::after_those);
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->message, "cannot write `" + path.native() +
                                  "`: it has other columns than this run; no rows would be kept");
  EXPECT_EQ(failure->hint, "give it another name, or give `--out` another folder");
  EXPECT_EQ(read(path), csv_header(kNames, "tokens") + rows);
}

TEST(CsvLog, OnlyAPlainFileIsOpened) {
  const TemporaryFolder folder;
  const std::string path = folder.path() / "metrics.csv";
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  CsvLog log;
  const auto failure = log.open(folder.path(), kNames, "tokens", LogFile::Begin::after_those);
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->message,
            "cannot write `" + path + "`: it is no plain file; no rows would be kept");
}

TEST(Logs, AFullDiskLeavesNoPartOfARecord) {
  const TemporaryFolder folder;
  CsvLog rows;
  ASSERT_FALSE(rows.open(folder.path(), kNames, "tokens", LogFile::Begin::fresh));
  TensorboardLog events;
  ASSERT_FALSE(events.open(folder.path(), kNames, std::nullopt));
  struct Row {
    StepLog* log;
    std::string path, lost_from, lost_held_out;
  };
  for (const Row& row :
       {Row{&rows, folder.path() / "metrics.csv", "the rows from step `120` on are lost",
            "the held-out loss after step `120` and later rows are lost"},
        Row{&events, events.path(), "the events from step `120` on are lost",
            "the held-out loss after step `120` and later events are lost"}}) {
    ASSERT_FALSE(row.log->write(Sample(0).record));
    const std::string before = read(row.path);
    std::optional<Failure> step, held_out;
    {
      const FullDisk disk(before.size() + 10);
      step = row.log->write(Sample().record);
      held_out = row.log->write_held_out(120, 1e-100);
    }
    ASSERT_TRUE(step && held_out);
    EXPECT_EQ(step->code, kOutputUnwritable);
    EXPECT_EQ(step->message, "cannot write `" + row.path + "`: File too large; " + row.lost_from);
    EXPECT_EQ(held_out->message,
              "cannot write `" + row.path + "`: File too large; " + row.lost_held_out);
    EXPECT_EQ(read(row.path), before);
    EXPECT_FALSE(row.log->write(Sample().record));
  }
}

TEST(Logs, RepeatedStepsLeaveTheTable) {
  const TemporaryFolder folder;
  const fs::path path = folder.path() / "metrics.csv";
  const std::string header = csv_header(kNames, "tokens");
  struct Row {
    std::string before, after;
  };
  for (const Row& row :
       {Row{header, header}, Row{header + "1,2\n2,3\n3,4\n", header + "1,2\n2,3\n"},
        Row{header + "2,3\n2,,4\n3,,5\n", header + "2,3\n2,,4\n"},
        // A killed run leaves half a row, or half a header.
        Row{header + "1,2\n2,3", header + "1,2\n"}, Row{"step,loss,lo", ""},
        // No rows of ours.
        Row{header + "x,2\n,1\n-1,2\n1\n99999999999999999999,1\n1,2\n", header + "1,2\n"},
        Row{"day,weight\n9,80\n", "day,weight\n9,80\n"}, Row{"", ""}}) {
    folder.write("metrics.csv", row.before);
    ASSERT_FALSE(trim_metrics(folder.path(), 2));
    EXPECT_EQ(read(path), row.after) << row.before;
  }
  EXPECT_EQ(names_in(folder.path()), (std::set<std::string>{"metrics.csv"}));
  fs::remove(path);
  ASSERT_FALSE(trim_metrics(folder.path(), 2));
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  const auto failure = trim_metrics(folder.path(), 2);
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->message,
            "cannot write `" + path.native() +
                "`: it is no plain file; the metrics of the run before are unchanged");
}

TEST(Logs, ThoseOfAnEarlierRunAreKeptTogether) {
  const TemporaryFolder folder;
  const std::string out = folder.path();
  const auto keep = [&] {
    std::string names;
    EXPECT_FALSE(keep_earlier_metrics(out, names));
    return names;
  };
  folder.write("metrics.csv", "one");
  EXPECT_EQ(keep(), out + "/metrics.1.csv");
  folder.write("metrics.jsonl", "two");
  folder.write("tensorboard/events.out.tfevents.1.h.1", "two");
  EXPECT_EQ(keep(), out + "/metrics.2.jsonl and " + out + "/tensorboard.2");
  folder.write("metrics.jsonl", "three");
  folder.write("metrics.csv", "three");
  folder.write("tensorboard/events.out.tfevents.1.h.1", "three");
  EXPECT_EQ(keep(),
            out + "/metrics.3.jsonl, " + out + "/metrics.3.csv and " + out + "/tensorboard.3");
  // An empty table has nothing to keep; a folder without events is somebody else's.
  folder.write("metrics.csv", "");
  folder.write("tensorboard/notes", "mine");
  EXPECT_EQ(keep(), "");
  EXPECT_EQ(
      names_in(folder.path()),
      (std::set<std::string>{"metrics.1.csv", "metrics.2.jsonl", "metrics.3.csv", "metrics.3.jsonl",
                             "tensorboard", "tensorboard.2", "tensorboard.3"}));
}

std::vector<std::string> lines_of(const fs::path& path) {
  std::ifstream in(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

TEST(Logs, ATrainWritesAllOfThem) {
  const TemporaryFolder folder;
  HandJob job(2);
  add_pipeline(job);
  add_evaluation(job);
  job.tables().evaluate_every = 4;
  const auto executor = create(job.finish());
  ASSERT_TRUE(executor);
  TrainOptions options{
      .steps = 6, .out_folder = folder.path(), .log_csv = true, .log_tensorboard = true};
  ASSERT_TRUE(train(*executor, job.tables(), options).trained);
  options.steps = 1;  // goes on
  ASSERT_TRUE(train(*executor, job.tables(), options).trained);
  const std::vector<std::string> rows = lines_of(folder.path() / "metrics.csv");
  ASSERT_EQ(rows.size(), 1u + 6 + 2 + 1 + 1);
  EXPECT_THAT(rows[0], StartsWith("step,loss,losses/square,norm,"));
  std::vector<std::string> steps;
  for (std::size_t i = 1; i < rows.size(); ++i) {
    const bool held_out = rows[i].ends_with(",,1");
    EXPECT_TRUE(held_out || rows[i].ends_with(",")) << rows[i];
    steps.push_back(rows[i].substr(0, rows[i].find(',')) + (held_out ? " held out" : ""));
  }
  EXPECT_THAT(steps, ElementsAre("1", "2", "3", "4", "4 held out", "5", "6", "6 held out", "7",
                                 "7 held out"));
  EXPECT_EQ(lines_of(folder.path() / "metrics.jsonl").size(), rows.size() - 1);
  // The events have the same rows; a file begins with its version, and the second one with START.
  EXPECT_EQ(names_in(folder.path() / "tensorboard").size(), 2u);
  steps.clear();
  for (const ReadEvent& event : events_in(folder.path() / "tensorboard")) {
    std::string text = std::to_string(event.step);
    if (!event.file_version.empty()) text = "version";
    if (event.session_status) text += " start";
    if (event.scalars.contains("held_out/loss")) text += " held out";
    steps.push_back(text);
  }
  EXPECT_THAT(steps, ElementsAre("version", "1", "2", "3", "4", "4 held out", "5", "6",
                                 "6 held out", "version", "7 start", "7", "7 held out"));
}

TEST(Logs, AFailureOfOneLosesNoRecordOfTheOthers) {
  const TemporaryFolder folder;
  HandJob job(2);
  add_pipeline(job);
  const auto executor = create(job.finish());
  ASSERT_TRUE(executor);
  TrainResult result;
  {
    // The lines of metrics.jsonl are the longest records: that file is the first to be full.
    const FullDisk disk(420);
    result = train(*executor, job.tables(),
                   {.out_folder = folder.path(), .log_csv = true, .log_tensorboard = true});
  }
  ASSERT_TRUE(result.failure);
  EXPECT_EQ(result.failure->code, kOutputUnwritable);
  EXPECT_FALSE(result.trained);
  EXPECT_THAT(result.failure->message, EndsWith("on are lost"));
  const std::size_t rows = lines_of(folder.path() / "metrics.csv").size() - 1,
                    lines = lines_of(folder.path() / "metrics.jsonl").size();
  EXPECT_EQ(rows, lines + 1);
}

}  // namespace
}  // namespace piper::runtime
