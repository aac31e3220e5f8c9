// Every way in which a run can fail: one failure with its place, no thread left behind, no hang.
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <functional>
#include <limits>
#include <new>
#include <stdexcept>
#include <thread>
#include <vector>

#include "runtime/dtypes.h"
#include "runtime/executor/check_tables.h"
#include "tests/runtime/sample_jobs.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/test_call.h"

namespace piper::runtime {
namespace {

std::size_t listed_threads() {
  std::size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/task"))
    ++count;
  return count;
}

/// The threads of this process. A joined thread stays listed for a moment while the kernel ends it,
/// so they are counted until the number is stable.
std::size_t threads() {
  std::size_t count = listed_threads();
  for (int same = 0; same < 5;) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    const std::size_t again = listed_threads();
    same = again == count ? same + 1 : 0;
    count = again;
  }
  return count;
}

/// The threads that are left: waits until there are at most `before`, or for seconds.
std::size_t threads_left(std::size_t before) {
  for (int waits = 0; waits < 2000 && listed_threads() > before; ++waits)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  return listed_threads();
}

// The pipeline, and on rank `rank` an action more that does `body` in step 3.
RunResult failing_run(std::uint32_t rank, HandProgram::Body body, const ExecutorOptions& options) {
  HandJob job(2);
  add_pipeline(job);
  job.rank(rank).compute("bad", {},
                         [body](Step& step) { return step.rank->step == 3 ? body(step) : 0; });
  auto executor = create(job.finish(), options);
  const std::size_t before = threads();
  RunResult result = executor->run(Phase::training, 1000);
  EXPECT_LE(threads_left(before), before);
  EXPECT_EQ(result.ended, Ended::failed);
  EXPECT_TRUE(result.failure);
  if (!result.failure) result.failure = Failure{};
  // Nothing runs after a failure, and the same is said again.
  EXPECT_EQ(executor->run(Phase::training, 1).failure->message, result.failure->message);
  return result;
}

// The same for a body that is to blame.
RunResult run_with(std::uint32_t rank, HandProgram::Body body,
                   const ExecutorOptions& options = {}) {
  RunResult result = failing_run(rank, std::move(body), options);
  EXPECT_EQ(result.failure->rank, rank);
  EXPECT_EQ(result.failure->step, 3u);
  EXPECT_EQ(result.failure->place.action, "bad");
  EXPECT_EQ(result.failure->place.file, "hand.pipe");
  EXPECT_GT(result.failure->place.line, 0u);
  EXPECT_GT(result.failure->place.end_column, result.failure->place.column);
  return result;
}

TEST(FailingRun, AnActionRefusesAValue) {
  for (const std::uint32_t rank : {0u, 1u}) {
    const RunResult result = run_with(rank, [](Step& step) {
      return step.api->fail(step.rank, step.action, nullptr, "index out of range", 300);
    });
    EXPECT_EQ(result.failure->code, kActionFailed);
    EXPECT_EQ(result.failure->message, "index out of range: `300`");
    EXPECT_LE(result.steps, 3u);
  }
}

/// A refused value that is in the data of the step is named with its place.
TEST(FailingRun, ARefusedValueIsFoundInTheData) {
  const test::TemporaryFolder folder;
  const std::string path = folder.write("text", std::string(40, 'x') + "y" + std::string(40, 'x'));
  constexpr std::int64_t kDims[] = {2, 8};
  const PiperInput input{
      .name = "tokens", .dtype = PIPER_I64, .num_dims = 2, .dims = kDims, .sample_dim = 0};
  for (const std::int64_t value : {'y', 'z'}) {
    HandJob job(2);
    add_pipeline(job);
    PiperData& data = job.tables().data;
    data.kind = PIPER_BYTES;
    data.path = path.c_str();
    data.batch = 2;
    data.seq = 8;
    data.sampling = PIPER_EPOCH;
    job.rank(1).compute("reads", {}, [value](Step& step) {
      std::int64_t tokens[16];
      if (step.api->load(step.rank, step.action, 0, 0, 2, tokens) != 0) return 1;
      const bool has = std::find(tokens, tokens + 16, 'y') != tokens + 16;
      return has ? step.api->fail(step.rank, step.action, nullptr, "no row", value) : 0;
    });
    job.finish();
    job.tables().num_inputs = 1;
    job.tables().inputs = &input;
    const RunResult result = create(job.tables())->run(Phase::training, 1000);
    ASSERT_TRUE(result.failure);
    EXPECT_EQ(result.failure->message, "no row: `" + std::to_string(value) + "`");
    ASSERT_EQ(result.failure->notes.size(), value == 'y' ? 1u : 0u);
    if (value == 'y') {
      EXPECT_EQ(result.failure->notes[0].text, "the batch has it at byte `40` of `" + path + "`");
    }
  }
}

TEST(FailingRun, DataChangesWhileARunReadsIt) {
  const test::TemporaryFolder folder;
  const std::string path = folder.write("ids.bin", std::string(4000, 'x'));
  constexpr std::int64_t kDims[] = {2, 8};
  const PiperInput input{
      .name = "tokens", .dtype = PIPER_I64, .num_dims = 2, .dims = kDims, .sample_dim = 0};
  HandJob job(2);
  add_pipeline(job);
  PiperData& data = job.tables().data;
  data.kind = PIPER_TOKENS;
  data.path = path.c_str();
  data.batch = 2;
  data.seq = 8;
  data.where = {"data", {"a.pipe", 7, 3, 7, 9}};
  job.rank(1).compute("load.tokens", {}, [&](Step& step) {
    if (step.rank->step == 3) std::filesystem::resize_file(path, 10);
    std::int64_t tokens[16];
    return step.api->load(step.rank, step.action, 0, 0, 2, tokens);
  });
  job.finish();
  job.tables().num_inputs = 1;
  job.tables().inputs = &input;
  const RunResult result = create(job.tables())->run(Phase::training, 1000);
  ASSERT_TRUE(result.failure);
  EXPECT_EQ(result.failure->code, kDataChanged);
  EXPECT_EQ(result.failure->message, "`" + path +
                                         "` changed while the run reads it: it had `4000` bytes "
                                         "and now has `10`");
  EXPECT_EQ(result.failure->rank, 1u);
  EXPECT_EQ(result.failure->step, 3u);
  EXPECT_EQ(result.failure->place.action, "load.tokens");
  EXPECT_EQ(result.failure->place.file, "a.pipe");
  EXPECT_EQ(result.failure->place.line, 7u);
}

TEST(FailingRun, AnExceptionStopsAtTheWall) {
  EXPECT_EQ(run_with(0, [](Step&) -> int { throw std::runtime_error("secret"); }).failure->message,
            "the step threw an exception");
  EXPECT_EQ(run_with(1, [](Step&) -> int { throw std::bad_alloc(); }).failure->code, kOutOfMemory);
  EXPECT_EQ(run_with(1, [](Step&) { return 7; }).failure->message,
            "the step ended with status `7` and gave no reason");
}

TEST(FailingRun, ALossOrTheNormIsNotFinite) {
  const auto report = [](std::uint32_t subject, double value) {
    return [=](Step& step) {
      step.api->report(step.rank, subject, &value, 1);
      return 0;
    };
  };
  const RunResult loss = run_with(1, report(0, std::numeric_limits<double>::quiet_NaN()));
  EXPECT_EQ(loss.failure->code, kNonFinite);
  EXPECT_EQ(loss.failure->message, "the loss `square` is nan at step `4`");
  const RunResult norm = run_with(0, report(PIPER_NORM, std::numeric_limits<double>::infinity()));
  EXPECT_EQ(norm.failure->message, "the gradient norm is infinite at step `4`");
}

// The hint advises neither an existing setting nor one that could not have had an effect yet.
TEST(FailingRun, TheHintFitsTheTrain) {
  const auto hint = [](std::uint64_t step, bool clips) {
    HandJob job(2);
    add_pipeline(job);
    job.rank(0).compute("bad", {}, [step](Step& at) {
      const double norm = at.rank->step == step ? std::numeric_limits<double>::infinity() : 1;
      at.api->report(at.rank, PIPER_NORM, &norm, 1);
      return 0;
    });
    job.tables().optimizer.clips = clips ? 1 : 0;
    return create(job.finish())->run(Phase::training, 10).failure.value_or(Failure{}).hint;
  };
  EXPECT_EQ(hint(2, false),
            "a smaller learning rate, a longer warm-up or `clip` on the `optim` line often helps");
  EXPECT_EQ(
      hint(2, true),
      "a smaller learning rate, a longer warm-up or a smaller `clip` on the `optim` line often helps");
  for (const bool clips : {false, true})
    EXPECT_EQ(hint(0, clips),
              "no update has been made yet: check the data and the initial weights");
}

/// A job whose rank 0 reports `norm(step)`, and whose rank 1 ends each step with the loss `loss(step)`.
struct ReportingJob {
  ReportingJob(const std::function<double(std::uint64_t)>& norm,
               const std::function<double(std::uint64_t)>& loss)
      : job(2) {
    add_pipeline(job);
    const auto report = [](std::uint32_t subject, std::function<double(std::uint64_t)> number) {
      return [=](Step& at) {
        const double value = number(at.rank->step);
        at.api->report(at.rank, subject, &value, 1);
        return 0;
      };
    };
    job.rank(0).compute("norm", {}, report(PIPER_NORM, norm));
    job.rank(1).compute("loss", {}, report(0, loss));
    job.tables().optimizer.skips = 1;
    job.tables().optimizer.skip_above = 10;
  }
  HandJob job;
};

constexpr double kInfinite = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

/// With `skip_step` such steps are marked, and the run goes on; the loss of a skipped step may be no
/// number.
TEST(FailingRun, StepsAreSkippedInstead) {
  const double norms[] = {1, 10, 11, kInfinite, kNan, 2}, losses[] = {1, 1, 1, kNan, kInfinite, 1};
  ReportingJob reporting([&](std::uint64_t step) { return norms[step]; },
                         [&](std::uint64_t step) { return losses[step]; });
  std::vector<bool> skipped;
  const RunResult result =
      create(reporting.job.finish())->run(Phase::training, 6, [&](const StepRecord& record) {
        skipped.push_back(record.skipped);
        return std::nullopt;
      });
  EXPECT_EQ(result.ended, Ended::finished) << (result.failure ? describe(*result.failure) : "");
  EXPECT_EQ(skipped, (std::vector<bool>{false, false, true, true, true, false}));
}

TEST(FailingRun, ALossIsNotFiniteAndTheNormIs) {
  ReportingJob reporting([](std::uint64_t) { return 1.0; },
                         [](std::uint64_t step) { return step == 3 ? kNan : 1.0; });
  const RunResult result = create(reporting.job.finish())->run(Phase::training, 10);
  ASSERT_TRUE(result.failure);
  EXPECT_EQ(result.failure->code, kNonFinite);
  EXPECT_EQ(result.failure->message,
            "the loss `square` is nan at step `4`, and the gradient norm is finite");
}

TEST(FailingRun, AReportDoesNotFit) {
  const RunResult result = run_with(1, [](Step& step) {
    const double values[10] = {};  // one per sample and a count at most
    step.api->report(step.rank, 0, values, 10);
    return 0;
  });
  EXPECT_EQ(result.failure->code, kBadJob);
}

TEST(FailingRun, ThePluginIsMissing) {
  ExecutorOptions options;
  options.runtime.plugin_folder = "/dev/null";
  const RunResult result = failing_run(
      0,
      [](Step& step) {
        const PiperGemm gemm{.batch = 1,
                             .m = 1,
                             .n = 1,
                             .k = 1,
                             .transpose_a = 0,
                             .transpose_b = 0,
                             .dtype = PIPER_F64};
        double x[3] = {2, 3, 0};
        const test::TestCall product(gemm, x, x + 1, x + 2);
        const PiperCall request = product.get();
        return step.api->call(step.rank, step.action, &request);
      },
      options);
  EXPECT_EQ(result.failure->code, kPluginUnavailable);
  EXPECT_NE(result.failure->message.find("/dev/null/piper_torch_plugin.so"), std::string::npos);
  // Which rank and action found out says nothing.
  EXPECT_EQ(result.failure->rank, Failure::kNoRank);
  EXPECT_EQ(result.failure->step, std::nullopt);
  EXPECT_EQ(result.failure->place.line, 0u);
}

TEST(FailingRun, ALibraryCallOverrunsItsWorkspace) {
  ExecutorOptions options;
  options.runtime.math = Math::builtin;
  const RunResult result = run_with(
      0,
      [](Step& step) {
        const PiperAttend attend{.batch = 1,
                                 .seq = 8,
                                 .keys = 8,
                                 .heads = 1,
                                 .kv_heads = 1,
                                 .width = 1,
                                 .value_width = 1,
                                 .scale = 1,
                                 .causal = 1,
                                 .dtype = PIPER_F64,
                                 .form = PIPER_ATTEND_BUILTIN};
        double x[8] = {}, out[8], lse[8], workspace[4];
        const test::TestCall attention(attend, {x, x, x}, {out, lse}, workspace, sizeof(workspace));
        const PiperCall request = attention.get();
        return step.api->call(step.rank, step.action, &request);
      },
      options);
  EXPECT_EQ(result.failure->code, kWorkspaceOverrun);
  EXPECT_EQ(result.failure->message,
            "a library call wanted `32` bytes more than its planned workspace");
}

TEST(FailingRun, ALibraryCallFails) {
  ExecutorOptions options;
  options.runtime.math = Math::builtin;
  const RunResult result = run_with(
      1,
      [](Step& step) {
        const PiperGemm gemm{.batch = 1,
                             .m = 1,
                             .n = 1,
                             .k = 1,
                             .transpose_a = 0,
                             .transpose_b = 0,
                             .dtype = PIPER_I64};
        std::int64_t x[3] = {2, 3, 0};
        const test::TestCall product(gemm, x, x + 1, x + 2);
        const PiperCall request = product.get();
        return step.api->call(step.rank, step.action, &request);
      },
      options);
  EXPECT_EQ(result.failure->code, kLibraryFailed);
  EXPECT_EQ(result.failure->message, "matrix products and attention know f32, f64 and bf16");
}

TEST(FailingRun, TheCallbackFails) {
  HandJob job(2);
  add_pipeline(job);
  auto executor = create(job.finish());
  const RunResult result =
      executor->run(Phase::training, 100000, [](const StepRecord& step) -> std::optional<Failure> {
        if (step.local_step < 5) return std::nullopt;
        return Failure{.code = kOutputUnwritable, .message = "no space"};
      });
  EXPECT_EQ(result.ended, Ended::failed);
  EXPECT_EQ(result.failure->code, kOutputUnwritable);
  EXPECT_LT(result.steps, 100u);
}

// A pair whose ends disagree in `change`.
std::string mismatch(const std::function<void(PiperCommAction&, PiperMessagePart&)>& change) {
  HandJob job(2);
  const std::uint32_t pair = job.pair(0, 1);
  const std::uint64_t out = job.rank(0).allocate<double>(10), in = job.rank(1).allocate<double>(10);
  job.rank(0).communicate("p2p", PIPER_SEND, pair, 5,
                          {HandProgram::part<double>(out, PIPER_NO_OFFSET, 10)}, {});
  job.rank(1).communicate("p2p", PIPER_RECV, pair, 5,
                          {HandProgram::part<double>(PIPER_NO_OFFSET, in, 10)}, {});
  const PiperJob& tables = job.finish();
  const PiperProgram& program = job.rank(1).tables();
  change(const_cast<PiperCommAction&>(program.streams[1].comm[0]),
         const_cast<PiperMessagePart&>(program.parts[0]));
  auto executor = create(tables);
  const RunResult result = executor->run(Phase::training, 5);
  EXPECT_EQ(result.ended, Ended::failed);
  EXPECT_EQ(result.failure->code, kMessageMismatch);
  EXPECT_EQ(result.failure->place.action, "p2p.5");
  return result.failure->message;
}

TEST(FailingRun, TheEndsOfAMessageDisagree) {
  EXPECT_EQ(mismatch([](PiperCommAction& action, PiperMessagePart&) { action.identity = 6; }),
            "the members run different communications");
  EXPECT_EQ(mismatch([](PiperCommAction&, PiperMessagePart& part) { part.elements = 9; }),
            "the members have values of different sizes");
  EXPECT_EQ(mismatch([](PiperCommAction&, PiperMessagePart& part) { part.dtype = PIPER_I64; }),
            "the members have values of different types");
  EXPECT_EQ(mismatch([](PiperCommAction& action, PiperMessagePart&) { action.num_parts = 0; }),
            "the members have different numbers of values");
  EXPECT_EQ(mismatch([](PiperCommAction& action, PiperMessagePart& part) {
              action.op = PIPER_SEND;
              part.in = 0;
            }),
            "the directions of the two ends do not fit");
}

TEST(FailingRun, AStallIsExplained) {
  // Rank 0 sends a then b on one stream; rank 1 wants b first and sends a's answer only afterwards:
  // a deadlock.
  HandJob job(2);
  const std::uint32_t first = job.pair(0, 1), second = job.pair(0, 1);
  HandProgram& a = job.rank(0);
  HandProgram& b = job.rank(1);
  const std::uint64_t x = a.allocate<double>(1), y = b.allocate<double>(2);
  a.communicate("p2p", PIPER_SEND, first, 1, {HandProgram::part<double>(x, PIPER_NO_OFFSET, 1)}, {},
                "send.first");
  const Spot last =
      a.communicate("p2p", PIPER_SEND, second, 2,
                    {HandProgram::part<double>(x, PIPER_NO_OFFSET, 1)}, {}, "send.second");
  a.compute("F.a", {HandProgram::after(last)}, [](Step&) { return 0; });
  const Spot got =
      b.communicate("one", PIPER_RECV, second, 2,
                    {HandProgram::part<double>(PIPER_NO_OFFSET, y, 1)}, {}, "recv.second");
  const Spot work = b.compute("F.b", {HandProgram::after(got)}, [](Step&) { return 0; });
  b.communicate("two", PIPER_RECV, first, 1, {HandProgram::part<double>(PIPER_NO_OFFSET, y, 1)},
                {HandProgram::after(work)}, "recv.first");
  ExecutorOptions options;
  options.runtime.stall_seconds = 0.2;
  auto executor = create(job.finish(), options);
  const std::size_t before = threads();
  const RunResult result = executor->run(Phase::training, 5);
  EXPECT_LE(threads_left(before), before);
  ASSERT_EQ(result.ended, Ended::failed);
  const Failure& failure = *result.failure;
  EXPECT_EQ(failure.code, kStalled);
  std::vector<std::string> story;
  for (const Note& note : failure.notes) story.push_back(note.text);
  EXPECT_EQ(story, (std::vector<std::string>{
                       "rank 0: `F.a` waits for the end of `send.second`",
                       "rank 0: `send.first` waits for rank `1` to start its `recv`",
                       "rank 1: `recv.first` waits for the end of `F.b`",
                       "rank 1: `F.b` waits for the end of `recv.second`",
                       "rank 1: `recv.second` waits for rank `0` to start its `send`",
                   }));
  EXPECT_EQ(failure.notes[2].place.file, "hand.pipe");
}

TEST(FailingRun, TablesThatContradictThemselvesAreRefused) {
  const auto refused = [](const std::function<void(HandJob&)>& change) {
    HandJob job(2);
    add_pipeline(job);
    job.rank(0).interval({0, 1, 1});
    job.finish();
    change(job);
    Failure failure;
    EXPECT_FALSE(Executor::create(job.tables(), make_cpu_device(), {}, failure));
    EXPECT_EQ(failure.code, kBadJob);
    return failure.message;
  };
  EXPECT_EQ(refused([](HandJob& job) { job.tables().abi_version = 99; }),
            "the job was built for ABI version 99");
  EXPECT_EQ(refused([](HandJob& job) { job.rank(0).tables().abi_version = 98; }),
            "the program was built for ABI version 98");
  EXPECT_EQ(refused([](HandJob& job) { job.rank(0).tables().arena_bytes = 200; }),
            "a part is read outside the arena");
  EXPECT_EQ(refused([](HandJob& job) { job.rank(0).tables().host_state_bytes = 64; }),
            "the state is larger than the arena");
  EXPECT_EQ(refused([](HandJob& job) { job.rank(1).tables().num_waits = 1; }),
            "a communication's parts or waits lie outside their table");
  EXPECT_EQ(refused([](HandJob& job) { job.rank(1).tables().step = nullptr; }),
            "the program has no step function");
  EXPECT_EQ(refused([](HandJob& job) { job.rank(0).tables().state_bytes = 64; }),
            "the parameter `w` lies outside the state");
  EXPECT_EQ(refused([](HandJob& job) {
              const_cast<PiperParam*>(job.rank(0).tables().params)->dtype = PIPER_I64;
            }),
            "the parameter `w` has a dtype that is not floating");
  EXPECT_EQ(refused([](HandJob& job) {
              const_cast<PiperMessagePart*>(job.rank(0).tables().parts)->dtype = 99;
            }),
            "a part has an unknown dtype");
  EXPECT_EQ(refused([](HandJob& job) { job.rank(1).tables().num_intervals = 1; }),
            "the intervals are missing");
  EXPECT_EQ(refused([](HandJob& job) {
              const_cast<std::uint64_t&>(job.rank(0).tables().extents[0]) = 4;
            }),
            "the program was generated for an interval of another extent");
  EXPECT_EQ(refused([](HandJob& job) {
              const_cast<PiperInterval*>(job.tables().ranks[0].intervals)->first = 1;
            }),
            "an interval reaches beyond its dimension");
  for (const std::uint32_t interval : {0u, 1u}) {
    EXPECT_EQ(refused([=](HandJob& job) {
                const_cast<PiperMessagePart*>(job.rank(0).tables().parts)->interval = interval;
              }),
              "a part is not the interval that it names");
    const auto move = [=](HandJob& job) {
      auto& param = const_cast<PiperParam&>(job.rank(0).tables().params[0]);
      param.first = 1;
      param.interval = interval;
    };
    EXPECT_EQ(refused(move), "the parameter `w` lies outside its bucket");
  }
  EXPECT_EQ(refused([](HandJob& job) { job.tables().world = 3; }),
            "ranks of other processes cannot be reached by the local transport");
  EXPECT_EQ(refused([](HandJob& job) { job.tables().num_ranks = 0; }), "the job has no ranks");
}

TEST(FailingRun, OperationsAndTheFlagsOfTheirPartsAreThoseOfTheTable) {
  HandJob job(2);
  add_pipeline(job);
  job.finish();
  auto* const action = const_cast<PiperCommAction*>(job.rank(0).tables().streams[1].comm);
  auto* const part = const_cast<PiperMessagePart*>(job.rank(0).tables().parts) + action->first_part;
  const auto message = [&] { return check_tables(job.tables()).value_or(Failure{}).message; };
  ASSERT_EQ(message(), "");
  const std::array<std::uint32_t, PIPER_COMM_OPS> known = {
      0, 0, 0, 0, PIPER_SHARD_ONLY | PIPER_ACCUMULATE | PIPER_ZERO_FILL, PIPER_SHARD_ONLY, 0, 0};
  for (std::uint32_t op = 0; op < PIPER_COMM_OPS; ++op) {
    action->op = op;
    EXPECT_NE(message(),
              "a communication refers to an operation, communicator or action that does not exist")
        << op;
    for (std::uint32_t flag = 1; flag != 0; flag <<= 1) {
      part->flags = flag;
      EXPECT_EQ(message() == "a part has a flag that its operation does not know",
                (known[op] & flag) == 0)
          << op << ", " << flag;
    }
    part->flags = 0;
  }
  action->op = PIPER_COMM_OPS;
  EXPECT_EQ(message(),
            "a communication refers to an operation, communicator or action that does not exist");
}

TEST(FailingRun, ParametersHaveDtypesOfTheTable) {
  HandJob job(2);
  add_pipeline(job);
  job.finish();
  auto* const param = const_cast<PiperParam*>(job.rank(0).tables().params);
  for (std::uint32_t dtype = 0; dtype < 8; ++dtype) {
    for (std::uint32_t sums = 0; sums < 8; ++sums) {
      param->dtype = dtype;
      param->sum_dtype = sums;
      const bool right = is_floating(dtype) && sums == wide_dtype(dtype);
      const std::string found = check_tables(job.tables()).value_or(Failure{}).message;
      EXPECT_EQ(found.find("has a dtype that is not floating") == std::string::npos, right)
          << dtype << ", " << sums << ": " << found;
    }
  }
}

TEST(FailingRun, AnArenaThatDoesNotFit) {
  HandJob job(1);
  job.rank(0).compute("F", {}, [](Step&) { return 0; });
  job.finish();
  job.rank(0).tables().arena_bytes = std::uint64_t{1} << 60;
  Failure failure;
  EXPECT_FALSE(Executor::create(job.tables(), make_cpu_device(), {}, failure));
  EXPECT_EQ(failure.code, kOutOfMemory);
}

TEST(FailingRun, TheFlightRecordCannotBeWritten) {
  HandJob job(1);
  job.rank(0).compute("F", {}, [](Step&) { return 0; });
  ExecutorOptions options;
  options.out_folder = "/dev/null";
  Failure failure;
  EXPECT_FALSE(Executor::create(job.finish(), make_cpu_device(), options, failure));
  EXPECT_EQ(failure.code, kOutputUnwritable);
  EXPECT_EQ(failure.message,
            "cannot write the flight record `/dev/null/flight.0`: Not a directory");
  EXPECT_EQ(failure.rank, 0u);
  EXPECT_FALSE(failure.step);
}

}  // namespace
}  // namespace piper::runtime
