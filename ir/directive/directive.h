#pragma once
// Resolved directives of a train or schedule, after the front end evaluated every expression.
// Selectors have concrete indices, orders are trees of concrete operations. Directives are a set;
// the passes apply them in level order.
//
//   partition model into stage: 4 with sizes: [1, 1, 1, 1]
//   split batch into mb: 8
//   place stage[0] on cluster[pp: 0]
//   replicate model over dp with bucket: 26214400
//   order ranks { cluster[pp: 0] { F stage[0] mb[0]; { F stage[0] mb[1] } & { B stage[0] mb[0] } } }

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "ir/directive/directive_rows.h"
#include "ir/directive/numbers.h"
#include "ir/mesh.h"
#include "ir/pass.h"
#include "ir/tensor/type.h"
#include "ir/weight_map.h"

namespace piper::directive {

/// The communication of a region that a selector names (`model.reduce`); `none`: its work.
enum class CommClass : std::uint8_t { none, send, recv, gather, reduce, enter, leave };
std::string_view part_name(CommClass part);

/// One name of a selector: a region or a split dimension, with the indices meant, in written order;
/// `all` if no index was written. With `rest` it is the loose work directly inside the region
/// `name` (`model`: outside every region), and the indices count its segments. It follows the
/// coordinate of its region: `block[1].rest[0]` is two coordinates, `model.rest` is one.
struct Coordinate {
  Symbol name;
  bool all = true;
  std::vector<std::uint32_t> indices;
  LocId loc;  // `mb[0..4]`
  bool rest = false;
};

/// The text of a coordinate in a selector, without its indices: `block` or `.rest`, after a space
/// unless it is the `first`.
std::string coordinate_text(std::string_view name, bool rest, bool first);

/// A conjunction of coordinates; none at all means the whole model. A name that occurs as a region
/// on the path and as a dimension is looked up as a dimension first. `part` selects communication
/// instead of work.
struct Selector {
  std::optional<Pass> pass;
  std::vector<Coordinate> coordinates;
  CommClass part = CommClass::none;
  LocId loc;
};

/// The narrower of two locations if it is known.
inline LocId narrowest(LocId narrow, LocId wide) { return narrow.valid() ? narrow : wide; }

struct NamedExtent {
  Symbol name;
  std::uint32_t extent = 1;
  LocId loc = {};  // `mb: 4`
};

// ---- the lines of directives.def
// -------------------------------------------------------------------------------------
//
// `fields(io, line)` of each struct describes its lines once, for print, parse, numbers, lowering
// and the passes (visit_fields): a call for the subject, for each clause and for each setting, in
// the order of the text. `IgnoreFields` lists the calls.

struct Partition {
  Selector region;
  NamedExtent into;
  std::vector<std::uint32_t> sizes;  // empty: balanced by cost
  LocId loc;
  LocId sizes_loc = {};

  static void fields(auto& io, auto& line) {
    io.region(line.region);
    io.into(line.into, kStages);
    io.setting("sizes", line.sizes, line.sizes_loc);
  }
};

/// `split batch into copy: 2, mb: 4`: dimensions in written order, the last is fastest over the
/// samples.
struct Split {
  Symbol dim;  // the model's dimension; `batch`
  std::vector<NamedExtent> into;
  std::vector<Selector> targets;  // empty: the whole model
  LocId loc;
  LocId dim_loc = {};

  static void fields(auto& io, auto& line) {
    io.dimension(line.dim, line.dim_loc);
    io.into(line.into, kParts);
    io.in(line.targets);
  }
};

struct Place {
  std::vector<Selector> targets;
  DeviceSetId devices;
  LocId loc;
  // Number of enclosing calls of schedules: a line of the caller overrides lines of the called
  // schedule.
  std::uint32_t depth = 0;

  static void fields(auto& io, auto& line) {
    io.targets(line.targets);
    io.on(line.devices);
    io.number("depth", line.depth);
  }
};

/// Whether the target of `a` overrides that of `b` for work in both: the line in fewer calls wins,
/// then the target with more coordinates, where a pass counts as one.
bool holds_over(const Place& a, const Selector& of_a, const Place& b, const Selector& of_b);

/// When gradients are summed over the replicas: once per step, after each backward, or after each
/// run. A run is the uses of a unit's parameters with no other work of its devices between them, in
/// issue order.
enum class Reduce : std::uint8_t { step, microbatch, unit };
std::string_view reduce_name(Reduce reduce);
std::optional<Reduce> parse_reduce(std::string_view name);

struct Replicate {
  std::vector<Selector> targets;
  std::vector<Symbol> axes;
  std::uint32_t zero = 0;
  std::optional<std::int64_t> bucket_bytes;
  std::optional<std::uint32_t> prefetch;
  std::optional<Reduce> reduce;
  LocId loc;
  // of the settings, as far as they are written
  LocId zero_loc = {}, prefetch_loc = {}, reduce_loc = {};

  static void fields(auto& io, auto& line) {
    io.targets(line.targets);
    io.over(line.axes);
    io.setting("zero", line.zero, line.zero_loc);
    io.setting("bucket", line.bucket_bytes);
    io.setting("prefetch", line.prefetch, line.prefetch_loc);
    io.setting("reduce", line.reduce, line.reduce_loc);
  }
};

/// Which of two streams of a device goes first.
enum class Priority : std::uint8_t { high, normal };

struct Stream {
  Symbol name;
  std::vector<Selector> targets;
  std::optional<std::uint32_t> window;
  Priority priority = Priority::normal;
  LocId loc;
  LocId window_loc = {};  // `window: 4`

  static void fields(auto& io, auto& line) {
    io.name(line.name);
    io.targets(line.targets);
    io.setting("window", line.window, line.window_loc);
    io.setting("priority", line.priority);
  }
};

/// `recompute block[0..4] mb[0..2]`: their forward runs again before the backward, and its values
/// are not kept in between.
struct Recompute {
  std::vector<Selector> targets;
  LocId loc;

  static void fields(auto& io, auto& line) { io.targets(line.targets); }
};

/// `offload block[0..4] mb[1..3] with window: 2`: each device keeps the saved values of `window`
/// instances; those of the others are in the memory of its host until their backward. With
/// `what: optimizer` the same for the optimizer state of the buckets of parameters that the targets
/// use.
struct Offload {
  enum class What : std::uint8_t { activations, optimizer };
  std::vector<Selector> targets;
  std::uint32_t window = 1;  // at least 1
  What what = What::activations;
  LocId loc;

  static void fields(auto& io, auto& line) {
    io.targets(line.targets);
    io.setting("window", line.window);
    io.setting("what", line.what);
  }
};

/// `freeze embed`: the parameters that these regions use keep their initial values.
struct Freeze {
  static constexpr bool kNamesWeights = true;  // see `names_weights`
  std::vector<Selector> targets;
  LocId loc;

  static void fields(auto& io, auto& line) { io.targets(line.targets); }
};

/// `tune embed with rate: 0.5, decay: 0`: factors of the learning rate and of the weight decay of the
/// parameters that these regions use.
struct Tune {
  static constexpr bool kNamesWeights = true;  // see `names_weights`
  std::vector<Selector> targets;
  std::optional<double> rate, decay;  // at least 0
  LocId loc;
  LocId rate_loc = {}, decay_loc = {};

  static void fields(auto& io, auto& line) {
    io.targets(line.targets);
    io.setting("rate", line.rate, line.rate_loc);
    io.setting("decay", line.decay, line.decay_loc);
  }
};

/// The directive of the language that a line belongs to.
#define DIRECTIVE(keyword, Line, ...) \
  constexpr DirectiveKind kind_of(const Line&) { return DirectiveKind::keyword; }
#include "ir/directive/directives.def"

/// The calls that `fields` makes, with members of a line that are const or not; each does nothing.
/// A derived class hides those that it needs.
struct IgnoreFields {
  void region(auto& /*selector*/) {}
  void dimension(auto& /*symbol*/, auto& /*loc*/) {}
  void name(auto& /*symbol*/) {}
  void targets(auto& /*selectors*/) {}
  /// One extent or a list; `bounds` of their numbers.
  void into(auto& /*extents*/, const Number& /*bounds*/) {}
  /// No selectors: the clause is absent.
  void in(auto& /*selectors*/) {}
  void on(auto& /*devices*/) {}
  void over(auto& /*axes*/) {}
  /// A setting of directives.def: a number, a list of numbers, an enumerator, or an optional of
  /// these; with its location if the line has one.
  void setting(std::string_view /*name*/, auto& /*value*/, auto&... /*loc*/) {}
  /// A number that only `.pir` has, printed as a setting unless it is 0.
  void number(std::string_view /*name*/, auto& /*value*/) {}
};

// ---- the other lines
// --------------------------------------------------------------------------------------------------

enum class Measure : std::uint8_t {
#define MEASURE(name, unit) name,
#include "ir/directive/measures.def"
#undef MEASURE
};
inline constexpr std::string_view kMeasureNames[] = {
#define MEASURE(name, unit) #name,
#include "ir/directive/measures.def"
#undef MEASURE
};
/// Whether the measure is in bytes; else it is a ratio.
bool counts_bytes(Measure measure);
enum class Compare : std::uint8_t { less, less_equal, greater, greater_equal, equal, not_equal };
inline constexpr std::string_view kCompareNames[] = {"<", "<=", ">", ">=", "==", "!="};

/// `found < bound`, or the comparison that `compare` names.
bool holds(double found, Compare compare, double bound);

/// `require peak_memory < 8GiB else "text"`: checked after planning. `bound` is in the measure's
/// unit.
struct Require {
  Measure measure;
  Compare compare;
  double bound = 0;
  std::string message;
  LocId loc;
};

// ---- orders
// ----------------------------------------------------------------------------------------------------------

/// One operation of an order: every coordinate has exactly one index.
struct OrderOp {
  Pass pass = Pass::F;
  CommClass part = CommClass::none;
  std::uint32_t first_coordinate = 0;  // into Order::coordinates
  std::uint32_t num_coordinates = 0;
  LocId loc;
};
struct OrderCoordinate {
  Symbol name;
  std::uint32_t index = 0;
  bool all = false;   // named without an index
  LocId loc = {};     // `mb[0..4]`
  bool rest = false;  // as in `Coordinate`
};

/// A step is an operation, a sequence `{ a; b }`, or an overlap group `a & b`. An operation whose
/// lists name several chunks (`B stage[0..2] mb[i]`) is one step with one OrderOp for each, in
/// written order: the passes run them in data order.
struct OrderStep {
  enum class Kind : std::uint8_t { op, sequence, group } kind = Kind::op;
  std::uint32_t first = 0;  // op: into Order::ops; sequence, group: into Order::children
  std::uint32_t count = 0;
  LocId loc;
};

/// The steps of one claimed device set (`rank r in p` at one coordinate).
struct RankSteps {
  DeviceSetId devices;
  std::uint32_t first_step = 0;  // into Order::children
  std::uint32_t num_steps = 0;
  LocId loc;
};

/// An order: a table of steps per rank, with its `trim`s. Flat storage; 10^5 operations are normal.
struct Order {
  /// `trim`: keeps the indices of a dimension that are below `bound`.
  struct Trim {
    Symbol dim;
    std::uint32_t bound = 1;
    LocId loc;
  };
  /// Coordinates [first, end) were written at `loc`, in the list of a cursor, not at their
  /// operations.
  struct Origin {
    std::uint32_t first = 0, end = 0;
    LocId loc;
  };
  std::vector<RankSteps> ranks;
  std::vector<OrderStep> steps;
  std::vector<std::uint32_t> children;  // indices into steps
  std::vector<OrderOp> ops;
  std::vector<OrderCoordinate> coordinates;
  std::vector<Trim> trims;      // in the order in which they are applied
  std::vector<Origin> origins;  // ascending; for messages, not part of the text
  LocId loc;

  /// The location at which the coordinates of an operation were written.
  LocId written_at(const OrderOp& op) const;
};

/// A line of a strategy: an order, a requirement, or a line of directives.def.
#define DIRECTIVE(keyword, Line, ...) , Line
using Directive = std::variant<Order, Require
#include "ir/directive/directives.def"
                               >;

/// Calls `fields` of a directive; orders and requirements have none.
template <typename Io>
void visit_fields(Io&& io, const Directive& directive) {
  std::visit(
      [&](const auto& line) {
        if constexpr (requires { line.fields(io, line); }) line.fields(io, line);
      },
      directive);
}

/// The row of a directive; null for orders and requirements.
const DirectiveRow* find_row(const Directive& directive);
/// Whether its targets mean weights, wherever these are used, and not work: their regions do not
/// become chunks.
bool names_weights(const Directive& directive);
/// The targets of a directive, those of `in` included; none for partitions, orders and
/// requirements.
std::span<const Selector> targets_of(const Directive& directive);

// ---- settings of a train
// ---------------------------------------------------------------------------------------------

/// A learning rate over steps. linear warm-up from 0 to `base` over `warmup` steps, then constant,
/// or cosine down to `floor` at the last step.
struct LearningRate {
  enum class Kind : std::uint8_t { constant, cosine, linear } kind = Kind::constant;
  double base = 1e-3;
  std::uint32_t warmup = 0;
  double floor = 0;
  LocId warmup_loc = {};
};

/// The parameters that decay: all, or those that a product or a lookup reads.
enum class Decay : std::uint8_t { all, matrices };
inline constexpr std::string_view kDecayNames[] = {"all", "matrices"};

struct Optimizer {
  enum class Kind : std::uint8_t {
#define OPTIMIZER(name) name,
#include "ir/directive/optimizers.def"
#undef OPTIMIZER
  } kind = Kind::sgd;
  LearningRate lr;
  double momentum = 0;                            // sgd
  double beta1 = 0.9, beta2 = 0.999, eps = 1e-8;  // adamw
  double weight_decay = 0;  // decoupled for adamw, added to the gradient for sgd
  Decay decay = Decay::all;
  std::optional<double> clip;  // global gradient norm
  LocId loc;

  static constexpr std::uint32_t kMaxSlots = 2;
  /// State tensors per parameter: both moments for adamw, the momentum for sgd if it has one.
  /// A moving average and master weights may be added to them (ir/dag/bucket_layout.h).
  std::uint32_t slots() const {
    switch (kind) {
      case Kind::sgd: return momentum != 0 ? 1 : 0;
      case Kind::adamw: return 2;
    }
    return 0;
  }
  /// Its update takes 1 - beta1^t and 1 - beta2^t for step t as scalars.
  bool corrects_bias() const {
    switch (kind) {
      case Kind::sgd: return false;
      case Kind::adamw: return true;
    }
    return false;
  }
};
inline constexpr std::string_view kOptimizerNames[] = {
#define OPTIMIZER(name) #name,
#include "ir/directive/optimizers.def"
#undef OPTIMIZER
};

/// The source of inputs. bytes: windows of a file; integer inputs `tokens` and `targets` (shifted
/// by one). synthetic: floats N(0, 1), integers uniform in [0, classes). arrays: lines of a file of
/// numbers, whose columns have the inputs' names. Sample i of step s is a function of (seed, s, i)
/// alone.
/// The type of ids in a file of `tokens`; by_file: its header says it, or it is u16.
enum class TokenType : std::uint8_t { by_file, u8, u16, u32, i32 };
inline constexpr std::string_view kTokenTypeNames[] = {"by_file", "u8", "u16", "u32", "i32"};

/// The order of training samples: each drawn by itself, or each once per epoch.
enum class Sampling : std::uint8_t { replacement, epoch };
inline constexpr std::string_view kSamplingNames[] = {"replacement", "epoch"};

struct Data {
  enum class Kind : std::uint8_t { bytes, synthetic, arrays, tokens } kind = Kind::synthetic;
  // Bytes, tokens: a file, or a folder of files, read in sorted order; arrays: a file.
  std::string path;
  LocId path_loc = {};
  std::int64_t batch = 0;                                // samples per step
  std::vector<std::pair<Symbol, std::int64_t>> extents;  // other dimensions, `seq: 128`
  std::int64_t classes = 0;                              // synthetic
  // held-out data: at most this number, spread evenly; 0: all (synthetic: one).
  std::int64_t batches = 0;
  LocId loc;
  std::vector<LocId> extent_locs = {};  // synthetic: locations of their names
  LocId classes_loc = {}, batches_loc = {};
  TokenType token_type = TokenType::by_file;  // tokens
  Sampling sampling = Sampling::epoch;        // in training, unless synthetic
  LocId sampling_loc = {};                    // of a written one

  /// Whether a sample is a window of a text: inputs `tokens` and `targets`.
  bool gives_windows() const { return kind == Kind::bytes || kind == Kind::tokens; }
};
inline constexpr std::string_view kDataNames[] = {"bytes", "synthetic", "arrays", "tokens"};

/// How often a train does something: after each `steps` steps, and at its end.
struct Every {
  std::uint64_t steps = 1;
  std::uint64_t keep = 0;  // checkpoints: at most this number, the newest; 0: all
  bool best = false;       // checkpoints: the one with the lowest held-out loss is kept, too
  LocId loc;
  LocId keep_loc = {}, best_loc = {};
};

/// The first values of parameters, from a file of weights.
struct InitialWeights {
  std::string path;  // a safetensors file, or a folder of such files
  // The `names` item that says which tensors the parameters are in; empty: those of their names.
  std::string names = {};
  // That item for the model; null without one, and in a DAG that was read from text: its text has
  // the name alone, because plans take no weights.
  std::shared_ptr<const WeightMap> map = {};
  // Parameters that it lacks keep the values of their initializers; otherwise none may be missing.
  bool keeps_missing = false;
  LocId loc;
  LocId path_loc = {};
};

/// The kind of device that a plan is for; its kernels determine the workspaces.
enum class Platform : std::uint8_t { cpu, cuda };
inline constexpr const char* kPlatformNames[] = {"cpu", "cuda"};
/// A suffix for memory figures in messages: ` in a plan for `cuda``; empty for the default device.
std::string planned_for(Platform device);

struct Settings {
  std::string train;  // the name of the train
  std::optional<Data> data;
  std::optional<Data> held_out;
  std::optional<Optimizer> optimizer;
  std::uint64_t steps = 0;
  bool steps_given = false;
  tensor::DType dtype = tensor::DType::f32;
  std::uint64_t seed = 0;
  Platform device = Platform::cpu;
  std::optional<Every> checkpoint;
  std::optional<Every> evaluate;  // of `held_out`
  std::optional<InitialWeights> init;
  // The decay of a moving average of the trained parameters, in [0, 1).
  std::optional<double> ema;
  // A step whose gradient norm is above this number, or not finite, changes no parameter.
  std::optional<double> skip_above;
  LocId ema_loc = {}, skip_loc = {};
  LocId loc;

  /// Whether updates wait for the norm of all gradients.
  bool updates_read_norm() const { return optimizer && (optimizer->clip || skip_above); }
};

/// The input of the passes beside the tensor graph.
struct Strategy {
  Mesh mesh;
  DeviceSetTable device_sets;
  std::vector<Directive> directives;
  Settings settings;
};

}  // namespace piper::directive
