#include "ir/orders/search/starts.h"

#include <algorithm>
#include <array>
#include <utility>

#include "ir/orders/greedy.h"

namespace piper::orders {

namespace {

/// The lists of one rank: warm-up, then one forward and one backward in turn. With a split backward
/// weight gradients follow from the backward `lag` on, oldest first.
std::vector<Code> alternate(std::span<const Code> forwards, std::span<const Code> backwards,
                            std::size_t warm, bool split, std::size_t lag) {
  std::vector<Code> list;
  std::size_t next = std::min(warm, forwards.size()), oldest = 0;
  list.assign(forwards.begin(), forwards.begin() + static_cast<std::ptrdiff_t>(next));
  for (std::size_t k = 0; k < backwards.size(); ++k) {
    if (next < forwards.size()) list.push_back(forwards[next++]);
    list.push_back(backwards[k]);
    if (split && k >= lag) list.push_back(backwards[oldest++] + kTrackW - kTrackB);
  }
  while (split && oldest < backwards.size())
    list.push_back(backwards[oldest++] + kTrackW - kTrackB);
  return list;
}

/// The forwards or backwards of a rank in groups of `group` instances.
std::vector<Code> grouped(const SearchProblem& problem, std::uint32_t rank, std::uint32_t m,
                          std::uint32_t group, TrackPass pass) {
  std::vector<std::uint32_t> tracks(problem.tracks_on(rank).begin(), problem.tracks_on(rank).end());
  if (pass == kTrackB) std::reverse(tracks.begin(), tracks.end());
  std::vector<Code> codes;
  for (std::uint32_t first = 0; first < m; first += group) {
    for (const std::uint32_t track : tracks)
      codes.insert(codes.end(), std::min(group, m - first), kTrackPasses * track + pass);
  }
  return codes;
}

/// ZB-V: each rank's phases over the stage out (a) and the stage back (b).
std::vector<Code> folded_phases(std::uint32_t a, std::uint32_t b, std::uint32_t p, std::uint32_t r,
                                std::uint32_t m) {
  std::vector<Code> list;
  std::array<std::uint32_t, 2 * kTrackPasses> run{};
  const std::uint32_t n = std::max(m, 2 * p - 1);
  // Operations of instances from m on are dropped.
  const auto add = [&](bool back, TrackPass pass) {
    if (run[(back ? kTrackPasses : kTrackF) + pass]++ < m)
      list.push_back(kTrackPasses * (back ? b : a) + pass);
  };
  const auto left = [&](bool back, TrackPass pass) {
    return run[(back ? kTrackPasses : kTrackF) + pass] < n;
  };
  for (std::uint32_t i = 0; i < 2 * (p - r) - 1; ++i) add(false, kTrackF);
  for (std::uint32_t i = 0; i < r; ++i) add(true, kTrackF), add(false, kTrackF);
  for (std::uint32_t i = 0; i < p - r; ++i)
    add(true, kTrackF), add(true, kTrackB), add(true, kTrackW);
  while (left(true, kTrackF)) {
    if (left(false, kTrackF)) add(false, kTrackF);
    add(false, kTrackB), add(false, kTrackW);
    add(true, kTrackF), add(true, kTrackB), add(true, kTrackW);
  }
  for (std::uint32_t i = 0; i < r; ++i) add(false, kTrackB), add(true, kTrackB);
  for (std::uint32_t i = 0; i < p - r; ++i) add(false, kTrackB), add(false, kTrackW);
  while (left(true, kTrackW)) add(true, kTrackW);
  while (left(false, kTrackW)) add(false, kTrackW);
  return list;
}

/// DualPipe, with the operations of a pair one after the other: stream 0 of a rank enters the line
/// at its near end.
std::vector<Code> mirrored_phases(std::uint32_t near, std::uint32_t far, std::uint32_t h,
                                  std::uint32_t half, std::uint32_t n, bool split) {
  std::vector<Code> list, queue;
  std::size_t oldest = 0;
  std::array<std::uint32_t, 2 * kTrackPasses> run{};
  const auto add = [&](bool of_far, TrackPass pass) {
    if (run[(of_far ? kTrackPasses : kTrackF) + pass]++ >= n) return;
    list.push_back(kTrackPasses * (of_far ? far : near) + pass);
    if (split && pass == kTrackB) queue.push_back(list.back() + kTrackW - kTrackB);
  };
  const auto weights = [&] {
    if (oldest < queue.size()) list.push_back(queue[oldest++]);
  };
  const auto backward = [&](bool of_far) { add(of_far, kTrackB), weights(); };
  const auto repeat = [](std::int64_t times, const auto& body) {
    for (std::int64_t i = 0; i < times; ++i) body(i);
  };
  const std::int64_t inner = half - 1 - h;
  repeat(2 * inner, [&](std::int64_t) { add(false, kTrackF); });
  repeat(h + 1, [&](std::int64_t) { add(false, kTrackF), add(true, kTrackF); });
  repeat(inner, [&](std::int64_t) { backward(true), add(true, kTrackF); });
  repeat(std::int64_t{n} - 2 * half + h + 1, [&](std::int64_t) {
    add(false, kTrackF), backward(true), add(true, kTrackF), backward(false);
  });
  repeat(inner, [&](std::int64_t) { backward(true), add(true, kTrackF), backward(false); });
  repeat(h + 1, [&](std::int64_t i) {
    const std::int64_t turn = (h + 1) / 2;
    add(true, kTrackB);
    if (i < turn || (i == turn && h % 2 == 0)) weights();
    add(false, kTrackB);
    if (i < turn) weights();
  });
  repeat(inner, [&](std::int64_t) { weights(), add(false, kTrackB); });
  while (oldest < queue.size()) weights();
  return list;
}

}  // namespace

Shape shape_of(const SearchProblem& problem) {
  Shape shape;
  shape.p = problem.ranks();
  if (problem.groups() > 2 || shape.p == 0) return shape;
  shape.m = problem.track(0, 0).count;
  const std::uint32_t parts = problem.parts(), p = shape.p;
  const auto rank = [&](std::uint32_t part) { return problem.track(0, part).rank; };
  for (std::uint32_t s = 0; s < std::min(p, parts); ++s) shape.rank_of.push_back(rank(s));
  std::vector<std::uint32_t> sorted = shape.rank_of;
  std::sort(sorted.begin(), sorted.end());
  if (parts < p || std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end()) return shape;
  const auto all = [&](const auto& place) {
    for (std::uint32_t s = 0; s < parts; ++s) {
      if (rank(s) != shape.rank_of[place(s)]) return false;
    }
    return true;
  };
  if (problem.groups() == 2) {
    bool opposite = parts == p && p % 2 == 0 && problem.track(1, 0).count == shape.m;
    for (std::uint32_t s = 0; opposite && s < p; ++s)
      opposite = problem.track(1, s).rank == shape.rank_of[p - 1 - s];
    if (opposite) shape.family = Family::mirrored;
  } else if (parts == p) {
    shape.family = Family::line;
  } else if (parts % p == 0 && all([&](std::uint32_t s) { return s % p; })) {
    shape.family = Family::loop;
  } else if (parts == 2 * p && all([&](std::uint32_t s) { return std::min(s, 2 * p - 1 - s); })) {
    shape.family = Family::folded;
  }
  return shape;
}

namespace {

/// The instances of all groups in turn.
std::vector<std::uint32_t> in_turn(const SearchProblem& problem) {
  std::vector<std::uint32_t> instances;
  bool more = true;
  for (std::size_t k = 0; std::exchange(more, false); ++k) {
    for (std::uint32_t group = 0; group < problem.groups(); ++group) {
      if (k >= problem.instances(group).size()) continue;
      instances.push_back(problem.instances(group)[k]);
      more = true;
    }
  }
  return instances;
}

/// The same work with its instances in another order.
PlacedParts reordered(const PlacedParts& work, std::span<const std::uint32_t> instances) {
  PlacedParts result = work;
  const std::size_t parts = work.part.extent;
  for (std::size_t i = 0; i < instances.size(); ++i) {
    std::copy_n(work.rank_of.begin() + static_cast<std::ptrdiff_t>(instances[i] * parts), parts,
                result.rank_of.begin() + static_cast<std::ptrdiff_t>(i * parts));
  }
  return result;
}

}  // namespace

void greedy_starts(const PlacedParts& work, const SearchProblem& problem, const TakeStart& take) {
  GreedyRule list{problem.rule()};
  // Whole parts, so that both agree on the room of a rank.
  if (list.cap) list.cap = problem.capacity() * work.share();
  std::array<Pass, 3> preference = {Pass::B, Pass::BW, Pass::F};
  std::sort(preference.begin(), preference.end());
  const std::vector<std::uint32_t> turns = in_turn(problem);
  const PlacedParts alternating = reordered(work, turns);
  do {
    list.preference = preference;
    const GreedyOrder order = greedy(work, list);
    if (order.min_cap || !take(problem.codes_of(work, order.lists))) return;
    if (problem.groups() == 1) continue;
    GreedyOrder other = greedy(alternating, list);
    for (std::vector<PlacedOperation>& operations : other.lists) {
      for (PlacedOperation& operation : operations) {
        const std::uint32_t parts = work.part.extent;
        operation.piece = turns[operation.piece / parts] * parts + operation.piece % parts;
      }
    }
    if (!take(problem.codes_of(work, other.lists))) return;
  } while (std::next_permutation(preference.begin(), preference.end()));
}

void published_starts(const SearchProblem& problem, const Shape& shape, const TakeStart& take) {
  const std::uint32_t p = shape.p, m = shape.m;
  const bool split = problem.split();
  const auto all = [&](const auto& list_of) {
    CodeLists lists(p);
    for (std::uint32_t r = 0; r < p; ++r) lists[shape.rank_of[r]] = list_of(r);
    return take(std::move(lists));
  };
  switch (shape.family) {
    case Family::line: {
      for (std::uint32_t h = 0; h <= 2; ++h) {
        const bool wanted = all([&](std::uint32_t r) {
          const std::uint32_t rank = shape.rank_of[r];
          const std::size_t warm = h == 0 ? m : std::size_t{h} * (p - 1 - r);
          return alternate(grouped(problem, rank, m, m, kTrackF),
                           grouped(problem, rank, m, m, kTrackB), warm, split, std::size_t{h} * r);
        });
        if (!wanted) return;
      }
      return;
    }
    case Family::loop: {
      const std::uint32_t v = problem.parts() / p;
      for (const std::uint32_t slope : {1u, 2u}) {
        for (const std::uint32_t group : {p, (p + 1) / 2, m}) {
          const bool wanted = all([&](std::uint32_t r) {
            const std::uint32_t rank = shape.rank_of[r];
            const std::uint64_t warm =
                std::uint64_t{v - 1} * group + std::uint64_t{slope} * (p - 1 - r);
            return alternate(grouped(problem, rank, m, group, kTrackF),
                             grouped(problem, rank, m, group, kTrackB), warm, split, r);
          });
          if (!wanted) return;
        }
      }
      return;
    }
    case Family::folded: {
      if (!split) return;
      all([&](std::uint32_t r) { return folded_phases(r, 2 * p - 1 - r, p, r, m); });
      return;
    }
    case Family::mirrored: {
      all([&](std::uint32_t r) {
        const std::uint32_t out = r, back = p + (p - 1 - r);  // its tracks in both groups
        const bool first_half = r < p / 2;
        return mirrored_phases(first_half ? out : back, first_half ? back : out,
                               std::min(r, p - 1 - r), p / 2, m, split);
      });
      return;
    }
    case Family::other: return;
  }
}

}  // namespace piper::orders
