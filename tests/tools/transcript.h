#pragma once
// Command lines of `piper` with what they print: run in process, compared with a file.
//
//   === a.pipe                         a file in memory, up to the next `===` or `$`
//   mesh pair(pp: 2)
//   $ piper check a.pipe               a command; `NAME=value` before it sets the environment, TMP is a folder of the case's own
//   ...                                what it prints: standard output
//   -- err                             and standard error, if there is any
//   ...
//   -- exit 0
//
// Guarantees: times and speeds are printed as `#`, and a list of the whole library as such; everything else is compared as it stands.

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace piper::test {

/// What one command line gave.
struct ToolResult {
  int exit_code = -1;
  std::string out, err;
};

/// Runs a command line in process: words behind `piper`. `files` lie in memory, before those of the disk. The matrix products are built in, and one
/// machine prints what another prints, unless `environment` says otherwise.
ToolResult run_tool(const std::vector<std::string>& words, const std::map<std::string, std::string>& files = {},
                    std::map<std::string, std::string> environment = {}, unsigned columns = 0);  // of the terminal; 0: there is none

/// The text of a transcript with the outputs that its commands give.
std::string replay_transcript(std::string_view text, const std::filesystem::path& temporary_folder);

}  // namespace piper::test
