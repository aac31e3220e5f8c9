#include <cmath>
#include <cstdio>

#include "backend/cuda/print_program.h"
#include "frontend/pictures/timeline_json.h"
#include "frontend/pictures/timeline_page.h"
#include "frontend/source/write_file.h"
#include "frontend/tools/commands.h"
#include "frontend/tools/dry_run.h"
#include "frontend/tools/measured_timeline.h"
#include "frontend/tools/out_folder.h"
#include "frontend/tools/profile.h"
#include "frontend/tools/reference.h"
#include "frontend/tools/resume.h"
#include "frontend/tools/run_processes.h"
#include "frontend/tools/train_job.h"
#include "ir/byte_text.h"
#include "ir/diagnostics/counted.h"
#include "llvm/Support/JSON.h"
#include "passes/plan/requirements.h"
#include "passes/simulate/actions.h"
#include "runtime/checkpoint/checkpoint_files.h"
#include "runtime/data/bigram.h"
#include "runtime/launch/interrupt.h"
#include "runtime/launch/train.h"

namespace piper::tools {
namespace {

std::string number(double value, const char* format = "%.4f") {
  char text[64];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

/// `3.3 M`.
std::string count_text(double value) {
  if (value >= 1e9) return number(value / 1e9, "%.1f") + " G";
  if (value >= 1e6) return number(value / 1e6, "%.1f") + " M";
  if (value >= 1e3) return number(value / 1e3, "%.1f") + " k";
  return number(value, "%.0f");
}

std::string largest_arena(const dag::Dag& dag) {
  return bytes_text(passes::peak_memory(dag).bytes);
}

void print_start(std::ostream& words, const Session::Subject& subject, const TrainJob& made,
                 const RunProcesses& processes) {
  const dag::Dag& dag = made.training;
  double parameters = 0;
  for (const tensor::Type& type : dag.param_types)
    parameters += static_cast<double>(type.elements());
  words << "train " << subject.name << ": " << count_text(parameters)
        << (parameters == 1 ? " parameter on " : " parameters on ")
        << counted(dag.mesh.devices(), "device") << ", " << counted(dag.plan->roles.size(), "role")
        << ", arena " << largest_arena(dag) << " at most, "
        << (made.job->generated() ? "generated code" : "interpreted")
        << (made.device.empty() ? "" : ", on " + made.device);
  // On GPUs the device says so.
  if (processes.group != nullptr && made.device.empty())
    words << ", in " << counted(processes.group->launch().world, "process", "processes")
          << " over UCX";
  words << "\n";
  if (!made.device.empty()) words << backend::cuda::own_attention_text(made.job->training().bodies);
  words.flush();
}

/// Whether the loss is the mean cross entropy of the next byte of a text: the loss of another model
/// of that text can be compared with it.
bool predicts_next_byte(const tensor::Graph& model, const directive::Settings& settings) {
  if (!settings.data || !settings.held_out || settings.data->kind != directive::Data::Kind::bytes ||
      model.losses.size() != 1 || model.losses[0].mask)
    return false;
  const tensor::NodeId maker = model.value(model.losses[0].elements).def;
  if (!maker.valid() || model.node(maker).op != tensor::Op::cross_entropy) return false;
  const tensor::InputId targets = model.input_of(model.operands(model.node(maker))[1]);
  return targets.valid() && model.context().text(model.inputs[targets.index()].name) == "targets";
}

/// The held-out loss of a bigram model, where the train's loss compares with it.
std::optional<double> bigram_of(Session& session, const tensor::Graph& model,
                                const directive::Settings& settings) {
  if (!predicts_next_byte(model, settings)) return std::nullopt;
  runtime::Failure failure;
  const auto bigram =
      runtime::bigram_loss(settings.data->path, settings.held_out->path, session.texts(), failure);
  if (!bigram) report_failure(session, failure, settings.loc);
  return bigram;
}

/// `3 batches, 10 samples`; of a part of the data `64 of 311 batches, 256 of 1242 samples`.
std::string held_out_size(const runtime::Batches& held_out) {
  const std::uint64_t taken = held_out.samples_taken();
  if (held_out.taken == held_out.all())
    return counted(held_out.taken, "batch", "batches") + ", " + counted(taken, "sample");
  return std::to_string(held_out.taken) + " of " + counted(held_out.all(), "batch", "batches") +
         ", " + std::to_string(taken) + " of " + counted(held_out.samples, "sample");
}

/// The words at the end of a run.
void print_end(std::ostream& words, const runtime::TrainResult& result,
               const runtime::Batches& held_out, std::optional<double> bigram) {
  words << counted(result.steps, "step") << " in " << number(result.seconds, "%.1f") << " s";
  if (result.throughput.per_second > 0)
    words << ", " << count_text(result.throughput.per_second) << " " << result.throughput.unit()
          << "/s";
  if (result.last_loss)
    words << ", loss " << number(*result.first_loss) << " -> " << number(*result.last_loss);
  words << "\n";
  if (result.skipped > 0)
    words << "skipped " << counted(result.skipped, "step")
          << ": the gradient norm was above the limit of `skip_step`, or not finite\n";
  if (result.held_out_loss)
    words << "held-out loss " << number(*result.held_out_loss) << " over "
          << held_out_size(held_out) << "\n";
  if (bigram)
    words << "bigram model on " << (held_out.taken == held_out.all() ? "the same" : "all of the")
          << " text " << number(*bigram)
          << (result.held_out_loss < bigram ? ": the model is better\n"
                                            : ": the model is no better\n");
}

/// A number that JSON has; null if it is not finite.
llvm::json::Value finite(double value) {
  return std::isfinite(value) ? llvm::json::Value(value) : llvm::json::Value(nullptr);
}

/// A text for JSON, which is UTF-8; names of folders need not be.
llvm::json::Value utf8(const std::string& text) {
  return llvm::json::isUTF8(text) ? text : llvm::json::fixUTF8(text);
}

/// The checkpoint from which a run goes on, and the number of its first step.
struct Start {
  const Resumed* resumed = nullptr;
  std::uint64_t first_step = 1;  // as in metrics.jsonl
};

/// The same as JSON, also of a run that was interrupted. `profile`: of the last step, where one was
/// asked for.
void print_json(std::ostream& out, const Session::Subject& subject, const Start& start,
                const runtime::TrainResult& result, const runtime::Batches& held_out,
                std::optional<double> bigram,
                const std::optional<Profile>& profile = std::nullopt) {
  llvm::json::Object object{{"schema", 1},
                            {"train", subject.name},
                            {"steps", static_cast<std::int64_t>(result.steps)},
                            {"seconds", result.seconds},
                            {"interrupted", result.ended == runtime::Ended::stopped}};
  if (result.throughput.per_second > 0)
    object[result.throughput.unit() + "_per_second"] = result.throughput.per_second;
  if (result.first_loss) object["first_loss"] = finite(*result.first_loss);
  if (result.last_loss) object["last_loss"] = finite(*result.last_loss);
  if (result.skipped > 0) object["skipped"] = result.skipped;
  if (result.held_out_loss) {
    object["held_out_loss"] = *result.held_out_loss;
    object["held_out_batches"] = static_cast<std::int64_t>(held_out.taken);
    object["held_out_samples"] = static_cast<std::int64_t>(held_out.samples_taken());
  }
  if (!result.held_out_losses.empty()) {
    llvm::json::Array losses;
    for (const runtime::HeldOutLoss& one : result.held_out_losses)
      losses.push_back(llvm::json::Object{{"step", one.step}, {"loss", finite(one.loss)}});
    object["held_out_losses"] = std::move(losses);
  }
  if (bigram) object["bigram_loss"] = *bigram;
  if (!result.checkpoint.empty()) object["checkpoint"] = utf8(result.checkpoint);
  if (start.resumed != nullptr) {
    object["resumed_from"] = utf8(start.resumed->checkpoint->folder());
    object["first_step"] = start.first_step;
  }
  if (profile) object["last_step"] = profile_json(*profile);
  std::string text;
  llvm::raw_string_ostream(text) << llvm::json::Value(std::move(object));
  out << text << "\n";
}

/// Writes the file of `--trace`: the last step as it ran, beside the plan.
void write_trace(Session& session, const Session::Subject& subject, const TrainJob& made,
                 std::span<const runtime::RecordedRank> recorded) {
  const std::string& path = session.arguments().trace;
  std::vector<pictures::Picture> pictures;
  const LocationTable& locations = session.context().locations;
  const auto add = [&](const char* what, passes::Timeline timeline) {
    pictures.push_back(pictures::make_picture(subject.name + ", " + what, std::move(timeline),
                                              &made.training, locations));
  };
  passes::Timeline planned =
      passes::simulate_actions(made.training, passes::action_costs(made.training, {}));
  add("measured", measured_timeline(planned, made.training, made.job->training(), recorded));
  add("planned", std::move(planned));
  session.write_file(path, path.ends_with(".html") ? pictures::timeline_page(pictures)
                                                   : pictures::perfetto_trace(pictures));
}

/// Writes the file of `--profile`, and prints the parts of the last step.
Profile write_profile(Session& session, const TrainJob& made,
                      std::span<const runtime::RecordedRank> recorded) {
  Profile profile = profile_of(made.training, made.job->training(), recorded);
  session.words() << profile_text(profile);
  session.write_file(session.arguments().profile, service::cost_file_text(profile.costs));
  return profile;
}

/// The profile, if one was asked for.
std::optional<Profile> write_recorded(Session& session, const Session::Subject& subject,
                                      const TrainJob& made) {
  const Arguments& arguments = session.arguments();
  if (arguments.trace.empty() && arguments.profile.empty()) return std::nullopt;
  const std::vector<runtime::RecordedRank> recorded = made.executor->recorded();
  if (recorded.empty()) {
    session.words()
        << "nothing was recorded: on a GPU that is the last step, and the run was stopped before it\n";
    return std::nullopt;
  }
  if (!arguments.trace.empty()) write_trace(session, subject, made, recorded);
  if (arguments.profile.empty()) return std::nullopt;
  return write_profile(session, made, recorded);
}

/// The checkpoint of the last step, and how to go on from it.
std::string kept_text(const std::string& checkpoint) {
  return checkpoint.empty()
             ? std::string()
             : "checkpoint " + checkpoint + ": `--resume " + checkpoint + "` goes on from it\n";
}

/// The end of a train that Ctrl-C has ended, in a run or before it.
int end_interrupted(Session& session, const Session::Subject& subject, const Start& start,
                    const runtime::TrainResult& result, std::uint64_t steps) {
  session.words() << stopped_text(steps) << "\n" << kept_text(result.checkpoint);
  if (session.arguments().format == "json" && !session.sink().has_errors())
    print_json(session.console().out, subject, start, result, {}, std::nullopt);
  session.finish();
  return kInterrupted;
}

/// Prepares the folder of `--out` for a run: what an earlier run left there is kept aside, or is
/// what this one goes on from. Prints what was moved; false, and a diagnostic, if that fails.
bool prepare_folder(Session& session, const Resumed* resumed, const PiperJob& tables, LocId train) {
  const std::string& folder = session.arguments().out_folder;
  if (folder.empty()) return true;
  const bool continues = resumed != nullptr && resumed->continues();
  const bool here = continues && source::same_file(folder, resumed->run);
  // With another batch the steps of the run before are others.
  const bool same_steps = here && resumed->checkpoint->manifest().step == tables.first_step;
  std::string metrics, checkpoints;
  auto failure = same_steps ? runtime::trim_metrics(folder, tables.first_step)
                            : runtime::keep_earlier_metrics(folder, metrics);
  if (!failure) failure = runtime::remove_partial_checkpoints(folder);
  if (!failure)
    failure = runtime::move_checkpoints_aside(
        folder, same_steps ? std::optional(tables.first_step) : std::nullopt, checkpoints);
  if (failure) {
    report_failure(session, *failure, train);
    return false;
  }
  if (!metrics.empty())
    session.words() << "the metrics of the run before are kept in " << metrics << "\n";
  if (!checkpoints.empty())
    session.words() << (same_steps ? "later checkpoints" : "the checkpoints of the run before")
                    << " are kept in " << checkpoints << "\n";
  return true;
}

/// A run without a folder keeps no checkpoint, whatever its lines say.
void report_missing_folder(Session& session, const directive::Settings& settings) {
  if (!settings.checkpoint || !session.arguments().out_folder.empty()) return;
  session.sink()
      .report(Code::checkpoints_without_folder, settings.checkpoint->loc,
              "the run has no folder, so it keeps no checkpoint")
      .hint("write `--out DIR`");
}

int run_steps(Session& session, Session::Subject& subject, const runtime::Options& runtime_options,
              RunProcesses& processes, CudaDevice* cuda, const Resumed* resumed) {
  Console& console = session.console();
  runtime::TrainResult result;
  std::optional<runtime::Interrupt> interrupt(std::in_place);
  const auto made =
      make_train_job(session, subject, true, runtime_options, session.arguments().out_folder,
                     &*interrupt, cuda, resumed, &processes);
  if (!made && (!interrupt->requested() || session.sink().has_errors())) return session.finish();
  if (!made) {
    result.ended = runtime::Ended::stopped;
    return end_interrupted(session, subject, {}, result, 0);
  }
  const Start start{resumed, made->tables.first_step + 1};
  // The first of several processes keeps and prints the results.
  const bool prints = processes.first();
  report_missing_folder(session, subject.lowered.strategy.settings);
  session.show_warnings();
  std::optional<runtime::IgnoreBrokenPipes> pipes(std::in_place);
  const LocId train = made->training.settings.loc;
  if (prints && !prepare_folder(session, resumed, made->tables, train)) return session.finish();
  // The others may write a checkpoint into the folder at once.
  if (processes.group != nullptr && !processes.group->any(false)) {
    report_failure(session, processes.group->failure().value(), train);
    return session.finish();
  }
  if (prints) print_start(session.words(), subject, *made, processes);
  if (prints && made->weights)
    session.words() << runtime::report_text(*made->weights) << std::flush;
  if (prints && resumed != nullptr)
    session.words() << resumed_text(*resumed, *made->executor, made->tables) << std::flush;
  runtime::TrainOptions options;
  if (prints) options.out_folder = session.arguments().out_folder;
  options.checkpoint_folder = session.arguments().out_folder;
  options.resumed = resumed != nullptr && resumed->continues();
  options.log_csv = session.arguments().log_csv;
  options.log_tensorboard = session.arguments().log_tensorboard;
  options.columns = console.columns;
  options.memory = largest_arena(made->training);
  if (prints)
    options.write = [&](const std::string& text) {
      console.err << text;
      console.err.flush();
    };
  {
    const runtime::EndsRun ends(*interrupt, *made->executor);
    result = runtime::train(*made->executor, made->tables, options);
  }
  interrupt.reset();
  // The files of the run are complete: from here a reader that is gone ends the process quietly, as
  // in every command.
  pipes.reset();
  session.words().clear();
  if (result.failure) {
    // Training succeeded: its results are kept.
    if (result.trained && prints) {
      write_recorded(session, subject, *made);
      print_end(session.words(), result, {}, std::nullopt);
    }
    report_failure(session, *result.failure, made->training.settings.loc);
    return session.finish();
  }
  if (processes.group != nullptr) processes.group->leave();
  for (const runtime::Failure& warning : made->executor->warnings())
    report_failure(session, warning, made->training.settings.loc);
  if (!prints) {
    const int code = session.finish();
    return result.ended == runtime::Ended::stopped ? static_cast<int>(kInterrupted) : code;
  }
  const std::optional<Profile> profile =
      result.steps > 0 ? write_recorded(session, subject, *made) : std::nullopt;
  if (result.ended == runtime::Ended::stopped)
    return end_interrupted(session, subject, start, result, made->executor->next_step());
  std::optional<double> bigram;
  if (result.held_out_loss)
    bigram = bigram_of(session, subject.lowered.model, made->training.settings);
  const runtime::Batches held_out = made->executor->held_out();
  print_end(session.words(), result, held_out, bigram);
  if (!result.checkpoint.empty()) session.words() << "checkpoint " << result.checkpoint << "\n";
  if (session.arguments().format == "json" && !session.sink().has_errors())
    print_json(console.out, subject, start, result, held_out, bigram, profile);
  return session.finish();
}

}  // namespace

int run_train(Console& console, const Arguments& given) {
  Arguments arguments = given;
  std::optional<runtime::FoundCheckpoint> found;
  runtime::Failure not_found;
  if (!given.resume.empty()) found = runtime::find_checkpoint(given.resume, not_found);
  // A run goes on in its own folder.
  if (found && given.only.empty() && given.out_folder.empty()) arguments.out_folder = found->run;
  Session session(console, arguments);
  if (!given.resume.empty() && !found) {
    report_failure(session, not_found, {});
    return session.finish();
  }
  if (!session.open(arguments.positional[0])) return session.finish();
  auto subject =
      session.subject(arguments.positional.size() > 1 ? arguments.positional[1] : "", true);
  if (!subject) return session.finish();
  const bool on_cuda = subject->lowered.strategy.settings.device == directive::Platform::cuda;
  const std::uint64_t devices = subject->lowered.strategy.mesh.devices();
  if (arguments.processes && *arguments.processes > devices) {
    session.sink()
        .report(Code::wrong_number_of_ranks, subject->lowered.strategy.mesh.loc,
                "`-n {}` starts more processes than the mesh has devices: {}", *arguments.processes,
                devices)
        .hint("write `-n {}` at most", devices);
    return session.finish();
  }
  if (on_cuda && arguments.processes.value_or(1) != 1 && *arguments.processes != devices) {
    session.sink()
        .report(Code::bad_launch, subject->lowered.strategy.mesh.loc,
                "`-n {}` does not start a process for each of the mesh's devices: {}",
                *arguments.processes, devices)
        .hint("write `-n {}`; without `-n` one process runs all ranks on one GPU", devices);
    return session.finish();
  }
  bool failed = false;
  const auto launch = launch_of_run(session, *subject, failed);
  if (failed) return session.finish();
  if (arguments.dry_run) return print_dry_run(session, *subject, launch);
  if (!launch) {
    if (const auto code = start_processes(session, *subject)) return *code;
  }
  const auto options = runtime_options(session);
  if (!options) return session.finish();
  RunProcesses processes = join_processes(session, launch, *options);
  if (processes.failed || !texts_are_ready(session, *subject)) return session.finish();
  if (processes.group != nullptr && arguments.reference && !on_cuda) {
    session.sink()
        .report(Code::bad_launch, SourceRange(),
                "`--reference` compares the ranks of one process with one device")
        .hint("write `--transport local`, or start one process: several have the same bits");
    return session.finish();
  }
  const auto cuda = on_cuda ? open_cuda(session, processes) : nullptr;
  if (on_cuda && !cuda) return session.finish();
  OutFolder folder;
  if (!processes.first()) {
    if (!arguments.out_folder.empty() && !session.make_folder(arguments.out_folder))
      return session.finish();
  } else if (!folder.hold(session)) {
    return session.finish();
  }
  std::optional<Resumed> resumed;
  if (found && !(resumed = open_resumed(session, *found))) return session.finish();
  // Told before minutes of training, not after them.
  for (const std::string& path : {arguments.trace, arguments.profile}) {
    if (!path.empty() && processes.first() && !session.check_writable(path))
      return session.finish();
  }
  return arguments.reference ? compare_with_one_device(session, *subject, *options, cuda.get())
                             : run_steps(session, *subject, *options, processes, cuda.get(),
                                         resumed ? &*resumed : nullptr);
}

}  // namespace piper::tools
