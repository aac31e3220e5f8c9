// `piper train --device cuda` as several processes, one per rank, on the test driver and NCCL:
// their results, their calls, and how they end.

#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <thread>

#include "frontend/tools/driver.h"
#include "llvm/Support/JSON.h"
#include "tests/cuda/cuda_laws.h"
#include "tests/cuda/forked.h"
#include "tests/laws/library_cases.h"
#include "tests/support/golden.h"

namespace piper::test {
namespace {

/// Two stages, `dp` replicas.
std::string program(int dp, const std::string& lines = "") {
  return R"(use std.models.mlp
use std.schedules.gpipe
mesh grid(pp: 2, dp: )" +
         std::to_string(dp) + R"()
train tiny = mlp(layers: 2, features: 4, hidden: 6, classes: 3) on grid {
    data:     synthetic(batch: 16, classes: 3)
    held_out: synthetic(batch: 16, classes: 3)
    optim:    adamw(lr: 0.01, clip: 1.0)
    steps:    6
    gpipe(pp, 2)
    )" + lines +
         "\n}\n";
}

struct OfRank {
  std::map<std::string, std::string> environment = {};
  std::vector<std::string> words = {};
  HostOptions host = {};
  TestNcclOptions nccl = {};
  std::string text = {};  // empty: that of all
  std::uint32_t gpus = 8;
};

Ended train_alone(const std::string& text, std::vector<std::string> words = {}) {
  HostMachine machine;
  words.insert(words.end(), {"--device", "cuda"});
  return train(text, &machine, words);
}

/// One process per rank. The program has run in this process before, so its kernels are there.
std::vector<Ended> train_forked(
    const std::string& text, std::uint32_t world,
    const std::function<void(std::uint32_t rank, OfRank& of)>& change = {}) {
  const TemporaryFolder folder;
  const std::uint16_t port = free_port();
  return run_forked(world, [&](std::uint32_t rank) {
    OfRank of;
    of.environment = launched(rank, world, port);
    of.environment["PIPER_MEET_SECONDS"] = "30";
    of.environment["PIPER_STALL_SECONDS"] = "20";
    of.nccl.folder = folder.path().string();
    of.host.seed = rank + 1;
    if (change) change(rank, of);
    HostMachine machine;
    machine.options = of.host;
    machine.nccl = of.nccl;
    machine.gpus = of.gpus;
    of.words.insert(of.words.end(), {"--device", "cuda"});
    return train(of.text.empty() ? text : of.text, &machine, of.words, of.environment);
  });
}

/// Losses and norms of the metrics, without times.
std::string numbers_of(const std::filesystem::path& folder) {
  std::string kept;
  const std::string text = read_text(folder / "metrics.jsonl").value_or("");
  for (std::size_t at = 0; at < text.size(); at = text.find('\n', at) + 1) {
    const std::string line = text.substr(at, text.find('\n', at) - at);
    kept += line.substr(0, line.find("\"seconds\"")) + "\n";
  }
  return kept;
}

TEST(Nccl, TwoProcessesTrainLikeOne) {
  const TemporaryFolder folder;
  const std::string text = program(1);
  const Ended alone = train_alone(text, {"--out", (folder.path() / "alone").string()});
  ASSERT_EQ(alone.code, 0) << alone.err;
  const std::vector<Ended> ended = train_forked(text, 2, [&](std::uint32_t, OfRank& of) {
    of.words = {"--out", (folder.path() / "apart").string()};
  });
  ASSERT_EQ(ended[0].code, 0) << ended[0].err;
  ASSERT_EQ(ended[1].code, 0) << ended[1].err;
  EXPECT_EQ(numbers_of(folder.path() / "apart"), numbers_of(folder.path() / "alone"));
  EXPECT_NE(numbers_of(folder.path() / "apart"), "");
  EXPECT_EQ(line_with(ended[0].out, "held-out loss"), line_with(alone.out, "held-out loss"));
  EXPECT_NE(ended[0].out.find("each, with NCCL of the tests"), std::string::npos) << ended[0].out;
  EXPECT_EQ(ended[0].err.find("P6019"), std::string::npos) << ended[0].err;
  EXPECT_EQ(ended[1].out + ended[1].err, "");
  EXPECT_TRUE(std::filesystem::exists(folder.path() / "apart" / "flight.1"));
}

/// Pipelines, replicas and shardings of them: sums of two members have the bits of one GPU, and
/// here those of four agree in all printed digits.
TEST(Nccl, FourProcessesTrainLikeOne) {
  for (const char* lines : {"replicate model over dp",
                            "replicate model over dp with bucket: 256, zero: 3, prefetch: 1"}) {
    const std::string text = program(2, lines);
    const Ended alone = train_alone(text);
    ASSERT_EQ(alone.code, 0) << alone.err;
    const std::vector<Ended> ended = train_forked(text, 4);
    for (const Ended& each : ended) ASSERT_EQ(each.code, 0) << each.err;
    EXPECT_EQ(line_with(ended[0].out, "held-out loss"), line_with(alone.out, "held-out loss"));
    EXPECT_EQ(line_with(ended[0].err, "step 6/6").substr(0, 40),
              line_with(alone.err, "step 6/6").substr(0, 40));
  }
}

/// Loss and norm are one for all, wherever they are made: JSON has those of rank 0, and the others
/// print nothing.
TEST(Nccl, RankZeroPrints) {
  const std::string text = program(1);
  ASSERT_EQ(train_alone(text).code, 0);
  const std::vector<Ended> ended = train_forked(
      text, 2, [](std::uint32_t, OfRank& of) { of.words = {"--format", "json", "--steps", "3"}; });
  EXPECT_NE(ended[0].out.find("\"held_out_loss\":"), std::string::npos)
      << ended[0].out << ended[0].err;
  EXPECT_NE(ended[0].out.find("\"steps\":3"), std::string::npos) << ended[0].out;
  EXPECT_EQ(ended[1].out + ended[1].err, "");
}

/// The lines of a comparison below its title.
std::string differences_of(const std::string& out, const std::string& title) {
  const std::size_t at = out.find(title);
  return at == std::string::npos
             ? ""
             : out.substr(out.find('\n', at), out.find("\n3 steps", at) - out.find('\n', at));
}

/// Rank 0 compares losses, gradients and parameters of all processes: with two of them they equal
/// one GPU's to the last bit.
TEST(Nccl, RankZeroComparesWithOneDevice) {
  const std::string text = program(1);
  const Ended alone = train_alone(text, {"--reference"});
  ASSERT_EQ(alone.code, 0) << alone.out << alone.err;
  const std::vector<Ended> ended =
      train_forked(text, 2, [](std::uint32_t, OfRank& of) { of.words = {"--reference"}; });
  for (const Ended& each : ended) ASSERT_EQ(each.code, 0) << each.out << each.err;
  for (const char* title : {"3 steps in f64 against the unsplit step on one device (bound 1.0e-10",
                            "3 steps in f32 on the host's stand-in for a GPU"}) {
    EXPECT_EQ(differences_of(ended[0].out, title), differences_of(alone.out, title))
        << ended[0].out;
    EXPECT_NE(differences_of(ended[0].out, title), "") << ended[0].out;
  }
  EXPECT_EQ(ended[1].out + ended[1].err, "");
  // Parameters that are sharded, of another type than their sums, and on the host; state that is
  // kept twice.
  const std::string shared = program(
      2,
      "replicate model over dp with bucket: 256, zero: 3, prefetch: 1\n    offload model with what: optimizer");
  std::string narrow = shared;
  narrow.insert(narrow.find("    steps:"), "    dtype:    bf16\n");
  for (const std::string& each : {shared, narrow}) {
    ASSERT_EQ(train_alone(each, {"--reference"}).code, 0);
    const auto of_four = train_forked(
        each, 4, [](std::uint32_t, OfRank& of) { of.words = {"--reference", "--format", "json"}; });
    for (const Ended& process : of_four) EXPECT_EQ(process.code, 0) << process.out << process.err;
    EXPECT_NE(of_four[0].out.find("\"against\":\"cpu\""), std::string::npos) << of_four[0].out;
    EXPECT_EQ(of_four[1].out + of_four[2].out + of_four[3].out, "");
  }
}

/// Begin and end of each measured action, by rank and name.
using Times = std::map<std::pair<std::string, std::string>, std::pair<double, double>>;

Times times_of(const std::string& trace) {
  auto value = llvm::json::parse(trace);
  if (!value) {
    ADD_FAILURE() << llvm::toString(value.takeError());
    return {};
  }
  constexpr std::string_view kMeasured = "tiny, measured: ";
  std::map<std::int64_t, std::string> ranks;
  Times times;
  for (const llvm::json::Value& each : *value->getAsObject()->getArray("traceEvents")) {
    const llvm::json::Object& event = *each.getAsObject();
    const std::int64_t process = *event.getInteger("pid");
    if (*event.getString("name") == "process_name")
      ranks[process] = event.getObject("args")->getString("name")->str();
    if (*event.getString("ph") != "X" || !ranks[process].starts_with(kMeasured)) continue;
    const double begin = *event.getNumber("ts");
    times[{ranks[process].substr(kMeasured.size()), event.getString("name")->str()}] = {
        begin, begin + *event.getNumber("dur")};
  }
  return times;
}

/// For pairs of neighbours: each receive ends after its send began.
void expect_in_order(const std::string& trace,
                     const std::vector<std::pair<std::string, std::string>>& neighbours) {
  Times times = times_of(trace);
  for (const auto& [first, second] : neighbours) {
    for (const std::string mb : {"mb0", "mb1"}) {
      const std::string forward = "F.stage0." + mb + ".pp1", backward = "B.stage1." + mb + ".pp0";
      for (const auto& [from, to, message] :
           {std::tuple{first, second, forward}, {second, first, backward}}) {
        const auto sent = times.find({from, "send." + message}),
                   received = times.find({to, "recv." + message});
        ASSERT_TRUE(sent != times.end() && received != times.end()) << message;
        EXPECT_LE(sent->second.first, received->second.second + 1) << message;  // microseconds
      }
    }
  }
}

TEST(Nccl, RankZeroWritesTheLastStepOfAll) {
  const TemporaryFolder folder;
  const std::string text = program(2, "replicate model over dp"),
                    trace = (folder.path() / "trace.json").string(),
                    costs = (folder.path() / "costs.json").string();
  ASSERT_EQ(train_alone(text).code, 0);
  const auto ended = train_forked(text, 4, [&](std::uint32_t rank, OfRank& of) {
    of.words = {"--trace", rank == 0 ? trace : "/dev/null/trace.json", "--profile",
                rank == 0 ? costs : "/dev/null/costs.json"};
    // Ranks begin steps at different times.
    if (rank == 2)
      of.host.at_launch = [] { std::this_thread::sleep_for(std::chrono::microseconds(200)); };
  });
  for (const Ended& each : ended) ASSERT_EQ(each.code, 0) << each.out << each.err;
  for (const char* rank : {"rank 0 (pp0)", "rank 1 (pp0)", "rank 2 (pp1)", "rank 3 (pp1)"})
    EXPECT_NE(line_with(ended[0].out, rank), "") << ended[0].out;
  EXPECT_EQ(ended[1].out + ended[2].err + ended[3].out, "");
  EXPECT_NE(read_text(costs).value_or("").find("\"bodies\""), std::string::npos);
  expect_in_order(read_text(trace).value_or(""),
                  {{"rank 0 (pp0)", "rank 2 (pp1)"}, {"rank 1 (pp0)", "rank 3 (pp1)"}});
}

TEST(Nccl, LaunchersSayTheSameInOtherWords) {
  const std::string text = program(1);
  const Ended alone = train_alone(text);
  ASSERT_EQ(alone.code, 0);
  const auto by = [&](const std::function<std::map<std::string, std::string>(
                          std::string rank, std::string port)>& words) {
    const std::string port = std::to_string(free_port());
    const auto ended = train_forked(text, 2, [&](std::uint32_t rank, OfRank& of) {
      of.environment = words(std::to_string(rank), port);
    });
    for (const Ended& each : ended) EXPECT_EQ(each.code, 0) << each.err;
    EXPECT_EQ(line_with(ended[0].out, "held-out loss"), line_with(alone.out, "held-out loss"));
  };
  by([](const std::string& rank, const std::string& port) -> std::map<std::string, std::string> {
    return {{"OMPI_COMM_WORLD_RANK", rank},
            {"OMPI_COMM_WORLD_SIZE", "2"},
            {"OMPI_COMM_WORLD_LOCAL_RANK", rank},
            {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
            {"MASTER_PORT", port}};
  });
  by([](const std::string& rank, const std::string& port) -> std::map<std::string, std::string> {
    return {{"SLURM_PROCID", rank},  {"SLURM_STEP_NUM_TASKS", "2"},
            {"SLURM_LOCALID", rank}, {"SLURM_STEP_NODELIST", "localhost"},
            {"SLURM_JOB_ID", "77"},  {"MASTER_PORT", port}};
  });
}

// ---- how runs end

/// Every process says the same first cause.
void all_say(const std::vector<Ended>& ended, const std::vector<std::string>& what) {
  for (std::size_t rank = 0; rank < ended.size(); ++rank) {
    if (ended[rank].code == -SIGKILL) continue;
    EXPECT_EQ(ended[rank].code, tools::kDiagnostics) << "rank " << rank << "\n" << ended[rank].err;
    for (const std::string& text : what)
      EXPECT_NE(ended[rank].err.find(text), std::string::npos)
          << "rank " << rank << " does not say `" << text << "`\n"
          << ended[rank].err;
  }
}

class NcclEnds : public testing::Test {
 protected:
  static void SetUpTestSuite() { ASSERT_EQ(train_alone(kText).code, 0); }
  static inline const std::string kText = program(1);
};

TEST_F(NcclEnds, AProcessThatIsKilled) {
  for (const auto& [killed, graphs] : {std::pair{0u, "0"}, {1u, "0"}, {0u, "1"}, {1u, "1"}}) {
    SCOPED_TRACE(std::to_string(killed) + ", graphs " + graphs);
    const auto ended = train_forked(
        kText, 2, [&, killed = killed, graphs = graphs](std::uint32_t rank, OfRank& of) {
          of.environment["PIPER_CUDA_GRAPHS"] = graphs;
          if (rank == killed) of.nccl.killed_at = 30;  // in the fourth of six steps
        });
    EXPECT_EQ(ended[killed].code, -SIGKILL);
    // The process that is gone, and the action in which this one waited for it.
    const std::string& err = ended[1 - killed].err;
    all_say(ended, {"P6023", "rank " + std::to_string(killed), "is gone"});
    EXPECT_NE(err.find("tiny.pipe:"), std::string::npos) << err;
    EXPECT_NE(err.find("rank " + std::to_string(1 - killed) + ", step "), std::string::npos) << err;
  }
}

/// In the second compared step; processes that wait for rank 0, which computes the other side,
/// learn of it, too.
TEST_F(NcclEnds, AProcessThatIsKilledInAComparison) {
  for (const std::uint32_t killed : {0u, 1u}) {
    const auto ended = train_forked(kText, 2, [&](std::uint32_t rank, OfRank& of) {
      of.words = {"--reference"};
      if (rank == killed) of.nccl.killed_at = 15;
    });
    EXPECT_EQ(ended[killed].code, -SIGKILL) << ended[killed].out;
    all_say(ended, {"P6023", "rank " + std::to_string(killed), "is gone"});
    EXPECT_EQ(ended[0].out.find("largest difference"), std::string::npos) << ended[0].out;
  }
}

TEST_F(NcclEnds, AnInterruptedComparisonStopsAll) {
  for (const std::uint32_t interrupted : {0u, 1u}) {
    const auto ended = train_forked(kText, 2, [&](std::uint32_t rank, OfRank& of) {
      of.words = {"--reference"};
      if (rank == interrupted)
        of.host.at_launch = [n = 0]() mutable {
          if (++n == 30) raise(SIGTERM);
        };
    });
    for (const Ended& each : ended)
      EXPECT_EQ(each.code, tools::kInterrupted) << each.out << each.err;
    EXPECT_NE(ended[0].out.find("stopped after step "), std::string::npos) << ended[0].out;
    EXPECT_EQ(ended[1].out + ended[1].err, "");
  }
}

TEST_F(NcclEnds, ARankThatFailsIsTheFirstCauseOfAll) {
  const auto ended = train_forked(kText, 2, [](std::uint32_t rank, OfRank& of) {
    if (rank != 1) return;
    of.host.refused = "cublasLtMatmul";
    of.host.refused_call = 9;
  });
  all_say(ended, {"P6016", "rank 1, `B.", "`cublasLtMatmul` failed", "tiny.pipe:"});
}

TEST_F(NcclEnds, ACommunicationThatFailsInFlight) {
  const auto ended = train_forked(kText, 2, [](std::uint32_t rank, OfRank& of) {
    if (rank == 1) of.nccl.breaks = 12;
  });
  all_say(ended, {"P6024", "rank 1", "a communication failed: remote process exited"});
}

TEST_F(NcclEnds, CallsThatNcclRefuses) {
  for (const char* call : {"ncclGetUniqueId", "ncclCommInitRankConfig", "ncclSend"}) {
    SCOPED_TRACE(call);
    const auto ended = train_forked(kText, 2, [&](std::uint32_t rank, OfRank& of) {
      if (rank == 0) of.nccl.refused = call;
    });
    all_say(ended, {"P6024", "rank 0", std::string("`") + call + "` failed"});
    if (std::string(call) == "ncclSend") all_say(ended, {"tiny.pipe:", "`send.F."});
  }
}

/// The group of that call ends, too: otherwise later calls would be collected without ever
/// beginning.
TEST_F(NcclEnds, ACallOfAGroupThatNcclRefuses) {
  const std::string text = program(2, "replicate model over dp");
  ASSERT_EQ(train_alone(text).code, 0);
  const auto ended = train_forked(text, 4, [](std::uint32_t rank, OfRank& of) {
    if (rank == 2) of.nccl.refused = "ncclAllReduce";
  });
  all_say(ended, {"P6024", "rank 2", "`ncclAllReduce` failed", "tiny.pipe:"});
}

TEST_F(NcclEnds, AProcessThatHangs) {
  const auto ended = train_forked(kText, 2, [](std::uint32_t rank, OfRank& of) {
    of.environment["PIPER_STALL_SECONDS"] = rank == 1 ? "1" : "15";
    if (rank == 1)
      of.host.at_launch = [n = 0]() mutable {
        if (++n == 40) std::this_thread::sleep_for(std::chrono::seconds(2));
      };
    if (rank == 0) of.environment["PIPER_STALL_SECONDS"] = "1";
  });
  all_say(ended, {"P6004", "nothing has moved"});
}

TEST_F(NcclEnds, InterruptedProcessesStopAtOneStep) {
  const TemporaryFolder folder;
  std::string longer = kText;
  longer.replace(longer.find("steps:    6"), 11, "steps:    900");
  const auto ended = train_forked(longer, 2, [&](std::uint32_t rank, OfRank& of) {
    of.words = {"--out", (folder.path() / "out").string()};
    if (rank == 1)
      of.host.at_launch = [n = 0]() mutable {
        if (++n == 60) raise(SIGTERM);
      };
  });
  for (const Ended& each : ended) EXPECT_EQ(each.code, tools::kInterrupted) << each.err;
  EXPECT_NE(ended[0].out.find("stopped after step "), std::string::npos) << ended[0].out;
}

TEST_F(NcclEnds, ProgramsThatDiffer) {
  const auto steps = train_forked(kText, 2, [](std::uint32_t rank, OfRank& of) {
    if (rank == 1) of.words = {"--steps", "5"};
  });
  all_say(steps, {"P6022", "rank 1 has other steps than rank 0: `5` and `6`"});
  // One process would wait for messages that the other does not send.
  for (const char* option : {"--reference", "--trace"}) {
    const TemporaryFolder folder;
    const auto options = train_forked(kText, 2, [&](std::uint32_t rank, OfRank& of) {
      if (rank == 0) of.words = {option};
      if (rank == 0 && std::string(option) == "--trace")
        of.words.push_back((folder.path() / "t.json").string());
    });
    all_say(
        options,
        {"P6022",
         std::string(
             "rank 1 has other options than rank 0: `neither --reference nor --trace nor --profile` and `") +
             option});
  }
  std::string other = kText;
  other.replace(other.find("hidden: 6"), 9, "hidden: 8");
  const auto programs = train_forked(kText, 2, [&](std::uint32_t rank, OfRank& of) {
    if (rank == 1) of.text = other;
  });
  all_say(programs, {"P6022", "than rank 0: line "});
}

TEST_F(NcclEnds, AllReportWhatOneMachineLacks) {
  all_say(train_forked(kText, 2, [](std::uint32_t rank, OfRank& of) { of.gpus = rank; }),
          {"P6014", "fewer GPUs than processes"});
  all_say(train_forked(kText, 2,
                       [](std::uint32_t rank, OfRank& of) {
                         if (rank == 1) of.nccl.folder.clear();
                       }),
          {"P6014", "rank 1: there is no NCCL"});
  all_say(train_forked(kText, 2,
                       [](std::uint32_t rank, OfRank& of) {
                         if (rank == 1) of.host.memory = 100;
                       }),
          {"P6018", "do not fit"});
  // The arena has room, the buffers of NCCL have not.
  all_say(train_forked(kText, 2,
                       [](std::uint32_t rank, OfRank& of) {
                         if (rank == 1) of.host.memory = 1 << 20;
                       }),
          {"P6018", "which has `1048576` free, of which libraries take about `"});
}

TEST_F(NcclEnds, ProcessesThatDoNotMeet) {
  const auto started = std::chrono::steady_clock::now();
  all_say(train_forked(kText, 2,
                       [](std::uint32_t rank, OfRank& of) {
                         of.environment["PIPER_MEET_SECONDS"] = "1";
                         if (rank == 1) of.environment["MASTER_PORT"] = std::to_string(free_port());
                       }),
          {"P6021"});
  all_say(train_forked(kText, 2,
                       [](std::uint32_t, OfRank& of) {
                         of.environment["RANK"] = "1";
                         of.environment["PIPER_MEET_SECONDS"] = "1";
                       }),
          {"P6021", "does not reach rank 0", "connection refused"});
  const auto both_first = train_forked(kText, 2, [](std::uint32_t, OfRank& of) {
    of.environment["RANK"] = "0";
    of.environment["PIPER_MEET_SECONDS"] = "1";
  });
  all_say(both_first, {"P6021"});
  EXPECT_NE((both_first[0].err + both_first[1].err).find("another process has it"),
            std::string::npos);
  EXPECT_NE((both_first[0].err + both_first[1].err)
                .find("after `1` seconds rank 1 of `2` has not connected"),
            std::string::npos)
      << both_first[0].err << both_first[1].err;
  EXPECT_LT(std::chrono::steady_clock::now() - started, std::chrono::seconds(30));
}

TEST_F(NcclEnds, EnvironmentsThatSayNothingSensible) {
  const auto told = [&](std::map<std::string, std::string> environment, const std::string& what) {
    HostMachine machine;
    const Ended ended = train(kText, &machine, {"--device", "cuda"}, std::move(environment));
    EXPECT_EQ(ended.code, tools::kDiagnostics) << what;
    EXPECT_NE(ended.err.find("P6020"), std::string::npos) << ended.err;
    EXPECT_NE(ended.err.find(what), std::string::npos) << ended.err;
  };
  const auto with = [](const char* name, const char* value) {
    auto environment = launched(0, 2, 29500);
    environment[name] = value;
    return environment;
  };
  told(with("RANK", ""), "`WORLD_SIZE` is set, but not `RANK`");
  told(with("WORLD_SIZE", ""), "`RANK` is set, but not `WORLD_SIZE`");
  told(with("RANK", "2"), "`RANK` is `2` of `2` processes");
  told(with("RANK", "-1"), "the environment variable `RANK` is `-1`");
  told(with("WORLD_SIZE", "0"), "`WORLD_SIZE` is `0`");
  told(with("WORLD_SIZE", "two"), "the environment variable `WORLD_SIZE` is `two`");
  told(with("WORLD_SIZE", "4"),
       "RANK and WORLD_SIZE say that there are 4 processes, but the mesh has 2 devices");
  told(with("LOCAL_RANK", ""), "but not `LOCAL_RANK`");
  told(with("MASTER_ADDR", ""), "`MASTER_ADDR` is not set");
  told(with("MASTER_PORT", "70000"), "the environment variable `MASTER_PORT` is `70000`");
  told(with("OMPI_COMM_WORLD_RANK", "1"), "mpirun says `1`");
}

}  // namespace
}  // namespace piper::test
