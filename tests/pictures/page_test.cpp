// Pages with timelines: the packed columns and texts, and the data that a page holds, read back.
#include <gtest/gtest.h>

#include <algorithm>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/pictures/packed.h"
#include "frontend/pictures/timeline_page.h"
#include "frontend/service/compilation.h"
#include "llvm/Support/Base64.h"
#include "llvm/Support/Compression.h"
#include "llvm/Support/JSON.h"
#include "passes/simulate/actions.h"
#include "passes/simulate/operations.h"
#include "tests/pictures/sample_timeline.h"
#include "tests/pictures/xml.h"

namespace piper::test {
namespace {

using pictures::Picture;

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
  EXPECT_EQ(count_of(page, "</script>"), 2u);
  for (const char* mark : {"@title@", "@style@", "@script@", "@data@"})
    EXPECT_EQ(page.find(mark), std::string::npos) << mark;
}

TEST(Page, IsSmall) {
  const std::size_t empty = pictures::timeline_page({}).size();
  const Picture picture = picture_of(gpipe_timeline(64, 256));
  EXPECT_LT(pictures::timeline_page(std::span(&picture, 1)).size() - empty,
            8 * picture.timeline.size());
}

}  // namespace
}  // namespace piper::test
