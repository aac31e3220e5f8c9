// Lines above trains and schedules: what a plan of them comes to, and commands. The measures are computed when the client shows a lens.

#include "frontend/lsp/methods.h"
#include "frontend/views/orders_view.h"
#include "passes/order/orders_table.h"
#include "passes/plan/requirements.h"

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
};

/// The train or schedule that the `data` of a lens or the argument of a command names.
Subject subject_of(Request& request, const json::Object* named) {
  const auto name = named != nullptr ? named->getString("name") : std::nullopt;
  if (!name) throw Refusal{ErrorCode::invalid_params, "the request names no train and no schedule"};
  Subject subject;
  subject.name = name->str();
  subject.plan.subject.name = subject.name;
  subject.plan.subject.values = request.document().default_values(subject.name, &request.cancellation());
  for (const lower::Override& value : subject.plan.subject.values) subject.sizes += (subject.sizes.empty() ? "" : " ") + value.name + "=" + value.value;
  return subject;
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
    if (symbol.kind != service::SymbolKind::train && symbol.kind != service::SymbolKind::schedule) continue;
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

json::Value execute_command(Request& request) {
  if (request.params().getString("command").value_or("") != "piper.grid") throw Refusal{ErrorCode::invalid_params, "the server has one command, `piper.grid`"};
  const json::Array* arguments = request.params().getArray("arguments");
  const Subject subject = subject_of(request, arguments != nullptr && !arguments->empty() ? (*arguments)[0].getAsObject() : nullptr);
  const service::Plan& plan = plan_of(request, subject);
  const std::span<const directive::Directive> directives = request.document().subject(subject.plan.subject, &request.cancellation()).value->lowered.strategy.directives;
  const std::string grid = views::grid_text(passes::orders_table(plan.dag, passes::partition_name(directives)), plan.dag, {});
  const std::string shown = request.project().show(subject.name + ".txt", subject.name + (subject.sizes.empty() ? "" : " at " + subject.sizes) + "\n\n" + grid);
  json::Object result{{"text", text(grid)}};
  if (!shown.empty()) result["uri"] = text(shown);
  return result;
}

}  // namespace piper::lsp
