// Processes of a run that end, stop or cannot be reached: real ones, whose limits are short. Each
// end is one message in every process that is left, within the limit, and leaves nothing behind.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/support/random_cases.h"
#include "tests/tools/shell.h"

namespace piper::test {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

/// Four ranks, a pipeline of two stages with two replicas, for many steps.
std::string long_program(const std::string& rate = "1e-2") {
  return "use std.models.mlp\nuse std.schedules.one_f_one_b\nuse std.schedules.zero\n"
         "mesh cluster(pp: 2, dp: 2)\n"
         "train net = mlp(layers: 8, features: 8, hidden: 12, classes: 4) on cluster {\n"
         "    data:  synthetic(batch: 16, classes: 4)\n"
         "    optim: sgd(lr: " +
         rate +
         ")\n    steps: 1000000\n"
         "    one_f_one_b(pp, 4)\n    zero(dp, 1)\n}\n";
}

constexpr const char* kLimits = "export PIPER_HEARTBEAT_SECONDS=0.2 PIPER_SILENCE_SECONDS=4\n";

/// Starts a train in processes, and waits until it has made a step. `$run` is the process that was
/// started, `$children` are those that it has started.
std::string start(const std::string& processes) {
  return std::string(kLimits) +
         "mkdir tmp; export TMPDIR=$PWD/tmp\n"
         "timeout -k 1 60 \"$0\" train net.pipe --interpret -n " +
         processes +
         " --out out >run.out 2>run.err & limit=$!\n"
         "until [ -s out/metrics.jsonl ]; do kill -0 $limit || exit 9; sleep 0.02; done\n"
         "run=$(pgrep -P $limit); children=$(pgrep -P $run)\n"
         "victim() { echo $children | cut -d' ' -f$1; }\n";
}

/// The rest of the script: the run ends; no process, no shared memory and no temporary file of it is
/// left. The script prints the output of the run, and has its exit code.
constexpr const char* kEnd =
    "wait $limit; code=$?; cat run.out; grep -v ^step run.err >&2\n"
    "for child in $children; do kill -0 $child 2>/dev/null && exit 8; done\n"
    "for child in $children; do [ -z \"$(ipcs -mp | awk -v c=$child '$3 == c')\" ] || exit 6; done\n"
    "[ -z \"$(ls tmp)\" ] || { ls tmp >&2; exit 5; }; exit $code\n";

struct Fault {
  const char* name;
  const char* act;
  const char* message;  // of the processes that are left
};

TEST(FailingProcesses, ALostProcessIsNamedByAllOthers) {
  const Fault faults[] = {
      {"killed", "kill -KILL $(victim 3)\n",
       "rank 2 \\(process [0-9]+ on [^ ]+\\) is gone: its connection was closed"},
      {"crashed", "kill -SEGV $(victim 3)\n",
       "rank 2 \\(process [0-9]+ on [^ ]+\\) is gone: its connection was closed"},
      {"stopped", "kill -STOP $(victim 3)\n",
       "rank 2 \\(process [0-9]+ on [^ ]+\\) does not answer: nothing has come from it for 4 "
       "seconds"},
      {"rank 0 killed", "kill -KILL $(victim 1)\n",
       "rank 0 \\(process [0-9]+ on [^ ]+\\) is gone: its connection was closed"},
      {"rank 0 stopped", "kill -STOP $(victim 1)\n",
       "rank 0 \\(process [0-9]+ on [^ ]+\\) does not answer: nothing has come from it for 4 "
       "seconds"},
  };
  for (const Fault& fault : faults) {
    SCOPED_TRACE(fault.name);
    const TemporaryFolder folder;
    folder.write("net.pipe", long_program());
    const ProcessResult run = shell(folder, start("4") + fault.act + kEnd);
    EXPECT_EQ(run.exit_code, 1) << run.err;
    const std::string lost = fault.message;
    const std::string rank = lost.substr(5, 1);
    // Its rank, step, action with microbatch and line, and the lost peer.
    EXPECT_THAT(run.err, ContainsRegex("net\\.pipe:[0-9]+:[0-9]+: error P6023: rank [0-3], step "
                                       "[0-9]+, `[^`]+`: " +
                                       lost));
    // The last action of every rank, that of the lost one included.
    for (const char* const other : {"0", "1", "2", "3"})
      EXPECT_THAT(run.err, ContainsRegex("  rank " + std::string(other) +
                                         "( \\(process [0-9]+ on [^ ]+\\))?: step [0-9]+, "
                                         "`[^`]+` ended last"));
    for (const char* const other : {"1", "2", "3"}) {
      if (other == rank) continue;
      EXPECT_THAT(run.err, ContainsRegex("rank " + std::string(other) + ": [^\n]*error P6023: "));
    }
  }
}

/// Processes that end or stop at any time, from the start on: the run ends, with a message. With
/// --cases=200 it is a stress test.
TEST(FailingProcesses, RandomKills) {
  for_each_case(4, [](Random& random) {
    const std::string signal = random.chance(0.7) ? "KILL" : "STOP";
    const std::string victim = std::to_string(1 + random.below(4));
    const std::string wait = "0." + std::to_string(random.below(10));
    SCOPED_TRACE(signal + " of " + victim + " after " + wait);
    const TemporaryFolder folder;
    folder.write("net.pipe", long_program());
    const ProcessResult run = shell(
        folder, std::string(kLimits) +
                    "mkdir tmp; export TMPDIR=$PWD/tmp PIPER_MEET_SECONDS=5\n"
                    "timeout -k 1 60 \"$0\" train net.pipe --interpret -n 4 >run.out 2>run.err & "
                    "limit=$!\n"
                    "until run=$(pgrep -P $limit) && children=$(pgrep -P $run) &&\n"
                    "  [ $(echo $children | wc -w) = 4 ]; do sleep 0.02; done\n"
                    "sleep " +
                    wait + "; kill -" + signal + " $(echo $children | cut -d' ' -f" + victim +
                    ")\n" + kEnd);
    EXPECT_EQ(run.exit_code, 1) << run.err;
    EXPECT_THAT(run.err, HasSubstr("error P60"));
  });
}

/// All processes of a run are killed at once: their records say where they stood.
TEST(FailingProcesses, RecordsOfADeadRunAreExplained) {
  const TemporaryFolder folder;
  folder.write("net.pipe", long_program());
  const ProcessResult run =
      shell(folder, start("2") +
                        "kill -STOP $(victim 2); sleep 0.5; kill -KILL $children; wait $limit\n"
                        "exec \"$0\" show stuck net.pipe --from out\n");
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("rank  step  ended last"));
  EXPECT_THAT(run.out, ContainsRegex("\n +3 +[0-9]+  [A-Za-z]"));
  EXPECT_THAT(run.out, ContainsRegex("rank [0-3]: `[^`]+`[^\n]* is the action "
                                     "for which the others wait\n  rank [0-3]: `"));
  const ProcessResult other =
      shell(folder, "mkdir -p out; exec \"$0\" show stuck net.pipe --from out --format json");
  EXPECT_EQ(other.exit_code, 0) << other.err;
  EXPECT_THAT(other.out, HasSubstr("\"held_up_by\":{\"action\":"));
  const ProcessResult changed =
      shell(folder, "PIPER_THREADS=2 exec \"$0\" show stuck net.pipe --from out");
  EXPECT_EQ(changed.exit_code, 1);
  EXPECT_THAT(changed.err, HasSubstr("error P6029: `out` has no flight record of `net`: those that "
                                     "are there are of another program"));
}

TEST(FailingProcesses, AValueThatIsNoNumberEndsAll) {
  const TemporaryFolder folder;
  folder.write("net.pipe", long_program("1e30"));
  const ProcessResult run =
      shell(folder, std::string(kLimits) +
                        "exec timeout 60 \"$0\" train net.pipe --interpret -n 4 --out out");
  EXPECT_EQ(run.exit_code, 1) << run.err;
  // All processes end with the message of the one that found it; equal lines are printed once.
  EXPECT_THAT(run.err, ContainsRegex("error P6001: [^\n]*step [0-9]+"));
  EXPECT_THAT(run.err, Not(HasSubstr("P6023")));
}

/// A shell command with a port: `$port` is free, `$taken` has a listener until the end.
std::string ports() {
  return std::string(kLimits) +
         "cat >listen.py <<'E'\nimport socket, sys, time\n"
         "s = socket.socket(); s.bind(('127.0.0.1', 0)); s.listen()\n"
         "f = socket.socket(); f.bind(('127.0.0.1', 0))\n"
         "print(s.getsockname()[1], f.getsockname()[1], flush=True); f.close()\n"
         "time.sleep(60)\nE\n"
         "python3 listen.py >ports & listener=$!; trap 'kill $listener' EXIT\n"
         "until [ -s ports ]; do sleep 0.02; done; read taken port <ports\n"
         "export WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 LOCAL_RANK=0 PIPER_RUN=$$\n"
         "train=\"timeout 60 $0 train net.pipe --interpret\"\n";
}

TEST(FailingProcesses, APortInUseAndAMissingPeerAreNamed) {
  const TemporaryFolder folder;
  folder.write("net.pipe", long_program());
  const ProcessResult taken = shell(folder, ports() + "RANK=0 MASTER_PORT=$taken $train; exit $?");
  EXPECT_EQ(taken.exit_code, 1) << taken.err;
  EXPECT_THAT(taken.err, ContainsRegex("error P6021: rank 0 cannot listen at `127.0.0.1` on port "
                                       "`[0-9]+`: another process has it"));
  const ProcessResult missing =
      shell(folder, ports() + "PIPER_MEET_SECONDS=1 RANK=0 MASTER_PORT=$port $train; exit $?");
  EXPECT_EQ(missing.exit_code, 1) << missing.err;
  EXPECT_THAT(missing.err, ContainsRegex("error P6021: after `1` seconds process 1 of `2` has not "
                                         "connected to port `[0-9]+`"));
}

/// A stranger at the port is refused with a warning, whatever its token; the run goes on.
TEST(FailingProcesses, TokensOfARun) {
  const TemporaryFolder folder;
  std::string program = long_program();
  program.replace(program.find("1000000"), 7, "3");
  folder.write("net.pipe", program);
  folder.write("token", std::string(40, 't') + "\n");
  const std::string script =
      ports() +
      "export MASTER_PORT=$port PIPER_MEET_SECONDS=20\n"
      "chmod 600 token\n"
      "(RANK=0 PIPER_RUN_TOKEN_FILE=token $train >first 2>&1; echo $? >>first) & first=$!\n"
      "RANK=1 $train >stranger 2>&1; [ $? = 1 ] || exit 4\n"
      "RANK=1 PIPER_RUN_TOKEN=$(cat token) $train >second 2>&1; code=$?\n"
      "wait $first; cat first second; cat stranger >&2; exit $code\n";
  const ProcessResult run = shell(folder, script);
  EXPECT_EQ(run.exit_code, 0) << run.out << run.err;
  EXPECT_THAT(run.err, HasSubstr("error P6021: rank 0 did not accept the proof of this process: it "
                                 "has another token, or none"));
  EXPECT_THAT(run.out, HasSubstr("warning P6041: refused a connection from 127.0.0.1:"));
  EXPECT_THAT(run.out, Not(HasSubstr("error")));

  const ProcessResult readable =
      shell(folder,
            "chmod 644 token; WORLD_SIZE=2 RANK=0 LOCAL_RANK=0 MASTER_ADDR=127.0.0.1 "
            "PIPER_RUN_TOKEN_FILE=token exec timeout 60 \"$0\" train net.pipe --interpret");
  EXPECT_EQ(readable.exit_code, 1);
  EXPECT_THAT(readable.err,
              HasSubstr("error P6028: other users may read or change the file `token`"));
  const ProcessResult without = shell(folder,
                                      "WORLD_SIZE=2 RANK=1 LOCAL_RANK=0 MASTER_ADDR=192.0.2.1 "
                                      "exec timeout 60 \"$0\" train net.pipe --interpret");
  EXPECT_EQ(without.exit_code, 1);
  EXPECT_THAT(without.err, HasSubstr("error P6027: the processes of the run meet at `192.0.2.1`"));
  EXPECT_THAT(without.err, HasSubstr("head -c 32 /dev/urandom"));
}

/// The token of `-n` is in no command line, and every run has another one.
TEST(FailingProcesses, TheTokenIsOnNoCommandLine) {
  const TemporaryFolder folder;
  folder.write("net.pipe", long_program());
  const ProcessResult run =
      shell(folder,
            start("2") +
                "token() { tr '\\0' '\\n' </proc/$1/environ | sed -n 's/^PIPER_RUN_TOKEN=//p'; }\n"
                "a=$(token $(victim 1)); b=$(token $(victim 2))\n"
                "[ ${#a} = 64 ] && [ $a = $b ] || exit 4\n"
                "cat /proc/$run/cmdline /proc/$(victim 1)/cmdline | grep -q $a && exit 3\n"
                "kill -INT $run\n" +
                kEnd);
  EXPECT_EQ(run.exit_code, 130) << run.err;
}

/// Two machines, one of which loses its link: each end names the other one by its host.
TEST(FailingProcesses, AHostWithoutALinkIsNamed) {
  const TemporaryFolder folder;
  folder.write("net.pipe", long_program());
  const ProcessResult run = shell(
      folder,
      std::string(kLimits) +
          "n=pf$$; ip netns add ${n}a 2>/dev/null || exit 77\n"
          "trap 'ip netns del ${n}a; ip netns del ${n}b' EXIT\n"
          "ip netns add ${n}b && ip link add ${n}x type veth peer name ${n}y || exit 77\n"
          "ip link set ${n}x netns ${n}a && ip link set ${n}y netns ${n}b || exit 77\n"
          "ip -n ${n}a addr add 10.78.0.1/24 dev ${n}x && ip -n ${n}a link set ${n}x up || exit 77\n"
          "ip -n ${n}b addr add 10.78.0.2/24 dev ${n}y && ip -n ${n}b link set ${n}y up || exit 77\n"
          "ip -n ${n}a link set lo up; ip -n ${n}b link set lo up\n"
          "export WORLD_SIZE=2 MASTER_ADDR=10.78.0.1 MASTER_PORT=29500 LOCAL_RANK=0 PIPER_RUN=$n\n"
          "export PIPER_RUN_TOKEN=$(head -c 32 /dev/urandom | base64)\n"
          "on() { ip netns exec $n$1 unshare -u -i sh -c \"hostname node$1; exec timeout 50 "
          "\\\"\\$0\\\" train net.pipe --interpret --out out\" \"$0\"; }\n"
          "(RANK=0 on a >first 2>&1; echo code $? >>first) & one=$!\n"
          "(RANK=1 on b >second 2>&1; echo code $? >>second) & two=$!\n"
          "until [ -s out/metrics.jsonl ]; do kill -0 $one || { cat first second; exit 9; }; sleep 0.05; done\n"
          "ip -n ${n}a link set ${n}x down\n"
          "wait $one $two\n"
          "cat first; cat second >&2\n");
  if (run.exit_code == 77) GTEST_SKIP() << "this machine allows no network namespaces";
  EXPECT_EQ(run.exit_code, 0) << run.out << run.err;
  EXPECT_THAT(run.out, ContainsRegex("error P6023: [^\n]*process 1 \\(ranks 2 to 3\\) \\(process "
                                     "[0-9]+ on nodeb\\) does not answer"));
  EXPECT_THAT(run.err, ContainsRegex("error P6023: [^\n]*rank 0 \\(process [0-9]+ on nodea\\) does "
                                     "not answer"));
  EXPECT_THAT(run.out, HasSubstr("code 1"));
  EXPECT_THAT(run.err, HasSubstr("code 1"));
}

}  // namespace
}  // namespace piper::test
