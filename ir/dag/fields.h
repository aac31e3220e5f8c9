#pragma once
// The statements of the text that are lists of fields, described once for `FieldWriter` and
// `FieldReader`. `line` is the struct of the statement, const for a writer; the word of the
// statement stands before the fields. Words and signs are written with the spaces around them.

#include <limits>

#include "ir/dag/plan.h"
#include "ir/tensor/graph_text.h"

namespace piper::dag {

inline constexpr std::int64_t kMax32 = std::numeric_limits<std::int32_t>::max();
inline constexpr std::int64_t kMaxBytes = std::int64_t{1} << 60;

/// The tables of a DAG whose entries other statements name.
enum class Table : std::uint8_t { params, inputs, losses, chunks, buckets, streams };

inline constexpr std::string_view kCommunicatorKinds[] = {"pair", "group"};

/// `split batch into mb: 2`
template <typename Io, typename Line>
void split_fields(Io& io, Line& line) {
  io.symbol(line.of, "a dimension");
  io.text(" into ");
  io.symbol(line.name, "a name");
  io.text(": ");
  io.integer(line.extent, "an extent", directive::kParts.min_value, directive::kParts.max_value);
  io.location(line.loc);
}

/// `param w: f32[dim: 16] = normal(0.02) frozen rate 0.5 decay 0`
template <typename Io, typename Line, typename Type>
void param_fields(Io& io, Line& line, Type& type) {
  io.declare(Table::params, line.name);
  io.text(": ");
  io.type(type);
  io.text(" = ");
  io.choice(line.init.kind, tensor::kInitNames, "a way to start a parameter");
  io.text("(");
  io.number(line.init.scale, "a scale");
  io.text(")");
  io.flag(" frozen", line.frozen);
  io.factor(" rate ", line.rate, "a factor of the learning rate");
  io.factor(" decay ", line.decay, "a factor of the weight decay");
  io.declared_location(line.loc);
}

/// `input x: f32[batch: 8*, dim: 16]`
template <typename Io, typename Line, typename Type>
void input_fields(Io& io, Line& line, Type& type) {
  io.declare(Table::inputs, line.name);
  io.text(": ");
  io.type(type);
  io.declared_location(line.loc);
}

/// `loss net.loss.0: 128 ignore 0 of y`
template <typename Io, typename Line>
void loss_fields(Io& io, Line& line) {
  io.declare(Table::losses, line.name);
  io.text(": ");
  io.integer(line.count, "a number of elements", 0, std::numeric_limits<std::int64_t>::max());
  if (io.present(" ignore ", line.mask)) {
    io.integer(line.mask->ignore, "a class number", std::numeric_limits<std::int32_t>::min(),
               kMax32);
    io.text(" of ");
    io.reference(Table::inputs, line.mask->targets);
  }
  io.declared_location(line.loc);
}

/// `bucket b.0 (net.b) on line[] unreduced <dp: +> state <dp: flat> gradients <dp: flat> parameters
/// <dp: flat> by unit prefetch 1 offloaded`
template <typename Io, typename Line>
void bucket_fields(Io& io, Line& line) {
  io.declare(Table::buckets, line.name);
  io.list(" (", line.params, ")", [&](auto& param) { io.reference(Table::params, param); });
  io.sequence(" on ", line.owners, [&](auto& set) { io.devices(set); });
  io.layout(" unreduced ", line.unreduced);
  io.layout(" state ", line.state);
  io.layout(" gradients ", line.gradients);
  io.layout(" parameters ", line.parameters);
  if (line.gathered_per_use()) io.reduced(" by ", line.reduced);
  io.count(" prefetch ", line.prefetch, "a number of uses");
  io.flag(" offloaded", line.state_on_host);
  io.declared_location(line.loc);
}

/// `stream grads high_priority window 4`
template <typename Io, typename Line>
void stream_fields(Io& io, Line& line) {
  io.declare(Table::streams, line.name);
  io.flag(" high_priority", line.high_priority);
  if (io.present(" window ", line.window)) io.integer(*line.window, "a window", 0, kMax32);
  io.declared_location(line.loc);
}

/// `claim line[pp: 0]`
template <typename Io, typename Line>
void claim_fields(Io& io, Line& line) {
  io.devices(line.devices);
  io.location(line.loc);
}

/// `pair (line[pp: 0], line[pp: 1]) stream act window 2 min 1`, after its name
template <typename Io, typename Line>
void communicator_fields(Io& io, Line& line) {
  io.text(" ");
  io.choice(line.kind, kCommunicatorKinds, "a kind of communicator");
  io.list(" (", line.members, ")", [&](auto& set) { io.devices(set); });
  io.axes(" over ", line.axes);
  io.optional_reference(" stream ", Table::streams, line.stream);
  if (line.kind == Communicator::Kind::pair) {
    io.text(" window ");
    io.integer(line.window, "a window", 0, kMax32);
    io.text(" min ");
    io.integer(line.min_window, "a window", 0, kMax32);
  } else {
    io.count(" window ", line.window, "a window");
    io.count(" min ", line.min_window, "a window");
  }
  io.location(line.loc);
}

/// `arena 4096 live 4096 host 704`, after its devices
template <typename Io, typename Line>
void role_fields(Io& io, Line& line) {
  io.text(" arena ");
  io.bytes(line.arena_bytes, "a number of bytes");
  io.text(" live ");
  io.bytes(line.live_bytes, "a number of bytes");
  io.optional_bytes(" host ", line.host_bytes, "a number of bytes");
}

/// `at 1024 bytes 1024`, after its class and bucket
template <typename Io, typename Line>
void buffer_fields(Io& io, Line& line) {
  io.text(" at ");
  io.bytes(line.offset, "an offset");
  io.text(" bytes ");
  io.bytes(line.bytes, "a number of bytes");
}

}  // namespace piper::dag
