#include "runtime/data/step_data.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/crc32.h"
#include "runtime/data/file_text.h"
#include "runtime/data/table.h"
#include "runtime/dtypes.h"
#include "runtime/kernel_math.h"

namespace piper::runtime {
namespace {

// A model input as [outer][samples][inner].
struct InputShape {
  std::uint64_t outer = 1, batch = 1, inner = 1;
  std::uint32_t dtype = PIPER_F32;
  std::uint64_t name = 0;
  bool shifted = false;  // bytes: `targets`
};

std::uint64_t hash_of(std::string_view name) { return piper_name_hash(name.data(), name.size()); }

// A number below `bound`, from 64 random bits; even up to bound / 2^64.
std::uint64_t below(std::uint64_t bits, std::uint64_t bound) {
  __extension__ using Wide = unsigned __int128;
  return static_cast<std::uint64_t>((static_cast<Wide>(bits) * bound) >> 64);
}

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

class NoData final : public StepData {
 public:
  void load(std::uint32_t, std::uint64_t, std::uint64_t, std::uint64_t, void*) const override {}
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

  void load(std::uint32_t input, std::uint64_t step, std::uint64_t first, std::uint64_t samples,
            void* to) const override {
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
  }
  std::string identity() const override {
    return "synthetic, classes " + std::to_string(classes_);
  }
  Batches batches() const override { return batches_; }

 private:
  std::vector<InputShape> inputs_;
  std::uint64_t classes_, seed_;
  Batches batches_ = {};
};

/// Rows of a table: drawn at random in training, in order on held-out data.
class Arrays final : public StepData {
 public:
  Arrays(std::shared_ptr<const Table> table, std::vector<InputShape> inputs, const PiperData& data,
         std::uint64_t seed, DataUse use)
      : table_(std::move(table)), inputs_(std::move(inputs)), seed_(seed), use_(use) {
    if (use == DataUse::held_out)
      batches_ = Batches::over(table_->rows, static_cast<std::uint64_t>(data.batch), data.batches);
  }

  void load(std::uint32_t input, std::uint64_t step, std::uint64_t first, std::uint64_t samples,
            void* to) const override {
    const InputShape& shape = inputs_[input];
    const auto copy = [&](const auto& values, auto* out) {
      for (std::uint64_t s = 0; s < samples; ++s) {
        const auto* const from = values.data() + row(step, first + s) * shape.outer * shape.inner;
        for (std::uint64_t o = 0; o < shape.outer; ++o) {
          for (std::uint64_t i = 0; i < shape.inner; ++i) {
            out[(o * samples + s) * shape.inner + i] =
                static_cast<std::remove_reference_t<decltype(*out)>>(from[o * shape.inner + i]);
          }
        }
      }
    };
    switch (static_cast<PiperDType>(shape.dtype)) {
      case PIPER_F32:
        return copy(std::get<std::vector<double>>(table_->values[input]), static_cast<float*>(to));
      case PIPER_F64:
        return copy(std::get<std::vector<double>>(table_->values[input]), static_cast<double*>(to));
      case PIPER_BF16:
        return copy(std::get<std::vector<double>>(table_->values[input]),
                    static_cast<piper_bf16*>(to));
      case PIPER_I64:
        return copy(std::get<std::vector<std::int64_t>>(table_->values[input]),
                    static_cast<std::int64_t*>(to));
    }
  }
  Batches batches() const override { return batches_; }
  std::string identity() const override {
    std::uint32_t crc = 0;
    for (const auto& values : table_->values)
      crc ^= std::visit([](const auto& list) { return crc32_of(list.data(), list.size() * 8); },
                        values);
    return "arrays, " + std::to_string(table_->rows) + " rows, crc32 " + crc32_text(crc);
  }
  const char* sample_name() const override { return "row"; }

 private:
  std::uint64_t row(std::uint64_t step, std::uint64_t sample) const {
    if (use_ == DataUse::training)
      return below(piper_random_u64(
                       piper_stream_key(seed_, PIPER_RANDOM_DATA, step, sample, hash_of("row")), 0),
                   table_->rows);
    return batches_.sample(step, sample);
  }

  std::shared_ptr<const Table> table_;
  std::vector<InputShape> inputs_;
  std::uint64_t seed_;
  DataUse use_;
  Batches batches_ = {};
};

class Bytes final : public StepData {
 public:
  Bytes(std::shared_ptr<const Text> text, std::vector<InputShape> inputs, const PiperData& data,
        std::uint64_t seed, DataUse use)
      : text_(std::move(text)),
        inputs_(std::move(inputs)),
        seq_(static_cast<std::uint64_t>(data.seq)),
        seed_(seed),
        use_(use) {
    if (use == DataUse::held_out)
      batches_ = Batches::over((text_->size() - 1) / seq_, static_cast<std::uint64_t>(data.batch),
                               data.batches);
  }

  void load(std::uint32_t input, std::uint64_t step, std::uint64_t first, std::uint64_t samples,
            void* to) const override {
    const InputShape& shape = inputs_[input];
    std::int64_t* out = static_cast<std::int64_t*>(to);
    for (std::uint64_t s = 0; s < samples; ++s) {
      const unsigned char* from = text_->data() + window(step, first + s) + (shape.shifted ? 1 : 0);
      // [seq][batch] for an input whose sample dimension is the last one.
      const std::uint64_t stride = shape.outer == 1 ? 1 : samples;
      std::int64_t* const row = out + (shape.outer == 1 ? s * seq_ : s);
      for (std::uint64_t i = 0; i < seq_; ++i) row[i * stride] = from[i];
    }
  }
  Batches batches() const override { return batches_; }
  std::string identity() const override {
    return "bytes, windows of " + std::to_string(seq_) + ", " + std::to_string(text_->size()) +
           " bytes, crc32 " + crc32_text(crc32_of(text_->data(), text_->size()));
  }
  const char* sample_name() const override { return "window"; }

 private:
  std::uint64_t window(std::uint64_t step, std::uint64_t sample) const {
    if (use_ == DataUse::training) {
      return below(
          piper_random_u64(
              piper_stream_key(seed_, PIPER_RANDOM_DATA, step, sample, hash_of("window")), 0),
          text_->size() - seq_);
    }
    return batches_.sample(step, sample) * seq_;
  }

  std::shared_ptr<const Text> text_;
  std::vector<InputShape> inputs_;
  std::uint64_t seq_, seed_;
  DataUse use_;
  Batches batches_ = {};
};

/// Held-out data with the weights of its samples as a further input.
class Weighed final : public StepData {
 public:
  Weighed(std::unique_ptr<StepData> data, std::uint32_t weight, std::uint32_t dtype)
      : data_(std::move(data)), batches_(data_->batches()), weight_(weight), dtype_(dtype) {}

  void load(std::uint32_t input, std::uint64_t step, std::uint64_t first, std::uint64_t samples,
            void* to) const override {
    if (input != weight_) return data_->load(input, step, first, samples, to);
    const std::uint64_t valid = batches_.samples_of(step);
    with_element(dtype_, [&](auto zero) {
      auto* const out = static_cast<decltype(zero)*>(to);
      for (std::uint64_t s = 0; s < samples; ++s)
        out[s] = static_cast<decltype(zero)>(first + s < valid ? 1.0f : 0.0f);
    });
  }
  Batches batches() const override { return batches_; }
  std::string identity() const override { return data_->identity(); }
  const char* sample_name() const override { return data_->sample_name(); }

 private:
  const std::unique_ptr<StepData> data_;
  const Batches batches_;
  const std::uint32_t weight_, dtype_;
};

Failure at(const PiperData& data, std::uint32_t code, std::string message, std::string hint) {
  Failure failure{.code = code, .message = std::move(message), .hint = std::move(hint)};
  failure.place = location_of({}, data.where.place);
  return failure;
}

std::unique_ptr<StepData> open_bytes(const PiperData& data, std::span<const PiperInput> inputs,
                                     std::vector<InputShape> shapes, std::uint64_t seed,
                                     DataUse use, Failure& failure, TextFiles& texts) {
  if (data.seq <= 0 || data.batch <= 0) {
    failure = at(data, kDataMismatch, "`bytes` needs a positive `batch` and `seq`",
                 "write `bytes(\"corpus.txt\", batch: 32, seq: 128)`");
    return nullptr;
  }
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const std::string_view name = inputs[i].name;
    const std::string shown = "`" + std::string(name) + "`";
    if (name != "tokens" && name != "targets") {
      failure = at(data, kDataMismatch, "`bytes` has no values for the input " + shown,
                   "it gives `tokens` and `targets`, the same text one byte later");
      return nullptr;
    }
    if (shapes[i].dtype != PIPER_I64) {
      failure = at(data, kDataMismatch, "the input " + shown + " does not hold integers",
                   "declare it as `i64[batch, seq]`");
      return nullptr;
    }
    if (inputs[i].num_dims != 2 ||
        shapes[i].outer * shapes[i].inner != static_cast<std::uint64_t>(data.seq)) {
      failure = at(data, kDataMismatch,
                   "the input " + shown + " is not a window of `" + std::to_string(data.seq) +
                       "` bytes per sample",
                   "declare it as `i64[batch, seq]`");
      return nullptr;
    }
    shapes[i].shifted = name == "targets";
  }
  Failure found;
  std::shared_ptr<const Text> text = texts.read(data.path ? data.path : "", found);
  if (!text) {
    failure = at(data, found.code, found.message, found.hint);
    return nullptr;
  }
  if (!holds_window(data.path, text->size(), static_cast<std::uint64_t>(data.seq), found)) {
    failure = at(data, found.code, found.message, found.hint);
    return nullptr;
  }
  return std::make_unique<Bytes>(std::move(text), std::move(shapes), data, seed, use);
}

std::unique_ptr<StepData> open_arrays(const PiperData& data, std::span<const PiperInput> inputs,
                                      std::vector<InputShape> shapes, std::uint64_t seed,
                                      DataUse use, Failure& failure, TextFiles& texts) {
  if (data.batch <= 0) {
    failure = at(data, kDataMismatch, "`arrays` needs a positive `batch`",
                 "write `arrays(\"points.csv\", batch: 32)`");
    return nullptr;
  }
  std::vector<TableInput> wanted;
  for (std::size_t i = 0; i < inputs.size(); ++i)
    wanted.push_back({inputs[i].name, shapes[i].outer * shapes[i].inner,
                      shapes[i].dtype == PIPER_I64, wide_dtype(shapes[i].dtype) == PIPER_F32});
  Failure found;
  std::shared_ptr<const Table> table = texts.table(data.path ? data.path : "", wanted, found);
  if (!table) {
    failure = at(data, found.code, found.message, found.hint);
    if (found.place.line > 0) {
      failure.notes.push_back({"the data is read here", failure.place});
      failure.place = found.place;
    }
    return nullptr;
  }
  return std::make_unique<Arrays>(std::move(table), std::move(shapes), data, seed, use);
}

}  // namespace

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
  if (data.kind == 0) return std::make_unique<NoData>();
  TextFiles own;
  if (data.kind == 1)
    return open_bytes(data, inputs, std::move(shapes), seed, use, failure, texts ? *texts : own);
  if (data.kind == 3)
    return open_arrays(data, inputs, std::move(shapes), seed, use, failure, texts ? *texts : own);
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    if (shapes[i].dtype != PIPER_I64 || data.classes > 0) continue;
    failure = at(data, kDataMismatch,
                 "the input `" + std::string(inputs[i].name) +
                     "` holds integers and `synthetic` has no bound for them",
                 "write `synthetic(batch: 32, classes: 10)`");
    return nullptr;
  }
  return std::make_unique<Synthetic>(std::move(shapes), data, seed, use);
}

}  // namespace piper::runtime
