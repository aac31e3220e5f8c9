#include "frontend/views/comparison.h"

#include <algorithm>
#include <cstdio>

#include "frontend/pictures/picture.h"
#include "frontend/pictures/text_table.h"
#include "ir/byte_text.h"
#include "passes/plan/requirements.h"

namespace piper::views {

std::string of_small_model(passes::Timeline::Unit unit) {
  return std::string("a schedule by itself has a small chain of layers for a model: ") +
         (unit == passes::Timeline::Unit::seconds ? "seconds, " : "") +
         "memory and traffic are those of that chain, and a train has those of its model\n";
}

namespace {

using passes::Timeline;

struct Figure {
  const char* name;
  const char* key;
  bool nested;  // in JSON, where it stands in the object `bubble`
  double (*of)(const Compared& compared);
  std::string (*text)(const Compared& compared);
};

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.4g", value);
  return text;
}

constexpr Figure kFigures[] = {
    {"bubble (span)", "bubble_span", true, [](const Compared& c) { return c.timeline.bubble_span; },
     [](const Compared& c) { return number(c.timeline.bubble_span); }},
    {"bubble (makespan)", "bubble", true,
     [](const Compared& c) { return c.timeline.bubble_makespan; },
     [](const Compared& c) { return number(c.timeline.bubble_makespan); }},
    {"span", "span", false, [](const Compared& c) { return c.timeline.span; },
     [](const Compared& c) { return pictures::time_text(c.timeline.span, c.timeline.unit); }},
    {"makespan", "makespan", false, [](const Compared& c) { return c.timeline.makespan; },
     [](const Compared& c) { return pictures::time_text(c.timeline.makespan, c.timeline.unit); }},
    {"peak", "peak", false, [](const Compared& c) { return c.peak; },
     [](const Compared& c) { return number(c.peak); }},
    {"memory", "memory", false, [](const Compared& c) { return static_cast<double>(c.bytes); },
     [](const Compared& c) { return bytes_text(c.bytes); }},
    {"traffic", "traffic", false, [](const Compared& c) { return static_cast<double>(c.traffic); },
     [](const Compared& c) { return bytes_text(c.traffic); }},
    {"lines", "lines", false, [](const Compared& c) { return static_cast<double>(c.lines); },
     [](const Compared& c) { return std::to_string(c.lines); }},
};

const Figure& figure_of(std::string_view key) {
  return *std::find_if(std::begin(kFigures), std::end(kFigures),
                       [&](const Figure& figure) { return key == figure.key; });
}

/// Lines that say something.
std::size_t lines_of(std::string_view text) {
  std::size_t lines = 0;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    const std::size_t first = line.find_first_not_of(" \t\r");
    if (first != std::string_view::npos && !line.substr(first).starts_with("//")) ++lines;
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

}  // namespace

std::pair<std::string, std::string> taken_apart(const std::string& word) {
  const std::size_t colon = word.rfind(".pipe:");
  if (colon == std::string::npos) return {word, ""};
  return {word.substr(0, colon + 5), word.substr(colon + 6)};
}

Compared compared(std::string name, Timeline timeline, const dag::Dag& plan,
                  std::string_view declaration) {
  Compared row{.name = std::move(name), .timeline = std::move(timeline)};
  for (const Timeline::Rank& rank : row.timeline.ranks) row.peak = std::max(row.peak, rank.peak);
  row.bytes = passes::peak_memory(plan).bytes;
  row.traffic = passes::traffic(plan);
  row.settings = plan.settings;
  row.lines = lines_of(declaration);
  return row;
}

std::string_view declaration_text(const service::Compilation& compilation,
                                  const std::string& name) {
  const auto declared = compilation.declared(name);
  if (!declared || !declared->range.file.valid()) return {};
  return compilation.context()
      .locations.files()
      .text(declared->range.file)
      .substr(declared->range.begin, declared->range.end - declared->range.begin);
}

std::optional<Compared> look_at(service::Compilation& compilation, const Look& look,
                                std::vector<bool>& taken, DiagnosticSink& sink) {
  if (!compilation.open(look.input, sink)) return std::nullopt;
  if (compilation.pir()) {
    sink.report(
            Code::unknown_subject, SourceRange(),
            "`{}` is a plan and not a program: `compare` needs .pipe files or schedules of the standard library",
            look.input)
        .hint("`piper simulate {}` has its figures", look.input);
    return std::nullopt;
  }
  // Each gets the overrides that it takes: `v` is no parameter of every schedule.
  const auto declared = compilation.declared(look.name);
  std::vector<lower::Override> given;
  for (std::size_t i = 0; i < look.overrides.size(); ++i) {
    const bool takes = !declared || declared->takes(look.overrides[i].name);
    taken[i] = taken[i] || takes;
    if (takes) given.push_back(look.overrides[i]);
  }
  compilation.set_overrides(std::move(given));
  auto subject = compilation.subject(look.name, false, sink);
  if (!subject) return std::nullopt;
  const auto dag = compilation.compile(*subject, {}, sink);
  if (!dag) return std::nullopt;
  auto timeline = simulate(look.costs, *dag, sink);
  if (!timeline) return std::nullopt;
  Compared row =
      compared(look.shown, std::move(*timeline), *dag, declaration_text(compilation, look.name));
  row.by_itself = !subject->is_train;
  if (look.picture)
    row.picture =
        pictures::make_picture(look.shown, row.timeline, &*dag, compilation.context().locations);
  return row;
}

namespace {

/// The least of each figure, which several may have; of equal sums of different order both are.
bool is_best(const Figure& figure, const std::list<Compared>& all, const Compared& one) {
  const double own = figure.of(one);
  return std::all_of(all.begin(), all.end(), [&](const Compared& other) {
    return own <= figure.of(other) + 1e-9 * std::max(1.0, own);
  });
}

bool is_shown(const Figure& figure, const std::list<Compared>& all) {
  return std::string_view(figure.name) != "peak" ||
         all.front().timeline.source == Timeline::Source::operations;
}

/// The device of the plans, unless it is the default; with names if they differ.
std::string planned_for_text(const std::list<Compared>& all) {
  std::string names, planned;
  std::size_t count = 0;
  for (const Compared& one : all) {
    const std::string text = directive::planned_for(one.settings.device);
    if (text.empty()) continue;
    planned = text;
    names += (names.empty() ? " of `" : ", `") + one.name + "`";
    ++count;
  }
  return count == 0 ? "" : "memory" + (count < all.size() ? names : "") + planned + "\n";
}

}  // namespace

double figure(const Compared& one, std::string_view key) { return figure_of(key).of(one); }
std::string figure_text(const Compared& one, std::string_view key) {
  return figure_of(key).text(one);
}

std::vector<std::string> alternatives(const lower::Override& size) {
  std::vector<std::string> values;
  for (std::size_t at = 0; at <= size.value.size();) {
    const std::size_t end = std::min(size.value.find(',', at), size.value.size());
    values.push_back(size.value.substr(at, end - at));
    if (values.back().empty() || values.back().find_first_not_of("0123456789") != std::string::npos)
      return {size.value};
    at = end + 1;
  }
  return values;
}

std::vector<Sizes> sweep(std::span<const lower::Override> overrides) {
  std::vector<Sizes> all = {{}};
  for (const lower::Override& size : overrides) {
    const std::vector<std::string> values = alternatives(size);
    std::vector<Sizes> next;
    for (const Sizes& sizes : all) {
      for (const std::string& value : values) {
        next.push_back(sizes);
        next.back().overrides.push_back({size.name, value});
        if (values.size() > 1) next.back().name += " " + size.name + "=" + value;
      }
    }
    all = std::move(next);
  }
  return all;
}

std::string comparison_text(const std::list<Compared>& all) {
  std::vector<std::vector<std::string>> rows;
  std::vector<std::string> head = {""};
  for (const Figure& figure : kFigures) {
    if (is_shown(figure, all)) head.push_back(std::string(figure.name) + " ");
  }
  rows.push_back(std::move(head));
  for (const Compared& one : all) {
    std::vector<std::string> row = {one.name};
    for (const Figure& figure : kFigures) {
      if (is_shown(figure, all))
        row.push_back(figure.text(one) + (all.size() > 1 && is_best(figure, all, one) ? "*" : " "));
    }
    rows.push_back(std::move(row));
  }
  std::string text = pictures::text_table(rows, {true});
  const auto any = [&](const auto& holds) { return std::any_of(all.begin(), all.end(), holds); };
  if (any([](const Compared& one) { return pictures::runs_groups_in_turn(one.timeline); }))
    text += pictures::kGroupsInTurn;
  for (const Timeline::Stages stages : {Timeline::Stages::weighed, Timeline::Stages::equal}) {
    const bool shown = any([&](const Compared& one) {
      return one.timeline.source == Timeline::Source::operations && one.timeline.stages == stages;
    });
    if (shown)
      text += std::string(text_of(stages)) +
              (stages == Timeline::Stages::weighed &&
                       any([](const Compared& one) { return one.by_itself; })
                   ? " in trains"
                   : "") +
              "\n";
  }
  text += planned_for_text(all);
  if (any([](const Compared& one) { return one.by_itself; }))
    text += of_small_model(all.front().timeline.unit);
  return text;
}

llvm::json::Array comparison_json(const std::list<Compared>& all) {
  using namespace llvm::json;
  Array schedules;
  for (const Compared& one : all) {
    Object object{{"name", fixUTF8(one.name)},
                  {"ranks", static_cast<std::int64_t>(one.timeline.ranks.size())},
                  {"unit", one.timeline.unit == Timeline::Unit::cost ? "cost" : "seconds"},
                  {"bubble", Object{{"makespan", one.timeline.bubble_makespan},
                                    {"span", one.timeline.bubble_span}}}};
    Array best;
    for (const Figure& figure : kFigures) {
      if (!is_shown(figure, all)) continue;
      if (!figure.nested) object[figure.key] = figure.of(one);
      if (is_best(figure, all, one)) best.push_back(figure.name);
    }
    object["device"] = directive::kPlatformNames[static_cast<std::size_t>(one.settings.device)];
    object["best"] = std::move(best);
    schedules.push_back(std::move(object));
  }
  return schedules;
}

}  // namespace piper::views
