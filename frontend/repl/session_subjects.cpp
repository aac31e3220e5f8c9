// Subjects of commands of a session: names, sizes, plans.

#include <algorithm>

#include "frontend/parse/lexemes.h"
#include "frontend/repl/commands.h"
#include "frontend/repl/session.h"
#include "frontend/sema/builtins.h"
#include "frontend/service/nearest.h"

namespace piper::repl {
namespace {

bool contains(const std::vector<std::string>& list, const std::string& name) {
  return std::find(list.begin(), list.end(), name) != list.end();
}

}  // namespace

std::vector<std::string> Session::own_subjects() {
  std::vector<std::string> names;
  const auto answer = document_->subjects(&interrupt_);
  if (answer.value == nullptr) return names;
  for (const service::Symbol& symbol : *answer.value) names.push_back(symbol.name);
  return names;
}

const std::vector<std::string>& Session::library() {
  if (library_.empty()) library_ = service::Compilation(host_.files).library_schedules();
  return library_;
}

std::vector<std::string> Session::subjects() {
  std::vector<std::string> names = own_subjects();
  names.insert(names.end(), library().begin(), library().end());
  return names;
}

std::shared_ptr<service::Document> Session::document_of(const std::string& name) {
  if (contains(own_subjects(), name)) return document_;
  return contains(library(), name) ? workspace_.document(name) : nullptr;
}

std::optional<service::Declared> Session::declared(const std::string& name) {
  std::optional<service::Declared> found;
  if (const auto document = document_of(name)) {
    document->during(&interrupt_, [&](service::Compilation& compilation, DiagnosticSink&) {
      found = compilation.declared(name);
    });
  }
  return found;
}

std::vector<std::string> Session::parameters_of(const std::string& subject) {
  std::vector<std::string> names;
  if (const auto found = declared(subject)) {
    for (const service::Declared::Parameter& parameter : found->parameters)
      names.push_back(parameter.name);
  }
  return names;
}

bool Session::is_parameter(const std::string& name) {
  const std::vector<std::string> all = subjects();
  if (std::any_of(all.begin(), all.end(), [&](const std::string& subject) {
        return contains(parameters_of(subject), name);
      }))
    return true;
  const auto symbols = document_->symbols(&interrupt_);
  return symbols.value != nullptr &&
         std::any_of(symbols.value->begin(), symbols.value->end(),
                     [&](const service::Symbol& symbol) {
                       return symbol.kind == service::SymbolKind::param && symbol.name == name;
                     });
}

std::optional<std::string> Session::name_of_subject(const std::string& written) {
  if (!written.empty()) {
    const std::vector<std::string> all = subjects();
    if (contains(all, written)) return written;
    if (interrupt_.requested()) throw Cancelled();  // not all was looked at
    const auto meant = nearest(written, all);
    fail(Code::nothing_chosen,
         meant ? "did you mean `" + *meant + "`?" : "`:load` a file that has it, or define it",
         "neither the session nor the library has a train or schedule `{}`", written);
    return std::nullopt;
  }
  if (!subject_.empty() && contains(subjects(), subject_)) return subject_;
  const std::vector<std::string> own = own_subjects();
  if (own.size() == 1) return own.front();
  std::string known;
  for (const std::string& name : own) known += (known.empty() ? "it has `" : ", `") + name + "`";
  fail(Code::nothing_chosen,
       known.empty() ? "name one of the library, as in `:grid zbv p=4 m=8`, or define one" : known,
       "the session has {}, and none is named",
       own.empty() ? "no train and no schedule" : "several trains and schedules");
  return std::nullopt;
}

std::optional<Chosen> Session::choose(const std::string& written) {
  const std::optional<std::string> name = name_of_subject(written);
  if (!name) return std::nullopt;
  const std::optional<service::Declared> found = declared(*name);
  if (!found) {
    if (interrupt_.requested()) throw Cancelled();
    fail(Code::nothing_chosen, "", "`{}` cannot be looked at", *name);
    return std::nullopt;
  }
  for (const lower::Override& value : asked_) {
    if (found->takes(value.name)) continue;
    std::string known;
    for (const service::Declared::Parameter& parameter : found->parameters)
      known += (known.empty() ? "it has `" : ", `") + parameter.name + "`";
    fail(Code::no_such_parameter, known, "`{}` has no parameter `{}`", *name, value.name);
    return std::nullopt;
  }
  Chosen chosen{.document = document_of(*name), .name = *name};
  chosen.in_session = chosen.document == document_;
  for (const lower::Override& value : values_) {
    if (found->takes(value.name)) chosen.values.push_back(value);
  }
  const service::Document::Done done =
      chosen.document->during(&interrupt_, [&](service::Compilation& compilation, DiagnosticSink&) {
        chosen.is_train = compilation.program()->find_train(chosen.name).valid();
        if (chosen.is_train) return;
        compilation.set_overrides(chosen.values);
        chosen.values = compilation.default_values(chosen.name);
      });
  if (!finish(done.status, done.diagnostics, *chosen.document)) return std::nullopt;
  subject_ = *name;
  return chosen;
}

bool Session::finish(service::Status status, const std::vector<Diagnostic>& diagnostics,
                     const service::Document& document) {
  if (status == service::Status::cancelled) throw Cancelled();
  const bool own = &document == document_.get();
  const bool good =
      print_diagnostics(diagnostics, document.locations(), own ? sources_.path() : std::string(),
                        own ? composed_.fragments : std::vector<SourceFragment>());
  return good && status == service::Status::done;
}

bool Session::during(const Chosen& chosen,
                     const std::function<void(service::Compilation&, DiagnosticSink&)>& work) {
  const service::Document::Done done = chosen.document->during(&interrupt_, work);
  return finish(done.status, done.diagnostics, *chosen.document);
}

std::shared_ptr<const service::Plan> Session::plan(const Chosen& chosen, dag::Level level) {
  const auto answer = chosen.document->plan({chosen.request(), level, false}, &interrupt_);
  finish(answer.status, answer.diagnostics, *chosen.document);
  return answer.value;
}

std::optional<Session::Simulated> Session::simulate_at(const Chosen& chosen,
                                                       const views::SimulationCosts& costs,
                                                       dag::Level level) {
  const std::shared_ptr<const service::Plan> made = plan(chosen, std::max(level, costs.needed()));
  if (made == nullptr) return std::nullopt;
  std::optional<passes::Timeline> timeline;
  during(chosen, [&](service::Compilation&, DiagnosticSink& sink) {
    timeline = views::simulate(costs, made->dag, sink);
  });
  if (!timeline) return std::nullopt;
  return Simulated{made, std::move(*timeline)};
}

std::optional<Session::Simulated> Session::simulate(const Chosen& chosen, dag::Level level) {
  if (!find_machine()) return std::nullopt;
  return simulate_at(chosen, costs_, level);
}

std::optional<Session::Simulated> Session::simulate_orders(const Chosen& chosen) {
  return simulate_at(chosen, {costs_.operations, {}, {}}, dag::Level::ordered);
}

bool Session::find_machine() {
  costs_.machine.reset();
  if (machine_.empty()) return true;
  if (machine_.find(".pipe") != std::string::npos) {
    Context context;
    DiagnosticSink sink(context.locations);
    costs_.machine = service::read_machine(machine_, values_, host_.files, context, sink);
    return print_diagnostics(sink.sorted(), context.locations, {}, {}) && costs_.machine;
  }
  const service::Document::Done done =
      document_->during(&interrupt_, [&](service::Compilation& compilation, DiagnosticSink& sink) {
        if (compilation.program() != nullptr)
          costs_.machine = service::find_machine(*compilation.program(), "", machine_, values_,
                                                 compilation.context(), sink);
      });
  return finish(done.status, done.diagnostics, *document_) && costs_.machine;
}

bool Session::set_machine(const std::string& word) {
  const std::string before = std::exchange(machine_, word);
  if (find_machine() && redraw(true)) return true;
  machine_ = before;
  return false;
}

Shown Session::shown(const Chosen& chosen) const {
  return chosen.in_session
             ? Shown(chosen.document->locations(), sources_.path(), composed_.fragments)
             : Shown(chosen.document->locations(), {}, {});
}

bool Session::set_model(const std::string& name) {
  if (!name_of_subject(name)) return false;
  model_ = name;
  return true;
}

std::vector<std::string> Session::defined() {
  std::vector<std::string> names;
  const auto symbols = document_->symbols(&interrupt_);
  if (symbols.value == nullptr) return names;
  for (const service::Symbol& symbol : *symbols.value) names.push_back(symbol.name);
  return names;
}

std::optional<std::string> Session::draft(const std::string& name) const {
  const auto found = drafts_.find(name);
  return found != drafts_.end() ? std::optional(found->second) : std::nullopt;
}

std::vector<std::string> Session::names() {
  std::vector<std::string> names = parse::keywords();
  names.emplace_back("names");  // begins an item, and is not reserved
  const auto add = [&](const std::vector<std::string>& more) {
    names.insert(names.end(), more.begin(), more.end());
  };
  add(library());
  add(defined());
  for (const Binding& binding : bindings_) names.push_back(binding.name);
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

}  // namespace piper::repl
