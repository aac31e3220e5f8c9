// Blocks of pages marked `pipe` are programs: `piper check` compiles each, with the hidden comments
// before it (`page_blocks.h`). Blocks marked `console` are commands with their output. The
// schedules of the library are shown and checked as their page says.

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <sstream>

#include "tests/support/golden.h"
#include "tests/support/library_declarations.h"
#include "tests/tools/page_blocks.h"

namespace piper::test {
namespace {

/// The pages of the project as a whole.
std::vector<std::string> project_pages() {
  std::vector<std::string> pages = {"CONTRIBUTING.md", "README.md"};
  for (const auto& page : std::filesystem::directory_iterator("docs"))
    pages.push_back(page.path().string());
  std::sort(pages.begin(), pages.end());
  return pages;
}

std::vector<std::string> pages() {
  std::vector<std::string> pages = project_pages();
  pages.insert(pages.end(), {"grammar/README.md", "grammar/builtins.md", "stdlib/README.md"});
  for (const auto& example : std::filesystem::directory_iterator("examples")) {
    if (std::filesystem::exists(example.path() / "README.md"))
      pages.push_back((example.path() / "README.md").string());
  }
  return pages;
}

TEST(Pages, EveryBlockOfTheLanguageCompiles) {
  std::size_t blocks = 0;
  for (const std::string& page : pages()) {
    for (const PageBlock& block : blocks_of(read_text(page).value_or(""))) {
      if (block.kind != "pipe") continue;
      ++blocks;
      if (codes_beside_notices(block) == block.gives) continue;
      const ToolResult shown = check_block(block, "text");
      ADD_FAILURE() << page << ":" << block.line << "\n" << shown.out << shown.err;
    }
  }
  EXPECT_GE(blocks, 26u);
}

/// The text of a console block with the output that its commands give, each below its command.
std::string replayed(const PageBlock& block) {
  std::string text;
  std::istringstream lines(block.text);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("$ ")) continue;  // what an earlier run printed
    std::istringstream stream(line.substr(2));
    std::vector<std::string> words;
    for (std::string word; stream >> word;) words.push_back(word);
    EXPECT_EQ(words.at(0), "piper") << "line " << block.line << " of the page: " << line;
    const ToolResult run = run_tool({words.begin() + 1, words.end()}, block.files);
    text += line + "\n" + run.out + run.err;
  }
  return text;
}

TEST(Pages, ShowWhatTheirCommandsPrint) {
  std::size_t blocks = 0;
  for (const std::string& page : project_pages()) {
    const std::string text = read_text(page).value_or("");
    std::vector<PageBlock> consoles = blocks_of(text);
    std::erase_if(consoles, [](const PageBlock& block) { return block.kind != "console"; });
    blocks += consoles.size();
    std::string made;
    std::size_t number = 0, next = 0;
    bool inside = false;  // of a block that was replayed
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
      ++number;
      inside = inside && line != "```";
      if (!inside) made += line + "\n";
      if (next == consoles.size() || consoles[next].line != number) continue;
      made += replayed(consoles[next++]);
      inside = true;
    }
    expect_golden(page, made);
  }
  EXPECT_GE(blocks, 15u);
}

/// The steps of the page `stdlib/README.md`: the schedule of a file is drawn and checked before it
/// stands in the library, and by its name afterwards.
TEST(Library, EveryScheduleIsShownAndCheckedByItsName) {
  const std::vector<LibraryDeclaration> schedules = library_schedules();
  EXPECT_GE(schedules.size(), 7u);
  for (const LibraryDeclaration& schedule : schedules) {
    SCOPED_TRACE(schedule.name);
    std::vector<std::string> sizes;
    for (const LibraryParam& param : schedule.params) {
      sizes.push_back("-D");
      sizes.push_back(param.name + (param.axis ? "=4" : "=8"));
    }
    const std::string path = "stdlib/schedules/" + schedule.name + ".pipe";
    std::string grid;
    for (std::vector<std::string> words : {std::vector<std::string>{"check", schedule.name},
                                           {"check", path, schedule.name},
                                           {"show", "grid", schedule.name},
                                           {"show", "grid", path, schedule.name}}) {
      words.insert(words.end(), sizes.begin(), sizes.end());
      const ToolResult result = run_tool(words);
      EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
      if (words[0] != "show") continue;
      EXPECT_NE(result.out, "");
      EXPECT_TRUE(grid.empty() || grid == result.out)
          << "the file and the library give different grids";
      grid = result.out;
    }
  }
}

TEST(Library, TheCatalogueNamesEverything) {
  const std::string page = read_text("stdlib/README.md").value_or("");
  for (const std::vector<LibraryDeclaration>& all : {library_schedules(), library_models()}) {
    for (const LibraryDeclaration& each : all) {
      const bool named = page.find("`" + each.name + "`") != std::string::npos ||
                         page.find("`" + each.name + "(") != std::string::npos;
      EXPECT_TRUE(named) << "`stdlib/README.md` has no row for `" << each.name << "`";
    }
  }
}

}  // namespace
}  // namespace piper::test
