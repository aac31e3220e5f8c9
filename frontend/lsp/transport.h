#pragma once
// Messages of the Language Server Protocol on two byte streams: `Content-Length: N`, an empty line,
// N bytes of JSON.
//
//   Transport transport(in, out);
//   while (std::optional<Incoming> message = transport.read()) {
//     if (!message->fault.empty()) transport.write(parse_error(message->fault)); else handle(*message->value);
//   }
//
// Guarantees: bytes that are not a message are a fault, and reading goes on after them; a message
// that is too large is dropped. Writing is whole messages, from any thread.

#include <cstdint>
#include <istream>
#include <mutex>
#include <optional>
#include <ostream>
#include <string>

#include "llvm/Support/JSON.h"

namespace piper::lsp {

struct Incoming {
  std::optional<llvm::json::Value> value;
  std::string fault;  // why there is no value
};

class Transport {
 public:
  static constexpr std::uint64_t kLargest = std::uint64_t{256} << 20;
  static constexpr std::size_t kDeepest = 200;  // JSON inside JSON

  Transport(std::istream& in, std::ostream& out) : in_(in), out_(out) {}

  /// The next message; nothing at the end of the stream.
  std::optional<Incoming> read();
  void write(const llvm::json::Value& message);

 private:
  std::istream& in_;
  std::ostream& out_;
  std::mutex writing_;
};

}  // namespace piper::lsp
