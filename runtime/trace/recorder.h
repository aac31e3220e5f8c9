#pragma once
// When the actions of a rank's last step began and ended. Room for two steps of a program is made before the run: writing allocates nothing and takes no lock.
//
//   recorder.prepare(program);                          // throws std::bad_alloc
//   recorder.write(stream, step, position, begin, end);  // by the one thread that runs the stream
//   recorder.last(ended_steps);                         // when the run is over

#include <cstdint>
#include <vector>

#include "runtime/abi.h"

namespace piper::runtime {

struct RecordedAction {
  std::uint32_t stream = 0, position = 0;
  std::uint64_t begin_ns = 0, end_ns = 0;
};

class ActionRecorder {
 public:
  /// Also forgets what was recorded.
  void prepare(const PiperProgram& program);
  void write(std::uint32_t stream, std::uint64_t step, std::uint32_t position, std::uint64_t begin_ns, std::uint64_t end_ns) {
    Times& times = times_[(step & 1) * first_.back() + first_[stream] + position];
    times = {begin_ns, end_ns};
  }
  /// The actions of the last of so many steps, stream by stream.
  std::vector<RecordedAction> last(std::uint64_t steps) const;

 private:
  struct Times {
    std::uint64_t begin_ns = 0, end_ns = 0;
  };
  std::vector<std::size_t> first_;  // per stream, one more
  std::vector<Times> times_;        // of even steps, then of odd ones
};

}  // namespace piper::runtime
