// Blocks of different sizes over the local transport, and the rule of the ABI against that of
// layouts.
#include <gtest/gtest.h>

#include "ir/layout/box.h"
#include "runtime/transport/local.h"
#include "runtime/transport/recording.h"
#include "tests/runtime/block_job.h"
#include "tests/runtime/sample_jobs.h"

namespace piper::runtime {
namespace {

TEST(Blocks, AreThoseOfLayouts) {
  for (std::int64_t n = 0; n < 40; ++n) {
    for (std::int64_t k = 1; k < 12; ++k) {
      for (std::int64_t i = 0; i < k; ++i) {
        const PiperInterval found =
            piper_shard(static_cast<std::uint64_t>(n), static_cast<std::uint32_t>(k),
                        static_cast<std::uint32_t>(i));
        const Interval rule = shard_of(full_interval(n), k, i);
        EXPECT_EQ(found.first, static_cast<std::uint64_t>(rule.first));
        EXPECT_EQ(found.extent, static_cast<std::uint64_t>(rule.extent));
        EXPECT_EQ(found.global, static_cast<std::uint64_t>(rule.global));
      }
    }
  }
}

TEST(Blocks, EverySizeOverTheLocalTransport) {
  for (std::uint32_t members = 1; members <= 5; ++members) {
    SCOPED_TRACE(std::to_string(members) + " members");
    BlockJob job(members);
    const auto executor = create(job.tables(), {}, {.delays = {.seed = members, .max_us = 20}});
    ASSERT_TRUE(executor);
    ASSERT_EQ(executor->run(Phase::training, 1).ended, Ended::finished);
    EXPECT_EQ(job.difference(*executor, true), "");
  }
}

/// The recorded text does not depend on the sizes of the shards.
TEST(Blocks, AreWrittenDownAsWhatTheyAreOf) {
  BlockJob job(3);
  const auto recording = std::make_shared<RecordingTransport>(make_local_transport());
  const auto executor = create(job.tables(), {}, {.transport = recording});
  ASSERT_TRUE(executor);
  ASSERT_EQ(executor->run(Phase::training, 1).ended, Ended::finished);
  EXPECT_EQ(job.difference(*executor, true), "");
  const std::vector<std::string> lines = recording->lines(2);
  ASSERT_EQ(lines.size(), job.communications().size());
  EXPECT_EQ(lines.back(),
            "communicator 0: all_gather " + std::to_string(lines.size()) + " f32[70001]");
}

/// A shard at the end of the arena is allowed, and one beyond it is refused.
TEST(Blocks, OwnBlocksMayEndWithTheArena) {
  constexpr std::uint64_t kElements = 33;  // 17 and 16
  for (const PiperCommOp op : {PIPER_REDUCE_SCATTER, PIPER_ALL_GATHER}) {
    for (const std::uint64_t room : {17u, 16u}) {
      HandJob job(2);
      const std::uint32_t group = job.group({0, 1});
      for (std::uint32_t r = 0; r < 2; ++r) {
        HandProgram& program = job.rank(r);
        const std::uint64_t whole = program.allocate<double>(kElements),
                            own = program.allocate<double>(room);
        PiperMessagePart part = op == PIPER_ALL_GATHER
                                    ? HandProgram::part<double>(own, whole, kElements)
                                    : HandProgram::part<double>(whole, own, kElements);
        part.flags = PIPER_SHARD_ONLY;
        const Spot work = program.compute("F", {}, [](Step&) { return 0; });
        program.communicate("blocks", op, group, 1, {part}, {HandProgram::after(work)});
      }
      job.finish();
      for (std::uint32_t r = 0; r < 2; ++r) {
        PiperProgram& program = job.rank(r).tables();
        const PiperMessagePart& part = program.parts[0];
        program.arena_bytes = std::max(part.in, part.out) + room * sizeof(double);
      }
      Failure failure;
      const bool fits = Executor::create(job.tables(), make_cpu_device(), {}, failure) != nullptr;
      EXPECT_EQ(fits, room == 17) << failure.message;
      if (!fits) {
        EXPECT_EQ(failure.message, op == PIPER_ALL_GATHER ? "a part is read outside the arena"
                                                          : "a part is written outside the arena");
      }
    }
  }
}

}  // namespace
}  // namespace piper::runtime
