// Plans on machines: closed forms with messages that take time and with a slow device, links that
// several devices share, work that is slower beside communication, classes of devices that differ,
// and refusals.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <optional>

#include "frontend/service/machine.h"
#include "ir/machine.h"
#include "passes/simulate/actions.h"
#include "passes/simulate/operations.h"
#include "tests/service/compiled.h"

namespace piper::service {
namespace {

using passes::Timeline;

constexpr double kExact = 1e-9;

/// When the last forward or backward ends: the norm and the update come behind.
double work_end(const Timeline& timeline) {
  double end = 0;
  for (std::size_t entry = 0; entry < timeline.size(); ++entry) {
    if (dag::runs_body(timeline.operation_of(static_cast<std::uint32_t>(entry)).kind))
      end = std::max(end, timeline.finish[entry]);
  }
  return end;
}

// ---- closed forms

/// For orders alone, without reused buffers: all data edges take c. A plan waits at most once per
/// message for a buffer that a message still reads.
void expect_with_messages(const std::string& schedule, int p, int m, double f, double b, double c,
                          double expected) {
  Planned planned(schedule, sizes(p, m));
  DiagnosticSink& sink = planned.sink();
  const auto orders = passes::simulate_operations(planned.dag(), {.f = f, .b = b, .p2p = c}, sink);
  ASSERT_TRUE(orders);
  EXPECT_NEAR(orders->makespan, expected, kExact * m)
      << schedule << " " << p << " " << m << " " << c;
  passes::ActionCosts costs = planned.costs(f, b);
  costs.machine = planned.machine();
  costs.machine->axes[0].link = MachineLink{.latency = c, .bandwidth = 1e30};
  const double end = work_end(passes::simulate_actions(planned.dag(), costs));
  EXPECT_GE(end, expected - kExact * m) << schedule << " " << p << " " << m << " " << c;
  EXPECT_LE(end, expected + 2 * (m - 1) * c + kExact * m)
      << schedule << " " << p << " " << m << " " << c;
}

TEST(Machine, GPipeWithMessages) {
  for (int p = 2; p <= 6; ++p) {
    for (const int m : {1, 2, 5, 16}) {
      for (const auto& [f, b, c] : {std::tuple(3.0, 5.0, 0.0), {3.0, 5.0, 1.0}, {1.0, 1.0, 1.0}}) {
        expect_with_messages("gpipe", p, m, f, b, c, (m + p - 1) * (f + b) + 2 * (p - 1) * c);
      }
    }
  }
}

/// Both ends wait for a message of time c: once per microbatch, except for one in p that arrives
/// while others run.
TEST(Machine, OneFOneBWithMessages) {
  for (int p = 2; p <= 6; ++p) {
    for (const int m : {1, 2, 3, 8, 13}) {
      for (const double c : {0.0, 0.5, 1.0}) {
        expect_with_messages("one_f_one_b", p, m, 3, 5, c,
                             (m + p - 1) * 8 + 2 * c * (p - 1 + m - 1 - (m + p - 2) / p));
      }
    }
  }
}

/// A pipeline runs at the pace of its slowest stage; the others only fill and drain it. In 1F1B the
/// stages after it drain while it warms up.
TEST(Machine, ASlowDeviceInAnEvenPipeline) {
  for (const char* name : {"gpipe", "one_f_one_b"}) {
    for (const int p : {2, 4}) {
      for (int slow = 0; slow < p; ++slow) {
        for (const double speed : {0.5, 0.25}) {
          const int m = 12, behind = p - 1 - slow;
          const Planned planned(name, sizes(p, m));
          passes::ActionCosts costs = planned.costs(1, 2);
          costs.machine = planned.machine();
          costs.machine->devices = {device_at(*costs.machine, 0, -1),
                                    device_at(*costs.machine, 0, slow)};
          costs.machine->devices[0].speed = 1;
          costs.machine->devices[1].speed = speed;
          const Timeline timeline = passes::simulate_actions(planned.dag(), costs);
          const double drained =
              std::string(name) == "gpipe" ? behind * 3.0 : behind * std::max(0.0, 3.0 - 1 / speed);
          EXPECT_NEAR(work_end(timeline), slow * 3.0 + m * 3.0 / speed + drained, kExact * m)
              << name << " " << p << " " << slow;
          EXPECT_NEAR(timeline.ranks[static_cast<std::size_t>(slow)].work, m * 3.0 / speed,
                      kExact * m);
        }
      }
    }
  }
}

// ---- replicas

constexpr const char* kReplicated = R"(use std.models.mlp
use std.schedules.gpipe
mesh grid(pp: 2, dp: 4)
train net = mlp(layers: 2, features: 64, hidden: 64, classes: 4) on grid {
    data:  synthetic(batch: 16, classes: 4)
    optim: sgd(lr: 0.1)
    steps: 1
    gpipe(pp, 2)
    replicate model over dp
}
)";

/// The first device has an additional task.
constexpr const char* kNested = R"(mesh grid(d: 4)
model own(x: tensor[batch, features], label: i64[batch]) -> tensor[batch] {
    weight w[features, classes: 4] = normal(0.1)
    return cross_entropy(x @ w, label)
}
model common(x: tensor[batch, features], label: i64[batch]) -> tensor[batch] {
    weight w[features, classes: 4] = normal(0.1)
    return cross_entropy(x @ w, label)
}
model tasks(features: int) {
    input a: tensor[batch, features], b: tensor[batch, features], label: i64[batch]
    loss own(a, label)
    loss common(b, label)
}
train net = tasks(features: 8) on grid {
    data:  synthetic(batch: 16, classes: 4)
    optim: sgd(lr: 0.1)
    steps: 1
    place own    on d[0]
    place common on d
    replicate common over d
    freeze own
}
)";

std::string ring_of(const std::string& axes, const std::string& strategy,
                    const std::string& optimizer = "sgd(lr: 0.1)") {
  return "use std.models.mlp\nuse std.schedules.gpipe\nmesh grid(" + axes +
         ")\ntrain net = mlp(layers: 2, features: 64, hidden: 64, classes: 4) on grid {\n" +
         "    data:  synthetic(batch: 48, classes: 4)\n    optim: " + optimizer +
         "\n    steps: 1\n    " + strategy + "\n}\n";
}

/// That actions of a kind take on the first rank, together.
double seconds_of(const Timeline& timeline, dag::NodeKind kind, std::string_view named = "") {
  double seconds = 0;
  for (const Timeline::Lane& lane : timeline.lanes_of(timeline.ranks[0])) {
    for (std::uint32_t entry = lane.first; entry < lane.end; ++entry) {
      const Timeline::Operation& operation = timeline.operation_of(entry);
      if (operation.kind == kind && timeline.label(operation).find(named) != std::string::npos)
        seconds += timeline.finish[entry] - timeline.start[entry];
    }
  }
  return seconds;
}

TEST(Machine, ReplicasThatDoNotDifferAreSimulatedOnce) {
  const Planned planned("net.pipe", {}, kReplicated);
  passes::ActionCosts costs = planned.costs(1, 2);
  const Timeline plain = passes::simulate_actions(planned.dag(), costs);
  costs.machine = planned.machine();
  costs.machine->axes[1].link = MachineLink{.latency = 0, .bandwidth = 1e30, .shared = 4};
  const Timeline same = passes::simulate_actions(planned.dag(), costs);
  ASSERT_EQ(same.ranks.size(), 2u);
  EXPECT_EQ(same.ranks[0].name, "pp0");
  EXPECT_EQ(same.ranks[0].replicas, 4u);
  EXPECT_NEAR(same.makespan, plain.makespan, 1e-6);
  // One of four is slow: it and the three others of each stage.
  costs.machine->devices = {device_at(*costs.machine, 1, 2)};
  costs.machine->devices[0].speed = 0.5;
  const Timeline slow = passes::simulate_actions(planned.dag(), costs);
  ASSERT_EQ(slow.ranks.size(), 4u);
  const std::vector<std::pair<std::string, std::uint64_t>> expected = {
      {"pp0.dp0", 3}, {"pp0.dp2", 1}, {"pp1.dp0", 3}, {"pp1.dp2", 1}};
  for (std::size_t i = 0; i < 4; ++i)
    EXPECT_EQ(std::pair(slow.ranks[i].name, slow.ranks[i].replicas), expected[i]);
  EXPECT_NEAR(slow.ranks[1].work, 2 * slow.ranks[0].work, kExact);
  // The gradients of all are there when the slowest has its own.
  EXPECT_NEAR(slow.makespan, 2 * plain.makespan, 1e-6);
  for (const Timeline::Rank& rank : slow.ranks) EXPECT_LE(rank.peak_bytes, rank.planned_bytes);
}

/// A ring of four over separate links, and over one shared link: there the bytes take four times as
/// long.
TEST(Machine, SharedLinksAreDividedEvenly) {
  const Planned planned("net.pipe", {}, kReplicated);
  passes::ActionCosts costs = planned.costs(0, 0);
  double makespan[4] = {};
  const std::uint32_t shared[4] = {1, 2, 4, 8};
  for (std::size_t i = 0; i < 4; ++i) {
    costs.machine = planned.machine();
    costs.machine->axes[1].link = MachineLink{.latency = 0, .bandwidth = 1e6, .shared = shared[i]};
    makespan[i] = passes::simulate_actions(planned.dag(), costs).makespan;
  }
  EXPECT_GT(makespan[0], 0);
  EXPECT_NEAR(makespan[1], 2 * makespan[0], 1e-9);
  EXPECT_NEAR(makespan[2], 4 * makespan[0], 1e-9);
  EXPECT_GT(makespan[3], makespan[2]);  // the two stages are in each other's way
}

/// Copies to the memory of the host and back run at the bandwidth of the device's `host`, whatever
/// the links of the axes.
TEST(Machine, CopiesToTheHostHaveABandwidthOfTheirOwn) {
  const Planned planned("net.pipe", {},
                        std::string(kReplicated)
                            .insert(std::string(kReplicated).rfind('}'),
                                    "    offload model mb[0..2] with window: 1\n"));
  passes::ActionCosts costs = planned.costs(1, 2);
  costs.rates.latency = 0;
  costs.rates.bandwidth = 5e8;
  const auto copying = [&](std::optional<double> host) {
    costs.machine = planned.machine();
    costs.machine->axes[0].link = MachineLink{.latency = 1, .bandwidth = 7};
    costs.machine->devices = {device_at(*costs.machine, 0, 1)};
    costs.machine->devices[0].host = host;
    const Timeline timeline = passes::simulate_actions(planned.dag(), costs);
    // On the first stage, and on the second, whose device has that bandwidth.
    std::pair<double, double> seconds;
    for (const Timeline::Lane& lane : timeline.lanes) {
      for (std::uint32_t entry = lane.first; entry < lane.end; ++entry) {
        if (!dag::copies_to_or_from_host(timeline.operation_of(entry).kind)) continue;
        (timeline.ranks[lane.rank].name.starts_with("pp0") ? seconds.first : seconds.second) +=
            timeline.finish[entry] - timeline.start[entry];
      }
    }
    return seconds;
  };
  const auto [first, second] = copying(1e9);
  EXPECT_GT(first, 0);
  EXPECT_GT(second, 0);
  EXPECT_NEAR(copying(2e9).second, second / 2, 1e-12);
  EXPECT_NEAR(copying(2e9).first, first, 1e-12);
  EXPECT_NEAR(copying({}).second, second * 1e9 / costs.rates.bandwidth, 1e-12);
}

/// Three replicas of a slow one, or of one that has more to do, are not alike where a link is
/// shared by two: one of them shares it with that one.
TEST(Machine, NeighboursOnASharedLinkAreOneClassWhereAllAreAlike) {
  using Classes = std::vector<std::pair<std::string, std::uint64_t>>;
  const auto classes = [](const Planned& planned, const passes::ActionCosts& costs) {
    Classes found;
    for (const Timeline::Rank& rank : passes::simulate_actions(planned.dag(), costs).ranks)
      found.emplace_back(rank.name, rank.replicas);
    return found;
  };
  const Planned replicated("net.pipe", {}, kReplicated);
  passes::ActionCosts costs = replicated.costs(1, 2);
  costs.machine = replicated.machine();
  costs.machine->devices = {device_at(*costs.machine, 1, 2)};
  costs.machine->devices[0].speed = 0.5;
  costs.machine->axes[1].link = MachineLink{.latency = 0, .bandwidth = 1e6, .shared = 2};
  EXPECT_EQ(classes(replicated, costs), (Classes{{"pp0.dp0", 2},
                                                 {"pp0.dp2", 1},
                                                 {"pp0.dp3", 1},
                                                 {"pp1.dp0", 2},
                                                 {"pp1.dp2", 1},
                                                 {"pp1.dp3", 1}}));

  const Planned nested("nested.pipe", {}, kNested);
  costs = nested.costs(1, 2);
  EXPECT_EQ(classes(nested, costs), (Classes{{"d0", 1}, {"grid", 3}}));
  costs.machine = nested.machine();
  costs.machine->axes[0].link = MachineLink{.latency = 0, .bandwidth = 1e6, .shared = 2};
  EXPECT_EQ(classes(nested, costs), (Classes{{"d0", 1}, {"d1", 1}, {"d2", 2}}));
}

/// If devices differ on two axes, each sends when its own work is done, whatever its neighbours do.
TEST(Machine, MessagesOfUnequalReplicasAreApart) {
  const Planned planned(
      "net.pipe", {}, ring_of("pp: 2, x: 2, y: 2", "gpipe(pp, 2)\n    replicate model over x, y"));
  passes::ActionCosts costs = planned.costs(1, 2);
  costs.machine = planned.machine();
  costs.machine->devices = {device_at(*costs.machine, 1, 1), device_at(*costs.machine, 2, 1)};
  costs.machine->devices[0].speed = 0.5;
  costs.machine->devices[1].speed = 0.25;
  const Timeline timeline = passes::simulate_actions(planned.dag(), costs);
  ASSERT_EQ(timeline.ranks.size(), 8u);
  for (const Timeline::Rank& rank : timeline.ranks) {
    const Timeline::Lane& lane = timeline.lanes_of(rank)[0];
    const auto first =
        std::find_if(timeline.operation.begin() + lane.first, timeline.operation.begin() + lane.end,
                     [&](std::uint32_t operation) {
                       return dag::runs_body(timeline.operations[operation].kind);
                     });
    // of a forward
    const double seconds = rank.name.ends_with("y1") ? 4 : rank.name.ends_with("x1.y0") ? 2 : 1;
    EXPECT_NEAR(timeline.start[static_cast<std::size_t>(first - timeline.operation.begin())],
                rank.name.starts_with("pp0") ? 0 : seconds, 1e-6)
        << rank.name;
  }
}

/// All devices of two axes are one ring, each of whose steps takes as long as over its slower link.
TEST(Machine, ARingOverTwoAxesIsAsSlowAsTheSlowerLink) {
  const Planned planned("net.pipe", {}, ring_of("a: 2, b: 3", "replicate model over a, b"));
  for (const auto& [a, b] : {std::pair(3.0, 1.0), {1.0, 3.0}, {2.0, 2.0}}) {
    for (const auto& [fast, slow] : {std::pair(1e30, 1e30), {2e6, 1e6}, {1e6, 2e6}}) {
      passes::ActionCosts costs = planned.costs(0, 0);
      costs.machine = planned.machine();
      costs.machine->axes[0].link = MachineLink{.latency = a, .bandwidth = fast};
      costs.machine->axes[1].link = MachineLink{.latency = b, .bandwidth = slow};
      const Timeline timeline = passes::simulate_actions(planned.dag(), costs);
      double parameters = 0;
      for (const dag::Buffer& buffer : planned.dag().plan->roles[0].buffers)
        parameters +=
            buffer.cls == dag::BufferClass::parameters ? static_cast<double>(buffer.bytes) : 0;
      const double sent = 2 * 5 * parameters / 6 / std::min(fast, slow);
      EXPECT_NEAR(seconds_of(timeline, dag::NodeKind::all_reduce, "model"),
                  2 * 5 * std::max(a, b) + sent, 0.02 * sent + 1e-6)
          << a << " " << b;
    }
  }
}

/// If k replicas each keep a shard of the state, an update works on one shard, and a copy to the
/// host or back moves one shard.
TEST(Machine, ShardedStateTakesItsPartOfTheTime) {
  for (const int k : {2, 4}) {
    const auto seconds = [&](int zero) {
      const Planned planned("net.pipe", {},
                            ring_of("pp: 1, dp: " + std::to_string(k),
                                    "replicate model over dp with zero: " + std::to_string(zero) +
                                        "\n    offload model with what: optimizer",
                                    "adamw(lr: 0.1)"));
      passes::ActionCosts costs =
          passes::action_costs(planned.dag(), {.bytes = 1e6, .latency = 0, .bandwidth = 1e6});
      const Timeline timeline = passes::simulate_actions(planned.dag(), costs);
      return std::array{seconds_of(timeline, dag::NodeKind::update),
                        seconds_of(timeline, dag::NodeKind::fetch),
                        seconds_of(timeline, dag::NodeKind::offload)};
    };
    const auto whole = seconds(0), cut = seconds(1);
    for (std::size_t i = 0; i < whole.size(); ++i) {
      EXPECT_GT(cut[i], 0) << i;
      EXPECT_NEAR(whole[i] / cut[i], k, 0.02 * k) << i;
    }
    EXPECT_NEAR(whole[1], whole[2], 1e-9);
  }
}

/// Work is slower by `overlap` while a rank computes and communicates at once.
TEST(Machine, WorkIsSlowerBesideCommunication) {
  for (const char* name : {"gpipe", "one_f_one_b"}) {
    const Planned planned(name, sizes(3, 6));
    for (const double overlap : {1.0, 1.5, 2.0}) {
      passes::ActionCosts costs = planned.costs(4, 4);
      costs.machine = planned.machine();
      costs.machine->axes[0].link = MachineLink{.latency = 1, .bandwidth = 1e30};
      costs.machine->devices = {device_at(*costs.machine, 0, -1)};
      costs.machine->devices[0].overlap = overlap;
      const Timeline timeline = passes::simulate_actions(planned.dag(), costs);
      double lost = 0;
      for (const Timeline::Rank& rank : timeline.ranks) {
        const auto lanes = timeline.lanes_of(rank);
        std::vector<std::pair<double, double>> moving;
        for (const Timeline::Lane& lane : lanes.subspan(1)) {
          for (std::uint32_t entry = lane.first; entry < lane.end; ++entry)
            moving.emplace_back(timeline.start[entry], timeline.finish[entry]);
        }
        std::sort(moving.begin(), moving.end());
        double both = 0;
        for (std::uint32_t entry = lanes[0].first; entry < lanes[0].end; ++entry) {
          double until = timeline.start[entry];
          for (const auto& [begin, end] : moving) {
            const double from = std::max(begin, until), to = std::min(end, timeline.finish[entry]);
            if (from < to) both += to - from, until = to;
          }
        }
        EXPECT_NEAR(rank.work, 6 * 8 + (1 - 1 / overlap) * both, kExact)
            << name << " " << overlap << " " << rank.name;
        lost += rank.work - 6 * 8;
      }
      EXPECT_EQ(lost > kExact, overlap > 1) << name << " " << overlap;
    }
  }
}

// ---- groups

TEST(Machine, NeighboursThatShareALinkAreAGrid) {
  const std::vector<Machine::Axis> axes = {{"pp", 4, {}}, {"dp", 6, {}}};
  const std::tuple<std::uint32_t, std::size_t, std::uint32_t> grids[] = {
      {1, 1, 1}, {2, 1, 2}, {3, 1, 3}, {6, 0, 1}, {12, 0, 2}, {24, 0, 4}};
  for (const auto& [shared, axis, block] : grids) {
    const auto group = link_group(axes, shared);
    ASSERT_TRUE(group) << shared;
    EXPECT_EQ(std::pair(group->axis, group->block), std::pair(axis, block)) << shared;
  }
  for (const std::uint32_t shared : {4u, 5u, 7u, 9u, 18u, 25u, 48u})
    EXPECT_FALSE(link_group(axes, shared)) << shared;
}

// ---- files

TEST(Machine, IsReadFromAFile) {
  source::MemoryFileSystem files;
  files.add("lab.pipe", R"(param n = 2
mesh cluster(pp: n, dp: 2)
machine lab on cluster {
    let slowness = 0.5
    all:  device(memory: 80GiB, speed: 1.0, overlap: 1.25)
    slow: device(
        at: pp[1],
        speed: slowness)
    pp: link(latency: 5us, bandwidth: 50GiB)
    dp: link(12GiB, 20us, shared: 2)
}
machine other on cluster { all: device(speed: 3) }
)");
  Context context;
  DiagnosticSink sink(context.locations);
  const auto read = [&](const std::string& word, std::vector<lower::Override> overrides = {}) {
    return read_machine(word, overrides, files, context, sink);
  };
  const auto found = read("lab.pipe:lab", {{"n", "3"}, {"m", "8"}});
  ASSERT_TRUE(found) << render_text(sink.sorted(), context.locations.files());
  const Machine& machine = found->machine;
  EXPECT_EQ(machine.name, "lab");
  EXPECT_EQ(machine.mesh_text(), "(pp: 3, dp: 2)");
  EXPECT_EQ(found->params, std::vector<std::string>{"n"});
  EXPECT_DOUBLE_EQ(machine.axes[0].link->latency, 5e-6);
  EXPECT_EQ(machine.axes[0].link->bandwidth, 50 * 0x1p30);
  EXPECT_EQ(machine.axes[1].link->shared, 2u);
  EXPECT_EQ(machine.device({0, 1}).speed, 1.0);
  EXPECT_EQ(machine.device({1, 1}).speed, 0.5);
  EXPECT_EQ(machine.device({1, 0}).memory, std::int64_t{80} << 30);  // the line before
  EXPECT_EQ(machine.device({1, 0}).overlap, 1.25);
  EXPECT_TRUE(sink.empty());
  for (const char* word :
       {"lab.pipe", "lab.pipe:labs", "lab.pipe:", "lab", "lab.pir", "none.pipe"}) {
    DiagnosticSink told(context.locations);
    EXPECT_FALSE(read_machine(word, {}, files, context, told)) << word;
    EXPECT_EQ(told.error_count(), 1u) << word;
  }
  // A file has the machines that it declares, not those of the files it uses.
  files.add("own.pipe",
            "use lab\nmesh line(p: 2)\nmachine mine on line { all: device(speed: 2) }\n");
  const auto own = read("own.pipe");
  ASSERT_TRUE(own) << render_text(sink.sorted(), context.locations.files());
  EXPECT_EQ(own->machine.name, "mine");
  EXPECT_FALSE(read("own.pipe:lab"));
  // The error that may hide the machine is reported, not a missing machine.
  files.add("half.pipe", "mesh line(p: 2)\nmachin lab on line { all: device(speed: 2) }\n");
  DiagnosticSink told(context.locations);
  EXPECT_FALSE(read_machine("half.pipe:lab", {}, files, context, told));
  EXPECT_TRUE(told.has_errors());
  EXPECT_FALSE(told.reported(Code::no_such_machine));
}

TEST(Machine, AnotherMeshIsRefused) {
  for (const auto& [axes, good] : {std::pair(std::vector<Machine::Axis>{{"p", 4, {}}}, true),
                                   {{{"p", 2, {}}}, false},
                                   {{{"pp", 4, {}}}, false},
                                   {{{"p", 4, {}}, {"dp", 1, {}}}, false}}) {
    Planned planned("gpipe", sizes(4, 4));
    EXPECT_EQ(fits({"lab", axes, {}}, planned.dag(), planned.sink()), good);
    EXPECT_EQ(planned.sink().reported(Code::machine_of_another_mesh), !good);
  }
}

TEST(Machine, TellsOfDevicesThatAreTooSmall) {
  Planned planned("gpipe", sizes(2, 4));
  Machine machine = planned.machine();
  const std::int64_t arena = planned.dag().plan->roles[1].arena_bytes;
  for (const auto& [bytes, told] : {std::pair(arena, false), {arena - 1, true}}) {
    machine.devices = {device_at(machine, 0, 1)};
    machine.devices[0].memory = bytes;
    report_small_devices(machine, planned.dag(), planned.sink());
    EXPECT_EQ(planned.sink().reported(Code::device_too_small), told);
  }
  EXPECT_FALSE(planned.sink().has_errors());
}

}  // namespace
}  // namespace piper::service
