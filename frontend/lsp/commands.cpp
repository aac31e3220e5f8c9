// Commands of lenses and panels: grids, pages, checks, trains.

#include "frontend/lsp/methods.h"
#include "frontend/lsp/subjects.h"
#include "frontend/pictures/memory_view.h"
#include "frontend/pictures/timeline_page.h"
#include "frontend/source/source_manager.h"
#include "ir/diagnostics/counted.h"
#include "passes/simulate/operations.h"

namespace piper::lsp {

namespace {

/// The one that a position lies in, or else `preferred`, or else the chosen train, or else the
/// first of the file; empty where there is none.
std::string subject_at(Request& request, const json::Value* position, llvm::StringRef preferred) {
  const std::uint32_t at = request.offset(position);
  const std::string chosen = request.project().chosen_train();
  std::string first, named;
  for (const service::Symbol& symbol : request.symbols()) {
    if (!is_subject(symbol)) continue;
    if (touches(symbol.range, at)) return symbol.name;
    if (first.empty()) first = symbol.name;
    if (symbol.name == preferred || (symbol.name == chosen && named.empty())) named = symbol.name;
  }
  return named.empty() ? first : named;
}

json::Value show_grid(Request& request, const json::Object* argument) {
  const Subject subject = subject_of(request, argument);
  const std::string grid = grid_of(*plan_of(request, subject));
  const std::string shown =
      request.project().show(subject.name + ".txt", subject.title() + "\n\n" + grid);
  json::Object result{{"text", text(grid)}};
  if (!shown.empty()) result["uri"] = text(shown);
  return result;
}

pictures::Picture picture_of(Request& request, const Subject& subject) {
  const std::shared_ptr<const service::Plan> plan = plan_of(request, subject);
  DiagnosticSink sink(plan->dag.context->locations);
  auto timeline = passes::simulate_operations(plan->dag, {}, sink);
  if (!timeline)
    throw Refusal{ErrorCode::request_failed,
                  "`" + subject.name + "` has no timeline: see `piper show timeline`"};
  return pictures::make_picture(subject.title(), std::move(*timeline), &plan->dag,
                                plan->dag.context->locations);
}

/// The contents of a panel for the train or schedule at a position: grid, timeline at unit costs,
/// memory.
json::Value show_page(Request& request, const json::Object* argument) {
  const json::Value* position = argument != nullptr ? argument->get("position") : nullptr;
  const std::string name =
      position != nullptr ? subject_at(request, position, argument->getString("name").value_or(""))
                          : subject_of(request, argument).name;
  if (name.empty())
    throw Refusal{ErrorCode::request_failed, "the file has no train and no schedule"};
  const Subject subject = subject_called(request, name);
  const std::shared_ptr<const service::Plan> plan = plan_of(request, subject);
  const pictures::Picture picture = picture_of(request, subject);
  return json::Object{{"name", text(name)},
                      {"title", text(subject.title())},
                      {"grid", text(grid_of(*plan))},
                      {"page", text(pictures::timeline_page(std::span(&picture, 1)))},
                      {"memory", text(pictures::memory_svg(passes::memory_table(plan->dag),
                                                           "memory of " + subject.title()))}};
}

/// For clients without a panel: writes the page, and shows it where the client can.
json::Value open_page(Request& request, const json::Object* argument) {
  const Subject subject = subject_of(request, argument);
  const pictures::Picture picture = picture_of(request, subject);
  const std::string uri = request.project().show(subject.name + ".html",
                                                 pictures::timeline_page(std::span(&picture, 1)));
  if (uri.empty())
    throw Refusal{ErrorCode::request_failed,
                  "the page cannot be written: the server has no folder for it"};
  if (!request.editor().show(uri, true))
    request.editor().message(MessageKind::info,
                             "the page of `" + subject.title() + "` is " + path_of(uri));
  return json::Object{{"uri", text(uri)}};
}

/// The diagnostics of `piper check` of the file as text.
json::Value check(Request& request, const json::Object* argument) {
  const Subject subject = subject_of(request, argument);
  const auto checked = request.document().check(&request.cancellation());
  if (checked.status == service::Status::cancelled) throw Cancelled();
  std::int64_t errors = 0, warnings = 0;
  for (const Diagnostic& each : checked.diagnostics) {
    errors += each.severity == Severity::error;
    warnings += each.severity == Severity::warning;
  }
  const std::string file = std::string(request.files().name(FileId::at(0)));
  std::string words = "no mistake in `" + file.substr(file.rfind('/') + 1) + "`";
  if (errors + warnings > 0)
    words = counted(errors, "error") + " and " + counted(warnings, "warning") +
            words.substr(words.find(" in"));
  request.editor().message(errors > 0     ? MessageKind::error
                           : warnings > 0 ? MessageKind::warning
                                          : MessageKind::info,
                           words);
  return json::Object{{"errors", errors},
                      {"warnings", warnings},
                      {"text", text(render_text(checked.diagnostics, request.files()))}};
}

/// A train runs as `piper train`, on the file on the disk.
json::Value train(Request& request, const json::Object* argument) {
  const Subject subject = subject_of(request, argument);
  const std::string path = request.document().path(), key = Trains::key(path, subject.name);
  if (request.program() == nullptr || !request.program()->find_train(subject.name).valid())
    throw Refusal{ErrorCode::request_failed, "the file has no train named `" + subject.name + "`"};
  const source::RealFileSystem disk;
  const source::ReadResult saved =
      source::UnblockingFileSystem(disk).read(path, source::kMaxFileSize);
  if (!saved.text || *saved.text != request.text())
    throw Refusal{ErrorCode::request_failed,
                  "save the file first: `piper train` reads what lies on the disk"};
  std::vector<std::string> words = {"train", path, subject.name};
  for (const lower::Override& value : subject.plan.subject.values)
    words.insert(words.end(), {"-D", value.name + "=" + value.value});
  Editor& editor = request.editor();
  const std::string name = subject.name;
  const Trains::Start started = request.trains().start(
      key, words,
      [&editor, name](std::string_view line) { editor.log(name + ": " + std::string(line)); },
      [&editor, name](int code) {
        const bool good = code == 0;
        editor.message(good ? MessageKind::info : MessageKind::error,
                       "`" + name + "` " +
                           (good ? "is trained" : "ended with exit code " + std::to_string(code)) +
                           ": the log has its lines");
      });
  if (started == Trains::Start::runs_already)
    throw Refusal{ErrorCode::request_failed,
                  "`" + name + "` is being trained: `piper.stop` ends that"};
  if (started == Trains::Start::failed)
    throw Refusal{ErrorCode::request_failed, "the server cannot start `piper train`"};
  if (request.cancellation().requested()) {  // it was stopped or cancelled
    request.trains().stop(key);
    throw Cancelled();
  }
  editor.message(MessageKind::info, "`" + name + "` is being trained: the log has its lines");
  return json::Object{{"started", true}};
}

struct Command {
  std::string_view name;
  json::Value (*run)(Request& request, const json::Object* argument);
};

constexpr Command kCommands[] = {{"piper.check", check},
                                 {"piper.grid", show_grid},
                                 {"piper.open", open_page},
                                 {"piper.page", show_page},
                                 {kTrainCommand, train}};

}  // namespace

json::Array command_names() {
  json::Array names;
  for (const Command& command : kCommands) names.push_back(text(command.name));
  names.push_back(text(kStopCommand));
  return names;
}

json::Value execute_command(Request& request) {
  const auto wanted = request.params().getString("command").value_or("");
  const json::Array* arguments = request.params().getArray("arguments");
  const json::Object* argument =
      arguments != nullptr && !arguments->empty() ? (*arguments)[0].getAsObject() : nullptr;
  for (const Command& command : kCommands) {
    if (wanted == llvm::StringRef(command.name)) return command.run(request, argument);
  }
  throw Refusal{ErrorCode::invalid_params, "`" + wanted.str() + "` is no command of the server"};
}

}  // namespace piper::lsp
