// The parts of a check that an edit repeats.

#include <gtest/gtest.h>

#include "frontend/service/workspace.h"
#include "tests/support/random_cases.h"

namespace piper::test {
namespace {

const std::string kLibrary = "def twice(n: int) -> int { return 2 * n }\n";
const std::string kText =
    "use lib\n"
    "param width = 6\n"
    "mesh pair(pp: 2)\n"
    "def half(n: int) -> int { return n / 2 }\n"
    "schedule parts(p: axis) { partition model into stage: p; for s in 0..p { place stage[s] on p[s] } }\n"
    "schedule one(p: axis, m: int) { parts(p); split batch into mb: half(m) }\n"
    "schedule two(p: axis, m: int) { parts(p); split batch into mb: m }\n"
    "schedule three(p: axis, m: int) { split batch into mb: m; place model on p[0] }\n";
// A program with warnings: it names regions; a size that no default meets.
const std::string kWarns =
    "schedule named(p: axis) { partition body into stage: p }\n"
    "schedule odd(p: axis, m: int) { require m % 2 == 1; parts(p); split batch into mb: m }\n";

/// The names of the schedules whose keys differ after a text was replaced.
std::string changed_by(const std::string& from, const std::string& to,
                       const std::string& library = kLibrary,
                       std::vector<lower::Override> values = {}) {
  const auto keys = [](const std::string& text, const std::string& used,
                       const std::vector<lower::Override>& with) {
    source::MemoryFileSystem disk;
    disk.add("net.pipe", text);
    disk.add("lib.pipe", used);
    service::Workspace workspace(disk);
    const auto document = workspace.document("net.pipe");
    const sema::Program& program = *document->program().value;
    const service::DeclarationTexts texts(program, document->files());
    std::vector<std::pair<std::string, service::CleanChecks::Key>> list;
    for (const sema::Function& function : program.functions) {
      if (function.sort() == ast::FunctionSort::schedule)
        list.emplace_back(function.name(), texts.scope_of(function.syntax->range, with).key);
    }
    return list;
  };
  std::string edited = kText;
  const std::size_t at = edited.find(from);
  if (at == std::string::npos) return "no `" + from + "`";
  edited.replace(at, from.size(), to);
  const auto before = keys(kText, kLibrary, {}), after = keys(edited, library, values);
  std::string names;
  for (std::size_t i = 0; i < before.size() && i < after.size(); ++i) {
    if (before[i].second != after[i].second) names += (names.empty() ? "" : " ") + before[i].first;
  }
  return names;
}

TEST(CleanChecks, AnEditConcernsWhatMayReadIt) {
  struct Row {
    const char *from, *to, *changed;
  };
  const Row rows[] = {
      {"mesh pair", "mesh pair", ""},
      {"mb: m }\nschedule three", "mb: 2 * m }\nschedule three", "two"},
      {"mb: half(m)", "mb: half( m)", "one"},
      {"n / 2", "n / 4", "one"},
      {"place stage[s] on p[s]", "place stage[s] on p[0]", "parts one two"},
      {"place model on p[0]", "place model on p[1]", "three"},
      {"def half", "// no matter\ndef half", ""},
      {"def half", "def other(n: int) -> int { return n }\ndef half", ""},
      {"width = 6", "width = 7", "parts one two three"},
      {"pp: 2", "pp: 3", "parts one two three"},
      {"use lib", "use std.models.mlp", "parts one two three"},
      // A name that was a label is a declaration now.
      {"def half", "def stage(n: int) -> int { return n }\ndef half", "parts one two"},
  };
  for (const Row& row : rows)
    EXPECT_EQ(changed_by(row.from, row.to), row.changed) << row.from << " -> " << row.to;
  EXPECT_EQ(changed_by("use lib", "use lib", "def twice(n: int) -> int { return n + n }\n"),
            "parts one two three");
  EXPECT_EQ(changed_by("use lib", "use lib", kLibrary, {{"m", "4"}}), "parts one two three");
}

TEST(CleanChecks, ChecksOfLaterVersionsSayWhatFreshOnesSay) {
  const source::MemoryFileSystem disk;
  const std::vector<std::string> pieces = {"p",  "m",       "0",        "1",  "2 * m", "stage",
                                           "pp", "half(m)", "}",        "{",  "F",     "on",
                                           "\n", " ",       "parts(p)", "mb", "model", "// x\n"};
  const std::string text =
      kText.substr(kText.find('\n') + 1) + kWarns +
      "model scale(x: tensor[batch, dim: 4]) {\n    weight gain[dim] = ones\n    loss square(x * gain)\n}\n"
      "train t = scale() on pair {\n    data: synthetic(batch: 8)\n    optim: sgd(lr: 0.1)\n    steps: 1\n    three(pp, 2)\n}\n";
  const auto told = [](service::Document& document) {
    std::string all;
    const auto checked = document.check();
    for (const Diagnostic& each : checked.diagnostics)
      all += render_json(each, document.files()) + "\n";
    for (const service::CheckedSchedule& each : *checked.value)
      all += each.name + " " + each.sizes + "\n";
    return all;
  };
  for_each_case(8, [&](Random& random) {
    service::Workspace workspace(disk);
    workspace.open("/net.pipe", text);
    std::string edited = text;
    for (int step = 0; step < 12; ++step) {
      if (random.chance(0.4)) edited = text;  // back to a clean text
      for (std::size_t edits = random.below(3); edits > 0; --edits) {
        const std::size_t begin = random.below(edited.size()),
                          end = std::min(edited.size(), begin + random.below(3));
        edited.replace(begin, end - begin, random.pick(pieces));
      }
      workspace.edit("/net.pipe", edited);
      service::Workspace fresh(disk);
      fresh.open("/net.pipe", edited);
      EXPECT_EQ(told(*workspace.document("/net.pipe")), told(*fresh.document("/net.pipe")))
          << edited;
    }
  });
}

TEST(CleanChecks, TheOldestMakesPlace) {
  service::CleanChecks checks(3);
  const auto key = [](std::uint64_t n) { return service::CleanChecks::Key{n, 0}; };
  const auto kept = [&] {
    std::string numbers;
    for (std::uint64_t n = 0; n < 6; ++n) {
      if (const auto found = checks.find(key(n))) numbers += *found->sizes;
    }
    return numbers;
  };
  for (std::uint64_t n = 0; n < 3; ++n) checks.add(key(n), {std::to_string(n), {}, {}, {}});
  checks.find(key(0));
  checks.add(key(3), {"3", {}, {}, {}});
  EXPECT_EQ(kept(), "023");  // 0 was asked for since
  checks.add(key(3), {"three", {}, {}, {}});
  EXPECT_EQ(kept(), "02three");
  for (std::uint64_t n = 4; n < 6; ++n) checks.add(key(n), {std::to_string(n), {}, {}, {}});
  EXPECT_EQ(kept(), "three45");
}

TEST(CleanChecks, WarningsMoveWithTheText) {
  using Items = std::vector<SourceRange>;
  const FileId entry = FileId::at(0), used = FileId::at(1);
  Diagnostic warning;
  warning.code = Code::schedule_not_compiled;
  warning.severity = Severity::note;
  warning.message = "words";
  warning.range = {entry, 12, 15};
  warning.related = {{{used, 3, 4}, "there"}, {{entry, 40, 40}, "here"}};
  warning.fixes = {{"title", {{{entry, 20, 20}, "x"}}}};
  service::CleanCheck check{
      "p=4", {warning}, Items{{entry, 10, 20}, {entry, 30, 40}}, {"net.pipe", "lib.pipe"}};
  SourceTable now;
  now.add("net.pipe", "");
  now.add("other.pipe", "");
  // The other file is not part of this program.
  EXPECT_FALSE(check.moved(Items{{entry, 50, 60}, {entry, 70, 80}}, now));
  now.add("lib.pipe", "");
  const auto moved = check.moved(Items{{entry, 50, 60}, {entry, 70, 80}}, now);
  ASSERT_TRUE(moved);
  EXPECT_EQ(moved->front().range, (SourceRange{entry, 52, 55}));
  EXPECT_EQ(moved->front().related[0].range, (SourceRange{FileId::at(2), 3, 4}));
  EXPECT_EQ(moved->front().related[1].range, (SourceRange{entry, 80, 80}));
  EXPECT_EQ(moved->front().fixes[0].edits[0].range, (SourceRange{entry, 60, 60}));
  EXPECT_EQ(moved->front().message, "words");
  check.diagnostics.front().range = {entry, 22, 25};  // in none of the items
  EXPECT_FALSE(check.moved(Items{{entry, 50, 60}, {entry, 70, 80}}, now));
}

// Kept diagnostics are reported again: a check with warnings is compiled once.
TEST(CleanChecks, ChecksThatWarnAreKept) {
  const source::MemoryFileSystem disk;
  const std::string warns = "schedule named(p: axis) { partition body into stage: p }\n";
  const auto clean = std::make_shared<service::CleanChecks>();
  service::Workspace workspace(disk, clean);
  const auto told = [&](const std::string& text) {
    workspace.open("/net.pipe", text);
    const auto document = workspace.document("/net.pipe");
    std::string all;
    for (const Diagnostic& each : document->check().diagnostics) {
      all += std::to_string(each.range.begin) + "-" + std::to_string(each.range.end) + " " +
             code_text(each.code) + "\n";
    }
    const sema::Program& program = *document->program().value;
    const service::DeclarationTexts texts(program, document->files());
    const auto kept = clean->find(texts.scope_of(program.functions.front().syntax->range, {}).key);
    return all +
           (!kept         ? "nothing"
            : kept->sizes ? "sizes"
                          : std::to_string(kept->diagnostics.size())) +
           " kept\n";
  };
  EXPECT_EQ(told(warns), "9-14 P6111\n1 kept\n");
  EXPECT_EQ(told("// moves\n" + warns), "18-23 P6111\n1 kept\n");
  // An error is being worked on: it is checked at every edit.
  EXPECT_EQ(told("schedule wrong(p: axis) { split batch into mb: 0 }\n").substr(6),
            "P3200\nnothing kept\n");
}

}  // namespace
}  // namespace piper::test
