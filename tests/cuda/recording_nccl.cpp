#include "tests/cuda/recording_nccl.h"

#include <gtest/gtest.h>

#include "runtime/dtypes.h"

namespace piper::test {

namespace cuda = runtime::cuda;
using cuda::NcclKind;

namespace {

bool overlap(const Touched& a, const Touched& b) {
  const auto begin = [](const Touched& of) { return reinterpret_cast<std::uint64_t>(of.at); };
  return begin(a) < begin(b) + b.bytes && begin(b) < begin(a) + a.bytes;
}

bool at_odds(const std::vector<Touched>& one, const std::vector<Touched>& other) {
  for (const Touched& a : one) {
    for (const Touched& b : other) {
      if ((a.writes || b.writes) && overlap(a, b)) return true;
    }
  }
  return false;
}

}  // namespace

cuda::NcclResult RecordingNccl::open(NcclCommunicator* made, std::uint32_t members,
                                     const cuda::NcclId&, std::uint32_t self, std::uint32_t) {
  *made = reinterpret_cast<NcclCommunicator>(
      members_.emplace_back(std::make_unique<Member>(Member{members, self})).get());
  return cuda::kNcclSuccess;
}

cuda::NcclResult RecordingNccl::group_start() {
  EXPECT_FALSE(in_group_);
  in_group_ = true;
  return cuda::kNcclSuccess;
}

cuda::NcclResult RecordingNccl::enqueue(NcclCommunicator communicator, cuda::CudaStream stream,
                                        const cuda::NcclCall& call) {
  const Member& member = *reinterpret_cast<const Member*>(communicator);
  const std::uint64_t block = call.count * runtime::element_bytes(call.dtype),
                      whole = block * member.members;
  std::vector<Touched> touched;
  const bool gives = call.kind != NcclKind::receive &&
                     (call.kind != NcclKind::broadcast || call.peer == member.self);
  if (gives)
    touched.push_back({call.from, call.kind == NcclKind::reduce_scatter ? whole : block, false});
  const bool takes =
      call.kind != NcclKind::send && (call.kind != NcclKind::reduce || call.peer == member.self);
  if (takes) touched.push_back({call.to, call.kind == NcclKind::all_gather ? whole : block, true});
  if (!in_group_) return driver_.touch(stream, cuda::name_of(call.kind), touched);
  EXPECT_TRUE(gathered_.empty() || stream_ == stream);
  stream_ = stream;
  for (const std::vector<Touched>& other : gathered_)
    EXPECT_FALSE(at_odds(other, touched))
        << "calls of a group touch the same bytes: " << cuda::name_of(call.kind);
  gathered_.push_back(std::move(touched));
  return cuda::kNcclSuccess;
}

cuda::NcclResult RecordingNccl::group_end() {
  EXPECT_TRUE(in_group_);
  in_group_ = false;
  std::vector<Touched> all;
  for (const std::vector<Touched>& each : std::exchange(gathered_, {}))
    all.insert(all.end(), each.begin(), each.end());
  return driver_.touch(stream_, "NCCL group", all);
}

}  // namespace piper::test
