#include "frontend/pictures/timeline_page.h"

#include <algorithm>
#include <map>

#include "embedded/picture_page.h"
#include "frontend/pictures/layout.h"
#include "frontend/pictures/memory_view.h"
#include "frontend/pictures/packed.h"
#include "llvm/Support/JSON.h"

namespace piper::pictures {
namespace {

using llvm::json::Array;
using llvm::json::Object;
using passes::Timeline;

/// Any bytes as text of JSON.
std::string utf8(std::string_view text) { return llvm::json::fixUTF8(llvm::StringRef(text)); }

class Data {
 public:
  std::string run(std::span<const Picture> pictures) {
    Array all, shades, passes;
    for (const Pass pass : kAllPasses) passes.push_back(llvm::StringRef(pass_name(pass)));
    for (const Picture& picture : pictures) all.push_back(one(picture));
    for (std::size_t i = 0; i < kShades.size(); ++i) {
      const ShadeRow& row = kShades[i];
      shades.push_back(Object{
          {"name", llvm::StringRef(row.name)},
          {"text", legend_text(static_cast<Shade>(i))},
          {"colours", Array{llvm::StringRef(row.colours[0]), llvm::StringRef(row.colours[1])}}});
    }
    Array why;
    for (std::size_t i = 0; i <= static_cast<std::size_t>(Timeline::Why::window); ++i)
      why.push_back(llvm::StringRef(passes::text_of(static_cast<Timeline::Why>(i))));
    std::string text;
    llvm::raw_string_ostream(text) << llvm::json::Value(Object{{"schema", 1},
                                                               {"shades", std::move(shades)},
                                                               {"why", std::move(why)},
                                                               {"passes", std::move(passes)},
                                                               {"pictures", std::move(all)},
                                                               {"encoding", packer_.encoding()},
                                                               {"blob", packer_.text()}});
    // The text cannot end the element that contains it.
    std::string safe;
    safe.reserve(text.size());
    for (const char c : text) c == '<' ? safe += "\\u003c" : safe += c;
    return safe;
  }

 private:
  Object one(const Picture& picture) {
    const Timeline& timeline = picture.timeline;
    Array ranks, lanes, curves;
    std::vector<std::string> names, places;
    for (const Timeline::Rank& rank : timeline.ranks) {
      ranks.push_back(Object{{"name", utf8(rank_text(rank))},
                             {"lanes", Array{rank.first_lane, rank.end_lane}},
                             {"curves", Array{rank.first_curve, rank.end_curve}},
                             {"work", rank.work},
                             {"peak", rank.peak},
                             {"peak_bytes", rank.peak_bytes},
                             {"planned_bytes", rank.planned_bytes}});
    }
    for (const Timeline::Lane& lane : timeline.lanes)
      lanes.push_back(Object{{"name", utf8(lane.name)}, {"entries", Array{lane.first, lane.end}}});
    for (const Timeline::Curve& curve : timeline.curves) {
      curves.push_back(Object{
          {"class",
           curve.cls ? llvm::StringRef(dag::buffer_class_name(*curve.cls)) : llvm::StringRef("")},
          {"colour",
           llvm::StringRef(curve.cls ? colour_of(*curve.cls) : row_of(Shade::forward).colours[0])},
          {"points", Array{curve.first, curve.end}}});
    }
    for (const std::string& name : timeline.names) names.push_back(utf8(name));
    for (const std::string& place : picture.places) places.push_back(utf8(place));
    Object columns = entries(picture);
    operations(picture, columns, names);
    return Object{{"title", utf8(picture.title)},
                  {"figures", utf8(figures_text(timeline))},
                  {"unit", timeline.unit == Timeline::Unit::cost ? "cost" : "seconds"},
                  {"makespan", timeline.makespan},
                  {"ranks", std::move(ranks)},
                  {"lanes", std::move(lanes)},
                  {"curves", std::move(curves)},
                  {"names", packer_.add_texts(names)},
                  {"places", packer_.add_texts(places)},
                  {"columns", std::move(columns)}};
  }

  Object entries(const Picture& picture) {
    const Timeline& timeline = picture.timeline;
    std::vector<std::int64_t> cause, why, group, input, count;
    std::vector<double> gap, length;
    for (const Timeline::Lane& lane : timeline.lanes) {
      double before = 0;
      for (std::uint32_t e = lane.first; e < lane.end; ++e) {
        gap.push_back(timeline.start[e] - before);
        length.push_back(timeline.finish[e] - timeline.start[e]);
        before = timeline.start[e];
      }
    }
    for (std::uint32_t e = 0; e < timeline.size(); ++e) {
      // 0: there is none, as none is its own cause.
      cause.push_back(timeline.cause[e] == Picture::kNone ? 0
                                                          : std::int64_t{e} - timeline.cause[e]);
      why.push_back(static_cast<std::int64_t>(timeline.why[e]));
      group.push_back(timeline.group[e] == Picture::kNone ? 0
                                                          : std::int64_t{timeline.group[e]} + 1);
      count.push_back(static_cast<std::int64_t>(picture.inputs_of(e).size()));
      for (const std::uint32_t read : picture.inputs_of(e)) input.push_back(std::int64_t{e} - read);
    }
    std::vector<std::int64_t> from, to;
    for (const Timeline::Message& message : timeline.messages) {
      from.push_back(message.from == Picture::kNone ? -1 : std::int64_t{message.from});
      to.push_back(message.to == Picture::kNone ? -1 : std::int64_t{message.to});
    }
    return Object{{"step", packer_.add_times(gap)},
                  {"length", packer_.add_times(length)},
                  {"operation", packer_.add(timeline.operation)},
                  {"cause", packer_.add(cause)},
                  {"why", packer_.add(why)},
                  {"group", packer_.add(group)},
                  {"inputs", packer_.add(count)},
                  {"input", packer_.add(input)},
                  {"from", packer_.add(from)},
                  {"to", packer_.add(to)},
                  {"critical", packer_.add(timeline.critical)},
                  {"curve_time", packer_.add_times(timeline.curve_time)},
                  {"curve_value", packer_.add_times(timeline.curve_value)}};
  }

  void operations(const Picture& picture, Object& columns, std::vector<std::string>& names) {
    const Timeline& timeline = picture.timeline;
    std::vector<std::int64_t> name, pass, mb, slice, part, place, shade, cell;
    std::map<std::string, std::int64_t, std::less<>> heads;
    for (std::uint32_t id = 0; id < timeline.operations.size(); ++id) {
      const Timeline::Operation& operation = timeline.operations[id];
      const bool chunk = dag::runs_body(operation.kind);
      name.push_back(operation.name);
      pass.push_back(chunk ? static_cast<std::int64_t>(operation.pass) + 1 : 0);
      mb.push_back(operation.mb);
      slice.push_back(operation.slice);
      part.push_back(operation.part == Picture::kNone ? 0 : std::int64_t{operation.part} + 1);
      place.push_back(picture.place[id] == Picture::kNone ? -1 : std::int64_t{picture.place[id]});
      shade.push_back(static_cast<std::int64_t>(shade_of(operation)) * 2 + picture.tone[id]);
      // The part of a cell before the microbatch: the page appends the rest.
      std::string_view head = picture.cells[id];
      if (chunk) {
        std::size_t tail = std::to_string(operation.mb).size();
        if (operation.slice > 0) tail += 1 + std::to_string(operation.slice).size();
        if (operation.part != Picture::kNone) tail += 1 + std::to_string(operation.part).size();
        head.remove_suffix(tail);
      }
      auto known = heads.find(head);
      if (known == heads.end()) {
        known = heads.emplace(head, static_cast<std::int64_t>(names.size())).first;
        names.push_back(utf8(head));
      }
      cell.push_back(known->second);
    }
    for (const auto& [key, column] : {std::pair("name", &name),
                                      {"pass", &pass},
                                      {"mb", &mb},
                                      {"slice", &slice},
                                      {"part", &part},
                                      {"place", &place},
                                      {"shade", &shade},
                                      {"cell", &cell}}) {
      columns[key] = packer_.add(*column);
    }
  }

  Packer packer_;
};

std::string_view file(std::string_view path) {
  for (const embedded::File& each : embedded::picture_page()) {
    if (each.path == path) return each.text;
  }
  return {};
}

}  // namespace

std::string timeline_page(std::span<const Picture> pictures) {
  const std::string title =
      pictures.size() == 1 ? pictures[0].title : std::to_string(pictures.size()) + " timelines";
  std::string out(file("page.html"));
  for (const auto& [mark, text] :
       {std::pair<std::string_view, std::string>("@title@", xml_text(title)),
        {"@style@", std::string(file("page.css"))},
        {"@script@", std::string(file("page.js"))},
        {"@data@", Data().run(pictures)}}) {
    const std::size_t at = out.find(mark);
    if (at != std::string::npos) out.replace(at, mark.size(), text);
  }
  return out;
}

}  // namespace piper::pictures
