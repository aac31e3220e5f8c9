// A checkpoint holds the whole state of a train, and none of its layout: a run that goes on from one
// has the bits of a run that was never interrupted, in the layout that wrote it; any layout of the
// model takes the state without changing a bit of it; and layouts that compute the same bits write
// the same files.

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "tests/laws/law_runs.h"
#include "tests/support/golden.h"
#include "tests/support/random_programs.h"
#include "tests/support/temporary_folder.h"

namespace piper::test {
namespace {

constexpr double kRounding = 1e-10;

/// The first file of two checkpoints that differs; empty: none.
std::string different_file(const std::string& a, const std::string& b) {
  std::set<std::string> names;
  for (const std::string& folder : {a, b}) {
    for (const auto& entry : std::filesystem::directory_iterator(folder))
      names.insert(entry.path().filename());
  }
  for (const std::string& name : names) {
    if (read_text(a + "/" + name) != read_text(b + "/" + name)) return name;
  }
  return names.empty() ? "there are no files" : "";
}

/// Runs of programs, each with a folder for its checkpoint.
class Runs {
 public:
  /// `steps` steps, from first values or from the checkpoint of another run.
  LawRun run(LawProgram& program, int steps, const LawRun* from = nullptr,
             runtime::RandomDelays delays = {}) {
    LawRunOptions options;
    options.steps = steps;
    options.delays = delays;
    if (from != nullptr) options.resumed = from->checkpoint;
    options.out_folder = folder_.path() / std::to_string(count_++);
    std::filesystem::create_directory(options.out_folder);
    return program.run(options);
  }

 private:
  const TemporaryFolder folder_;
  int count_ = 0;
};

// ---- random programs

std::uint64_t number_after(const std::string& text, const std::string& word) {
  return std::stoull(text.substr(text.find(word) + word.size()));
}

std::uint64_t random_divisor(Random& random, std::uint64_t number, std::uint64_t max) {
  std::vector<std::uint64_t> divisors;
  for (std::uint64_t d = 1; d <= std::min(number, max); ++d) {
    if (number % d == 0) divisors.push_back(d);
  }
  return random.pick(divisors);
}

/// The model, data and settings of a drawn program with a strategy of another kind: stages on a
/// line, microbatches, replicas with any cut of their state, which may lie on the host.
std::string other_strategy(const std::string& source, Random& random) {
  const std::size_t mesh = source.find("mesh grid("), train = source.find("train drawn"),
                    seed = source.find("\n", source.find("    seed:"));
  const bool marked = source.find("region stage") != std::string::npos;
  const std::uint64_t batch = number_after(source, "batch: "),
                      stages = marked ? 1 : 1 + random.below(4), pp = 1 + random.below(stages),
                      dp = random_divisor(random, batch, 4),
                      mb = random_divisor(random, batch / dp, 4);
  std::string lines;
  for (const char* const setting : {"    ema: ", "    skip_step: "}) {
    if (const std::size_t line = source.find(setting); line != std::string::npos)
      lines += source.substr(line, source.find('\n', line) + 1 - line);
  }
  lines += "    split batch into mb: " + std::to_string(mb) + "\n";
  if (stages > 1)
    lines += "    partition model into stage: " + std::to_string(stages) + "\n    for s in 0.." +
             std::to_string(stages) + " { place stage[s] on pp[s % " + std::to_string(pp) + "] }\n";
  if (dp > 1) {
    const std::uint64_t zero = random.below(4);
    lines += "    replicate model over dp with bucket: " + std::to_string(1 + random.below(400)) +
             (zero > 0 ? ", zero: " + std::to_string(zero) : "") + "\n";
  }
  return source.substr(0, mesh) + "mesh grid(pp: " + std::to_string(stages > 1 ? pp : 1) +
         ", dp: " + std::to_string(dp) + ")\n" + source.substr(train, seed + 1 - train) + lines +
         "}\n";
}

/// A program with the model of another, which says what is frozen and tuned.
LawProgram with_strategy(Context& context, const std::string& source, const dag::Dag& like) {
  RandomProgram program = read_program(context, source);
  for (std::size_t p = 0; p < program.model.params.size(); ++p) {
    tensor::Param& param = program.model.params[p];
    param.frozen = like.params[p].frozen;
    param.rate = like.params[p].rate;
    param.decay = like.params[p].decay;
  }
  // The factors have it already.
  if (auto& optimizer = program.strategy.settings.optimizer)
    optimizer->decay = directive::Decay::all;
  return LawProgram(context, std::move(program.model), std::move(program.strategy));
}

/// `n` steps of the drawn program and the rest of it, through a second layout that changes nothing.
void expect_it_goes_on(DrawnLaw& law, Random& random, bool exact_only) {
  const std::string source = other_strategy(law.drawn.source, random);
  SCOPED_TRACE(source);
  LawProgram other = with_strategy(law.context, source, law.program.dag());
  ASSERT_TRUE(other);
  const int before = static_cast<int>(random.between(1, kLawSteps - 1)), after = kLawSteps - before;
  Runs runs;
  const LawRun uninterrupted = runs.run(law.program, kLawSteps),
               begun = runs.run(law.program, before, nullptr, {random.next(), 50});
  ASSERT_FALSE(begun.checkpoint.empty());
  // The other layout takes and gives back every bit.
  const LawRun taken = runs.run(other, 0, &begun);
  ASSERT_EQ(different_file(taken.checkpoint, begun.checkpoint), "");
  for (const auto& [name, values] : begun.parameters)
    EXPECT_EQ(taken.initial.at(name), values.back()) << name;
  const LawRun resumed = runs.run(law.program, after, &taken, {random.next(), 50});
  EXPECT_EQ(first_bit_difference(resumed, without_steps(uninterrupted, before)), "");
  EXPECT_EQ(different_file(resumed.checkpoint, uninterrupted.checkpoint), "");
  if (exact_only) return;
  // In f64 it is also close to a run that it never had a part in.
  const LawRun uninterrupted_other = runs.run(other, kLawSteps),
               resumed_other = runs.run(other, after, &begun);
  EXPECT_EQ(first_difference(resumed_other, without_steps(uninterrupted_other, before), kRounding),
            "");
}

TEST(Checkpoints, RandomProgramsGoOnInAnyLayout) {
  for_each_law(25, {},
               [](DrawnLaw& law, Random& random) { expect_it_goes_on(law, random, false); });
}

TEST(Checkpoints, RandomProgramsGoOnInF32) {
  for_each_law(10, {.dtype = "f32"},
               [](DrawnLaw& law, Random& random) { expect_it_goes_on(law, random, true); });
}

/// Parameters with master weights, which the rounded ones follow.
TEST(Checkpoints, RandomProgramsGoOnInBf16) {
  for_each_law(15, {.dtype = "bf16"},
               [](DrawnLaw& law, Random& random) { expect_it_goes_on(law, random, true); });
}

// ---- layouts of one model

struct Layout {
  const char* name;
  const char* mesh;
  const char* lines;
};

constexpr Layout kLayouts[] = {
    {"one device", "d: 1", "split batch into mb: 2"},
    {"data parallel", "dp: 4", "replicate model over dp"},
    {"pipeline", "pp: 4", "one_f_one_b(pp, 8)"},
    {"dual_pipe", "pp: 4", "dual_pipe(pp, 8)"},
    {"pipeline x data parallel", "pp: 2, dp: 2",
     "one_f_one_b(pp, 4)\n    replicate model over dp with bucket: 1KiB"},
    {"ZeRO-1", "dp: 4", "replicate model over dp with zero: 1"},
    {"ZeRO-2, uneven", "dp: 3", "replicate model over dp with zero: 2, bucket: 500"},
    {"ZeRO-3", "dp: 4", "replicate model over dp with zero: 3, bucket: 1KiB"},
    {"optimizer on the host", "pp: 2",
     "one_f_one_b(pp, 4)\n    offload model with what: optimizer"},
    {"ZeRO-1, optimizer on the host", "dp: 2",
     "replicate model over dp with zero: 1\n    offload model with what: optimizer, window: 1"},
};

std::string gpt(const Layout& layout, const std::string& dtype, const std::string& optimizer,
                const std::string& line) {
  const std::string lines = layout.lines;
  std::string uses = "use std.models.gpt\n";
  for (const std::string schedule : {"one_f_one_b", "dual_pipe"}) {
    if (lines.find(schedule) != std::string::npos) uses += "use std.schedules." + schedule + "\n";
  }
  return uses + "mesh cluster(" + layout.mesh +
         ")\ntrain small = gpt(layers: 4, dim: 8, heads: 2, vocab: 11, tied: true) on cluster {\n"
         "    data:  synthetic(batch: 24, seq: 3, classes: 11)\n    optim: " +
         optimizer + "\n    steps: 3\n    dtype: " + dtype + "\n    " + lines + "\n    " + line +
         "\n}\n";
}

struct Train {
  const char *dtype, *optimizer, *line;
};

constexpr const char* kAdamw = "adamw(lr: cosine(1e-2, warmup: 1), eps: 1e-4, weight_decay: 0.1)";
constexpr const char* kMomentum = "sgd(lr: 1e-3, momentum: 0.9, clip: 1.0)";

constexpr Train kTrains[] = {
    {"f64", kAdamw, ""},
    {"f64", "sgd(lr: 1e-2)", "freeze block[1]"},
    {"f32", kMomentum, "freeze embed_with"},
    {"bf16", kAdamw, "freeze block[0]"},
    {"bf16", "sgd(lr: 1e-2)", ""},
};

/// The state of one layout goes through all others, none of which changes a bit of it, and back.
/// Each also trains on from it.
TEST(Checkpoints, AStateGoesThroughAllLayouts) {
  for (const Train& train : kTrains) {
    Runs runs;
    LawRun uninterrupted, state;
    for (const Layout& layout : kLayouts) {
      // Without state on the host there is nothing to offload.
      if (std::string(train.optimizer) == "sgd(lr: 1e-2)" && std::string(train.dtype) != "bf16" &&
          std::string(layout.lines).find("optimizer") != std::string::npos)
        continue;
      const std::string source = gpt(layout, train.dtype, train.optimizer, train.line);
      SCOPED_TRACE(source);
      Context context;
      const RandomProgram read = read_program(context, source);
      LawProgram program(context, read.model, read.strategy);
      ASSERT_TRUE(program);
      const LawRun begun = runs.run(program, 2);
      ASSERT_FALSE(begun.checkpoint.empty());
      if (uninterrupted.losses.empty()) {
        state = begun;
        uninterrupted = runs.run(program, 3);
      }
      const LawRun taken = runs.run(program, 0, &state);
      ASSERT_EQ(different_file(taken.checkpoint, state.checkpoint), "");
      // On its own it goes on bit for bit, and from the other layout closely.
      const LawRun continued = runs.run(program, 1, &begun);
      EXPECT_EQ(first_bit_difference(continued, without_steps(runs.run(program, 3), 2)), "");
      const LawRun resumed = runs.run(program, 1, &taken);
      if (std::string(train.dtype) == "f64") {
        EXPECT_EQ(first_difference(resumed, without_steps(uninterrupted, 2), kRounding), "");
      }
      state.checkpoint = taken.checkpoint;
    }
  }
}

/// Programs that promise equal bits write equal files: state that is cut, recomputed forwards, and
/// state on the host change no value.
TEST(Checkpoints, EqualBitsAreEqualFiles) {
  constexpr const char* kSame[] = {
      "replicate model over dp with zero: 2, reduce: unit",
      "replicate model over dp with zero: 3, reduce: unit, prefetch: 1",
      "replicate model over dp with zero: 2, reduce: unit\n    recompute block[1]",
      "replicate model over dp with zero: 3, reduce: unit\n    offload model with what: optimizer",
  };
  for (const char* const dtype : {"f64", "f32", "bf16"}) {
    Runs runs;
    LawRun first;
    for (const char* const lines : kSame) {
      const std::string text = std::string("one_f_one_b(pp, 4)\n    ") + lines;
      const std::string source = gpt({"", "pp: 2, dp: 2", text.c_str()}, dtype, kAdamw, "");
      SCOPED_TRACE(source);
      Context context;
      const RandomProgram read = read_program(context, source);
      LawProgram program(context, read.model, read.strategy);
      ASSERT_TRUE(program);
      const LawRun run = runs.run(program, kLawSteps);
      ASSERT_FALSE(run.checkpoint.empty());
      if (first.checkpoint.empty()) first = run;
      EXPECT_EQ(first_bit_difference(run, first), "");
      EXPECT_EQ(different_file(run.checkpoint, first.checkpoint), "");
    }
  }
}

}  // namespace
}  // namespace piper::test
