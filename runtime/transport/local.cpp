#include "runtime/transport/local.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "runtime/dtypes.h"
#include "runtime/transport/element_sums.h"

namespace piper::runtime {
namespace {

// The bytes that one poll moves between two members: enough that the bookkeeping does not count,
// few enough (tens of microseconds) that no other message waits.
constexpr std::uint64_t kSliceBytes = 256 * 1024;
// The running sum of an all_reduce stays in the first-level cache.
constexpr std::uint64_t kSumBytes = 16 * 1024;

// One communicator: its members' pending operations and how far the present one has moved.
struct Channel {
  std::uint32_t id = 0;
  std::uint32_t num_sets = 1;
  std::vector<Operation*> members;
  std::uint32_t present = 0;
  bool matched = false;
  std::uint32_t part = 0;
  std::uint64_t done = 0;  // elements of `part` that have moved
};

const char* disagreement_of(std::span<const Operation* const> members, const Operation& member) {
  const Operation& first = *members[0];
  const std::uint32_t op = first.action->op;
  if (op == PIPER_SEND || op == PIPER_RECV) {
    const std::uint32_t expected = member.communicator->self == 0 ? PIPER_SEND : PIPER_RECV;
    if (member.action->op != expected) return "the directions of the two ends do not fit";
  } else if (member.action->op != op) {
    return "the members run different operations";
  }
  if (member.action->identity != first.action->identity)
    return "the members run different communications";
  if (member.action->num_parts != first.action->num_parts)
    return "the members have different numbers of values";
  for (std::uint32_t i = 0; i < first.action->num_parts; ++i) {
    if (member.parts[i].elements != first.parts[i].elements)
      return "the members have values of different sizes";
    if (member.parts[i].dtype != first.parts[i].dtype)
      return "the members have values of different types";
    if (member.parts[i].flags & PIPER_ZERO_FILL) continue;
    if (op != PIPER_SEND && op != PIPER_RECV && !contributor(members, i))
      return "no member contributes a value";
  }
  return nullptr;
}

/// The member whose shard (piper_shard) holds an element.
std::uint32_t owner_of(std::uint64_t elements, std::uint32_t members, std::uint64_t at) {
  const std::uint64_t each = elements / members, more = elements % members,
                      longer = more * (each + 1);
  return static_cast<std::uint32_t>(at < longer ? at / (each + 1) : more + (at - longer) / each);
}

class LocalTransport final : public Transport {
 public:
  std::uint32_t connect(const PiperCommunicator& communicator) override {
    for (std::uint32_t i = 0; i < channels_.size(); ++i) {
      if (channels_[i].id == communicator.id) return i;
    }
    Channel& channel = channels_.emplace_back();
    channel.id = communicator.id;
    channel.num_sets = communicator.num_sets;
    channel.members.resize(communicator.num_members);
    return static_cast<std::uint32_t>(channels_.size() - 1);
  }

  void disconnect() override { channels_.clear(); }

  void start(Operation& operation) override {
    Channel& channel = channels_[operation.channel];
    const std::uint32_t self = operation.communicator->self;
    operation.state = OperationState::pending;
    if (channel.members[self]) {
      fail(operation, "two communications of one member are in flight on one communicator",
           channel.members[self]->action->identity);
      return;
    }
    channel.members[self] = &operation;
    clear_padding(operation);
    if (++channel.present == channel.members.size() && match(channel)) move(channel);
  }

  void poll(Operation& operation) override {
    if (operation.state != OperationState::pending) return;
    Channel& channel = channels_[operation.channel];
    // One member's poll is enough: a collective of many members takes no more turns than a message.
    if (channel.matched && operation.communicator->self == 0) move(channel);
  }

  bool moving(const Operation& operation) const override {
    return channels_[operation.channel].matched;
  }
  bool moves_only_on_start() const override { return true; }

 private:
  static void clear_padding(const Operation& operation) {
    for (std::uint32_t i = 0; i < operation.action->num_parts; ++i) {
      const PiperMessagePart& part = operation.parts[i];
      if (part.flags & PIPER_ZERO_FILL)
        std::memset(operation.arena + part.out, 0, part.elements * element_bytes(part.dtype));
    }
  }

  static void fail(Operation& operation, const char* error, std::int64_t value) {
    operation.state = OperationState::failed;
    operation.error = error;
    operation.error_value = value;
  }

  // True if all members run the same communication; otherwise all of them fail.
  bool match(Channel& channel) {
    std::size_t member = 0;
    if (const char* error = disagreement(channel.members, member)) {
      const std::int64_t identity = channel.members[0]->action->identity;
      for (Operation* each : channel.members) fail(*each, error, identity);
      return false;
    }
    channel.matched = true;
    channel.part = 0;
    channel.done = 0;
    return true;
  }

  void move(Channel& channel) {
    const std::uint32_t parts = channel.members[0]->action->num_parts;
    std::uint64_t budget =
        std::max<std::uint64_t>(kSumBytes, 2 * kSliceBytes / channel.members.size());
    while (channel.part < parts) {
      const PiperMessagePart& part = channel.members[0]->parts[channel.part];
      const std::uint64_t size = element_bytes(part.dtype);
      if (channel.done < part.elements && !(part.flags & PIPER_ZERO_FILL)) {
        if (budget < size) return;
        const std::uint64_t count = std::min(part.elements - channel.done, budget / size);
        move_elements(channel, channel.done, count);
        channel.done += count;
        budget -= count * size;
      }
      if (channel.done < part.elements && !(part.flags & PIPER_ZERO_FILL)) return;
      ++channel.part;
      channel.done = 0;
    }
    channel.matched = false;
    channel.present = 0;
    for (Operation*& member : channel.members) {
      member->state = OperationState::done;
      member = nullptr;
    }
  }

  void move_elements(Channel& channel, std::uint64_t first, std::uint64_t count) {
    const Operation& head = *channel.members[0];
    const std::uint64_t size = element_bytes(head.parts[channel.part].dtype);
    switch (static_cast<PiperCommOp>(head.action->op)) {
      case PIPER_ALL_REDUCE: {
        const auto all = [&](std::uint64_t at, std::uint64_t n) {
          for (const Operation* member : channel.members)
            std::memcpy(out(*member, channel.part) + at * size, sum_, n * size);
        };
        reduce(channel, first, count, all);
        return;
      }
      case PIPER_REDUCE_SCATTER:
        by_shards(channel, first, count,
                  [&](const Operation& owner, const PiperInterval& block, std::uint64_t from,
                      std::uint64_t elements) {
                    reduce(channel, from, elements, [&](std::uint64_t at, std::uint64_t n) {
                      give_shard(owner, channel, block, at, n);
                    });
                  });
        return;
      case PIPER_ALL_GATHER:
        by_shards(channel, first, count,
                  [&](const Operation& owner, const PiperInterval& block, std::uint64_t from,
                      std::uint64_t elements) {
                    copy_to_all(channel, owner, in_own(owner.parts[channel.part], block, from),
                                from, elements);
                  });
        return;
      case PIPER_OFFLOAD:
        std::memcpy(head.host + head.parts[channel.part].out + first * size,
                    in(head, channel.part) + first * size, count * size);
        return;
      case PIPER_FETCH:
        std::memcpy(out(head, channel.part) + first * size,
                    head.host + head.parts[channel.part].in + first * size, count * size);
        return;
      case PIPER_ALL_GATHER_V:
        copy_to_all(channel, *contributor(channel.members, channel.part), first, first, count);
        return;
      case PIPER_SEND:
      case PIPER_RECV:
        std::memcpy(out(*channel.members[1], channel.part) + first * size,
                    in(head, channel.part) + first * size, count * size);
    }
  }

  static unsigned char* in(const Operation& member, std::uint32_t part) {
    return part_at(member, member.parts[part], member.parts[part].in);
  }
  static unsigned char* out(const Operation& member, std::uint32_t part) {
    return part_at(member, member.parts[part], member.parts[part].out);
  }

  void give_shard(const Operation& owner, const Channel& channel, const PiperInterval& block,
                  std::uint64_t at, std::uint64_t count) {
    const PiperMessagePart& part = owner.parts[channel.part];
    const std::uint64_t size = element_bytes(part.dtype);
    unsigned char* const to = out(owner, channel.part) + in_own(part, block, at) * size;
    if (part.flags & PIPER_ACCUMULATE) {
      add_elements(part.dtype, to, sum_, count);
    } else {
      std::memcpy(to, sum_, count * size);
    }
  }

  // `at`: the position of the first element in the buffer of `from`.
  static void copy_to_all(const Channel& channel, const Operation& from, std::uint64_t at,
                          std::uint64_t first, std::uint64_t count) {
    const std::uint64_t size = element_bytes(from.parts[channel.part].dtype);
    const unsigned char* source = in(from, channel.part) + at * size;
    for (const Operation* to : channel.members) {
      unsigned char* target = out(*to, channel.part) + first * size;
      if (source != target) std::memcpy(target, source, count * size);
    }
  }

  // Splits a range at the ends of the members' shards.
  template <typename Move>
  static void by_shards(const Channel& channel, std::uint64_t first, std::uint64_t count,
                        const Move& move) {
    const std::uint64_t elements = channel.members[0]->parts[channel.part].elements;
    const auto members = static_cast<std::uint32_t>(channel.members.size());
    for (const std::uint64_t end = first + count; first < end;) {
      const std::uint32_t owner = owner_of(elements, members, first);
      const PiperInterval block = piper_shard(elements, members, owner);
      const std::uint64_t n = std::min(end, block.first + block.extent) - first;
      move(*channel.members[owner], block, first, n);
      first += n;
    }
  }

  // Delivers the sum piece by piece: `give(first, count)` finds it in `sum_`.
  template <typename Give>
  void reduce(Channel& channel, std::uint64_t first, std::uint64_t count, const Give& give) {
    const std::uint32_t dtype = channel.members[0]->parts[channel.part].dtype;
    const std::uint64_t size = element_bytes(dtype);
    for (std::uint64_t end = first + count; first < end;) {
      const std::uint64_t n = std::min(end - first, kSumBytes / size);
      bool any = false;
      for (const Operation* member : channel.members) {
        if (!contributes(*member, channel.part)) continue;
        const unsigned char* summand = in(*member, channel.part) + first * size;
        if (!std::exchange(any, true)) {
          std::memcpy(sum_, summand, n * size);
        } else {
          add_elements(dtype, sum_, summand, n);
        }
      }
      give(first, n);
      first += n;
    }
  }

  std::vector<Channel> channels_;
  alignas(64) unsigned char sum_[kSumBytes];
};

}  // namespace

std::unique_ptr<Transport> make_local_transport() { return std::make_unique<LocalTransport>(); }

const char* disagreement(std::span<const Operation* const> members, std::size_t& member) {
  for (member = 0; member < members.size(); ++member) {
    if (const char* error = disagreement_of(members, *members[member])) return error;
  }
  return nullptr;
}

unsigned char* part_at(const Operation& member, const PiperMessagePart& part,
                       std::uint64_t offset) {
  const std::uint64_t first =
      part.interval == PIPER_ALL_POSITIONS ? 0 : member.intervals[part.interval].first;
  return member.arena + offset + first * element_bytes(part.dtype);
}

const Operation* contributor(std::span<const Operation* const> members, std::uint32_t part) {
  const auto found = std::find_if(members.begin(), members.end(), [&](const Operation* member) {
    return contributes(*member, part);
  });
  return found == members.end() ? nullptr : *found;
}

std::string_view comm_op_name(std::uint32_t op) {
  switch (op) {
    case PIPER_SEND: return "send";
    case PIPER_RECV: return "recv";
    case PIPER_ALL_REDUCE: return "all_reduce";
    case PIPER_ALL_GATHER_V: return "all_gather_v";
    case PIPER_REDUCE_SCATTER: return "reduce_scatter";
    case PIPER_ALL_GATHER: return "all_gather";
    case PIPER_OFFLOAD: return "offload";
    case PIPER_FETCH: return "fetch";
    default: return "unknown";
  }
}

}  // namespace piper::runtime
