// `bytes` and `tokens`: inputs `tokens` and `targets`, the same text one position later.

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "runtime/crc32.h"
#include "runtime/data/data_source.h"
#include "runtime/data/file_text.h"
#include "runtime/data/sample_order.h"
#include "runtime/data/token_file.h"

namespace piper::runtime {
namespace {

/// Windows of a text of ids: drawn in training, side by side on held-out data.
class TextWindows : public StepData {
 public:
  TextWindows(std::uint64_t size, std::vector<InputShape> inputs, std::vector<bool> shifted,
              const PiperData& data, std::uint64_t seed, DataUse use)
      : inputs_(std::move(inputs)),
        shifted_(std::move(shifted)),
        seq_(static_cast<std::uint64_t>(data.seq)),
        use_(use),
        batch_(static_cast<std::uint64_t>(data.batch)),
        sampling_(static_cast<PiperSampling>(data.sampling)),
        order_(sampling_, size, seq_, batch_, seed) {
    if (use == DataUse::held_out) batches_ = Batches::over(order_.windows(), batch_, data.batches);
  }

  std::optional<Failure> load(std::uint32_t input, std::uint64_t step, std::uint64_t first,
                              std::uint64_t samples, void* to) const override {
    const InputShape& shape = inputs_[input];
    const std::uint64_t shift = shifted_[input] ? 1 : 0;
    auto* const out = static_cast<std::int64_t*>(to);
    // [seq][batch] for an input whose sample dimension is the last one.
    const std::uint64_t stride = shape.outer == 1 ? 1 : samples;
    for (std::uint64_t s = 0; s < samples; ++s) {
      if (auto failure = read(window(step, first + s) + shift, stride,
                              out + (shape.outer == 1 ? s * seq_ : s)))
        return failure;
    }
    for (std::uint64_t s = 0; reads_files() && s < samples; ++s)
      read_ahead(window(step + 1, first + s) + shift);
    return std::nullopt;
  }
  Batches batches() const override { return batches_; }
  const char* sample_name() const override { return "window"; }
  std::string places_of(std::int64_t value, std::uint64_t step) const override {
    std::vector<std::int64_t> ids(seq_);
    const std::uint64_t samples = use_ == DataUse::training ? batch_ : batches_.samples_of(step);
    for (std::uint64_t s = 0; s < samples; ++s) {
      for (const std::uint64_t shift : {0, 1}) {
        const std::uint64_t first = window(step, s) + shift;
        if (read(first, 1, ids.data())) return {};
        const auto found = std::find(ids.begin(), ids.end(), value);
        if (found != ids.end())
          return place_text(first + static_cast<std::uint64_t>(found - ids.begin()));
      }
    }
    return {};
  }

 protected:
  std::uint64_t seq() const { return seq_; }
  /// `windows of 128 in epochs`; without the order for held-out data.
  std::string windows_text() const {
    const std::string order =
        use_ == DataUse::training ? std::string(" ") + order_text(sampling_) : "";
    return "windows of " + std::to_string(seq_) + order;
  }

 private:
  /// Writes `seq` ids from `first` on to to[0], to[stride], and so on.
  virtual std::optional<Failure> read(std::uint64_t first, std::uint64_t stride,
                                      std::int64_t* to) const = 0;
  /// `at byte `12` of `corpus.txt``.
  virtual std::string place_text(std::uint64_t position) const = 0;
  virtual bool reads_files() const { return false; }
  /// For a source that reads files: asks the system to read `seq` ids into its cache.
  virtual void read_ahead(std::uint64_t) const {}

  std::uint64_t window(std::uint64_t step, std::uint64_t sample) const {
    return use_ == DataUse::training ? order_.first_token(step, sample)
                                     : batches_.sample(step, sample) * seq_;
  }

  std::vector<InputShape> inputs_;
  std::vector<bool> shifted_;  // by input: `targets`
  std::uint64_t seq_;
  DataUse use_;
  std::uint64_t batch_;
  PiperSampling sampling_;
  WindowOrder order_;
  Batches batches_ = {};
};

class Bytes final : public TextWindows {
 public:
  Bytes(std::shared_ptr<const Text> text, std::vector<InputShape> inputs, std::vector<bool> shifted,
        const PiperData& data, std::uint64_t seed, DataUse use)
      : TextWindows(text->size(), std::move(inputs), std::move(shifted), data, seed, use),
        text_(std::move(text)),
        path_(data.path) {}

  std::string identity() const override {
    return "bytes, " + windows_text() + ", " + std::to_string(text_->size()) + " bytes, crc32 " +
           crc32_text(crc32_of(text_->data(), text_->size()));
  }

 private:
  std::optional<Failure> read(std::uint64_t first, std::uint64_t stride,
                              std::int64_t* to) const override {
    const unsigned char* const from = text_->data() + first;
    for (std::uint64_t i = 0; i < seq(); ++i) to[i * stride] = from[i];
    return std::nullopt;
  }
  std::string place_text(std::uint64_t position) const override {
    return "at byte `" + std::to_string(position) + "` of `" + path_ + '`';
  }

  std::shared_ptr<const Text> text_;
  const std::string path_;
};

class Tokens final : public TextWindows {
 public:
  Tokens(std::shared_ptr<const TokenFile> tokens, std::vector<InputShape> inputs,
         std::vector<bool> shifted, const PiperData& data, std::uint64_t seed, DataUse use)
      : TextWindows(tokens->size(), std::move(inputs), std::move(shifted), data, seed, use),
        tokens_(std::move(tokens)) {}

  std::string identity() const override {
    return "tokens, " + windows_text() + ", " + tokens_->fingerprint_text();
  }

 private:
  std::optional<Failure> read(std::uint64_t first, std::uint64_t stride,
                              std::int64_t* to) const override {
    return tokens_->read(first, seq(), stride, to);
  }
  std::string place_text(std::uint64_t position) const override {
    const TokenFile::Position place = tokens_->position(position);
    return "at token `" + std::to_string(place.token) + "` of `" + place.path + '`';
  }
  bool reads_files() const override { return true; }
  void read_ahead(std::uint64_t first) const override { tokens_->read_ahead(first, seq()); }

  std::shared_ptr<const TokenFile> tokens_;
};

/// Whether a text gives the inputs of a model: `tokens` and `targets`, integers, one window per
/// sample.
bool inputs_fit(const PiperData& data, std::span<const PiperInput> inputs,
                std::span<const InputShape> shapes, Failure& failure) {
  const bool bytes = data.kind == PIPER_BYTES;
  const std::string source = bytes ? "`bytes`" : "`tokens`";
  const auto refuse = [&](std::string message, std::string hint) {
    failure = at_data(data, kDataMismatch, std::move(message), std::move(hint));
    return false;
  };
  if (data.seq <= 0 || data.batch <= 0) {
    return refuse(source + " needs a positive `batch` and `seq`",
                  bytes ? "write `bytes(\"corpus.txt\", batch: 32, seq: 128)`"
                        : "write `tokens(\"corpus.bin\", batch: 32, seq: 128)`");
  }
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const std::string_view name = inputs[i].name;
    const std::string shown = "`" + std::string(name) + "`";
    if (name != "tokens" && name != "targets") {
      return refuse(source + " has no values for the input " + shown,
                    std::string("it gives `tokens` and `targets`, the same text one ") +
                        (bytes ? "byte" : "token") + " later");
    }
    if (shapes[i].dtype != PIPER_I64) {
      return refuse("the input " + shown + " does not hold integers",
                    "declare it as `i64[batch, seq]`");
    }
    if (inputs[i].num_dims != 2 ||
        shapes[i].outer * shapes[i].inner != static_cast<std::uint64_t>(data.seq)) {
      return refuse("the input " + shown + " is not a window of `" + std::to_string(data.seq) +
                        (bytes ? "` bytes" : "` tokens") + " per sample",
                    "declare it as `i64[batch, seq]`");
    }
  }
  return true;
}

}  // namespace

std::unique_ptr<StepData> open_windows(const PiperData& data, std::span<const PiperInput> inputs,
                                       std::vector<InputShape> shapes, std::uint64_t seed,
                                       DataUse use, Failure& failure, TextFiles& texts) {
  if (!inputs_fit(data, inputs, shapes, failure)) return nullptr;
  std::vector<bool> shifted;
  for (const PiperInput& input : inputs)
    shifted.push_back(std::string_view(input.name) == "targets");
  const std::string path = data.path != nullptr ? data.path : "";
  const auto seq = static_cast<std::uint64_t>(data.seq);
  Failure found;
  if (data.kind == PIPER_BYTES) {
    auto text = texts.read(path, found);
    if (text && holds_window(path, text->size(), seq, found))
      return std::make_unique<Bytes>(std::move(text), std::move(shapes), std::move(shifted), data,
                                     seed, use);
  } else {
    auto tokens = texts.tokens(path, token_type_of(data.token_type), found);
    if (tokens && holds_window(path, tokens->size(), seq, found, "token"))
      return std::make_unique<Tokens>(std::move(tokens), std::move(shapes), std::move(shifted),
                                      data, seed, use);
  }
  failure = at_data(data, found.code, found.message, found.hint);
  return nullptr;
}

}  // namespace piper::runtime
