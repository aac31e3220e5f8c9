#include "tests/runtime/block_job.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "runtime/dtypes.h"
#include "runtime/device/state.h"

namespace piper::runtime {
namespace {

constexpr std::uint32_t kTypes[] = {PIPER_F64, PIPER_F32, PIPER_I64, PIPER_BF16};
constexpr std::uint64_t kGap = 3;  // elements between ranges: never written
constexpr std::uint64_t kSeed = 11;

std::string name_of(std::uint32_t rank, std::uint32_t dtype) {
  return "r" + std::to_string(rank) + "." + dtype_name(dtype);
}

/// The owner of an element's shard, and the start of the shard.
struct Owner {
  std::uint32_t member = 0;
  std::uint64_t first = 0;
};
std::vector<Owner> owners(std::uint64_t elements, std::uint32_t members) {
  std::vector<Owner> list;
  for (std::uint32_t m = 0; m < members; ++m) {
    const std::uint64_t first = list.size(),
                        extent = elements / members + (m < elements % members ? 1 : 0);
    list.insert(list.end(), extent, {m, first});
  }
  return list;
}

template <typename T>
void apply(const BlockPiece& piece, std::vector<T*> memory) {
  const auto members = static_cast<std::uint32_t>(memory.size());
  const std::vector<Owner> of = owners(piece.elements, members);
  for (std::uint64_t e = piece.elements - piece.cleared; e < piece.elements; ++e) {
    for (T* const each : memory) each[piece.in + e] = T{};
  }
  for (std::uint64_t e = 0; e < piece.elements; ++e) {
    const auto [owner, first] = of[e];
    const std::uint64_t alone = piece.own ? e - first : e;
    if (piece.op == PIPER_ALL_GATHER) {
      const T value = memory[owner][piece.in + alone];
      for (T* const each : memory) each[piece.out + e] = value;
      continue;
    }
    T sum = memory[0][piece.in + e];
    for (std::uint32_t m = 1; m + (piece.silent ? 1 : 0) < members; ++m)
      sum = sum + memory[m][piece.in + e];
    T& to = memory[owner][piece.out + alone];
    if (piece.adds) sum = to + sum;
    to = sum;
  }
}

/// The relative error allowed for a sum in another order.
double rounding_of(std::uint32_t dtype) {
  switch (static_cast<PiperDType>(dtype)) {
    case PIPER_F64: return 1e-14;
    case PIPER_F32: return 1e-6;
    case PIPER_BF16: return 0x1p-5;
    case PIPER_I64: break;
  }
  return 0;
}

}  // namespace

BlockJob::BlockJob(std::uint32_t members) : members_(members), job_(members) {
  choose();
  place();
  std::vector<std::uint32_t> ranks;
  for (std::uint32_t r = 0; r < members; ++r) ranks.push_back(r);
  const std::uint32_t group = job_.group(ranks);
  for (std::uint32_t r = 0; r < members; ++r) {
    HandProgram& program = job_.rank(r);
    for (const std::uint32_t dtype : kTypes) {
      // Whole numbers are a parameter that has their bytes, the same everywhere.
      const bool whole = dtype == PIPER_I64;
      offsets_[dtype] = with_element(
          dtype, [&](auto zero) { return program.allocate<decltype(zero)>(sizes_[dtype]); });
      PiperParam& param = program.param(
          name_of(r, dtype), offsets_[dtype], PIPER_NO_OFFSET, sizes_[dtype],
          whole ? std::uint32_t{PIPER_F64} : dtype, whole ? PIPER_CONSTANT : PIPER_NORMAL,
          whole ? std::bit_cast<double>(std::int64_t{1'000'003} * (r + 1)) : 1.0);
      if (dtype == PIPER_BF16) param.sum_dtype = PIPER_F32;
    }
    program.end_state();
    Spot last = program.compute("F", {}, [](Step&) { return 0; });
    for (std::size_t c = 0; c < communications_.size(); ++c) {
      std::vector<PiperMessagePart> parts;
      for (const BlockPiece& piece : communications_[c]) {
        const std::uint64_t size = element_bytes(piece.dtype), begin = offsets_[piece.dtype];
        const bool silent = piece.silent && r + 1 == members;
        const std::uint32_t flags =
            (piece.own ? PIPER_SHARD_ONLY : 0) | (piece.adds ? PIPER_ACCUMULATE : 0);
        parts.push_back({silent ? PIPER_NO_OFFSET : begin + piece.in * size,
                         begin + piece.out * size, piece.elements, piece.dtype, PIPER_ALL_POSITIONS,
                         flags, 0});
        if (piece.cleared > 0)
          parts.push_back({PIPER_NO_OFFSET,
                           begin + (piece.in + piece.elements - piece.cleared) * size,
                           piece.cleared, piece.dtype, PIPER_ALL_POSITIONS, PIPER_ZERO_FILL, 0});
      }
      last =
          program.communicate("blocks", communications_[c].front().op, group,
                              static_cast<std::uint32_t>(c + 1), parts, {HandProgram::after(last)});
    }
  }
  job_.finish();
  job_.tables().seed = kSeed;
}

/// Every size: sums and gathers in every form and type together, and one of each separately.
void BlockJob::choose() {
  std::vector<std::uint64_t> sizes = {64, 1000};
  for (std::uint64_t n = 0; n <= 17; ++n) sizes.push_back(n);
  for (const std::uint64_t n : sizes) {
    std::vector<BlockPiece> sums, gathers;
    for (const std::uint32_t dtype : kTypes) {
      const BlockPiece plain{.op = PIPER_REDUCE_SCATTER, .dtype = dtype, .elements = n};
      for (int way = 0; way < 7; ++way) {
        BlockPiece& made = sums.emplace_back(plain);
        made.in_place = way == 1;
        made.own = way == 2 || way == 3;
        made.adds = way == 3 || way == 4;
        made.silent = way == 5 && members_ > 1;
        made.cleared = way == 6 ? n / 3 : 0;
      }
      for (int way = 0; way < 3; ++way) {
        BlockPiece& made = gathers.emplace_back(plain);
        made.op = PIPER_ALL_GATHER;
        made.in_place = way == 1;
        made.own = way == 2;
      }
    }
    communications_.push_back(sums);
    communications_.push_back({sums[3]});
    communications_.push_back(gathers);
    communications_.push_back({gathers[2]});
  }
  // More elements than move at once.
  constexpr std::uint64_t kMany = 70'001;
  communications_.push_back(
      {{.elements = kMany}, {.dtype = PIPER_BF16, .elements = kMany, .own = true, .adds = true}});
  communications_.push_back({{.op = PIPER_ALL_GATHER, .elements = kMany, .own = true}});
}

void BlockJob::place() {
  for (std::vector<BlockPiece>& pieces : communications_) {
    for (BlockPiece& piece : pieces) {
      std::uint64_t& end = sizes_[piece.dtype];
      piece.in = end + kGap;
      piece.out = piece.in_place ? piece.in : piece.in + piece.elements + kGap;
      end = piece.out + piece.elements + kGap;
    }
  }
}

BlockJob::Memory BlockJob::first_values(std::uint32_t rank) const {
  const PiperProgram& program = *job_.tables().ranks[rank].program;
  std::vector<unsigned char> arena(program.arena_bytes);
  initialise_parameters(program, kSeed, nullptr, arena.data(), nullptr);
  Memory memory(std::size(sizes_));
  for (const std::uint32_t dtype : kTypes)
    memory[dtype].assign(arena.data() + offsets_[dtype],
                         arena.data() + offsets_[dtype] + sizes_[dtype] * element_bytes(dtype));
  return memory;
}

std::vector<BlockJob::Memory> BlockJob::last_values() const {
  std::vector<Memory> memory;
  for (std::uint32_t r = 0; r < members_; ++r) memory.push_back(first_values(r));
  for (const std::vector<BlockPiece>& pieces : communications_) {
    for (const BlockPiece& piece : pieces) {
      with_element(piece.dtype, [&](auto zero) {
        std::vector<decltype(zero)*> typed;
        for (Memory& of_rank : memory)
          typed.push_back(reinterpret_cast<decltype(zero)*>(of_rank[piece.dtype].data()));
        apply(piece, typed);
      });
    }
  }
  return memory;
}

std::string BlockJob::difference(const Executor& executor, bool exact, bool has_all) const {
  const std::vector<Memory> expected = last_values();
  std::string wrong;
  for (std::uint32_t r = 0; r < members_; ++r) {
    for (const std::uint32_t dtype : kTypes) {
      const auto found = executor.read_parameter(name_of(r, dtype), ParamTensor::values);
      if (has_all && !found && wrong.empty()) wrong = name_of(r, dtype) + " is missing";
      for (std::uint64_t i = 0; found && wrong.empty() && i < sizes_[dtype]; ++i) {
        const double should = element_as_double(
                         expected[r][dtype].data(),
                         dtype == PIPER_I64 ? std::uint32_t{PIPER_F64} : dtype, i),
                     is = found->values[i];
        const bool same = std::bit_cast<std::uint64_t>(should) == std::bit_cast<std::uint64_t>(is);
        // Sums add numbers of about 1.
        if (same || (!exact && std::abs(should - is) <= rounding_of(dtype) * members_)) continue;
        wrong = name_of(r, dtype) + "[" + std::to_string(i) + "] is " + std::to_string(is) +
                ", not " + std::to_string(should);
      }
    }
  }
  return wrong;
}

}  // namespace piper::runtime
