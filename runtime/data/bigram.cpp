#include "runtime/data/bigram.h"

#include <cmath>
#include <limits>
#include <vector>

#include "runtime/data/file_text.h"

namespace piper::runtime {

Bigram::Bigram(std::span<const unsigned char> text)
    : cost_(std::make_unique<std::array<double, 65536>>()) {
  std::vector<std::uint64_t> pairs(65536), firsts(256);
  for (std::size_t i = 1; i < text.size(); ++i) {
    ++pairs[text[i - 1] * 256u + text[i]];
    ++firsts[text[i - 1]];
  }
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    (*cost_)[i] = std::log(static_cast<double>(firsts[i / 256] + 256)) -
                  std::log(static_cast<double>(pairs[i] + 1));
  }
}

double Bigram::loss(std::span<const unsigned char> text) const {
  if (text.size() < 2) return std::numeric_limits<double>::quiet_NaN();
  double sum = 0;
  for (std::size_t i = 1; i < text.size(); ++i) sum += (*cost_)[text[i - 1] * 256u + text[i]];
  return sum / static_cast<double>(text.size() - 1);
}

std::optional<double> bigram_loss(const std::string& train_path, const std::string& held_out_path,
                                  TextFiles& texts, Failure& failure) {
  const auto train = texts.read(train_path, failure);
  if (!train) return std::nullopt;
  const auto held_out = texts.read(held_out_path, failure);
  if (!held_out) return std::nullopt;
  if (held_out->size() < 2) {
    failure = {.code = kDataTooShort,
               .message = "`" + held_out_path + "` has less than two bytes",
               .hint = "give more text"};
    return std::nullopt;
  }
  return Bigram(*train).loss(*held_out);
}

}  // namespace piper::runtime
