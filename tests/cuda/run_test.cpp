// Whole trainings on the CUDA executor with the driver that runs kernels on the host: every schedule of the library. What comes out is what the interpreter gives for the same programs.

#include <gtest/gtest.h>

#include "frontend/lower/lower.h"
#include "runtime/cuda/cuda_executor.h"
#include "tests/cuda/host_driver.h"
#include "tests/laws/law_runs.h"
#include "tests/laws/library_cases.h"
#include "tests/support/temporary_folder.h"

namespace piper::test {
namespace {

/// A program from text, planned for CUDA.
struct CudaLaw {
  explicit CudaLaw(const std::string& text, tensor::DType dtype = tensor::DType::f64) {
    files.add("small.pipe", text);
    DiagnosticSink sink(context.locations);
    const auto file = source::open("small.pipe", {}, files, context.locations.files(), sink);
    const sema::Program analysed = sema::analyse(*file, files, context, sink);
    const auto lowered = analysed.ok ? lower::lower_train(analysed, analysed.find_train("small"), {}, context, sink, dtype) : std::nullopt;
    EXPECT_TRUE(lowered) << text << render_text(sink.sorted(), context.locations.files());
    if (lowered) program = std::make_unique<LawProgram>(context, lowered->model, lowered->strategy, backend::Target::cuda);
  }
  source::MemoryFileSystem files;
  Context context;
  std::unique_ptr<LawProgram> program;
};

/// An executor over a host driver.
auto on_host(const std::vector<std::string>& images, const HostOptions& options = {}) {
  return [=](const backend::Job& job, const runtime::ExecutorOptions& settings, runtime::Failure& failure) {
    runtime::cuda::GpuPrograms programs{images, {}, {}};
    for (std::size_t rank = 0; rank < job.tables().num_ranks; ++rank) {
      programs.training.push_back(job.enqueue(rank, false));
      if (job.evaluation() != nullptr) programs.evaluation.push_back(job.enqueue(rank, true));
    }
    return runtime::cuda::create_cuda_executor(job.tables(), programs, std::make_unique<HostDriver>(options), settings, failure);
  };
}

constexpr const char* kMlp = R"(use std.models.mlp
mesh one(d: 1)
train small = mlp(layers: 2, features: 4, hidden: 6, classes: 3) on one {
    data:  synthetic(batch: 8, classes: 3)
    optim: adamw(lr: 1e-2, clip: 0.1)
    steps: 3
}
)";

/// Six layers that draw random numbers, on two stages and, where `lines` says so, replicated.
std::string noisy_source(const std::string& lines) {
  return R"(use std.schedules.one_f_one_b
model net(layers: int) {
    input x: tensor[batch, dim]
    var h = x
    for l in 0..layers { h = layer(h) }
    loss square(h)
}
model layer(x: tensor[batch, dim]) -> tensor[batch, dim] {
    weight up[dim, inner: 3*dim], down[inner, dim] = normal(0.4)
    return x + dropout(gelu(layer_norm(x) @ up), 0.2) @ down
}
mesh line(pp: 2, dp: 2)
train small = net(layers: 6) on line {
    data:  synthetic(batch: 16, dim: 4)
    optim: adamw(lr: 1e-2, clip: 1.0)
    steps: 3
    one_f_one_b(pp, 4)
    )" + lines + "\n}\n";
}
constexpr std::pair<const char*, const char*> kLines[] = {
    {"whole", "replicate model over dp"},
    {"buckets", "replicate model over dp with bucket: 256"},
    {"zero 1", "replicate model over dp with bucket: 256, zero: 1"},
    {"zero 2", "replicate model over dp with bucket: 256, zero: 2"},
    {"zero 3", "replicate model over dp with bucket: 256, zero: 3, prefetch: 1"},
    {"recompute", "replicate model over dp with zero: 1\n    recompute layer[1], layer[4]"},
};

/// Programs that share one object of kernels: a host compiler takes longer than the runs.
class CudaRun : public testing::Test {
 protected:
  struct Planned {
    std::string what;
    std::unique_ptr<CudaLaw> law;
  };

  static void SetUpTestSuite() {
    folder_ = std::make_unique<TemporaryFolder>();
    kernels_ = std::make_unique<backend::cuda::KernelSet>();
    mlp_ = plan("mlp", kMlp);
    for (const LibraryCase& each : library_cases()) {
      for (const char* zero : {"zero: 1", "zero: 2", "zero: 3, prefetch: 1"}) {
        if (each.replicates && zero != std::string("zero: 1")) continue;
        library_.push_back(plan(each.call + ", " + zero, gpt_source(each, zero)));
      }
    }
    for (const auto& [name, lines] : kLines) lines_.push_back(plan(name, noisy_source(lines)));
    images_ = {build_host_image(*kernels_, folder_->path()), build_own_host_image(folder_->path())};
  }
  static void TearDownTestSuite() {
    library_.clear();
    lines_.clear();
    mlp_ = {};
    kernels_.reset();
    folder_.reset();
  }

  static Planned plan(std::string what, const std::string& text, tensor::DType dtype = tensor::DType::f64) {
    Planned made{std::move(what), std::make_unique<CudaLaw>(text, dtype)};
    // Its kernels come into the set.
    EXPECT_TRUE(made.law->program && *made.law->program && made.law->program->make_job(options())) << made.what;
    return made;
  }
  static LawRunOptions options() {
    LawRunOptions options;
    options.kernels = kernels_.get();
    options.held_out_steps = 1;
    return options;
  }
  static LawRun interpreted(const Planned& planned) { return planned.law->program->run(options()); }
  static LawRun run(const Planned& planned, const HostOptions& host = {}) {
    LawRunOptions on_cuda = options();
    on_cuda.executor = on_host(images_, host);
    return planned.law->program->run(on_cuda);
  }

  static inline std::unique_ptr<TemporaryFolder> folder_;
  static inline std::unique_ptr<backend::cuda::KernelSet> kernels_;
  static inline std::vector<std::string> images_;
  static inline Planned mlp_;
  static inline std::vector<Planned> library_, lines_;
};

TEST_F(CudaRun, OneRankHasTheBitsOfTheInterpreter) {
  const LawRun oracle = interpreted(mlp_), made = run(mlp_);
  ASSERT_EQ(made.losses.size(), static_cast<std::size_t>(kLawSteps));
  EXPECT_EQ(first_bit_difference(made, oracle), "");
  EXPECT_EQ(made.held_out, oracle.held_out);
  EXPECT_EQ(made.norms, oracle.norms);
}

/// Without attention, whose sums the runtime's kernels add in another order than the CPU's loops, every bit is that of the interpreter: messages add in the same order, random
/// numbers are those of their samples.
TEST_F(CudaRun, EveryWayToCutHasTheBitsOfTheInterpreter) {
  std::uint64_t seed = 1;
  for (const Planned& each : lines_) {
    SCOPED_TRACE(each.what);
    const LawRun oracle = interpreted(each);
    const LawRun made = run(each, {.seed = seed++});
    ASSERT_EQ(made.losses.size(), static_cast<std::size_t>(kLawSteps));
    EXPECT_EQ(first_bit_difference(made, oracle), "");
    EXPECT_EQ(made.held_out, oracle.held_out);
    EXPECT_EQ(first_bit_difference(run(each, {.seed = seed++}), made), "");
  }
}

TEST_F(CudaRun, EveryScheduleOfTheLibrary) {
  std::uint64_t seed = 1;
  for (const Planned& each : library_) {
    SCOPED_TRACE(each.what);
    const LawRun oracle = interpreted(each), made = run(each, {.seed = seed++});
    ASSERT_EQ(made.losses.size(), static_cast<std::size_t>(kLawSteps));
    EXPECT_EQ(first_difference(made, oracle, 1e-10), "");
  }
}

}  // namespace
}  // namespace piper::test
