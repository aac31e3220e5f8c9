#include "frontend/pictures/front_svg.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>

#include "frontend/pictures/svg.h"
#include "ir/byte_text.h"

namespace piper::pictures {
namespace {

constexpr double kLeft = 76, kTop = 40, kWidth = 720, kHeight = 360;

/// The values of an axis, with room on both sides.
struct Axis {
  double first = 0, last = 0;

  template <typename ValueOf>
  Axis(const std::vector<FrontPoint>& points, const ValueOf& value_of) {
    if (points.empty()) return;
    first = last = value_of(points.front());
    for (const FrontPoint& point : points) {
      first = std::min(first, value_of(point));
      last = std::max(last, value_of(point));
    }
    const double room = last > first ? (last - first) * 0.08 : std::max(std::abs(last) * 0.1, 1e-9);
    first -= room;
    last += room;
  }
  double part(double value) const { return (value - first) / (last - first); }
};

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.4g", value);
  return text;
}

double x_of(const Axis& axis, double bytes) { return kLeft + axis.part(bytes) * kWidth; }
double y_of(const Axis& axis, double time) { return kTop + (1 - axis.part(time)) * kHeight; }

std::string scales(const Axis& bytes, const Axis& time) {
  std::string out;
  const double time_step = axis_step(time.last - time.first, 6);
  for (double at = std::ceil(time.first / time_step) * time_step; at <= time.last;
       at += time_step) {
    out += svg_line(kLeft, y_of(time, at), kLeft + kWidth, y_of(time, at), "mesh") +
           svg_text(kLeft - 6, y_of(time, at) + 4, "class=\"end small\"", number(at));
  }
  const double byte_step = std::exp2(std::round(std::log2((bytes.last - bytes.first) / 5)));
  for (double at = std::ceil(std::max(bytes.first, 0.0) / byte_step) * byte_step; at <= bytes.last;
       at += byte_step) {
    out += svg_line(x_of(bytes, at), kTop + kHeight, x_of(bytes, at), kTop + kHeight + 4, "axis") +
           svg_text(x_of(bytes, at), kTop + kHeight + 17, "class=\"middle small\"",
                    bytes_text(static_cast<std::int64_t>(at)));
  }
  return out + svg_line(kLeft, kTop + kHeight, kLeft + kWidth, kTop + kHeight, "axis");
}

std::string dot(double x, double y, const char* color, const char* width) {
  return "<path d=\"M" + decimal(x) + " " + decimal(y) + "h0\" stroke-linecap=\"round\" stroke=\"" +
         color + "\" style=\"stroke-width:" + width + "\"/>\n";
}

}  // namespace

std::string front_svg(const std::vector<FrontPoint>& points, std::string_view title,
                      std::string_view time_label) {
  const Axis bytes(points, [](const FrontPoint& point) { return point.bytes; });
  const Axis time(points, [](const FrontPoint& point) { return point.time; });
  std::string out = svg_head(kLeft + kWidth + 24, kTop + kHeight + 48, title) +
                    svg_text(kLeft, 20, "class=\"title\"", title) + scales(bytes, time) +
                    svg_text(kLeft + kWidth, kTop + kHeight + 36, "class=\"end small\"",
                             "memory of the fullest rank") +
                    svg_text(kLeft, kTop - 6, "class=\"small\"", time_label);
  std::string front, dots, names;
  for (const FrontPoint& point : points) {
    const double x = x_of(bytes, point.bytes), y = y_of(time, point.time);
    dots += dot(x, y, point.on_front ? "#1f6feb" : "#999", point.chosen ? "11" : "6");
    if (point.on_front) front += (front.empty() ? "M" : "L") + decimal(x) + " " + decimal(y);
    if (!point.on_front && !point.chosen) continue;
    const bool right = bytes.part(point.bytes) < 0.7;
    names += svg_text(right ? x + 8 : x - 8, y - 6, right ? "" : "class=\"end\"", point.name);
  }
  if (!front.empty()) out += "<path class=\"curve\" stroke=\"#1f6feb\" d=\"" + front + "\"/>\n";
  return out + dots + names + "</svg>\n";
}

}  // namespace piper::pictures
