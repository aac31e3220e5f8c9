#pragma once
// Building blocks of the images of this folder.

#include <string>
#include <string_view>

namespace piper::pictures {

/// At most two decimals, without trailing zeros: `3`, `0.25`.
std::string decimal(double value);
/// The opening tag with the style of texts, axes and grounds; `</svg>` ends it.
std::string svg_head(double width, double height, std::string_view title);
std::string svg_text(double x, double y, std::string_view attributes, std::string_view text);
std::string svg_line(double x1, double y1, double x2, double y2, std::string_view cls);
std::string svg_rect(double x, double y, double width, double height, std::string_view attributes);
/// Data of a path: one closed rectangle, to be appended to others.
void append_rect(std::string& path, double x, double y, double width, double height);

/// Steps of an axis: 1, 2 or 5 times a power of ten, such that about `wanted` fit into `range`.
double axis_step(double range, double wanted);

}  // namespace piper::pictures
