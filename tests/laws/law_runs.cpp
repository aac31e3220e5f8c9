#include "tests/laws/law_runs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <iterator>
#include <tuple>

#include "backend/reference/sequential_run.h"
#include "ir/dag/bucket_layout.h"
#include "ir/verify/verify.h"
#include "runtime/checkpoint/checkpoint.h"
#include "runtime/checkpoint/checkpoint_writer.h"
#include "runtime/checkpoint/run_facts.h"
#include "runtime/checkpoint/state_tensors.h"
#include "runtime/data/step_data.h"
#include "runtime/device/library_api.h"
#include "runtime/device/state.h"
#include "runtime/launch/train.h"
#include "tests/support/compile.h"
#include "tests/support/run_options.h"

namespace piper::test {

namespace {

std::string reports(const DiagnosticSink& sink) {
  return render_text(sink.sorted(), sink.locations().files());
}

runtime::Options runtime_options(runtime::Math math) {
  runtime::Options options = checked_run();
  options.math = math;
  return options;
}

bool is_frozen(const dag::Dag& dag, const std::string& name) {
  return std::any_of(dag.params.begin(), dag.params.end(), [&](const tensor::Param& param) {
    return param.frozen && dag.context->text(param.name) == name;
  });
}

/// The moving average of a trained parameter; nothing without one.
std::optional<runtime::ParameterValues> average_of(const dag::Dag& dag, const std::string& name,
                                                   const runtime::Executor& executor) {
  const std::uint32_t slot = dag::average_slot(dag.settings);
  if (slot == 0 || is_frozen(dag, name)) return std::nullopt;
  const auto first = static_cast<std::uint32_t>(runtime::ParamTensor::slot0);
  return executor.read_parameter(name, static_cast<runtime::ParamTensor>(first + slot - 1));
}

// ---- checkpoints

/// Null without a name; fails the test, and is null, if it cannot be read.
std::unique_ptr<runtime::Checkpoint> open_checkpoint(const std::string& folder) {
  if (folder.empty()) return nullptr;
  runtime::Failure failure;
  auto checkpoint = runtime::Checkpoint::open(folder, failure);
  EXPECT_TRUE(checkpoint) << describe(failure);
  return checkpoint;
}

/// Compares a checkpoint with the run, and loads it; fails the test if that fails.
bool is_loaded(const runtime::Checkpoint& checkpoint, const runtime::Executor& executor) {
  const runtime::StateMemory memory = executor.state_memory();
  const runtime::RankParameters parameters(memory.ranks);
  auto failure = checkpoint.compare(parameters, runtime::facts_of(memory, executor.data_identity()),
                                    runtime::Restored::all);
  if (!failure) failure = checkpoint.load(memory, runtime::Restored::all);
  EXPECT_FALSE(failure) << describe(*failure)
                        << (failure->notes.empty() ? "" : ": " + failure->notes.front().text);
  return !failure;
}

/// Writes a checkpoint; its folder.
std::string save(const runtime::Executor& executor, const std::string& out_folder) {
  const runtime::StateMemory memory = executor.state_memory();
  runtime::CheckpointWriter writer(
      memory,
      {.out_folder = out_folder, .run = runtime::facts_of(memory, executor.data_identity())});
  auto failure = writer.save(executor.next_step());
  if (!failure) failure = writer.finish();
  EXPECT_FALSE(failure) << describe(*failure);
  return writer.folder(executor.next_step());
}

/// The bytes of a checkpoint that each rank writes.
std::vector<std::uint64_t> written_bytes(const runtime::Executor& executor) {
  const runtime::StateMemory memory = executor.state_memory();
  const runtime::RankParameters parameters(memory.ranks);
  std::vector<std::uint64_t> bytes(memory.ranks.size());
  for (const runtime::StateTensor& tensor : runtime::state_layout(parameters).tensors) {
    for (const runtime::StateRange& range : runtime::written_ranges(parameters, tensor))
      bytes[range.rank] +=
          (range.end - range.first) * runtime::stored_type_bytes(tensor.stored.type);
  }
  return bytes;
}

// ---- comparisons

bool same_bits(const std::vector<double>& a, const std::vector<double>& b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(double)) == 0);
}

/// Not a number on either side counts as different.
bool within(const std::vector<double>& a, const std::vector<double>& b, double bound) {
  if (a.size() != b.size()) return false;
  double difference = 0, norm = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    difference += (a[i] - b[i]) * (a[i] - b[i]);
    norm += b[i] * b[i];
  }
  return std::sqrt(difference) <= bound * std::max(std::sqrt(norm), 1e-3);
}

template <typename Same>
std::string compare(const std::vector<std::vector<double>>& a,
                    const std::vector<std::vector<double>>& b, const std::string& what,
                    const Same& same) {
  if (a.size() != b.size())
    return what + ": " + std::to_string(a.size()) + " steps against " + std::to_string(b.size());
  for (std::size_t step = 0; step < a.size(); ++step) {
    if (same(a[step], b[step])) continue;
    for (std::size_t i = 0; i < std::min(a[step].size(), b[step].size()); ++i) {
      if (same({a[step][i]}, {b[step][i]})) continue;
      return what + ", step " + std::to_string(step) + ", element " + std::to_string(i) + ": " +
             testing::PrintToString(a[step][i]) + " against " + testing::PrintToString(b[step][i]);
    }
    return what + ", step " + std::to_string(step) + ": " + std::to_string(a[step].size()) +
           " elements against " + std::to_string(b[step].size());
  }
  return "";
}

template <typename Same>
std::string compare(const std::map<std::string, std::vector<std::vector<double>>>& a,
                    const std::map<std::string, std::vector<std::vector<double>>>& b,
                    const std::string& what, const Same& same) {
  if (a.size() != b.size())
    return what + ": " + std::to_string(a.size()) + " tensors against " + std::to_string(b.size());
  for (const auto& [name, values] : a) {
    const auto other = b.find(name);
    if (other == b.end()) return what + " of " + name + " is missing";
    if (const std::string found = compare(values, other->second, what + " of " + name, same);
        !found.empty())
      return found;
  }
  return "";
}

}  // namespace

LawProgram::LawProgram(Context& context, tensor::Graph model, directive::Strategy strategy,
                       backend::Target target)
    : sink_(context.locations),
      target_(target),
      model_(std::move(model)),
      strategy_(std::move(strategy)) {
  if (!strategy_.settings.data) {
    directive::Data& data = strategy_.settings.data.emplace();
    data.classes = 5;
    const Symbol batch = context.symbol("batch");
    for (const tensor::Dim& dim : model_.value(model_.inputs.front().value).type.dims) {
      if (dim.name == batch) data.batch = dim.extent;
    }
  }
  strategy_.settings.held_out = strategy_.settings.data;
  dag_ = compile(false);
}

void LawProgram::hold_out(const directive::Data& data) {
  strategy_.settings.held_out = data;
  dag_->settings.held_out = data;
}

std::optional<dag::Dag> LawProgram::compile(bool forward_only) {
  passes::Options options;
  const auto workspace = backend::workspace_bytes(target_);
  options.workspace_bytes = workspace;
  options.forward_only = forward_only;
  std::optional<dag::Dag> dag = test::compile(model_, strategy_, sink_, options);
  if (dag && !(verify::verify(*dag, sink_) && verify::verify_workspaces(*dag, workspace, sink_)))
    dag.reset();
  EXPECT_TRUE(dag) << reports(sink_);
  return dag;
}

std::unique_ptr<backend::Job> LawProgram::make_job(const LawRunOptions& options,
                                                   std::uint64_t first_step) {
  if (options.held_out_steps != 0 && !held_out_) {
    held_out_ = compile(true);
    if (!held_out_) return nullptr;
  }
  backend::JobOptions job_options;
  job_options.target = target_;
  job_options.kernels = options.kernels;
  job_options.engine = options.engine;
  job_options.first_step = first_step;
  job_options.jit.cache_folder = options.cache_folder;
  job_options.jit.self_check = false;  // all results are compared
  auto job = backend::make_job(*dag_, options.held_out_steps != 0 ? &*held_out_ : nullptr,
                               job_options, sink_);
  EXPECT_TRUE(job) << reports(sink_);
  return job;
}

LawRun LawProgram::run(const LawRunOptions& options) {
  LawRun result;
  const auto resumed = open_checkpoint(options.resumed);
  if (!resumed && !options.resumed.empty()) return result;
  const auto job = make_job(options, resumed ? resumed->manifest().step : 0);
  if (!job) return result;
  runtime::ExecutorOptions settings;
  settings.runtime = runtime_options(options.math);
  settings.first_values = !resumed;
  runtime::Failure failure;
  const auto executor =
      options.executor
          ? options.executor(*job, settings, failure)
          : runtime::Executor::create(job->tables(),
                                      runtime::make_cpu_device({options.delays, options.transport}),
                                      settings, failure);
  EXPECT_TRUE(executor) << describe(failure);
  if (!executor || (resumed && !is_loaded(*resumed, *executor))) return result;
  for (const std::string& name : executor->parameter_names()) {
    if (auto values = executor->read_parameter(name, runtime::ParamTensor::values))
      result.initial[name] = std::move(values->values);
  }
  for (int step = 0; step < options.steps; ++step) {
    const runtime::RunResult ran =
        executor->run(runtime::Phase::training, 1, [&](const runtime::StepRecord& record) {
          result.losses.push_back(record.loss);
          result.norms.push_back(record.gradient_norm.value_or(-1));
          std::vector<double>& sums = result.sums.emplace_back();
          for (const std::vector<double>& of_loss : record.microbatch_sums)
            sums.insert(sums.end(), of_loss.begin(), of_loss.end());
          return std::nullopt;
        });
    EXPECT_EQ(ran.ended, runtime::Ended::finished) << (ran.failure ? describe(*ran.failure) : "");
    if (ran.ended != runtime::Ended::finished) return result;
    for (const std::string& name : executor->parameter_names()) {
      auto gradient = executor->read_parameter(name, runtime::ParamTensor::gradient);
      auto values = executor->read_parameter(name, runtime::ParamTensor::values);
      EXPECT_TRUE(values && gradient.has_value() != is_frozen(*dag_, name)) << name;
      if (gradient) result.gradients[name].push_back(std::move(gradient->values));
      if (values) result.parameters[name].push_back(std::move(values->values));
      if (auto average = average_of(*dag_, name, *executor))
        result.averages[name].push_back(std::move(average->values));
    }
  }
  if (options.held_out_steps != 0) {
    const std::uint64_t steps = options.held_out_steps == kAllHeldOut
                                    ? executor->evaluation_steps()
                                    : static_cast<std::uint64_t>(options.held_out_steps);
    runtime::LossOverBatches over;
    const runtime::RunResult ran =
        executor->run(runtime::Phase::evaluation, steps, [&](const runtime::StepRecord& record) {
          result.held_out.push_back(record.loss);
          over.add(record);
          return std::nullopt;
        });
    EXPECT_EQ(ran.ended, runtime::Ended::finished) << (ran.failure ? describe(*ran.failure) : "");
    result.held_out_loss = over.value();
  }
  if (!options.out_folder.empty()) {
    result.checkpoint = save(*executor, options.out_folder);
    result.written_bytes = written_bytes(*executor);
  }
  for (std::uint32_t r = 0; r < job->tables().num_ranks; ++r)
    result.state_bytes.push_back(job->tables().ranks[r].program->state_bytes);
  result.arena_bytes = executor->arena_bytes();
  result.touched_bytes = executor->touched_bytes();
  return result;
}

LawRun LawProgram::run_sequential(runtime::Math math) {
  LawRun result;
  const auto job = make_job({});
  if (!job) return result;
  const PiperJob& tables = job->tables();
  runtime::Failure failure;
  const auto data = runtime::open_data(tables.data, std::span(tables.inputs, tables.num_inputs),
                                       tables.seed, runtime::DataUse::training, failure);
  EXPECT_TRUE(data) << describe(failure);
  if (!data) return result;
  runtime::LibrarySwitch library(runtime_options(math));
  const runtime::LibraryCalls* found = library.get(failure);
  EXPECT_TRUE(found) << describe(failure);
  if (!found) return result;
  found->begin_thread(1);
  runtime::DirectCalls calls(*found);
  backend::SequentialHost host;
  host.api = &runtime::DirectCalls::api();
  host.runtime = &calls;
  host.load = [&](std::uint32_t input, std::uint64_t step, std::uint64_t first,
                  std::uint64_t samples,
                  void* to) { return !data->load(input, step, first, samples, to); };
  backend::SequentialRun run(*dag_, std::move(host), tables.seed);
  PiperProgram state{};
  state.params = run.params().data();
  state.num_params = static_cast<std::uint32_t>(run.params().size());
  runtime::initialise_parameters(state, tables.seed, nullptr, run.state(), nullptr);
  for (int step = 0; step < kLawSteps; ++step) {
    const bool done =
        run.step(runtime::scalars_of_step(tables.optimizer, static_cast<std::uint64_t>(step)));
    EXPECT_TRUE(done) << calls.failure();
    if (!done) return result;
    result.norms.push_back(run.gradient_norm());
    std::vector<double>& sums = result.sums.emplace_back();
    for (const std::vector<double>& of_loss : run.loss_sums())
      sums.insert(sums.end(), of_loss.begin(), of_loss.end());
    for (const PiperParam& param : run.params()) {
      const std::string name = param.name;
      // A parameter with several owners has several entries and one counted value.
      if (result.parameters[name].size() > static_cast<std::size_t>(step)) continue;
      if (!is_frozen(*dag_, name)) result.gradients[name].push_back(run.gradient(name));
      result.parameters[name].push_back(run.values(name));
      if (auto average = run.average(name); !average.empty() && !is_frozen(*dag_, name))
        result.averages[name].push_back(std::move(average));
    }
  }
  return result;
}

std::vector<std::vector<double>> LawProgram::inputs_of_step(std::uint64_t step) {
  std::vector<std::vector<double>> inputs;
  const auto job = make_job({});
  if (!job) return inputs;
  const PiperJob& tables = job->tables();
  runtime::Failure failure;
  const auto data = runtime::open_data(tables.data, std::span(tables.inputs, tables.num_inputs),
                                       tables.seed, runtime::DataUse::training, failure);
  EXPECT_TRUE(data) << describe(failure);
  if (!data) return inputs;
  const auto samples = static_cast<std::uint64_t>(dag_->settings.data->batch);
  for (std::uint32_t i = 0; i < tables.num_inputs; ++i) {
    const PiperInput& input = tables.inputs[i];
    std::size_t elements = 1;
    for (std::uint32_t d = 0; d < input.num_dims; ++d)
      elements *= static_cast<std::size_t>(input.dims[d]);
    std::vector<double>& values = inputs.emplace_back(elements);
    // Elements of eight bytes either way.
    if (input.dtype == PIPER_F64) {
      data->load(i, step, 0, samples, values.data());
    } else {
      EXPECT_EQ(input.dtype, PIPER_I64);
      std::vector<std::int64_t> numbers(elements);
      data->load(i, step, 0, samples, numbers.data());
      for (std::size_t k = 0; k < elements; ++k) values[k] = static_cast<double>(numbers[k]);
    }
  }
  return inputs;
}

directive::Strategy one_device(Context& context, const directive::Strategy& strategy) {
  directive::Strategy single = strategy;
  single.directives.clear();
  single.device_sets = {};
  single.mesh.axes = {{context.symbol("device"), 1}};
  return single;
}

void for_each_law(int count, const RandomProgramOptions& options,
                  const std::function<void(DrawnLaw&, Random&)>& body) {
  for_each_case(count, [&](Random& random) {
    DrawnLaw law(random, options);
    SCOPED_TRACE(law.drawn.source);
    ASSERT_TRUE(law.program);  // with the program, which compiling has not shown
    body(law, random);
  });
}

LawProgram DrawnLaw::unsplit() {
  tensor::Graph model = drawn.model;
  // Which weights a line freezes or tunes may depend on stages, which one device does not have.
  for (std::size_t p = 0; p < model.params.size(); ++p) {
    const tensor::Param& param = program.dag().params[p];
    model.params[p].frozen = param.frozen;
    model.params[p].rate = param.rate;
    model.params[p].decay = param.decay;
  }
  directive::Strategy single = one_device(context, drawn.strategy);
  if (single.settings.optimizer) single.settings.optimizer->decay = directive::Decay::all;
  return LawProgram(context, std::move(model), std::move(single));
}

LawRun without_steps(LawRun run, int steps) {
  const auto shorten = [steps](auto& list) {
    list.erase(list.begin(), list.begin() + std::min<std::ptrdiff_t>(steps, std::ssize(list)));
  };
  shorten(run.losses);
  shorten(run.norms);
  shorten(run.sums);
  for (auto* const tensors : {&run.gradients, &run.parameters, &run.averages}) {
    for (auto& [name, values] : *tensors) shorten(values);
  }
  return run;
}

std::string first_bit_difference(const LawRun& a, const LawRun& b) {
  if (const std::string found = compare(a.sums, b.sums, "microbatch sums", same_bits);
      !found.empty())
    return found;
  if (a.parameters.empty()) return "a run without parameters";
  if (const std::string found = compare(a.gradients, b.gradients, "gradient", same_bits);
      !found.empty())
    return found;
  if (const std::string averages = compare(a.averages, b.averages, "average", same_bits);
      !averages.empty())
    return averages;
  return compare(a.parameters, b.parameters, "value", same_bits);
}

std::string first_difference(const LawRun& a, const LawRun& b, double bound) {
  const auto same = [bound](const std::vector<double>& x, const std::vector<double>& y) {
    return within(x, y, bound);
  };
  if (a.losses.empty()) return "nothing ran";
  const std::tuple<const char*, const std::vector<double>&, const std::vector<double>&> figures[] =
      {{"losses ", a.losses, b.losses},
       {"norms ", a.norms, b.norms},
       {"held-out losses ", a.held_out, b.held_out}};
  for (const auto& [what, of_a, of_b] : figures) {
    if (!same(of_a, of_b))
      return what + testing::PrintToString(of_a) + " against " + testing::PrintToString(of_b);
  }
  if (a.parameters.empty()) return "a run without parameters";
  if (const std::string found = compare(a.gradients, b.gradients, "gradient", same); !found.empty())
    return found;
  if (const std::string averages = compare(a.averages, b.averages, "average", same);
      !averages.empty())
    return averages;
  return compare(a.parameters, b.parameters, "value", same);
}

}  // namespace piper::test
