#include "frontend/tools/session.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "backend/device_program/device_program.h"
#include "frontend/parse/parse.h"
#include "ir/dag/parse.h"
#include "ir/dag/print.h"
#include "ir/verify/verify.h"

namespace piper::tools {

std::string reason(int error) {
  std::string text = std::strerror(error);
  if (!text.empty() && text[0] >= 'A' && text[0] <= 'Z') text[0] = static_cast<char>(text[0] - 'A' + 'a');
  return text;
}

Session::Session(Console& console, const Arguments& arguments)
    : console_(console), arguments_(arguments), overrides_(arguments.overrides), sink_(context_.locations) {}

std::optional<ast::Module> Session::parse_only(const std::string& input) {
  if (input.ends_with(".pir")) {
    sink_.report(Code::unknown_subject, SourceRange(), "a .pir file has no syntax tree: this needs a .pipe file or a schedule of the standard library");
    return std::nullopt;
  }
  const auto file = open_source(input);
  if (!file) return std::nullopt;
  return parse::parse(context_.locations.files(), *file, sink_);
}

bool Session::open(const std::string& input) {
  if (input.ends_with(".pir")) return open_pir(input);
  const auto file = open_source(input);
  if (!file) return false;
  program_ = sema::analyse(*file, console_.files, context_, sink_);
  return true;
}

std::optional<FileId> Session::open_source(const std::string& input) {
  // A name without a folder and an ending is one of the library.
  if (!input.ends_with(".pipe") && input.find('/') == std::string::npos) return open_library(input);
  return source::open(input, {}, console_.files, context_.locations.files(), sink_);
}

std::optional<FileId> Session::open_library(const std::string& name) {
  const auto file = sema::open_library("std.schedules." + name, context_.locations.files());
  // A file of shared parts, such as `alternate`, has none.
  if (file && declares_schedule(*file, name)) {
    library_schedule_ = name;
    return file;
  }
  std::vector<std::string> known;
  for (const std::string& module : sema::library_modules()) {
    constexpr std::string_view kPrefix = "std.schedules.";
    if (!module.starts_with(kPrefix)) continue;
    const std::string schedule = module.substr(kPrefix.size());
    if (declares_schedule(*sema::open_library(module, context_.locations.files()), schedule)) known.push_back(schedule);
  }
  const auto meant = nearest(name, known);
  auto&& builder = sink_.report(Code::unknown_input, SourceRange(), "`{}` is neither a .pipe file, a .pir file, nor a schedule of the standard library", name);
  if (meant) {
    builder.hint("did you mean `{}`?", *meant);
  } else {
    std::string list;
    for (const std::string& schedule : known) list += (list.empty() ? "`" : ", `") + schedule + "`";
    builder.hint("its schedules are {}", list);
  }
  return std::nullopt;
}

bool Session::declares_schedule(FileId file, std::string_view name) {
  DiagnosticSink unread(context_.locations);  // whoever goes on with the file tells its mistakes
  const ast::Module module = parse::parse(context_.locations.files(), file, unread);
  return std::any_of(module.items.begin(), module.items.end(), [&](const ast::Item* item) {
    const auto* function = llvm::dyn_cast<ast::FunctionItem>(item);
    return function != nullptr && function->sort == ast::FunctionSort::schedule && function->name.name == name;
  });
}

bool Session::open_pir(const std::string& path) {
  const auto file = source::open(path, {}, console_.files, context_.locations.files(), sink_);
  if (!file) return false;
  pir_ = dag::parse(*file, context_, sink_, &pir_directives_);
  if (pir_ && verify::verify(*pir_, sink_)) verify::verify_workspaces(*pir_, backend::workspace_bytes, sink_);
  return pir_ && !sink_.has_errors();
}

std::optional<Session::Subject> Session::lower(sema::TrainId train, sema::FunctionId schedule) {
  const bool runnable = train.valid() ? program_->trains[train.index()].runnable : program_->functions[schedule.index()].runnable;
  if (!runnable) return std::nullopt;  // which was told
  std::optional<lower::Lowered> remains;
  auto lowered = train.valid() ? lower::lower_train(*program_, train, overrides_, context_, sink_, {}, &remains)
                               : lower::lower_schedule(*program_, schedule, overrides_, context_, sink_, &remains);
  if (remains) passes::check_rest(remains->model, remains->strategy, sink_, options_of_passes(dag::Level::planned));
  if (!lowered) return std::nullopt;
  const std::string_view name = train.valid() ? program_->trains[train.index()].name() : program_->functions[schedule.index()].name();
  return Subject{std::string(name), train.valid(), std::move(*lowered)};
}

std::list<Session::Subject> Session::subjects(const std::string& name) {
  std::list<Subject> subjects;
  const auto add = [&](sema::TrainId train, sema::FunctionId schedule) {
    if (auto subject = lower(train, schedule)) subjects.push_back(std::move(*subject));
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
  if (!program_->complete) return subjects;  // it may stand where the text did not parse
  std::vector<std::string> known;
  for (const sema::Train& candidate : program_->trains) {
    if (candidate.module.index() == 0) known.emplace_back(candidate.name());
  }
  for (const sema::Function& candidate : program_->functions) {
    if (candidate.sort() == ast::FunctionSort::schedule && candidate.module.index() == 0) known.emplace_back(candidate.name());
  }
  auto&& builder = sink_.report(Code::unknown_subject, SourceRange(), "the file has no train or schedule named `{}`", wanted);
  if (wanted.ends_with(".pipe") || wanted.ends_with(".pir")) {
    builder.hint("a command takes one file, and behind it a name in it");
  } else if (const auto meant = nearest(wanted, known)) {
    builder.hint("did you mean `{}`?", *meant);
  } else if (!known.empty()) {
    std::string list;
    for (std::size_t i = 0; i < known.size() && i < 8; ++i) list += (i == 0 ? "`" : ", `") + known[i] + "`";
    builder.hint("it has {}{}", list, known.size() > 8 ? " and more" : "");
  }
  return subjects;
}

std::optional<Session::Subject> Session::subject(const std::string& name, bool train_only) {
  if (!program_) {
    sink_.report(Code::unknown_subject, SourceRange(), "this needs a .pipe file or a schedule of the standard library");
    return std::nullopt;
  }
  if (name.empty() && library_schedule_.empty()) {
    std::vector<std::string> trains;
    for (const sema::Train& train : program_->trains) {
      if (train.module.index() == 0) trains.emplace_back(train.name());
    }
    if (trains.size() != 1) {
      if (!program_->complete) return std::nullopt;
      std::string list;
      for (const std::string& train : trains) list += (list.empty() ? "`" : ", `") + train + "`";
      if (trains.empty()) {
        sink_.report(Code::unknown_subject, SourceRange(), "the file has no train")
            .hint("write `train NAME = model(...) on mesh { ... }`, or name a schedule of the file behind it");
      } else {
        sink_.report(Code::unknown_subject, SourceRange(), "the file has {} trains, and none is named", trains.size()).hint("write one of {} behind the file", list);
      }
      return std::nullopt;
    }
  }
  std::list<Subject> found = subjects(name);
  if (!program_->ok) {  // the mistakes of what would have run are told beside those of other declarations
    for (Subject& subject : found) compile(subject, dag::Level::planned);
    return std::nullopt;
  }
  if (found.empty()) return std::nullopt;
  if (train_only && !found.front().is_train) {
    sink_.report(Code::unknown_subject, SourceRange(), "`{}` is a schedule; this needs a train, which has a model and data", found.front().name);
    return std::nullopt;
  }
  return std::move(found.front());
}

std::optional<Session::Subject> Session::relower(const Subject& subject, tensor::DType dtype) {
  auto lowered = lower::lower_train(*program_, program_->find_train(subject.name), overrides_, context_, sink_, dtype);
  if (!lowered) return std::nullopt;
  return Subject{subject.name, true, std::move(*lowered)};
}

passes::Options Session::options_of_passes(dag::Level level) const {
  passes::Options options;
  options.stop_at = level;
  options.workspace_bytes = backend::workspace_bytes;
  return options;
}

std::optional<dag::Dag> Session::compile(Subject& subject, dag::Level level, bool forward_only) {
  passes::Options options = options_of_passes(level);
  options.forward_only = forward_only;
  std::string before;
  if (!arguments_.print_after.empty()) {
    options.after = [&, before](std::string_view pass, const dag::Dag& dag) mutable {
      if (arguments_.print_after != "all" && arguments_.print_after != pass) return;
      std::string text = dag::print(dag);
      console_.err << "// after " << pass << (text == before ? " (unchanged)\n" : "\n");
      if (text != before) console_.err << text;
      before = std::move(text);
    };
  }
  return passes::compile(subject.lowered.model, subject.lowered.strategy, sink_, options);
}

void Session::show_warnings() {
  std::vector<Diagnostic> unseen;
  const SourceTable& files = context_.locations.files();
  for (Diagnostic& diagnostic : sink_.sorted()) {
    if (seen_.insert(render_json(diagnostic, files)).second) unseen.push_back(std::move(diagnostic));
  }
  if (!unseen.empty()) console_.err << render_text(unseen, files);
  console_.err.flush();
}

int Session::finish() {
  // JSON on standard output is one object: a command's own, or the list of diagnostics where it has none to print.
  if (arguments_.format == "json" && (sink_.has_errors() || arguments_.command == Command::check)) {
    console_.out << render_json(sink_.sorted(), context_.locations.files()) << "\n";
  } else {
    show_warnings();
  }
  return sink_.has_errors() ? kDiagnostics : kClean;
}

bool Session::write(const std::string& text) {
  if (arguments_.output.empty()) {
    console_.out << text;  // the driver sees whether it was taken
    return true;
  }
  return write_file(arguments_.output, text);
}

bool Session::write_file(const std::string& path, const std::string& text) {
  errno = 0;
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  if (file) return true;
  sink_.report(Code::unwritable_output, SourceRange(), "`{}` cannot be written: {}", path, reason(errno));
  return false;
}

bool Session::make_folder(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (!error) return true;
  sink_.report(Code::unwritable_output, SourceRange(), "the folder `{}` cannot be made: {}", path, reason(error.value()));
  return false;
}

}  // namespace piper::tools
