#include "frontend/pictures/timeline_text.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "frontend/pictures/layout.h"
#include "frontend/pictures/svg.h"

namespace piper::pictures {
namespace {

using passes::Timeline;

constexpr std::size_t kPlainWidth = 100, kMinWidth = 20;
constexpr std::size_t kIdle = kShades.size();

struct Line {
  std::string text;  // a letter per column
  std::vector<std::uint8_t> colours;
};

class Chart {
 public:
  Chart(const Picture& picture, const Screen& screen)
      : picture_(picture), timeline_(picture.timeline), screen_(screen) {
    for (const Timeline::Rank& rank : timeline_.ranks) {
      left_ = std::max(left_, rank_text(rank).size() + 2);
      for (const Timeline::Lane& lane : timeline_.lanes_of(rank)) {
        if (shown(rank, lane)) left_ = std::max(left_, lane_name(rank, lane).size() + 2);
      }
    }
    const std::size_t whole = screen.columns > 0 ? screen.columns - 1 : kPlainWidth;
    width_ = std::max(kMinWidth, whole > left_ ? whole - left_ : 0);
    scale_ = timeline_.makespan > 0 ? static_cast<double>(width_) / timeline_.makespan : 0;
  }

  std::string run() {
    std::string out;
    for (const Timeline::Rank& rank : timeline_.ranks) {
      for (const Timeline::Lane& lane : timeline_.lanes_of(rank)) {
        if (!shown(rank, lane)) continue;
        CellLine line;
        line.append(lane_name(rank, lane));
        line.append(left_ - line.size(), ' ');
        draw(lane, line);
        out += line.print(0, line.size(), screen_.colours) + "\n";
      }
    }
    return out + axis() + figures_text(timeline_) + "\n" + legend();
  }

 private:
  bool is_first(const Timeline::Rank& rank, const Timeline::Lane& lane) const {
    return &lane == &timeline_.lanes[rank.first_lane];
  }
  bool shown(const Timeline::Rank& rank, const Timeline::Lane& lane) const {
    return is_first(rank, lane) || lane.first < lane.end;
  }
  std::string lane_name(const Timeline::Rank& rank, const Timeline::Lane& lane) const {
    return is_first(rank, lane) ? rank_text(rank) : "  " + lane.name;
  }

  /// The operation that takes most of each column, then the names of the bars that have room for
  /// them.
  void draw(const Timeline::Lane& lane, CellLine& line) {
    std::vector<std::array<double, 2 * kIdle>> parts(width_);
    for (auto& each : parts) each.fill(0);
    for (std::uint32_t e = lane.first; e < lane.end; ++e) {
      const std::uint32_t operation = timeline_.operation[e];
      const std::size_t ink =
          2 * static_cast<std::size_t>(shade_of(timeline_.operations[operation])) +
          picture_.tone[operation];
      used_[ink / 2] = true;
      const double from = timeline_.start[e] * scale_,
                   to = std::min(static_cast<double>(width_), timeline_.finish[e] * scale_);
      for (auto column = static_cast<std::size_t>(from);
           column < width_ && static_cast<double>(column) < to; ++column) {
        parts[column][ink] += std::min(to, static_cast<double>(column + 1)) -
                              std::max(from, static_cast<double>(column));
      }
    }
    std::string text;
    std::vector<std::uint8_t> colours;
    for (const auto& each : parts) {
      const auto most =
          static_cast<std::size_t>(std::max_element(each.begin(), each.end()) - each.begin());
      double idle = 1;
      for (const double part : each) idle -= part;
      const bool busy = each[most] > 0 && each[most] >= idle;
      text += busy ? kShades[most / 2].letter : '.';
      colours.push_back(!busy           ? CellLine::kPlain
                        : most % 2 == 0 ? kShades[most / 2].terminal
                                        : kShades[most / 2].terminal_other);
    }
    for (std::uint32_t e = lane.first; e < lane.end;) {
      const Together together = together_from(timeline_, lane, e);
      std::string cell;
      for (std::uint32_t k = e; k < together.end; ++k)
        cell += (k == e ? "" : "&") + picture_.cells[timeline_.operation[k]];
      // A column that is half of the bar before it is this one's.
      const auto from = static_cast<std::size_t>(std::lround(timeline_.start[e] * scale_)),
                 to = static_cast<std::size_t>(std::lround(timeline_.finish[e] * scale_));
      if (to >= from + cell.size() + 1 && to <= width_) {
        text.replace(from, to - from,
                     cell + std::string(to - from - cell.size(), screen_.colours ? ' ' : '-'));
        if (screen_.colours) text[to - 1] = ' ';
      } else if (together.size() > 1) {
        overlapped_ = true;
        for (std::size_t column = from; column < std::min(to, width_); ++column) text[column] = '&';
      }
      e = together.end;
    }
    for (std::size_t column = 0; column < width_; ++column)
      line.append(1, text[column], colours[column]);
  }

  std::string axis() const {
    std::string line(left_ + width_ + 16, ' ');
    const double step = axis_step(timeline_.makespan, static_cast<double>(width_) / 12);
    std::size_t free = 0;
    for (int i = 0; i * step <= timeline_.makespan * (1 + 1e-9) && i < 1000; ++i) {
      const std::size_t at = left_ + static_cast<std::size_t>(std::lround(i * step * scale_));
      const std::string text = time_text(i * step, timeline_.unit);
      if (at < free || at + text.size() > left_ + width_ + 1) continue;
      line.replace(at, text.size(), text);
      free = at + text.size() + 1;
    }
    return line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }

  std::string legend() const {
    CellLine line;
    for (std::size_t shade = 0; shade < kShades.size(); ++shade) {
      if (!used_[shade]) continue;
      if (line.size() > 0) line.append("  ");
      line.append(1, kShades[shade].letter, kShades[shade].terminal);
      line.append(" " + std::string(kShades[shade].means));
    }
    if (overlapped_) line.append("  & two that overlap");
    return line.print(0, line.size(), screen_.colours) + "\n";
  }

  const Picture& picture_;
  const Timeline& timeline_;
  const Screen screen_;
  std::size_t left_ = 8, width_ = 0;
  double scale_ = 0;
  bool overlapped_ = false;  // somewhere without room for the names
  std::array<bool, kShades.size()> used_{};
};

}  // namespace

std::string timeline_text(const Picture& picture, const Screen& screen) {
  return Chart(picture, screen).run();
}

}  // namespace piper::pictures
