#include "frontend/tools/profile.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "backend/device_program/rank_tables.h"
#include "frontend/pictures/picture.h"
#include "frontend/pictures/text_table.h"
#include "passes/order/list_schedule.h"
#include "passes/simulate/action_seconds.h"

namespace piper::tools {
namespace {

using dag::NodeId;

/// From begin to end, in nanoseconds.
using Span = std::pair<std::uint64_t, std::uint64_t>;

double seconds(std::uint64_t ns) { return static_cast<double>(ns) * 1e-9; }

double median(std::vector<double>& values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// How much of the spans lies outside of those of `taken`; both ascend, and those of `taken` do not
/// overlap.
std::uint64_t length_outside(std::vector<Span> spans, const std::vector<Span>& taken) {
  std::sort(spans.begin(), spans.end());
  std::uint64_t length = 0, at = 0;
  auto next = taken.begin();
  for (const auto& [begin, end] : spans) {
    at = std::max(at, begin);
    while (at < end) {
      while (next != taken.end() && next->second <= at) ++next;
      const std::uint64_t until =
          next == taken.end() ? end : std::min(end, std::max(next->first, at));
      length += until - at;
      at = next != taken.end() && next->first <= until ? std::max(until, next->second) : until;
    }
  }
  return length;
}

class Profiler {
 public:
  Profiler(const dag::Dag& dag, const backend::ProgramSet& programs,
           std::span<const runtime::RecordedRank> recorded)
      : dag_(dag), programs_(programs), recorded_(recorded) {
    for (std::size_t role = 0; role < dag.plan->roles.size(); ++role)
      nodes_.push_back(nodes_of(role));
  }

  Profile run() {
    meet();
    for (const runtime::RecordedRank& rank : recorded_) add_rank(rank);
    add_bodies();
    add_rates();
    return std::move(profile_);
  }

 private:
  /// The nodes of a role's streams, in the numbers of its program.
  std::vector<std::vector<NodeId>> nodes_of(std::size_t role) const {
    const backend::DeviceProgram& program = programs_.roles[role];
    std::vector<std::vector<NodeId>> nodes(program.streams.size());
    for (const dag::Action& action : dag_.plan->roles[role].actions) {
      const std::string_view name = dag_.context->text(dag_.streams[action.stream.index()].name);
      const auto stream =
          std::find_if(program.streams.begin(), program.streams.end(),
                       [&](const backend::ProgramStream& each) { return each.name == name; });
      nodes[static_cast<std::size_t>(stream - program.streams.begin())].push_back(action.node);
    }
    return nodes;
  }

  std::size_t role_of(const runtime::RecordedRank& rank) const {
    return backend::role_of(programs_, coordinates_of(dag_.mesh, rank.rank));
  }

  /// A communication and the coordinates that its members have in common.
  using MatchedComm = std::pair<std::uint32_t, std::uint64_t>;
  MatchedComm matched_comm_of(std::uint32_t rank, dag::CommId id) const {
    const dag::Comm& comm = dag_.comms[id.index()];
    const std::vector<std::uint32_t> coordinates = coordinates_of(dag_.mesh, rank);
    std::uint64_t number = 0;
    for (std::size_t axis = 0; axis < coordinates.size(); ++axis) {
      const bool whole = std::all_of(comm.members.begin(), comm.members.end(), [&](NodeId member) {
        return dag_.device_sets[dag_.node(member).devices].at[axis] == DeviceSet::kWhole;
      });
      if (whole && (comm.axes >> axis & 1) == 0)
        number = number * dag_.mesh.axes[axis].size + coordinates[axis];
    }
    return {id.value(), number};
  }

  template <typename Visit>
  void for_each_action(const runtime::RecordedRank& rank, const Visit& visit) const {
    const std::vector<std::vector<NodeId>>& nodes = nodes_[role_of(rank)];
    for (const runtime::RecordedAction& action : rank.actions) {
      if (action.position < nodes[action.stream].size())
        visit(action, dag_.node(nodes[action.stream][action.position]));
    }
  }

  /// When the last member of each communication came, and when it was over; the time of the step.
  void meet() {
    first_ = std::numeric_limits<std::uint64_t>::max();
    for (const runtime::RecordedRank& rank : recorded_) {
      for_each_action(rank, [&](const runtime::RecordedAction& action, const dag::Node& node) {
        first_ = std::min(first_, action.begin_ns);
        last_ = std::max(last_, action.end_ns);
        if (!node.comm.valid()) return;
        Span& span = matched_[matched_comm_of(rank.rank, node.comm)];
        span = {std::max(span.first, action.begin_ns), std::max(span.second, action.end_ns)};
      });
    }
  }

  void add_rank(const runtime::RecordedRank& recorded) {
    Profile::Rank& rank = profile_.ranks.emplace_back();
    rank.name = "rank " + std::to_string(recorded.rank) + " (" +
                programs_.roles[role_of(recorded)].role + ")";
    rank.step = last_ > first_ ? seconds(last_ - first_) : 0;
    std::vector<Span> busy, moving;
    std::uint64_t work = 0, products = 0, attention = 0;
    for_each_action(recorded, [&](const runtime::RecordedAction& action, const dag::Node& node) {
      if (node.comm.valid()) {
        const Span met = matched_[matched_comm_of(recorded.rank, node.comm)];
        const std::uint64_t begin = std::max(action.begin_ns, met.first);
        if (begin < action.end_ns) moving.emplace_back(begin, action.end_ns);
        return;
      }
      busy.emplace_back(action.begin_ns, action.end_ns);
      work += action.end_ns - action.begin_ns;
      products += action.product_ns;
      attention += action.attention_ns;
      if (runs_body(node.kind)) {
        bodies_[node.body.index()].push_back(seconds(action.least_ns));
        library_ += seconds(action.product_ns + action.attention_ns);
        in_bodies_ += seconds(action.end_ns - action.begin_ns);
        const tensor::Cost& cost = costs_[node.body.index()];
        flops_ += cost.flops;
        bytes_ += cost.bytes;
      } else {
        actions_[std::string(
                     dag_.name(NodeId::at(static_cast<std::size_t>(&node - dag_.nodes.data()))))]
            .push_back(seconds(action.least_ns));
      }
    });
    rank.products = seconds(products);
    rank.attention = seconds(attention);
    rank.kernels = std::max(0.0, seconds(work) - rank.products - rank.attention);
    rank.communication = seconds(length_outside(std::move(moving), busy));
    rank.idle = std::max(0.0, rank.step - seconds(work) - rank.communication);
  }

  void add_bodies() {
    for (std::size_t body = 0; body < bodies_.size(); ++body) {
      if (!bodies_[body].empty())
        profile_.costs.bodies.emplace_back(std::string(dag_.context->text(dag_.bodies[body].name)),
                                           median(bodies_[body]));
    }
    for (auto& [name, times] : actions_) profile_.costs.actions.emplace_back(name, median(times));
  }

  /// Rates for programs without measured times: the op table's flops take the time of library
  /// calls, and its bytes that of the rest.
  void add_rates() {
    passes::MachineRates& rates = profile_.costs.rates;
    if (library_ > 0 && flops_ > 0) rates.flops = std::clamp(flops_ / library_, 1.0, 1e21);
    const double rest = in_bodies_ - flops_ / rates.flops;
    if (rest > 0 && bytes_ > 0) rates.bytes = std::clamp(bytes_ / rest, 1.0, 1e21);
    // Messages: seconds = latency * steps + bytes / bandwidth, by the medians of those that are
    // equal.
    passes::ActionCosts unit{{.latency = 1, .bandwidth = 1}, {}, {}, {}};
    const passes::ActionSeconds table(dag_, unit);
    std::map<std::pair<double, double>, std::vector<double>> equal;
    for (const auto& [matched_comm, span] : matched_) {
      const passes::TransferTime transfer = table.transfer(dag_.comms[matched_comm.first]);
      if (transfer.latency > 0 && span.second > span.first)
        equal[{transfer.latency, transfer.bytes}].push_back(seconds(span.second - span.first));
    }
    double kk = 0, kv = 0, vv = 0, kt = 0, vt = 0;
    for (auto& [sizes, times] : equal) {
      const auto [k, v] = sizes;
      const double t = median(times);
      kk += k * k, kv += k * v, vv += v * v, kt += k * t, vt += v * t;
    }
    if (kk == 0) return;
    const double determinant = kk * vv - kv * kv;
    const bool apart = determinant > 1e-9 * kk * vv;
    double latency = apart ? (kt * vv - vt * kv) / determinant : 0,
           per_byte = apart    ? (kk * vt - kv * kt) / determinant
                      : vv > 0 ? vt / vv
                               : 0;
    if (latency < 0 || (!apart && per_byte <= 0)) latency = per_byte > 0 ? 0 : kt / kk;
    if (latency == 0 && vv > 0) per_byte = vt / vv;
    if (per_byte <= 0) latency = kt / kk;
    rates.latency = latency;
    rates.bandwidth = std::clamp(per_byte > 0 ? 1 / per_byte : 1e21, 1.0, 1e21);
  }

  const dag::Dag& dag_;
  const backend::ProgramSet& programs_;
  std::span<const runtime::RecordedRank> recorded_;
  std::vector<std::vector<std::vector<NodeId>>> nodes_;  // by role, stream, position
  const std::vector<tensor::Cost> costs_ = passes::body_work(dag_);
  std::map<MatchedComm, Span> matched_;
  std::uint64_t first_ = 0, last_ = 0;
  std::vector<std::vector<double>> bodies_{dag_.bodies.size()};
  std::map<std::string, std::vector<double>> actions_;
  double library_ = 0, in_bodies_ = 0, flops_ = 0, bytes_ = 0;
  Profile profile_;
};

}  // namespace

Profile profile_of(const dag::Dag& dag, const backend::ProgramSet& programs,
                   std::span<const runtime::RecordedRank> recorded) {
  return Profiler(dag, programs, recorded).run();
}

std::string profile_text(const Profile& profile) {
  std::vector<std::vector<std::string>> rows = {
      {"last step", "", "products", "attention", "kernels", "communication", "idle"}};
  for (const Profile::Rank& rank : profile.ranks) {
    std::vector<std::string> row = {rank.name};
    for (const double time :
         {rank.step, rank.products, rank.attention, rank.kernels, rank.communication, rank.idle})
      row.push_back(pictures::time_text(time, passes::Timeline::Unit::seconds));
    rows.push_back(std::move(row));
  }
  return pictures::text_table(rows, {true});
}

llvm::json::Array profile_json(const Profile& profile) {
  llvm::json::Array ranks;
  for (const Profile::Rank& rank : profile.ranks) {
    ranks.push_back(llvm::json::Object{{"rank", rank.name},
                                       {"seconds", rank.step},
                                       {"products", rank.products},
                                       {"attention", rank.attention},
                                       {"kernels", rank.kernels},
                                       {"communication", rank.communication},
                                       {"idle", rank.idle}});
  }
  return ranks;
}

}  // namespace piper::tools
