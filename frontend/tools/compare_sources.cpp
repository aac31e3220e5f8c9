#include "frontend/tools/compare_sources.h"

#include <algorithm>
#include <string>
#include <vector>

#include "runtime/processes/peer_text.h"

namespace piper::tools {

namespace {

using runtime::Failure;
using runtime::peer_text;

struct Source {
  std::string name, text;
};

std::vector<Source> sources_of(const SourceTable& files) {
  std::vector<Source> sources;
  for (std::size_t i = 0; i < files.size(); ++i) {
    const FileId file = FileId::at(i);
    if (files.has_text(file))
      sources.push_back({std::string(files.name(file)), std::string(files.text(file))});
  }
  return sources;
}

std::string_view line_at(std::string_view text, std::size_t begin) {
  return text.substr(begin, text.find('\n', begin) - begin);
}

/// `line 12 is \`a\` here and \`b\` there`, with the line as the place of the failure.
Failure difference(const runtime::Launch& launch, const Source& source, const std::string& first) {
  const auto [at, there] = std::ranges::mismatch(source.text, first);
  const auto offset = static_cast<std::size_t>(at - source.text.begin());
  const std::size_t before = offset == 0 ? std::string::npos : source.text.rfind('\n', offset - 1);
  const std::size_t begin = before == std::string::npos ? 0 : before + 1;
  const auto line = static_cast<std::uint32_t>(
      std::count(source.text.begin(), source.text.begin() + static_cast<std::ptrdiff_t>(begin),
                 '\n') +
      1);
  const std::string_view here = line_at(source.text, begin);
  Failure failure{.code = runtime::kProgramsDiffer,
                  .message = runtime::process_text(launch, launch.rank) + " has another `" +
                             peer_text(source.name) + "` than rank 0: line " +
                             std::to_string(line) + " is `" + peer_text(here) + "`, and `" +
                             peer_text(line_at(first, begin)) + "` at rank 0",
                  .hint = "all processes of a run need the same files"};
  failure.place = {.file = source.name,
                   .line = line,
                   .column = 1,
                   .end_line = line,
                   .end_column = static_cast<std::uint32_t>(here.size()) + 1};
  return failure;
}

Failure other_files(const runtime::Launch& launch, std::size_t files, const std::string& first) {
  return {.code = runtime::kProgramsDiffer,
          .message = runtime::process_text(launch, launch.rank) + " reads " +
                     std::to_string(files) + " source files, and rank 0 " + peer_text(first),
          .hint = "all processes of a run need the same files"};
}

/// Empty, and nothing to report, if the sources are those of rank 0 or the run has failed.
std::optional<Failure> differs_from_first(runtime::ProcessGroup& group,
                                          const std::vector<Source>& sources) {
  const auto count = group.get("sources");
  if (!count) return std::nullopt;
  if (*count != std::to_string(sources.size()))
    return other_files(group.launch(), sources.size(), *count);
  for (std::size_t i = 0; i < sources.size(); ++i) {
    const auto text = group.get("source." + std::to_string(i));
    if (!text) return std::nullopt;
    if (*text != sources[i].text) return difference(group.launch(), sources[i], *text);
  }
  return std::nullopt;
}

}  // namespace

std::optional<Failure> compare_sources(runtime::ProcessGroup& group, const SourceTable& files) {
  const std::vector<Source> sources = sources_of(files);
  if (group.launch().rank == 0) {
    group.set("sources", std::to_string(sources.size()));
    for (std::size_t i = 0; i < sources.size(); ++i)
      group.set("source." + std::to_string(i), sources[i].text);
  } else if (auto differs = differs_from_first(group, sources)) {
    group.fail(*differs);
  }
  return group.any(false) ? std::nullopt : group.failure();
}

}  // namespace piper::tools
