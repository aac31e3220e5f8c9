#include "runtime/data/sample_order.h"

#include <algorithm>
#include <bit>
#include <string_view>

namespace piper::runtime {
namespace {

/// Even, so that the two parts of a number have their first widths again.
constexpr std::uint32_t kRounds = 8;

std::uint64_t hash_of(std::string_view name) { return piper_name_hash(name.data(), name.size()); }

std::uint64_t mask_of(std::uint32_t bits) { return (std::uint64_t{1} << bits) - 1; }

}  // namespace

std::uint64_t below(std::uint64_t bits, std::uint64_t bound) {
  __extension__ using Wide = unsigned __int128;
  return static_cast<std::uint64_t>((static_cast<Wide>(bits) * bound) >> 64);
}

Permutation::Permutation(std::uint64_t size, piper_random_key key) : size_(size), key_(key) {
  const auto bits = static_cast<std::uint32_t>(std::bit_width(size - 1));
  high_bits_ = bits / 2;
  low_bits_ = bits - high_bits_;
}

std::uint64_t Permutation::pass(std::uint64_t value) const {
  std::uint32_t high_bits = high_bits_, low_bits = low_bits_;
  std::uint64_t high = value >> low_bits, low = value & mask_of(low_bits);
  for (std::uint32_t round = 0; round < kRounds; ++round) {
    const piper_philox random = piper_philox_4x32(
        static_cast<piper_u32>(low), static_cast<piper_u32>(low >> 32), round, 0, key_);
    const std::uint64_t mixed = random.word[0] | (std::uint64_t{random.word[1]} << 32);
    const std::uint64_t next = (high ^ mixed) & mask_of(high_bits);
    high = low;
    low = next;
    std::swap(high_bits, low_bits);
  }
  return (high << low_bits) | low;
}

std::uint64_t Permutation::at(std::uint64_t position) const {
  if (size_ == 1) return 0;
  std::uint64_t value = pass(position);
  while (value >= size_) value = pass(value);
  return value;
}

const char* order_text(PiperSampling sampling) {
  switch (sampling) {
    case PIPER_REPLACEMENT: return "with replacement";
    case PIPER_EPOCH: return "in epochs";
  }
  return "in an unknown order";
}

SampleOrder::SampleOrder(PiperSampling sampling, std::uint64_t samples, std::uint64_t batch,
                         std::uint64_t seed, std::uint64_t name)
    : sampling_(sampling), samples_(samples), batch_(batch), seed_(seed), name_(name) {}

SampleOrder::Draw SampleOrder::draw(std::uint64_t step, std::uint64_t position) const {
  switch (sampling_) {
    case PIPER_REPLACEMENT: return {0, below(bits_of_sample(step, position), samples_)};
    case PIPER_EPOCH: break;
  }
  const std::uint64_t global = step * batch_ + position, epoch = global / samples_;
  const piper_random_key key =
      piper_stream_key(seed_, PIPER_RANDOM_DATA, epoch, 0, name_ ^ hash_of("epoch"));
  return {epoch, Permutation(samples_, key).at(global % samples_)};
}

std::uint64_t SampleOrder::bits_of_sample(std::uint64_t step, std::uint64_t position) const {
  const std::uint64_t global = step * batch_ + position;
  return piper_random_u64(piper_stream_key(seed_, PIPER_RANDOM_DATA, global, 0, name_), 0);
}

std::uint64_t SampleOrder::bits_of_epoch(std::uint64_t epoch) const {
  return piper_random_u64(
      piper_stream_key(seed_, PIPER_RANDOM_DATA, epoch, 0, name_ ^ hash_of("phase")), 0);
}

WindowOrder::WindowOrder(PiperSampling sampling, std::uint64_t tokens, std::uint64_t seq,
                         std::uint64_t batch, std::uint64_t seed)
    : sampling_(sampling),
      tokens_(tokens),
      seq_(seq),
      windows_((tokens - 1) / seq),
      order_(sampling, windows_, batch, seed, hash_of("window")) {}

std::uint64_t WindowOrder::first_token(std::uint64_t step, std::uint64_t position) const {
  const std::uint64_t last = tokens_ - 1 - seq_;  // the first token of the last window
  switch (sampling_) {
    case PIPER_REPLACEMENT: return below(order_.bits_of_sample(step, position), last + 1);
    case PIPER_EPOCH: break;
  }
  const SampleOrder::Draw draw = order_.draw(step, position);
  const std::uint64_t phase = below(order_.bits_of_epoch(draw.epoch), seq_),
                      first = phase + draw.sample * seq_;
  if (first <= last) return first;
  const std::uint64_t unread_behind = tokens_ - 1 - first;
  return phase > unread_behind ? 0 : last;
}

}  // namespace piper::runtime
