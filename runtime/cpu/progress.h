#pragma once
// The progress engine: one thread that moves all communication streams of all ranks of this
// process. Each (rank, stream) has a cursor: an action starts when its waits are satisfied, ends
// through the transport, and bumps the stream's counter. Cursors are independent: one that waits
// holds up no other. The thread sleeps when nothing can move.

#include <cstdint>
#include <vector>

#include "runtime/cpu/run_state.h"
#include "runtime/transport/transport.h"

namespace piper::runtime {

class ProgressEngine {
 public:
  ProgressEngine(RunState& run, Transport& transport);

  /// The thread's function: until all cursors have reached the last step, or the run is cancelled.
  void run();
  Sleep& sleep() { return sleep_; }
  /// False if the thread cannot sleep until a message comes: the system gives no more descriptors.
  bool can_sleep() const { return can_sleep_; }

 private:
  struct Cursor {
    LocalRank* rank = nullptr;
    const PiperProgram* program = nullptr;
    const PiperStream* stream = nullptr;
    std::uint32_t index = 0;  // of the stream
    std::uint32_t position = 0;
    std::uint64_t step = 0;
    std::uint64_t not_before_ns = 0;  // random delays
    std::uint64_t begin_ns = 0;       // of the action that runs, if the run is traced
    bool started = false;
    Operation operation;
    std::vector<std::uint32_t> channel_of;  // by communicator position
  };

  bool scan();
  bool advance(Cursor& cursor);
  bool ready(Cursor& cursor);
  bool held_up(Cursor& cursor, std::uint64_t salt);
  void end_action(Cursor& cursor);
  void fail(const Cursor& cursor);
  bool finished() const;

  RunState& run_;
  Transport& transport_;
  std::vector<Cursor> cursors_;            // high priority first
  std::vector<std::uint64_t> wake_at_;     // per local rank, of the scan in progress
  std::vector<std::uint32_t> rank_index_;  // per cursor: the local rank
  std::uint64_t started_ = 0;              // steps that may be moved in the scan in progress
  // Random delays: when the earliest held-up cursor may go on; 0: none.
  std::uint64_t next_deadline_ns_ = 0;
  Sleep sleep_;
  bool can_sleep_ = true;
};

}  // namespace piper::runtime
