// The blocks of the pages that are marked `pipe` are programs of the language: each is compiled by `piper check`, with what comments before it say
// (`page_blocks.h`). The schedules of the library are shown and checked as their page says.

#include <gtest/gtest.h>

#include <filesystem>

#include "tests/support/golden.h"
#include "tests/support/library_declarations.h"
#include "tests/tools/page_blocks.h"

namespace piper::test {
namespace {

std::vector<std::string> pages() {
  std::vector<std::string> pages = {"README.md", "grammar/README.md", "grammar/builtins.md", "stdlib/README.md"};
  for (const auto& example : std::filesystem::directory_iterator("examples")) {
    if (std::filesystem::exists(example.path() / "README.md")) pages.push_back((example.path() / "README.md").string());
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

/// What a user of the page `stdlib/README.md` does: the schedule of a file is looked at and checked before it stands in the library, and by its name afterwards.
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
    for (std::vector<std::string> words : {std::vector<std::string>{"check", schedule.name}, {"check", path, schedule.name}, {"show", "grid", schedule.name}, {"show", "grid", path, schedule.name}}) {
      words.insert(words.end(), sizes.begin(), sizes.end());
      const ToolResult result = run_tool(words);
      EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
      if (words[0] != "show") continue;
      EXPECT_NE(result.out, "");
      EXPECT_TRUE(grid.empty() || grid == result.out) << "the file and the library give different grids";
      grid = result.out;
    }
  }
}

TEST(Library, TheCatalogueNamesEverything) {
  const std::string page = read_text("stdlib/README.md").value_or("");
  for (const std::vector<LibraryDeclaration>& all : {library_schedules(), library_models()}) {
    for (const LibraryDeclaration& each : all) {
      const bool named = page.find("`" + each.name + "`") != std::string::npos || page.find("`" + each.name + "(") != std::string::npos;
      EXPECT_TRUE(named) << "`stdlib/README.md` has no row for `" << each.name << "`";
    }
  }
}

}  // namespace
}  // namespace piper::test
