#pragma once
// One input and the results of its phases. It has no console, no arguments and no JSON: it returns
// values, and reports diagnostics to the caller's sink.
//
//   Compilation compilation(files, {{"layers", "2"}});
//   DiagnosticSink sink(compilation.context().locations);
//   if (!compilation.open("demo.pipe", sink)) return;
//   for (Subject& subject : compilation.subjects("", sink)) compilation.compile(subject, {}, sink);
//
// Guarantees: a request that ends with Cancelled or std::bad_alloc changes nothing and can be
// repeated. Diagnostics that it reported before are incomplete. Results keep their addresses.

#include <functional>
#include <list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backend/target.h"
#include "frontend/lower/lower.h"
#include "frontend/service/clean_checks.h"
#include "ir/dag/plan.h"
#include "passes/pipeline.h"

namespace piper::service {

/// A train, or a schedule that is compiled by itself.
struct Subject {
  std::string name;
  bool is_train = false;
  lower::Lowered lowered;
};

struct CompileOptions {
  dag::Level level = dag::Level::planned;
  bool forward_only = false;
  // Called after every pass.
  std::function<void(std::string_view pass, const dag::Dag&)> after = {};
};

/// A schedule that no train applies, at the sizes that it was checked with: `p=4 m=8`.
struct CheckedSchedule {
  std::string name, sizes;
};

/// The declaration of a train or schedule in a file.
struct Declared {
  struct Parameter {
    std::string name;
    bool has_default = false, is_axis = false;
  };
  SourceRange range;
  std::string doc;                    // the comment above it
  std::vector<Parameter> parameters;  // that `-D` can give: its own, and the params of the file

  bool takes(std::string_view name) const;
};

class Compilation {
 public:
  /// The files must outlive it. Overrides replace values of params, and give those of a schedule.
  explicit Compilation(const source::FileSystem& files,
                       std::vector<lower::Override> overrides = {});

  /// Reads and analyses INPUT: a .pipe or .pir file, or the name of a library schedule. False if
  /// nothing can be compiled; with mistakes in some declarations the others are checked.
  bool open(const std::string& input, DiagnosticSink& sink);
  /// From here on programs are opened with the `names` items of the library beside them.
  void add_library_names() { library_names_ = true; }
  /// The syntax tree of a .pipe file, or of the file of a library schedule, without analysis.
  std::optional<ast::Module> parse(const std::string& input, DiagnosticSink& sink);
  /// The program of an opened .pipe file.
  const sema::Program* program() const { return program_ ? &*program_ : nullptr; }
  /// The DAG of a .pir file, verified; null for other inputs.
  dag::Dag* pir() { return pir_ ? &*pir_ : nullptr; }
  const std::vector<directive::Directive>& pir_directives() const { return pir_directives_; }

  /// Lowers the train or schedule of that name; without a name all trains, or the schedule that the
  /// input names. Failed ones are left out.
  std::list<Subject> subjects(const std::string& name, DiagnosticSink& sink);
  /// The one subject of that name, or the only train; nothing, and a diagnostic, when there are
  /// several or the file has mistakes.
  std::optional<Subject> subject(const std::string& name, bool train_only, DiagnosticSink& sink);
  /// A train lowered again, with another element type.
  std::optional<Subject> relower(const Subject& subject, tensor::DType dtype, DiagnosticSink& sink);
  /// The names of the standard library's schedules.
  std::vector<std::string> library_schedules();
  /// The library schedule that is called so, in any case and with any marks, or `Also called` so in
  /// its comment: `1F1B` and `zb-h1`.
  std::optional<std::string> library_schedule_called(std::string_view word);
  /// The declaration that `subject` would take; nothing if there is none or several.
  std::optional<Declared> declared(const std::string& name) const;
  /// Checks the rest of a file beside its trains: evaluates its params and meshes, also unused
  /// ones, and compiles each schedule that no train applies, at default sizes. Reports those that
  /// were not compiled. From here on, overrides that only those schedules take are not errors of
  /// the trains.
  std::vector<CheckedSchedule> check_file(DiagnosticSink& sink);
  /// All diagnostics of the trains of a file, or of the library schedule that the input names.
  void check_trains(DiagnosticSink& sink);
  /// Declarations without errors are not checked again, in this and other compilations with the
  /// same `clean`.
  void set_clean_checks(CleanChecks* clean) { clean_ = clean; }
  /// The params of an opened .pipe file; nothing, and diagnostics, when one has no value.
  std::optional<std::vector<lower::ParamChoices>> params(DiagnosticSink& sink);
  /// The values that the file or a schedule of it takes.
  std::vector<lower::Override> values_taken(std::span<const lower::Override> values) const;

  /// Only lowers the trains, or the one of that name if there is one, and the schedules as a check
  /// does, and returns the values of the expressions of the file, or of another file that it uses
  /// (`of`, its module).
  lower::Observations observe(std::string_view chosen_train, sema::ModuleId of = sema::ModuleId(0));
  /// The values that a schedule by itself is lowered with, or those of the overrides that a train
  /// takes.
  std::vector<lower::Override> default_values(std::string_view name);
  /// All diagnostics of a subject: its plan, and that of its held-out program, verified. `after`:
  /// called after every pass.
  void check(const Subject& subject,
             const std::function<void(std::string_view pass, const dag::Dag&)>& after,
             DiagnosticSink& sink);
  /// The model of a subject, prepared for its strategy.
  std::optional<passes::Prepared> prepare(const Subject& subject, DiagnosticSink& sink);
  /// The plan of a subject that was prepared, or the DAG at an earlier level.
  std::optional<dag::Dag> compile(const Subject& subject, const passes::Prepared& prepared,
                                  const CompileOptions& options, DiagnosticSink& sink);
  /// Both.
  std::optional<dag::Dag> compile(const Subject& subject, const CompileOptions& options,
                                  DiagnosticSink& sink);

  /// `device`: for all subjects, overriding their trains; none: that of each train.
  /// `builtin_attention`: attention on CUDA is never LibTorch's.
  void set_device(std::optional<directive::Platform> device, bool builtin_attention);
  /// The target of a plan with these settings.
  backend::Target target(const directive::Settings& settings) const;
  void set_overrides(std::vector<lower::Override> overrides) { overrides_ = std::move(overrides); }
  Context& context() { return context_; }
  const Context& context() const { return context_; }

 private:
  std::optional<FileId> open_source(const std::string& input, DiagnosticSink& sink);
  std::optional<FileId> open_library(const std::string& name, DiagnosticSink& sink);
  bool declares_schedule(FileId file, std::string_view name);
  /// The comment above the schedule of that name; nothing if the file declares none.
  std::optional<std::string> schedule_doc(FileId file, std::string_view name);
  bool open_pir(const std::string& path, DiagnosticSink& sink);
  void check_pir(const dag::Dag& dag, FileId file, DiagnosticSink& sink);
  std::optional<Subject> lower(sema::TrainId train, sema::FunctionId schedule,
                               std::span<const lower::Override> overrides, DiagnosticSink& sink);
  void report_unknown_subject(const std::string& wanted, DiagnosticSink& sink);
  bool has_one_train(DiagnosticSink& sink);
  std::vector<sema::FunctionId> schedules_without_train() const;
  std::vector<lower::Override> values_of_params() const;
  std::vector<lower::Override> default_values(sema::FunctionId id, lower::Observations* seen);
  /// Calls `work(sink)`, which checks the declaration and gives its sizes, unless the result is
  /// known.
  template <typename Work>
  std::optional<std::string> check_unless_clean(const std::optional<DeclarationTexts>& texts,
                                                SourceRange declaration,
                                                std::span<const lower::Override> values,
                                                DiagnosticSink& sink, const Work& work);
  std::optional<CheckedSchedule> check_schedule(sema::FunctionId id,
                                                std::span<const lower::Override> all,
                                                DiagnosticSink& sink);

  const source::FileSystem& files_;
  std::optional<directive::Platform> device_;
  bool builtin_attention_ = false;
  bool library_names_ = false;
  // While a file is checked without those of its schedules.
  std::vector<lower::Override> overrides_;
  Context context_;
  CleanChecks* clean_ = nullptr;
  std::string input_;
  std::optional<sema::Program> program_;
  std::string library_schedule_;  // when the input names one
  std::optional<dag::Dag> pir_;
  std::vector<directive::Directive> pir_directives_;
};

}  // namespace piper::service
