#pragma once
// The fenced blocks of a page in Markdown, with what hidden comments before a block say of it.
//
//   <!-- with                   declarations that follow the block, which a reader sees elsewhere or needs not see;
//   mesh pair(pp: 2)            words behind `with` are arguments of `piper check`
//   -->
//   <!-- throughout             the same for every block from here on, up to the next such comment
//   <!-- gives P2048 P2048 -->  the codes of the diagnostics that it has, in their order; declarations may follow, as behind `with`
//   <!-- plan NAME -->          the block is an edit (`tests/support/text_edit.h`) of tests/verify/testdata/legal/NAME.pir
//   <!-- file NAME              a file beside every block of the page
//   ...
//   -->

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "tests/tools/transcript.h"

namespace piper::test {

struct PageBlock {
  std::size_t line = 0;     // of the page, where it begins
  std::string kind;         // the word behind the fence
  std::string section;      // the heading above it
  std::string text;         // as the reader sees it
  std::string around;       // what `with` and `throughout` add
  std::vector<std::string> arguments, gives;
  std::string plan;
  std::map<std::string, std::string> files;
};

/// A comment that is none of the above is a failure of the current test.
std::vector<PageBlock> blocks_of(std::string_view page);

/// `piper check` of a program that a block shows, its files beside it.
ToolResult check_block(const PageBlock& block, const std::string& format);
/// The codes of what `piper check --format json` printed.
std::vector<std::string> codes_of(const ToolResult& result);
/// What a block of a clean program says beyond its notices. Data that the reader is to bring is told missing by a warning, which says nothing of the program;
/// and a block of values or functions alone has nothing to compile. A model has, with what stands around it.
std::vector<std::string> codes_beside_notices(const PageBlock& block);

}  // namespace piper::test
