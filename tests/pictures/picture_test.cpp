// Pictures of timelines: everything drawn matches the timeline, read back from the written text.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <regex>
#include <sstream>

#include "frontend/pictures/grid_text.h"
#include "frontend/pictures/packed.h"
#include "frontend/pictures/screen.h"
#include "frontend/pictures/shade.h"
#include "frontend/pictures/timeline_json.h"
#include "frontend/pictures/timeline_page.h"
#include "frontend/pictures/timeline_svg.h"
#include "frontend/pictures/timeline_text.h"
#include "frontend/service/compilation.h"
#include "frontend/views/simulate_view.h"
#include "llvm/Support/Base64.h"
#include "llvm/Support/Compression.h"
#include "passes/simulate/actions.h"
#include "passes/simulate/operations.h"
#include "tests/pictures/sample_timeline.h"
#include "tests/pictures/xml.h"

namespace piper::test {
namespace {

using pictures::Picture;

Picture picture_of(passes::Timeline timeline, std::string title = "sample") {
  const LocationTable locations;
  return pictures::make_picture(std::move(title), std::move(timeline), nullptr, locations);
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

std::size_t count(std::string_view text, std::string_view what) {
  std::size_t found = 0;
  for (std::size_t at = text.find(what); at != std::string_view::npos;
       at = text.find(what, at + what.size()))
    ++found;
  return found;
}

// ---- columns

/// The reader of packed.h, as the page has it.
std::vector<double> unpack(std::string_view bytes, const llvm::json::Object& place) {
  std::vector<double> out;
  auto at = static_cast<std::size_t>(*place.getInteger("at"));
  std::int64_t before = 0;
  for (std::int64_t i = 0; i < *place.getInteger("count"); ++i) {
    std::uint64_t value = 0;
    unsigned shift = 0, byte = 0;
    do {
      byte = static_cast<unsigned char>(bytes[at++]);
      value |= std::uint64_t{byte & 127} << shift;
      shift += 7;
    } while (byte > 127);
    before += value % 2 ? -static_cast<std::int64_t>(value / 2) - 1
                        : static_cast<std::int64_t>(value / 2);
    out.push_back(static_cast<double>(before) * place.getNumber("tick").value_or(1));
  }
  return out;
}

std::string inflated(llvm::StringRef blob, llvm::StringRef encoding) {
  std::vector<char> raw;
  EXPECT_FALSE(static_cast<bool>(llvm::decodeBase64(blob, raw)));
  if (encoding == "raw") return {raw.begin(), raw.end()};
  llvm::SmallVector<std::uint8_t> bytes;
  EXPECT_FALSE(static_cast<bool>(llvm::compression::zlib::decompress(
      llvm::ArrayRef(reinterpret_cast<const std::uint8_t*>(raw.data()), raw.size()), bytes,
      std::size_t{64} << 20)));
  return {bytes.begin(), bytes.end()};
}

std::vector<std::string> unpack_texts(const std::string& bytes, const llvm::json::Object& place) {
  std::vector<std::string> texts;
  const std::size_t first = static_cast<std::size_t>(*place.getInteger("at")),
                    end = first + static_cast<std::size_t>(*place.getInteger("size"));
  for (std::size_t at = first; at < end; at += texts.back().size() + 1)
    texts.emplace_back(bytes.c_str() + at);
  return texts;
}

TEST(Packed, TextsReadBackAsTheyWere) {
  const std::vector<std::vector<std::string>> all = {
      {}, {""}, {"stage[0]", "", "a/b.pipe:3"}, {"\u00e9"}};
  pictures::Packer packer;
  packer.add(std::vector<std::int64_t>{1, 2, 3});
  std::vector<llvm::json::Object> places;
  for (const auto& texts : all) places.push_back(packer.add_texts(texts));
  const std::string bytes = inflated(packer.text(), packer.encoding());
  for (std::size_t i = 0; i < all.size(); ++i)
    EXPECT_EQ(unpack_texts(bytes, places[i]), all[i]) << i;
}

TEST(Packed, ReadsBackAsItWas) {
  const std::vector<std::vector<std::int64_t>> integers = {
      {},
      {0},
      {5, -5, 5},
      {0, 1, 63, 64, 127, 128, -1, -64, -65},
      {(std::int64_t{1} << 52), -(std::int64_t{1} << 52), 0}};
  const std::vector<std::vector<double>> times = {
      {},       {0, 0}, {0, 1, 2.5, 1e6}, {0.1, 0.3, 12.7}, {1e-10, 3e-10}, {1.0 / 3, 2.0 / 7, 1e3},
      {1e-6, 5}};
  pictures::Packer packer;
  std::vector<llvm::json::Object> places;
  for (const auto& column : integers) places.push_back(packer.add(column));
  for (const auto& column : times) places.push_back(packer.add_times(column));
  const std::string bytes = inflated(packer.text(), packer.encoding());
  for (std::size_t i = 0; i < integers.size(); ++i)
    EXPECT_EQ(unpack(bytes, places[i]), std::vector<double>(integers[i].begin(), integers[i].end()))
        << i;
  for (std::size_t i = 0; i < times.size(); ++i) {
    const std::vector<double> read = unpack(bytes, places[integers.size() + i]);
    ASSERT_EQ(read.size(), times[i].size());
    for (std::size_t k = 0; k < read.size(); ++k)
      EXPECT_NEAR(read[k], times[i][k], 1e-11 * times[i].back()) << i << ", " << k;
  }
}

// ---- page

llvm::json::Object data_of(const std::string& page) {
  static constexpr std::string_view kBegin = "<script type=\"application/json\" id=\"data\">";
  const std::size_t begin = page.find(kBegin) + kBegin.size();
  auto value = llvm::json::parse(page.substr(begin, page.find("</script>", begin) - begin));
  if (!value) {
    ADD_FAILURE() << llvm::toString(value.takeError());
    return {};
  }
  return *value->getAsObject();
}

TEST(Page, HoldsEveryEntryOfEveryTimeline) {
  std::vector<Picture> pictures;
  pictures.push_back(
      picture_of(gpipe_timeline(4, 8), "</script><script>alert(1)</script> & \"quoted\""));
  pictures.push_back(picture_of(overlapped_timeline()));
  pictures.push_back(picture_of(gpipe_timeline(1, 1)));
  pictures.push_back(picture_of(passes::Timeline()));
  const llvm::json::Object data = data_of(pictures::timeline_page(pictures));
  const std::string bytes = inflated(*data.getString("blob"), *data.getString("encoding"));
  ASSERT_EQ(data.getArray("pictures")->size(), pictures.size());
  for (std::size_t i = 0; i < pictures.size(); ++i) {
    const passes::Timeline& timeline = pictures[i].timeline;
    const llvm::json::Object& one = *(*data.getArray("pictures"))[i].getAsObject();
    EXPECT_EQ(*one.getString("title"), pictures[i].title);
    EXPECT_EQ(one.getArray("ranks")->size(), timeline.ranks.size());
    const auto column = [&](llvm::StringRef name) {
      return unpack(bytes, *one.getObject("columns")->getObject(name));
    };
    const std::vector<double> step = column("step"), length = column("length"),
                              operation = column("operation"), cause = column("cause"),
                              mb = column("mb");
    ASSERT_EQ(step.size(), timeline.size());
    ASSERT_EQ(mb.size(), timeline.operations.size());
    for (const passes::Timeline::Lane& lane : timeline.lanes) {
      double start = 0;
      for (std::uint32_t e = lane.first; e < lane.end; ++e) {
        start += step[e];
        EXPECT_NEAR(start, timeline.start[e], 1e-9 * timeline.makespan);
        EXPECT_NEAR(start + length[e], timeline.finish[e], 1e-9 * timeline.makespan);
        EXPECT_EQ(operation[e], timeline.operation[e]);
        EXPECT_EQ(mb[static_cast<std::size_t>(operation[e])], timeline.operation_of(e).mb);
        EXPECT_EQ(
            cause[e] == 0 ? passes::Timeline::kNone : static_cast<std::uint32_t>(e - cause[e]),
            timeline.cause[e]);
      }
    }
    EXPECT_EQ(column("from").size(), timeline.messages.size());
    EXPECT_EQ(column("curve_time").size(), timeline.curve_time.size());
  }
}

constexpr const char* kSlices =
    "schedule slices(p: axis) {\n    partition model into stage: p\n    split batch into mb: 2, slice: 3\n"
    "    for s in 0..p { place stage[s] on p[s] }\n}\n";

TEST(Page, SaysWhatEachEntryReadsAndIsCalled) {
  for (const char* input : {"zbv", "dual_pipe_v", "examples/gpt/gpt.pipe", "slices.pipe"}) {
    const source::RealFileSystem disk;
    source::MemoryFileSystem memory;
    memory.add("slices.pipe", kSlices);
    const bool sliced = std::string_view(input) == "slices.pipe";
    const source::FileSystem& files =
        sliced ? static_cast<const source::FileSystem&>(memory) : disk;
    std::vector<lower::Override> sizes;
    if (!std::string_view(input).ends_with("gpt.pipe")) sizes.push_back({"p", "4"});
    if (!std::string_view(input).ends_with(".pipe")) sizes.push_back({"m", "8"});
    service::Compilation compilation(files, sizes);
    DiagnosticSink sink(compilation.context().locations);
    ASSERT_TRUE(compilation.open(input, sink));
    auto subject = compilation.subject(sliced ? "slices" : "", false, sink);
    ASSERT_TRUE(subject) << render_text(sink.sorted(), compilation.context().locations.files());
    const auto dag = compilation.compile(*subject, {}, sink);
    ASSERT_TRUE(dag) << render_text(sink.sorted(), compilation.context().locations.files());
    for (const bool plan : {false, true}) {
      auto timeline = plan ? passes::simulate_actions(*dag, passes::action_costs(*dag, {}))
                           : *passes::simulate_operations(*dag, {.pair = 3}, sink);
      const Picture picture = pictures::make_picture(input, std::move(timeline), &*dag,
                                                     compilation.context().locations);
      const llvm::json::Object data = data_of(pictures::timeline_page(std::span(&picture, 1)));
      const std::string bytes = inflated(*data.getString("blob"), *data.getString("encoding"));
      const llvm::json::Object& one = *(*data.getArray("pictures"))[0].getAsObject();
      const auto column = [&](llvm::StringRef name) {
        return unpack(bytes, *one.getObject("columns")->getObject(name));
      };
      const std::vector<double> inputs = column("inputs"), read = column("input"),
                                group = column("group"), why = column("why"), pass = column("pass"),
                                mb = column("mb"), slice = column("slice"), part = column("part"),
                                cell = column("cell");
      ASSERT_EQ(read.size(), picture.inputs.size());
      ASSERT_GT(read.size(), 0u);
      std::size_t at = 0;
      for (std::uint32_t e = 0; e < picture.timeline.size(); ++e) {
        ASSERT_EQ(inputs[e], static_cast<double>(picture.inputs_of(e).size()));
        for (const std::uint32_t from : picture.inputs_of(e)) EXPECT_EQ(e - read[at++], from);
        if (dag::is_recv(picture.timeline.operation_of(e).kind)) {
          ASSERT_EQ(picture.inputs_of(e).size(), 1u);
          EXPECT_TRUE(dag::is_send(picture.timeline.operation_of(picture.inputs_of(e)[0]).kind));
        }
        EXPECT_EQ(group[e], picture.timeline.group[e] == Picture::kNone
                                ? 0
                                : picture.timeline.group[e] + 1.0);
        EXPECT_EQ((*data.getArray("why"))[static_cast<std::size_t>(why[e])].getAsString()->str(),
                  passes::text_of(picture.timeline.why[e]));
      }
      EXPECT_EQ(std::any_of(picture.cells.begin(), picture.cells.end(),
                            [](const std::string& name) { return name.ends_with("1/2"); }),
                sliced);
      // As the page puts names together (`cellOf` of page.js).
      const std::vector<std::string> names = unpack_texts(bytes, *one.getObject("names"));
      for (std::size_t id = 0; id < picture.cells.size(); ++id) {
        std::string name = names[static_cast<std::size_t>(cell[id])];
        if (pass[id] > 0) name += std::to_string(static_cast<int>(mb[id]));
        if (pass[id] > 0 && slice[id] > 0)
          name += "/" + std::to_string(static_cast<int>(slice[id]));
        if (pass[id] > 0 && part[id] > 0)
          name += "#" + std::to_string(static_cast<int>(part[id]) - 1);
        EXPECT_EQ(name, picture.cells[id]);
      }
    }
  }
}

TEST(Page, NamesPassesAsTheLanguageDoes) {
  const llvm::json::Object data = data_of(pictures::timeline_page({}));
  std::vector<std::string> names;
  for (const llvm::json::Value& name : *data.getArray("passes"))
    names.push_back(name.getAsString()->str());
  EXPECT_EQ(names, (std::vector<std::string>{"F", "R", "B", "BI", "BW"}));
}

TEST(Page, AsksForNothingFromAnywhere) {
  const std::string page =
      pictures::timeline_page(std::vector{picture_of(gpipe_timeline(4, 8), "<b>&")});
  for (const char* asks : {"http:", "https:", "//cdn", " src=", "url(", "@import", "<link",
                           "fetch(", "XMLHttpRequest", "WebSocket", "import("}) {
    EXPECT_EQ(page.find(asks), std::string::npos) << asks;
  }
  EXPECT_NE(page.find("<title>&lt;b&gt;&amp;</title>"), std::string::npos);
  EXPECT_EQ(count(page, "</script>"), 2u);
  for (const char* mark : {"@title@", "@style@", "@script@", "@data@"})
    EXPECT_EQ(page.find(mark), std::string::npos) << mark;
}

TEST(Page, IsSmall) {
  const std::size_t empty = pictures::timeline_page({}).size();
  const Picture picture = picture_of(gpipe_timeline(64, 256));
  EXPECT_LT(pictures::timeline_page(std::span(&picture, 1)).size() - empty,
            8 * picture.timeline.size());
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
      bars += count(element.attributes.at("d"), "M");
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
  const auto simulated = llvm::json::parse(views::simulation_json(timeline, locations));
  EXPECT_EQ(sum_of(*(*simulated->getAsObject()->getArray("idle_parts"))[0].getAsObject()), total);
  // `rank 0  work idle before ... imbalance bytes planned`: the parts stand behind their sum.
  const std::vector<std::string> lines = lines_of(views::simulation_text(timeline, locations));
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
    for (const std::string& line : lines_of(views::simulation_text(timeline, locations))) {
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
  EXPECT_EQ(count(pictures::grid_text(rows, {.columns = 3, .colours = false}, 1), "time "), 9u);
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
