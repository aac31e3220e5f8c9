#pragma once
// The seam between generated device programs and the runtime: plain C structs and functions,
// versioned.
//
// The compiler (or the interpreter) provides one PiperProgram per role; the runtime provides a
// PiperApi and one PiperRank per rank. Nothing here knows a strategy. Offsets are bytes from the
// start of a rank's arena. A program's compute stream is a function; its communication streams are
// tables that the runtime's progress engine walks. Streams of a rank wait for each other by
// monotonic counters: `completed[s]` counts the actions of stream s that ended since the program
// was started; action `position` of step t has ended when completed[s] > t * streams[s].num_actions
// + position. Steps count from 0 since the start of the program (a resumed run too).
#include <stdint.h>

#define PIPER_ABI_VERSION 13u
#define PIPER_MAX_SLOTS 4  // tensors of optimizer state that a parameter has at most

#ifdef __cplusplus
extern "C" {
#endif

typedef enum PiperDType { PIPER_F64 = 0, PIPER_F32 = 1, PIPER_I64 = 2, PIPER_BF16 = 3 } PiperDType;

// ---- description of a program: constant tables
// -------------------------------------------------------------------

// The source range that a message points to: `gpt.pipe`, 12, 5, up to but excluding 12, 19. line 0:
// no location.
typedef struct PiperSourceLocation {
  const char* file;
  uint32_t line, column;
  uint32_t end_line, end_column;
} PiperSourceLocation;

// The action and the source location that a message names when something fails: `F.stage2.mb3`.
typedef struct PiperActionInfo {
  const char* name;
  PiperSourceLocation place;
} PiperActionInfo;

// A rank's interval along one dimension of a value, or of a bucket whose values lie end to end: the
// positions [first, first + extent) of `global`.
typedef struct PiperInterval {
  uint64_t first, extent, global;
} PiperInterval;
#define PIPER_ALL_POSITIONS UINT32_MAX

// Shard `index` of `members`: shards are contiguous, and the first elements % members of them have
// one element more than the others.
static inline PiperInterval piper_shard(uint64_t elements, uint32_t members, uint32_t index) {
  const uint64_t per_member = elements / members, more = elements % members;
  const PiperInterval block = {per_member * index + (index < more ? index : more),
                               per_member + (index < more ? 1 : 0), elements};
  return block;
}

// The end of the action at `position` of `stream`, `distance` steps ago (0 or 1).
typedef struct PiperWait {
  uint32_t stream;
  uint32_t position;
  uint32_t distance;
} PiperWait;

typedef enum PiperCommOp {
  PIPER_SEND = 0,
  PIPER_RECV = 1,
  PIPER_ALL_REDUCE = 2,
  PIPER_ALL_GATHER_V = 3,
  PIPER_REDUCE_SCATTER = 4,
  PIPER_ALL_GATHER = 5,
  PIPER_OFFLOAD = 6,
  PIPER_FETCH = 7
} PiperCommOp;
#define PIPER_COMM_OPS 8u  // the number of ops: tables by op have as many rows

// One part of a message. send reads `in`; recv writes `out`; all_reduce reads `in` and writes `out`
// (may be equal); `in` is PIPER_NO_OFFSET if the member adds nothing. all_gather_v: one part per
// output, the contributions of all members one after the other in set order; `in` is set on this
// member's own parts and PIPER_NO_OFFSET on the others'. reduce_scatter and all_gather: member i of
// the communicator has shard i of `elements` (piper_shard). reduce_scatter reads all of `in` and
// writes its shard of the sum at the shard's position in `out`; gather reads its shard of `in` and
// writes the shards of all members to `out`. `in` and `out` may be equal. offload and fetch have
// one member: `out` of an offload and `in` of a fetch count from the start of the rank's arena on
// the host. Flags of reduce_scatter and all_gather:

// The member's own buffer (`out` of a reduce_scatter, `in` of an all_gather) holds its shard alone.
#define PIPER_SHARD_ONLY 1u
#define PIPER_ACCUMULATE 2u  // reduce_scatter: the sum is added to the values at `out`
// reduce_scatter: a range of padding at `out` that this member sets to 0 before its other parts are
// read; nothing moves.
#define PIPER_ZERO_FILL 4u
#define PIPER_NO_OFFSET UINT64_MAX
typedef struct PiperMessagePart {
  uint64_t in, out;  // byte offsets in the arena
  uint64_t elements;
  uint32_t dtype;  // PiperDType
  // Both offsets are those of position 0, and the part is this rank's interval
  // PiperRank::intervals[interval]; PIPER_ALL_POSITIONS: the part begins at the offsets.
  uint32_t interval;
  uint32_t flags;  // PIPER_SHARD_ONLY, PIPER_ACCUMULATE, PIPER_ZERO_FILL
  uint32_t reserved;
} PiperMessagePart;

typedef struct PiperCommAction {
  uint32_t op;            // PiperCommOp
  uint32_t communicator;  // position in PiperRank::communicators
  // Equal at all members of one matched communication; checked by the transport.
  uint32_t identity;
  uint32_t first_part, num_parts;  // into PiperProgram::parts
  uint32_t first_wait, num_waits;  // into PiperProgram::waits
  uint32_t action;                 // into PiperProgram::actions
} PiperCommAction;

typedef struct PiperStream {
  const char* name;
  uint32_t num_actions;
  uint32_t high_priority;
  // num_actions entries; null for the compute stream, which is stream 0.
  const PiperCommAction* comm;
  // num_actions entries: position -> index into PiperProgram::actions.
  const uint32_t* action_of;
} PiperStream;

typedef enum PiperInitKind {
  PIPER_NORMAL = 0,
  PIPER_UNIFORM = 1,
  PIPER_ZEROS = 2,
  PIPER_ONES = 3,
  PIPER_CONSTANT = 4
} PiperInitKind;

// One parameter copy on this role. Element i of the parameter, of its moving average and of its
// master weights starts as a function of (seed, name, i); all other state, with its padding, starts
// at zero.
typedef struct PiperParam {
  const char* name;
  uint64_t offset;       // of its values
  uint64_t grad_offset;  // of its gradient accumulators
  // Optimizer state (adamw: first and second moment; sgd: momentum; then the moving average, then
  // the master weights), PIPER_NO_OFFSET if none; with an interval: its first element.
  uint64_t slot_offsets[PIPER_MAX_SLOTS];
  // 1: slot_offsets count from the start of the arena in the memory of the host.
  uint32_t slots_on_host;
  // 1 + the slot that holds the moving average of the unrounded parameter; 0: none.
  uint32_t average_slot;
  uint64_t elements;
  uint32_t dtype;  // of its values
  // of its gradient and its slots; if wider than `dtype`, the last slot holds the master weights:
  // the unrounded parameter
  uint32_t sum_dtype;
  uint32_t init;  // PiperInitKind
  double scale;
  uint32_t counted;  // 1 on the one owner that is written to checkpoints and compared
  uint32_t num_dims;
  const int64_t* dims;
  // Element i of the parameter is element `first` + i of its bucket. The rank holds an interval of
  // the bucket: its reduced gradient and optimizer state cover the elements in it.
  // PIPER_ALL_POSITIONS: all elements.
  uint64_t first;
  uint32_t interval;  // into PiperRank::intervals
  // PiperSharded: the further state of which the rank holds only its interval; offsets are then
  // those of the interval's first element.
  uint32_t sharded;
} PiperParam;

// Each includes those before it.
typedef enum PiperSharded {
  PIPER_SHARDED_OPTIMIZER = 0,
  PIPER_SHARDED_GRADIENTS = 1,
  PIPER_SHARDED_PARAMETERS = 2
} PiperSharded;

// A model input as a whole: global extents.
typedef struct PiperInput {
  const char* name;
  uint32_t dtype;
  uint32_t num_dims;
  const int64_t* dims;  // dims[sample_dim] is the batch
  uint32_t sample_dim;
} PiperInput;

typedef struct PiperLoss {
  const char* name;
  uint64_t count;  // elements over the whole batch
  // 1: not every element counts; the last value of a report is the number of those that do, and
  // divides the sum if it is above 1.
  uint32_t masked;
  uint32_t targets;  // masked: the input whose elements count unless they are `ignore`
  int64_t ignore;
} PiperLoss;

// The functions of libraries, by the rows of runtime/calls.def.
typedef enum PiperCallKind {
#define CALL(name, KIND, operands, results, family) PIPER_CALL_##KIND,
#include "runtime/calls.def"
#undef CALL
} PiperCallKind;
enum {
  PIPER_CALL_KINDS = 0  // the number of kinds
#define CALL(name, KIND, operands, results, family) +1
#include "runtime/calls.def"
#undef CALL
};
#define PIPER_MAX_CALL_OPERANDS 6
#define PIPER_MAX_CALL_RESULTS 3

// c[b][m][n] = a[b][m][k] b[b][k][n], stored as PiperCallEnd says. transpose_a: a is stored
// [b][k][m]; likewise b. Dense, row-major. `dtype` is that of a, b and c, except that products of
// PIPER_BF16 have a c of f32 unless they round.
typedef struct PiperGemm {
  int64_t batch, m, n, k;
  uint32_t transpose_a, transpose_b;
  uint32_t dtype;
} PiperGemm;

// The implementation of attention on a GPU; the compiler chooses it by shape and type
// (backend/cuda/attention.h). CPUs ignore it.
typedef enum PiperAttendForm {
  PIPER_ATTEND_BUILTIN = 0,   // Piper's own kernel
  PIPER_ATTEND_FLASH = 1,     // LibTorch's flash attention
  PIPER_ATTEND_EFFICIENT = 2  // LibTorch's memory-efficient attention
} PiperAttendForm;

// q[batch][seq][heads][width], k[batch][keys][kv_heads][width],
// v[batch][keys][kv_heads][value_width]; out as q with value_width; lse[batch][heads][seq], for
// PIPER_BF16 in f32. `batch` is the product of all leading dimensions.
typedef struct PiperAttend {
  int64_t batch, seq, keys, heads, kv_heads, width, value_width;
  double scale;
  uint32_t causal;
  uint32_t dtype;
  uint32_t form;  // PiperAttendForm
} PiperAttend;

// Everything about a call that is the same at each of its places. Programs hold each distinct shape
// once, as a constant.
typedef struct PiperCallShape {
  uint32_t kind;  // PiperCallKind
  // Distinct shapes of a program have distinct numbers, and the numbers are small: a library keeps
  // what it prepares for a shape in a table by number.
  uint32_t number;
  union {  // by kind
    PiperGemm gemm;
    PiperAttend attend;
  } of;
} PiperCallShape;

// How a product stores its sums; other calls write. Products of PIPER_BF16 are summed in f32: c is
// f32, or bf16 if the sums are rounded, once. Only GPUs round.
typedef enum PiperCallEnd {
  PIPER_END_WRITES = 0,
  PIPER_END_ADDS = 1,
  PIPER_END_ROUNDS = 2
} PiperCallEnd;
#define PIPER_CALL_ENDS 3u

// One call. Nothing in it outlives the call except the shape.
typedef struct PiperCall {
  const PiperCallShape* shape;
  const void* const* in;  // addresses of the operands, in the order of runtime/calls.def
  void* const* out;       // of the results
  void* workspace;        // memory that the plan reserves for this call; null if it has 0 bytes
  uint64_t workspace_bytes;
  uint32_t end;  // PiperCallEnd
} PiperCall;

struct PiperRank;
struct PiperApi;

typedef struct PiperProgram {
  uint32_t abi_version;
  const char* role;      // `pp0`
  const char* hash;      // content hash of the program, in hex
  uint64_t arena_bytes;  // the whole arena, 64-byte aligned
  // The front part that persists from one program to the next: parameters, gradients, optimizer
  // state.
  uint64_t state_bytes;
  uint64_t host_bytes;        // the arena in the memory of the host, 64-byte aligned
  uint64_t host_state_bytes;  // the front part of the host arena that persists: optimizer state
  uint64_t scalars_offset;    // of PiperScalars
  uint32_t num_actions, num_waits, num_parts, num_streams, num_communicators, num_intervals;
  const PiperActionInfo* actions;
  const PiperWait* waits;  // of communication actions
  const PiperMessagePart* parts;
  const PiperStream* streams;
  // The extents of PiperRank::intervals that the program was generated for: the same on all ranks
  // of the role.
  const uint64_t* extents;
  uint32_t num_params;
  const PiperParam* params;
  // Runs the compute stream of one step; 0 done, otherwise cancelled or failed (the reason was
  // given to api->fail).
  int (*step)(const struct PiperApi* api, struct PiperRank* rank);
  const void* context;  // the interpreter's own
} PiperProgram;

// ---- at run time
// -----------------------------------------------------------------------------------------------------

// The scalars that one step's update reads; the runtime writes them into the arena before the step.
typedef struct PiperScalars {
  double step;  // 1 for the first update
  double learning_rate;
  double bias1, bias2;  // 1 - beta^step (adamw), else 1
  double one;           // 1: the clip factor of an update without clipping
} PiperScalars;

typedef struct PiperCommunicator {
  uint32_t id;    // unique in the job; equal at all members
  uint32_t kind;  // 0 pair, 1 group
  uint32_t num_members;
  // Global ranks; pair: source, destination; group: in set order, then coordinate order.
  const uint32_t* members;
  uint32_t self;      // own position in members
  uint32_t num_sets;  // group: member sets; members are set-major
} PiperCommunicator;

// The fixed part of a rank's flight record: for every stream the last action started and ended
// (counts since start).
#define PIPER_MAX_STREAMS 64
#define PIPER_FLIGHT_RING 256
typedef struct PiperFlightEvent {
  uint32_t stream, action;
  uint64_t begin_ns, end_ns;
} PiperFlightEvent;
typedef struct PiperFlight {
  uint32_t abi_version, rank, num_streams, failed;
  char hash[40];
  uint64_t step;
  uint64_t started[PIPER_MAX_STREAMS], ended[PIPER_MAX_STREAMS];
  uint64_t events;  // written so far; the ring holds the last ones of the compute stream
  PiperFlightEvent ring[PIPER_FLIGHT_RING];
  // 1 while the compute stream sleeps in api->wait, for completed[waiting_stream] >=
  // waiting_target.
  uint32_t waiting;
  uint32_t waiting_stream;
  uint64_t waiting_target;
} PiperFlight;

typedef struct PiperRank {
  const PiperProgram* program;
  unsigned char* arena;
  unsigned char* host;   // program->host_bytes; null if that is 0
  uint64_t step;         // of the compute stream, since the program was started
  uint64_t global_step;  // of training: keys data and random numbers
  uint64_t seed;
  // Per stream, each on its own cache line: completed[stream * PIPER_COUNTER_STRIDE].
  uint64_t* completed;
  PiperFlight* flight;
  const PiperCommunicator* communicators;
  // program->num_intervals: this rank's intervals of sharded dimensions.
  const PiperInterval* intervals;
  uint32_t rank;
  volatile uint32_t* sleepers;  // nonzero: the progress engine sleeps and wants api->wake
  void* runtime;                // the runtime's own
  // Times the compute stream's actions for the flight record; null: untimed.
  uint64_t (*now_ns)(void);
} PiperRank;
#define PIPER_COUNTER_STRIDE 8u

typedef struct PiperApi {
  uint32_t abi_version;
  // Blocks until completed[stream] >= target; nonzero when the run was cancelled. Called only when
  // the counter is still below.
  int (*wait)(PiperRank* rank, uint32_t stream, uint64_t target);
  // Notifies the progress engine that a counter moved.
  void (*wake)(PiperRank* rank);
  // Fails the run: `action` is the one that ran, `where` the expression in it that refused the
  // value. message has static storage; value is shown with it. Always nonzero.
  int (*fail)(PiperRank* rank, uint32_t action, const PiperSourceLocation* where,
              const char* message, int64_t value);
  // Writes `samples` samples of input `input`, from sample `first` of the step's batch, to `to`;
  // nonzero on failure.
  int (*load)(PiperRank* rank, uint32_t action, uint32_t input, uint64_t first, uint64_t samples,
              void* to);
  // Hands over the loss sums of all microbatches, then the count of a masked loss (or, for subject
  // PIPER_NORM, the gradient norm) of this step.
  void (*report)(PiperRank* rank, uint32_t subject, const double* values, uint32_t count);
  // Makes a library call; nonzero on failure.
  int (*call)(PiperRank* rank, uint32_t action, const PiperCall* call);
  uint64_t (*now_ns)(void);
} PiperApi;
#define PIPER_NORM 0xFFFFFFFFu

// Bytes of an element in the type that operations of `dtype`, a PiperDType, compute in.
static inline uint64_t piper_wide_bytes(uint32_t dtype) {
  switch ((PiperDType)dtype) {
    case PIPER_F64:
    case PIPER_I64: return 8;
    case PIPER_F32:
    case PIPER_BF16: return 4;
  }
  return 0;
}

// ---- library calls
// -----------------------------------------------------------------------------------------------------

// `attend`; null for an unknown kind.
static inline const char* piper_call_name(uint32_t kind) {
  switch ((PiperCallKind)kind) {
#define CALL(name, KIND, operands, results, family) \
  case PIPER_CALL_##KIND: return #name;
#include "runtime/calls.def"
#undef CALL
  }
  return (const char*)0;
}

static inline int piper_same_gemm(const PiperGemm* a, const PiperGemm* b) {
  return a->batch == b->batch && a->m == b->m && a->n == b->n && a->k == b->k &&
         a->transpose_a == b->transpose_a && a->transpose_b == b->transpose_b &&
         a->dtype == b->dtype;
}

static inline int piper_same_attend(const PiperAttend* a, const PiperAttend* b) {
  return a->batch == b->batch && a->seq == b->seq && a->keys == b->keys && a->heads == b->heads &&
         a->kv_heads == b->kv_heads && a->width == b->width && a->value_width == b->value_width &&
         a->scale == b->scale && a->causal == b->causal && a->dtype == b->dtype &&
         a->form == b->form;
}

// 1 if two shapes have equal kinds and members; their numbers may differ.
static inline int piper_same_shape(const PiperCallShape* a, const PiperCallShape* b) {
  if (a->kind != b->kind) return 0;
  switch ((PiperCallKind)a->kind) {
    case PIPER_CALL_GEMM: return piper_same_gemm(&a->of.gemm, &b->of.gemm);
    case PIPER_CALL_ATTEND:
    case PIPER_CALL_ATTEND_GRAD: return piper_same_attend(&a->of.attend, &b->of.attend);
  }
  return 0;
}

// Bytes of workspace that an attention call may use on a CPU; the plan reserves them.
static inline uint64_t piper_attend_workspace(const PiperAttend* call) {
  const uint64_t element = piper_wide_bytes(call->dtype);
  const uint64_t q = (uint64_t)(call->batch * call->seq * call->heads);
  const uint64_t k = (uint64_t)(call->batch * call->keys * call->heads);
  const uint64_t scores = call->dtype == PIPER_F64 ? q * (uint64_t)call->keys : 512u * 1024u;
  // Elements of all operands, and of their gradients.
  const uint64_t per_member = (q + k) * (uint64_t)(call->width + call->value_width);
  // Their f32 forms.
  const uint64_t widened = call->dtype == PIPER_BF16 ? 2 * (element * per_member + 256) : 0;
  return widened + element * (4 * per_member + 4 * q + 3 * scores) + (1u << 20);
}

// ---- the job of one process
// ---------------------------------------------------------------------------------------

typedef enum PiperDataKind {
  PIPER_NO_DATA = 0,
  PIPER_BYTES = 1,
  PIPER_SYNTHETIC = 2,
  PIPER_ARRAYS = 3,
  PIPER_TOKENS = 4
} PiperDataKind;

// The type of ids in a file without a header; BY_FILE: the header says it, or it is u16.
typedef enum PiperTokenType {
  PIPER_TOKENS_BY_FILE = 0,
  PIPER_TOKENS_U8 = 1,
  PIPER_TOKENS_U16 = 2,
  PIPER_TOKENS_U32 = 3,
  PIPER_TOKENS_I32 = 4
} PiperTokenType;

// The order of training samples.
typedef enum PiperSampling {
  PIPER_REPLACEMENT = 0,  // each sample is drawn by itself
  PIPER_EPOCH = 1         // each sample once per epoch
} PiperSampling;

typedef struct PiperData {
  uint32_t kind;     // PiperDataKind
  const char* path;  // bytes, tokens: a file, or a folder; arrays: a file
  int64_t batch;
  int64_t seq;      // bytes, tokens: window length
  int64_t classes;  // synthetic: integers in [0, classes)
  // held-out data: at most this number, spread evenly; 0: all of them (synthetic: one).
  int64_t batches;
  PiperActionInfo where;  // the `data` line
  uint32_t sampling;      // PiperSampling; bytes, tokens and arrays in training
  uint32_t token_type;    // PiperTokenType; tokens
} PiperData;

typedef struct PiperOptimizer {
  const char* name;  // `adamw`
  // 1: the scalars bias1, bias2 of step t are 1 - beta1^t, 1 - beta2^t; 0: they are 1.
  uint32_t corrects_bias;
  uint32_t schedule;  // 0 constant, 1 cosine, 2 linear
  double base, floor;
  uint64_t warmup, total;  // steps
  double beta1, beta2;
  uint32_t clips;  // 1: gradients are clipped by their norm
  // 1: a step changes no parameter if the norm of its gradients is above `skip_above` or not finite.
  uint32_t skips;
  double skip_above;
  // Updates beyond the step count, which differ after a resume with another batch: the bias of step
  // t is that of update t + further_updates.
  int64_t further_updates;
} PiperOptimizer;

// All ranks of this process. Ranks of one role share a program.
typedef struct PiperJobRank {
  uint32_t rank;
  const PiperProgram* program;
  const PiperProgram* evaluation;          // null: none
  const PiperCommunicator* communicators;  // program->num_communicators
  const PiperCommunicator* evaluation_communicators;
  const PiperInterval* intervals;  // program->num_intervals
  const PiperInterval* evaluation_intervals;
} PiperJobRank;

typedef struct PiperJob {
  uint32_t abi_version;
  const char* train;  // its name
  uint32_t world;
  uint32_t num_ranks;  // local ones
  const PiperJobRank* ranks;
  uint32_t num_inputs;
  const PiperInput* inputs;
  // Input number `num_inputs` of evaluation programs: 1 for a sample of the data, 0 for a sample
  // that pads a short last batch. Null: they take full batches only.
  const PiperInput* sample_weight;
  uint32_t num_losses;
  const PiperLoss* losses;
  PiperData data, held_out;
  PiperOptimizer optimizer;
  uint64_t seed, first_step, steps;
  // Steps from one checkpoint, or one evaluation of `held_out`, to the next; 0: none before the end.
  // `checkpoint_keep`: the newest checkpoints that are kept; 0: all.
  uint64_t checkpoint_every, checkpoint_keep, evaluate_every;
  // 1: held-out data is evaluated before each checkpoint, and the one with the lowest loss is kept
  // beside the newest.
  uint32_t checkpoint_best;
  // Tokens: samples times the integers per sample of the input that has most; at least one.
  uint64_t samples_per_step, tokens_per_step;
} PiperJob;

// An input that a program loads; null if the job has no input of that number.
static inline const PiperInput* piper_input(const PiperJob* job, uint32_t input) {
  if (input < job->num_inputs) return &job->inputs[input];
  return input == job->num_inputs ? job->sample_weight : (const PiperInput*)0;
}

// ---- inline parts of the step loop
// -------------------------------------------------------------------------------------

static inline void piper_begin(PiperRank* rank, uint32_t stream, uint32_t position) {
  PiperFlight* flight = rank->flight;
  PiperFlightEvent* event = &flight->ring[flight->events % PIPER_FLIGHT_RING];
  flight->started[stream] = rank->step * rank->program->streams[stream].num_actions + position + 1;
  event->stream = stream;
  event->action = position;
  event->begin_ns = rank->now_ns ? rank->now_ns() : 0;
  event->end_ns = 0;
}

static inline void piper_end(const PiperApi* api, PiperRank* rank, uint32_t stream,
                             uint32_t position) {
  const uint64_t count = rank->step * rank->program->streams[stream].num_actions + position + 1;
  PiperFlight* flight = rank->flight;
  flight->ended[stream] = count;
  flight->ring[flight->events % PIPER_FLIGHT_RING].end_ns = rank->now_ns ? rank->now_ns() : 0;
  flight->events++;
  __atomic_store_n(&rank->completed[stream * PIPER_COUNTER_STRIDE], count, __ATOMIC_SEQ_CST);
  if (__atomic_load_n(rank->sleepers, __ATOMIC_SEQ_CST)) api->wake(rank);
}

// Nonzero when the run was cancelled.
static inline int piper_wait(const PiperApi* api, PiperRank* rank, uint32_t stream,
                             uint32_t position, uint32_t distance) {
  if (rank->step < distance) return 0;
  const uint64_t target =
      (rank->step - distance) * rank->program->streams[stream].num_actions + position + 1;
  if (__atomic_load_n(&rank->completed[stream * PIPER_COUNTER_STRIDE], __ATOMIC_ACQUIRE) >= target)
    return 0;
  return api->wait(rank, stream, target);
}

#ifdef __cplusplus
}

// A library call of generated code.
template <unsigned num_in, unsigned num_out>
static inline int piper_call(const PiperApi* api, PiperRank* rank, uint32_t action,
                             const PiperCallShape* shape, const void* const (&in)[num_in],
                             void* const (&out)[num_out], uint32_t end = PIPER_END_WRITES,
                             void* workspace = 0, uint64_t workspace_bytes = 0) {
  const PiperCall call = {shape, in, out, workspace, workspace_bytes, end};
  return api->call(rank, action, &call);
}
#endif
