// The layout of the project, as edits of the lines that differ.

#include "frontend/format/format.h"
#include "frontend/format/same_program.h"
#include "frontend/lsp/methods.h"

namespace piper::lsp {

json::Value formatting(Request& request) {
  json::Array edits;
  const std::string_view before = request.text();
  if (!request.file().valid() || request.document().path().ends_with(".pir")) return edits;
  const std::string after = format::format(before);
  if (after == before) return edits;
  if (!format::same_program(before, after))
    throw Refusal{
        ErrorCode::request_failed,
        "in the layout of the project this text would be another program, which is a mistake of the formatter: please report it with the text"};
  // Equal lines at both ends are left out of the edit, so that marks and cursors there stay.
  std::size_t begin = 0;
  while (begin < before.size() && begin < after.size() && before[begin] == after[begin]) ++begin;
  while (begin > 0 && before[begin - 1] != '\n') --begin;
  std::size_t end = 0;
  while (end < before.size() - begin && end < after.size() - begin &&
         before[before.size() - end - 1] == after[after.size() - end - 1])
    ++end;
  while (end > 0 && before[before.size() - end - 1] != '\n') --end;
  const SourceRange range{request.file(), static_cast<std::uint32_t>(begin),
                          static_cast<std::uint32_t>(before.size() - end)};
  edits.push_back(json::Object{
      {"range", request.json(range)},
      {"newText", text(std::string_view(after).substr(begin, after.size() - end - begin))}});
  return edits;
}

}  // namespace piper::lsp
