#include "passes/communicate/communicate.h"

#include <algorithm>
#include <map>

#include "ir/dag/bucket_layout.h"
#include "ir/dag/value_layout.h"
#include "passes/build/surround.h"
#include "passes/build/wiring.h"
#include "passes/communicate/loads.h"
#include "passes/communicate/messages.h"
#include "passes/communicate/weigh_samples.h"
#include "passes/selectors/lines_of.h"

namespace piper::passes {

using namespace dag;

namespace {

class CommunicationBuilder {
 public:
  CommunicationBuilder(Dag& dag, const directive::Strategy& strategy, DiagnosticSink& sink)
      : dag_(dag), strategy_(strategy), sink_(sink) {}
  bool run();

 private:
  NodeId add_collective(NodeKind kind, BucketId id, DeviceSetId owner, CommId comm,
                        std::span<const Input> inputs);
  CommId add_comm(AxisMask axes, LocId loc);
  void reduce_gradients();
  void sum_squares_of_shards(std::size_t set, std::span<Port> squares);
  bool add_norm();
  void add_updates();
  NodeId add_gather(BucketId id, std::size_t owner, std::span<const Input> inputs);
  void gather_parameters(std::vector<std::vector<NodeId>>& left_by);
  std::vector<DeviceSetId> sets_of(std::span<const Port> sums) const;
  std::optional<Port> count_loss(tensor::LossId loss, std::span<const Port> sums,
                                 DeviceSetId reported, const std::string& name);
  bool report_loss(tensor::LossId loss);
  bool pair_up(std::span<const DeviceSetId> sets, std::string_view what, LocId loc) const;
  bool before(DeviceSetId a, DeviceSetId b) const {
    return dag_.device_sets[a].at < dag_.device_sets[b].at;
  }
  Node node_of(NodeKind kind, DeviceSetId devices, LocId loc) const {
    Node node;
    node.kind = kind;
    node.devices = devices;
    node.loc = loc;
    return node;
  }

  /// The line of a communication over replicas along these axes, or without axes of one between
  /// device sets.
  LocId line_of(AxisMask axes, DeviceSetId set, LocId preferred, LocId otherwise) const {
    return axes != 0 ? replicate_line(dag_, strategy_, axes, preferred, otherwise)
                     : place_line(strategy_, set, otherwise);
  }

  Dag& dag_;
  const directive::Strategy& strategy_;
  DiagnosticSink& sink_;
  std::optional<Loads> loads_;
  const std::size_t trained_ = dag_.trained_buckets();  // they come first
  // Per bucket and owner: the final gradients in bucket order.
  std::vector<std::vector<std::vector<Input>>> grads_;
  std::vector<DeviceSetId> norm_sets_;
  std::vector<NodeId> norms_;  // per norm set
};

// ---- gradients, norm, updates

/// Adds a collective of a bucket at one of its owners as a member of the communication.
NodeId CommunicationBuilder::add_collective(NodeKind kind, BucketId id, DeviceSetId owner,
                                            CommId comm, std::span<const Input> inputs) {
  const Bucket& bucket = dag_.buckets[id.index()];
  Node collective = node_of(kind, owner, dag_.comms[comm.index()].loc);
  collective.subject = Subject::of_bucket(id);
  collective.comm = comm;
  collective.num_outputs = gathers_shards(kind) ? static_cast<std::uint32_t>(bucket.params.size())
                                                : dag_.gradient_values(bucket);
  const NodeId node = dag_.add(collective, inputs);
  dag_.comms[comm.index()].members.push_back(node);
  return node;
}

CommId CommunicationBuilder::add_comm(AxisMask axes, LocId loc) {
  dag_.comms.push_back({{}, axes, loc});
  return CommId::at(dag_.comms.size() - 1);
}

/// Each owner sums its contributions, and reduce-scatters the sums if its state is sharded; then
/// the shards, or full gradients, are all-reduced over the other axes and the owners.
void CommunicationBuilder::reduce_gradients() {
  const Contributions contributions(dag_);
  grads_.resize(trained_);
  for (std::size_t b = 0; b < trained_; ++b) {
    const Bucket bucket = dag_.buckets[b];
    const BucketId id = BucketId::at(b);
    for (std::size_t h = 0; h < bucket.owners.size(); ++h) {
      std::vector<Input> contributed;
      for (std::uint32_t i = 0; i < bucket.params.size(); ++i) {
        for (const Port port : contributions.of(id, i, h))
          contributed.push_back({port, i, EdgeClass::grad});
      }
      std::vector<Input>& inputs =
          grads_[b].emplace_back(accumulate(dag_, id, bucket.owners[h], contributed));
      if (!bucket.sharded() || inputs.empty()) continue;
      inputs =
          reads_of(dag_, add_collective(NodeKind::reduce_scatter, id, bucket.owners[h],
                                        add_comm(dag_.sharded_over(bucket), bucket.loc), inputs));
    }
    const AxisMask rest = dag_.reduced_over(bucket) & ~dag_.sharded_over(bucket);
    if (rest == 0 && bucket.owners.size() == 1) continue;
    const CommId comm = add_comm(rest, line_of(rest, bucket.owners[0], bucket.loc, bucket.loc));
    for (std::size_t h = 0; h < bucket.owners.size(); ++h) {
      grads_[b][h] = reads_of(
          dag_, add_collective(NodeKind::all_reduce, id, bucket.owners[h], comm, grads_[b][h]));
    }
  }
}

/// Sums the squares of sharded buckets over the axes that shard them: one all_reduce per set of
/// axes and device set.
void CommunicationBuilder::sum_squares_of_shards(std::size_t set, std::span<Port> squares) {
  std::map<AxisMask, std::vector<std::size_t>> cut;
  for (std::size_t b = 0; b < squares.size(); ++b) {
    const bool here = dag_.node(squares[b].node).devices == norm_sets_[set];
    if (here && dag_.buckets[b].sharded()) cut[dag_.sharded_over(dag_.buckets[b])].push_back(b);
  }
  for (const auto& [axes, buckets] : cut) {
    std::vector<Input> inputs;
    for (const std::size_t b : buckets)
      inputs.push_back({squares[b], static_cast<std::uint32_t>(inputs.size()), EdgeClass::data});
    const LocId loc =
        replicate_line(dag_, strategy_, axes, dag_.buckets[buckets.front()].loc,
                       dag_.settings.optimizer ? dag_.settings.optimizer->loc : LocId());
    Node sum = node_of(NodeKind::all_reduce, norm_sets_[set], loc);
    sum.subject = Subject::of_norm();
    sum.comm = add_comm(axes, loc);
    sum.num_outputs = static_cast<std::uint32_t>(inputs.size());
    const NodeId node = dag_.add(sum, inputs);
    dag_.comms[sum.comm.index()].members.push_back(node);
    for (std::uint32_t i = 0; i < buckets.size(); ++i) squares[buckets[i]] = {node, i};
  }
}

/// Sets that exchange values one to one: disjoint, with the same whole axes.
bool CommunicationBuilder::pair_up(std::span<const DeviceSetId> sets, std::string_view what,
                                   LocId loc) const {
  for (std::size_t i = 1; i < sets.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      const DeviceSet &a = dag_.device_sets[sets[j]], &b = dag_.device_sets[sets[i]];
      if (a.whole_axes() == b.whole_axes() && !a.intersects(b)) continue;
      sink_
          .report(Code::sets_do_not_gather, loc,
                  "{} is made on `{}` and on `{}`, whose devices do not pair one to one", what,
                  print(a, dag_.mesh, dag_.context->symbols),
                  print(b, dag_.mesh, dag_.context->symbols))
          .hint("place regions on sets that leave the same axes whole");
      return false;
    }
  }
  return true;
}

bool CommunicationBuilder::add_norm() {
  for (const Bucket& bucket : std::span(dag_.buckets).first(trained_))
    norm_sets_.insert(norm_sets_.end(), bucket.owners.begin(), bucket.owners.end());
  std::sort(norm_sets_.begin(), norm_sets_.end(),
            [&](DeviceSetId a, DeviceSetId b) { return before(a, b); });
  norm_sets_.erase(std::unique(norm_sets_.begin(), norm_sets_.end()), norm_sets_.end());
  const LocId loc = dag_.settings.optimizer ? dag_.settings.optimizer->loc : LocId();
  if (!pair_up(norm_sets_, "the norm of the gradients", loc)) return false;

  std::vector<std::vector<Input>> of_set(norm_sets_.size());
  std::vector<std::pair<std::size_t, std::uint32_t>> place_of_bucket;
  std::vector<Port> squares;
  for (std::size_t b = 0; b < trained_; ++b) {
    const Bucket& bucket = dag_.buckets[b];
    Node sums = node_of(NodeKind::sum_squares, bucket.owners[0], bucket.loc);
    sums.subject = Subject::of_bucket(BucketId::at(b));
    sums.num_outputs = 1;
    squares.push_back({dag_.add(sums, grads_[b][0]), 0});
  }
  for (std::size_t s = 0; s < norm_sets_.size(); ++s) sum_squares_of_shards(s, squares);
  for (std::size_t b = 0; b < trained_; ++b) {
    const std::size_t set = static_cast<std::size_t>(
        std::find(norm_sets_.begin(), norm_sets_.end(), dag_.buckets[b].owners[0]) -
        norm_sets_.begin());
    place_of_bucket.push_back({set, static_cast<std::uint32_t>(of_set[set].size())});
    of_set[set].push_back(
        {squares[b], static_cast<std::uint32_t>(of_set[set].size()), EdgeClass::data});
  }
  std::vector<std::uint32_t> offset(norm_sets_.size() + 1, 0);
  for (std::size_t s = 0; s < norm_sets_.size(); ++s)
    offset[s + 1] = offset[s] + static_cast<std::uint32_t>(of_set[s].size());
  const CommId comm = CommId::at(dag_.comms.size());
  const bool gathered = norm_sets_.size() > 1;
  if (gathered) dag_.comms.push_back({{}, 0, place_line(strategy_, norm_sets_[0], loc)});
  for (std::size_t s = 0; s < norm_sets_.size(); ++s) {
    NodeId gather;
    if (gathered) {
      Node node =
          node_of(NodeKind::all_gather_v, norm_sets_[s], place_line(strategy_, norm_sets_[s], loc));
      node.comm = comm;
      node.subject = Subject::of_norm();
      node.num_outputs = offset.back();
      gather = dag_.add(node, of_set[s]);
      dag_.comms[comm.index()].members.push_back(gather);
    }
    std::vector<Input> inputs;
    for (std::uint32_t b = 0; b < trained_; ++b) {
      const auto& [set, position] = place_of_bucket[b];
      inputs.push_back(
          {gathered ? Port{gather, offset[set] + position} : of_set[0][position].source, b,
           EdgeClass::data});
    }
    Node norm = node_of(NodeKind::norm, norm_sets_[s], loc);
    norm.num_outputs = 1;
    norms_.push_back(dag_.add(norm, inputs));
  }
  if (norms_.empty()) return true;
  Node report = node_of(NodeKind::report, norm_sets_[0], loc);
  report.subject = Subject::of_norm();
  const Input norm{{norms_[0], 0}, 0, EdgeClass::data};
  dag_.add(report, {&norm, 1});
  return true;
}

void CommunicationBuilder::add_updates() {
  const bool clipped = dag_.settings.updates_read_norm();
  // Per owner: the update, or the all-gather after it; none for frozen buckets.
  std::vector<std::vector<NodeId>> left_by(dag_.buckets.size());
  for (std::size_t b = 0; b < trained_; ++b) {
    const Bucket bucket = dag_.buckets[b];
    for (std::size_t h = 0; h < bucket.owners.size(); ++h) {
      std::vector<Input>& inputs = grads_[b][h];
      if (clipped) {
        const std::size_t set = static_cast<std::size_t>(
            std::find(norm_sets_.begin(), norm_sets_.end(), bucket.owners[h]) - norm_sets_.begin());
        inputs.push_back({{norms_[set], 0}, dag_.gradient_values(bucket), EdgeClass::data});
      }
      Node update = node_of(NodeKind::update, bucket.owners[h], bucket.loc);
      update.subject = Subject::of_bucket(BucketId::at(b));
      update.num_outputs = dag_.parameter_values(bucket);
      NodeId last = dag_.add(update, inputs);
      if (bucket.sharded() && !dag_.shards_parameters(bucket))
        last = add_gather(BucketId::at(b), h, reads_of(dag_, last));
      left_by[b].push_back(last);
    }
  }
  gather_parameters(left_by);
  connect_params(dag_, left_by);
}

NodeId CommunicationBuilder::add_gather(BucketId id, std::size_t owner,
                                        std::span<const Input> inputs) {
  const Bucket bucket = dag_.buckets[id.index()];
  return add_collective(NodeKind::all_gather, id, bucket.owners[owner],
                        add_comm(dag_.sharded_over(bucket), bucket.loc), inputs);
}

/// Parameters sharded at rest are gathered as the previous step left them: one all-gather per owner
/// that reads them, for the whole step.
void CommunicationBuilder::gather_parameters(std::vector<std::vector<NodeId>>& left_by) {
  if (std::none_of(dag_.buckets.begin(), dag_.buckets.end(),
                   [&](const Bucket& bucket) { return dag_.shards_parameters(bucket); }))
    return;
  const std::vector<BucketPosition> places = bucket_positions(dag_);
  std::vector<std::vector<bool>> read(dag_.buckets.size());
  for (std::size_t b = 0; b < read.size(); ++b) read[b].resize(dag_.buckets[b].owners.size());
  for (const Node& node : dag_.nodes) {
    if (!runs_body(node.kind)) continue;
    for (const BodyPort& port : dag_.bodies[node.body.index()].inputs) {
      if (port.kind != PortKind::param) continue;
      const std::size_t b = places[port.param.index()].bucket.index();
      const std::vector<DeviceSetId>& owners = dag_.buckets[b].owners;
      if (!dag_.shards_parameters(dag_.buckets[b])) continue;
      const auto owner = std::find(owners.begin(), owners.end(), node.devices);
      if (owner != owners.end()) read[b][static_cast<std::size_t>(owner - owners.begin())] = true;
    }
  }
  for (std::size_t b = 0; b < read.size(); ++b) {
    for (std::size_t h = 0; h < read[b].size(); ++h) {
      if (!read[b][h]) continue;
      left_by[b].resize(read[b].size());
      const Input block{{left_by[b][h], 0}, 0, EdgeClass::param};
      left_by[b][h] = add_gather(BucketId::at(b), h, {&block, 1});
    }
  }
}

// ---- losses

std::vector<DeviceSetId> CommunicationBuilder::sets_of(std::span<const Port> sums) const {
  std::vector<DeviceSetId> sets;
  for (const Port port : sums) sets.push_back(dag_.node(port.node).devices);
  std::sort(sets.begin(), sets.end(), [&](DeviceSetId a, DeviceSetId b) { return before(a, b); });
  sets.erase(std::unique(sets.begin(), sets.end()), sets.end());
  return sets;
}

/// Sets that pair up have the same whole axes, so all sums of one loss, which one chunk makes, are
/// sharded alike. Returns the count on `reported`; nothing after reporting sets that do not pair
/// up.
std::optional<Port> CommunicationBuilder::count_loss(tensor::LossId loss,
                                                     std::span<const Port> sums,
                                                     DeviceSetId reported,
                                                     const std::string& name) {
  const AxisMask cut = summed_axes(dag_, sums[0]);
  const LocId loc = dag_.losses[loss.index()].loc;
  std::vector<std::vector<Port>> of_set(dag_.device_sets.size());
  for (const Port sum : sums) of_set[dag_.node(sum.node).devices.index()].push_back(sum);
  // A backward on other devices than its forward divides by the count and contributes nothing to
  // it.
  std::vector<DeviceSetId> sets = count_readers(dag_, loss);
  for (const Port sum : sums) sets.push_back(dag_.node(sum.node).devices);
  std::sort(sets.begin(), sets.end(), [&](DeviceSetId a, DeviceSetId b) { return before(a, b); });
  sets.erase(std::unique(sets.begin(), sets.end()), sets.end());
  if (!pair_up(sets, "the count of " + name, loc)) return std::nullopt;
  const bool reduced = cut != 0 || sets.size() > 1;
  const CommId comm = CommId::at(dag_.comms.size());
  if (reduced) dag_.comms.push_back({{}, cut, line_of(cut, sets[0], {}, loc)});
  std::vector<Port> counts(dag_.device_sets.size());
  for (const DeviceSetId set : sets) {
    const std::vector<Port>& own = of_set[set.index()];
    if (!own.empty()) counts[set.index()] = add_count(dag_, *loads_, loss, own);
  }
  for (std::size_t s = 0; reduced && s < sets.size(); ++s) {
    Node reduce = node_of(NodeKind::all_reduce, sets[s], line_of(cut, sets[s], {}, loc));
    reduce.subject = Subject::of_count(loss);
    reduce.comm = comm;
    reduce.num_outputs = 1;
    Port& count = counts[sets[s].index()];
    const Input input{count, 0, EdgeClass::data};
    count = {dag_.add(reduce, {&input, count.node.valid() ? 1u : 0u}), 0};
    dag_.comms[comm.index()].members.push_back(count.node);
  }
  connect_counts(dag_, loss, counts);
  return counts[reported.index()];
}

bool CommunicationBuilder::report_loss(tensor::LossId loss) {
  const std::vector<Port> sums = loss_sums(dag_, loss);
  const LocId loc = dag_.losses[loss.index()].loc;
  const std::vector<DeviceSetId> sets = sets_of(sums);
  const std::string name =
      "loss `" + std::string(dag_.context->text(dag_.losses[loss.index()].name)) + "`";
  if (!pair_up(sets, name, loc)) return false;

  // The sums of a set after the reduction over its replicas, by position among all sums.
  std::vector<Port> at(sums);
  std::vector<std::vector<Input>> of_set(sets.size());
  std::vector<std::pair<std::size_t, std::uint32_t>> place;  // of a sum: set and position in it
  for (const Port port : sums) {
    const std::size_t s = static_cast<std::size_t>(
        std::find(sets.begin(), sets.end(), dag_.node(port.node).devices) - sets.begin());
    place.push_back({s, static_cast<std::uint32_t>(of_set[s].size())});
    of_set[s].push_back({port, static_cast<std::uint32_t>(of_set[s].size()), EdgeClass::data});
  }
  for (std::size_t s = 0; s < sets.size(); ++s) {
    const AxisMask cut = summed_axes(dag_, of_set[s].front().source);
    if (cut == 0) continue;
    Node reduce =
        node_of(NodeKind::all_reduce, sets[s], replicate_line(dag_, strategy_, cut, {}, loc));
    reduce.subject = Subject::of_loss(loss);
    reduce.comm = CommId::at(dag_.comms.size());
    reduce.num_outputs = static_cast<std::uint32_t>(of_set[s].size());
    const NodeId node = dag_.add(reduce, of_set[s]);
    dag_.comms.push_back({{node}, cut, reduce.loc});
    for (Input& input : of_set[s]) input.source = {node, input.port};
  }
  if (sets.size() > 1) {
    std::vector<std::uint32_t> offset(sets.size() + 1, 0);
    for (std::size_t s = 0; s < sets.size(); ++s)
      offset[s + 1] = offset[s] + static_cast<std::uint32_t>(of_set[s].size());
    const CommId comm = CommId::at(dag_.comms.size());
    dag_.comms.push_back({{}, 0, place_line(strategy_, sets[0], loc)});
    for (std::size_t s = 0; s < sets.size(); ++s) {
      Node gather = node_of(NodeKind::all_gather_v, sets[s], place_line(strategy_, sets[s], loc));
      gather.subject = Subject::of_loss(loss);
      gather.comm = comm;
      gather.num_outputs = offset.back();
      dag_.comms[comm.index()].members.push_back(dag_.add(gather, of_set[s]));
    }
    const NodeId first = dag_.comms[comm.index()].members[0];
    for (std::size_t i = 0; i < sums.size(); ++i)
      at[i] = {first, offset[place[i].first] + place[i].second};
  } else {
    for (std::size_t i = 0; i < sums.size(); ++i) at[i] = of_set[0][i].source;
  }
  std::vector<Input> inputs;
  if (dag_.losses[loss.index()].mask && !sums.empty()) {
    const std::optional<Port> count = count_loss(loss, sums, sets[0], name);
    if (!count) return false;
    at.push_back(*count);
  }
  for (std::uint32_t i = 0; i < at.size(); ++i) inputs.push_back({at[i], i, EdgeClass::data});
  Node report = node_of(NodeKind::report, sets.empty() ? DeviceSetId() : sets[0], loc);
  report.subject = Subject::of_loss(loss);
  dag_.add(report, inputs);
  return true;
}

bool CommunicationBuilder::run() {
  remove_surroundings(dag_);
  dag_.level = Level::communicating;
  add_messages(dag_, strategy_);
  loads_.emplace(dag_);
  load_inputs(dag_, *loads_);
  if (dag_.forward_only) {
    std::vector<std::vector<NodeId>> left_by(dag_.buckets.size());
    gather_parameters(left_by);
    connect_params(dag_, left_by);
  } else {
    reduce_gradients();
    if (!add_norm()) return false;
    add_updates();
  }
  for (std::size_t l = 0; l < dag_.losses.size(); ++l) {
    if (!report_loss(tensor::LossId::at(l))) return false;
  }
  return true;
}

/// Replaces dropouts by their results with rate 0.
void keep_all(tensor::Graph& graph) {
  for (tensor::Node& node : graph.mutable_nodes()) {
    if (node.op != tensor::Op::dropout) continue;
    node.op = tensor::Op::scale;
    node.attrs = {};
    node.attrs.scalar = 1;
  }
}

}  // namespace

bool communicate(Dag& dag, const directive::Strategy& strategy, DiagnosticSink& sink) {
  return CommunicationBuilder(dag, strategy, sink).run();
}

void drop_backward(Dag& dag) {
  std::erase_if(dag.nodes,
                [](const Node& node) { return !runs_body(node.kind) || node.pass != Pass::F; });
  dag.forward_only = true;
  std::vector<bool> used(dag.bodies.size());
  for (const Node& node : dag.nodes) used[node.body.index()] = true;
  const std::vector<BodyId> moved = keep_bodies(dag, used);
  for (Node& node : dag.nodes) node.body = moved[node.body.index()];
  for (dag::Body& body : dag.bodies) keep_all(body.graph);
  for (Bucket& bucket : dag.buckets) bucket.unreduced = {};
  remove_unread_outputs(dag);
  weigh_samples(dag);
  wire(dag);
}

}  // namespace piper::passes
