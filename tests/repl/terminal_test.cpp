// The program on a pseudo terminal, and in pipes.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <pty.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <sstream>
#include <utility>

#include "tests/support/golden.h"
#include "tests/support/process.h"
#include "tests/support/temporary_folder.h"

namespace piper::test {
namespace {

using testing::HasSubstr;
constexpr std::chrono::seconds kLimit(60);

/// `piper repl` on a pseudo-terminal, with a history file; empty: none.
class OnTerminal {
 public:
  explicit OnTerminal(const char* kind, const std::string& history = "") {
    const std::string program = program_path("piper");
    const winsize size{24, 80, 0, 0};
    child_ = forkpty(&terminal_, nullptr, nullptr, &size);
    if (child_ != 0) return;
    setenv("TERM", kind, 1);
    setenv("NO_COLOR", "1", 1);
    setenv("PIPER_HISTORY", history.c_str(), 1);
    execl(program.c_str(), "piper", "repl", nullptr);
    _exit(127);
  }
  OnTerminal(const OnTerminal&) = delete;
  OnTerminal& operator=(const OnTerminal&) = delete;
  ~OnTerminal() {
    if (child_ > 0) {
      kill(child_, SIGKILL);
      waitpid(child_, nullptr, 0);
    }
    if (terminal_ >= 0) close(terminal_);
  }

  void type(std::string_view bytes) {
    EXPECT_EQ(write(terminal_, bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
  }
  /// Reads until the output since the last call contains the text.
  bool sees(std::string_view text) {
    const auto end = std::chrono::steady_clock::now() + kLimit;
    for (;;) {
      const std::size_t found = printed_.find(text);
      if (found != std::string::npos) {
        printed_.erase(0, found + text.size());
        return true;
      }
      pollfd wanted{terminal_, POLLIN, 0};
      char bytes[4096];
      if (std::chrono::steady_clock::now() > end || poll(&wanted, 1, 1000) < 0) break;
      if ((wanted.revents & (POLLIN | POLLHUP)) == 0) continue;
      const ssize_t count = read(terminal_, bytes, sizeof bytes);
      if (count <= 0) break;
      printed_.append(bytes, static_cast<std::size_t>(count));
    }
    ADD_FAILURE() << "`" << text << "` is not in:\n" << printed_;
    return false;
  }
  int exit_code() {
    int status = 0;
    const auto end = std::chrono::steady_clock::now() + kLimit;
    while (waitpid(child_, &status, WNOHANG) == 0) {
      if (std::chrono::steady_clock::now() > end) return ADD_FAILURE() << "the session goes on", -1;
      pollfd wanted{terminal_, POLLIN, 0};  // output is read, or the session would block
      char bytes[4096];
      if (poll(&wanted, 1, 10) > 0 && read(terminal_, bytes, sizeof bytes) <= 0) hang_up();
    }
    child_ = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  void hang_up() {
    close(terminal_);
    terminal_ = -1;
  }

 private:
  pid_t child_ = 0;
  int terminal_ = -1;
  std::string printed_;
};

TEST(Terminal, LinesAreEditedAndAnswered) {
  OnTerminal session("xterm");
  ASSERT_TRUE(session.sees("piper> "));
  session.type(
      "1 + 3\x7f"
      "4\r");
  ASSERT_TRUE(session.sees("\x1b[?2004l5\r\n"));
  session.type(":gri\tone_f\tp=2 m=2\r");
  ASSERT_TRUE(session.sees("one_f_one_b p=2 m=2\r\nrank 0"));
  session.type("\x1b[200~let a = [\n1, 2]\nlet b = 7\x1b[201~\r");
  ASSERT_TRUE(session.sees("a = [1, 2]\r\n"));
  ASSERT_TRUE(session.sees("b = 7\r\n"));
  ASSERT_TRUE(session.sees("piper> "));
  session.type("half\x03");
  session.type("b\r");
  ASSERT_TRUE(session.sees("\x1b[?2004l7\r\n"));
  ASSERT_TRUE(session.sees("piper> "));
  session.type("\x04");
  EXPECT_EQ(session.exit_code(), 0);
}

TEST(Terminal, CtrlCEndsWhatRunsAndKeepsTheSession) {
  OnTerminal session("xterm");
  ASSERT_TRUE(session.sees("piper> "));
  session.type("let a = 5\r");
  ASSERT_TRUE(session.sees("a = 5\r\n"));
  // The line break of the entry is there when the terminal is no longer raw.
  session.type(":simulate zbv p=64 m=4096\r");
  ASSERT_TRUE(session.sees("\x1b[?2004l"));
  session.type("\x03");
  ASSERT_TRUE(session.sees("interrupted\r\n"));
  session.type("a + 1\r");
  ASSERT_TRUE(session.sees("\x1b[?2004l6\r\n"));
  ASSERT_TRUE(session.sees("piper> "));
  session.type(":quit\r");
  EXPECT_EQ(session.exit_code(), 0);
}

TEST(Terminal, CtrlCIsTheSessionsAlsoOnceItHasWrittenFiles) {
  const TemporaryFolder folder;
  OnTerminal session("xterm");
  ASSERT_TRUE(session.sees("piper> "));
  session.type("mesh pair(p: 2)\r");
  ASSERT_TRUE(session.sees("\x1b[?2004l"));
  ASSERT_TRUE(session.sees("piper> "));
  session.type(":save " + (folder.path() / "kept.pipe").string() + "\r");
  ASSERT_TRUE(session.sees("is written"));
  ASSERT_TRUE(session.sees("piper> "));
  session.type(":simulate zbv p=64 m=4096\r");
  ASSERT_TRUE(session.sees("\x1b[?2004l"));
  session.type("\x03");
  ASSERT_TRUE(session.sees("interrupted\r\n"));
  session.type("5 + 1\r");
  ASSERT_TRUE(session.sees("\x1b[?2004l6\r\n"));
}

TEST(Terminal, EntriesOfEarlierSessionsComeBack) {
  const TemporaryFolder folder;
  const std::string history = (folder.path() / "state/history").string();
  {
    OnTerminal session("xterm", history);
    ASSERT_TRUE(session.sees("piper> "));
    session.type("20 + 3\r");
    ASSERT_TRUE(session.sees("\x1b[?2004l23\r\n"));
    ASSERT_TRUE(session.sees("piper> "));  // while a line runs the terminal takes Ctrl-D for itself
    session.type("\x04");
    EXPECT_EQ(session.exit_code(), 0);
  }
  OnTerminal session("xterm", history);
  ASSERT_TRUE(session.sees("piper> "));
  session.type("\x1b[A0\r");
  ASSERT_TRUE(session.sees("\x1b[?2004l50\r\n"));
}

TEST(Terminal, ADumbOneHasPlainLines) {
  OnTerminal session("dumb");
  ASSERT_TRUE(session.sees("piper> "));
  session.type("let a = [\n");
  ASSERT_TRUE(session.sees("  ...> "));
  session.type("4]\n");
  ASSERT_TRUE(session.sees("a = [4]\r\n"));
  ASSERT_TRUE(session.sees("piper> "));
  session.type("\x04");
  EXPECT_EQ(session.exit_code(), 0);
}

TEST(Terminal, OneThatIsClosedEndsTheSession) {
  OnTerminal session("xterm");
  ASSERT_TRUE(session.sees("piper> "));
  session.hang_up();
  EXPECT_NE(session.exit_code(), 127);
}

TEST(Script, TheExitCodeSaysWhetherALineFailed) {
  const TemporaryFolder folder;
  const std::string good = folder.write("good", "let a = 1\na + 1\n"),
                    bad = folder.write("bad", "let a = 1\nb\na\n"),
                    half = folder.write("half", "let a = [\n");
  const ProcessResult well = run_process({program_path("piper"), "repl", "--script", good});
  EXPECT_EQ(well.exit_code, 0);
  EXPECT_EQ(well.out, "piper> let a = 1\na = 1\npiper> a + 1\n2\n");
  const ProcessResult failed = run_process({program_path("piper"), "repl", "--script", bad});
  EXPECT_EQ(failed.exit_code, 1);
  EXPECT_THAT(failed.out, HasSubstr("piper> a\n1\n"));
  EXPECT_THAT(run_process({program_path("piper"), "repl", "--script", half}).out,
              HasSubstr("error P6173"));
  EXPECT_EQ(run_process({program_path("piper"), "repl", "--script", half + ".none"}).exit_code, 1);
  EXPECT_EQ(run_process({program_path("piper"), "repl"}).exit_code, 0)
      << "an empty input is a session of no lines";
}

// The images of the example equal the output of the commands on its page.
TEST(Explore, ImagesAndLinesAreThoseOfThePage) {
  const TemporaryFolder folder;
  std::istringstream page(read_text("examples/explore/README.md").value_or(""));
  std::size_t images = 0;
  for (std::string line; std::getline(page, line);) {
    if (!line.starts_with("    $ piper show ")) continue;
    std::istringstream stream(line.substr(6));
    std::vector<std::string> words;
    for (std::string word; stream >> word;) words.push_back(word);
    const std::string committed =
        std::exchange(words.back(), (folder.path() / "image.svg").string());
    words.front() = program_path("piper");
    EXPECT_EQ(run_process(words).exit_code, 0) << line;
    expect_golden(committed, read_text(folder.path() / "image.svg").value_or(""));
    ++images;
  }
  EXPECT_EQ(images, 2u);
  EXPECT_EQ(run_process({program_path("piper"), "repl", "--script", "examples/explore/lines.txt"})
                .exit_code,
            0);
}

}  // namespace
}  // namespace piper::test
