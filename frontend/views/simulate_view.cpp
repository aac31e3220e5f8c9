#include "frontend/views/simulate_view.h"

#include <algorithm>
#include <cstdio>
#include <iterator>
#include <map>
#include <utility>
#include <vector>

#include "frontend/pictures/layout.h"
#include "frontend/pictures/picture.h"
#include "frontend/pictures/text_table.h"
#include "ir/byte_text.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

namespace piper::views {
namespace {

using passes::Timeline;

/// Long paths are shortened to the first and last steps.
constexpr std::size_t kShownSteps = 8;

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.6g", value);
  return text;
}

/// `zbv.pipe:12`; empty if the place is not known.
std::string place_text(LocId loc, const LocationTable& locations) {
  const SourceRange range = locations.primary(loc);
  if (!range.file.valid()) return "";
  return std::string(locations.files().name(range.file)) + ":" +
         std::to_string(locations.files().line_column(range.file, range.begin).line);
}

std::vector<std::uint32_t> ranks_of_entries(const Timeline& timeline) {
  std::vector<std::uint32_t> ranks(timeline.size());
  for (const Timeline::Lane& lane : timeline.lanes)
    std::fill(ranks.begin() + lane.first, ranks.begin() + lane.end, lane.rank);
  return ranks;
}

/// The name of a step of the path in sums.
std::string sort_of(const Timeline::Operation& operation) {
  return std::string(dag::runs_body(operation.kind) ? pass_name(operation.pass)
                                                    : dag::kind_name(operation.kind));
}

std::string ranks_table(const Timeline& timeline) {
  const bool units = timeline.source == Timeline::Source::operations;
  std::vector<std::vector<std::string>> rows;
  std::vector<std::string> head = {"", "work", "idle", "before", "after", "data", "message"};
  if (!units) head.push_back("room");
  head.push_back("imbalance");
  if (units) head.push_back("peak");
  const bool bytes = std::any_of(timeline.ranks.begin(), timeline.ranks.end(),
                                 [](const Timeline::Rank& rank) { return rank.planned_bytes > 0; });
  if (bytes) head.insert(head.end(), {"bytes", "planned"});
  rows.push_back(std::move(head));
  for (const Timeline::Rank& rank : timeline.ranks) {
    const Timeline::Idle& idle = rank.idle;
    std::vector<std::string> row = {rank.name};
    const auto add = [&](double time) { row.push_back(pictures::time_text(time, timeline.unit)); };
    for (const double time :
         {rank.work, idle.total(), idle.before_first, idle.after_last, idle.data, idle.message})
      add(time);
    if (!units) add(idle.room);
    add(idle.imbalance);
    if (units) row.push_back(number(rank.peak));
    if (bytes) row.insert(row.end(), {bytes_text(rank.peak_bytes), bytes_text(rank.planned_bytes)});
    rows.push_back(std::move(row));
  }
  return pictures::text_table(rows, {true});
}

std::string critical_text(const Timeline& timeline, const LocationTable& locations) {
  std::string text = "critical path: ";
  std::map<std::string, double> parts;
  double waited = 0, at = 0;
  for (const std::uint32_t entry : timeline.critical) {
    waited += std::max(0.0, timeline.start[entry] - at);
    parts[sort_of(timeline.operation_of(entry))] +=
        timeline.finish[entry] - std::max(timeline.start[entry], at);
    at = std::max(at, timeline.finish[entry]);
  }
  for (const auto& [name, time] : parts)
    text += (&name == &parts.begin()->first ? "" : ", ") + name + " " +
            pictures::time_text(time, timeline.unit);
  if (waited > 0) text += ", on the way " + pictures::time_text(waited, timeline.unit);
  text += "\n";
  const std::vector<std::uint32_t> ranks = ranks_of_entries(timeline);
  std::vector<std::vector<std::string>> rows;
  rows.push_back({"  start", "end", "", "", ""});
  const std::size_t count = timeline.critical.size();
  for (std::size_t i = 0; i < count; ++i) {
    if (count > 2 * kShownSteps + 1 && i == kShownSteps) {
      rows.push_back({"  ...", "", std::to_string(count - 2 * kShownSteps) + " more", "", ""});
      i = count - kShownSteps;
    }
    const std::uint32_t entry = timeline.critical[i];
    const Timeline::Operation& operation = timeline.operation_of(entry);
    rows.push_back({"  " + pictures::time_text(timeline.start[entry], timeline.unit),
                    pictures::time_text(timeline.finish[entry], timeline.unit),
                    timeline.ranks[ranks[entry]].name, timeline.label(operation),
                    place_text(operation.loc, locations)});
  }
  return text + pictures::text_table(rows, {true, false, true, true, true});
}

llvm::json::Value time_value(double time) { return time; }

llvm::json::Array critical_json(const Timeline& timeline, const LocationTable& locations) {
  llvm::json::Array path;
  const std::vector<std::uint32_t> ranks = ranks_of_entries(timeline);
  for (const std::uint32_t entry : timeline.critical) {
    const Timeline::Operation& operation = timeline.operation_of(entry);
    llvm::json::Object step{{"rank", static_cast<std::int64_t>(ranks[entry])},
                            {"op", sort_of(operation)},
                            {"start", time_value(timeline.start[entry])},
                            {"end", time_value(timeline.finish[entry])},
                            {"why", llvm::StringRef(text_of(timeline.why[entry]))}};
    if (dag::runs_body(operation.kind)) {
      step["region"] = timeline.names[operation.name];
      step["mb"] = operation.mb;
      if (operation.copy) step["copy"] = operation.copy;
      if (operation.slice) step["slice"] = operation.slice;
    } else {
      step["name"] = timeline.names[operation.name];
    }
    const SourceRange range = locations.primary(operation.loc);
    if (range.file.valid()) {
      step["file"] = llvm::json::fixUTF8(llvm::StringRef(locations.files().name(range.file)));
      step["line"] = locations.files().line_column(range.file, range.begin).line;
    }
    path.push_back(std::move(step));
  }
  return path;
}

llvm::json::Array memory_json(const Timeline& timeline) {
  llvm::json::Array curves;
  for (const Timeline::Curve& curve : timeline.curves) {
    llvm::json::Array times, values;
    for (std::uint32_t i = curve.first; i < curve.end; ++i) {
      times.push_back(timeline.curve_time[i]);
      values.push_back(timeline.curve_value[i]);
    }
    curves.push_back(
        llvm::json::Object{{"rank", static_cast<std::int64_t>(curve.rank)},
                           {"class", curve.cls ? llvm::StringRef(dag::buffer_class_name(*curve.cls))
                                               : llvm::StringRef("microbatches")},
                           {"time", std::move(times)},
                           {"value", std::move(values)}});
  }
  return curves;
}

}  // namespace

std::string figures_text(const Timeline& timeline, const LowerBounds& bounds) {
  double peak = 0;
  for (const Timeline::Rank& rank : timeline.ranks) peak = std::max(peak, rank.peak);
  const std::vector<std::vector<std::string>> rows = {
      {"makespan", pictures::time_text(timeline.makespan, timeline.unit),
       "bubble " + number(timeline.bubble_makespan)},
      {"span", pictures::time_text(timeline.span, timeline.unit),
       "bubble " + number(timeline.bubble_span)}};
  return pictures::text_table(rows, {true, false, true}) +
         (timeline.source == Timeline::Source::operations
              ? "peak " + number(peak) + " microbatches of a device share" +
                    pictures::stages_text(timeline) + "\n"
              : "") +
         (bounds ? "with this peak no order has a makespan below " +
                       pictures::time_text(bounds->makespan, timeline.unit) + " or a span below " +
                       pictures::time_text(bounds->span, timeline.unit) + "\n"
                 : "") +
         (pictures::runs_groups_in_turn(timeline) ? pictures::kGroupsInTurn : "");
}

std::string figures_line(const Timeline& timeline) {
  double peak = 0;
  for (const Timeline::Rank& rank : timeline.ranks) peak = std::max(peak, rank.peak);
  return "makespan " + pictures::time_text(timeline.makespan, timeline.unit) + ", bubble " +
         pictures::share_text(timeline.bubble_span) + " of the span and " +
         pictures::share_text(timeline.bubble_makespan) + " of the makespan" +
         (timeline.source == Timeline::Source::operations
              ? ", peak " + number(peak) + pictures::stages_text(timeline)
              : "");
}

std::string simulation_text(const Timeline& timeline, const LowerBounds& bounds,
                            const LocationTable& locations) {
  return figures_text(timeline, bounds) + "\n" + ranks_table(timeline) + "\n" +
         critical_text(timeline, locations);
}

std::string simulation_json(const Timeline& timeline, const LowerBounds& bounds,
                            const LocationTable& locations) {
  using namespace llvm::json;
  Array names, idle, parts, peak, peak_bytes, planned, work;
  for (const Timeline::Rank& rank : timeline.ranks) {
    names.push_back(rank.name);
    idle.push_back(timeline.makespan - rank.work);
    parts.push_back(Object{{"before_first", rank.idle.before_first},
                           {"after_last", rank.idle.after_last},
                           {"data", rank.idle.data},
                           {"message", rank.idle.message},
                           {"room", rank.idle.room},
                           {"imbalance", rank.idle.imbalance}});
    peak.push_back(rank.peak);
    peak_bytes.push_back(rank.peak_bytes);
    planned.push_back(rank.planned_bytes);
    work.push_back(rank.work);
  }
  Object root{
      {"schema", 1},
      {"unit", timeline.unit == Timeline::Unit::cost ? "cost" : "seconds"},
      {"stages", timeline.source == Timeline::Source::plan    ? Value(nullptr)
                 : timeline.stages == Timeline::Stages::equal ? Value("equal")
                                                              : Value("weighed")},
      {"ranks", std::move(names)},
      {"makespan", timeline.makespan},
      {"span", timeline.span},
      {"bubble", Object{{"makespan", timeline.bubble_makespan}, {"span", timeline.bubble_span}}},
      {"bound", bounds ? Value(Object{{"makespan", bounds->makespan}, {"span", bounds->span}})
                       : Value(nullptr)},
      {"idle", std::move(idle)},
      {"idle_parts", std::move(parts)},
      {"peak",
       timeline.source == Timeline::Source::operations ? Value(std::move(peak)) : Value(nullptr)},
      {"peak_bytes", std::move(peak_bytes)},
      {"planned_bytes", std::move(planned)},
      {"work", std::move(work)},
      {"critical_path", critical_json(timeline, locations)},
      {"memory", memory_json(timeline)}};
  std::string text;
  llvm::raw_string_ostream(text) << Value(std::move(root));
  return text + "\n";
}

}  // namespace piper::views
