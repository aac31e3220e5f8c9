#include "frontend/pictures/timeline_json.h"

#include "frontend/pictures/layout.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

namespace piper::pictures {
namespace {

using passes::Timeline;

std::string utf8(std::string_view text) { return llvm::json::fixUTF8(llvm::StringRef(text)); }

/// `previous`, `message`: the name of the reason of a start in data.
const char* word_of(Timeline::Why why) {
  switch (why) {
    case Timeline::Why::start: return "start";
    case Timeline::Why::previous: return "previous";
    case Timeline::Why::data: return "data";
    case Timeline::Why::message: return "message";
    case Timeline::Why::partner: return "partner";
    case Timeline::Why::window: return "window";
  }
  return "";
}

const char* word_of(Timeline::Source source) {
  switch (source) {
    case Timeline::Source::operations: return "operations";
    case Timeline::Source::plan: return "plan";
    case Timeline::Source::measured: return "measured";
  }
  return "";
}

std::string class_name(const Timeline::Curve& curve) {
  return curve.cls ? std::string(dag::buffer_class_name(*curve.cls)) : "microbatches";
}

class Json {
 public:
  explicit Json(const Picture& picture)
      : picture_(picture), timeline_(picture.timeline), stream_(text_), json_(stream_) {}

  std::string run() {
    json_.object([&] {
      json_.attribute("schema", 1);
      json_.attribute("title", utf8(picture_.title));
      json_.attribute("unit", timeline_.unit == Timeline::Unit::cost ? "cost" : "seconds");
      json_.attribute("source", word_of(timeline_.source));
      json_.attribute("makespan", timeline_.makespan);
      json_.attribute("span", timeline_.span);
      json_.attributeObject("bubble", [&] {
        json_.attribute("makespan", timeline_.bubble_makespan);
        json_.attribute("span", timeline_.bubble_span);
      });
      json_.attributeArray("ranks", [&] { ranks(); });
      json_.attributeArray("lanes", [&] { lanes(); });
      json_.attributeArray("operations", [&] { operations(); });
      json_.attributeObject("entries", [&] { entries(); });
      json_.attributeArray("messages", [&] { messages(); });
      json_.attributeArray("memory", [&] { memory(); });
      column("critical", timeline_.critical);
    });
    return std::move(text_) + "\n";
  }

 private:
  template <typename T>
  void column(const char* name, const std::vector<T>& values, std::size_t first, std::size_t end) {
    json_.attributeArray(name, [&] {
      for (std::size_t i = first; i < end; ++i) {
        if (std::is_same_v<T, std::uint32_t> && values[i] == static_cast<T>(Picture::kNone))
          json_.value(nullptr);
        else json_.value(values[i]);
      }
    });
  }
  template <typename T>
  void column(const char* name, const std::vector<T>& values) {
    column(name, values, 0, values.size());
  }

  void ranks() {
    for (const Timeline::Rank& rank : timeline_.ranks) {
      json_.object([&] {
        json_.attribute("name", utf8(rank.name));
        json_.attribute("replicas", static_cast<std::int64_t>(rank.replicas));
        json_.attribute("work", rank.work);
        json_.attributeObject("idle", [&] {
          json_.attribute("before_first", rank.idle.before_first);
          json_.attribute("data", rank.idle.data);
          json_.attribute("message", rank.idle.message);
          json_.attribute("room", rank.idle.room);
          json_.attribute("imbalance", rank.idle.imbalance);
          json_.attribute("after_last", rank.idle.after_last);
        });
        json_.attribute("peak", rank.peak);
        if (rank.peak_bytes) json_.attribute("peak_bytes", rank.peak_bytes);
        if (rank.planned_bytes) json_.attribute("planned_bytes", rank.planned_bytes);
      });
    }
  }

  void lanes() {
    for (const Timeline::Lane& lane : timeline_.lanes) {
      json_.object([&] {
        json_.attribute("rank", lane.rank);
        json_.attribute("name", utf8(lane.name));
        json_.attribute("first", lane.first);
        json_.attribute("end", lane.end);
      });
    }
  }

  void operations() {
    for (std::uint32_t id = 0; id < timeline_.operations.size(); ++id) {
      const Timeline::Operation& operation = timeline_.operations[id];
      const bool chunk = dag::runs_body(operation.kind);
      json_.object([&] {
        json_.attribute("op", llvm::StringRef(chunk ? pass_name(operation.pass)
                                                    : dag::kind_name(operation.kind)));
        json_.attribute(chunk ? "region" : "name", utf8(timeline_.names[operation.name]));
        if (operation.stage != Picture::kNone) json_.attribute("stage", operation.stage);
        json_.attribute("mb", operation.mb);
        if (operation.copy) json_.attribute("copy", operation.copy);
        if (operation.slice) json_.attribute("slice", operation.slice);
        if (operation.part != Picture::kNone) json_.attribute("part", operation.part);
        if (picture_.place[id] != Picture::kNone)
          json_.attribute("place", utf8(picture_.places[picture_.place[id]]));
      });
    }
  }

  void entries() {
    column("operation", timeline_.operation);
    column("start", timeline_.start);
    column("end", timeline_.finish);
    column("group", timeline_.group);
    column("cause", timeline_.cause);
    json_.attributeArray("why", [&] {
      for (const Timeline::Why why : timeline_.why) json_.value(word_of(why));
    });
  }

  void messages() {
    for (const Timeline::Message& message : timeline_.messages) {
      json_.object([&] {
        if (message.from != Picture::kNone) json_.attribute("from", message.from);
        if (message.to != Picture::kNone) json_.attribute("to", message.to);
        json_.attribute("leaves", message.leaves);
        json_.attribute("arrives", message.arrives);
        json_.attribute("bytes", message.bytes);
      });
    }
  }

  void memory() {
    for (const Timeline::Curve& curve : timeline_.curves) {
      json_.object([&] {
        json_.attribute("rank", curve.rank);
        json_.attribute("class", class_name(curve));
        column("time", timeline_.curve_time, curve.first, curve.end);
        column("value", timeline_.curve_value, curve.first, curve.end);
      });
    }
  }

  const Picture& picture_;
  const Timeline& timeline_;
  std::string text_;
  llvm::raw_string_ostream stream_;
  llvm::json::OStream json_;
};

/// One picture after the other into one array of events.
class Trace {
 public:
  Trace() : stream_(text_), json_(stream_) {}

  std::string run(std::span<const Picture> pictures) {
    json_.object([&] {
      json_.attribute("displayTimeUnit", "ms");
      json_.attributeArray("traceEvents", [&] {
        for (const Picture& picture : pictures) {
          one(picture, pictures.size() > 1);
          first_process_ += static_cast<std::int64_t>(picture.timeline.ranks.size());
        }
      });
    });
    return std::move(text_) + "\n";
  }

 private:
  /// The fields of all events: kind, name, time in microseconds, place.
  void head(const char* phase, llvm::StringRef name, std::int64_t process, std::int64_t thread,
            double time) {
    json_.attribute("ph", phase);
    json_.attribute("name", name);
    json_.attribute("pid", process);
    json_.attribute("tid", thread);
    json_.attribute("ts", time * scale_);
  }

  void name(const char* kind, std::int64_t process, std::int64_t thread, const std::string& text,
            int place) {
    json_.object([&] {
      head("M", (std::string(kind) + "_name"), process, thread, 0);
      json_.attributeObject("args", [&] { json_.attribute("name", text); });
    });
    json_.object([&] {
      head("M", (std::string(kind) + "_sort_index"), process, thread, 0);
      json_.attributeObject("args", [&] { json_.attribute("sort_index", place); });
    });
  }

  void one(const Picture& picture, bool named) {
    const Timeline& timeline = picture.timeline;
    scale_ = timeline.unit == Timeline::Unit::cost ? 1e3 : 1e6;
    std::vector<std::pair<std::int64_t, std::int64_t>> thread_of(timeline.lanes.size());
    for (std::size_t r = 0; r < timeline.ranks.size(); ++r) {
      const Timeline::Rank& rank = timeline.ranks[r];
      const std::int64_t process = first_process_ + static_cast<std::int64_t>(r);
      name("process", process, 0, utf8((named ? picture.title + ": " : "") + rank_text(rank)),
           static_cast<int>(process));
      for (std::uint32_t l = rank.first_lane; l < rank.end_lane; ++l) {
        const std::int64_t thread = l - rank.first_lane + 1;
        thread_of[l] = {process, thread};
        const Timeline::Lane& lane = timeline.lanes[l];
        if (lane.first == lane.end) continue;
        name("thread", process, thread, utf8(lane.name), static_cast<int>(thread));
        for (std::uint32_t e = lane.first; e < lane.end; ++e) slice(picture, e, process, thread);
      }
      for (const Timeline::Curve& curve : timeline.curves_of(rank))
        counter(timeline, curve, process);
    }
    flows(timeline, thread_of);
  }

  void slice(const Picture& picture, std::uint32_t e, std::int64_t process, std::int64_t thread) {
    const Timeline& timeline = picture.timeline;
    const std::uint32_t id = timeline.operation[e];
    json_.object([&] {
      head("X", utf8(timeline.label(timeline.operations[id])), process, thread, timeline.start[e]);
      json_.attribute("dur", (timeline.finish[e] - timeline.start[e]) * scale_);
      json_.attribute("cat", llvm::StringRef(row_of(shade_of(timeline.operations[id])).name));
      json_.attributeObject("args", [&] {
        if (picture.place[id] != Picture::kNone)
          json_.attribute("place", utf8(picture.places[picture.place[id]]));
        json_.attribute("why", llvm::StringRef(passes::text_of(timeline.why[e])));
        if (timeline.cause[e] != Picture::kNone)
          json_.attribute("after", utf8(timeline.label(timeline.operation_of(timeline.cause[e]))));
      });
    });
  }

  void counter(const Timeline& timeline, const Timeline::Curve& curve, std::int64_t process) {
    const std::string name = class_name(curve);
    for (std::uint32_t i = curve.first; i < curve.end; ++i) {
      json_.object([&] {
        head("C", name, process, 0, timeline.curve_time[i]);
        json_.attributeObject("args", [&] { json_.attribute("value", timeline.curve_value[i]); });
      });
    }
  }

  /// An arrow from the middle of the slice that a message leaves to the one that it reaches: at its
  /// very ends it would belong to a neighbour.
  void flows(const Timeline& timeline,
             const std::vector<std::pair<std::int64_t, std::int64_t>>& thread_of) {
    std::vector<std::uint32_t> lane_of(timeline.size());
    for (std::uint32_t l = 0; l < timeline.lanes.size(); ++l) {
      for (std::uint32_t e = timeline.lanes[l].first; e < timeline.lanes[l].end; ++e)
        lane_of[e] = l;
    }
    for (const Timeline::Message& message : timeline.messages) {
      if (message.from == Picture::kNone || message.to == Picture::kNone) continue;
      ++flow_;
      for (const bool arrives : {false, true}) {
        const std::uint32_t e = arrives ? message.to : message.from;
        const auto [process, thread] = thread_of[lane_of[e]];
        json_.object([&, process = process, thread = thread] {
          head(arrives ? "f" : "s", "message", process, thread,
               (timeline.start[e] + timeline.finish[e]) / 2);
          json_.attribute("cat", "message");
          json_.attribute("id", flow_);
          if (arrives) json_.attribute("bp", "e");
        });
      }
    }
  }

  std::string text_;
  llvm::raw_string_ostream stream_;
  llvm::json::OStream json_;
  double scale_ = 1;
  std::int64_t first_process_ = 1, flow_ = 0;
};

}  // namespace

std::string timeline_json(const Picture& picture) { return Json(picture).run(); }
std::string perfetto_trace(std::span<const Picture> pictures) { return Trace().run(pictures); }

}  // namespace piper::pictures
