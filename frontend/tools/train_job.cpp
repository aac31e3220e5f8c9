#include "frontend/tools/train_job.h"

#include <algorithm>

#include "frontend/tools/environment.h"
#include "frontend/tools/initial_weights.h"
#include "frontend/tools/resume.h"
#include "frontend/tools/token_check.h"
#include "ir/diagnostics/counted.h"
#include "ir/tensor/index_bounds.h"
#include "ir/tensor/sample_coupling.h"
#include "runtime/cpu/cpu_device.h"
#include "runtime/cpu/device_limit.h"
#include "runtime/data/array_file.h"
#include "runtime/data/file_text.h"
#include "runtime/data/step_data.h"
#include "runtime/device/product_choice.h"
#include "runtime/trace/flight.h"

namespace piper::tools {
namespace {

/// The place of an action in the files of the session; invalid where it has none.
SourceRange range_of(Session& session, const runtime::ActionLocation& place) {
  if (place.line == 0 || place.file.empty()) return {};
  SourceTable& files = session.context().locations.files();
  const FileId file = files.add_without_text(place.file);
  return {file, files.offset(file, {place.line, place.column}),
          files.offset(file, {place.end_line, place.end_column})};
}

}  // namespace

void report_failure(Session& session, const runtime::Failure& failure, LocId train) {
  std::string message;
  const auto where = [&](const std::string& text) {
    message += (message.empty() ? "" : ", ") + text;
  };
  if (failure.rank != runtime::Failure::kNoRank) where("rank " + std::to_string(failure.rank));
  if (!failure.held_out.empty()) where(failure.held_out);
  if (failure.step) where("step " + std::to_string(*failure.step + 1));
  if (!failure.place.action.empty()) where("`" + failure.place.action + "`");
  message += (message.empty() ? "" : ": ") + failure.message;
  const SourceRange range = range_of(session, failure.place);
  const Code code = static_cast<Code>(failure.code);
  auto&& builder = range.valid() ? session.sink().report(code, range, "{}", message)
                                 : session.sink().report(code, train, "{}", message);
  for (const runtime::Note& note : failure.notes)
    builder.related(range_of(session, note.place), "{}", note.text);
  if (!failure.hint.empty()) builder.hint("{}", failure.hint);
}

std::uint64_t window_of(Session& session, const directive::Data& data) {
  for (const auto& [dim, extent] : data.extents) {
    if (session.context().text(dim) == "seq") return static_cast<std::uint64_t>(extent);
  }
  return 0;
}

std::optional<std::uint64_t> read_arrays(Session& session, const tensor::Graph& model,
                                         const directive::Data& data, runtime::Failure& failure) {
  std::vector<runtime::TableInput> inputs;
  for (const tensor::Input& input : model.inputs) {
    const tensor::Type& type = model.type(input.value);
    std::uint64_t numbers = 1;
    for (const tensor::Dim& dim : type.dims)
      numbers *= dim.sampled ? 1 : static_cast<std::uint64_t>(dim.extent);
    inputs.push_back({session.context().text(input.name), numbers, !tensor::is_floating(type.dtype),
                      tensor::wide(type.dtype) == tensor::DType::f32});
  }
  const auto arrays = session.texts().arrays(data.path, inputs, failure);
  return arrays ? std::optional(arrays->rows) : std::nullopt;
}

bool batches_fit(Session& session, const lower::Lowered& lowered, const directive::Data& data,
                 std::uint64_t samples, Code code) {
  const std::optional<directive::Data>& held_out = lowered.strategy.settings.held_out;
  if (!held_out || &data != &*held_out) return true;
  const runtime::Batches batches =
      runtime::Batches::over(samples, static_cast<std::uint64_t>(data.batch), data.batches);
  if (batches.taken == 0 || batches.samples_of(batches.taken - 1) == batches.batch) return true;
  std::vector<tensor::ValueId> loss_sums;
  for (const tensor::Loss& loss : lowered.model.losses) loss_sums.push_back(loss.sum);
  const tensor::Node* const mixes = tensor::coupled_operation(lowered.model, loss_sums);
  if (mixes == nullptr) return true;
  const runtime::Failure refused =
      runtime::refused_short_batch(batches, data.gives_windows() ? "window" : "row");
  session.sink()
      .report(code, data.path_loc, "{}", refused.message)
      .related(mixes->loc, "{} mixes samples here", tensor::in_words(mixes->op))
      .hint("{}", refused.hint);
  return false;
}

void look_for_bytes(Session& session, const tensor::Graph& model, const directive::Data& data,
                    std::span<const unsigned char> text) {
  text = text.first(std::min<std::size_t>(text.size(), kTextLookedThrough));
  for (const tensor::IndexBound& read : tensor::index_bounds(model)) {
    const auto position = runtime::find_byte_from(text, read.bound, read.ignore);
    if (!position) continue;
    const tensor::Node& reader = model.node(read.reader);
    const bool looks_up = reader.op == tensor::Op::lookup;
    session.sink()
        .report(Code::text_beyond_vocabulary, data.path_loc,
                "`{}` has the byte `{}` at `{}`, but {} has {}", data.path,
                static_cast<int>(text[*position]), *position,
                looks_up ? "the table that is looked up" : "`cross_entropy`",
                looks_up ? counted(read.bound, "row") : counted(read.bound, "class", "classes"))
        .related(reader.loc, "it is read here")
        .hint(
            "a byte is less than 256: give the model so many, or the train text of bytes below {}",
            read.bound);
    return;
  }
}

namespace {

/// Reports an error in the data; for a file of numbers at its place in the file.
void report_data(Session& session, const runtime::Failure& failure, LocId path) {
  const SourceRange range = range_of(session, failure.place);
  const Code code = static_cast<Code>(failure.code);
  if (!range.valid()) {
    session.sink().report(code, path, "{}", failure.message).hint("{}", failure.hint);
    return;
  }
  session.sink()
      .report(code, range, "{}", failure.message)
      .related(path, "the data is read here")
      .hint("{}", failure.hint);
}

/// Unreadable data is reported before the minutes that compiling may take; the executor takes the
/// same texts.
bool data_is_readable(Session& session, const lower::Lowered& lowered) {
  const directive::Settings& settings = lowered.strategy.settings;
  bool readable = true;
  for (const auto* data : {&settings.data, &settings.held_out}) {
    if (!*data || (*data)->kind == directive::Data::Kind::synthetic) continue;
    runtime::Failure failure;
    if ((*data)->kind != directive::Data::Kind::bytes) {
      // An error in a file is reported once, even if the held-out samples are those of training.
      const bool reported = !readable && data == &settings.held_out && settings.data &&
                            settings.data->path == (*data)->path;
      if (reported) continue;
      const auto samples = (*data)->kind == directive::Data::Kind::tokens
                               ? open_tokens(session, lowered.model, **data, failure)
                               : read_arrays(session, lowered.model, **data, failure);
      if (samples) {
        readable =
            batches_fit(session, lowered, **data, *samples, Code::short_held_out_batch) && readable;
        continue;
      }
      report_data(session, failure, (*data)->path_loc);
      readable = false;
      continue;
    }
    const auto text = session.texts().read((*data)->path, failure);
    if (text &&
        runtime::holds_window((*data)->path, text->size(), window_of(session, **data), failure)) {
      look_for_bytes(session, lowered.model, **data, *text);
      readable =
          batches_fit(session, lowered, **data, (text->size() - 1) / window_of(session, **data),
                      Code::short_held_out_batch) &&
          readable;
      continue;
    }
    session.sink()
        .report(static_cast<Code>(failure.code), (*data)->path_loc, "{}", failure.message)
        .hint("{}", failure.hint);
    readable = false;
  }
  return readable;
}

}  // namespace

std::optional<runtime::Options> runtime_options(Session& session) {
  report_unknown_variables(session.console().environment, session.sink());
  runtime::Options options;
  std::vector<std::string> entries;
  for (const auto& [name, value] : session.console().environment)
    entries.push_back(name + "=" + value);
  std::vector<const char*> environment;
  for (const std::string& entry : entries) environment.push_back(entry.c_str());
  environment.push_back(nullptr);
  if (const auto failure = options.read_environment(environment.data())) {
    report_failure(session, *failure, {});
    return std::nullopt;
  }
  if (session.arguments().threads)
    options.threads = static_cast<std::uint32_t>(*session.arguments().threads);
  return options;
}

std::string stopped_text(std::uint64_t steps) {
  return steps == 0 ? "stopped before step 1" : "stopped after step " + std::to_string(steps);
}

std::optional<runtime::Options> prepare_train(Session& session, const Session::Subject& subject) {
  auto options = runtime_options(session);
  if (options && !texts_are_ready(session, subject)) options.reset();
  return options;
}

std::string products_text(const runtime::Options& options) {
  return std::string(runtime::rule_of_products(options.math, runtime::this_processor())) +
         ", threads: " + std::to_string(options.threads);
}

bool texts_are_ready(Session& session, const Session::Subject& subject) {
  const std::uint64_t devices = subject.lowered.strategy.mesh.devices();
  if (const auto failure = runtime::too_many_devices(
          devices, session.arguments().out_folder.empty() ? 0 : devices)) {
    report_failure(session, *failure, subject.lowered.strategy.mesh.loc);
    return false;
  }
  const bool readable = data_is_readable(session, subject.lowered);
  // A run that goes on from a checkpoint reads no initial weights.
  if (!session.arguments().resume.empty()) return readable;
  return weights_fit(session, subject.lowered) && readable;
}

std::unique_ptr<TrainJob> make_train_job(Session& session, Session::Subject& subject,
                                         bool with_held_out, const runtime::Options& options,
                                         const std::string& out_folder,
                                         const runtime::Interrupt* interrupt, CudaDevice* cuda,
                                         const Resumed* resumed, RunProcesses* given) {
  RunProcesses alone;
  RunProcesses& processes = cuda != nullptr ? *cuda->processes : given != nullptr ? *given : alone;
  const auto stopped = [&] { return interrupt != nullptr && interrupt->requested(); };
  directive::Settings& settings = subject.lowered.strategy.settings;
  settings.device = cuda == nullptr ? directive::Platform::cpu : directive::Platform::cuda;
  const backend::Target target = session.compilation().target(settings);
  const std::optional<passes::Prepared> prepared = session.prepare(subject);
  auto training = prepared ? session.compile(subject, *prepared, false) : std::nullopt;
  if (!training || stopped()) return nullptr;
  auto made = std::make_unique<TrainJob>(TrainJob{std::move(*training),
                                                  std::nullopt,
                                                  nullptr,
                                                  {},
                                                  nullptr,
                                                  cuda != nullptr ? cuda->name : std::string()});
  if (with_held_out && subject.lowered.strategy.settings.held_out) {
    made->evaluation = session.compile(subject, *prepared, true);
    if (!made->evaluation || stopped()) return nullptr;
  }
  backend::JobOptions job_options;
  job_options.target = target;
  job_options.engine =
      session.arguments().interpret ? backend::Engine::interpreter : backend::Engine::generated;
  job_options.steps = session.arguments().steps;
  if (cuda == nullptr) job_options.products = products_text(options);
  job_options.jit = jit_options(session.console().environment);
  if (interrupt != nullptr) job_options.jit.stop = interrupt->file();
  const runtime::ProcessRanks ranks =
      processes.ranks(static_cast<std::uint32_t>(made->training.mesh.devices()));
  job_options.first_rank = ranks.first;
  job_options.num_ranks = ranks.count;
  made->job = backend::make_job(made->training, made->evaluation ? &*made->evaluation : nullptr,
                                job_options, session.sink());
  if (!made->job) return nullptr;
  runtime::ExecutorOptions executor_options;
  executor_options.runtime = options;
  executor_options.out_folder = out_folder;
  executor_options.texts = &session.texts();
  executor_options.record =
      !session.arguments().trace.empty() || !session.arguments().profile.empty();
  executor_options.stopped = stopped;
  runtime::Failure failure;
  if (auto found = out_folder.empty() || !processes.first() ? std::nullopt
                                                            : runtime::remove_flights(out_folder)) {
    report_failure(session, *found, subject.lowered.strategy.settings.loc);
    return nullptr;
  }
  made->tables = made->job->tables();
  std::optional<OpenedWeights> weights;
  if (resumed == nullptr && settings.init) {
    weights = open_weights(shapes_of(made->training), *settings.init, failure);
    if (!weights) {
      processes.fail(failure);
      report_failure(session, failure, settings.init->path_loc);
      return nullptr;
    }
    made->weights = weights->report;
  }
  processes.weights = weights_identity(weights);
  executor_options.first_values =
      resumed == nullptr && (!weights || !weights->report.missing.empty());
  if (resumed != nullptr) start_from(*resumed, made->tables, session.arguments().steps);
  made->executor = cuda != nullptr ? make_cuda_executor(session, *cuda, *made->job, made->tables,
                                                        executor_options, failure)
                                   : make_cpu_executor(session, processes, made->job->tables(),
                                                       made->tables, executor_options, failure);
  LocId where = settings.loc;
  if (made->executor) {
    const bool by_itself = processes.group == nullptr;
    std::optional<runtime::Failure> refused;
    if (resumed != nullptr) refused = take_state(*resumed, *made->executor);
    if (weights) {
      // Several processes stop together, at a step.
      refused = take_weights(*weights, made->executor->state_memory(),
                             by_itself ? std::function<bool()>(stopped) : nullptr);
      if (!refused && by_itself && stopped()) return nullptr;
      where = settings.init->path_loc;
    }
    if (!refused) return made;
    processes.fail(*refused);
    failure = *refused;
  }
  if (!stopped()) report_failure(session, failure, where);
  return nullptr;
}

}  // namespace piper::tools
