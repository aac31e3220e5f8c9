#include "passes/order/insert_collectives.h"

#include <algorithm>
#include <map>
#include <utility>

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "passes/build/surround.h"
#include "passes/order/linearise.h"
#include "passes/selectors/select.h"

namespace piper::passes {

using namespace dag;

namespace {

/// Work that reads the parameters of a bucket or adds to its gradients.
struct Use {
  std::uint32_t at = 0;  // position among the work of the owner's devices
  NodeId node;
  bool reads = false, contributes = false;
};

/// A bucket at one of its owners.
struct ShardedBucket {
  BucketId bucket;
  NodeId gather, reduction;  // of the whole step; invalid: there is none
  NodeId sum;                // of the gradients that are reduced
  // The node that leaves the parameters for the next step, if devices keep all of them.
  NodeId left_by;
  std::vector<Use> uses;  // in issue order
};

/// A gathered interval: consecutive work of the devices that reads the parameters of a share.
struct Run {
  ShardedBucket* share = nullptr;
  std::vector<NodeId> readers;        // none: the previous interval serves them
  std::uint32_t first = 0, last = 0;  // positions of the first and last reader
  // The work before which its all-gather is placed; invalid: before all work of the step.
  NodeId before;
  const Dag::GatherInterval* placed = nullptr;  // or the place in an order
};

struct Home {
  std::vector<NodeId> work;  // of its devices, in issue order
  std::vector<ShardedBucket> shares;
};

class InsertCollectives {
 public:
  explicit InsertCollectives(Dag& dag) : dag_(dag), gathered_(dag.chunks.size()) {}

  bool run(const directive::Strategy& strategy, DiagnosticSink& sink) {
    if (std::none_of(dag_.buckets.begin(), dag_.buckets.end(),
                     [](const Bucket& bucket) { return bucket.gathered_per_use(); }))
      return true;
    find_placed();
    find_shares();
    for (const auto& [before, after] : dag_.temporal) named_.insert(after.value());
    find_work();
    find_uses();
    for (auto& [at, owner] : owners_) {
      gather(owner);
      for (ShardedBucket& share : owner.shares) reduce(share);
    }
    read_shards();
    insert();
    place_sums(dag_);
    const bool good = check_prefetch(strategy, sink);
    dag_.gather_intervals.clear();
    if (!dag_.group.empty()) dag_.group.resize(dag_.nodes.size(), Dag::kNoGroup);
    return good;
  }

 private:
  // ---- uses of buckets

  void find_placed() {
    for (const Dag::GatherInterval& placed : dag_.gather_intervals) {
      for (const NodeId use : placed.uses)
        placed_of_[{placed.whole.value(), use.value()}] = &placed;
    }
  }

  void find_shares() {
    for (std::size_t n = 0; n < dag_.nodes.size(); ++n) {
      const Node& node = dag_.nodes[n];
      const bool gathers = gathers_shards(node.kind), scatters = reduces_to_shards(node.kind);
      if ((!gathers && !scatters) || node.chunk.valid()) continue;
      const Bucket& bucket = dag_.buckets[node.subject.bucket().index()];
      if (!bucket.gathered_per_use()) continue;
      std::vector<ShardedBucket>& shares = owners_[dag_.device_sets[node.devices].at].shares;
      auto share = std::find_if(shares.begin(), shares.end(), [&](const ShardedBucket& each) {
        return each.bucket == node.subject.bucket();
      });
      if (share == shares.end())
        share =
            shares.insert(shares.end(), ShardedBucket{node.subject.bucket(), {}, {}, {}, {}, {}});
      if (scatters) share->sum = dag_.inputs_of(node).front().source.node;
      (scatters                         ? share->reduction
       : dag_.shards_parameters(bucket) ? share->gather
                                        : share->left_by) = NodeId::at(n);
    }
    // Buckets are numbered alike in every text of a DAG, nodes are not.
    for (auto& [at, owner] : owners_)
      std::sort(owner.shares.begin(), owner.shares.end(),
                [](const ShardedBucket& a, const ShardedBucket& b) { return a.bucket < b.bucket; });
  }

  void find_work() {
    // Per set: the owners with some of its devices; true: with exactly these.
    std::vector<std::vector<std::pair<Home*, bool>>> owners_of(dag_.device_sets.size());
    for (std::size_t s = 0; s < dag_.device_sets.size(); ++s) {
      const DeviceSet& set = dag_.device_sets[DeviceSetId::at(s)];
      for (auto& [at, owner] : owners_) {
        if (set.intersects(DeviceSet{at})) owners_of[s].emplace_back(&owner, set.at == at);
      }
    }
    at_.assign(dag_.nodes.size(), 0);
    NodePolls polls(dag_.context->cancellation);
    for (const NodeId id : dag_.order) {
      polls.visit();
      if (!runs_body(dag_.node(id).kind)) continue;
      for (const auto& [owner, own] : owners_of[dag_.node(id).devices.index()]) {
        if (own) at_[id.index()] = static_cast<std::uint32_t>(owner->work.size());
        owner->work.push_back(id);
      }
    }
  }

  void find_uses() {
    llvm::DenseMap<std::uint32_t, ShardedBucket*> of_source;  // of the parameters that work reads
    for (auto& [at, owner] : owners_) {
      for (ShardedBucket& share : owner.shares) {
        for (const NodeId source : {share.gather, share.left_by}) {
          if (source.valid()) of_source[source.value()] = &share;
        }
        if (!share.reduction.valid()) continue;
        for (const Input& input : dag_.inputs_of(dag_.node(share.sum)))
          share.uses.push_back({at_[input.source.node.index()], input.source.node, false, true});
      }
    }
    NodePolls polls(dag_.context->cancellation);
    for (std::size_t n = 0; n < dag_.nodes.size(); ++n) {
      polls.visit();
      if (!runs_body(dag_.nodes[n].kind)) continue;
      for (const Input& input : dag_.inputs_of(dag_.nodes[n])) {
        if (!input.source.node.valid()) continue;
        const auto share = of_source.find(input.source.node.value());
        if (share != of_source.end())
          share->second->uses.push_back({at_[n], NodeId::at(n), true, false});
      }
    }
    for (auto& [at, owner] : owners_) {
      for (ShardedBucket& share : owner.shares) join_uses(share.uses);
    }
  }

  static void join_uses(std::vector<Use>& uses) {
    std::sort(uses.begin(), uses.end(), [](const Use& a, const Use& b) { return a.at < b.at; });
    std::vector<Use> joined;
    for (const Use& use : uses) {
      if (joined.empty() || joined.back().node != use.node) joined.push_back(use);
      joined.back().reads |= use.reads;
      joined.back().contributes |= use.contributes;
    }
    uses = std::move(joined);
  }

  /// Whether other work of the devices is between this use and the previous one.
  static bool begins_run(const ShardedBucket& share, std::size_t use) {
    return use == 0 || share.uses[use].at != share.uses[use - 1].at + 1;
  }

  // ---- gathers

  void gather(Home& owner) {
    std::vector<Run> runs = runs_of(owner);
    std::vector<std::uint32_t> starts;  // of the intervals, without repeats
    std::map<const ShardedBucket*, Run*> before;
    for (Run& run : runs) {
      if (starts.empty() || starts.back() != run.first) starts.push_back(run.first);
      const std::uint32_t ahead = dag_.buckets[run.share->bucket.index()].prefetch;
      const std::size_t number = starts.size() - 1;
      if (number >= ahead) run.before = owner.work[starts[number - ahead]];
      Run*& last = before[run.share];
      if (run.placed == nullptr && last != nullptr &&
          (number < ahead || starts[number - ahead] <= last->last)) {
        last->readers.insert(last->readers.end(), run.readers.begin(), run.readers.end());
        last->last = std::max(last->last, run.last);
        run.readers.clear();
      } else if (last == nullptr || last->last < run.last) {
        last = &run;
      }
    }
    for (const Run& run : runs) {
      if (!run.readers.empty()) make_gather(run);
    }
  }

  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);

  std::vector<Run> runs_of(Home& owner) {
    std::vector<Run> runs;
    std::map<const Dag::GatherInterval*, std::size_t> of_placed;
    for (ShardedBucket& share : owner.shares) {
      std::size_t open = kNone;
      for (std::size_t u = 0; u < share.uses.size() && share.gather.valid(); ++u) {
        const Use& use = share.uses[u];
        if (begins_run(share, u)) open = kNone;
        if (!use.reads) continue;
        const auto named = placed_of_.find({share.gather.value(), use.node.value()});
        const Dag::GatherInterval* placed = named != placed_of_.end() ? named->second : nullptr;
        if (placed != nullptr) {
          open = of_placed.try_emplace(placed, runs.size()).first->second;
        } else if (open == kNone) {
          open = runs.size();
        }
        if (open == runs.size()) runs.push_back({&share, {}, use.at, use.at, {}, placed});
        runs[open].readers.push_back(use.node);
        Gathered& gathered = gathered_[dag_.node(use.node).chunk.index()];
        (runs[open].placed != nullptr ? gathered.placed : gathered.otherwise) = true;
        runs[open].last = use.at;
      }
    }
    std::stable_sort(runs.begin(), runs.end(),
                     [](const Run& a, const Run& b) { return a.first < b.first; });
    return runs;
  }

  void make_gather(const Run& run) {
    const NodeId whole = run.share->gather,
                 id = repeat(whole, run.readers.front(), started_.insert(whole.value()).second,
                             dag_.inputs_of(dag_.node(whole)));
    for (const NodeId reader : run.readers) {
      const Node& node = dag_.node(reader);
      for (std::uint32_t e = node.first_input; e < node.first_input + node.num_inputs; ++e) {
        if (dag_.edges[e].source.node == whole) dag_.edges[e].source.node = id;
      }
    }
    if (run.placed != nullptr) return place_as_ordered(id, *run.placed);
    if (run.before.valid()) {
      before_[run.before.value()].push_back(id);
    } else {
      at_start_.push_back(id);
    }
  }

  void place_as_ordered(NodeId id, const Dag::GatherInterval& placed) {
    dag_.nodes[id.index()].loc = placed.loc;
    if (placed.after.empty()) return at_start_.push_back(id);
    if (position_.empty()) {
      position_.resize(dag_.nodes.size());
      for (std::size_t i = 0; i < dag_.order.size(); ++i) position_[dag_.order[i].index()] = i;
    }
    const auto last = std::max_element(
        placed.after.begin(), placed.after.end(),
        [&](NodeId a, NodeId b) { return position_[a.index()] < position_[b.index()]; });
    after_[last->value()].push_back(id);
    for (const NodeId before : placed.after) dag_.temporal.emplace_back(before, id);
  }

  /// Either `prefetch` or an order determines the place of an all-gather, not both. A forward-only
  /// program may lack the all-gathers that `prefetch` is for.
  bool check_prefetch(const directive::Strategy& strategy, DiagnosticSink& sink) {
    if (dag_.gather_intervals.empty() || dag_.forward_only) return true;
    Selection selection(dag_);
    bool good = true;
    for (const directive::Directive& line : strategy.directives) {
      const auto* replicate = std::get_if<directive::Replicate>(&line);
      if (replicate == nullptr || replicate->prefetch.value_or(0) == 0) continue;
      Gathered all;
      for (const directive::Selector& target : replicate->targets) {
        const std::optional<Selection::Found> found = selection.find(target, sink);
        if (!found) return false;
        for (const ChunkId chunk : found->chunks) {
          all.placed |= gathered_[chunk.index()].placed;
          all.otherwise |= gathered_[chunk.index()].otherwise;
        }
      }
      if (!all.placed || all.otherwise) continue;
      sink.report(Code::nothing_to_prefetch,
                  directive::narrowest(replicate->prefetch_loc, replicate->loc),
                  "`prefetch: {}` has no effect: orders place every gather", *replicate->prefetch)
          .related(dag_.gather_intervals.front().loc, "the first of them is named here")
          .hint("leave `prefetch` out, or leave gathers to it");
      good = false;
    }
    return good;
  }

  // ---- reductions

  void reduce(const ShardedBucket& share) {
    if (!share.reduction.valid()) return;
    const directive::Reduce round = dag_.buckets[share.bucket.index()].reduced;
    llvm::DenseMap<std::uint32_t, std::size_t> interval_of;  // by contributing node
    std::vector<NodeId> last;                                // of each interval
    bool open = false;
    for (std::size_t u = 0; u < share.uses.size(); ++u) {
      if (round == directive::Reduce::microbatch || begins_run(share, u)) open = false;
      if (!share.uses[u].contributes) continue;
      if (!std::exchange(open, true)) last.emplace_back();
      last.back() = share.uses[u].node;
      interval_of[share.uses[u].node.value()] = last.size() - 1;
    }
    std::vector<std::vector<Input>> terms(last.size());
    for (const Input& input : dag_.inputs_of(dag_.node(share.sum)))
      terms[interval_of[input.source.node.value()]].push_back(input);
    std::vector<Input> blocks;
    for (std::size_t r = 0; r < last.size(); ++r) {
      const bool takes_place = r + 1 == last.size();
      const NodeId sum = repeat(share.sum, last[r], takes_place, terms[r]);
      if (takes_place) dag_.set_inputs(sum, terms[r]);
      const NodeId reduction = repeat(share.reduction, last[r], takes_place, reads_of(dag_, sum));
      blocks.push_back({{reduction, 0}, 0, EdgeClass::grad});
      if (takes_place && named_.contains(reduction.value())) continue;
      after_[last[r].value()].push_back(reduction);
    }
    Node made = dag_.node(share.sum);
    made.pass = Pass::F;
    made.chunk = {};
    made.instance = {};
    made.num_outputs = 1;
    shards_of_[share.reduction.value()] = dag_.add(made, blocks);
  }

  /// Readers of the reduction of the whole step read the sum over its intervals instead.
  void read_shards() {
    for (const Node& node : dag_.nodes) {
      if (!node.subject.bucket().valid() || adds_in_place(node.kind)) continue;
      for (std::uint32_t e = node.first_input; e < node.first_input + node.num_inputs; ++e) {
        Input& input = dag_.edges[e];
        const auto sum = input.source.node.valid() ? shards_of_.find(input.source.node.value())
                                                   : shards_of_.end();
        if (sum != shards_of_.end()) input.source.node = sum->second;
      }
    }
  }

  // ---- the order

  /// Repeats a collective or sum of the whole step for one interval, named by the work that begins
  /// or ends it. The first all-gather, the last sum and the last reduction replace the original in
  /// the tables and keep its place if an order names it. `inputs` are for a new one.
  NodeId repeat(NodeId whole, NodeId work, bool takes_place, std::span<const Input> inputs) {
    NodeId id = whole;
    if (takes_place && !named_.contains(whole.value())) placed_.insert(whole.value());
    if (!takes_place) {
      id = dag_.add(Node(dag_.node(whole)), std::vector<Input>(inputs.begin(), inputs.end()));
      if (const CommId comm = dag_.node(whole).comm; comm.valid()) {
        const Comm of_whole = dag_.comms[comm.index()];
        dag_.nodes[id.index()].comm = CommId::at(dag_.comms.size());
        dag_.comms.push_back({{id}, of_whole.axes, of_whole.loc});
      }
    }
    Node& made = dag_.nodes[id.index()];
    made.pass = dag_.node(work).pass;
    made.chunk = dag_.node(work).chunk;
    made.instance = dag_.node(work).instance;
    return id;
  }

  void insert() {
    std::vector<NodeId> order(at_start_);
    order.reserve(dag_.nodes.size());
    const auto all = [&](const llvm::DenseMap<std::uint32_t, std::vector<NodeId>>& table,
                         NodeId work) {
      if (const auto found = table.find(work.value()); found != table.end())
        order.insert(order.end(), found->second.begin(), found->second.end());
    };
    for (const NodeId id : dag_.order) {
      if (placed_.contains(id.value())) continue;
      all(before_, id);
      order.push_back(id);
      all(after_, id);
    }
    dag_.order = std::move(order);
  }

  /// How the all-gathers that serve a chunk got their places: some from an order (`placed`), some
  /// from `prefetch` (`otherwise`).
  struct Gathered {
    bool placed = false, otherwise = false;
  };

  Dag& dag_;
  std::vector<Gathered> gathered_;                    // by chunk
  std::map<std::vector<std::int32_t>, Home> owners_;  // by device set
  // Per node of work on an owner's devices: its position among that work.
  std::vector<std::uint32_t> at_;
  // By the reduction of the whole step: the sum over its intervals.
  llvm::DenseMap<std::uint32_t, NodeId> shards_of_;
  // By work: the nodes placed before and after it.
  llvm::DenseMap<std::uint32_t, std::vector<NodeId>> before_, after_;
  std::vector<NodeId> at_start_;
  // Collectives of the whole step that get another place in the order.
  llvm::DenseSet<std::uint32_t> placed_;
  // all-gathers of the whole step that have a first interval.
  llvm::DenseSet<std::uint32_t> started_;
  llvm::DenseSet<std::uint32_t> named_;  // nodes that an order places after others
  // By the gather of the whole step and a use.
  std::map<std::pair<std::uint32_t, std::uint32_t>, const Dag::GatherInterval*> placed_of_;
  // Position in the order of the original nodes; filled on demand.
  std::vector<std::size_t> position_;
};

}  // namespace

bool insert_collectives(Dag& dag, const directive::Strategy& strategy, DiagnosticSink& sink) {
  return InsertCollectives(dag).run(strategy, sink);
}

}  // namespace piper::passes
