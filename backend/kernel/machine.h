#pragma once
// The evaluator's state: a register per statement. `evaluate` is the entry.

#include <algorithm>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "backend/kernel/evaluate.h"
#include "backend/kernel/schedule_passes.h"
#include "runtime/kernel_math.h"

namespace piper::backend {

// Elements per statement execution: a multiple of the CPU's lanes, large enough for cheap dispatch,
// small enough for the L1 cache.
inline constexpr std::int64_t kBlock = 256;
inline constexpr std::int32_t kLanes = Lanes{}.count;
static_assert(kBlock % kLanes == 0);

/// The value of one statement: a block of elements, or one element repeated.
struct Register {
  alignas(64) unsigned char lane_bytes[kBlock * 8];
  alignas(64) unsigned char lanes[Lanes::kMax * 8];
  double total = 0;
};

template <typename Stored>
using Wide = std::conditional_t<std::is_same_v<Stored, piper_bf16>, float, Stored>;

class Machine {
 public:
  Machine(const KernelBody& body, const BodyCall& call) : body_(body), call_(call) {}

  int run();

 private:
  unsigned char* memory(BufferIndex index) const;
  bool adds(BufferIndex index) const {
    const KernelBuffer& buffer = body_.buffers[index];
    return buffer.accumulates && call_.accumulate[buffer.port] != 0;
  }
  int library(const LibraryCall& call);
  int rounded_product(const LibraryCall& call);
  int kernel(const Kernel& kernel);
  int check(const Kernel& kernel);
  void clear(const Kernel& kernel);
  void rows(const Kernel& kernel);
  void columns(const Kernel& kernel, std::size_t begin, std::size_t end);
  template <typename Block>
  void each_block(const Kernel& kernel, Block block);
  std::int64_t go_to(const Kernel& kernel, std::int64_t position);
  void runs(const Kernel& kernel);
  void order(const Kernel& kernel);
  template <typename T>
  void scatter(const Kernel& kernel, const Statement& sum);
  template <typename T>
  void join(const Kernel& kernel, const Statement& sum);
  template <typename T>
  void add_to_place(const Kernel& kernel, const Statement& sum, std::int64_t index,
                    const std::vector<T>& added);

  // One statement over n elements from column `column` of the innermost loop; a row statement has n
  // = 1.
  void execute(std::size_t i, std::int64_t n);
  template <typename T>
  void compute(const Statement& s, Register& r, std::int64_t n);
  static void compute_briefly(const Statement& s, Register& r, std::int64_t n);
  // `Stored`: the type in memory; registers are wide.
  template <typename Stored>
  void load(const Statement& s, Register& r, std::int64_t n);
  template <typename Stored>
  void store(const Statement& s, std::int64_t n);
  template <typename T>
  void begin_reduction(const Statement& s, Register& r);
  template <typename T>
  void reduce(const Statement& s, Register& r, std::int64_t n);
  template <typename T>
  void end_reduction(const Statement& s, Register& r);
  template <typename T>
  void dropout(const Statement& s, Register& r, std::int64_t n);
  template <typename T>
  void write_total(const Statement& s, const Register& r);
  void spread(const Statement& s, Register& r);

  std::int64_t walk(const std::vector<std::int64_t>& strides) const {
    std::int64_t at = 0;
    for (std::size_t l = 0; l < strides.size(); ++l) at += position_[l] * strides[l];
    return at;
  }
  /// The number of the block's first element within the row.
  std::int64_t column() const {
    std::int64_t column = 0;
    for (std::size_t c = 0; c < kernel_->columns.size(); ++c)
      column = column * kernel_->columns[c] + position_[kernel_->rows.size() + c];
    return column;
  }
  template <typename T>
  static const T* get(std::int32_t operand) {
    return reinterpret_cast<const T*>(registers()[operand].lane_bytes);
  }
  /// The type of the first operand.
  tensor::DType operand_dtype(const Statement& s) const {
    return kernel_->statements[static_cast<std::size_t>(s.operands[0])].dtype;
  }
  static std::vector<Register>& pool() {
    static thread_local std::vector<Register> registers;
    return registers;
  }
  static Register* registers() { return pool().data(); }

  const KernelBody& body_;
  const BodyCall& call_;
  const Kernel* kernel_ = nullptr;
  std::vector<std::int64_t> position_;  // per loop
  std::int64_t row_width_ = 1;          // elements of a block that column statements may read
};

/// Calls `block` for each block of a row's elements.
template <typename Block>
void Machine::each_block(const Kernel& kernel, Block block) {
  const std::size_t first = kernel.rows.size(), last = first + kernel.columns.size() - 1;
  std::fill(position_.begin() + static_cast<std::ptrdiff_t>(first), position_.end(), 0);
  for (;;) {
    for (std::int64_t j = 0; j < kernel.columns.back(); j += kBlock) {
      position_[last] = j;
      block(std::min(kBlock, kernel.columns.back() - j));
    }
    std::size_t loop = last;
    while (loop > first && ++position_[loop - 1] == kernel.columns[loop - 1 - first])
      position_[--loop] = 0;
    if (loop == first) break;
  }
  position_[last] = 0;
}

}  // namespace piper::backend
