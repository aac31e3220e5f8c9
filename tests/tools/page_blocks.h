#pragma once
// The fenced blocks of a page in Markdown, with the hidden comments before each block.
//
//   <!-- with                   declarations that follow the block; the reader sees them elsewhere or not at all;
//   mesh pair(pp: 2)            words after `with` are arguments of `piper check`
//   -->
//   <!-- throughout             the same for every block from here on, up to the next such comment
//   <!-- gives P2048 P2048 -->  the codes of the diagnostics of the block, in their order; declarations may follow, as after `with`
//   <!-- plan NAME -->          the block is an edit (`tests/support/text_edit.h`) of tests/verify/testdata/legal/NAME.pir
//   <!-- file NAME              a file beside every block of the page from here on
//   ...
//   -->
//   <!-- saved NAME -->         the block is such a file for the blocks after it

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "tests/tools/transcript.h"

namespace piper::test {

struct PageBlock {
  std::size_t line = 0;  // the line of the page on which it begins
  std::string kind;      // the word after the fence
  std::string section;   // the heading above it
  std::string text;      // as the reader sees it
  std::string around;    // declarations of `with` and `throughout`
  std::vector<std::string> arguments, gives;
  std::string plan;
  std::map<std::string, std::string> files;
};

/// A comment that is none of the above is a failure of the current test.
std::vector<PageBlock> blocks_of(std::string_view page);

/// `piper check` of the program in a block, with its files beside it.
ToolResult check_block(const PageBlock& block, const std::string& format);
/// The codes in the output of `piper check --format json`.
std::vector<std::string> codes_of(const ToolResult& result);
/// The codes of a clean program's block, without expected ones. A warning reports that the reader's
/// own data is missing, which is no fault of the program; and a block of values or functions alone
/// has nothing to compile, unless declarations around it have a model.
std::vector<std::string> codes_beside_notices(const PageBlock& block);

}  // namespace piper::test
