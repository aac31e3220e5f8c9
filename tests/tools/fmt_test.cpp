// `piper fmt` on the disk, and `piper completion` in a shell.

#include <gtest/gtest.h>

#include <regex>
#include <sstream>

#include "frontend/tools/choices.h"
#include "tests/tools/shell.h"

namespace piper::test {
namespace {

TEST(Fmt, RewritesFilesAndStandardInput) {
  const TemporaryFolder folder;
  folder.write("a.pipe", "mesh  m(p:2)\n");
  folder.write("b.pipe", "mesh m(p: 2)\n");
  const ProcessResult checked = shell(folder, "\"$0\" fmt --check a.pipe b.pipe");
  EXPECT_EQ(checked.exit_code, 1);
  EXPECT_EQ(checked.out, "a.pipe\n");
  const ProcessResult run = shell(
      folder,
      "chmod 640 a.pipe; ln -s a.pipe link.pipe; \"$0\" fmt link.pipe b.pipe && cat a.pipe && stat -c %a a.pipe && readlink link.pipe && ls");
  EXPECT_EQ(run.out, "mesh m(p: 2)\n640\na.pipe\na.pipe\nb.pipe\nlink.pipe\n") << run.err;
  EXPECT_EQ(shell(folder, "\"$0\" fmt --check a.pipe b.pipe").exit_code, 0);
  EXPECT_EQ(shell(folder, "printf 'mesh  m( p:2 )' | \"$0\" fmt -").out, "mesh m(p: 2)\n");
  EXPECT_EQ(shell(folder, "printf 'mesh  m( p:2 )' | \"$0\" fmt --check -").exit_code, 1);
  const ProcessResult missing = shell(folder, "\"$0\" fmt missing.pipe b.pipe");
  EXPECT_EQ(missing.exit_code, 1);
  EXPECT_NE(missing.err.find("P1001"), std::string::npos) << missing.err;
}

TEST(Fmt, RefusesAMistakeOfSyntax) {
  const TemporaryFolder folder;
  const std::string text = "mesh  m(p:2)\ndef f( -> int {\n}\n";
  folder.write("a.pipe", text);
  folder.write("before", text);
  folder.write("b.pipe", "mesh  m(p:2)\n");
  for (const char* command :
       {"fmt a.pipe", "fmt --check a.pipe", "fmt - < a.pipe", "fmt --check - < a.pipe"}) {
    const ProcessResult run = shell(
        folder, "\"$0\" " + std::string(command) + "; code=$?; cmp a.pipe before && exit $code");
    EXPECT_EQ(run.exit_code, 1) << command;
    EXPECT_EQ(run.out, "") << command;
    EXPECT_NE(run.err.find(":2:"), std::string::npos) << command << run.err;
  }
  // The other files are formatted.
  EXPECT_EQ(shell(folder, "\"$0\" fmt a.pipe b.pipe; cat b.pipe").out, "mesh m(p: 2)\n");
  // A warning is no mistake, and nothing is said of it.
  const ProcessResult warned = shell(folder, "printf 'param x = 8 // 2\\n' | \"$0\" fmt -");
  EXPECT_EQ(warned.out + warned.err, "param x = 8  // 2\n");
}

// LLVM replaces a `%` of a path for temporary files.
TEST(Fmt, AFolderMayBeCalledAnything) {
  const TemporaryFolder folder;
  folder.write("net.pipe", kTiny);
  for (const char* name :
       {"d%r", "%%%%%%%%", "100%", "%s %n", "a b", "ü\"'$", "-x", "*?[", "new\nline"}) {
    folder.write("name", name);
    const ProcessResult run = shell(
        folder,
        "d=$(cat name); mkdir ./\"$d\" && printf 'mesh   m(p:2)\\n' > ./\"$d/x%.pipe\" && \"$0\" fmt ./\"$d/x%.pipe\" && cat ./\"$d/x%.pipe\" && "
        "\"$0\" show grid gpipe -D p=2 -D m=2 --format svg -o ./\"$d/o%.svg\" && \"$0\" build net.pipe -o ./\"$d/build%\" >/dev/null && "
        "\"$0\" show dag net.pipe -o ./\"$d/%.pir\" && ls ./\"$d\"");
    EXPECT_EQ(run.out, "mesh m(p: 2)\n%.pir\nbuild%\no%.svg\nx%.pipe\n") << name << run.err;
    EXPECT_EQ(run.exit_code, 0) << name << run.err;
  }
  const ProcessResult run = shell(
      folder,
      "\"$0\" train net.pipe --interpret --trace d%r/trace.json --profile d%r/costs.json >/dev/null && test -s d%r/trace.json && test -s d%r/costs.json");
  EXPECT_EQ(run.exit_code, 0) << run.err;
}

TEST(Fmt, WritesNothingButItsFile) {
  const TemporaryFolder folder;
  folder.write("a.pipe", "mesh  m(p:2)\n");
  folder.write("a.pipe.formatted", "mine\n");
  folder.write("b.pipe", "mesh  m(p:2)\n");
  folder.write("other", "other\n");
  const ProcessResult run = shell(
      folder,
      "ln -s other b.pipe.formatted; \"$0\" fmt a.pipe b.pipe && cat a.pipe a.pipe.formatted b.pipe other; ls");
  EXPECT_EQ(
      run.out,
      "mesh m(p: 2)\nmine\nmesh m(p: 2)\nother\na.pipe\na.pipe.formatted\nb.pipe\nb.pipe.formatted\nother\n")
      << run.err;
}

TEST(Fmt, AFileThatCannotBeWrittenStaysAsItWas) {
  const TemporaryFolder folder;
  std::string text;
  for (int i = 0; i < 1000; ++i) text += "mesh  m" + std::to_string(i) + "(p:2)\n";
  folder.write("a.pipe", text);
  folder.write("before", text);
  const ProcessResult full =
      shell(folder, "ulimit -f 1; \"$0\" fmt a.pipe; echo $?; cmp a.pipe before; ls");
  EXPECT_EQ(full.out, "1\na.pipe\nbefore\n");
  EXPECT_NE(full.err.find("P6102"), std::string::npos) << full.err;
  // A path that is not a file is not replaced by one, and not waited for.
  const ProcessResult pipe = shell(folder, "mkfifo p; \"$0\" fmt p; echo $?; test -p p && ls");
  EXPECT_EQ(pipe.out, "1\na.pipe\nbefore\np\n");
  EXPECT_NE(pipe.err.find("`p` cannot be written: it is no regular file"), std::string::npos)
      << pipe.err;
  EXPECT_EQ(shell(folder, "printf 'mesh m(p: 2)\\n' | \"$0\" fmt --check /dev/stdin").exit_code, 0);
}

TEST(Completion, ShellsCompleteCommandsAndOptions) {
  const TemporaryFolder folder;
  folder.write("a.pipe", "mesh m(p: 2)\n");
  const std::string asks =
      "complete() { :; }; eval \"$(\"$0\" completion bash)\"; ask() { COMP_WORDS=(\"$@\"); COMP_CWORD=$(($# - 1)); _piper; echo \"${COMPREPLY[@]}\"; }; ";
  const ProcessResult result = shell(
      folder,
      "exec bash -c '" + asks +
          "ask piper exp; ask piper train --ref; ask piper check a; ask piper show gr; ask piper show grid zb; "
          "ask piper show grid --format pe; ask piper show grid --format = js; ask piper show --format svg ti; ask piper help sh; ask piper explain dual_pipe_; ask piper show ch; ask piper train --only w; ask piper train --log t' \"$0\"");
  EXPECT_EQ(
      result.out,
      "export explain\n--reference\na.pipe\ngraph grid\nzb_auto zb_h1 zb_h2 zbv\nperfetto\njson\ntimeline\nshow\ndual_pipe_v\ncheckpoint\nweights\ntensorboard\n")
      << result.err;
  EXPECT_EQ(shell(folder, "\"$0\" completion tcsh").exit_code, 2);
  const ProcessResult fish = shell(folder, "\"$0\" completion fish");
  EXPECT_NE(fish.out.find("__fish_seen_subcommand_from train' -l reference -d "), std::string::npos)
      << fish.out;
  const ProcessResult zsh = shell(folder, "\"$0\" completion zsh");
  EXPECT_NE(
      zsh.out.find(
          "'*--steps[number of steps; 0 keeps the first values in a checkpoint and evaluates them]:N:'"),
      std::string::npos)
      << zsh.out;
  // A colon would end the message.
  EXPECT_NE(zsh.out.find("]:DIR[\\:STEP]:_files -/'"), std::string::npos) << zsh.out;
}

// The command line accepts every offered choice.
TEST(Completion, EachChoiceIsTaken) {
  for (const tools::OptionRow& option : tools::option_rows()) {
    for (const tools::CommandRow& command : tools::command_rows()) {
      if (!tools::takes(option, command.command)) continue;
      for (const std::string_view choice : tools::choices_of(option)) {
        std::vector<std::string> words{command.name, option.name, std::string(choice), "-o", "d"};
        if (command.command != tools::Command::build &&
            command.command != tools::Command::export_weights)
          words.resize(3);
        for (std::size_t i = 0; i < command.least_words; ++i) words.emplace_back("x");
        if (command.command == tools::Command::sample) words.insert(words.end(), {"--prompt", "x"});
        if (std::string_view(option.name) == "--only") words.insert(words.end(), {"--resume", "d"});
        if (std::string_view(option.name) == "--log") words.insert(words.end(), {"--out", "d"});
        tools::Arguments arguments;
        std::string error;
        EXPECT_TRUE(tools::parse_arguments(words, arguments, error))
            << command.name << " " << option.name << " " << choice << ": " << error;
      }
    }
  }
  const TemporaryFolder folder;
  for (const std::string_view kind : tools::choices_of(tools::Command::show, 0)) {
    const std::string more = kind == "stuck" ? " --from d" : "";
    // 2: no such kind.
    EXPECT_EQ(shell(folder, "\"$0\" show " + std::string(kind) + " missing.pipe" + more).exit_code,
              1)
        << kind;
  }
}

TEST(Completion, TheManPageHasEveryCommandAndOption) {
  const TemporaryFolder folder;
  const std::string page = shell(folder, "\"$0\" completion man").out;
  EXPECT_TRUE(page.starts_with(".TH PIPER 1 "));
  for (const tools::CommandRow& command : tools::command_rows())
    EXPECT_NE(page.find(".SS \"" + std::string(command.usage).substr(0, 10)), std::string::npos)
        << command.usage;
  for (const tools::OptionRow& option : tools::option_rows()) {
    std::string name;
    for (const char* c = option.name; *c != '\0'; ++c)
      name += *c == '-' ? std::string("\\-") : std::string(1, *c);
    EXPECT_NE(page.find("\\fB" + name + "\\fR"), std::string::npos) << option.name;
  }
  // Each line that begins with a dot is a macro, and not text.
  std::stringstream lines(page);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with('.')) {
      EXPECT_TRUE(std::regex_search(line, std::regex("^\\.(TH|SH|SS|TP|PP|nf|fi|ad l|nh)\\b")))
          << line;
    }
  }
}

}  // namespace
}  // namespace piper::test
