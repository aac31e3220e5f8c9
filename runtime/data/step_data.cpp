#include "runtime/data/step_data.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <string>
#include <string_view>
#include <vector>

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

/// How many steps go over `things` once, in whole batches; at most `max_steps` (0: no limit).
std::uint64_t steps_over(std::uint64_t things, std::uint64_t batch, std::uint64_t max_steps) {
  const std::uint64_t steps = std::max<std::uint64_t>(1, things / batch);
  return max_steps == 0 ? steps : std::min(steps, max_steps);
}

/// The `number`th of at most `most` things, spread evenly; side by side when all of them are taken. Less than one batch is gone over again.
std::uint64_t spread(std::uint64_t things, std::uint64_t most, std::uint64_t number) {
  const std::uint64_t taken = std::min(things, most);
  return number % taken * things / taken;
}

InputShape shape_of(const PiperInput& input) {
  InputShape shape;
  for (std::uint32_t d = 0; d < input.num_dims; ++d) {
    const std::uint64_t extent = static_cast<std::uint64_t>(input.dims[d]);
    (d < input.sample_dim ? shape.outer : d > input.sample_dim ? shape.inner : shape.batch) *= extent;
  }
  shape.dtype = input.dtype;
  shape.name = hash_of(input.name);
  return shape;
}

class NoData final : public StepData {
 public:
  void load(std::uint32_t, std::uint64_t, std::uint64_t, std::uint64_t, void*) const override {}
  std::uint64_t covering_steps() const override { return 0; }
};

class Synthetic final : public StepData {
 public:
  Synthetic(std::vector<InputShape> inputs, std::uint64_t classes, std::uint64_t seed, DataUse use)
      : inputs_(std::move(inputs)), classes_(classes), seed_(seed), held_out_(use == DataUse::held_out) {
    // Held-out samples are others than those of training.
    for (InputShape& shape : inputs_) shape.name ^= held_out_ ? hash_of("held_out") : 0;
  }

  void load(std::uint32_t input, std::uint64_t step, std::uint64_t first, std::uint64_t samples, void* to) const override {
    const InputShape& shape = inputs_[input];
    for (std::uint64_t s = 0; s < samples; ++s) {
      const piper_random_key key = piper_stream_key(seed_, PIPER_RANDOM_DATA, step, first + s, shape.name);
      for (std::uint64_t o = 0; o < shape.outer; ++o) {
        for (std::uint64_t i = 0; i < shape.inner; ++i) {
          const std::uint64_t at = (o * samples + s) * shape.inner + i, element = o * shape.inner + i;
          switch (static_cast<PiperDType>(shape.dtype)) {
            case PIPER_F32: static_cast<float*>(to)[at] = static_cast<float>(piper_random_normal(key, element)); break;
            case PIPER_F64: static_cast<double*>(to)[at] = piper_random_normal(key, element); break;
            case PIPER_BF16: static_cast<piper_bf16*>(to)[at] = static_cast<float>(piper_random_normal(key, element)); break;
            case PIPER_I64: static_cast<std::int64_t*>(to)[at] = static_cast<std::int64_t>(below(piper_random_u64(key, element), classes_));
          }
        }
      }
    }
  }
  std::uint64_t covering_steps() const override { return held_out_ ? 1 : 0; }

 private:
  std::vector<InputShape> inputs_;
  std::uint64_t classes_, seed_;
  bool held_out_;
};

/// Lines of a table: drawn at random in training, in order on held-out data.
class Arrays final : public StepData {
 public:
  Arrays(std::shared_ptr<const Table> table, std::vector<InputShape> inputs, std::uint64_t batch, std::uint64_t seed, DataUse use, std::uint64_t max_steps)
      : table_(std::move(table)), inputs_(std::move(inputs)), batch_(batch), seed_(seed), use_(use), steps_(steps_over(table_->rows, batch, max_steps)) {}

  void load(std::uint32_t input, std::uint64_t step, std::uint64_t first, std::uint64_t samples, void* to) const override {
    const InputShape& shape = inputs_[input];
    const auto copy = [&](const auto& values, auto* out) {
      for (std::uint64_t s = 0; s < samples; ++s) {
        const auto* const from = values.data() + row(step, first + s) * shape.outer * shape.inner;
        for (std::uint64_t o = 0; o < shape.outer; ++o) {
          for (std::uint64_t i = 0; i < shape.inner; ++i) {
            out[(o * samples + s) * shape.inner + i] = static_cast<std::remove_reference_t<decltype(*out)>>(from[o * shape.inner + i]);
          }
        }
      }
    };
    switch (static_cast<PiperDType>(shape.dtype)) {
      case PIPER_F32: return copy(std::get<std::vector<double>>(table_->values[input]), static_cast<float*>(to));
      case PIPER_F64: return copy(std::get<std::vector<double>>(table_->values[input]), static_cast<double*>(to));
      case PIPER_BF16: return copy(std::get<std::vector<double>>(table_->values[input]), static_cast<piper_bf16*>(to));
      case PIPER_I64: return copy(std::get<std::vector<std::int64_t>>(table_->values[input]), static_cast<std::int64_t*>(to));
    }
  }
  std::uint64_t covering_steps() const override { return use_ == DataUse::held_out ? steps_ : 0; }

 private:
  std::uint64_t row(std::uint64_t step, std::uint64_t sample) const {
    if (use_ == DataUse::training) return below(piper_random_u64(piper_stream_key(seed_, PIPER_RANDOM_DATA, step, sample, hash_of("row")), 0), table_->rows);
    return spread(table_->rows, steps_ * batch_, step * batch_ + sample);
  }

  std::shared_ptr<const Table> table_;
  std::vector<InputShape> inputs_;
  std::uint64_t batch_, seed_;
  DataUse use_;
  std::uint64_t steps_;
};

class Bytes final : public StepData {
 public:
  Bytes(std::shared_ptr<const Text> text, std::vector<InputShape> inputs, std::uint64_t batch, std::uint64_t seq, std::uint64_t seed, DataUse use,
        std::uint64_t max_steps)
      : text_(std::move(text)), inputs_(std::move(inputs)), batch_(batch), seq_(seq), seed_(seed), use_(use) {
    windows_ = (text_->size() - 1) / seq_;
    steps_ = steps_over(windows_, batch_, max_steps);
  }

  void load(std::uint32_t input, std::uint64_t step, std::uint64_t first, std::uint64_t samples, void* to) const override {
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
  std::uint64_t covering_steps() const override { return use_ == DataUse::held_out ? steps_ : 0; }

 private:
  std::uint64_t window(std::uint64_t step, std::uint64_t sample) const {
    if (use_ == DataUse::training) {
      return below(piper_random_u64(piper_stream_key(seed_, PIPER_RANDOM_DATA, step, sample, hash_of("window")), 0), text_->size() - seq_);
    }
    return spread(windows_, steps_ * batch_, step * batch_ + sample) * seq_;
  }

  std::shared_ptr<const Text> text_;
  std::vector<InputShape> inputs_;
  std::uint64_t batch_, seq_, seed_;
  DataUse use_;
  std::uint64_t windows_ = 0, steps_ = 0;
};

Failure at(const PiperData& data, std::uint32_t code, std::string message, std::string hint) {
  Failure failure{.code = code, .message = std::move(message), .hint = std::move(hint)};
  failure.place = place_of({}, data.where.place);
  return failure;
}

std::unique_ptr<StepData> open_bytes(const PiperData& data, std::span<const PiperInput> inputs, std::vector<InputShape> shapes, std::uint64_t seed,
                                     DataUse use, std::uint64_t max_steps, Failure& failure, TextFiles& texts) {
  if (data.seq <= 0 || data.batch <= 0) {
    failure = at(data, kDataMismatch, "`bytes` needs a positive `batch` and `seq`", "write `bytes(\"corpus.txt\", batch: 32, seq: 128)`");
    return nullptr;
  }
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const std::string_view name = inputs[i].name;
    const std::string shown = "`" + std::string(name) + "`";
    if (name != "tokens" && name != "targets") {
      failure = at(data, kDataMismatch, "`bytes` has no values for the input " + shown, "it gives `tokens` and `targets`, the same text one byte later");
      return nullptr;
    }
    if (shapes[i].dtype != PIPER_I64) {
      failure = at(data, kDataMismatch, "the input " + shown + " does not hold integers", "declare it as `i64[batch, seq]`");
      return nullptr;
    }
    if (inputs[i].num_dims != 2 || shapes[i].outer * shapes[i].inner != static_cast<std::uint64_t>(data.seq)) {
      failure = at(data, kDataMismatch, "the input " + shown + " is not a window of `" + std::to_string(data.seq) + "` bytes per sample",
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
  return std::make_unique<Bytes>(std::move(text), std::move(shapes), static_cast<std::uint64_t>(data.batch), static_cast<std::uint64_t>(data.seq),
                                 seed, use, max_steps);
}

std::unique_ptr<StepData> open_arrays(const PiperData& data, std::span<const PiperInput> inputs, std::vector<InputShape> shapes, std::uint64_t seed, DataUse use,
                                      std::uint64_t max_steps, Failure& failure, TextFiles& texts) {
  if (data.batch <= 0) {
    failure = at(data, kDataMismatch, "`arrays` needs a positive `batch`", "write `arrays(\"points.csv\", batch: 32)`");
    return nullptr;
  }
  std::vector<TableInput> wanted;
  for (std::size_t i = 0; i < inputs.size(); ++i) wanted.push_back({inputs[i].name, shapes[i].outer * shapes[i].inner, shapes[i].dtype == PIPER_I64, wide_dtype(shapes[i].dtype) == PIPER_F32});
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
  return std::make_unique<Arrays>(std::move(table), std::move(shapes), static_cast<std::uint64_t>(data.batch), seed, use, max_steps);
}

}  // namespace

std::unique_ptr<StepData> open_data(const PiperData& data, std::span<const PiperInput> inputs, std::uint64_t seed, DataUse use,
                                    std::uint64_t max_steps, Failure& failure, TextFiles* texts) {
  std::vector<InputShape> shapes;
  for (const PiperInput& input : inputs) shapes.push_back(shape_of(input));
  if (data.kind == 0) return std::make_unique<NoData>();
  TextFiles own;
  if (data.kind == 1) return open_bytes(data, inputs, std::move(shapes), seed, use, max_steps, failure, texts ? *texts : own);
  if (data.kind == 3) return open_arrays(data, inputs, std::move(shapes), seed, use, max_steps, failure, texts ? *texts : own);
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    if (shapes[i].dtype != PIPER_I64 || data.classes > 0) continue;
    failure = at(data, kDataMismatch, "the input `" + std::string(inputs[i].name) + "` holds integers and `synthetic` was not told their bound",
                 "write `synthetic(batch: 32, classes: 10)`");
    return nullptr;
  }
  return std::make_unique<Synthetic>(std::move(shapes), static_cast<std::uint64_t>(std::max<std::int64_t>(data.classes, 1)), seed, use);
}

}  // namespace piper::runtime
