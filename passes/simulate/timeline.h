#pragma once
// A timeline: the result of the simulator or of a measured run, which grids, pictures and
// comparisons read.
//
// Packed arrays: an entry is one run of an operation on one lane of one rank. Entries are sorted by
// rank, lane and time, so the entries of a lane are a range with ascending starts. An operation is
// stored once in `operations`, however many ranks run it.
//
//   for (const Timeline::Rank& rank : timeline.ranks)
//     for (const Timeline::Lane& lane : timeline.lanes_of(rank))
//       for (std::uint32_t e = lane.first; e < lane.end; ++e)
//         draw(rank.name, lane.name, timeline.start[e], timeline.finish[e], timeline.label(timeline.operation_of(e)));
//
// Guarantees: times are finite and start at 0 or later, start <= finish, and entries of one lane do
// not overlap, except members of one overlap group that run together (equal start and finish).
// Equal replicas are one rank.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ir/dag/plan.h"

namespace piper::passes {

struct Timeline {
  static constexpr std::uint32_t kNone = 0xFFFFFFFFu;

  /// The unit of times: the costs of `--cost`, or seconds.
  enum class Unit : std::uint8_t { cost, seconds };
  /// operations: the orders and data edges, one lane per rank. plan: the actions of the plan, a
  /// lane per stream. measured: the same, of a run.
  enum class Source : std::uint8_t { operations, plan, measured };
  Unit unit = Unit::cost;
  Source source = Source::operations;
  /// The weight of a stage (operations): its cost; equal for all; or, in a schedule by itself, its
  /// number of links of the chain.
  enum class Stages : std::uint8_t { weighed, equal, links };
  Stages stages = Stages::links;

  // ---- operations

  struct Operation {
    dag::NodeKind kind = dag::NodeKind::chunk;
    // of the chunk; messages: of the values that they carry
    Pass pass = Pass::F;
    // Into `names`. chunk: the region in a selector (`stage[2]`, `block[1].rest[0]`); others: the
    // node's name.
    std::uint32_t name = kNone;
    // With a single partition, for chunks that are whole stages.
    std::uint32_t stage = kNone;
    // mb counts over the whole batch: copy 1 continues after copy 0.
    std::uint32_t mb = 0, copy = 0, slice = 0;
    // If a rank has several with this name, pass and instance.
    std::uint32_t part = kNone;
    // Its first and last node: several chunks of one stage may be one operation of an order.
    dag::NodeId first, last;
    LocId loc;  // the line that ordered it, or that it comes from
  };
  std::vector<Operation> operations;
  std::vector<std::string> names;

  // ---- ranks and lanes

  struct Lane {
    std::string name;  // `compute`, or the stream
    std::uint32_t rank = 0;
    std::uint32_t first = 0, end = 0;  // its entries
  };
  std::vector<Lane> lanes;  // a rank's are consecutive; the first is `compute`

  /// The idle time of a rank's compute lane, makespan - work, by cause.
  struct Idle {
    double before_first = 0, after_last = 0;
    double data = 0;     // an input was not made yet
    double message = 0;  // it was made and on its way
    // The input or the work had no room: in a window, or in bytes of the arena that a message still
    // used.
    double room = 0;
    // The part of the waits for data that makes up for less work than the busiest rank has.
    double imbalance = 0;
    double total() const { return before_first + after_last + data + message + room + imbalance; }
  };
  struct Rank {
    // `rank 0` if an order names ranks (operations), `pp0` (plan).
    std::string name;
    std::uint64_t replicas = 1;  // number of equal devices of the mesh
    // Number of ranks with the same work, including this one: replicas that an order names one by
    // one.
    std::uint32_t alike = 1;
    std::uint32_t first_lane = 0, end_lane = 0;
    std::uint32_t first_curve = 0, end_curve = 0;
    double first_start = 0, last_end = 0;  // of its compute lane; both 0 without entries
    double work = 0;                       // on its compute lane
    Idle idle;
    // Activations, in units of those of one microbatch on 1/P of the model (operations).
    double peak = 0;
    std::int64_t peak_bytes = 0;     // maximum of live bytes, of all classes
    std::int64_t planned_bytes = 0;  // bytes that the plan allocates
  };
  std::vector<Rank> ranks;

  // ---- entries

  /// The reason why an entry did not start earlier. Before `previous` there is no idle time; before
  /// the others there is, or they start at 0.
  enum class Why : std::uint8_t {
    start,     // it is the first and has no inputs
    previous,  // its lane was busy
    data,      // an input was made just then, on the same rank or without transfer time
    message,   // an input arrived just then
    partner,   // communication: another member arrived just then
    // Room became free just then: in the window of a receive, or in bytes of the arena that a
    // message used.
    window,
  };
  std::vector<double> start, finish;
  std::vector<std::uint32_t> operation;  // into `operations`
  // Overlap group, numbered per rank from 0; kNone: none.
  std::vector<std::uint32_t> group;
  // The entry whose end it waited for last (of any lane and rank); kNone: none.
  std::vector<std::uint32_t> cause;
  std::vector<Why> why;

  /// A message between ranks. operations: a data edge; plan: from the end of the send's action to
  /// the end of the receive's.
  struct Message {
    // Entries: producer and first reader; plan and measured: send and receive.
    std::uint32_t from = kNone, to = kNone;
    double leaves = 0, arrives = 0;
    std::int64_t bytes = 0;  // of one device
  };
  std::vector<Message> messages;  // ascending by `leaves`

  // ---- memory: step functions of time, constant between their points and 0 before the first

  struct Curve {
    std::uint32_t rank = 0;
    // Bytes of that class; none: activations, in microbatches on 1/P of the model (operations).
    std::optional<dag::BufferClass> cls;
    // Into `curve_time` and `curve_value`; times ascend strictly.
    std::uint32_t first = 0, end = 0;
  };
  std::vector<Curve> curves;                    // a rank's are consecutive
  std::vector<double> curve_time, curve_value;  // the value from that time on

  // ---- figures of the timeline (docs/execution.md section 8)

  double makespan = 0;  // the last end
  double span = 0;      // the largest last end - first start of a rank
  double bubble_makespan = 0, bubble_span = 0;
  // Entries from time 0 to the makespan, each the `cause` of the next.
  std::vector<std::uint32_t> critical;

  std::size_t size() const { return start.size(); }
  const Operation& operation_of(std::uint32_t entry) const { return operations[operation[entry]]; }
  std::span<const Lane> lanes_of(const Rank& rank) const {
    return {lanes.data() + rank.first_lane, rank.end_lane - rank.first_lane};
  }
  std::span<const Curve> curves_of(const Rank& rank) const {
    return {curves.data() + rank.first_curve, rank.end_curve - rank.first_curve};
  }
  /// `F stage[2] mb[3]`, `send.F.stage0.mb1.pp1`: in full.
  std::string label(const Operation& operation) const;
  /// Appends an entry; its lane must be the last.
  void add_entry(double starts, double ends, std::uint32_t what, std::uint32_t in_group);
  /// Members of an overlap group run from its first start to its last end.
  void join_groups();
};

/// The text in views and pictures: `waits for a message`.
std::string_view text_of(Timeline::Why why);
/// `stages weighed by cost`, `stages equal`; empty for the links of a schedule by itself.
std::string_view text_of(Timeline::Stages stages);

}  // namespace piper::passes
