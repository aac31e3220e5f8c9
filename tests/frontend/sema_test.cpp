// The analysis: mistakes to caret expectations, programs that must be clean, results in the nodes,
// several files, pages.

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "frontend/sema/builtins.h"
#include "frontend/sema/program.h"
#include "tests/diagnostics/findings.h"
#include "tests/support/file_test.h"
#include "tests/support/golden.h"
#include "tests/support/library_declarations.h"
#include "tests/support/random_cases.h"

namespace piper {
namespace {

struct Analysed {
  Context context;
  DiagnosticSink sink{context.locations};
  FileId file;
  sema::Program program;

  explicit Analysed(std::string text, const std::string& name = "test.pipe",
                    const source::FileSystem& file_system = source::MemoryFileSystem(),
                    std::size_t shown_errors = kShownErrors)
      : file(context.locations.files().add(name, std::move(text))),
        program(sema::analyse(file, file_system, context, sink, shown_errors)) {}

  std::string report() const { return render_text(sink.sorted(), context.locations.files()); }
  std::vector<Code> codes() const {
    std::vector<Code> list;
    for (const Diagnostic& diagnostic : sink.sorted()) list.push_back(diagnostic.code);
    return list;
  }
  const ast::FunctionItem& function(std::string_view name) const {
    for (const sema::Function& function : program.functions) {
      if (function.name() == name) return *function.syntax;
    }
    ADD_FAILURE() << "no function " << name;
    return *program.functions.front().syntax;
  }
};

PIPER_FILE_TEST(SemaErrors, "tests/frontend/testdata/sema/errors", ".pipe",
                [](const test::FileTest& test) {
                  test::expect_findings(test, [&](const std::string& path,
                                                  const std::string& source) {
                    Analysed analysed(source, path, source::RealFileSystem(),
                                      SIZE_MAX);  // files of many mistakes
                    std::vector<test::Finding> found = test::findings(analysed.sink, analysed.file);
                    for (test::Finding& each : found)
                      each.message = test::without_library(std::move(each.message));
                    return found;
                  });
                });

PIPER_FILE_TEST(SemaValid, "tests/frontend/testdata/sema/valid", ".pipe",
                [](const test::FileTest& test) {
                  Analysed analysed(test.text, test.path);
                  EXPECT_TRUE(analysed.sink.empty()) << analysed.report();
                  EXPECT_TRUE(analysed.program.ok);
                });

/// The programs of the language reference have no errors except for features that this version
/// lacks; two of them are fragments that call models they do not contain.
PIPER_FILE_TEST(
    SemaPrograms, "tests/frontend/testdata/parse/programs", ".pipe",
    [](const test::FileTest& test) {
      Analysed analysed(test.text, test.path);
      const bool complete = test.name == "choices" || test.name == "gpt" || test.name == "names" ||
                            test.name == "pairs_on_new_lines" || test.name == "schedules";
      const bool fragment = test.name == "megatron" || test.name == "moe";
      EXPECT_EQ(analysed.program.ok, complete) << analysed.report();
      for (const Code code : analysed.codes()) {
        EXPECT_TRUE(code == Code::not_available || (fragment && code == Code::unknown_name))
            << analysed.report();
      }
    });

TEST(SemaLibrary, EveryFileIsClean) {
  EXPECT_GE(sema::library_modules().size(), 10u);
  for (const std::string& name : sema::library_modules()) {
    Context context;
    DiagnosticSink sink(context.locations);
    const std::optional<FileId> file = sema::open_library(name, context.locations.files());
    ASSERT_TRUE(file.has_value()) << name;
    EXPECT_TRUE(context.locations.files().is_library(*file));
    EXPECT_TRUE(sema::analyse(*file, source::MemoryFileSystem(), context, sink).ok);
    EXPECT_TRUE(sink.empty()) << render_text(sink.sorted(), context.locations.files());
  }
}

TEST(SemaResult, NamesCallsAndTypesAreInTheNodes) {
  Analysed analysed(
      "param base = 3\n"
      "def f(a: int, b: float = 2, c: int = a) -> float { return b * c }\n"
      "def g(n: int) -> float {\n"
      "    let x = f(n, c: base)\n"
      "    return x + max(n, 2, 3)\n"
      "}\n");
  ASSERT_TRUE(analysed.program.ok) << analysed.report();
  const auto& g = analysed.function("g");
  const auto& let = llvm::cast<ast::LetStmt>(*g.body->statements[0]);
  const auto& call = llvm::cast<ast::CallExpr>(*let.value);
  EXPECT_EQ(let.names[0].binding, 1u);  // behind the parameter
  EXPECT_EQ(call.referent, ast::Referent::function);
  EXPECT_EQ(call.target, 0u);
  EXPECT_EQ(std::vector<std::int32_t>(call.matched.begin(), call.matched.end()),
            (std::vector<std::int32_t>{0, -1, 1}));
  EXPECT_EQ(sema::type_of(call), sema::Type{sema::TypeKind::floating});
  const auto& n = llvm::cast<ast::NameExpr>(*call.args[0].value);
  EXPECT_EQ(n.referent, ast::Referent::local);
  EXPECT_EQ(n.target, 0u);
  const auto& base = llvm::cast<ast::NameExpr>(*call.args[1].value);
  EXPECT_EQ(base.referent, ast::Referent::param);
  const auto& sum =
      llvm::cast<ast::BinaryExpr>(*llvm::cast<ast::ReturnStmt>(*g.body->statements[1]).value);
  const auto& most = llvm::cast<ast::CallExpr>(*sum.right);
  EXPECT_EQ(static_cast<sema::Builtin>(most.target), sema::Builtin::number_max);
  EXPECT_EQ(most.rest.size(), 3u);
  EXPECT_EQ(sema::type_of(most), sema::Type{sema::TypeKind::integer});
  EXPECT_EQ(analysed.program.functions[1].frame_size, 2u);
}

TEST(SemaResult, SelectorsAreLocalsOrLabels) {
  Analysed analysed(
      "schedule s(p: axis, m: int) {\n"
      "    split batch into mb: m\n"
      "    order { rank r in p { cursor a = stage[r] mb[0..m]; repeat left(F a) { F a; B a } } }\n"
      "}\n");
  ASSERT_TRUE(analysed.program.ok) << analysed.report();
  const auto& order = llvm::cast<ast::OrderStmt>(*analysed.function("s").body->statements[1]);
  const auto& rank = llvm::cast<ast::RankStmt>(*order.body->statements[0]);
  const auto& cursor = llvm::cast<ast::CursorStmt>(*rank.body->statements[0]);
  const auto& selector = llvm::cast<ast::SelectorExpr>(*cursor.forward);
  const auto& stage = llvm::cast<ast::NameExpr>(*llvm::cast<ast::IndexExpr>(*selector.head).base);
  EXPECT_EQ(stage.referent, ast::Referent::label);
  EXPECT_EQ(analysed.context.text(Symbol(stage.target)), "stage");
  EXPECT_EQ(analysed.context.text(Symbol(selector.coordinates[0].dimension.binding)), "mb");
  const auto& repeat = llvm::cast<ast::RepeatStmt>(*rank.body->statements[1]);
  const auto& operand = llvm::cast<ast::NameExpr>(
      *llvm::cast<ast::StepStmt>(*repeat.body->statements[0]).step.members[0].op->operand);
  EXPECT_EQ(operand.referent, ast::Referent::local);
  EXPECT_EQ(operand.target, cursor.name.binding);
  EXPECT_EQ(analysed.program.functions[0].frame_size, 4u);  // p, m, r, a
}

TEST(SemaResult, DimensionsAreSlots) {
  Analysed analysed(
      "model f(x: tensor[batch, dim], width: int) -> tensor[batch, width] {\n"
      "    weight w[dim, width], v[width, inner: 2*dim]\n"
      "    return gelu(x @ w) @ v @ rename(v, inner: width, width: inner)\n"
      "}\n");
  ASSERT_TRUE(analysed.program.ok) << analysed.report();
  const auto& f = analysed.function("f");
  EXPECT_EQ(f.params[0].type->dims[0].name.binding, 2u);  // batch, behind both parameters
  EXPECT_EQ(f.params[0].type->dims[1].name.binding, 3u);
  EXPECT_EQ(f.result->dims[1].name.binding, 1u);
  const auto& weight = llvm::cast<ast::WeightStmt>(*f.body->statements[0]);
  EXPECT_EQ(weight.weights[0].dims[0].name.binding, 3u);
  EXPECT_EQ(weight.weights[1].dims[0].name.binding, 1u);
  EXPECT_EQ(analysed.program.functions[0].frame_size, 7u);  // and w, inner, v
}

TEST(SemaFiles, AUsedFileIsReadOnceAndItsOwnUsesAreNotPassedOn) {
  source::MemoryFileSystem files;
  files.add("dir/lib/a.pipe", "use b\ndef from_a(n: int) -> int { return from_b(n) }\n");
  files.add("dir/lib/b.pipe", "def from_b(n: int) -> int { return n }\n");
  Analysed good(
      "use lib.a\nuse lib.b\nuse lib.a\ndef f(n: int) -> int { return from_a(n) + from_b(n) }\n",
      "dir/main.pipe", files);
  EXPECT_TRUE(good.program.ok) << good.report();
  EXPECT_EQ(good.program.modules.size(), 3u);
  EXPECT_EQ(good.program.modules[0]->uses.size(), 2u);
  Analysed bad("use lib.a\ndef f(n: int) -> int { return from_b(n) }\n", "dir/main.pipe", files);
  EXPECT_EQ(bad.codes(), std::vector<Code>{Code::unknown_name}) << bad.report();
}

TEST(SemaFiles, DiagnosticsOfAUsedFileAreReportedThere) {
  source::MemoryFileSystem files;
  files.add("a.pipe", "def f(n: int) -> int { return m }\n");
  Analysed analysed("use a\ndef g(n: int) -> int { return f(n) }\n", "main.pipe", files);
  ASSERT_EQ(analysed.codes(), std::vector<Code>{Code::unknown_name});
  EXPECT_EQ(analysed.context.locations.files().name(analysed.sink.sorted()[0].range.file),
            "a.pipe");
  EXPECT_FALSE(analysed.program.ok);
}

/// 20 of thousands of mistakes are reported, with their number and the last location, in a time
/// that does not grow with their square.
TEST(SemaRobust, ThousandsOfMistakesFitOnAPage) {
  constexpr std::size_t kMistakes = 4000;
  const auto repeated = [&](const std::string& before, const std::string& after) {
    std::string text;
    for (std::size_t i = 0; i < kMistakes; ++i) text += before + std::to_string(i) + after;
    return text;
  };
  for (const auto& [code, text] : std::vector<std::pair<Code, std::string>>{
           {Code::unreadable_file, repeated("use lost.file", "\n")},
           {Code::unknown_module, repeated("use std.lost", "\n")},
           {Code::unknown_name, repeated("mesh pair", "(p: lost)\n")},
           {Code::unknown_name,
            "schedule s() {\n" + repeated("place model on lost", "\n") + "}\n"}}) {
    const Analysed analysed(text);
    std::vector<Code> expected(kShownErrors, code);
    expected.push_back(Code::errors_not_shown);
    EXPECT_EQ(analysed.codes(), expected);
    EXPECT_FALSE(analysed.program.ok);
    const std::vector<Diagnostic> told = analysed.sink.sorted();
    EXPECT_EQ(told.back().message, "3980 further errors are not shown, the last one is here");
    EXPECT_GT(told.back().range.begin, text.size() - 60);
  }
}

TEST(SemaBuiltins, SignaturesAreRead) {
  const sema::Signature& attend = sema::signature(sema::Builtin::attend);
  ASSERT_EQ(attend.params.size(), 5u);
  EXPECT_EQ(attend.params[3].name, "causal");
  EXPECT_TRUE(attend.params[3].optional);
  EXPECT_EQ(attend.params[4].default_text, "1 / sqrt(width)");
  const sema::Signature& adamw = sema::signature(sema::Builtin::adamw);
  ASSERT_EQ(adamw.params.size(), 6u);
  EXPECT_EQ(adamw.params[1].default_text, "[0.9, 0.999]");
  EXPECT_EQ(adamw.params[1].type, (sema::Type{sema::TypeKind::floating, true}));
  EXPECT_TRUE(sema::signature(sema::Builtin::number_max).variadic);
  EXPECT_TRUE(sema::signature(sema::Builtin::rename).open);
  EXPECT_TRUE(sema::signature(sema::Builtin::ones).is_value);
  EXPECT_TRUE(sema::signature(sema::Builtin::trim).is_method);
  EXPECT_EQ(sema::find_builtins("max", false).size(), 2u);
}

bool belongs_here(Code code) {
  const auto number = static_cast<unsigned>(code);
  return (number >= 2000 && number < 2300) || code == Code::not_available;
}

/// One error each, with the table's hint, as a value and as a type.
TEST(SemaForeign, NamesOfOtherLanguagesHaveHints) {
  static constexpr std::pair<std::string_view, std::string_view> kRows[] = {
#define FOREIGN(name, instead) {#name, instead},
#include "frontend/sema/foreign_names.def"
#undef FOREIGN
  };
  for (const auto& [name, instead] : kRows) {
    SCOPED_TRACE(name);
    for (const bool type : {false, true}) {
      // `i32` is a type of token files, so as a value it is known.
      if (!type && !sema::find_builtins(name, false).empty()) continue;
      Analysed analysed(type ? "def f(x: " + std::string(name) + ") -> int { return 1 }\n"
                             : "def f() -> int { return " + std::string(name) + " }\n");
      ASSERT_EQ(analysed.codes(), std::vector<Code>{type ? Code::unknown_type : Code::unknown_name})
          << analysed.report();
      EXPECT_EQ(analysed.sink.sorted().front().hint, instead);
    }
  }
}

TEST(SemaForeign, APassIsNoFunction) {
  for (const auto& [call, hint] :
       {std::pair{"forward(stage[r], mb[i])",
                  "a pass is not called like a function: write `F stage[r] mb[i]`"},
        std::pair{"bwd(a)", "a pass is not called like a function: write `B a`"}}) {
    Analysed analysed("def g(a: cursor, r: int, i: int) -> steps { F a; " + std::string(call) +
                      " }\n");
    ASSERT_EQ(analysed.codes(), std::vector<Code>{Code::unknown_name}) << analysed.report();
    EXPECT_EQ(analysed.sink.sorted().front().hint, hint);
  }
  Analysed own(
      "def forward(a: cursor) -> steps { F a }\ndef g(a: cursor) -> steps { forward(a) }\n");
  EXPECT_TRUE(own.sink.empty()) << own.report();
}

TEST(SemaHints, ASettingThatIsCutShort) {
  for (const auto& [word, meant] :
       {std::pair{"opt", "did you mean `optim`?"}, std::pair{"ste", "did you mean `steps`?"},
        std::pair{"held", "did you mean `held_out`?"},
        std::pair{"check", "did you mean `checkpoint`?"},
        std::pair{"evaluat", "did you mean `evaluate`?"},
        std::pair{"d",
                  "it has `checkpoint`, `data`, `device`, `dtype`, `ema`, `evaluate`, `held_out`, "
                  "`init`, `optim`, `seed`, `skip_step`, `steps`"}}) {
    Analysed analysed(
        "use std.models.mlp\nmesh m(p: 1)\ntrain t = mlp(layers: 1, features: 2, hidden: 2, classes: 2) on m {\n    " +
            std::string(word) + ": 3\n}\n",
        "test.pipe", source::RealFileSystem());
    ASSERT_EQ(analysed.codes(), std::vector<Code>{Code::unknown_setting}) << analysed.report();
    EXPECT_EQ(analysed.sink.sorted().front().hint, meant);
  }
}

/// The steps of a block that stand outside of a rank are one mistake.
TEST(SemaHints, StepsOutsideOfARankAreToldOnce) {
  Analysed analysed(
      "schedule s() {\n    order {\n        F stage[0]\n        F stage[1]\n        B stage[1]\n    }\n}\n");
  EXPECT_EQ(analysed.codes(), std::vector<Code>{Code::misplaced_statement}) << analysed.report();
  EXPECT_FALSE(analysed.program.ok);
}

TEST(SemaPages, EveryCodeIsInATestFile) {
  std::string all;
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator("tests/frontend/testdata/sema/errors")) {
    if (entry.path().extension() == ".pipe") all += test::read_text(entry.path()).value_or("");
  }
  for (const CodeInfo& info : all_codes()) {
    if (!belongs_here(info.code)) continue;
    EXPECT_NE(all.find(" " + code_text(info.code) + ":"), std::string::npos)
        << code_text(info.code);
  }
}

/// Half-typed and damaged programs are analysed without a crash, and never called fine where the
/// parser reports.
TEST(SemaRobust, DamagedPrograms) {
  std::vector<std::string> texts;
  for (const char* folder :
       {"tests/frontend/testdata/sema", "tests/frontend/testdata/parse/programs", "stdlib"}) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
      if (entry.path().extension() == ".pipe")
        texts.push_back(test::read_text(entry.path()).value_or(""));
    }
  }
  std::sort(texts.begin(), texts.end());
  std::vector<std::string> words = {"stage", "mb", "F",  "BW", "(",  ")", "[",
                                    "]",     "{",  "}",  ":",  ",",  ".", "=",
                                    "&",     "..", "by", "if", "in", "0", "model"};
  test::for_each_case(600, [&](test::Random& random) {
    std::string text = random.pick(texts);
    const int edits = static_cast<int>(random.between(1, 4));
    for (int i = 0; i < edits && !text.empty(); ++i) {
      const std::size_t at = random.below(text.size());
      switch (random.below(4)) {
        case 0: text.resize(at); break;
        case 1: text.erase(at, random.below(12) + 1); break;
        case 2: text.insert(at, " " + random.pick(words) + " "); break;
        default: {
          const std::size_t from = random.below(text.size());
          text.insert(at, text.substr(from, random.below(40)));
        }
      }
    }
    SCOPED_TRACE(text);
    const Analysed analysed(text);
    EXPECT_EQ(analysed.program.ok, !analysed.sink.has_errors());
  });
}

// The page of the language reference has every signature as it is, and every name that is refused.
TEST(Builtins, StandInTheLanguageReference) {
  const std::string page = test::read_text("grammar/builtins.md").value_or("");
#define BUILTIN(id, signature) \
  EXPECT_NE(page.find("    " signature "\n"), std::string::npos) << signature;
#define UNAVAILABLE(name, instead) EXPECT_NE(page.find("`" #name "`"), std::string::npos) << #name;
#include "frontend/sema/builtins.def"
#undef BUILTIN
#undef UNAVAILABLE
}

}  // namespace
}  // namespace piper
