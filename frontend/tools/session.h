#pragma once
// One command of the command line over one compilation of the service: its console, its options,
// its exit code, and the files that it writes.
//
//   Session session(console, arguments);
//   if (!session.open("demo.pipe")) return session.finish();
//   for (Session::Subject& subject : session.subjects(name)) session.compile(subject, dag::Level::planned);
//   return session.finish();   // prints the diagnostics, gives the exit code

#include <functional>
#include <list>
#include <optional>
#include <set>
#include <string>
#include <system_error>

#include "frontend/pictures/screen.h"
#include "frontend/service/compilation.h"
#include "frontend/tools/arguments.h"
#include "frontend/tools/console.h"
#include "frontend/tools/input_files.h"
#include "runtime/data/file_text.h"

namespace piper::tools {

/// The system's words for an error, in lower case like every message.
std::string reason(int error);

class Session {
 public:
  using Subject = service::Subject;

  Session(Console& console, const Arguments& arguments);

  /// Calls of the service, with the diagnostics of this command.
  bool open(const std::string& input) { return compilation_.open(input, sink_); }
  std::list<Subject> subjects(const std::string& name);
  std::optional<Subject> subject(const std::string& name, bool train_only);
  std::optional<Subject> relower(const Subject& subject, tensor::DType dtype) {
    return compilation_.relower(subject, dtype, sink_);
  }
  /// Compiles up to `level`, and verifies a plan; prints DAGs for --print-after.
  std::optional<dag::Dag> compile(const Subject& subject, dag::Level level,
                                  bool forward_only = false);
  /// Both programs of a train are those of one model.
  std::optional<passes::Prepared> prepare(const Subject& subject) {
    return compilation_.prepare(subject, sink_);
  }
  std::optional<dag::Dag> compile(const Subject& subject, const passes::Prepared& prepared,
                                  bool forward_only);
  /// Reports all diagnostics of the subject; prints DAGs likewise.
  void check(Subject& subject) { compilation_.check(subject, print_after(), sink_); }
  /// Checks the rest of a file beside its trains, and prints the checked schedules.
  void check_file();

  service::Compilation& compilation() { return compilation_; }
  /// The files that this command reads, beside those of its arguments and sources.
  InputFiles& inputs() { return inputs_; }
  /// The training and held-out texts that this command has read.
  runtime::TextFiles& texts() { return texts_; }
  Context& context() { return compilation_.context(); }
  DiagnosticSink& sink() { return sink_; }
  Console& console() { return console_; }
  const Arguments& arguments() const { return arguments_; }
  /// Prints the warnings and notes so far as text: a reader should know them before a long run.
  void show_warnings();
  /// Prints the diagnostics that were not printed yet; kClean or kDiagnostics. As JSON (to out) all
  /// of them are printed, but only if there are errors or the command is `check`: otherwise
  /// standard output is the command's own object, and warnings are text on err.
  int finish();
  /// The stream for text: standard output, or standard error if standard output is for JSON.
  std::ostream& words() { return arguments_.format == "json" ? console_.err : console_.out; }
  /// The screen of standard output, for pictures: a terminal, unless `-o` names a file. NO_COLOR
  /// leaves out its colours.
  pictures::Screen screen() const;
  /// Writes a command's output to -o or to standard output; false, and a diagnostic, when that
  /// fails.
  bool write(const std::string& text);
  /// Writes a file, and makes a folder; false, and a diagnostic, when that fails.
  bool write_file(const std::string& path, const std::string& text);
  /// Whether a file can be written at the end of the command; does not change it.
  bool check_writable(const std::string& path);
  bool make_folder(const std::string& path);

 private:
  /// False, and a diagnostic, if the output would replace a file that is read.
  bool is_no_input(const std::string& path);
  bool is_written(const std::string& path, std::error_code error);
  std::function<void(std::string_view pass, const dag::Dag&)> print_after();
  std::optional<dag::Dag> verified(std::optional<dag::Dag> dag);

  Console& console_;
  const Arguments& arguments_;
  service::Compilation compilation_;
  DiagnosticSink sink_;
  runtime::TextFiles texts_;
  InputFiles inputs_;
  std::set<std::string> seen_;  // diagnostics that were printed
};

}  // namespace piper::tools
