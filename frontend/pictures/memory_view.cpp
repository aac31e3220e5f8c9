#include "frontend/pictures/memory_view.h"

#include <algorithm>
#include <vector>

#include "frontend/pictures/sharded_view.h"
#include "frontend/pictures/svg.h"
#include "frontend/pictures/text_table.h"
#include "ir/byte_text.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

namespace piper::pictures {
namespace {

using dag::BufferClass;
using passes::MemoryRow;

std::vector<std::size_t> used_classes(std::span<const MemoryRow> rows) {
  std::vector<std::size_t> used;
  for (std::size_t cls = 0; cls < passes::kBufferClasses; ++cls) {
    if (std::any_of(rows.begin(), rows.end(),
                    [&](const MemoryRow& row) { return row.peak[cls] > 0 || row.rest[cls] > 0; }))
      used.push_back(cls);
  }
  return used;
}

std::string class_text(std::size_t cls) {
  return std::string(dag::buffer_class_name(static_cast<BufferClass>(cls)));
}

llvm::json::Object by_class(const std::array<std::int64_t, passes::kBufferClasses>& counts) {
  llvm::json::Object object;
  for (std::size_t cls = 0; cls < counts.size(); ++cls) {
    if (counts[cls] > 0) object[class_text(cls)] = counts[cls];
  }
  return object;
}

}  // namespace

std::string_view colour_of(BufferClass cls) {
  switch (cls) {
    case BufferClass::parameters: return "#3b6fb6";
    case BufferClass::gradients: return "#2e8b57";
    case BufferClass::optimizer: return "#d9922e";
    case BufferClass::unreduced: return "#7fbf7b";
    case BufferClass::gathered: return "#8fb8e0";
    case BufferClass::activations: return "#c0504d";
    case BufferClass::communication: return "#8a6fb0";
    case BufferClass::workspace: return "#1f9e9e";
    case BufferClass::offloaded:
    case BufferClass::offloaded_optimizer: return "#b8b8b8";
    case BufferClass::scalars: return "#7f7f7f";
  }
  return "#7f7f7f";
}

std::string memory_text(std::span<const MemoryRow> rows, const dag::Dag& dag) {
  const std::vector<std::size_t> used = used_classes(rows);
  std::vector<std::vector<std::string>> table(1);
  table[0] = {"role", "at rest", "at peak"};
  std::vector<bool> left = {true, false, false};
  for (const std::size_t cls : used) table[0].push_back(class_text(cls)), left.push_back(false);
  const auto any = [&](std::int64_t MemoryRow::* bytes) {
    return std::any_of(rows.begin(), rows.end(),
                       [&](const MemoryRow& row) { return row.*bytes > 0; });
  };
  const bool host = any(&MemoryRow::host), staging = any(&MemoryRow::staging);
  table[0].push_back("arena"), left.push_back(false);
  if (host) table[0].push_back("on host"), left.push_back(false);
  if (staging) table[0].push_back("checkpoint"), left.push_back(false);
  table[0].push_back("peak at"), left.push_back(true);
  for (const MemoryRow& row : rows) {
    std::vector<std::string>& line = table.emplace_back();
    line = {row.role, bytes_text(row.sum_of_rest()), bytes_text(row.sum_of_peak())};
    for (const std::size_t cls : used)
      line.push_back(row.peak[cls] == 0 ? "" : bytes_text(row.peak[cls]));
    line.push_back(bytes_text(row.arena));
    if (host) line.push_back(row.host == 0 ? "" : bytes_text(row.host));
    if (staging) line.push_back(row.staging == 0 ? "" : bytes_text(row.staging));
    line.push_back(row.at.valid() ? dag.name(row.at) : "");
  }
  const std::string planned = directive::planned_for(dag.settings.device);
  return text_table(table, left) + (planned.empty() ? "" : "bytes" + planned + "\n") +
         sharded_state_text(dag);
}

std::string memory_json(std::span<const MemoryRow> rows, const dag::Dag& dag) {
  llvm::json::Array roles;
  for (const MemoryRow& row : rows) {
    llvm::json::Object object{{"role", row.role},
                              {"rest", by_class(row.rest)},
                              {"peak", by_class(row.peak)},
                              {"rest_bytes", row.sum_of_rest()},
                              {"peak_bytes", row.sum_of_peak()},
                              {"arena_bytes", row.arena}};
    if (row.host > 0) object["host_bytes"] = row.host;
    if (row.staging > 0) object["checkpoint_bytes"] = row.staging;
    if (row.at.valid()) object["at"] = dag.name(row.at);
    roles.push_back(std::move(object));
  }
  std::string text;
  const char* const device =
      directive::kPlatformNames[static_cast<std::size_t>(dag.settings.device)];
  llvm::raw_string_ostream(text) << llvm::json::Value(
      llvm::json::Object{{"schema", 1}, {"device", device}, {"roles", std::move(roles)}});
  return text + "\n";
}

std::string memory_svg(std::span<const MemoryRow> rows, std::string_view title) {
  constexpr double kTop = 34, kWidth = 760, kLetter = 6.2;
  const double bar = rows.size() <= 16 ? 11 : rows.size() <= 64 ? 6 : 4, pitch = 2 * bar + 4;
  std::int64_t most = 1;
  std::size_t longest = 4;
  for (const MemoryRow& row : rows) {
    most = std::max({most, row.sum_of_peak(), row.arena});
    longest = std::max(longest, row.role.size());
  }
  const double left = 16 + kLetter * static_cast<double>(longest),
               scale = kWidth / static_cast<double>(most),
               height = pitch * static_cast<double>(rows.size());
  std::vector<std::string> paths(passes::kBufferClasses);
  std::string labels, arenas;
  for (std::size_t r = 0; r < rows.size(); ++r) {
    const double y = kTop + pitch * static_cast<double>(r);
    for (const bool peak : {false, true}) {
      double x = left;
      for (std::size_t cls = 0; cls < passes::kBufferClasses; ++cls) {
        const double width = static_cast<double>((peak ? rows[r].peak : rows[r].rest)[cls]) * scale;
        if (width > 0) append_rect(paths[cls], x, y + (peak ? bar : 0), width, bar - 0.5);
        x += width;
      }
    }
    const double end = left + static_cast<double>(rows[r].arena) * scale;
    arenas += svg_line(end, y - 1, end, y + 2 * bar, "mark");
    if (bar >= 6 || r % 2 == 0)
      labels += svg_text(left - 6, y + bar + 3, "class=\"end\"", rows[r].role);
    if (bar >= 6)
      labels +=
          svg_text(end + 4, y + bar + 4, "class=\"small\"", bytes_text(rows[r].sum_of_peak()));
  }
  std::string out = svg_head(left + kWidth + 90, kTop + height + 56, title);
  out += svg_text(left, 17, "class=\"title\"", title);
  for (std::size_t cls = 0; cls < paths.size(); ++cls) {
    if (!paths[cls].empty())
      out += "<path class=\"" + class_text(cls) + "\" fill=\"" +
             std::string(colour_of(static_cast<BufferClass>(cls))) + "\" d=\"" + paths[cls] +
             "\"/>\n";
  }
  out += arenas + labels;
  double x = left;
  for (const std::size_t cls : used_classes(rows)) {
    out += svg_rect(x, kTop + height + 12, 11, 11,
                    "fill=\"" + std::string(colour_of(static_cast<BufferClass>(cls))) + "\"");
    out += svg_text(x + 15, kTop + height + 22, "", class_text(cls));
    x += 32 + kLetter * static_cast<double>(class_text(cls).size());
  }
  return out +
         svg_text(left, kTop + height + 42, "class=\"small\"",
                  "upper bar: between two steps; lower bar: when most lives; dashes: the arena") +
         "</svg>\n";
}

}  // namespace piper::pictures
