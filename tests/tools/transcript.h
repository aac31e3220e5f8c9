#pragma once
// Command lines of `piper` with their output: run in process, compared with a file.
//
//   === a.pipe                         a file in memory, up to the next `===` or `$`
//   mesh pair(pp: 2)
//   $ piper check a.pipe               a command; `NAME=value` before it sets the environment, TMP is the case's own folder
//   ...                                its standard output
//   -- err                             and standard error, if there is any
//   ...
//   -- exit 0
//
// Guarantees: times and speeds are printed as `#`, and a list of the whole library as such;
// everything else is compared verbatim.

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace piper::test {

/// The result of one command line.
struct ToolResult {
  int exit_code = -1;
  std::string out, err;
};

/// Runs a command line in process: the words after `piper`. `files` lie in memory and hide those of
/// the disk. Matrix products are built in, and output does not depend on the machine, unless
/// `environment` changes that.
ToolResult run_tool(const std::vector<std::string>& words,
                    const std::map<std::string, std::string>& files = {},
                    std::map<std::string, std::string> environment = {},
                    unsigned columns = 0);  // of the terminal; 0: there is none

/// The text of a transcript with the actual outputs of its commands.
std::string replay_transcript(std::string_view text, const std::filesystem::path& temporary_folder);

}  // namespace piper::test
