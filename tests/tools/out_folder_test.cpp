// The folder of a run: one run at a time, and the files of an earlier one.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <set>
#include <string>
#include <tuple>

#include "tests/support/golden.h"
#include "tests/tools/shell.h"

namespace piper::test {
namespace {

using testing::HasSubstr;
using testing::Not;

/// The names in a folder; the step of a checkpoint, which depends on when a run was stopped, is N.
std::set<std::string> files_in(const std::filesystem::path& folder) {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string name = entry.path().filename();
    names.insert(name.starts_with("step-") ? "step-N" : name);
  }
  return names;
}

/// Starts a long train in the background and waits until its first step is kept; `$first` is its
/// process.
constexpr const char* kFirst =
    "\"$0\" train long.pipe --interpret --out out >first.out 2>first.err & first=$!\n"
    "until [ -s out/metrics.jsonl ]; do kill -0 $first || exit 9; sleep 0.02; done\n";

/// A folder with a train of three steps and one that goes on for hours, on two devices each.
void write_trains(const TemporaryFolder& folder) {
  std::string text = kTiny;
  folder.write("tiny.pipe", text);
  text.replace(text.find("steps: 3"), 8, "steps: 100000000");
  folder.write("long.pipe", text);
}

// Neither run loses anything: the second one gets the name of the first, and the first one goes on.
TEST(OutFolder, ASecondRunIsRefused) {
  const TemporaryFolder folder;
  write_trains(folder);
  const ProcessResult run = shell(
      folder,
      std::string(kFirst) +
          "\"$0\" train tiny.pipe --interpret --out out; code=$?\n"
          "lines=$(wc -l <out/metrics.jsonl); sleep 0.3; [ $(wc -l <out/metrics.jsonl) -gt $lines ] || exit 8\n"
          "kill -TERM $first; wait $first; echo first $first $? >&2; exit $code");
  EXPECT_EQ(run.exit_code, 1) << run.err;
  EXPECT_THAT(
      run.err,
      testing::ContainsRegex(
          "error P6113: another run writes to `out`: process [0-9]+ on .+ since 20..-..-.. ..:..:.. UTC"));
  const std::size_t at = run.err.find("process ") + 8;
  EXPECT_THAT(run.err,
              HasSubstr("first " + run.err.substr(at, run.err.find(' ', at) - at) + " 130\n"));
  EXPECT_EQ(files_in(folder.path() / "out"),
            (std::set<std::string>{"flight.0", "flight.1", "metrics.jsonl", "step-N"}));
}

// A lock is the kernel's: the remains of a killed run block no other.
TEST(OutFolder, AKilledRunHoldsNobodyUp) {
  const TemporaryFolder folder;
  write_trains(folder);
  const ProcessResult run = shell(
      folder,
      std::string(kFirst) +
          "kill -KILL $first; wait $first; exec \"$0\" train tiny.pipe --interpret --out out");
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out,
              HasSubstr("the metrics of the run before are kept in out/metrics.1.jsonl\n"));
  EXPECT_EQ(files_in(folder.path() / "out"),
            (std::set<std::string>{"flight.0", "flight.1", "metrics.1.jsonl", "metrics.jsonl",
                                   "step-N"}));
}

// A later run has separate files, and no measurement of an earlier one is lost.
TEST(OutFolder, AnEarlierRunIsKept) {
  const TemporaryFolder folder;
  write_trains(folder);
  std::filesystem::create_directory(folder.path() / "out");
  folder.write("out/flight.7", "of a wider run");
  folder.write("out/metrics.jsonl", "first\n");
  folder.write("out/notes.txt", "mine");
  const ProcessResult run = shell(folder, "exec \"$0\" train tiny.pipe --interpret --out out");
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(read_text(folder.path() / "out/metrics.1.jsonl"), "first\n");
  EXPECT_THAT(read_text(folder.path() / "out/metrics.jsonl").value_or(""), Not(HasSubstr("first")));
  EXPECT_EQ(files_in(folder.path() / "out"),
            (std::set<std::string>{"flight.0", "flight.1", "metrics.1.jsonl", "metrics.jsonl",
                                   "notes.txt", "step-N"}));
  // A comparison measures nothing, so it keeps existing files.
  const ProcessResult compared =
      shell(folder, "exec \"$0\" train tiny.pipe --interpret --reference --out out");
  EXPECT_EQ(compared.exit_code, 0) << compared.err;
  EXPECT_EQ(files_in(folder.path() / "out"),
            (std::set<std::string>{"flight.0", "flight.1", "metrics.1.jsonl", "metrics.jsonl",
                                   "notes.txt", "step-N"}));
}

// Nothing in the folder that is no file is waited for.
TEST(OutFolder, NonFilesAreRefused) {
  for (const auto& [name, told] :
       {std::pair{"metrics.jsonl",
                  "error P6012: cannot write `out/metrics.jsonl`: it is no plain file"},
        std::pair{"run.lock",
                  "error P6102: `out/run.lock` cannot be locked: it is no plain file"}}) {
    const TemporaryFolder folder;
    write_trains(folder);
    const ProcessResult run =
        shell(folder, "mkdir out; mkfifo out/" + std::string(name) +
                          "; exec \"$0\" train tiny.pipe --interpret --out out");
    EXPECT_EQ(run.exit_code, 1) << name;
    EXPECT_THAT(run.err, HasSubstr(told));
  }
  const TemporaryFolder folder;
  const ProcessResult shown =
      shell(folder, "mkdir out; mkfifo out/metrics.jsonl; exec \"$0\" show metrics out");
  EXPECT_EQ(shown.exit_code, 1);
  EXPECT_THAT(shown.err,
              HasSubstr("the metrics `out/metrics.jsonl` cannot be read: it is no plain file"));
}

// A link in the folder would lead the files of a run elsewhere; the folder itself may be one.
TEST(OutFolder, LinksInItAreNotFollowed) {
  for (const auto& [name, further, error] :
       {std::tuple{"run.lock", "", "error P6102: `out/run.lock` cannot be locked: it is a link"},
        std::tuple{"tensorboard", " --log tensorboard",
                   "error P6012: cannot write `out/tensorboard`: it is a link"}}) {
    SCOPED_TRACE(name);
    const TemporaryFolder folder;
    write_trains(folder);
    const ProcessResult run =
        shell(folder, "mkdir out mine; echo text >mine/file; ln -s ../mine" +
                          std::string(name == std::string("run.lock") ? "/file" : "") + " out/" +
                          name + "; \"$0\" train tiny.pipe --interpret --out out" + further +
                          "; code=$?; ls mine >&2; cat mine/file >&2; exit $code");
    EXPECT_EQ(run.exit_code, 1);
    EXPECT_THAT(run.err, HasSubstr(error));
    EXPECT_THAT(run.err, testing::EndsWith("file\ntext\n"));
  }
  const TemporaryFolder folder;
  write_trains(folder);
  const ProcessResult run =
      shell(folder,
            "mkdir disk elsewhere; echo text >elsewhere/file; ln -s disk out\n"
            "ln -s ../elsewhere disk/.step-3.partial\n"
            "exec \"$0\" train tiny.pipe --interpret --out out");
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_TRUE(std::filesystem::exists(folder.path() / "disk/step-3/manifest.json"));
  EXPECT_EQ(files_in(folder.path() / "elsewhere"), std::set<std::string>{"file"});
}

}  // namespace
}  // namespace piper::test
