#include "tests/cuda/data_races.h"

#include <algorithm>
#include <optional>
#include <set>
#include <unordered_set>

#include "llvm/ADT/SmallVector.h"

namespace piper::test {

namespace {

/// Per lane how many of its operations come before. A lane is a stream, or a stream of a graph.
using Clock = std::vector<std::uint32_t>;

void join(Clock& clock, const Clock& other) {
  if (clock.size() < other.size()) clock.resize(other.size());
  for (std::size_t lane = 0; lane < other.size(); ++lane)
    clock[lane] = std::max(clock[lane], other[lane]);
}

std::uint32_t at(const Clock& clock, std::size_t lane) {
  return lane < clock.size() ? clock[lane] : 0;
}

/// Whether all that `clock` has comes before `later`.
bool within(const Clock& clock, const Clock& later) {
  for (std::size_t lane = 0; lane < clock.size(); ++lane) {
    if (clock[lane] > at(later, lane)) return false;
  }
  return true;
}

/// The position of a call: in a graph, or among the calls themselves.
struct CallLocation {
  static constexpr std::uint32_t kNoGraph = 0xFFFFFFFFu;
  std::uint32_t graph = kNoGraph;
  std::size_t call = 0;
  friend bool operator==(const CallLocation&, const CallLocation&) = default;
};

/// An operation that ran.
struct Operation {
  const TraceCall* call = nullptr;
  std::uint32_t lane = 0, tick = 0;
};

/// The predecessors of each operation of a whole trace, in execution order.
struct Order {
  std::vector<Clock> clocks;
  // Per lane and tick: the last tick up to it of an operation that shares bytes.
  std::vector<std::vector<std::uint32_t>> shared;
};

/// The trace's memory, cut where any access begins or ends.
class Pieces {
 public:
  explicit Pieces(const Trace& trace) {
    std::vector<std::uint64_t> ends;
    for (const MemoryAccess& access : trace.accesses)
      ends.insert(ends.end(), {access.begin, access.end});
    std::sort(ends.begin(), ends.end());
    ends.erase(std::unique(ends.begin(), ends.end()), ends.end());
    const auto piece = [&](std::uint64_t address) {
      return static_cast<std::uint32_t>(std::lower_bound(ends.begin(), ends.end(), address) -
                                        ends.begin());
    };
    for (const MemoryAccess& access : trace.accesses)
      of_access_.emplace_back(piece(access.begin), piece(access.end));
    count_ = ends.size();
    std::vector<std::uint32_t> owners(count_, kNobody);
    for_each_work(trace, [&](const TraceCall& call, std::uint32_t piece) {
      owners[piece] =
          owners[piece] == kNobody || owners[piece] == call.stream ? call.stream : kMany;
    });
    for_each_work(trace, [&](const TraceCall& call, std::uint32_t piece) {
      if (owners[piece] == kMany) shared_.insert(&call);
    });
  }
  /// Whether another stream touches bytes that this operation touches: otherwise its order does not
  /// matter.
  bool shares(const TraceCall& call) const { return shared_.contains(&call); }
  std::size_t count() const { return count_; }
  std::pair<std::uint32_t, std::uint32_t> of_access(std::size_t access) const {
    return of_access_[access];
  }

 private:
  static constexpr std::uint32_t kNobody = 0xFFFFFFFFu, kMany = 0xFFFFFFFEu;

  template <typename Use>
  void for_each_work(const Trace& trace, const Use& use) const {
    const auto of_calls = [&](const std::vector<TraceCall>& calls) {
      for (const TraceCall& call : calls) {
        for (std::uint32_t access = call.first_access; access < call.end_access; ++access) {
          for (std::uint32_t piece = of_access_[access].first; piece < of_access_[access].second;
               ++piece)
            use(call, piece);
        }
      }
    };
    of_calls(trace.calls);
    for (const TracedGraph& graph : trace.graphs) of_calls(graph.calls);
  }

  std::vector<std::pair<std::uint32_t, std::uint32_t>> of_access_;
  std::size_t count_ = 0;
  std::unordered_set<const TraceCall*> shared_;
};

/// Goes through the trace. A copy goes on from where the first one is, with another wait left out.
class Checker {
 public:
  Checker(const Trace& trace, const Pieces& pieces)
      : trace_(&trace), pieces_(&pieces), last_(pieces.count()), launched_(trace.graphs.size()) {
    streams_.resize(trace.num_streams);
    events_.resize(trace.num_events);
  }

  bool ended() const { return next_ == trace_->calls.size(); }
  std::size_t position() const { return next_; }
  bool launched(std::uint32_t graph) const { return launched_[graph]; }
  const std::vector<std::string>& data_races() const { return data_races_; }
  /// Whether some operation comes no longer before another, of those that share bytes.
  bool order_differs() const { return order_differs_; }

  void write_order(Order& order) { written_ = &order; }
  /// Is done with the first hazard.
  void leave_out(CallLocation place, const Order& whole) {
    written_ = nullptr;
    left_out_ = place;
    whole_ = &whole;
  }

  void step() {
    const CallLocation place{CallLocation::kNoGraph, next_};
    const TraceCall& call = trace_->calls[next_++];
    switch (call.kind) {
      case TraceCall::Kind::work: return work(call, call.stream, streams_[call.stream]);
      case TraceCall::Kind::record: events_[call.of] = streams_[call.stream]; return;
      case TraceCall::Kind::wait:
        if (place != left_out_) join(streams_[call.stream], events_[call.of]);
        return;
      case TraceCall::Kind::host_wait:
        for (Clock& clock : streams_) join(clock, events_[call.of]);
        return;
      case TraceCall::Kind::graph: return launch(call);
    }
  }

 private:
  struct Last {
    std::uint32_t writer = kNone;  // into operations_
    // Since then, without those that come before another one.
    llvm::SmallVector<std::uint32_t, 4> readers;
  };
  static constexpr std::uint32_t kNone = 0xFFFFFFFFu;

  void work(const TraceCall& call, std::uint32_t lane, Clock& clock) {
    if (call.first_access == call.end_access) return;
    if (clock.size() <= lane) clock.resize(lane + 1);
    ++clock[lane];
    operations_.push_back({&call, lane, clock[lane]});
    note_order(call, lane, clock);
    for (std::uint32_t access = call.first_access; access < call.end_access; ++access) {
      const auto [first, end] = pieces_->of_access(access);
      for (std::uint32_t piece = first; piece < end; ++piece)
        touch(last_[piece], trace_->accesses[access].writes, clock);
    }
  }

  void touch(Last& last, bool writes, const Clock& clock) {
    const auto now = static_cast<std::uint32_t>(operations_.size() - 1);
    if (last.writer != kNone && !before(last.writer, clock)) tell(last.writer, true, writes);
    if (writes) {
      for (const std::uint32_t reader : last.readers) {
        if (!before(reader, clock)) tell(reader, false, true);
      }
      last.readers.clear();
      last.writer = now;
      return;
    }
    const auto ended = std::remove_if(last.readers.begin(), last.readers.end(),
                                      [&](std::uint32_t reader) { return before(reader, clock); });
    last.readers.erase(ended, last.readers.end());
    last.readers.push_back(now);
  }

  /// An operation itself comes before its own end.
  bool before(std::uint32_t operation, const Clock& clock) const {
    return at(clock, operations_[operation].lane) >= operations_[operation].tick;
  }

  void note_order(const TraceCall& call, std::uint32_t lane, const Clock& clock) {
    const bool shares = pieces_->shares(call);
    if (written_ != nullptr) {
      written_->clocks.push_back(clock);
      if (written_->shared.size() <= lane) written_->shared.resize(lane + 1);
      std::vector<std::uint32_t>& of_lane = written_->shared[lane];
      if (of_lane.empty()) of_lane.push_back(0);
      of_lane.push_back(shares ? clock[lane] : of_lane.back());
    }
    if (whole_ == nullptr || !shares || order_differs_) return;
    const Clock& whole = whole_->clocks[operations_.size() - 1];
    for (std::size_t other = 0; other < whole.size(); ++other)
      order_differs_ |= whole[other] > 0 && whole_->shared[other][whole[other]] > at(clock, other);
  }

  void launch(const TraceCall& launched) {
    const TracedGraph& graph = trace_->graphs[launched.of];
    launched_[launched.of] = true;
    std::vector<Clock> streams(trace_->num_streams, streams_[launched.stream]),
        events(trace_->num_events);
    std::vector<bool> captured(trace_->num_streams), recorded(trace_->num_events);
    captured[graph.origin] = true;
    const auto lane = [&](std::uint32_t stream) {
      return trace_->num_streams * (launched.of + 1) + stream;
    };
    for (std::size_t c = 0; c < graph.calls.size(); ++c) {
      const TraceCall& call = graph.calls[c];
      const std::uint32_t stream = call.stream;
      if (call.kind == TraceCall::Kind::wait) {
        if (!recorded[call.of])
          tell("`" + text_of(call) + " is for an event that was not recorded in the capture");
        if (CallLocation{launched.of, c} == left_out_) continue;
        join(streams[stream], events[call.of]);
        captured[stream] = true;
        continue;
      }
      if (!captured[stream]) tell("`" + text_of(call) + " is no part of the capture");
      if (call.kind == TraceCall::Kind::work) {
        work(call, lane(stream), streams[stream]);
      } else {
        events[call.of] = streams[stream];
        recorded[call.of] = true;
      }
      if (whole_ != nullptr && !data_races_.empty()) return;
    }
    const Clock& end = streams[graph.origin];
    for (std::uint32_t s = 0; s < streams.size(); ++s) {
      if (!within(streams[s], end)) tell("the graph ends before its stream " + std::to_string(s));
    }
    join(streams_[launched.stream], end);
  }

  static std::string text_of(const TraceCall& call) {
    return std::string(call.what) + "` of action " + std::to_string(call.action) + " on stream " +
           std::to_string(call.stream);
  }

  void tell(std::uint32_t other, bool wrote, bool writes) {
    const TraceCall &first = *operations_[other].call, &now = *operations_.back().call;
    if (!reported_.emplace(&first, &now).second) return;
    tell("`" + text_of(now) + (writes ? " writes" : " reads") + " what `" + text_of(first) +
         (wrote ? " writes" : " reads"));
  }
  void tell(std::string text) { data_races_.push_back(std::move(text)); }

  const Trace* trace_;
  const Pieces* pieces_;
  std::size_t next_ = 0;
  std::vector<Clock> streams_, events_;
  std::vector<Operation> operations_;
  std::vector<Last> last_;      // per piece
  std::vector<bool> launched_;  // per graph
  std::vector<std::string> data_races_;
  std::set<std::pair<const TraceCall*, const TraceCall*>> reported_;
  Order* written_ = nullptr;
  const Order* whole_ = nullptr;  // with the wait that is left out
  std::optional<CallLocation> left_out_;
  bool order_differs_ = false;
};

}  // namespace

std::vector<std::string> find_data_races(const Trace& trace) {
  const Pieces pieces(trace);
  Checker checker(trace, pieces);
  while (!checker.ended()) checker.step();
  return checker.data_races();
}

WaitsLeftOut leave_out_waits(const Trace& trace, std::size_t every) {
  const Pieces pieces(trace);
  Order whole;
  Checker first(trace, pieces);
  first.write_order(whole);
  while (!first.ended()) first.step();
  Checker checker(trace, pieces);
  WaitsLeftOut left_out;
  std::size_t seen = 0;
  const auto without = [&](CallLocation place, const TraceCall& wait) {
    if (seen++ % every != 0) return;
    Checker other = checker;
    other.leave_out(place, whole);
    while (!other.ended() && other.data_races().empty()) other.step();
    ++left_out.waits;
    if (!other.data_races().empty()) {
      ++left_out.caught;
    } else if (!other.order_differs()) {
      ++left_out.implied;
    } else {
      left_out.missed.push_back("event " + std::to_string(wait.of) + " at action " +
                                std::to_string(wait.action) + " on stream " +
                                std::to_string(wait.stream) +
                                (place.graph == CallLocation::kNoGraph ? "" : " of a graph"));
    }
  };
  for (; !checker.ended(); checker.step()) {
    const std::size_t position = checker.position();
    const TraceCall& call = trace.calls[position];
    if (call.kind == TraceCall::Kind::wait) without({CallLocation::kNoGraph, position}, call);
    if (call.kind != TraceCall::Kind::graph || checker.launched(call.of)) continue;
    const std::vector<TraceCall>& calls = trace.graphs[call.of].calls;
    for (std::size_t c = 0; c < calls.size(); ++c) {
      if (calls[c].kind == TraceCall::Kind::wait) without({call.of, c}, calls[c]);
    }
  }
  return left_out;
}

}  // namespace piper::test
