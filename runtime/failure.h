#pragma once
// A failure of the runtime as a value, never an exception. The driver prints it as the diagnostic
// `P<code>`.
//
//   {.code = kNonFinite, .message = "the gradient norm is `nan`", .rank = 1, .place = {"norm.0", "gpt.pipe", 12, 5, 12, 22}}

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/abi.h"

namespace piper::runtime {

/// Numbers of `ir/diagnostics/diagnostics.def`; each has a page there. A test compares the two
/// lists.
enum FailureCode : std::uint32_t {
  kBadJob = 6000,             // tables that contradict each other, or of another ABI version
  kNonFinite = 6001,          // a loss or the gradient norm is infinite or not a number
  kActionFailed = 6002,       // generated code refused a value (an index out of range)
  kMessageMismatch = 6003,    // the two ends of a communication disagree
  kStalled = 6004,            // nothing moved for too long
  kOutOfMemory = 6005,        // an arena or a table could not be allocated
  kDataUnreadable = 6006,     // the data cannot be opened or read
  kDataTooShort = 6007,       // less data than one window
  kDataMismatch = 6008,       // the data cannot provide what the model asks for
  kPluginUnavailable = 6009,  // the plugin with LibTorch cannot be opened
  kLibraryFailed = 6010,      // a library call failed
  kWorkspaceOverrun = 6011,   // a library call wanted more than its planned workspace
  kOutputUnwritable = 6012,   // a file under --out cannot be written
  kBadOption = 6013,          // an environment variable has no legal value
  kCudaMissing = 6014,        // there is no driver, no GPU, or a library of CUDA is not there
  kCudaTooOld = 6015,         // the driver or NCCL is too old for the programs
  kCudaCallFailed = 6016,     // the driver or cuBLASLt refused a call
  kCudaKernelFailed = 6017,   // the GPU failed while an action ran on it
  kCudaOutOfMemory = 6018,    // the arenas do not fit on the GPU
  kCudaNotCaptured = 6019,    // a warning: steps are enqueued action by action, not as graphs
  // The environment's description of the processes of a run contradicts itself, or the program.
  kBadLaunch = 6020,
  kProcessesApart = 6021,  // the processes of a run did not find each other
  kProgramsDiffer = 6022,  // the processes of a run have compiled different programs
  kProcessLost = 6023,     // a process of a run has ended without saying why
  kNcclFailed = 6024,      // NCCL refused a call, or a communication failed
  kUcxMissing = 6025,      // UCX, for messages between processes on CPUs, cannot be opened
  kUcxFailed = 6026,       // UCX refused a call, or a message failed
  kTokenMissing = 6027,    // processes would meet where other machines reach them, without a token
  kBadToken = 6028,        // the token of a run cannot be read, or is not fit to be one
  // held-out data ends in a short batch, and samples depend on each other.
  kShortHeldOutBatch = 6035,
  kBadMessage = 6040,      // a process of a run sent a message that does not fit
  kProcessRefused = 6041,  // a warning: a process that connected to a run does not belong to it
  kCheckpointUnreadable = 6042,  // a file of a checkpoint is damaged or cannot be read
  kCheckpointDiffers = 6043,     // a checkpoint of another model or training
  kCheckpointMissing = 6044,     // there is no such complete checkpoint
  kWeightsUnreadable = 6050,     // a file of weights is damaged or cannot be read
  kWeightsDiffer = 6051,         // weights do not fit the model
  kWeightOutOfRange = 6052,      // a weight is beyond the range of its new type
  kMapIncomplete = 6053,         // a map of names fills a tensor not exactly once
  kDataDamaged = 6060,           // a file of tokens or arrays contradicts its header, or its format
  kDataChanged = 6061,           // a data file changed while the run reads it
};

/// The action that failed and the line it came from; `line` 0: no place.
struct ActionLocation {
  std::string action = {};
  std::string file = {};
  std::uint32_t line = 0, column = 0;
  std::uint32_t end_line = 0, end_column = 0;  // one past the last character
};

ActionLocation location_of(std::string action, const PiperSourceLocation& place);
/// The name and source location of an action; empty if the program has no such action.
ActionLocation location_of(const PiperProgram& program, std::uint32_t action);

struct Note {
  std::string text = {};
  ActionLocation place = {};
};

/// One failure: lower case, no full stop, code in backticks. `rank` is kNoRank if it belongs to no
/// rank.
struct Failure {
  static constexpr std::uint32_t kNoRank = 0xFFFFFFFFu;
  std::uint32_t code = kBadJob;
  std::string message = {};
  std::string hint = {};
  std::uint32_t rank = kNoRank;
  // of training, counted from 0; empty before the first one has begun
  std::optional<std::uint64_t> step = {};
  std::string held_out = {};  // set if it is not of training: `held-out batch 2 of 3, rows 5 to 8`
  ActionLocation place = {};
  std::vector<Note> notes = {};
  // The value that an action refused (kActionFailed); not sent to other processes.
  std::optional<std::int64_t> refused = {};
};

/// Text of a file for a message: at most its first `max` bytes, in which `?` stands for bytes that a
/// terminal interprets and for backticks; `...` says that there is more.
std::string printable(std::string_view text, std::size_t max);

/// `rank 1, F.stage1.mb0, gpt.pipe:12:5: message` on one line, for logs and tests.
std::string describe(const Failure& failure);

}  // namespace piper::runtime
