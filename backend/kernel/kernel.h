#pragma once
// Kernel IR: a body as fused loop nests and library calls over planned buffers, to be evaluated or
// printed as C++ or CUDA C++.
//
// Guarantees: steps are ordered so that every buffer is written before it is read; values that only
// one loop nest uses never touch memory; every output port is written exactly once (a `grad` port
// accumulates if the call says so); scratch is in one workspace block at fixed offsets. The
// semantics include the order of additions, so that the evaluator and generated code agree bit for
// bit (all without contraction of multiply and add):
//   - `Kernel::lanes` defines the partial results of a row reduction and the order in which they are joined;
//   - every operation is computed in the wide type of its operands and rounded once to its own; temporaries hold rounded values;
//   - on a GPU operations on bf16 take the shorter functions of kernel_math.h (`Statement::brief`), whatever they are fused with;
//   - a sum over rows adds row after row in loop order to its place in memory, or to an f64 variable when its result is a scalar.
//
// A target decides how a body is divided into loop nests. On the CPU one thread runs a nest from
// its first row to its last. On CUDA the rows, or the elements, of a nest run concurrently: there a
// nest has one `Form`, a sum over rows is a nest of its own whose loops are divided into parts with
// partial sums in scratch, and values of a row are kept only in registers. Each target's order of
// additions is data, and the evaluator follows either.
//
//   const KernelBody kernels = build_kernels(body, Target::cpu);
//   kernels.scratch_bytes;  // reserved by the plan beside the operands

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

/// The partial results of a row reduction. Element e of a row goes to lane (e / vector) mod count,
/// each lane adds in ascending order. Within groups of 32 (all, if there are fewer) lane l is
/// joined with l + 16, then 8, 4, 2, 1; then group g with g + groups / 2, and so on.
struct Lanes {
  std::int32_t count = 16;  // a power of two, at most kMax
  // Neighbours of one lane; on CUDA also the elements that one thread loads and stores at once.
  std::int32_t vector = 1;
  // E counts over all column loops; else over the innermost one, from 0 on each time.
  bool whole_row = false;
  static constexpr std::int32_t kMax = 1024, kGroup = 32;
};

/// The concurrency of a nest.
enum class Form : std::uint8_t {
  sequence,  // none: the CPU's nests
  elements,  // all elements: no reductions, no sums
  // All rows, a thread per lane of each; statements before a reduction are computed again in later
  // passes.
  rows,
  // All elements of the results: row loops that are not in the results run in order; no reductions.
  sums,
  order,    // one block, which sorts the positions of an index
  scatter,  // all runs of equal indices in that order: they add to rows of a result
  join,     // all rows of the result that have several runs
};

/// A typed range of memory: a port of the body or a piece of its workspace.
struct KernelBuffer {
  enum class Storage : std::uint8_t { input, output, scratch } storage = Storage::scratch;
  std::uint32_t port = 0;   // input, output: position among the inputs or outputs of the body
  std::int64_t offset = 0;  // scratch: bytes from the start of the workspace, a multiple of 64
  std::int64_t elements = 0;
  tensor::DType dtype = tensor::DType::f32;
  bool accumulates = false;  // output of kind grad: accumulates if the call says so
  // Port: into KernelBody::intervals: the address is that of global position 0, and the rank works
  // on its interval; -1: the address is that of its first element.
  std::int32_t interval = -1;
  std::string name;   // unique in the body and an identifier: `block_3_mlp_0_up`
  std::string label;  // a short identifier, not unique: `up`
  std::string type;   // `param f32[dim: 64, hidden: 256]`, for comments
};
using BufferIndex = std::uint32_t;  // position in KernelBody::buffers

/// Forms order, scatter and join: sums by index. The positions with one index, in order, are
/// divided into runs of kLength, counted from the first of them; a run is summed from 0, position
/// after position, and the result row is the sum of its runs, in order. So the bits depend only on
/// these positions.
struct Runs {
  // i64: positions sorted by index, then by position; after them the number of each among those of
  // its index.
  BufferIndex order = 0;
  // Sums of runs, if an index can have several: at the run's first place in the order divided by
  // kLength; first runs before others.
  BufferIndex partials = 0;
  std::int64_t positions = 0;
  std::int64_t values = 0;  // number of possible indices
  std::int64_t width = 1;   // elements at a position: those of its columns, one after the other
  bool in_columns = false;  // every element is a position of its own
  static constexpr std::int64_t kLength = 128;
  bool several() const { return positions > kLength; }
  /// Runs that begin at different multiples of kLength in the order; twice as many rows of
  /// partials.
  std::int64_t rows() const { return (positions + kLength - 1) / kLength; }
};

/// A load reads only at positions sum(index of loop i * strides[i]) in [first, end).
struct Guard {
  std::vector<std::int64_t> strides;  // empty: everywhere
  std::int64_t first = 0, end = 0;
  friend bool operator==(const Guard&, const Guard&) = default;
};

/// The element that a statement reads or writes: offset + sum(index of loop i * strides[i]) + value
/// of `index` * index_stride.
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
  load,
  constant,
  column,     // column: the position in the column loops, row-major, as i64
  position,   // sum(index of loop i * access.strides[i]), as a floating number
  piecewise,  // the number of the piece that holds that position, counted from the interval's first
  add,
  sub,
  mul,
  div,
  maximum,
  minimum,
  neg,
  exp,
  log,
  sqrt,
  rsqrt,
  square,
  sin,
  cos,
  tanh,
  sigmoid,
  softplus,
  relu,
  gelu,
  silu,
  // select_eq: (a, b, x): x where a == b, else 0.
  relu_grad,
  gelu_grad,
  silu_grad,
  select_ge,
  select_lt,
  select_eq,
  select_other,  // (a, x): x where a, an i64, is not `ignore`, else 0
  dropout,
  cast,
  round,  // round: to the nearest number that bf16 has, as f32
  // one value per row from the columns; available from the next pass on
  row_sum,
  row_max,
  row_first,  // row_first: (a, b): the first column with a == b
  // effects
  store,  // access = operand; on a buffer that accumulates: access (+)= operand
  // Access += operand over the rows: the buffer is cleared before the kernel unless the call says
  // accumulate.
  store_add,
  total,  // a sum over all rows in f64, written to access at the end of the kernel
};

/// One operation on registers. Row statements run once per row before the columns of pass `pass`
/// (or at the end of the row when pass = passes); the others once per element in it.
struct Statement {
  Code code = Code::load;
  // of the result; for effects of the operand; never narrow: loads widen, stored values were
  // rounded
  tensor::DType dtype = tensor::DType::f32;
  bool row = false;
  std::int32_t pass = 0;
  std::int32_t operands[3] = {-1, -1, -1};  // earlier statements
  double scalar = 0;                        // constant; dropout: the rate
  Access access;                            // load and effects
  std::uint64_t key = 0;                    // dropout: piper_name_hash of the op's logical name
  std::int32_t ignore = 0;                  // select_other
  // For codes of `has_brief_form`: uses the function of kernel_math.h for operations on bf16.
  bool brief = false;
  // A descriptive identifier, not unique: `gelu`, `sum_exp`.
  std::string name;
  std::int32_t op = -1;  // of Kernel::ops, or -1
  // Dropout: the interval of samples in KernelBody::intervals; -1: the value has no samples.
  // Piecewise: the interval of elements; -1: positions count from 0.
  std::int32_t interval = -1;
  std::vector<std::int64_t> element_strides;  // dropout: position within the sample, per loop
  // Dropout: number of the sample within the body, per loop.
  std::vector<std::int64_t> sample_strides;
  tensor::Pieces pieces = {};  // piecewise
};

/// The messages passed to PiperApi::fail if a check fails.
inline constexpr const char* kIndexOutOfRange = "an index of `lookup` lies outside its table";
inline constexpr const char* kTargetOutOfRange =
    "a target of `cross_entropy` is not a class number";

/// A range of source; `line` 0: no place.
struct SourceLocation {
  std::string file = {};
  std::uint32_t line = 0, column = 0;
  std::uint32_t end_line = 0, end_column = 0;  // after the last character
  PiperSourceLocation abi() const { return {file.c_str(), line, column, end_line, end_column}; }
};
SourceLocation location_of(const LocationTable& locations, LocId loc);

/// Checked before the loops: every i64 in the buffer is in [0, bound) or `ignore`.
struct RangeCheck {
  BufferIndex buffer = 0;
  std::int64_t bound = 0;
  SourceLocation where = {};  // the operation that reads it
  bool target = false;        // a class number of cross_entropy, else an index of lookup
  std::optional<std::int32_t> ignore = {};
};

/// A fused loop nest: for every row, for every pass: row statements, then all columns.
struct Kernel {
  std::vector<std::int64_t> rows;     // extents, outermost first; may be empty (one row)
  std::vector<std::int64_t> columns;  // extents; the last one is the vectorised loop; never empty
  std::int32_t passes = 1;
  Form form = Form::sequence;
  // An f64 that it loads: below 0 the nest does nothing. All its results are in place of operands.
  std::optional<BufferIndex> skipped_by;
  Lanes lanes;
  std::optional<Runs> runs;
  // By pass, row statements before column statements, operands before users.
  std::vector<Statement> statements;
  std::vector<RangeCheck> checks;
  std::vector<std::string> ops;        // the fused ops, in order: `add`, `rms_norm`, `mul`
  std::vector<std::string> values;     // the values these ops define
  std::vector<SourceLocation> places;  // source locations of these ops
  // of a divided nest: `sum`, `join`, `order`, `scatter`; empty: an undivided nest, or the
  // remaining statements
  std::string part;
};

/// One call of a library; operands and results as runtime/calls.def lists them.
struct LibraryCall {
  PiperCallShape shape{};
  std::vector<BufferIndex> operands, results;
  BufferIndex workspace = 0;  // valid if it has bytes
  std::uint64_t workspace_bytes = 0;
  // PIPER_END_WRITES: a product into a buffer that accumulates adds if the call of the body says
  // so. PIPER_END_ADDS: it adds to the result of an earlier step, independent of the call of the
  // body. PIPER_END_ROUNDS: a product of bf16 on a GPU whose c is bf16.
  PiperCallEnd end = PIPER_END_WRITES;
  std::string value;  // the value that it defines
};

using KernelStep = std::variant<Kernel, LibraryCall>;

/// An interval of a call: `first` is the first index over all ranks, to which each rank adds the
/// first index of its own interval.
struct CallInterval {
  std::uint64_t first = 0;
  std::uint32_t interval = 0;  // into PiperRank::intervals
  std::uint64_t begin(const PiperRank& rank) const {
    return first + rank.intervals[interval].first;
  }
};

struct KernelBody {
  std::string name;                   // `stage0.F`
  std::vector<KernelBuffer> buffers;  // inputs, outputs, scratch
  std::vector<KernelStep> steps;
  std::uint32_t num_inputs = 0, num_outputs = 0;
  std::int64_t scratch_bytes = 0;  // size of the workspace operand; 0: there is none
  // The intervals that it reads from the rank, in the singular: `sample` of dropout, `element` of a
  // bucket; the call gives the begin of each.
  std::vector<std::string> intervals;
};

/// `in_place[i]`: the input whose memory output i takes over, or -1; used by update bodies. Empty:
/// none. Every read of such an input happens before its memory is written.
KernelBody build_kernels(const dag::Body& body, Target target = Target::cpu,
                         const std::vector<int>& in_place = {});

/// Numbers the shapes of the body's library calls among those of a program: a shape that equals
/// `known[i]` gets i, and another one is appended to `known`.
void number_shapes(KernelBody& body, std::vector<PiperCallShape>& known);

/// Bytes of workspace that the body needs; the same figure as KernelBody::scratch_bytes.
std::int64_t scratch_bytes(const dag::Body& body, Target target);

/// Statistics that `build` prints per body. bytes: every buffer that a step reads or writes, once
/// per step.
struct KernelStats {
  std::int64_t kernels = 0, library_calls = 0, bytes = 0;
};
KernelStats kernel_stats(const KernelBody& body);

/// The buffers that a nest reads and writes.
struct BufferUse {
  std::set<BufferIndex> reads, writes;
};
BufferUse buffer_use(const Kernel& kernel);

/// One line per step with its ops, reads and writes.
std::string print(const KernelBody& body);

}  // namespace piper::backend
