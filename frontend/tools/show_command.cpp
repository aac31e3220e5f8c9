#include <algorithm>
#include <span>
#include <utility>

#include "frontend/repl/changed_order.h"
#include "frontend/tools/checkpoint_view.h"
#include "frontend/tools/commands.h"
#include "frontend/tools/cuda_view.h"
#include "frontend/tools/program_view.h"
#include "frontend/tools/session.h"
#include "frontend/tools/show_pictures.h"
#include "frontend/tools/stuck_view.h"
#include "frontend/tools/simulation.h"
#include "frontend/tools/train_job.h"
#include "frontend/views/dag_view.h"
#include "frontend/views/folded_text.h"
#include "frontend/views/order_list.h"
#include "frontend/views/orders_view.h"
#include "frontend/views/partition_view.h"
#include "ir/byte_text.h"
#include "ir/dag/plan.h"
#include "ir/dag/print.h"
#include "ir/directive/print.h"
#include "ir/tensor/graph_text.h"
#include "llvm/Support/JSON.h"
#include "passes/plan/requirements.h"
#include "passes/selectors/select.h"

namespace piper::tools {
namespace {

/// The views of `show`, and their formats.
struct Kind {
  std::string_view name;
  std::vector<std::string_view> formats;  // the first one where none is asked for
  dag::Level level;                       // that it needs of a DAG
};

const std::vector<Kind>& kinds() {
  static const std::vector<Kind> kKinds = {
      {"ast", {"text", "json"}, dag::Level::built},
      {"graph", {"text", "json", "pir"}, dag::Level::built},
      {"orders", {"text", "json", "pipe"}, dag::Level::ordered},
      {"grid", {"text", "json", "svg", "html"}, dag::Level::ordered},
      {"timeline", {"text", "json", "svg", "html", "perfetto"}, dag::Level::ordered},
      {"memory", {"text", "json", "svg"}, dag::Level::planned},
      {"comm", {"text", "json", "svg"}, dag::Level::planned},
      {"partition", {"text", "json"}, dag::Level::ordered},
      {"metrics", {"text", "json", "svg"}, dag::Level::built},
      {"checkpoint", {"text", "json"}, dag::Level::built},
      {"stuck", {"text", "json"}, dag::Level::planned},
      {"dag", {"text", "json", "pir"}, dag::Level::built},
      {"program", {"text", "json"}, dag::Level::planned},
  };
  return kKinds;
}

/// The kind of that name, if it has the format; null after printing an error.
const Kind* find_kind(Console& console, const Arguments& arguments) {
  const std::string& name = arguments.positional[0];
  std::vector<std::string> names;
  for (const Kind& kind : kinds()) {
    names.emplace_back(kind.name);
    if (kind.name != name) continue;
    if (arguments.format.empty() ||
        std::find(kind.formats.begin(), kind.formats.end(), arguments.format) != kind.formats.end())
      return &kind;
    std::string formats;
    for (const std::string_view format : kind.formats) {
      formats += (formats.empty()                 ? ""
                  : format == kind.formats.back() ? " or "
                                                  : ", ") +
                 ("`" + std::string(format) + "`");
    }
    console.err << "piper: `show " << name << "` has no `--format " << arguments.format
                << "`: write " << formats << "\n";
    return nullptr;
  }
  const auto meant = nearest(name, names);
  console.err << "piper: `" << name << "` is not a view of `show`"
              << (meant ? "; did you mean `" + *meant + "`?"
                        : "; `piper show --help` lists the kinds")
              << "\n";
  return nullptr;
}

std::optional<dag::Level> parse_level(const std::string& name) {
  for (const dag::Level level :
       {dag::Level::built, dag::Level::split, dag::Level::placed, dag::Level::communicating,
        dag::Level::ordered, dag::Level::planned}) {
    if (dag::level_name(level) == name) return level;
  }
  return std::nullopt;
}

/// The level of the DAG that is printed, or drawn: a plan in seconds where the costs are of its
/// actions.
dag::Level needed_level(const Kind& kind, const Arguments& arguments) {
  if (kind.name == "dag") return parse_level(arguments.level).value_or(dag::Level::planned);
  const bool of_actions = !(arguments.rates + arguments.costs_file + arguments.machine).empty();
  return of_actions ? dag::Level::planned : kind.level;
}

/// A text as `{"schema":1,KIND:"..."}` where JSON is asked for.
std::string wrapped(const Arguments& arguments, const char* kind, const std::string& text) {
  if (arguments.format != "json") return text;
  // A value of a text that it refers to: that of a plan has a hundred megabytes.
  const std::string fixed = llvm::json::isUTF8(text) ? std::string() : llvm::json::fixUTF8(text);
  std::string out;
  llvm::raw_string_ostream stream(out);
  llvm::json::OStream json(stream);
  json.object([&] {
    json.attribute(kind, llvm::StringRef(fixed.empty() ? text : fixed));
    json.attribute("schema", 1);
  });
  stream << "\n";
  return out;
}

/// A DAG is printed whole if a program may read it: as `pir`, as JSON, and to a file or a pipe
/// unless text is requested.
std::string show_dag(const Session& session, const dag::Dag& dag,
                     std::span<const directive::Directive> directives) {
  const Arguments& arguments = session.arguments();
  const bool for_reader =
      arguments.format == "text" || (arguments.format.empty() && session.screen().columns > 0);
  if (!for_reader) return wrapped(arguments, "dag", dag::print(dag, directives));
  return views::dag_view(dag, directives,
                         {.locations = arguments.locations, .bodies = arguments.bodies});
}

std::string show_graph(const Session& session, const tensor::Graph& graph) {
  const Arguments& arguments = session.arguments();
  if (arguments.format == "pir" || arguments.format == "json")
    return wrapped(arguments, "graph", tensor::print(graph));
  const bool derived = std::any_of(graph.nodes().begin(), graph.nodes().end(),
                                   [](const tensor::Node& node) { return node.origin.valid(); });
  return views::folded(tensor::print(
             graph, arguments.locations ? LocationForm::written : LocationForm::none, false)) +
         (derived ? "a derivative that names no region is in that of the operation it is `of`\n"
                  : "");
}

std::string show_orders(const Session& session, const dag::Dag& dag,
                        const views::SimulationCosts& costs, bool grid) {
  const passes::OrdersTable table = passes::orders_table(dag);
  if (session.arguments().format == "json") return views::orders_json(table, dag);
  return grid ? views::grid_text(table, dag, session.screen(), costs) : views::orders_text(table);
}

/// The orders as an explicit list for a program; nothing after a diagnostic.
std::optional<std::string> listed_orders(Session& session, const dag::Dag& dag) {
  DeviceSetTable device_sets = dag.device_sets;
  const auto order = repl::order_of(passes::orders_table(dag), dag, device_sets);
  // A gather serves the work behind it, which its name in a list does not tell.
  const bool gathers = std::any_of(dag.temporal.begin(), dag.temporal.end(), [&](const auto& edge) {
    return dag::gathers_shards(dag.node(edge.second).kind);
  });
  if (!order || gathers) {
    session.sink()
        .report(Code::unknown_subject, SourceRange(),
                "no list of operations gives these orders: {}",
                gathers ? "they name gathers of sharded parameters"
                        : "a rank runs several segments of one region")
        .hint("`piper show orders` shows them, and `piper show dag` all of their work");
    return std::nullopt;
  }
  std::vector<Symbol> dims;
  for (const auto& dim : dag.dims) dims.push_back(dim.name);
  return views::order_list(*order, dims, device_sets, dag.mesh, dag.context->symbols);
}

/// A DAG at the level that the kind needs; nothing after a diagnostic.
std::optional<std::string> shown(Session& session, const Kind& kind, const dag::Dag& dag,
                                 const views::SimulationCosts& costs) {
  if (kind.name == "program")
    return wrapped(session.arguments(), "program",
                   dag.settings.device == directive::Platform::cuda
                       ? cuda_program_text(dag, session.compilation().target(dag.settings))
                       : program_text(dag));
  if (kind.name == "memory") return memory_picture(session, dag);
  if (kind.name == "comm") return traffic_picture(session, dag);
  const std::string& format = session.arguments().format;
  if (kind.name == "timeline") return timeline_picture(session, dag, costs);
  if (format == "pipe") return listed_orders(session, dag);
  if (format == "svg" || format == "html") return grid_picture(session, dag, costs);
  return show_orders(session, dag, costs, kind.name == "grid");
}

/// The source form of a line, if the program is also legal without it.
std::optional<std::string> removable(const directive::Directive& directive,
                                     const SymbolTable& symbols) {
  const directive::DirectiveRow* const row = directive::find_row(directive);
  if (row == nullptr || row->subject != directive::Subject::targets || row->clauses.needed != 0)
    return std::nullopt;
  std::string line(row->keyword);
  const char* separator = " ";
  for (const directive::Selector& target : directive::targets_of(directive)) {
    line += separator + passes::print_selector(target, symbols);
    separator = ", ";
  }
  llvm::raw_string_ostream os(line);
  directive::print_settings(directive, os);
  os.flush();
  return line;
}

/// With whole state on each replica instead of shards; nothing if it is whole already.
std::optional<std::string> made_whole(directive::Directive& directive) {
  auto* replicate = std::get_if<directive::Replicate>(&directive);
  if (replicate == nullptr || replicate->zero == 0) return std::nullopt;
  const std::string text =
      "with `zero: 0` for `zero: " + std::to_string(std::exchange(replicate->zero, 0u)) + "`";
  replicate->prefetch.reset();
  replicate->reduce.reset();
  return text;
}

/// The largest arena without each line that saves memory; empty if there is none.
std::string peaks_without(Session& session, const Session::Subject& subject, const dag::Dag& dag,
                          std::span<const directive::Directive> directives) {
  const auto most = [](const dag::Dag& planned) {
    const passes::Most largest = passes::peak_memory(planned);
    return bytes_text(largest.bytes) + " on " +
           std::string(planned.context->text(planned.plan->roles[largest.role].name));
  };
  constexpr std::size_t kMax = 16;  // each is compiled anew
  std::string text;
  std::size_t found = 0;
  for (std::size_t i = 0; i < directives.size(); ++i) {
    const std::optional<std::string> line = removable(directives[i], session.context().symbols);
    directive::Directive whole = directives[i];
    const std::optional<std::string> cut = made_whole(whole);
    if ((!line && !cut) || ++found > kMax) continue;
    // The program itself was reported; and an order may name `R`, which does not exist then.
    DiagnosticSink unread(session.context().locations);
    Session::Subject other = subject;
    std::vector<directive::Directive>& lines = other.lowered.strategy.directives;
    if (line) {
      lines.erase(lines.begin() + static_cast<std::ptrdiff_t>(i));
    } else {
      made_whole(lines[i]);
    }
    std::erase_if(lines, [](const directive::Directive& each) {
      return std::holds_alternative<directive::Require>(each);
    });
    const auto without =
        session.compilation().compile(other, {dag::Level::planned, false, {}}, unread);
    if (!line && !without) continue;  // of two lines that cut alike one alone may be refused
    if (text.empty()) text = "\nlargest arena " + most(dag) + "\n";
    text += (line ? "without `" + *line + "`" : *cut) + ": " +
            (without ? most(*without) : "the order would name what is not there") + "\n";
  }
  if (found > kMax)
    text += "and " + std::to_string(found - kMax) + " further lines that were not tried\n";
  return text;
}

int show_partition(Session& session, const Session::Subject& subject, dag::Level level,
                   const views::SimulationCosts& costs) {
  const auto prepared = session.compilation().prepare(subject, session.sink());
  if (!prepared) return session.finish();
  const auto dag =
      session.compilation().compile(subject, *prepared, {level, false, {}}, session.sink());
  if (!dag) return session.finish();
  const auto timeline = views::simulate(costs, *dag, session.sink());
  if (!timeline) return session.finish();
  const views::PartitionRows table =
      views::partition_rows(prepared->model, subject.lowered.strategy.directives, *dag, *timeline);
  session.write(session.arguments().format == "json" ? views::partition_json(table)
                                                     : views::partition_text(table));
  return session.finish();
}

int show_pir(Session& session, const Kind& kind, const views::SimulationCosts& costs) {
  const Arguments& arguments = session.arguments();
  const dag::Dag& dag = *session.compilation().pir();
  const dag::Level asked = arguments.level.empty() ? dag.level : needed_level(kind, arguments);
  if (kind.name == "dag" && asked != dag.level) {
    session.sink()
        .report(Code::level_too_low, SourceRange(),
                "`--level {}` asks for another level than that of the file, `{}`",
                dag::level_name(asked), dag::level_name(dag.level))
        .hint("give the .pipe file, which is compiled to any level");
  } else if (kind.name == "dag") {
    session.write(show_dag(session, dag, session.compilation().pir_directives()));
  } else if (kind.name == "graph" || kind.name == "partition") {
    session.sink().report(
        Code::unknown_subject, SourceRange(),
        "a .pir file has no graph of the whole model: this needs a .pipe file or a schedule of the standard library");
  } else if (const dag::Level needed = needed_level(kind, arguments); dag.level < needed) {
    session.sink().report(Code::level_too_low, SourceRange(),
                          "`show {}` needs a DAG at level `{}`, and the file is at level `{}`",
                          kind.name, dag::level_name(needed), dag::level_name(dag.level));
  } else if (const std::string planned_for =
                 directive::kPlatformNames[static_cast<std::size_t>(dag.settings.device)];
             !arguments.device.empty() && arguments.device != planned_for) {
    session.sink()
        .report(
            Code::unknown_subject, SourceRange(),
            "`{}` is a plan for `{}`: the workspaces of its kernels are not those of kernels for `{}`",
            arguments.positional[1], planned_for, arguments.device)
        .hint("give the .pipe file: its plan is made for `--device {}`", arguments.device);
  } else {
    if (const auto text = shown(session, kind, dag, costs)) session.write(*text);
  }
  return session.finish();
}

int open_and_show_stuck(Session& session, const std::string& input, const std::string& name) {
  if (!session.open(input)) return session.finish();
  if (session.compilation().pir()) {
    session.console().err << "piper: `show stuck` needs the .pipe file of the run: " << input
                          << " is a .pir file\n";
    return kUsage;
  }
  const auto subject = session.subject(name, true);
  return subject ? show_stuck(session, *subject) : session.finish();
}

}  // namespace

int run_show(Console& console, const Arguments& arguments) {
  const Kind* kind = find_kind(console, arguments);
  if (kind == nullptr) return kUsage;
  const bool costs = !(arguments.cost + arguments.rates + arguments.costs_file + arguments.machine +
                       arguments.kept_weights + arguments.kept_forward)
                          .empty();
  if (costs && kind->name != "timeline" && kind->name != "partition") {
    console.err << "piper: `show " << kind->name << "` knows no costs: write `piper show timeline "
                << arguments.positional[1] << "`\n";
    return kUsage;
  }
  if (!arguments.stages.empty() && kind->name != "timeline" && kind->name != "grid" &&
      kind->name != "partition") {
    console.err
        << "piper: `show " << kind->name
        << "` knows no costs: `--stages` is of `show grid`, `show timeline` and `show partition`\n";
    return kUsage;
  }
  if (!arguments.device.empty() && kind->name != "program" && kind->name != "memory" &&
      kind->name != "dag" && kind->name != "timeline" && kind->name != "partition") {
    console.err << "piper: `show " << kind->name << "` knows no device: write `piper show program "
                << arguments.positional[1] << " --device " << arguments.device << "`\n";
    return kUsage;
  }
  if (arguments.locations && kind->name != "graph" && kind->name != "dag") {
    console.err << "piper: `--locations` is of `show graph` and `show dag`: `show " << kind->name
                << "` has none\n";
    return kUsage;
  }
  if (arguments.bodies && kind->name != "dag") {
    console.err << "piper: `--bodies` is of `show dag`: `show " << kind->name << "` has none\n";
    return kUsage;
  }
  if ((kind->name == "stuck") == arguments.from.empty()) {
    console.err << "piper: flight records of a run are of `show stuck`: write `piper show stuck "
                << arguments.positional[1] << " --from DIR`\n";
    return kUsage;
  }
  const std::string& input = arguments.positional[1];
  const std::string name = arguments.positional.size() > 2 ? arguments.positional[2] : "";
  Session session(console, arguments);
  if (arguments.device == "cuda" && !runtime_options(session)) return session.finish();
  const bool of_run = kind->name == "metrics" || kind->name == "checkpoint";
  if (of_run && !name.empty()) {
    console.err << "piper: `show " << kind->name
                << "` takes the folder of a run and nothing else: write `piper show " << kind->name
                << " " << input << "`\n";
    return kUsage;
  }
  if (kind->name == "metrics") return show_metrics(session, input);
  if (kind->name == "checkpoint") return show_checkpoint(session, input);
  if (kind->name == "ast") {
    const auto module = session.compilation().parse(input, session.sink());
    // A tree with error nodes is worth reading; as JSON the errors are the one object.
    const bool only_errors = arguments.format == "json" && session.sink().has_errors();
    if (module && !only_errors)
      session.write(
          wrapped(arguments, "ast", ast::print(*module, session.context().locations.files())));
    return session.finish();
  }
  if (kind->name == "stuck") return open_and_show_stuck(session, input, name);
  const auto simulated_at = read_simulation_costs(session);
  if (!simulated_at || !session.open(input)) return session.finish();
  if (session.compilation().pir()) return show_pir(session, *kind, *simulated_at);
  leave_to_machine(session, *simulated_at, name);
  auto subject = session.subject(name, false);
  if (!subject) return session.finish();
  const std::vector<directive::Directive> directives = subject->lowered.strategy.directives;
  if (kind->name == "graph") {
    const auto prepared = session.compilation().prepare(*subject, session.sink());
    if (prepared) session.write(show_graph(session, prepared->model));
    return session.finish();
  }
  if (kind->name == "dag") {
    const auto dag = session.compile(*subject, needed_level(*kind, arguments));
    if (dag) session.write(show_dag(session, *dag, directives));
    return session.finish();
  }
  if (kind->name == "partition")
    return show_partition(session, *subject, needed_level(*kind, arguments), *simulated_at);
  const auto dag = session.compile(*subject, needed_level(*kind, arguments));
  if (!dag) return session.finish();
  auto text = shown(session, *kind, *dag, *simulated_at);
  const bool as_text = arguments.format.empty() || arguments.format == "text";
  if (text && kind->name == "memory" && as_text && subject->is_train)
    *text += peaks_without(session, *subject, *dag, directives);
  if (text) session.write(*text);
  return session.finish();
}

}  // namespace piper::tools
