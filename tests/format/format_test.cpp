// The layout: rows of before and after, laws on all programs of the project, and the project's own
// files.

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>

#include "frontend/format/format.h"
#include "frontend/format/same_program.h"
#include "frontend/parse/lexemes.h"
#include "frontend/parse/parse.h"
#include "tests/support/damage.h"
#include "tests/support/golden.h"
#include "tests/support/random_cases.h"
#include "tests/support/random_programs.h"

namespace piper::test {
namespace {

std::string read(const std::filesystem::path& path) {
  std::ifstream stream(path);
  std::stringstream content;
  content << stream.rdbuf();
  return content.str();
}

std::vector<std::filesystem::path> programs() {
  std::vector<std::filesystem::path> paths;
  for (const char* folder : {"stdlib", "examples"}) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
      if (entry.path().extension() == ".pipe") paths.push_back(entry.path());
    }
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

/// Every `.pipe` file of the tree, those with mistakes too.
std::vector<std::string> all_files() {
  std::vector<std::filesystem::path> paths = programs();
  for (const auto& entry : std::filesystem::recursive_directory_iterator("tests")) {
    if (entry.path().extension() == ".pipe" && entry.file_size() < 20000)
      paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  std::vector<std::string> list;
  for (const auto& path : paths) list.push_back(read(path));
  return list;
}

/// The blocks of a page that are programs.
std::vector<std::string> blocks(const std::string& page) {
  std::vector<std::string> found;
  const std::string fence = "```pipe\n";
  for (std::size_t at = 0; (at = page.find(fence, at)) != std::string::npos;) {
    at += fence.size();
    const std::size_t end = page.find("```", at);
    found.push_back(page.substr(at, end - at));
    at = end;
  }
  return found;
}

std::vector<std::string> texts() {
  std::vector<std::string> list;
  for (const auto& path : programs()) list.push_back(read(path));
  for (const char* page : {"README.md", "docs/memory.md", "docs/schedules.md", "grammar/README.md",
                           "stdlib/README.md", "frontend/lower/README.md"}) {
    for (std::string& block : blocks(read(page))) list.push_back(std::move(block));
  }
  return list;
}

/// The syntax tree without places, and the comments with the words that they belong to.
std::string meaning(const std::string& text) {
  LocationTable locations;
  const FileId file = locations.files().add("f.pipe", text);
  DiagnosticSink sink(locations);
  const ast::Module module = parse::parse(locations.files(), file, sink);
  static const std::regex kPlace(R"(\[\d+:\d+-\d+:\d+\])");
  std::string all = std::regex_replace(ast::print(module, locations.files()), kPlace, "");
  for (const ast::Comment& comment : module.comments) {
    std::string words = text.substr(comment.range.begin, comment.range.end - comment.range.begin);
    while (words.ends_with(' ') || words.ends_with('\t')) words.pop_back();
    std::size_t end = comment.token;
    while (end < text.size() &&
           (std::isalnum(static_cast<unsigned char>(text[end])) != 0 || text[end] == '_'))
      ++end;
    all += words + " @ " +
           text.substr(comment.token, std::max<std::size_t>(end - comment.token, 1)) + "\n";
  }
  return all;
}

bool parses(const std::string& text) {
  LocationTable locations;
  const FileId file = locations.files().add("f.pipe", text);
  DiagnosticSink sink(locations);
  parse::parse(locations.files(), file, sink);
  return !sink.has_errors();
}

struct Row {
  const char* before;
  const char* after;
};

TEST(Format, Rows) {
  const Row rows[] = {
      {"", ""},
      {"\n\n\n", ""},
      {"param x=1", "param x = 1\n"},
      {"param   x = [ 1,2 , 3 ]   \n\n\n\nparam y = -x+2*x - 3 * x\n",
       "param x = [1, 2, 3]\n\nparam y = -x + 2*x - 3 * x\n"},
      {"param   x   in[ 1,2 ]\nparam y in 0 .. 4 //y\n",
       "param x in [1, 2]\nparam y in 0..4  //y\n"},
      {"param x = a*b+c /d\n", "param x = a*b + c / d\n"},
      {"mesh m( p:2,q :3 )// grid\n", "mesh m(p: 2, q: 3)  // grid\n"},
      {"param a = 1 // one\nparam bcd = 2 //two\n",
       "param a = 1    // one\nparam bcd = 2  //two\n"},
      {"def f(x:int)->int{return x}\ndef g(x: int) -> int {\nreturn x }\nparam y = 1\n",
       "def f(x: int) -> int { return x }\ndef g(x: int) -> int {\n    return x\n}\nparam y = 1\n"},
      {"schedule s(p:axis,m:int){\nplace stage[0],a on p[0]\nplace stage[10] on p[1]\n\nplace c on p[2]\nfor s in 0 .. p {place stage[s] on p[s]}\n}\n",
       "schedule s(p: axis, m: int) {\n    place stage[0], a on p[0]\n    place stage[10]   on p[1]\n\n    place c on p[2]\n    for s in 0..p { place stage[s] on p[s] }\n}\n"},
      {"def f(a: cursor) -> steps {\nrepeat 2*(p - r) - 1 { F a }\nrepeat r { F a;F a }\nrepeat left(F a) {\nif left(F a)>0 { F a }\nBI a ; BW a\n}\n}\n",
       "def f(a: cursor) -> steps {\n    repeat 2*(p - r) - 1 { F a }\n    repeat r             { F a; F a }\n    repeat left(F a) {\n        if left(F a) > 0 { F a }\n"
       "        BI a; BW a\n    }\n}\n"},
      {"model f(x: tensor[batch,dim]){\n\nweight w[dim ,out:4 * dim]=normal( 0.02 )\nreturn x@w\n\n}\n",
       "model f(x: tensor[batch, dim]) {\n    weight w[dim, out: 4 * dim] = normal(0.02)\n    return x @ w\n}\n"},
      {"names  a{\nb[l] .c :\"x\"[d,e  f]\nd:\"y\" [ of g]or none\n\n\nb.( q,k )[d , w=h:2 p] : \"z\"[d]\nignore \"u\",\"v\"\nconfig{ k:1,l:-2 }\nconfig {\nlong:1\nk : 2\n}\n}\n",
       "names a {\n    b[l].c: \"x\"[d, e f]\n    d:      \"y\"[of g] or none\n\n    b.(q, k)[d, w = h: 2 p]: \"z\"[d]\n    ignore \"u\", \"v\"\n    config { k: 1, l: -2 }\n"
       "    config {\n        long: 1\n        k:    2\n    }\n}\n"},
      {"def f(names:int)->int {\nnames [0]\nreturn names[ 1]}\n",
       "def f(names: int) -> int {\n    names[0]\n    return names[1]\n}\n"},
      {"param x = f(\n1,\n  2\n)\n", "param x = f(\n    1,\n    2\n)\n"},
      {"param x = a +\nb\n", "param x = a +\n    b\n"},
      {"// first\n\n\n///  doc\nmesh m(p: 2)\r\n", "// first\n\n///  doc\nmesh m(p: 2)\n"},
      {"mesh m(p:2)\r\nmesh n(p:2)\r\n", "mesh m(p: 2)\r\nmesh n(p: 2)\r\n"},
      // One kind of line end, also in text that is left alone.
      {"\nmesh m(p:2)\r\nmesh n(p:2)\n", "mesh m(p: 2)\nmesh n(p: 2)\n"},
      {"// c\r\ndef f( -> int {\nreturn   1\r\n}\n\nparam   y=1\n",
       "// c\r\ndef f( -> int {\r\nreturn   1\r\n}\r\n\r\nparam y = 1\r\n"},
      {"\ndef f( -> int {\r\nreturn   1\n}\n", "def f( -> int {\nreturn   1\n}\n"},
      {"def f( -> int {\nreturn   1\n}\n\nparam   y=1\n",
       "def f( -> int {\nreturn   1\n}\n\nparam y = 1\n"},
      {"param   y=1\n\ndef f( -> int {\nreturn   1\n}\n",
       "param y = 1\n\ndef f( -> int {\nreturn   1\n}\n"},
      // A comment is no value: its line has no column.
      {"train t = m() on d {\ndata : // c\nx\nsteps:3\n}\n",
       "train t = m() on d {\n    data:  // c\n        x\n    steps: 3\n}\n"},
      {"param x = 2*// c\n3\n", "param x = 2 *  // c\n    3\n"},
      // No declaration: left alone.
      {"0\ns://", "0\ns://"},
      {"train t = m() on d {\ndata : x\nsteps:3\noptim:   y\n\nf(1)\n}\n",
       "train t = m() on d {\n    data:  x\n    steps: 3\n    optim: y\n\n    f(1)\n}\n"},
  };
  for (const Row& row : rows) {
    std::string expected = row.after;
    EXPECT_EQ(format::format(row.before), expected) << row.before;
    EXPECT_EQ(format::format(expected), expected);
  }
}

TEST(Format, LongLinesAreBrokenWhereAPersonWould) {
  std::string list = "param x = [";
  for (int i = 0; i < 60; ++i) list += "value" + std::to_string(i) + ", ";
  list += "last]\n";
  const std::string broken = format::format(list);
  EXPECT_GT(std::count(broken.begin(), broken.end(), '\n'), 3);
  std::stringstream lines(broken);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), format::kWidth);
  EXPECT_EQ(format::format(broken), broken);
  EXPECT_EQ(meaning(broken), meaning(list));
  EXPECT_EQ(format::format("def f(a: cursor) -> steps {; repeat n { F a; F b };; " +
                           std::string(130, ' ') + "F " + std::string(120, 'x') + "}"),
            "def f(a: cursor) -> steps {\n    repeat n { F a; F b }\n    F " +
                std::string(120, 'x') + "\n}\n");
  std::string block = "def f(a: cursor) -> steps {\n    repeat n { ";
  for (int i = 0; i < 40; ++i) block += "F a; ";
  block += "B a }\n}\n";
  const std::string opened = format::format(block);
  EXPECT_NE(opened.find("repeat n {\n        F a\n"), std::string::npos) << opened;
  EXPECT_EQ(meaning(opened), meaning(block));
}

/// One of each table, broken line and comment.
TEST(Format, AnUntidyProgram) {
  const std::string text = read("tests/format/testdata/untidy.pipe"), mark = "\xEF\xBB\xBF";
  expect_golden("tests/format/testdata/untidy.expected", format::format(text));
  EXPECT_EQ(format::format(mark + text), mark + format::format(text));
}

TEST(Format, TheProjectIsFormatted) {
  for (const auto& path : programs())
    EXPECT_EQ(read(path), format::format(read(path))) << path << ": run `piper fmt`";
  for (const char* page :
       {"README.md", "docs/memory.md", "docs/schedules.md", "grammar/README.md"}) {
    for (const std::string& block : blocks(read(page))) {
      if (!parses(block)) continue;
      EXPECT_EQ(format::format(block), block) << page;
    }
  }
}

void expect_same_program(const std::string& text) {
  const std::string formatted = format::format(text);
  EXPECT_EQ(format::format(formatted), formatted) << text;
  EXPECT_EQ(meaning(formatted), meaning(text)) << text;
}

/// Words with a meaning inside a `names` item, which are names elsewhere.
constexpr std::string_view kNamesWords[] = {"config", "ignore", "none", "of"};

/// With names of that many characters, so that lines are broken at each place where one can be.
std::string with_long_names(std::string_view text, std::size_t length) {
  std::string result;
  std::size_t end = 0;
  for (const parse::Lexeme& lexeme : parse::lexemes(text)) {
    result += text.substr(end, lexeme.end - end);
    end = lexeme.end;
    const std::string_view word = text.substr(lexeme.begin, lexeme.end - lexeme.begin);
    if (std::find(std::begin(kNamesWords), std::end(kNamesWords), word) != std::end(kNamesWords))
      continue;
    if (lexeme.kind == parse::LexemeKind::name && word.size() < length)
      result += std::string(length - (lexeme.end - lexeme.begin), '_');
  }
  return result + std::string(text.substr(end));
}

constexpr std::size_t kNameLengths[] = {0, 24, 45, 64, 100, 131};

TEST(Format, KeepsTheProgramAndItsComments) {
  for (const std::string& text : texts()) {
    for (const std::size_t length : kNameLengths)
      expect_same_program(with_long_names(text, length));
  }
  for (const std::string& text : all_files()) {
    for (const std::size_t length : {0, 64}) expect_same_program(with_long_names(text, length));
  }
}

TEST(Format, SeesAnotherProgram) {
  const std::pair<const char*, const char*> same[] = {
      {"", "\n\n"},
      {"mesh m(p:2)", "mesh  m(\n    p: 2\n)\n"},
      {"def f(a: cursor) -> steps { F a; F a }\n",
       "def f(a: cursor) -> steps {\n    F a\n    F a\n}\n"},
      {"param x = 1  // one \t\nparam y = 2\n", "param x = 1 // one\r\nparam y = 2\r\n"},
      {"/// doc \nparam x = 1\n", "/// doc\nparam x = 1\n"},
  };
  for (const auto& [a, b] : same) EXPECT_TRUE(format::same_program(a, b)) << a << b;
  const std::pair<const char*, const char*> different[] = {
      {"mesh m(p: 2)\n", "mesh m(p: 3)\n"},
      {"mesh m(p: 2)\n", ""},
      {"param x = 1 // one\n", "param x = 1\n"},
      {"param x = 1 // one\n", "param x = 1 // two\n"},
      {"param x = 1 // one\nparam y = 2\n", "param x = 1\n// one\nparam y = 2\n"},
      {"param x = [1, 2 /// doc\n]\n", "param x = [1, /// doc\n2]\n"},
      {"/// doc\nparam x = 1\n", "// doc\nparam x = 1\n"},
      {"def f() -> int { let a, b = g(); return a }\n",
       "def f() -> int {\n    let a,\n        c = g()\n    return a\n}\n"},
      {"def f() -> int { return 1 + 2 }\n", "def f() -> int { return 1\n + 2 }\n"},
  };
  for (const auto& [a, b] : different) {
    EXPECT_FALSE(format::same_program(a, b)) << a << b;
    LocationTable locations;
    const FileId file = locations.files().add("a.pipe", a);
    DiagnosticSink sink(locations);
    EXPECT_FALSE(format::keeps_program(a, b, file, sink));
    EXPECT_TRUE(sink.reported(Code::layout_changes_program));
  }
}

/// A line end is a `;` only where the token before it can end a statement, also where the next line
/// begins like a statement.
TEST(Format, ALineMayGoOnWithAWordThatBeginsStatements) {
  const char* const bodies[] = {
      "stream p2p: model.send,\n        model.recv with window: 2",
      "stream p2p:\n        model.send, model.recv",
      "stream\n        p2p: model.send",
      "stream p2p: model.send with\n        window: 2,\n        priority: 1",
      "place a,\n        model.rest on\n        p[0]",
      "replicate a,\n        model.rest over\n        dp with\n        zero: 1,\n        prefetch: 2",
      "recompute a,\n        model.rest with\n        window: 2",
      "partition model into\n        stage: 2 with\n        sizes: [1, 2]",
      "split batch into\n        copy: 2,\n        mb: 4 in\n        model.rest",
      "let\n        x = 1",
      "let x,\n        y,\n        z = f()",
      "var\n        x = 1",
      "x =\n        3",
      "data:\n        synthetic(batch: 4)",
      "checkpoint:\n        every(100,\n        keep: 3)",
      "init:\n        weights(\"w\",\n        missing: init)",
      "order\n        zbv_ranks(p, m)",
      "require x and\n        model == 1 or\n        y else\n        \"no\"",
      "for i in\n        0..2,\n        j in 0..3 {\n        f(i)\n    }",
      "order {\n        rank\n            r in p,\n            q in dp {\n            cursor\n                a =\n                stage[r]\n                backward\n                stage[0]\n"
      "            at 6*i +\n                r: F a &\n                B a\n        }\n    }",
      "if a and\n        model == 1 {\n        f()\n    } else if\n        b {\n        g()\n    }",
      "shard a,\n        model.rest over\n        tp by\n        heads,\n        kv_heads",
      "f(\n        let_it: 3,\n        x: 1,\n        at: 2\n    )",
  };
  for (const char* const body : bodies) {
    const std::string text = "train t = m() on d {\n    " + std::string(body) + "\n}\n";
    EXPECT_TRUE(parses(text)) << text;
    for (const std::size_t length : kNameLengths)
      expect_same_program(with_long_names(text, length));
  }
  const char* const items[] = {
      "param\n    x = 1\n",
      "mesh\n    m(p: 2)\n",
      "mesh m =\n    n as\n    (p: 2)\n",
      "train\n    t = m() on\n    d {\n}\n",
      "def f(x:\n    int =\n    3,\n    y: int = 4) ->\n    int {\n    return x\n}\n",
      "use std.\n    models.\n    mlp\n",
      "model f(x: tensor[batch, dim:\n    4], order:\n    cursor) ->\n    tensor[batch] {\n    weight w[dim,\n        out: 3],\n        v[dim] =\n        ones\n    return x @\n        w\n}\n",
  };
  for (const char* const item : items) {
    for (const std::size_t length : kNameLengths)
      expect_same_program(with_long_names(item, length));
  }
}

/// Blanks at the end of a comment, of any kind, belong to the line end.
TEST(Format, BlanksAtTheEndOfAComment) {
  for (const char* blanks : {" ", "\t", "\r", "\r ", " \r", "\r \r", "\v", "\f \t", "\r\r\r"}) {
    for (const char* end : {"\n", "\r\n"}) {
      for (const char* comment :
           {"// in", "/// in", "//", "param x = 1 // in", "param x = [1, // in"}) {
        const std::string text =
            "mesh m(p: 2)" + std::string(end) + comment + blanks + end +
            (std::string_view(comment).find('[') == std::string_view::npos ? "mesh n(p: 2)"
                                                                           : "2]") +
            end;
        const std::string formatted = format::format(text);
        EXPECT_EQ(format::format(formatted), formatted) << testing::PrintToString(text);
        EXPECT_TRUE(format::same_program(text, formatted)) << testing::PrintToString(text);
      }
    }
  }
}

/// The starts of the declarations of a text, and its end.
std::vector<std::size_t> declarations(const std::string& text) {
  LocationTable locations;
  const FileId file = locations.files().add("f.pipe", text);
  DiagnosticSink sink(locations);
  std::vector<std::size_t> places;
  for (const auto& item : parse::parse(locations.files(), file, sink).items)
    places.push_back(item->range.begin);
  places.push_back(text.size());
  return places;
}

// One declaration at a time, and each comment position between the same words only once: names are
// alike.
TEST(Format, TakesACommentBehindEachToken) {
  std::set<std::string> tried;
  for (const std::string& text : texts()) {
    const std::vector<std::size_t> places = declarations(text);
    for (std::size_t i = 0; i + 1 < places.size(); ++i) {
      const std::string declaration = text.substr(places[i], places[i + 1] - places[i]);
      const std::vector<parse::Lexeme> lexemes = parse::lexemes(declaration);
      const auto word = [&](std::size_t at) {
        if (at >= lexemes.size()) return std::string();
        const parse::Lexeme& lexeme = lexemes[at];
        const bool alike = lexeme.kind == parse::LexemeKind::name ||
                           lexeme.kind == parse::LexemeKind::number ||
                           lexeme.kind == parse::LexemeKind::comment;
        return (lexeme.first_on_line ? "\n" : " ") +
               (alike ? std::to_string(static_cast<int>(lexeme.kind))
                      : declaration.substr(lexeme.begin, lexeme.end - lexeme.begin));
      };
      for (std::size_t at = 0; at < lexemes.size(); ++at) {
        const bool is_new = lexemes[at].kind != parse::LexemeKind::comment &&
                            tried.insert(word(0) + word(at - 1) + word(at) + word(at + 1)).second;
        if (!is_new) continue;
        const std::string commented =
            declaration.substr(0, lexemes[at].end) + "// c\n" + declaration.substr(lexemes[at].end);
        expect_same_program(commented);
        expect_same_program(with_long_names(commented, 64));
      }
    }
  }
  EXPECT_GT(tried.size(), 1000u);
}

/// The text with other blanks, line breaks where there may be any, and comments.
std::string disarranged(const std::string& text, Random& random) {
  std::string result;
  std::uint32_t end = 0;
  std::size_t brackets = 0;
  for (const parse::Lexeme& lexeme : parse::lexemes(text)) {
    const std::string between = text.substr(end, lexeme.begin - end);
    const bool line = between.find('\n') != std::string::npos;
    if (line || (brackets > 0 && random.chance(0.1))) {
      if (random.chance(0.1) && !result.ends_with("//")) result += " // behind";
      result += random.chance(0.2) ? "\n\n\n" : "\n";
      if (random.chance(0.1)) result += "   // between\n";
      result += std::string(random.below(7), ' ');
    } else {
      result += between.empty() ? "" : std::string(1 + random.below(3), ' ');
    }
    result += text.substr(lexeme.begin, lexeme.end - lexeme.begin);
    if (lexeme.kind == parse::LexemeKind::open && text[lexeme.begin] != '{') ++brackets;
    if (lexeme.kind == parse::LexemeKind::close && text[lexeme.begin] != '}') --brackets;
    end = lexeme.end;
  }
  return result + "\n";
}

TEST(Format, KeepsProgramsHoweverTheyAreWritten) {
  const std::vector<std::string> all = texts();
  for_each_case(150, [&](Random& random) {
    const std::string text = disarranged(random.pick(all), random);
    expect_same_program(text);
  });
  for_each_case(20, [&](Random& random) {
    Context context;
    const std::string text = disarranged(random_program(context, random).source, random);
    expect_same_program(text);
    expect_same_program(with_long_names(
        text,
        random.pick(std::vector<std::size_t>(std::begin(kNameLengths), std::end(kNameLengths)))));
  });
}

TEST(Format, LeavesDamageAlone) {
  const std::vector<std::string> all = texts();
  for_each_case(200, [&](Random& random) {
    const std::string text = damaged(
        random.pick(all), random, {.edits = 3, .words = {"{", "}", "(", "\"", "F", "rank", "//"}});
    const std::string once = format::format(text);
    EXPECT_EQ(format::format(once), once) << text;
    EXPECT_EQ(meaning(once), meaning(text)) << text;
    // Here and there another line end.
    std::string mixed;
    for (const char c : text) mixed += c == '\n' && random.chance(0.3) ? "\r\n" : std::string(1, c);
    const std::string of_mixed = format::format(mixed);
    EXPECT_EQ(format::format(of_mixed), of_mixed) << mixed;
    EXPECT_EQ(format::format(std::regex_replace(of_mixed, std::regex("\r\n"), "\n")), once)
        << mixed;
  });
}

}  // namespace
}  // namespace piper::test
