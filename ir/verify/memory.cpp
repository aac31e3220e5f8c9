#include <algorithm>

#include "ir/dag/text_names.h"
#include "ir/verify/plan_facts.h"
#include "llvm/ADT/DenseMap.h"

namespace piper::verify {

namespace {

using dag::EdgeClass;

/// What the bytes of a cell hold.
struct Content {
  enum class Kind : std::uint8_t { initial, claimed, garbage, value, sum, optimizer } kind = Kind::initial;
  std::uint8_t step = 0;
  std::uint32_t id = kNone;     // claimed: parameter; value: output; sum: the sum's first edge; optimizer: bucket
  std::uint32_t count = 0;      // sum: contributions so far
  std::int64_t base = 0;        // where the value begins
};

/// A run of bytes that every access covers wholly or not at all.
struct Cell {
  Content content;
  std::uint32_t writer = kNone;      // the last action that wrote here, and in which step
  std::uint8_t writer_step = 0;
  bool read = false;                 // since the last write
  std::uint32_t read_stamp = kNone;  // the action, and its operand, that reads here right now
  std::uint32_t read_operand = 0;
  std::uint32_t write_stamp = kNone;
};

struct Access {
  std::uint32_t first = 0, last = 0;  // cells
  std::int64_t base = 0;
};

/// Runs the actions of one role twice, in an order in which they may end. Every access is checked against the last write of its bytes, every
/// write also against the reads since: by induction all conflicting pairs are ordered then, and what the bytes hold does not depend on timing.
class RoleMemory {
 public:
  RoleMemory(PlanFacts& plan, const HappensBefore& before, std::span<const std::uint32_t> sum_of, std::span<const std::uint32_t> place_in_sum)
      : plan_(plan), facts_(plan.facts), dag_(plan.facts.dag), before_(before), sum_of_(sum_of), place_in_sum_(place_in_sum) {}

  void check(std::uint32_t role, std::span<const std::uint32_t> ended) {
    role_number_ = role;
    role_ = &plan_.plan.roles[role];
    lay_out();
    // The streams of this role alone, so that cells stay small.
    streams_.clear();
    for (std::size_t s = 0; s < plan_.num_streams(); ++s) {
      if (plan_.stream_size[role * plan_.num_streams() + s] > 0) streams_.push_back(s);
    }
    stream_place_.assign(plan_.num_streams(), 0);
    for (std::size_t k = 0; k < streams_.size(); ++k) stream_place_[streams_[k]] = k;
    reads_.assign(cells_.size() * streams_.size(), 0);
    for (step_ = 0; step_ < 2; ++step_) {
      for (const std::uint32_t a : ended) {
        action(a);
        if (facts_.enough()) return;
      }
    }
  }

 private:
  std::int64_t input_bytes(const Node& node, const Input& input) const {
    if (input.source.node.valid()) return dag_.output_type(input.source).bytes();
    const dag::Body& body = dag_.bodies[node.body.index()];
    return body.graph.type(body.inputs[input.port].value).bytes();
  }

  // ---- cells -------------------------------------------------------------------------------------------------------------

  std::uint32_t edge_at(std::int64_t byte) {
    const auto [entry, fresh] = edges_.try_emplace(byte, static_cast<std::uint32_t>(bytes_.size()));
    if (fresh) bytes_.push_back(byte);
    return entry->second;
  }
  void add(std::int64_t base, std::int64_t bytes) {
    if (bytes <= 0) {
      accesses_.push_back({0, 0, base});
      return;
    }
    const std::uint32_t first = edge_at(base);
    accesses_.push_back({first, edge_at(base + bytes), base});
  }

  /// One access per operand, then those to optimizer state, per action.
  void lay_out() {
    edges_.clear();
    bytes_.clear();
    accesses_.clear();
    first_access_.clear();
    state_.assign(role_->actions.size(), 0);
    std::vector<std::vector<std::uint32_t>> optimizer(dag_.buckets.size());
    for (std::uint32_t b = 0; b < role_->buffers.size(); ++b) {
      const dag::Buffer& buffer = role_->buffers[b];
      if (buffer.cls == dag::BufferClass::optimizer && buffer.bucket.valid()) optimizer[buffer.bucket.index()].push_back(b);
    }
    for (std::size_t i = 0; i < role_->actions.size(); ++i) {
      const Action& action = role_->actions[i];
      const Node& node = facts_.node(action.node);
      first_access_.push_back(static_cast<std::uint32_t>(accesses_.size()));
      std::uint32_t k = 0;
      const auto operand = [&](std::int64_t bytes) {
        const dag::Operand& each = role_->operands[action.first_operand + k++];
        const dag::Buffer& buffer = role_->buffers[each.buffer.index()];
        add(buffer.offset + each.offset, bytes < 0 ? buffer.bytes - each.offset : bytes);
      };
      for_each_port(dag_, node, [&](std::span<const Input> sources) { operand(input_bytes(node, sources[0])); });
      for (std::uint32_t out = 0; out < node.num_outputs; ++out) operand(dag_.output_type({action.node, out}).bytes());
      while (k < action.num_operands) operand(-1);
      if (node.kind != NodeKind::update) continue;
      for (const std::uint32_t b : optimizer[node.bucket.index()]) {
        add(role_->buffers[b].offset, role_->buffers[b].bytes);
        ++state_[i];
      }
    }
    first_access_.push_back(static_cast<std::uint32_t>(accesses_.size()));
    std::vector<std::uint32_t> by_byte(bytes_.size()), rank(bytes_.size());
    for (std::uint32_t k = 0; k < by_byte.size(); ++k) by_byte[k] = k;
    std::sort(by_byte.begin(), by_byte.end(), [&](std::uint32_t a, std::uint32_t b) { return bytes_[a] < bytes_[b]; });
    for (std::uint32_t k = 0; k < by_byte.size(); ++k) rank[by_byte[k]] = k;
    for (Access& access : accesses_) {
      if (access.first == access.last) continue;
      access.first = rank[access.first];
      access.last = rank[access.last];
    }
    cells_.assign(bytes_.size(), {});
  }

  // ---- one action --------------------------------------------------------------------------------------------------------

  void action(std::uint32_t a) {
    const std::uint32_t local = a - plan_.first_action[role_number_];
    const Action& action = role_->actions[local];
    const Node& node = facts_.node(action.node);
    const std::uint32_t first = first_access_[local];
    const std::uint32_t last = first_access_[local + 1];
    std::uint32_t k = first;
    for_each_port(dag_, node, [&](std::span<const Input> sources) {
      read(a, node, sources, accesses_[k], k - first);
      ++k;
    });
    const std::uint32_t inputs = k - first;
    for (std::uint32_t out = 0; out < node.num_outputs; ++out, ++k) write_output(a, node, out, accesses_[k], inputs);
    for (; k < last - state_[local]; ++k) {
      Content content;
      content.kind = Content::Kind::garbage;
      write(a, accesses_[k], content, kNone);
    }
    for (; k < last; ++k) write_state(a, node, accesses_[k]);
    // Reads count from here on: a cell that the action itself overwrote needs none.
    const std::size_t place = stream_place_[action.stream.index()];
    const std::int32_t end = absolute_end(a);
    for (k = first; k < first + inputs; ++k) {
      for (std::uint32_t c = accesses_[k].first; c < accesses_[k].last; ++c) {
        if (cells_[c].write_stamp == stamp(a)) continue;
        reads_[std::size_t{c} * streams_.size() + place] = end;
        cells_[c].read = true;
      }
    }
  }

  std::uint32_t stamp(std::uint32_t a) const { return a * 2 + step_; }
  std::int32_t size(std::size_t stream) const { return static_cast<std::int32_t>(plan_.stream_size[role_number_ * plan_.num_streams() + stream]); }
  /// How many actions of its stream have ended when a has, over both steps.
  std::int32_t absolute_end(std::uint32_t a) const {
    const Action& action = plan_.action(a);
    return static_cast<std::int32_t>(action.position) + 1 + step_ * size(action.stream.index());
  }
  bool after_write(std::uint32_t a, const Cell& cell) const {
    if (cell.writer == kNone) return true;
    const Action& writer = plan_.action(cell.writer);
    const std::size_t s = writer.stream.index();
    return before_.count(a, s) + step_ * size(s) >= static_cast<std::int32_t>(writer.position) + 1 + cell.writer_step * size(s);
  }

  void race(std::uint32_t a, std::uint32_t other, const char* what) {
    facts_.sink
        .report(Code::race, plan_.loc(a), "`{}` {} `{}` on `{}`, and nothing orders the two", plan_.name(a), what, plan_.name(other), facts_.text(role_->name))
        .related(plan_.loc(other), "`{}` is here", plan_.name(other))
        .hint("an event, or another place in the arena, is missing");
  }

  std::string describe(const Content& content) const {
    switch (content.kind) {
      case Content::Kind::initial:
        return "what was there before the first step";
      case Content::Kind::claimed:
        return "parameter `" + std::string(facts_.text(dag_.params[content.id].name)) + "`";
      case Content::Kind::garbage:
        return "workspace";
      case Content::Kind::value:
        return "`" + facts_.text(facts_.port(content.id)) + "`" + (content.step == step_ ? "" : " of the step before");
      case Content::Kind::sum:
        return "a gradient with " + std::to_string(content.count) + " contributions" + (content.step == step_ ? "" : " of the step before");
      case Content::Kind::optimizer:
        return "optimizer state of `" + std::string(facts_.text(dag_.buckets[content.id].name)) + "`";
    }
    return {};
  }

  void read(std::uint32_t a, const Node& node, std::span<const Input> sources, const Access& access, std::uint32_t operand) {
    const Input& edge = sources[0];
    Content wanted;
    wanted.kind = Content::Kind::value;
    wanted.step = step_;
    wanted.base = access.base;
    std::uint32_t param = kNone;
    if (edge.cls == EdgeClass::param) {
      param = param_of(node, edge);
      if (step_ == 0 || dag_.forward_only) {
        wanted.kind = Content::Kind::claimed;
        wanted.id = param;
        wanted.step = 0;
      } else {
        wanted.id = facts_.output(edge.source);
        wanted.step = 0;
      }
    } else if (const std::uint32_t sum = sum_of_[facts_.output(edge.source)]; sum != kNone) {
      wanted.kind = Content::Kind::sum;
      wanted.id = sum;
      wanted.count = static_cast<std::uint32_t>(sources.size());
    } else {
      wanted.id = facts_.output(edge.source);
    }
    if (dag_.forward_only && edge.cls == EdgeClass::param && !state_place(access, param)) {
      facts_.sink.report(Code::wrong_value, plan_.loc(a), "`{}` does not read parameter `{}` where its bucket has it", plan_.name(a), facts_.text(dag_.params[param].name));
      return;
    }
    for (std::uint32_t c = access.first; c < access.last; ++c) {
      Cell& cell = cells_[c];
      if (!after_write(a, cell)) return race(a, cell.writer, "reads what is written by");
      Content& has = cell.content;
      if (has.kind == Content::Kind::initial && wanted.kind == Content::Kind::claimed) has = wanted;
      if (has.kind != wanted.kind || has.id != wanted.id || has.count != wanted.count || has.base != wanted.base || has.step != wanted.step) {
        const std::string what = wanted.kind == Content::Kind::claimed ? "parameter `" + std::string(facts_.text(dag_.params[param].name)) + "`"
                                 : wanted.kind == Content::Kind::sum   ? "the whole gradient with `" + facts_.text(edge.source) + "`"
                                                                       : "`" + facts_.text(edge.source) + "`";
        auto report = facts_.sink.report(Code::wrong_value, plan_.loc(a), "`{}` needs {}, but byte `{}` of the arena of `{}` holds {}{}", plan_.name(a), what, bytes_of(c), facts_.text(role_->name),
                                         describe(has), has.base != wanted.base && has.id == wanted.id ? ", begun at another place" : "");
        if (cell.writer != kNone) report.related(plan_.loc(cell.writer), "`{}` wrote there last", plan_.name(cell.writer));
        return;
      }
      cell.read_stamp = stamp(a);
      cell.read_operand = operand;
    }
  }

  std::uint32_t param_of(const Node& node, const Input& edge) const {
    if (edge.source.node.valid()) return dag_.buckets[facts_.node(edge.source.node).bucket.index()].params[edge.source.index].value();
    return dag_.bodies[node.body.index()].inputs[edge.port].param.value();
  }

  /// Whether a parameter stands there by its bucket: packed in order, or each on a boundary of 64 bytes.
  bool state_place(const Access& access, std::uint32_t param) const {
    for (const dag::Buffer& buffer : role_->buffers) {
      if (buffer.cls != dag::BufferClass::parameters || !buffer.bucket.valid()) continue;
      std::int64_t packed = buffer.offset, aligned = buffer.offset;
      for (const tensor::ParamId each : dag_.buckets[buffer.bucket.index()].params) {
        if (each.value() == param) return access.base == packed || access.base == aligned;
        const std::int64_t bytes = dag_.param_types[each.index()].bytes();
        packed += bytes;
        aligned += (bytes + 63) / 64 * 64;
      }
    }
    return false;
  }

  std::int64_t bytes_of(std::uint32_t cell) {
    std::vector<std::int64_t> sorted = bytes_;
    std::sort(sorted.begin(), sorted.end());
    return sorted[cell];
  }

  void write_output(std::uint32_t a, const Node& node, std::uint32_t out, const Access& access, std::uint32_t inputs) {
    const std::uint32_t id = facts_.output_base[plan_.action(a).node.index()] + out;
    Content content;
    content.kind = Content::Kind::value;
    content.id = id;
    content.step = step_;
    content.base = access.base;
    std::uint32_t in_place = kNone;
    if (node.kind == NodeKind::all_reduce) in_place = out;
    if (node.kind == NodeKind::all_gather) {
      // The output that carries the member's own input may stay where it is.
      std::uint32_t port = 0;
      for_each_port(dag_, node, [&](std::span<const Input> sources) {
        if (facts_.origin[id] == facts_.origin[facts_.output(sources[0].source)]) in_place = port;
        ++port;
      });
    }
    const std::uint32_t sum = sum_of_[id];
    if (sum != kNone) {
      const Action& action = plan_.action(a);
      const bool accumulate = role_->operands[action.first_operand + inputs + out].accumulate;
      content.kind = Content::Kind::sum;
      content.id = sum;
      content.count = place_in_sum_[id] + 1;
      const bool first = place_in_sum_[id] == 0;
      if (accumulate == first) {
        facts_.sink.report(Code::wrong_accumulation, node.loc, "`{}` {} its gradient, but it is contribution `{}`: the first writes, later ones add", plan_.name(a), accumulate ? "adds" : "writes",
                           place_in_sum_[id]);
        return;
      }
      for (std::uint32_t c = access.first; accumulate && c < access.last; ++c) {
        const Content& has = cells_[c].content;
        if (!after_write(a, cells_[c])) return race(a, cells_[c].writer, "adds to what is written by");
        if (has.kind == Content::Kind::sum && has.id == sum && has.step == step_ && has.base == access.base && has.count + 1 == content.count) continue;
        facts_.sink.report(Code::wrong_accumulation, node.loc, "`{}` adds contribution `{}` to bytes that hold {}", plan_.name(a), place_in_sum_[id], describe(has));
        return;
      }
    }
    write(a, access, content, in_place);
  }

  void write_state(std::uint32_t a, const Node& node, const Access& access) {
    Content content;
    content.kind = Content::Kind::optimizer;
    content.id = node.bucket.value();
    content.base = access.base;
    for (std::uint32_t c = access.first; c < access.last; ++c) {
      const Content& has = cells_[c].content;
      if (has.kind == Content::Kind::initial || (has.kind == Content::Kind::optimizer && has.id == content.id && has.base == content.base)) continue;
      facts_.sink.report(Code::wrong_value, node.loc, "`{}` needs its optimizer state, but its bytes hold {}", plan_.name(a), describe(has));
      return;
    }
    write(a, access, content, kNone);
  }

  void write(std::uint32_t a, const Access& access, const Content& content, std::uint32_t in_place) {
    const std::uint32_t now = stamp(a);
    for (std::uint32_t c = access.first; c < access.last; ++c) {
      Cell& cell = cells_[c];
      if (cell.write_stamp == now || (cell.read_stamp == now && !(cell.read_operand == in_place && same_place(a, in_place, access)))) {
        facts_.sink.report(Code::wrong_operand, plan_.loc(a), "two operands of `{}` share bytes of the arena of `{}`", plan_.name(a), facts_.text(role_->name));
        return;
      }
      if (!after_write(a, cell)) return race(a, cell.writer, "overwrites what is written by");
      if (cell.read) {
        std::int32_t* const reads = reads_.data() + std::size_t{c} * streams_.size();
        for (std::size_t k = 0; k < streams_.size(); ++k) {
          const std::size_t s = streams_[k];
          if (reads[k] != 0 && before_.count(a, s) + step_ * size(s) < reads[k]) {
            const std::int32_t position = (reads[k] - 1) % size(s);
            return race(a, plan_.at(role_number_, dag::StreamId::at(s), static_cast<std::uint32_t>(position)), "overwrites what is read by");
          }
          reads[k] = 0;
        }
        cell.read = false;
      }
      cell.content = content;
      cell.writer = a;
      cell.writer_step = static_cast<std::uint8_t>(step_);
      cell.write_stamp = now;
    }
  }

  bool same_place(std::uint32_t a, std::uint32_t operand, const Access& access) const {
    return accesses_[first_access_[a - plan_.first_action[role_number_]] + operand].base == access.base;
  }

  PlanFacts& plan_;
  Facts& facts_;
  const Dag& dag_;
  const HappensBefore& before_;
  std::span<const std::uint32_t> sum_of_, place_in_sum_;
  std::uint32_t role_number_ = 0;
  const dag::Role* role_ = nullptr;
  llvm::DenseMap<std::int64_t, std::uint32_t> edges_;
  std::vector<std::int64_t> bytes_;
  std::vector<Access> accesses_;
  std::vector<std::uint32_t> first_access_, state_;
  std::vector<Cell> cells_;
  std::vector<std::size_t> streams_, stream_place_;
  std::vector<std::int32_t> reads_;  // per cell and stream of the role: the last end that must come before a write
  int step_ = 0;
};

}  // namespace

void check_memory(PlanFacts& plan, const HappensBefore& before) {
  const Facts& facts = plan.facts;
  const Dag& dag = facts.dag;
  // Which contributions are added in one place, and in which order.
  std::vector<std::uint32_t> sum_of(facts.owner.size(), kNone), place_in_sum(facts.owner.size(), 0);
  for (const Node& node : dag.nodes) {
    if (!node.bucket.valid() || (node.kind != NodeKind::all_reduce && node.kind != NodeKind::update)) continue;
    for_each_port(dag, node, [&](std::span<const Input> sources) {
      if (facts.node(sources[0].source.node).kind != NodeKind::chunk) return;
      const auto id = static_cast<std::uint32_t>(sources.data() - dag.edges.data());
      for (std::size_t k = 0; k < sources.size(); ++k) {
        sum_of[facts.output(sources[k].source)] = id;
        place_in_sum[facts.output(sources[k].source)] = static_cast<std::uint32_t>(k);
      }
    });
  }
  // The order in which actions end, role by role.
  std::vector<std::uint32_t> first(plan.plan.roles.size() + 1, 0), ended(plan.ended.size());
  for (const std::uint32_t a : plan.ended) ++first[plan.role_of[a] + 1];
  for (std::size_t r = 0; r < plan.plan.roles.size(); ++r) first[r + 1] += first[r];
  std::vector<std::uint32_t> fill(first.begin(), first.end() - 1);
  for (const std::uint32_t a : plan.ended) ended[fill[plan.role_of[a]]++] = a;
  RoleMemory memory(plan, before, sum_of, place_in_sum);
  for (std::uint32_t r = 0; r < plan.plan.roles.size() && !facts.enough(); ++r) {
    memory.check(r, std::span<const std::uint32_t>(ended).subspan(first[r], first[r + 1] - first[r]));
  }
}

}  // namespace piper::verify
