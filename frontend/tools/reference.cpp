#include "frontend/tools/reference.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>

#include "backend/reference/sequential_run.h"
#include "frontend/tools/train_job.h"
#include "llvm/Support/JSON.h"
#include "runtime/data/step_data.h"
#include "runtime/device/library_api.h"
#include "runtime/executor/state.h"

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
    if (std::memcmp(&a[i], &b[i], sizeof(double)) != 0) difference = std::max({difference, std::fabs(a[i] - b[i]), std::numeric_limits<double>::denorm_min()});
  }
  return difference;
}

/// One step of an executor and what came out of it.
struct StepLosses {
  double loss = 0;
  std::vector<std::vector<double>> sums;
};
std::optional<StepLosses> run_step(Session& session, TrainJob& train) {
  StepLosses losses;
  const runtime::RunResult result = train.executor->run(runtime::Phase::training, 1, [&](const runtime::StepRecord& step) -> std::optional<runtime::Failure> {
    losses.loss = step.loss;
    losses.sums.assign(step.microbatch_sums.begin(), step.microbatch_sums.end());
    return std::nullopt;
  });
  if (result.failure) {
    report_failure(session, *result.failure, train.training.settings.loc);
    return std::nullopt;
  }
  return losses;
}

/// The strategy of one device: nothing is cut, split or ordered.
void use_one_device(Session& session, Session::Subject& subject) {
  directive::Strategy& strategy = subject.lowered.strategy;
  strategy.directives.clear();
  strategy.device_sets = {};
  strategy.mesh.axes = {{session.context().symbol("device"), 1}};
}

std::optional<Differences> against_unsplit(Session& session, const Session::Subject& subject) {
  auto program = session.relower(subject, tensor::DType::f64);
  auto single = session.relower(subject, tensor::DType::f64);
  if (!program || !single) return std::nullopt;
  use_one_device(session, *single);
  const auto a = make_train_job(session, *program, false);
  const auto b = a ? make_train_job(session, *single, false) : nullptr;
  if (!b) return std::nullopt;
  Differences differences;
  for (int step = 0; step < kReferenceSteps; ++step) {
    const auto loss_a = run_step(session, *a);
    const auto loss_b = loss_a ? run_step(session, *b) : std::nullopt;
    if (!loss_b) return std::nullopt;
    differences.loss.take(std::fabs(loss_a->loss - loss_b->loss) / std::max(std::fabs(loss_b->loss), 1.0), "loss", step);
    for (const std::string& name : a->executor->parameter_names()) {
      for (const runtime::Part part : {runtime::Part::gradient, runtime::Part::values}) {
        const auto of_a = a->executor->read_parameter(name, part);
        const auto of_b = b->executor->read_parameter(name, part);
        const double difference = of_a && of_b ? relative(of_a->values, of_b->values) : std::numeric_limits<double>::infinity();
        (part == runtime::Part::gradient ? differences.gradient : differences.parameter).take(difference, name, step);
      }
    }
  }
  return differences;
}

std::optional<Differences> against_sequential(Session& session, Session::Subject& subject) {
  const auto options = runtime_options(session);
  const auto train = options ? make_train_job(session, subject, false) : nullptr;
  if (!train) return std::nullopt;
  const PiperJob& job = train->job->tables();
  runtime::Failure failure;
  runtime::LibrarySwitch library(*options);
  const runtime::LibraryCalls* const calls = library.get(failure);
  const auto data = calls ? runtime::open_data(job.data, std::span(job.inputs, job.num_inputs), job.seed, runtime::DataUse::training, 0, failure, &session.texts()) : nullptr;
  if (!data) {
    report_failure(session, failure, subject.lowered.strategy.settings.loc);
    return std::nullopt;
  }
  calls->begin_thread(options->threads);
  runtime::DirectCalls direct(*calls);
  backend::SequentialHost host;
  host.api = &runtime::DirectCalls::api();
  host.runtime = &direct;
  host.load = [&](std::uint32_t input, std::uint64_t step, std::uint64_t first, std::uint64_t samples, void* to) { data->load(input, step, first, samples, to); };
  backend::SequentialRun run(train->training, std::move(host), job.seed);
  PiperProgram state{};
  state.params = run.params().data();
  state.num_params = static_cast<std::uint32_t>(run.params().size());
  runtime::initialise_parameters(state, job.seed, run.state());

  Differences differences;
  for (int step = 0; step < kReferenceSteps; ++step) {
    const auto losses = run_step(session, *train);
    if (!losses) return std::nullopt;
    if (!run.step(runtime::scalars_of_step(job.optimizer, static_cast<std::uint64_t>(step)))) {
      session.sink().report(Code::reference_failed, SourceRange(), "the one-device run failed: {}", direct.failure());
      return std::nullopt;
    }
    for (std::size_t i = 0; i < losses->sums.size(); ++i) differences.loss.take(bits(losses->sums[i], run.loss_sums()[i]), job.losses[i].name, step);
    for (const std::string& name : train->executor->parameter_names()) {
      const auto gradient = train->executor->read_parameter(name, runtime::Part::gradient);
      const auto values = train->executor->read_parameter(name, runtime::Part::values);
      differences.gradient.take(gradient ? bits(gradient->values, run.gradient(name)) : std::numeric_limits<double>::infinity(), name, step);
      differences.parameter.take(values ? bits(values->values, run.values(name)) : std::numeric_limits<double>::infinity(), name, step);
    }
  }
  return differences;
}

std::string scientific(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1e", value);
  return text;
}

/// Prints three lines; false when one is beyond the bound.
bool print(Session& session, const std::string& title, const Differences& differences, double bound) {
  std::ostream& words = session.words();
  words << title << "\n";
  bool within = true;
  const auto line = [&](const char* what, const Largest& largest) {
    const bool good = largest.difference <= bound;
    within = within && good;
    words << "  largest difference of " << what << "  " << (largest.difference == 0 ? "0" : scientific(largest.difference))
          << (largest.difference == 0 ? "" : "  (" + largest.where + ")") << (good ? "" : "  beyond the bound") << "\n";
  };
  line("loss      ", differences.loss);
  line("gradients ", differences.gradient);
  line("parameters", differences.parameter);
  words.flush();
  return within;
}

/// The same as JSON; what is no number is null.
llvm::json::Object json_of(const char* against, std::string_view dtype, const Differences& differences, double bound) {
  const auto value = [](const Largest& largest) { return std::isfinite(largest.difference) ? llvm::json::Value(largest.difference) : llvm::json::Value(nullptr); };
  return llvm::json::Object{{"against", against}, {"dtype", std::string(dtype)}, {"bound", bound}, {"loss", value(differences.loss)},
                            {"gradients", value(differences.gradient)}, {"parameters", value(differences.parameter)}};
}

}  // namespace

int compare_with_one_device(Session& session, Session::Subject& subject) {
  const auto unsplit = against_unsplit(session, subject);
  if (!unsplit) return session.finish();
  bool within = print(session, "3 steps in f64 against the unsplit step on one device (bound " + scientific(kReferenceBound) + ", relative):", *unsplit, kReferenceBound);
  const std::string dtype(tensor::dtype_name(subject.lowered.strategy.settings.dtype));
  const auto sequential = against_sequential(session, subject);
  if (!sequential) return session.finish();
  within = print(session, "3 steps in " + dtype + " against the same microbatches on one device (bound 0, all bits):", *sequential, 0) && within;
  if (session.arguments().format == "json" && within) {
    llvm::json::Array comparisons{json_of("unsplit", "f64", *unsplit, kReferenceBound), json_of("same microbatches", dtype, *sequential, 0)};
    std::string text;
    llvm::raw_string_ostream(text) << llvm::json::Value(llvm::json::Object{{"schema", 1}, {"train", subject.name}, {"reference", std::move(comparisons)}});
    session.console().out << text << "\n";
  }
  if (!within) {
    session.sink().report(Code::reference_differs, SourceRange(), "the program does not compute what the one-device step computes");
  }
  return session.finish();
}

}  // namespace piper::tools
