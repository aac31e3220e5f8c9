// The parser: programs to AST goldens, mistakes to caret expectations, and the forms of other
// languages.

#include "frontend/parse/parse.h"

#include <gtest/gtest.h>

#include "frontend/parse/foreign_forms.h"
#include "ir/diagnostics/forward.h"
#include "tests/diagnostics/findings.h"
#include "tests/support/file_test.h"
#include "tests/support/golden.h"

namespace piper {
namespace {

struct Parsed {
  LocationTable table;
  DiagnosticSink sink{table};
  FileId file;
  ast::Module module;

  explicit Parsed(std::string text, std::string name = "test.pipe")
      : file(table.files().add(std::move(name), std::move(text))),
        module(parse::parse(table.files(), file, sink)) {}

  std::string ast() const { return print(module, table.files()); }
  std::string report() const { return render_text(sink.sorted(), table.files()); }
  std::vector<Code> codes() const {
    std::vector<Code> list;
    for (const Diagnostic& diagnostic : sink.sorted()) list.push_back(diagnostic.code);
    return list;
  }
};

/// The expression of `param x = <text>`.
std::string structure(const std::string& text) {
  Parsed parsed("param x = " + text);
  EXPECT_TRUE(parsed.sink.empty()) << parsed.report();
  if (parsed.module.items.empty()) return "";
  return source_text(*llvm::cast<ast::ParamItem>(parsed.module.items[0])->value);
}

PIPER_FILE_TEST(ParsePrograms, "tests/frontend/testdata/parse/programs", ".pipe",
                [](const test::FileTest& test) {
                  Parsed parsed(test.text, test.path);
                  EXPECT_TRUE(parsed.sink.empty()) << parsed.report();
                  test::expect_golden(test.beside(".ast"), parsed.ast());
                });

PIPER_FILE_TEST(ParseErrors, "tests/frontend/testdata/parse/errors", ".pipe",
                [](const test::FileTest& test) {
                  test::expect_findings(test,
                                        [&](const std::string& path, const std::string& source) {
                                          Parsed parsed(source, path);
                                          EXPECT_TRUE(parsed.sink.has_errors());
                                          test::expect_golden(test.beside(".ast"), parsed.ast());
                                          return test::findings(parsed.sink, parsed.file);
                                        });
                });

/// The grammar has a form for each row of directives.def, with the clauses that it needs and with
/// all that it takes; the AST prints them as written.
TEST(ParseDirectives, EveryRowHasAForm) {
  constexpr std::string_view kSubjects[] = {"model", "batch", "F stage[0], stage[1]",
                                            "p2p: model.send"};
  constexpr std::string_view kClauses[] = {"part: 4", "stage[0]", "p[0]",
                                           "dp, tp",  "heads",    "window: 2"};
  for (const directive::DirectiveRow& row : directive::directive_rows()) {
    for (const bool all : {false, true}) {
      std::string line = std::string(row.keyword) + " " +
                         std::string(kSubjects[static_cast<std::size_t>(row.subject)]);
      for (std::size_t i = 0; i < std::size(kClauses); ++i) {
        const auto clause = static_cast<directive::Clause>(i);
        if (all ? row.clauses.takes(clause) : row.clauses.needs(clause))
          line += " " + std::string(directive::kClauseWords[i]) + " " + std::string(kClauses[i]);
      }
      const Parsed parsed("schedule s(p: axis) {\n    " + line + "\n}\n");
      SCOPED_TRACE(line);
      ASSERT_TRUE(parsed.sink.empty()) << parsed.report();
      const ast::Stmt* stmt =
          llvm::cast<ast::FunctionItem>(parsed.module.items[0])->body->statements[0];
      ASSERT_TRUE(llvm::isa<ast::DirectiveStmt>(stmt));
      EXPECT_EQ(llvm::cast<ast::DirectiveStmt>(stmt)->directive, row.kind);
      EXPECT_NE(print_without_ranges(parsed.module).find("  " + line + "\n"), std::string::npos)
          << print_without_ranges(parsed.module);
    }
  }
}

/// One error each, at the form, with its hint filled in; the text around it parses.
TEST(ParseForeign, EveryFormIsOneErrorWithAHint) {
  for (const parse::ForeignForm& form : parse::foreign_forms()) {
    const bool item =
        form.where == parse::ForeignForm::Where::item || form.example.starts_with("def");
    const std::string text =
        item ? "mesh m(p: 2)\n" + std::string(form.example) + "\nmesh n(q: 2)\n"
             : "def g() -> steps {\n    F stage[0]\n    " + std::string(form.example) +
                   "\n    B stage[0]\n}\nmesh n(q: 2)\n";
    SCOPED_TRACE(form.example);
    Parsed parsed(text);
    ASSERT_EQ(parsed.codes(), std::vector<Code>{Code::foreign_form}) << parsed.report();
    const Diagnostic diagnostic = parsed.sink.sorted().front();
    EXPECT_EQ(text.substr(diagnostic.range.begin, diagnostic.range.end - diagnostic.range.begin),
              form.text);
    EXPECT_FALSE(diagnostic.hint.empty());
    EXPECT_EQ(diagnostic.hint.find('$'), std::string::npos) << diagnostic.hint;
    EXPECT_EQ(parsed.module.items.back()->kind, ast::ItemKind::mesh);
  }
}

/// A form of more than one word is one error as well, with the replacement in its hint.
TEST(ParseForeign, ShapesOfOtherLanguagesAreOneErrorWithAHint) {
  const std::pair<const char*, const char*> kCases[] = {
      {"F(stage[r], mb[i])", "write `F stage[r] mb[i]`"},
      {"F(stage[0], mb[f(1, 2)], copy[0]) & B stage[1] mb[0]",
       "write `F stage[0] mb[f(1, 2)] copy[0]`"},
      {"backward(stage[r], mb[i])", "write `B stage[r] mb[i]`"},
      {"backward(a)", "write `B a`"},
      {"F stage[r], mb[i]", "a selector has no commas: write `F stage[r] mb[i]`"},
      {"F stage[0] mb[0], stage[1] mb[0]",
       "steps are separated by `;`: write `F stage[0] mb[0]; F stage[1] mb[0]`"},
      {"for (int i = 0; i < n; i++) { F a }", "write `for i in 0..n { ... }`"},
      {"for (i = 1; i <= len(a); ++i) { F a }", "write `for i in 1..len(a) + 1 { ... }`"},
      {"for (i in 0..len(a)) { F a }", "write `for i in 0..len(a) { ... }`"},
  };
  for (const auto& [statement, hint] : kCases) {
    SCOPED_TRACE(statement);
    Parsed parsed("def g() -> steps {\n    F stage[0]\n    " + std::string(statement) +
                  "\n    B stage[0]\n}\nmesh n(q: 2)\n");
    ASSERT_EQ(parsed.codes(), std::vector<Code>{Code::foreign_form}) << parsed.report();
    EXPECT_EQ(parsed.sink.sorted().front().hint, hint);
    EXPECT_EQ(parsed.module.items.back()->kind, ast::ItemKind::mesh);
  }
}

/// Errors reported with the hint of a plain syntax error.
TEST(ParseHints, StatementsOnOneLineAndComments) {
  const std::pair<const char*, const char*> kCases[] = {
      {"for i in 0..4 { F a } for i in 0..4 { B a }",
       "statements on one line are separated by `;`"},
      {"cursor a = x mb[0..4], b = y mb[0..4]",
       "each name has a statement of its own: `cursor` comes before every one, after a `;` or a line end"},
      {"let a = 1, b = 2",
       "each name has a statement of its own: `let` comes before every one, after a `;` or a line end"},
      {"repeat 2 // 2 - r { F a }",
       "`//` begins a comment, not a division: integers are divided with `/`"},
  };
  for (const auto& [statement, hint] : kCases) {
    SCOPED_TRACE(statement);
    Parsed parsed("def g() -> steps {\n    " + std::string(statement) +
                  "\n    B stage[0]\n}\nmesh n(q: 2)\n");
    ASSERT_EQ(parsed.codes(), std::vector<Code>{Code::unexpected_token}) << parsed.report();
    EXPECT_EQ(parsed.sink.sorted().front().hint, hint);
    EXPECT_EQ(parsed.module.items.back()->kind, ast::ItemKind::mesh);
  }
}

TEST(ParseForeign, LegalFormsStay) {
  for (
      const char* text :
      {"def g(f: int, b: int) -> int {\n    let x = [for i in 0..4: i]\n    let y = f // the forward part\n    return b // of both\n}",
       "def g(lambda: int, elif: int) -> int { return lambda + elif }",
       "def g(while: int) -> int {\n    var loop = while\n    loop = loop + 1\n    return loop\n}",
       "def g(m: int) -> [int] {\n    let y = [\n        for i in 0..m: i]\n    return y\n}",
       "def g(f: cursor) -> steps { F f & B f; F is[0] mb[1] }",
       "model g(x: tensor[a]) -> tensor[a] { weight w[a, b: 2*a], v[b]; return x }",
       "train t = n() on m {\n    steps: 4  // steps\n    seed: 3 // steps\n}",
       "def g() -> steps {\n    cursor a = stage[0] mb[0..4]\n      backward stage[0] mb[reversed(0..4)]\n    F a\n}"}) {
    Parsed parsed(text);
    EXPECT_TRUE(parsed.sink.empty()) << parsed.report();
  }
}

TEST(ParseForeign, ACommentThatLooksLikeADivisorIsAWarning) {
  for (const char* text :
       {"def g(a: int, b: int) -> int {\n    let x = a // b\n    return x //2\n}",
        "train t = n() on m {\n    steps: 16 // 2\n    split batch into mb: 8 // 4\n}"}) {
    Parsed parsed(text);
    EXPECT_EQ(parsed.codes(),
              (std::vector<Code>{Code::divides_by_comment, Code::divides_by_comment}))
        << parsed.report();
    EXPECT_FALSE(parsed.sink.has_errors());
  }
}

TEST(ParseExpression, OperatorsBindAsTheReferenceSays) {
  EXPECT_EQ(structure("(a + b) * c"), "(a + b) * c");
  EXPECT_EQ(structure("(a * b) + c"), "a * b + c");
  EXPECT_EQ(structure("a - (b - c)"), "a - (b - c)");
  EXPECT_EQ(structure("(a - b) - c"), "a - b - c");
  EXPECT_EQ(structure("-(a * b)"), "-(a * b)");
  EXPECT_EQ(structure("(-a) * b"), "-a * b");
  EXPECT_EQ(structure("(0..(m + 1)) by 2"), "0..m + 1 by 2");
  EXPECT_EQ(structure("not (a == b)"), "not a == b");
  EXPECT_EQ(structure("(not a) == b"), "(not a) == b");
  EXPECT_EQ(structure("((not a) and b) or c"), "not a and b or c");
  EXPECT_EQ(structure("a and (b or c)"), "a and (b or c)");
  EXPECT_EQ(structure("if a then b else (c + d)"), "if a then b else c + d");
  EXPECT_EQ(structure("(if a then b else c) + d"), "(if a then b else c) + d");
  EXPECT_EQ(structure("(a @ b) @ c"), "a @ b @ c");
}

TEST(ParseExpression, PrintedTextParsesToItself) {
  for (const char* text :
       {"a - b - c * -d", "0..m by k + 1", "not a and b or c == d", "f(x, causal: true)[0, 1].y",
        "stage[c * p + r] mb[i..min(i + group, m)]",
        "[for i in 0..m by 2, c in [1, 2]: a[i], b[c]]", "left(F a)", "left(BW)",
        "if a then b else if c then d else e", "[]", "(if a then b else c) + 1"}) {
    EXPECT_EQ(structure(text), text);
  }
}

TEST(ParseNumber, ValuesAndUnits) {
  Parsed parsed("param x = [8, 3e-4, 25MiB, 1.5ms, 2s, 9223372036854775807]");
  ASSERT_TRUE(parsed.sink.empty()) << parsed.report();
  auto* list = llvm::cast<ast::ListExpr>(llvm::cast<ast::ParamItem>(parsed.module.items[0])->value);
  auto number = [&](std::size_t i) { return *llvm::cast<ast::NumberExpr>(list->elements[i]); };
  EXPECT_TRUE(number(0).is_integer);
  EXPECT_EQ(number(0).integer, 8);
  EXPECT_FALSE(number(1).is_integer);
  EXPECT_EQ(number(1).real, 3e-4);
  EXPECT_EQ(number(2).integer, 25);
  EXPECT_EQ(number(2).unit, ast::Unit::mib);
  EXPECT_EQ(number(3).real, 1.5);
  EXPECT_EQ(number(3).unit, ast::Unit::ms);
  EXPECT_EQ(number(4).unit, ast::Unit::s);
  EXPECT_EQ(number(5).integer, 9223372036854775807);
}

TEST(ParseText, LineEndsAndMarksDoNotMatter) {
  std::string unix_text = "mesh m(pp: 2)\ndef f(x: int) -> int {\n\treturn x\n}\n";
  std::string windows_text, expected = Parsed(unix_text).ast();
  for (char c : unix_text) windows_text += c == '\n' ? std::string("\r\n") : std::string(1, c);
  EXPECT_EQ(Parsed(windows_text).ast(), expected);
  EXPECT_EQ(Parsed("\xEF\xBB\xBF" + unix_text).ast(), expected);
  EXPECT_EQ(Parsed(unix_text.substr(0, unix_text.size() - 1)).ast(), expected);
  for (const std::string& text : {windows_text, "\xEF\xBB\xBF" + unix_text})
    EXPECT_EQ(Parsed(text).report(), "");
}

TEST(ParseText, EmptyTextsAreEmptyModules) {
  for (const char* text : {"", "\n", "// only a comment", "/// and documentation\n", ";;\n;"}) {
    Parsed parsed(text);
    EXPECT_TRUE(parsed.sink.empty()) << parsed.report();
    EXPECT_TRUE(parsed.module.items.empty());
  }
}

TEST(ParseText, ColumnsCountCharacters) {
  Parsed parsed("param a = \"Größe 日本\" +\n");
  ASSERT_EQ(parsed.codes(), std::vector<Code>{Code::unexpected_token});
  LineColumn at =
      parsed.table.files().line_column(parsed.file, parsed.sink.sorted()[0].range.begin);
  EXPECT_EQ(at, (LineColumn{1, 23}));
}

TEST(ParseText, BinaryInputIsReported) {
  EXPECT_EQ(Parsed(std::string("param a = 1\0 // x\n", 18)).codes(),
            std::vector<Code>{Code::invalid_text});
  EXPECT_EQ(Parsed("param a = \xFF 1 \xFE\n\x01param b = 2\n").codes(),
            (std::vector<Code>{Code::invalid_text, Code::unknown_character}));
  EXPECT_EQ(Parsed("// Gr\xF6\xDF"
                   "e\nparam a = 1\n")
                .codes(),
            std::vector<Code>{Code::invalid_text});
  EXPECT_EQ(Parsed("param a = \"\xC3").codes(),
            (std::vector<Code>{Code::unclosed_string, Code::invalid_text}));
  EXPECT_EQ(Parsed("param a = \"\xED\xA0\x80\"").codes(), std::vector<Code>{Code::invalid_text});
}

TEST(ParseText, DeepNestingIsRefusedInEveryForm) {
  auto repeated = [](const std::string& text, int count) {
    std::string out;
    for (int i = 0; i < count; ++i) out += text;
    return out;
  };
  for (const std::string& text : {
           "param a = " + repeated("(", 100000) + "1" + repeated(")", 100000),
           "param a = " + repeated("[", 100000),
           "param a = " + repeated("-", 100000) + "1",
           "param a = " + repeated("not ", 100000) + "true",
           "param a = 1" + repeated(" + 1", 100000),
           "param a = b" + repeated(".c", 100000),
           "param a = b" + repeated("[0]", 100000),
           "param a = b" + repeated("(0)", 100000),
           "param a = " + repeated("if b then c else ", 100000) + "d",
           "def f() {" + repeated(" if a {", 100000),
           "def f() {" + repeated(" { F a } & {", 100000),
       }) {
    Parsed parsed(text);
    std::vector<Code> codes = parsed.codes();
    EXPECT_NE(std::find(codes.begin(), codes.end(), Code::nesting_too_deep), codes.end())
        << text.substr(0, 40);
    EXPECT_EQ(parsed.module.items.size(), 1u);
  }
}

TEST(ParseText, ShallowNestingIsAccepted) {
  std::string list = "param a = [1";
  for (int i = 0; i < 20000; ++i) list += ", b + c[0].d(e)";
  std::string lines = "def f() {\n";
  for (int i = 0; i < 2000; ++i) lines += "    let x = a + b\n    if x > 0 { F a } else { B a }\n";
  std::string statements = "model f(x: tensor[a]) -> tensor[a] {\n";
  for (int i = 0; i < 2000; ++i) statements += "    weight w[a] = zeros(1)\n    let y = x + w\n";
  for (int i = 0; i < 2000; ++i) statements += "    x = f(x) * 2\n";
  for (const std::string& text : {list + "]", lines + "}\n", statements + "    return x\n}\n"}) {
    Parsed parsed(text);
    EXPECT_TRUE(parsed.sink.empty()) << parsed.report();
  }
}

/// On one line and on many: the time grows with the number of mistakes and not with its square (a
/// minute), and 20 of them are shown. The number is so large that a quadratic time would exceed
/// ctest's limit.
TEST(ParseText, ThousandsOfStrayBrackets) {
  for (const char* separator : {"", "\n", ";"}) {
    std::string text;
    for (int i = 0; i < 250000; ++i) text += std::string("}") + separator;
    const Parsed parsed(text);
    std::vector<Code> expected(kShownErrors, Code::unmatched_bracket);
    expected.push_back(Code::errors_not_shown);
    EXPECT_EQ(parsed.codes(), expected);
  }
}

TEST(ParseText, NestingUpToTheBoundParses) {
  std::string open, close;
  for (int i = 0; i < 390; ++i) open += '(', close += ')';
  Parsed parsed("param a = " + open + "1" + close);
  EXPECT_TRUE(parsed.sink.empty()) << parsed.report();
  std::string sum = "param a = 1";
  for (int i = 0; i < 390; ++i) sum += " + 1";
  Parsed flat(sum);
  EXPECT_TRUE(flat.sink.empty()) << flat.report();
}

TEST(Comments, StandWithTheTokenThatTheyBelongTo) {
  struct Row {
    std::string text;
    std::vector<std::string> wanted;  // the comment, where it stands, the text from its token on
  };
  const Row rows[] = {
      {"param a = 1  // of the value\n", {"// of the value behind 1  /"}},
      {"// of the param\nparam a = 1\n", {"// of the param before para"}},
      {"/// documents it\n// and this\n\nparam a = 1\n",
       {"/// documents it before para", "// and this before para"}},
      {"param a = 1\n// at the end\n", {"// at the end before "}},
      {"param a = 1 // one\n// two\nparam b = 2", {"// one behind 1 //", "// two before para"}},
      {"param a = [ // open\n  1, // first\n  2]\n",
       {"// open behind [ //", "// first behind , //"}},
      {"param a = 1 // CRLF\r\nparam b = 2\r\n", {"// CRLF behind 1 //"}},
      {"param a = \"// no comment\"\n", {}},
      {"# foreign // no comment of ours\nparam a = 1\n", {}},
      {"//", {"// before "}},
  };
  for (const Row& row : rows) {
    LocationTable table;
    DiagnosticSink sink(table);
    const ast::Module module =
        parse::parse(table.files(), table.files().add("a.pipe", row.text), sink);
    std::vector<std::string> found;
    for (const ast::Comment& comment : module.comments) {
      found.push_back(
          row.text.substr(comment.range.begin, comment.range.end - comment.range.begin) +
          (comment.place == ast::CommentPlace::behind ? " behind " : " before ") +
          row.text.substr(comment.token, 4));
    }
    EXPECT_EQ(found, row.wanted) << row.text;
  }
}

}  // namespace
}  // namespace piper
