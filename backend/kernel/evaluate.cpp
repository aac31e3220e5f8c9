#include "backend/kernel/evaluate.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <memory>

#include "backend/dtypes.h"
#include "backend/kernel/machine.h"
#include "llvm/Support/ErrorHandling.h"

namespace piper::backend {

using tensor::DType;

unsigned char* Machine::memory(BufferIndex index) const {
  const KernelBuffer& buffer = body_.buffers[index];
  std::size_t operand = buffer.port;
  if (buffer.storage == KernelBuffer::Storage::output) operand += body_.num_inputs;
  if (buffer.storage == KernelBuffer::Storage::scratch) {
    return static_cast<unsigned char*>(call_.operands[body_.num_inputs + body_.num_outputs]) +
           buffer.offset;
  }
  return static_cast<unsigned char*>(call_.operands[operand]);
}

int Machine::library(const LibraryCall& call) {
  if (call.end == PIPER_END_ROUNDS) return rounded_product(call);
  const void* in[PIPER_MAX_CALL_OPERANDS];
  void* out[PIPER_MAX_CALL_RESULTS];
  for (std::size_t i = 0; i < call.operands.size(); ++i) in[i] = memory(call.operands[i]);
  for (std::size_t i = 0; i < call.results.size(); ++i) out[i] = memory(call.results[i]);
  PiperCall request{.shape = &call.shape,
                    .in = in,
                    .out = out,
                    .workspace = nullptr,
                    .workspace_bytes = 0,
                    .end = call.end};
  std::unique_ptr<unsigned char[]> own;
  switch (static_cast<PiperCallKind>(call.shape.kind)) {
    case PIPER_CALL_GEMM:
      if (adds(call.results[0])) request.end = PIPER_END_ADDS;
      break;
    case PIPER_CALL_ATTEND:
    case PIPER_CALL_ATTEND_GRAD:
      // Bodies for a GPU have a workspace for its libraries, which CPU calls do not use.
      request.workspace_bytes = piper_attend_workspace(&call.shape.of.attend);
      if (call.workspace_bytes < request.workspace_bytes)
        own.reset(new unsigned char[request.workspace_bytes]);
      request.workspace = own ? own.get() : memory(call.workspace);
      break;
  }
  return call_.api->call(call_.rank, call_.action, &request);
}

/// CPU libraries do not round, so their sums go to a buffer beside the result first.
int Machine::rounded_product(const LibraryCall& call) {
  const auto elements = static_cast<std::size_t>(body_.buffers[call.results[0]].elements);
  const std::unique_ptr<float[]> sums(new float[elements]);
  const void* const in[] = {memory(call.operands[0]), memory(call.operands[1])};
  void* const out[] = {sums.get()};
  const PiperCall request{.shape = &call.shape,
                          .in = in,
                          .out = out,
                          .workspace = nullptr,
                          .workspace_bytes = 0,
                          .end = PIPER_END_WRITES};
  if (const int failed = call_.api->call(call_.rank, call_.action, &request)) return failed;
  auto* const to = reinterpret_cast<piper_bf16*>(memory(call.results[0]));
  for (std::size_t i = 0; i < elements; ++i) to[i] = sums[i];
  return 0;
}

int Machine::check(const Kernel& kernel) {
  for (const RangeCheck& check : kernel.checks) {
    const auto* values = reinterpret_cast<const std::int64_t*>(memory(check.buffer));
    for (std::int64_t i = 0; i < body_.buffers[check.buffer].elements; ++i) {
      if ((values[i] >= 0 && values[i] < check.bound) ||
          (check.ignore && values[i] == *check.ignore))
        continue;
      const PiperSourceLocation where = check.where.abi();
      return call_.api->fail(call_.rank, call_.action, &where,
                             check.target ? kTargetOutOfRange : kIndexOutOfRange, values[i]);
    }
  }
  return 0;
}

void Machine::clear(const Kernel& kernel) {
  for (const Statement& s : kernel.statements) {
    if (s.code != Code::store_add || kernel.form == Form::join || adds(s.access.buffer)) continue;
    const KernelBuffer& buffer = body_.buffers[s.access.buffer];
    std::memset(memory(s.access.buffer), 0,
                static_cast<std::size_t>(buffer.elements) * tensor::dtype_bytes(buffer.dtype));
  }
}

template <typename Stored>
void Machine::load(const Statement& s, Register& r, std::int64_t n) {
  using T = Wide<Stored>;
  const auto* from =
      reinterpret_cast<const Stored*>(memory(s.access.buffer)) + walk(s.access.strides);
  T* to = reinterpret_cast<T*>(r.lane_bytes);
  const bool index_in_columns =
      s.access.index >= 0 &&
      !gives_row_value(kernel_->statements[static_cast<std::size_t>(s.access.index)]);
  const std::int64_t stride = s.row ? 0 : s.access.strides.back();
  if (const Guard& guard = s.access.guard; !guard.strides.empty()) {
    const T* otherwise = s.operands[0] >= 0 ? get<T>(s.operands[0]) : nullptr;
    const std::int64_t at = walk(guard.strides), step = s.row ? 0 : guard.strides.back();
    for (std::int64_t i = 0; i < n; ++i) {
      const bool inside = at + i * step >= guard.first && at + i * step < guard.end;
      to[i] = inside                 ? static_cast<T>(from[s.access.offset + i * stride])
              : otherwise != nullptr ? otherwise[i]
                                     : T(0);
    }
    return;
  }
  from += s.access.offset;
  if (index_in_columns) {
    const std::int64_t* index = get<std::int64_t>(s.access.index);
    for (std::int64_t i = 0; i < n; ++i)
      to[i] = from[i * stride + index[i] * s.access.index_stride];
    return;
  }
  if (s.access.index >= 0) from += *get<std::int64_t>(s.access.index) * s.access.index_stride;
  if (stride == 1 && std::is_same_v<T, Stored>) {
    std::memcpy(to, from, static_cast<std::size_t>(n) * sizeof(T));
  } else {
    for (std::int64_t i = 0; i < n; ++i) to[i] = from[i * stride];
  }
}

template <typename Stored>
void Machine::store(const Statement& s, std::int64_t n) {
  using T = Wide<Stored>;
  auto* to = reinterpret_cast<Stored*>(memory(s.access.buffer)) + walk(s.access.strides);
  const T* from = get<T>(s.operands[0]);
  const auto add = [](Stored& sum, T summand) { sum = sum + summand; };
  const std::int64_t stride = s.row ? 0 : s.access.strides.back();
  if (s.code == Code::store_add && s.access.index >= 0) {
    const bool in_columns =
        !gives_row_value(kernel_->statements[static_cast<std::size_t>(s.access.index)]);
    const std::int64_t* index = get<std::int64_t>(s.access.index);
    for (std::int64_t i = 0; i < n; ++i)
      add(to[i * stride + index[in_columns ? i : 0] * s.access.index_stride], from[i]);
  } else if (s.code == Code::store_add || adds(s.access.buffer)) {
    for (std::int64_t i = 0; i < n; ++i) add(to[i * stride], from[i]);
  } else if (stride == 1 && std::is_same_v<T, Stored>) {
    std::memcpy(to, from, static_cast<std::size_t>(n) * sizeof(T));
  } else {
    for (std::int64_t i = 0; i < n; ++i) to[i * stride] = from[i];
  }
}

template <typename T>
void Machine::dropout(const Statement& s, Register& r, std::int64_t n) {
  const T* x = get<T>(s.operands[0]);
  T* to = reinterpret_cast<T*>(r.lane_bytes);
  const std::int64_t element = walk(s.element_strides), sample = walk(s.sample_strides);
  const std::uint64_t first =
      s.interval < 0 ? 0 : call_.firsts[static_cast<std::size_t>(s.interval)];
  for (std::int64_t i = 0; i < n; ++i) {
    const auto key = piper_stream_key(
        call_.rank->seed, PIPER_RANDOM_DROPOUT, call_.rank->global_step,
        first + static_cast<std::uint64_t>(sample + i * s.sample_strides.back()), s.key);
    to[i] = piper_dropout(x[i], s.scalar, key,
                          static_cast<std::uint64_t>(element + i * s.element_strides.back()));
  }
}

void Machine::compute_briefly(const Statement& s, Register& r, std::int64_t n) {
  const float* a = get<float>(s.operands[0]);
  const float* b = s.operands[1] >= 0 ? get<float>(s.operands[1]) : nullptr;
  float* to = reinterpret_cast<float*>(r.lane_bytes);
  const auto each = [&](auto f) {
    for (std::int64_t i = 0; i < n; ++i) to[i] = f(i);
  };
  switch (s.code) {
    case Code::exp: return each([&](std::int64_t i) { return piper_bf16_exp(a[i]); });
    case Code::tanh: return each([&](std::int64_t i) { return piper_bf16_tanh(a[i]); });
    case Code::sigmoid: return each([&](std::int64_t i) { return piper_bf16_sigmoid(a[i]); });
    case Code::softplus: return each([&](std::int64_t i) { return piper_bf16_softplus(a[i]); });
    case Code::gelu: return each([&](std::int64_t i) { return piper_bf16_gelu(a[i]); });
    case Code::silu: return each([&](std::int64_t i) { return piper_bf16_silu(a[i]); });
    case Code::gelu_grad:
      return each([&](std::int64_t i) { return piper_bf16_gelu_grad(a[i], b[i]); });
    case Code::silu_grad:
      return each([&](std::int64_t i) { return piper_bf16_silu_grad(a[i], b[i]); });
    default: llvm_unreachable("no function with a short form");
  }
}

template <typename T>
void Machine::compute(const Statement& s, Register& r, std::int64_t n) {
  if (s.brief) return compute_briefly(s, r, n);
  T* to = reinterpret_cast<T*>(r.lane_bytes);
  const auto unary = [&](auto f) {
    const T* a = get<T>(s.operands[0]);
    for (std::int64_t i = 0; i < n; ++i) to[i] = f(a[i]);
  };
  const auto binary = [&](auto f) {
    const T* a = get<T>(s.operands[0]);
    const T* b = get<T>(s.operands[1]);
    for (std::int64_t i = 0; i < n; ++i) to[i] = f(a[i], b[i]);
  };
  const auto select = [&](auto f) {
    const T* a = get<T>(s.operands[0]);
    const T* b = get<T>(s.operands[1]);
    const T* x = get<T>(s.operands[2]);
    for (std::int64_t i = 0; i < n; ++i) to[i] = f(a[i], b[i]) ? x[i] : T(0);
  };
  switch (s.code) {
    case Code::constant: std::fill_n(to, n, static_cast<T>(s.scalar)); return;
    case Code::position: {
      const std::int64_t at = walk(s.access.strides), step = s.row ? 0 : s.access.strides.back();
      for (std::int64_t i = 0; i < n; ++i) to[i] = static_cast<T>(at + i * step);
      return;
    }
    case Code::piecewise: {
      const std::int64_t at =
          walk(s.access.strides) +
          (s.interval < 0
               ? 0
               : static_cast<std::int64_t>(call_.firsts[static_cast<std::size_t>(s.interval)]));
      const std::int64_t step = s.row ? 0 : s.access.strides.back();
      const auto pieces = static_cast<int>(s.pieces.ends.size());
      for (std::int64_t i = 0; i < n; ++i) {
        const int piece = piper_bisect(s.pieces.ends.data(), pieces, at + i * step);
        to[i] = static_cast<T>(s.pieces.numbers[static_cast<std::size_t>(piece)]);
      }
      return;
    }
    case Code::add: return binary([](T a, T b) { return a + b; });
    case Code::sub: return binary([](T a, T b) { return a - b; });
    case Code::mul: return binary([](T a, T b) { return a * b; });
    case Code::div: return binary([](T a, T b) { return a / b; });
    case Code::maximum: return binary([](T a, T b) { return piper_max(a, b); });
    case Code::minimum: return binary([](T a, T b) { return piper_min(a, b); });
    case Code::neg: return unary([](T a) { return -a; });
    case Code::exp: return unary([](T a) { return piper_exp(a); });
    case Code::log: return unary([](T a) { return piper_log(a); });
    case Code::sqrt: return unary([](T a) { return piper_sqrt(a); });
    case Code::rsqrt: return unary([](T a) { return piper_rsqrt(a); });
    case Code::square: return unary([](T a) { return a * a; });
    case Code::sin: return unary([](T a) { return piper_sin(a); });
    case Code::cos: return unary([](T a) { return piper_cos(a); });
    case Code::tanh: return unary([](T a) { return piper_tanh(a); });
    case Code::sigmoid: return unary([](T a) { return piper_sigmoid(a); });
    case Code::softplus: return unary([](T a) { return piper_softplus(a); });
    case Code::relu: return unary([](T a) { return piper_relu(a); });
    case Code::gelu: return unary([](T a) { return piper_gelu(a); });
    case Code::silu: return unary([](T a) { return piper_silu(a); });
    case Code::relu_grad: return binary([](T x, T dy) { return piper_relu_grad(x, dy); });
    case Code::gelu_grad: return binary([](T x, T dy) { return piper_gelu_grad(x, dy); });
    case Code::silu_grad: return binary([](T x, T dy) { return piper_silu_grad(x, dy); });
    case Code::select_ge: return select([](T a, T b) { return a >= b; });
    case Code::select_lt: return select([](T a, T b) { return a < b; });
    case Code::select_eq: {
      const std::int64_t* a = get<std::int64_t>(s.operands[0]);
      const std::int64_t* b = get<std::int64_t>(s.operands[1]);
      const T* x = get<T>(s.operands[2]);
      for (std::int64_t i = 0; i < n; ++i) to[i] = a[i] == b[i] ? x[i] : T(0);
      return;
    }
    case Code::select_other: {
      const std::int64_t* a = get<std::int64_t>(s.operands[0]);
      const T* x = get<T>(s.operands[1]);
      for (std::int64_t i = 0; i < n; ++i) to[i] = a[i] != s.ignore ? x[i] : T(0);
      return;
    }
    case Code::dropout: return dropout<T>(s, r, n);
    case Code::round:
      return unary([](T a) { return static_cast<T>(piper_round_bf16(static_cast<float>(a))); });
    case Code::cast:
      return with_number(operand_dtype(s), [&](auto zero) {
        const auto* a = get<decltype(zero)>(s.operands[0]);
        for (std::int64_t i = 0; i < n; ++i) to[i] = static_cast<T>(a[i]);
      });
    // `execute` handles these codes itself.
    case Code::load:
    case Code::column:
    case Code::row_sum:
    case Code::row_max:
    case Code::row_first:
    case Code::store:
    case Code::store_add:
    case Code::total: break;
  }
  llvm_unreachable("no operation on registers");
}

template <typename T>
void Machine::begin_reduction(const Statement& s, Register& r) {
  T* lanes = reinterpret_cast<T*>(r.lanes);
  std::fill_n(lanes, kernel_->lanes.count,
              s.code == Code::row_sum ? T(0) : -std::numeric_limits<T>::infinity());
  if (s.code == Code::row_first)
    *reinterpret_cast<std::int64_t*>(r.lanes) = std::numeric_limits<std::int64_t>::max();
}

template <typename T>
void Machine::reduce(const Statement& s, Register& r, std::int64_t n) {
  const T* a = get<T>(s.operands[0]);
  T* lanes = reinterpret_cast<T*>(r.lanes);
  const auto each = [&](auto join) {
    const Lanes& order = kernel_->lanes;
    if (order.count == kLanes && order.vector == 1 && !order.whole_row) {  // blocks begin at lane 0
      for (std::int64_t i = 0; i < n; ++i) lanes[i % kLanes] = join(lanes[i % kLanes], a[i]);
      return;
    }
    const std::int64_t first = order.whole_row ? column() : position_.back();
    for (std::int64_t i = 0; i < n; ++i) {
      T& lane = lanes[(first + i) / order.vector % order.count];
      lane = join(lane, a[i]);
    }
  };
  if (s.code == Code::row_sum) {
    each([](T x, T y) { return x + y; });
  } else if (s.code == Code::row_max) {
    each([](T x, T y) { return piper_max(x, y); });
  } else {
    const T* b = get<T>(s.operands[1]);
    const std::int64_t column = this->column();
    auto& first = *reinterpret_cast<std::int64_t*>(r.lanes);
    for (std::int64_t i = 0; i < n; ++i) {
      if (a[i] == b[i]) first = std::min(first, column + i);
    }
  }
}

template <typename T>
void Machine::end_reduction(const Statement& s, Register& r) {
  if (s.code == Code::row_first) {
    std::memcpy(r.lane_bytes, r.lanes, sizeof(std::int64_t));
    return;
  }
  T* lanes = reinterpret_cast<T*>(r.lanes);
  const auto join = [&](std::int32_t a, std::int32_t b) {
    lanes[a] = s.code == Code::row_sum ? lanes[a] + lanes[b] : piper_max(lanes[a], lanes[b]);
  };
  const std::int32_t count = kernel_->lanes.count, group = std::min(count, Lanes::kGroup);
  for (std::int32_t distance = group / 2; distance > 0; distance /= 2) {
    for (std::int32_t first = 0; first < count; first += group) {
      for (std::int32_t l = 0; l < distance; ++l) join(first + l, first + l + distance);
    }
  }
  for (std::int32_t distance = count / 2; distance >= group; distance /= 2) {
    for (std::int32_t first = 0; first < distance; first += group) join(first, first + distance);
  }
  *reinterpret_cast<T*>(r.lane_bytes) = lanes[0];
}

/// Repeats a row's value over a block, for column statements that read it.
void Machine::spread(const Statement& s, Register& r) {
  with_element(s.dtype, [&](auto zero) {
    auto* const own = reinterpret_cast<decltype(zero)*>(r.lane_bytes);
    std::fill_n(own + 1, row_width_ - 1, own[0]);
  });
}

void Machine::execute(std::size_t i, std::int64_t n) {
  const Statement& s = kernel_->statements[i];
  Register& r = registers()[i];
  switch (s.code) {
    case Code::load:
      with_element(body_.buffers[s.access.buffer].dtype,
                   [&](auto t) { load<decltype(t)>(s, r, n); });
      break;
    case Code::store:
    case Code::store_add:
      with_element(body_.buffers[s.access.buffer].dtype, [&](auto t) { store<decltype(t)>(s, n); });
      return;
    case Code::total: {
      const double* a = get<double>(s.operands[0]);
      for (std::int64_t k = 0; k < n; ++k) r.total += a[k];
      return;
    }
    case Code::column: {
      const std::int64_t column = this->column();
      auto* to = reinterpret_cast<std::int64_t*>(r.lane_bytes);
      for (std::int64_t k = 0; k < n; ++k) to[k] = column + k;
      break;
    }
    case Code::row_sum:
    case Code::row_max:
    case Code::row_first: {
      // The operand's type matters, because `first` gives an i64.
      return with_number(operand_dtype(s), [&](auto zero) { reduce<decltype(zero)>(s, r, n); });
    }
    default: with_number(s.dtype, [&](auto zero) { compute<decltype(zero)>(s, r, n); }); break;
  }
  if (s.row) spread(s, r);
}

void Machine::columns(const Kernel& kernel, std::size_t begin, std::size_t end) {
  const auto reductions = [&](auto f) {
    for (std::size_t i = begin; i < end; ++i) {
      const Statement& s = kernel.statements[i];
      if (!is_reduction(s.code)) continue;
      with_number(operand_dtype(s), [&](auto zero) { f(s, registers()[i], zero); });
    }
  };
  reductions(
      [&](const Statement& s, Register& r, auto zero) { begin_reduction<decltype(zero)>(s, r); });
  each_block(kernel, [&](std::int64_t n) {
    for (std::size_t i = begin; i < end; ++i) execute(i, n);
  });
  reductions([&](const Statement& s, Register& r, auto zero) {
    end_reduction<decltype(zero)>(s, r);
    spread(s, r);
  });
}

void Machine::rows(const Kernel& kernel) {
  for (;;) {
    std::fill(position_.begin() + static_cast<std::ptrdiff_t>(kernel.rows.size()), position_.end(),
              0);
    for (std::size_t i = 0; i < kernel.statements.size();) {
      if (kernel.statements[i].row) {
        execute(i++, 1);
        continue;
      }
      std::size_t end = i;
      while (end < kernel.statements.size() && !kernel.statements[end].row &&
             kernel.statements[end].pass == kernel.statements[i].pass)
        ++end;
      columns(kernel, i, end);
      std::fill(position_.begin() + static_cast<std::ptrdiff_t>(kernel.rows.size()),
                position_.end(), 0);
      i = end;
    }
    std::size_t loop = kernel.rows.size();
    while (loop > 0 && ++position_[loop - 1] == kernel.rows[loop - 1]) position_[--loop] = 0;
    if (loop == 0) break;
  }
}

template <typename T>
void Machine::write_total(const Statement& s, const Register& r) {
  T* to = reinterpret_cast<T*>(memory(s.access.buffer));
  *to = adds(s.access.buffer) ? *to + static_cast<T>(r.total) : static_cast<T>(r.total);
}

int Machine::kernel(const Kernel& kernel) {
  if (const int failed = check(kernel)) return failed;
  if (kernel.skipped_by && *reinterpret_cast<const double*>(memory(*kernel.skipped_by)) < 0)
    return 0;
  kernel_ = &kernel;
  row_width_ = std::min(kBlock, kernel.columns.back());
  if (pool().size() < kernel.statements.size()) pool().resize(kernel.statements.size());
  for (std::size_t i = 0; i < kernel.statements.size(); ++i) registers()[i].total = 0;
  clear(kernel);
  position_.assign(kernel.rows.size() + kernel.columns.size(), 0);
  kernel.runs ? runs(kernel) : rows(kernel);
  for (std::size_t i = 0; i < kernel.statements.size(); ++i) {
    const Statement& s = kernel.statements[i];
    if (s.code != Code::total) continue;
    with_number(s.dtype, [&](auto zero) { write_total<decltype(zero)>(s, registers()[i]); });
  }
  return 0;
}

int Machine::run() {
  for (const KernelStep& step : body_.steps) {
    const auto* nest = std::get_if<Kernel>(&step);
    const int failed = nest != nullptr ? kernel(*nest) : library(std::get<LibraryCall>(step));
    if (failed != 0) return failed;
  }
  return 0;
}

int evaluate(const KernelBody& body, const BodyCall& call) { return Machine(body, call).run(); }

}  // namespace piper::backend
