#include "frontend/repl/stepper.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <tuple>
#include <utility>

#include "frontend/pictures/text_table.h"

namespace piper::repl {
namespace {

using passes::Timeline;

constexpr std::size_t kMaxWaits = 24;

const Timeline::Lane& compute_lane(const Timeline& timeline, const Timeline::Rank& rank) {
  return timeline.lanes_of(rank).front();
}

std::string rank_of(const Timeline& timeline, std::uint32_t entry) {
  for (const Timeline::Lane& lane : timeline.lanes) {
    if (entry >= lane.first && entry < lane.end) return timeline.ranks[lane.rank].name;
  }
  return "";
}

std::string place_of(const pictures::Picture& picture, std::uint32_t entry) {
  const std::uint32_t place = picture.place[picture.timeline.operation[entry]];
  return place == pictures::Picture::kNone ? "" : picture.places[place];
}

std::string span_of(const Timeline& timeline, std::uint32_t entry) {
  return pictures::time_text(timeline.start[entry], timeline.unit) + " to " +
         pictures::time_text(timeline.finish[entry], timeline.unit);
}

/// The activations of which region and instance.
auto held_by(const Timeline::Operation& operation) {
  return std::tuple(operation.name, operation.mb, operation.copy, operation.slice, operation.part);
}

/// A row of the chain of waits: time, rank, operation, the reason why it was not earlier, line.
std::vector<std::string> wait_row(const pictures::Picture& picture, std::uint32_t entry) {
  const Timeline& timeline = picture.timeline;
  return {"  " + span_of(timeline, entry), rank_of(timeline, entry),
          timeline.label(timeline.operation_of(entry)), std::string(text_of(timeline.why[entry])),
          place_of(picture, entry)};
}

}  // namespace

void Stepper::begin(pictures::Picture picture) {
  picture_ = std::move(picture);
  at_ = 0;
  order_.clear();
  const Timeline& timeline = picture_->timeline;
  for (const Timeline::Rank& rank : timeline.ranks) {
    const Timeline::Lane& lane = compute_lane(timeline, rank);
    for (std::uint32_t entry = lane.first; entry < lane.end; ++entry) order_.push_back(entry);
  }
  std::stable_sort(order_.begin(), order_.end(), [&](std::uint32_t a, std::uint32_t b) {
    return timeline.start[a] < timeline.start[b];
  });
}

void Stepper::move(long long by) {
  const auto last = static_cast<long long>(order_.size());
  const auto at = static_cast<long long>(at_);
  at_ = static_cast<std::size_t>(by > 0 ? at + std::min(by, last - at)
                                        : at - std::min(-std::max(by, -last), at));
}

std::string Stepper::rank_state(const Timeline::Rank& rank, double now) const {
  const Timeline& timeline = picture_->timeline;
  const Timeline::Lane& lane = compute_lane(timeline, rank);
  std::uint32_t next = lane.end;
  std::string runs;
  for (std::uint32_t entry = lane.first; entry < lane.end; ++entry) {
    if (timeline.start[entry] > now && next == lane.end) next = entry;
    const bool running = timeline.start[entry] <= now && now < timeline.finish[entry];
    if (running)
      runs += (runs.empty() ? "runs " : " & ") + picture_->cells[timeline.operation[entry]];
  }
  if (!runs.empty()) return runs;
  if (next == lane.end) return "is done";
  std::string text = "waits with " + picture_->cells[timeline.operation[next]];
  const std::uint32_t cause = timeline.cause[next];
  if (cause == Timeline::kNone) return text;
  return text + " for " + picture_->cells[timeline.operation[cause]] + " of " +
         rank_of(timeline, cause) + ", until " +
         pictures::time_text(timeline.start[next], timeline.unit);
}

std::string Stepper::text() const {
  const Timeline& timeline = picture_->timeline;
  const bool done = at_ == order_.size();
  const double now = done ? timeline.makespan : timeline.start[order_[at_]];
  std::string text = "step " + std::to_string(at_) + " of " + std::to_string(order_.size()) +
                     ", time " + pictures::time_text(now, timeline.unit) + ": ";
  if (done) {
    text += "all have run\n";
  } else {
    const std::string place = place_of(*picture_, order_[at_]);
    text += rank_of(timeline, order_[at_]) + " begins " +
            timeline.label(timeline.operation_of(order_[at_])) +
            (place.empty() ? "" : "  " + place) + "\n";
  }
  std::vector<std::vector<std::string>> rows = {{"", "", "holds"}};
  for (const Timeline::Rank& rank : timeline.ranks) {
    const Timeline::Lane& lane = compute_lane(timeline, rank);
    std::set<decltype(held_by(timeline.operations.front()))> gone;
    for (std::uint32_t entry = lane.first; entry < lane.end; ++entry) {
      const Timeline::Operation& operation = timeline.operation_of(entry);
      if (timeline.finish[entry] <= now &&
          (operation.pass == Pass::B || operation.pass == Pass::BW))
        gone.insert(held_by(operation));
    }
    std::string held;
    for (std::uint32_t entry = lane.first; entry < lane.end; ++entry) {
      const Timeline::Operation& operation = timeline.operation_of(entry);
      if (operation.pass != Pass::F || timeline.start[entry] > now ||
          gone.contains(held_by(operation)))
        continue;
      held += (held.empty() ? "" : " ") + picture_->cells[timeline.operation[entry]];
    }
    rows.push_back({rank.name, rank_state(rank, now), held.empty() ? "nothing" : held});
  }
  return text + pictures::text_table(rows, {true, true, true});
}

std::optional<std::string> why_text(const pictures::Picture& picture, std::uint32_t rank,
                                    double time) {
  const Timeline& timeline = picture.timeline;
  if (rank >= timeline.ranks.size()) return std::nullopt;
  const Timeline::Rank& asked = timeline.ranks[rank];
  const Timeline::Lane& lane = compute_lane(timeline, asked);
  const std::string at = pictures::time_text(time, timeline.unit);
  double idle_from = 0;
  std::uint32_t next = lane.end;
  for (std::uint32_t entry = lane.first; entry < lane.end && next == lane.end; ++entry) {
    if (timeline.start[entry] <= time && time < timeline.finish[entry]) {
      return asked.name + " is not idle at " + at + ": it runs " +
             timeline.label(timeline.operation_of(entry)) + " from " + span_of(timeline, entry) +
             "\n" +
             pictures::text_table({wait_row(picture, entry)}, {true, true, true, true, true});
    }
    if (timeline.start[entry] > time) {
      next = entry;
    } else {
      idle_from = std::max(idle_from, timeline.finish[entry]);
    }
  }
  if (next == lane.end) {
    std::string text = asked.name + " has nothing left to do at " + at +
                       ": its last operation ends at " +
                       pictures::time_text(idle_from, timeline.unit);
    return text +
           (timeline.makespan > idle_from
                ? ", the step at " + pictures::time_text(timeline.makespan, timeline.unit) + "\n"
                : " and the step with it\n");
  }
  std::string text = asked.name + " is idle from " + pictures::time_text(idle_from, timeline.unit) +
                     " to " + pictures::time_text(timeline.start[next], timeline.unit) + ":\n";
  std::vector<std::vector<std::string>> rows;
  for (std::uint32_t entry = next; entry != Timeline::kNone && rows.size() < kMaxWaits;
       entry = timeline.cause[entry]) {
    rows.push_back(wait_row(picture, entry));
    if (timeline.start[entry] <= idle_from) break;
  }
  return text + pictures::text_table(rows, {true, true, true, true, true});
}

}  // namespace piper::repl
