#pragma once
// The calls of a role on CUDA as text, in issue order: launches, library calls, and the NCCL calls
// that its ranks make.
//
//   enqueue pp0: 26 actions on 2 streams
//     compute 3  F.stage0.mb1  gpt.pipe:14:5  after p2p 0 of the step before
//       check       0 <= tokens < 64
//       launch      fused_lookup_add<<<4, 256>>>(tokens 8448, token 0, add 9216)
//       cublasLt    c[512][256] = a[512][64] b[64][256] f32: (add 9216, up 4096) -> contract 12288
//     p2p 0  Send.stage0.mb1  gpt.pipe:20:5  after compute 3
//       ncclSend    2048 f32 from 9216, communicator 0
//
// Elements of a communication are the count argument of the call, as NCCL_DEBUG=INFO prints it: for
// ncclReduceScatter and ncclAllGather one member's shard.

#include <string>
#include <vector>

#include "backend/cuda/kernel_set.h"
#include "backend/device_program/device_program.h"
#include "backend/device_program/rank_tables.h"

namespace piper::backend::cuda {

/// Per role, the number of members of each of its communicators.
std::vector<std::vector<std::uint32_t>> member_counts(const dag::Dag& dag,
                                                      const ProgramSet& programs);

/// `steps`: per body, the result of KernelSet::add. `members`: of the role.
std::string print_calls(const DeviceProgram& program, const std::vector<KernelBody>& bodies,
                        const KernelSet& kernels, const std::vector<std::vector<BodyStep>>& steps,
                        const std::vector<std::uint32_t>& members);

/// One line per shape of attention that LibTorch's kernels do not support, with the reason.
std::string own_attention_text(const std::vector<KernelBody>& bodies);

/// `rank 3: communicator 0 of ranks 1 -> 3, communicator 1 of ranks 2, 3`: one line per rank.
std::string print_communicators(const dag::Dag& dag, const ProgramSet& programs);

}  // namespace piper::backend::cuda
