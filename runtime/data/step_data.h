#pragma once
// The source of the inputs of a step. Sample i of step s is a function of (seed, s * batch + i), and
// of synthetic data one of (seed, s, i), so neither layout nor timing changes it.
//
//   Failure failure;
//   std::unique_ptr<StepData> data = open_data(job.data, inputs, seed, DataUse::training, failure);
//   if (auto failure = data->load(0, step, first, samples, to)) ...;   // samples first .. first + samples of the step's batch
//
// Held-out data is read once, in order. The last batch may be short; it is padded with its last
// sample, which a program of the job weighs with 0:
//
//   std::unique_ptr<StepData> held_out = open_held_out(job, failure);
//   for (step = 0; step < held_out->batches().taken; ++step) ... held_out->batches().samples_of(step) ...

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "runtime/abi.h"
#include "runtime/failure.h"

namespace piper::runtime {

class TextFiles;

enum class DataUse : std::uint8_t { training, held_out };

/// Held-out data as batches: all of them, or some that are spread evenly.
struct Batches {
  std::uint64_t samples = 0;  // of the data
  std::uint64_t batch = 1;    // samples of a full batch
  std::uint64_t taken = 0;    // number of batches read: steps

  /// `limit` 0: all.
  static Batches over(std::uint64_t samples, std::uint64_t batch, std::int64_t limit);

  std::uint64_t all() const { return (samples + batch - 1) / batch; }
  /// The first sample of a step's batch, and how many samples of the batch are samples of the data.
  std::uint64_t first_of(std::uint64_t step) const { return step % taken * all() / taken * batch; }
  std::uint64_t samples_of(std::uint64_t step) const {
    return std::min(batch, samples - first_of(step));
  }
  /// A position of the batch beyond the last sample repeats that sample.
  std::uint64_t sample(std::uint64_t step, std::uint64_t place) const {
    return first_of(step) + std::min(place, samples_of(step) - 1);
  }
  std::uint64_t samples_taken() const {
    return taken == 0 ? 0 : (taken - 1) * batch + samples_of(taken - 1);
  }
};

class StepData {
 public:
  virtual ~StepData() = default;
  /// Writes samples [first, first + samples) of step `step` of input `input`, dense, in the input's
  /// order of dimensions. Fails, without a location, if files no longer hold the data. Allocates only
  /// for a failure. Called by several threads at once.
  virtual std::optional<Failure> load(std::uint32_t input, std::uint64_t step, std::uint64_t first,
                                      std::uint64_t samples, void* to) const = 0;
  /// The batches of held-out data; none for training, which draws its samples.
  virtual Batches batches() const { return {}; }
  /// The data, the order of its samples in training, and a fingerprint of its contents, whatever the
  /// batch: a run resumes with equal data. Empty for data without samples.
  virtual std::string identity() const { return {}; }
  /// The first places of an integer in the batch of a step: `at token `812` of `ids.bin``. Empty if
  /// it is not in a file, or if the file can no longer be read.
  virtual std::string places_of(std::int64_t, std::uint64_t /*step*/) const { return {}; }
  /// The name of a sample in messages: row, window.
  virtual const char* sample_name() const { return "sample"; }
};

/// Null, with the failure, when the data cannot be read, is too short, or does not fit the inputs.
/// Kind 0 gives data without inputs. bytes, tokens: training draws windows of seq + 1 of them;
/// held_out takes windows side by side, from the start. Data that is in `texts` is not read again.
std::unique_ptr<StepData> open_data(const PiperData& data, std::span<const PiperInput> inputs,
                                    std::uint64_t seed, DataUse use, Failure& failure,
                                    TextFiles* texts = nullptr);

/// The held-out data of a job, with the weights of samples as a further input if its programs have
/// one. Null, with the failure, also if they have none and the last batch is short.
std::unique_ptr<StepData> open_held_out(const PiperJob& job, Failure& failure,
                                        TextFiles* texts = nullptr);

/// The refusal of a short last batch by a program in which samples depend on each other; without a
/// location.
Failure refused_short_batch(const Batches& batches, const char* sample_name);

/// `held-out batch 2 of 3, rows 5 to 8`.
std::string held_out_text(const StepData& data, std::uint64_t step);

}  // namespace piper::runtime
