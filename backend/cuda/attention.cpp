#include "backend/cuda/attention.h"

#include <algorithm>
#include <limits>

#include "ir/alignment.h"

namespace piper::backend::cuda {

namespace {

constexpr std::int64_t kFloat = 4, kHalf = 2;

std::int64_t quotient(std::int64_t n, std::int64_t by) { return (n + by - 1) / by; }

/// The head dimension that flash kernels compute with.
std::int64_t flash_width(const PiperAttend& call) {
  return round_up(call.width, call.width <= 128 ? 32 : 64);
}

/// Allocates parts one after the other; the first address is only a multiple of 64.
class Pieces {
 public:
  void add(std::int64_t bytes) {
    bytes_ += static_cast<std::uint64_t>(round_up(bytes, PIPER_WORKSPACE_ALIGNMENT));
  }
  std::uint64_t bytes() const { return bytes_ + PIPER_WORKSPACE_ALIGNMENT; }

 private:
  std::uint64_t bytes_ = 0;
};

constexpr std::int64_t kWidest = 256;

/// The reason why the kernels do not support the call, or null.
const char* flash_refusal(const PiperAttend& call) {
  if (call.width != call.value_width) return "values have another width than keys";
  if (call.width % 8 != 0) return "the width is no multiple of 8";
  if (call.width > kWidest) return "heads are wider than 256";
  // One query for several heads of one key head is rearranged by copies; that is a case of
  // inference.
  return call.seq > 1 || call.heads == call.kv_heads ? nullptr
                                                     : "one query has several heads per key head";
}

const char* efficient_refusal(const PiperAttend& call) {
  constexpr std::int64_t kLogSumBlock = 32, kAlignment = 4, kMaxBatches = 65535;
  if (call.heads != call.kv_heads) return "in f32 each head needs its own key head";
  // It pads each row of log-sums to whole blocks, but rows of the plan are dense.
  if (call.seq % kLogSumBlock != 0)
    return "in f32 the number of queries has to be a multiple of 32";
  if (call.width % kAlignment != 0 || call.value_width % kAlignment != 0)
    return "the width is no multiple of 4";
  if (std::max(call.width, call.value_width) > kWidest) return "heads are wider than 256";
  return call.batch <= kMaxBatches && call.heads <= kMaxBatches
             ? nullptr
             : "there are more than 65535 samples or heads";
}

/// The number of parts into which the forward flash kernels divide the keys on a GPU with this many
/// block slots (num_splits_heuristic of flash_api.cpp): the fewest with 85 % of the best use of the
/// last wave.
std::int64_t key_parts(std::int64_t blocks, std::int64_t places, std::int64_t key_blocks) {
  if (static_cast<double>(blocks) >= 0.8 * static_cast<double>(places)) return 1;
  const std::int64_t most = std::min({std::int64_t{128}, places, key_blocks});
  const auto differs = [&](std::int64_t parts) {
    return parts == 1 || quotient(key_blocks, parts) != quotient(key_blocks, parts - 1);
  };
  const auto use = [&](std::int64_t parts) {
    const double waves = static_cast<double>(blocks * parts) / static_cast<double>(places);
    return waves / static_cast<double>(quotient(blocks * parts, places));
  };
  double best = 0;
  for (std::int64_t parts = 1; parts <= most; ++parts) {
    if (differs(parts)) best = std::max(best, use(parts));
  }
  for (std::int64_t parts = 1; parts <= most; ++parts) {
    if (differs(parts) && use(parts) >= 0.85 * best) return parts;
  }
  return 1;
}

/// The maximum number of parts on any GPU. Two blocks run on a multiprocessor.
std::int64_t most_key_parts(const PiperAttend& call) {
  const std::int64_t key_block = call.width <= 64    ? 256
                                 : call.width <= 128 ? 128
                                                     : 64,
                     key_blocks = quotient(call.keys, key_block);
  const std::int64_t blocks = call.batch * call.heads * quotient(call.seq, 64);
  std::int64_t most = 1;
  for (std::int64_t processors = 1; processors <= PIPER_MOST_PROCESSORS && key_blocks > 1;
       ++processors)
    most = std::max(most, key_parts(blocks, 2 * processors, key_blocks));
  return most;
}

/// mha_fwd of flash_api.cpp, without dropout: sums of parts, then an unused random state, of two
/// numbers and of one.
std::uint64_t flash_workspace(const PiperAttend& call) {
  Pieces pieces;
  if (const std::int64_t parts = most_key_parts(call); parts > 1) {
    const std::int64_t rows = parts * call.batch * call.heads * call.seq;
    pieces.add(rows * kFloat);
    pieces.add(rows * flash_width(call) * kFloat);
  }
  pieces.add(16);
  pieces.add(8);
  return pieces.bytes();
}

/// mha_bwd: row sums, a partial dq per group of blocks that add to it, so that the order of
/// additions is fixed; keys' gradients per query head if query heads share key heads.
std::uint64_t flash_grad_workspace(const PiperAttend& call) {
  const std::int64_t rows = round_up(call.seq, 128) * call.batch * call.heads;
  Pieces pieces;
  pieces.add(rows * kFloat);
  pieces.add(quotient(PIPER_MOST_PROCESSORS, call.batch * call.heads) * rows * flash_width(call) *
             kFloat);
  for (int each = 0; call.heads != call.kv_heads && each < 2; ++each)
    pieces.add(call.batch * call.keys * call.heads * call.width * kHalf);
  return pieces.bytes();
}

/// _efficient_attention_forward of attention.cu: an unused seed and offset; f32 accumulates in its
/// output.
std::uint64_t efficient_workspace() {
  Pieces pieces;
  pieces.add(8);
  pieces.add(8);
  return pieces.bytes();
}

/// _efficient_attention_backward of attention_backward.cu: products of output and gradient, their
/// row sums and these transposed; then tiles of dq, each with 16 bytes of counters
/// (kernel_backward.h: workspace_size), for blocks of 64 or 128 queries, depending on shared
/// memory.
std::uint64_t efficient_grad_workspace(const PiperAttend& call) {
  const std::int64_t rows = call.batch * call.seq * call.heads;
  std::int64_t tiles = 0;
  constexpr std::int64_t kKeys = 64;
  for (const std::int64_t queries : {64, 128}) {
    tiles = std::max(tiles, call.batch * call.heads * quotient(call.seq, queries) *
                                quotient(call.width, kKeys) * (4 + queries * kKeys) * kFloat);
  }
  Pieces pieces;
  pieces.add(rows * call.value_width * kFloat);
  pieces.add(rows * kFloat);
  pieces.add(rows * kFloat);
  pieces.add(tiles);
  return pieces.bytes();
}

}  // namespace

const char* attention_refusal(const PiperAttend& call) {
  // A causal query that sees no key has no weights; LibTorch's log-sum then differs from the
  // built-in one.
  if (call.causal != 0 && call.keys < call.seq) return "causal queries outnumber the keys";
  // LibTorch uses 32 bits for some positions and strides of a tensor.
  constexpr std::int64_t kMax = std::numeric_limits<std::int32_t>::max();
  if (call.batch * std::max(call.seq, call.keys) * call.heads *
          std::max(call.width, call.value_width) >
      kMax)
    return "an operand has more than 2147483647 elements";
  switch (static_cast<PiperDType>(call.dtype)) {
    case PIPER_BF16: return flash_refusal(call);
    case PIPER_F32: return efficient_refusal(call);
    case PIPER_F64:
    case PIPER_I64: break;
  }
  return "elements are neither bf16 nor f32";
}

PiperAttendForm attention_form(const PiperAttend& call) {
  if (attention_refusal(call) != nullptr) return PIPER_ATTEND_BUILTIN;
  return call.dtype == PIPER_BF16 ? PIPER_ATTEND_FLASH : PIPER_ATTEND_EFFICIENT;
}

std::uint64_t attention_workspace(const PiperAttend& call, bool gradient) {
  switch (static_cast<PiperAttendForm>(call.form)) {
    case PIPER_ATTEND_BUILTIN: return 0;
    case PIPER_ATTEND_FLASH: return gradient ? flash_grad_workspace(call) : flash_workspace(call);
    case PIPER_ATTEND_EFFICIENT:
      return gradient ? efficient_grad_workspace(call) : efficient_workspace();
  }
  return 0;
}

}  // namespace piper::backend::cuda
