#include <algorithm>

#include "frontend/tools/commands.h"
#include "frontend/tools/orders_view.h"
#include "frontend/tools/program_view.h"
#include "frontend/tools/session.h"
#include "ir/dag/print.h"
#include "ir/tensor/graph_text.h"
#include "llvm/Support/JSON.h"

namespace piper::tools {
namespace {

std::optional<dag::Level> parse_level(const std::string& name) {
  for (const dag::Level level : {dag::Level::built, dag::Level::split, dag::Level::placed, dag::Level::communicating, dag::Level::ordered, dag::Level::planned}) {
    if (dag::level_name(level) == name) return level;
  }
  return std::nullopt;
}

/// A text as `{"schema":1,KIND:"..."}` where JSON is asked for.
std::string wrapped(const Arguments& arguments, const char* kind, const std::string& text) {
  if (arguments.format != "json") return text;
  std::string out;
  llvm::raw_string_ostream(out) << llvm::json::Value(llvm::json::Object{{"schema", 1}, {kind, text}});
  return out + "\n";
}

std::string show_orders(const Session& session, const dag::Dag& dag, std::span<const directive::Directive> directives, bool grid) {
  const passes::OrdersTable table = passes::orders_table(dag, passes::partition_name(directives));
  if (session.arguments().format == "json") return orders_json(table, dag);
  return grid ? grid_text(table, dag, session.screen()) : orders_text(table);
}

int show_pir(Session& session, const std::string& kind) {
  const Arguments& arguments = session.arguments();
  const dag::Dag& dag = *session.compilation().pir();
  const dag::Level needed = kind == "program" ? dag::Level::planned : dag::Level::ordered;
  if (kind == "dag") {
    session.write(wrapped(arguments, "dag", dag::print(dag, session.compilation().pir_directives())));
  } else if (kind == "graph") {
    session.sink().report(Code::unknown_subject, SourceRange(), "a .pir file has no graph of the whole model: this needs a .pipe file or a schedule of the standard library");
  } else if (dag.level < needed) {
    session.sink().report(Code::level_too_low, SourceRange(), "`show {}` needs a DAG at level `{}`, and the file is at level `{}`", kind, dag::level_name(needed),
                          dag::level_name(dag.level));
  } else if (kind == "program") {
    session.write(wrapped(arguments, "program", program_text(dag)));
  } else {
    session.write(show_orders(session, dag, session.compilation().pir_directives(), kind == "grid"));
  }
  return session.finish();
}

}  // namespace

int run_show(Console& console, const Arguments& arguments) {
  static constexpr const char* kKinds[] = {"ast", "graph", "orders", "grid", "dag", "program"};
  const std::vector<std::string> kinds(std::begin(kKinds), std::end(kKinds));
  const std::string& kind = arguments.positional[0];
  if (std::find(kinds.begin(), kinds.end(), kind) == kinds.end()) {
    const auto meant = nearest(kind, kinds);
    console.err << "piper: `" << kind << "` is nothing that `show` prints" << (meant ? "; did you mean `" + *meant + "`?" : "; `piper show --help` lists the kinds") << "\n";
    return kUsage;
  }
  const std::string& input = arguments.positional[1];
  const std::string name = arguments.positional.size() > 2 ? arguments.positional[2] : "";
  Session session(console, arguments);
  if (kind == "ast") {
    const auto module = session.compilation().parse(input, session.sink());
    // A tree with error nodes is worth reading; as JSON the errors are the one object.
    const bool only_errors = arguments.format == "json" && session.sink().has_errors();
    if (module && !only_errors) session.write(wrapped(arguments, "ast", ast::print(*module, session.context().locations.files())));
    return session.finish();
  }
  if (!session.open(input)) return session.finish();
  if (session.compilation().pir()) return show_pir(session, kind);
  auto subject = session.subject(name, false);
  if (!subject) return session.finish();
  const std::vector<directive::Directive> directives = subject->lowered.strategy.directives;
  if (kind == "graph") {
    const auto dag = session.compile(*subject, dag::Level::built);
    if (dag) session.write(wrapped(arguments, "graph", tensor::print(subject->lowered.model)));
    return session.finish();
  }
  if (kind == "dag") {
    const auto dag = session.compile(*subject, *parse_level(arguments.level));
    if (dag) session.write(wrapped(arguments, "dag", dag::print(*dag, directives)));
    return session.finish();
  }
  const bool program = kind == "program";
  const auto dag = session.compile(*subject, program ? dag::Level::planned : dag::Level::ordered);
  if (dag) session.write(program ? wrapped(arguments, "program", program_text(*dag)) : show_orders(session, *dag, directives, kind == "grid"));
  return session.finish();
}

}  // namespace piper::tools
