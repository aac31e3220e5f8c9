// The state of random layouts as files, and back: which ranks write an element, which files a model
// has, and what a checkpoint of one layout is in another.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <latch>
#include <mutex>
#include <set>

#include "runtime/checkpoint/checkpoint_files.h"
#include "runtime/checkpoint/checkpoint_writer.h"
#include "runtime/checkpoint/json.h"
#include "runtime/dtypes.h"
#include "tests/runtime/joined_ranks.h"
#include "tests/runtime/state_job.h"
#include "tests/support/golden.h"
#include "tests/support/temporary_folder.h"

namespace piper::runtime {
namespace {

using test::for_each_case;
using test::Random;
using test::TemporaryFolder;

const StateParam& param_of(const std::vector<StateParam>& model, const StateTensor& tensor) {
  return *std::find_if(model.begin(), model.end(),
                       [&](const StateParam& param) { return param.name == tensor.parameter; });
}

/// Writes a checkpoint of the state; its folder.
std::string save(StateJob& job, const std::string& folder, std::uint64_t step,
                 std::uint64_t max_file_bytes = kMaxFileBytes) {
  CheckpointWriter writer(job.memory(), {.out_folder = folder,
                                         .run = {.batch = 8, .train = "drawn"},
                                         .max_file_bytes = max_file_bytes});
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

/// All files of two checkpoints are equal.
void expect_equal_files(const std::string& a, const std::string& b) {
  std::set<std::string> names;
  for (const std::string& folder : {a, b}) {
    for (const auto& entry : std::filesystem::directory_iterator(folder))
      names.insert(entry.path().filename());
  }
  for (const std::string& name : names)
    EXPECT_TRUE(test::read_text(a + "/" + name) == test::read_text(b + "/" + name)) << name;
}

TEST(CheckpointState, WrittenRangesCoverEveryElementOnce) {
  for_each_case(200, [](Random& random) {
    const std::vector<StateParam> model = random_state(random);
    StateJob job(model, random);
    job.fill();
    const RankParameters parameters = job.parameters();
    std::size_t tensors = 0;
    for (const StateTensor& tensor : state_layout(parameters).tensors) {
      ++tensors;
      const StateParam& param = param_of(model, tensor);
      const std::uint32_t dtype = param.stored_dtype(tensor.part);
      ASSERT_EQ(tensor.elements(), param.elements());
      std::uint64_t position = 0;
      for (const StateRange& range : written_ranges(parameters, tensor)) {
        ASSERT_EQ(range.first, position) << tensor.stored.name;
        ASSERT_LT(range.first, range.end) << tensor.stored.name;
        const std::vector<unsigned char> expected =
            state_values(param, tensor.part, dtype, range.first, range.end);
        ASSERT_EQ(std::memcmp(job.at(range.rank, range.on_host, range.offset), expected.data(),
                              expected.size()),
                  0)
            << tensor.stored.name << " from " << range.first << " on rank " << range.rank;
        position = range.end;
      }
      ASSERT_EQ(position, tensor.elements()) << tensor.stored.name;
    }
    std::size_t expected = 0;
    for (const StateParam& param : model) expected += 1 + param.slots + (param.average ? 1 : 0);
    ASSERT_EQ(tensors, expected);
  });
}

/// Replicas with equal elements write equal parts of them.
TEST(CheckpointState, ReplicasShareTheWriting) {
  const std::uint64_t kElements = 10;
  std::vector<std::unique_ptr<HandProgram>> programs;
  std::vector<PiperJobRank> ranks;
  for (std::uint32_t r = 0; r < 4; ++r) {
    HandProgram& program = *programs.emplace_back(std::make_unique<HandProgram>(r));
    PiperParam& param = program.param("w", program.allocate<float>(kElements), PIPER_NO_OFFSET,
                                      kElements, PIPER_F32, PIPER_NORMAL, 1.0);
    param.counted = r != 3;  // another stage reads it
    PiperJobRank& rank = ranks.emplace_back();
    rank.rank = r;
    rank.program = program.finish();
  }
  const RankParameters parameters(ranks);
  const StateLayout layout = state_layout(parameters);
  ASSERT_EQ(layout.tensors.size(), 1u);
  std::vector<std::pair<std::size_t, std::uint64_t>> parts;
  for (const StateRange& range : written_ranges(parameters, layout.tensors[0]))
    parts.emplace_back(range.rank, range.end - range.first);
  EXPECT_EQ(parts, (std::vector<std::pair<std::size_t, std::uint64_t>>{{0, 4}, {1, 3}, {2, 3}}));
}

void expect_equal_layouts(const StateLayout& a, const StateLayout& b) {
  ASSERT_EQ(a.files.size(), b.files.size());
  for (std::size_t f = 0; f < a.files.size(); ++f) {
    EXPECT_EQ(a.files[f].name, b.files[f].name);
    EXPECT_EQ(a.files[f].header, b.files[f].header);
    EXPECT_EQ(a.files[f].bytes, b.files[f].bytes);
  }
  ASSERT_EQ(a.tensors.size(), b.tensors.size());
  for (std::size_t t = 0; t < a.tensors.size(); ++t) {
    EXPECT_EQ(a.tensors[t].stored.name, b.tensors[t].stored.name);
    EXPECT_EQ(a.position(a.tensors[t]), b.position(b.tensors[t]));
  }
  EXPECT_EQ(a.index, b.index);
}

TEST(CheckpointState, FilesFollowFromTheModelAlone) {
  for_each_case(100, [](Random& random) {
    const std::vector<StateParam> model = random_state(random);
    const StateJob job(model, random), other(model, random), one(model);
    for (const std::uint64_t max : {kMaxFileBytes, std::uint64_t{1}, random.below(20'000)}) {
      const StateLayout layout = state_layout(job.parameters(), max);
      expect_equal_layouts(layout, state_layout(other.parameters(), max));
      expect_equal_layouts(layout, state_layout(one.parameters(), max));
    }
  });
}

/// Names, positions and sizes, whatever the number of files; several files of weights have an index.
TEST(CheckpointState, TensorsLieEndToEndInFilesOfLimitedSize) {
  for_each_case(200, [](Random& random) {
    const std::vector<StateParam> model = random_state(random);
    const StateJob job(model, random);
    const std::uint64_t max = random.chance(0.3) ? kMaxFileBytes : random.below(20'000);
    const StateLayout layout = state_layout(job.parameters(), max);
    std::vector<std::uint64_t> ends(layout.files.size()), sizes(layout.files.size());
    std::vector<std::size_t> counts(layout.files.size());
    std::size_t weights = 0;
    for (const StateTensor& tensor : layout.tensors) {
      const std::uint64_t bytes = tensor.stored.end - tensor.stored.begin;
      EXPECT_EQ(tensor.stored.begin, ends[tensor.file]);
      EXPECT_EQ(layout.position(tensor) % stored_type_bytes(tensor.stored.type), 0u);
      ends[tensor.file] = tensor.stored.end;
      sizes[tensor.file] += bytes;
      ++counts[tensor.file];
      if (tensor.part == StatePart::values) weights = std::max(weights, tensor.file + 1);
    }
    for (std::size_t f = 0; f < layout.files.size(); ++f) {
      const StateFile& file = layout.files[f];
      EXPECT_EQ(file.header.size() % 8, 0u);
      EXPECT_EQ(file.bytes, file.header.size() + ends[f]);
      if (counts[f] > 1) {
        EXPECT_LE(sizes[f], max);
      }
      const bool of_weights = f < weights;
      const std::size_t number = of_weights ? f : f - weights,
                        count = of_weights ? weights : layout.files.size() - weights;
      char name[64];
      std::snprintf(name, sizeof name, "-%05zu-of-%05zu", number + 1, count);
      EXPECT_EQ(file.name, std::string(of_weights ? "model" : "optimizer") +
                               (count == 1 ? "" : name) + ".safetensors");
    }
    if (weights <= 1) {
      EXPECT_EQ(layout.index, "");
      return;
    }
    std::string error;
    const auto index = parse_json(layout.index, error);
    ASSERT_TRUE(index) << error;
    const JsonValue* const map = index->find("weight_map");
    ASSERT_TRUE(map != nullptr && map->as_object() != nullptr);
    EXPECT_EQ(map->as_object()->size(), model.size());
    std::uint64_t total = 0;
    for (const StateTensor& tensor : layout.tensors) {
      if (tensor.part != StatePart::values) continue;
      total += tensor.stored.end - tensor.stored.begin;
      const JsonValue* const file = map->find(tensor.stored.name);
      ASSERT_TRUE(file != nullptr && file->as_string() != nullptr) << tensor.stored.name;
      EXPECT_EQ(*file->as_string(), layout.files[tensor.file].name);
    }
    EXPECT_EQ(index->find("metadata")->find("total_size")->as_unsigned(), total);
  });
}

TEST(CheckpointState, ACheckpointOfOneLayoutIsThatOfEveryOther) {
  for_each_case(60, [](Random& random) {
    const TemporaryFolder folder;
    const std::vector<StateParam> model = random_state(random);
    StateJob job(model, random), other(model, random);
    job.fill();
    other.fill();
    const std::uint64_t max = random.chance(0.5) ? kMaxFileBytes : random.below(20'000);
    std::filesystem::create_directory(folder.path() / "a");
    std::filesystem::create_directory(folder.path() / "b");
    const std::string path = save(job, folder.path() / "a", 3, max);
    expect_equal_files(path, save(other, folder.path() / "b", 3, max));
    const auto checkpoint = open(path);
    ASSERT_TRUE(checkpoint);
    EXPECT_EQ(checkpoint->manifest().step, 3u);
    EXPECT_EQ(checkpoint->manifest().samples, 24u);
    const Manifest facts{.train = "drawn"};
    for (const Restored restored : {Restored::all, Restored::weights}) {
      other.clear();
      const auto differs = checkpoint->compare(other.parameters(), facts, restored);
      ASSERT_FALSE(differs) << describe(*differs);
      const auto failure = checkpoint->load(other.memory(), restored);
      ASSERT_FALSE(failure) << describe(*failure);
      EXPECT_EQ(other.difference(restored), "");
    }
  });
}

/// A tensor of several pieces, of which each rank holds parts.
TEST(CheckpointState, TensorsMayBeLongerThanAPiece) {
  const std::vector<StateParam> model = {
      {.name = "wide", .dims = {1300, 1000}, .dtype = PIPER_BF16, .slots = 1},
      {.name = "narrow", .dims = {7}, .dtype = PIPER_BF16, .slots = 1}};
  const TemporaryFolder folder;
  Random random(1);
  StateJob one(model), job(model, random);
  one.fill();
  const auto checkpoint = open(save(one, folder.path(), 1));
  ASSERT_TRUE(checkpoint);
  EXPECT_EQ(checkpoint->manifest().files[0].crc32.size(), 2u);
  const auto failure = checkpoint->load(job.memory(), Restored::all);
  ASSERT_FALSE(failure) << describe(*failure);
  EXPECT_EQ(job.difference(Restored::all), "");
}

/// The offset of the master weights on the host may be that of the parameter on the device.
TEST(CheckpointState, AParameterAndItsMasterMayHaveEqualOffsets) {
  HandProgram program(0);
  const std::uint64_t at = program.allocate<piper_bf16>(4);
  program.allocate_on_host<char>(at);
  const std::uint64_t master = program.allocate_on_host<float>(4);
  ASSERT_EQ(at, master);
  PiperParam& param = program.param("w", at, PIPER_NO_OFFSET, 4, PIPER_BF16, PIPER_NORMAL, 1.0);
  param.sum_dtype = PIPER_F32;
  param.slot_offsets[0] = master;
  param.slots_on_host = 1;
  PiperJobRank rank{};
  rank.program = program.finish();
  std::vector<unsigned char> arena(256), host(256);
  StateMemory memory;
  memory.ranks = std::span(&rank, 1);
  memory.local = [](std::size_t local) { return std::optional(local); };
  memory.failure = [] { return std::optional<Failure>(); };
  memory.read = [&](std::size_t, bool on_host, std::uint64_t offset, std::uint64_t) {
    return (on_host ? host : arena).data() + offset;
  };
  memory.write = [&](std::size_t, bool on_host, std::uint64_t offset, const void* from,
                     std::uint64_t bytes) {
    std::memcpy((on_host ? host : arena).data() + offset, from, bytes);
    return true;
  };
  const float values[] = {1.0f, 1.0f + 0x1p-12f, -3.5f, 1e-3f};
  std::memcpy(host.data() + master, values, sizeof values);
  const TemporaryFolder folder;
  CheckpointWriter writer(memory, {.out_folder = folder.path()});
  ASSERT_FALSE(writer.save(1));
  ASSERT_FALSE(writer.finish());
  std::fill(host.begin(), host.end(), std::uint8_t{0});
  const auto checkpoint = open(writer.folder(1));
  ASSERT_TRUE(checkpoint);
  ASSERT_FALSE(checkpoint->load(memory, Restored::all));
  EXPECT_EQ(std::memcmp(host.data() + master, values, sizeof values), 0);
  for (std::size_t i = 0; i < 4; ++i) {
    piper_bf16 rounded;
    std::memcpy(&rounded, arena.data() + at + i * sizeof rounded, sizeof rounded);
    EXPECT_EQ(static_cast<float>(rounded), static_cast<float>(piper_bf16(values[i]))) << i;
  }
}

/// Parameters alone may have another type: they are rounded as first values are.
TEST(CheckpointState, WeightsAreConverted) {
  constexpr std::uint32_t kTypes[] = {PIPER_F64, PIPER_F32, PIPER_BF16};
  for (const std::uint32_t from : kTypes) {
    for (const std::uint32_t to : kTypes) {
      SCOPED_TRACE(std::string(dtype_name(from)) + " to " + dtype_name(to));
      const TemporaryFolder folder;
      StateJob job({{.name = "w", .dims = {5, 3}, .dtype = from, .slots = 2}});
      const StateParam described{.name = "w", .dims = {5, 3}, .dtype = to, .slots = 1};
      StateJob other({described});
      job.fill();
      const auto checkpoint = open(save(job, folder.path(), 1));
      ASSERT_TRUE(checkpoint);
      EXPECT_FALSE(checkpoint->compare(other.parameters(), {}, Restored::weights));
      const auto differs = checkpoint->compare(other.parameters(), {}, Restored::all);
      ASSERT_TRUE(differs);
      EXPECT_EQ(differs->code, kCheckpointDiffers);
      ASSERT_FALSE(checkpoint->load(other.memory(), Restored::weights));
      // The wider type has all of its values.
      const bool narrows = (from == PIPER_F64) > (to == PIPER_F64);
      const std::uint32_t stored = from == PIPER_BF16 ? std::uint32_t{PIPER_F32} : from;
      const std::vector<unsigned char> wide =
          state_values({.name = "w", .dims = {5, 3}, .dtype = from, .slots = 2}, StatePart::values,
                       stored, 0, 15);
      const PartMemory values = part_memory(other.ranks()[0].program->params[0], StatePart::values);
      for (std::uint64_t i = 0; i < 15; ++i) {
        const double should = element_as_double(wide.data(), stored, i),
                     is = element_as_double(other.at(0, false, values.offset), values.dtype, i);
        EXPECT_EQ(is, narrows ? static_cast<double>(static_cast<float>(should)) : should) << i;
      }
    }
  }
}

struct Difference {
  const char* name;
  std::vector<StateParam> model;
  Manifest facts;
  const char* note;     // of Restored::all
  bool weights = true;  // may be restored all the same
};

TEST(CheckpointState, DifferencesAreNamed) {
  const Manifest facts{.batch = 8,
                       .seed = 1,
                       .train = "drawn",
                       .dtype = "f32",
                       .optimizer = "adamw",
                       .rate = "constant 0.1",
                       .data = "synthetic, classes 3"};
  const auto with = [&](auto change) {
    Manifest changed = facts;
    change(changed);
    return changed;
  };
  const StateParam w{.name = "w", .dims = {2, 3}, .slots = 1},
      v{.name = "v", .dims = {4}, .slots = 1};
  const Difference table[] = {
      {"nothing", {w, v}, facts, nullptr},
      {"order of parameters", {v, w}, facts, nullptr},
      {"batch, rate and name",
       {w, v},
       with([](Manifest& m) {
         m.batch = 16;
         m.rate = "constant 0.2";
         m.train = "other";
       }),
       nullptr},
      {"seed",
       {w, v},
       with([](Manifest& m) { m.seed = 2; }),
       "its seed is `1`, and that of this train is `2`"},
      {"data",
       {w, v},
       with([](Manifest& m) { m.data = "bytes"; }),
       "its data is `synthetic, classes 3`, and that of this train is `bytes`"},
      {"optimizer",
       {w, v},
       with([](Manifest& m) { m.optimizer = "sgd"; }),
       "its optimizer is `adamw`, and that of this train is `sgd`"},
      {"a shape",
       {{.name = "w", .dims = {3, 2}, .slots = 1}, v},
       facts,
       "`w` is F32[2, 3], and that of this model is F32[3, 2]",
       false},
      {"a type",
       {{.name = "w", .dims = {2, 3}, .dtype = PIPER_F64, .slots = 1}, v},
       facts,
       "`w` is F32[2, 3], and that of this model is F64[2, 3]"},
      {"a further parameter",
       {w, v, {.name = "u", .dims = {}, .slots = 1}},
       facts,
       "it has no `u`",
       false},
      {"a missing parameter", {w}, facts, "it also has `v`"},
      {"no momentum", {{.name = "w", .dims = {2, 3}}, v}, facts, "it also has `m/w`"},
      {"a frozen parameter",
       {{.name = "w", .dims = {2, 3}, .frozen = true}, v},
       facts,
       "it also has `m/w`"},
  };
  const TemporaryFolder folder;
  StateJob job({w, v});
  job.fill();
  CheckpointWriter writer(job.memory(), {.out_folder = folder.path(), .run = facts});
  ASSERT_FALSE(writer.save(2));
  ASSERT_FALSE(writer.finish());
  const auto checkpoint = open(writer.folder(2));
  ASSERT_TRUE(checkpoint);
  for (const Difference& row : table) {
    SCOPED_TRACE(row.name);
    const StateJob other(row.model);
    const auto all = checkpoint->compare(other.parameters(), row.facts, Restored::all);
    ASSERT_EQ(all.has_value(), row.note != nullptr);
    if (all) {
      EXPECT_EQ(all->code, kCheckpointDiffers);
      EXPECT_TRUE(std::any_of(all->notes.begin(), all->notes.end(),
                              [&](const Note& note) { return note.text == row.note; }))
          << describe(*all) << testing::PrintToString(all->notes.size());
    }
    const auto weights = checkpoint->compare(other.parameters(), row.facts, Restored::weights);
    EXPECT_EQ(!weights, row.weights);
    if (weights) {
      EXPECT_EQ(weights->code, kCheckpointDiffers);
    }
  }
}

/// Names of a model that has nothing in common with it are not all listed.
TEST(CheckpointState, ManyDifferencesAreCounted) {
  std::vector<StateParam> model;
  for (int p = 0; p < 20; ++p) model.push_back({.name = "p" + std::to_string(p), .dims = {2}});
  const TemporaryFolder folder;
  StateJob job({{.name = "w", .dims = {2}}});
  const auto checkpoint = open(save(job, folder.path(), 1));
  ASSERT_TRUE(checkpoint);
  const auto differs =
      checkpoint->compare(StateJob(model).parameters(), {.train = "drawn"}, Restored::all);
  ASSERT_TRUE(differs);
  ASSERT_EQ(differs->notes.size(), 7u);
  EXPECT_EQ(differs->notes.back().text, "15 more differ");
}

/// A checkpoint has nothing that a step wrote after `save`.
TEST(CheckpointState, TrainingGoesOnWhileACheckpointIsWritten) {
  const std::vector<StateParam> model = {{.name = "w", .dims = {500, 400}, .slots = 2}};
  const TemporaryFolder folder;
  StateJob job(model), other(model);
  job.fill();
  CheckpointWriter writer(job.memory(), {.out_folder = folder.path()});
  for (std::uint64_t step = 1; step <= 3; ++step) {
    job.fill();
    EXPECT_FALSE(writer.save(step));
    job.clear();
  }
  EXPECT_EQ(writer.last(), 3u);
  EXPECT_FALSE(writer.save(3));  // of the same step: nothing to do
  EXPECT_FALSE(writer.finish());
  EXPECT_EQ(complete_steps(folder.path()), (std::vector<std::uint64_t>{1, 2, 3}));
  for (std::uint64_t step = 1; step <= 3; ++step) {
    const auto checkpoint = open(writer.folder(step));
    ASSERT_TRUE(checkpoint);
    EXPECT_EQ(checkpoint->manifest().step, step);
    other.clear();
    EXPECT_FALSE(checkpoint->load(other.memory(), Restored::all));
    EXPECT_EQ(other.difference(Restored::all), "");
  }
}

TEST(CheckpointState, TheNewestAreKept) {
  for (const auto& [keep, left] :
       {std::pair<std::uint64_t, std::vector<std::uint64_t>>{0, {1, 2, 3, 4, 5}},
        {1, {5}},
        {3, {3, 4, 5}},
        {9, {1, 2, 3, 4, 5}}}) {
    const TemporaryFolder folder;
    StateJob job({{.name = "w", .dims = {3}}});
    CheckpointWriter writer(job.memory(), {.out_folder = folder.path(), .keep = keep});
    for (std::uint64_t step = 1; step <= 5; ++step) EXPECT_FALSE(writer.save(step));
    EXPECT_FALSE(writer.finish());
    EXPECT_EQ(complete_steps(folder.path()), left) << keep;
  }
}

/// A rank that cannot be read or written is a failure, and nothing of it is kept.
TEST(CheckpointState, UnreachableRanksAreFailures) {
  const TemporaryFolder folder;
  StateJob job({{.name = "w", .dims = {3}, .slots = 1}});
  job.fill();
  const std::string path = save(job, folder.path(), 1);
  StateMemory memory = job.memory();
  memory.failure = [] { return std::optional(Failure{.code = kCudaCallFailed}); };
  memory.read = [](auto...) -> const unsigned char* { return nullptr; };
  memory.write = [](auto...) { return false; };
  CheckpointWriter writer(memory, {.out_folder = folder.path()});
  const auto failure = writer.save(2);
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->code, kCudaCallFailed);
  const auto refused = open(path)->load(memory, Restored::all);
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->code, kCudaCallFailed);
  EXPECT_EQ(complete_steps(folder.path()), std::vector<std::uint64_t>{1});
}

/// Every process writes the state of its rank, into the files of one process.
TEST(CheckpointState, SeveralProcessesWriteTheFilesOfOne) {
  for_each_case(8, [](Random& random) {
    const TemporaryFolder folder;
    const std::vector<StateParam> model = random_state(random);
    StateJob job(model, random), one(model);
    if (job.ranks().size() == 1) return;
    job.fill();
    one.fill();
    std::filesystem::create_directory(folder.path() / "a");
    std::filesystem::create_directory(folder.path() / "b");
    with_ranks(static_cast<std::uint32_t>(job.ranks().size()),
               [&](std::uint32_t rank, std::unique_ptr<ProcessGroup> group, const Failure& apart) {
                 ASSERT_TRUE(group) << apart.message;
                 CheckpointWriter writer(job.memory(group.get(), rank),
                                         {.out_folder = folder.path() / "a",
                                          .keep = 2,
                                          .run = {.batch = 8, .train = "drawn"}});
                 for (const std::uint64_t step : {1, 2, 3}) EXPECT_FALSE(writer.save(step));
                 EXPECT_FALSE(writer.finish());
                 // All know that the last one is complete.
                 EXPECT_EQ(complete_steps(folder.path() / "a"), (std::vector<std::uint64_t>{2, 3}));
                 group->leave();
               });
    expect_equal_files(folder.path() / "a/step-3", save(one, folder.path() / "b", 3));
  });
}

/// All learn that one could not write, and no checkpoint is left.
TEST(CheckpointState, AFailureOfOneProcessIsThatOfAll) {
  for (const std::uint32_t failing : {0u, 1u}) {
    const TemporaryFolder folder;
    StateJob job({{.name = "w", .dims = {300}}});
    const std::vector<PiperJobRank> ranks(2, job.ranks()[0]);
    std::latch met(2);
    with_ranks(2,
               [&](std::uint32_t rank, std::unique_ptr<ProcessGroup> group, const Failure& apart) {
                 met.arrive_and_wait();  // a failure before that is one of the meeting
                 ASSERT_TRUE(group) << apart.message;
                 StateMemory memory = job.memory(group.get(), rank);
                 memory.ranks = ranks;
                 memory.read = job.memory().read;  // both have the memory of rank 0
                 const std::string out_folder =
                     rank == failing ? folder.write("file", "") : folder.path().string();
                 CheckpointWriter writer(memory, {.out_folder = out_folder});
                 EXPECT_FALSE(writer.save(1));
                 const auto failure = writer.finish();
                 ASSERT_TRUE(failure) << rank;
                 EXPECT_EQ(failure->code, kOutputUnwritable) << describe(*failure);
               });
    EXPECT_TRUE(complete_steps(folder.path()).empty());
  }
}

}  // namespace
}  // namespace piper::runtime
