// Whole trainings on the CUDA executor with the driver that runs kernels on the host: every
// schedule of the library. The results equal those of the interpreter for the same programs.

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "runtime/cuda/gpu.h"
#include "runtime/cuda/role_scan.h"
#include "tests/cuda/cuda_laws.h"
#include "tests/cuda/host_driver.h"
#include "tests/cuda/planned_laws.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/test_call.h"

namespace piper::test {
namespace {

decltype(LawRunOptions::executor) on_host(const std::vector<std::string>& images,
                                          const HostOptions& options = {}) {
  return executors_on(images, [options] { return std::make_unique<HostDriver>(options); });
}

class CudaRun : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    std::string reason;
    device_ = find_test_device(reason);
    laws_ = std::make_unique<PlannedLaws>();
    mlp_ = &laws_->add("mlp", kMlp);
    for (const tensor::DType dtype : {tensor::DType::bf16, tensor::DType::f64}) {
      for (const PlannedLaw* each : laws_->add_library(dtype)) library_.push_back(each);
      for (const PlannedLaw* each : laws_->add_lines(dtype)) lines_.push_back(each);
    }
    attention_ = &laws_->add("attention", kAttention, tensor::DType::f32);
    flash_ = &laws_->add("grouped heads", flash_source(4, 2, 64, 16), tensor::DType::bf16);
    masked_ = &laws_->add("masked loss", kMasked);
    laws_->build(*device_);
  }
  static void TearDownTestSuite() {
    library_.clear();
    lines_.clear();
    laws_.reset();
    device_.reset();
  }

  static LawRunOptions options() { return laws_->options(); }
  static const std::vector<std::string>& images() { return laws_->images(); }
  static LawRun interpreted(const PlannedLaw& planned) { return laws_->interpreted(planned); }
  static LawRun run(const PlannedLaw& planned, const HostOptions& host = {}) {
    return laws_->run(planned, [host] { return std::make_unique<HostDriver>(host); });
  }

  static inline std::unique_ptr<TestDevice> device_;
  static inline std::unique_ptr<PlannedLaws> laws_;
  static inline const PlannedLaw *mlp_ = nullptr, *attention_ = nullptr, *flash_ = nullptr,
                                 *masked_ = nullptr;
  static inline std::vector<const PlannedLaw*> library_, lines_;
};

/// The driver overwrites all of each workspace: other data there would be lost.
TEST_F(CudaRun, AttentionOfTheLibraryKeepsToItsWorkspace) {
  for (const auto& [planned, bound] : {std::pair{attention_, 1e-4}, {flash_, 0x1p-7}}) {
    SCOPED_TRACE(planned->what);
    std::vector<HostCall> calls;
    HostOptions host;
    host.calls = &calls;
    const LawRun oracle = interpreted(*planned), made = run(*planned, host);
    ASSERT_EQ(made.losses.size(), static_cast<std::size_t>(kLawSteps));
    EXPECT_EQ(first_difference(made, oracle, bound), "");
    const auto attentions = std::count_if(calls.begin(), calls.end(), [](const HostCall& call) {
      return call.kind == HostCall::Kind::attend;
    });
    EXPECT_GE(attentions, 4) << "a layer on each rank, forward and backward";
    for (const HostCall& call : calls)
      EXPECT_EQ(call.function.find("attend"), std::string::npos) << call.function;
  }
}

TEST_F(CudaRun, OneRankHasTheBitsOfTheInterpreter) {
  const LawRun oracle = interpreted(*mlp_), made = run(*mlp_);
  ASSERT_EQ(made.losses.size(), static_cast<std::size_t>(kLawSteps));
  EXPECT_EQ(first_bit_difference(made, oracle), "");
  EXPECT_EQ(made.held_out, oracle.held_out);
  EXPECT_EQ(made.norms, oracle.norms);
}

/// The count is accumulated over the microbatches of a rank, each with a different number of
/// targets that count.
TEST_F(CudaRun, AMaskedLossOverMicrobatchesHasTheBitsOfTheInterpreter) {
  const LawRun oracle = interpreted(*masked_), made = run(*masked_);
  ASSERT_EQ(made.losses.size(), static_cast<std::size_t>(kLawSteps));
  EXPECT_EQ(first_bit_difference(made, oracle), "");
  EXPECT_EQ(made.held_out, oracle.held_out);
}

/// Each rank's arena fits on the device, all together do not: reported before anything is
/// allocated.
TEST_F(CudaRun, ArenasThatFitOnlyOneByOne) {
  const auto job = lines_.front()->law->program->make_job(options());
  ASSERT_TRUE(job);
  const PiperJob& tables = job->tables();
  std::uint64_t sum = 0;
  for (std::uint32_t r = 0; r < tables.num_ranks; ++r) sum += tables.ranks[r].program->arena_bytes;
  HostOptions host;
  host.memory = sum - 1;
  runtime::Failure failure;
  EXPECT_FALSE(on_host(images(), host)(*job, {}, failure));
  EXPECT_EQ(failure.code, runtime::kCudaOutOfMemory);
  EXPECT_TRUE(failure.message.starts_with("4 arenas of `")) << failure.message;
}

/// Without attention, whose sums the runtime's kernels add in another order than the CPU's loops,
/// every bit is that of the interpreter: messages add in the same order, random numbers are those
/// of their samples.
TEST_F(CudaRun, EveryWayToCutHasTheBitsOfTheInterpreter) {
  std::uint64_t seed = 1;
  for (const PlannedLaw* planned : lines_) {
    const PlannedLaw& each = *planned;
    SCOPED_TRACE(each.what);
    const LawRun oracle = interpreted(each);
    const LawRun made = run(each, {.seed = seed++});
    ASSERT_EQ(made.losses.size(), static_cast<std::size_t>(kLawSteps));
    EXPECT_EQ(first_bit_difference(made, oracle), "");
    EXPECT_EQ(made.held_out, oracle.held_out);
    EXPECT_EQ(first_bit_difference(run(each, {.seed = seed++}), made), "");
  }
}

/// Sums of attention are in another order here. In bf16 that rounds some of its results to a
/// neighbour, 2^-8 away; an error of that size in a few of the numbers is left of it in the norm of
/// a tensor.
double bound_of_attention(tensor::DType dtype) {
  return dtype == tensor::DType::bf16 ? 0x1p-8 : 1e-10;
}

TEST_F(CudaRun, EveryScheduleOfTheLibrary) {
  std::uint64_t seed = 1;
  for (const PlannedLaw* planned : library_) {
    const PlannedLaw& each = *planned;
    SCOPED_TRACE(each.what);
    const LawRun oracle = interpreted(each), made = run(each, {.seed = seed++});
    ASSERT_EQ(made.losses.size(), static_cast<std::size_t>(kLawSteps));
    EXPECT_EQ(first_difference(made, oracle, bound_of_attention(each.dtype)), "");
  }
}

/// The other tests rely on this: without events the streams run so that a missing one is noticed.
TEST_F(CudaRun, AMissingEventShows) {
  LawRunOptions of_job = options();
  of_job.held_out_steps = 0;
  const PlannedLaw& each = *lines_.front();
  const auto job = each.law->program->make_job(of_job);
  ASSERT_TRUE(job);
  const auto losses = [&](const HostOptions& host) {
    std::vector<double> found;
    runtime::Failure failure;
    const auto executor = on_host(images(), host)(*job, {}, failure);
    EXPECT_TRUE(executor) << describe(failure);
    executor->run(runtime::Phase::training, kLawSteps, [&](const runtime::StepRecord& step) {
      found.push_back(step.loss);
      return std::nullopt;
    });
    return found;
  };
  const std::vector<double> whole = losses({});
  EXPECT_EQ(whole.size(), static_cast<std::size_t>(kLawSteps));
  int shown = 0;
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    EXPECT_EQ(losses({.seed = seed}), whole);
    shown += losses({.seed = seed, .deaf = true}) != whole;
  }
  EXPECT_EQ(shown, 4);
}

/// Steps as graphs give the bits of steps that are enqueued action by action, over runs of training
/// and of held-out data in turns; the device gets each of them by one call.
TEST_F(CudaRun, CapturedStepsHaveTheBitsOfOthers) {
  constexpr std::uint64_t kSteps = 5;
  struct Seen {
    std::vector<double> losses;
    std::size_t graphs = 0, launches = 0;
    std::vector<double> parameter;
  };
  std::uint64_t seed = 1;
  const auto run = [&](const PlannedLaw& planned, bool graphs) {
    Seen seen;
    LawRunOptions of_job = options();
    const auto job = planned.law->program->make_job(of_job);
    EXPECT_TRUE(job);
    std::vector<HostCall> calls;
    HostOptions host{.seed = seed++};
    host.calls = &calls;
    runtime::Failure failure;
    runtime::ExecutorOptions settings = with_graphs(graphs);
    const auto executor = on_host(images(), host)(*job, settings, failure);
    EXPECT_TRUE(executor) << describe(failure);
    calls.clear();  // those of the set-up
    const auto keep = [&](const runtime::StepRecord& step) {
      seen.losses.push_back(step.loss);
      return std::nullopt;
    };
    for (int round = 0; round < 2; ++round) {
      for (const runtime::Phase phase : {runtime::Phase::training, runtime::Phase::evaluation}) {
        const auto result = executor->run(phase, kSteps, keep);
        EXPECT_EQ(result.ended, runtime::Ended::finished)
            << (result.failure ? describe(*result.failure) : "");
      }
    }
    EXPECT_TRUE(executor->warnings().empty());
    seen.parameter =
        executor->read_parameter(executor->parameter_names().front(), runtime::ParamTensor::values)
            ->values;
    for (const HostCall& call : calls) {
      seen.graphs += call.kind == HostCall::Kind::graph;
      seen.launches += call.kind == HostCall::Kind::launch;
    }
    return seen;
  };
  std::vector<const PlannedLaw*> all = {mlp_, library_.front(), library_.back()};
  all.insert(all.end(), lines_.begin(), lines_.end());
  for (const PlannedLaw* each : all) {
    SCOPED_TRACE(each->what);
    const Seen plain = run(*each, false), captured = run(*each, true);
    EXPECT_EQ(plain.losses.size(), 4 * kSteps);
    EXPECT_EQ(captured.losses, plain.losses);
    EXPECT_EQ(captured.parameter, plain.parameter);
    EXPECT_EQ(plain.graphs, 0u);
    EXPECT_EQ(captured.graphs, 4 * kSteps - 2 * runtime::cuda::kStepsInFlight);
    EXPECT_EQ(captured.launches * kSteps, plain.launches);
  }
}

/// The last step between timers: actions of a stream one after the other, each after its waits,
/// products within their actions.
TEST_F(CudaRun, TheLastStepIsTimed) {
  for (const std::uint64_t steps : {1u, 2u, 5u}) {
    for (const PlannedLaw* each : {mlp_, lines_.back(), library_.front()}) {
      SCOPED_TRACE(each->what);
      LawRunOptions of_job = options();
      of_job.held_out_steps = 0;
      const auto job = each->law->program->make_job(of_job);
      ASSERT_TRUE(job);
      runtime::ExecutorOptions settings;
      settings.record = true;
      runtime::Failure failure;
      const auto executor = on_host(images())(*job, settings, failure);
      ASSERT_TRUE(executor) << describe(failure);
      ASSERT_EQ(executor->run(runtime::Phase::training, steps).ended, runtime::Ended::finished);
      const std::vector<runtime::RecordedRank> recorded = executor->recorded();
      const PiperJob& tables = job->tables();
      ASSERT_EQ(recorded.size(), tables.num_ranks);
      std::uint64_t products = 0;
      for (std::uint32_t r = 0; r < tables.num_ranks; ++r) {
        runtime::cuda::RoleScan scan;
        ASSERT_FALSE(runtime::cuda::scan_role(*job->enqueue(r, false), tables, tables.ranks[r],
                                              false, scan));
        ASSERT_EQ(recorded[r].actions.size(), scan.actions.size());
        std::map<std::pair<std::uint32_t, std::uint32_t>, const runtime::RecordedAction*> at;
        for (const runtime::RecordedAction& action : recorded[r].actions) {
          at[{action.stream, action.position}] = &action;
          EXPECT_LT(action.begin_ns, action.end_ns);
          EXPECT_LE(action.product_ns + action.attention_ns, action.end_ns - action.begin_ns);
          EXPECT_EQ(action.least_ns, action.end_ns - action.begin_ns);
          products += action.product_ns > 0;
          const auto before = at.find({action.stream, action.position - 1});
          EXPECT_GE(action.begin_ns, before == at.end() ? 0 : before->second->end_ns);
        }
        for (const runtime::cuda::ScannedAction& action : scan.actions) {
          for (const PiperWait& wait : action.waits) {
            if (wait.distance > 0) continue;
            EXPECT_GE((at.at({action.stream, action.position})->begin_ns),
                      (at.at({wait.stream, wait.position})->end_ns));
          }
        }
      }
      EXPECT_GT(products, 0u);
    }
  }
}

/// The enqueuing functions built by the host's compiler make the same requests as the walk over
/// their tables, which the other tests use.
TEST_F(CudaRun, GeneratedFunctionsEnqueueTheSame) {
  const TemporaryFolder folder;
  for (const PlannedLaw* each : {lines_.back(), library_.front()}) {
    LawRunOptions generated = options();
    generated.engine = backend::Engine::generated;
    generated.cache_folder = folder.path();
    generated.executor = on_host(images());
    EXPECT_EQ(first_bit_difference(each->law->program->run(generated), run(*each)), "")
        << each->what;
  }
}

/// The calls in words: per stream the launched kernels, and the end of an action (stream, number)
/// for which every action waits.
struct Asked {
  using End = std::pair<std::uint32_t, std::uint64_t>;  // stream, actions that have ended on it
  std::vector<std::vector<std::string>> launches;
  // of an action, numbered by the actions before it on its stream
  std::map<End, std::set<End>> waits;
};

Asked read_calls(const std::vector<HostCall>& calls) {
  Asked asked;
  std::map<std::uint32_t, std::uint64_t> ended;  // per stream
  // Event and version -> the actions that had ended where it was recorded.
  std::map<std::pair<std::uint32_t, std::uint64_t>, Asked::End> records;
  for (const HostCall& call : calls) {
    if (asked.launches.size() <= call.stream) asked.launches.resize(call.stream + 1);
    switch (call.kind) {
      case HostCall::Kind::launch: asked.launches[call.stream].push_back(call.function); break;
      case HostCall::Kind::write: ++ended[call.stream]; break;
      case HostCall::Kind::record:
        records[{call.event, call.version}] = {call.stream, ended[call.stream]};
        break;
      case HostCall::Kind::wait:
        // An event that was never recorded would hold up nothing.
        EXPECT_TRUE(records.contains({call.event, call.version}));
        asked.waits[{call.stream, ended[call.stream]}].insert(records[{call.event, call.version}]);
        break;
      case HostCall::Kind::copy:
      case HostCall::Kind::fill:
      case HostCall::Kind::multiply:
      case HostCall::Kind::attend:
      case HostCall::Kind::graph:
      case HostCall::Kind::comm: break;
    }
  }
  return asked;
}

/// Without the runtime's own.
std::vector<std::string> launched_by_roles(const std::vector<std::string>& launches) {
  std::vector<std::string> kernels;
  for (const std::string& each : launches) {
    if (!each.starts_with("piper_")) kernels.push_back(each);
  }
  return kernels;
}

/// The launches of this number of steps, from the bodies of the device program.
std::vector<std::string> planned_launches(const backend::Job& job, std::size_t rank,
                                          std::uint64_t steps) {
  const std::string role = job.tables().ranks[rank].program->role;
  const auto& roles = job.training().roles;
  const backend::DeviceProgram& program = *std::find_if(
      roles.begin(), roles.end(), [&](const auto& each) { return each.role == role; });
  std::vector<std::string> of_step, all;
  backend::cuda::KernelSet known = job.kernels();
  for (const backend::Instruction& each : program.instructions) {
    if (each.kind != backend::Instruction::Kind::run) continue;
    for (const backend::cuda::BodyStep& step : known.add(job.training().bodies[each.body])) {
      if (step.kind == backend::cuda::BodyStep::Kind::kernel)
        of_step.push_back(known.list()[step.number].name);
    }
  }
  for (std::uint64_t step = 0; step < steps; ++step)
    all.insert(all.end(), of_step.begin(), of_step.end());
  return all;
}

/// The device gets the requests of the plan: every wait of it and no other except at matched
/// communications; kernels in issue order.
TEST_F(CudaRun, CallsAreThoseOfThePlan) {
  constexpr std::uint64_t kSteps = 3;
  for (const PlannedLaw* each : {mlp_, lines_.back(), library_.front(), library_.back()}) {
    SCOPED_TRACE(each->what);
    LawRunOptions of_job = options();
    of_job.held_out_steps = 0;
    const auto job = each->law->program->make_job(of_job);
    ASSERT_TRUE(job);
    std::vector<HostCall> calls;
    HostOptions host;
    host.calls = &calls;
    runtime::Failure failure;
    const auto executor = on_host(images(), host)(*job, with_graphs(false), failure);
    ASSERT_TRUE(executor) << describe(failure);
    calls.clear();  // those of the set-up
    ASSERT_EQ(executor->run(runtime::Phase::training, kSteps).ended, runtime::Ended::finished);
    const Asked asked = read_calls(calls);

    const PiperJob& tables = job->tables();
    std::uint32_t first_stream = 0;
    std::size_t planned_waits = 0;
    for (std::uint32_t r = 0; r < tables.num_ranks; ++r) {
      const PiperProgram& program = *tables.ranks[r].program;
      runtime::cuda::RoleScan scan;
      const auto wrong =
          runtime::cuda::scan_role(*job->enqueue(r, false), tables, tables.ranks[r], false, scan);
      ASSERT_FALSE(wrong) << describe(*wrong);
      for (std::uint64_t step = 0; step < kSteps; ++step) {
        for (const runtime::cuda::ScannedAction& action : scan.actions) {
          std::set<Asked::End> planned;
          for (const PiperWait& wait : action.waits) {
            if (step >= wait.distance)
              planned.insert({first_stream + wait.stream,
                              (step - wait.distance) * program.streams[wait.stream].num_actions +
                                  wait.position + 1});
          }
          planned_waits += planned.size();
          const auto found = asked.waits.find(
              {first_stream + action.stream,
               step * program.streams[action.stream].num_actions + action.position});
          const std::set<Asked::End> seen =
              found == asked.waits.end() ? std::set<Asked::End>{} : found->second;
          // The queue that moves a message waits for the other members, too, and they for it.
          EXPECT_TRUE(action.stream == 0 ? seen == planned
                                         : std::includes(seen.begin(), seen.end(), planned.begin(),
                                                         planned.end()));
        }
      }
      EXPECT_EQ(launched_by_roles(asked.launches[first_stream]), planned_launches(*job, r, kSteps));
      first_stream += program.num_streams;
    }
    EXPECT_EQ(planned_waits > 0, tables.num_ranks > 1);
  }
}

/// All these runs rely on this: the test driver has the same requirements for a product's workspace
/// as cuBLAS.
TEST(HostDriver, AWorkspaceThatCublasWouldNotTakeIsRefused) {
  HostDriver driver({});
  runtime::cuda::CudaStream stream = nullptr;
  runtime::cuda::PlannedCall product = nullptr;
  unsigned char* memory = nullptr;
  constexpr std::uint64_t kBytes = 4096;
  ASSERT_EQ(driver.create_stream(runtime::cuda::Priority::compute, &stream),
            runtime::cuda::kSuccess);
  ASSERT_EQ(driver.allocate(3 * kBytes, &memory), runtime::cuda::kSuccess);
  constexpr PiperGemm kOne = {
      .batch = 1, .m = 1, .n = 1, .k = 1, .transpose_a = 0, .transpose_b = 0, .dtype = PIPER_F32};
  const PiperCallShape shape = {.kind = PIPER_CALL_GEMM, .number = 0, .of = {.gemm = kOne}};
  ASSERT_EQ(driver.plan_call(shape, PIPER_END_WRITES, kBytes, &product), runtime::cuda::kSuccess);
  unsigned char* const matrices = memory + 2 * kBytes;
  const auto multiply = [&](std::uint64_t past, std::uint64_t bytes) {
    TestCall call(kOne, matrices, matrices + 4, matrices + 8);
    call.set_workspace(memory + past, bytes);
    return driver.call(stream, product, call.get());
  };
  EXPECT_EQ(multiply(0, kBytes), runtime::cuda::kSuccess);
  EXPECT_EQ(multiply(256, kBytes), runtime::cuda::kSuccess);
  EXPECT_NE(multiply(64, kBytes), runtime::cuda::kSuccess);
  EXPECT_NE(multiply(0, kBytes - 1), runtime::cuda::kSuccess);
}

}  // namespace
}  // namespace piper::test
