// Held-out data is gone over once: each sample counts once, whatever the number of samples,
// microbatches and replicas.

#include <gtest/gtest.h>

#include <cstdio>

#include "tests/laws/law_runs.h"
#include "tests/support/evaluate.h"
#include "tests/support/temporary_folder.h"

namespace piper::test {
namespace {

/// Rows for the inputs of a model, as numbers and as a file of them.
struct Rows {
  std::vector<std::vector<std::vector<double>>> values;  // per input and row
  std::string text;
};

std::string number(double value) {
  char text[40];
  std::snprintf(text, sizeof text, "%.17g", value);
  return text;
}

std::size_t numbers_per_sample(const tensor::Type& type) {
  return static_cast<std::size_t>(type.elements() / type.samples()->extent);
}

Rows draw_rows(const tensor::Graph& model, std::int64_t classes, std::uint64_t rows,
               Random& random) {
  Rows drawn;
  drawn.values.resize(model.inputs.size());
  for (std::uint64_t row = 0; row <= rows; ++row) {  // the first line names the columns
    for (std::size_t i = 0; i < model.inputs.size(); ++i) {
      const tensor::Type& type = model.type(model.inputs[i].value);
      const std::size_t numbers = numbers_per_sample(type);
      std::vector<double> values;
      for (std::size_t k = 0; k < numbers; ++k) {
        values.push_back(
            type.dtype == tensor::DType::i64
                ? static_cast<double>(random.below(static_cast<std::uint64_t>(classes)))
                : 4 * random.unit() - 2);
        const std::string name = std::string(model.context().text(model.inputs[i].name)) +
                                 (numbers > 1 ? "." + std::to_string(k) : "");
        drawn.text += (i + k > 0 ? "," : "") + (row == 0 ? name : number(values.back()));
      }
      if (row > 0) drawn.values[i].push_back(std::move(values));
    }
    drawn.text += "\n";
  }
  return drawn;
}

/// A batch of a model input: rows from `first` on, and behind the last one numbers that no row has.
Array batch_of(const tensor::Type& type, const std::vector<std::vector<double>>& rows,
               std::uint64_t first) {
  Array array{type, std::vector<double>(static_cast<std::size_t>(type.elements()),
                                        type.dtype == tensor::DType::i64 ? 0 : 0.125)};
  std::size_t outer = 1, inner = 1;
  const auto samples = static_cast<std::size_t>(type.samples()->extent);
  bool before = true;
  for (const tensor::Dim& dim : type.dims) {
    if (dim.sampled) {
      before = false;
    } else {
      (before ? outer : inner) *= static_cast<std::size_t>(dim.extent);
    }
  }
  for (std::size_t s = 0; s < samples && first + s < rows.size(); ++s) {
    for (std::size_t o = 0; o < outer; ++o) {
      for (std::size_t i = 0; i < inner; ++i)
        array.data[(o * samples + s) * inner + i] = rows[first + s][o * inner + i];
    }
  }
  return array;
}

/// Calls `visit` with the elements of an array that belong to the first samples.
template <typename Visit>
void for_each_of_samples(const Array& array, std::uint64_t samples, Visit visit) {
  std::size_t inner = 1, at = 0;
  const std::vector<tensor::Dim>& dims = array.type.dims;
  for (std::size_t d = dims.size(); d-- > 0 && !dims[d].sampled;)
    inner *= static_cast<std::size_t>(dims[d].extent);
  const auto batch = static_cast<std::size_t>(array.type.samples()->extent);
  for (const double element : array.data) {
    if (at++ / inner % batch < samples) visit(element);
  }
}

/// The held-out loss by hand: the elements of each loss over all rows, and how many count.
double expected_loss(const tensor::Graph& model, const LawRun& run, const Rows& rows,
                     std::uint64_t count) {
  std::vector<double> sums(model.losses.size()), counts(model.losses.size());
  const auto batch =
      static_cast<std::uint64_t>(model.type(model.inputs[0].value).samples()->extent);
  for (std::uint64_t first = 0; first < count; first += batch) {
    Evaluator evaluator(model);
    std::vector<Array> inputs;
    for (std::size_t i = 0; i < model.inputs.size(); ++i) {
      inputs.push_back(batch_of(model.type(model.inputs[i].value), rows.values[i], first));
      evaluator.set(model.inputs[i].value, inputs.back());
    }
    for (const tensor::Param& param : model.params)
      evaluator.set(param.value,
                    {model.type(param.value),
                     run.parameters.at(std::string(model.context().text(param.name))).back()});
    evaluator.run();
    const std::uint64_t samples = std::min(batch, count - first);
    for (std::size_t l = 0; l < model.losses.size(); ++l) {
      const tensor::Loss& loss = model.losses[l];
      for_each_of_samples(evaluator.get(loss.elements), samples, [&](double element) {
        sums[l] += element;
        if (!loss.mask) ++counts[l];
      });
      if (loss.mask)
        for_each_of_samples(inputs[loss.mask->targets.index()], samples,
                            [&](double target) { counts[l] += target != loss.mask->ignore; });
    }
  }
  double total = 0;
  for (std::size_t l = 0; l < sums.size(); ++l) total += sums[l] / std::max(1.0, counts[l]);
  return total;
}

TEST(HeldOut, EverySampleCountsOnce) {
  int short_batches = 0, masked = 0;
  for_each_law(40, {.dropout = false}, [&](DrawnLaw& law, Random& random) {
    const TemporaryFolder folder;
    const tensor::Graph& model = law.drawn.model;
    const std::int64_t batch = model.type(model.inputs[0].value).samples()->extent;
    const std::uint64_t count = 1 + random.below(static_cast<std::uint64_t>(3 * batch));
    const std::int64_t classes =
        law.drawn.strategy.settings.data ? law.drawn.strategy.settings.data->classes : 5;
    const Rows rows = draw_rows(model, classes, count, random);
    LawProgram program(law.context, model, law.drawn.strategy);
    ASSERT_TRUE(program);
    directive::Data data;
    data.kind = directive::Data::Kind::arrays;
    data.path = folder.write("rows.csv", rows.text);
    data.batch = batch;
    program.hold_out(data);
    LawRunOptions options;
    options.held_out_steps = kAllHeldOut;
    const LawRun run = program.run(options);
    ASSERT_EQ(run.held_out.size(),
              (count + static_cast<std::uint64_t>(batch) - 1) / static_cast<std::uint64_t>(batch));
    const double expected = expected_loss(model, run, rows, count);
    EXPECT_NEAR(run.held_out_loss, expected, 1e-10 * std::max(1.0, std::abs(expected)))
        << count << " rows in batches of " << batch;
    short_batches += count % static_cast<std::uint64_t>(batch) != 0;
    for (const tensor::Loss& loss : model.losses) masked += loss.mask.has_value();
  });
  if (case_options().count > 0) return;
  EXPECT_GT(short_batches, 20);
  EXPECT_GT(masked, 3);
}

}  // namespace
}  // namespace piper::test
