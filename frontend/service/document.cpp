#include "frontend/service/document.h"

#include <algorithm>
#include <new>

#include "ir/verify/verify.h"

namespace piper::service {

namespace {

/// The request that a context works for, while it does.
class Serves {
 public:
  Serves(Context& context, const Cancellation* cancellation)
      : context_(context), before_(context.cancellation) {
    context_.cancellation = cancellation;
  }
  Serves(const Serves&) = delete;
  Serves& operator=(const Serves&) = delete;
  ~Serves() { context_.cancellation = before_; }

 private:
  Context& context_;
  const Cancellation* const before_;  // one request asks another
};

std::string key_of(const SubjectRequest& request) {
  std::string key = request.name;
  for (const lower::Override& value : request.values) key += "\n" + value.name + "=" + value.value;
  return key;
}

std::string key_of(const PlanRequest& request) {
  return std::string(dag::level_name(request.level)) + (request.forward_only ? " forward " : " ") +
         key_of(request.subject);
}

/// For a value that the compilation owns.
template <typename T>
Answer<T> followed(Answer<const T*> answer) {
  const T* value = answer.value != nullptr ? *answer.value : nullptr;
  return {answer.status, {std::shared_ptr<const T>(), value}, std::move(answer.diagnostics)};
}

}  // namespace

Document::Document(std::string path, std::uint64_t version, OpenFiles files, Choices choices,
                   std::shared_ptr<CleanChecks> clean)
    : path_(std::move(path)),
      version_(version),
      files_(std::move(files)),
      choices_(std::move(choices)),
      clean_(std::move(clean)),
      compilation_(files_),
      analysis_(compilation_.context().locations) {
  compilation_.set_clean_checks(clean_.get());
}

template <typename T, typename Work>
Answer<T> Document::compute(std::unique_ptr<Kept<T>>& kept, const Work& work) {
  DiagnosticSink sink(compilation_.context().locations);
  compilation_.context().poll();
  auto made = std::make_unique<Kept<T>>();
  if (std::optional<T> value = work(sink))
    made->value = std::make_shared<const T>(std::move(*value));
  made->diagnostics = sink.sorted();
  Answer<T> answer{Status::done, made->value, made->diagnostics};
  kept = std::move(made);
  return answer;
}

template <typename T, typename Work>
Answer<T> Document::answer(std::unique_ptr<Kept<T>>& kept, const Cancellation* cancellation,
                           const Work& work) {
  if (kept != nullptr) return {Status::done, kept->value, kept->diagnostics};
  const Serves serves(compilation_.context(), cancellation);
  try {
    return compute(kept, work);
  } catch (const Cancelled&) {
    return {Status::cancelled, nullptr, {}};
  } catch (const std::bad_alloc&) {
    if (forget()) return answer(kept, cancellation, work);
    Diagnostic none;
    none.code = Code::out_of_memory;
    none.message = "the machine has no memory left for this request";
    none.hint = "make the program smaller";
    return {Status::out_of_memory, nullptr, {std::move(none)}};
  }
}

bool Document::forget() {
  const bool subjects = lowered_.forget();
  return plans_.forget() || subjects;
}

bool Document::analysed() {
  if (opened_) return usable_;
  DiagnosticSink sink(compilation_.context().locations);
  usable_ = compilation_.open(path_, sink);
  analysis_ = std::move(sink);
  opened_ = true;
  files_.end_reading();
  return usable_;
}

Answer<ast::Module> Document::syntax(const Cancellation* cancellation) {
  return answer(syntax_, cancellation,
                [&](DiagnosticSink& sink) { return compilation_.parse(path_, sink); });
}

Answer<sema::Program> Document::program(const Cancellation* cancellation) {
  return followed(answer(
      program_, cancellation, [&](DiagnosticSink& sink) -> std::optional<const sema::Program*> {
        analysed();
        sink = analysis_;
        return compilation_.program() != nullptr ? std::optional(compilation_.program())
                                                 : std::nullopt;
      }));
}

Answer<dag::Dag> Document::dag(const Cancellation* cancellation) {
  return followed(
      answer(dag_, cancellation, [&](DiagnosticSink& sink) -> std::optional<const dag::Dag*> {
        analysed();
        sink = analysis_;
        return compilation_.pir() != nullptr ? std::optional<const dag::Dag*>(compilation_.pir())
                                             : std::nullopt;
      }));
}

Answer<std::vector<Symbol>> Document::symbols(const Cancellation* cancellation) {
  return answer(symbols_, cancellation, [&](DiagnosticSink&) -> std::optional<std::vector<Symbol>> {
    DiagnosticSink reported_by_syntax(compilation_.context().locations);
    if (path_.ends_with(".pir")) return std::vector<Symbol>();
    const std::optional<ast::Module> module = compilation_.parse(path_, reported_by_syntax);
    if (!module) return std::nullopt;
    return symbols_of(*module);
  });
}

Answer<std::vector<Use>> Document::uses(const Cancellation* cancellation) {
  return answer(uses_, cancellation, [&](DiagnosticSink&) -> std::optional<std::vector<Use>> {
    analysed();
    return compilation_.program() != nullptr ? uses_of(*compilation_.program())
                                             : std::vector<Use>();
  });
}

Answer<std::vector<Symbol>> Document::subjects(const Cancellation* cancellation) {
  const Answer<std::vector<Symbol>> all = symbols(cancellation);
  if (all.value == nullptr) return all;
  return answer(subjects_, cancellation, [&](DiagnosticSink&) {
    std::vector<Symbol> list;
    for (const Symbol& symbol : *all.value) {
      if (symbol.kind == SymbolKind::train || symbol.kind == SymbolKind::schedule)
        list.push_back(symbol);
    }
    return std::optional(std::move(list));
  });
}

Answer<Subject> Document::subject(const SubjectRequest& request, const Cancellation* cancellation) {
  return answer(lowered_.of(key_of(request)), cancellation, [&](DiagnosticSink& sink) {
    analysed();
    compilation_.set_overrides(request.values);
    return compilation_.subject(request.name, false, sink);
  });
}

Answer<Plan> Document::plan(const PlanRequest& request, const Cancellation* cancellation) {
  std::unique_ptr<Kept<Plan>>& kept = plans_.of(key_of(request));
  Answer<Subject> lowered;
  if (kept == nullptr) {
    lowered = subject(request.subject, cancellation);
    if (lowered.value == nullptr) return {lowered.status, nullptr, lowered.diagnostics};
  }
  return answer(kept, cancellation, [&](DiagnosticSink& sink) -> std::optional<Plan> {
    std::optional<passes::Prepared> prepared = compilation_.prepare(*lowered.value, sink);
    if (!prepared) return std::nullopt;
    std::optional<dag::Dag> dag = compilation_.compile(
        *lowered.value, *prepared, {request.level, request.forward_only, {}}, sink);
    if (!dag) return std::nullopt;
    return Plan{std::move(prepared->model), std::move(*dag)};
  });
}

Answer<std::vector<CheckedSchedule>> Document::check(const Cancellation* cancellation) {
  return answer(check_, cancellation,
                [&](DiagnosticSink& sink) -> std::optional<std::vector<CheckedSchedule>> {
                  analysed();
                  sink = analysis_;
                  if (compilation_.pir() != nullptr && usable_)
                    verify::lint(*compilation_.pir(), sink);
                  if (compilation_.program() == nullptr) return std::vector<CheckedSchedule>();
                  compilation_.set_overrides(compilation_.values_taken(choices_.values));
                  std::vector<CheckedSchedule> schedules = compilation_.check_file(sink);
                  compilation_.check_trains(sink);
                  return schedules;
                });
}

Document::Done Document::during(const Cancellation* cancellation,
                                const std::function<void(Compilation&, DiagnosticSink&)>& work) {
  std::unique_ptr<Kept<bool>> kept;
  Answer<bool> answered = answer(kept, cancellation, [&](DiagnosticSink& sink) {
    analysed();
    work(compilation_, sink);
    return std::optional(true);
  });
  return {answered.status, std::move(answered.diagnostics)};
}

std::vector<lower::Override> Document::default_values(const std::string& name,
                                                      const Cancellation* cancellation) {
  std::unique_ptr<Kept<std::vector<lower::Override>>> kept;
  const auto found = answer(
      kept, cancellation, [&](DiagnosticSink&) -> std::optional<std::vector<lower::Override>> {
        analysed();
        if (compilation_.program() == nullptr) return std::nullopt;
        compilation_.set_overrides(compilation_.values_taken(choices_.values));
        return compilation_.default_values(name);
      });
  return found.value != nullptr ? *found.value : std::vector<lower::Override>();
}

Answer<lower::Observations> Document::observations(std::string_view path,
                                                   const Cancellation* cancellation) {
  return answer(
      observations_[std::string(path)], cancellation,
      [&](DiagnosticSink&) -> std::optional<lower::Observations> {
        analysed();
        if (compilation_.program() == nullptr) return std::nullopt;
        const auto& modules = compilation_.program()->modules;
        const auto of =
            path == path_
                ? modules.begin()
                : std::find_if(modules.begin(), modules.end(), [&](const auto& module) {
                    return !files().is_library(module->syntax.file) &&
                           normal_path(files().name(module->syntax.file)) == normal_path(path);
                  });
        if (of == modules.end()) return std::nullopt;
        compilation_.set_overrides(compilation_.values_taken(choices_.values));
        return compilation_.observe(
            choices_.train, sema::ModuleId::at(static_cast<std::size_t>(of - modules.begin())));
      });
}

}  // namespace piper::service
