// `arrays`: the rows of a file, each input from the array or the columns of its name.

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/data/array_file.h"
#include "runtime/data/data_source.h"
#include "runtime/data/file_text.h"
#include "runtime/data/sample_order.h"
#include "runtime/dtypes.h"

namespace piper::runtime {
namespace {

/// Rows: drawn in training, in order on held-out data.
class Arrays final : public StepData {
 public:
  Arrays(std::shared_ptr<const ArrayRows> rows, std::vector<InputShape> inputs,
         const PiperData& data, std::uint64_t seed, DataUse use)
      : rows_(std::move(rows)),
        inputs_(std::move(inputs)),
        use_(use),
        batch_(static_cast<std::uint64_t>(data.batch)),
        sampling_(static_cast<PiperSampling>(data.sampling)),
        order_(sampling_, rows_->rows, batch_, seed, hash_of("row")) {
    if (use == DataUse::held_out) batches_ = Batches::over(rows_->rows, batch_, data.batches);
  }

  std::optional<Failure> load(std::uint32_t input, std::uint64_t step, std::uint64_t first,
                              std::uint64_t samples, void* to) const override {
    const InputShape& shape = inputs_[input];
    const std::uint64_t row_bytes = shape.inner * element_bytes(shape.dtype);
    for (std::uint64_t s = 0; s < samples; ++s) {
      const RowTarget target{.inner = shape.inner,
                             .stride = samples * shape.inner,
                             .dtype = shape.dtype,
                             .to = static_cast<unsigned char*>(to) + s * row_bytes};
      if (auto failure = rows_->read(input, row(step, first + s), target)) return failure;
    }
    for (std::uint64_t s = 0; rows_->columns[input].file && s < samples; ++s)
      rows_->read_ahead(input, row(step + 1, first + s));
    return std::nullopt;
  }
  Batches batches() const override { return batches_; }
  std::string identity() const override {
    const std::string order =
        use_ == DataUse::training ? std::string(" ") + order_text(sampling_) : "";
    return "arrays" + order + ", " + rows_->fingerprint_text();
  }
  const char* sample_name() const override { return "row"; }
  std::string places_of(std::int64_t value, std::uint64_t step) const override {
    std::string places;
    for (std::uint32_t input = 0; input < inputs_.size(); ++input) {
      if (inputs_[input].dtype != PIPER_I64) continue;
      const auto found = row_with(value, input, step);
      if (found)
        places += (places.empty() ? "in row `" : ", in row `") + std::to_string(*found) + "` of `" +
                  rows_->columns[input].name + '`';
    }
    return places.empty() ? places : places + ", counted from 0, of `" + rows_->path + '`';
  }

 private:
  std::optional<std::uint64_t> row_with(std::int64_t value, std::uint32_t input,
                                        std::uint64_t step) const {
    std::vector<std::int64_t> numbers(inputs_[input].outer * inputs_[input].inner);
    const RowTarget target{.inner = numbers.size(), .dtype = PIPER_I64, .to = numbers.data()};
    const std::uint64_t samples = use_ == DataUse::training ? batch_ : batches_.samples_of(step);
    for (std::uint64_t s = 0; s < samples; ++s) {
      const std::uint64_t at = row(step, s);
      if (rows_->read(input, at, target)) return std::nullopt;
      if (std::find(numbers.begin(), numbers.end(), value) != numbers.end()) return at;
    }
    return std::nullopt;
  }

  std::uint64_t row(std::uint64_t step, std::uint64_t sample) const {
    return use_ == DataUse::training ? order_.draw(step, sample).sample
                                     : batches_.sample(step, sample);
  }

  std::shared_ptr<const ArrayRows> rows_;
  std::vector<InputShape> inputs_;
  DataUse use_;
  std::uint64_t batch_;
  PiperSampling sampling_;
  SampleOrder order_;
  Batches batches_ = {};
};

}  // namespace

std::unique_ptr<StepData> open_arrays(const PiperData& data, std::span<const PiperInput> inputs,
                                      std::vector<InputShape> shapes, std::uint64_t seed,
                                      DataUse use, Failure& failure, TextFiles& texts) {
  if (data.batch <= 0) {
    failure = at_data(data, kDataMismatch, "`arrays` needs a positive `batch`",
                      "write `arrays(\"points.csv\", batch: 32)`");
    return nullptr;
  }
  std::vector<TableInput> wanted;
  for (std::size_t i = 0; i < inputs.size(); ++i)
    wanted.push_back({inputs[i].name, shapes[i].outer * shapes[i].inner,
                      shapes[i].dtype == PIPER_I64, wide_dtype(shapes[i].dtype) == PIPER_F32});
  Failure found;
  auto rows = texts.arrays(data.path != nullptr ? data.path : "", wanted, found);
  if (rows) return std::make_unique<Arrays>(std::move(rows), std::move(shapes), data, seed, use);
  failure = at_data(data, found.code, found.message, found.hint);
  if (found.place.line > 0) {
    failure.notes.push_back({"the data is read here", failure.place});
    failure.place = found.place;
  }
  return nullptr;
}

}  // namespace piper::runtime
