#pragma once
// What happens when: the value that the simulator gives, a measured run too, and that grids, pictures and comparisons read.
//
// Packed arrays: an entry is one run of an operation on one lane of one rank. Entries stand rank by rank, lane by lane, in the order in which they run, so the
// entries of a lane are a range and its starts ascend. What an entry is stands once in `operations`, however many ranks it runs on.
//
//   for (const Timeline::Rank& rank : timeline.ranks)
//     for (const Timeline::Lane& lane : timeline.lanes_of(rank))
//       for (std::uint32_t e = lane.first; e < lane.end; ++e)
//         draw(rank.name, lane.name, timeline.start[e], timeline.finish[e], timeline.label(timeline.operation_of(e)));
//
// Guarantees: times are finite and start at 0 or later, start <= finish, and entries of one lane do not overlap but for members of one overlap group that run
// together (equal start and finish). Replicas that do not differ are one rank.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ir/dag/plan.h"

namespace piper::passes {

struct Timeline {
  static constexpr std::uint32_t kNone = 0xFFFFFFFFu;

  /// What times count: the costs of `--cost`, or seconds.
  enum class Unit : std::uint8_t { cost, seconds };
  /// operations: the orders and data edges, one lane per rank. plan: the actions of the plan, a lane per stream. measured: the same, of a run.
  enum class Source : std::uint8_t { operations, plan, measured };
  Unit unit = Unit::cost;
  Source source = Source::operations;
  /// The weight of a stage (operations): its cost; the same for all; or, in a schedule by itself, its number of links of the chain.
  enum class Stages : std::uint8_t { weighed, equal, links };
  Stages stages = Stages::links;

  // ---- what runs

  struct Operation {
    dag::NodeKind kind = dag::NodeKind::chunk;
    Pass pass = Pass::F;                       // chunk; messages: whose values they carry
    std::uint32_t name = kNone;                // into `names`. chunk: the region as a selector names it (`stage[2]`, `block[1].rest[0]`); others: the node's name
    std::uint32_t stage = kNone;               // with a single partition, of chunks that are whole stages
    std::uint32_t mb = 0, copy = 0, slice = 0; // mb counts over the whole batch: copy 1 goes on where copy 0 ends
    std::uint32_t part = kNone;                // where a rank has several of this name, pass and instance
    dag::NodeId first, last;                   // its nodes, as they run: several chunks of one stage are one operation of an order
    LocId loc;                                 // the line that ordered or made it
  };
  std::vector<Operation> operations;
  std::vector<std::string> names;

  // ---- where

  struct Lane {
    std::string name;                          // `compute`, or the stream
    std::uint32_t rank = 0;
    std::uint32_t first = 0, end = 0;          // its entries
  };
  std::vector<Lane> lanes;                     // a rank's are consecutive; the first is `compute`

  /// Of the idle time of a rank's compute lane, makespan - work: the parts add up to it.
  struct Idle {
    double before_first = 0, after_last = 0;
    double data = 0;                           // an input was not made yet
    double message = 0;                        // it was made and on its way
    double room = 0;                           // it, or the work, had no room before: in a window, or in bytes of the arena that a message still used
    double imbalance = 0;                      // of the waits for data, as much as the rank has less work than the busiest one
    double total() const { return before_first + after_last + data + message + room + imbalance; }
  };
  struct Rank {
    std::string name;                          // `rank 0` where an order speaks of ranks (operations), `pp0` (plan)
    std::uint64_t replicas = 1;                // devices of the mesh that do the same
    std::uint32_t alike = 1;                   // ranks with the same work, this one counted: replicas that an order names one by one
    std::uint32_t first_lane = 0, end_lane = 0;
    std::uint32_t first_curve = 0, end_curve = 0;
    double first_start = 0, last_end = 0;      // of its compute lane; both 0 without entries
    double work = 0;                           // on its compute lane
    Idle idle;
    double peak = 0;                           // activations, in those of one microbatch on one device share (operations)
    std::int64_t peak_bytes = 0;               // the most bytes that live at one time, of all classes
    std::int64_t planned_bytes = 0;            // what the plan allocates
  };
  std::vector<Rank> ranks;

  // ---- when: per entry

  /// Why an entry did not start earlier. `previous` has no idle time before it, the others do, or start at 0.
  enum class Why : std::uint8_t {
    start,     // it is the first and needs nothing
    previous,  // its lane was busy
    data,      // an input was made as late as this, on the same rank or with no time on the way
    message,   // an input arrived as late as this
    partner,   // communication: another member came as late as this
    window,    // room became free as late as this: in the window of a receive, or bytes of the arena that a message still used
  };
  std::vector<double> start, finish;
  std::vector<std::uint32_t> operation;        // into `operations`
  std::vector<std::uint32_t> group;            // overlap group, numbered per rank from 0; kNone: none
  std::vector<std::uint32_t> cause;            // the entry whose end it waited for last (of any lane and rank); kNone: none
  std::vector<Why> why;

  /// What travels between ranks. operations: the data edges between them; plan: from the end of the send's action to the receive's, whose entries they are.
  struct Message {
    std::uint32_t from = kNone, to = kNone;    // entries: who made it, its first reader; plan and measured: send, receive
    double leaves = 0, arrives = 0;
    std::int64_t bytes = 0;                    // of one device
  };
  std::vector<Message> messages;               // ascending by `leaves`

  // ---- memory: step functions of time, constant between their points and 0 before the first

  struct Curve {
    std::uint32_t rank = 0;
    std::optional<dag::BufferClass> cls;       // bytes of that class; none: activations, in microbatches of a device share (operations)
    std::uint32_t first = 0, end = 0;          // into `curve_time` and `curve_value`; times ascend strictly
  };
  std::vector<Curve> curves;                   // a rank's are consecutive
  std::vector<double> curve_time, curve_value; // from that time on

  // ---- figures of the whole (docs/execution.md section 8)

  double makespan = 0;                         // the last end
  double span = 0;                             // the largest last end - first start of a rank
  double bubble_makespan = 0, bubble_span = 0;
  std::vector<std::uint32_t> critical;         // entries from time 0 to the makespan, each the `cause` of the next

  std::size_t size() const { return start.size(); }
  const Operation& operation_of(std::uint32_t entry) const { return operations[operation[entry]]; }
  std::span<const Lane> lanes_of(const Rank& rank) const { return {lanes.data() + rank.first_lane, rank.end_lane - rank.first_lane}; }
  std::span<const Curve> curves_of(const Rank& rank) const { return {curves.data() + rank.first_curve, rank.end_curve - rank.first_curve}; }
  /// `F stage[2] mb[3]`, `send.F.stage0.mb1.pp1`: in full, for whoever reads one.
  std::string label(const Operation& operation) const;
  /// Room for one more entry; its lane must be the last.
  void add_entry(double starts, double ends, std::uint32_t what, std::uint32_t in_group);
  /// Members of an overlap group run from its first start to its last end.
  void join_groups();
};

/// As texts and pictures say it: `waits for a message`.
std::string_view text_of(Timeline::Why why);
/// `stages weighed by cost`, `stages equal`; empty for the links of a schedule by itself.
std::string_view text_of(Timeline::Stages stages);

}  // namespace piper::passes
