#include "passes/order/streams.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <string>
#include <utility>
#include <variant>

#include "ir/dag/segment_text.h"
#include "passes/order/order_reports.h"
#include "passes/selectors/check_lines.h"

namespace piper::passes {

using namespace dag;

namespace {

class Assignment {
 public:
  Assignment(Dag& dag, const directive::Strategy& strategy, const WorkGraph& graph,
             Selection& selection, const RoleTable& roles, Routes routes,
             std::span<const std::uint32_t> position, DiagnosticSink& sink)
      : dag_(dag),
        strategy_(strategy),
        graph_(graph),
        selection_(selection),
        roles_(roles),
        routes_(std::move(routes)),
        position_(position),
        sink_(sink) {}

  std::optional<Communicators> run() {
    const std::size_t errors = sink_.error_count();
    stream_of_.assign(dag_.comms.size(), StreamId());
    dag_.streams.assign(1, Stream{});
    dag_.streams[0].name = dag_.context->symbol(kComputeStream);
    names_.emplace(kComputeStream);
    for (const directive::Directive& directive : strategy_.directives) {
      if (const auto* stream = std::get_if<directive::Stream>(&directive)) named(*stream);
    }
    if (sink_.error_count() > errors) return std::nullopt;

    Communicators made =
        form_communicators(dag_, graph_, std::move(routes_), stream_of_, position_);
    const std::size_t first_default = dag_.streams.size();
    name_defaults(made);
    if (!pool_crowded(made, first_default)) return std::nullopt;
    // Default streams do not split communicators further.
    for (Communicator& communicator : made.list) {
      communicator.stream = stream_of(communicator.comms.front());
      const std::optional<std::uint32_t> window = dag_.streams[communicator.stream.index()].window;
      if (communicator.kind == Communicator::Kind::pair && window) communicator.window = *window;
    }
    check_windows(made);
    if (sink_.error_count() > errors) return std::nullopt;
    return made;
  }

 private:
  void set_stream(CommId comm, StreamId stream) { stream_of_[comm.index()] = stream; }
  StreamId stream_of(CommId comm) const { return stream_of_[comm.index()]; }

  /// One `stream` line. Lines of one name are one stream.
  void named(const directive::Stream& directive) {
    StreamId id;
    for (std::size_t i = 0; i < dag_.streams.size(); ++i) {
      if (dag_.streams[i].name == directive.name) id = StreamId::at(i);
    }
    const std::string_view name = dag_.context->text(directive.name);
    if (!id.valid()) {
      id = StreamId::at(dag_.streams.size());
      dag_.streams.push_back({directive.name, directive.priority == directive::Priority::high,
                              directive.window, directive.loc});
      names_.insert(std::string(name));
    }
    std::vector<NodeId> nodes;
    for (const directive::Selector& target : directive.targets) {
      nodes.clear();
      if (!selection_.nodes(target, sink_, nodes)) continue;
      for (const NodeId node : nodes) {
        const CommId comm = dag_.node(node).comm;
        if (!comm.valid() || stream_of(comm) == id) continue;
        if (stream_of(comm).valid()) {
          report_conflict(directive, target, node);
          break;
        }
        set_stream(comm, id);
      }
    }
  }

  /// `node`, which `target` names, is on another stream already.
  void report_conflict(const directive::Stream& directive, const directive::Selector& target,
                       NodeId node) {
    const Stream& other = dag_.streams[stream_of(dag_.node(node).comm).index()];
    const std::string_view name = dag_.context->text(directive.name),
                           other_name = dag_.context->text(other.name);
    if (target.part == directive::CommClass::reduce ||
        target.part == directive::CommClass::gather) {
      // A bucket is reduced as one, but different lines may name its regions.
      const std::vector<ChunkId> chunks = contributors(dag_.node(node).comm),
                                 here = named_of(chunks, target),
                                 there = named_of(chunks, other, target.part);
      const std::string text = region_text(dag_, here.front());
      const std::string_view part = part_name(target.part);
      if (std::ranges::find_first_of(here, there) == here.end()) {
        auto report = sink_.report(
            Code::stream_conflict, target.loc,
            "`{}.{}` is put on the stream `{}`, but one bucket holds its parameters and those of `{}`, and is on `{}` already",
            text, part, name, region_text(dag_, there.front()), other_name);
        report.related(other.loc, "put on `{}` here", other_name);
        const std::vector<tensor::ParamId>& params =
            dag_.buckets[dag_.node(node).subject.bucket().index()].params;
        if (params.size() > 1) {
          report.hint(
              "a bucket moves as one: name its regions on one stream, or make buckets that hold less with `bucket: SIZE` of the `replicate` line");
        } else {
          report.hint("both use the weight `{}`, which moves as one: name them on one stream",
                      dag_.context->text(dag_.params[params.front().index()].name));
        }
        return;
      }
      sink_
          .report(Code::stream_conflict, target.loc,
                  "`{}.{}` is put on the stream `{}`, but it is on `{}` already", text, part, name,
                  other_name)
          .related(other.loc, "put on `{}` here", other_name)
          .hint("name it in one of the two lines");
      return;
    }
    sink_
        .report(Code::stream_conflict, target.loc,
                "`{}` is put on the stream `{}`, but it is on `{}` already", work_text(dag_, node),
                name, other_name)
        .related(other.loc, "put on `{}` here", other_name)
        .hint("both ends of a message are on one stream; name it in one of the two lines");
  }

  /// The chunks that contribute to a collective of a bucket at any of its members, ascending.
  std::vector<ChunkId> contributors(CommId comm) const {
    std::vector<ChunkId> chunks;
    const auto add = [&](const auto& self, const Node& node) -> void {
      NodeId last;
      for (const Input& input : dag_.inputs_of(node)) {
        // All parameters of one bucket.
        if (std::exchange(last, input.source.node) == input.source.node) continue;
        const Node& source = dag_.node(input.source.node);
        if (runs_body(source.kind)) chunks.push_back(source.chunk);
        if (source.subject.bucket().valid()) self(self, source);
      }
    };
    for (const NodeId member : dag_.comms[comm.index()].members) add(add, dag_.node(member));
    std::ranges::sort(chunks);
    chunks.erase(std::ranges::unique(chunks).begin(), chunks.end());
    return chunks;
  }

  /// The elements of `chunks` that a target names.
  std::vector<ChunkId> named_of(std::span<const ChunkId> chunks,
                                const directive::Selector& target) {
    std::vector<ChunkId> named;
    if (const auto found = selection_.find(target))
      std::ranges::set_intersection(chunks, found->chunks, std::back_inserter(named));
    return named;
  }

  /// The elements of `chunks` whose communication `part` the lines of a stream name.
  std::vector<ChunkId> named_of(std::span<const ChunkId> chunks, const Stream& stream,
                                directive::CommClass part) {
    std::vector<ChunkId> named;
    for (const directive::Directive& directive : strategy_.directives) {
      const auto* line = std::get_if<directive::Stream>(&directive);
      for (std::size_t i = 0;
           line != nullptr && line->name == stream.name && i < line->targets.size(); ++i) {
        if (line->targets[i].part != part) continue;
        const std::vector<ChunkId> more = named_of(chunks, line->targets[i]);
        named.insert(named.end(), more.begin(), more.end());
      }
    }
    return named;
  }

  StreamId add_stream(std::string name) {
    std::string unique = name;
    for (int i = 2; !names_.insert(unique).second; ++i) unique = name + "." + std::to_string(i);
    Stream stream;
    stream.name = dag_.context->symbol(unique);
    dag_.streams.push_back(stream);
    return StreamId::at(dag_.streams.size() - 1);
  }

  std::string place(DeviceSetId set) const {
    return place_name(dag_.device_sets[set], dag_.mesh, dag_.context->symbols);
  }

  std::string default_name(const Communicator& communicator, bool cut) const {
    const CommId first = communicator.comms.front();
    const Node& node = dag_.node(dag_.comms[first.index()].members.front());
    if (communicator.kind == Communicator::Kind::group) {
      const char* purpose = gathers_lists(node.kind) || gathers_shards(node.kind) ? "gather."
                            : node.subject.bucket().valid()                       ? "reduce."
                                                                                  : "sum.";
      return purpose + place(communicator.members.front());
    }
    std::string name = !is_backward(node.pass) ? "act." : "grad.";
    name += place(communicator.members[0]) + ".to." + place(communicator.members[1]);
    if (!cut) return name;
    name += '.';
    name += dag_.context->text(dag_.chunks[node.chunk.index()].name);
    for (std::size_t d = 0; d + 1 < dag_.dims.size(); ++d) {
      if (node.instance.at[d] == Instance::kNone) continue;
      name += '.';
      name += dag_.context->text(dag_.dims[d].name);
      name += std::to_string(node.instance.at[d]);
    }
    return name;
  }

  /// Whether two neighbours of the list have the same direction and sets: then one pair was split.
  static bool same_route(const Dag& dag, const Communicator& a, const Communicator& b) {
    const auto direction = [&](const Communicator& c) {
      return is_backward(dag.node(dag.comms[c.comms.front().index()].members.front()).pass);
    };
    return a.kind == Communicator::Kind::pair && b.kind == a.kind && a.members == b.members &&
           direction(a) == direction(b) && a.stream == b.stream;
  }

  void name_defaults(const Communicators& made) {
    for (std::size_t i = 0; i < made.list.size(); ++i) {
      const Communicator& communicator = made.list[i];
      if (communicator.stream.valid()) continue;
      const bool cut =
          (i > 0 && same_route(dag_, made.list[i - 1], communicator)) ||
          (i + 1 < made.list.size() && same_route(dag_, communicator, made.list[i + 1]));
      const StreamId stream = add_stream(default_name(communicator, cut));
      for (const CommId comm : communicator.comms) set_stream(comm, stream);
    }
  }

  std::vector<std::size_t> streams_per_role(const Communicators& made) const {
    std::vector<std::set<StreamId>> seen(roles_.size());
    for (const Communicator& communicator : made.list) {
      for (const DeviceSetId set : communicator.members) {
        for (const std::uint32_t role : roles_.roles_of(set))
          seen[role].insert(stream_of(communicator.comms.front()));
      }
    }
    std::vector<std::size_t> count;
    // The stream of work, and that of copies to the host.
    const bool copies =
        !dag_.forward_only &&
        std::any_of(strategy_.directives.begin(), strategy_.directives.end(), [](const auto& line) {
          return std::holds_alternative<directive::Offload>(line);
        });
    for (const auto& streams : seen) count.push_back(streams.size() + (copies ? 2 : 1));
    return count;
  }

  /// Ranks with more streams than the runtime has get their default ones pooled: 32 for messages, 8
  /// for collectives. Messages of one route stay together, so that they are numbered as before.
  bool pool_crowded(const Communicators& made, std::size_t first_default) {
    std::vector<std::size_t> count = streams_per_role(made);
    if (std::all_of(count.begin(), count.end(), [](std::size_t n) { return n <= kMaxStreams; }))
      return true;
    const auto crowded = [&](const Communicator& communicator) {
      for (const DeviceSetId set : communicator.members) {
        for (const std::uint32_t role : roles_.roles_of(set)) {
          if (count[role] > kMaxStreams) return true;
        }
      }
      return false;
    };
    std::vector<StreamId> pairs, groups;
    std::size_t routes = 0, collectives = 0;
    const auto pooled = [&](std::vector<StreamId>& pool, std::size_t size, std::size_t index,
                            const char* name) {
      if (pool.size() < size) pool.push_back(add_stream(name + std::to_string(pool.size())));
      return pool[index % size];
    };
    StreamId last;
    for (std::size_t i = 0; i < made.list.size(); ++i) {
      const Communicator& communicator = made.list[i];
      if (stream_of(communicator.comms.front()).index() < first_default || !crowded(communicator))
        continue;
      if (communicator.kind == Communicator::Kind::group) {
        last = pooled(groups, 8, collectives++, "group.");
      } else if (i == 0 || !same_route(dag_, made.list[i - 1], communicator)) {
        last = pooled(pairs, 32, routes++, "p2p.");
      }
      for (const CommId comm : communicator.comms) set_stream(comm, last);
    }
    drop_unused_streams(first_default);
    count = streams_per_role(made);
    for (std::size_t role = 0; role < count.size(); ++role) {
      if (count[role] <= kMaxStreams) continue;
      sink_
          .report(Code::too_many_streams, dag_.streams[1].loc,
                  "rank `{}` has {} streams, but there are at most {}",
                  dag_.context->text(roles_.name(role)), count[role], kMaxStreams)
          .hint("put several targets on one `stream`");
      return false;
    }
    return true;
  }

  void drop_unused_streams(std::size_t first_default) {
    std::vector<bool> used(dag_.streams.size(), false);
    for (std::size_t i = 0; i < first_default; ++i) used[i] = true;
    for (const StreamId stream : stream_of_) used[stream.index()] = true;
    std::vector<StreamId> moved(dag_.streams.size());
    std::size_t kept = 0;
    for (std::size_t i = 0; i < used.size(); ++i) {
      if (!used[i]) continue;
      moved[i] = StreamId::at(kept);
      dag_.streams[kept++] = dag_.streams[i];
    }
    dag_.streams.resize(kept);
    for (StreamId& stream : stream_of_) stream = moved[stream.index()];
  }

  /// The location of the window of a stream.
  LocId window_place(const Stream& stream) const {
    for (const directive::Directive& directive : strategy_.directives) {
      const auto* line = std::get_if<directive::Stream>(&directive);
      if (line != nullptr && line->name == stream.name && line->window_loc.valid())
        return line->window_loc;
    }
    return stream.loc;
  }

  void check_windows(const Communicators& made) {
    for (std::size_t i = 0; i < made.list.size(); ++i) {
      const Communicator& communicator = made.list[i];
      if (communicator.kind != Communicator::Kind::pair ||
          communicator.window >= communicator.min_window)
        continue;
      const Communicators::Swap swap = made.widest[i];
      const CommId unread = communicator.comms[swap.unread];
      const CommId wanted = communicator.comms[swap.wanted];
      const Stream& stream = dag_.streams[communicator.stream.index()];
      const NodeId reader = made.first_reader[wanted.index()];
      const auto sent = [&](CommId comm) {
        return work_text(dag_, dag_.comms[comm.index()].members.front());
      };
      sink_
          .report(
              Code::window_below_minimum, window_place(stream),
              "the stream `{}` has a window of {}, but `{}` reads `{}` while `{}`, {} before it, is still unread",
              dag_.context->text(stream.name), communicator.window, work_text(dag_, reader),
              sent(wanted), sent(unread),
              swap.wanted - swap.unread == 1
                  ? std::string("sent directly")
                  : "sent " + std::to_string(swap.wanted - swap.unread) + " messages")
          .related(dag_.node(reader).loc, "`{}` comes first here", work_text(dag_, reader))
          .hint("the least window for this order is {}", communicator.min_window);
    }
  }

  Dag& dag_;
  const directive::Strategy& strategy_;
  const WorkGraph& graph_;
  Selection& selection_;
  const RoleTable& roles_;
  Routes routes_;  // until communicators are formed
  std::span<const std::uint32_t> position_;
  DiagnosticSink& sink_;
  std::set<std::string, std::less<>> names_;
  std::vector<StreamId> stream_of_;  // per communication; invalid until it has one
};

}  // namespace

std::optional<Communicators> assign_streams(Dag& dag, const directive::Strategy& strategy,
                                            const WorkGraph& graph, Selection& selection,
                                            const RoleTable& roles, Routes routes,
                                            std::span<const std::uint32_t> position,
                                            DiagnosticSink& sink) {
  return Assignment(dag, strategy, graph, selection, roles, std::move(routes), position, sink)
      .run();
}

}  // namespace piper::passes
