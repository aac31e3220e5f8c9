// Law 3: the planned peak equals the memory that the runtime uses.

#include <gtest/gtest.h>

#include <algorithm>
#include <span>
#include <vector>

#include "ir/dag/device_role.h"
#include "ir/dag/local_body.h"
#include "passes/plan/requirements.h"
#include "passes/plan/staging.h"
#include "tests/laws/law_runs.h"
#include "tests/support/random_programs.h"
#include "tests/support/temporary_folder.h"

namespace piper::test {
namespace {

const dag::Role& role_of(const dag::Dag& dag, std::uint64_t rank) {
  const std::vector<dag::Role>& roles = dag.plan->roles;
  const auto at = [&](std::size_t role) { return std::span(roles[role].at); };
  return roles[dag::role_of_device(roles.size(), at, coordinates_of(dag.mesh, rank))];
}

/// Plans reserve the bytes of the largest boxes, and this device has those.
bool has_largest_boxes(const dag::Dag& dag, std::uint64_t rank) {
  const std::vector<Sharding> uneven = dag::uneven_shardings(dag);
  return dag::local_extents(uneven, dag.mesh, coordinates_of(dag.mesh, rank)) ==
         dag::local_extents(uneven, dag.mesh, coordinates_of(dag.mesh, 0));
}

/// One past the last planned byte that every step writes: workspace may stay partly unused.
std::int64_t written_end(const dag::Role& role) {
  std::int64_t end = 0;
  for (const dag::Buffer& buffer : role.buffers) {
    if (buffer.cls != dag::BufferClass::workspace)
      end = std::max(end, buffer.offset + buffer.bytes);
  }
  return end;
}

TEST(Memory, TheArenaIsUsedToItsEndAndNotBeyond) {
  std::size_t dense = 0;
  // Dropped elements are zero, like untouched memory.
  for_each_law(25, {.dropout = false}, [&](DrawnLaw& law, Random&) {
    const LawRun run = law.program.run({});
    ASSERT_EQ(run.touched_bytes.size(), run.arena_bytes.size());
    for (std::size_t rank = 0; rank < run.arena_bytes.size(); ++rank) {
      SCOPED_TRACE(testing::Message() << "rank " << rank);
      const dag::Role& role = role_of(law.program.dag(), rank);
      const auto arena = static_cast<std::int64_t>(run.arena_bytes[rank]),
                 touched = static_cast<std::int64_t>(run.touched_bytes[rank]);
      EXPECT_EQ(arena, role.arena_bytes);
      EXPECT_LE(role.live_bytes, role.arena_bytes);
      EXPECT_LE(touched, arena);
      // Buffers begin at multiples of 64, so their last line may be padding.
      if (has_largest_boxes(law.program.dag(), rank)) {
        EXPECT_GT(touched, written_end(role) - 64);
      }
      dense += written_end(role) == role.arena_bytes;
    }
  });
  EXPECT_GT(dense, 0u);  // some arenas end with a buffer that is written
}

/// The planned copy of a checkpoint is the largest that a run makes; shares may differ by an element.
TEST(Memory, ACheckpointIsWrittenFromItsPlannedCopy) {
  std::size_t exact = 0;
  for_each_law(25, {}, [&](DrawnLaw& law, Random&) {
    const TemporaryFolder folder;
    LawRunOptions options;
    options.steps = 1;
    options.out_folder = folder.path();
    const LawRun run = law.program.run(options);
    const dag::Dag& dag = law.program.dag();
    std::int64_t most_planned = 0, most_written = 0;
    for (std::size_t rank = 0; rank < run.written_bytes.size(); ++rank) {
      const dag::Role& role = role_of(dag, rank);
      const std::int64_t planned = passes::staging_bytes(dag, role),
                         written = static_cast<std::int64_t>(run.written_bytes[rank]);
      EXPECT_LE(written, planned) << "rank " << rank;
      EXPECT_EQ(passes::planned_staging(dag, role), dag.settings.checkpoint ? planned : 0);
      most_planned = std::max(most_planned, planned);
      most_written = std::max(most_written, written);
    }
    exact += most_planned == most_written;
    std::int64_t host = 0;
    for (const dag::Role& role : dag.plan->roles)
      host = std::max(host, role.host_bytes + passes::planned_staging(dag, role));
    EXPECT_EQ(passes::host_memory(dag).bytes, host);
  });
  EXPECT_GT(exact, 0u);
}

}  // namespace
}  // namespace piper::test
