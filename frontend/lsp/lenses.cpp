// Lines above trains and schedules: what a plan of them comes to, and commands. The measures are computed when the client shows a lens.

#include "frontend/lsp/methods.h"
#include "frontend/pictures/memory_view.h"
#include "frontend/pictures/timeline_page.h"
#include "frontend/views/orders_view.h"
#include "passes/order/orders_table.h"
#include "passes/plan/requirements.h"
#include "passes/simulate/operations.h"

namespace piper::lsp {

namespace {

std::string percent(double share) {
  const auto tenths = static_cast<std::int64_t>(share * 1000 + 0.5);
  return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + "%";
}

json::Object command(std::string_view title, std::string_view name, const std::string& uri, std::string_view subject) {
  return json::Object{{"title", text(title)}, {"command", text(name)}, {"arguments", json::Array{json::Object{{"uri", text(uri)}, {"name", text(subject)}}}}};
}

struct Subject {
  std::string name, sizes;
  service::PlanRequest plan;

  std::string title() const { return name + (sizes.empty() ? "" : " at " + sizes); }
};

Subject subject_called(Request& request, std::string name) {
  Subject subject;
  subject.name = std::move(name);
  subject.plan.subject.name = subject.name;
  subject.plan.subject.values = request.document().default_values(subject.name, &request.cancellation());
  for (const lower::Override& value : subject.plan.subject.values) subject.sizes += (subject.sizes.empty() ? "" : " ") + value.name + "=" + value.value;
  return subject;
}

/// The train or schedule that the `data` of a lens or the argument of a command names.
Subject subject_of(Request& request, const json::Object* named) {
  const auto name = named != nullptr ? named->getString("name") : std::nullopt;
  if (!name) throw Refusal{ErrorCode::invalid_params, "the request names no train and no schedule"};
  return subject_called(request, name->str());
}

bool is_subject(const service::Symbol& symbol) { return symbol.kind == service::SymbolKind::train || symbol.kind == service::SymbolKind::schedule; }

/// The one that a position lies in, or else `preferred`, or else the first of the file; empty where there is none.
std::string subject_at(Request& request, const json::Value* position, llvm::StringRef preferred) {
  const std::uint32_t at = request.offset(position);
  std::string found;
  for (const service::Symbol& symbol : request.symbols()) {
    if (!is_subject(symbol)) continue;
    if (touches(symbol.range, at)) return symbol.name;
    if (found.empty() || symbol.name == preferred) found = symbol.name;
  }
  return found;
}

const service::Plan& plan_of(Request& request, const Subject& subject) {
  const service::Answer<service::Plan> plan = request.document().plan(subject.plan, &request.cancellation());
  if (plan.status == service::Status::cancelled) throw Cancelled();
  if (plan.value == nullptr) throw Refusal{ErrorCode::request_failed, "`" + subject.name + "` has no plan: see its diagnostics"};
  return *plan.value;
}

}  // namespace

json::Value code_lens(Request& request) {
  json::Array lenses;
  const std::optional<OpenFile> file = request.project().find(request.document().path());
  const std::string uri = file ? file->uri : uri_of(request.document().path());
  for (const service::Symbol& symbol : request.symbols()) {
    if (!is_subject(symbol)) continue;
    const json::Object range = request.json(symbol.selection_range);
    lenses.push_back(json::Object{{"range", json::Object(range)}, {"data", json::Object{{"uri", text(uri)}, {"name", text(symbol.name)}}}});
    lenses.push_back(json::Object{{"range", json::Object(range)}, {"command", command("show grid", "piper.grid", uri, symbol.name)}});
  }
  return lenses;
}

json::Value code_lens_resolve(Request& request) {
  json::Object lens = request.params();
  const json::Object* data = request.params().getObject("data");
  std::string title, uri;
  if (data != nullptr) uri = data->getString("uri").value_or("").str();
  std::string name;
  try {
    const Subject subject = subject_of(request, data);
    name = subject.name;
    const passes::Measures measures = passes::measure(plan_of(request, subject).dag);
    title = (subject.sizes.empty() ? "" : subject.sizes + ": ") + "bubble " + percent(measures.bubble) + ", peak " +
            passes::bytes_text(static_cast<double>(measures.peak_memory));
  } catch (const Refusal&) {
    title = "no plan";  // its diagnostics say why
  }
  lens["command"] = command(title, "piper.grid", uri, name);
  return lens;
}

namespace {

std::span<const directive::Directive> directives_of(Request& request, const Subject& subject) {
  return request.document().subject(subject.plan.subject, &request.cancellation()).value->lowered.strategy.directives;
}

std::string grid_of(Request& request, const Subject& subject, const service::Plan& plan) {
  return views::grid_text(passes::orders_table(plan.dag, passes::partition_name(directives_of(request, subject))), plan.dag, {});
}

json::Value show_grid(Request& request, const json::Object* argument) {
  const Subject subject = subject_of(request, argument);
  const std::string grid = grid_of(request, subject, plan_of(request, subject));
  const std::string shown = request.project().show(subject.name + ".txt", subject.title() + "\n\n" + grid);
  json::Object result{{"text", text(grid)}};
  if (!shown.empty()) result["uri"] = text(shown);
  return result;
}

/// What a panel beside the text shows of the train or schedule at a position: grid, timeline at unit costs, memory.
json::Value show_page(Request& request, const json::Object* argument) {
  const json::Value* position = argument != nullptr ? argument->get("position") : nullptr;
  const std::string name = position != nullptr ? subject_at(request, position, argument->getString("name").value_or("")) : subject_of(request, argument).name;
  if (name.empty()) throw Refusal{ErrorCode::request_failed, "the file has no train and no schedule"};
  const Subject subject = subject_called(request, name);
  const service::Plan& plan = plan_of(request, subject);
  DiagnosticSink sink(plan.dag.context->locations);
  auto timeline = passes::simulate_operations(plan.dag, passes::partition_name(directives_of(request, subject)), {}, sink);
  if (!timeline) throw Refusal{ErrorCode::request_failed, "`" + name + "` has no timeline: see `piper show timeline`"};
  const pictures::Picture picture = pictures::make_picture(subject.title(), std::move(*timeline), &plan.dag, plan.dag.context->locations);
  return json::Object{{"name", text(name)},
                      {"title", text(subject.title())},
                      {"grid", text(grid_of(request, subject, plan))},
                      {"page", text(pictures::timeline_page(std::span(&picture, 1)))},
                      {"memory", text(pictures::memory_svg(passes::memory_table(plan.dag), "memory of " + subject.title()))}};
}

}  // namespace

json::Value execute_command(Request& request) {
  const auto command = request.params().getString("command").value_or("");
  const json::Array* arguments = request.params().getArray("arguments");
  const json::Object* argument = arguments != nullptr && !arguments->empty() ? (*arguments)[0].getAsObject() : nullptr;
  if (command == "piper.grid") return show_grid(request, argument);
  if (command == "piper.page") return show_page(request, argument);
  throw Refusal{ErrorCode::invalid_params, "the server has the commands `piper.grid` and `piper.page`"};
}

}  // namespace piper::lsp
