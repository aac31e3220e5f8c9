// The blocks of the pages that are marked `pipe` are programs of the language: each is compiled by `piper check`, with what a comment before it says stands around it.
//
//   <!-- with                 declarations that follow the block, which a reader sees elsewhere or needs not see
//   mesh pair(pp: 2)
//   -->
//   <!-- gives P2048 P2048    and the codes of the diagnostics that it has, in their order
//   -->

#include <gtest/gtest.h>

#include <filesystem>
#include <sstream>

#include "llvm/Support/JSON.h"
#include "tests/support/golden.h"
#include "tests/support/library_declarations.h"
#include "tests/tools/transcript.h"

namespace piper::test {
namespace {

struct Block {
  std::size_t line = 0;  // of the page
  std::string text;      // with its surroundings
  std::vector<std::string> codes;
};

std::vector<Block> blocks_of(const std::string& page) {
  std::vector<Block> blocks;
  std::istringstream lines(page);
  enum class Inside : std::uint8_t { text, comment, block, other } inside = Inside::text;
  std::string around;
  std::vector<std::string> codes;
  std::size_t number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    if (inside == Inside::text && line.starts_with("<!-- ")) {
      inside = Inside::comment;
      around.clear();
      codes.clear();
      std::istringstream words(line.substr(5));
      std::string word;
      words >> word;
      EXPECT_TRUE(word == "with" || word == "gives") << line;
      while (words >> word) codes.push_back(word);
    } else if (inside == Inside::comment) {
      if (line == "-->") {
        inside = Inside::text;
      } else {
        around += line + "\n";
      }
    } else if (line.starts_with("```")) {
      if (inside == Inside::text && line == "```pipe") {
        blocks.push_back({number, {}, codes});
        inside = Inside::block;
      } else if (inside == Inside::text) {
        inside = Inside::other;
      } else {
        if (inside == Inside::block) blocks.back().text += around;
        inside = Inside::text;
        around.clear();
        codes.clear();
      }
    } else if (inside == Inside::block) {
      blocks.back().text += line + "\n";
    }
  }
  return blocks;
}

std::vector<std::string> pages() {
  std::vector<std::string> pages = {"README.md", "grammar/README.md", "grammar/builtins.md", "stdlib/README.md"};
  for (const auto& example : std::filesystem::directory_iterator("examples")) {
    if (std::filesystem::exists(example.path() / "README.md")) pages.push_back((example.path() / "README.md").string());
  }
  return pages;
}

/// Data that the reader is to bring is told missing by a warning, which says nothing of the program; and a block of values or functions alone has nothing
/// to compile. A model has, with what stands around it.
std::vector<std::string> codes_of(const ToolResult& result, const Block& block) {
  const bool has_model = ("\n" + block.text).find("\nmodel ") != std::string::npos;
  std::vector<std::string> codes;
  auto parsed = llvm::json::parse(result.out);
  if (!parsed) {
    llvm::consumeError(parsed.takeError());
    return {"no JSON: " + result.out + result.err};
  }
  for (const llvm::json::Value& diagnostic : *parsed->getAsObject()->getArray("diagnostics")) {
    const std::string code = diagnostic.getAsObject()->getString("code")->str();
    if (code != "P6107" && (code != "P6110" || has_model)) codes.push_back(code);
  }
  return codes;
}

TEST(Pages, EveryBlockOfTheLanguageCompiles) {
  std::size_t blocks = 0;
  for (const std::string& page : pages()) {
    for (const Block& block : blocks_of(read_text(page).value_or(""))) {
      ++blocks;
      const std::map<std::string, std::string> files = {{"block.pipe", block.text}};
      if (codes_of(run_tool({"check", "block.pipe", "--format", "json"}, files), block) == block.codes) continue;
      const ToolResult shown = run_tool({"check", "block.pipe"}, files);
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

}  // namespace
}  // namespace piper::test
