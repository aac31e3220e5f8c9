#include <algorithm>
#include <map>
#include <utility>

#include "ir/verify/facts.h"

namespace piper::verify {

namespace {

using dag::EdgeClass;
using dag::Instance;

class Completeness {
 public:
  explicit Completeness(Facts& facts) : facts_(facts), dag_(facts.dag) {
    loss_sums_.resize(dag_.bodies.size());
    for (std::size_t b = 0; b < dag_.bodies.size(); ++b) {
      for (std::uint32_t k = 0; k < dag_.bodies[b].outputs.size(); ++k) {
        if (dag_.bodies[b].outputs[k].kind == PortKind::loss_sum) loss_sums_[b].push_back(k);
      }
    }
  }

  void check() {
    instances();
    if (facts_.enough()) return;
    reads();
    updates();
    if (!dag_.forward_only) nothing_frozen();
    norms();
    reports();
  }

 private:
  const dag::Body& body_of(const Node& node) const { return dag_.bodies[node.body.index()]; }

  // ---- every instance of every chunk
  // -------------------------------------------------------------------------------------

  /// A chunk node's place in the table of instances: row-major over the dimensions that its chunk
  /// is split along.
  struct Cell {
    std::uint32_t chunk, index;
    Pass pass;
    bool recomputed_forward;  // an F that keeps no value which R recomputes
  };

  /// `F.stage0.mb3` for an instance that has no node.
  std::string cell_text(Pass pass, std::size_t chunk, std::uint32_t instance) const {
    std::string text =
        std::string(pass_name(pass)) + "." + std::string(facts_.text(dag_.chunks[chunk].name));
    std::string indices;
    for (std::size_t i = dag_.dims.size(); i-- > 0;) {
      if ((split_[chunk] >> i & 1) == 0) continue;
      indices = "." + std::string(facts_.text(dag_.dims[i].name)) +
                std::to_string(instance % dag_.dims[i].extent) + indices;
      instance /= dag_.dims[i].extent;
    }
    return text + indices;
  }

  void instances() {
    const std::size_t n = dag_.chunks.size();
    split_.assign(n, kNone);
    std::vector<std::uint32_t> first_node(n, kNone);
    std::vector<Cell> cells;  // of the chunk nodes
    cells.reserve(dag_.nodes.size());
    for (std::size_t i = 0; i < dag_.nodes.size(); ++i) {
      if (!runs_body(facts_.kind[i])) continue;
      const Node& node = dag_.nodes[i];
      if (!loss_sums_[node.body.index()].empty()) summing_.push_back(NodeId::at(i));
      cells.push_back({node.chunk.value(), 0, node.pass,
                       node.pass == Pass::F &&
                           node.body == dag_.chunks[node.chunk.index()].recomputed_forward});
      std::uint32_t mask = 0;
      for (std::size_t d = 0; d < dag_.dims.size(); ++d) {
        if (node.instance.at[d] == Instance::kNone) continue;
        mask |= 1u << d;
        cells.back().index = cells.back().index * dag_.dims[d].extent +
                             static_cast<std::uint32_t>(node.instance.at[d]);
      }
      std::uint32_t& split = split_[node.chunk.index()];
      if (split == kNone) {
        split = mask;
        first_node[node.chunk.index()] = static_cast<std::uint32_t>(i);
      } else if (split != mask) {
        facts_.sink.report(Code::incomplete_instances, node.loc,
                           "`{}` and `{}` are split along different dimensions",
                           facts_.name(NodeId::at(i)),
                           facts_.name(NodeId(first_node[node.chunk.index()])));
        return;
      }
      if (!cells.back().recomputed_forward &&
          dag_.chunks[node.chunk.index()].bodies[static_cast<std::size_t>(node.pass)] !=
              node.body) {
        facts_.sink.report(Code::incomplete_instances, node.loc,
                           "`{}` runs a body that its chunk does not have for this pass",
                           facts_.name(NodeId::at(i)));
        return;
      }
    }
    same_shares();
    std::vector<std::size_t> base(n + 1, 0);
    for (std::size_t c = 0; c < n; ++c) {
      if (split_[c] == kNone) split_[c] = (1u << dag_.dims.size()) - 1;
      std::uint64_t count = 1;
      for (std::size_t d = 0; d < dag_.dims.size(); ++d) {
        if ((split_[c] >> d & 1) != 0) count *= dag_.dims[d].extent;
      }
      // More instances than nodes: some are missing. A table of all of them could be larger than
      // the text.
      if (count > dag_.nodes.size() + 1) {
        facts_.sink.report(Code::incomplete_instances, dag_.chunks[c].loc,
                           "chunk `{}` has `{}` instances, more than there are nodes",
                           facts_.text(dag_.chunks[c].name), count);
        return;
      }
      base[c + 1] = base[c] + count;
    }
    std::vector<std::array<std::uint8_t, kPasses>> seen(base[n]);
    std::vector<bool> recomputed_forward(base[n]);
    for (const Cell& cell : cells) {
      if (cell.recomputed_forward) recomputed_forward[base[cell.chunk] + cell.index] = true;
      std::uint8_t& count =
          seen[base[cell.chunk] + cell.index][static_cast<std::size_t>(cell.pass)];
      if (count < 2) ++count;
    }
    for (std::size_t c = 0; c < n && !facts_.enough(); ++c) {
      const dag::Chunk& chunk = dag_.chunks[c];
      const auto has = [&](Pass pass) {
        return chunk.bodies[static_cast<std::size_t>(pass)].valid();
      };
      for (std::size_t k = base[c]; k < base[c + 1] && !facts_.enough(); ++k) {
        const auto count = [&](Pass pass) { return seen[k][static_cast<std::size_t>(pass)]; };
        const auto instance = static_cast<std::uint32_t>(k - base[c]);
        const auto need = [&](Pass pass, bool wanted) {
          if (count(pass) == (wanted ? 1 : 0)) return;
          const std::string name = cell_text(pass, c, instance);
          if (count(pass) > 1) {
            facts_.sink.report(Code::incomplete_instances, chunk.loc, "`{}` runs more than once",
                               name);
          } else if (wanted) {
            facts_.sink.report(Code::incomplete_instances, chunk.loc, "`{}` is missing", name)
                .hint("the header says that chunk `{}` has this pass", facts_.text(chunk.name));
          } else {
            facts_.sink.report(Code::incomplete_instances, chunk.loc, "`{}` runs beside {}", name,
                               pass == Pass::R
                                   ? "a forward that keeps what it makes"
                                   : "the whole backward or the halves that replace it");
          }
        };
        need(Pass::F, has(Pass::F));
        if (dag_.forward_only) {
          for (const Pass pass : {Pass::R, Pass::B, Pass::BI, Pass::BW}) need(pass, false);
          continue;
        }
        need(Pass::R, recomputed_forward[k] || (has(Pass::R) && !chunk.recomputed_forward.valid()));
        const bool can_split = has(Pass::BI) || has(Pass::BW);
        const bool split =
            can_split && (!has(Pass::B) || count(Pass::BI) > 0 || count(Pass::BW) > 0);
        need(Pass::B, has(Pass::B) && !split);
        need(Pass::BI, has(Pass::BI) && split);
        need(Pass::BW, has(Pass::BW) && split);
      }
    }
  }

  /// Passes of a chunk on the same devices shard their samples alike.
  void same_shares() {
    // Per chunk: one node with samples of each device set, few.
    std::vector<std::vector<NodeId>> first(dag_.chunks.size());
    std::vector<std::optional<std::optional<AxisMask>>> divided(dag_.bodies.size());
    const auto of = [&](const Node& node) {
      std::optional<std::optional<AxisMask>>& known = divided[node.body.index()];
      if (!known) known = divided_over(dag_, node);
      return *known;
    };
    for (std::size_t i = 0; i < dag_.nodes.size() && !facts_.enough(); ++i) {
      if (!runs_body(facts_.kind[i])) continue;
      const Node& node = dag_.nodes[i];
      if (!of(node)) continue;
      std::vector<NodeId>& known = first[node.chunk.index()];
      const auto same = std::find_if(known.begin(), known.end(), [&](NodeId id) {
        return facts_.node(id).devices == node.devices;
      });
      if (same == known.end()) {
        known.push_back(NodeId::at(i));
      } else if (of(facts_.node(*same)) != of(node)) {
        facts_.sink.report(Code::wrong_edge, node.loc,
                           "`{}` and `{}` divide their samples over different axes",
                           facts_.name(NodeId::at(i)), facts_.name(*same));
      }
    }
  }

  // ---- reads of every output
  // ---------------------------------------------------------------------------------------------

  /// Reports loads, counts, sums and messages that are never read.
  void reads() {
    read_.assign(facts_.owner.size(), false);
    for (const Node& node : dag_.nodes) {
      for (const Input& input : dag_.inputs_of(node)) {
        if (input.source.node.valid()) read_[facts_.output(input.source)] = true;
      }
    }
    for (std::size_t i = 0; i < dag_.nodes.size(); ++i) {
      const NodeKind kind = facts_.kind[i];
      const bool passes_on = is_communication(kind) || adds_in_place(kind) ||
                             kind == NodeKind::load || kind == NodeKind::count;
      // Other checks report unread outputs of other kinds; parameters may stay unread.
      if (!passes_on || gathers_shards(kind)) continue;
      if (facts_.enough()) return;
      const Node& node = dag_.nodes[i];
      for (std::uint32_t k = 0; k < node.num_outputs; ++k) {
        if (!is_read(NodeId::at(i), k))
          facts_.sink.report(Code::wrong_edge, node.loc, "nothing reads output `{}` of `{}`", k,
                             facts_.name(NodeId::at(i)));
      }
    }
  }

  /// A collective gives its result to all members, even if only one of them reads it.
  bool is_read(NodeId id, std::uint32_t output) const {
    const auto read_at = [&](NodeId node) {
      return read_[facts_.output_base[node.index()] + output];
    };
    if (!is_collective(facts_.kind[id.index()])) return read_at(id);
    const auto& members = dag_.comms[facts_.node(id).comm.index()].members;
    return std::any_of(members.begin(), members.end(), [&](NodeId member) {
      return output < facts_.outputs_of(member) && read_at(member);
    });
  }

  // ---- parameters
  // ----------------------------------------------------------------------------------------------------------

  void updates() {
    std::vector<std::uint32_t> buckets_of(dag_.params.size(), 0);
    for (const dag::Bucket& bucket : dag_.buckets) {
      for (const tensor::ParamId param : bucket.params) ++buckets_of[param.index()];
    }
    for (std::size_t p = 0; p < dag_.params.size() && !facts_.enough(); ++p) {
      if (buckets_of[p] == 1) continue;
      facts_.sink.report(Code::wrong_update, dag_.params[p].loc,
                         "parameter `{}` stands in `{}` buckets; it is updated in one",
                         facts_.text(dag_.params[p].name), buckets_of[p]);
    }
    for (auto* list : {&updates_of_, &sums_of_, &copies_of_}) list->assign(dag_.buckets.size(), {});
    trained_.assign(dag_.buckets.size(), false);
    for (const NodeId id : facts_.around) {
      const Node& node = facts_.node(id);
      if (!node.subject.bucket().valid()) continue;
      const std::size_t b = node.subject.bucket().index();
      if (writes_state(node.kind)) updates_of_[b].push_back(id);
      if (copies_to_or_from_host(node.kind)) copies_of_[b].push_back(id);
      if (node.kind == NodeKind::sum_squares) sums_of_[b].push_back(id);
      if (node.kind == NodeKind::sum_squares || adds_in_place(node.kind) ||
          reduces_members(node.kind) ||
          (gathers_shards(node.kind) && !dag_.shards_parameters(dag_.buckets[b])))
        trained_[b] = true;
    }
    for (std::size_t b = 0; b < dag_.buckets.size() && !facts_.enough(); ++b) {
      const dag::Bucket& bucket = dag_.buckets[b];
      // Owners are known from level placed on; below level communicating the update of every owner
      // reads all contributions of all devices.
      const bool owners = !bucket.owners.empty();
      const bool frozen = dag_.frozen(bucket);
      const std::size_t wanted = dag_.forward_only || frozen ? 0
                                 : owners                    ? bucket.owners.size()
                                                             : 1;
      if (updates_of_[b].size() != wanted || (!owners && dag_.level >= Level::communicating)) {
        facts_.sink.report(Code::wrong_update, bucket.loc,
                           "bucket `{}` has `{}` updates where it needs `{}`",
                           facts_.text(bucket.name), updates_of_[b].size(), wanted);
        continue;
      }
      if (!copied_once(b)) continue;
      if (std::any_of(bucket.params.begin(), bucket.params.end(),
                      [&](tensor::ParamId param) { return dag_.params[param.index()].frozen; }))
        frozen_bucket(b);
      if (dag_.forward_only || frozen) continue;
      for (const DeviceSetId owner : bucket.owners) {
        const auto at = [&](NodeId id) { return facts_.node(id).devices == owner; };
        const auto count = std::count_if(updates_of_[b].begin(), updates_of_[b].end(), at);
        if (count != 1)
          facts_.sink.report(Code::wrong_update, bucket.loc,
                             "bucket `{}` has `{}` updates on its owner `{}`",
                             facts_.text(bucket.name), count, facts_.text(owner));
      }
    }
  }

  void nothing_frozen() {
    for (const dag::Body& body : dag_.bodies) {
      for (const dag::BodyPort& port : body.outputs) {
        if (port.kind != PortKind::grad || !dag_.params[port.param.index()].frozen ||
            facts_.enough())
          continue;
        facts_.sink.report(Code::wrong_frozen, dag_.params[port.param.index()].loc,
                           "body `{}` makes a gradient of `{}`, which is frozen",
                           facts_.text(body.name),
                           facts_.text(dag_.params[port.param.index()].name));
      }
    }
  }

  /// Offloaded optimizer state is fetched and offloaded once per step at each owner that updates
  /// it; other state is not.
  bool copied_once(std::size_t b) {
    const dag::Bucket& bucket = dag_.buckets[b];
    const std::size_t wanted = bucket.state_on_host && !dag_.forward_only && !dag_.frozen(bucket)
                                   ? bucket.owners.size()
                                   : 0;
    for (const bool fetches : {true, false}) {
      std::vector<DeviceSetId> found;
      for (const NodeId id : copies_of_[b]) {
        if (returns_to_device(facts_.node(id).kind) == fetches)
          found.push_back(facts_.node(id).devices);
      }
      std::vector<DeviceSetId> owners(bucket.owners.begin(), bucket.owners.end());
      std::sort(found.begin(), found.end());
      std::sort(owners.begin(), owners.end());
      if (wanted == 0 ? found.empty() : found == owners) continue;
      facts_.sink.report(
          Code::wrong_update, bucket.loc,
          "the optimizer state of bucket `{}` is copied `{}` times {} the host where `{}` owners update it{}",
          facts_.text(bucket.name), found.size(), fetches ? "from" : "to", wanted,
          bucket.state_on_host ? "" : ", and it is on the device");
      return false;
    }
    return true;
  }

  /// All parameters of a frozen bucket are frozen, and it has no reductions or sums; it may be
  /// sharded and gathered.
  void frozen_bucket(std::size_t b) {
    const dag::Bucket& bucket = dag_.buckets[b];
    if (dag_.frozen(bucket) && b + 1 < dag_.buckets.size() && !dag_.frozen(dag_.buckets[b + 1])) {
      facts_.sink.report(
          Code::wrong_frozen, bucket.loc,
          "bucket `{}` is frozen, and `{}` after it is not; frozen buckets come last",
          facts_.text(bucket.name), facts_.text(dag_.buckets[b + 1].name));
    }
    const bool all =
        std::all_of(bucket.params.begin(), bucket.params.end(),
                    [&](tensor::ParamId param) { return dag_.params[param.index()].frozen; });
    if (all && !trained_[b] && bucket.unreduced.replicated() && bucket.state.replicated() &&
        bucket.gradients.replicated())
      return;
    facts_.sink.report(Code::wrong_frozen, bucket.loc,
                       "bucket `{}` holds frozen parameters, and {}", facts_.text(bucket.name),
                       !all          ? "one that is trained"
                       : trained_[b] ? "has nodes that add, reduce, sum or gather it"
                                     : "says axes of a reduction");
  }

  // ---- norms and reports
  // -------------------------------------------------------------------------------------------------

  void norms() {
    if (dag_.level < Level::communicating) return;
    for (std::size_t b = 0; b < dag_.buckets.size() && !facts_.enough(); ++b) {
      const std::vector<NodeId>& sums = sums_of_[b];
      if (sums.size() > 1 || (sums.size() == 1 && !dag_.buckets[b].owners.empty() &&
                              facts_.node(sums[0]).devices != dag_.buckets[b].owners[0])) {
        facts_.sink.report(Code::wrong_norm, dag_.buckets[b].loc,
                           "the squares of bucket `{}` are summed once, at its first owner",
                           facts_.text(dag_.buckets[b].name));
      }
    }
    for (const NodeId id : facts_.around) {
      if (facts_.enough()) break;
      const Node& node = facts_.node(id);
      if (node.kind != NodeKind::norm) continue;
      for_each_port(dag_, node, [&](std::span<const Input> sources) {
        AxisMask over = 0;
        const Port origin = loss_origin(facts_, sources[0].source, over);
        const Node& maker = facts_.node(origin.node);
        const std::size_t bucket = sources[0].port;
        if (maker.kind == NodeKind::sum_squares && maker.subject.bucket().index() == bucket &&
            over == sharded_over(dag_, dag_.buckets[bucket]))
          return;
        facts_.sink.report(Code::wrong_norm, node.loc,
                           "input `{}` of `{}` is not the sum of squares of bucket `{}`",
                           sources[0].port, facts_.name(id),
                           sources[0].port < dag_.buckets.size()
                               ? facts_.text(dag_.buckets[sources[0].port].name)
                               : "");
      });
    }
  }

  /// The number of elements of a loss over the whole batch, computed from its bodies.
  struct Elements {
    std::int64_t summed = 0;
    bool unknown = false;  // a body has a signature only
  };

  /// If samples have weights, the weights select their sums before the reduction.
  static std::int64_t summed_elements(const tensor::Graph& graph, tensor::ValueId summed) {
    const tensor::NodeId selected = graph.value(summed).def;
    if (!selected.valid() || graph.node(selected).op != tensor::Op::select_ge)
      return graph.type(summed).elements();
    const tensor::ValueId rows = graph.operands(graph.node(selected))[2];
    const tensor::NodeId maker = graph.value(rows).def;
    const bool sums = maker.valid() && graph.node(maker).op == tensor::Op::sum;
    return graph.type(sums ? graph.operands(graph.node(maker))[0] : rows).elements();
  }

  void add_elements(std::uint32_t loss, const Node& maker, std::uint32_t output) {
    const dag::Body& body = body_of(maker);
    std::int64_t& of_output =
        elements_of_output_.try_emplace({maker.body.value(), output}, kUnknown).first->second;
    for (const tensor::Node& op : body.graph.nodes()) {
      if (of_output != kUnknown) break;
      if (op.op == tensor::Op::sum && body.graph.result(op) == body.outputs[output].value)
        of_output = summed_elements(body.graph, body.graph.operands(op)[0]);
    }
    if (of_output == kUnknown) {
      elements_[loss].unknown = true;
      return;
    }
    elements_[loss].summed += of_output;
  }

  void reports() {
    elements_.resize(dag_.losses.size());
    std::vector<std::uint32_t> reports(dag_.losses.size(), 0);
    std::uint32_t of_norm = 0;
    NodeId norm_node;
    std::vector<std::uint8_t> counted(facts_.owner.size(), 0);
    for (const NodeId id : facts_.around) {
      if (facts_.enough()) break;
      const Node& node = facts_.node(id);
      if (node.kind == NodeKind::norm) norm_node = id;
      if (node.kind != NodeKind::report) continue;
      const tensor::LossId loss = node.subject.loss();
      const bool norm = node.subject.is_norm();
      ++(norm ? of_norm : reports[loss.index()]);
      // The count follows.
      const std::size_t sums =
          node.num_inputs - (!norm && dag_.losses[loss.index()].mask ? 1u : 0u);
      for_each_port(dag_, node, [&](std::span<const Input> sources) {
        if (sources[0].port >= sums) return;
        AxisMask over = 0;
        const Port origin = loss_origin(facts_, sources[0].source, over);
        const Node& maker = facts_.node(origin.node);
        if (norm) {
          if (maker.kind != NodeKind::norm)
            facts_.sink.report(Code::wrong_report, node.loc, "`{}` reads `{}`, which is no norm",
                               facts_.name(id), facts_.text(origin));
          return;
        }
        const dag::BodyPort* port =
            runs_body(maker.kind) ? &body_of(maker).outputs[origin.index] : nullptr;
        const bool shared = port != nullptr && facts_.shared_body[maker.body.index()];
        if (port == nullptr || port->kind != PortKind::loss_sum ||
            (port->loss != loss && !shared)) {
          facts_.sink.report(Code::wrong_report, node.loc,
                             "`{}` reads `{}`, which is no sum of that loss", facts_.name(id),
                             facts_.text(origin));
          return;
        }
        add_elements(loss.value(), maker, origin.index);
        if (++counted[facts_.output(origin)] > 1) {
          facts_.sink.report(Code::wrong_report, node.loc, "`{}` counts `{}` more than once",
                             facts_.name(id), facts_.text(origin));
        }
        if (dag_.level >= Level::communicating && over != summed_over(dag_, maker, origin.index)) {
          facts_.sink.report(
              Code::wrong_report, node.loc,
              "the loss sum `{}` is not added over exactly the devices that hold parts of the batch",
              facts_.text(origin));
        }
      });
    }
    for (std::size_t l = 0; l < dag_.losses.size() && !facts_.enough(); ++l) {
      if (reports[l] != 1)
        facts_.sink.report(Code::wrong_report, dag_.losses[l].loc,
                           "loss `{}` has `{}` reports; it needs one",
                           facts_.text(dag_.losses[l].name), reports[l]);
      if (!facts_.ok() || elements_[l].unknown || elements_[l].summed == dag_.losses[l].count)
        continue;
      facts_.sink.report(Code::wrong_report, dag_.losses[l].loc,
                         "loss `{}` says `{}` elements, and its bodies sum `{}`",
                         facts_.text(dag_.losses[l].name), dag_.losses[l].count,
                         elements_[l].summed);
    }
    if (norm_node.valid() && of_norm != 1) {
      facts_.sink.report(Code::wrong_report, facts_.loc(norm_node),
                         "the norm of the gradients has `{}` reports; it needs one", of_norm);
    }
    for (const NodeId id : summing_) {
      if (facts_.enough()) break;
      const Node& node = facts_.node(id);
      for (const std::uint32_t k : loss_sums_[node.body.index()]) {
        if (counted[facts_.output({id, k})] == 0)
          facts_.sink.report(Code::wrong_report, node.loc, "the loss sum `{}` reaches no report",
                             facts_.text(Port{id, k}));
      }
    }
  }

  Facts& facts_;
  const Dag& dag_;
  std::vector<std::uint32_t> split_;  // per chunk: the dimensions its nodes are split along
  std::vector<std::vector<std::uint32_t>> loss_sums_;  // per body: those outputs
  std::vector<NodeId> summing_;                        // the chunk nodes that compute loss sums
  std::vector<bool> read_;                             // per output
  std::vector<std::vector<NodeId>> updates_of_, sums_of_, copies_of_;  // per bucket
  std::vector<bool> trained_;  // per bucket: it has nodes that only trained buckets may have
  static constexpr std::int64_t kUnknown = -1;
  // Per body and output that sums a loss.
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::int64_t> elements_of_output_;
  std::vector<Elements> elements_;  // per loss
};

}  // namespace

void check_completeness(Facts& facts) { Completeness(facts).check(); }

}  // namespace piper::verify
