#include "tests/support/random_programs.h"

#include <algorithm>

#include "passes/pipeline.h"

namespace piper::test {

namespace {

std::uint32_t between(Random& random, std::uint32_t low, std::uint32_t high) { return static_cast<std::uint32_t>(random.between(low, high)); }

/// One operation of the order: all work of a stage (or region) in one instance and pass.
struct Work {
  Pass pass;
  std::vector<Index> coordinates;
  DeviceSetId devices;
  std::vector<std::uint32_t> waits_for;
};

class ProgramMaker {
 public:
  ProgramMaker(Context& context, Random& random, const RandomProgramOptions& options) : context_(context), random_(random), options_(options) {}
  RandomProgram make();

 private:
  std::uint32_t pick_extents();
  tensor::Graph pick_model(std::int64_t batch);
  void place(StrategyBuilder& build, std::uint32_t stages);
  void add_order(StrategyBuilder& build, const tensor::Graph& model, bool halves);
  std::vector<Index> instance_of(const dag::Dag& dag, const dag::Node& node) const;

  Context& context_;
  Random& random_;
  const RandomProgramOptions& options_;
  std::string story_;
  std::uint32_t pp_ = 1, dp_ = 1, microbatches_ = 1, copies_ = 1;
};

tensor::Graph ProgramMaker::pick_model(std::int64_t batch) {
  switch (random_.below(5)) {
    case 0:
      story_ += "mlp";
      return mlp_chain(context_, {.layers = between(random_, 2, 5), .batch = batch, .dim = 4, .hidden = 6});
    case 1:
    case 2: {
      const bool tied = random_.chance(0.5), auxiliary = random_.chance(0.4);
      story_ += std::string("gpt") + (tied ? " tied" : "") + (auxiliary ? " auxiliary" : "");
      return small_gpt(context_, {.layers = between(random_, 1, 3), .batch = batch, .seq = 3, .dim = 4, .vocab = 7, .tied = tied, .auxiliary_loss = auxiliary});
    }
    default: {
      const bool tied = random_.chance(0.5);
      story_ += std::string("towers") + (tied ? " tied" : "");
      return two_towers(context_, {.layers = between(random_, 1, 2), .batch = batch, .dim = 4, .out = 3, .tied = tied});
    }
  }
}

void ProgramMaker::place(StrategyBuilder& build, std::uint32_t stages) {
  const auto kind = random_.below(5);
  story_ += ", place " + std::to_string(kind);
  for (std::uint32_t s = 0; s < stages; ++s) {
    const std::uint32_t lap = s / pp_, at = s % pp_;
    std::uint32_t device = at;                                           // 0: loop
    if (kind == 1) device = lap % 2 == 0 ? at : pp_ - 1 - at;            // 1: V, W, ...
    if (kind == 2) device = between(random_, 0, pp_ - 1);                // 2: anywhere
    if (copies_ == 2) {
      build.place({{"stage", s}, {"copy", 0}}, {{"pp", device}});
      build.place({{"stage", s}, {"copy", 1}}, {{"pp", pp_ - 1 - device}});
    } else if (kind == 3) {                                              // 3: every instance on its own
      for (std::uint32_t i = 0; i < microbatches_; ++i) build.place({{"stage", s}, {"mb", i}}, {{"pp", (device + i) % pp_}}, Pass::F);
    } else {
      build.place({{"stage", s}}, {{"pp", device}});
      if (kind == 4 && s == 0) build.place({{"stage", 0}, {"mb", 0}}, {{"pp", between(random_, 0, pp_ - 1)}});
    }
  }
}

std::vector<Index> ProgramMaker::instance_of(const dag::Dag& dag, const dag::Node& node) const {
  std::vector<Index> coordinates;
  const RegionId region = dag.chunks[node.chunk.index()].region;
  coordinates.push_back({context_.text(dag.regions.name(region)), dag.regions.index(region)});
  for (std::size_t d = 0; d < dag.dims.size(); ++d) coordinates.push_back({context_.text(dag.dims[d].name), static_cast<std::uint32_t>(node.instance.at[d])});
  return coordinates;
}

/// Draws which backwards are split, then walks the data dependencies of all work at random and writes each rank's part down.
void ProgramMaker::add_order(StrategyBuilder& build, const tensor::Graph& model, bool halves) {
  passes::Options options;
  options.stop_at = dag::Level::placed;
  DiagnosticSink sink(context_.locations);
  StrategyBuilder with_halves = build;
  if (halves) {
    tensor::Graph copy = model;
    const std::optional<dag::Dag> whole = passes::compile(copy, build.strategy(), sink, options);
    if (!whole) return;
    with_halves.rank({});
    for (const dag::Node& node : whole->nodes) {
      if (node.kind == dag::NodeKind::chunk && node.pass == Pass::B && random_.chance(0.5)) with_halves.op(Pass::BW, instance_of(*whole, node));
    }
  }
  tensor::Graph copy = model;
  const std::optional<dag::Dag> dag = passes::compile(copy, with_halves.strategy(), sink, options);
  if (!dag) return;

  std::vector<Work> work;
  std::vector<std::uint32_t> work_of(dag->nodes.size(), 0xFFFFFFFFu);
  for (std::size_t n = 0; n < dag->nodes.size(); ++n) {
    const dag::Node& node = dag->nodes[n];
    if (node.kind != dag::NodeKind::chunk) continue;
    work_of[n] = static_cast<std::uint32_t>(work.size());
    work.push_back({node.pass, instance_of(*dag, node), node.devices, {}});
  }
  for (std::size_t n = 0; n < dag->nodes.size(); ++n) {
    if (work_of[n] == 0xFFFFFFFFu) continue;
    for (const dag::Input& input : dag->inputs_of(dag->nodes[n])) {
      if (input.cls == dag::EdgeClass::data && work_of[input.source.node.index()] != 0xFFFFFFFFu) work[work_of[n]].waits_for.push_back(work_of[input.source.node.index()]);
    }
  }
  // A preference per piece of work, redrawn now and then, makes long runs of one kind as likely as changes.
  std::vector<std::uint32_t> order, waits(work.size(), 0), ready;
  std::vector<std::vector<std::uint32_t>> readers(work.size());
  for (std::uint32_t w = 0; w < work.size(); ++w) {
    for (const std::uint32_t v : work[w].waits_for) {
      readers[v].push_back(w);
      ++waits[w];
    }
    if (waits[w] == 0) ready.push_back(w);
  }
  const bool eager = random_.chance(0.5), lifo = random_.chance(0.5);
  while (!ready.empty()) {
    std::size_t at = random_.below(ready.size());
    if (eager && random_.chance(0.8)) at = lifo ? ready.size() - 1 : 0;
    const std::uint32_t w = ready[at];
    ready.erase(ready.begin() + static_cast<std::ptrdiff_t>(at));
    order.push_back(w);
    for (const std::uint32_t r : readers[w]) {
      if (--waits[r] == 0) ready.push_back(r);
    }
  }
  for (std::uint32_t p = 0; p < pp_; ++p) {
    const DeviceSetId claimed = build.devices({{"pp", p}});
    bool any = false;
    for (const std::uint32_t w : order) {
      if (dag->device_sets[work[w].devices] != build.edit().device_sets[claimed]) continue;
      if (!any) build.rank({{"pp", p}});
      any = true;
      build.op(work[w].pass, work[w].coordinates);
    }
  }
}

RandomProgram ProgramMaker::make() {
  pp_ = between(random_, 1, std::min(4u, options_.max_devices));
  dp_ = between(random_, 1, std::min(3u, options_.max_devices / pp_));
  microbatches_ = between(random_, 1, 4);
  copies_ = random_.chance(0.25) ? 2 : 1;
  const std::int64_t samples = random_.between(1, 2);
  tensor::Graph model = pick_model(static_cast<std::int64_t>(copies_) * microbatches_ * dp_ * samples);
  const std::uint32_t stages = between(random_, 1, std::min(5u, static_cast<std::uint32_t>(2 * pp_)));
  story_ += ", pp " + std::to_string(pp_) + ", dp " + std::to_string(dp_) + ", mb " + std::to_string(microbatches_) + ", copies " + std::to_string(copies_) + ", stages " + std::to_string(stages);

  StrategyBuilder build(context_, {{"pp", pp_}, {"dp", dp_}});
  build.partition("stage", stages);
  if (copies_ == 2) {
    build.split({{"copy", 2}, {"mb", microbatches_}});
  } else {
    build.split({{"mb", microbatches_}});
  }
  place(build, stages);
  if (random_.chance(0.8) && dp_ > 1) {
    const bool small = random_.chance(0.5);
    build.replicate({"dp"}, small ? std::optional<std::int64_t>(random_.between(1, 400)) : std::nullopt);
    story_ += small ? ", small buckets" : ", replicated";
  }
  if (random_.chance(0.5)) build.clip(0.1);
  if (options_.order && random_.chance(0.5)) {
    const bool halves = options_.halves && random_.chance(0.5);
    story_ += halves ? ", ordered with halves" : ", ordered";
    add_order(build, model, halves);
  }
  return {std::move(model), build.strategy(), story_};
}

}  // namespace

RandomProgram random_program(Context& context, Random& random, const RandomProgramOptions& options) {
  return ProgramMaker(context, random, options).make();
}

}  // namespace piper::test
