// Whole trainings on the CUDA executor with the driver that runs kernels on the host: every schedule of the library. What comes out is what the interpreter gives for the same programs.

#include <gtest/gtest.h>

#include "frontend/lower/lower.h"
#include "runtime/cuda/cuda_executor.h"
#include "tests/cuda/host_driver.h"
#include "tests/laws/law_runs.h"
#include "tests/support/library_declarations.h"
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

TEST(CudaRun, OneRank) {
  const TemporaryFolder folder;
  CudaLaw law(kMlp);
  ASSERT_TRUE(law.program && *law.program);
  backend::cuda::KernelSet kernels;
  LawRunOptions options;
  options.kernels = &kernels;
  options.held_out_steps = 2;
  const LawRun oracle = law.program->run(options);
  options.executor = on_host({build_host_image(kernels, folder.path()), build_own_host_image(folder.path())});
  const LawRun run = law.program->run(options);
  ASSERT_EQ(run.losses.size(), static_cast<std::size_t>(kLawSteps));
  EXPECT_EQ(first_bit_difference(run, oracle), "");
  EXPECT_EQ(run.held_out, oracle.held_out);
}

}  // namespace
}  // namespace piper::test
