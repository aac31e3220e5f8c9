// A train in several processes: `-n`, launchers' variables, the bits of one process, ends by a
// signal, by a death, and before step 1 by a difference. Every command has a limit of time.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/tools/shell.h"

namespace piper::test {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

/// A train whose mesh and lines of strategy are given.
std::string program(const std::string& uses, const std::string& mesh, const std::string& lines,
                    const std::string& steps = "3") {
  return "use std.models.mlp\n" + uses + "mesh cluster(" + mesh +
         ")\ntrain net = mlp(layers: 8, features: 8, hidden: 12, classes: 4) on cluster {\n"
         "    data:     synthetic(batch: 16, classes: 4)\n"
         "    held_out: synthetic(batch: 16, classes: 4)\n"
         "    optim:    adamw(lr: 1e-2, clip: 1.0)\n"
         "    evaluate: every(2)\n"
         "    steps:    " +
         steps + "\n" + lines + "}\n";
}

std::string zero_program(const std::string& steps = "3") {
  return program("use std.schedules.one_f_one_b\nuse std.schedules.zero\n", "pp: 2, dp: 2",
                 "    one_f_one_b(pp, 4)\n    zero(dp, 3)\n", steps);
}

struct SeveralCase {
  const char* name;
  std::string program;
  std::vector<int> processes;
};

// Checkpoints, losses and norms of every step, and held-out losses are those of one process.
TEST(RunProcesses, HaveTheBitsOfOne) {
  const SeveralCase cases[] = {
      {"1F1B with ZeRO-3", zero_program(), {2, 3, 4}},
      {"ZB-H1", program("use std.schedules.zb_h1\n", "pp: 4", "    zb_h1(pp, 4)\n"), {2}},
      {"DualPipe",
       program("use std.schedules.dual_pipe\n", "pp: 4", "    dual_pipe(pp, 8)\n"),
       {4}},
      {"replicas and ZeRO-1",
       program("use std.schedules.gpipe\nuse std.schedules.zero\n", "pp: 2, dp: 2",
               "    gpipe(pp, 2)\n    zero(dp, 1)\n"),
       {2}},
  };
  // Times differ from run to run.
  const std::string numbers =
      "numbers() { sed 's/\"seconds\":.*\"peak_bytes\"/\"peak_bytes\"/' $1/metrics.jsonl; }\n";
  for (const SeveralCase& several : cases) {
    const TemporaryFolder folder;
    folder.write("net.pipe", several.program);
    std::string script =
        numbers +
        "timeout 60 \"$0\" train net.pipe --interpret --out one >/dev/null 2>&1 || exit 3\n"
        "numbers one > one.numbers\n";
    for (const int processes : several.processes) {
      const std::string n = std::to_string(processes);
      script += "timeout 60 \"$0\" train net.pipe --interpret -n " + n + " --out of" + n +
                " || exit 4\n"
                "diff -r one/step-3 of" +
                n +
                "/step-3 >&2 || exit 5\n"
                "numbers of" +
                n + " | diff one.numbers - >&2 || exit 6\n";
    }
    const ProcessResult run = shell(folder, script);
    EXPECT_EQ(run.exit_code, 0) << several.name << "\n" << run.out << run.err;
    EXPECT_THAT(run.out, HasSubstr(" processes over UCX\n")) << several.name;
  }
}

// A checkpoint that another number of processes goes on from, and a trace.
TEST(RunProcesses, GoOnFromACheckpoint) {
  const TemporaryFolder folder;
  folder.write("net.pipe", zero_program("4"));
  const ProcessResult run = shell(
      folder,
      "timeout 60 \"$0\" train net.pipe --interpret --out whole >/dev/null 2>&1 || exit 3\n"
      "timeout 60 \"$0\" train net.pipe --interpret -n 2 --steps 2 --out part >/dev/null 2>&1 || exit 4\n"
      "timeout 60 \"$0\" train net.pipe --interpret -n 4 --resume part --trace trace.json >/dev/null 2>&1 || exit 5\n"
      "[ -s trace.json ] && diff -r whole/step-4 part/step-4");
  EXPECT_EQ(run.exit_code, 0) << run.out << run.err;
}

// Each process builds only the roles of its ranks, and processes that start together build each
// once: one program of four replicas, and the check of the compiler.
TEST(RunProcesses, BuildEachProgramOnce) {
  const TemporaryFolder folder;
  folder.write("net.pipe",
               "use std.models.mlp\nmesh four(dp: 4)\n"
               "train net = mlp(layers: 2, features: 4, hidden: 6, classes: 3) on four {\n"
               "    data:  synthetic(batch: 8, classes: 3)\n    optim: sgd(lr: 0.1)\n    steps: 1\n"
               "    replicate model over dp\n}\n");
  folder.write("compiler",
               "#!/bin/sh\n[ \"$1\" = --version ] || echo built >> builds\nexec g++ \"$@\"\n");
  const ProcessResult run =
      shell(folder,
            "chmod +x compiler; CXX=$PWD/compiler PIPER_CACHE=$PWD/cache timeout 60 \"$0\" train "
            "net.pipe -n 4 >&2 || exit 3; exec cat builds");
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(run.out, "built\nbuilt\n");
}

/// Starts a long train in processes, and waits until its first step is kept. `$run` is the process
/// that was started, `$children` are those that it has started.
std::string start(const std::string& processes) {
  return "timeout -k 1 60 \"$0\" train net.pipe --interpret -n " + processes +
         " --out out >run.out 2>run.err & limit=$!\n"
         "until [ -s out/metrics.jsonl ]; do kill -0 $limit || exit 9; sleep 0.02; done\n"
         "run=$(pgrep -P $limit); children=$(pgrep -P $run)\n";
}

/// The rest of the script: the exit code of the run, what it printed, and whether all are gone.
constexpr const char* kEnd =
    "wait $limit; code=$?; cat run.out; grep -v ^step run.err >&2\n"
    "for child in $children; do kill -0 $child 2>/dev/null && exit 8; done; exit $code\n";

TEST(RunProcesses, AKilledOneEndsTheRunWithItsName) {
  for (const char* const victim : {"1", "2"}) {  // the first process, and another
    const TemporaryFolder folder;
    folder.write("net.pipe", zero_program("1000000"));
    const ProcessResult run = shell(
        folder, start("2") + "kill -KILL $(echo $children | cut -d' ' -f" + victim + ")\n" + kEnd);
    EXPECT_EQ(run.exit_code, 1) << run.err;
    const std::string process = victim == std::string("1") ? "process 0 \\(ranks 0 to 1\\)"
                                                           : "process 1 \\(ranks 2 to 3\\)";
    EXPECT_THAT(run.err, ContainsRegex("error P6023: " + process +
                                       " \\(process [0-9]+\\) was ended by SIGKILL"));
    // The others say where they waited.
    EXPECT_THAT(run.err, ContainsRegex("net\\.pipe:[0-9]+:[0-9]+: error P6023: rank [0-3], [^`]*"
                                       "`[a-z_]+\\.[^`]*`: .* is gone"));
  }
}

TEST(RunProcesses, ASignalEndsAllWithACheckpoint) {
  const TemporaryFolder folder;
  folder.write("net.pipe", zero_program("1000000"));
  const ProcessResult run = shell(folder, start("4") + "kill -INT $run\n" + kEnd);
  EXPECT_EQ(run.exit_code, 130) << run.err;
  EXPECT_THAT(run.out, ContainsRegex("stopped after step [0-9]+\ncheckpoint out/step-[0-9]+: "));
}

// A run goes on without readers, and keeps its files.
TEST(RunProcesses, OutliveTheirReader) {
  const TemporaryFolder folder;
  folder.write("net.pipe", zero_program());
  const ProcessResult run = shell(
      folder,
      "{ sleep 0.2; timeout 60 \"$0\" train net.pipe --interpret -n 2 --out out 2>&1; } | true\n"
      "[ -d out/step-3 ]");
  EXPECT_EQ(run.exit_code, 0) << run.out << run.err;
}

// A killed supervisor leaves no process behind.
TEST(RunProcesses, NoneOutlivesItsStarter) {
  const TemporaryFolder folder;
  folder.write("net.pipe", zero_program("1000000"));
  const ProcessResult run =
      shell(folder, start("2") +
                        "kill -KILL $run; wait $limit\n"
                        "for i in $(seq 100); do\n"
                        "  alive=; for child in $children; do\n"
                        "    grep -qs '^State:[^Z]*$' /proc/$child/status && alive=$child; done\n"
                        "  [ -z \"$alive\" ] && exit 0; sleep 0.1\n"
                        "done; exit 8\n");
  EXPECT_EQ(run.exit_code, 0) << run.err;
}

/// Two processes by hand, with the files of two folders.
ProcessResult by_hand(const TemporaryFolder& folder, const std::string& first,
                      const std::string& second) {
  return shell(folder,
               "export WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 PIPER_RUN=$$\n"
               "export MASTER_PORT=$(python3 -c 'import socket; s = socket.socket(); "
               "s.bind((\"127.0.0.1\", 0)); print(s.getsockname()[1])')\n"
               "(cd a; RANK=0 LOCAL_RANK=0 timeout 60 \"$0\" train net.pipe --interpret " +
                   first +
                   ") & first=$!\n"
                   "(cd b; RANK=1 LOCAL_RANK=1 timeout 60 \"$0\" train net.pipe --interpret " +
                   second +
                   " >out 2>&1); other=$?\nwait $first; code=$?; cat b/out; "
                   "[ $other = $code ] && exit $code\n");
}

TEST(RunProcesses, ADifferenceIsNamedBeforeStepOne) {
  struct Difference {
    std::string second;  // the program of the other process
    std::string options;
    const char* message;
  };
  std::string changed = zero_program();
  changed.replace(changed.find("lr: 1e-2"), 8, "lr: 2e-2");
  const Difference differences[] = {
      {changed, "",
       "net.pipe:8:1: error P6022: process 1 (ranks 2 to 3) has another `net.pipe` than rank 0: line 8 is "
       "`    optim:    adamw(lr: 2e-2, clip: 1.0)`, and `    optim:    adamw(lr: 1e-2, clip: 1.0)` at rank 0"},
      {zero_program(), "--steps 2",
       "error P6022: process 1 (ranks 2 to 3) has other steps than rank 0: `2` and `3`"},
      {zero_program(), "--threads 2",
       "error P6022: process 1 (ranks 2 to 3) has other threads of a rank than rank 0: `2` and `1`"},
  };
  for (const Difference& difference : differences) {
    const TemporaryFolder folder;
    std::filesystem::create_directory(folder.path() / "a");
    std::filesystem::create_directory(folder.path() / "b");
    folder.write("a/net.pipe", zero_program());
    folder.write("b/net.pipe", difference.second);
    const ProcessResult run = by_hand(folder, "", difference.options);
    EXPECT_EQ(run.exit_code, 1) << run.out << run.err;
    EXPECT_THAT(run.err, HasSubstr(difference.message));  // rank 0
    EXPECT_THAT(run.out, HasSubstr(difference.message));
    EXPECT_THAT(run.err + run.out, Not(HasSubstr("step 1")));
  }
}

// Two machines: network namespaces with names of their own, without shared memory between them.
TEST(RunProcesses, TwoHostsHaveTheBitsOfOne) {
  const TemporaryFolder folder;
  folder.write("net.pipe", zero_program());
  const ProcessResult run = shell(
      folder,
      "n=pp$$; ip netns add ${n}a 2>/dev/null || exit 77\n"
      "trap 'ip netns del ${n}a; ip netns del ${n}b' EXIT\n"
      "ip netns add ${n}b && ip link add ${n}x type veth peer name ${n}y || exit 77\n"
      "ip link set ${n}x netns ${n}a && ip link set ${n}y netns ${n}b || exit 77\n"
      "ip -n ${n}a addr add 10.77.0.1/24 dev ${n}x && ip -n ${n}a link set ${n}x up || exit 77\n"
      "ip -n ${n}b addr add 10.77.0.2/24 dev ${n}y && ip -n ${n}b link set ${n}y up || exit 77\n"
      "ip -n ${n}a link set lo up; ip -n ${n}b link set lo up\n"
      "export WORLD_SIZE=2 MASTER_ADDR=10.77.0.1 MASTER_PORT=29500 LOCAL_RANK=0 PIPER_RUN=$n\n"
      "export PIPER_RUN_TOKEN=$(head -c 32 /dev/urandom | base64)\n"
      "on() { ip netns exec $n$1 unshare -u -i sh -c \"hostname node$1; exec timeout 50 \\\"\\$0\\\" "
      "train net.pipe --interpret --out hosts\" \"$0\"; }\n"
      "RANK=1 on b >other.out 2>&1 & other=$!\n"
      "RANK=0 on a; code=$?; wait $other || { cat other.out; exit 5; }\n"
      "[ $code = 0 ] || exit $code; unset WORLD_SIZE LOCAL_RANK\n"
      "timeout 50 \"$0\" train net.pipe --interpret --out one >/dev/null 2>&1\n"
      "diff -r one/step-3 hosts/step-3");
  if (run.exit_code == 77) GTEST_SKIP() << "this machine allows no network namespaces";
  EXPECT_EQ(run.exit_code, 0) << run.out << run.err;
}

TEST(RunProcesses, AMissingUcxIsSaidOnce) {
  const TemporaryFolder folder;
  folder.write("net.pipe", zero_program());
  folder.write("libucp.so.0", "no library");
  const ProcessResult run =
      shell(folder, "LD_LIBRARY_PATH=$PWD exec timeout 60 \"$0\" train net.pipe --interpret -n 2");
  EXPECT_EQ(run.exit_code, 1);
  const std::string code =
      "error P6025: UCX, which carries messages between processes on CPUs, is not here: ";
  EXPECT_THAT(run.err, HasSubstr(code));
  EXPECT_EQ(run.err.find(code), run.err.rfind(code)) << run.err;
}

TEST(RunProcesses, ANetworkThatUcxDoesNotReachIsRefused) {
  const TemporaryFolder folder;
  folder.write("net.pipe", zero_program());
  const ProcessResult run =
      shell(folder, "UCX_TLS=self exec timeout 60 \"$0\" train net.pipe --interpret -n 2");
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_THAT(run.err, HasSubstr("error P6026: "));
}

// On GPUs a process has one rank.
TEST(RunProcesses, OnGpusEachRankIsAProcess) {
  const TemporaryFolder folder;
  folder.write("net.pipe", zero_program());
  const ProcessResult run = shell(folder, "exec \"$0\" train net.pipe -n 2 --device cuda");
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_THAT(run.err, HasSubstr("error P6020: `-n 2` does not start a process for each of the "
                                 "mesh's devices: 4\n"));
  EXPECT_THAT(run.err, HasSubstr("hint: write `-n 4`; "));
  EXPECT_THAT(run.err, Not(HasSubstr("RANK and")));
}

TEST(RunProcesses, ADryRunSaysWhoGetsWhat) {
  const TemporaryFolder folder;
  folder.write("net.pipe", zero_program());
  const ProcessResult run = shell(folder, "exec \"$0\" train net.pipe -n 2 --dry-run --out out");
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out,
              HasSubstr("train net: 4 ranks, 2 processes on this machine, which meet at 127.0.0.1, "
                        "at a port that is free then\n"
                        "rank  process  device  at         role  state"));
  EXPECT_THAT(run.out, ContainsRegex("\n3     1        cpu     pp=1 dp=1  pp1 .*  1, 2\n$"));
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "out"));
  const ProcessResult hand = shell(
      folder,
      "RANK=0 LOCAL_RANK=0 WORLD_SIZE=4 MASTER_ADDR=node1 exec \"$0\" train net.pipe --dry-run");
  EXPECT_THAT(hand.out, HasSubstr("4 processes of RANK and WORLD_SIZE, which meet at node1:29500"));
}

}  // namespace
}  // namespace piper::test
