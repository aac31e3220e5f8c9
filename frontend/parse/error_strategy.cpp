#include "frontend/parse/error_strategy.h"

#include <algorithm>

#include "frontend/parse/grammar_words.h"
#include "grammar_generated/PipeParser.h"

namespace piper::parse {

namespace {

using Parser = generated::PipeParser;
using antlr4::atn::ATN;
using antlr4::atn::RuleTransition;
using antlr4::misc::IntervalSet;

constexpr std::string_view kRankBinding = "ranks such as `r in p`";

bool is_keyword(std::size_t type) { return type >= Parser::AND && type <= Parser::PASS; }
bool is_opener(std::size_t type) {
  return type == Parser::LPAREN || type == Parser::LBRACKET || type == Parser::LBRACE;
}
bool is_closer(std::size_t type) {
  return type == Parser::RPAREN || type == Parser::RBRACKET || type == Parser::RBRACE;
}

/// Tokens that reliably begin a part of a construct.
bool is_landmark(std::size_t type) {
  switch (type) {
      // clang-format off
    case Parser::COMMA: case Parser::COLON: case Parser::ASSIGN: case Parser::ARROW:
    case Parser::LBRACE: case Parser::RPAREN: case Parser::RBRACKET: case Parser::AS:
    case Parser::BACKWARD: case Parser::BY: case Parser::ELSE: case Parser::IN: case Parser::INTO:
    case Parser::ON: case Parser::OVER: case Parser::THEN: case Parser::WITH:
    case Parser::AMPERSAND:
      // clang-format on
      return true;
    default: return false;
  }
}

bool begins_item(std::size_t type) {
  switch (type) {
    case Parser::USE:
    case Parser::PARAM:
    case Parser::MESH:
    case Parser::DEF:
    case Parser::SCHEDULE:
    case Parser::MODEL:
    case Parser::TRAIN:
    case Parser::MACHINE:
    case Parser::NAMES: return true;
    default: return false;
  }
}

/// A list of statements or lines in braces.
bool is_body(std::size_t rule) {
  return rule == Parser::RuleBlock || rule == Parser::RuleNamesBody ||
         rule == Parser::RuleFactsBody;
}

const antlr4::atn::ATNState* state_of(antlr4::Parser* parser) {
  return parser->getATN().states[parser->getState()];
}

/// The tokens that can follow `context` in the rule that called it.
IntervalSet follow_of(antlr4::Parser* parser, const antlr4::ParserRuleContext* context) {
  const ATN& atn = parser->getATN();
  if (context->invokingState == static_cast<std::size_t>(-1)) return {};
  auto* call =
      static_cast<const RuleTransition*>(atn.states[context->invokingState]->transitions[0]);
  return atn.nextTokens(call->followState);
}

antlr4::ParserRuleContext* parent_of(const antlr4::ParserRuleContext* context) {
  return static_cast<antlr4::ParserRuleContext*>(context->parent);
}

/// The type of the i-th token from here, 1 the current one. All tokens are in one channel; the
/// stream's own look-ahead walks over those in between.
std::size_t type_ahead(antlr4::TokenStream* input, std::size_t i) {
  const std::size_t at = input->index() + i - 1;
  return at < input->size() ? input->get(at)->getType() : antlr4::Token::EOF;
}

/// The number of tokens before the end of the statement, from a place that may lie inside its `(`
/// and `[`.
std::size_t distance_to_end(antlr4::TokenStream* input) {
  std::size_t depth = 0;
  for (std::size_t i = 1;; ++i) {
    const std::size_t type = type_ahead(input, i);
    if (type == antlr4::Token::EOF) return i - 1;
    if (depth == 0 && (type == Parser::SEMI || type == Parser::RBRACE)) return i - 1;
    if (is_opener(type)) ++depth;
    if (is_closer(type) && depth > 0) --depth;
  }
}

/// How far the `{` of this statement is; 0: it has none.
std::size_t distance_to_block(antlr4::TokenStream* input) {
  std::size_t depth = 0;
  for (std::size_t i = 1;; ++i) {
    const std::size_t type = type_ahead(input, i);
    if (type == antlr4::Token::EOF ||
        (depth == 0 && (type == Parser::SEMI || type == Parser::RBRACE)))
      return 0;
    if (depth == 0 && type == Parser::LBRACE) return i;
    if (is_opener(type)) ++depth;
    if (is_closer(type) && depth > 0) --depth;
  }
}

void skip(antlr4::Parser* parser, std::size_t count) {
  for (; count > 0; --count) parser->consume();
}

}  // namespace

SourceRange ErrorStrategy::range(const antlr4::Token* token) const {
  return {file_, static_cast<std::uint32_t>(token->getStartIndex()),
          static_cast<std::uint32_t>(token->getStopIndex())};
}

std::string_view ErrorStrategy::text(const antlr4::Token* token) const {
  return text_.substr(token->getStartIndex(), token->getStopIndex() - token->getStartIndex());
}

bool ErrorStrategy::line_break_between(const antlr4::Token* a, const antlr4::Token* b) const {
  std::size_t begin = a->getStopIndex(), end = b->getStartIndex();
  return begin < end && text_.substr(begin, end - begin).find('\n') != std::string_view::npos;
}

std::string ErrorStrategy::describe(antlr4::Parser* parser, antlr4::Token* token) const {
  std::string_view shown = text(token);
  if (!shown.empty())
    return shown.size() <= 40 ? "`" + std::string(shown) + "`"
                              : "`" + std::string(shown.substr(0, 37)) + "...`";
  // For an inserted token, most often a SEMI, the user sees the next token of the text.
  antlr4::TokenStream* input = parser->getTokenStream();
  std::size_t index = token->getTokenIndex();
  if (index + 1 < input->size()) {
    antlr4::Token* next = input->get(index + 1);
    if (line_break_between(token, next)) return "the end of the line";
    if (!text(next).empty()) return "`" + std::string(text(next).substr(0, 40)) + "`";
  }
  return "the end of the file";
}

DiagnosticBuilder ErrorStrategy::report_expected(std::string_view what, antlr4::Parser* parser,
                                                 antlr4::Token* found) {
  std::string found_text = describe(parser, found);
  antlr4::Token* previous = parser->getTokenStream()->LT(-1);
  std::string after;
  if (previous != nullptr && previous->getType() != Parser::SEMI &&
      previous->getType() != Parser::LBRACE && !is_closer(previous->getType()) &&
      !text(previous).empty() && text(previous).size() <= 30 &&
      !line_break_between(previous, found)) {
    after = " after `" + std::string(text(previous)) + "`";
  }
  DiagnosticBuilder builder = sink_.report(Code::unexpected_token, range(found),
                                           "expected {}{}, found {}", what, after, found_text);
  const std::size_t type = found->getType();
  antlr4::Token* const next = type == antlr4::Token::EOF
                                  ? nullptr
                                  : parser->getTokenStream()->get(found->getTokenIndex() + 1);
  if (type == Parser::NUMBER && what == kRankBinding) {
    builder.hint("the order of rank {} alone begins with `rank r in p[{}]`", text(found),
                 text(found));
  } else if (type == Parser::SEMI && previous != nullptr &&
             text_.substr(previous->getStopIndex()).starts_with(" // ")) {
    builder.hint("`//` begins a comment, not a division: integers are divided with `/`");
  } else if (type == Parser::ASSIGN && what.find("block") != std::string_view::npos) {
    builder.hint("values are compared with `==`").fix("==");
  } else if (type == Parser::COLON && what == "`=`" && previous != nullptr) {
    builder.hint("the type follows from the value: write `{} = ...`", text(previous));
  } else if (parser->getContext()->getRuleIndex() == Parser::RuleParam && what == "`:`" &&
             previous != nullptr) {
    builder.hint("a parameter has a type, as in `{}: int`", text(previous));
  } else if (type == Parser::COMMA && what == "`)`") {
    builder.hint("a list is written `[a, b]`");
  } else if (type == Parser::PASS && (what == "an expression" || what == "`]`")) {
    builder.hint(
        "an operation is no value: it is a step of a rank, or the argument of `left(...)`");
  } else if (is_keyword(type) && (what == "a name" || what == "an expression")) {
    builder.hint("{} is a reserved word", found_text);
  } else if (type == Parser::DOT && next != nullptr && next->getType() == Parser::NUMBER) {
    builder.hint("write `0.{}`", text(next))
        .fix(cover(range(found), range(next)), "0." + std::string(text(next)));
  } else if (const std::size_t at = found->getTokenIndex();
             what == "a name" && at >= 2 && previous != nullptr &&
             previous->getType() == Parser::DOT &&
             parser->getTokenStream()->get(at - 2)->getType() == Parser::NUMBER &&
             text(parser->getTokenStream()->get(at - 2)).find('.') == std::string_view::npos) {
    antlr4::Token* const number = parser->getTokenStream()->get(at - 2);
    builder.hint("write `{}.0`", text(number))
        .fix(cover(range(number), range(previous)), std::string(text(number)) + ".0");
  }
  return builder;
}

std::optional<DiagnosticBuilder> ErrorStrategy::report(antlr4::Parser* parser,
                                                       antlr4::Token* found) {
  if (recovering_) return std::nullopt;
  recovering_ = true;
  antlr4::ParserRuleContext* context = parser->getContext();
  if (context->getRuleIndex() == Parser::RuleCoordinate && context->start != found) {
    report_coordinate(parser, context->start);
    return std::nullopt;
  }

  // The outermost construct that was to begin here has the most telling name.
  std::string_view noun;
  for (auto* outer = context; outer != nullptr && outer->start == found; outer = parent_of(outer)) {
    std::string_view name = noun_of(outer->getRuleIndex());
    bool is_container = outer->getRuleIndex() == Parser::RuleStmt ||
                        outer->getRuleIndex() == Parser::RuleItem ||
                        outer->getRuleIndex() == Parser::RuleNamesLine;
    if (!name.empty() && (noun.empty() || !is_container)) noun = name;
  }
  antlr4::Token* previous = parser->getTokenStream()->LT(-1);
  if (!noun.empty())
    return report_expected(
        previous != nullptr && previous->getType() == Parser::RANK ? kRankBinding : noun, parser,
        found);

  // In the middle of a construct: name the token, or the few tokens, that fit.
  IntervalSet expected =
      parser->getATN().nextTokens(const_cast<antlr4::atn::ATNState*>(state_of(parser)));
  std::vector<std::string> names;
  for (ssize_t type : expected.toList()) {
    if (type > 0) names.push_back(token_name(parser, static_cast<std::size_t>(type)));
  }
  std::string what;
  if (names.empty() || names.size() > 4) {
    bool block = expected.contains(static_cast<std::size_t>(Parser::LBRACE));
    what = block ? "an expression or a block `{ ... }`" : "an expression";
  } else {
    for (std::size_t i = 0; i < names.size(); ++i)
      what += (i == 0 ? "" : i + 1 == names.size() ? " or " : ", ") + names[i];
  }
  return report_expected(what, parser, found);
}

/// A name after a selector that has no index: mostly a forgotten keyword, `place stage[0] p` for
/// `place stage[0] on p`.
void ErrorStrategy::report_coordinate(antlr4::Parser* parser, antlr4::Token* found) {
  antlr4::ParserRuleContext* context = parser->getContext();
  std::string missing;
  std::size_t candidates = 0;
  for (auto* outer = context; outer != nullptr; outer = parent_of(outer)) {
    std::size_t rule = outer->getRuleIndex();
    if (rule == Parser::RuleStmt || rule == Parser::RuleItem || rule == Parser::RuleBlock) break;
    IntervalSet follow = follow_of(parser, outer);
    for (std::size_t type :
         {Parser::ON, Parser::INTO, Parser::OVER, Parser::THEN, Parser::LBRACE}) {
      if (follow.contains(type)) {
        missing = token_name(parser, type);
        ++candidates;
      }
    }
    if (candidates > 0) break;
  }
  std::size_t index = found->getTokenIndex();
  antlr4::Token* previous = index > 0 ? parser->getTokenStream()->get(index - 1) : nullptr;
  if (candidates == 1) {
    DiagnosticBuilder builder = sink_.report(Code::unexpected_token, range(found),
                                             "expected {} before `{}`", missing, text(found));
    const SourceRange before{file_, range(found).begin, range(found).begin};
    if (missing != "`{`") builder.fix(before, missing.substr(1, missing.size() - 2) + " ");
    return;
  }
  antlr4::Token* first = context->start;
  for (auto* outer = context; outer != nullptr; outer = parent_of(outer)) {
    first = outer->start;
    if (outer->getRuleIndex() == Parser::RuleStmt) break;
  }
  std::string_view keyword = first->getType() == Parser::NAME && first == previous
                                 ? meant_keyword(text(first))
                                 : std::string_view();
  if (!keyword.empty()) {
    sink_.report(Code::unexpected_token, range(first), "`{}` begins no statement", text(first))
        .did_you_mean(keyword, text(first));
    return;
  }
  DiagnosticBuilder builder =
      previous == nullptr || text(previous).empty()
          ? sink_.report(Code::unexpected_token, range(found), "unexpected `{}`", text(found))
          : sink_.report(Code::unexpected_token, range(found), "unexpected `{}` after `{}`",
                         text(found), text(previous));
  builder.hint("a further coordinate of a selector has an index, as in `stage[0] {}[1]`",
               text(found));
}

void ErrorStrategy::report_end_of_statement(antlr4::Parser* parser) {
  if (recovering_) return;
  recovering_ = true;
  antlr4::Token* found = parser->getTokenStream()->LT(1);
  antlr4::ParserRuleContext* context = parser->getContext();
  bool at_item = context->getRuleIndex() == Parser::RuleProgram;
  if (!context->children.empty()) {
    auto* last = dynamic_cast<antlr4::ParserRuleContext*>(context->children.back());
    antlr4::Token* first = last != nullptr ? last->start : nullptr;
    const std::size_t begins = first != nullptr ? first->getType() : antlr4::Token::EOF;
    if (found->getType() == Parser::COMMA &&
        (begins == Parser::CURSOR || begins == Parser::LET || begins == Parser::VAR)) {
      sink_
          .report(Code::unexpected_token, range(found),
                  "expected the end of the statement, found `,`")
          .hint(
              "each name has a statement of its own: `{}` comes before every one, after a `;` or a line end",
              text(first));
      return;
    }
    if (first != nullptr && first->getType() == Parser::NAME) {
      std::size_t second = parser->getTokenStream()->get(first->getTokenIndex() + 1)->getType();
      bool two_words = second == Parser::NAME || is_keyword(second);
      std::string_view keyword = two_words ? meant_keyword(text(first)) : std::string_view();
      if (!keyword.empty()) {
        sink_.report(Code::unexpected_token, range(first), "`{}` begins no statement", text(first))
            .did_you_mean(keyword, text(first));
        return;
      }
    }
  }
  if (!at_item && found->getType() == Parser::PASS) {
    sink_
        .report(Code::unexpected_token, range(found),
                "expected the end of the statement, found `{}`", text(found))
        .hint("operations are separated by `;` or line ends; `&` overlaps them");
    return;
  }
  if (!at_item && (found->getType() == Parser::FOR || found->getType() == Parser::REPEAT ||
                   found->getType() == Parser::IF)) {
    sink_
        .report(Code::unexpected_token, range(found),
                "expected the end of the statement, found `{}`", text(found))
        .hint("statements on one line are separated by `;`");
    return;
  }
  report_expected(at_item ? "the end of the declaration" : "the end of the statement", parser,
                  found);
}

void ErrorStrategy::reportError(antlr4::Parser* parser, const antlr4::RecognitionException& error) {
  antlr4::Token* found = error.getOffendingToken();
  // A decision may have looked further ahead; the place of the mistake is its first token.
  if (auto* undecided = dynamic_cast<const antlr4::NoViableAltException*>(&error))
    found = undecided->getStartToken();
  report(parser, found);
}

/// Offers to insert a keyword or a mark after the token before.
void ErrorStrategy::offer_missing(std::optional<DiagnosticBuilder> builder, antlr4::Parser* parser,
                                  std::size_t type) const {
  const std::string literal = parser->getVocabulary().getLiteralName(type);  // 'on'
  antlr4::Token* const previous = parser->getTokenStream()->LT(-1);
  if (!builder || previous == nullptr || literal.size() < 3 || type == Parser::SEMI) return;
  const SourceRange behind{file_, range(previous).end, range(previous).end};
  const std::string word = literal.substr(1, literal.size() - 2);
  builder->fix(behind, type == Parser::COMMA || type == Parser::COLON || is_closer(type)
                           ? word
                           : " " + word);
}

antlr4::Token* ErrorStrategy::conjure(antlr4::Parser* parser, std::size_t type) {
  antlr4::Token* previous = parser->getTokenStream()->LT(-1);
  std::size_t at = previous != nullptr ? previous->getStopIndex() : 0;
  auto token = std::make_unique<antlr4::CommonToken>(type);
  token->setStartIndex(at);
  token->setStopIndex(at);
  return conjured_.emplace_back(std::move(token)).get();
}

antlr4::Token* ErrorStrategy::recoverInline(antlr4::Parser* parser) {
  antlr4::TokenStream* input = parser->getTokenStream();
  const ATN& atn = parser->getATN();
  const auto* state = state_of(parser);
  antlr4::ParserRuleContext* context = parser->getContext();
  std::size_t rule = context->getRuleIndex();
  antlr4::Token* found = input->LT(1);
  std::size_t type = found->getType();
  antlr4::atn::Transition* transition = state->transitions[0];
  IntervalSet expected = atn.nextTokens(const_cast<antlr4::atn::ATNState*>(state));

  if ((is_body(rule) || rule == Parser::RuleProgram) &&
      expected.contains(static_cast<std::size_t>(Parser::SEMI))) {
    report_end_of_statement(parser);
    skip(parser, distance_to_end(input));
    antlr4::Token* end = input->LT(1);
    if (end->getType() == Parser::SEMI) {
      parser->consume();
      recovering_ = false;
      return end;
    }
    return conjure(parser, Parser::SEMI);
  }

  IntervalSet behind = atn.nextTokens(transition->target, context);
  antlr4::Token* previous = input->LT(-1);
  bool same_line = previous == nullptr || !line_break_between(previous, found);
  bool wants_name = expected.contains(static_cast<std::size_t>(Parser::NAME));
  if (wants_name && is_keyword(type) && same_line && !recovering_ &&
      behind.contains(input->LA(2))) {
    const antlr4::ParserRuleContext* outer =
        rule == Parser::RuleName ? parent_of(context) : context;
    const bool library = outer != nullptr && outer->getRuleIndex() == Parser::RuleItem &&
                         outer->start->getType() == Parser::USE &&
                         text(input->get(outer->start->getTokenIndex() + 1)) == "std";
    sink_
        .report(Code::reserved_word, range(found), "`{}` is a reserved word and cannot be a name",
                text(found))
        .hint(
            "{}",
            library
                ? "the parts of the standard library are `std.schedules`, `std.models` and `std.names`"
                : "choose another name");
    parser->consume();
    return found;
  }
  // Brackets have their partners: a made-up `{` would take the `}` of another one.
  if (expected.size() == 1 && expected.contains(static_cast<std::size_t>(Parser::LBRACE))) {
    report(parser, found);
    const std::size_t distance = distance_to_block(input);
    if (distance == 0) throw antlr4::InputMismatchException(parser);
    skip(parser, distance - 1);
    antlr4::Token* open = input->LT(1);
    parser->consume();
    return open;
  }
  // One token is missing: the present one fits after it.
  if (behind.contains(type)) {
    std::optional<DiagnosticBuilder> builder = report(parser, found);
    if (expected.size() == 1)
      offer_missing(std::move(builder), parser, static_cast<std::size_t>(expected.getMinElement()));
    return conjure(parser, static_cast<std::size_t>(expected.getMinElement()));
  }
  // Another word in its place: `in` for `into`.
  bool is_word = is_keyword(type) || type == Parser::NAME;
  if (is_word && same_line && behind.contains(input->LA(2)) &&
      is_keyword(static_cast<std::size_t>(expected.getMinElement()))) {
    report(parser, found);
    recovering_ = false;
    parser->consume();
    return found;
  }
  // A token too many.
  bool removable =
      type != Parser::SEMI && type != antlr4::Token::EOF && !is_opener(type) && !is_closer(type);
  if (removable && expected.contains(input->LA(2))) {
    report(parser, found);
    recovering_ = true;
    parser->consume();
    recovering_ = false;
    antlr4::Token* wanted = input->LT(1);
    parser->consume();
    return wanted;
  }
  throw antlr4::InputMismatchException(parser);
}

void ErrorStrategy::recover(antlr4::Parser* parser, std::exception_ptr error) {
  antlr4::ParserRuleContext* context = parser->getContext();
  std::size_t rule = context->getRuleIndex();
  antlr4::TokenStream* input = parser->getTokenStream();
  recovering_ = true;
  if (rule == Parser::RuleStmt || rule == Parser::RuleItem || rule == Parser::RuleNamesLine ||
      rule == Parser::RuleFacts) {
    skip(parser, distance_to_end(input));
    return;
  }
  if (rule == Parser::RuleProgram) return;
  IntervalSet follow = follow_of(parser, context);
  std::size_t depth = 0;
  for (std::size_t i = 1;; ++i) {
    const std::size_t type = type_ahead(input, i);
    if (type == antlr4::Token::EOF || type == Parser::SEMI) {
      if (depth == 0 || type == antlr4::Token::EOF) break;
    }
    if (depth == 0 && is_landmark(type) && follow.contains(type)) {
      skip(parser, i - 1);
      return;
    }
    if (is_opener(type)) ++depth;
    if (is_closer(type) && depth-- == 0) break;
  }
  std::rethrow_exception(error);
}

void ErrorStrategy::sync(antlr4::Parser* parser) {
  antlr4::ParserRuleContext* context = parser->getContext();
  std::size_t rule = context->getRuleIndex();
  if (!is_body(rule) && rule != Parser::RuleProgram) return;
  antlr4::TokenStream* input = parser->getTokenStream();
  IntervalSet expected =
      parser->getATN().nextTokens(const_cast<antlr4::atn::ATNState*>(state_of(parser)));
  if (expected.contains(static_cast<std::size_t>(Parser::SEMI))) return;
  bool reported = false;
  while (!expected.contains(input->LA(1)) && input->LA(1) != antlr4::Token::EOF) {
    antlr4::Token* found = input->LT(1);
    if (!reported && !recovering_) {
      if (is_body(rule)) {
        report_expected(noun_of(rule == Parser::RuleBlock       ? Parser::RuleStmt
                                : rule == Parser::RuleNamesBody ? Parser::RuleNamesLine
                                                                : Parser::RuleFacts),
                        parser, found);
      } else {
        DiagnosticBuilder builder =
            sink_.report(Code::unexpected_token, range(found), "expected {}, found {}",
                         noun_of(Parser::RuleItem), describe(parser, found));
        std::string_view keyword =
            found->getType() == Parser::NAME ? meant_item_keyword(text(found)) : std::string_view();
        if (!keyword.empty() && keyword != text(found)) {
          builder.did_you_mean(keyword, text(found));
        } else if (!begins_item(found->getType())) {
          builder.hint("statements belong inside a `model`, `schedule`, `def` or `train`");
        }
      }
      // Outside all items one message is enough until the next item begins.
      reported = rule == Parser::RuleProgram;
    }
    recovering_ = true;
    skip(parser, std::max<std::size_t>(distance_to_end(input), 1));
    if (input->LA(1) == Parser::SEMI) parser->consume();
    recovering_ = false;
  }
}

}  // namespace piper::parse
