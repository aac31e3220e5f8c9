// The check of a file beside its trains: params, meshes, and each schedule that no train of the
// file applies, at small default sizes.

#include <algorithm>
#include <set>

#include "backend/device_program/device_program.h"
#include "frontend/service/compilation.h"
#include "ir/diagnostics/forward.h"
#include "ir/diagnostics/report_again.h"
#include "ir/verify/verify.h"

namespace piper::service {
namespace {

/// Sizes of the parameters that have no default: the first that meet the requirements of the
/// schedule are taken.
struct DefaultSizes {
  std::int64_t axis, integer;
};
constexpr DefaultSizes kDefaultSizes[] = {{4, 8}, {16, 2}};

/// Adds the functions that a body calls as statements, with those that they call.
void add_applied(const sema::Program& program, const ast::Block& body,
                 std::set<sema::FunctionId>& applied) {
  for (const ast::Stmt* stmt : body.statements) {
    if (const auto* loop = llvm::dyn_cast<ast::ForStmt>(stmt))
      add_applied(program, *loop->body, applied);
    if (const auto* repeat = llvm::dyn_cast<ast::RepeatStmt>(stmt))
      add_applied(program, *repeat->body, applied);
    if (const auto* conditional = llvm::dyn_cast<ast::IfStmt>(stmt)) {
      for (const ast::Branch& branch : conditional->branches)
        add_applied(program, *branch.body, applied);
      if (conditional->otherwise != nullptr) add_applied(program, *conditional->otherwise, applied);
    }
    const auto* statement = llvm::dyn_cast<ast::ExprStmt>(stmt);
    const auto* call =
        statement != nullptr ? llvm::dyn_cast<ast::CallExpr>(statement->value) : nullptr;
    if (call == nullptr || call->referent != ast::Referent::function) continue;
    const sema::FunctionId callee(call->target);
    if (applied.insert(callee).second)
      add_applied(program, *program.functions[callee.index()].syntax->body, applied);
  }
}

bool has_parameter(const sema::Function& function, std::string_view name) {
  return std::any_of(function.syntax->params.begin(), function.syntax->params.end(),
                     [&](const ast::Param& param) { return param.name.name == name; });
}

/// Whether a name that the chain lacks is one of the schedule's own, or `model`, misspelled. The
/// chain's `link` is in no schedule that is for a model.
bool has_misspelled_region(const DiagnosticSink& sink) {
  const std::vector<Diagnostic> reported = sink.sorted();
  return std::any_of(reported.begin(), reported.end(), [](const Diagnostic& diagnostic) {
    if (diagnostic.code != Code::unknown_region) return false;
    return std::any_of(diagnostic.fixes.begin(), diagnostic.fixes.end(),
                       [](const Fix& fix) { return fix.edits.front().text != "link"; });
  });
}

bool declares_param(const sema::Program& program, std::string_view name) {
  return std::any_of(program.params.begin(), program.params.end(), [&](const sema::Param& param) {
    return param.module.index() == 0 && param.syntax->name.name == name;
  });
}

bool gives(std::span<const lower::Override> values, std::string_view name) {
  return std::any_of(values.begin(), values.end(),
                     [&](const lower::Override& value) { return value.name == name; });
}

/// `given`, and the sizes for other parameters without a value.
std::vector<lower::Override> with_sizes(const sema::Function& function,
                                        std::vector<lower::Override> given, DefaultSizes sizes) {
  for (std::size_t i = 0; i < function.params.size(); ++i) {
    const ast::Param& param = function.syntax->params[i];
    if (param.default_value != nullptr || gives(given, param.name.name)) continue;
    given.push_back(
        {std::string(param.name.name),
         std::to_string(function.params[i].is(sema::TypeKind::axis) ? sizes.axis : sizes.integer)});
  }
  return given;
}

/// The values of `all` that a schedule by itself takes.
std::vector<lower::Override> taken_by(const sema::Program& program, const sema::Function& function,
                                      std::span<const lower::Override> all) {
  std::vector<lower::Override> given;
  for (const lower::Override& value : all) {
    if (has_parameter(function, value.name) || declares_param(program, value.name))
      given.push_back(value);
  }
  return given;
}

}  // namespace

std::vector<lower::Override> Compilation::values_taken(
    std::span<const lower::Override> values) const {
  std::vector<lower::Override> taken;
  const std::vector<sema::FunctionId> schedules = schedules_without_train();
  for (const lower::Override& value : values) {
    const auto takes = [&](sema::FunctionId id) {
      return has_parameter(program_->functions[id.index()], value.name);
    };
    if (declares_param(*program_, value.name) ||
        std::any_of(schedules.begin(), schedules.end(), takes))
      taken.push_back(value);
  }
  return taken;
}

std::vector<lower::Override> Compilation::values_of_params() const {
  std::vector<lower::Override> values;
  for (const lower::Override& value : overrides_) {
    if (declares_param(*program_, value.name)) values.push_back(value);
  }
  return values;
}

std::optional<std::vector<lower::ParamChoices>> Compilation::params(DiagnosticSink& sink) {
  return lower::lower_choices(*program_, values_of_params(), context_, sink);
}

std::vector<lower::Override> Compilation::default_values(sema::FunctionId id,
                                                         lower::Observations* seen) {
  const sema::Function& function = program_->functions[id.index()];
  const std::vector<lower::Override> given = taken_by(*program_, function, overrides_);
  DiagnosticSink unread(context_.locations);
  for (const DefaultSizes& sizes : kDefaultSizes) {
    context_.poll();
    std::vector<lower::Override> values = with_sizes(function, given, sizes);
    if (lower::lower_schedule(*program_, id, values, context_, unread, seen)) return values;
  }
  // With the first sizes the diagnostics say why these are refused.
  const bool writable =
      std::all_of(function.params.begin(), function.params.end(), [](const sema::Type& type) {
        return type.is(sema::TypeKind::axis) || type.is(sema::TypeKind::integer);
      });
  return writable ? with_sizes(function, given, kDefaultSizes[0]) : given;
}

std::vector<lower::Override> Compilation::default_values(std::string_view name) {
  const sema::FunctionId schedule = program_->find_schedule(name);
  if (schedule.valid() && program_->functions[schedule.index()].runnable)
    return default_values(schedule, nullptr);
  return values_of_params();
}

lower::Observations Compilation::observe(std::string_view chosen_train, sema::ModuleId of) {
  lower::Observations seen(program_->modules[of.index()]->syntax);
  DiagnosticSink unread(context_.locations);
  const std::vector<lower::Override> values = values_of_params();
  const sema::TrainId chosen = program_->find_train(chosen_train);
  for (std::size_t i = 0; i < program_->trains.size(); ++i) {
    context_.poll();
    const sema::Train& train = program_->trains[i];
    if (chosen.valid() && chosen != sema::TrainId::at(i)) continue;
    if (train.module.index() == 0 && train.runnable)
      lower::lower_train(*program_, sema::TrainId::at(i), values, context_, unread, {}, &seen);
  }
  for (const sema::FunctionId id : schedules_without_train()) default_values(id, &seen);
  return seen;
}

std::vector<sema::FunctionId> Compilation::schedules_without_train() const {
  std::set<sema::FunctionId> applied;
  for (const sema::Train& train : program_->trains) {
    if (train.module.index() == 0) add_applied(*program_, *train.syntax->body, applied);
  }
  std::vector<sema::FunctionId> schedules;
  for (std::size_t i = 0; i < program_->functions.size(); ++i) {
    const sema::Function& function = program_->functions[i];
    const auto id = sema::FunctionId::at(i);
    if (function.module.index() == 0 && function.sort() == ast::FunctionSort::schedule &&
        function.runnable && !applied.contains(id))
      schedules.push_back(id);
  }
  return schedules;
}

template <typename Work>
std::optional<std::string> Compilation::check_unless_clean(
    const std::optional<DeclarationTexts>& texts, SourceRange declaration,
    std::span<const lower::Override> values, DiagnosticSink& sink, const Work& work) {
  if (!texts) return work(sink);
  DeclarationTexts::Scope scope = texts->scope_of(declaration, values);
  const SourceTable& files = context_.locations.files();
  if (const auto known = clean_->find(scope.key)) {
    if (const auto diagnostics = known->moved(scope.items, files)) {
      for (const Diagnostic& diagnostic : *diagnostics) report_again(diagnostic, sink);
      return known->sizes;
    }
  }
  DiagnosticSink reported(context_.locations);
  CleanCheck check{work(reported), reported.sorted(), std::move(scope.items), {}};
  for (const Diagnostic& diagnostic : check.diagnostics) report_again(diagnostic, sink);
  std::optional<std::string> sizes = check.sizes;
  if (reported.has_errors()) return sizes;
  for (std::size_t i = 0; i < files.size() && !check.diagnostics.empty(); ++i)
    check.files.emplace_back(files.name(FileId::at(i)));
  if (check.moved(check.items, files)) clean_->add(scope.key, std::move(check));
  return sizes;
}

void Compilation::check_trains(DiagnosticSink& sink) {
  if (!library_schedule_.empty()) {
    for (Subject& subject : subjects("", sink)) check(subject, {}, sink);
    return;
  }
  const auto texts = clean_ != nullptr ? std::optional<DeclarationTexts>(std::in_place, *program_,
                                                                         context_.locations.files())
                                       : std::nullopt;
  for (std::size_t i = 0; i < program_->trains.size(); ++i) {
    const sema::Train& train = program_->trains[i];
    if (train.module.index() != 0) continue;
    check_unless_clean(texts, train.syntax->range, overrides_, sink,
                       [&](DiagnosticSink& reported) -> std::optional<std::string> {
                         auto subject = lower(sema::TrainId::at(i), {}, overrides_, reported);
                         if (!subject) return std::nullopt;
                         check(*subject, {}, reported);
                         return "";
                       });
  }
}

std::vector<CheckedSchedule> Compilation::check_file(DiagnosticSink& sink) {
  std::vector<CheckedSchedule> checked;
  if (!library_schedule_.empty()) return checked;
  const std::vector<sema::FunctionId> schedules = schedules_without_train();
  // An override that sets a parameter of a schedule is not an error of the trains.
  const std::vector<lower::Override> given = overrides_;
  std::erase_if(overrides_, [&](const lower::Override& override) {
    const auto takes = [&](sema::FunctionId id) {
      return has_parameter(program_->functions[id.index()], override.name);
    };
    return !declares_param(*program_, override.name) &&
           std::any_of(schedules.begin(), schedules.end(), takes);
  });
  if (program_->complete) lower::lower_declarations(*program_, overrides_, context_, sink);
  const auto texts = clean_ != nullptr ? std::optional<DeclarationTexts>(std::in_place, *program_,
                                                                         context_.locations.files())
                                       : std::nullopt;
  for (const sema::FunctionId schedule : schedules) {
    const sema::Function& function = program_->functions[schedule.index()];
    const auto sizes = check_unless_clean(
        texts, function.syntax->range, given, sink, [&](DiagnosticSink& reported) {
          const auto compiled = check_schedule(schedule, given, reported);
          return compiled ? std::optional(compiled->sizes) : std::nullopt;
        });
    // of a damaged text not all was looked at
    if (sizes && program_->ok) checked.push_back({std::string(function.name()), *sizes});
  }
  const auto stands_here = [](const auto& declared) { return declared.module.index() == 0; };
  const bool trains = std::any_of(program_->trains.begin(), program_->trains.end(), stands_here);
  if (sink.has_errors() || trains || !schedules.empty()) return checked;
  const SourceRange begin{program_->modules.front()->syntax.file, 0, 0};
  sink.report(
          Code::nothing_to_compile, begin,
          "the file has no train and no schedule: only names, types and the values of params and meshes were checked")
      .hint("check the file that uses it, or add a train that calls its models");
  return checked;
}

std::optional<CheckedSchedule> Compilation::check_schedule(sema::FunctionId id,
                                                           std::span<const lower::Override> all,
                                                           DiagnosticSink& sink) {
  const sema::Function& function = program_->functions[id.index()];
  const std::vector<lower::Override> given = taken_by(*program_, function, all);
  std::vector<std::size_t> open;  // parameters that need a size
  for (std::size_t i = 0; i < function.params.size(); ++i) {
    const ast::Param& param = function.syntax->params[i];
    if (param.default_value != nullptr || gives(given, param.name.name)) continue;
    const sema::Type type = function.params[i];
    if (!type.is(sema::TypeKind::axis) && !type.is(sema::TypeKind::integer)) {
      sink.report(Code::schedule_not_compiled, param.name.range,
                  "`{}` was not compiled: its parameter `{}: {}` has no default", function.name(),
                  param.name.name, sema::type_name(type))
          .hint("give it a default, or check a train that applies `{}`", function.name());
      return std::nullopt;
    }
    open.push_back(i);
  }
  std::string tried, asked;
  for (const std::size_t i : open)
    asked += " -D " + std::string(function.syntax->params[i].name.name) + "=...";
  for (const DefaultSizes& sizes : kDefaultSizes) {
    const std::vector<lower::Override> overrides = with_sizes(function, given, sizes);
    std::string text;
    for (const lower::Override& override : overrides) {
      if (has_parameter(function, override.name))
        text += (text.empty() ? "" : " ") + override.name + "=" + override.value;
    }
    DiagnosticSink trial(context_.locations);
    if (auto subject = lower({}, id, overrides, trial)) check(*subject, {}, trial);
    if (trial.reported(Code::unknown_region) && !has_misspelled_region(trial)) {
      sink.report(Code::schedule_not_compiled, function.syntax->name.range,
                  "`{}` was not compiled by itself: it names regions of a model", function.name())
          .hint("check a train that applies it");
      return std::nullopt;
    }
    const bool unmet =
        trial.reported(Code::requirement_not_met) || trial.reported(Code::measure_out_of_bounds);
    if (unmet && !open.empty()) {
      tried += (tried.empty() ? "`" : " nor `") + text + "`";
      continue;
    }
    forward(trial, sink);
    return CheckedSchedule{std::string(function.name()), text};
  }
  sink.report(Code::schedule_not_compiled, function.syntax->name.range,
              "`{}` was not compiled: neither {} meets its requirements", function.name(), tried)
      .hint("give it sizes that do: `piper check {} {}{}`", input_, function.name(), asked);
  return std::nullopt;
}

}  // namespace piper::service
