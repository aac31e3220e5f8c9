#include "frontend/pictures/timeline_svg.h"

#include <algorithm>
#include <array>
#include <vector>

#include "frontend/pictures/layout.h"
#include "frontend/pictures/svg.h"

namespace piper::pictures {
namespace {

using passes::Timeline;

constexpr double kTop = 44, kRight = 16, kBottom = 58, kLetter = 6.2;
constexpr std::size_t kMaxLabels = 3000;  // each is an element

class Drawing {
 public:
  explicit Drawing(const Picture& picture)
      : picture_(picture), timeline_(picture.timeline), rows_(picture.timeline) {
    std::size_t longest = 0;
    for (const Timeline::Rank& rank : timeline_.ranks)
      longest = std::max(longest, rank_text(rank).size());
    left_ = 16 + kLetter * static_cast<double>(longest);
    width_ = plot_width();
    scale_ = timeline_.makespan > 0 ? width_ / timeline_.makespan : 0;
    height_ = rows_.height();
  }

  std::string run() {
    collect();
    std::string out = svg_head(left_ + width_ + kRight, kTop + height_ + kBottom, picture_.title);
    out += svg_text(left_, 17, "class=\"title\"", picture_.title);
    out += svg_text(left_, 33, "class=\"small\"", figures_text(timeline_));
    std::string ground;
    for (std::size_t r = 0; r < timeline_.ranks.size(); ++r) {
      append_rect(ground, left_, kTop + rows_.rank_top(r), width_, rows_.rank_height(r));
      out += svg_text(left_ - 6, kTop + rows_.rank_top(r) + rows_.rank_height(r) / 2 + 4,
                      "class=\"end\"", rank_text(timeline_.ranks[r]));
    }
    out += "<path class=\"ground\" d=\"" + ground + "\"/>\n";
    for (std::size_t shade = 0; shade < kShades.size(); ++shade) {
      for (std::size_t tone = 0; tone < 2; ++tone) {
        const std::string& path = paths_[shade][tone];
        if (!path.empty())
          out += "<path class=\"" + std::string(kShades[shade].name) + "\" fill=\"" +
                 std::string(kShades[shade].colours[tone]) + "\" d=\"" + path + "\"/>\n";
      }
    }
    out += labels_;
    return out + axis() + legend() + "</svg>\n";
  }

 private:
  /// Cells wide enough for their labels, within the width of a page.
  double plot_width() const {
    std::vector<double> durations;
    durations.reserve(timeline_.size());
    for (std::size_t e = 0; e < timeline_.size(); ++e) {
      if (timeline_.finish[e] > timeline_.start[e])
        durations.push_back(timeline_.finish[e] - timeline_.start[e]);
    }
    if (durations.empty()) return 640;
    const auto middle = durations.begin() + static_cast<std::ptrdiff_t>(durations.size() / 2);
    std::nth_element(durations.begin(), middle, durations.end());
    return std::clamp(timeline_.makespan / *middle * 30, 640.0, 2400.0);
  }

  void collect() {
    std::size_t bars = 0;
    for (const Timeline::Lane& lane : timeline_.lanes) bars += lane.end - lane.first;
    for (std::size_t l = 0; l < timeline_.lanes.size(); ++l) {
      const Timeline::Lane& lane = timeline_.lanes[l];
      for (std::uint32_t e = lane.first; e < lane.end;) {
        const Together together = together_from(timeline_, lane, e);
        const double height = rows_.lane_height(l) / together.size();
        for (std::uint32_t k = 0; k < together.size(); ++k)
          bar(e + k, kTop + rows_.lane_top(l) + height * k, height, bars <= kMaxLabels);
        e = together.end;
      }
    }
  }

  void bar(std::uint32_t entry, double y, double height, bool labelled) {
    const std::uint32_t operation = timeline_.operation[entry];
    const auto shade = static_cast<std::size_t>(shade_of(timeline_.operations[operation]));
    const std::uint8_t tone = picture_.tone[operation];
    const double x = left_ + timeline_.start[entry] * scale_;
    const double width = (timeline_.finish[entry] - timeline_.start[entry]) * scale_;
    if (width <= 0) return;
    append_rect(paths_[shade][tone], x, y, width > 3 ? width - 0.7 : std::max(width, 0.01),
                height > 5 ? height - 0.7 : height);
    if (!labelled || height < 9) return;
    const auto fits = [&](const std::string& text) {
      return static_cast<double>(text.size()) * 5.5 + 1 <= width;
    };
    // In a narrow bar the microbatch alone.
    std::string cell = picture_.cells[operation];
    if (!fits(cell) && dag::runs_body(timeline_.operations[operation].kind))
      cell = std::to_string(timeline_.operations[operation].mb);
    if (!fits(cell)) return;
    labels_ += svg_text(x + width / 2, y + height / 2 + 3,
                        tone ? "class=\"cell light\"" : "class=\"cell\"", cell);
  }

  std::string axis() const {
    const double bottom = kTop + height_ + 4;
    std::string out = svg_line(left_, bottom, left_ + width_, bottom, "axis");
    const double step = axis_step(timeline_.makespan, width_ / 90);
    for (int i = 0; i * step <= timeline_.makespan * (1 + 1e-9) && i < 1000; ++i) {
      const double x = left_ + i * step * scale_;
      out +=
          svg_line(x, bottom, x, bottom + 4, "axis") +
          svg_text(x, bottom + 16, "class=\"middle small\"", time_text(i * step, timeline_.unit));
    }
    return out;
  }

  std::string legend() const {
    std::string out;
    double x = left_;
    const double y = kTop + height_ + 34;
    for (std::size_t shade = 0; shade < kShades.size(); ++shade) {
      if (paths_[shade][0].empty() && paths_[shade][1].empty()) continue;
      for (std::size_t tone = 0; tone < 2; ++tone) {
        if (paths_[shade][tone].empty()) continue;
        out += svg_rect(x, y, 11, 11, "fill=\"" + std::string(kShades[shade].colours[tone]) + "\"");
        x += 14;
      }
      const std::string text = legend_text(static_cast<Shade>(shade));
      out += svg_text(x + 2, y + 10, "", text);
      x += kLetter * static_cast<double>(text.size()) + 18;
    }
    return out;
  }

  const Picture& picture_;
  const Timeline& timeline_;
  const Rows rows_;
  double left_ = 0, width_ = 0, height_ = 0, scale_ = 0;
  std::array<std::array<std::string, 2>, kShades.size()> paths_;  // by shade and tone
  std::string labels_;
};

}  // namespace

std::string timeline_svg(const Picture& picture) { return Drawing(picture).run(); }

}  // namespace piper::pictures
