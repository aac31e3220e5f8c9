#include <algorithm>

#include "ir/verify/facts.h"

namespace piper::verify {

namespace {

/// Contributions to the gradients of a bucket are added up once at each owner, reduced over exactly
/// the copies that differ, and read by the update; parameters that devices update or keep as shards
/// are gathered.
class Gradients {
 public:
  explicit Gradients(Facts& facts)
      : facts_(facts),
        dag_(facts.dag),
        updates_(dag_.buckets.size()),
        sums_(dag_.buckets.size()),
        blocks_(dag_.buckets.size()),
        reduces_(dag_.buckets.size()),
        scatters_(dag_.buckets.size()),
        gathers_(dag_.buckets.size()),
        squares_(dag_.buckets.size()) {}

  void check() {
    collect();
    for (std::size_t b = 0; b < dag_.buckets.size() && !facts_.enough(); ++b) bucket(b);
    if (!dag_.forward_only) contributions();
  }

 private:
  using OfBucket = std::vector<std::vector<NodeId>>;
  const dag::Body& body_of(const Node& node) const { return dag_.bodies[node.body.index()]; }

  void collect() {
    for (const NodeId id : facts_.around) {
      const Node& node = facts_.node(id);
      if (!node.subject.bucket().valid()) continue;
      const std::size_t b = node.subject.bucket().index();
      if (adds_in_place(node.kind)) (dag_.adds_shards(node) ? blocks_ : sums_)[b].push_back(id);
      if (reduces_members(node.kind))
        (reduces_to_shards(node.kind) ? scatters_ : reduces_)[b].push_back(id);
      if (gathers_shards(node.kind)) gathers_[b].push_back(id);
      if (writes_state(node.kind)) updates_[b].push_back(id);
      if (node.kind == NodeKind::sum_squares) squares_[b].push_back(id);
    }
  }

  void bucket(std::size_t b) {
    const bool owners = !dag_.buckets[b].owners.empty();
    // Parameters sharded at rest may have any number of all-gathers, as readers need; else one
    // follows each update of shards.
    if (owners && (!dag_.forward_only || kept_sharded(b)))
      per_owner(b, gathers_[b], "gather", true);
    if (dag_.forward_only || dag_.frozen(dag_.buckets[b]) || (owners && !reduction(b)) ||
        !added_once(b))
      return;
    for (const NodeId scatter : scatters_[b]) of_its_interval(b, scatter);
    for (const NodeId blocks : blocks_[b]) all_intervals(b, blocks);
    for (const NodeId reduce : reduces_[b])
      reads(b, reduce, scattered(b) ? Left::blocks : Left::sums);
    for (const auto* readers : {&updates_[b], &squares_[b]}) {
      for (const NodeId reader : *readers)
        reads(b, reader, all_reduced(b) ? Left::reduced : scattered(b) ? Left::blocks : Left::sums);
    }
  }

  // ---- required collectives
  // ---------------------------------------------------------------------------------

  bool scattered(std::size_t b) const {
    return dag_.level >= Level::communicating && dag_.buckets[b].sharded();
  }
  /// An all_reduce sums full gradients, or the shards that reduce_scatters leave.
  bool all_reduced(std::size_t b) const {
    const dag::Bucket& bucket = dag_.buckets[b];
    return dag_.level >= Level::communicating &&
           ((reduced_over(dag_, bucket) & ~sharded_over(dag_, bucket)) != 0 ||
            bucket.owners.size() > 1);
  }
  bool kept_sharded(std::size_t b) const { return dag_.shards_parameters(dag_.buckets[b]); }
  bool summed_in_shards(std::size_t b) const { return dag_.shards_gradients(dag_.buckets[b]); }

  /// One all_reduce per bucket, one member per owner, over the axes along which gradients differ.
  /// Over the axes that shard its state, a reduce_scatter at each owner with gradients comes before
  /// it, and each owner gathers the parameters.
  bool reduction(std::size_t b) {
    const dag::Bucket& bucket = dag_.buckets[b];
    if ((sharded_over(dag_, bucket) & ~reduced_over(dag_, bucket)) != 0) {
      facts_.sink.report(
          Code::wrong_reduction, bucket.loc,
          "the state of bucket `{}` is sharded over axes along which its gradients are equal",
          facts_.text(bucket.name));
      return false;
    }
    if (!per_owner(b, scatters_[b], "reduce_scatter", false)) return false;
    const std::vector<NodeId>& nodes = reduces_[b];
    const std::size_t wanted = all_reduced(b) ? bucket.owners.size() : 0;
    if (nodes.size() != wanted) {
      facts_.sink.report(Code::wrong_reduction, bucket.loc,
                         "bucket `{}` has `{}` all_reduce nodes where it needs `{}`",
                         facts_.text(bucket.name), nodes.size(), wanted);
      return false;
    }
    if (nodes.empty()) return true;
    const dag::Comm& comm = dag_.comms[facts_.node(nodes[0]).comm.index()];
    bool fits = comm.axes == (reduced_over(dag_, bucket) & ~sharded_over(dag_, bucket)) &&
                comm.members.size() == bucket.owners.size();
    for (std::size_t k = 0; fits && k < comm.members.size(); ++k) {
      const Node& member = facts_.node(comm.members[k]);
      fits = member.kind == NodeKind::all_reduce && member.subject.bucket().index() == b &&
             member.devices == bucket.owners[k];
    }
    if (!fits)
      facts_.sink.report(
          Code::wrong_reduction, comm.loc,
          "the all_reduce of bucket `{}` does not join exactly the bucket's owners and axes",
          facts_.text(bucket.name));
    return fits;
  }

  /// Collectives over the axes that shard the state of a bucket, at each owner separately. An owner
  /// that makes no gradients has no reduce_scatter.
  bool per_owner(std::size_t b, std::span<const NodeId> nodes, std::string_view kind,
                 bool everywhere) {
    const dag::Bucket& bucket = dag_.buckets[b];
    std::vector<std::uint32_t> count(bucket.owners.size(), 0);
    for (const NodeId id : nodes) {
      const Node& node = facts_.node(id);
      const dag::Comm& comm = dag_.comms[node.comm.index()];
      const auto owner = std::find(bucket.owners.begin(), bucket.owners.end(), node.devices);
      if (owner != bucket.owners.end())
        ++count[static_cast<std::size_t>(owner - bucket.owners.begin())];
      if (owner != bucket.owners.end() && comm.axes == sharded_over(dag_, bucket) &&
          comm.members.size() == 1 && scattered(b))
        continue;
      facts_.sink.report(
          Code::wrong_reduction, node.loc,
          "`{}` does not join exactly the devices of one owner that shard the state of bucket `{}`",
          facts_.name(id), facts_.text(bucket.name));
      return false;
    }
    const bool intervals = everywhere ? kept_sharded(b) : summed_in_shards(b);
    for (std::size_t h = 0; h < count.size() && scattered(b); ++h) {
      if (intervals && (everywhere || count[h] > 0)) continue;
      if (count[h] == 1 || (count[h] == 0 && !everywhere && all_reduced(b))) continue;
      facts_.sink.report(Code::wrong_reduction, bucket.loc,
                         "bucket `{}` has `{}` {} nodes on its owner `{}` where it needs one",
                         facts_.text(bucket.name), count[h], kind, facts_.text(bucket.owners[h]));
      return false;
    }
    return true;
  }

  // ---- required sums
  // ----------------------------------------------------------------------------------------

  std::size_t count_at(DeviceSetId owner, const std::vector<NodeId>& nodes) const {
    return static_cast<std::size_t>(std::count_if(
        nodes.begin(), nodes.end(), [&](NodeId id) { return facts_.node(id).devices == owner; }));
  }

  /// The reductions of this owner belong to gathered intervals.
  bool by_intervals(std::size_t b, DeviceSetId owner) const {
    return std::any_of(scatters_[b].begin(), scatters_[b].end(), [&](NodeId id) {
      return facts_.node(id).devices == owner && facts_.node(id).chunk.valid();
    });
  }

  /// One sum of contributions at each owner that has them; with reduce_scatters one sum per
  /// reduction, and one of the resulting shards if there are gathered intervals. Below level
  /// communicating every owner adds all contributions.
  bool added_once(std::size_t b) {
    const dag::Bucket& bucket = dag_.buckets[b];
    const std::vector<DeviceSetId> owners =
        bucket.owners.empty()
            ? std::vector<DeviceSetId>(1)
            : std::vector<DeviceSetId>(bucket.owners.begin(), bucket.owners.end());
    for (const auto* sums : {&sums_[b], &blocks_[b]}) {
      const auto elsewhere = std::find_if(sums->begin(), sums->end(), [&](NodeId id) {
        return std::find(owners.begin(), owners.end(), facts_.node(id).devices) == owners.end();
      });
      if (elsewhere == sums->end()) continue;
      facts_.sink.report(Code::wrong_gradient, facts_.loc(*elsewhere),
                         "`{}` adds gradients where bucket `{}` has no owner",
                         facts_.name(*elsewhere), facts_.text(bucket.name));
      return false;
    }
    for (const DeviceSetId owner : owners) {
      const std::size_t sums = count_at(owner, sums_[b]), blocks = count_at(owner, blocks_[b]);
      if (!wanted(b, owner, sums,
                  scattered(b)     ? count_at(owner, scatters_[b])
                  : all_reduced(b) ? std::min<std::size_t>(sums, 1)
                                   : 1,
                  "contributions"))
        return false;
      if (!wanted(b, owner, blocks, by_intervals(b, owner) ? 1 : 0, "blocks")) return false;
    }
    return true;
  }

  bool wanted(std::size_t b, DeviceSetId owner, std::size_t found, std::size_t wanted,
              std::string_view of) {
    if (found == wanted) return true;
    facts_.sink.report(Code::wrong_gradient, dag_.buckets[b].loc,
                       "bucket `{}` has `{}` sums of {}{} where it needs `{}`",
                       facts_.text(dag_.buckets[b].name), found, of,
                       owner.valid() ? " on its owner `" + facts_.text(owner) + "`" : std::string(),
                       wanted);
    return false;
  }

  // ---- inputs of sums, reductions and updates
  // ----------------------------------------------------------------------------------------------------

  /// The gradients of a bucket: after sums of contributions, after reduce_scatters (or sums of
  /// their shards), and after all_reduces.
  enum class Left : std::uint8_t { sums, blocks, reduced };

  bool leaves(std::size_t b, const Node& maker, Left wanted) const {
    if (maker.subject.bucket().value() != b) return false;
    switch (wanted) {
      case Left::sums: return adds_in_place(maker.kind) && !dag_.adds_shards(maker);
      case Left::blocks:
        return by_intervals(b, maker.devices) ? dag_.adds_shards(maker)
                                              : reduces_to_shards(maker.kind);
      case Left::reduced: return reduces_members(maker.kind) && !reduces_to_shards(maker.kind);
    }
    return false;
  }

  /// All gradients that a node reads are those of its bucket, from one node on its devices. A
  /// member of a reduction that contributes nothing reads none.
  void reads(std::size_t b, NodeId id, Left wanted) {
    const Node& node = facts_.node(id);
    const std::vector<tensor::ParamId>& params = dag_.buckets[b].params;
    const std::size_t ports =
        reduces_to_shards(node.kind) ? params.size() : dag_.gradient_values(dag_.buckets[b]);
    for (const Input& input : dag_.inputs_of(node)) {
      if (input.port >= ports) continue;
      const Node& maker = facts_.node(input.source.node);
      if (leaves(b, maker, wanted) && maker.devices == node.devices &&
          input.source == Port{dag_.inputs_of(node).front().source.node, input.port})
        continue;
      facts_.sink.report(Code::wrong_gradient, node.loc,
                         "`{}` does not read the {} gradient of `{}`", facts_.name(id),
                         wanted == Left::sums ? "whole" : "reduced",
                         facts_.text(dag_.params[params[input.port].index()].name));
    }
  }

  /// A reduce_scatter takes the sum that is named by the same work.
  void of_its_interval(std::size_t b, NodeId id) {
    reads(b, id, Left::sums);
    const Node& node = facts_.node(id);
    if (node.num_inputs == 0) return;
    const NodeId sum = dag_.inputs_of(node).front().source.node;
    if (facts_.node(sum).chunk == node.chunk && facts_.node(sum).pass == node.pass &&
        facts_.node(sum).instance == node.instance)
      return;
    facts_.sink.report(Code::wrong_reduction, node.loc,
                       "`{}` reduces `{}`, which belongs to another gathered interval",
                       facts_.name(id), facts_.name(sum));
  }

  /// The sum of shards reads every reduce_scatter of the bucket at its owner once.
  void all_intervals(std::size_t b, NodeId id) {
    std::vector<NodeId> intervals, read;
    for (const NodeId scatter : scatters_[b]) {
      if (facts_.node(scatter).devices == facts_.node(id).devices) intervals.push_back(scatter);
    }
    for (const Input& input : dag_.inputs_of(facts_.node(id))) read.push_back(input.source.node);
    std::sort(intervals.begin(), intervals.end());
    std::sort(read.begin(), read.end());
    if (intervals == read) return;
    facts_.sink.report(Code::wrong_gradient, facts_.loc(id),
                       "`{}` does not add each shard of bucket `{}` once", facts_.name(id),
                       facts_.text(dag_.buckets[b].name));
  }

  // ---- contributions
  // -----------------------------------------------------------------------------------------------------

  /// Each contribution is a term of one sum of its parameter at its owner.
  void contributions() {
    facts_.added_to.assign(facts_.owner.size(), kNone);
    times_.assign(facts_.owner.size(), 0);
    for (const std::vector<NodeId>& sums : sums_) {
      for (const NodeId id : sums) {
        if (facts_.enough()) return;
        for_each_port(dag_, facts_.node(id), [&](std::span<const Input> terms) { add(id, terms); });
      }
    }
    std::vector<std::vector<std::uint32_t>> grads(dag_.bodies.size());  // outputs of bodies
    for (std::size_t b = 0; b < dag_.bodies.size(); ++b) {
      for (std::uint32_t k = 0; k < dag_.bodies[b].outputs.size(); ++k) {
        if (dag_.bodies[b].outputs[k].kind == PortKind::grad) grads[b].push_back(k);
      }
    }
    std::vector<std::uint32_t> bucket_of(dag_.params.size(), kNone);
    for (std::uint32_t b = 0; b < dag_.buckets.size(); ++b) {
      for (const tensor::ParamId param : dag_.buckets[b].params) bucket_of[param.index()] = b;
    }
    std::vector<bool> trained(dag_.params.size(), false);
    NodePolls polls(dag_.context->cancellation);
    for (std::size_t i = 0; i < dag_.nodes.size() && !facts_.enough(); ++i) {
      polls.visit();
      if (!runs_body(facts_.kind[i])) continue;
      for (const std::uint32_t k : grads[dag_.nodes[i].body.index()]) {
        const std::uint32_t to = added({NodeId::at(i), k}, bucket_of);
        if (to != kNone) trained[to] = true;
      }
    }
    // A parameter that is read must also be trained: without terms its update would never change
    // it.
    for (std::size_t p = 0; p < dag_.params.size() && !facts_.enough(); ++p) {
      if (!trained[p] && !dag_.params[p].frozen)
        facts_.sink.report(Code::wrong_update, dag_.params[p].loc,
                           "no gradient reaches the update of parameter `{}`",
                           facts_.text(dag_.params[p].name));
    }
  }

  /// The terms of a sum of one parameter, each once.
  void add(NodeId id, std::span<const Input> terms) {
    const Node& node = facts_.node(id);
    const tensor::ParamId param = dag_.buckets[node.subject.bucket().index()].params[terms[0].port];
    for (const Input& term : terms) {
      const Node& maker = facts_.node(term.source.node);
      if (runs_body(maker.kind) &&
          body_of(maker).outputs[term.source.index].kind == PortKind::grad) {
        const std::uint32_t output = facts_.output(term.source);
        std::uint32_t& to = facts_.added_to[output];
        const bool right = facts_.shared_body[maker.body.index()]
                               ? to == kNone || to == param.value()
                               : body_of(maker).outputs[term.source.index].param == param;
        if (right || to == kNone) to = param.value();
        ++times_[output];
        if (right) continue;
      }
      facts_.sink
          .report(Code::wrong_gradient, node.loc, "`{}` adds `{}`, which is no gradient of `{}`",
                  facts_.name(id), facts_.text(term.source),
                  facts_.text(dag_.params[param.index()].name))
          .related(maker.loc, "`{}` is made here", facts_.name(term.source.node));
      return;
    }
    std::vector<Port> sources;
    for (const Input& term : terms) sources.push_back(term.source);
    std::sort(sources.begin(), sources.end());
    const auto twice = std::adjacent_find(sources.begin(), sources.end());
    if (twice != sources.end())
      facts_.sink.report(Code::wrong_gradient, node.loc, "`{}` adds `{}` twice", facts_.name(id),
                         facts_.text(*twice));
  }

  /// Checks how often a contribution is a term. Returns the parameter to whose gradient it is
  /// added.
  std::uint32_t added(Port port, std::span<const std::uint32_t> bucket_of) {
    const Node& node = facts_.node(port.node);
    const std::uint32_t to = facts_.added_to[facts_.output(port)];
    if (to == kNone) {
      facts_.sink.report(
          Code::wrong_gradient, node.loc,
          "the contribution `{}` to the gradient of `{}` reaches no update", facts_.text(port),
          facts_.text(dag_.params[body_of(node).outputs[port.index].param.index()].name));
      return to;
    }
    const dag::Bucket& bucket = dag_.buckets[bucket_of[to]];
    const std::size_t times =
        dag_.level >= Level::communicating ? 1 : std::max<std::size_t>(bucket.owners.size(), 1);
    if (times_[facts_.output(port)] != times) {
      facts_.sink.report(Code::wrong_gradient, node.loc,
                         "the contribution `{}` to the gradient of `{}` is not added exactly once",
                         facts_.text(port), facts_.text(dag_.params[to].name));
    }
    if (dag_.level >= Level::placed &&
        summed_over(dag_, node, port.index) != reduced_over(dag_, bucket)) {
      facts_.sink.report(
          Code::wrong_reduction, bucket.loc,
          "the gradient `{}` differs along other axes than bucket `{}` is reduced over",
          facts_.text(port), facts_.text(bucket.name));
    }
    return to;
  }

  Facts& facts_;
  const Dag& dag_;
  // sums_: of contributions; blocks_: of the shards that reduce_scatters leave.
  OfBucket updates_, sums_, blocks_, reduces_, scatters_, gathers_, squares_;
  std::vector<std::uint16_t> times_;  // per output: the number of sums in which it is a term
};

}  // namespace

void check_gradients(Facts& facts) { Gradients(facts).check(); }

}  // namespace piper::verify
