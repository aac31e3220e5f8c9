#include "frontend/parse/foreign_forms.h"

#include <algorithm>
#include <cctype>

#include "antlr4-runtime.h"
#include "frontend/parse/statement_text.h"
#include "frontend/parse/token_types.h"
#include "frontend/source/word_of_hint.h"
#include "grammar_generated/PipeLexer.h"

namespace piper::parse {

namespace {

using Lexer = generated::PipeLexer;
using Where = ForeignForm::Where;

/// The types of the tokens of `words`, which are ours.
std::vector<std::size_t> types_of(std::string_view words) {
  antlr4::ANTLRInputStream input{std::string(words)};
  Lexer lexer(&input);
  std::vector<std::size_t> types;
  for (auto token = lexer.nextToken(); token->getType() != antlr4::Token::EOF;
       token = lexer.nextToken())
    types.push_back(token->getType());
  return types;
}

bool is_word(std::string_view text) { return (text[0] | 0x20) >= 'a' && (text[0] | 0x20) <= 'z'; }

class Replacer {
 public:
  Replacer(RawTokens& tokens, std::string_view text, FileId file, SelectedReports& sink)
      : tokens_(tokens), text_(text), source_(tokens, text), file_(file), sink_(sink) {}

  void run() {
    for (next_ = 0; next_ < tokens_.size();) {
      begin_statement();
      const std::size_t count = replace();
      if (count == 0) {
        track_brackets(tokens_[next_]);
        result_.push_back(tokens_[next_]);
      }
      next_ += std::max<std::size_t>(count, 1);
    }
    tokens_ = std::move(result_);
  }

 private:
  struct Bracket {
    std::size_t type;
    std::size_t first;   // the token behind it
    bool index;          // after a name or an index
    std::uint32_t from;  // where the element began
    std::size_t colons = 0;
  };

  std::string_view text(const Token& token) const { return source_.text(token); }
  bool in_brackets() const { return !brackets_.empty(); }
  const RawToken* at(std::size_t position) const { return source_.at(position); }
  /// The token before the next one, as the parser will read it, on the same line.
  const RawToken* before() const {
    return result_.empty() || tokens_[next_].first_on_line ? nullptr : &result_.back();
  }
  bool at_statement() const { return next_ == statement_; }
  std::size_t statement_type() const {
    return statement_ < tokens_.size() ? tokens_[statement_].type : antlr4::Token::EOF;
  }

  void begin_statement() {
    const RawToken& token = tokens_[next_];
    if (token.first_on_line && brackets_end_before(token.type)) brackets_.clear();
    if (in_brackets() || (token.type == Lexer::BACKWARD && statement_type() == Lexer::CURSOR))
      return;
    const std::size_t previous = result_.empty() ? std::size_t{Lexer::SEMI} : result_.back().type;
    const bool behind =
        previous == Lexer::SEMI || previous == Lexer::LBRACE || previous == Lexer::AMPERSAND;
    const bool behind_slot = previous == Lexer::COLON && statement_type() == Lexer::AT;
    if (behind || behind_slot ||
        (token.first_on_line && (ends_operand(previous) || previous == Lexer::MODEL ||
                                 previous == Lexer::PASS || previous == Lexer::RBRACE))) {
      statement_ = next_;
    }
  }

  /// An open bracket must not hide the text after it.
  static bool brackets_end_before(std::size_t type) {
    switch (type) {
      case Lexer::LET:
      case Lexer::VAR:
      case Lexer::RETURN:
      case Lexer::REQUIRE:
      case Lexer::RANK:
      case Lexer::CURSOR:
      case Lexer::PLACE:
      case Lexer::RBRACE:
      case Lexer::DEF:
      case Lexer::SCHEDULE:
      case Lexer::TRAIN:
      case Lexer::MACHINE:
      case Lexer::NAMES:
      case Lexer::MESH:
      case Lexer::USE:
      case Lexer::PARAM: return true;
      default: return false;
    }
  }

  void track_brackets(const RawToken& token) {
    if (token.type == Lexer::LPAREN || token.type == Lexer::LBRACKET) {
      const bool index =
          token.type == Lexer::LBRACKET && !result_.empty() &&
          (result_.back().type == Lexer::NAME || result_.back().type == Lexer::RBRACKET);
      brackets_.push_back({token.type, next_ + 1, index, token.end});
    } else if ((token.type == Lexer::RPAREN || token.type == Lexer::RBRACKET) && in_brackets()) {
      brackets_.pop_back();
    } else if (token.type == Lexer::LBRACE || token.type == Lexer::RBRACE) {
      brackets_.clear();
      if (depth_ == 0) in_names_ = statement_type() == Lexer::NAMES;
      if (token.type == Lexer::LBRACE) ++depth_;
      if (token.type == Lexer::RBRACE && depth_ > 0) --depth_;
    } else if (token.type == Lexer::COMMA && in_brackets()) {
      brackets_.back().from = token.end;
      brackets_.back().colons = 0;
    }
  }

  /// The number of tokens from the next one that `form` consists of; 0: it is not here.
  std::size_t matches(const ForeignForm& form) const {
    const RawToken& first = tokens_[next_];
    if (!text_.substr(first.begin).starts_with(form.text)) return 0;
    const std::uint32_t end = first.begin + static_cast<std::uint32_t>(form.text.size());
    std::size_t count = 0;
    while (next_ + count < tokens_.size() && tokens_[next_ + count].begin < end) ++count;
    return tokens_[next_ + count - 1].end == end ? count : 0;
  }

  bool line_opens_block() const {
    const RawToken* last = &tokens_[next_];
    for (std::size_t i = next_; stands_on_line(at(i + 1)); ++i) {
      if (tokens_[i + 1].type == Lexer::LBRACE) return true;
      last = &tokens_[i + 1];
    }
    return last->type == Lexer::COLON;
  }

  bool fits(const ForeignForm& form, std::size_t count) const {
    const RawToken* previous = before();
    const RawToken* behind = at(next_ + count);
    if (!stands_on_line(behind)) behind = nullptr;
    switch (form.where) {
      case Where::anywhere:
        return !is_word(form.text) || takes_parameters(behind, at(next_ + count + 1));
      case Where::item:
        return depth_ == 0 && at_statement() && behind != nullptr &&
               (behind->type == Lexer::NAME || names_file(form, behind));
      case Where::statement: {
        if (!at_statement() || behind == nullptr || behind->type != Lexer::NAME) return false;
        const RawToken* further = at(next_ + count + 1);
        const bool gives_value = stands_on_line(further) && further->type == Lexer::ASSIGN;
        return gives_value == (form.instead == "let");
      }
      case Where::clause:
        return behind != nullptr && behind->type != Lexer::ASSIGN &&
               (at_statement() || (previous != nullptr && previous->type == Lexer::RBRACE)) &&
               line_opens_block();
      case Where::operand:
        return previous != nullptr && ends_operand(previous->type) && !at_statement() &&
               behind != nullptr && behind->type != Lexer::LBRACKET &&
               behind->type != Lexer::ASSIGN;
      case Where::declared:
        return next_ == statement_ + 1 && tokens_[statement_].type == Lexer::NAME;
      case Where::let:
        return next_ == statement_ + 2 &&
               (statement_type() == Lexer::LET || statement_type() == Lexer::VAR);
      case Where::step:
        return depth_ > 0 && !in_brackets() && statement_type() == Lexer::PASS &&
               behind != nullptr && behind->type == Lexer::PASS;
      case Where::index: return fits_index();
      case Where::argument: return names_argument();
    }
    return false;
  }

  /// `import "lib/mine.pipe"`.
  static bool names_file(const ForeignForm& form, const RawToken* behind) {
    return form.where == Where::item && form.instead == "use" && behind != nullptr &&
           behind->type == Lexer::STRING;
  }

  /// `x:` or `x, y:`.
  static bool takes_parameters(const RawToken* behind, const RawToken* further) {
    return behind != nullptr && behind->type == Lexer::NAME && further != nullptr &&
           (further->type == Lexer::COLON || further->type == Lexer::COMMA);
  }

  /// `f(x = 1)`; not the parameters of a declaration.
  bool names_argument() const {
    if (!in_brackets() || brackets_.back().type != Lexer::LPAREN || result_.size() < 2 ||
        result_.back().type != Lexer::NAME)
      return false;
    const std::size_t first = result_[result_.size() - 2].type;
    switch (statement_type()) {
      case Lexer::DEF:
      case Lexer::SCHEDULE:
      case Lexer::MODEL: return false;
      default: return first == Lexer::LPAREN || first == Lexer::COMMA;
    }
  }

  /// A colon in an index; not that of `for`, and not that of a dimension `w[dim: 4]` or a factor of
  /// one.
  bool fits_index() const {
    if (!in_brackets() || in_names_ || !brackets_.back().index ||
        tokens_[brackets_.back().first].type == Lexer::FOR)
      return false;
    switch (statement_type()) {
      case Lexer::WEIGHT:
      case Lexer::INPUT:
      case Lexer::DEF:
      case Lexer::SCHEDULE:
      case Lexer::MODEL: return false;
      default: return depth_ > 0;
    }
  }

  std::string_view left() const {
    if (!in_brackets()) return {};
    std::string_view text =
        text_.substr(brackets_.back().from, tokens_[next_].begin - brackets_.back().from);
    while (text.starts_with(' ')) text.remove_prefix(1);
    while (text.ends_with(' ')) text.remove_suffix(1);
    return text;
  }

  std::string hint(const ForeignForm& form, std::size_t count) const {
    std::string out(form.hint);
    const auto fill = [&](std::string_view word, const std::string& value) {
      for (std::size_t at = 0; (at = out.find(word, at)) != std::string::npos; at += value.size())
        out.replace(at, word.size(), value);
    };
    const std::string_view behind = source_.statement_from(next_ + count),
                           to = source_.element_from(next_ + count);
    // Behind all operators but `+` a sum needs its parentheses.
    const bool several = form.where == Where::declared && form.text != "+=" && form.text != ":=" &&
                         behind.find_first_of(" +-*/%@") != std::string_view::npos;
    fill("$path", source_.path_from(next_ + count));
    fill("$rest", behind.empty() ? "..."
                  : several      ? "(" + std::string(behind) + ")"
                                 : std::string(behind));
    fill("$name", result_.empty() ? "x" : std::string(text(result_.back())));
    const std::string from(left());
    fill("$left", from.empty() ? "0" : from);
    const bool number = !to.empty() && to.size() < 10 &&
                        to.find_first_not_of("0123456789") == std::string_view::npos;
    fill("$next",
         number ? std::to_string(std::stoul(std::string(to)) + 1) : std::string(to) + " + 1");
    std::string by;
    for (std::size_t i = next_ + count;
         form.where == Where::index && at(i) != nullptr &&
         tokens_[i].begin <= tokens_[next_ + count].begin + to.size();
         ++i) {
      if (tokens_[i].type == Lexer::COLON) by = " by " + std::string(source_.element_from(i + 1));
    }
    fill("$by", by);
    fill("$right", to.empty() ? "n" : std::string(to));
    return out;
  }

  /// `F(stage[r], mb[i])`, `backward(a)`: a pass is called like a function. (`forward` may be the
  /// name of one; otherwise the analysis reports it.)
  bool drop_call_of_pass() {
    const bool word =
        at_statement() && tokens_[next_].type == Lexer::BACKWARD && stands_on_line(at(next_ + 1));
    const std::size_t open = next_ + (word ? 1 : 0);
    if (tokens_[open].type != Lexer::LPAREN || open != statement_ + 1 ||
        (!word && statement_type() != Lexer::PASS))
      return false;
    const std::size_t close = source_.closing_bracket(open);
    std::vector<std::size_t> dropped =
        close == 0 ? std::vector<std::size_t>() : source_.find_between(open, close, Lexer::COMMA);
    if (close == 0 || (dropped.empty() && !word)) return false;
    std::string operand;
    dropped.push_back(close);
    for (std::size_t i = 0, first = open + 1; i < dropped.size(); first = dropped[i++] + 1)
      operand += " " + source_.between(first, dropped[i]);
    sink_
        .report(Code::foreign_form, {file_, tokens_[next_].begin, tokens_[close].end},
                "a pass is not called like a function")
        .hint("write `{}{}`", word ? "B" : text(tokens_[statement_]), operand);
    if (word) {
      dropped.insert(dropped.begin(), open);
      tokens_[next_].type = Lexer::PASS;
      tokens_[next_].replaced = true;
      result_.push_back(tokens_[next_]);
    }
    while (!dropped.empty()) {
      tokens_.erase(tokens_.begin() + static_cast<std::ptrdiff_t>(dropped.back()));
      dropped.pop_back();
    }
    return true;
  }

  /// The comma of `F stage[r], mb[i]`: a dimension after a selector that lacks it. Behind
  /// `F stage[0], stage[1]` a step is missing.
  bool drop_comma_of_coordinates() {
    if (tokens_[next_].type != Lexer::COMMA || in_brackets() || statement_type() != Lexer::PASS ||
        next_ < statement_ + 2)
      return false;
    if (!stands_on_line(at(next_ + 1)) || tokens_[next_ + 1].type != Lexer::NAME) return false;
    const std::string pass(text(tokens_[statement_])),
        before = source_.between(statement_ + 1, next_), behind(source_.statement_from(next_ + 1));
    const bool step = text(tokens_[next_ + 1]) == text(tokens_[statement_ + 1]);
    DiagnosticBuilder builder =
        sink_.report(Code::foreign_form, {file_, tokens_[next_].begin, tokens_[next_].end},
                     "`,` is written differently here");
    if (!step) {
      builder.hint("a selector has no commas: write `{} {} {}`", pass, before, behind);
      return true;
    }
    builder.hint("steps are separated by `;`: write `{} {}; {} {}`", pass, before, pass, behind);
    emit(Lexer::SEMI, tokens_[next_]);
    result_.push_back(tokens_[statement_]);
    return true;
  }

  void emit(std::size_t type, const RawToken& like) {
    RawToken& token = result_.emplace_back(like);
    token.type = type;
    token.replaced = true;
    token.first_on_line = false;
  }

  /// `(int i = 0; i < n; i++)` and `(i in 0..n)` after `for`; returns the number of its tokens.
  std::size_t replace_head_of_for() {
    if (tokens_[next_].type != Lexer::LPAREN || next_ != statement_ + 1 ||
        statement_type() != Lexer::FOR)
      return 0;
    const std::size_t close = source_.closing_bracket(next_);
    if (close > next_ + 3 && tokens_[next_ + 1].type == Lexer::NAME &&
        tokens_[next_ + 2].type == Lexer::IN) {
      sink_
          .report(Code::foreign_form, {file_, tokens_[next_].begin, tokens_[close].end},
                  "the head of a loop has no brackets")
          .hint("write `for {} { ... }`", source_.between(next_ + 1, close));
      result_.insert(result_.end(), tokens_.begin() + static_cast<std::ptrdiff_t>(next_ + 1),
                     tokens_.begin() + static_cast<std::ptrdiff_t>(close));
      return close + 1 - next_;
    }
    const std::vector<std::size_t> ends =
        close == 0 ? std::vector<std::size_t>() : source_.find_between(next_, close, Lexer::SEMI);
    if (ends.size() != 2) return 0;
    std::size_t is = next_ + 1;
    while (is < ends[0] && tokens_[is].type != Lexer::ASSIGN) ++is;
    const std::size_t to = ends[0] + 3;
    const bool counts = is < ends[0] && tokens_[is - 1].type == Lexer::NAME && to < ends[1] &&
                        tokens_[ends[0] + 1].type == Lexer::NAME;
    if (!counts) return 0;
    const std::string from = source_.between(is + 1, ends[0]),
                      end = source_.between(to, ends[1]) +
                            (text(tokens_[ends[0] + 2]) == "<=" ? " + 1" : "");
    sink_
        .report(Code::foreign_form, {file_, tokens_[next_].begin, tokens_[close].end},
                "a loop goes through a list, and has no other head")
        .hint("write `for {} in {}..{} { ... }`", text(tokens_[is - 1]), from, end);
    result_.push_back(tokens_[is - 1]);
    emit(Lexer::IN, tokens_[is]);
    for (std::size_t i = is + 1; i < ends[0]; ++i) result_.push_back(tokens_[i]);
    emit(Lexer::RANGE, tokens_[ends[0]]);
    for (std::size_t i = to; i < ends[1]; ++i) result_.push_back(tokens_[i]);
    return close + 1 - next_;
  }

  /// The edits of the hint if it is definite; otherwise nothing.
  std::vector<Edit> edits(const ForeignForm& form, std::size_t count,
                          std::string_view advice) const {
    const std::uint32_t begin = tokens_[next_].begin, end = tokens_[next_ + count - 1].end;
    const std::string_view to = source_.element_from(next_ + count);
    const auto end_of = [&](std::string_view part) {
      return static_cast<std::uint32_t>(part.data() + part.size() - text_.data());
    };
    if (form.where == Where::declared) {
      const std::string_view behind = source_.statement_from(next_ + count);
      const auto statement = word_of_hint(advice);
      const bool whole = !behind.empty() ? closes_its_brackets(behind)
                                         : form.hint.find("$rest") == std::string_view::npos;
      if (!statement || !whole) return {};
      return {{{file_, result_.back().begin, behind.empty() ? end : end_of(behind)},
               std::string(*statement)}};
    }
    if (form.text == "..=") {
      const auto range = word_of_hint(advice);
      if (!range || to.empty()) return {};
      return {{{file_, begin, end_of(to)}, std::string(*range)}};
    }
    if (form.where == Where::index) return index_edits(begin, end, to);
    if (form.where == Where::argument) {
      const RawToken* value = at(next_ + count);
      return {{{file_, result_.back().end, stands_on_line(value) ? value->begin : end}, ": "}};
    }
    const std::string word = "write `" + std::string(form.instead);
    const bool names_it = advice == word + "`" || advice.starts_with(word + "`;") ||
                          advice.starts_with(word + "`,") || form.hint == word + " $rest`";
    if (!names_it) return {};
    return {{{file_, begin, end}, spaced(form.instead, begin, end)}};
  }

  /// `0:8` and `0:8:2`; without a bound the meaning is ambiguous.
  std::vector<Edit> index_edits(std::uint32_t begin, std::uint32_t end, std::string_view to) const {
    if (left().empty() || to.empty()) return {};
    std::vector<Edit> edits = {{{file_, begin, end}, ".."}};
    for (std::size_t i = next_ + 1;
         at(i) != nullptr && tokens_[i].begin <= tokens_[next_ + 1].begin + to.size(); ++i) {
      if (tokens_[i].type != Lexer::COLON) continue;
      if (source_.element_from(i + 1).empty()) return {};
      edits.push_back({{file_, tokens_[i].begin, tokens_[i].end}, " by "});
    }
    return edits;
  }

  static bool closes_its_brackets(std::string_view text) {
    std::ptrdiff_t open = 0;
    for (const char c : text)
      open += (c == '(' || c == '[' || c == '{') - (c == ')' || c == ']' || c == '}');
    return open == 0;
  }

  /// The word with the spaces that it needs to stay one: `a&&b`, `!a`.
  std::string spaced(std::string_view word, std::uint32_t begin, std::uint32_t end) const {
    const auto joins = [&](std::size_t at) {
      return is_word(word) && at < text_.size() &&
             (std::isalnum(static_cast<unsigned char>(text_[at])) || text_[at] == '_' ||
              text_[at] == '(');
    };
    return (begin > 0 && joins(begin - 1) && text_[begin - 1] != '(' ? " " : "") +
           std::string(word) + (joins(end) ? " " : "");
  }

  std::size_t replace() {
    if (drop_call_of_pass() || drop_comma_of_coordinates()) return 1;
    if (const std::size_t count = replace_head_of_for(); count > 0) return count;
    for (const ForeignForm& form : foreign_forms()) {
      if (form.text[0] != text_[tokens_[next_].begin]) continue;
      const std::size_t count = matches(form);
      if (count == 0 || !fits(form, count)) continue;
      const std::uint32_t begin = tokens_[next_].begin, end = tokens_[next_ + count - 1].end;
      // The second colon of `0:8:2`.
      const bool step_of_range = form.where == Where::index && brackets_.back().colons++ > 0;
      if (!step_of_range) {
        const std::string advice = hint(form, count);
        DiagnosticBuilder builder = sink_.report(Code::foreign_form, {file_, begin, end},
                                                 "`{}` is written differently here", form.text);
        builder.hint("{}", advice).fix(edits(form, count, advice));
      }
      if (names_file(form, at(next_ + count))) return count + 1;  // the rest is not a `use`
      bool first = tokens_[next_].first_on_line;
      for (const std::size_t type : types_of(step_of_range ? "by" : form.instead)) {
        RawToken& token = result_.emplace_back();
        token.type = type;
        token.begin = begin;
        token.end = end;
        token.replaced = true;
        token.first_on_line = std::exchange(first, false);
      }
      if (first && at(next_ + count) != nullptr) tokens_[next_ + count].first_on_line = true;
      return count;
    }
    return 0;
  }

  RawTokens& tokens_;
  std::string_view text_;
  StatementText source_;
  FileId file_;
  SelectedReports& sink_;
  RawTokens result_;
  std::vector<Bracket> brackets_;  // `(` and `[` that are open
  std::size_t depth_ = 0;          // of `{`
  bool in_names_ = false;          // in the lines of a `names` item
  std::size_t next_ = 0;
  std::size_t statement_ = 0;  // the first token of the statement
};

}  // namespace

void replace_foreign_forms(RawTokens& tokens, std::string_view text, FileId file,
                           SelectedReports& sink) {
  Replacer(tokens, text, file, sink).run();
}

}  // namespace piper::parse
