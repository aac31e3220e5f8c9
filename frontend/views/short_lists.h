#pragma once
// Long lines of a text for a reader: repetitions in their lists are printed once, and lists that
// are still long get lines of their own.
//
//   F.stage0.mb1 = F stage0 [mb: 1] @stage0.F (load.tokens.mb1.pp0, param all_gather.stage0.0, param all_gather.stage0.0:1,
//     ... 48 more like it, the last `param all_gather.stage0.0:49`) on cluster[pp: 0] stream compute          (in one line)

#include <functional>
#include <string>
#include <string_view>

namespace piper::views {

/// Lists in round brackets of long lines; `fold` gets their items, a line each, and returns the
/// shortened ones. All other text stays unchanged.
std::string shorten_lists(std::string_view text,
                          const std::function<std::string(std::string_view items)>& fold);

}  // namespace piper::views
