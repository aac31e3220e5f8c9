#include "frontend/service/compilation.h"

#include <algorithm>
#include <cctype>

#include "backend/device_program/device_program.h"
#include "frontend/parse/parse.h"
#include "frontend/service/memory_advice.h"
#include "frontend/service/nearest.h"
#include "frontend/source/source_manager.h"
#include "ir/dag/parse.h"
#include "ir/diagnostics/report_again.h"
#include "ir/verify/verify.h"
#include "passes/plan/requirements.h"

namespace piper::service {

namespace {

passes::Options options_of_passes(const CompileOptions& options, backend::Target target) {
  passes::Options made;
  made.stop_at = options.level;
  made.forward_only = options.forward_only;
  made.workspace_bytes = backend::workspace_bytes(target);
  made.after = options.after;
  return made;
}

void check_dag(const dag::Dag& dag, backend::Target target, DiagnosticSink& sink) {
  if (!verify::verify(dag, sink) || dag.level != dag::Level::planned) return;
  verify::verify_workspaces(dag, backend::workspace_bytes(target), sink);
  passes::check_bubbles(dag, sink);
}

}  // namespace

Compilation::Compilation(const source::FileSystem& files, std::vector<lower::Override> overrides)
    : files_(files), overrides_(std::move(overrides)) {}

void Compilation::set_device(std::optional<directive::Platform> device, bool builtin_attention) {
  device_ = device;
  builtin_attention_ = builtin_attention;
}

backend::Target Compilation::target(const directive::Settings& settings) const {
  if (settings.device == directive::Platform::cpu) return backend::Target::cpu;
  return builtin_attention_ ? backend::Target::cuda_own : backend::Target::cuda;
}

std::optional<ast::Module> Compilation::parse(const std::string& input, DiagnosticSink& sink) {
  if (input.ends_with(".pir")) {
    sink.report(
        Code::unknown_subject, SourceRange(),
        "a .pir file has no syntax tree: this needs a .pipe file or a schedule of the standard library");
    return std::nullopt;
  }
  const auto file = open_source(input, sink);
  if (!file) return std::nullopt;
  return parse::parse(context_.locations.files(), *file, sink);
}

bool Compilation::open(const std::string& input, DiagnosticSink& sink) {
  input_ = input;
  if (input.ends_with(".pir")) return open_pir(input, sink);
  const auto file = open_source(input, sink);
  if (!file) return false;
  std::vector<std::string> beside;
  if (library_names_) {
    beside = sema::library_modules();
    std::erase_if(beside, [](const std::string& name) { return !sema::is_library_names(name); });
  }
  program_ = sema::analyse(*file, files_, context_, sink, kShownErrors, beside);
  return true;
}

std::optional<FileId> Compilation::open_source(const std::string& input, DiagnosticSink& sink) {
  // A name without a folder and an ending is one of the library.
  if (!input.ends_with(".pipe") && input.find('/') == std::string::npos)
    return open_library(input, sink);
  return source::open(input, {}, files_, context_.locations.files(), sink);
}

std::optional<FileId> Compilation::open_library(const std::string& name, DiagnosticSink& sink) {
  const auto file = sema::open_library("std.schedules." + name, context_.locations.files());
  // A file of shared parts, such as `alternate`, has none.
  if (file && declares_schedule(*file, name)) {
    library_schedule_ = name;
    return file;
  }
  const std::vector<std::string> known = library_schedules();
  const auto called = library_schedule_called(name);
  const auto meant = called ? called : nearest(name, known);
  auto&& builder = sink.report(
      Code::unknown_input, SourceRange(),
      "`{}` is neither a .pipe file, a .pir file, nor a schedule of the standard library", name);
  if (meant) {
    builder.hint("did you mean `{}`?", *meant);
  } else {
    builder.hint("its schedules are {}", quoted_list(known));
  }
  return std::nullopt;
}

std::vector<std::string> Compilation::library_schedules() {
  std::vector<std::string> known;
  for (const std::string& module : sema::library_modules()) {
    constexpr std::string_view kPrefix = "std.schedules.";
    if (!module.starts_with(kPrefix)) continue;
    const std::string schedule = module.substr(kPrefix.size());
    if (declares_schedule(*sema::open_library(module, context_.locations.files()), schedule))
      known.push_back(schedule);
  }
  return known;
}

namespace {

/// `ZB-H1` and `zb_h1` are one name.
std::string without_marks(std::string_view name) {
  std::string letters;
  for (const char c : name) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0)
      letters += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return letters;
}

/// The names in the line `Also called A, B, C.` of a comment, without marks.
std::vector<std::string> other_names(std::string_view doc) {
  constexpr std::string_view kBegin = "Also called ";
  std::vector<std::string> names;
  const std::size_t begin = doc.find(kBegin);
  if (begin == std::string_view::npos) return names;
  std::string_view list = doc.substr(begin + kBegin.size());
  list = list.substr(0, list.find('.'));
  for (std::size_t end = 0; end != std::string_view::npos;
       list.remove_prefix(end == std::string_view::npos ? 0 : end + 1)) {
    end = list.find(',');
    names.push_back(without_marks(list.substr(0, end)));
  }
  return names;
}

}  // namespace

std::optional<std::string> Compilation::library_schedule_called(std::string_view word) {
  const std::string wanted = without_marks(word);
  if (wanted.empty()) return std::nullopt;
  for (const std::string& name : library_schedules()) {
    const auto doc = schedule_doc(
        *sema::open_library("std.schedules." + name, context_.locations.files()), name);
    const std::vector<std::string> others = other_names(*doc);
    if (without_marks(name) == wanted ||
        std::find(others.begin(), others.end(), wanted) != others.end())
      return name;
  }
  return std::nullopt;
}

bool Compilation::declares_schedule(FileId file, std::string_view name) {
  return schedule_doc(file, name).has_value();
}

std::optional<std::string> Compilation::schedule_doc(FileId file, std::string_view name) {
  DiagnosticSink unread(context_.locations);  // whoever goes on with the file tells its mistakes
  const ast::Module module = parse::parse(context_.locations.files(), file, unread);
  for (const ast::Item* item : module.items) {
    const auto* function = llvm::dyn_cast<ast::FunctionItem>(item);
    if (function != nullptr && function->sort == ast::FunctionSort::schedule &&
        function->name.name == name)
      return std::string(function->doc);
  }
  return std::nullopt;
}

/// The author of the text needs its lines: errors are reported with those, and with the lines of
/// the program that they name.
void Compilation::check_pir(const dag::Dag& dag, FileId file, DiagnosticSink& sink) {
  DiagnosticSink found(context_.locations);
  check_dag(dag, target(dag.settings), found);
  TextPlaces places;
  if (found.has_errors()) {
    DiagnosticSink unread(context_.locations);
    const std::optional<dag::Dag> placed = dag::parse(file, context_, unread, nullptr, &places);
    found = DiagnosticSink(context_.locations);
    check_dag(*placed, target(placed->settings), found);
  }
  for (const Diagnostic& diagnostic : found.sorted()) {
    DiagnosticBuilder builder = report_again(diagnostic, sink);
    const auto place = places.find(diagnostic.range);
    if (place != places.end() && place->second.valid())
      builder.related(context_.locations.primary(place->second), "it comes from here");
  }
}

bool Compilation::open_pir(const std::string& path, DiagnosticSink& sink) {
  const auto file = source::open(path, {}, files_, context_.locations.files(), sink);
  if (!file) return false;
  std::vector<directive::Directive> directives;
  std::optional<dag::Dag> dag = dag::parse(*file, context_, sink, &directives);
  context_.poll();
  if (dag) check_pir(*dag, *file, sink);
  pir_ = std::move(dag);
  pir_directives_ = std::move(directives);
  return pir_ && !sink.has_errors();
}

std::optional<Subject> Compilation::lower(sema::TrainId train, sema::FunctionId schedule,
                                          std::span<const lower::Override> overrides,
                                          DiagnosticSink& sink) {
  const bool runnable = train.valid() ? program_->trains[train.index()].runnable
                                      : program_->functions[schedule.index()].runnable;
  if (!runnable) return std::nullopt;  // reported already
  auto lowered = train.valid()
                     ? lower::lower_train(*program_, train, overrides, context_, sink)
                     : lower::lower_schedule(*program_, schedule, overrides, context_, sink);
  if (!lowered) return std::nullopt;
  if (device_) lowered->strategy.settings.device = *device_;
  const std::string_view name = train.valid() ? program_->trains[train.index()].name()
                                              : program_->functions[schedule.index()].name();
  return Subject{std::string(name), train.valid(), std::move(*lowered)};
}

std::list<Subject> Compilation::subjects(const std::string& name, DiagnosticSink& sink) {
  std::list<Subject> subjects;
  const auto add = [&](sema::TrainId train, sema::FunctionId schedule) {
    if (auto subject = lower(train, schedule, overrides_, sink))
      subjects.push_back(std::move(*subject));
  };
  const std::string& wanted = name.empty() ? library_schedule_ : name;
  if (wanted.empty()) {
    for (std::size_t i = 0; i < program_->trains.size(); ++i) {
      if (program_->trains[i].module.index() == 0) add(sema::TrainId::at(i), {});
    }
    return subjects;
  }
  const sema::TrainId train = program_->find_train(wanted);
  const sema::FunctionId schedule = program_->find_schedule(wanted);
  if (train.valid() || schedule.valid()) {
    add(train, schedule);
    return subjects;
  }
  if (!program_->complete) return subjects;  // it may be in text that did not parse
  report_unknown_subject(wanted, sink);
  return subjects;
}

bool Declared::takes(std::string_view name) const {
  return std::any_of(parameters.begin(), parameters.end(),
                     [&](const Parameter& parameter) { return parameter.name == name; });
}

std::optional<Declared> Compilation::declared(const std::string& name) const {
  if (!program_) return std::nullopt;
  const std::string& wanted = name.empty() ? library_schedule_ : name;
  Declared found;
  for (const sema::Param& param : program_->params) {
    if (param.module.index() == 0)
      found.parameters.push_back({std::string(param.syntax->name.name), true, false});
  }
  const sema::Train* only = nullptr;
  for (const sema::Train& train : program_->trains) {
    if (train.module.index() != 0 || (!wanted.empty() && train.name() != wanted)) continue;
    if (only != nullptr) return std::nullopt;
    only = &train;
  }
  if (only != nullptr) {
    found.range = only->syntax->range;
    found.doc = only->syntax->doc;
    return found;
  }
  const sema::FunctionId schedule =
      wanted.empty() ? sema::FunctionId() : program_->find_schedule(wanted);
  if (!schedule.valid()) return std::nullopt;
  const sema::Function& function = program_->functions[schedule.index()];
  found.range = function.syntax->range;
  found.doc = function.syntax->doc;
  for (std::size_t i = 0; i < function.params.size(); ++i) {
    const ast::Param& param = function.syntax->params[i];
    found.parameters.push_back({std::string(param.name.name), param.default_value != nullptr,
                                function.params[i].is(sema::TypeKind::axis)});
  }
  return found;
}

void Compilation::report_unknown_subject(const std::string& wanted, DiagnosticSink& sink) {
  std::vector<std::string> known;
  for (const sema::Train& candidate : program_->trains) {
    if (candidate.module.index() == 0) known.emplace_back(candidate.name());
  }
  for (const sema::Function& candidate : program_->functions) {
    if (candidate.sort() == ast::FunctionSort::schedule && candidate.module.index() == 0)
      known.emplace_back(candidate.name());
  }
  auto&& builder = sink.report(Code::unknown_subject, SourceRange(),
                               "the file has no train or schedule named `{}`", wanted);
  if (wanted.ends_with(".pipe") || wanted.ends_with(".pir")) {
    builder.hint("a command takes one file, and after it a name in it");
  } else if (const auto meant = nearest(wanted, known)) {
    builder.hint("did you mean `{}`?", *meant);
  } else if (!known.empty()) {
    std::string list;
    for (std::size_t i = 0; i < known.size() && i < 8; ++i)
      list += (i == 0 ? "`" : ", `") + known[i] + "`";
    builder.hint("it has {}{}", list, known.size() > 8 ? " and more" : "");
  }
}

/// Lists the candidates if there is not exactly one.
bool Compilation::has_one_train(DiagnosticSink& sink) {
  std::vector<std::string> trains;
  for (const sema::Train& train : program_->trains) {
    if (train.module.index() == 0) trains.emplace_back(train.name());
  }
  if (trains.size() == 1) return true;
  if (!program_->complete) return false;
  if (trains.empty()) {
    sink.report(Code::unknown_subject, SourceRange(), "the file has no train")
        .hint(
            "write `train NAME = model(...) on mesh { ... }`, or name a schedule of the file after it");
  } else {
    sink.report(Code::unknown_subject, SourceRange(), "the file has {} trains, and none is named",
                trains.size())
        .hint("write one of {} after the file", quoted_list(trains));
  }
  return false;
}

std::optional<Subject> Compilation::subject(const std::string& name, bool train_only,
                                            DiagnosticSink& sink) {
  if (!program_) {
    sink.report(Code::unknown_subject, SourceRange(),
                "this needs a .pipe file or a schedule of the standard library");
    return std::nullopt;
  }
  if (name.empty() && library_schedule_.empty() && !has_one_train(sink)) return std::nullopt;
  std::list<Subject> found = subjects(name, sink);
  // Errors of the selected subjects are reported beside those of other declarations.
  if (!program_->ok) {
    for (const Subject& subject : found) compile(subject, {}, sink);
    return std::nullopt;
  }
  if (found.empty()) return std::nullopt;
  if (train_only && !found.front().is_train) {
    sink.report(Code::unknown_subject, SourceRange(),
                "`{}` is a schedule; this needs a train, which has a model and data",
                found.front().name);
    return std::nullopt;
  }
  return std::move(found.front());
}

std::optional<Subject> Compilation::relower(const Subject& subject, tensor::DType dtype,
                                            DiagnosticSink& sink) {
  auto lowered = lower::lower_train(*program_, program_->find_train(subject.name), overrides_,
                                    context_, sink, dtype);
  if (!lowered) return std::nullopt;
  lowered->strategy.settings.device = subject.lowered.strategy.settings.device;
  return Subject{subject.name, true, std::move(*lowered)};
}

void Compilation::check(const Subject& subject,
                        const std::function<void(std::string_view, const dag::Dag&)>& after,
                        DiagnosticSink& sink) {
  const std::optional<passes::Prepared> prepared = prepare(subject, sink);
  if (!prepared) return;
  for (const bool forward_only : {false, true}) {
    if (forward_only && !subject.lowered.strategy.settings.held_out) return;
    const auto dag = compile(subject, *prepared, {dag::Level::planned, forward_only, after}, sink);
    if (!dag || !passes::keeps_promise("plan", *dag, sink)) return;
  }
}

std::optional<passes::Prepared> Compilation::prepare(const Subject& subject, DiagnosticSink& sink) {
  return passes::prepare(subject.lowered.model, subject.lowered.strategy, sink);
}

std::optional<dag::Dag> Compilation::compile(const Subject& subject,
                                             const passes::Prepared& prepared,
                                             const CompileOptions& options, DiagnosticSink& sink) {
  passes::Options made = options_of_passes(options, target(subject.lowered.strategy.settings));
  made.memory_advice = [&, plain = made] { return memory_advice(subject.lowered, plain); };
  return passes::compile(prepared, sink, made);
}

std::optional<dag::Dag> Compilation::compile(const Subject& subject, const CompileOptions& options,
                                             DiagnosticSink& sink) {
  const std::optional<passes::Prepared> prepared = prepare(subject, sink);
  return prepared ? compile(subject, *prepared, options, sink) : std::nullopt;
}

}  // namespace piper::service
