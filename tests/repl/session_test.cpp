// Sessions in process: transcripts, also those of the pages, and cases that they cannot express.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <new>
#include <sstream>

#include "frontend/repl/commands.h"
#include "frontend/repl/completion.h"
#include "frontend/repl/repl.h"
#include "tests/repl/layered_files.h"
#include "tests/repl/replay.h"
#include "tests/support/file_test.h"
#include "tests/support/golden.h"
#include "tests/support/temporary_folder.h"

namespace piper::test {
namespace {

using testing::HasSubstr;

PIPER_FILE_TEST(Session, "tests/repl/testdata", ".session", [](const FileTest& test) {
  const Replayed replayed = replay_session(test.text);
  ASSERT_GT(replayed.entries, 0u);
  expect_golden(test.path, replayed.text);
});

std::vector<std::string> pages() {
  std::vector<std::string> pages = {"docs/repl.md"};
  for (const auto& example : std::filesystem::directory_iterator("examples")) {
    if (std::filesystem::exists(example.path() / "README.md"))
      pages.push_back((example.path() / "README.md").string());
  }
  std::sort(pages.begin(), pages.end());
  return pages;
}

// Blocks of the pages that are marked `session` match a session's output; none of their lines fails
// unless the block gives the number: `session fails 1`.
TEST(Pages, EverySessionOfAPageSaysWhatThePageSays) {
  std::size_t sessions = 0;
  for (const std::string& page : pages()) {
    std::istringstream lines(read_text(page).value_or(""));
    std::string made, block;
    bool inside = false;
    std::size_t fails = 0;
    for (std::string line; std::getline(lines, line);) {
      if (inside && line == "```") {
        const Replayed replayed = replay_session(block);
        EXPECT_EQ(replayed.failed, fails) << page << "\n" << replayed.text;
        made += replayed.text;
        inside = false;
        ++sessions;
      }
      if (inside) {
        block += line + "\n";
      } else {
        made += line + "\n";
      }
      if (!line.starts_with("```session")) continue;
      inside = true;
      block.clear();
      fails = line.size() > 17 ? std::stoul(line.substr(17)) : 0;
    }
    expect_golden(page, made);
  }
  EXPECT_GE(sessions, 2u);
}

/// A session on files in memory, and its output.
struct Talk {
  std::map<std::string, std::string> files;
  LayeredFiles layered{files};
  std::ostringstream out;
  repl::Host host{.out = out, .files = layered};
  repl::Interrupt interrupt;
  repl::Session session{host, interrupt};

  std::string say(std::string_view entry) {
    out.str("");
    session.execute(entry);
    return out.str();
  }
};

TEST(Commands, EachHasHelpAndAnswersWithoutWords) {
  for (const repl::CommandRow& row : repl::command_rows()) {
    Talk talk;
    EXPECT_THAT(talk.say(":help " + std::string(row.name)), HasSubstr(row.usage));
    if (row.name == "quit") continue;
    const std::string answer = talk.say(":" + std::string(row.name));
    EXPECT_NE(answer, "") << row.name;
    EXPECT_EQ(talk.say("1 + 1"), "2\n") << row.name;
  }
}

TEST(Session, AnInterruptEndsARequestAndNotTheSession) {
  // Reading a file during the session's work interrupts it.
  class Interrupting : public source::FileSystem {
   public:
    source::ReadResult read(std::string_view path, std::uint64_t limit) const override {
      if (interrupt != nullptr) interrupt->raise();
      return disk.read(path, limit);
    }
    repl::Interrupt* interrupt = nullptr;
    source::RealFileSystem disk;
  };
  const TemporaryFolder folder;
  const std::string path =
      folder.write("one.pipe", "schedule one(p: axis) { place model on p[0] }\n");
  Interrupting files;
  std::ostringstream out;
  repl::Host host{.out = out, .files = files};
  repl::Interrupt interrupt;
  repl::Session session(host, interrupt);
  EXPECT_TRUE(session.execute("let x = 3"));
  files.interrupt = &interrupt;
  EXPECT_FALSE(session.execute(":load " + path));
  EXPECT_THAT(out.str(), HasSubstr("interrupted\n"));
  files.interrupt = nullptr;
  out.str("");
  EXPECT_TRUE(session.execute("x + 1"));
  EXPECT_EQ(out.str(), "4\n");
}

TEST(Session, LackOfMemoryEndsARequestAndNotTheSession) {
  class Hungry : public source::FileSystem {
   public:
    source::ReadResult read(std::string_view path, std::uint64_t) const override {
      if (path == "hungry.pipe") throw std::bad_alloc();
      return {std::nullopt, "no such file or directory", 0};
    }
  };
  const Hungry files;
  std::ostringstream out;
  repl::Host host{.out = out, .files = files};
  repl::Interrupt interrupt;
  repl::Session session(host, interrupt);
  EXPECT_FALSE(session.execute(":load hungry.pipe"));
  EXPECT_THAT(out.str(), HasSubstr("error P6005"));
  out.str("");
  EXPECT_TRUE(session.execute("1 + 1"));
  EXPECT_EQ(out.str(), "2\n");
}

/// Sizes, costs and the machine are those before a request that was interrupted.
TEST(Session, AnInterruptedRequestChangesNothing) {
  for (const char* request : {":cost f=2", ":set m=3", ":machine lab", ":grid own"}) {
    Talk talk;
    talk.say("schedule own(p: axis) { place model on p[0] }");
    talk.say("mesh pair(p: 2)");
    talk.say("machine lab on pair { p: link(latency: 1ms, bandwidth: 1GiB) }");
    talk.say(":timeline gpipe p=2 m=2");
    const std::string costs = talk.say(":cost"), sizes = talk.say(":set"),
                      machine = talk.say(":machine"), drawn = talk.say(":timeline");
    talk.interrupt.raise();
    EXPECT_EQ(talk.say(request), "interrupted\n");
    EXPECT_EQ(talk.say(":cost"), costs) << request;
    EXPECT_EQ(talk.say(":set"), sizes) << request;
    EXPECT_EQ(talk.say(":machine"), machine) << request;
    EXPECT_EQ(talk.say(":timeline"), drawn) << request;
  }
}

TEST(Completion, OffersWhatACommandTakes) {
  Talk talk;
  talk.say("schedule own(p: axis, width: int) { place model on p[0] }");
  using List = std::vector<std::string>;
  const auto offered = [&](std::string_view text) {
    return repl::completion_of(talk.session, text).candidates;
  };
  EXPECT_EQ(offered(":time"), List{":timeline"});
  EXPECT_EQ(offered(":grid ow"), List{"own"});
  EXPECT_EQ(offered(":grid own wi"), List{"width="});
  EXPECT_EQ(offered(":grid own p"), List{"p="});
  EXPECT_EQ(offered(":train own wi"), List{});
  talk.say(":grid own p=2 width=1");
  EXPECT_EQ(offered(":grid wi"), List{"width="});
  EXPECT_EQ(offered(":set wi"), List{"width="});
  EXPECT_EQ(offered(":cost ke"), List{"keep="});
}

TEST(Session, AFileThatChangesIsReadAgainAndDrawnAgain) {
  Talk talk;
  const auto text = [](const char* last) {
    return std::string(
               "schedule two(p: axis, m: int) {\n    partition model into stage: p\n    split batch into mb: m\n    for s in 0..p { place stage[s] on p[s] }\n") +
           "    order { rank r in p { for i in 0..m { F stage[r] mb[i]; B stage[r] mb[i] } } }\n" +
           last + "}\n";
  };
  talk.files["two.pipe"] = text("");
  EXPECT_THAT(talk.say(":load two.pipe"), HasSubstr("`two.pipe` is loaded, with `two`"));
  EXPECT_THAT(talk.say(":grid two p=2 m=2"), HasSubstr("rank 1"));
  EXPECT_FALSE(talk.session.has_changes());
  talk.files["two.pipe"] = text("    place stage[0] on\n");
  EXPECT_TRUE(talk.session.has_changes());
  talk.out.str("");
  EXPECT_TRUE(talk.session.notice_changes());
  EXPECT_THAT(talk.out.str(), HasSubstr("error P"));
  EXPECT_THAT(talk.say(":grid"), HasSubstr("rank 1")) << "what was loaded before stays";
  std::string backwards = text("");
  for (std::size_t at = backwards.find("mb[i]"); at != std::string::npos;
       at = backwards.find("mb[i]"))
    backwards.replace(at, 5, "mb[m - 1 - i]");
  talk.files["two.pipe"] = backwards;
  talk.out.str("");
  EXPECT_TRUE(talk.session.notice_changes());
  EXPECT_THAT(talk.out.str(), HasSubstr("two p=2 m=2\nrank 0"));
  EXPECT_FALSE(talk.session.notice_changes());
}

TEST(Session, AFileThatWasRefusedOrIsUsedIsReadAgainToo) {
  Talk talk;
  talk.files["a.pipe"] = "use b\nparam n = width + \n";
  talk.files["b.pipe"] = "param width = 1\n";
  EXPECT_THAT(talk.say(":load a.pipe"), HasSubstr("`a.pipe` was not loaded"));
  talk.files["a.pipe"] = "use b\nparam n = width + 1\n";
  talk.out.str("");
  EXPECT_TRUE(talk.session.notice_changes());
  EXPECT_THAT(talk.out.str(), HasSubstr("`a.pipe` has changed\n"));
  EXPECT_EQ(talk.say("n"), "2\n");
  talk.files["b.pipe"] = "param width = 5\n";
  EXPECT_TRUE(talk.session.has_changes());
  EXPECT_TRUE(talk.session.notice_changes());
  EXPECT_EQ(talk.say("n"), "6\n");
}

TEST(Session, SavedFilesHoldAllDefinitions) {
  const TemporaryFolder folder;
  Talk talk;
  talk.files["a.pipe"] = "// first\nparam a = 1\n\n/// one\nparam b = 1\n";
  talk.say(":load a.pipe");
  talk.say("param a = 5");
  talk.say("param c = a + b");
  const std::string path = (folder.path() / "b.pipe").string();
  EXPECT_THAT(talk.say(":save " + path), HasSubstr("is written"));
  EXPECT_EQ(read_text(path), "param a = 5\n\n/// one\nparam b = 1\nparam c = a + b\n");
  EXPECT_THAT(talk.say(":save " + (folder.path() / "no/folder.pipe").string()),
              HasSubstr("cannot be written: "));
  // A file that was not loaded is not overwritten, and an empty session is no program.
  const std::string other = folder.write("other.pipe", "mesh m(p: 2)\n");
  EXPECT_THAT(talk.say(":save " + other), HasSubstr("was not loaded"));
  EXPECT_EQ(read_text(other), "mesh m(p: 2)\n");
  Talk empty;
  EXPECT_THAT(empty.say(":save " + other), HasSubstr("nothing was defined"));
  EXPECT_EQ(talk.say("c"), "6\n");
}

TEST(Session, ProgramsRunOnWhatIsDefined) {
  Talk talk;
  std::vector<std::string> line;
  std::string edited;
  talk.host.run_program = [&](const std::vector<std::string>& words) { return line = words, 0; };
  talk.host.run_editor = [&](const std::string& path) { return write_text(path, edited), 0; };
  talk.files["a.pipe"] =
      "use std.models.mlp\nmesh one(d: 1)\ntrain net = mlp(layers: 1, features: 2, hidden: 2, classes: 2) on one {\n"
      "    data: synthetic(batch: 4, classes: 2)\n    optim: sgd(lr: 0.1)\n    steps: 1\n    place model on d[0]\n}\n";
  talk.say(":load a.pipe");
  EXPECT_EQ(talk.say(":train 3"), "");
  EXPECT_EQ(line, (std::vector<std::string>{"train", "a.pipe", "net", "--steps", "3"}));
  edited = "param width = 4";
  EXPECT_THAT(talk.say(":edit width"), HasSubstr("`width` is defined"));
  EXPECT_EQ(talk.say("width"), "4\n");
  edited = "param width = \n";
  EXPECT_THAT(talk.say(":edit width"), HasSubstr("error P"));
  EXPECT_EQ(talk.say("width"), "4\n");
  talk.say(":train");
  EXPECT_THAT(line[1], HasSubstr(".session-")) << "of what was typed, a file is written";
  EXPECT_FALSE(std::filesystem::exists(line[1]));
}

}  // namespace
}  // namespace piper::test
