#pragma once
// The state of a model on ranks of a random layout, in plain memory, for tests of checkpoints: no
// executor runs.
//
//   const std::vector<StateParam> model = random_state(random);
//   StateJob one(model, random), other(model, random);  // two layouts
//   one.fill();
//   CheckpointWriter writer(one.memory(), {.out_folder = folder, .run = facts});
//   checkpoint->load(other.memory(), Restored::all);
//   EXPECT_EQ(other.difference(Restored::all), "");

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runtime/checkpoint/checkpoint.h"
#include "tests/runtime/hand_program.h"
#include "tests/support/random_cases.h"

namespace piper::runtime {

/// A parameter with its optimizer's tensors.
struct StateParam {
  std::string name = {};
  std::vector<std::int64_t> dims = {};
  std::uint32_t dtype = PIPER_F32;
  // Tensors of the optimizer, without the moving average, and the master weights that a trained
  // parameter of bf16 has.
  std::uint32_t slots = 0;
  bool frozen = false;
  bool average = false;  // it has a moving average

  std::uint64_t elements() const;
  std::uint32_t sum_dtype() const { return dtype == PIPER_BF16 ? std::uint32_t{PIPER_F32} : dtype; }
  bool has_master() const { return dtype == PIPER_BF16 && !frozen; }
  /// The type of a part in a checkpoint.
  std::uint32_t stored_dtype(StatePart part) const;
};

/// One to eight parameters of any type; all trained ones have an equal number of slots, and a moving
/// average or none.
std::vector<StateParam> random_state(test::Random& random);

/// Bytes of elements [first, end) of a part, of the type `dtype`: the value of an element depends
/// on its parameter, part and number alone.
std::vector<unsigned char> state_values(const StateParam& param, StatePart part,
                                        std::uint32_t dtype, std::uint64_t first,
                                        std::uint64_t end);

class StateJob {
 public:
  /// Stages of one to three replicas each. Buckets are whole, or cut from one of the three levels
  /// on; state lies in the arena or on the host; other stages may read a copy.
  StateJob(const std::vector<StateParam>& model, test::Random& random);
  /// The model on one rank, whole.
  explicit StateJob(const std::vector<StateParam>& model);
  StateJob(const StateJob&) = delete;

  std::span<const PiperJobRank> ranks() const { return ranks_; }
  RankParameters parameters() const { return RankParameters(ranks_); }
  /// `process_rank`: the rank of this process; by default all are in it.
  StateMemory memory(ProcessGroup* group = nullptr, std::optional<std::size_t> process_rank = {});
  unsigned char* at(std::size_t rank, bool on_host, std::uint64_t offset) {
    return (on_host ? memory_[rank].host : memory_[rank].arena).data() + offset;
  }

  /// Gives every element of the state its value.
  void fill();
  void clear();
  /// The first rank whose memory is not that of `fill`, of the values alone if only they were
  /// restored; empty: none. All other memory is zero.
  std::string difference(Restored restored) const;

 private:
  struct Layout {
    std::vector<std::uint32_t> owners;   // ranks with equal or cut state
    std::vector<std::uint32_t> readers;  // ranks with a copy that is not counted
    std::vector<std::size_t> params;     // of the model: one bucket
    bool cut = false;                    // state is cut over the owners
    PiperSharded sharded = PIPER_SHARDED_OPTIMIZER;
    bool on_host = false;
    std::uint64_t gap = 0;  // elements between parameters of a bucket
  };
  struct Memory {
    std::vector<unsigned char> arena, host;
  };
  /// Elements [first, end) of a part of a parameter, in the memory of a rank.
  struct Place {
    std::uint32_t rank = 0;
    bool on_host = false;
    std::uint64_t offset = 0;
    std::uint32_t dtype = 0;
    std::size_t param = 0;  // of the model
    StatePart part = StatePart::values;
    std::uint64_t first = 0, end = 0;
  };
  void add_ranks(std::uint32_t count);
  void add_owner(const Layout& layout, std::uint32_t member);
  void add_reader(const Layout& layout, std::uint32_t rank);
  /// Memory for `elements` elements of a rank.
  std::uint64_t allocate(std::uint32_t rank, bool on_host, std::uint32_t dtype,
                         std::uint64_t elements);
  void finish();
  std::vector<Memory> filled(Restored restored) const;

  const std::vector<StateParam> model_;
  std::vector<std::unique_ptr<HandProgram>> programs_;
  std::vector<std::vector<PiperInterval>> intervals_;  // by rank
  std::vector<Place> places_;
  std::vector<PiperJobRank> ranks_;
  std::vector<Memory> memory_;
  PiperJob job_{};
};

}  // namespace piper::runtime
