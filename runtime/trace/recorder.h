#pragma once
// Records when the actions of a rank's last step began and ended, how long library calls took in
// them, and the shortest time of each in any step. Room for two steps of a program is allocated
// before the run: writing allocates nothing and takes no lock.
//
//   recorder.prepare(program);                          // throws std::bad_alloc
//   recorder.add_call(family, ns);                       // by the device thread, within an action of stream 0
//   recorder.write(stream, step, position, begin, end);  // by the one thread that runs the stream
//   recorder.last(ended_steps);                         // when the run is over

#include <algorithm>
#include <cstdint>
#include <vector>

#include "runtime/abi.h"

namespace piper::runtime {

struct RecordedAction {
  std::uint32_t stream = 0, position = 0;
  std::uint64_t begin_ns = 0, end_ns = 0;
  // In library calls; of actions of the compute stream.
  std::uint64_t product_ns = 0, attention_ns = 0;
  // Over all steps, except the first if there are more.
  std::uint64_t least_ns = 0;
};

/// The times of a rank's actions in the last step; they count from one point in time for all ranks.
struct RecordedRank {
  std::uint32_t rank = 0;
  std::vector<RecordedAction> actions;  // stream by stream, as they ran
};

/// Library calls whose times are reported together: a column of runtime/calls.def.
enum class CallFamily : std::uint8_t { product, attention };

/// The family of a PiperCallKind, which exists.
inline CallFamily call_family(std::uint32_t kind) {
  static constexpr CallFamily kFamilies[] = {
#define CALL(name, KIND, operands, results, family) CallFamily::family,
#include "runtime/calls.def"
#undef CALL
  };
  return kFamilies[kind];
}

class ActionRecorder {
 public:
  /// Also drops earlier records.
  void prepare(const PiperProgram& program);
  void add_call(CallFamily family, std::uint64_t ns) {
    (family == CallFamily::product ? product_ns_ : attention_ns_) += ns;
  }
  void write(std::uint32_t stream, std::uint64_t step, std::uint32_t position,
             std::uint64_t begin_ns, std::uint64_t end_ns) {
    const std::size_t at = first_[stream] + position;
    Times& times = times_[(step & 1) * first_.back() + at];
    times = {begin_ns, end_ns, 0, 0};
    if (stream == 0) {  // library calls are those of the device thread
      times.product_ns = product_ns_;
      times.attention_ns = attention_ns_;
      product_ns_ = attention_ns_ = 0;
    }
    // The first step is not typical: memory is touched for the first time, and libraries are
    // opened.
    shortest_[at] = step <= 1 ? end_ns - begin_ns : std::min(shortest_[at], end_ns - begin_ns);
  }
  /// The actions of the last of `steps` steps, stream by stream.
  std::vector<RecordedAction> last(std::uint64_t steps) const;

 private:
  struct Times {
    std::uint64_t begin_ns = 0, end_ns = 0;
    std::uint64_t product_ns = 0, attention_ns = 0;
  };
  std::vector<std::size_t> first_;                   // per stream, one more
  std::vector<Times> times_;                         // of even steps, then of odd ones
  std::vector<std::uint64_t> shortest_;              // per action
  std::uint64_t product_ns_ = 0, attention_ns_ = 0;  // of the action that runs
};

}  // namespace piper::runtime
