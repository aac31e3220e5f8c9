// Projection of a planned DAG: from nodes, ports and buffers to offsets and tables.
#include <algorithm>
#include <cassert>
#include <cstddef>
#include <map>

#include "backend/device_program/abi_types.h"
#include "backend/device_program/device_program.h"
#include "backend/device_program/program_bodies.h"
#include "backend/device_program/rank_tables.h"
#include "ir/dag/bucket_layout.h"
#include "ir/dag/local_type.h"
#include "ir/dag/value_layout.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/ErrorHandling.h"
#include "llvm/Support/SHA1.h"

namespace piper::backend {

using dag::Dag;
using dag::Node;
using dag::NodeKind;
using tensor::DType;

namespace {

constexpr std::uint64_t kScalar = sizeof(double);

/// Per communication: its number in the linear order, because ids depend on whether passes or a
/// text made the DAG.
std::vector<std::uint32_t> message_numbers(const Dag& dag) {
  constexpr std::uint32_t kNone = 0xFFFFFFFFu;
  std::vector<std::uint32_t> numbers(dag.comms.size(), kNone);
  std::uint32_t next = 0;
  for (const dag::NodeId id : dag.order) {
    const dag::CommId comm = dag.node(id).comm;
    if (comm.valid() && numbers[comm.index()] == kNone) numbers[comm.index()] = next++;
  }
  return numbers;
}

/// Per node its place in the linear order of instructions.
std::vector<std::uint32_t> places_in_order(const Dag& dag) {
  std::vector<std::uint32_t> places(dag.nodes.size(), 0);
  std::uint32_t next = 0;
  for (const dag::NodeId id : dag.order) {
    if (!adds_in_place(dag.node(id).kind)) places[id.index()] = next++;
  }
  return places;
}

class Projection {
 public:
  Projection(const Dag& dag, const dag::Role& role, std::vector<std::uint32_t> device,
             ProgramBodies& bodies, const std::vector<std::uint32_t>& message_numbers,
             const std::vector<std::uint32_t>& places)
      : dag_(dag),
        role_(role),
        bodies_(bodies),
        message_numbers_(message_numbers),
        places_(places),
        device_(std::move(device)) {}

  DeviceProgram run() {
    out_.role = dag_.context->text(role_.name);
    out_.at = role_.at;
    out_.arena_bytes = static_cast<std::uint64_t>(role_.arena_bytes);
    out_.host_bytes = static_cast<std::uint64_t>(role_.host_bytes);
    for (const dag::Buffer& buffer : role_.buffers) {
      if (buffer.cls == dag::BufferClass::offloaded_optimizer)
        out_.host_state_bytes = std::max(out_.host_state_bytes,
                                         static_cast<std::uint64_t>(buffer.offset + buffer.bytes));
      if (buffer.cls != dag::BufferClass::scalars) continue;
      out_.scalars_offset = static_cast<std::uint64_t>(buffer.offset);
      out_.state_bytes = static_cast<std::uint64_t>(buffer.offset + buffer.bytes);
    }
    number_streams();
    number_communicators();
    for (const dag::Action& action : role_.actions) add(action);
    add_params();
    return std::move(out_);
  }

 private:
  /// The streams that this role uses, compute first.
  void number_streams() {
    stream_of_.assign(dag_.streams.size(), 0);
    std::vector<bool> used(dag_.streams.size(), false);
    for (const dag::Action& action : role_.actions) used[action.stream.index()] = true;
    for (std::size_t s = 0; s < dag_.streams.size(); ++s) {
      if (s != 0 && !used[s]) continue;
      stream_of_[s] = static_cast<std::uint32_t>(out_.streams.size());
      out_.streams.push_back({std::string(dag_.context->text(dag_.streams[s].name)),
                              dag_.streams[s].high_priority,
                              {},
                              {}});
    }
  }

  void number_communicators() {
    for (const dag::Action& action : role_.actions) {
      if (action.communicator.valid()) out_.communicators.push_back(action.communicator);
    }
    std::sort(out_.communicators.begin(), out_.communicators.end());
    out_.communicators.erase(std::unique(out_.communicators.begin(), out_.communicators.end()),
                             out_.communicators.end());
  }

  std::uint64_t offset(const dag::Action& action, std::uint32_t operand) const {
    const dag::Operand& each = role_.operands[action.first_operand + operand];
    return static_cast<std::uint64_t>(role_.buffers[each.buffer.index()].offset + each.offset);
  }
  void operand(std::uint64_t offset) { out_.operands.push_back(offset); }

  /// Its number among the role's intervals, which are distinct by their sharding, not by their
  /// position in the batch.
  std::uint32_t interval_of(const Sharding& cut) {
    const Sharding own{full_interval(cut.interval.extent), cut.axes};
    const auto found = std::find_if(out_.intervals.begin(), out_.intervals.end(),
                                    [&](const ProgramInterval& each) { return each.cut == own; });
    const auto number = static_cast<std::uint32_t>(found - out_.intervals.begin());
    if (found == out_.intervals.end())
      out_.intervals.push_back(
          {own, static_cast<std::uint64_t>(shard_interval(own, dag_.mesh, device_).extent)});
    return number;
  }

  void add_interval(const Sharding& cut, Instruction& made) {
    out_.call_intervals.push_back(
        {static_cast<std::uint64_t>(cut.interval.first), interval_of(cut)});
    ++made.num_intervals;
  }

  void add(const dag::Action& action) {
    const Node& node = dag_.node(action.node);
    Instruction made;
    made.stream = stream_of_[action.stream.index()];
    made.position = action.position;
    made.first_wait = static_cast<std::uint32_t>(out_.waits.size());
    made.num_waits = action.num_waits;
    for (std::uint32_t w = 0; w < action.num_waits; ++w) {
      const dag::Wait& wait = role_.waits[action.first_wait + w];
      out_.waits.push_back({stream_of_[wait.stream.index()], wait.position, wait.distance});
    }
    made.first_operand = static_cast<std::uint32_t>(out_.operands.size());
    made.first_accumulate = static_cast<std::uint32_t>(out_.accumulate.size());
    made.first_interval = static_cast<std::uint32_t>(out_.call_intervals.size());
    const auto inputs = dag_.inputs_of(node);
    const std::uint32_t num_inputs = inputs.empty() ? 0 : inputs.back().port + 1;

    switch (node.kind) {
      case NodeKind::chunk: run_chunk(action, node, num_inputs, made); break;
      case NodeKind::load:
        made.kind = Instruction::Kind::load;
        made.subject = node.subject.input().value();
        add_interval(sample_sharding(dag_, node), made);
        operand(offset(action, 0));
        break;
      case NodeKind::count:
        made.kind = Instruction::Kind::count;
        made.subject = node.subject.count().value();
        made.ignore = dag_.losses[node.subject.count().index()].mask->ignore;
        if (!inputs.empty())
          made.elements = static_cast<std::uint64_t>(
              local_type(dag_, inputs.front().source, device_).elements());
        for (std::uint32_t i = 0; i <= num_inputs; ++i) operand(offset(action, i));
        break;
      case NodeKind::accumulate: assert(false && "a sum in place is no action"); break;
      case NodeKind::sum_squares: run_sum_squares(action, node, num_inputs, made); break;
      case NodeKind::norm: run_norm(action, num_inputs, made); break;
      case NodeKind::update: run_update(action, node, num_inputs, made); break;
      case NodeKind::report:
        made.kind = Instruction::Kind::report;
        made.subject = node.subject.is_norm() ? PIPER_NORM : node.subject.loss().value();
        made.counted =
            !node.subject.is_norm() && dag_.losses[node.subject.loss().index()].mask.has_value();
        if (!inputs.empty()) made.dtype = abi_dtype(dag_.output_type(inputs.front().source).dtype);
        for (std::uint32_t i = 0; i < num_inputs; ++i) operand(offset(action, i));
        break;
      case NodeKind::send:
      case NodeKind::recv:
      case NodeKind::all_reduce:
      case NodeKind::reduce_scatter:
      case NodeKind::all_gather:
      case NodeKind::offload:
      case NodeKind::fetch:
      case NodeKind::all_gather_v: communicate(action, node, num_inputs, made); break;
    }
    made.num_operands = static_cast<std::uint32_t>(out_.operands.size()) - made.first_operand;
    ProgramStream& stream = out_.streams[made.stream];
    assert(stream.action_of.size() == made.position &&
           "the actions of a stream stand in the order of their positions");
    stream.action_of.push_back(static_cast<std::uint32_t>(out_.instructions.size()));
    out_.instructions.push_back(made);
    out_.names.push_back(name_of(action.node, node.loc));
    out_.places.push_back(places_[action.node.index()]);
  }

  void finish_run(Instruction& made, std::uint32_t body) {
    made.kind = Instruction::Kind::run;
    made.body = body;
    const KernelBody& kernels = bodies_[body];
    out_.accumulate.resize(made.first_accumulate + kernels.num_outputs, 0);
    [[maybe_unused]] const std::size_t operands = out_.operands.size() - made.first_operand;
    assert(operands ==
               kernels.num_inputs + kernels.num_outputs + (kernels.scratch_bytes > 0 ? 1u : 0u) &&
           "a body's operands are those of its action");
  }

  void run_chunk(const dag::Action& action, const Node& node, std::uint32_t num_inputs,
                 Instruction& made) {
    const std::uint32_t body = bodies_.chunk(node.body, device_);
    const std::uint32_t workspace = bodies_[body].scratch_bytes > 0 ? 1 : 0;
    for (std::uint32_t i = 0; i < num_inputs + node.num_outputs + workspace; ++i)
      operand(offset(action, i));
    for (std::uint32_t i = 0; i < node.num_outputs; ++i)
      out_.accumulate.push_back(role_.operands[action.first_operand + num_inputs + i].accumulate);
    if (!bodies_[body].intervals.empty()) add_interval(sample_sharding(dag_, node), made);
    finish_run(made, body);
  }

  /// One vector of sums per bucket: of its parameters, or one for this rank's shard.
  void run_sum_squares(const dag::Action& action, const Node& node, std::uint32_t num_inputs,
                       Instruction& made) {
    const dag::Bucket& bucket = dag_.buckets[node.subject.bucket().index()];
    const std::uint32_t body = bodies_.sum_squares(bucket);
    const std::uint64_t sums = offset(action, num_inputs);
    for (std::uint32_t i = 0; i < bodies_[body].num_inputs; ++i) operand(offset(action, i));
    for (std::uint32_t i = 0; i < bodies_[body].num_inputs; ++i) operand(sums + i * kScalar);
    if (bodies_[body].scratch_bytes > 0) operand(offset(action, num_inputs + node.num_outputs));
    if (!bodies_[body].intervals.empty()) add_interval(bucket_sharding(dag_, bucket), made);
    finish_run(made, body);
  }

  void run_norm(const dag::Action& action, std::uint32_t num_inputs, Instruction& made) {
    for (const dag::SquaredPart& part : bodies_.norm_order())
      operand(offset(action, part.bucket.value()) + part.index * kScalar);
    const std::uint64_t out = offset(action, num_inputs);
    operand(out);
    operand(out + kScalar);
    const std::uint32_t body = bodies_.norm();
    if (bodies_[body].scratch_bytes > 0) operand(offset(action, num_inputs + 1));
    finish_run(made, body);
  }

  /// The whole bucket at once, or this rank's shard: parameters, gradients and slots are flat, with
  /// the same padding.
  void run_update(const dag::Action& action, const Node& node, std::uint32_t num_inputs,
                  Instruction& made) {
    const dag::Bucket& bucket = dag_.buckets[node.subject.bucket().index()];
    // The last input is the optimizer state that came from the host.
    const std::uint32_t numbers = num_inputs - (bucket.state_on_host ? 1 : 0);
    const bool clipped = numbers > dag_.gradient_values(bucket);
    const dag::Buffer& flat =
        role_.buffers[role_.operands[action.first_operand + num_inputs].buffer.index()];
    const std::uint64_t parameters = static_cast<std::uint64_t>(flat.offset);
    const dag::BucketLayout layout = bucket_layout(dag_, bucket);
    const std::uint64_t bytes = static_cast<std::uint64_t>(layout.extent(dag::BucketState::slot));
    const std::uint64_t gradients = offset(action, 0);
    const std::uint64_t scalars = out_.scalars_offset;
    const std::uint64_t factor =
        clipped ? offset(action, numbers - 1) + kScalar : scalars + offsetof(PiperScalars, one);
    for (const std::uint64_t each :
         {parameters, gradients, scalars + offsetof(PiperScalars, learning_rate), factor})
      operand(each);
    const auto slots = static_cast<std::uint32_t>(layout.slots);
    const std::uint64_t first_slot =
        bucket.state_on_host ? offset(action, numbers) : optimizer_state(node.subject.bucket());
    for (std::uint32_t s = 0; s < slots; ++s) operand(first_slot + s * bytes);
    if (bodies_.optimizer().corrects_bias()) {
      operand(scalars + offsetof(PiperScalars, bias1));
      operand(scalars + offsetof(PiperScalars, bias2));
    }
    operand(parameters);
    for (std::uint32_t s = 0; s < slots; ++s) operand(first_slot + s * bytes);
    const std::uint32_t body = bodies_.update(bucket, layout.block());
    if (!bodies_[body].intervals.empty()) add_interval(bucket_sharding(dag_, bucket), made);
    finish_run(made, body);
  }

  std::uint64_t optimizer_state(dag::BucketId bucket) const {
    for (const dag::Buffer& buffer : role_.buffers) {
      if (buffer.bucket == bucket && buffer.cls == optimizer_class(dag_.buckets[bucket.index()]))
        return static_cast<std::uint64_t>(buffer.offset);
    }
    return 0;
  }

  static PiperCommOp comm_op_of(NodeKind kind) {
    switch (traits(kind).comm_op) {
      case dag::CommOp::none: break;
      case dag::CommOp::send: return PIPER_SEND;
      case dag::CommOp::recv: return PIPER_RECV;
      case dag::CommOp::offload: return PIPER_OFFLOAD;
      case dag::CommOp::fetch: return PIPER_FETCH;
      case dag::CommOp::all_reduce: return PIPER_ALL_REDUCE;
      case dag::CommOp::all_gather_v: return PIPER_ALL_GATHER_V;
      case dag::CommOp::reduce_scatter: return PIPER_REDUCE_SCATTER;
      case dag::CommOp::all_gather: return PIPER_ALL_GATHER;
    }
    llvm_unreachable("no communication");
  }

  void communicate(const dag::Action& action, const Node& node, std::uint32_t num_inputs,
                   Instruction& made) {
    made.kind = Instruction::Kind::communicate;
    PiperCommAction comm{};
    comm.op = comm_op_of(node.kind);
    const auto found =
        std::lower_bound(out_.communicators.begin(), out_.communicators.end(), action.communicator);
    comm.communicator = static_cast<std::uint32_t>(found - out_.communicators.begin());
    comm.identity = message_numbers_[node.comm.index()];
    comm.first_part = static_cast<std::uint32_t>(out_.parts.size());
    comm.first_wait = made.first_wait;
    comm.num_waits = made.num_waits;
    comm.action = static_cast<std::uint32_t>(out_.instructions.size());
    const auto part = [&](std::uint64_t in, std::uint64_t out, dag::Port port) {
      const tensor::Type type = local_type(dag_, port, device_);
      out_.parts.push_back({in, out, static_cast<std::uint64_t>(type.elements()),
                            static_cast<std::uint32_t>(abi_dtype(type.dtype)), PIPER_ALL_POSITIONS,
                            0, 0});
    };
    if (const dag::BucketId bucket = node.subject.bucket();
        bucket.valid() && copies_to_or_from_host(node.kind)) {
      const bool out = leaves_device(node.kind);
      const dag::Port state = out ? dag_.inputs_of(node).front().source : dag::Port{action.node, 0};
      part(out ? offset(action, 0) : optimizer_state(bucket),
           out ? optimizer_state(bucket) : offset(action, 0), state);
    } else if (bucket.valid() && dag_.buckets[bucket.index()].sharded()) {
      out_.parts.push_back(flat_part(action, node, num_inputs));
      if (reduces_to_shards(node.kind) && dag_.shards_gradients(dag_.buckets[bucket.index()]))
        clear_padding(action, bucket);
    } else if (is_send(node.kind)) {
      const auto inputs = dag_.inputs_of(node);
      for (std::uint32_t i = 0; i < num_inputs; ++i)
        part(offset(action, i), PIPER_NO_OFFSET, inputs[i].source);
    } else {
      // The position of the rank's own contribution among the outputs of a gather of lists.
      std::uint32_t own = 0;
      if (gathers_lists(node.kind)) {
        for (const dag::NodeId member : dag_.comms[node.comm.index()].members) {
          if (member == action.node) break;
          const auto inputs = dag_.inputs_of(dag_.node(member));
          own += inputs.empty() ? 0 : inputs.back().port + 1;
        }
      }
      for (std::uint32_t i = 0; i < node.num_outputs; ++i) {
        const bool contributes = !is_recv(node.kind) && i >= own && i < own + num_inputs;
        part(contributes ? offset(action, i - own) : PIPER_NO_OFFSET,
             offset(action, num_inputs + i), {action.node, i});
      }
    }
    comm.num_parts = static_cast<std::uint32_t>(out_.parts.size()) - comm.first_part;
    out_.streams[made.stream].comm.push_back(comm);
  }

  /// A bucket with sharded state moves with its padding: all of it, or this rank's shard if shards
  /// are reduced over further devices.
  PiperMessagePart flat_part(const dag::Action& action, const Node& node,
                             std::uint32_t num_inputs) {
    const dag::Bucket& bucket = dag_.buckets[node.subject.bucket().index()];
    const dag::BucketLayout layout = bucket_layout(dag_, bucket);
    const DType dtype = gathers_shards(node.kind) ? layout.parameters : layout.sums;
    const bool one_shard = reduces_to_all(node.kind);
    const Sharding cut = bucket_sharding(dag_, bucket);
    assert(std::is_sorted(cut.axes.begin(), cut.axes.end()) &&
           "the members of a communicator have their blocks in the order of the mesh");
    PiperMessagePart part{};
    part.in = num_inputs > 0 ? offset(action, 0) : PIPER_NO_OFFSET;
    part.out = offset(action, num_inputs);
    part.elements = static_cast<std::uint64_t>(one_shard ? layout.block() : layout.elements);
    part.dtype = abi_dtype(dtype);
    part.interval = one_shard && !layout.sharded(dag::BucketState::gradients) ? interval_of(cut)
                                                                              : PIPER_ALL_POSITIONS;
    const bool own =
        reduces_to_shards(node.kind)
            ? layout.sharded(dag::BucketState::gradients)
            : gathers_shards(node.kind) && layout.sharded(dag::BucketState::parameters);
    if (own) part.flags |= PIPER_SHARD_ONLY;
    if (role_.operands[action.first_operand + num_inputs].accumulate)
      part.flags |= PIPER_ACCUMULATE;
    return part;
  }

  /// Clears the padding of full gradients before their reduce_scatter sums it, because their bytes
  /// held other values earlier.
  void clear_padding(const dag::Action& action, dag::BucketId id) {
    const dag::Bucket& bucket = dag_.buckets[id.index()];
    const dag::BucketLayout layout = bucket_layout(dag_, bucket);
    const std::uint64_t begin = offset(action, 0);
    for (std::size_t i = 0; i < bucket.params.size(); ++i) {
      const std::int64_t from =
          layout.offsets[i] + dag_.param_types[bucket.params[i].index()].elements();
      const std::int64_t to =
          i + 1 < bucket.params.size() ? layout.offsets[i + 1] : layout.elements;
      if (from == to) continue;
      PiperMessagePart part{};
      part.in = PIPER_NO_OFFSET;
      part.out = begin + static_cast<std::uint64_t>(layout.sum_bytes(from));
      part.elements = static_cast<std::uint64_t>(to - from);
      part.dtype = abi_dtype(layout.sums);
      part.interval = PIPER_ALL_POSITIONS;
      part.flags = PIPER_ZERO_FILL;
      out_.parts.push_back(part);
    }
  }

  ActionName name_of(dag::NodeId node, LocId loc) {
    ActionName made;
    made.name = dag_.name(node);
    const SourceLocation at = location_of(dag_.context->locations, loc);
    made.line = at.line;
    made.column = at.column;
    made.end_line = at.end_line;
    made.end_column = at.end_column;
    auto found = std::find(out_.files.begin(), out_.files.end(), at.file);
    if (found == out_.files.end()) found = out_.files.insert(out_.files.end(), at.file);
    made.file = static_cast<std::uint32_t>(found - out_.files.begin());
    return made;
  }

  void add_params() {
    struct Places {
      std::uint64_t parameters = PIPER_NO_OFFSET, gradients = PIPER_NO_OFFSET,
                    optimizer = PIPER_NO_OFFSET;
    };
    std::map<std::uint32_t, Places> buckets;  // ascending: in the order of the DAG
    for (const dag::Buffer& buffer : role_.buffers) {
      if (!buffer.bucket.valid()) continue;
      Places& state = buckets[buffer.bucket.value()];
      const std::uint64_t offset = static_cast<std::uint64_t>(buffer.offset);
      if (buffer.cls == dag::BufferClass::parameters) state.parameters = offset;
      if (buffer.cls == dag::BufferClass::gradients) state.gradients = offset;
      if (buffer.cls == optimizer_class(dag_.buckets[buffer.bucket.index()]))
        state.optimizer = offset;
    }
    for (const auto& [index, state] : buckets) {
      const dag::Bucket& bucket = dag_.buckets[index];
      const dag::BucketLayout layout = bucket_layout(dag_, bucket);
      const std::uint32_t interval =
          bucket.sharded() ? interval_of(bucket_sharding(dag_, bucket)) : PIPER_ALL_POSITIONS;
      for (std::size_t i = 0; i < bucket.params.size(); ++i) {
        const tensor::Param& param = dag_.params[bucket.params[i].index()];
        const tensor::Type& type = dag_.param_types[bucket.params[i].index()];
        const auto at = [&](dag::BucketState state) {
          return static_cast<std::uint64_t>(layout.offset(state, i));
        };
        ProgramParam made;
        made.name = dag_.context->text(param.name);
        for (const tensor::Dim& dim : type.dims) made.dims.push_back(dim.extent);
        PiperParam& entry = made.entry;
        entry.offset = state.parameters + at(dag::BucketState::parameters);
        entry.grad_offset = state.gradients == PIPER_NO_OFFSET
                                ? PIPER_NO_OFFSET
                                : state.gradients + at(dag::BucketState::gradients);
        for (std::uint32_t s = 0; s < PIPER_MAX_SLOTS; ++s) {
          entry.slot_offsets[s] =
              s < layout.slots && state.optimizer != PIPER_NO_OFFSET
                  ? state.optimizer +
                        s * static_cast<std::uint64_t>(layout.extent(dag::BucketState::slot)) +
                        at(dag::BucketState::slot)
                  : PIPER_NO_OFFSET;
        }
        entry.slots_on_host = bucket.state_on_host ? 1 : 0;
        entry.average_slot = dag::average_slot(dag_.settings);
        if (layout.slots == 0) entry.average_slot = 0;
        entry.elements = static_cast<std::uint64_t>(type.elements());
        entry.dtype = abi_dtype(layout.parameters);
        entry.sum_dtype = abi_dtype(layout.sums);
        entry.init = abi_init(param.init.kind);
        entry.scale = param.init.scale;
        entry.counted = in_set(bucket.owners.front());
        entry.num_dims = static_cast<std::uint32_t>(made.dims.size());
        entry.first = static_cast<std::uint64_t>(layout.offsets[i]);
        entry.interval = interval;
        entry.sharded = layout.sharded(dag::BucketState::parameters)  ? PIPER_SHARDED_PARAMETERS
                        : layout.sharded(dag::BucketState::gradients) ? PIPER_SHARDED_GRADIENTS
                                                                      : PIPER_SHARDED_OPTIMIZER;
        out_.params.push_back(std::move(made));
      }
    }
  }

  /// Whether the devices of this role are in a set.
  bool in_set(DeviceSetId id) const {
    const DeviceSet& set = dag_.device_sets[id];
    for (std::size_t a = 0; a < set.at.size(); ++a) {
      if (set.at[a] != DeviceSet::kWhole && set.at[a] != role_.at[a]) return false;
    }
    return true;
  }

  const Dag& dag_;
  const dag::Role& role_;
  ProgramBodies& bodies_;
  const std::vector<std::uint32_t>& message_numbers_;
  const std::vector<std::uint32_t>& places_;
  DeviceProgram out_;
  std::vector<std::uint32_t> stream_of_;     // per stream of the DAG
  const std::vector<std::uint32_t> device_;  // coordinates of one device of the role
};

std::string hash_of(const DeviceProgram& program, const std::vector<KernelBody>& bodies) {
  llvm::SHA1 sha;
  const std::string text = print(program, bodies);
  sha.update(llvm::StringRef(text));
  std::vector<bool> used(bodies.size(), false);
  for (const Instruction& each : program.instructions) {
    if (each.kind != Instruction::Kind::run || used[each.body]) continue;
    used[each.body] = true;
    const std::string body = print(bodies[each.body]);
    sha.update(llvm::StringRef(body));
  }
  return llvm::toHex(sha.final(), /*LowerCase=*/true).substr(0, 32);
}

}  // namespace

ProgramSet make_programs(const Dag& dag, Target target) {
  assert(dag.level == dag::Level::planned && "a device program is a projection of the plan");
  ProgramSet set;
  ProgramBodies bodies(dag, target, set.bodies);
  const std::vector<std::uint32_t> numbers = message_numbers(dag);
  const std::vector<std::uint32_t> places = places_in_order(dag);
  const std::vector<std::vector<std::uint32_t>> devices = first_devices(dag);
  for (std::size_t r = 0; r < devices.size(); ++r) {
    const dag::Role& role = dag.plan->roles[r];
    set.roles.push_back(Projection(dag, role, devices[r], bodies, numbers, places).run());
  }
  for (DeviceProgram& program : set.roles) program.hash = hash_of(program, set.bodies);
  return set;
}

}  // namespace piper::backend
