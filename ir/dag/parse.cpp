#include "ir/dag/parse.h"

#include "ir/dag/parse_parts.h"

namespace piper::dag {

AxisMask parse_axes(TextReader& reader, const Mesh& mesh) {
  AxisMask mask = 0;
  do {
    const TextReader::Token where = reader.peek();
    const std::size_t axis = mesh.find(reader.symbol("an axis"));
    if (reader.failed()) return 0;
    if (axis == mesh.axes.size()) {
      reader.fail(Code::unknown_dag_name, where, "no axis is named `{}`", where.text);
      return 0;
    }
    mask |= AxisMask{1} << axis;
  } while (!reader.failed() && reader.accept(","));
  return mask;
}

std::optional<Dag> parse(FileId file, Context& context, DiagnosticSink& sink,
                         std::vector<directive::Directive>* directives, TextPlaces* places) {
  TextReader reader(file, context, sink);
  if (places != nullptr) reader.use_own_places(*places);
  Dag dag(context);
  NodeNames names;
  parse_header(reader, dag, names, directives);
  parse_nodes(reader, dag, names);
  if (!reader.failed() && dag.level == Level::planned) parse_plan(reader, dag, names);
  reader.expect_end();
  if (reader.failed()) return std::nullopt;
  return dag;
}

std::optional<Dag> parse(std::string_view text, Context& context, DiagnosticSink& sink,
                         std::string_view name) {
  return parse(context.locations.files().add(std::string(name), std::string(text)), context, sink);
}

}  // namespace piper::dag
