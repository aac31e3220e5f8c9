#include <algorithm>
#include <deque>

#include "backend/cuda/emit_enqueue.h"
#include "backend/device_program/job.h"
#include "backend/device_program/rank_tables.h"
#include "backend/dtypes.h"
#include "backend/emit_cpp/emit_program.h"
#include "backend/interpret/interpret.h"
#include "backend/interpret/interpret_enqueue.h"
#include "ir/dag/bucket_layout.h"
#include "ir/dag/sample_weight.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/SHA1.h"

namespace piper::backend {

namespace {

/// The programs of one DAG, ready to run.
struct Phase {
  ProgramSet set;
  std::deque<Interpreted> interpreted;
  std::vector<const PiperProgram*> programs;  // per role
  std::vector<RankTables> ranks;
  std::vector<std::size_t> role_of_rank;
  std::vector<bool> runs;  // per role: a rank of this process has it
  // On CUDA:
  std::vector<std::vector<cuda::BodyStep>> steps;  // per body
  std::deque<InterpretedEnqueue> walks;
  std::vector<const PiperEnqueue*> enqueue;  // per role
};

/// The hash of a program with these libraries of products.
std::string with_products(const std::string& hash, const std::string& products) {
  if (products.empty()) return hash;
  llvm::SHA1 sha;
  sha.update(llvm::StringRef(hash));
  sha.update(llvm::StringRef(products));
  return llvm::toHex(sha.final(), /*LowerCase=*/true).substr(0, 32);
}

}  // namespace

struct Job::Parts {
  Phase training;
  std::optional<Phase> evaluation;
  std::vector<LoadedProgram> loaded;
  bool generated = false;
  cuda::KernelSet own_kernels;
  cuda::KernelSet* kernels = &own_kernels;
  std::deque<std::string> strings;
  std::deque<std::vector<std::int64_t>> dims;
  std::vector<PiperInput> inputs;
  PiperInput sample_weight{};
  std::vector<PiperLoss> losses;
  std::vector<PiperJobRank> ranks;
  PiperJob job{};

  const char* keep(std::string_view text) { return strings.emplace_back(text).c_str(); }
  PiperActionInfo place(const Context& context, LocId loc, const char* what);
  PiperData data(const Context& context, const directive::Data& data, const char* what);
  PiperInput input(const dag::Dag& dag, tensor::InputId id);
  void describe(const dag::Dag& dag, const JobOptions& options);
};

namespace {

void add_rank_tables(const dag::Dag& dag, const JobOptions& options, std::uint32_t& next_id,
                     Phase& phase) {
  CommunicatorIds ids(dag, next_id);
  next_id = ids.end();
  phase.runs.resize(phase.set.roles.size());
  for (std::uint64_t rank = 0; rank < dag.mesh.devices(); ++rank) {
    phase.role_of_rank.push_back(role_of(phase.set, coordinates_of(dag.mesh, rank)));
    phase.ranks.emplace_back(dag, phase.set.roles[phase.role_of_rank.back()], ids, rank);
    if (rank - options.first_rank < options.num_ranks) phase.runs[phase.role_of_rank.back()] = true;
  }
}

const PiperProgram* interpreted(Phase& phase, const DeviceProgram& program) {
  return &phase.interpreted.emplace_back(program, phase.set.bodies).tables();
}

void add_sources(const Phase& phase, const cuda::KernelSet& kernels, Target target,
                 const char* prefix, LocId train, std::vector<ProgramSource>& sources) {
  for (std::size_t role = 0; role < phase.set.roles.size(); ++role) {
    const DeviceProgram& program = phase.set.roles[role];
    if (!phase.runs[role]) continue;
    if (target == Target::cpu) {
      sources.push_back({prefix + program.role, emit_program(program, phase.set.bodies), train});
    } else {
      sources.push_back({std::string("cuda.") + prefix + program.role,
                         cuda::emit_enqueue(program, phase.set.bodies, kernels, phase.steps), train,
                         ProgramSort::enqueue});
    }
  }
}

/// The built program, or the interpreter of the same tables: also for roles that this process does
/// not run, and on CUDA always, because no step computes on the host.
void add_programs(Phase& phase, const cuda::KernelSet& kernels, Target target, bool generated,
                  const LoadedProgram*& loaded) {
  for (std::size_t role = 0; role < phase.set.roles.size(); ++role) {
    const DeviceProgram& program = phase.set.roles[role];
    const bool built = generated && phase.runs[role];
    phase.programs.push_back(target == Target::cpu && built ? (loaded++)->program()
                                                            : interpreted(phase, program));
    if (target == Target::cpu) continue;
    if (built) {
      phase.enqueue.push_back((loaded++)->enqueue());
    } else if (generated) {
      phase.enqueue.push_back(nullptr);
    } else {
      phase.enqueue.push_back(
          &phase.walks.emplace_back(program, phase.set.bodies, kernels, phase.steps).table());
    }
  }
}

}  // namespace

PiperActionInfo Job::Parts::place(const Context& context, LocId loc, const char* what) {
  const SourceLocation at = location_of(context.locations, loc);
  return {what, {keep(at.file), at.line, at.column, at.end_line, at.end_column}};
}

PiperData Job::Parts::data(const Context& context, const directive::Data& data, const char* what) {
  PiperData made{};
  made.kind = 1 + static_cast<std::uint32_t>(data.kind);
  made.path = keep(data.path);
  made.batch = data.batch;
  for (const auto& [name, extent] : data.extents) {
    if (context.text(name) == "seq") made.seq = extent;
  }
  made.classes = data.classes;
  made.batches = data.batches;
  made.where = place(context, data.loc, what);
  made.sampling = static_cast<std::uint32_t>(data.sampling);
  made.token_type = static_cast<std::uint32_t>(data.token_type);
  return made;
}

PiperInput Job::Parts::input(const dag::Dag& dag, tensor::InputId id) {
  const tensor::Type& type = dag.input_types[id.index()];
  PiperInput input{};
  input.name = keep(dag.context->text(dag.inputs[id.index()].name));
  input.dtype = abi_dtype(type.dtype);
  std::vector<std::int64_t>& extents = dims.emplace_back();
  for (std::size_t d = 0; d < type.dims.size(); ++d) {
    extents.push_back(type.dims[d].extent);
    if (type.dims[d].sampled) input.sample_dim = static_cast<std::uint32_t>(d);
  }
  input.num_dims = static_cast<std::uint32_t>(extents.size());
  input.dims = extents.data();
  return input;
}

void Job::Parts::describe(const dag::Dag& dag, const JobOptions& options) {
  const Context& context = *dag.context;
  const directive::Settings& settings = dag.settings;
  std::uint64_t batch = 0, tokens = 1;
  for (std::size_t i = 0; i < dag.inputs.size(); ++i) {
    const tensor::Type& type = dag.input_types[i];
    std::uint64_t per_sample = 1;
    for (const tensor::Dim& dim : type.dims) {
      if (!dim.sampled) per_sample *= static_cast<std::uint64_t>(dim.extent);
      if (dim.sampled && i == 0) batch = static_cast<std::uint64_t>(dim.extent);
    }
    // Integers are tokens and labels; features of a sample are no tokens.
    if (type.dtype == tensor::DType::i64) tokens = std::max(tokens, per_sample);
    inputs.push_back(input(dag, tensor::InputId::at(i)));
  }
  for (const tensor::Loss& loss : dag.losses) {
    losses.push_back({.name = keep(context.text(loss.name)),
                      .count = static_cast<std::uint64_t>(loss.count),
                      .masked = loss.mask ? 1u : 0u,
                      .targets = loss.mask ? loss.mask->targets.value() : 0,
                      .ignore = loss.mask ? loss.mask->ignore : 0});
  }
  job.abi_version = PIPER_ABI_VERSION;
  job.world = static_cast<std::uint32_t>(dag.mesh.devices());
  job.num_inputs = static_cast<std::uint32_t>(inputs.size());
  job.inputs = inputs.data();
  job.num_losses = static_cast<std::uint32_t>(losses.size());
  job.losses = losses.data();
  if (settings.data) job.data = data(context, *settings.data, "data");
  if (settings.held_out) job.held_out = data(context, *settings.held_out, "held_out");
  const directive::Optimizer optimizer = settings.optimizer.value_or(directive::Optimizer{});
  static_assert(dag::kMaxStateSlots == PIPER_MAX_SLOTS);
  job.train = keep(settings.train);
  job.optimizer.name = keep(directive::kOptimizerNames[static_cast<std::size_t>(optimizer.kind)]);
  job.optimizer.corrects_bias = optimizer.corrects_bias() ? 1 : 0;
  switch (optimizer.lr.kind) {
    case directive::LearningRate::Kind::constant: job.optimizer.schedule = 0; break;
    case directive::LearningRate::Kind::cosine: job.optimizer.schedule = 1; break;
    case directive::LearningRate::Kind::linear: job.optimizer.schedule = 2; break;
  }
  job.optimizer.base = optimizer.lr.base;
  job.optimizer.floor = optimizer.lr.floor;
  job.optimizer.warmup = optimizer.lr.warmup;
  job.optimizer.total = settings.steps;
  job.optimizer.beta1 = optimizer.beta1;
  job.optimizer.beta2 = optimizer.beta2;
  job.optimizer.clips = optimizer.clip ? 1 : 0;
  job.optimizer.skips = settings.skip_above ? 1 : 0;
  job.optimizer.skip_above = settings.skip_above.value_or(0);
  job.seed = settings.seed;
  job.first_step = options.first_step;
  job.steps = options.steps.value_or(
      settings.steps > options.first_step ? settings.steps - options.first_step : 0);
  if (settings.checkpoint) {
    job.checkpoint_every = settings.checkpoint->steps;
    job.checkpoint_keep = settings.checkpoint->keep;
    job.checkpoint_best = settings.checkpoint->best ? 1 : 0;
  }
  if (settings.evaluate) job.evaluate_every = settings.evaluate->steps;
  job.samples_per_step = batch;
  job.tokens_per_step = batch * tokens;
}

Job::Job(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
Job::~Job() = default;
const PiperJob& Job::tables() const { return parts_->job; }
const ProgramSet& Job::training() const { return parts_->training.set; }
const ProgramSet* Job::evaluation() const {
  return parts_->evaluation ? &parts_->evaluation->set : nullptr;
}
bool Job::generated() const { return parts_->generated; }
const PiperEnqueue* Job::enqueue(std::size_t rank, bool evaluation) const {
  const Phase& phase = evaluation ? *parts_->evaluation : parts_->training;
  return phase.enqueue[phase.role_of_rank[rank]];
}
const cuda::KernelSet& Job::kernels() const { return *parts_->kernels; }

std::unique_ptr<Job> make_job(const dag::Dag& training, const dag::Dag* evaluation,
                              const JobOptions& options, DiagnosticSink& sink) {
  auto parts = std::make_unique<Job::Parts>();
  if (options.kernels != nullptr) parts->kernels = options.kernels;
  std::uint32_t next_id = 0;
  const auto prepare = [&](const dag::Dag& dag, Phase& phase) {
    phase.set = make_programs(dag, options.target);
    for (DeviceProgram& role : phase.set.roles)
      role.hash = with_products(role.hash, options.products);
    add_rank_tables(dag, options, next_id, phase);
    if (options.target == Target::cpu) return;
    for (const KernelBody& body : phase.set.bodies)
      phase.steps.push_back(parts->kernels->add(body));
  };
  prepare(training, parts->training);
  if (evaluation != nullptr) prepare(*evaluation, parts->evaluation.emplace());

  if (options.engine == Engine::generated) {
    std::vector<ProgramSource> sources;
    add_sources(parts->training, *parts->kernels, options.target, "", training.settings.loc,
                sources);
    if (parts->evaluation)
      add_sources(*parts->evaluation, *parts->kernels, options.target, "held_out.",
                  training.settings.loc, sources);
    const Built built = build_programs(sources, options.jit, parts->loaded, sink);
    if (built == Built::failed || built == Built::stopped) return nullptr;
    parts->generated = built == Built::done;
  }
  const LoadedProgram* loaded = parts->loaded.data();
  add_programs(parts->training, *parts->kernels, options.target, parts->generated, loaded);
  if (parts->evaluation)
    add_programs(*parts->evaluation, *parts->kernels, options.target, parts->generated, loaded);

  for (std::size_t rank = 0; rank < parts->training.ranks.size(); ++rank) {
    const auto program = [&](const Phase& phase) {
      return phase.programs[phase.role_of_rank[rank]];
    };
    const RankTables& tables = parts->training.ranks[rank];
    const RankTables* evaluated = parts->evaluation ? &parts->evaluation->ranks[rank] : nullptr;
    parts->ranks.push_back(
        {.rank = static_cast<std::uint32_t>(rank),
         .program = program(parts->training),
         .evaluation = evaluated != nullptr ? program(*parts->evaluation) : nullptr,
         .communicators = tables.communicators.data(),
         .evaluation_communicators =
             evaluated != nullptr ? evaluated->communicators.data() : nullptr,
         .intervals = tables.intervals.data(),
         .evaluation_intervals = evaluated != nullptr ? evaluated->intervals.data() : nullptr});
  }
  parts->describe(training, options);
  if (const tensor::InputId weight =
          evaluation != nullptr ? dag::sample_weight(*evaluation) : tensor::InputId();
      weight.valid()) {
    parts->sample_weight = parts->input(*evaluation, weight);
    parts->job.sample_weight = &parts->sample_weight;
  }
  parts->job.num_ranks = static_cast<std::uint32_t>(parts->ranks.size());
  parts->job.ranks = parts->ranks.data();
  return std::make_unique<Job>(std::move(parts));
}

}  // namespace piper::backend
