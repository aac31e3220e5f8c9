#include "passes/order/offload.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "ir/dag/bucket_layout.h"
#include "llvm/ADT/DenseMap.h"
#include "passes/order/linearise.h"
#include "passes/selectors/select.h"

namespace piper::passes {

using namespace dag;

namespace {

constexpr std::uint32_t kNone = 0xFFFFFFFFu;

/// The saved values of one instance of a region on its devices.
struct Page {
  std::uint32_t pool = 0;
  std::vector<std::uint32_t> accesses;  // of its pool, ascending
};

/// A saved value: one that backwards read.
struct Saved {
  Port port;
  std::uint32_t page = 0;
  NodeId forward;               // F, or R for recomputed values: after it the value may leave
  std::vector<NodeId> readers;  // backwards, in issue order
};

/// Work that makes or reads values of a page.
struct Access {
  std::uint32_t at = 0;  // in the global order
  NodeId node;
  std::uint32_t page = 0;
  bool returns = false;  // the page left the device since its previous access
  // Between accesses of a page with equal numbers it stays on the device.
  std::uint32_t stay = 0;
};

/// A value that is fetched for the readers of one stay of its page.
struct Returning {
  const Saved* saved;
  std::uint32_t stay;
};

/// The pages of one line on one set of devices, which keeps at most `window` of them.
struct Pool {
  std::uint32_t window = 1;
  LocId loc;
  std::vector<Access> accesses;  // in issue order
};

class Offloading {
 public:
  Offloading(Dag& dag, const directive::Strategy& strategy, DiagnosticSink& sink)
      : dag_(dag), strategy_(strategy), sink_(sink), selection_(dag) {}

  bool run() {
    if (!find_states()) return false;
    // nothing is saved or updated; state is where training has it
    if (dag_.forward_only) return true;
    if (!find_pages()) return false;
    position_.assign(dag_.nodes.size(), 0);
    for (std::uint32_t i = 0; i < dag_.order.size(); ++i) position_[dag_.order[i].index()] = i;
    find_saved();
    if (!report_empty()) return false;
    find_accesses();
    for (Pool& pool : pools_) choose_stays(pool);
    make_nodes();
    copy_states();
    insert();
    place_sums(dag_);
    if (!dag_.group.empty()) dag_.group.resize(dag_.nodes.size(), Dag::kNoGroup);
    return true;
  }

 private:
  // ---- optimizer state

  /// Buckets of which the named work uses a parameter. False after a report.
  bool find_states() {
    const std::size_t errors = sink_.error_count();
    const std::vector<BucketPosition> places = bucket_positions(dag_);
    line_of_bucket_.assign(dag_.buckets.size(), nullptr);
    const bool slots = state_slots(dag_.settings, dag_.settings.dtype) > 0;
    for (const directive::Directive& directive : strategy_.directives) {
      const auto* line = std::get_if<directive::Offload>(&directive);
      if (line == nullptr || line->what != directive::Offload::What::optimizer) continue;
      for (const directive::Selector& target : line->targets) {
        const std::optional<Selection::Found> found = selection_.find(target, sink_);
        if (!found) continue;
        bool any = false;
        for (const ChunkId chunk : found->chunks) {
          for (const BodyPort& port :
               dag_.bodies
                   [dag_.chunks[chunk.index()].bodies[static_cast<std::size_t>(Pass::F)].index()]
                       .inputs) {
            if (port.kind != PortKind::param) continue;
            const BucketId id = places[port.param.index()].bucket;
            Bucket& bucket = dag_.buckets[id.index()];
            if (!slots || dag_.frozen(bucket)) continue;
            any = bucket.state_on_host = true;
            const directive::Offload*& known = line_of_bucket_[id.index()];
            if (known != nullptr && known != line) {
              const std::string name(dag_.context->text(bucket.name));
              report_twice(directive::narrowest(target.loc, line->loc),
                           "the optimizer state of `" + name + "`", known->loc)
                  .hint(
                      "one bucket, `{}`, holds parameters of both: name them in one line, or make buckets that hold less with `bucket: SIZE` of a `replicate` line",
                      name);
              return false;
            }
            known = line;
          }
        }
        if (any) continue;
        sink_
            .report(Code::nothing_to_offload, directive::narrowest(target.loc, line->loc),
                    "`{}` has no weights with optimizer state",
                    print_selector(target, dag_.context->symbols))
            .hint("{}", slots ? "leave the line out, or name regions with weights that are trained"
                              : "this optimizer keeps no state: leave the line out");
      }
    }
    return sink_.error_count() == errors;
  }

  /// The copies of each line at each owner, in the order of its updates.
  void copy_states() {
    std::map<std::pair<const directive::Offload*, DeviceSetId>, std::vector<NodeId>> updates;
    for (const NodeId id : dag_.order) {
      const Node& node = dag_.node(id);
      if (!writes_state(node.kind)) continue;
      if (const directive::Offload* line = line_of_bucket_[node.subject.bucket().index()];
          line != nullptr)
        updates[{line, node.devices}].push_back(id);
    }
    for (const auto& [key, all] : updates) {
      for (std::size_t i = 0; i < all.size(); ++i) {
        const NodeId before = all[i - std::min<std::size_t>(i, key.first->window - 1)];
        copy_state(all[i], before, key.first->loc);
      }
    }
  }

  void copy_state(NodeId update, NodeId before, LocId loc) {
    const NodeId fetch = add_copy(NodeKind::fetch, update, {}, loc);
    const std::span<const Input> read = dag_.inputs_of(dag_.node(update));
    std::vector<Input> inputs(read.begin(), read.end());
    inputs.push_back({{fetch, 0}, inputs.back().port + 1, EdgeClass::data});
    dag_.set_inputs(update, inputs);
    const std::uint32_t state = dag_.nodes[update.index()].num_outputs++;
    before_[before.value()].push_back(fetch);
    const Input left{{update, state}, 0, EdgeClass::data};
    after_[update.value()].push_back(add_copy(NodeKind::offload, update, {&left, 1}, loc));
  }

  // ---- pages

  bool find_pages() {
    const std::size_t errors = sink_.error_count();
    const std::size_t instances = selection_.instances().size();
    page_of_.assign(dag_.chunks.size() * instances, kNone);
    for (const directive::Directive& directive : strategy_.directives) {
      const auto* line = std::get_if<directive::Offload>(&directive);
      if (line == nullptr || line->what != directive::Offload::What::activations) continue;
      std::map<DeviceSetId, std::uint32_t> pool_of;
      // With the instance and the pool.
      std::map<std::tuple<std::uint64_t, std::uint32_t, std::uint32_t>, std::uint32_t>
          page_of_region;
      const auto first_page = static_cast<std::uint32_t>(pages_.size());
      for (const directive::Selector& target : line->targets) {
        const std::optional<Selection::Found> found = selection_.find(target, sink_);
        if (!found) continue;
        lines_.push_back({directive::narrowest(target.loc, line->loc),
                          print_selector(target, dag_.context->symbols),
                          {}});
        for (const ChunkId chunk : found->chunks) {
          for (const std::uint32_t instance : found->instances) {
            const NodeId forward = selection_.work().at(chunk, Pass::F, instance);
            if (!forward.valid()) continue;
            std::uint32_t& known = page_of_[chunk.index() * instances + instance];
            if (known != kNone && known < first_page) {
              report_twice(lines_.back().loc, "`" + dag_.name(forward) + "`",
                           pools_[pages_[known].pool].loc)
                  .hint("name it in one of the two");
              return false;
            }
            lines_.back().work.push_back(chunk.index() * instances + instance);
            if (known != kNone) continue;
            const auto [pool, fresh_pool] = pool_of.try_emplace(
                dag_.node(forward).devices, static_cast<std::uint32_t>(pools_.size()));
            if (fresh_pool) pools_.push_back({line->window, line->loc, {}});
            const auto [page, fresh] =
                page_of_region.try_emplace({region_of(chunk, target), instance, pool->second},
                                           static_cast<std::uint32_t>(pages_.size()));
            if (fresh) pages_.push_back({pool->second, {}});
            known = page->second;
          }
        }
      }
    }
    return sink_.error_count() == errors;
  }

  /// The instance of a region that a target names; a chunk may be a segment of it. A chunk of
  /// `model` is its own instance.
  std::uint64_t region_of(ChunkId chunk, const directive::Selector& target) const {
    for (RegionId region = dag_.chunks[chunk.index()].region; region.valid();
         region = dag_.regions.parent(region)) {
      const Symbol name = dag_.regions.name(region);
      const bool named =
          std::any_of(target.coordinates.begin(), target.coordinates.end(),
                      [&](const directive::Coordinate& c) { return c.name == name && !c.rest; });
      if (named) return std::uint64_t{1} << 32 | region.value();
    }
    return chunk.value();
  }

  DiagnosticBuilder report_twice(LocId loc, const std::string& what, LocId other) {
    DiagnosticBuilder report =
        sink_.report(Code::offloaded_twice, loc, "{} is offloaded by another line already", what);
    report.related(other, "that line is here");
    return report;
  }

  /// Reports a target without saved values.
  bool report_empty() {
    const std::size_t errors = sink_.error_count();
    std::vector<bool> saves(page_of_.size(), false);
    for (const Saved& saved : saved_) saves[work_of(saved.forward)] = true;
    for (const Line& line : lines_) {
      if (std::any_of(line.work.begin(), line.work.end(),
                      [&](std::size_t work) { return saves[work]; }))
        continue;
      sink_
          .report(Code::nothing_to_offload, line.loc,
                  "`{}` saves nothing for its backward that could be offloaded", line.text)
          .hint(
              "leave the line out, or name regions whose backward reads what their forward made or received");
    }
    return sink_.error_count() == errors;
  }

  std::size_t work_of(NodeId id) const {
    const Node& node = dag_.node(id);
    return node.chunk.index() * selection_.instances().size() +
           selection_.instances().position(node.instance);
  }

  // ---- saved values

  /// Values of forwards that backwards read; each belongs to its first reader that a line names.
  void find_saved() {
    llvm::DenseMap<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> known;
    NodePolls polls(dag_.context->cancellation);
    for (const NodeId id : dag_.order) {
      polls.visit();
      const Node& node = dag_.node(id);
      if (!runs_body(node.kind) || node.pass == Pass::F) continue;
      for (const Input& input : dag_.inputs_of(node)) {
        if (input.cls != EdgeClass::data || !input.source.node.valid() ||
            !of_forward(dag_.node(input.source.node)))
          continue;
        const auto [entry, fresh] =
            known.try_emplace({input.source.node.value(), input.source.index},
                              static_cast<std::uint32_t>(saved_.size()));
        if (fresh) saved_.push_back({input.source, kNone, {}, {}});
        Saved& saved = saved_[entry->second];
        const std::uint32_t page = page_of_[work_of(id)];
        const NodeId forward = selection_.work().at(node.chunk, Pass::F,
                                                    selection_.instances().position(node.instance));
        // If the backward runs on other devices than the forward, these devices save nothing.
        if (saved.page == kNone && page != kNone && dag_.node(forward).devices == node.devices) {
          saved.page = page;
          saved.forward =
              dag_.node(input.source.node).pass == Pass::R ? input.source.node : forward;
        }
        if (saved.readers.empty() || saved.readers.back() != id) saved.readers.push_back(id);
      }
    }
    // A saved value is read or made by its forward.
    std::erase_if(saved_, [&](const Saved& saved) {
      return saved.page == kNone ||
             position_[saved.port.node.index()] > position_[saved.forward.index()];
    });
  }

  static bool of_forward(const Node& maker) {
    return runs_body(maker.kind) ? !is_backward(maker.pass)
                                 : maker.pass == Pass::F && is_recv(maker.kind);
  }

  void find_accesses() {
    std::vector<std::set<std::pair<std::uint32_t, NodeId>>> of_page(pages_.size());
    for (const Saved& saved : saved_) {
      of_page[saved.page].emplace(position_[saved.forward.index()], saved.forward);
      for (const NodeId reader : saved.readers)
        of_page[saved.page].emplace(position_[reader.index()], reader);
    }
    for (std::uint32_t p = 0; p < of_page.size(); ++p) {
      for (const auto& [at, node] : of_page[p])
        pools_[pages_[p].pool].accesses.push_back({at, node, p});
    }
    for (Pool& pool : pools_) {
      std::sort(pool.accesses.begin(), pool.accesses.end(), [](const Access& a, const Access& b) {
        return std::pair(a.at, a.page) < std::pair(b.at, b.page);
      });
      for (std::uint32_t a = 0; a < pool.accesses.size(); ++a)
        pages_[pool.accesses[a].page].accesses.push_back(a);
    }
  }

  /// If not all pages fit and there are several places, one place is reserved for fetches; while it
  /// is free, another page may stay.
  void choose_stays(Pool& pool) {
    if (!choose_returns(pool, pool.window) && pool.window > 1) {
      choose_returns(pool, pool.window - 1);
      fill_places(pool);
    }
    llvm::DenseMap<std::uint32_t, std::uint32_t> stay;
    for (Access& access : pool.accesses) access.stay = stay[access.page] += access.returns ? 1 : 0;
  }

  /// Decides which accesses find their page on the device: if it is full, the page with the latest
  /// next access leaves. True if all do.
  bool choose_returns(Pool& pool, std::size_t places) {
    bool all_stay = true;
    std::set<std::pair<std::uint32_t, std::uint32_t>> here;  // (next access, page)
    llvm::DenseMap<std::uint32_t, std::uint32_t> seen;       // accesses of a page so far
    for (std::uint32_t a = 0; a < pool.accesses.size(); ++a) {
      Access& access = pool.accesses[a];
      const std::vector<std::uint32_t>& all = pages_[access.page].accesses;
      const std::uint32_t number = seen[access.page]++;
      access.returns = false;
      if (here.erase({a, access.page}) == 0) {
        access.returns = number > 0;
        all_stay = all_stay && number == 0;
        if (here.size() == places) here.erase(std::prev(here.end()));
      }
      if (number + 1 < all.size()) here.emplace(all[number + 1], access.page);
    }
    return all_stay;
  }

  /// The first of the accesses of the same work, which has one per page that it reads.
  static std::uint32_t first_of_work(const Pool& pool, std::uint32_t access) {
    while (access > 0 && pool.accesses[access - 1].at == pool.accesses[access].at) --access;
    return access;
  }

  /// A page stays if at every access in between fewer than `window` places are taken; shortest
  /// absences are tried first.
  void fill_places(Pool& pool) const {
    // At an access: pages on the device or being fetched; at first as differences.
    std::vector<std::uint32_t> taken(pool.accesses.size() + 1, 0);
    // The previous access, the access that fetches.
    std::vector<std::pair<std::uint32_t, std::uint32_t>> away;
    const auto stays = [&](std::uint32_t first, std::uint32_t end) {
      ++taken[first];
      --taken[end];
    };
    llvm::DenseMap<std::uint32_t, std::uint32_t> before;
    for (std::uint32_t a = 0; a < pool.accesses.size(); ++a) {
      const Access& access = pool.accesses[a];
      const auto [last, fresh] = before.try_emplace(access.page, a);
      const std::uint32_t since = std::exchange(last->second, a);
      if (access.returns) away.emplace_back(since, a);
      // A page is fetched while the previous access runs; further pages of the same work, after
      // that.
      const std::uint32_t work = first_of_work(pool, a);
      const std::uint32_t first = fresh            ? a
                                  : access.returns ? std::max(since + 1, work == a ? a - 1 : work)
                                                   : since + 1;
      stays(first, a + 1);
    }
    std::partial_sum(taken.begin(), taken.end(), taken.begin());
    std::stable_sort(away.begin(), away.end(), [](const auto& x, const auto& y) {
      return x.second - x.first < y.second - y.first;
    });
    for (const auto& [left, returns] : away) {
      const auto begin = taken.begin() + left + 1, end = taken.begin() + returns - 1;
      if (begin < end &&
          std::any_of(begin, end, [&](std::uint32_t count) { return count >= pool.window; }))
        continue;
      for (auto at = begin; at < end; ++at) ++*at;
      pool.accesses[returns].returns = false;
    }
  }

  // ---- nodes

  NodeId add_copy(NodeKind kind, NodeId work, std::span<const Input> inputs, LocId loc) {
    Node node;
    node.kind = kind;
    node.pass = dag_.node(work).pass;
    node.chunk = dag_.node(work).chunk;
    node.instance = dag_.node(work).instance;
    node.devices = dag_.node(work).devices;
    node.subject = dag_.node(work).subject;  // the bucket of an update
    node.stream = stream();
    node.comm = CommId::at(dag_.comms.size());
    node.loc = loc;
    node.num_outputs = !node.subject.bucket().valid() ? static_cast<std::uint32_t>(inputs.size())
                       : returns_to_device(kind)      ? 1
                                                      : 0;
    const NodeId id = dag_.add(node, inputs);
    Comm comm;
    comm.members.push_back(id);
    comm.loc = loc;
    dag_.comms.push_back(std::move(comm));
    return id;
  }

  StreamId stream() {
    if (stream_.valid()) return stream_;
    std::string name = "copy";
    const auto taken = [&] {
      return std::any_of(dag_.streams.begin(), dag_.streams.end(),
                         [&](const Stream& each) { return dag_.context->text(each.name) == name; });
    };
    for (int i = 2; taken(); ++i) name = "copy." + std::to_string(i);
    stream_ = StreamId::at(dag_.streams.size());
    Stream made;
    made.name = dag_.context->symbol(name);
    dag_.streams.push_back(made);
    return stream_;
  }

  const Access& access_of(const Page& page, NodeId node) const {
    const std::vector<Access>& accesses = pools_[page.pool].accesses;
    return accesses[*std::find_if(page.accesses.begin(), page.accesses.end(),
                                  [&](std::uint32_t a) { return accesses[a].node == node; })];
  }

  void make_nodes() {
    std::map<std::uint32_t, std::vector<const Saved*>> leaving;  // by the position of a forward
    // By the position of the first reader.
    std::map<std::uint32_t, std::vector<Returning>> returning;
    for (const Saved& saved : saved_) {
      const Page& page = pages_[saved.page];
      const std::uint32_t first = access_of(page, saved.forward).stay;
      std::uint32_t last = first;
      for (const NodeId reader : saved.readers) {
        const std::uint32_t stay = access_of(page, reader).stay;
        if (stay == last) continue;
        returning[position_[reader.index()]].push_back({&saved, stay});
        last = stay;
      }
      if (last != first) leaving[position_[saved.forward.index()]].push_back(&saved);
    }
    std::map<Port, Port> on_host;
    for (const auto& [at, all] : leaving) {
      std::vector<Input> inputs;
      for (const Saved* saved : all)
        inputs.push_back({saved->port, static_cast<std::uint32_t>(inputs.size()), EdgeClass::data});
      const NodeId id = add_copy(NodeKind::offload, dag_.order[at], inputs,
                                 pools_[pages_[all.front()->page].pool].loc);
      after_[dag_.order[at].value()].push_back(id);
      for (std::uint32_t i = 0; i < all.size(); ++i) on_host[all[i]->port] = {id, i};
    }
    for (const auto& [at, all] : returning) fetch(dag_.order[at], all, on_host);
  }

  /// The fetch before `reader`, the first one of each stay.
  void fetch(NodeId reader, const std::vector<Returning>& all,
             const std::map<Port, Port>& on_host) {
    std::vector<Input> inputs;
    std::uint32_t after = 0;
    for (const auto& [saved, stay] : all) {
      inputs.push_back(
          {on_host.at(saved->port), static_cast<std::uint32_t>(inputs.size()), EdgeClass::data});
      // With a place for fetches: while the work before the reader runs.
      const Pool& pool = pools_[pages_[saved->page].pool];
      const auto begin = static_cast<std::uint32_t>(&access_of(pages_[saved->page], reader) -
                                                    pool.accesses.data());
      const std::uint32_t work = first_of_work(pool, begin);
      const std::uint32_t ahead = std::min(work, pool.window > 1 && work == begin ? 2u : 1u);
      after = std::max({after, position_[pool.accesses[work - ahead].node.index()],
                        position_[saved->forward.index()]});
    }
    const NodeId id =
        add_copy(NodeKind::fetch, reader, inputs, pools_[pages_[all.front().saved->page].pool].loc);
    after_[dag_.order[after].value()].push_back(id);
    for (std::uint32_t i = 0; i < all.size(); ++i) {
      const auto& [saved, stay] = all[i];
      for (const NodeId each : saved->readers) {
        if (access_of(pages_[saved->page], each).stay == stay) redirect(each, saved->port, {id, i});
      }
    }
  }

  void redirect(NodeId reader, Port from, Port to) {
    const Node& node = dag_.node(reader);
    for (std::uint32_t e = node.first_input; e < node.first_input + node.num_inputs; ++e) {
      if (dag_.edges[e].source == from) dag_.edges[e].source = to;
    }
  }

  void insert() {
    std::vector<NodeId> order;
    order.reserve(dag_.nodes.size());
    for (const NodeId id : dag_.order) {
      if (const auto found = before_.find(id.value()); found != before_.end())
        order.insert(order.end(), found->second.begin(), found->second.end());
      order.push_back(id);
      if (const auto found = after_.find(id.value()); found != after_.end())
        order.insert(order.end(), found->second.begin(), found->second.end());
    }
    dag_.order = std::move(order);
  }

  struct Line {
    LocId loc;
    std::string text;
    std::vector<std::size_t> work;
  };

  Dag& dag_;
  const directive::Strategy& strategy_;
  DiagnosticSink& sink_;
  Selection selection_;
  std::vector<Line> lines_;
  std::vector<Pool> pools_;
  std::vector<Page> pages_;
  std::vector<std::uint32_t> page_of_;   // per chunk and instance
  std::vector<std::uint32_t> position_;  // in the global order
  std::vector<Saved> saved_;
  // that names its optimizer state
  std::vector<const directive::Offload*> line_of_bucket_;
  // Copies, by the node before or after which they are in the order.
  llvm::DenseMap<std::uint32_t, std::vector<NodeId>> before_, after_;
  StreamId stream_;
};

}  // namespace

bool offload(Dag& dag, const directive::Strategy& strategy, DiagnosticSink& sink) {
  const auto is_offload = [](const directive::Directive& line) {
    return std::holds_alternative<directive::Offload>(line);
  };
  if (std::none_of(strategy.directives.begin(), strategy.directives.end(), is_offload)) return true;
  // A DAG read from text may have its copies already.
  const bool done = std::any_of(dag.nodes.begin(), dag.nodes.end(),
                                [](const Node& node) { return copies_to_or_from_host(node.kind); });
  return done || Offloading(dag, strategy, sink).run();
}

}  // namespace piper::passes
