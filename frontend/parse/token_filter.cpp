#include "frontend/parse/token_filter.h"

#include <algorithm>
#include <set>

#include "antlr4-runtime.h"
#include "frontend/ast/stmt.h"
#include "frontend/parse/divisions.h"
#include "frontend/parse/foreign_forms.h"
#include "frontend/parse/indentation.h"
#include "frontend/parse/read_raw_tokens.h"
#include "frontend/parse/token_types.h"
#include "grammar_generated/PipeLexer.h"

namespace piper::parse {

namespace {

using Lexer = generated::PipeLexer;

/// Reads lexer tokens, writes parser tokens.
class TokenFilter {
 public:
  TokenFilter(std::string_view text, FileId file, Reading reading, SelectedReports& sink)
      : text_(text), file_(file), reading_(reading), sink_(sink) {}

  Tokens run() {
    RawText read = read_raw_tokens(text_, file_, sink_);
    raw_ = std::move(read.tokens);
    result_.docs = std::move(read.docs);
    result_.comments = std::move(read.comments);
    unclosed_string_ends_ = std::move(read.unclosed_string_ends);
    warn_of_divisions(raw_, text_, file_, sink_);
    replace_foreign_forms(raw_, text_, file_, sink_);
    remove_unknown_text(raw_, text_, file_, sink_);
    if (recovers()) {
      brace_colon_blocks(raw_, text_, file_, sink_);
      match_blocks_by_indentation(raw_, text_, file_, sink_);
      find_unclosed();
    }
    for (next_ = 0; next_ < raw_.size() && !result_.too_deep; ++next_) take(raw_[next_]);
    auto end = static_cast<std::uint32_t>(text_.size());
    close_down_to(0, {end, end}, "the file ends here");
    separate();
    emit(antlr4::Token::EOF, end, end);
    return std::move(result_);
  }

 private:
  struct Open {
    Token token;
    bool unclosed = false;
    std::size_t depth = 1;  // the bracket and the operators since the last comma inside it
  };
  struct Span {
    std::uint32_t begin, end;
  };

  bool recovers() const { return reading_ == Reading::with_mistakes; }
  SourceRange range(const Token& token) const { return {file_, token.begin, token.end}; }
  std::string_view text(const Token& token) const {
    return text_.substr(token.begin, token.end - token.begin);
  }

  // Writing.

  std::uint32_t last_end() const { return result_.list.empty() ? 0 : result_.list.back().end; }
  bool last_is(std::size_t type) const {
    return !result_.list.empty() && result_.list.back().type == type;
  }
  void emit(std::size_t type, std::uint32_t begin, std::uint32_t end) {
    result_.list.push_back({type, begin, end});
  }

  void separate() {
    if (result_.list.empty() || last_is(Lexer::SEMI) || last_is(Lexer::LBRACE)) return;
    emit(Lexer::SEMI, last_end(), last_end());
  }

  // Brackets.

  bool inside_brackets() const {
    return !open_.empty() && open_.back().token.type != Lexer::LBRACE;
  }

  void close_top(Span where, std::string_view why, bool quiet = false) {
    Open top = open_.back();
    open_.pop_back();
    // An unclosed string contains the brackets after it, and is reported already; so is nesting
    // that is too deep, which ends reading.
    if (!quiet && !result_.too_deep && !unclosed_string_ends_.contains(last_end())) {
      const std::string_view closer = top.token.type == Lexer::LPAREN     ? ")"
                                      : top.token.type == Lexer::LBRACKET ? "]"
                                                                          : "}";
      DiagnosticBuilder report = sink_.report(Code::unclosed_bracket, range(top.token),
                                              "`{}` is not closed", text(top.token));
      report.related(SourceRange{file_, where.begin, where.end}, "{}", why);
      const std::string_view behind =
          text_.substr(last_end(), text_.find('\n', last_end()) - last_end());
      if (const std::size_t comment = behind.find("//");
          comment != std::string_view::npos &&
          behind.find(closer, comment) != std::string_view::npos) {
        report.hint(
            "`//` begins a comment, and the `{}` of this line is inside it; integers are divided with `/`",
            closer);
      } else {
        report.hint("add a `{}`", closer);
        // The end of a block is unknown; and several brackets that end in one place would each take
        // the end of another.
        const bool outermost = std::ranges::all_of(
            open_, [](const Open& open) { return open.token.type == Lexer::LBRACE; });
        const bool alone = outermost && (result_.list.empty() ||
                                         result_.list.back().begin != result_.list.back().end);
        if (closer != "}" && alone)
          report.fix({file_, last_end(), last_end()}, std::string(closer));
      }
    }
    if (top.token.type == Lexer::LBRACE) separate();
    emit(closer_of(top.token.type), last_end(), last_end());
  }

  void close_down_to(std::size_t level, Span where, std::string_view why) {
    // Which of several open brackets lacks its end cannot be known; one message for the innermost
    // says enough.
    for (bool reported = false; open_.size() > level; reported = true)
      close_top(where, why, reported);
  }

  void close_brackets(const Token& before) {
    while (inside_brackets())
      close_top({before.begin, before.end}, "it had to be closed before this");
  }

  /// The nesting depth inside the innermost bracket.
  std::size_t& depth() { return open_.empty() ? outer_depth_ : open_.back().depth; }

  void deepen(const Token& token) {
    if (token.type == Lexer::COMMA || token.type == Lexer::SEMI || token.type == Lexer::LBRACE ||
        token.type == Lexer::RBRACE)
      depth() = 1;
    if (makes_deeper(token.type)) ++depth();
  }

  void check_depth(const Token& token) {
    std::size_t depth = outer_depth_;
    for (const Open& open : open_) depth += open.depth;
    if (depth <= kMaxNesting) return;
    sink_
        .report(Code::nesting_too_deep, range(token), "this is nested more than {} deep",
                kMaxNesting)
        .hint("name parts with `let`, or use a list and a loop");
    result_.too_deep = true;
  }

  // Reading.

  /// Marks brackets without a closing one before a token that cannot be inside brackets.
  void find_unclosed() {
    std::vector<RawToken*> open;
    const auto leave_to = [&](std::size_t level) {
      for (; open.size() > level; open.pop_back()) open.back()->unclosed = true;
    };
    for (RawToken& token : raw_) {
      if (token.type == Lexer::LPAREN || token.type == Lexer::LBRACKET) {
        open.push_back(&token);
      } else if (token.type == Lexer::RPAREN || token.type == Lexer::RBRACKET) {
        std::size_t level = open.size();
        while (level > 0 && closer_of(open[level - 1]->type) != token.type) --level;
        if (level == 0) continue;
        leave_to(level);
        open.pop_back();
      } else if (ends_brackets(token.type) ||
                 (token.first_on_line && only_begins_statement(token.type) &&
                  !is_argument(token,
                               &token < &raw_.back() ? (&token)[1].type : antlr4::Token::EOF))) {
        leave_to(0);
      }
    }
    leave_to(0);
  }

  std::size_t type_after(std::size_t distance) const {
    return next_ + distance < raw_.size() ? raw_[next_ + distance].type : antlr4::Token::EOF;
  }

  bool begins_item(const RawToken& token) const {
    if (!token.first_on_line) return false;
    if (token.type == Lexer::MODEL)
      return open_.empty() || (type_after(1) == Lexer::NAME && type_after(2) == Lexer::LPAREN);
    return only_begins_item(token.type);
  }

  bool begins_statement(const RawToken& token) const {
    if (!token.first_on_line) return false;
    if (token.type == Lexer::NAME)
      return type_after(1) == Lexer::ASSIGN ||
             (type_after(1) == Lexer::COLON && begins_pair(token));
    if (token.type == Lexer::CURSOR) return type_after(1) == Lexer::NAME;
    if (token.type == Lexer::FOR) return !last_is(Lexer::LBRACKET);
    if (token.type == Lexer::ORDER)
      return !last_is(Lexer::COLON) && !last_is(Lexer::ARROW) && !last_is(Lexer::LBRACKET);
    return only_begins_statement(token.type) && !is_argument(token, type_after(1));
  }

  /// The `at:` of a device, which no slot number is.
  static bool is_argument(const RawToken& token, std::size_t next) {
    return token.type == Lexer::AT && next == Lexer::COLON;
  }

  /// `NAME :` on a new line is a statement of its own, even if the line before lacks its end,
  /// unless the line may continue with a pair.
  bool begins_pair(const RawToken& token) const {
    if (!inside_brackets()) return !last_goes_on_with_pair() && !inside_slot_number();
    const bool in_train = item_ == Lexer::TRAIN && open_[0].token.type == Lexer::LBRACE &&
                          open_[1].token.type != Lexer::LBRACE;
    return in_train && open_.back().unclosed &&
           std::ranges::find(ast::kTrainSettings, text(token)) != std::end(ast::kTrainSettings);
  }

  bool last_goes_on_with_pair() const {
    return last_is(Lexer::COMMA) || last_is(Lexer::INTO) || last_is(Lexer::WITH) ||
           last_is(Lexer::INPUT) || last_is(Lexer::STREAM);
  }

  /// `at 6*i +` goes on with `r: F stage[r]`.
  bool inside_slot_number() const {
    auto token = result_.list.rbegin();
    const auto end = result_.list.rend();
    if (token == end || token->type == Lexer::COLON || can_end_statement(token->type)) return false;
    while (token != end && token->type != Lexer::AT && token->type != Lexer::SEMI &&
           token->type != Lexer::LBRACE)
      ++token;
    return token != end && token->type == Lexer::AT;
  }

  /// `(rank: 3)`, `f(order: x)` and `w[dim, over]`: a keyword where only the name of a parameter,
  /// an argument or a dimension is legal.
  void rename_keyword(RawToken& token) {
    const bool keyword = token.type >= Lexer::AND && token.type <= Lexer::PASS;
    if (open_.size() > 1 && open_.back().token.type == Lexer::LPAREN &&
        is_argument(token, type_after(1)))
      return;
    if (!keyword || !inside_brackets() ||
        (!last_is(Lexer::COMMA) && !last_is(open_.back().token.type)))
      return;
    const std::size_t next = type_after(1);
    const bool element = open_.back().token.type == Lexer::LBRACKET && ends_brackets(token.type) &&
                         (next == Lexer::COMMA || next == Lexer::RBRACKET);
    if (next != Lexer::COLON && !element) return;
    sink_
        .report(Code::reserved_word, range(token), "`{}` is a reserved word and cannot be a name",
                text(token))
        .hint("choose another name");
    token.type = Lexer::NAME;
  }

  void take(RawToken token) {
    rename_keyword(token);
    const bool item = recovers() && begins_item(token),
               statement = recovers() && begins_statement(token);
    if (item) {
      close_down_to(0, {token.begin, token.end}, "here a new declaration begins");
      item_ = token.type;
    }
    if (inside_brackets() && (statement || ends_brackets(token.type))) close_brackets(token);
    if (token.first_on_line && !inside_brackets()) begin_line(token, item || statement);

    switch (token.type) {
      case Lexer::SEMI:
        if (!result_.list.empty() && !last_is(Lexer::SEMI) && !last_is(Lexer::LBRACE))
          emit(token.type, token.begin, token.end);
        deepen(token);
        return;
      case Lexer::RPAREN:
      case Lexer::RBRACKET:
      case Lexer::RBRACE: close(token); return;
      case Lexer::LPAREN:
      case Lexer::LBRACKET:
      case Lexer::LBRACE:
        deepen(token);
        open_.push_back({token, token.unclosed});
        break;
      case Lexer::BAD_NUMBER:
        deepen(token);
        emit(Lexer::NUMBER, token.begin, token.end);
        return;
      default: deepen(token); break;
    }
    emit(token.type, token.begin, token.end);
    check_depth(token);
  }

  /// A line end outside brackets is a separator when the line before can end there.
  void begin_line(const RawToken& token, bool certainly_new) {
    if (result_.list.empty()) return;
    if (certainly_new) {
      separate();
      depth() = 1;
      return;
    }
    if (!can_end_statement(result_.list.back().type) || token.type == Lexer::BACKWARD) return;
    bool block_of_item = token.type == Lexer::LBRACE && open_.empty();
    if (!continues_statement(token.type) && !block_of_item) {
      separate();
      depth() = 1;
      return;
    }
    DiagnosticBuilder builder =
        sink_.report(Code::unexpected_token, range(token),
                     "a line begins with `{}`, but the line before it is complete", text(token));
    const SourceRange between{file_, last_end(), token.begin};
    const std::string_view space = text_.substr(between.begin, between.end - between.begin);
    const bool comment = space.find_first_not_of(" \t\r\n") != std::string_view::npos;
    if (token.type == Lexer::ELSE) {
      builder.hint("write `} else` on one line");
      if (!comment) builder.fix(Fix{"write `} else` on one line", {{between, " "}}});
    } else {
      builder.hint(
          "a line end ends the statement unless a `(` or `[` is open: put `{}` at the end of the line before",
          text(token));
      const std::string moved(text(token));
      if (!comment)
        builder.fix(Fix{"put `" + moved + "` at the end of the line before",
                        {{{file_, between.begin, token.end}, " " + moved + std::string(space)}}});
    }
  }

  void close(const RawToken& token) {
    std::size_t level = open_.size();  // of the bracket that this one closes; 0: none
    if (token.type == Lexer::RBRACE) {
      while (level > 0 && open_[level - 1].token.type != Lexer::LBRACE) --level;
    } else {
      while (level > 0 && open_[level - 1].token.type != Lexer::LBRACE &&
             closer_of(open_[level - 1].token.type) != token.type)
        --level;
      if (level > 0 && open_[level - 1].token.type == Lexer::LBRACE) level = 0;
    }
    if (level == 0 && token.type != Lexer::RBRACE && inside_brackets()) {
      const Token& opener = open_.back().token;
      sink_
          .report(Code::unmatched_bracket, range(token), "`{}` does not close `{}`", text(token),
                  text(opener))
          .related(range(opener), "this is what is open")
          .fix(opener.type == Lexer::LPAREN ? ")" : "]");
      std::size_t closer = closer_of(opener.type);
      open_.pop_back();
      emit(closer, token.begin, token.end);
      return;
    }
    if (level == 0) {
      sink_.report(Code::unmatched_bracket, range(token), "`{}` closes nothing", text(token))
          .fix("");
      return;
    }
    close_down_to(level, {token.begin, token.end}, "it had to be closed before this");
    if (token.type == Lexer::RBRACE) separate();
    open_.pop_back();
    emit(token.type, token.begin, token.end);
    deepen(token);
  }

  std::string_view text_;
  FileId file_;
  Reading reading_;
  SelectedReports& sink_;
  RawTokens raw_;
  std::size_t next_ = 0;
  std::size_t item_ = antlr4::Token::EOF;  // that begins the declaration
  std::vector<Open> open_;
  std::size_t outer_depth_ = 1;
  std::set<std::uint32_t> unclosed_string_ends_;
  Tokens result_;
};

}  // namespace

Tokens tokenize(std::string_view text, FileId file, Reading reading, SelectedReports& sink) {
  return TokenFilter(text, file, reading, sink).run();
}

}  // namespace piper::parse
