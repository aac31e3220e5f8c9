#include "tests/runtime/state_job.h"

#include <algorithm>
#include <cstring>

#include "runtime/dtypes.h"

namespace piper::runtime {
namespace {

using test::Random;

std::uint32_t count(Random& random, std::int64_t low, std::int64_t high) {
  return static_cast<std::uint32_t>(random.between(low, high));
}

}  // namespace

std::uint64_t StateParam::elements() const {
  std::uint64_t product = 1;
  for (const std::int64_t dim : dims) product *= static_cast<std::uint64_t>(dim);
  return product;
}

std::uint32_t StateParam::stored_dtype(StatePart part) const {
  return part != StatePart::values || has_master() ? sum_dtype() : dtype;
}

std::vector<StateParam> random_state(Random& random) {
  std::vector<StateParam> model;
  const std::uint32_t slots = count(random, 0, 2);
  const bool average = random.chance(0.3);
  for (std::uint32_t p = count(random, 1, 8); p > 0; --p) {
    StateParam& param = model.emplace_back();
    param.name = "layer" + std::to_string(p % 3) + ".w" + std::to_string(p);
    for (std::uint32_t d = count(random, 0, 3); d > 0; --d)
      param.dims.push_back(random.between(1, 12));
    param.dtype = random.pick(std::vector<std::uint32_t>{PIPER_F64, PIPER_F32, PIPER_BF16});
    param.frozen = random.chance(0.2);
    param.slots = param.frozen ? 0 : slots;
    param.average = !param.frozen && average;
  }
  return model;
}

std::vector<unsigned char> state_values(const StateParam& param, StatePart part,
                                        std::uint32_t dtype, std::uint64_t first,
                                        std::uint64_t end) {
  std::vector<unsigned char> bytes((end - first) * element_bytes(dtype));
  const piper_random_key key =
      piper_stream_key(3, PIPER_RANDOM_INIT, static_cast<std::uint64_t>(part), 0,
                       piper_name_hash(param.name.data(), param.name.size()));
  with_element(param.stored_dtype(part), [&](auto stored) {
    with_element(dtype, [&](auto held) {
      for (std::uint64_t i = first; i < end; ++i) {
        stored = static_cast<decltype(stored)>(piper_random_normal(key, i));
        held = static_cast<decltype(held)>(stored);
        std::memcpy(bytes.data() + (i - first) * sizeof held, &held, sizeof held);
      }
    });
  });
  return bytes;
}

StateJob::StateJob(const std::vector<StateParam>& model, Random& random) : model_(model) {
  const std::uint32_t stages = count(random, 1, 3), replicas = count(random, 1, 3);
  add_ranks(stages * replicas);
  std::vector<std::vector<std::size_t>> of_stage(stages);
  for (std::size_t p = 0; p < model_.size(); ++p) of_stage[random.below(stages)].push_back(p);
  for (std::uint32_t stage = 0; stage < stages; ++stage) {
    Layout layout;
    for (std::uint32_t r = 0; r < replicas; ++r) layout.owners.push_back(stage * replicas + r);
    const auto end_bucket = [&] {
      if (layout.params.empty()) return;
      layout.cut = random.chance(0.6);
      layout.sharded = static_cast<PiperSharded>(random.below(3));
      layout.on_host = random.chance(0.3);
      layout.gap = random.chance(0.5) ? random.below(5) : 0;
      for (std::uint32_t r = 0; r < replicas; ++r) add_owner(layout, r);
      if (random.chance(0.2)) add_reader(layout, count(random, 0, stages * replicas - 1));
      layout.params.clear();
    };
    for (const std::size_t p : of_stage[stage]) {
      const StateParam* const before =
          layout.params.empty() ? nullptr : &model_[layout.params.back()];
      if (before && (before->dtype != model_[p].dtype || before->frozen != model_[p].frozen ||
                     random.chance(0.3)))
        end_bucket();
      layout.params.push_back(p);
    }
    end_bucket();
  }
  finish();
}

StateJob::StateJob(const std::vector<StateParam>& model) : model_(model) {
  add_ranks(1);
  for (std::size_t p = 0; p < model_.size(); ++p) {
    Layout layout;
    layout.owners = {0};
    layout.params = {p};
    add_owner(layout, 0);
  }
  finish();
}

void StateJob::add_ranks(std::uint32_t count) {
  for (std::uint32_t r = 0; r < count; ++r) {
    programs_.push_back(std::make_unique<HandProgram>(r));
    // Offsets in the arena of the host may equal those in the other one.
    programs_.back()->allocate_on_host<char>(1);
  }
  intervals_.resize(count);
}

std::uint64_t StateJob::allocate(std::uint32_t rank, bool on_host, std::uint32_t dtype,
                                 std::uint64_t elements) {
  HandProgram& program = *programs_[rank];
  return with_element(dtype, [&](auto zero) {
    return on_host ? program.allocate_on_host<decltype(zero)>(elements)
                   : program.allocate<decltype(zero)>(elements);
  });
}

void StateJob::add_owner(const Layout& layout, std::uint32_t member) {
  const std::uint32_t rank = layout.owners[member];
  std::uint64_t all = 0;
  for (const std::size_t p : layout.params) all += model_[p].elements() + layout.gap;
  PiperInterval held{0, all, all};
  std::uint32_t interval = PIPER_ALL_POSITIONS;
  if (layout.cut) {
    held = piper_shard(all, static_cast<std::uint32_t>(layout.owners.size()), member);
    interval = programs_[rank]->interval(held);
    intervals_[rank].push_back(held);
  }
  const bool values_cut = layout.cut && layout.sharded == PIPER_SHARDED_PARAMETERS;
  // The buffers of a cut bucket: its values, and one per slot.
  const StateParam& front = model_[layout.params.front()];
  const std::uint32_t slots = front.slots + (front.average ? 1 : 0) + (front.has_master() ? 1 : 0);
  const std::uint64_t values =
      values_cut ? allocate(rank, false, front.dtype, held.extent) : PIPER_NO_OFFSET;
  std::uint64_t buffers[PIPER_MAX_SLOTS] = {};
  for (std::uint32_t s = 0; layout.cut && s < slots; ++s)
    buffers[s] = allocate(rank, layout.on_host, front.sum_dtype(), held.extent);
  std::uint64_t begin = 0;  // of the parameter in the bucket
  for (const std::size_t p : layout.params) {
    const StateParam& described = model_[p];
    const std::uint64_t elements = described.elements();
    const std::uint64_t first = std::clamp(held.first, begin, begin + elements),
                        end = std::clamp(held.first + held.extent, begin, begin + elements);
    const auto add_place = [&](StatePart part, bool on_host, bool cut, std::uint32_t dtype,
                               std::uint64_t offset) {
      if (cut && first < end) {
        places_.push_back({rank, on_host, offset + (first - held.first) * element_bytes(dtype),
                           dtype, p, part, first - begin, end - begin});
      } else if (!cut) {
        places_.push_back({rank, on_host, offset, dtype, p, part, 0, elements});
      }
    };
    const std::uint64_t offset =
        values_cut ? values : allocate(rank, false, described.dtype, elements);
    std::uint64_t slot_offsets[PIPER_MAX_SLOTS];
    std::fill(std::begin(slot_offsets), std::end(slot_offsets), PIPER_NO_OFFSET);
    const auto part_of = [&](std::uint32_t slot) {
      if (slot < described.slots) return kStateParts[slot + 1];
      return slot == described.slots && described.average ? StatePart::average : StatePart::values;
    };
    add_place(StatePart::values, false, values_cut, described.dtype, offset);
    for (std::uint32_t s = 0; s < slots; ++s) {
      slot_offsets[s] =
          layout.cut ? buffers[s] : allocate(rank, layout.on_host, described.sum_dtype(), elements);
      add_place(part_of(s), layout.on_host, layout.cut, described.sum_dtype(), slot_offsets[s]);
    }
    PiperParam& param = programs_[rank]->param(described.name, offset, PIPER_NO_OFFSET, elements,
                                               described.dtype, PIPER_NORMAL, 1.0);
    std::copy_n(slot_offsets, PIPER_MAX_SLOTS, param.slot_offsets);
    param.slots_on_host = layout.on_host ? 1 : 0;
    param.average_slot = described.average ? described.slots + 1 : 0;
    param.sum_dtype = described.sum_dtype();
    param.num_dims = static_cast<std::uint32_t>(described.dims.size());
    param.dims = described.dims.data();
    param.first = layout.cut ? begin : 0;
    param.interval = interval;
    param.sharded = layout.sharded;
    begin += elements + layout.gap;
  }
}

void StateJob::add_reader(const Layout& layout, std::uint32_t rank) {
  for (const std::size_t p : layout.params) {
    const StateParam& described = model_[p];
    const std::uint64_t offset = allocate(rank, false, described.dtype, described.elements());
    PiperParam& param =
        programs_[rank]->param(described.name, offset, PIPER_NO_OFFSET, described.elements(),
                               described.dtype, PIPER_NORMAL, 1.0);
    param.sum_dtype = described.sum_dtype();
    param.num_dims = static_cast<std::uint32_t>(described.dims.size());
    param.dims = described.dims.data();
    param.counted = 0;
    places_.push_back(
        {rank, false, offset, described.dtype, p, StatePart::values, 0, described.elements()});
  }
}

void StateJob::finish() {
  for (std::uint32_t r = 0; r < programs_.size(); ++r) {
    programs_[r]->end_state();
    PiperJobRank& rank = ranks_.emplace_back();
    rank.rank = r;
    rank.program = programs_[r]->finish();
    rank.intervals = intervals_[r].data();
    memory_.push_back({std::vector<unsigned char>(rank.program->arena_bytes),
                       std::vector<unsigned char>(rank.program->host_bytes)});
  }
  job_.train = "drawn";
  job_.optimizer.name = "adamw";
  job_.ranks = ranks_.data();
  job_.num_ranks = job_.world = static_cast<std::uint32_t>(ranks_.size());
  job_.samples_per_step = 8;
}

StateMemory StateJob::memory(ProcessGroup* group, std::optional<std::size_t> process_rank) {
  StateMemory memory;
  memory.job = &job_;
  memory.ranks = ranks_;
  memory.group = group;
  memory.local = [process_rank](std::size_t rank) -> std::optional<std::size_t> {
    if (!process_rank) return rank;
    return rank == *process_rank ? std::optional<std::size_t>(0) : std::nullopt;
  };
  const std::size_t first = process_rank.value_or(0);
  memory.read = [this, first](std::size_t rank, bool on_host, std::uint64_t offset,
                              std::uint64_t) -> const unsigned char* {
    return at(first + rank, on_host, offset);
  };
  memory.write = [this, first](std::size_t rank, bool on_host, std::uint64_t offset,
                               const void* from, std::uint64_t bytes) {
    std::memcpy(at(first + rank, on_host, offset), from, bytes);
    return true;
  };
  memory.failure = [] { return std::optional<Failure>(); };
  return memory;
}

std::vector<StateJob::Memory> StateJob::filled(Restored restored) const {
  std::vector<Memory> memory;
  for (const Memory& of_rank : memory_)
    memory.push_back({std::vector<unsigned char>(of_rank.arena.size()),
                      std::vector<unsigned char>(of_rank.host.size())});
  for (const Place& place : places_) {
    // Averages that are not restored begin at the values.
    const bool begins = restored == Restored::weights && place.part == StatePart::average;
    if (restored == Restored::weights && place.part != StatePart::values && !begins) continue;
    const std::vector<unsigned char> bytes =
        state_values(model_[place.param], begins ? StatePart::values : place.part, place.dtype,
                     place.first, place.end);
    Memory& to = memory[place.rank];
    std::copy(
        bytes.begin(), bytes.end(),
        (place.on_host ? to.host : to.arena).begin() + static_cast<std::ptrdiff_t>(place.offset));
  }
  return memory;
}

void StateJob::fill() { memory_ = filled(Restored::all); }

void StateJob::clear() {
  for (Memory& of_rank : memory_) {
    std::fill(of_rank.arena.begin(), of_rank.arena.end(), std::uint8_t{0});
    std::fill(of_rank.host.begin(), of_rank.host.end(), std::uint8_t{0});
  }
}

std::string StateJob::difference(Restored restored) const {
  const std::vector<Memory> expected = filled(restored);
  for (std::size_t r = 0; r < memory_.size(); ++r) {
    if (memory_[r].arena != expected[r].arena) return "the arena of rank " + std::to_string(r);
    if (memory_[r].host != expected[r].host)
      return "the arena on the host of rank " + std::to_string(r);
  }
  return "";
}

}  // namespace piper::runtime
