#include "frontend/tools/show_pictures.h"

#include <filesystem>
#include <system_error>

#include "frontend/pictures/memory_view.h"
#include "frontend/pictures/metrics.h"
#include "frontend/pictures/timeline_json.h"
#include "frontend/pictures/timeline_page.h"
#include "frontend/pictures/timeline_svg.h"
#include "frontend/pictures/timeline_text.h"
#include "frontend/pictures/traffic_view.h"
#include "ir/byte_text.h"
#include "ir/diagnostics/counted.h"

namespace piper::tools {
namespace {

constexpr std::size_t kMaxTold = 5;  // of broken lines
constexpr std::uint64_t kMaxBytes = std::uint64_t{4} << 30;

/// As it is asked for: `zbv -D p=4 -D m=8`.
std::string title_of(const Arguments& arguments) {
  std::string title = arguments.positional[1];
  if (arguments.positional.size() > 2) title += " " + arguments.positional[2];
  for (const lower::Override& each : arguments.overrides)
    title += " -D " + each.name + "=" + each.value;
  return title;
}

std::string drawn(Session& session, const dag::Dag& dag, passes::Timeline timeline) {
  const Arguments& arguments = session.arguments();
  const pictures::Picture picture = pictures::make_picture(title_of(arguments), std::move(timeline),
                                                           &dag, session.context().locations);
  if (arguments.format == "json") return pictures::timeline_json(picture);
  if (arguments.format == "svg") return pictures::timeline_svg(picture);
  if (arguments.format == "html") return pictures::timeline_page(std::span(&picture, 1));
  if (arguments.format == "perfetto") return pictures::perfetto_trace(std::span(&picture, 1));
  return pictures::timeline_text(picture, session.screen());
}

}  // namespace

std::string memory_picture(const Session& session, const dag::Dag& dag) {
  const std::vector<passes::MemoryRow> rows = passes::memory_table(dag);
  const std::string& format = session.arguments().format;
  if (format == "json") return pictures::memory_json(rows, dag);
  return format == "svg" ? pictures::memory_svg(rows, "memory of " + title_of(session.arguments()))
                         : pictures::memory_text(rows, dag);
}

std::string traffic_picture(const Session& session, const dag::Dag& dag) {
  const std::vector<passes::TrafficRow> rows = passes::traffic_table(dag);
  const std::string& format = session.arguments().format;
  if (format == "json") return pictures::traffic_json(rows, dag);
  return format == "svg"
             ? pictures::traffic_svg(rows, "traffic of " + title_of(session.arguments()))
             : pictures::traffic_text(rows, dag);
}

std::optional<std::string> timeline_picture(Session& session, const dag::Dag& dag,
                                            const views::SimulationCosts& costs) {
  auto timeline = views::simulate(costs, dag, session.sink());
  return timeline ? std::optional(drawn(session, dag, std::move(*timeline))) : std::nullopt;
}

std::optional<std::string> grid_picture(Session& session, const dag::Dag& dag,
                                        const views::SimulationCosts& costs) {
  auto timeline = views::simulate(costs, dag, session.sink());
  if (!timeline) return std::nullopt;
  timeline->join_groups();
  return drawn(session, dag, std::move(*timeline));
}

int show_metrics(Session& session, const std::string& folder) {
  // A file of metrics may be named too: those of an earlier run are kept beside it.
  std::string path = folder + "/metrics.jsonl";
  std::error_code error;
  // In the folder of a run it has no writer.
  const bool pipe = std::filesystem::is_fifo(path, error);
  source::ReadResult read = pipe ? source::ReadResult{std::nullopt, "it is no plain file", 0}
                                 : session.console().files.read(path, kMaxBytes);
  if (!read.text && !pipe) {
    source::ReadResult file = session.console().files.read(folder, kMaxBytes);
    if (file.text) path = folder, read = std::move(file);
  }
  if (!read.text) {
    const std::string why =
        read.too_large > 0 ? "it has " + bytes_text(read.too_large) : read.error;
    session.sink()
        .report(Code::metrics_unreadable, SourceRange(), "the metrics `{}` cannot be read: {}",
                path, why)
        .hint("give `show metrics` the folder that `piper train --out DIR` wrote");
    return session.finish();
  }
  session.inputs().add(path);
  pictures::Metrics metrics;
  const std::vector<pictures::BrokenLine> broken = pictures::read_metrics(*read.text, metrics);
  if (metrics.training.empty() && metrics.held_out.empty()) {
    session.sink()
        .report(Code::metrics_empty, SourceRange(), "`{}` has no step of a run{}", path,
                broken.empty()
                    ? ""
                    : ": " + counted(broken.size(), "line") + " of it, and none is a record of one")
        .hint("`piper train --out DIR` writes a line after each step");
    return session.finish();
  }
  for (std::size_t i = 0; i < broken.size() && i < kMaxTold; ++i) {
    auto&& builder = session.sink().report(Code::metrics_line_broken, SourceRange(),
                                           "line {} of `{}` is left out: {}", broken[i].line, path,
                                           broken[i].reason);
    if (broken[i].cut_off)
      builder.hint("it is the last one and has no line break: the run ended while it was written");
    if (i + 1 == kMaxTold && broken.size() > kMaxTold)
      builder.hint("{} more are left out", broken.size() - kMaxTold);
  }
  const std::string& format = session.arguments().format;
  session.write(format == "json" ? pictures::metrics_json(metrics)
                : format == "svg"
                    ? pictures::metrics_svg(metrics, "loss of " + path)
                    : pictures::metrics_text(metrics, "loss of " + path, session.screen()));
  return session.finish();
}

}  // namespace piper::tools
