#include "frontend/tools/reference.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>

#include "backend/reference/sequential_run.h"
#include "frontend/tools/driver.h"
#include "frontend/tools/initial_weights.h"
#include "frontend/tools/train_job.h"
#include "ir/dag/bucket_layout.h"
#include "llvm/Support/JSON.h"
#include "runtime/data/step_data.h"
#include "runtime/device/library_api.h"
#include "runtime/device/state.h"
#include "runtime/launch/interrupt.h"

namespace piper::tools {
namespace {

/// The largest difference of one kind, with the tensor and step where it was found.
struct Largest {
  double difference = 0;
  std::string where;
  void take(double value, const std::string& name, int step) {
    if (!(value > difference) && !std::isnan(value)) return;
    difference = value;
    where = name + ", step " + std::to_string(step + 1);
  }
};

struct Differences {
  Largest loss, gradient, parameter;
};

/// |a - b| relative to the larger of |b| and 1.
double relative(const std::vector<double>& a, const std::vector<double>& b) {
  if (a.size() != b.size()) return std::numeric_limits<double>::infinity();
  double difference = 0, norm = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    difference += (a[i] - b[i]) * (a[i] - b[i]);
    norm += b[i] * b[i];
  }
  return std::sqrt(difference) / std::max(std::sqrt(norm), 1.0);
}

/// 0 when all bits agree, otherwise the largest absolute difference, at least the smallest number.
double bits(const std::vector<double>& a, const std::vector<double>& b) {
  if (a.size() != b.size()) return std::numeric_limits<double>::infinity();
  double difference = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (std::memcmp(&a[i], &b[i], sizeof(double)) != 0)
      difference =
          std::max({difference, std::fabs(a[i] - b[i]), std::numeric_limits<double>::denorm_min()});
  }
  return difference;
}

/// How a comparison ended. Only one of all steps is printed; a failed one has a diagnostic.
struct Comparison {
  runtime::Ended ended = runtime::Ended::failed;
  int steps = 0;
  Differences differences = {};
  bool parameters = true;  // were compared
  bool gradients = true;   // have a bound
  bool began = false;      // its steps: of several processes all know how it ended
  bool whole() const { return steps == kReferenceSteps && ended != runtime::Ended::failed; }
};

/// The results of a step.
struct StepLosses {
  double loss = 0;
  std::vector<std::vector<double>> sums;
};

/// The first of several processes compares and prints; the others run their ranks of the compared
/// programs.
bool compares(const CudaDevice* cuda) { return cuda == nullptr || cuda->rank() == 0; }

/// Whether the next step begins: several processes begin it together, so that none waits on its
/// device while the first one runs the reference; and one that was interrupted, or has failed,
/// stops all.
runtime::Ended goes_on(Session& session, LocId train, CudaDevice* cuda,
                       const runtime::Interrupt& interrupt) {
  if (cuda == nullptr || cuda->group == nullptr)
    return interrupt.requested() ? runtime::Ended::stopped : runtime::Ended::finished;
  const std::optional<bool> stops = cuda->group->any(interrupt.requested());
  if (stops) return *stops ? runtime::Ended::stopped : runtime::Ended::finished;
  report_failure(session, *cuda->group->failure(), train);
  return runtime::Ended::failed;
}

/// One step of an executor.
runtime::Ended run_step(Session& session, TrainJob& train, StepLosses& losses) {
  const runtime::RunResult result = train.executor->run(
      runtime::Phase::training, 1,
      [&](const runtime::StepRecord& step) -> std::optional<runtime::Failure> {
        losses.loss = step.loss;
        losses.sums.assign(step.microbatch_sums.begin(), step.microbatch_sums.end());
        return std::nullopt;
      });
  if (result.failure) report_failure(session, *result.failure, train.training.settings.loc);
  return result.ended;
}

/// The strategy of one device: nothing is cut, split or ordered.
void use_one_device(Session& session, Session::Subject& subject) {
  directive::Strategy& strategy = subject.lowered.strategy;
  strategy.directives.clear();
  strategy.device_sets = {};
  strategy.mesh.axes = {{session.context().symbol("device"), 1}};
}

/// The weights that a line freezes or tunes may depend on stages, which one device does not have.
void treat_alike(const dag::Dag& program, Session::Subject& single) {
  for (std::size_t p = 0; p < program.params.size(); ++p) {
    const tensor::Param& param = program.params[p];
    tensor::Param& alike = single.lowered.model.params[p];
    alike.frozen = param.frozen;
    alike.rate = param.rate;
    alike.decay = param.decay;
  }
  // The factors have the choice of parameters that decay.
  if (auto& optimizer = single.lowered.strategy.settings.optimizer)
    optimizer->decay = directive::Decay::all;
}

/// The job of one side was not made: it was stopped, or there is a diagnostic.
Comparison without_job(const runtime::Interrupt& interrupt) {
  return {.ended = interrupt.requested() ? runtime::Ended::stopped : runtime::Ended::failed};
}

/// Gradients and, where they are asked for, parameters after a step. Without `b` those of `a` are
/// read for the process that compares.
void compare_parameters(TrainJob& a, TrainJob* b, int step, Comparison& to) {
  for (const std::string& name : a.executor->parameter_names()) {
    for (const runtime::ParamTensor part :
         {runtime::ParamTensor::gradient, runtime::ParamTensor::values}) {
      if (part == runtime::ParamTensor::values && !to.parameters) continue;
      const auto of_a = a.executor->read_parameter(name, part);
      if (b == nullptr) continue;
      const auto of_b = b->executor->read_parameter(name, part);
      if (part == runtime::ParamTensor::gradient && !of_a && !of_b) continue;  // it is frozen
      const double difference = of_a && of_b ? relative(of_a->values, of_b->values)
                                             : std::numeric_limits<double>::infinity();
      (part == runtime::ParamTensor::gradient ? to.differences.gradient : to.differences.parameter)
          .take(difference, name, step);
    }
  }
}

/// Both step by step: losses, gradients and, where they are asked for, parameters. `b`: null where
/// another process compares.
Comparison side_by_side(Session& session, TrainJob& a, TrainJob* b, bool parameters,
                        const runtime::Interrupt& interrupt, CudaDevice* cuda) {
  const runtime::EndsRun ends(interrupt, *a.executor);
  Comparison comparison;
  comparison.parameters = parameters;
  comparison.began = true;
  const LocId train = a.training.settings.loc;
  for (int& step = comparison.steps; step < kReferenceSteps; ++step) {
    StepLosses loss_a, loss_b;
    comparison.ended = goes_on(session, train, cuda, interrupt);
    if (comparison.ended == runtime::Ended::finished)
      comparison.ended = run_step(session, a, loss_a);
    if (comparison.ended == runtime::Ended::finished && b != nullptr)
      comparison.ended = run_step(session, *b, loss_b);
    if (comparison.ended != runtime::Ended::finished) return comparison;
    comparison.differences.loss.take(
        std::fabs(loss_a.loss - loss_b.loss) / std::max(std::fabs(loss_b.loss), 1.0), "loss", step);
    compare_parameters(a, b, step, comparison);
  }
  // After the last step: the next comparison may not begin.
  comparison.ended = goes_on(session, train, cuda, interrupt);
  return comparison;
}

/// The program in `dtype`, the unsplit step in f64.
Comparison against_unsplit(Session& session, const Session::Subject& subject, tensor::DType dtype,
                           const runtime::Options& options, const runtime::Interrupt& interrupt,
                           CudaDevice* cuda) {
  auto program = session.relower(subject, dtype);
  auto single = session.relower(subject, tensor::DType::f64);
  if (!program || !single) return {};
  // Bounds on measures are those of the program as it is written, in its own element type, and so
  // is whether there is optimizer state: masters of narrow parameters are.
  const bool slots = dag::state_slots(program->lowered.strategy.settings, dtype) > 0;
  for (const auto& each :
       {&program->lowered.strategy.directives, &single->lowered.strategy.directives}) {
    std::erase_if(*each, [&](const directive::Directive& line) {
      const auto* offload = std::get_if<directive::Offload>(&line);
      return std::holds_alternative<directive::Require>(line) ||
             (!slots && offload != nullptr && offload->what == directive::Offload::What::optimizer);
    });
  }
  use_one_device(session, *single);
  const auto a = make_train_job(session, *program, false, options, session.arguments().out_folder,
                                &interrupt, cuda);
  if (a) treat_alike(a->training, *single);
  const auto b = a && compares(cuda)
                     ? make_train_job(session, *single, false, options, {}, &interrupt)
                     : nullptr;
  if (!a || (!b && compares(cuda))) return without_job(interrupt);
  Comparison comparison =
      side_by_side(session, *a, b.get(), dtype == tensor::DType::f64, interrupt, cuda);
  // How far rounding carries gradients off is a matter of the model; that the plan rounds as one
  // device does is the next comparison's.
  comparison.gradients = !tensor::is_narrow(dtype);
  return comparison;
}

/// The same program on a GPU and on the CPU, in its own element type.
Comparison against_cpu(Session& session, Session::Subject& subject, const runtime::Options& options,
                       const runtime::Interrupt& interrupt, CudaDevice& cuda, bool parameters) {
  auto same = session.relower(subject, subject.lowered.strategy.settings.dtype);
  if (!same) return {};
  const auto a = make_train_job(session, subject, false, options, session.arguments().out_folder,
                                &interrupt, &cuda);
  const auto b = a && compares(&cuda)
                     ? make_train_job(session, *same, false, options, {}, &interrupt)
                     : nullptr;
  return a && (b || !compares(&cuda))
             ? side_by_side(session, *a, b.get(), parameters, interrupt, &cuda)
             : without_job(interrupt);
}

/// Writes the initial weights of a train to the parameters of the one-device run, too.
std::optional<runtime::Failure> take_same_weights(const TrainJob& train,
                                                  const PiperProgram& program,
                                                  unsigned char* state) {
  const std::optional<directive::InitialWeights>& init = train.training.settings.init;
  if (!init) return std::nullopt;
  runtime::Failure failure;
  const auto weights = open_weights(shapes_of(train.training), *init, failure);
  if (!weights) return failure;
  PiperJobRank rank{};
  rank.program = &program;
  runtime::StateMemory memory;
  memory.ranks = {&rank, 1};
  memory.local = [](std::size_t number) { return std::optional(number); };
  memory.write = [state](std::size_t, bool, std::uint64_t offset, const void* from,
                         std::uint64_t bytes) {
    std::memcpy(state + offset, from, bytes);
    return true;
  };
  return take_weights(*weights, memory, {});
}

Comparison against_sequential(Session& session, Session::Subject& subject,
                              const runtime::Options& options,
                              const runtime::Interrupt& interrupt) {
  const auto train =
      make_train_job(session, subject, false, options, session.arguments().out_folder, &interrupt);
  if (!train) return without_job(interrupt);
  const PiperJob& job = train->job->tables();
  runtime::Failure failure;
  runtime::LibrarySwitch library(options);
  const runtime::LibraryCalls* const calls = library.get(failure);
  const auto data =
      calls ? runtime::open_data(job.data, std::span(job.inputs, job.num_inputs), job.seed,
                                 runtime::DataUse::training, failure, &session.texts())
            : nullptr;
  if (!data) {
    report_failure(session, failure, subject.lowered.strategy.settings.loc);
    return {};
  }
  calls->begin_thread(options.threads);
  runtime::DirectCalls direct(*calls);
  backend::SequentialHost host;
  host.api = &runtime::DirectCalls::api();
  host.runtime = &direct;
  std::optional<runtime::Failure> unread;  // data that could not be read
  host.load = [&](std::uint32_t input, std::uint64_t step, std::uint64_t first,
                  std::uint64_t samples, void* to) {
    unread = data->load(input, step, first, samples, to);
    return !unread;
  };
  backend::SequentialRun run(train->training, std::move(host), job.seed);
  PiperProgram state{};
  state.params = run.params().data();
  state.num_params = static_cast<std::uint32_t>(run.params().size());
  runtime::initialise_parameters(state, job.seed, nullptr, run.state(), nullptr);
  if (auto refused = take_same_weights(*train, state, run.state())) {
    report_failure(session, *refused, subject.lowered.strategy.settings.loc);
    return {};
  }

  const runtime::EndsRun ends(interrupt, *train->executor);
  Comparison comparison;
  for (int& step = comparison.steps; step < kReferenceSteps; ++step) {
    StepLosses losses;
    comparison.ended = run_step(session, *train, losses);
    if (comparison.ended != runtime::Ended::finished) return comparison;
    if (!run.step(runtime::scalars_of_step(job.optimizer, static_cast<std::uint64_t>(step)))) {
      if (unread) {
        unread->place = runtime::location_of({}, job.data.where.place);
        report_failure(session, *unread, subject.lowered.strategy.settings.loc);
        return {};
      }
      session.sink().report(Code::reference_failed, subject.lowered.strategy.settings.loc,
                            "the one-device run failed: {}", direct.failure());
      return {};
    }
    Differences& differences = comparison.differences;
    for (std::size_t i = 0; i < losses.sums.size(); ++i)
      differences.loss.take(bits(losses.sums[i], run.loss_sums()[i]), job.losses[i].name, step);
    for (const std::string& name : train->executor->parameter_names()) {
      const auto gradient = train->executor->read_parameter(name, runtime::ParamTensor::gradient);
      const auto values = train->executor->read_parameter(name, runtime::ParamTensor::values);
      // A frozen one has no gradient.
      if (gradient)
        differences.gradient.take(bits(gradient->values, run.gradient(name)), name, step);
      differences.parameter.take(
          values ? bits(values->values, run.values(name)) : std::numeric_limits<double>::infinity(),
          name, step);
    }
  }
  return comparison;
}

std::string scientific(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1e", value);
  return text;
}

/// Prints a line for each; false when one is beyond the bound.
bool print(Session& session, const std::string& title, const Comparison& comparison, double bound) {
  const Differences& differences = comparison.differences;
  std::ostream& words = session.words();
  words << title << "\n";
  bool within = true;
  const auto line = [&](const char* what, const Largest& largest, bool judged = true) {
    const bool good = !judged || largest.difference <= bound;
    within = within && good;
    words << "  largest difference of " << what << "  "
          << (largest.difference == 0 ? "0" : scientific(largest.difference))
          << (largest.difference == 0 ? "" : "  (" + largest.where + ")")
          << (good ? "" : "  beyond the bound") << "\n";
  };
  line("loss      ", differences.loss);
  line("gradients ", differences.gradient, comparison.gradients);
  if (comparison.parameters) line("parameters", differences.parameter);
  words.flush();
  return within;
}

/// The same as JSON; what is no number is null.
llvm::json::Object json_of(const char* against, std::string_view dtype,
                           const Comparison& comparison, double bound) {
  const Differences& differences = comparison.differences;
  const auto value = [](const Largest& largest) {
    return std::isfinite(largest.difference) ? llvm::json::Value(largest.difference)
                                             : llvm::json::Value(nullptr);
  };
  return llvm::json::Object{{"against", against},
                            {"dtype", std::string(dtype)},
                            {"bound", bound},
                            {"loss", value(differences.loss)},
                            {"gradients", value(differences.gradient)},
                            {"parameters", comparison.parameters ? value(differences.parameter)
                                                                 : llvm::json::Value(nullptr)}};
}

}  // namespace

int compare_with_one_device(Session& session, Session::Subject& subject,
                            const runtime::Options& options, CudaDevice* cuda) {
  const runtime::Interrupt interrupt;
  const std::string dtype(tensor::dtype_name(subject.lowered.strategy.settings.dtype));
  bool within = true;
  llvm::json::Array comparisons;
  const auto print_comparison = [&](const Comparison& comparison, const char* against,
                                    const std::string& type, const std::string& title,
                                    double bound) {
    if (!compares(cuda)) return;
    if (comparison.whole()) {
      within = print(session, title, comparison, bound) && within;
      comparisons.push_back(json_of(against, type, comparison, bound));
    }
    if (comparison.ended == runtime::Ended::stopped)
      session.words() << stopped_text(comparison.steps) << " in " << type << "\n";
  };
  Comparison last = against_unsplit(session, subject, tensor::DType::f64, options, interrupt, cuda);
  print_comparison(last, "unsplit", "f64",
                   "3 steps in f64 against the unsplit step on one device (bound " +
                       scientific(kReferenceBound) + ", relative):",
                   kReferenceBound);
  if (const tensor::DType narrow = subject.lowered.strategy.settings.dtype;
      last.ended == runtime::Ended::finished && tensor::is_narrow(narrow)) {
    last = against_unsplit(session, subject, narrow, options, interrupt, cuda);
    print_comparison(last, "unsplit", dtype,
                     "3 steps in " + dtype +
                         " against the unsplit step in f64 on one device (bound " +
                         scientific(kReferenceBoundNarrow) +
                         " of the loss, relative; parameters are not compared):",
                     kReferenceBoundNarrow);
  }
  if (last.ended == runtime::Ended::finished && cuda != nullptr) {
    const tensor::DType own = subject.lowered.strategy.settings.dtype;
    const bool f64 = own == tensor::DType::f64;
    const double bound = f64                      ? kReferenceBound
                         : tensor::is_narrow(own) ? kReferenceBoundNarrow
                                                  : kReferenceBoundF32;
    last = against_cpu(session, subject, options, interrupt, *cuda, f64);
    print_comparison(last, "cpu", dtype,
                     "3 steps in " + dtype + " on " + cuda->name +
                         " against the same program on the CPU (bound " + scientific(bound) +
                         ", relative" + (f64 ? "" : "; not of parameters") + "):",
                     bound);
  } else if (last.ended == runtime::Ended::finished) {
    last = against_sequential(session, subject, options, interrupt);
    print_comparison(
        last, "same microbatches", dtype,
        "3 steps in " + dtype + " against the same microbatches on one device (bound 0, all bits):",
        0);
  }
  if (!within)
    session.sink().report(Code::reference_differs, subject.lowered.strategy.settings.loc,
                          "the program does not compute the results of the one-device step");
  const bool interrupted = last.ended == runtime::Ended::stopped;
  if (cuda != nullptr && cuda->group != nullptr && last.began &&
      last.ended != runtime::Ended::failed)
    cuda->group->leave();
  if (compares(cuda) && session.arguments().format == "json" && !session.sink().has_errors()) {
    std::string text;
    llvm::raw_string_ostream(text)
        << llvm::json::Value(llvm::json::Object{{"schema", 1},
                                                {"train", subject.name},
                                                {"reference", std::move(comparisons)},
                                                {"interrupted", interrupted}});
    session.console().out << text << "\n";
  }
  const int exit_code = session.finish();
  return interrupted ? kInterrupted : exit_code;
}

}  // namespace piper::tools
