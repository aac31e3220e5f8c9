#include <filesystem>
#include <map>
#include <utility>

#include "backend/device_program/abi_types.h"
#include "frontend/tools/commands.h"
#include "frontend/tools/initial_weights.h"
#include "frontend/tools/train_job.h"
#include "frontend/tools/weight_names.h"
#include "ir/byte_text.h"
#include "ir/diagnostics/counted.h"
#include "llvm/Support/JSON.h"
#include "runtime/launch/interrupt.h"
#include "runtime/weights/export_weights.h"
#include "runtime/weights/whole_parameters.h"

namespace piper::tools {
namespace {

namespace fs = std::filesystem;

/// The subject of an export, with the words for it.
struct Exported {
  std::vector<runtime::StoredWeight> weights;
  runtime::WeightMap map;
  std::string name;   // `run/step-300`, `the first values of gpt`
  std::string dtype;  // of training
};

constexpr std::pair<const char*, runtime::StoredType> kTypes[] = {
    {"f64", runtime::StoredType::f64},
    {"f32", runtime::StoredType::f32},
    {"bf16", runtime::StoredType::bf16},
    {"f16", runtime::StoredType::f16}};

/// The type of the exported numbers: the one that was asked for, that of training, or the widest of
/// several.
std::pair<const char*, runtime::StoredType> exported_type(const Exported& exported,
                                                          const std::string& asked) {
  const std::string& dtype = asked.empty() ? exported.dtype : asked;
  for (const auto& row : kTypes) {
    if (dtype == row.first) return row;
  }
  for (const auto& row : kTypes) {
    for (const runtime::StoredWeight& weight : exported.weights) {
      if (weight.source.type == row.second) return row;
    }
  }
  return kTypes[1];
}

/// Whether a word names a program, and no checkpoint.
bool is_program(const std::string& word) {
  std::error_code none;
  return word.ends_with(".pipe") || fs::is_regular_file(word, none);
}

llvm::json::Value utf8(const std::string& text) {
  return llvm::json::isUTF8(text) ? text : llvm::json::fixUTF8(text);
}

/// Writes the files, and prints them.
int write_files(Session& session, const Exported& exported, const runtime::Interrupt& interrupt,
                LocId train) {
  const Arguments& arguments = session.arguments();
  const auto [dtype, type] = exported_type(exported, arguments.dtype);
  runtime::ExportOptions options;
  options.path = arguments.output;
  options.dtype = type;
  options.stopped = [&] { return interrupt.requested(); };
  runtime::ExportReport report;
  if (const auto failure =
          runtime::export_weights(exported.weights, exported.map, options, report)) {
    report_failure(session, *failure, train);
    return session.finish();
  }
  if (report.files.empty()) {
    session.words() << "stopped: nothing was written\n";
    session.finish();
    return kInterrupted;
  }
  std::uint64_t bytes = 0;
  llvm::json::Array files;
  for (const runtime::ExportedFile& file : report.files) {
    bytes += file.bytes;
    files.push_back(llvm::json::Object{{"name", utf8(file.name)}, {"bytes", file.bytes}});
  }
  const std::string as = exported.map.name.empty() ? "" : " with the names of " + exported.map.name;
  session.words() << counted(report.parameters, "parameter") << " of " << exported.name << " in "
                  << arguments.output << as << ": " << counted(report.tensors, "tensor") << " of "
                  << dtype << ", " << bytes_text(bytes)
                  << (report.files.size() > 1 ? " in " + counted(report.files.size(), "file") : "")
                  << "\n";
  if (arguments.format == "json") {
    std::string text;
    llvm::raw_string_ostream(text)
        << llvm::json::Value(llvm::json::Object{{"schema", 1},
                                                {"source", utf8(exported.name)},
                                                {"output", utf8(arguments.output)},
                                                {"names", utf8(exported.map.name)},
                                                {"dtype", dtype},
                                                {"parameters", report.parameters},
                                                {"tensors", report.tensors},
                                                {"bytes", bytes},
                                                {"files", std::move(files)}});
    session.console().out << text << "\n";
  }
  return session.finish();
}

/// Whether the output may be written: a file now, a folder when it is made.
bool is_output_ready(Session& session) {
  const std::string& output = session.arguments().output;
  return !output.ends_with(".safetensors") || session.check_writable(output);
}

/// The parameters that a checkpoint and a model do not have in common.
std::optional<runtime::Failure> other_model(const std::string& folder, const std::string& train,
                                            std::span<const runtime::ParameterShape> stored,
                                            std::span<const runtime::ParameterShape> model) {
  runtime::Failure failure;
  const auto note = [&](const std::string& name, const std::string& text) {
    if (failure.notes.size() < 8) failure.notes.push_back({.text = "`" + name + "` " + text});
  };
  std::map<std::string_view, const runtime::ParameterShape*> expected;
  for (const runtime::ParameterShape& shape : model) expected.emplace(shape.name, &shape);
  for (const runtime::ParameterShape& shape : stored) {
    const auto found = expected.find(shape.name);
    if (found == expected.end()) {
      note(shape.name, "is no parameter of the model");
    } else {
      if (found->second->dims != shape.dims) note(shape.name, "has other extents in the model");
      expected.erase(found);
    }
  }
  for (const auto& [name, shape] : expected)
    note(std::string(name), "is a parameter of the model alone");
  if (failure.notes.empty()) return std::nullopt;
  failure.code = runtime::kCheckpointDiffers;
  failure.message = "`" + folder + "` is no checkpoint of the model of `" + train + "`";
  failure.hint = "name the program and the train that wrote it, with its `-D`";
  return failure;
}

/// The map of `--names` for the model of the checkpoint, which `--program` has.
std::optional<runtime::WeightMap> map_of_program(Session& session,
                                                 const runtime::Checkpoint& checkpoint,
                                                 std::span<const runtime::ParameterShape> stored) {
  const Arguments& arguments = session.arguments();
  session.compilation().add_library_names();
  if (!session.open(arguments.program)) return std::nullopt;
  const std::string& trained = checkpoint.manifest().train;
  std::string name = arguments.positional.size() > 1 ? arguments.positional[1] : "";
  const sema::Program* const program = session.compilation().program();
  if (name.empty() && program != nullptr && program->find_train(trained).valid()) name = trained;
  const auto subject = session.subject(name, true);
  if (!subject) return std::nullopt;
  const auto other =
      other_model(checkpoint.folder(), subject->name, stored, shapes_of(subject->lowered.model));
  if (!other) return map_of_names(session, subject->lowered, arguments.names);
  report_failure(session, *other, subject->lowered.strategy.settings.loc);
  return std::nullopt;
}

int export_checkpoint(Session& session, const std::string& text) {
  const Arguments& arguments = session.arguments();
  runtime::Failure failure;
  const auto found = runtime::find_checkpoint(text, failure);
  const auto checkpoint = found ? runtime::Checkpoint::open(found->folder, failure) : nullptr;
  if (!checkpoint) {
    report_failure(session, failure, {});
    return session.finish();
  }
  session.inputs().add_tree(found->folder);
  const bool averages = arguments.ema;
  if (averages && !checkpoint->has_averages()) {
    report_failure(session,
                   {.code = runtime::kCheckpointMissing,
                    .message = "`" + checkpoint->folder() + "` has no moving averages",
                    .hint = "leave `--ema` out, or train with a line `ema: 0.999`"},
                   {});
    return session.finish();
  }
  std::vector<runtime::StoredWeight> weights = runtime::weights_of(*checkpoint, averages);
  const std::vector<runtime::ParameterShape> shapes = runtime::shapes_of(weights);
  auto map = arguments.names.empty() ? std::optional(runtime::own_names(shapes))
                                     : map_of_program(session, *checkpoint, shapes);
  if (!map || !is_output_ready(session)) return session.finish();
  const runtime::Interrupt interrupt;
  const auto damaged = checkpoint->verify_weights([&] { return interrupt.requested(); }, averages);
  if (damaged) {
    report_failure(session, *damaged, {});
    return session.finish();
  }
  return write_files(
      session,
      {std::move(weights), std::move(*map),
       (averages ? "the averages of " : "") + checkpoint->folder(), checkpoint->manifest().dtype},
      interrupt, {});
}

/// The parameters of a train as their initializers begin them: those that are trained unrounded.
std::vector<runtime::InitialisedParameter> initialised_parameters(const dag::Dag& dag) {
  std::vector<runtime::InitialisedParameter> parameters;
  for (std::size_t p = 0; p < dag.params.size(); ++p) {
    const tensor::Param& param = dag.params[p];
    const tensor::Type& type = dag.param_types[p];
    runtime::InitialisedParameter& added = parameters.emplace_back();
    added.name = dag.context->text(param.name);
    for (const tensor::Dim& dim : type.dims) added.dims.push_back(dim.extent);
    added.dtype = backend::abi_dtype(param.frozen ? type.dtype : tensor::wide(type.dtype));
    added.init = backend::abi_init(param.init.kind);
    added.scale = param.init.scale;
  }
  return parameters;
}

int export_train(Session& session) {
  const std::vector<std::string>& words = session.arguments().positional;
  const std::string& names = session.arguments().names;
  if (!names.empty()) session.compilation().add_library_names();
  if (!session.open(words[0])) return session.finish();
  auto subject = session.subject(words.size() > 1 ? words[1] : "", true);
  if (!subject || !is_output_ready(session)) return session.finish();
  auto map = names.empty() ? std::optional(runtime::own_names(shapes_of(subject->lowered.model)))
                           : map_of_names(session, subject->lowered, names);
  if (!map) return session.finish();
  if (!weights_fit(session, subject->lowered)) return session.finish();
  const auto dag = session.compile(*subject, dag::Level::built);
  if (!dag) return session.finish();
  session.show_warnings();
  const directive::Settings& settings = dag->settings;
  const runtime::Interrupt interrupt;
  runtime::Failure failure;
  const auto model =
      runtime::WholeParameters::create(initialised_parameters(*dag), settings.seed, failure);
  if (!model) {
    report_failure(session, failure, settings.loc);
    return session.finish();
  }
  if (settings.init) {
    const auto weights = open_weights(shapes_of(*dag), *settings.init, failure);
    std::optional<runtime::Failure> refused;
    if (!weights) {
      refused = failure;
    } else {
      session.words() << runtime::report_text(weights->report);
      refused = take_weights(*weights, model->memory(), [&] { return interrupt.requested(); });
    }
    if (refused) {
      report_failure(session, *refused, settings.init->path_loc);
      return session.finish();
    }
  }
  return write_files(
      session,
      {runtime::weights_of(model->memory()), std::move(*map),
       "the first values of " + subject->name, std::string(tensor::dtype_name(settings.dtype))},
      interrupt, settings.loc);
}

}  // namespace

int run_export(Console& console, const Arguments& arguments) {
  Session session(console, arguments);
  const std::vector<std::string>& words = arguments.positional;
  const auto refused = [&](const std::string& text) {
    console.err << "piper: " << text << "\n";
    return kUsage;
  };
  if (is_program(words[0])) {
    if (!arguments.program.empty())
      return refused("`--program` is of a checkpoint, and `" + words[0] + "` is a program");
    if (arguments.ema)
      return refused("`--ema` is of a checkpoint: `export` of a program has no moving averages");
    return export_train(session);
  }
  if (arguments.program.empty() && !arguments.names.empty())
    return refused("`--names` needs the model of the checkpoint: write `--program FILE`, too");
  if (arguments.program.empty() && (words.size() > 1 || !arguments.overrides.empty()))
    return refused("`" + (words.size() > 1 ? words[1] : "-D") +
                   "` is of a program: `export` of a checkpoint takes its folder alone");
  return export_checkpoint(session, words[0]);
}

}  // namespace piper::tools
