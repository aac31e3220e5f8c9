#include "ir/orders/search/timing.h"

#include <algorithm>

namespace piper::orders {

using Track = SearchProblem::Track;

Timing::Timing(const SearchProblem& problem) : problem_(problem) {
  const std::span<const Track> tracks = problem.tracks();
  const std::size_t codes = tracks.size() * kTrackPasses;
  input_.resize(codes);
  reader_.assign(codes, SearchProblem::kNone);
  done_.resize(codes);
  position_.resize(codes);
  first_.resize(codes);
  std::size_t operations = 0;
  for (std::uint32_t number = 0; number < tracks.size(); ++number) {
    const Track& track = tracks[number];
    const Code code = kTrackPasses * number;
    if (track.before != SearchProblem::kNone) {
      input_[code + kTrackF] = {kTrackPasses * track.before + kTrackF,
                                problem.sent(track.before, number)};
      reader_[input_[code + kTrackF].code] = track.rank;
    }
    if (track.after != SearchProblem::kNone) {
      input_[code + kTrackB] = {kTrackPasses * track.after + kTrackB,
                                problem.sent(track.after, number)};
      reader_[input_[code + kTrackB].code] = track.rank;
    }
    for (std::uint32_t pass = 0; pass < kTrackPasses; ++pass) {
      first_[code + pass] = operations;
      position_[code + pass].resize(track.count);
      operations += track.count;
    }
  }
  end_.resize(operations);
  at_.resize(problem.ranks());
  waits_for_.resize(problem.ranks());
  starts_.resize(problem.ranks());
  for (std::uint32_t rank = 0; rank < problem.ranks(); ++rank) {
    std::size_t length = 0;
    for (const std::uint32_t track : problem.tracks_on(rank))
      length += std::size_t{tracks[track].count} * kTrackPasses;
    starts_[rank].resize(length);
  }
}

void Timing::advance(const CodeLists& lists, std::uint32_t rank) {
  Rank& at = at_[rank];
  const std::vector<Code>& list = lists[rank];
  waits_for_[rank] = SearchProblem::kNone;
  while (at.next < list.size()) {
    const Code code = list[at.next];
    const std::uint32_t occurrence = done_[code];
    double start = at.time;
    bool waited = false;
    if (const Input& input = input_[code]; input.code != SearchProblem::kNone) {
      if (done_[input.code] <= occurrence) {
        waits_for_[rank] = input.code;
        return;
      }
      const double arrival = end_[first_[input.code] + occurrence] + input.delay;
      waited = arrival > start;
      if (waited) start = arrival;
    }
    if (at.next == 0) at.first_start = start;
    starts_[rank][at.next] = {start, waited};
    position_[code][occurrence] = at.next;
    at.time = start + problem_.seconds(code);
    end_[first_[code] + occurrence] = at.time;
    done_[code] = occurrence + 1;
    ++at.next;
    ++ran_;
    const std::uint32_t reader = reader_[code];
    if (reader != SearchProblem::kNone && reader != rank && waits_for_[reader] == code) {
      waits_for_[reader] = SearchProblem::kNone;
      open_.push_back(reader);
    }
  }
}

std::optional<Score> Timing::run(const CodeLists& lists) {
  std::fill(done_.begin(), done_.end(), 0);
  std::fill(waits_for_.begin(), waits_for_.end(), SearchProblem::kNone);
  ran_ = 0;
  open_.clear();
  for (std::uint32_t rank = problem_.ranks(); rank-- > 0;) {
    at_[rank] = {};
    open_.push_back(rank);
  }
  while (!open_.empty()) {
    const std::uint32_t rank = open_.back();
    open_.pop_back();
    advance(lists, rank);
  }
  if (ran_ < problem_.operations()) return std::nullopt;
  Score score;
  const bool of_span = problem_.rule().minimize == Objective::span;
  for (const Rank& at : at_) {
    const double value = at.time - (of_span ? at.first_start : 0);
    score.value = std::max(score.value, value);
    score.mean += value;
  }
  score.mean /= static_cast<double>(at_.size());
  return score;
}

const std::vector<Timing::Place>& Timing::critical(const CodeLists& lists) {
  critical_.clear();
  const bool of_span = problem_.rule().minimize == Objective::span;
  std::uint32_t rank = 0;
  double largest = -1;
  for (std::uint32_t r = 0; r < at_.size(); ++r) {
    const double value = at_[r].time - (of_span ? at_[r].first_start : 0);
    if (value > largest) {
      largest = value;
      rank = r;
    }
  }
  Place place{rank, static_cast<std::uint32_t>(lists[rank].size())};
  if (place.position == 0) return critical_;
  --place.position;
  for (;;) {
    critical_.push_back(place);
    const auto [start, waited] = starts_[place.rank][place.position];
    if (!waited) {
      if (place.position == 0) break;
      --place.position;
      continue;
    }
    const Code code = lists[place.rank][place.position];
    const auto& positions = position_[code];
    const auto found = std::lower_bound(positions.begin(), positions.end(), place.position);
    const auto occurrence = static_cast<std::size_t>(found - positions.begin());
    const Code from = input_[code].code;
    place = {problem_.tracks()[from / kTrackPasses].rank, position_[from][occurrence]};
  }
  return critical_;
}

}  // namespace piper::orders
