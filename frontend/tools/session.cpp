#include "frontend/tools/session.h"

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "frontend/source/write_file.h"
#include "ir/dag/print.h"

namespace piper::tools {

std::string reason(int error) {
  std::string text = std::strerror(error);
  if (!text.empty() && text[0] >= 'A' && text[0] <= 'Z')
    text[0] = static_cast<char>(text[0] - 'A' + 'a');
  return text;
}

Session::Session(Console& console, const Arguments& arguments)
    : console_(console),
      arguments_(arguments),
      compilation_(console.files, arguments.overrides),
      sink_(context().locations) {
  std::optional<directive::Platform> device;
  if (!arguments.device.empty())
    device = arguments.device == "cuda" ? directive::Platform::cuda : directive::Platform::cpu;
  const auto attention = console.environment.find("PIPER_CUDA_ATTENTION");
  compilation_.set_device(device,
                          attention != console.environment.end() && attention->second == "builtin");
}

std::function<void(std::string_view, const dag::Dag&)> Session::print_after() {
  if (arguments_.print_after.empty()) return {};
  return [this, before = std::string()](std::string_view pass, const dag::Dag& dag) mutable {
    if (arguments_.print_after != "all" && arguments_.print_after != pass) return;
    std::string text = dag::print(dag);
    console_.err << "// after " << pass << (text == before ? " (unchanged)\n" : "\n");
    if (text != before) console_.err << text;
    before = std::move(text);
  };
}

std::optional<dag::Dag> Session::compile(const Subject& subject, const passes::Prepared& prepared,
                                         bool forward_only) {
  return verified(compilation_.compile(subject, prepared,
                                       {dag::Level::planned, forward_only, print_after()}, sink_));
}

std::optional<dag::Dag> Session::compile(const Subject& subject, dag::Level level,
                                         bool forward_only) {
  return verified(compilation_.compile(subject, {level, forward_only, print_after()}, sink_));
}

std::optional<dag::Dag> Session::verified(std::optional<dag::Dag> dag) {
  if (dag && dag->level == dag::Level::planned && !passes::keeps_promise("plan", *dag, sink_))
    dag.reset();
  return dag;
}

void Session::check_file() {
  for (const service::CheckedSchedule& schedule : compilation_.check_file(sink_)) {
    words() << "schedule " << schedule.name << ": checked"
            << (schedule.sizes.empty() ? "" : " at " + schedule.sizes) << "\n";
  }
}

void Session::show_warnings() {
  std::vector<Diagnostic> unseen;
  const SourceTable& files = context().locations.files();
  for (Diagnostic& diagnostic : sink_.sorted()) {
    if (seen_.insert(render_json(diagnostic, files)).second)
      unseen.push_back(std::move(diagnostic));
  }
  if (!unseen.empty()) console_.err << render_text(unseen, files);
  console_.err.flush();
}

int Session::finish() {
  // JSON on standard output is one object: a command's own, or the list of diagnostics where it has
  // none to print.
  if (arguments_.format == "json" && (sink_.has_errors() || arguments_.command == Command::check)) {
    console_.out << render_json(sink_.sorted(), context().locations.files()) << "\n";
  } else {
    show_warnings();
  }
  return sink_.has_errors() ? kDiagnostics : kClean;
}

pictures::Screen Session::screen() const {
  const unsigned columns =
      arguments_.output.empty() && console_.out_columns ? console_.out_columns() : 0;
  if (columns == 0) return {};
  const auto no_color = console_.environment.find("NO_COLOR");
  return {columns, no_color == console_.environment.end() || no_color->second.empty()};
}

bool Session::write(const std::string& text) {
  if (arguments_.output.empty()) {
    console_.out << text;  // the driver sees whether it was taken
    return true;
  }
  return write_file(arguments_.output, text);
}

bool Session::write_file(const std::string& path, const std::string& text) {
  return is_no_input(path) && is_written(path, source::write_file(path, text));
}
bool Session::check_writable(const std::string& path) {
  return is_no_input(path) && is_written(path, source::check_writable(path));
}

std::list<service::Subject> Session::subjects(const std::string& name) {
  std::list<service::Subject> subjects = compilation_.subjects(name, sink_);
  for (const service::Subject& subject : subjects)
    inputs_.add_data(subject.lowered.strategy.settings);
  return subjects;
}

std::optional<service::Subject> Session::subject(const std::string& name, bool train_only) {
  std::optional<service::Subject> subject = compilation_.subject(name, train_only, sink_);
  if (subject) inputs_.add_data(subject->lowered.strategy.settings);
  return subject;
}

bool Session::is_no_input(const std::string& path) {
  InputFiles inputs = inputs_;
  inputs.add_named(arguments_);
  inputs.add_sources(context().locations.files());
  if (!inputs.has(path)) return true;
  sink_
      .report(Code::unwritable_output, SourceRange(),
              "`{}` is not written: the command or its program reads it", path)
      .hint("give the output another name");
  return false;
}

bool Session::is_written(const std::string& path, std::error_code error) {
  if (!error) return true;
  sink_.report(Code::unwritable_output, SourceRange(), "`{}` cannot be written: {}", path,
               reason(error.value()));
  return false;
}

bool Session::make_folder(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (!error) return true;
  sink_.report(Code::unwritable_output, SourceRange(), "the folder `{}` cannot be made: {}", path,
               reason(error.value()));
  return false;
}

}  // namespace piper::tools
