// The workspace and its documents: unsaved texts, versions, the results of each request,
// cancellation, lack of memory, and the use shown in frontend/service/README.md.

#include <gtest/gtest.h>

#include <atomic>
#include <latch>
#include <new>
#include <thread>

#include "frontend/service/workspace.h"
#include "ir/dag/print.h"
#include "tests/support/golden.h"
#include "tests/support/text_edit.h"

namespace piper::service {
namespace {

const std::string kNet =
    "use lib.sizes\n"
    "use std.models.mlp\n"
    "\n"
    "mesh pair(pp: 2)\n"
    "\n"
    "/// Two stages, one after the other.\n"
    "schedule plain(p: axis, m: int) {\n"
    "    partition model into stage: p\n"
    "    split batch into mb: m\n"
    "    for s in 0..p { place stage[s] on p[s] }\n"
    "    order {\n"
    "        rank r in p {\n"
    "            cursor a = stage[r] mb[0..m]\n"
    "            repeat left(F a) { F a }\n"
    "            repeat left(B a) { B a }\n"
    "        }\n"
    "    }\n"
    "}\n"
    "\n"
    "train net = mlp(layers: 2, features: 4, hidden: width(), classes: 3) on pair {\n"
    "    data:  synthetic(batch: 8, classes: 3)\n"
    "    optim: sgd(lr: 0.1)\n"
    "    steps: 3\n"
    "    plain(pp, 4)\n"
    "}\n";
const std::string kSizes = "def width() -> int { return 6 }\n";

source::MemoryFileSystem disk() {
  source::MemoryFileSystem files;
  files.add("net.pipe", kNet);
  files.add("lib/sizes.pipe", kSizes);
  return files;
}

std::string report(const Document& document, const std::vector<Diagnostic>& diagnostics) {
  return render_text(diagnostics, document.files());
}

std::string text_of(const Document& document, SourceRange range) {
  return std::string(
      document.files().text(range.file).substr(range.begin, range.end - range.begin));
}

TEST(Workspace, OpenTextsStandBeforeTheDisk) {
  const source::MemoryFileSystem files = disk();
  Workspace workspace(files);
  const auto saved = workspace.document("net.pipe");
  EXPECT_TRUE(saved->check().diagnostics.empty()) << report(*saved, saved->check().diagnostics);
  EXPECT_EQ(workspace.document("net.pipe"), saved);

  workspace.open("./lib/../lib/sizes.pipe", "def breadth() -> int { return 6 }\n");
  const auto shadowed = workspace.document("net.pipe");
  ASSERT_NE(shadowed, saved);
  EXPECT_GT(shadowed->version(), saved->version());
  const auto checked = shadowed->check();
  ASSERT_EQ(checked.diagnostics.size(), 1u) << report(*shadowed, checked.diagnostics);
  EXPECT_EQ(checked.diagnostics[0].code, Code::unknown_name);
  EXPECT_TRUE(saved->check().diagnostics.empty());  // a version does not change

  EXPECT_TRUE(workspace.close("lib/sizes.pipe"));
  EXPECT_FALSE(workspace.close("lib/sizes.pipe"));
  EXPECT_TRUE(workspace.document("net.pipe")->check().diagnostics.empty());
}

TEST(Workspace, AnEditMakesNewVersionsOfWhatReadsIt) {
  const source::MemoryFileSystem files = disk();
  Workspace workspace(files);
  workspace.open("other.pipe", "mesh other(pp: 2)\n");
  const auto net = workspace.document("net.pipe"), other = workspace.document("other.pipe");
  net->program();
  other->program();
  EXPECT_FALSE(workspace.edit("lib/sizes.pipe", "nothing"));  // is not open
  workspace.open("lib/sizes.pipe", kSizes);
  EXPECT_NE(workspace.document("net.pipe"), net);
  EXPECT_EQ(workspace.document("other.pipe"), other);
  const auto before = workspace.document("net.pipe");
  before->program();
  EXPECT_TRUE(workspace.edit("lib/sizes.pipe",
                             std::vector<TextEdit>{{{1, 5}, {1, 10}, "breadth"},
                                                   {{1, 1}, {1, 1}, "// \xF0\x9D\x84\x9E\n"}},
                             ColumnUnit::utf16));
  const auto after = workspace.document("net.pipe");
  EXPECT_NE(after, before);
  EXPECT_FALSE(after->program().diagnostics.empty());
  workspace.changed_on_disk("net.pipe");
  EXPECT_NE(workspace.document("net.pipe"), after);
}

TEST(Workspace, EditsFollowEachOther) {
  struct Row {
    std::string text;
    std::vector<TextEdit> edits;
    ColumnUnit unit;
    std::string wanted;
  };
  const std::string clef = "\xF0\x9D\x84\x9E", e = "\xC3\xA9";
  const Row rows[] = {
      {"abc", {{{1, 2}, {1, 3}, "XY"}}, ColumnUnit::byte, "aXYc"},
      {"abc", {{{1, 2}, {1, 3}, "XY"}, {{1, 3}, {1, 4}, ""}}, ColumnUnit::byte, "aXc"},
      {clef + "b\n", {{{1, 3}, {1, 4}, "c"}}, ColumnUnit::utf16, clef + "c\n"},
      {clef + "b\n", {{{1, 2}, {1, 3}, "c"}}, ColumnUnit::code_point, clef + "c\n"},
      {clef + "b\n", {{{1, 5}, {1, 6}, "c"}}, ColumnUnit::byte, clef + "c\n"},
      {e + "\r\nb", {{{1, 2}, {2, 1}, ""}}, ColumnUnit::utf16, e + "b"},
      {"a\r\nb", {{{1, 99}, {1, 99}, "!"}}, ColumnUnit::utf16, "a!\r\nb"},
      {"a", {{{9, 1}, {9, 1}, "!"}}, ColumnUnit::utf16, "a!"},
      {"abc", {{{1, 3}, {1, 1}, "!"}}, ColumnUnit::byte, "ab!c"},
  };
  for (const Row& row : rows) EXPECT_EQ(apply_edits(row.text, row.edits, row.unit), row.wanted);
}

TEST(Document, GivesEachPhase) {
  const source::MemoryFileSystem files = disk();
  Workspace workspace(files);
  const auto document = workspace.document("net.pipe");
  const auto syntax = document->syntax();
  ASSERT_NE(syntax.value, nullptr);
  EXPECT_EQ(syntax.value->items.size(), 5u);
  EXPECT_EQ(document->syntax().value, syntax.value);  // made once
  std::string outline, subjects;
  for (const Symbol& symbol : *document->symbols().value) {
    EXPECT_EQ(text_of(*document, symbol.selection_range), symbol.name);
    EXPECT_GE(symbol.selection_range.begin, symbol.range.begin);
    EXPECT_LE(symbol.selection_range.end, symbol.range.end);
    outline += std::string(symbol_kind_name(symbol.kind)) + " " + symbol.name +
               (symbol.doc.empty() ? "" : ": " + symbol.doc) + "\n";
  }
  EXPECT_EQ(outline, "mesh pair\nschedule plain: Two stages, one after the other.\ntrain net\n");
  for (const Symbol& symbol : *document->subjects().value) subjects += symbol.name + " ";
  EXPECT_EQ(subjects, "plain net ");
  const auto lowered = document->subject({"net", {}});
  ASSERT_NE(lowered.value, nullptr);
  EXPECT_TRUE(lowered.value->is_train);
  EXPECT_TRUE(lowered.value->lowered.model.grads.empty());
  const auto plan = document->plan({{"net", {}}});
  ASSERT_NE(plan.value, nullptr) << report(*document, plan.diagnostics);
  EXPECT_EQ(plan.value->dag.level, dag::Level::planned);
  EXPECT_FALSE(plan.value->model.grads.empty());
  EXPECT_TRUE(lowered.value->lowered.model.grads.empty());  // the plan has a copy
  const auto forward = document->plan({{"net", {}}, dag::Level::ordered, true});
  ASSERT_NE(forward.value, nullptr);
  EXPECT_TRUE(forward.value->dag.forward_only);
  EXPECT_EQ(document->plan({{"net", {}}}).value, plan.value);
  EXPECT_EQ(document->dag().value, nullptr);
  const auto shown = document->plan({{"plain", {{"p", "2"}, {"m", "4"}}}});
  ASSERT_NE(shown.value, nullptr) << report(*document, shown.diagnostics);
  EXPECT_TRUE(document->check().value->empty());  // the train applies the schedule
}

TEST(Document, UsesKnowTheirDeclarations) {
  const source::MemoryFileSystem files = disk();
  Workspace workspace(files);
  const auto document = workspace.document("net.pipe");
  std::string list;
  const SourceTable& table = document->files();
  for (const Use& use : *document->uses().value) {
    EXPECT_EQ(text_of(*document, use.range), text_of(*document, use.declaration));
    if (table.is_library(use.declaration.file)) continue;
    const LineColumn at = table.line_column(use.range.file, use.range.begin),
                     declared = table.line_column(use.declaration.file, use.declaration.begin);
    list += text_of(*document, use.range) + " " + std::to_string(at.line) + ":" +
            std::to_string(at.column) + " -> " + std::string(table.name(use.declaration.file)) +
            ":" + std::to_string(declared.line) + ":" + std::to_string(declared.column) + "\n";
  }
  EXPECT_EQ(list,
            "p 8:33 -> net.pipe:7:16\n"
            "m 9:26 -> net.pipe:7:25\n"
            "p 10:17 -> net.pipe:7:16\n"
            "s 10:33 -> net.pipe:10:9\n"
            "p 10:39 -> net.pipe:7:16\n"
            "s 10:41 -> net.pipe:10:9\n"
            "p 12:19 -> net.pipe:7:16\n"
            "r 13:30 -> net.pipe:12:14\n"
            "m 13:39 -> net.pipe:7:25\n"
            "a 14:27 -> net.pipe:13:20\n"
            "a 14:34 -> net.pipe:13:20\n"
            "a 15:27 -> net.pipe:13:20\n"
            "a 15:34 -> net.pipe:13:20\n"
            "width 20:49 -> lib/sizes.pipe:1:5\n"
            "pair 20:73 -> net.pipe:4:6\n"
            "plain 24:5 -> net.pipe:7:10\n"
            "pp 24:11 -> net.pipe:4:11\n");
}

TEST(Document, ReadsPirAndLibraryAndTellsWhatCannotBeRead) {
  source::MemoryFileSystem files = disk();
  Workspace first(files);
  const auto net = first.document("net.pipe");
  files.add("net.pir", dag::print(net->plan({{"net", {}}}).value->dag));
  Workspace workspace(files);
  const auto pir = workspace.document("net.pir");
  const auto dag = pir->dag();
  ASSERT_NE(dag.value, nullptr) << report(*pir, dag.diagnostics);
  EXPECT_EQ(dag.value->level, dag::Level::planned);
  EXPECT_TRUE(pir->check().diagnostics.empty());
  EXPECT_EQ(pir->program().value, nullptr);
  EXPECT_TRUE(pir->symbols().value->empty());
  EXPECT_EQ(pir->plan({{"net", {}}}).value, nullptr);
  const auto library = workspace.document("zb_h1");
  EXPECT_NE(library->plan({{"", {{"p", "3"}, {"m", "4"}}}}).value, nullptr);
  const auto missing = workspace.document("missing.pipe");
  EXPECT_EQ(missing->check().diagnostics.at(0).code, Code::unreadable_file);
  EXPECT_EQ(missing->program().value, nullptr);
  EXPECT_EQ(missing->symbols().value, nullptr);
}

// The command line's remarks about a correct plan, at most the necessary ones.
TEST(Document, TellsWhatAPlanNeedNotWaitFor) {
  std::string error;
  const std::string edit =
      "- F.stage1.mb1 on compute after recv.F.stage0.mb1.pp1\n+ F.stage1.mb1 on compute after recv.F.stage0.mb1.pp1, recv.F.stage0.mb0.pp1\n";
  source::MemoryFileSystem files;
  files.add("plan.pir",
            test::edited(test::read_text("tests/verify/testdata/legal/planned.pir").value_or(""),
                         edit, error));
  ASSERT_EQ(error, "");
  Workspace workspace(files);
  const std::vector<Diagnostic> found = workspace.document("plan.pir")->check().diagnostics;
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].code, Code::redundant_event);
}

/// Fires at its n-th poll.
class FiresAfter : public Cancellation {
 public:
  explicit FiresAfter(std::ptrdiff_t polls) : left_(polls) {}
  bool requested() const override { return --left_ <= 0; }

 private:
  mutable std::atomic<std::ptrdiff_t> left_;
};

/// Has no memory from its n-th poll on, for the given number of polls.
class StarvesAfter : public Cancellation {
 public:
  explicit StarvesAfter(std::ptrdiff_t polls, std::ptrdiff_t times = 1'000'000)
      : left_(polls), times_(times) {}
  bool requested() const override {
    if (--left_ <= 0 && left_ > -times_) throw std::bad_alloc();
    return false;
  }

 private:
  mutable std::atomic<std::ptrdiff_t> left_;
  const std::ptrdiff_t times_;
};

/// Every request is ended at every one of its polls in turn, on one document, and finally gives the
/// same result as on others.
template <typename Ends>
void end_everywhere(Status wanted, std::size_t diagnostics, std::ptrdiff_t least) {
  const source::MemoryFileSystem files = disk();
  Workspace workspace(files);
  const auto whole = workspace.document("net.pipe");
  const std::string plan = dag::print(whole->plan({{"net", {}}}).value->dag);
  whole->check();
  Workspace other(files);
  const auto document = other.document("net.pipe");
  const auto run = [&](const auto& request) {
    for (std::ptrdiff_t polls = 1;; ++polls) {
      const Ends ends(polls);
      const auto answer = request(&ends);
      if (answer.status == Status::done) return polls - 1;
      EXPECT_EQ(answer.status, wanted);
      EXPECT_EQ(answer.value, nullptr);
      EXPECT_EQ(answer.diagnostics.size(), diagnostics);
    }
  };
  EXPECT_GE(run([&](const Cancellation* token) { return document->plan({{"net", {}}}, token); }),
            least);
  EXPECT_EQ(dag::print(document->plan({{"net", {}}}).value->dag), plan);
  EXPECT_GE(run([&](const Cancellation* token) { return document->check(token); }), least);
  EXPECT_TRUE(document->check().diagnostics.empty());
}

TEST(Cancellation, EndsARequestAtEveryPoll) {
  end_everywhere<FiresAfter>(Status::cancelled, 0, 10);
}

TEST(LackOfMemory, EndsARequestAndNotTheService) {
  end_everywhere<StarvesAfter>(Status::out_of_memory, 1, 10);
}

PlanRequest zb_h1(const std::string& microbatches) {
  return {{"", {{"p", "2"}, {"m", microbatches}}}};
}

/// Memory kept for later requests is released before a request fails.
TEST(LackOfMemory, TakesWhatIsKeptOfOtherRequests) {
  const source::MemoryFileSystem files = disk();
  Workspace workspace(files);
  const auto document = workspace.document("zb_h1");
  const std::weak_ptr<const Plan> kept = document->plan(zb_h1("4")).value;
  EXPECT_FALSE(kept.expired());
  const StarvesAfter once(3, 1);
  EXPECT_EQ(document->plan(zb_h1("6"), &once).status, Status::done);
  EXPECT_TRUE(kept.expired());
}

TEST(Document, KeepsTheLastPlansAlone) {
  const source::MemoryFileSystem files = disk();
  Workspace workspace(files);
  const auto document = workspace.document("zb_h1");
  const std::weak_ptr<const Plan> first = document->plan(zb_h1("2")).value;
  const std::shared_ptr<const Plan> held = document->plan(zb_h1("3")).value;
  const std::string text = dag::print(held->dag);
  for (int m = 4; m < 30; ++m) {
    const std::weak_ptr<const Plan> before = document->plan(zb_h1(std::to_string(m))).value;
    EXPECT_EQ(document->plan(zb_h1(std::to_string(m))).value, before.lock()) << m;
  }
  EXPECT_TRUE(first.expired());
  EXPECT_EQ(dag::print(held->dag), text);
  EXPECT_EQ(dag::print(document->plan(zb_h1("3")).value->dag), text);
}

/// Says when it is polled the n-th time, and waits until it was requested.
class Meets : public Cancellation {
 public:
  bool requested() const override {
    if (++polls_ == 1000) {
      polled.count_down();
      asked.wait();
    }
    return Cancellation::requested();
  }
  mutable std::latch polled{1}, asked{1};

 private:
  mutable std::atomic<std::size_t> polls_ = 0;
};

TEST(Cancellation, ComesFromAnotherThread) {
  const source::MemoryFileSystem files = disk();
  Workspace workspace(files);
  const auto document = workspace.document("zb_h1");
  const PlanRequest large{{"", {{"p", "8"}, {"m", "256"}}}};
  Meets cancellation;
  std::thread other([&] {
    cancellation.polled.wait();
    cancellation.request();
    cancellation.asked.count_down();
  });
  const auto answer = document->plan(large, &cancellation);
  other.join();
  EXPECT_EQ(answer.status, Status::cancelled);
  EXPECT_TRUE(answer.diagnostics.empty());
  EXPECT_NE(document->plan({{"", {{"p", "2"}, {"m", "4"}}}}).value, nullptr);
}

std::vector<std::string> shown;
void publish(const Diagnostic& diagnostic, const SourceTable&) {
  shown.push_back(diagnostic.message);
}
void outline(const std::string& name, SourceRange) { shown.push_back(name); }
void link(SourceRange range, SourceRange declaration) {
  shown.push_back(range.file == declaration.file ? "own" : "other");
}
void show(const std::string& text) { shown.push_back(text.substr(0, text.find('\n'))); }

/// The lines between the marks are those of frontend/service/README.md.
void serve(const source::FileSystem& disk, const std::string& text) {
  // clang-format off
  // README begins
Workspace workspace(disk);
workspace.open("net.pipe", text);
workspace.edit("net.pipe", std::vector<TextEdit>{{{1, 7}, {1, 11}, "pair"}}, ColumnUnit::utf16);
const std::shared_ptr<Document> document = workspace.document("net.pipe");
Cancellation cancellation;  // request() from any thread ends the running request
for (const Diagnostic& diagnostic : document->check(&cancellation).diagnostics) publish(diagnostic, document->files());
for (const Symbol& symbol : *document->symbols().value) outline(symbol.name, symbol.selection_range);
for (const Use& use : *document->uses().value) link(use.range, use.declaration);
const Answer<Plan> plan = document->plan({{"net"}, dag::Level::planned}, &cancellation);
if (plan.status == Status::done && plan.value) show(dag::print(plan.value->dag));
  // README ends
  // clang-format on
}

TEST(Readme, ShowsWhatRuns) {
  const std::string page = test::read_text("frontend/service/README.md").value(),
                    own = test::read_text("tests/service/service_test.cpp").value();
  const auto between = [](const std::string& text, const std::string& first,
                          const std::string& last) {
    const std::size_t begin = text.find(first) + first.size();
    return text.substr(begin, text.find(last, begin) - begin);
  };
  EXPECT_EQ(between(page, "```cpp\n", "```"),
            between(own, "  // README begins\n", "  // README ends"));
  shown.clear();
  std::string text = kNet;
  const auto replace = [&](const std::string& from, const std::string& to) {
    text.replace(text.find(from), from.size(), to);
  };
  replace("use lib.sizes\n", "mesh  duo_(pp: 2)\n");
  replace("mesh pair(pp: 2)\n", "");
  replace("width()", "6");
  serve(source::MemoryFileSystem(), text);
  // Beside the 16 uses of names in the schedule and train: the call of `mlp` with its four named
  // arguments.
  ASSERT_EQ(shown.size(), 3u + 16u + 5u + 1u) << testing::PrintToString(shown);
  EXPECT_EQ(std::vector(shown.begin(), shown.begin() + 3),
            (std::vector<std::string>{"pair", "plain", "net"}));
  EXPECT_NE(shown.back().find("planned"), std::string::npos) << shown.back();
}

}  // namespace
}  // namespace piper::service
