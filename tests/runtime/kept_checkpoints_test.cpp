// Checkpoints that a run keeps for their held-out loss, and the moving averages in them.
#include <gtest/gtest.h>

#include <limits>
#include <optional>
#include <vector>

#include "runtime/checkpoint/checkpoint.h"
#include "runtime/checkpoint/checkpoint_files.h"
#include "runtime/checkpoint/checkpoint_writer.h"
#include "runtime/checkpoint/safetensors.h"
#include "runtime/device/state.h"
#include "runtime/dtypes.h"
#include "runtime/weights/stored_weights.h"
#include "tests/runtime/state_job.h"
#include "tests/support/temporary_folder.h"

namespace piper::runtime {
namespace {

using test::TemporaryFolder;

/// Writes a checkpoint of the state; its folder.
std::string save(StateJob& job, const std::string& folder, std::uint64_t step) {
  CheckpointWriter writer(job.memory(),
                          {.out_folder = folder, .run = {.batch = 8, .train = "drawn"}});
  if (const auto failure = writer.save(step)) ADD_FAILURE() << describe(*failure);
  if (const auto failure = writer.finish()) ADD_FAILURE() << describe(*failure);
  return writer.folder(step);
}

std::unique_ptr<Checkpoint> open(const std::string& folder) {
  Failure failure;
  auto checkpoint = Checkpoint::open(folder, failure);
  EXPECT_TRUE(checkpoint) << describe(failure);
  return checkpoint;
}

/// The checkpoint with the lowest held-out loss, the first of several, is never removed. One without
/// a finite loss is not the best.
TEST(KeptCheckpoints, TheBestIsKept) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  const std::optional<double> losses[] = {5, 3, 4, std::nullopt, 3, kNan};
  const TemporaryFolder folder;
  StateJob job({{.name = "w", .dims = {3}}});
  CheckpointWriter writer(job.memory(), {.out_folder = folder.path(), .keep = 1, .best = true});
  for (std::uint64_t step = 1; step <= std::size(losses); ++step)
    EXPECT_FALSE(writer.save(step, losses[step - 1]));
  EXPECT_FALSE(writer.finish());
  EXPECT_EQ(complete_steps(folder.path()), (std::vector<std::uint64_t>{2, 6}));
  EXPECT_EQ(best_checkpoint(folder.path()), 2u);
  EXPECT_EQ(open(writer.folder(2))->manifest().held_out_loss, 3.0);
  EXPECT_FALSE(open(writer.folder(6))->manifest().held_out_loss);
}

/// The bytes of the moving average of the only parameter of a job.
std::vector<unsigned char> average_bytes(StateJob& job) {
  const PiperParam& param = job.ranks()[0].program->params[0];
  const unsigned char* const from = job.at(0, false, average_offset(param));
  return {from, from + param.elements * element_bytes(param.sum_dtype)};
}

/// The bytes that an export reads of a weight.
std::vector<unsigned char> exported_bytes(const StoredWeight& weight) {
  std::vector<unsigned char> bytes(stored_bytes(weight.source.type, weight.dims).value());
  const auto failure = weight.source.read(weight.source.position, bytes.size(), bytes.data());
  EXPECT_FALSE(failure);
  return bytes;
}

TEST(KeptCheckpoints, AveragesMayBeginOrEndWithACheckpoint) {
  for (const std::uint32_t dtype : {PIPER_F64, PIPER_F32, PIPER_BF16}) {
    StateParam with{.name = "w", .dims = {5, 3}, .dtype = dtype, .slots = 1, .average = true},
        without = with;
    without.average = false;
    const TemporaryFolder folder;
    StateJob averaged({with}), plain({without});
    averaged.fill();
    plain.fill();
    const auto of_averaged = open(save(averaged, folder.path(), 1)),
               of_plain = open(save(plain, folder.path(), 2));
    ASSERT_TRUE(of_averaged && of_plain);
    EXPECT_TRUE(of_averaged->has_averages());
    EXPECT_FALSE(of_plain->has_averages());
    // They are left out where the run keeps none.
    plain.clear();
    EXPECT_FALSE(of_averaged->compare(plain.parameters(), of_averaged->manifest(), Restored::all));
    ASSERT_FALSE(of_averaged->load(plain.memory(), Restored::all));
    EXPECT_EQ(plain.difference(Restored::all), "");
    // They begin at the unrounded parameters where the checkpoint has none.
    averaged.clear();
    EXPECT_FALSE(of_plain->compare(averaged.parameters(), of_plain->manifest(), Restored::all));
    ASSERT_FALSE(of_plain->load(averaged.memory(), Restored::all));
    EXPECT_EQ(average_bytes(averaged),
              state_values(with, StatePart::values, with.sum_dtype(), 0, 15));
    // An export takes them, or the parameters.
    for (const StatePart part : {StatePart::average, StatePart::values}) {
      const auto exported = weights_of(*of_averaged, part == StatePart::average);
      ASSERT_EQ(exported.size(), 1u);
      EXPECT_EQ(exported[0].name, "w");
      EXPECT_EQ(exported[0].source.type, stored_type_of(with.stored_dtype(part)));
      EXPECT_EQ(exported_bytes(exported[0]),
                state_values(with, part, with.stored_dtype(part), 0, 15));
    }
  }
}

}  // namespace
}  // namespace piper::runtime
