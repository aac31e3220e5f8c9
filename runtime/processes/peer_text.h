#pragma once
// Texts from another process, made safe for a terminal and a log.
//
//   peer_text("node\x1b[2J")   // `node\x1b[2J`, in printable characters

#include <cstddef>
#include <string>
#include <string_view>

namespace piper::runtime {

// Bytes of a name or a value that a message quotes.
inline constexpr std::size_t kMaxPeerName = 200;
inline constexpr std::size_t kMaxPeerMessage = 4000;  // bytes of a whole message

/// Control characters, characters that change the direction of text and bytes that are not UTF-8
/// become `\xNN`. A longer text ends with `...`; the result has at most `max_bytes` bytes.
std::string peer_text(std::string_view text, std::size_t max_bytes = kMaxPeerName);

}  // namespace piper::runtime
