#include <algorithm>
#include <limits>

#include "ir/alignment.h"
#include "ir/verify/memory_accesses.h"
#include "ir/verify/plan_facts.h"

namespace piper::verify {

namespace {

/// The content of a cell.
struct Content {
  enum class Kind : std::uint8_t {
    initial,
    claimed,
    garbage,
    value,
    sum,
    optimizer
  } kind = Kind::initial;
  std::uint8_t step = 0;
  std::uint32_t id = kNone;      // claimed: parameter; value, sum: output; optimizer: bucket
  std::uint32_t count = 0;       // sum: contributions so far
  std::uint32_t buffer = kNone;  // that it was written into
  std::int64_t base = 0;         // where the value begins
};

/// The end of writes that no action did: visible to every action.
constexpr std::int32_t kLongAgo = std::numeric_limits<std::int32_t>::min();

/// A range of bytes that every access covers entirely or not at all.
struct Cell {
  Content content;
  std::uint32_t writer = kNone;  // the last action that wrote here
  // Its stream, and how many of its actions have ended when it has, counted as HappensBefore does.
  std::uint32_t writer_lane = 0;
  std::int32_t writer_end = kLongAgo;
  // Since the last write: the one stream that read; kNone: none.
  std::uint32_t reader_lane = kNone;
  std::int32_t reader_end = 0;       // its last read
  bool many_readers = false;         // more streams read: see reads_
  std::uint32_t read_stamp = kNone;  // the current action, and its operand, if it reads here
  std::uint32_t read_operand = 0;
  std::uint32_t write_stamp = kNone;
};

/// Runs the actions of one role twice, in an order in which they may end. Every access is checked
/// against the last write of its bytes, every write also against the reads since: by induction all
/// conflicting pairs are ordered then, and the content does not depend on timing.
class RoleMemoryCheck {
 public:
  RoleMemoryCheck(const PlanFacts& plan, const Sums& sums, Reports reports)
      : plan_(plan),
        facts_(plan.facts),
        dag_(plan.facts.dag),
        accesses_(plan, sums),
        reports_(reports) {}

  void check(const RoleView& view, const HappensBefore& before) {
    view_ = &view;
    before_ = &before;
    role_ = &view.role();
    first_action_ = plan_.first_action[view.number()];
    lanes_ = plan_.lanes.data() + plan_.first_lane[view.number()];
    accesses_.set_role(view);
    cells_.assign(accesses_.num_cells(), {});
    reads_.assign(cells_.size() * before.width(), kLongAgo);
    const std::span<const std::uint32_t> ended = plan_.ended_of(view.number());
    for (step_ = 0; step_ < 2; ++step_) {
      if (step_ > 0) begin_next_step();
      for (const std::uint32_t a : ended) {
        action(a);
        if (reports_.enough()) return;
      }
    }
  }

 private:
  void action(std::uint32_t a) {
    const std::span<const Access> accesses = accesses_.of(a - first_action_);
    const Access* const first = accesses.data();
    const Access* const last = first + accesses.size();
    counts_ = before_->row(a);
    stamp_ = a * 2 + step_;
    const Step& step = plan_.steps[a];
    lane_ = step.lane;
    end_ = static_cast<std::int32_t>(step.position) + 1;
    const Access* access = first;
    for (; access != last && access->kind <= Access::Kind::read_param; ++access)
      read(a, *access, static_cast<std::uint32_t>(access - first));
    const Access* const reads_end = access;
    for (; access != last; ++access) {
      switch (access->kind) {
        case Access::Kind::write_value: write_output(a, *access); break;
        case Access::Kind::write_sum:
          add_to_sum(a, *access, static_cast<std::uint32_t>(access - first));
          break;
        case Access::Kind::write_param: write_param(a, *access); break;
        case Access::Kind::write_state: write_state(a, *access); break;
        default: {
          Content content;
          content.kind = Content::Kind::garbage;
          write(a, *access, content, kNone);
        }
      }
    }
    // Reads are recorded only now: a cell that the action itself overwrote needs none.
    for (access = first; access != reads_end; ++access) {
      for (std::uint32_t c = access->first; c < access->last; ++c) {
        Cell& cell = cells_[c];
        if (cell.write_stamp == stamp_) continue;
        if (cell.reader_lane != kNone && cell.reader_lane != lane_) {
          reads_[std::size_t{c} * before_->width() + cell.reader_lane] = cell.reader_end;
          cell.many_readers = true;
        }
        cell.reader_lane = lane_;
        cell.reader_end = end_;
      }
    }
  }

  /// From here on this step is the previous one.
  void begin_next_step() {
    const auto age = [&](std::int32_t& end, std::uint32_t lane) {
      if (end != kLongAgo) end -= static_cast<std::int32_t>(lanes_[lane].size);
    };
    const std::size_t width = before_->width();
    for (std::size_t c = 0; c < cells_.size(); ++c) {
      age(cells_[c].writer_end, cells_[c].writer_lane);
      if (cells_[c].reader_lane != kNone) age(cells_[c].reader_end, cells_[c].reader_lane);
      for (std::uint32_t lane = 0; cells_[c].many_readers && lane < width; ++lane)
        age(reads_[c * width + lane], lane);
    }
  }

  /// The current action starts after this many actions of a stream have ended.
  bool after(std::uint32_t lane, std::int32_t end) const { return counts_[lane] >= end; }
  bool after_write(const Cell& cell) const { return after(cell.writer_lane, cell.writer_end); }

  void data_race(std::uint32_t a, std::uint32_t other, const char* what) {
    reports_.sink
        .report(Code::data_race, plan_.loc(a), "`{}` {} `{}` on `{}`, and nothing orders the two",
                plan_.name(a), what, plan_.name(other), facts_.text(role_->name))
        .related(plan_.loc(other), "`{}` is here", plan_.name(other))
        .hint("an event, or another place in the arena, is missing");
  }

  std::string describe(const Content& content) const {
    switch (content.kind) {
      case Content::Kind::initial: return "what was there before the first step";
      case Content::Kind::claimed:
        return "parameter `" + std::string(facts_.text(dag_.params[content.id].name)) + "`";
      case Content::Kind::garbage: return "workspace or padding";
      case Content::Kind::value:
        return "`" + facts_.text(facts_.port(content.id)) + "`" +
               (content.step == step_ ? "" : " of the step before");
      case Content::Kind::sum:
        return "a gradient with " + std::to_string(content.count) + " contributions" +
               (content.step == step_ ? "" : " of the step before");
      case Content::Kind::optimizer:
        return "optimizer state of `" + std::string(facts_.text(dag_.buckets[content.id].name)) +
               "`";
    }
    return {};
  }

  /// Checks that it holds the optimizer state of its bucket, or the initial state.
  void read_state(std::uint32_t a, const Access& access) {
    for (std::uint32_t c = access.first; c < access.last; ++c) {
      if (!after_write(cells_[c])) return data_race(a, cells_[c].writer, "reads bytes written by");
      const Content& has = cells_[c].content;
      if (has.kind == Content::Kind::initial ||
          (has.kind == Content::Kind::optimizer && has.id == access.id && has.base == access.base))
        continue;
      reports_.sink.report(Code::wrong_value, plan_.loc(a),
                           "`{}` needs the optimizer state of its bucket, but these bytes hold {}",
                           plan_.name(a), describe(has));
      return;
    }
  }

  void read(std::uint32_t a, const Access& access, std::uint32_t operand) {
    if (access.kind == Access::Kind::read_state) return read_state(a, access);
    Content wanted;
    wanted.kind = Content::Kind::value;
    wanted.step = static_cast<std::uint8_t>(step_);
    wanted.buffer = access.buffer;
    wanted.base = access.base;
    wanted.id = access.id;
    if (access.kind == Access::Kind::read_sum) {
      wanted.kind = Content::Kind::sum;
      wanted.count = access.other;
    } else if (access.kind == Access::Kind::read_param) {
      wanted.step = 0;
      const bool untouched = dag_.forward_only || dag_.params[access.other].frozen;
      if (step_ == 0 || untouched) {
        wanted.kind = Content::Kind::claimed;
        wanted.id = access.other;
      }
      if (untouched && !state_place(access, access.other)) {
        reports_.sink.report(Code::wrong_value, plan_.loc(a),
                             "`{}` does not read parameter `{}` where its bucket has it",
                             plan_.name(a), facts_.text(dag_.params[access.other].name));
        return;
      }
    }
    for (std::uint32_t c = access.first; c < access.last; ++c) {
      Cell& cell = cells_[c];
      if (!after_write(cell)) return data_race(a, cell.writer, "reads bytes written by");
      Content& has = cell.content;
      if (has.kind == Content::Kind::initial && wanted.kind == Content::Kind::claimed) has = wanted;
      if (has.kind != wanted.kind || has.id != wanted.id || has.count != wanted.count ||
          has.base != wanted.base || has.step != wanted.step || has.buffer != wanted.buffer) {
        return wrong_value(a, operand, wanted, c);
      }
      cell.read_stamp = stamp_;
      cell.read_operand = operand;
    }
  }

  void wrong_value(std::uint32_t a, std::uint32_t operand, const Content& wanted, std::uint32_t c) {
    const Content& has = cells_[c].content;
    const Input& edge = dag_.edges[view_->ports(a - first_action_)[operand].edge];
    const std::string what =
        wanted.kind == Content::Kind::claimed
            ? "parameter `" + std::string(facts_.text(dag_.params[wanted.id].name)) + "`"
        : wanted.kind == Content::Kind::sum ? "the whole sum `" + facts_.text(edge.source) + "`"
                                            : "`" + facts_.text(edge.source) + "`";
    auto report = reports_.sink.report(
        Code::wrong_value, plan_.loc(a),
        "`{}` needs {}, but byte `{}` of the arena of `{}` holds {}{}", plan_.name(a), what,
        accesses_.byte_of(c), facts_.text(role_->name), describe(has),
        has.id != wanted.id           ? ""
        : has.base != wanted.base     ? ", begun at another place"
        : has.buffer != wanted.buffer ? ", written to another buffer"
                                      : "");
    if (cells_[c].writer != kNone)
      report.related(plan_.loc(cells_[c].writer), "`{}` wrote there last",
                     plan_.name(cells_[c].writer));
  }

  /// Whether the parameter is at its place in the bucket: in order, each aligned.
  bool state_place(const Access& access, std::uint32_t param) const {
    for (const dag::Buffer& buffer : role_->buffers) {
      if (buffer.cls != dag::BufferClass::parameters || !buffer.bucket.valid()) continue;
      std::int64_t at = buffer.offset;
      for (const tensor::ParamId each : dag_.buckets[buffer.bucket.index()].params) {
        if (each.value() == param) return access.base == at;
        at += aligned(dag_.param_types[each.index()].bytes());
      }
    }
    return false;
  }

  void write_output(std::uint32_t a, const Access& access) {
    Content content;
    content.kind = Content::Kind::value;
    content.id = access.id;
    content.step = static_cast<std::uint8_t>(step_);
    content.buffer = access.buffer;
    content.base = access.base;
    write(a, access, content, access.other);
  }

  void add_to_sum(std::uint32_t a, const Access& access, std::uint32_t operand) {
    const std::uint32_t place = access.other;
    const bool accumulate = role_->operands[plan_.action(a).first_operand + operand].accumulate;
    Content content;
    content.kind = Content::Kind::sum;
    content.id = access.id;
    content.count = place + 1;
    content.step = static_cast<std::uint8_t>(step_);
    content.buffer = access.buffer;
    content.base = access.base;
    if (accumulate == (place == 0)) {
      reports_.sink.report(
          Code::wrong_accumulation, plan_.loc(a),
          "`{}` {} its gradient, but it is contribution `{}`: the first writes, later ones add",
          plan_.name(a), accumulate ? "adds" : "writes", place);
      return;
    }
    for (std::uint32_t c = access.first; accumulate && c < access.last; ++c) {
      const Content& has = cells_[c].content;
      if (!after_write(cells_[c]))
        return data_race(a, cells_[c].writer, "adds to bytes written by");
      if (has.kind == Content::Kind::sum && has.id == access.id && has.step == step_ &&
          has.base == access.base && has.count + 1 == content.count)
        continue;
      reports_.sink.report(Code::wrong_accumulation, plan_.loc(a),
                           "`{}` adds contribution `{}` to bytes that hold {}", plan_.name(a),
                           place, describe(has));
      return;
    }
    write(a, access, content, kNone);
  }

  /// An update reads the parameter's initial value, or that of the previous step.
  void write_param(std::uint32_t a, const Access& access) {
    for (std::uint32_t c = access.first; c < access.last; ++c) {
      const Content& has = cells_[c].content;
      if (has.kind == Content::Kind::initial) continue;
      if (has.kind == Content::Kind::claimed && has.id == access.other && has.base == access.base)
        continue;
      if (has.kind == Content::Kind::value && left_by(has.id) == access.id && has.step != step_ &&
          has.base == access.base)
        continue;
      reports_.sink.report(Code::wrong_value, plan_.loc(a),
                           "`{}` needs parameter `{}`, but its bytes hold {}", plan_.name(a),
                           facts_.text(dag_.params[access.other].name), describe(has));
      break;  // later reads of the parameter find this value
    }
    Access made = access;
    made.other = kNone;
    write_output(a, made);
  }

  /// The output of the update that made a parameter. An all-gather passes its inputs on, except
  /// that it makes a copy if parameters are sharded at rest.
  std::uint32_t left_by(std::uint32_t output) const {
    const Port port = facts_.port(output);
    if (!gathers_shards(facts_.kind[port.node.index()]) ||
        dag_.shards_parameters(dag_.buckets[facts_.node(port.node).subject.bucket().index()]))
      return output;
    return facts_.output(dag_.inputs_of(facts_.node(port.node))[port.index].source);
  }

  void write_state(std::uint32_t a, const Access& access) {
    Content content;
    content.kind = Content::Kind::optimizer;
    content.id = access.id;
    content.base = access.base;
    for (std::uint32_t c = access.first; c < access.last; ++c) {
      const Content& has = cells_[c].content;
      if (has.kind == Content::Kind::initial || (has.kind == Content::Kind::optimizer &&
                                                 has.id == content.id && has.base == content.base))
        continue;
      reports_.sink.report(Code::wrong_value, plan_.loc(a),
                           "`{}` needs the optimizer state of its bucket, but these bytes hold {}",
                           plan_.name(a), describe(has));
      return;
    }
    write(a, access, content, kNone);
  }

  /// `in_place`: the operand that may have been read from the same bytes.
  void write(std::uint32_t a, const Access& access, const Content& content,
             std::uint32_t in_place) {
    for (std::uint32_t c = access.first; c < access.last; ++c) {
      Cell& cell = cells_[c];
      if (cell.write_stamp == stamp_ ||
          (cell.read_stamp == stamp_ &&
           !(cell.read_operand == in_place && same_place(a, in_place, access)))) {
        reports_.sink.report(Code::wrong_operand, plan_.loc(a),
                             "two operands of `{}` share bytes of the arena of `{}`", plan_.name(a),
                             facts_.text(role_->name));
        return;
      }
      if (!after_write(cell)) return data_race(a, cell.writer, "overwrites bytes written by");
      if (cell.many_readers) {
        std::int32_t* const reads = reads_.data() + std::size_t{c} * before_->width();
        reads[cell.reader_lane] = cell.reader_end;
        for (std::uint32_t lane = 0; lane < before_->width(); ++lane) {
          if (!after(lane, reads[lane])) return data_race_with_read(a, lane, reads[lane]);
          reads[lane] = kLongAgo;
        }
      } else if (cell.reader_lane != kNone && !after(cell.reader_lane, cell.reader_end)) {
        return data_race_with_read(a, cell.reader_lane, cell.reader_end);
      }
      cell.many_readers = false;
      cell.reader_lane = kNone;
      cell.content = content;
      cell.writer = a;
      cell.writer_lane = lane_;
      cell.writer_end = end_;
      cell.write_stamp = stamp_;
    }
  }

  void data_race_with_read(std::uint32_t a, std::uint32_t lane, std::int32_t end) {
    const std::uint32_t position =
        static_cast<std::uint32_t>(end > 0 ? end
                                           : end + static_cast<std::int32_t>(lanes_[lane].size)) -
        1;
    data_race(a, plan_.action_at[lanes_[lane].first + position], "overwrites bytes read by");
  }

  bool same_place(std::uint32_t a, std::uint32_t operand, const Access& access) const {
    return accesses_.of(a - first_action_)[operand].base == access.base;
  }

  const PlanFacts& plan_;
  const Facts& facts_;
  const Dag& dag_;
  MemoryAccesses accesses_;
  Reports reports_;
  const RoleView* view_ = nullptr;
  const HappensBefore* before_ = nullptr;
  const dag::Role* role_ = nullptr;
  std::uint32_t first_action_ = 0;
  const Lane* lanes_ = nullptr;
  std::vector<Cell> cells_;
  // Per cell and stream, if several streams read: the last end that must come before a write.
  std::vector<std::int32_t> reads_;
  int step_ = 0;
  // The current action.
  const std::int32_t* counts_ = nullptr;
  std::uint32_t stamp_ = 0, lane_ = 0;
  std::int32_t end_ = 0;
};

}  // namespace

// The implementation is in the unnamed namespace, so the compiler knows all callers.
class MemoryCheck::RoleMemory : public RoleMemoryCheck {
  using RoleMemoryCheck::RoleMemoryCheck;
};

MemoryCheck::MemoryCheck(const PlanFacts& plan, const Sums& sums, Reports reports)
    : memory_(std::make_unique<RoleMemory>(plan, sums, reports)) {}
MemoryCheck::~MemoryCheck() = default;
void MemoryCheck::check(const RoleView& view, const HappensBefore& before) {
  memory_->check(view, before);
}

Sums::Sums(const Facts& facts) : sum_of(facts.owner.size(), kNone), place(facts.owner.size(), 0) {
  for (const NodeId id : facts.around) {
    if (!adds_in_place(facts.node(id).kind)) continue;
    for_each_port(facts.dag, facts.node(id), [&](std::span<const Input> terms) {
      const std::uint32_t sum = facts.output({id, terms[0].port});
      for (std::uint32_t k = 0; k < terms.size(); ++k) {
        sum_of[facts.output(terms[k].source)] = sum;
        place[facts.output(terms[k].source)] = k;
      }
      sum_of[sum] = sum;
      place[sum] = static_cast<std::uint32_t>(terms.size());
    });
  }
}

}  // namespace piper::verify
