#include "tests/backend/program_runs.h"

#include <gtest/gtest.h>

#include "backend/device_program/device_program.h"
#include "runtime/cpu/cpu_device.h"
#include "runtime/executor/executor.h"
#include "tests/support/compile.h"
#include "tests/support/run_options.h"

namespace piper::test {

namespace {

std::string reports(const DiagnosticSink& sink) {
  return render_text(sink.sorted(), sink.locations().files());
}

std::optional<dag::Dag> compiled(tensor::Graph& model, const directive::Strategy& strategy,
                                 DiagnosticSink& sink, bool forward_only) {
  passes::Options options;
  options.forward_only = forward_only;
  options.workspace_bytes = backend::workspace_bytes();
  std::optional<dag::Dag> dag = test::compile(model, strategy, sink, options);
  EXPECT_TRUE(dag) << reports(sink);
  return dag;
}

}  // namespace

TestProgram::TestProgram(Context& context, tensor::Graph model, directive::Strategy strategy,
                         bool evaluation)
    : sink(context.locations) {
  if (!strategy.settings.data) {
    directive::Data data;
    for (const tensor::Input& input : model.inputs) {
      if (const tensor::Dim* samples = model.type(input.value).samples())
        data.batch = samples->extent;
    }
    data.classes = 5;
    strategy.settings.data = data;
  }
  if (evaluation) strategy.settings.held_out = strategy.settings.data;
  training_ = compiled(model, strategy, sink, false);
  if (evaluation && training_) evaluation_ = compiled(model, strategy, sink, true);
}

std::unique_ptr<backend::Job> TestProgram::job(const backend::JobOptions& options) {
  return backend::make_job(*training_, evaluation_ ? &*evaluation_ : nullptr, options, sink);
}

ProgramRun TestProgram::run(const backend::JobOptions& options, std::uint64_t steps) {
  ProgramRun result;
  const std::unique_ptr<backend::Job> job = this->job(options);
  EXPECT_TRUE(job) << reports(sink);
  if (!job) return result;
  runtime::ExecutorOptions settings;
  settings.runtime = checked_run();
  runtime::Failure failure;
  const std::unique_ptr<runtime::Executor> executor =
      runtime::Executor::create(job->tables(), runtime::make_cpu_device(), settings, failure);
  EXPECT_TRUE(executor) << describe(failure);
  if (!executor) return result;
  const runtime::RunResult ran =
      executor->run(runtime::Phase::training, steps, [&](const runtime::StepRecord& step) {
        result.losses.push_back(step.loss);
        result.norms.push_back(step.gradient_norm.value_or(-1));
        return std::nullopt;
      });
  EXPECT_EQ(ran.ended, runtime::Ended::finished) << (ran.failure ? describe(*ran.failure) : "");
  for (const std::string& name : executor->parameter_names()) {
    if (auto parameter = executor->read_parameter(name, runtime::ParamTensor::values))
      result.parameters[name] = std::move(parameter->values);
  }
  if (!evaluation_) return result;
  const runtime::RunResult evaluated =
      executor->run(runtime::Phase::evaluation, executor->evaluation_steps(),
                    [&](const runtime::StepRecord& step) {
                      result.held_out.push_back(step.loss);
                      return std::nullopt;
                    });
  EXPECT_EQ(evaluated.ended, runtime::Ended::finished)
      << (evaluated.failure ? describe(*evaluated.failure) : "");
  return result;
}

TestProgram gpt_program(Context& context, tensor::DType dtype, bool evaluation) {
  StrategyBuilder build(context, {{"pp", 2}, {"dp", 2}});
  build.line(2, 4).one_f_one_b(2, 4).replicate({"dp"}).clip(0.05);
  build.edit().settings.dtype = dtype;
  return TestProgram(context, small_gpt(context, {.layers = 2, .batch = 8, .dtype = dtype}),
                     build.strategy(), evaluation);
}

}  // namespace piper::test
