#include "frontend/tools/prompt.h"

#include <charconv>

#include "ir/diagnostics/counted.h"

namespace piper::tools {
namespace {

/// At most `limit` bytes of standard input, and one more if there are more.
std::string read_input(std::istream* in, std::uint64_t limit) {
  std::string text;
  char byte = 0;
  while (in != nullptr && text.size() <= limit && in->get(byte)) text += byte;
  return text;
}

/// The bytes of the prompt. Nothing, and a diagnostic, if a file cannot be read.
std::optional<std::string> prompt_text(Session& session, std::uint64_t positions) {
  const Arguments& arguments = session.arguments();
  if (arguments.prompt) return *arguments.prompt;
  const std::string& path = arguments.prompt_file;
  if (path == "-") return read_input(session.console().in, positions);
  const source::UnblockingFileSystem files(session.console().files);
  source::ReadResult read = files.read(path, positions);
  if (read.text) return std::move(read.text);
  if (read.too_large > 0)
    session.sink()
        .report(Code::prompt_refused, SourceRange(),
                "`{}` is longer than the {} positions of the model", path, positions)
        .hint("give a shorter prompt");
  else
    session.sink()
        .report(Code::prompt_refused, SourceRange(), "cannot read `{}`: {}", path, read.error)
        .hint("name a file with the prompt, or `-` for standard input");
  return std::nullopt;
}

bool is_legal(Session& session, const dag::TokenProgram& program,
              const std::vector<std::int64_t>& tokens, bool bytes) {
  const auto refuse = [&](const std::string& message, const char* hint) {
    session.sink().report(Code::prompt_refused, SourceRange(), "{}", message).hint("{}", hint);
    return false;
  };
  if (tokens.empty()) return refuse("the prompt is empty", "give at least one token to go on from");
  if (static_cast<std::int64_t>(tokens.size()) > program.positions)
    return refuse("the prompt is longer than the " + std::to_string(program.positions) +
                      " positions of the model",
                  "give a shorter prompt");
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i] < program.vocabulary) continue;
    return refuse((bytes ? "byte " : "token ") + std::to_string(tokens[i]) + " at position " +
                      std::to_string(i) + " of the prompt is not in the vocabulary of " +
                      std::to_string(program.vocabulary),
                  "a model reads the tokens from 0 up to its vocabulary");
  }
  return true;
}

}  // namespace

std::optional<std::vector<std::int64_t>> parse_ids(std::string_view text) {
  std::vector<std::int64_t> ids;
  const char* at = text.data();
  const char* const end = at + text.size();
  while (at != end) {
    std::uint32_t id = 0;
    const auto [next, error] = std::from_chars(at, end, id);
    if (error != std::errc() || (next != end && *next != ',') || next + 1 == end)
      return std::nullopt;
    ids.push_back(id);
    at = next == end ? end : next + 1;
  }
  return ids;
}

std::optional<std::vector<std::int64_t>> read_prompt(Session& session,
                                                     const dag::TokenProgram& program, bool bytes) {
  const Arguments& arguments = session.arguments();
  std::vector<std::int64_t> tokens;
  if (!arguments.prompt_ids.empty()) {
    tokens = *parse_ids(arguments.prompt_ids);
  } else if (!bytes) {
    session.sink()
        .report(Code::prompt_refused, SourceRange(),
                "the data of the train are no `bytes(...)`, so a text is no prompt of its model")
        .hint("give the numbers of the tokens: `--prompt-ids 1,2,3`");
    return std::nullopt;
  } else {
    const auto text = prompt_text(session, static_cast<std::uint64_t>(program.positions));
    if (!text) return std::nullopt;
    for (const char byte : *text) tokens.push_back(static_cast<unsigned char>(byte));
  }
  if (!is_legal(session, program, tokens, bytes)) return std::nullopt;
  return tokens;
}

}  // namespace piper::tools
