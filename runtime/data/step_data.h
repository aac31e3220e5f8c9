#pragma once
// Where the inputs of a step come from. Sample i of step s is a function of (seed, s, i) alone, so neither layout nor timing changes it.
//
//   Failure failure;
//   std::unique_ptr<StepData> data = open_data(job.data, inputs, seed, DataUse::training, failure);
//   data->load(0, step, first, samples, to);   // samples first .. first + samples of the step's batch
//
// Held-out data is gone over once, in order. The last batch may be short; it is filled up with its last sample, which a program of the job weighs with 0:
//
//   std::unique_ptr<StepData> held_out = open_held_out(job, failure);
//   for (step = 0; step < held_out->batches().taken; ++step) ... held_out->batches().samples_of(step) ...

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "runtime/abi.h"
#include "runtime/failure.h"

namespace piper::runtime {

class TextFiles;

enum class DataUse : std::uint8_t { training, held_out };

/// Held-out data as batches: all of them, or a part that is spread evenly.
struct Batches {
  std::uint64_t samples = 0;  // of the data
  std::uint64_t batch = 1;    // samples of a whole batch
  std::uint64_t taken = 0;    // batches that are taken: steps

  /// `limit` 0: all.
  static Batches over(std::uint64_t samples, std::uint64_t batch, std::int64_t limit);

  std::uint64_t all() const { return (samples + batch - 1) / batch; }
  /// The first sample of a step's batch, and how many of the batch are samples of the data.
  std::uint64_t first_of(std::uint64_t step) const { return step % taken * all() / taken * batch; }
  std::uint64_t samples_of(std::uint64_t step) const { return std::min(batch, samples - first_of(step)); }
  /// A place in the batch that no sample is left for has the last one.
  std::uint64_t sample(std::uint64_t step, std::uint64_t place) const { return first_of(step) + std::min(place, samples_of(step) - 1); }
  std::uint64_t samples_taken() const { return taken == 0 ? 0 : (taken - 1) * batch + samples_of(taken - 1); }
};

class StepData {
 public:
  virtual ~StepData() = default;
  /// Writes samples [first, first + samples) of step `step` of input `input`, dense, in the input's order of dimensions. Never allocates.
  virtual void load(std::uint32_t input, std::uint64_t step, std::uint64_t first, std::uint64_t samples, void* to) const = 0;
  /// Of held-out data; none are taken of what training draws.
  virtual Batches batches() const { return {}; }
  /// What a sample is called: row, window.
  virtual const char* sample_name() const { return "sample"; }
};

/// Null, with the failure, when the data cannot be read, is too short, or does not fit the inputs. Kind 0 gives data without inputs.
/// bytes: training draws windows of seq + 1 bytes at random; held_out takes windows side by side, from the start. Texts that `texts` has are not read again.
std::unique_ptr<StepData> open_data(const PiperData& data, std::span<const PiperInput> inputs, std::uint64_t seed, DataUse use, Failure& failure, TextFiles* texts = nullptr);

/// The held-out data of a job, with the weights of samples as a further input where its programs have one. Null, with the failure, also where they have none and the last batch is short.
std::unique_ptr<StepData> open_held_out(const PiperJob& job, Failure& failure, TextFiles* texts = nullptr);

/// The refusal of a short last batch by a program in which samples depend on each other; without a place.
Failure refused_short_batch(const Batches& batches, const char* sample_name);

/// `held-out batch 2 of 3, rows 5 to 8`.
std::string held_out_text(const StepData& data, std::uint64_t step);

}  // namespace piper::runtime
