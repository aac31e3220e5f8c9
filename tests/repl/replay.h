#pragma once
// The input of a session with its answers: run in process, compared with a file or a block of a
// page.
//
//   === a.pipe                         a file in memory, up to the next `===` or the first prompt
//   mesh pair(pp: 2)
//   piper> :load a.pipe                an entry; its other lines begin with `  ...> `
//   `a.pipe` is loaded                 its output

#include <map>
#include <string>
#include <string_view>

namespace piper::test {

struct Replayed {
  std::string text;  // the same, with the actual answers
  std::size_t entries = 0, failed = 0;
};

/// `files` lie in memory and hide those of the disk; those of the text are added.
Replayed replay_session(std::string_view text, std::map<std::string, std::string> files = {});

}  // namespace piper::test
