#pragma once
// Kernel IR: what a body becomes before it is evaluated or printed as C++ or CUDA C++: fused loop nests and library calls over planned buffers.
//
// Guarantees: steps stand in an order in which every buffer is written before it is read; values that only one loop nest uses never
// touch memory; every output port is written exactly once (a `grad` port adds to what is there when the call says so); scratch lies in
// one workspace block at fixed offsets. The meaning includes the order of additions, so that the evaluator and generated code agree
// bit for bit (all without contraction of multiply and add):
//   - a row reduction has the partial results that `Kernel::lanes` says, and they are joined as it says;
//   - every operation is computed in the wide type of its operands and rounded once to its own; temporaries hold rounded values;
//   - on a GPU operations on bf16 take the shorter functions of kernel_math.h (`Statement::brief`), whatever they are fused with;
//   - a sum over rows adds row after row in loop order to its place in memory, or to an f64 variable when its result is a scalar.
//
// A target decides how a body is divided into loop nests. On the CPU one thread runs a nest from its first row to its last. On CUDA the rows, or the
// elements, of a nest run at the same time: there a nest is of one `Form`, a sum over rows is a nest of its own whose loops are cut into parts with partial
// sums in scratch, and nothing is kept for a row but in registers. Each target's order of additions is data, and the evaluator follows either.
//
//   const KernelBody kernels = build_kernels(body, Target::cpu);
//   kernels.scratch_bytes;  // what the plan reserves behind the operands

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "backend/target.h"
#include "ir/dag/body.h"
#include "runtime/abi.h"

namespace piper::backend {

/// The partial results of a row reduction. Element e of a row goes to lane (e / vector) mod count, each lane adds in ascending order. Within groups of 32
/// (all, where there are fewer) lane l is joined with l + 16, then 8, 4, 2, 1; then group g with g + groups / 2, and so on.
struct Lanes {
  std::int32_t count = 16;  // a power of two, at most kMost
  std::int32_t vector = 1;  // neighbours that one lane has; on CUDA also what one thread loads and stores at once
  bool whole_row = false;   // e counts over all column loops; else over the innermost one, from 0 on each time
  static constexpr std::int32_t kMost = 1024, kGroup = 32;
};

/// What runs at the same time.
enum class Form : std::uint8_t {
  sequence,  // nothing: the CPU's nests
  elements,  // all elements: no reductions, no sums
  rows,      // all rows, a thread per lane of each; statements before a reduction are computed again in later passes
  sums,      // all elements of the results: row loops that the results do not have run in order; no reductions
  order,     // one block, which sorts the positions of an index
  scatter,   // all runs of equal indices, which that order shows: what they give to places of a result
  join,      // all places that several runs give something to
};

/// A typed range of memory: a port of the body or a piece of its workspace.
struct KernelBuffer {
  enum class Place : std::uint8_t { input, output, scratch } place = Place::scratch;
  std::uint32_t port = 0;   // input, output: position among the inputs or outputs of the body
  std::int64_t offset = 0;  // scratch: bytes from the start of the workspace, a multiple of 64
  std::int64_t elements = 0;
  tensor::DType dtype = tensor::DType::f32;
  bool accumulates = false;  // output of kind grad: adds to what is there when the call says so
  std::int32_t stretch = -1;  // port: into KernelBody::stretches: the call says where position 0 lies, and the rank works on those that it has; -1: it lies there
  std::string name;          // unique in the body and an identifier: `block_3_mlp_0_up`
  std::string label;         // a short identifier, not unique: `up`
  std::string type;          // `param f32[dim: 64, hidden: 256]`, for comments
};
using BufferIndex = std::uint32_t;  // position in KernelBody::buffers

/// Forms order, scatter and join: how what an index sends to one place is added up. The positions with one index, in order, are cut into runs of kLength, counted from the first of
/// them; a run is added up from 0 on, position after position, and the place gets the sum of its runs, in order: the bits depend on these positions alone.
struct Runs {
  BufferIndex order = 0;       // i64: the positions by index and, of one index, in order; behind them, which of its index's each is
  BufferIndex partials = 0;    // sums of runs, where an index can have several: at the run's first place in the order by kLength; those of first runs before those of others
  std::int64_t positions = 0;
  std::int64_t values = 0;     // that the index may have
  std::int64_t width = 1;      // elements at a position: those of its columns, one after the other
  bool in_columns = false;     // every element is a position of its own
  static constexpr std::int64_t kLength = 128;
  bool several() const { return positions > kLength; }
  /// Runs that begin at different multiples of kLength in the order; twice as many rows of partials.
  std::int64_t rows() const { return (positions + kLength - 1) / kLength; }
};

/// Where a load reads at all: at positions sum(index of loop i * strides[i]) in [first, end).
struct Guard {
  std::vector<std::int64_t> strides;  // empty: everywhere
  std::int64_t first = 0, end = 0;
  friend bool operator==(const Guard&, const Guard&) = default;
};

/// Where a statement reads or writes: element offset + sum(index of loop i * strides[i]) + value of `index` * index_stride.
struct Access {
  BufferIndex buffer = 0;
  std::vector<std::int64_t> strides;  // elements; per row loop, then per column loop
  std::int64_t offset = 0;            // load
  Guard guard;                        // load; elsewhere it gives operand 0, or 0 without one
  std::int32_t index = -1;            // statement that gives an i64, or -1
  std::int64_t index_stride = 0;
};

enum class Code : std::uint8_t {
  // values
  load, constant, column,  // column: the position in the column loops, row-major, as i64
  position,                // sum(index of loop i * access.strides[i]), as a floating number
  add, sub, mul, div, maximum, minimum, neg, exp, log, sqrt, rsqrt, square, sin, cos, tanh, sigmoid, softplus, relu, gelu, silu,
  relu_grad, gelu_grad, silu_grad, select_ge, select_lt, select_eq,  // select_eq: (a, b, x): x where a == b, else 0
  select_other,  // (a, x): x where a, an i64, is not `ignore`, else 0
  dropout, cast, round,  // round: to the nearest number that bf16 has, as f32
  // one value per row from the columns; available from the next pass on
  row_sum, row_max, row_first,  // row_first: (a, b): the first column with a == b
  // effects
  store,     // access = operand; on a buffer that accumulates: access (+)= operand
  store_add, // access += operand over the rows: the buffer is cleared before the kernel unless the call says accumulate
  total,     // a sum over all rows in f64, written to access at the end of the kernel
};

/// One operation on registers. Row statements run once per row before the columns of pass `pass` (or at the end of the row when
/// pass = passes); the others once per element in it.
struct Statement {
  Code code = Code::load;
  tensor::DType dtype = tensor::DType::f32;  // of the result; of the operand for effects; never a narrow one: loads widen, stores are of what was rounded
  bool row = false;
  std::int32_t pass = 0;
  std::int32_t operands[3] = {-1, -1, -1};  // earlier statements
  double scalar = 0;                        // constant; dropout: the rate
  Access access;                            // load and effects
  std::uint64_t key = 0;                    // dropout: piper_name_hash of the op's logical name
  std::int32_t ignore = 0;                  // select_other
  bool brief = false;                       // of the codes of `has_brief_form`: the function of kernel_math.h for operations on bf16
  std::string name;                         // an identifier that says what it is, not unique: `gelu`, `sum_exp`
  std::int32_t op = -1;                     // of Kernel::ops, or -1
  std::int32_t stretch = -1;                // dropout: that of samples in KernelBody::stretches; -1: the value has none
  std::vector<std::int64_t> element_strides;  // dropout: position within the sample, per loop
  std::vector<std::int64_t> sample_strides;   // dropout: number of the sample within the body, per loop
};

/// What PiperApi::fail is told when a check fails.
inline constexpr const char* kIndexOutOfRange = "an index of `lookup` lies outside its table";
inline constexpr const char* kTargetOutOfRange = "a target of `cross_entropy` is not a class number";

/// A range of source; `line` 0: no place.
struct SourcePlace {
  std::string file = {};
  std::uint32_t line = 0, column = 0;
  std::uint32_t end_line = 0, end_column = 0;  // behind the last character
  PiperPlace abi() const { return {file.c_str(), line, column, end_line, end_column}; }
};
SourcePlace place_of(const LocationTable& locations, LocId loc);

/// Checked before the loops: every i64 in the buffer lies in [0, bound) or is `ignore`.
struct RangeCheck {
  BufferIndex buffer = 0;
  std::int64_t bound = 0;
  SourcePlace where = {};  // the operation that reads it
  bool target = false;  // a class number of cross_entropy, else an index of lookup
  std::optional<std::int32_t> ignore = {};
};

/// A fused loop nest: for every row, for every pass: row statements, then all columns.
struct Kernel {
  std::vector<std::int64_t> rows;     // extents, outermost first; may be empty (one row)
  std::vector<std::int64_t> columns;  // extents; the last one is the vectorised loop; never empty
  std::int32_t passes = 1;
  Form form = Form::sequence;
  Lanes lanes;
  std::optional<Runs> runs;
  std::vector<Statement> statements;  // by pass, row statements before column statements, operands before users
  std::vector<RangeCheck> checks;
  std::vector<std::string> ops;       // what was fused, in order: `add`, `rms_norm`, `mul`
  std::vector<std::string> values;    // the values these ops define
  std::vector<SourcePlace> places;    // where these ops come from
  std::string part;                   // of a nest that was divided: `sum`, `join`, `order`, `scatter`; empty: all of it, or what the others do not do
};

/// One call of a library. gemm: operands {a, b}, results {c}, which it adds to where it `accumulates`. attend: {q, k, v}, {out, lse}. attend_grad: {q, k, v, out, lse, dout}, {dq, dk, dv}.
struct LibraryCall {
  PiperLibraryKind kind = PIPER_CALL_GEMM;
  PiperGemm gemm{};
  PiperAttend attend{};
  std::vector<BufferIndex> operands, results;
  BufferIndex workspace = 0;  // where it has bytes
  std::uint64_t workspace_bytes = 0;
  bool accumulates = false;   // gemm: adds to what an earlier step wrote, whatever the call of the body says
  bool rounds = false;        // gemm of bf16: c is of bf16, the sums rounded once; on GPUs alone, and then `accumulates` nothing
  std::string value;          // what it defines
};

using KernelStep = std::variant<Kernel, LibraryCall>;

/// Where a call works on a stretch that its body reads: `first` is where all ranks together begin, and this rank the first of its stretch further.
struct CallStretch {
  std::uint64_t first = 0;
  std::uint32_t stretch = 0;  // into PiperRank::stretches
  std::uint64_t begin(const PiperRank& rank) const { return first + rank.stretches[stretch].first; }
};

struct KernelBody {
  std::string name;                   // `stage0.F`
  std::vector<KernelBuffer> buffers;  // inputs, outputs, scratch
  std::vector<KernelStep> steps;
  std::uint32_t num_inputs = 0, num_outputs = 0;
  std::int64_t scratch_bytes = 0;     // size of the workspace operand; 0: there is none
  std::vector<std::string> stretches; // what it asks of the rank, in the singular: `sample` of dropout, `element` of a bucket; the call says where each begins
};

/// `in_place[i]`: the input whose memory output i takes over, or -1; used by update bodies. Empty: none.
/// Every read of such an input happens before its memory is written.
KernelBody build_kernels(const dag::Body& body, Target target = Target::cpu, const std::vector<int>& in_place = {});

/// Bytes of workspace that the body needs; the same figure as KernelBody::scratch_bytes.
std::int64_t scratch_bytes(const dag::Body& body, Target target);

/// What `build` prints per body. bytes: every buffer that a step reads or writes, once per step.
struct KernelStats {
  std::int64_t kernels = 0, library_calls = 0, bytes = 0;
};
KernelStats kernel_stats(const KernelBody& body);

/// The buffers that a nest reads and writes.
struct Traffic {
  std::set<BufferIndex> reads, writes;
};
Traffic traffic(const Kernel& kernel);

/// One line per step with what it fuses, reads and writes.
std::string print(const KernelBody& body);

}  // namespace piper::backend
