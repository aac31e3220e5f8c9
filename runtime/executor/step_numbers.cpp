#include "runtime/executor/step_numbers.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "runtime/executor/packed.h"

namespace piper::runtime {

namespace {

/// Sent in place of a list of subjects.
const std::string kNotKnown = "?";

std::string key(const char* what, Phase phase, std::uint32_t rank) {
  return std::string(what) + (phase == Phase::evaluation ? ".held_out." : ".") +
         std::to_string(rank);
}

}  // namespace

std::optional<Failure> StepNumbers::agree(Phase phase,
                                          const std::optional<std::vector<std::uint32_t>>& own) {
  PhaseNumbers& of = of_[static_cast<std::size_t>(phase)];
  const Launch& launch = group_.launch();
  if (launch.rank != 0)
    group_.set(key("reports", phase, launch.rank), own ? packed(*own) : kNotKnown);
  if (launch.rank == 0) {
    std::set<std::uint32_t> known, senders;
    if (own) known.insert(own->begin(), own->end());
    for (std::uint32_t rank = 1; rank < launch.world; ++rank) {
      const auto found = group_.get(key("reports", phase, rank));
      if (!found) return group_.failure();
      if (*found == kNotKnown) {
        senders.insert(rank);
        continue;
      }
      for (const std::uint32_t subject : unpacked<std::uint32_t>(*found)) {
        if (known.insert(subject).second) senders.insert(rank);
      }
    }
    of.from.assign(senders.begin(), senders.end());
    of.taken.assign(of.from.size(), 0);
    for (std::size_t i = 0; i < of.from.size(); ++i)
      of.slots.emplace_back(std::make_unique<ReportSlots>())->prepare(job_);
    group_.set(key("senders", phase, 0), packed(of.from));
    return std::nullopt;
  }
  const auto found = group_.get(key("senders", phase, 0));
  if (!found) return group_.failure();
  const std::vector<std::uint32_t> senders = unpacked<std::uint32_t>(*found);
  of.sends = std::find(senders.begin(), senders.end(), launch.rank) != senders.end();
  return std::nullopt;
}

void StepNumbers::send(Phase phase, std::uint64_t number, std::uint64_t step,
                       std::span<const ReportSlots* const> ranks) {
  if (!of_[static_cast<std::size_t>(phase)].sends) return;
  const std::uint64_t slot = step % kReportSlots;
  const auto first_with = [&](const auto& reports) {
    const auto found =
        std::ranges::find_if(ranks, [&](const ReportSlots* rank) { return reports(*rank); });
    return found == ranks.end() ? ranks.front() : *found;
  };
  // Per loss the number of values, and the values; then whether there is a norm, and the norm.
  std::vector<double> values;
  for (std::uint32_t loss = 0; loss < ranks.front()->num_losses; ++loss) {
    const std::uint64_t row = slot * ranks.front()->num_losses + loss;
    const ReportSlots& slots =
        *first_with([&](const ReportSlots& rank) { return rank.counts[row] > 0; });
    values.push_back(slots.counts[row]);
    values.insert(values.end(), slots.values.get() + row * slots.capacity,
                  slots.values.get() + row * slots.capacity + slots.counts[row]);
  }
  const ReportSlots& slots =
      *first_with([&](const ReportSlots& rank) { return rank.has_norm[slot] != 0; });
  values.push_back(slots.has_norm[slot]);
  values.push_back(slots.has_norm[slot] != 0 ? slots.norms[slot] : 0);
  group_.send_report(number, packed(values));
}

/// False if the values are not those of a step.
bool StepNumbers::keep_values(Phase phase, ReportSlots& slots, const std::vector<double>& values,
                              std::uint64_t step) const {
  std::size_t at = 0;
  for (std::uint32_t loss = 0; loss < slots.num_losses; ++loss) {
    if (at == values.size() ||
        !(values[at] >= 0 && values[at] <= static_cast<double>(values.size())))
      return false;
    const auto count = static_cast<std::uint32_t>(values[at++]);
    if (count > values.size() - at ||
        (count > 0 && slots.keep(job_, phase, step, step, loss, values.data() + at, count)))
      return false;
    at += count;
  }
  if (values.size() - at != 2) return false;
  return values[at] == 0 ||
         !slots.keep(job_, phase, step, step, PIPER_NORM, values.data() + at + 1, 1);
}

bool StepNumbers::take(Phase phase, std::uint64_t number, std::uint64_t step) {
  PhaseNumbers& of = of_[static_cast<std::size_t>(phase)];
  bool all = true;
  for (std::size_t i = 0; i < of.from.size(); ++i) {
    if (of.taken[i] == number + 1) continue;
    const auto found = group_.take_report(of.from[i], number);
    if (!found) {
      all = false;
      continue;
    }
    of.taken[i] = number + 1;
    ReportSlots& slots = *of.slots[i];
    slots.clear(step);
    // They were finite at the sender.
    if (!keep_values(phase, slots, unpacked<double>(*found), step)) {
      group_.fail_message(of.from[i], "numbers of a step that do not fit");
      return false;
    }
  }
  return all;
}

}  // namespace piper::runtime
