#include "ir/verify/memory_accesses.h"

#include <algorithm>

namespace piper::verify {

namespace {

using dag::EdgeClass;

/// Offsets of the arena in the memory of the host start far beyond those of the device.
constexpr std::int64_t kHost = std::int64_t{1} << 60;

std::int64_t begin_of(const dag::Buffer& buffer) {
  return buffer.offset + (is_on_host(buffer.cls) ? kHost : 0);
}

}  // namespace

void CellEdges::clear() {
  bytes_.clear();
  slots_.assign(std::max<std::size_t>(slots_.size(), 256), kNone);
}

std::uint32_t CellEdges::at(std::int64_t byte) {
  for (std::size_t i = start(byte);; i = (i + 1) & (slots_.size() - 1)) {
    if (slots_[i] == kNone) return add(byte, i);
    if (bytes_[slots_[i]] == byte) return slots_[i];
  }
}

std::size_t CellEdges::start(std::int64_t byte) const {
  return (static_cast<std::uint64_t>(byte) * 0x9E3779B97F4A7C15ull >> 32) & (slots_.size() - 1);
}

std::uint32_t CellEdges::add(std::int64_t byte, std::size_t slot) {
  slots_[slot] = static_cast<std::uint32_t>(bytes_.size());
  bytes_.push_back(byte);
  if (2 * bytes_.size() <= slots_.size()) return static_cast<std::uint32_t>(bytes_.size() - 1);
  slots_.assign(2 * slots_.size(), kNone);
  for (std::uint32_t k = 0; k < bytes_.size(); ++k) {
    std::size_t i = start(bytes_[k]);
    while (slots_[i] != kNone) i = (i + 1) & (slots_.size() - 1);
    slots_[i] = k;
  }
  return static_cast<std::uint32_t>(bytes_.size() - 1);
}

void MemoryAccesses::set_role(const RoleView& view) {
  role_ = &view.role();
  edges_.clear();
  ends_of_buffer_.assign(role_->buffers.size(), {});
  accesses_.clear();
  first_access_.clear();
  std::vector<std::vector<std::uint32_t>> optimizer(dag_.buckets.size());
  for (std::uint32_t b = 0; b < role_->buffers.size(); ++b) {
    const dag::Buffer& buffer = role_->buffers[b];
    if (buffer.bucket.valid() && buffer.cls == optimizer_class(dag_.buckets[buffer.bucket.index()]))
      optimizer[buffer.bucket.index()].push_back(b);
  }
  NodePolls polls(dag_.context->cancellation);
  for (std::size_t i = 0; i < role_->actions.size(); ++i) {
    polls.visit();
    const Action& action = role_->actions[i];
    const RoleView::Entry& entry = view.entry(i);
    first_access_.push_back(static_cast<std::uint32_t>(accesses_.size()));
    std::uint32_t k = 0;
    const auto operand = [&](Access access, std::int64_t bytes) {
      const dag::Operand& each = role_->operands[action.first_operand + k++];
      const dag::Buffer& buffer = role_->buffers[each.buffer.index()];
      access.buffer = each.buffer.value();
      access.base = begin_of(buffer) + each.offset;
      if (bytes < 0) bytes = buffer.bytes - each.offset;
      if (each.offset == 0 && bytes == buffer.bytes) {
        add_whole(access, each.buffer.value());
      } else {
        add(access, bytes);
      }
    };
    const std::span<const RoleView::Port> ports = view.ports(i);
    const auto state = [&](Access::Kind kind) {
      for (const std::uint32_t b : optimizer[entry.bucket]) {
        Access access;
        access.kind = kind;
        access.id = entry.bucket;
        access.buffer = b;
        access.base = begin_of(role_->buffers[b]);
        add(access, role_->buffers[b].bytes);
      }
    };
    if (returns_to_device(entry.kind) && entry.bucket != kNone) state(Access::Kind::read_state);
    for (std::size_t p = 0; p < ports.size(); ++p)
      operand(read_of(entry, ports[p]), view.bytes(entry, p, ports[p]));
    for (std::uint32_t out = 0; out < entry.num_outputs; ++out)
      operand(write_of(entry, ports, out), facts_.output_bytes[entry.first_output + out]);
    while (k < action.num_operands) operand({}, -1);
    gaps(action, entry, static_cast<std::uint32_t>(ports.size()));
    if (entry.bucket == kNone) continue;
    const bool on_host = dag_.buckets[entry.bucket].state_on_host;
    if (on_host ? leaves_device(entry.kind) : writes_state(entry.kind))
      state(Access::Kind::write_state);
  }
  first_access_.push_back(static_cast<std::uint32_t>(accesses_.size()));
  const std::vector<std::int64_t>& bytes = edges_.bytes();
  std::vector<std::uint32_t> by_byte(bytes.size()), rank(bytes.size());
  for (std::uint32_t k = 0; k < by_byte.size(); ++k) by_byte[k] = k;
  std::sort(by_byte.begin(), by_byte.end(),
            [&](std::uint32_t a, std::uint32_t b) { return bytes[a] < bytes[b]; });
  for (std::uint32_t k = 0; k < by_byte.size(); ++k) rank[by_byte[k]] = k;
  for (Access& access : accesses_) {
    if (access.first == access.last) continue;
    access.first = rank[access.first];
    access.last = rank[access.last];
  }
}

std::int64_t MemoryAccesses::byte_of(std::uint32_t cell) const {
  std::vector<std::int64_t> sorted = edges_.bytes();
  std::sort(sorted.begin(), sorted.end());
  return sorted[cell] % kHost;
}

void MemoryAccesses::add(Access access, std::int64_t bytes) {
  if (bytes > 0) {
    access.first = edges_.at(access.base);
    access.last = edges_.at(access.base + bytes);
  }
  accesses_.push_back(access);
}

void MemoryAccesses::add_whole(Access access, std::uint32_t number) {
  Ends& ends = ends_of_buffer_[number];
  if (ends.first == kNone)
    ends = {edges_.at(access.base), edges_.at(access.base + role_->buffers[number].bytes)};
  access.first = ends.first;
  access.last = ends.last;
  accesses_.push_back(access);
}

void MemoryAccesses::gaps(const Action& action, const RoleView::Entry& entry,
                          std::uint32_t inputs) {
  if (entry.bucket == kNone || !(reduces_to_shards(entry.kind) || gathers_shards(entry.kind)))
    return;
  const dag::Bucket& bucket = dag_.buckets[entry.bucket];
  for (const std::uint32_t operand : {std::uint32_t{0}, inputs}) {
    if (operand >= action.num_operands) continue;
    const dag::Buffer& buffer =
        role_->buffers[role_->operands[action.first_operand + operand].buffer.index()];
    const bool gradients = buffer.cls == dag::BufferClass::unreduced;
    if (!gradients && buffer.cls != dag::BufferClass::gathered) continue;
    const auto bytes = [&](std::int64_t elements) {
      return gradients ? gradient_bytes(dag_, bucket, elements)
                       : parameter_bytes(dag_, bucket, elements);
    };
    std::int64_t begin = 0;
    for (std::size_t i = 0; i < bucket.params.size(); ++i) {
      const std::int64_t filled = begin + dag_.param_types[bucket.params[i].index()].elements();
      const std::int64_t end = i + 1 < bucket.params.size()
                                   ? begin + whole_elements(dag_, bucket.params[i])
                                   : bucket_elements(dag_, bucket);
      Access access;
      access.base = begin_of(buffer) + bytes(filled);
      if (filled < end) add(access, bytes(end - filled));
      begin = end;
    }
  }
}

Access MemoryAccesses::read_of(const RoleView::Entry& entry, const RoleView::Port& port) const {
  Access access;
  if (port.cls == EdgeClass::param) {
    access.kind = Access::Kind::read_param;
    access.id = port.output;
    access.other = param_of(entry, dag_.edges[port.edge]);
  } else if (const std::uint32_t sum = sums_.sum_of[port.output]; sum != kNone) {
    access.kind = Access::Kind::read_sum;
    access.id = sum;
    access.other = sums_.place[port.output];
  } else {
    access.kind = Access::Kind::read_value;
    access.id = port.output;
  }
  return access;
}

Access MemoryAccesses::write_of(const RoleView::Entry& entry, std::span<const RoleView::Port> ports,
                                std::uint32_t out) const {
  Access access;
  const std::uint32_t id = entry.first_output + out;
  if (const std::uint32_t sum = sums_.sum_of[id]; sum != kNone) {
    access.kind = Access::Kind::write_sum;
    access.id = sum;
    access.other = sums_.place[id];
    return access;
  }
  access.kind = Access::Kind::write_value;
  access.id = id;
  if (writes_state(entry.kind) && dag_.is_optimizer_state(facts_.node(NodeId(entry.node)), out)) {
    access.other = static_cast<std::uint32_t>(ports.size()) - 1;  // in place
  } else if (writes_state(entry.kind)) {
    access.kind = Access::Kind::write_param;
    access.other = dag_.buckets[entry.bucket].params[out].value();
  }
  if (reduces_members(entry.kind) || gathers_shards(entry.kind)) access.other = out;
  if (gathers_lists(entry.kind)) {
    // The output that carries the member's own input may be in place.
    for (std::uint32_t p = 0; p < ports.size(); ++p) {
      if (facts_.origin[id] == facts_.origin[ports[p].output]) access.other = p;
    }
  }
  return access;
}

std::uint32_t MemoryAccesses::param_of(const RoleView::Entry& entry, const Input& edge) const {
  if (edge.source.node.valid())
    return dag_.buckets[facts_.node(edge.source.node).subject.bucket().index()]
        .params[edge.source.index]
        .value();
  // A shard is named by its first parameter.
  if (entry.bucket != kNone) return dag_.buckets[entry.bucket].params.front().value();
  return dag_.bodies[entry.body].inputs[edge.port].param.value();
}

}  // namespace piper::verify
