#include "frontend/tools/token_check.h"

#include "frontend/tools/train_job.h"
#include "ir/diagnostics/counted.h"
#include "ir/tensor/index_bounds.h"
#include "runtime/data/file_text.h"
#include "runtime/data/token_file.h"

namespace piper::tools {
namespace {

/// False, with the reason in `failure`, if the tokens cannot be read.
bool look_for_tokens(Session& session, const tensor::Graph& model, const directive::Data& data,
                     const runtime::TokenFile& tokens, runtime::Failure& failure) {
  for (const tensor::IndexBound& read : tensor::index_bounds(model)) {
    std::optional<runtime::Failure> unread;
    const auto found =
        runtime::find_token_from(tokens, kTextLookedThrough, read.bound, read.ignore, unread);
    if (unread) {
      failure = std::move(*unread);
      return false;
    }
    if (!found) continue;
    const tensor::Node& reader = model.node(read.reader);
    const bool looks_up = reader.op == tensor::Op::lookup;
    const runtime::TokenFile::Position position = tokens.position(found->token);
    session.sink()
        .report(Code::text_beyond_vocabulary, data.path_loc,
                "`{}` has the token `{}` at `{}`, but {} has {}", position.path, found->id,
                position.token, looks_up ? "the table that is looked up" : "`cross_entropy`",
                looks_up ? counted(read.bound, "row") : counted(read.bound, "class", "classes"))
        .related(reader.loc, "it is read here")
        .hint(
            "ids are from 0 to {}: give the model the vocabulary of the tokenizer that made the file",
            read.bound - 1);
    return true;
  }
  return true;
}

}  // namespace

std::optional<std::uint64_t> open_tokens(Session& session, const tensor::Graph& model,
                                         const directive::Data& data, runtime::Failure& failure) {
  const auto tokens = session.texts().tokens(
      data.path, runtime::token_type_of(static_cast<std::uint32_t>(data.token_type)), failure);
  const std::uint64_t window = window_of(session, data);
  if (!tokens || !runtime::holds_window(data.path, tokens->size(), window, failure, "token") ||
      !look_for_tokens(session, model, data, *tokens, failure))
    return std::nullopt;
  return (tokens->size() - 1) / window;
}

}  // namespace piper::tools
