#include "frontend/pictures/svg.h"

#include <cmath>
#include <cstdio>

#include "frontend/pictures/picture.h"

namespace piper::pictures {

std::string decimal(double value) {
  char text[48];
  std::snprintf(text, sizeof text, "%.2f", value);
  std::string out = text;
  while (out.back() == '0') out.pop_back();
  if (out.back() == '.') out.pop_back();
  return out == "-0" ? "0" : out;
}

std::string svg_head(double width, double height, std::string_view title) {
  const std::string w = decimal(width), h = decimal(height);
  return "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" + w + "\" height=\"" + h +
         "\" viewBox=\"0 0 " + w + " " + h + "\" role=\"img\">\n<title>" + xml_text(title) +
         "</title>\n<style>\n"
         "text{font:11px sans-serif;fill:#222}.title{font-size:14px;font-weight:bold}.small{fill:#666}.cell{font:9px monospace;text-anchor:middle;fill:#fff}.cell.light{fill:#222}"
         ".end{text-anchor:end}.middle{text-anchor:middle}.paper{fill:#fff}.ground{fill:#ececec}.axis{stroke:#999}.mesh{stroke:#ddd}.mark{stroke:#c0392b;stroke-dasharray:4 3}"
         ".curve{fill:none;stroke-width:1.5}\n"
         "@media (prefers-color-scheme:dark){text{fill:#ddd}.small{fill:#999}.paper{fill:#16181c}.ground{fill:#26292f}.axis{stroke:#777}.mesh{stroke:#333}.cell{fill:#fff}"
         ".cell.light{fill:#111}}\n</style>\n<rect class=\"paper\" width=\"" +
         w + "\" height=\"" + h + "\"/>\n";
}

std::string svg_text(double x, double y, std::string_view attributes, std::string_view text) {
  return "<text x=\"" + decimal(x) + "\" y=\"" + decimal(y) + "\"" +
         (attributes.empty() ? "" : " ") + std::string(attributes) + ">" + xml_text(text) +
         "</text>\n";
}

std::string svg_line(double x1, double y1, double x2, double y2, std::string_view cls) {
  return "<line class=\"" + std::string(cls) + "\" x1=\"" + decimal(x1) + "\" y1=\"" + decimal(y1) +
         "\" x2=\"" + decimal(x2) + "\" y2=\"" + decimal(y2) + "\"/>\n";
}

std::string svg_rect(double x, double y, double width, double height, std::string_view attributes) {
  return "<rect x=\"" + decimal(x) + "\" y=\"" + decimal(y) + "\" width=\"" + decimal(width) +
         "\" height=\"" + decimal(height) + "\" " + std::string(attributes) + "/>\n";
}

void append_rect(std::string& path, double x, double y, double width, double height) {
  const std::string w = decimal(width);
  path += "M" + decimal(x) + " " + decimal(y) + "h" + w + "v" + decimal(height) + "h-" + w + "z";
}

double axis_step(double range, double wanted) {
  if (!(range > 0)) return 1;
  const double rough = range / wanted, power = std::pow(10, std::floor(std::log10(rough)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= rough) return factor * power;
  }
  return 10 * power;
}

}  // namespace piper::pictures
