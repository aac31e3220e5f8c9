#pragma once
// Programs written by hand: tables and step functions for a few ranks, without a compiler.
//
//   HandJob job(2);
//   const auto pair = job.pair(0, 1);
//   HandProgram& first = job.rank(0);
//   const auto x = first.allocate<float>(4);
//   const auto f = first.compute("F.mb0", {}, [=](Step& step) { step.at<float>(x)[0] = 1; return 0; });
//   first.communicate("p2p", PIPER_SEND, pair, 17, {first.part<float>(x, x, 4)}, {first.after(f)});
//   const PiperJob& tables = job.finish();

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "runtime/abi.h"
#include "runtime/kernel_math.h"

namespace piper::runtime {

/// The arguments of a compute action.
struct Step {
  const PiperApi* api;
  PiperRank* rank;
  std::uint32_t action;  // of PiperProgram::actions
  template <typename T>
  T* at(std::uint64_t offset) {
    return reinterpret_cast<T*>(rank->arena + offset);
  }
};

/// The position of an action of a program.
struct Spot {
  std::uint32_t stream = 0, position = 0;
};

template <typename T>
constexpr std::uint32_t dtype_of() {
  return std::is_same_v<T, float>        ? PIPER_F32
         : std::is_same_v<T, double>     ? PIPER_F64
         : std::is_same_v<T, piper_bf16> ? PIPER_BF16
                                         : PIPER_I64;
}

class HandProgram {
 public:
  using Body = std::function<int(Step&)>;

  explicit HandProgram(std::uint32_t rank);
  HandProgram(const HandProgram&) = delete;

  /// Bytes of the arena, on a 64-byte boundary.
  template <typename T>
  std::uint64_t allocate(std::uint64_t elements) {
    const std::uint64_t offset = bytes_;
    bytes_ += (elements * sizeof(T) + 63) / 64 * 64;
    return offset;
  }
  /// The same in the arena on the host.
  template <typename T>
  std::uint64_t allocate_on_host(std::uint64_t elements) {
    const std::uint64_t offset = host_bytes_;
    host_bytes_ += (elements * sizeof(T) + 63) / 64 * 64;
    return offset;
  }
  /// Ends the state: allocations so far are state, later ones are not kept between programs.
  void end_state() { state_bytes_ = bytes_; }
  std::uint64_t scalars() const { return scalars_; }

  template <typename T>
  static PiperMessagePart part(std::uint64_t in, std::uint64_t out, std::uint64_t elements) {
    return {in, out, elements, dtype_of<T>(), PIPER_ALL_POSITIONS, 0, 0};
  }
  static PiperWait after(Spot spot, std::uint32_t distance = 0) {
    return {spot.stream, spot.position, distance};
  }

  Spot compute(const std::string& name, std::vector<PiperWait> waits, Body body);
  /// The next action of the communication stream `stream`, which is created if new. Its .pipe line
  /// is its number.
  Spot communicate(const std::string& stream, PiperCommOp op, std::uint32_t communicator,
                   std::uint32_t identity, std::vector<PiperMessagePart> parts,
                   std::vector<PiperWait> waits, const std::string& name = {});
  /// A wait that becomes known later: `distance` 1 closes a loop.
  void add_wait(Spot spot, PiperWait wait);
  void set_high_priority(const std::string& stream);
  PiperParam& param(const std::string& name, std::uint64_t offset, std::uint64_t gradient,
                    std::uint64_t elements, std::uint32_t dtype, PiperInitKind init, double scale);

  /// An interval of the rank; returns its position in the table.
  std::uint32_t interval(PiperInterval interval_here);

  const PiperProgram* finish();
  PiperProgram& tables() { return program_; }

 private:
  friend class HandJob;
  struct Action {
    std::vector<PiperWait> waits;
    Body body;  // compute
    // Communication; its communicator is a number of the job until finish().
    PiperCommAction comm{};
    std::vector<PiperMessagePart> parts;
    std::uint32_t action = 0;
  };
  struct Stream {
    std::string name;
    bool high_priority = false;
    std::vector<Action> actions;
    std::vector<PiperCommAction> comm;
    std::vector<std::uint32_t> action_of;
  };
  static int run_step(const PiperApi* api, PiperRank* rank);
  std::uint32_t add_action(const std::string& name);

  std::uint32_t rank_;
  std::uint64_t bytes_ = 0, state_bytes_ = 0, scalars_ = 0, host_bytes_ = 0;
  std::vector<Stream> streams_;
  std::deque<std::string> names_, param_names_;  // of actions, of parameters
  std::vector<PiperActionInfo> infos_;
  std::vector<PiperWait> waits_;
  std::vector<PiperMessagePart> parts_;
  std::vector<PiperStream> tables_;
  std::vector<PiperParam> params_;
  std::deque<std::int64_t> dims_;
  std::vector<PiperInterval> intervals_;
  std::vector<std::uint64_t> extents_;
  std::vector<std::uint32_t> communicators_;  // of the job
  std::vector<PiperCommunicator> local_communicators_;
  std::string role_;
  PiperProgram program_{};
};

/// All ranks and their communicators.
class HandJob {
 public:
  explicit HandJob(std::uint32_t ranks);

  HandProgram& rank(std::uint32_t r) { return *training_[r]; }
  /// The evaluation program of a rank; if one rank has one, all have.
  HandProgram& evaluation(std::uint32_t r);
  std::uint32_t pair(std::uint32_t from, std::uint32_t to) { return add(0, {from, to}, 1); }
  std::uint32_t group(std::vector<std::uint32_t> members, std::uint32_t sets = 1) {
    return add(1, std::move(members), sets);
  }
  void loss(const char* name, std::uint64_t count) { losses_.push_back({name, count, 0, 0, 0}); }
  void input(const char* name, std::uint32_t dtype, std::vector<std::int64_t> dims);

  const PiperJob& finish();
  PiperJob& tables() { return job_; }
  const PiperJob& tables() const { return job_; }

 private:
  struct Communicator {
    std::uint32_t kind, sets;
    std::vector<std::uint32_t> members;
  };
  std::uint32_t add(std::uint32_t kind, std::vector<std::uint32_t> members, std::uint32_t sets);
  void finish(HandProgram& program);

  std::vector<std::unique_ptr<HandProgram>> training_, evaluation_;
  std::deque<Communicator> communicators_;
  std::vector<PiperLoss> losses_;
  std::deque<std::vector<std::int64_t>> dims_;
  std::vector<PiperInput> inputs_;
  std::vector<PiperJobRank> ranks_;
  PiperJob job_{};
};

}  // namespace piper::runtime
