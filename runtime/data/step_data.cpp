#include "runtime/data/step_data.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "runtime/data/data_source.h"
#include "runtime/data/file_text.h"
#include "runtime/data/sample_order.h"
#include "runtime/dtypes.h"
#include "runtime/kernel_math.h"

namespace piper::runtime {
namespace {

class NoData final : public StepData {
 public:
  std::optional<Failure> load(std::uint32_t, std::uint64_t, std::uint64_t, std::uint64_t,
                              void*) const override {
    return std::nullopt;
  }
};

class Synthetic final : public StepData {
 public:
  Synthetic(std::vector<InputShape> inputs, const PiperData& data, std::uint64_t seed, DataUse use)
      : inputs_(std::move(inputs)),
        classes_(static_cast<std::uint64_t>(std::max<std::int64_t>(data.classes, 1))),
        seed_(seed) {
    if (use == DataUse::training) return;
    const auto batch = static_cast<std::uint64_t>(std::max<std::int64_t>(data.batch, 1)),
               steps = static_cast<std::uint64_t>(std::max<std::int64_t>(data.batches, 1));
    batches_ = Batches::over(steps * batch, batch, 0);
    // Held-out samples differ from those of training.
    for (InputShape& shape : inputs_) shape.name ^= hash_of("held_out");
  }

  std::optional<Failure> load(std::uint32_t input, std::uint64_t step, std::uint64_t first,
                              std::uint64_t samples, void* to) const override {
    const InputShape& shape = inputs_[input];
    for (std::uint64_t s = 0; s < samples; ++s) {
      const piper_random_key key =
          piper_stream_key(seed_, PIPER_RANDOM_DATA, step, first + s, shape.name);
      for (std::uint64_t o = 0; o < shape.outer; ++o) {
        for (std::uint64_t i = 0; i < shape.inner; ++i) {
          const std::uint64_t at = (o * samples + s) * shape.inner + i,
                              element = o * shape.inner + i;
          switch (static_cast<PiperDType>(shape.dtype)) {
            case PIPER_F32:
              static_cast<float*>(to)[at] = static_cast<float>(piper_random_normal(key, element));
              break;
            case PIPER_F64: static_cast<double*>(to)[at] = piper_random_normal(key, element); break;
            case PIPER_BF16:
              static_cast<piper_bf16*>(to)[at] =
                  static_cast<float>(piper_random_normal(key, element));
              break;
            case PIPER_I64:
              static_cast<std::int64_t*>(to)[at] =
                  static_cast<std::int64_t>(below(piper_random_u64(key, element), classes_));
          }
        }
      }
    }
    return std::nullopt;
  }
  std::string identity() const override { return "synthetic, classes " + std::to_string(classes_); }
  Batches batches() const override { return batches_; }

 private:
  std::vector<InputShape> inputs_;
  std::uint64_t classes_, seed_;
  Batches batches_ = {};
};

/// Held-out data with the weights of its samples as a further input.
class Weighed final : public StepData {
 public:
  Weighed(std::unique_ptr<StepData> data, std::uint32_t weight, std::uint32_t dtype)
      : data_(std::move(data)), batches_(data_->batches()), weight_(weight), dtype_(dtype) {}

  std::optional<Failure> load(std::uint32_t input, std::uint64_t step, std::uint64_t first,
                              std::uint64_t samples, void* to) const override {
    if (input != weight_) return data_->load(input, step, first, samples, to);
    const std::uint64_t valid = batches_.samples_of(step);
    with_element(dtype_, [&](auto zero) {
      auto* const out = static_cast<decltype(zero)*>(to);
      for (std::uint64_t s = 0; s < samples; ++s)
        out[s] = static_cast<decltype(zero)>(first + s < valid ? 1.0f : 0.0f);
    });
    return std::nullopt;
  }
  Batches batches() const override { return batches_; }
  std::string identity() const override { return data_->identity(); }
  std::string places_of(std::int64_t value, std::uint64_t step) const override {
    return data_->places_of(value, step);
  }
  const char* sample_name() const override { return data_->sample_name(); }

 private:
  const std::unique_ptr<StepData> data_;
  const Batches batches_;
  const std::uint32_t weight_, dtype_;
};

std::unique_ptr<StepData> open_synthetic(const PiperData& data, std::span<const PiperInput> inputs,
                                         std::vector<InputShape> shapes, std::uint64_t seed,
                                         DataUse use, Failure& failure) {
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    if (shapes[i].dtype != PIPER_I64 || data.classes > 0) continue;
    failure = at_data(data, kDataMismatch,
                      "the input `" + std::string(inputs[i].name) +
                          "` holds integers and `synthetic` has no bound for them",
                      "write `synthetic(batch: 32, classes: 10)`");
    return nullptr;
  }
  return std::make_unique<Synthetic>(std::move(shapes), data, seed, use);
}

}  // namespace

InputShape shape_of(const PiperInput& input) {
  InputShape shape;
  for (std::uint32_t d = 0; d < input.num_dims; ++d) {
    const std::uint64_t extent = static_cast<std::uint64_t>(input.dims[d]);
    (d < input.sample_dim   ? shape.outer
     : d > input.sample_dim ? shape.inner
                            : shape.batch) *= extent;
  }
  shape.dtype = input.dtype;
  shape.name = hash_of(input.name);
  return shape;
}

Failure at_data(const PiperData& data, std::uint32_t code, std::string message, std::string hint) {
  Failure failure{.code = code, .message = std::move(message), .hint = std::move(hint)};
  failure.place = location_of({}, data.where.place);
  return failure;
}

Batches Batches::over(std::uint64_t samples, std::uint64_t batch, std::int64_t limit) {
  Batches made{.samples = samples, .batch = batch};
  made.taken = limit > 0 ? std::min(made.all(), static_cast<std::uint64_t>(limit)) : made.all();
  return made;
}

Failure refused_short_batch(const Batches& batches, const char* sample_name) {
  const std::uint64_t whole = batches.samples / batches.batch,
                      last = batches.samples % batches.batch;
  const std::string counts = std::to_string(batches.samples) + " " + sample_name +
                             "s are no multiple of the batch of " + std::to_string(batches.batch);
  Failure failure{.code = kShortHeldOutBatch,
                  .message = "the held-out data ends in a batch of " + std::to_string(last) +
                             ", and samples of this model depend on each other: " + counts};
  failure.hint =
      whole > 0
          ? "write `batches: " + std::to_string(whole) +
                "` on the `held_out` line, which then takes full batches only, or a `batch` that divides " +
                std::to_string(batches.samples)
          : "write a `batch` that divides " + std::to_string(batches.samples);
  return failure;
}

std::unique_ptr<StepData> open_held_out(const PiperJob& job, Failure& failure, TextFiles* texts) {
  auto data = open_data(job.held_out, std::span(job.inputs, job.num_inputs), job.seed,
                        DataUse::held_out, failure, texts);
  if (!data) return nullptr;
  if (job.sample_weight != nullptr)
    return std::make_unique<Weighed>(std::move(data), job.num_inputs, job.sample_weight->dtype);
  const Batches batches = data->batches();
  if (batches.taken == 0 || batches.samples_of(batches.taken - 1) == batches.batch) return data;
  failure = refused_short_batch(batches, data->sample_name());
  failure.place = location_of({}, job.held_out.where.place);
  return nullptr;
}

std::string held_out_text(const StepData& data, std::uint64_t step) {
  const Batches batches = data.batches();
  if (batches.taken == 0) return "held-out batch " + std::to_string(step + 1);
  const std::uint64_t first = batches.first_of(step), last = first + batches.samples_of(step);
  return "held-out batch " + std::to_string(first / batches.batch + 1) + " of " +
         std::to_string(batches.all()) + ", " + data.sample_name() +
         (last == first + 1 ? " " + std::to_string(last)
                            : "s " + std::to_string(first + 1) + " to " + std::to_string(last));
}

std::unique_ptr<StepData> open_data(const PiperData& data, std::span<const PiperInput> inputs,
                                    std::uint64_t seed, DataUse use, Failure& failure,
                                    TextFiles* texts) {
  std::vector<InputShape> shapes;
  for (const PiperInput& input : inputs) shapes.push_back(shape_of(input));
  TextFiles own;
  TextFiles& files = texts != nullptr ? *texts : own;
  switch (static_cast<PiperDataKind>(data.kind)) {
    case PIPER_NO_DATA: return std::make_unique<NoData>();
    case PIPER_BYTES:
    case PIPER_TOKENS:
      return open_windows(data, inputs, std::move(shapes), seed, use, failure, files);
    case PIPER_SYNTHETIC:
      return open_synthetic(data, inputs, std::move(shapes), seed, use, failure);
    case PIPER_ARRAYS:
      return open_arrays(data, inputs, std::move(shapes), seed, use, failure, files);
  }
  failure = at_data(data, kBadJob, "the job has data of no known kind", "");
  return nullptr;
}

}  // namespace piper::runtime
