#pragma once
// Long lines of a text for a reader: what repeats in their lists stands once, and what is still long stands on lines of its own.
//
//   F.stage0.mb1 = F stage0 [mb: 1] @stage0.F (load.tokens.mb1.pp0, param gather.stage0.0, param gather.stage0.0:1,
//     ... 48 more like it, the last `param gather.stage0.0:49`) on cluster[pp: 0] stream compute          (in one line)

#include <functional>
#include <string>
#include <string_view>

namespace piper::views {

/// Lists in round brackets of long lines; `fold` gets their items, a line each, and gives those that are left. Everything else as it stands.
std::string shorten_lists(std::string_view text, const std::function<std::string(std::string_view items)>& fold);

}  // namespace piper::views
