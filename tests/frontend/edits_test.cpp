// Programs with one token cut off, taken away or written twice, as they stand while somebody types: nothing crashes, a mistake is
// reported, and what is reported beside a syntax error is no noise.

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "frontend/parse/token_filter.h"
#include "frontend/sema/program.h"
#include "tests/support/golden.h"
#include "tests/support/random_cases.h"

namespace piper {
namespace {

struct Program {
  std::string path;
  std::string text;
  std::vector<parse::Token> tokens;  // as written; inserted ones are left out
};

struct Outcome {
  std::size_t diagnostics = 0;
  bool syntax_error = false;
  std::string report;
};

Outcome analyse(const std::string& text) {
  Context context;
  DiagnosticSink sink(context.locations);
  const FileId file = context.locations.files().add("edited.pipe", text);
  const sema::Program program = sema::analyse(file, source::MemoryFileSystem(), context, sink);
  Outcome outcome;
  for (const Diagnostic& diagnostic : sink.sorted()) {
    if (diagnostic.severity != Severity::error) continue;
    ++outcome.diagnostics;
    outcome.syntax_error |= static_cast<int>(diagnostic.code) < 2000;
  }
  EXPECT_EQ(program.ok, outcome.diagnostics == 0);
  outcome.report = render_text(sink.sorted(), context.locations.files());
  return outcome;
}

const std::vector<Program>& programs() {
  static const std::vector<Program> list = [] {
    std::vector<Program> programs;
    for (const char* folder : {"examples", "stdlib", "tests"}) {
      for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
        if (entry.path().extension() != ".pipe") continue;
        Program program{entry.path().string(), test::read_text(entry.path()).value(), {}};
        if (program.text.size() > 20000 || analyse(program.text).diagnostics > 0) continue;
        Context context;
        DiagnosticSink sink(context.locations);
        SelectedReports reports(sink, [](Code, SourceRange) { return true; });
        for (const parse::Token& token : parse::tokenize(program.text, context.locations.files().add("a.pipe", program.text), reports).list) {
          if (token.end > token.begin) program.tokens.push_back(token);
        }
        programs.push_back(std::move(program));
      }
    }
    std::sort(programs.begin(), programs.end(), [](const Program& a, const Program& b) { return a.path < b.path; });
    return programs;
  }();
  return list;
}

enum class Edit : std::uint8_t { cut, remove, repeat };

std::string edited(const Program& program, Edit edit, const parse::Token& token) {
  const std::string word = program.text.substr(token.begin, token.end - token.begin);
  switch (edit) {
    case Edit::cut: return program.text.substr(0, token.begin);
    case Edit::remove: return program.text.substr(0, token.begin) + program.text.substr(token.end);
    case Edit::repeat: return program.text.substr(0, token.end) + " " + word + program.text.substr(token.end);
  }
  return {};
}

/// A sample; over every token of every program the means are 1.2, 1.1 and 1.04, the largest numbers 2, 5 and 9.
TEST(Edits, OneTokenCostsAboutOneDiagnostic) {
  ASSERT_GE(programs().size(), 30u);
  for (const Edit edit : {Edit::cut, Edit::remove, Edit::repeat}) {
    std::size_t edits = 0, diagnostics = 0;
    test::for_each_case(400, [&](test::Random& random) {
      const Program& program = random.pick(programs());
      const std::string text = edited(program, edit, random.pick(program.tokens));
      SCOPED_TRACE(text);
      const Outcome outcome = analyse(text);
      if (!outcome.syntax_error) return;
      ++edits;
      diagnostics += outcome.diagnostics;
      EXPECT_LE(outcome.diagnostics, edit == Edit::cut ? 2u : 9u) << outcome.report;
    });
    EXPECT_GE(edits, 100u);
    EXPECT_LE(static_cast<double>(diagnostics), 1.3 * static_cast<double>(edits));
  }
}

/// Where the text parses all the same, the analysis ends with a verdict.
TEST(Edits, EveryTokenOfOneProgram) {
  const Program& program = programs().front();
  for (const Edit edit : {Edit::cut, Edit::remove, Edit::repeat}) {
    for (const parse::Token& token : program.tokens) analyse(edited(program, edit, token));
  }
}

}  // namespace
}  // namespace piper
