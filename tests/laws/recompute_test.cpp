// Recomputation and offload change no bit, and the planned memory of such a plan equals the memory
// of the run. Frozen parameters do not change.

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <set>

#include "ir/dag/bucket_layout.h"
#include "tests/laws/law_runs.h"
#include "tests/support/random_programs.h"

namespace piper::test {
namespace {

constexpr std::uint32_t kLayers = 6;

/// Six layers on two devices under 1F1B, with dropout: random numbers are functions of where they
/// stand.
std::string six_layers(const std::string& lines) {
  return "use std.schedules.one_f_one_b\n"
         "model net(layers: int) {\n"
         "    input x: tensor[batch, dim]\n"
         "    var h = x\n"
         "    for l in 0..layers { h = layer(h) }\n"
         "    loss square(h)\n"
         "}\n"
         "model layer(x: tensor[batch, dim]) -> tensor[batch, dim] {\n"
         "    weight up[dim, inner: 3*dim], down[inner, dim] = normal(0.4)\n"
         "    return x + dropout(gelu(layer_norm(x) @ up), 0.2) @ down\n"
         "}\n"
         "mesh line(pp: 2)\n"
         "train t = net(layers: 6) on line {\n"
         "    data:  synthetic(batch: 32, dim: 4)\n"
         "    optim: adamw(lr: 1e-2, clip: 1.0)\n"
         "    steps: 3\n"
         "    dtype: f64\n"
         "    one_f_one_b(pp, 4)\n" +
         lines + "}\n";
}

/// Every `from` of the text becomes `to`.
std::string with_all(std::string text, const std::string& from, const std::string& to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
  return text;
}

struct Compiled {
  struct Text {
    std::string text;
  };
  explicit Compiled(const std::string& lines, const std::string& schedule = "one_f_one_b")
      : Compiled(Text{with_all(six_layers(lines), "one_f_one_b", schedule)}) {}
  explicit Compiled(const Text& whole)
      : read(read_program(context, whole.text)), program(context, read.model, read.strategy) {}
  Context context;
  RandomProgram read;
  LawProgram program;
};

std::string layers_of(std::uint32_t subset) {
  std::string list;
  for (std::uint32_t l = 0; l < kLayers; ++l) {
    if ((subset >> l & 1) != 0)
      list += (list.empty() ? "" : ", ") + ("layer[" + std::to_string(l) + "]");
  }
  return list;
}

std::int64_t most_live(const dag::Dag& dag) {
  std::int64_t bytes = 0;
  for (const dag::Role& role : dag.plan->roles) bytes = std::max(bytes, role.live_bytes);
  return bytes;
}

TEST(Recompute, EverySubsetOfLayersGivesTheSameBits) {
  Compiled plain("");
  ASSERT_TRUE(plain.program);
  const LawRun wanted = plain.program.run({});
  std::int64_t least = most_live(plain.program.dag());
  for (std::uint32_t subset = 1; subset < 1u << kLayers; ++subset) {
    SCOPED_TRACE(layers_of(subset));
    // Every second subset for some microbatches alone.
    const std::string some = subset % 2 == 0 ? "" : " mb[1..3]";
    std::string line = "    recompute ";
    for (std::uint32_t l = 0, any = 0; l < kLayers; ++l) {
      if ((subset >> l & 1) != 0)
        line += (any++ > 0 ? ", layer[" : "layer[") + std::to_string(l) + "]" + some;
    }
    Compiled again(line + "\n");
    ASSERT_TRUE(again.program);
    const auto runs_again = std::count_if(
        again.program.dag().nodes.begin(), again.program.dag().nodes.end(),
        [](const dag::Node& node) { return runs_body(node.kind) && node.pass == Pass::R; });
    EXPECT_EQ(runs_again, std::popcount(subset) * (subset % 2 == 0 ? 4 : 2));
    const LawRun run = again.program.run({});
    EXPECT_EQ(first_bit_difference(run, wanted), "");
    for (std::size_t rank = 0; rank < run.arena_bytes.size(); ++rank) {
      EXPECT_EQ(run.arena_bytes[rank],
                static_cast<std::uint64_t>(again.program.dag().plan->roles[rank].arena_bytes));
      EXPECT_LE(run.touched_bytes[rank], run.arena_bytes[rank]);
    }
    least = std::min(least, most_live(again.program.dag()));
  }
  EXPECT_LT(least, most_live(plain.program.dag()) * 9 / 10);
}

TEST(Recompute, WholeStagesAndSomeMicrobatchesToo) {
  Compiled plain("");
  ASSERT_TRUE(plain.program);
  const LawRun wanted = plain.program.run({});
  for (const char* line : {"model", "stage[0]", "stage[1] mb[0..2]", "stage mb[3], layer[1]"}) {
    SCOPED_TRACE(line);
    Compiled again("    recompute " + std::string(line) + "\n");
    ASSERT_TRUE(again.program);
    EXPECT_EQ(first_bit_difference(again.program.run({}), wanted), "");
  }
}

/// The most instances of which something that a backward reads lies on the device at one action.
std::size_t most_kept(const dag::Dag& dag, const dag::Role& role) {
  struct Span {
    std::pair<dag::ChunkId, dag::Instance> of;
    std::size_t first, last;
  };
  std::vector<Span> spans;  // from the node that makes or fetches it to its last reader
  const auto backward_reads = [&](dag::Port port) {
    for (const dag::Action& action : role.actions) {
      const dag::Node& node = dag.node(action.node);
      if (runs_body(node.kind) && node.pass == Pass::F) continue;
      for (const dag::Input& input : dag.inputs_of(node)) {
        if (input.source == port && (runs_body(node.kind) || copies_to_or_from_host(node.kind)))
          return true;
      }
    }
    return false;
  };
  const auto last_use = [&](dag::Port port) {
    std::size_t last = 0;
    for (std::size_t a = 0; a < role.actions.size(); ++a) {
      for (const dag::Input& input : dag.inputs_of(dag.node(role.actions[a].node))) {
        if (input.source == port) last = a;
      }
    }
    return last;
  };
  for (std::size_t a = 0; a < role.actions.size(); ++a) {
    const dag::Node& node = dag.node(role.actions[a].node);
    const bool forward = runs_body(node.kind) && !is_backward(node.pass);
    if (!forward && !returns_to_device(node.kind)) continue;
    std::size_t end = a;
    for (std::uint32_t i = 0; i < node.num_outputs; ++i) {
      const dag::Port port{role.actions[a].node, i};
      if (returns_to_device(node.kind) || backward_reads(port)) end = std::max(end, last_use(port));
    }
    if (end > a) spans.push_back({{node.chunk, node.instance}, a, end});
  }
  std::size_t most = 0;
  for (std::size_t a = 0; a < role.actions.size(); ++a) {
    std::set<std::pair<dag::ChunkId, dag::Instance>> here;
    for (const Span& span : spans) {
      if (span.first <= a && a <= span.last) here.insert(span.of);
    }
    most = std::max(most, here.size());
  }
  return most;
}

TEST(Offload, ValuesOnTheHostKeepTheirBits) {
  Compiled plain("");
  ASSERT_TRUE(plain.program);
  const LawRun wanted = plain.program.run({});
  std::int64_t least = most_live(plain.program.dag());
  for (
      const char* line :
      {"model", "stage", "stage with window: 2", "stage with window: 3", "stage with window: 100",
       "layer", "layer with window: 3", "layer[0..2] mb[1..3] with window: 2",
       "layer[1] with window: 1, what: activations",
       "stage[0] with window: 2\n    offload stage[1]", "layer\n    recompute layer[1..4] mb[0..2]",
       "stage with window: 2\n    recompute layer", "model with what: optimizer",
       "layer[1..3] with what: optimizer, window: 2",
       "stage[0] with what: optimizer, window: 100\n    offload stage with window: 2\n    offload stage[1] with what: optimizer"}) {
    SCOPED_TRACE(line);
    Compiled out("    offload " + std::string(line) + "\n");
    ASSERT_TRUE(out.program);
    const LawRun run = out.program.run({});
    EXPECT_EQ(first_bit_difference(run, wanted), "");
    EXPECT_EQ(first_bit_difference(out.program.run_sequential(), wanted), "");
    for (std::size_t rank = 0; rank < run.arena_bytes.size(); ++rank) {
      EXPECT_EQ(run.arena_bytes[rank],
                static_cast<std::uint64_t>(out.program.dag().plan->roles[rank].arena_bytes));
      EXPECT_LE(run.touched_bytes[rank], run.arena_bytes[rank]);
    }
    least = std::min(least, most_live(out.program.dag()));
  }
  EXPECT_LT(least, most_live(plain.program.dag()) * 9 / 10);
}

TEST(Offload, AsManyInstancesStayAsTheWindowSays) {
  for (std::uint32_t window = 1; window <= 5; ++window) {
    SCOPED_TRACE(window);
    Compiled out("    offload stage with window: " + std::to_string(window) + "\n");
    ASSERT_TRUE(out.program);
    // 1F1B keeps two microbatches on the first device, one on the second.
    const std::vector<dag::Role>& roles = out.program.dag().plan->roles;
    EXPECT_EQ(most_kept(out.program.dag(), roles[0]), std::min(window, 2u));
    EXPECT_EQ(most_kept(out.program.dag(), roles[1]), 1u);
    EXPECT_EQ(roles[0].host_bytes > 0, window < 2);
    EXPECT_EQ(roles[1].host_bytes, 0);
  }
}

int copies_to_host(const dag::Dag& dag, const dag::Role& role) {
  return static_cast<int>(std::count_if(
      role.actions.begin(), role.actions.end(),
      [&](const dag::Action& action) { return leaves_device(dag.node(action.node).kind); }));
}

/// GPipe keeps all microbatches, and its backwards read them as the forwards made them: those made
/// last leave, each once. With one place the last has to make room for the first, with two for the
/// second, which comes back while the backward of the first runs.
TEST(Offload, ValuesReadLastLeaveFirst) {
  constexpr int kCopies[] = {0, 4, 3, 1, 0, 0};
  for (std::uint32_t window = 1; window <= 5; ++window) {
    SCOPED_TRACE(window);
    Compiled out("    offload stage with window: " + std::to_string(window) + "\n", "gpipe");
    ASSERT_TRUE(out.program);
    for (const dag::Role& role : out.program.dag().plan->roles) {
      EXPECT_EQ(most_kept(out.program.dag(), role), std::min(window, 4u));
      EXPECT_EQ(copies_to_host(out.program.dag(), role), kCopies[window]);
    }
  }
}

/// Backwards in an irregular order, from which with three places five values are offloaded; four
/// could not suffice.
TEST(Offload, AsFewLeaveAsCan) {
  Compiled out(Compiled::Text{with_all(
      with_all(
          six_layers(
              "    partition model into stage: 1\n    place stage[0] on pp[0]\n    split batch into mb: 8\n    offload stage with window: 3\n"
              "    order { rank r in pp { cursor a = stage[0] mb[0..8] backward stage[0] mb[[3, 1, 0, 2, 7, 5, 6, 4]]; repeat 8 { F a }; repeat 8 { B a } } }\n"),
          "    one_f_one_b(pp, 4)\n", ""),
      "pp: 2", "pp: 1")});
  ASSERT_TRUE(out.program);
  EXPECT_EQ(copies_to_host(out.program.dag(), out.program.dag().plan->roles[0]), 5);
}

/// A backward that reads values saved by two instances has both, and the fetched one is back before
/// it.
TEST(Offload, ABackwardReadsWhatSeveralInstancesSaved) {
  const std::string text =
      "model net() {\n    input x: tensor[batch, dim]\n    let a = layer(x)\n    let b = layer(a)\n    let c = join(a, b)\n    let d = join(a, c)\n    loss square(join(b, d))\n}\n"
      "model layer(x: tensor[batch, dim]) -> tensor[batch, dim] {\n    weight w[dim, out: dim] = normal(0.4)\n    return x + gelu(rename(x @ w, out: dim))\n}\n"
      "model join(x: tensor[batch, dim], y: tensor[batch, dim]) -> tensor[batch, dim] {\n    weight w[dim, out: dim] = normal(0.4)\n    return y + gelu(rename(x @ w, out: dim)) * x\n}\n"
      "mesh line(pp: 1)\ntrain t = net() on line {\n    data: synthetic(batch: 8, dim: 4)\n    optim: sgd(lr: 1e-2)\n    steps: 3\n    dtype: f64\n"
      "    split batch into mb: 2\n    place layer, join, model on pp[0]\n";
  Compiled plain(Compiled::Text{text + "}\n"});
  ASSERT_TRUE(plain.program);
  const LawRun wanted = plain.program.run({});
  for (const char* line :
       {"layer, join", "layer, join with window: 2", "layer, join with window: 3",
        "join with window: 2", "layer[1], join[0..2]", "model mb[0..1]", "model with window: 4"}) {
    SCOPED_TRACE(line);
    Compiled out(Compiled::Text{text + "    offload " + line + "\n}\n"});
    ASSERT_TRUE(out.program);
    EXPECT_EQ(first_bit_difference(out.program.run({}), wanted), "");
  }
}

/// Under 1F1B one microbatch at a time is on the host, however many there are: a fetch frees its
/// room.
TEST(Offload, HostMemoryIsUsedAgain) {
  const auto host_bytes = [](int microbatches) {
    Compiled out(Compiled::Text{with_all(
        with_all(six_layers("    offload stage\n"), "pp, 4", "pp, " + std::to_string(microbatches)),
        "batch: 32", "batch: " + std::to_string(8 * microbatches))});
    return out.program ? out.program.dag().plan->roles[0].host_bytes : 0;
  };
  EXPECT_GT(host_bytes(4), 0);
  EXPECT_EQ(host_bytes(4), host_bytes(8));
}

/// The most buckets whose optimizer state lies on the device at one action, and how many are
/// fetched.
std::pair<int, int> most_states(const dag::Dag& dag, const dag::Role& role) {
  int now = 0, most = 0, fetched = 0;
  for (const dag::Action& action : role.actions) {
    const dag::Node& node = dag.node(action.node);
    if (!copies_to_or_from_host(node.kind)) continue;
    now += returns_to_device(node.kind) ? 1 : -1;
    fetched += returns_to_device(node.kind);
    most = std::max(most, now);
  }
  return {most, fetched};
}

TEST(Offload, StateOfAsManyBucketsStaysAsTheWindowSays) {
  for (std::uint32_t window = 1; window <= 4; ++window) {
    SCOPED_TRACE(window);
    Compiled out(Compiled::Text{with_all(
        six_layers(
            "    replicate model over dp with bucket: 1KiB\n    offload model with what: optimizer, window: " +
            std::to_string(window) + "\n"),
        "pp: 2", "pp: 2, dp: 2")});
    ASSERT_TRUE(out.program);
    for (const dag::Role& role : out.program.dag().plan->roles) {
      EXPECT_EQ(most_states(out.program.dag(), role),
                std::pair(static_cast<int>(std::min(window, 3u)), 3));
    }
  }
}

/// Also without an order.
TEST(Recompute, RunsDirectlyBeforeItsBackward) {
  Compiled again(Compiled::Text{with_all(
      six_layers(
          "    partition model into stage: 2\n    for s in 0..2 { place stage[s] on pp[s] }\n    split batch into mb: 4\n    recompute stage\n"),
      "    one_f_one_b(pp, 4)\n", "")});
  ASSERT_TRUE(again.program);
  const dag::Dag& dag = again.program.dag();
  for (const dag::Role& role : dag.plan->roles) {
    const dag::Node* before = nullptr;
    int seen = 0;
    for (const dag::Action& action : role.actions) {
      const dag::Node& node = dag.node(action.node);
      if (!runs_body(node.kind)) continue;
      if (before != nullptr && before->pass == Pass::R) {
        EXPECT_TRUE(node.pass == Pass::B && node.instance == before->instance)
            << dag.name(action.node);
        ++seen;
      }
      before = &node;
    }
    EXPECT_EQ(seen, 4);
  }
}

TEST(Offload, RecomputedWorkCountsInTheWindow) {
  for (const std::uint32_t window : {1u, 2u, 3u}) {
    SCOPED_TRACE(window);
    Compiled again(
        "    recompute stage\n    offload stage with window: " + std::to_string(window) + "\n",
        "zb_h1");
    ASSERT_TRUE(again.program);
    for (const dag::Role& role : again.program.dag().plan->roles)
      EXPECT_LE(most_kept(again.program.dag(), role), window);
    EXPECT_EQ(first_bit_difference(again.program.run({}), again.program.run_sequential()), "");
  }
}

TEST(Freeze, WeightsStayAndTheOthersTrainAsIfTheyWereConstant) {
  Compiled frozen("    freeze layer[0..2], stage[1]\n");
  ASSERT_TRUE(frozen.program);
  const LawRun run = frozen.program.run({});
  int still = 0;
  for (const auto& [name, values] : run.parameters) {
    const bool stays = run.gradients.find(name) == run.gradients.end();
    still += stays;
    EXPECT_EQ(values.back() == run.initial.at(name), stays) << name;
  }
  // of layers 0 and 1, which make the first stage cheap, and of the other stage, layers 4 and 5
  EXPECT_EQ(still, 8);
  // Neither gradients nor optimizer state is kept of them.
  const dag::Dag& dag = frozen.program.dag();
  for (const dag::Role& role : dag.plan->roles) {
    for (const dag::Buffer& buffer : role.buffers) {
      const bool keeps = buffer.bucket.valid() && dag.frozen(dag.buckets[buffer.bucket.index()]);
      EXPECT_TRUE(!keeps || buffer.cls == dag::BufferClass::parameters);
    }
  }
  // If everything from the first layer on is frozen, no gradient flows back.
  for (const dag::Chunk& chunk : dag.chunks) {
    const dag::Body& backward = dag.bodies[chunk.bodies[static_cast<std::size_t>(Pass::B)].index()];
    EXPECT_EQ(
        std::count_if(backward.outputs.begin(), backward.outputs.end(),
                      [](const dag::BodyPort& port) { return port.kind == dag::PortKind::data; }),
        chunk.name == dag.chunks.back().name)
        << dag.context->text(chunk.name);
  }
}

/// With `zero: 3` a device keeps only its shard of frozen parameters, too, and gathers them for the
/// work that reads them; otherwise it keeps all of them.
TEST(Freeze, WeightsAreShardedAsParametersAre) {
  for (std::uint32_t zero = 0; zero <= 3; ++zero) {
    SCOPED_TRACE(zero);
    std::string text =
        six_layers("    freeze layer[0..2], stage[1]\n    replicate model over dp with zero: " +
                   std::to_string(zero) + "\n");
    text.replace(text.find("pp: 2"), std::string("pp: 2").size(), "pp: 2, dp: 2");
    Context context;
    RandomProgram read = read_program(context, text);
    LawProgram program(context, read.model, read.strategy);
    ASSERT_TRUE(program);
    const LawRun run = program.run({});
    EXPECT_EQ(first_bit_difference(run, program.run_sequential()), "");
    const dag::Dag& dag = program.dag();
    std::int64_t kept = 0, of_all = 0;
    std::size_t gathers = 0;
    for (const dag::Role& role : dag.plan->roles) {
      for (const dag::Buffer& buffer : role.buffers) {
        if (!buffer.bucket.valid() || !dag.frozen(dag.buckets[buffer.bucket.index()])) continue;
        EXPECT_EQ(buffer.cls, dag::BufferClass::parameters);
        kept += buffer.bytes;
        const dag::BucketLayout layout =
            dag::bucket_layout(dag, dag.buckets[buffer.bucket.index()]);
        of_all += layout.parameter_bytes(layout.elements);
      }
      for (const dag::Action& action : role.actions) {
        const dag::BucketId bucket = dag.node(action.node).subject.bucket();
        gathers +=
            gathers_shards(dag.node(action.node).kind) && dag.frozen(dag.buckets[bucket.index()]);
      }
    }
    EXPECT_GT(of_all, 0);
    EXPECT_EQ(kept, zero == 3 ? of_all / 2 : of_all);
    EXPECT_EQ(gathers > 0, zero == 3);
    for (const auto& [name, values] : run.parameters) {
      EXPECT_EQ(values.back() == run.initial.at(name),
                run.gradients.find(name) == run.gradients.end())
          << name;
    }
  }
}

}  // namespace
}  // namespace piper::test
