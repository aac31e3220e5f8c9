// The processes that a run starts on its machine: shell commands here, which see their place in the
// run as variables.
#include "runtime/launch/child_processes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>

#include "runtime/launch/interrupt.h"
#include "runtime/launch/merged_output.h"

namespace piper::runtime {
namespace {

struct Ended {
  ChildrenEnd end;
  std::string out, err;
};

Ended run_shell(const std::string& script, std::uint32_t world,
                const Interrupt* interrupt = nullptr,
                std::chrono::milliseconds end_within = std::chrono::seconds(10)) {
  Ended ended;
  ended.end = run_children({.command = {"/bin/sh", "-c", script},
                            .environment = {{"PATH", "/usr/bin:/bin"}},
                            .world = world,
                            .ranks = world,
                            .interrupt = interrupt,
                            .out = [&](std::string_view text) { ended.out += text; },
                            .err = [&](std::string_view text) { ended.err += text; },
                            .end_within = end_within});
  return ended;
}

TEST(ChildProcesses, HaveTheirPlaceInTheRun) {
  const Ended ended = run_shell(
      "[ $RANK -gt 0 ] || echo result; "
      "echo $RANK of $WORLD_SIZE at $MASTER_ADDR, local $LOCAL_RANK, port ${MASTER_PORT:+given} >&2",
      3);
  EXPECT_EQ(ended.end.code, 0);
  EXPECT_FALSE(ended.end.failure);
  EXPECT_EQ(ended.out, "result\n");
  EXPECT_THAT(ended.err, testing::HasSubstr("0 of 3 at 127.0.0.1, local 0, port given\n"));
  EXPECT_THAT(ended.err, testing::HasSubstr("rank 2: 2 of 3 at 127.0.0.1, local 2, port given\n"));
}

TEST(ChildProcesses, OneRunHasOneNamePortAndToken) {
  for (const char* const variable : {"PIPER_RUN", "MASTER_PORT", "PIPER_RUN_TOKEN"}) {
    const std::string script = std::string("echo $") + variable;
    const Ended ended = run_shell(script, 2);
    EXPECT_EQ(ended.err, "rank 1: " + ended.out);
    EXPECT_GT(ended.out.size(), 1u) << variable;
    EXPECT_NE(ended.out, run_shell(script, 1).out);
  }
}

/// A token of the starter's environment is that of another run.
TEST(ChildProcesses, TheTokenIsNew) {
  std::string out;
  const Environment environment{{"PIPER_RUN_TOKEN", "old"}, {"PIPER_RUN_TOKEN_FILE", "old"}};
  run_children({.command = {"/bin/sh", "-c", "echo ${#PIPER_RUN_TOKEN} $PIPER_RUN_TOKEN_FILE"},
                .environment = environment,
                .world = 1,
                .ranks = 1,
                .out = [&](std::string_view text) { out += text; },
                .err = [](std::string_view) {}});
  EXPECT_EQ(out, "64\n");
}

TEST(ChildProcesses, TheFirstThatFailsGivesTheExitCode) {
  const Ended ended = run_shell("[ $RANK = 1 ] && exit 7; sleep 0.2; exit 3", 3);
  EXPECT_EQ(ended.end.code, 7);
  EXPECT_FALSE(ended.end.failure);
}

TEST(ChildProcesses, AKilledOneIsNamed) {
  const Ended ended = run_shell("[ $RANK = 2 ] && kill -KILL $$; sleep 0.2; exit 1", 3);
  EXPECT_EQ(ended.end.code, 1);
  ASSERT_TRUE(ended.end.failure);
  EXPECT_EQ(ended.end.failure->code, kProcessLost);
  EXPECT_THAT(ended.end.failure->message,
              testing::MatchesRegex("rank 2 \\(process [0-9]+\\) was ended by SIGKILL"));
}

/// A signal reaches each once, although they are in groups of their own.
TEST(ChildProcesses, ASignalIsPassedOn) {
  const Interrupt interrupt;
  raise(SIGTERM);
  const Ended ended = run_shell(
      "trap 'echo interrupted >&2; exit 130' INT; while :; do sleep 0.05; done", 2, &interrupt);
  EXPECT_EQ(ended.end.code, 130);
  EXPECT_FALSE(ended.end.failure);
}

constexpr std::chrono::milliseconds kSoon(100);

/// One that does not end after the death of another is killed, and is not the cause.
TEST(ChildProcesses, OneThatStaysIsNotBlamed) {
  const Ended failed = run_shell("[ $RANK = 1 ] && exit 7; sleep 60", 2, nullptr, kSoon);
  EXPECT_EQ(failed.end.code, 7);
  EXPECT_FALSE(failed.end.failure);
  const Ended killed = run_shell("[ $RANK = 1 ] && kill -KILL $$; sleep 60", 2, nullptr, kSoon);
  ASSERT_TRUE(killed.end.failure);
  EXPECT_THAT(killed.end.failure->message, testing::HasSubstr("rank 1 (process "));
}

/// A stopped process does not end by itself: it is killed as soon as another has ended.
TEST(ChildProcesses, AStoppedOneIsNotWaitedFor) {
  const auto began = std::chrono::steady_clock::now();
  const Ended ended = run_shell("[ $RANK = 1 ] && { sleep 0.3; exit 7; }; kill -STOP $$; sleep 60",
                                3, nullptr, std::chrono::seconds(30));
  EXPECT_EQ(ended.end.code, 7);
  EXPECT_FALSE(ended.end.failure);
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(25));
}

/// After a signal a process has the time that its checkpoint takes, also if another has ended.
TEST(ChildProcesses, ASignalIsNoDeath) {
  const Interrupt interrupt;
  const Ended ended = run_shell(
      "[ $RANK = 1 ] && { trap 'exit 130' INT; while :; do sleep 0.05; done; }\n"
      "trap 'sleep 1; echo kept >&2; exit 130' INT\n"
      "sleep 0.3; kill -TERM $PPID; while :; do sleep 0.05; done",
      2, &interrupt, kSoon);
  EXPECT_EQ(ended.end.code, 130);
  EXPECT_FALSE(ended.end.failure);
  EXPECT_EQ(ended.err, "kept\n");
}

TEST(ChildProcesses, AMissingProgramIsAnExitCode) {
  std::string err;
  const ChildrenEnd end = run_children({.command = {"/nowhere/piper"},
                                        .environment = {},
                                        .world = 2,
                                        .ranks = 2,
                                        .out = [](std::string_view) {},
                                        .err = [&](std::string_view text) { err += text; }});
  EXPECT_EQ(end.code, 127);
}

TEST(MergedOutput, PrintsEqualLinesOnce) {
  std::string text;
  MergedOutput merged({"", "rank 1: ", "rank 2: "},
                      [&](std::string_view written) { text += written; });
  merged.add(1, "error: a\n  hint");
  merged.add(0, "error: a\n");
  merged.add(2, "error: a\nerror: a\n");
  merged.add(1, ": b\n");
  merged.add(0, "  hint: b\nother");
  merged.end(0);
  EXPECT_EQ(text, "rank 1: error: a\nrank 2: error: a\nrank 1:   hint: b\nother\n");
}

}  // namespace
}  // namespace piper::runtime
