// The runtime numbers its failures itself, since it includes nothing of ours; here both lists are
// held together.
#include <gtest/gtest.h>

#include "ir/diagnostics/diagnostics.h"
#include "runtime/failure.h"

namespace piper::runtime {
namespace {

TEST(FailureCodes, AreDiagnostics) {
  const std::pair<FailureCode, Code> pairs[] = {
      {kBadJob, Code::bad_job},
      {kNonFinite, Code::non_finite},
      {kActionFailed, Code::action_failed},
      {kMessageMismatch, Code::message_mismatch},
      {kStalled, Code::stalled},
      {kOutOfMemory, Code::out_of_memory},
      {kDataUnreadable, Code::data_unreadable},
      {kDataTooShort, Code::data_too_short},
      {kDataMismatch, Code::data_mismatch},
      {kPluginUnavailable, Code::plugin_unavailable},
      {kLibraryFailed, Code::library_failed},
      {kWorkspaceOverrun, Code::workspace_overrun},
      {kOutputUnwritable, Code::output_unwritable},
      {kBadOption, Code::bad_option},
      {kCudaMissing, Code::cuda_missing},
      {kCudaTooOld, Code::cuda_too_old},
      {kCudaCallFailed, Code::cuda_call_failed},
      {kCudaKernelFailed, Code::cuda_kernel_failed},
      {kCudaOutOfMemory, Code::cuda_out_of_memory},
      {kCudaNotCaptured, Code::cuda_not_captured},
      {kBadLaunch, Code::bad_launch},
      {kProcessesApart, Code::processes_apart},
      {kProgramsDiffer, Code::programs_differ},
      {kProcessLost, Code::process_lost},
      {kNcclFailed, Code::nccl_failed},
      {kUcxMissing, Code::ucx_missing},
      {kUcxFailed, Code::ucx_failed},
      {kTokenMissing, Code::run_token_missing},
      {kBadToken, Code::bad_run_token},
      {kShortHeldOutBatch, Code::short_held_out_batch},
      {kBadMessage, Code::bad_message},
      {kProcessRefused, Code::process_refused},
      {kCheckpointUnreadable, Code::checkpoint_unreadable},
      {kCheckpointDiffers, Code::checkpoint_differs},
      {kCheckpointMissing, Code::checkpoint_missing},
      {kWeightsUnreadable, Code::weights_unreadable},
      {kWeightsDiffer, Code::weights_differ},
      {kWeightOutOfRange, Code::weight_out_of_range},
      {kMapIncomplete, Code::map_incomplete},
      {kDataDamaged, Code::data_damaged},
      {kDataChanged, Code::data_changed},
  };
  std::size_t in_table = 0;
  // `piper fmt` and `piper show stuck` have one of that range.
  for (const CodeInfo& info : all_codes())
    in_table += static_cast<unsigned>(info.code) / 100 == 60 &&
                info.code != Code::layout_changes_program && info.code != Code::no_flight_records;
  EXPECT_EQ(std::size(pairs), in_table);
  for (const auto& [failure, code] : pairs) {
    EXPECT_EQ(static_cast<unsigned>(failure), static_cast<unsigned>(code));
    EXPECT_NE(page(code), "") << code_text(code);
  }
}

}  // namespace
}  // namespace piper::runtime
