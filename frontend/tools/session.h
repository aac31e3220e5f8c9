#pragma once
// One compilation as the tools see it: an input, its diagnostics, and the values of every phase on demand.
//
//   Session session(console, arguments);
//   if (!session.open("demo.pipe")) return session.finish();
//   for (Session::Subject& subject : session.subjects(name)) session.compile(subject, dag::Level::planned);
//   return session.finish();   // prints the diagnostics, gives the exit code

#include <list>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/lower/lower.h"
#include "frontend/tools/arguments.h"
#include "frontend/tools/console.h"
#include "ir/dag/plan.h"
#include "passes/pipeline.h"
#include "runtime/data/file_text.h"

namespace piper::tools {

/// The system's words for an error, in lower case like every message.
std::string reason(int error);

class Session {
 public:
  /// A train, or a schedule that is shown by itself.
  struct Subject {
    std::string name;
    bool is_train = false;
    lower::Lowered lowered;
  };

  Session(Console& console, const Arguments& arguments);

  /// Reads IN: a .pipe or .pir file, or the name of a library schedule. False when there is nothing to go on with; with mistakes in some declarations
  /// the others are looked at.
  bool open(const std::string& input);
  /// The syntax tree of a .pipe file, or of the file of a library schedule, without analysis.
  std::optional<ast::Module> parse_only(const std::string& input);

  /// The DAG of a .pir file, verified; null for other inputs.
  dag::Dag* pir() { return pir_ ? &*pir_ : nullptr; }
  const std::vector<directive::Directive>& pir_directives() const { return pir_directives_; }

  /// Lowers the train or schedule of that name; without a name all trains, or what the input itself names. Those that fail are left out; what the
  /// passes say about the rest of a train is reported.
  std::list<Subject> subjects(const std::string& name);
  /// What a file holds beside its trains: evaluates its params and meshes, those that no train uses too, and compiles each schedule that no train
  /// applies, at default sizes, which it says. Tells what was not compiled.
  void check_file();
  /// The one subject that `show`, `train` and `build` speak of; nothing, and a diagnostic, when there are several or the file has mistakes.
  std::optional<Subject> subject(const std::string& name, bool train_only);

  /// A train lowered again, with another element type.
  std::optional<Subject> relower(const Subject& subject, tensor::DType dtype);

  /// Compiles up to `level`; prints DAGs for --print-after.
  std::optional<dag::Dag> compile(Subject& subject, dag::Level level, bool forward_only = false);

  /// The training and held-out texts that this command has read.
  runtime::TextFiles& texts() { return texts_; }
  Context& context() { return context_; }
  DiagnosticSink& sink() { return sink_; }
  Console& console() { return console_; }
  const Arguments& arguments() const { return arguments_; }
  /// Prints the diagnostics so far, which are no errors, as text: a reader should know them before a long run.
  void show_warnings();
  /// Prints the diagnostics that were not printed yet; kClean or kDiagnostics. As JSON (to out) they are all of them, and only where there are errors or
  /// the command is `check`: otherwise standard output is the command's own object, and warnings are text on err.
  int finish();
  /// Where words for the reader go: standard output, or standard error where that is for JSON.
  std::ostream& words() { return arguments_.format == "json" ? console_.err : console_.out; }
  /// Writes a command's output to -o or to standard output; false, and a diagnostic, when that fails.
  bool write(const std::string& text);
  /// Writes a file, and makes a folder; false, and a diagnostic, when that fails.
  bool write_file(const std::string& path, const std::string& text);
  bool make_folder(const std::string& path);

 private:
  std::optional<FileId> open_source(const std::string& input);
  std::optional<FileId> open_library(const std::string& name);
  bool declares_schedule(FileId file, std::string_view name);
  bool open_pir(const std::string& path);
  passes::Options options_of_passes(dag::Level level) const;
  std::optional<Subject> lower(sema::TrainId train, sema::FunctionId schedule);
  std::vector<sema::FunctionId> schedules_without_train() const;
  void check_schedule(sema::FunctionId id, std::span<const lower::Override> all);
  void compile_schedule(sema::FunctionId id, std::span<const lower::Override> overrides, DiagnosticSink& sink);

  Console& console_;
  const Arguments& arguments_;
  std::vector<lower::Override> overrides_;  // -D; while a file is checked without those of its schedules
  Context context_;
  DiagnosticSink sink_;
  std::optional<sema::Program> program_;
  runtime::TextFiles texts_;
  std::set<std::string> seen_;    // diagnostics that were printed
  std::string library_schedule_;  // when IN names one
  std::optional<dag::Dag> pir_;
  std::vector<directive::Directive> pir_directives_;
};

}  // namespace piper::tools
