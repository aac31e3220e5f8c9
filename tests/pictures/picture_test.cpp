// Pictures of timelines: everything drawn matches the timeline, read back from the written text.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdio>
#include <map>
#include <optional>
#include <regex>
#include <sstream>

#include "frontend/pictures/grid_text.h"
#include "frontend/pictures/shade.h"
#include "frontend/pictures/timeline_json.h"
#include "frontend/pictures/timeline_svg.h"
#include "frontend/pictures/timeline_text.h"
#include "frontend/views/simulate_view.h"
#include "llvm/Support/JSON.h"
#include "tests/pictures/sample_timeline.h"
#include "tests/pictures/xml.h"

namespace piper::test {
namespace {

using pictures::Picture;

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

// ---- image

TEST(Svg, HasARectangleForEveryEntryInAPathForEveryColour) {
  struct Case {
    passes::Timeline timeline;
    std::size_t paths;  // of bars
  };
  std::vector<Case> cases;
  cases.push_back({gpipe_timeline(4, 8), 2});
  cases.push_back({gpipe_timeline(32, 64), 2});
  cases.push_back({overlapped_timeline(), 3});
  cases.push_back({passes::Timeline(), 0});
  for (Case& each : cases) {
    const Picture picture = picture_of(std::move(each.timeline), "a < b & \"c\" \x01");
    std::string error;
    const auto elements = read_xml(pictures::timeline_svg(picture), error);
    ASSERT_TRUE(elements) << error;
    std::size_t bars = 0, paths = 0;
    for (const XmlElement& element : *elements) {
      for (const auto& [name, value] : element.attributes) {
        EXPECT_TRUE(name == "xmlns" || value.find("http") == std::string::npos);
        if (name != "class" && name != "xmlns") {
          EXPECT_EQ(value.find("nan"), std::string::npos) << value;
        }
      }
      if (element.name != "path" || !element.attributes.contains("fill")) continue;
      ++paths;
      bars += count_of(element.attributes.at("d"), "M");
    }
    EXPECT_EQ(bars, picture.timeline.size());
    EXPECT_EQ(paths, each.paths);
  }
}

TEST(Svg, HasFewElementsHoweverManyEntries) {
  const Picture picture = picture_of(gpipe_timeline(64, 256));
  std::string error;
  const std::string svg = pictures::timeline_svg(picture);
  const auto elements = read_xml(svg, error);
  ASSERT_TRUE(elements) << error;
  EXPECT_LT(elements->size(), 64u + 100u);
  EXPECT_LT(svg.size(), 40 * picture.timeline.size());
}

/// x, y, width and height of each bar of a colour.
std::vector<std::array<double, 4>> bars_of(const std::vector<XmlElement>& elements,
                                           std::string_view shade) {
  static const std::regex kRect("M([-0-9.]+) ([-0-9.]+)h([-0-9.]+)v([-0-9.]+)h-[0-9.]+z");
  std::vector<std::array<double, 4>> bars;
  for (const XmlElement& element : elements) {
    if (element.name != "path" || !element.attributes.contains("fill") ||
        element.attributes.at("class") != shade)
      continue;
    const std::string& path = element.attributes.at("d");
    for (std::sregex_iterator at(path.begin(), path.end(), kRect), end; at != end; ++at)
      bars.push_back(
          {std::stod((*at)[1]), std::stod((*at)[2]), std::stod((*at)[3]), std::stod((*at)[4])});
  }
  return bars;
}

/// Operations that run together are stacked in the height of one lane.
TEST(Svg, MembersOfAGroupShareTheHeightOfALane) {
  std::string error;
  const auto elements = read_xml(pictures::timeline_svg(picture_of(overlapped_timeline())), error);
  ASSERT_TRUE(elements) << error;
  const auto forward = bars_of(*elements, "F"), backward = bars_of(*elements, "B");
  ASSERT_EQ(forward.size(), 3u);
  ASSERT_EQ(backward.size(), 1u);
  EXPECT_EQ(forward[1][0], backward[0][0]);
  EXPECT_NEAR(forward[1][1], forward[0][1], 1e-6);
  EXPECT_NEAR(backward[0][1], forward[1][1] + forward[1][3], 1.5);
  EXPECT_LE(backward[0][1] + backward[0][3], forward[0][1] + forward[0][3] + 1);
}

/// A bar too narrow for its cell shows the microbatch alone, and no label is wider than its bar.
TEST(Svg, NarrowBarsHaveTheirMicrobatch) {
  for (const double longest : {1.0, 3.0}) {
    passes::Timeline timeline = gpipe_timeline(1, 12);
    // Forwards of the least width, backwards `longest` times as long.
    for (std::uint32_t e = 0; e < timeline.size(); ++e) {
      const bool backward = e >= 12;
      timeline.start[e] = backward ? 12 + (e - 12) * longest : e;
      timeline.finish[e] = timeline.start[e] + (backward ? longest : 0.3);
    }
    timeline.makespan = timeline.finish.back();
    std::string error;
    const std::string svg = pictures::timeline_svg(picture_of(timeline));
    const auto elements = read_xml(svg, error);
    ASSERT_TRUE(elements) << error;
    static const std::regex kLabel("class=\"cell( light)?\">([^<]*)<");
    std::vector<std::string> labels;
    for (std::sregex_iterator at(svg.begin(), svg.end(), kLabel), end; at != end; ++at)
      labels.push_back((*at)[2]);
    std::vector<std::string> expected;
    const double width = bars_of(*elements, "F")[0][2] + 0.7;
    for (const char* pass : {"F", "B"}) {
      const double each = pass[0] == 'F' ? width : width / 0.3 * longest;
      for (int mb = 0; mb < 12; ++mb) {
        std::string label = pass + std::to_string(mb);
        if (static_cast<double>(label.size()) * 5.5 + 1 > each) label.erase(0, 1);
        if (static_cast<double>(label.size()) * 5.5 + 1 <= each) expected.push_back(label);
      }
    }
    EXPECT_EQ(labels, expected) << longest;
  }
}

// ---- data

TEST(Json, SaysWhatTheTimelineSays) {
  for (passes::Timeline timeline : {gpipe_timeline(3, 5), overlapped_timeline()}) {
    const Picture picture = picture_of(std::move(timeline));
    auto value = llvm::json::parse(pictures::timeline_json(picture));
    ASSERT_TRUE(static_cast<bool>(value)) << llvm::toString(value.takeError());
    const llvm::json::Object& root = *value->getAsObject();
    EXPECT_EQ(root.getInteger("schema"), 1);
    EXPECT_EQ(root.getNumber("makespan"), picture.timeline.makespan);
    const llvm::json::Object& entries = *root.getObject("entries");
    for (const char* column : {"operation", "start", "end", "group", "cause", "why"})
      EXPECT_EQ(entries.getArray(column)->size(), picture.timeline.size()) << column;
    for (std::size_t e = 0; e < picture.timeline.size(); ++e) {
      EXPECT_EQ((*entries.getArray("start"))[e].getAsNumber(), picture.timeline.start[e]);
      EXPECT_EQ((*entries.getArray("cause"))[e].getAsNull().has_value(),
                picture.timeline.cause[e] == passes::Timeline::kNone);
    }
    EXPECT_EQ(root.getArray("operations")->size(), picture.timeline.operations.size());
  }
}

/// Every kind of idle time, each with its own duration: powers of two, so that every sum is unique.
passes::Timeline with_every_part() {
  std::array<double, sizeof(passes::Timeline::Idle) / sizeof(double)> parts;
  for (std::size_t i = 0; i < parts.size(); ++i) parts[i] = static_cast<double>(1 << i);
  passes::Timeline timeline = gpipe_timeline(2, 3);
  for (passes::Timeline::Rank& rank : timeline.ranks)
    rank.idle = std::bit_cast<passes::Timeline::Idle>(parts);
  timeline.source = passes::Timeline::Source::plan;
  EXPECT_EQ(timeline.ranks[0].idle.total(), static_cast<double>((1 << parts.size()) - 1));
  return timeline;
}

double sum_of(const llvm::json::Object& object) {
  double sum = 0;
  for (const auto& [name, value] : object) sum += *value.getAsNumber();
  return sum;
}

TEST(Idle, EveryPartIsShownWhereverPartsAre) {
  const passes::Timeline timeline = with_every_part();
  const double total = timeline.ranks[0].idle.total();
  const auto drawn = llvm::json::parse(pictures::timeline_json(picture_of(timeline)));
  EXPECT_EQ(sum_of(*(*drawn->getAsObject()->getArray("ranks"))[0].getAsObject()->getObject("idle")),
            total);
  const LocationTable locations;
  const auto simulated = llvm::json::parse(views::simulation_json(timeline, {}, locations));
  EXPECT_EQ(sum_of(*(*simulated->getAsObject()->getArray("idle_parts"))[0].getAsObject()), total);
  // `rank 0  work idle before ... imbalance bytes planned`: the parts stand behind their sum.
  const std::vector<std::string> lines = lines_of(views::simulation_text(timeline, {}, locations));
  const auto row = std::find_if(lines.begin(), lines.end(),
                                [](const std::string& line) { return line.starts_with("rank 0"); });
  ASSERT_NE(row, lines.end());
  std::istringstream words(row->substr(6));
  double work = 0, idle = 0, parts = 0;
  words >> work >> idle;
  EXPECT_EQ(idle, total);
  for (double part = 0; parts < total && words >> part;) parts += part;
  EXPECT_EQ(parts, total) << *row;
}

/// If entries overlap, as operations of several segments do, time counts once: parts and waits add
/// up to the makespan.
TEST(Idle, PartsOfTheCriticalPathAreTheMakespan) {
  // F0 F1 of rank 0, F1 B0 B1 of rank 1, B1 of rank 0.
  passes::Timeline timeline = gpipe_timeline(2, 2);
  const LocationTable locations;
  const auto parts = [&] {
    for (const std::string& line : lines_of(views::simulation_text(timeline, {}, locations))) {
      if (line.starts_with("critical path: ")) return line;
    }
    return std::string();
  };
  const std::string before = parts();
  double forward = 0, backward = 0;
  ASSERT_EQ(std::sscanf(before.c_str(), "critical path: B %lf, F %lf", &backward, &forward), 2)
      << before;
  EXPECT_EQ(forward + backward, timeline.makespan);
  timeline.start[timeline.critical.back()] -= 1;  // it began while the one before it ran
  EXPECT_EQ(parts(), before);
  timeline.start[timeline.critical.back()] += 1.5;
  ASSERT_EQ(std::sscanf(parts().c_str(), "critical path: B %lf, F %lf, on the way 0.5", &backward,
                        &forward),
            2)
      << parts();
  EXPECT_EQ(forward + backward + 0.5, timeline.makespan);
}

/// The fields that the format requires for each kind of event; a slice lies within its neighbours.
TEST(Perfetto, EventsAreThoseOfTheFormat) {
  std::vector<Picture> pictures;
  pictures.push_back(picture_of(gpipe_timeline(4, 6), "planned"));
  pictures.push_back(picture_of(overlapped_timeline(), "measured"));
  auto value = llvm::json::parse(pictures::perfetto_trace(pictures));
  ASSERT_TRUE(static_cast<bool>(value)) << llvm::toString(value.takeError());
  std::map<std::string, std::size_t> kinds;
  std::map<std::int64_t, std::string> processes;
  // Until when, by process and thread.
  std::map<std::pair<std::int64_t, std::int64_t>, double> busy;
  std::map<std::int64_t, double> flows;
  for (const llvm::json::Value& each : *value->getAsObject()->getArray("traceEvents")) {
    const llvm::json::Object& event = *each.getAsObject();
    const std::string kind = event.getString("ph")->str();
    ++kinds[kind];
    for (const char* key : {"pid", "tid", "ts"})
      EXPECT_TRUE(event.getNumber(key).has_value()) << key;
    EXPECT_TRUE(event.getString("name").has_value());
    const double time = *event.getNumber("ts");
    if (kind == "M" && *event.getString("name") == "process_name")
      processes[*event.getInteger("pid")] = event.getObject("args")->getString("name")->str();
    if (kind == "X") {
      double& until = busy[{*event.getInteger("pid"), *event.getInteger("tid")}];
      EXPECT_GE(*event.getNumber("dur"), 0);
      EXPECT_TRUE(time >= until - 1e-6 || time + *event.getNumber("dur") <= until + 1e-6) << time;
      until = std::max(until, time + *event.getNumber("dur"));
    }
    if (kind == "s") flows[*event.getInteger("id")] = time;
    if (kind == "f") {
      ASSERT_TRUE(flows.contains(*event.getInteger("id")));
      EXPECT_LE(flows[*event.getInteger("id")], time);
    }
  }
  EXPECT_EQ(kinds["X"], pictures[0].timeline.size() + pictures[1].timeline.size());
  EXPECT_EQ(kinds["s"], pictures[0].timeline.messages.size());
  EXPECT_EQ(kinds["f"], kinds["s"]);
  EXPECT_EQ(kinds["C"], pictures[0].timeline.curve_time.size());
  EXPECT_EQ(processes.size(), 6u);
  EXPECT_EQ(processes[1], "planned: rank 0");
  EXPECT_EQ(processes[6], "measured: pp1 x 2");
}

// ---- text

TEST(Text, IsToScaleAndAsWideAsTheScreen) {
  const Picture picture = picture_of(gpipe_timeline(2, 2));  // makespan 9
  EXPECT_EQ(pictures::timeline_text(picture, {.columns = 36, .colours = false}),
            "rank 0  F0-F1-.........B0----B1----\n"
            "rank 1  ...F0-F1-B0----B1----......\n"
            "        0              5\n"
            "makespan 9, bubble 33.3 % of the span and 33.3 % of the makespan\n"
            "F forward  B backward\n");
  for (const std::size_t columns : {30, 80, 200}) {
    for (const bool colours : {false, true}) {
      const std::string text =
          pictures::timeline_text(picture_of(gpipe_timeline(16, 32)), {columns, colours});
      const std::vector<std::string> lines = lines_of(text);
      ASSERT_EQ(lines.size(), 16u + 3u);
      static const std::regex sgr("\x1b\\[[0-9;]*m");
      for (std::size_t r = 0; r < 16; ++r)
        EXPECT_LT(std::regex_replace(lines[r], sgr, "").size(), columns);
      EXPECT_EQ(text.find('\x1b') != std::string::npos, colours);
    }
  }
}

/// Each colour has two tones: one for a rank's first stage and one for its others.
TEST(Text, OtherStagesOfARankHaveAToneOfTheirOwn) {
  passes::Timeline timeline = gpipe_timeline(1, 4);
  timeline.names.push_back("stage[1]");
  for (std::size_t i = 0; i < timeline.operations.size(); i += 2)
    timeline.operations[i].name = timeline.operations[i].stage = 1;
  const std::string text =
      pictures::timeline_text(picture_of(timeline), {.columns = 60, .colours = true});
  for (const pictures::Shade shade : {pictures::Shade::forward, pictures::Shade::backward}) {
    for (const std::uint8_t colour :
         {pictures::row_of(shade).terminal, pictures::row_of(shade).terminal_other}) {
      EXPECT_NE(text.substr(0, text.find('\n')).find(";" + std::to_string(colour) + "m"),
                std::string::npos)
          << int{colour};
    }
  }
}

/// A cut goes back to where no cell lies over it, but not over more than half of a line.
TEST(Grid, LinesAreAtLeastHalfFull) {
  const auto inside = [](std::size_t size, std::initializer_list<std::size_t> clean) {
    std::vector<bool> all(size, true);
    for (const std::size_t column : clean) all[column] = false;
    return all;
  };
  EXPECT_EQ(pictures::fold(inside(16, {0}), 8), (std::vector<std::size_t>{0, 8, 16}));
  EXPECT_EQ(pictures::fold(inside(16, {0, 1}), 8), (std::vector<std::size_t>{0, 8, 16}));
  EXPECT_EQ(pictures::fold(inside(16, {0, 5}), 8), (std::vector<std::size_t>{0, 5, 13, 16}));
  EXPECT_EQ(pictures::fold(inside(16, {0, 5, 8}), 8), (std::vector<std::size_t>{0, 8, 16}));
  EXPECT_EQ(pictures::fold(inside(3, {0}), 0), (std::vector<std::size_t>{0, 1, 2, 3}));
}

std::vector<pictures::GridRow> rows_of_one_f_one_b() {
  const std::uint8_t f = 68, b = 71;
  return {{"rank 0",
           {{0, 1, "F0", false}, {1, 2, "F1", false}, {4, 6, "B0", false}, {7, 9, "B1", false}},
           {f, f, b, b}},
          {"rank 1",
           {{1, 2, "F0", false}, {2, 4, "B0", false}, {4, 5, "F1", false}, {5, 7, "B1", false}},
           {f, b, f, b}}};
}

TEST(Grid, IsFoldedBetweenCells) {
  const auto rows = rows_of_one_f_one_b();
  const std::string whole =
      "rank 0  F0 F1 .  .  B0    .  B1\n"
      "rank 1  .  F0 B0    F1 B1\n";
  EXPECT_EQ(pictures::grid_text(rows, {}, 1), whole);
  EXPECT_EQ(pictures::grid_text(rows, {.columns = 80, .colours = false}, 1), whole);
  EXPECT_EQ(pictures::grid_text(rows, {.columns = 24, .colours = false}, 1),
            "time 0\n"
            "rank 0  F0 F1 .  .\n"
            "rank 1  .  F0 B0\n"
            "\n"
            "time 4\n"
            "rank 0  B0    .  B1\n"
            "rank 1  F1 B1\n");
  // Four columns have room, and a cell goes over the end of the fourth.
  EXPECT_EQ(pictures::grid_text(rows, {.columns = 21, .colours = false}, 1),
            "time 0\n"
            "rank 0  F0 F1 .  .\n"
            "rank 1  .  F0 B0\n"
            "\n"
            "time 4\n"
            "rank 0  B0    .\n"
            "rank 1  F1 B1\n"
            "\n"
            "time 7\n"
            "rank 0  B1\n"
            "rank 1\n");
  // The time is that of the timeline, where columns have one.
  for (const auto& [column, says] :
       {std::pair(std::optional(0.5), "\ntime 3.5\n"), {std::optional<double>(), "\ncolumn 7\n"}}) {
    EXPECT_NE(pictures::grid_text(rows, {.columns = 21, .colours = false}, column).find(says),
              std::string::npos);
  }
  // A terminal too narrow for one unit of time still gets one at a time.
  EXPECT_EQ(count_of(pictures::grid_text(rows, {.columns = 3, .colours = false}, 1), "time "), 9u);
}

TEST(Grid, ColoursChangeNoLetter) {
  static const std::regex sgr("\x1b\\[[0-9;]*m"), blanks(" +\n");
  for (const std::size_t columns : {0, 20, 24, 80}) {
    const std::string coloured = pictures::grid_text(rows_of_one_f_one_b(), {columns, true}, 1);
    EXPECT_NE(coloured, pictures::grid_text(rows_of_one_f_one_b(), {columns, false}, 1));
    EXPECT_EQ(std::regex_replace(std::regex_replace(coloured, sgr, ""), blanks, "\n"),
              pictures::grid_text(rows_of_one_f_one_b(), {columns, false}, 1))
        << columns;
  }
}

}  // namespace
}  // namespace piper::test
