// Blocks of different sizes on CUDA: on one device, where it copies and adds, and between processes
// over NCCL, whose calls are those that `show program` prints.

#include <gtest/gtest.h>

#include <filesystem>
#include <sstream>

#include "backend/cuda/print_program.h"
#include "runtime/cuda/cuda_device.h"
#include "runtime/executor/executor.h"
#include "tests/cuda/forked.h"
#include "tests/runtime/block_job.h"
#include "tests/support/golden.h"

namespace piper::test {
namespace {

using runtime::BlockJob;

/// Enqueues a program that communicates and computes nothing.
struct HandEnqueue {
  struct Spot {
    std::uint32_t stream = 0, position = 0;
    const PiperCommAction* comm = nullptr;
  };
  std::vector<Spot> spots;  // per action
  std::vector<std::uint32_t> places;
  PiperEnqueue table{};

  explicit HandEnqueue(const PiperProgram& program) : spots(program.num_actions) {
    for (std::uint32_t s = 0; s < program.num_streams; ++s) {
      const PiperStream& stream = program.streams[s];
      for (std::uint32_t i = 0; i < stream.num_actions; ++i)
        spots[stream.action_of[i]] = {s, i, stream.comm != nullptr ? &stream.comm[i] : nullptr};
    }
    for (std::uint32_t action = 0; action < program.num_actions; ++action) places.push_back(action);
    table = {.abi_version = PIPER_DEVICE_ABI_VERSION,
             .num_actions = program.num_actions,
             .num_kernels = 0,
             .num_shapes = 0,
             .kernels = nullptr,
             .places = places.data(),
             .enqueue = enqueue,
             .context = this};
  }
  HandEnqueue(const HandEnqueue&) = delete;

  static int enqueue(const PiperEnqueue* role, PiperDevice* device, PiperRank* rank,
                     std::uint32_t first, std::uint32_t last) {
    for (std::uint32_t action = first; action < last; ++action) {
      const auto [stream, position, comm] =
          static_cast<const HandEnqueue*>(role->context)->spots[action];
      if (device->begin(device, rank, stream, action,
                        comm != nullptr ? rank->program->waits + comm->first_wait : nullptr,
                        comm != nullptr ? comm->num_waits : 0) != 0)
        return 1;
      if (comm != nullptr && device->communicate(device, rank, stream, action, position) != 0)
        return 1;
      if (device->end(device, rank, stream, action) != 0) return 1;
    }
    return 0;
  }
};

/// The same program as one that can be printed.
backend::DeviceProgram printable(const PiperProgram& program) {
  backend::DeviceProgram made;
  made.parts.assign(program.parts, program.parts + program.num_parts);
  made.instructions.resize(program.num_actions);
  made.names.resize(program.num_actions);
  for (std::uint32_t s = 0; s < program.num_streams; ++s) {
    const PiperStream& stream = program.streams[s];
    backend::ProgramStream& copy = made.streams.emplace_back();
    copy.name = stream.name;
    for (std::uint32_t i = 0; i < stream.num_actions; ++i) {
      backend::Instruction& instruction = made.instructions[stream.action_of[i]];
      instruction.kind = stream.comm != nullptr ? backend::Instruction::Kind::communicate
                                                : backend::Instruction::Kind::report;
      instruction.stream = s;
      instruction.position = i;
      if (stream.comm != nullptr) copy.comm.push_back(stream.comm[i]);
    }
  }
  return made;
}

/// `ncclReduce 3 f32`, one a call.
std::vector<std::string> printed_calls(const PiperProgram& program, std::uint32_t members) {
  std::istringstream text(backend::cuda::print_calls(printable(program), {}, {}, {}, {members}));
  std::vector<std::string> calls;
  for (std::string line; std::getline(text, line);) {
    std::istringstream words(line);
    std::string call, count, dtype;
    if (words >> call >> count >> dtype && call.starts_with("nccl"))
      calls.push_back(call + " " + count + " " + dtype);
  }
  return calls;
}

/// Behind those by which communicators were tried.
std::vector<std::string> made_calls(const std::string& path, std::size_t count) {
  std::istringstream text(read_text(path).value_or(""));
  std::vector<std::string> calls;
  for (std::string line; std::getline(text, line);) {
    std::istringstream words(line);
    std::string name, members, call, elements, dtype;
    words >> name >> members >> call >> elements >> dtype;
    calls.push_back(call + " " + elements + " " + dtype);
  }
  if (calls.size() > count)
    calls.erase(calls.begin(), calls.end() - static_cast<std::ptrdiff_t>(count));
  return calls;
}

class CudaBlocks : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = std::make_unique<TemporaryFolder>();
    images_ = {build_own_host_image(folder_->path())};
  }
  static void TearDownTestSuite() { folder_.reset(); }

  static inline std::unique_ptr<TemporaryFolder> folder_;
  static inline std::vector<std::string> images_;
};

TEST_F(CudaBlocks, EverySizeOnOneDevice) {
  for (std::uint32_t members = 1; members <= 5; ++members) {
    SCOPED_TRACE(std::to_string(members) + " members");
    BlockJob job(members);
    std::deque<HandEnqueue> roles;
    runtime::cuda::GpuPrograms programs{images_, {}, {}};
    for (std::uint32_t r = 0; r < members; ++r)
      programs.training.push_back(&roles.emplace_back(*job.tables().ranks[r].program).table);
    runtime::Failure failure;
    const auto executor = runtime::Executor::create(
        job.tables(),
        runtime::cuda::make_cuda_device(std::move(programs),
                                        std::make_unique<HostDriver>(HostOptions{.seed = members})),
        {}, failure);
    ASSERT_TRUE(executor) << describe(failure);
    ASSERT_EQ(executor->run(runtime::Phase::training, 1).ended, runtime::Ended::finished);
    EXPECT_EQ(job.difference(*executor, true), "");
  }
}

TEST_F(CudaBlocks, EverySizeOverNccl) {
  for (std::uint32_t members = 1; members <= 5; ++members) {
    SCOPED_TRACE(std::to_string(members) + " members");
    BlockJob job(members);
    const TemporaryFolder folder;
    const auto calls = [&](std::uint32_t rank) {
      return (folder.path() / ("calls." + std::to_string(rank))).string();
    };
    const std::uint16_t port = free_port();
    const std::vector<Ended> ended = run_forked(members, [&](std::uint32_t rank) {
      const HandEnqueue role(*job.tables().ranks[rank].program);
      PiperJob own = job.tables();
      own.ranks += rank;
      own.num_ranks = 1;
      runtime::Failure failure;
      const runtime::Launch launch{
          .rank = rank, .world = members, .local_rank = rank, .host = "127.0.0.1", .port = port};
      const auto group = runtime::ProcessGroup::join(launch, {.seconds = 30}, failure);
      std::unique_ptr<runtime::Executor> executor;
      if (group) {
        auto driver = std::make_unique<HostDriver>(HostOptions{.seed = members + rank});
        auto nccl = std::make_unique<TestNccl>(
            *driver, TestNcclOptions{.folder = folder.path().string(), .calls = calls(rank)});
        auto device = runtime::cuda::make_cuda_device({images_, {&role.table}, {}},
                                                      std::move(driver), std::move(nccl));
        executor = runtime::Executor::create(own, std::move(device), {}, failure,
                                             {group.get(), &job.tables()});
      }
      if (!executor) return Ended{1, "", describe(failure)};
      const auto result = executor->run(runtime::Phase::training, 1);
      if (result.ended != runtime::Ended::finished)
        return Ended{1, "", result.failure ? describe(*result.failure) : "stopped"};
      const std::string difference = job.difference(*executor, members <= 2, rank == 0);
      executor.reset();
      group->leave();
      return Ended{difference.empty() ? 0 : 1, "", difference};
    });
    for (std::uint32_t rank = 0; rank < members; ++rank) {
      EXPECT_EQ(ended[rank].code, 0) << "rank " << rank << ": " << ended[rank].err;
      const std::vector<std::string> printed =
          printed_calls(*job.tables().ranks[rank].program, members);
      EXPECT_EQ(made_calls(calls(rank), printed.size()), printed) << "rank " << rank;
    }
  }
}

/// Seven elements between three members: the calls of a role of each member.
TEST(CudaBlocksText, SaysWhoseBlockEachIs) {
  runtime::HandJob job(3);
  const std::uint32_t group = job.group({0, 1, 2});
  for (std::uint32_t r = 0; r < 3; ++r) {
    runtime::HandProgram& program = job.rank(r);
    PiperMessagePart sum = runtime::HandProgram::part<float>(1024, 2048, 7),
                     values = runtime::HandProgram::part<float>(2048, 4096, 7),
                     equal = runtime::HandProgram::part<float>(1024, 2048, 6);
    sum.flags = PIPER_SHARD_ONLY | PIPER_ACCUMULATE;
    values.flags = PIPER_SHARD_ONLY;
    program.communicate("blocks", PIPER_REDUCE_SCATTER, group, 1, {sum}, {});
    program.communicate("blocks", PIPER_ALL_GATHER, group, 2, {values}, {});
    program.communicate("blocks", PIPER_REDUCE_SCATTER, group, 3, {equal}, {});
    program.communicate("blocks", PIPER_ALL_GATHER, group, 4, {equal}, {});
  }
  job.finish();
  EXPECT_EQ(backend::cuda::print_calls(printable(job.rank(0).tables()), {}, {}, {}, {3}),
            R"(enqueue : 4 actions on 2 streams
  blocks 0
    ncclGroupStart
    ncclReduce     3 f32 from 1024 to the block of member 0, communicator 0
    ncclReduce     2 f32 from 1036 to the block of member 1, communicator 0
    ncclReduce     2 f32 from 1044 to the block of member 2, communicator 0
    add            its block to 2048
    ncclGroupEnd
  blocks 1
    ncclGroupStart
    ncclBroadcast  3 f32 from 2048 of member 0 to 4096, communicator 0
    ncclBroadcast  2 f32 from 2048 of member 1 to 4108, communicator 0
    ncclBroadcast  2 f32 from 2048 of member 2 to 4116, communicator 0
    ncclGroupEnd
  blocks 2
    ncclReduceScatter 2 f32 from 1024 to 2048, communicator 0
  blocks 3
    ncclAllGather  2 f32 from 1024 to 2048, communicator 0
)");
}

}  // namespace
}  // namespace piper::test
