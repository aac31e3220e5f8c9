#include <algorithm>
#include <cstdio>
#include <map>
#include <tuple>

#include "ir/verify/plan_facts.h"

namespace piper::verify {

namespace {

using directive::Measure;
using dag::EdgeClass;

/// The measures that a `require` of the header bounds, from the actions and messages of the plan.
class Measures {
 public:
  explicit Measures(const Facts& facts) : facts_(facts), dag_(facts.dag) {}

  double of(Measure measure) const {
    switch (measure) {
      case Measure::peak_memory: return peak_memory();
      case Measure::traffic: return traffic();
      case Measure::bubble: return bubble();
    }
    return 0;
  }

 private:
  /// The largest arena.
  double peak_memory() const {
    std::int64_t most = 0;
    for (const dag::Role& role : dag_.plan->roles) most = std::max(most, role.arena_bytes);
    return static_cast<double>(most);
  }

  /// The bytes of one device's values that a member brings: each input port once.
  std::int64_t brought(const Node& member) const {
    std::int64_t bytes = 0;
    if (const auto bucket = member.subject.bucket(); bucket.valid() && dag_.buckets[bucket.index()].flat != 0) {
      // The bucket moves as it lies, or one block of it.
      const dag::Bucket& flat = dag_.buckets[bucket.index()];
      return bucket_bytes(dag_, flat) / (traits(member.kind).traffic == dag::Traffic::add ? shares_of(dag_, flat) : 1);
    }
    for_each_port(dag_, member, [&](std::span<const Input> sources) { bytes += facts_.output_bytes[facts_.output(sources[0].source)]; });
    return bytes;
  }

  /// The bytes that all devices send. In a ring of n devices each sends what the n hold, to gather it n - 1 times, to add it 2 (n - 1) / n times,
  /// to scatter the sum or to unite blocks (n - 1) / n times.
  double traffic() const {
    std::int64_t total = 0;
    for (const dag::Comm& comm : dag_.comms) {
      const Node& first = facts_.node(comm.members.front());
      std::int64_t bytes = 0;
      for (const NodeId member : comm.members) bytes += brought(facts_.node(member));
      const auto devices = static_cast<std::int64_t>(dag_.device_sets[first.devices].devices(dag_.mesh));
      std::int64_t joined = 1;
      for (std::size_t axis = 0; axis < dag_.mesh.axes.size(); ++axis) joined *= (comm.axes >> axis & 1) != 0 ? dag_.mesh.axes[axis].size : 1;
      const auto sets = static_cast<std::int64_t>(comm.members.size());
      const std::int64_t rings = devices / joined, in_ring = joined * sets;
      switch (traits(first.kind).traffic) {
        case dag::Traffic::none:
        case dag::Traffic::out:
        case dag::Traffic::back: break;  // between devices alone
        case dag::Traffic::send:
        case dag::Traffic::recv: total += bytes * devices; break;
        case dag::Traffic::gather: total += rings * joined * bytes * (in_ring - 1); break;
        case dag::Traffic::scatter:
        case dag::Traffic::unite: total += rings * (in_ring - 1) * bytes; break;
        case dag::Traffic::add: total += rings * 2 * (in_ring - 1) * (bytes / sets); break;
      }
    }
    return static_cast<double>(total);
  }

  /// What the order of the passes says beside the values: a backward follows its forward, what runs again stands between them, BW follows its BI, and backwards follow each other as the forwards do, the
  /// other way around. Pairs (later, earlier), sorted.
  std::vector<std::pair<NodeId, NodeId>> order_of_passes() const {
    std::map<std::tuple<dag::ChunkId, dag::Instance, Pass>, NodeId> run;  // F, R, and as B the backward that later ones follow
    const auto find = [&](dag::ChunkId chunk, const dag::Instance& instance, Pass pass) {
      const auto found = run.find({chunk, instance, pass});
      return found == run.end() ? NodeId() : found->second;
    };
    for (const NodeId id : dag_.order) {
      const Node& node = facts_.node(id);
      if (runs_body(node.kind) && node.pass != Pass::BW) run[{node.chunk, node.instance, std::min(node.pass, Pass::B)}] = id;
    }
    std::vector<std::pair<NodeId, NodeId>> pairs;
    const auto follows = [&](NodeId later, NodeId earlier) {
      if (later.valid() && earlier.valid()) pairs.emplace_back(later, earlier);
    };
    for (const NodeId id : dag_.order) {
      const Node& node = facts_.node(id);
      if (!runs_body(node.kind)) continue;
      if (node.pass == Pass::BW) follows(id, find(node.chunk, node.instance, Pass::B));
      if (is_backward(node.pass)) follows(id, find(node.chunk, node.instance, Pass::R));
      if (node.pass != Pass::F) {
        follows(id, find(node.chunk, node.instance, Pass::F));
        continue;
      }
      for (const Input& input : dag_.inputs_of(node)) {
        if (input.cls != EdgeClass::data || !input.source.node.valid()) continue;
        const Node* source = &facts_.node(input.source.node);
        if (is_recv(source->kind)) {
          for (const NodeId member : dag_.comms[source->comm.index()].members) source = is_send(facts_.node(member).kind) ? &facts_.node(member) : source;
        }
        if (runs_body(source->kind) || is_send(source->kind)) follows(find(source->chunk, node.instance, Pass::B), find(node.chunk, node.instance, Pass::B));
      }
    }
    std::sort(pairs.begin(), pairs.end());
    return pairs;
  }

  struct Clock {
    std::int64_t first = -1, last = 0, work = 0;
  };

  /// The part of the longest span in which the busiest rank would be idle: F, R, BI and BW take one unit, B two, all else nothing.
  double bubble() const {
    const std::vector<dag::Role>& roles = dag_.plan->roles;
    std::vector<std::vector<std::uint32_t>> runs(dag_.nodes.size());  // per node: the roles that run it
    for (std::uint32_t r = 0; r < roles.size(); ++r) {
      for (const Action& action : roles[r].actions) runs[action.node.index()].push_back(r);
    }
    std::vector<std::int64_t> end(dag_.nodes.size(), 0);
    const auto fed = [&](const Node& node) {
      std::int64_t time = 0;
      for (const Input& input : dag_.inputs_of(node)) {
        if (input.cls != EdgeClass::param) time = std::max(time, end[input.source.node.index()]);
      }
      return time;
    };
    const std::vector<std::pair<NodeId, NodeId>> passes = order_of_passes();
    std::vector<Clock> clocks(roles.size());
    for (const NodeId id : dag_.order) {
      const Node& node = facts_.node(id);
      std::int64_t& ends = end[id.index()];
      ends = fed(node);
      for (auto pair = std::lower_bound(passes.begin(), passes.end(), std::pair(id, NodeId(0))); pair != passes.end() && pair->first == id; ++pair) {
        ends = std::max(ends, end[pair->second.index()]);
      }
      if (is_communication(node.kind)) {
        for (const NodeId member : dag_.comms[node.comm.index()].members) ends = std::max(ends, fed(facts_.node(member)));
      }
      if (!runs_body(node.kind)) continue;
      for (const std::uint32_t r : runs[id.index()]) ends = std::max(ends, clocks[r].last);
      const std::int64_t units = node.pass == Pass::B ? 2 : 1;
      for (const std::uint32_t r : runs[id.index()]) {
        if (clocks[r].first < 0) clocks[r].first = ends;
        clocks[r].last = ends + units;
        clocks[r].work += units;
      }
      ends += units;
    }
    std::int64_t span = 0, work = 0;
    for (const Clock& clock : clocks) {
      if (clock.first < 0) continue;
      span = std::max(span, clock.last - clock.first);
      work = std::max(work, clock.work);
    }
    return span == 0 ? 0 : 1 - static_cast<double>(work) / static_cast<double>(span);
  }

  const Facts& facts_;
  const Dag& dag_;
};

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.10g", value);
  return text;
}

}  // namespace

void check_measures(const Facts& facts) {
  if (facts.dag.forward_only) return;  // the bounds are those of training
  constexpr const char* kNames[] = {"peak_memory", "bubble", "traffic"};
  constexpr const char* kCompares[] = {"<", "<=", ">", ">=", "==", "!="};
  const Measures measures(facts);
  for (const directive::Require& require : facts.dag.requirements) {
    const double found = measures.of(require.measure);
    if (directive::holds(found, require.compare, require.bound)) continue;
    facts.sink.report(Code::measure_out_of_bounds, require.loc, "`{}` of this plan is {}, but {} {} is required{}", kNames[static_cast<std::size_t>(require.measure)], number(found),
                      kCompares[static_cast<std::size_t>(require.compare)], number(require.bound), require.message.empty() ? "" : ": " + require.message);
  }
}

}  // namespace piper::verify
