#include "frontend/parse/indentation.h"

#include <algorithm>

#include "antlr4-runtime.h"
#include "grammar_generated/PipeLexer.h"

namespace piper::parse {

namespace {

using Lexer = generated::PipeLexer;

/// How far the line of this byte is indented.
std::size_t indentation(std::string_view text, std::uint32_t at) {
  const std::size_t before = at == 0 ? std::string_view::npos : text.rfind('\n', at - 1);
  const std::size_t begin = before == std::string_view::npos ? 0 : before + 1;
  const std::size_t end = text.find_first_not_of(" \t", begin);
  return (end == std::string_view::npos ? text.size() : end) - begin;
}

/// The depth in `(` and `[` behind a token; a brace ends them all.
std::size_t depth_behind(std::size_t depth, const RawToken& token) {
  switch (token.type) {
    case Lexer::LPAREN:
    case Lexer::LBRACKET: return depth + 1;
    case Lexer::RPAREN:
    case Lexer::RBRACKET: return depth > 0 ? depth - 1 : 0;
    case Lexer::LBRACE:
    case Lexer::RBRACE: return 0;
    default: return depth;
  }
}

RawToken brace(std::size_t type, std::uint32_t at) {
  RawToken token;
  token.type = type;
  token.begin = token.end = at;
  return token;
}

/// Begins a construct with a block, and without a colon before it.
bool heads_block(std::size_t type) {
  switch (type) {
    case Lexer::FOR:
    case Lexer::REPEAT:
    case Lexer::IF:
    case Lexer::ELSE:
    case Lexer::RANK:
    case Lexer::ORDER:
    case Lexer::REGION:
    case Lexer::DEF:
    case Lexer::SCHEDULE:
    case Lexer::MODEL:
    case Lexer::TRAIN:
    case Lexer::MACHINE:
    case Lexer::NAMES: return true;
    default: return false;
  }
}

/// Whether the line of token `i` has a `{` after it: a colon there is no replacement of one.
bool braces_follow(const RawTokens& tokens, std::size_t i) {
  while (++i < tokens.size() && !tokens[i].first_on_line) {
    if (tokens[i].type == Lexer::LBRACE) return true;
  }
  return false;
}

bool begins_item(const RawTokens& tokens, std::size_t i) {
  const auto type = [&](std::size_t at) {
    return at < tokens.size() ? tokens[at].type : antlr4::Token::EOF;
  };
  if (!tokens[i].first_on_line) return false;
  switch (tokens[i].type) {
    case Lexer::USE:
    case Lexer::PARAM:
    case Lexer::MESH:
    case Lexer::DEF:
    case Lexer::SCHEDULE:
    case Lexer::TRAIN:
    case Lexer::MACHINE:
    case Lexer::NAMES: return true;
    case Lexer::MODEL: return type(i + 1) == Lexer::NAME && type(i + 2) == Lexer::LPAREN;
    default: return false;
  }
}

}  // namespace

void brace_colon_blocks(RawTokens& tokens, std::string_view text, FileId file,
                        SelectedReports& sink) {
  RawTokens result;
  result.reserve(tokens.size());
  std::vector<std::size_t> open;  // the indentation of the lines that a colon ended
  bool one_line = false;          // the innermost ends with its line
  std::size_t header = tokens.size(), depth = 0;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const RawToken& token = tokens[i];
    if (token.type == Lexer::LBRACE || token.type == Lexer::RBRACE) depth = 0;
    if (token.first_on_line && depth == 0) {
      const std::size_t column = open.empty() ? 0 : indentation(text, token.begin);
      const std::uint32_t end = result.empty() ? 0 : result.back().end;
      for (; !open.empty() && (one_line || column <= open.back());
           open.pop_back(), one_line = false) {
        // The block may have kept its `}`.
        const bool closed = !one_line && token.type == Lexer::RBRACE && column == open.back();
        if (!closed) result.push_back(brace(Lexer::RBRACE, end));
      }
    }
    const std::size_t previous = result.empty() ? std::size_t{Lexer::SEMI} : result.back().type;
    const bool begins = depth == 0 && (token.first_on_line || previous == Lexer::SEMI ||
                                       previous == Lexer::LBRACE || previous == Lexer::RBRACE);
    if (begins)
      header = heads_block(token.type) && !(token.type == Lexer::ORDER && i + 1 < tokens.size() &&
                                            tokens[i + 1].type != Lexer::COLON)
                   ? i
                   : tokens.size();
    depth = depth_behind(depth, token);
    if (token.type == Lexer::LBRACE) header = tokens.size();
    if (token.type != Lexer::COLON || depth > 0 || header == tokens.size() ||
        braces_follow(tokens, i)) {
      result.push_back(token);
      continue;
    }
    const std::string_view head =
        text.substr(tokens[header].begin, token.begin - tokens[header].begin);
    if (!tokens[header].replaced) {
      sink.report(Code::foreign_form, {file, token.begin, token.end},
                  "`:` is written differently here")
          .hint("a block has braces: write `{} { ... }`", head.size() <= 60 ? head : "...");
    }
    RawToken& opened = result.emplace_back(token);
    opened.type = Lexer::LBRACE;
    open.push_back(indentation(text, token.begin));
    one_line = i + 1 < tokens.size() && !tokens[i + 1].first_on_line;
    header = tokens.size();
  }
  const std::uint32_t end = result.empty() ? 0 : result.back().end;
  for (; !open.empty(); open.pop_back()) result.push_back(brace(Lexer::RBRACE, end));
  tokens = std::move(result);
}

namespace {

/// Closes the blocks of one declaration that has more `{` than `}`.
class BlockCloser {
 public:
  BlockCloser(RawTokens& result, std::string_view text, FileId file, SelectedReports& sink,
              std::size_t lacking)
      : result_(result), text_(text), file_(file), sink_(sink), lacking_(lacking) {}

  void take(const RawToken& token) {
    if (token.first_on_line && (depth_ == 0 || token.type == Lexer::RBRACE)) {
      column_ = indentation(text_, token.begin);
      // A `}` closes the block whose line has the same indentation.
      close_before(token, token.type == Lexer::RBRACE ? column_ + 1 : column_);
    }
    depth_ = depth_behind(depth_, token);
    if (token.type == Lexer::LBRACE) open_.push_back({token, column_});
    if (token.type == Lexer::RBRACE && !open_.empty()) open_.pop_back();
    result_.push_back(token);
  }

 private:
  struct Open {
    Token token;
    std::size_t column;
  };

  /// Closes blocks at `column` or further in, with one message for the innermost.
  void close_before(const RawToken& next, std::size_t column) {
    for (bool reported = false; lacking_ > 0 && !open_.empty() && open_.back().column >= column;
         --lacking_, open_.pop_back(), reported = true) {
      const Token& token = open_.back().token;
      if (!reported) {
        sink_.report(Code::unclosed_bracket, {file_, token.begin, token.end}, "`{` is not closed")
            .related(SourceRange{file_, next.begin, next.end},
                     "by its indentation this is outside of the block")
            .hint("add a `}` before that line");
      }
      result_.push_back(brace(Lexer::RBRACE, result_.back().end));
    }
  }

  RawTokens& result_;
  std::string_view text_;
  FileId file_;
  SelectedReports& sink_;
  std::size_t lacking_;
  std::vector<Open> open_;
  std::size_t column_ = 0;
  std::size_t depth_ = 0;  // of `(` and `[`
};

/// Opens the blocks of one declaration that has more `}` than `{`: the line of a construct with a
/// block is its head if the lines below it are indented further, up to a `}` at its indentation.
class BlockOpener {
 public:
  BlockOpener(RawTokens& result, std::string_view text, FileId file, SelectedReports& sink,
              std::size_t lacking)
      : result_(result), text_(text), file_(file), sink_(sink), lacking_(lacking) {}

  void take(const RawToken& token) {
    if (token.first_on_line && depth_ == 0) begin_line(token);
    depth_ = depth_behind(depth_, token);
    if (token.type == Lexer::LBRACE) lines_.push_back({true, result_.size(), column_});
    if (token.type == Lexer::RBRACE) close(token);
    result_.push_back(token);
  }

 private:
  /// An open `{`, or a line that may be the head of a block.
  struct Line {
    bool opened;
    std::size_t end;  // the position behind it
    std::size_t column;
  };

  void begin_line(const RawToken& token) {
    const std::size_t column = indentation(text_, token.begin);
    while (!lines_.empty() && !lines_.back().opened && lines_.back().column > column)
      lines_.pop_back();
    if (token.type == Lexer::RBRACE) return;
    // A line that is indented as far as the one before it is not below that.
    if (!lines_.empty() && !lines_.back().opened && lines_.back().column == column)
      lines_.pop_back();
    if (heads_ && result_.back().type != Lexer::LBRACE && column > column_)
      lines_.push_back({false, result_.size(), column_});
    column_ = column;
    heads_ =
        heads_block(token.type) || text_.substr(token.begin, token.end - token.begin) == "config";
  }

  void close(const RawToken& token) {
    if (lines_.empty()) return;
    const Line line = lines_.back();
    if (line.opened) {
      lines_.pop_back();
      return;
    }
    const bool matches = token.first_on_line && line.column == indentation(text_, token.begin);
    if (matches && lacking_ > 0) {
      const RawToken& last = result_[line.end - 1];
      sink_
          .report(Code::unexpected_token, {file_, last.end, last.end},
                  "expected `{}` after `{}`, found the end of the line", "{",
                  text_.substr(last.begin, last.end - last.begin))
          .related({file_, token.begin, token.end}, "by its indentation this `}` ends the block")
          .fix(" {");
      result_.insert(result_.begin() + static_cast<std::ptrdiff_t>(line.end),
                     brace(Lexer::LBRACE, last.end));
      --lacking_;
      lines_.pop_back();
      return;
    }
    // The `}` is that of the innermost block.
    while (!lines_.empty() && !lines_.back().opened) lines_.pop_back();
    if (!lines_.empty()) lines_.pop_back();
  }

  RawTokens& result_;
  std::string_view text_;
  FileId file_;
  SelectedReports& sink_;
  std::size_t lacking_;
  std::vector<Line> lines_;
  bool heads_ = false;  // the line before begins a construct with a block
  std::size_t column_ = 0;
  std::size_t depth_ = 0;  // of `(` and `[`
};

}  // namespace

void match_blocks_by_indentation(RawTokens& tokens, std::string_view text, FileId file,
                                 SelectedReports& sink) {
  RawTokens result;
  result.reserve(tokens.size());
  for (std::size_t begin = 0; begin < tokens.size();) {
    std::size_t end = begin, opened = 0, closed = 0;
    do {
      opened += tokens[end].type == Lexer::LBRACE;
      closed += tokens[end].type == Lexer::RBRACE;
    } while (++end < tokens.size() && !begins_item(tokens, end));
    BlockCloser closer(result, text, file, sink, opened - std::min(opened, closed));
    BlockOpener opener(result, text, file, sink, closed - std::min(opened, closed));
    for (std::size_t i = begin; i < end; ++i) {
      if (closed > opened) {
        opener.take(tokens[i]);
      } else {
        closer.take(tokens[i]);
      }
    }
    begin = end;
  }
  tokens = std::move(result);
}

}  // namespace piper::parse
