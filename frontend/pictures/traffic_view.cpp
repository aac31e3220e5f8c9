#include "frontend/pictures/traffic_view.h"

#include <algorithm>
#include <map>
#include <vector>

#include "frontend/pictures/shade.h"
#include "frontend/pictures/sharded_view.h"
#include "frontend/pictures/svg.h"
#include "frontend/pictures/text_table.h"
#include "ir/byte_text.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

namespace piper::pictures {
namespace {

using passes::TrafficRow;

/// `values of F`, `all_reduce of gradients`.
std::string carries(const TrafficRow& row) {
  return dag::is_message(row.kind) ? "values of " + row.what
                                   : std::string(dag::kind_name(row.kind)) + " of " + row.what;
}

std::string_view colour_of(const TrafficRow& row) {
  if (!dag::is_message(row.kind))
    return row_of(dag::copies_to_or_from_host(row.kind) ? Shade::copy
                  : dag::reduces_members(row.kind)      ? Shade::collective
                                                        : Shade::other)
        .colours[0];
  const auto pass = parse_pass(row.what);
  return row_of(pass ? shade_of(*pass) : Shade::message).colours[0];
}

}  // namespace

std::string traffic_text(std::span<const TrafficRow> rows, const dag::Dag& dag) {
  if (rows.empty()) return "nothing travels\n";
  std::vector<std::vector<std::string>> table = {
      {"communicator", "stream", "carries", "times", "bytes"}};
  std::int64_t total = 0;
  std::uint64_t operations = 0;
  for (const TrafficRow& row : rows) {
    table.push_back({row.communicator, row.stream, carries(row), std::to_string(row.operations),
                     bytes_text(row.bytes)});
    operations += row.operations;
    if (!dag::copies_to_or_from_host(row.kind)) total += row.bytes;
  }
  const bool copies = std::any_of(rows.begin(), rows.end(), [](const TrafficRow& row) {
    return dag::copies_to_or_from_host(row.kind);
  });
  table.push_back(
      {"all", "", copies ? "between devices" : "", std::to_string(operations), bytes_text(total)});
  return text_table(table, {true, true, true, false, false}) + sharded_traffic_text(dag);
}

std::string traffic_json(std::span<const TrafficRow> rows, const dag::Dag& dag) {
  llvm::json::Array traffic;
  std::int64_t total = 0;
  for (const TrafficRow& row : rows) {
    llvm::json::Array members;
    for (const DeviceSetId member : row.members)
      members.push_back(llvm::json::fixUTF8(dag.text(member)));
    traffic.push_back(llvm::json::Object{{"communicator", llvm::json::fixUTF8(row.communicator)},
                                         {"members", std::move(members)},
                                         {"stream", llvm::json::fixUTF8(row.stream)},
                                         {"kind", llvm::StringRef(dag::kind_name(row.kind))},
                                         {"what", row.what},
                                         {"operations", static_cast<std::int64_t>(row.operations)},
                                         {"bytes", row.bytes}});
    if (!dag::copies_to_or_from_host(row.kind)) total += row.bytes;
  }
  std::string text;
  llvm::raw_string_ostream(text) << llvm::json::Value(
      llvm::json::Object{{"schema", 1}, {"bytes", total}, {"traffic", std::move(traffic)}});
  return text + "\n";
}

std::string traffic_svg(std::span<const TrafficRow> rows, std::string_view title) {
  constexpr double kTop = 34, kWidth = 700, kLetter = 6.2;
  struct Bar {
    std::string name;
    std::int64_t bytes = 0;
  };
  std::vector<Bar> bars;  // per communicator
  std::size_t longest = 4;
  std::int64_t most = 1;
  for (const TrafficRow& row : rows) {
    if (bars.empty() || bars.back().name != row.communicator) bars.push_back({row.communicator, 0});
    most = std::max(most, bars.back().bytes += row.bytes);
    longest = std::max(longest, row.communicator.size());
  }
  const double bar = bars.size() <= 32 ? 14 : 8, pitch = bar + 3,
               height = pitch * static_cast<double>(bars.size());
  const double left = 16 + kLetter * static_cast<double>(longest),
               scale = kWidth / static_cast<double>(most);
  // By kind of data: colour and path.
  std::map<std::string, std::pair<std::string_view, std::string>> paths;
  std::string labels;
  std::size_t at = 0;
  double x = left;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (rows[i].communicator != bars[at].name) ++at, x = left;
    const double y = kTop + pitch * static_cast<double>(at),
                 width = static_cast<double>(rows[i].bytes) * scale;
    auto& [colour, path] = paths[carries(rows[i])];
    colour = colour_of(rows[i]);
    append_rect(path, x, y, std::max(width, 0.5), bar);
    x += width;
    if (i + 1 == rows.size() || rows[i + 1].communicator != bars[at].name) {
      labels += svg_text(left - 6, y + bar / 2 + 4, "class=\"end\"", bars[at].name) +
                svg_text(x + 5, y + bar / 2 + 4, "class=\"small\"", bytes_text(bars[at].bytes));
    }
  }
  std::string out = svg_head(left + kWidth + 80, kTop + height + 34, title) +
                    svg_text(left, 17, "class=\"title\"", title);
  x = left;
  for (const auto& [name, entry] : paths) {
    out += "<path fill=\"" + std::string(entry.first) + "\" d=\"" + entry.second + "\"/>\n";
    out += svg_rect(x, kTop + height + 10, 11, 11, "fill=\"" + std::string(entry.first) + "\"") +
           svg_text(x + 15, kTop + height + 20, "", name);
    x += 32 + kLetter * static_cast<double>(name.size());
  }
  return out + labels + "</svg>\n";
}

}  // namespace piper::pictures
