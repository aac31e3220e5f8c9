#include "backend/decode/token_run.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "backend/dtypes.h"
#include "backend/kernel/evaluate.h"
#include "backend/kernel/kernel.h"
#include "backend/memory.h"

namespace piper::backend {
namespace {

/// The keys and values of the positions so far, for one `attend`: per batch, `positions` rows.
struct Cache {
  std::uint64_t key_bytes = 0, value_bytes = 0;  // of a position of one batch
  std::int64_t bytes = 0;                        // of all keys and values
  Memory keys, values;
  std::size_t shapes = 0;  // into State::shapes
};

/// A body with the memory of its outputs and workspace.
struct RunnableBody {
  explicit RunnableBody(const dag::Body& body) : kernels(build_kernels(body)) {
    operands.resize(body.inputs.size());
    accumulate.resize(body.outputs.size(), 0);
    for (const dag::BodyPort& port : body.outputs)
      operands.push_back(reserve(body.graph.type(port.value).bytes()));
    if (kernels.scratch_bytes > 0) operands.push_back(reserve(kernels.scratch_bytes));
  }

  void* reserve(std::int64_t bytes) { return memory.emplace_back(allocate(bytes)).get(); }
  unsigned char* output(std::size_t i) {
    return static_cast<unsigned char*>(operands[kernels.num_inputs + i]);
  }
  bool run(const PiperApi& api, PiperRank& rank) {
    return evaluate(kernels, {&api, &rank, 0, operands, accumulate, {}}) == 0;
  }

  KernelBody kernels;
  std::vector<void*> operands;
  std::vector<std::uint8_t> accumulate;
  std::vector<Memory> memory;
};

}  // namespace

struct TokenRun::State {
  const dag::TokenProgram& program;
  TokenHost host;
  PiperRank rank{}, host_rank{};
  PiperApi api{};
  RunnableBody tables, token;
  bool has_tables = false;   // they have run
  bool caches_keys = false;  // the step runs
  std::int64_t position = 0;
  std::vector<Cache> caches;
  // Per `attend` of the step, in the order of its calls: a cache, or -1.
  std::vector<int> cache_of_call;
  std::size_t attend_call = 0;  // the next one
  // Per distinct shape of a cached call, those over 1, 2, ... keys. Each has a number of its own.
  std::vector<std::vector<PiperCallShape>> shapes;
  Memory workspace;
  std::uint64_t workspace_bytes = 0;
  std::vector<double> logits;

  State(const dag::TokenProgram& program_in, TokenHost host_in)
      : program(program_in),
        host(std::move(host_in)),
        tables(program.tables),
        token(program.step),
        logits(static_cast<std::size_t>(program.classes)) {
    rank.runtime = this;
    host_rank.runtime = host.runtime;
    api.abi_version = PIPER_ABI_VERSION;
    api.fail = fail;
    api.call = call;
    make_caches();
    for (std::size_t i = 0; i < program.tables.inputs.size(); ++i)
      tables.operands[i] = parameter(program.tables.inputs[i].param);
    bind_inputs();
  }

  /// Inputs are never written.
  void* parameter(tensor::ParamId param) const { return const_cast<void*>(host.parameter(param)); }

  void make_caches() {
    std::vector<PiperCallShape> known;
    number_shapes(tables.kernels, known);
    number_shapes(token.kernels, known);
    auto next_number = static_cast<std::uint32_t>(known.size());
    std::vector<std::size_t> shapes_of(known.size(), SIZE_MAX);
    for (const KernelStep& step : token.kernels.steps) {
      const auto* library = std::get_if<LibraryCall>(&step);
      if (library == nullptr || library->shape.kind != PIPER_CALL_ATTEND) continue;
      const tensor::Graph& graph = program.step.graph;
      const bool cached =
          std::any_of(program.cached.begin(), program.cached.end(),
                      [&](Symbol name) { return graph.context().text(name) == library->value; });
      cache_of_call.push_back(cached ? static_cast<int>(caches.size()) : -1);
      if (!cached) continue;
      std::size_t& of_shape = shapes_of[library->shape.number];
      if (of_shape == SIZE_MAX) of_shape = add_shapes(library->shape, next_number);
      add_cache(library->shape.of.attend, of_shape);
    }
  }

  std::size_t add_shapes(PiperCallShape shape, std::uint32_t& next_number) {
    std::vector<PiperCallShape>& list = shapes.emplace_back();
    for (std::int64_t keys = 1; keys <= program.positions; ++keys) {
      shape.number = next_number++;
      shape.of.attend = over(shape.of.attend, keys);
      list.push_back(shape);
    }
    return shapes.size() - 1;
  }

  void add_cache(const PiperAttend& shape, std::size_t shapes_of_cache) {
    const std::uint64_t element = tensor::dtype_bytes(row_of(shape.dtype).dtype);
    Cache& cache = caches.emplace_back();
    cache.shapes = shapes_of_cache;
    cache.key_bytes = static_cast<std::uint64_t>(shape.kv_heads * shape.width) * element;
    cache.value_bytes = static_cast<std::uint64_t>(shape.kv_heads * shape.value_width) * element;
    const auto rows = static_cast<std::uint64_t>(shape.batch * program.positions);
    cache.bytes = static_cast<std::int64_t>(rows * (cache.key_bytes + cache.value_bytes));
    cache.keys = allocate(static_cast<std::int64_t>(rows * cache.key_bytes));
    cache.values = allocate(static_cast<std::int64_t>(rows * cache.value_bytes));
    const PiperAttend largest = over(shape, program.positions);
    workspace_bytes = std::max(workspace_bytes, piper_attend_workspace(&largest));
    workspace = allocate(static_cast<std::int64_t>(workspace_bytes));
  }

  /// The call of one batch over the first keys of its cache.
  static PiperAttend over(PiperAttend shape, std::int64_t keys) {
    shape.batch = 1;
    shape.keys = keys;
    return shape;
  }

  /// The token, whole values, and memory for the rows of others.
  void bind_inputs() {
    token.operands[0] = token.reserve(sizeof(std::int64_t));
    for (std::size_t i = 0; i < program.sources.size(); ++i) {
      const tensor::Type& type = input_type(i);
      token.operands[i + 1] = program.sources[i].row_elements == 0 ? source(program.sources[i])
                                                                   : token.reserve(type.bytes());
    }
  }
  const tensor::Type& input_type(std::size_t source) const {
    return program.step.graph.type(program.step.inputs[source + 1].value);
  }
  void* source(const dag::TokenProgram::Source& source) {
    return source.param.valid() ? parameter(source.param) : tables.output(source.table);
  }

  void read_rows() {
    for (std::size_t i = 0; i < program.sources.size(); ++i) {
      const dag::TokenProgram::Source& source = program.sources[i];
      if (source.row_elements == 0) continue;
      const std::size_t row =
          static_cast<std::size_t>(source.row_elements) * tensor::dtype_bytes(input_type(i).dtype);
      const auto* from = static_cast<const unsigned char*>(this->source(source));
      auto* to = static_cast<unsigned char*>(token.operands[i + 1]);
      for (std::int64_t b = 0; b < source.blocks; ++b)
        std::memcpy(to + static_cast<std::size_t>(b) * row,
                    from + static_cast<std::size_t>(b * program.positions + position) * row, row);
    }
  }

  static State& of(PiperRank* rank) { return *static_cast<State*>(rank->runtime); }
  static int fail(PiperRank* rank, std::uint32_t action, const PiperSourceLocation* where,
                  const char* message, std::int64_t value) {
    State& state = of(rank);
    return state.host.api->fail(&state.host_rank, action, where, message, value);
  }
  static int call(PiperRank* rank, std::uint32_t action, const PiperCall* request) {
    State& state = of(rank);
    if (state.caches_keys && request->shape->kind == PIPER_CALL_ATTEND) {
      const int cache = state.cache_of_call[state.attend_call++];
      if (cache >= 0)
        return state.attend_over(state.caches[static_cast<std::size_t>(cache)], action, *request);
    }
    return state.host.api->call(&state.host_rank, action, request);
  }

  int attend_over(Cache& cache, std::uint32_t action, const PiperCall& request) {
    const PiperAttend& shape = request.shape->of.attend;
    const PiperCallShape& grown = shapes[cache.shapes][static_cast<std::size_t>(position)];
    const std::uint64_t element = tensor::dtype_bytes(row_of(shape.dtype).dtype);
    const auto heads = static_cast<std::uint64_t>(shape.heads);
    const std::uint64_t q_bytes = heads * static_cast<std::uint64_t>(shape.width) * element,
                        out_bytes = heads * static_cast<std::uint64_t>(shape.value_width) * element,
                        lse_bytes = heads * piper_wide_bytes(shape.dtype);
    const auto at = [](const void* memory, std::uint64_t bytes) {
      return static_cast<const unsigned char*>(memory) + bytes;
    };
    for (std::uint64_t b = 0; b < static_cast<std::uint64_t>(shape.batch); ++b) {
      const std::uint64_t first = b * static_cast<std::uint64_t>(program.positions);
      unsigned char* const keys = cache.keys.get() + first * cache.key_bytes;
      unsigned char* const values = cache.values.get() + first * cache.value_bytes;
      const auto row = static_cast<std::uint64_t>(position);
      std::memcpy(keys + row * cache.key_bytes, at(request.in[1], b * cache.key_bytes),
                  cache.key_bytes);
      std::memcpy(values + row * cache.value_bytes, at(request.in[2], b * cache.value_bytes),
                  cache.value_bytes);
      const void* const in[] = {at(request.in[0], b * q_bytes), keys, values};
      void* const out[] = {static_cast<unsigned char*>(request.out[0]) + b * out_bytes,
                           static_cast<unsigned char*>(request.out[1]) + b * lse_bytes};
      const PiperCall one = {.shape = &grown,
                             .in = in,
                             .out = out,
                             .workspace = workspace.get(),
                             .workspace_bytes = workspace_bytes,
                             .end = PIPER_END_WRITES};
      const int failed = host.api->call(&host_rank, action, &one);
      if (failed != 0) return failed;
    }
    return 0;
  }

  bool step(std::int64_t id) {
    if (!std::exchange(has_tables, true) && !tables.run(api, rank)) return false;
    std::memcpy(token.operands[0], &id, sizeof id);
    read_rows();
    attend_call = 0;
    caches_keys = true;
    const bool ran = token.run(api, rank);
    caches_keys = false;
    if (!ran) return false;
    const tensor::DType dtype = program.step.graph.type(program.step.outputs.front().value).dtype;
    for (std::size_t i = 0; i < logits.size(); ++i)
      logits[i] = element_as_double(token.output(0), dtype, static_cast<std::int64_t>(i));
    ++position;
    return true;
  }
};

TokenRun::TokenRun(const dag::TokenProgram& program, TokenHost host)
    : state_(std::make_unique<State>(program, std::move(host))) {}
TokenRun::~TokenRun() = default;

std::int64_t TokenRun::position() const { return state_->position; }
bool TokenRun::step(std::int64_t token) { return state_->step(token); }
std::span<const double> TokenRun::logits() const { return state_->logits; }

std::int64_t TokenRun::cache_bytes() const {
  std::int64_t bytes = 0;
  for (const Cache& cache : state_->caches) bytes += cache.bytes;
  return bytes;
}

}  // namespace piper::backend
