#include <algorithm>

#include "ir/verify/facts.h"

namespace piper::verify {

namespace {

/// Masked losses: each device set that sums the loss counts the targets of the same instances, and
/// if samples are sharded, or several sets sum it or divide by it, one all_reduce joins exactly
/// these sets and axes. Sets that only divide contribute nothing.
class Counts {
 public:
  explicit Counts(Facts& facts) : facts_(facts), dag_(facts.dag) {}

  void check() {
    of_.resize(dag_.losses.size());
    bool any = false;
    for (const tensor::Loss& loss : dag_.losses) any = any || loss.mask.has_value();
    if (!any) return;
    collect();
    collect_readers();
    for (std::uint32_t l = 0; l < dag_.losses.size() && !facts_.enough(); ++l) {
      if (dag_.losses[l].mask) loss(l);
    }
    for (std::size_t i = 0; i < dag_.nodes.size() && !facts_.enough(); ++i) readers(NodeId::at(i));
  }

 private:
  struct OfLoss {
    NodeId report;
    // Chunks that sum it, in order of the report; count nodes; all_reduce nodes.
    std::vector<NodeId> sums, counts, reduces;
    std::vector<DeviceSetId> readers;  // sets of the chunks that divide by it
    AxisMask summed = 0;               // axes along which the sums are partial
  };
  bool apart() const { return dag_.level >= Level::communicating; }

  template <typename... Args>
  void wrong(LocId loc, MessagePattern<std::type_identity_t<Args>...> pattern,
             const Args&... args) {
    facts_.sink.report(Code::wrong_count, loc, pattern, args...);
  }

  void collect() {
    loss_of_chunk_.resize(dag_.chunks.size());
    for (const NodeId id : facts_.around) {
      const Node& node = facts_.node(id);
      if (const tensor::LossId counted = node.subject.count(); counted.valid()) {
        (is_collective(node.kind) ? of_[counted.index()].reduces : of_[counted.index()].counts)
            .push_back(id);
      }
      if (node.kind != NodeKind::report || node.subject.is_norm()) continue;
      OfLoss& of = of_[node.subject.loss().index()];
      of.report = id;
      for (const Input& input : dag_.inputs_of(node)) {
        AxisMask over = 0;
        const Port origin = loss_origin(facts_, input.source, over);
        const NodeId maker = origin.node;
        if (!runs_body(facts_.node(maker).kind)) continue;
        of.summed |= summed_over(dag_, facts_.node(maker), origin.index);
        of.sums.push_back(maker);
        loss_of_chunk_[facts_.node(maker).chunk.index()].push_back(node.subject.loss());
      }
    }
  }

  void collect_readers() {
    for (std::size_t i = 0; i < dag_.nodes.size(); ++i) {
      if (!runs_body(facts_.kind[i])) continue;
      for (const Input& input : dag_.inputs_of(dag_.nodes[i])) {
        if (!input.source.node.valid()) continue;
        const Node& maker = facts_.node(input.source.node);
        if (!maker.subject.count().valid()) continue;
        std::vector<DeviceSetId>& readers = of_[maker.subject.count().index()].readers;
        if (std::find(readers.begin(), readers.end(), dag_.nodes[i].devices) == readers.end())
          readers.push_back(dag_.nodes[i].devices);
      }
    }
  }

  bool reduced(const OfLoss& of) const {
    if (!apart() || of.sums.empty()) return false;
    const Node& first = facts_.node(of.sums.front());
    return of.summed != 0 ||
           std::any_of(of.sums.begin(), of.sums.end(),
                       [&](NodeId sum) { return facts_.node(sum).devices != first.devices; }) ||
           std::any_of(of.readers.begin(), of.readers.end(),
                       [&](DeviceSetId reader) { return reader != first.devices; });
  }

  void loss(std::uint32_t l) {
    const OfLoss& of = of_[l];
    const LocId loc = dag_.losses[l].loc;
    const std::string_view name = facts_.text(dag_.losses[l].name);
    std::vector<DeviceSetId> sets;
    for (const NodeId sum : of.sums) {
      if (sets.empty() || apart()) sets.push_back(facts_.node(sum).devices);
    }
    std::sort(sets.begin(), sets.end());
    sets.erase(std::unique(sets.begin(), sets.end()), sets.end());
    if (of.counts.size() != sets.size())
      return wrong(loc, "loss `{}` has `{}` counts where it needs `{}`", name, of.counts.size(),
                   sets.size());
    for (const NodeId count : of.counts) instances(l, of, count);
    std::vector<DeviceSetId> members = sets;
    for (const DeviceSetId reader : of.readers) {
      if (!std::binary_search(sets.begin(), sets.end(), reader)) members.push_back(reader);
    }
    const std::size_t wanted = reduced(of) ? members.size() : 0;
    if (of.reduces.size() != wanted)
      return wrong(loc, "the count of loss `{}` has `{}` all_reduce nodes where it needs `{}`",
                   name, of.reduces.size(), wanted);
    if (of.reduces.empty()) return;
    const dag::Comm& comm = dag_.comms[facts_.node(of.reduces.front()).comm.index()];
    bool fits = comm.axes == of.summed && comm.members.size() == members.size();
    for (const NodeId member : of.reduces) {
      const Node& node = facts_.node(member);
      const auto inputs = dag_.inputs_of(node);
      fits = fits && &dag_.comms[node.comm.index()] == &comm &&
             std::find(members.begin(), members.end(), node.devices) != members.end();
      if (!std::binary_search(sets.begin(), sets.end(), node.devices)) {
        fits = fits && inputs.empty();
        continue;
      }
      fits = fits && inputs.size() == 1 &&
             facts_.node(inputs[0].source.node).kind == NodeKind::count &&
             facts_.node(inputs[0].source.node).subject.count().value() == l &&
             facts_.node(inputs[0].source.node).devices == node.devices;
    }
    if (!fits)
      wrong(
          comm.loc,
          "the count of loss `{}` is not added over exactly the devices that hold parts of the batch",
          name);
  }

  /// A count reads one load of the targets for every sum on its devices.
  void instances(std::uint32_t l, const OfLoss& of, NodeId id) {
    const Node& node = facts_.node(id);
    std::vector<dag::Instance> wanted, given;
    for (const NodeId sum : of.sums) {
      if (!apart() || facts_.node(sum).devices == node.devices)
        wanted.push_back(facts_.node(sum).instance);
    }
    bool loads = true;
    for (const Input& input : dag_.inputs_of(node)) {
      const Node& load = facts_.node(input.source.node);
      loads = loads && load.kind == NodeKind::load &&
              load.subject.input() == dag_.losses[l].mask->targets &&
              divided_over(dag_, load) == of.summed;
      given.push_back(load.instance);
    }
    std::sort(wanted.begin(), wanted.end());
    std::sort(given.begin(), given.end());
    if (!loads || wanted != given) {
      wrong(node.loc,
            "`{}` does not count the targets `{}` of exactly the samples that are summed there",
            facts_.name(id), facts_.text(dag_.inputs[dag_.losses[l].mask->targets.index()].name));
    }
  }

  /// A division reads the count over the whole batch.
  void readers(NodeId id) {
    const Node& node = facts_.node(id);
    const bool report = node.kind == NodeKind::report && !node.subject.is_norm() &&
                        dag_.losses[node.subject.loss().index()].mask;
    if (!runs_body(node.kind) && !report) return;
    const auto inputs = dag_.inputs_of(node);
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const bool last = i + 1 == inputs.size();
      const dag::BodyPort* port =
          runs_body(node.kind) ? &dag_.bodies[node.body.index()].inputs[inputs[i].port] : nullptr;
      if (report ? !last : port->kind != PortKind::count) continue;
      const Node& maker = facts_.node(inputs[i].source.node);
      const tensor::LossId loss = maker.subject.count();
      const bool counts = loss.valid() && is_collective(maker.kind) == reduced(of_[loss.index()]);
      bool own = counts && loss == (report ? node.subject.loss() : port->loss);
      if (counts && !report && facts_.shared_body[node.body.index()]) {
        const std::vector<tensor::LossId>& losses = loss_of_chunk_[node.chunk.index()];
        own = std::find(losses.begin(), losses.end(), loss) != losses.end();
      }
      if (!own)
        wrong(node.loc, "`{}` divides by `{}`, which is not the count over the whole batch",
              facts_.name(id), facts_.text(inputs[i].source));
    }
  }

  Facts& facts_;
  const Dag& dag_;
  std::vector<OfLoss> of_;                                  // per loss
  std::vector<std::vector<tensor::LossId>> loss_of_chunk_;  // per chunk: the losses it sums
};

}  // namespace

Port loss_origin(const Facts& facts, Port source, AxisMask& over) {
  for (int hops = 0; hops < 4; ++hops) {
    source = facts.origin_of(source);
    const Node& node = facts.node(source.node);
    if (!reduces_members(node.kind)) break;
    over |= facts.dag.comms[node.comm.index()].axes;
    Port next = source;
    for (const Input& input : facts.dag.inputs_of(node)) {
      if (input.port == source.index) next = input.source;
    }
    source = next;
  }
  return source;
}

void check_counts(Facts& facts) { Counts(facts).check(); }

}  // namespace piper::verify
