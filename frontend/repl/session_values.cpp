// Bindings and expressions of a session: they are evaluated as the last lines of a schedule or
// train, so that they have the same meaning as there.

#include <algorithm>
#include <set>

#include "frontend/parse/lexemes.h"
#include "frontend/repl/commands.h"
#include "frontend/repl/session.h"
#include "frontend/views/orders_view.h"

namespace piper::repl {
namespace {

constexpr const char* kProbe = "session_probe";
constexpr const char* kResult = "session_result";

bool has_errors(const std::vector<Diagnostic>& diagnostics) {
  return std::any_of(diagnostics.begin(), diagnostics.end(), [](const Diagnostic& diagnostic) {
    return diagnostic.severity == Severity::error;
  });
}

/// The value of the last line of the probe; invalid if it did not parse.
SourceRange last_value(const sema::Program& program) {
  const ast::Block* body = nullptr;
  if (const sema::TrainId train = program.find_train(kProbe); train.valid())
    body = program.trains[train.index()].syntax->body;
  if (const sema::FunctionId schedule = program.find_schedule(kProbe); schedule.valid())
    body = program.functions[schedule.index()].syntax->body;
  if (body == nullptr || body->statements.empty()) return {};
  const auto* last = llvm::dyn_cast<ast::LetStmt>(body->statements.back());
  return last != nullptr && last->value != nullptr ? last->value->range : SourceRange();
}

/// `p: axis, m: int = 4` and `p, m`: the parameters of a schedule, except those that a binding
/// hides.
struct Parameters {
  std::string declared, passed;
};

Parameters parameters_to_pass(const sema::Program& program, const SourceTable& files,
                              const std::string& name, const std::vector<std::string>& hidden) {
  Parameters made;
  const sema::FunctionId schedule = program.find_schedule(name);
  if (!schedule.valid()) return made;
  const sema::Function& function = program.functions[schedule.index()];
  for (std::size_t i = 0; i < function.params.size(); ++i) {
    std::string parameter(function.syntax->params[i].name.name);
    if (std::find(hidden.begin(), hidden.end(), parameter) != hidden.end()) return {};
    made.declared +=
        (i == 0 ? "" : ", ") + parameter + ": " + std::string(sema::type_name(function.params[i]));
    if (const ast::Expr* written = function.syntax->params[i].default_value) {
      const SourceRange range = written->range;
      made.declared +=
          " = " + std::string(files.text(range.file).substr(range.begin, range.end - range.begin));
    }
    made.passed += (i == 0 ? "" : ", ") + parameter;
  }
  return made;
}

}  // namespace

std::string Session::subject_of_values() {
  const std::vector<std::string> all = subjects();
  for (const std::string& name : {model_, subject_}) {
    if (std::find(all.begin(), all.end(), name) != all.end()) return name;
  }
  return "";
}

Session::Probe Session::probe(std::span<const Binding> bindings, const std::string& last_name,
                              const std::string& before, const std::string& last,
                              const std::string& after, Around around) {
  Probe made{composed_, {}};
  const std::string subject = subject_of_values();
  std::vector<std::string> hidden;
  for (const Binding& binding : bindings) hidden.push_back(binding.name);
  std::string head = std::string("schedule ") + kProbe + "() {\n";
  if (!subject.empty()) {
    const std::string last_subject = subject_;
    const std::optional<Chosen> chosen = choose(subject);
    subject_ = last_subject;
    if (chosen && chosen->is_train) {
      // A train's text again, under another name.
      during(*chosen, [&](service::Compilation& compilation, DiagnosticSink&) {
        const sema::Train& train =
            compilation.program()->trains[compilation.program()->find_train(subject).index()];
        const std::string_view text =
            compilation.context().locations.files().text(train.syntax->range.file);
        const std::uint32_t begin = train.syntax->name.range.end,
                            end = train.syntax->body->range.end - 1;
        if (around == Around::schedule)
          head =
              std::string("train ") + kProbe + std::string(text.substr(begin, end - begin)) + "\n";
      });
    } else if (chosen) {
      during(*chosen, [&](service::Compilation& compilation, DiagnosticSink&) {
        const Parameters parameters = parameters_to_pass(
            *compilation.program(), compilation.context().locations.files(), subject, hidden);
        if (parameters.declared.empty()) return;
        made.values = chosen->values;
        head = std::string("schedule ") + kProbe + "(" + parameters.declared + ") {\n";
        if (around == Around::schedule) head += subject + "(" + parameters.passed + ")\n";
      });
      if (!chosen->in_session) append_glue(made.composed, "use std.schedules." + subject + "\n");
    }
  }
  append_glue(made.composed, "def session_selector(s: selector) -> selector { return s }\n" + head);
  for (const Binding& binding : bindings)
    append_fragment(made.composed, binding.name, binding.text);
  append_glue(made.composed, before);
  append_fragment(made.composed, last_name, last);
  append_glue(made.composed, after + "}\n");
  for (const lower::Override& value : values_) {
    const bool known =
        std::any_of(made.values.begin(), made.values.end(),
                    [&](const lower::Override& other) { return other.name == value.name; });
    if (!known) made.values.push_back(value);
  }
  return made;
}

Session::Evaluated Session::evaluate_with(std::span<const Binding> bindings,
                                          const std::string& expression, Around around,
                                          bool as_selector) {
  const std::string before =
      std::string("let ") + kResult + " = " + (as_selector ? "session_selector(" : "");
  const Probe probed =
      probe(bindings, kInput, before, expression, as_selector ? ")\n" : "", around);
  const std::string path = sources_.path() + ".values.pipe";
  workspace_.open(path, probed.composed.text);
  const std::shared_ptr<service::Document> document = workspace_.document(path);
  workspace_.close(path);
  Evaluated result;
  std::vector<Diagnostic> reported = document->program(&interrupt_).diagnostics;
  const service::Document::Done done =
      document->during(&interrupt_, [&](service::Compilation& compilation, DiagnosticSink& sink) {
        const sema::Program& program = *compilation.program();
        const SourceRange asked = last_value(program);
        if (!asked.valid() || has_errors(reported)) return;
        std::vector<lower::Override> values;
        const auto declared = compilation.declared(kProbe);
        for (const lower::Override& value : probed.values) {
          if (declared && declared->takes(value.name)) values.push_back(value);
        }
        lower::Observations seen(asked.file, asked);
        if (const sema::TrainId train = program.find_train(kProbe); train.valid()) {
          lower::lower_train(program, train, values, compilation.context(), sink, {}, &seen);
        } else {
          lower::lower_schedule(program, program.find_schedule(kProbe), values,
                                compilation.context(), sink, &seen);
        }
        result.text = seen.asked()->text;
        result.is_order = seen.asked()->is_order;
      });
  if (done.status == service::Status::cancelled) throw Cancelled();
  reported.insert(reported.end(), done.diagnostics.begin(), done.diagnostics.end());
  if (!result.text.empty()) return result;
  // Diagnostics of generated lines would only confuse, if there are others.
  const Shown shown(document->locations(), path, probed.composed.fragments);
  std::vector<Diagnostic> all, own;
  for (const Diagnostic& diagnostic : reported) {
    if (diagnostic.severity != Severity::error) continue;
    all.push_back(shown.of(diagnostic));
    const SourceRange range = all.back().range;
    if (range.valid() && (shown.locations().files().name(range.file) != "session"))
      own.push_back(all.back());
  }
  result.reported = render_text(own.empty() ? all : own, shown.locations().files());
  return result;
}

Session::Evaluated Session::value_of(std::span<const Binding> bindings,
                                     const std::string& expression) {
  Evaluated alone = evaluate_with(bindings, expression, Around::parameters, false);
  // Among values only selectors have adjacent names.
  if (!alone.text.empty())
    return alone.text.find("] ") != std::string::npos ? with_known_labels(std::move(alone)) : alone;
  if (subject_of_values().empty()) return alone;
  // Values that depend on a strategy need one, and a name alone may be a label.
  Evaluated with_strategy = evaluate_with(bindings, expression, Around::schedule, false);
  if (!with_strategy.text.empty()) return with_strategy;
  Evaluated label = evaluate_with(bindings, expression, Around::parameters, true);
  if (label.text.empty()) return with_strategy;
  return unknown_label(label.text).empty() ? label : with_strategy;
}

std::string Session::unknown_label(const std::string& selector) {
  const std::string subject = subject_of_values();
  if (subject.empty()) return "";
  const std::string last_subject = subject_;
  const std::optional<Chosen> chosen = choose(subject);
  subject_ = last_subject;
  const std::shared_ptr<const service::Plan> made =
      chosen ? plan(*chosen, dag::Level::ordered) : nullptr;
  if (made == nullptr) return "";
  std::set<std::string, std::less<>> known = {"rest"};
  const SymbolTable& symbols = made->dag.context->symbols;
  for (const dag::SplitDim& dim : made->dag.dims) known.emplace(symbols.text(dim.name));
  for (const MeshAxis& axis : made->dag.mesh.axes) known.emplace(symbols.text(axis.name));
  for (const RegionTable* regions : {&made->dag.regions, &made->model.regions}) {
    for (std::size_t i = 0; i < regions->size(); ++i)
      known.emplace(symbols.text(regions->name(RegionId::at(i))));
  }
  for (const parse::Lexeme& lexeme : parse::lexemes(selector)) {
    const std::string_view word =
        std::string_view(selector).substr(lexeme.begin, lexeme.end - lexeme.begin);
    if (lexeme.kind == parse::LexemeKind::name && !known.contains(word)) return std::string(word);
  }
  return "";
}

Session::Evaluated Session::with_known_labels(Evaluated value) {
  const std::string label = unknown_label(value.text);
  if (label.empty()) return value;
  const LocationTable none;
  DiagnosticSink sink(none);
  sink.report(Code::unknown_region, SourceRange(), "`{}` has no region or dimension `{}`",
              subject_of_values(), label)
      .hint("`:model NAME` says whose labels are meant");
  return {.text = "", .is_order = false, .reported = render_text(sink.sorted(), none.files())};
}

bool Session::evaluate(const std::string& expression) {
  const Evaluated value = value_of(bindings_, expression);
  if (value.text.empty()) {
    const std::string first = expression.substr(0, expression.find_first_of(" \t"));
    if (find_command(first) != nullptr)
      return fail(Code::unknown_command, "write `:" + expression + "`",
                  "`{}` is a command, and commands begin with a colon", first);
    say(value.reported);
    return false;
  }
  if (value.is_order) return show_order(expression);
  say(value.text + "\n");
  return true;
}

bool Session::show_order(const std::string& expression) {
  const std::string subject = subject_of_values();
  if (subject.empty())
    return fail(Code::nothing_chosen, "`:model NAME` says of which, as in `:model zbv`",
                "an order is drawn on the ranks of a train or schedule, and none is chosen");
  const Probe probed = probe(bindings_, kInput, "order ", expression, "", Around::schedule);
  const std::string path = sources_.path() + ".values.pipe";
  workspace_.open(path, probed.composed.text);
  const std::shared_ptr<service::Document> document = workspace_.document(path);
  workspace_.close(path);
  service::SubjectRequest request{kProbe, {}};
  document->during(&interrupt_, [&](service::Compilation& compilation, DiagnosticSink&) {
    const auto declared = compilation.declared(kProbe);
    for (const lower::Override& value : probed.values) {
      if (declared && declared->takes(value.name)) request.values.push_back(value);
    }
  });
  const auto plan = document->plan({request, dag::Level::ordered, false}, &interrupt_);
  if (plan.status == service::Status::cancelled) throw Cancelled();
  print_diagnostics(plan.diagnostics, document->locations(), path, probed.composed.fragments);
  if (plan.value == nullptr) return false;
  say(views::grid_text(passes::orders_table(plan.value->dag), plan.value->dag, screen(), costs_));
  return true;
}

bool Session::bind(const Entry& entry) {
  std::vector<Binding> bindings = bindings_;
  const auto known = std::find_if(bindings.begin(), bindings.end(), [&](const Binding& binding) {
    return binding.name == entry.name && !binding.assigns;
  });
  if (entry.sort == EntrySort::assignment) {
    if (known == bindings.end()) {
      return fail(Code::misplaced_statement,
                  "write `var " + entry.text + "`, or `param " + entry.text +
                      "` for a value that schedules see",
                  "`{}` is no `var` of the session", entry.name);
    }
    bindings.push_back({entry.name, entry.text, true});
  } else if (known != bindings.end()) {
    // In place, so that later bindings see the new value; assignments to the old one are lost.
    *known = {entry.name, entry.text, false};
    std::erase_if(bindings, [&](const Binding& binding) {
      return binding.name == entry.name && binding.assigns;
    });
  } else {
    bindings.push_back({entry.name, entry.text, false});
  }
  const Evaluated value = value_of(bindings, entry.name);
  if (value.text.empty()) {
    say(value.reported);
    return false;
  }
  bindings_ = std::move(bindings);
  say(entry.name + " = " + value.text + "\n");
  return true;
}

Diagnostic Session::with_session_hint(Diagnostic diagnostic, const Shown& shown) const {
  const SourceRange range = diagnostic.range;
  if (diagnostic.code != Code::unknown_name || !range.valid() ||
      !shown.locations().files().has_text(range.file))
    return diagnostic;
  const std::string_view name =
      shown.locations().files().text(range.file).substr(range.begin, range.end - range.begin);
  const bool bound = std::any_of(bindings_.begin(), bindings_.end(),
                                 [&](const Binding& binding) { return binding.name == name; });
  if (bound)
    diagnostic.hint = "`" + std::string(name) +
                      "` is bound for expressions of the session: write `param " +
                      std::string(name) + " = ...` for a value that items see";
  return diagnostic;
}

}  // namespace piper::repl
