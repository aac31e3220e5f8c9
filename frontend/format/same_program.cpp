#include "frontend/format/same_program.h"

#include <algorithm>
#include <vector>

#include "frontend/format/format.h"
#include "frontend/parse/lexemes.h"
#include "frontend/parse/parse.h"

namespace piper::format {

namespace {

/// The tree, whether the text has mistakes, and a line for each comment: its position, the number
/// of its token and its text. A `;` has no number, because the formatter may replace it by a line
/// end.
std::string program_of(std::string_view text) {
  LocationTable locations;
  const FileId file = locations.files().add("", std::string(text));
  DiagnosticSink unread(locations);
  const ast::Module module = parse::parse(locations.files(), file, unread);
  std::string program =
      ast::print_without_ranges(module) + (module.faults.empty() ? "legal\n" : "with mistakes\n");
  if (module.comments.empty()) return program;
  std::vector<std::uint32_t> tokens;
  for (const parse::Lexeme& lexeme : parse::lexemes(text)) {
    const bool counts = lexeme.kind != parse::LexemeKind::comment &&
                        text.substr(lexeme.begin, lexeme.end - lexeme.begin) != ";";
    if (counts) tokens.push_back(lexeme.begin);
  }
  for (const ast::Comment& comment : module.comments) {
    const auto number =
        std::lower_bound(tokens.begin(), tokens.end(), comment.token) - tokens.begin();
    program += comment.place == ast::CommentPlace::behind ? "behind " : "before ";
    program += std::to_string(number) + ' ';
    program += text.substr(comment.range.begin, comment.range.end - comment.range.begin);
    program += '\n';
  }
  return program;
}

}  // namespace

bool same_program(std::string_view before, std::string_view after) {
  return before == after || program_of(before) == program_of(after);
}

bool keeps_program(std::string_view before, std::string_view after, FileId file,
                   DiagnosticSink& sink) {
  if (same_program(before, after)) return true;
  sink.report(Code::layout_changes_program, SourceRange{file, 0, 0},
              "this text in the layout of the project would be another program; it stays as it is")
      .hint(
          "the mistake is in the formatter of Piper, not in this text: please report it with the text");
  return false;
}

std::optional<std::string> checked_format(std::string_view text, FileId file,
                                          DiagnosticSink& sink) {
  std::string formatted = format(text);
  if (!keeps_program(text, formatted, file, sink)) return std::nullopt;
  return formatted;
}

}  // namespace piper::format
