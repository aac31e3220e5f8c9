// Everything that a run needs is made here, before the first step: nothing is allocated or looked
// up by name later.
#include <algorithm>
#include <map>
#include <string>

#include "runtime/alignment.h"
#include "runtime/cuda/gpu.h"
#include "runtime/device/state.h"
#include "runtime/dtypes.h"

namespace piper::runtime::cuda {

namespace {

constexpr std::uint64_t kLine = 64;

class SetUp {
 public:
  SetUp(Gpu& gpu, const GpuPrograms& programs)
      : gpu_(gpu), driver_(*gpu.driver), programs_(programs) {}

  std::optional<Failure> run(const std::string& out_folder) {
    if (!load_kernels() || !host_memory(Gpu::kBounceBytes, gpu_.bounce) ||
        !gpu_.done(driver_.create_event(&gpu_.transferred), "cuEventCreate"))
      return gpu_.failure;
    for (std::uint32_t r = 0; r < gpu_.job.num_ranks; ++r) {
      GpuRank& rank = *gpu_.ranks.emplace_back(std::make_unique<GpuRank>());
      rank.gpu = &gpu_;
      rank.index = r;
      rank.job = &gpu_.job.ranks[r];
      if (auto failure = rank.flight.open(flight_path(out_folder, rank.job->rank), rank.job->rank))
        return failure;
      rank.reports.prepare(gpu_.job);
      for (const Phase phase : {Phase::training, Phase::evaluation}) {
        if (auto failure = bind(rank, phase)) return failure;
      }
      lay_out(rank);
    }
    if (auto failure = open_attention()) return failure;
    if (auto failure = fits()) return failure;
    for (const auto& rank : gpu_.ranks) {
      if (!allocate(*rank)) return gpu_.failure;
    }
    if (!plan_products()) return gpu_.failure;
    for (const auto& rank : gpu_.ranks) {
      if (!first_values(*rank)) return gpu_.failure;
    }
    if (auto failure = gpu_.exchange->connect(Phase::training)) return failure;
    return gpu_.job.ranks[0].evaluation != nullptr ? gpu_.exchange->connect(Phase::evaluation)
                                                   : std::nullopt;
  }

 private:
  bool host_memory(std::uint64_t bytes, unsigned char*& to) {
    return gpu_.done(driver_.allocate_host(bytes, &to), "cuMemHostAlloc");
  }
  bool device_memory(std::uint64_t bytes, unsigned char*& to, const GpuRank& rank) {
    return gpu_.done(driver_.allocate(std::max(bytes, kLine), &to), "cuMemAlloc", &rank);
  }

  // ---- kernels

  bool load_kernels() {
    for (const std::string& image : programs_.images) {
      Module module = nullptr;
      if (!gpu_.done(driver_.load(image, &module), "cuModuleLoadData")) return false;
      modules_.push_back(module);
    }
    OwnKernels& own = gpu_.kernels;
    if (!find("piper_check", own.check) || !find("piper_count", own.count) ||
        !find("piper_advance", own.advance) || !find("piper_move", own.move))
      return false;
    for (std::uint32_t dtype = 0; dtype_name(dtype) != nullptr; ++dtype) {
      const std::string suffix = std::string("_") + dtype_name(dtype);
      if (!find("piper_initialise" + suffix, own.initialise[dtype]) ||
          !find("piper_sum" + suffix, own.sums[dtype]))
        return false;
      if (!is_floating(dtype)) continue;
      if (!find("piper_attend" + suffix, own.attend[dtype]) ||
          !find("piper_attend_dq" + suffix, own.attend_dq[dtype]) ||
          !find("piper_attend_dkv" + suffix, own.attend_dkv[dtype]))
        return false;
    }
    return true;
  }

  bool find(const std::string& name, Function& function) {
    const auto known = functions_.find(name);
    if (known != functions_.end()) {
      function = known->second;
      return true;
    }
    Status status = kNotReady;
    for (const Module module : modules_) {
      status = driver_.find(module, name.c_str(), &function);
      if (status != kSuccess) continue;
      functions_[name] = function;
      return true;
    }
    gpu_.failure = Failure{.code = kCudaCallFailed,
                           .message = "`cuModuleGetFunction` does not find the kernel `" + name +
                                      "`: " + driver_.text_of(status)};
    return false;
  }

  // ---- programs

  std::optional<Failure> bind(GpuRank& rank, Phase phase) {
    const auto p = static_cast<std::size_t>(phase);
    const bool evaluation = phase == Phase::evaluation;
    PiperRank& active = rank.ranks[p];
    active = in_phase(*rank.job, phase);
    if (active.program == nullptr) return std::nullopt;
    active.seed = gpu_.job.seed;
    active.flight = rank.flight.record();
    active.runtime = &rank;
    GpuProgram& program = rank.programs[p];
    program.role = (evaluation ? programs_.evaluation : programs_.training)[rank.index];
    auto scanned = std::make_unique<RoleScan>();
    if (auto failure = scan_role(*program.role, gpu_.job, *rank.job, evaluation, *scanned))
      return failure;
    program.loads = scanned->loads;
    std::unique_ptr<RoleScan>& scan = scans_[{program.role, p}];
    if (!scan) scan = std::move(scanned);
    program.scan = scan.get();
    for (std::uint32_t k = 0; k < program.role->num_kernels; ++k) {
      if (!find(program.role->kernels[k].name, program.functions.emplace_back()))
        return gpu_.failure;
    }
    rank.arena_bytes = std::max(rank.arena_bytes, active.program->arena_bytes);
    rank.host_bytes = std::max(rank.host_bytes, active.program->host_bytes);
    return std::nullopt;
  }

  // ---- memory

  /// The room for all arenas together, checked before any is allocated, so that a lack is reported
  /// at once.
  std::optional<Failure> fits() {
    std::uint64_t needed = 0, carried = 0, free = 0;
    for (const auto& rank : gpu_.ranks) {
      needed += rank->arena_bytes;
      carried += rank->staged_loads;
    }
    if (!gpu_.done(driver_.free_bytes(&free), "cuMemGetInfo")) return gpu_.failure;
    const std::uint64_t libraries = driver_.library_bytes() + gpu_.exchange->library_bytes();
    if (needed + carried + libraries <= free) return std::nullopt;
    const std::string taken =
        libraries > 0 ? ", of which libraries take about `" + std::to_string(libraries) + "`" : "";
    const std::string ranks =
        gpu_.ranks.size() == 1 ? "one arena" : std::to_string(gpu_.ranks.size()) + " arenas";
    return Failure{
        .code = kCudaOutOfMemory,
        .message = ranks + " of `" + std::to_string(needed) + "` bytes in all do not fit on " +
                   gpu_.driver->device_name() + ", which has `" + std::to_string(free) + "` free" +
                   taken,
        .hint =
            std::string(gpu_.job.world > 1 && gpu_.job.num_ranks > 1
                            ? "all ranks run on one GPU here; "
                            : "") +
            "smaller microbatches need less, and `piper show memory` lists the memory of each rank"};
  }

  static std::size_t num_streams(const GpuRank& rank) {
    std::size_t streams = 0;
    for (const PiperRank& active : rank.ranks) {
      if (active.program != nullptr)
        streams = std::max<std::size_t>(streams, active.program->num_streams);
    }
    return streams;
  }

  /// A step's part of host memory: the larger of the two programs.
  static void lay_out(GpuRank& rank) {
    std::uint64_t carried = 0, loads = 0, reports = 0;
    std::size_t checks = 0;
    for (const GpuProgram& program : rank.programs) {
      if (program.scan == nullptr) continue;
      carried = std::max(carried, program.scan->carried_bytes);
      loads = std::max(loads, program.scan->load_bytes);
      reports = std::max(reports, program.scan->report_bytes);
      checks = std::max(checks, program.scan->checks.size());
    }
    rank.staged_loads = GpuRank::kStagedCarried + carried;
    rank.staged_reports = rank.staged_loads + loads;
    rank.staged_findings = rank.staged_reports + reports;
    rank.staged_step = aligned(rank.staged_findings + checks * sizeof(Finding));
  }

  bool allocate(GpuRank& rank) {
    if (!device_memory(rank.arena_bytes, rank.arena, rank) ||
        !device_memory(rank.staged_loads, rank.carried, rank))
      return false;
    if (!host_memory(kStepsInFlight * rank.staged_step, rank.staging)) return false;
    if (rank.host_bytes > 0 && !host_memory(rank.host_bytes, rank.host)) return false;
    for (PiperRank& active : rank.ranks) {
      active.arena = rank.arena;
      active.host = rank.host;
    }
    rank.device = device_of(rank);
    return make_streams(rank, num_streams(rank)) && make_events(rank);
  }

  bool make_streams(GpuRank& rank, std::size_t count) {
    unsigned char *words = nullptr, *ended = nullptr;
    if (!host_memory(2 * count * kLine, words) || !device_memory(count * kLine, ended, rank))
      return false;
    for (std::size_t q = 0; q < count; ++q) {
      GpuStream& stream = rank.streams.emplace_back();
      stream.progress = reinterpret_cast<std::uint32_t*>(words + 2 * q * kLine);
      stream.graph_progress = reinterpret_cast<std::uint32_t*>(words + (2 * q + 1) * kLine);
      stream.graph_ended = ended + q * kLine;
      if (!gpu_.done(driver_.create_stream(priority_of(rank, q), &stream.cuda_stream),
                     "cuStreamCreateWithPriority", &rank) ||
          !gpu_.done(driver_.create_event(&stream.ready), "cuEventCreate", &rank) ||
          // On the stream itself, which alone counts there.
          !gpu_.done(driver_.fill(stream.cuda_stream, stream.graph_ended, 0, kLine),
                     "cuMemsetD8Async", &rank))
        return false;
    }
    for (Event& event : rank.step_ends) {
      if (!gpu_.done(driver_.create_event(&event), "cuEventCreate", &rank)) return false;
    }
    return true;
  }

  /// Communication has priority on the device: others wait for it.
  static Priority priority_of(const GpuRank& rank, std::size_t stream) {
    if (stream == 0) return Priority::compute;
    const bool high =
        std::any_of(std::begin(rank.ranks), std::end(rank.ranks), [&](const PiperRank& of) {
          return of.program != nullptr && stream < of.program->num_streams &&
                 of.program->streams[stream].high_priority != 0;
        });
    return high ? Priority::high : Priority::communication;
  }

  bool make_events(GpuRank& rank) {
    for (GpuProgram& program : rank.programs) {
      if (program.scan == nullptr) continue;
      for (const std::vector<std::uint8_t>& awaited : program.scan->awaited) {
        std::vector<Event>& ends = program.ends.emplace_back(kEndSlots * awaited.size(), nullptr);
        program.recorded.emplace_back(kEndSlots * awaited.size(), 0);
        program.signalled_with.emplace_back(awaited.size(), 0);
        for (std::size_t at = 0; at < ends.size(); ++at) {
          if (awaited[at / kEndSlots] != 0 &&
              !gpu_.done(driver_.create_event(&ends[at]), "cuEventCreate", &rank))
            return false;
        }
      }
    }
    return true;
  }

  bool plan_products() {
    std::vector<std::pair<const ScannedCall*, PlannedCall>> planned;
    for (const auto& rank : gpu_.ranks) {
      for (GpuProgram& program : rank->programs) {
        if (program.scan == nullptr) continue;
        program.planned.resize(std::size_t{program.role->num_shapes} * PIPER_CALL_ENDS);
        for (const ScannedCall& product : program.scan->products) {
          const auto known = std::find_if(planned.begin(), planned.end(), [&](const auto& other) {
            return other.first->end == product.end &&
                   piper_same_shape(&other.first->shape, &product.shape);
          });
          PlannedCall& made = program.planned[planned_at(product.shape, product.end)];
          if (known != planned.end()) {
            made = known->second;
            continue;
          }
          if (!gpu_.done(driver_.plan_call(product.shape, product.end,
                                           product.workspace - PIPER_WORKSPACE_ALIGNMENT, &made),
                         "cublasLtMatmulAlgoGetHeuristic"))
            return false;
          planned.emplace_back(&product, made);
        }
      }
    }
    return true;
  }

  /// Called before anything is allocated, so that a missing library is reported first.
  std::optional<Failure> open_attention() {
    if (std::none_of(scans_.begin(), scans_.end(),
                     [](const auto& each) { return each.second->torch_attention; }))
      return std::nullopt;
    if (driver_.processors() > PIPER_MOST_PROCESSORS &&
        std::any_of(scans_.begin(), scans_.end(),
                    [](const auto& each) { return each.second->flash_attention; })) {
      return Failure{
          .code = kCudaMissing,
          .message =
              driver_.device_name() + " has `" + std::to_string(driver_.processors()) +
              "` multiprocessors, and workspaces of flash attention are planned for GPUs of up to `" +
              std::to_string(PIPER_MOST_PROCESSORS) + "`",
          .hint =
              "`PIPER_CUDA_ATTENTION=builtin` plans for kernels of piper, slow for long sequences"};
    }
    std::string reason;
    if (driver_.open_attention(gpu_.options.cuda_deterministic, reason)) return std::nullopt;
    return Failure{
        .code = kCudaMissing,
        .message = "LibTorch for CUDA, whose attention the program uses, is not here: " + reason,
        .hint =
            "`piper doctor` says what to install; `PIPER_CUDA_ATTENTION=builtin` plans for kernels of piper, slow for long sequences"};
  }

  /// Computed on the device: the state of a large model is mostly zeros, and would take a host and
  /// its bus many seconds.
  bool first_values(GpuRank& rank) {
    const PiperProgram& program = *rank.job->program;
    if (gpu_.options.check_memory && !poison(rank)) return false;
    const CudaStream cuda_stream = rank.streams.front().cuda_stream;
    if (!gpu_.done(driver_.fill(cuda_stream, rank.arena, 0, program.state_bytes), "cuMemsetD8Async",
                   &rank))
      return false;
    for (const FirstValues& values : first_values_of(program, rank.job->intervals)) {
      if (gpu_.first_values && !put(rank, cuda_stream, values)) return false;
    }
    // Any stream may read them first.
    return gpu_.done(driver_.record(gpu_.transferred, cuda_stream), "cuEventRecord", &rank) &&
           gpu_.wait_for(gpu_.transferred);
  }

  bool put(GpuRank& rank, CudaStream cuda_stream, const FirstValues& values) {
    const std::uint64_t elements = values.elements.end - values.elements.first;
    if (elements == 0) return true;
    constexpr std::uint64_t kThreads = 256, kMaxBlocks = 4096;
    const std::uint64_t blocks = std::min((elements + kThreads - 1) / kThreads, kMaxBlocks),
                        stride = blocks * kThreads;
    const piper_random_key key = first_values_key(*values.param, gpu_.job.seed);
    unsigned char* const to = (values.on_host ? rank.host : rank.arena) + values.offset +
                              values.elements.at * element_bytes(values.dtype);
    const void* const arguments[] = {
        &key, &values.param->init, &values.param->scale, &values.elements.first, &elements, &stride,
        &to};
    return gpu_.done(driver_.launch(cuda_stream, gpu_.kernels.initialise.at(values.dtype), blocks,
                                    kThreads, arguments),
                     "cuLaunchKernel", &rank);
  }

  /// All ones are NaN: a read of unwritten memory shows.
  bool poison(GpuRank& rank) {
    return gpu_.done(
        driver_.fill(rank.streams.front().cuda_stream, rank.arena, 0xFF, rank.arena_bytes),
        "cuMemsetD8Async", &rank);
  }

  Gpu& gpu_;
  Driver& driver_;
  const GpuPrograms& programs_;
  std::vector<Module> modules_;
  std::map<std::string, Function> functions_;
  std::map<std::pair<const PiperEnqueue*, std::size_t>, std::unique_ptr<RoleScan>>& scans_ =
      gpu_.scans;
};

}  // namespace

std::optional<Failure> set_up(Gpu& gpu, const GpuPrograms& programs,
                              const std::string& out_folder) {
  return SetUp(gpu, programs).run(out_folder);
}

}  // namespace piper::runtime::cuda
