#include "frontend/parse/grammar_words.h"

#include <algorithm>
#include <iterator>
#include <span>
#include <vector>

#include "frontend/ast/stmt.h"
#include "grammar_generated/PipeParser.h"
#include "ir/diagnostics/suggestion.h"
#include "ir/directive/directive_rows.h"

namespace piper::parse {

namespace {

using Parser = generated::PipeParser;

/// Words that begin a declaration.
constexpr std::string_view kItemKeywords[] = {"def",   "machine",  "mesh",  "model", "names",
                                              "param", "schedule", "train", "use"};

/// Words that begin a declaration, then words that begin a statement, sorted.
std::span<const std::string_view> first_words() {
  static const std::vector<std::string_view> words = [] {
    std::vector<std::string_view> list;
    for (const directive::DirectiveRow& row : directive::directive_rows())
      list.push_back(row.keyword);
    for (std::size_t kind = 0; kind < ast::kNumStmtKinds; ++kind) {
      if (const std::string_view word = ast::keyword_of(static_cast<ast::StmtKind>(kind));
          !word.empty())
        list.push_back(word);
    }
    std::sort(list.begin(), list.end());
    list.insert(list.begin(), std::begin(kItemKeywords), std::end(kItemKeywords));
    return list;
  }();
  return words;
}

std::string_view nearest_keyword(std::string_view word,
                                 std::span<const std::string_view> keywords) {
  return word.size() < 3 ? std::string_view()
                         : nearest_name(word, keywords, word.size() == 3 ? 1 : 2);
}

}  // namespace

std::string_view noun_of(std::size_t rule) {
  switch (rule) {
    case Parser::RuleItem:
      return "a declaration (`use`, `param`, `mesh`, `model`, `schedule`, `def`, `train`, `machine`, `names`)";
    case Parser::RuleStmt: return "a statement";
    case Parser::RuleNamesBody: return "a block `{ ... }`";
    case Parser::RuleNamesLine: return "a line such as `embed.token: \"wte.weight\"[vocab, dim]`";
    case Parser::RuleFactsBody: return "a block `{ ... }`";
    case Parser::RuleFacts: return "a fact such as `rope_theta: 10000`";
    case Parser::RulePathPart: return "a name";
    case Parser::RuleTuple: return "parameters such as `(q, k, v)`";
    case Parser::RulePathDim: return "a dimension or an index";
    case Parser::RuleFactor: return "a factor such as `half: 2`";
    case Parser::RuleFileTensor: return "a tensor of the file such as `\"wte.weight\"[vocab, dim]`";
    case Parser::RuleFileDim: return "a dimension";
    case Parser::RuleModelCall: return "a model such as `gpt(layers: 8)`";
    case Parser::RuleParams: return "a parameter list such as `(p: axis)`";
    case Parser::RuleParam: return "a parameter such as `p: axis`";
    case Parser::RuleKind: return "a type";
    case Parser::RuleDim: return "a dimension";
    case Parser::RuleAxis: return "an axis such as `pp: 2`";
    case Parser::RuleExtent: return "a dimension such as `mb: 8`";
    case Parser::RuleSetting: return "a setting such as `bucket: 25MiB`";
    case Parser::RuleName: return "a name";
    case Parser::RuleBlock: return "a block `{ ... }`";
    case Parser::RuleCount: return "a count";
    case Parser::RuleCondition: return "a condition";
    case Parser::RuleSlot: return "a slot number";
    case Parser::RuleElseBranch: return "a block `{ ... }` or `if`";
    case Parser::RuleRegion: return "a region";
    case Parser::RuleDevices: return "a device set such as `p[0]`";
    case Parser::RuleWeightDecl: return "a weight such as `w[dim]`";
    case Parser::RuleAxes: return "an axis";
    case Parser::RuleDimensions: return "a dimension";
    case Parser::RuleEach: return "a loop variable such as `i in 0..m`";
    case Parser::RuleBinding: return "a loop variable such as `i in 0..m`";
    case Parser::RuleStep: return "a step such as `F stage[0]`";
    case Parser::RuleMember: return "an operation such as `F stage[0]`, or a block";
    case Parser::RuleTargets: return "a selector such as `stage[0]`";
    case Parser::RuleTarget: return "a selector such as `stage[0]`";
    case Parser::RuleExpr: return "an expression";
    case Parser::RuleArg: return "an argument";
    case Parser::RuleArgValue: return "an expression";
    case Parser::RuleElems: return "an expression";
    default: return "";
  }
}

std::string token_name(antlr4::Parser* parser, std::size_t type) {
  switch (type) {
    case Parser::NAME: return "a name";
    case Parser::NUMBER: return "a number";
    case Parser::STRING: return "a string";
    case Parser::PASS: return "a pass (`F`, `R`, `B`, `BI`, `BW`)";
    case Parser::SEMI: return "the end of the statement";
    case antlr4::Token::EOF: return "the end of the file";
    default: break;
  }
  std::string literal = parser->getVocabulary().getLiteralName(type);  // 'on'
  if (literal.size() > 2) return "`" + literal.substr(1, literal.size() - 2) + "`";
  return "something else";
}

std::string_view meant_keyword(std::string_view word) {
  return nearest_keyword(word, first_words());
}

std::string_view meant_item_keyword(std::string_view word) {
  return nearest_keyword(word, kItemKeywords);
}

}  // namespace piper::parse
