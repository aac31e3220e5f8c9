#include "frontend/lsp/transport.h"

#include <charconv>

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/raw_ostream.h"

namespace piper::lsp {

namespace {

/// Reading JSON takes stack for each level.
bool too_deep(std::string_view text) {
  std::size_t depth = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      in_string = c != '"';
    } else if (c == '"') {
      in_string = true;
    } else if (c == '[' || c == '{') {
      if (++depth > Transport::kDeepest) return true;
    } else if ((c == ']' || c == '}') && depth > 0) {
      --depth;
    }
  }
  return false;
}

/// A header line may not be endless.
constexpr std::size_t kLongestLine = 4096;

/// Up to the line break; false at the end of the stream.
bool read_line(std::istream& in, std::string& line) {
  line.clear();
  for (int c; (c = in.get()) != std::char_traits<char>::eof();) {
    if (c == '\n') {
      if (line.ends_with('\r')) line.pop_back();
      return true;
    }
    if (line.size() < kLongestLine) line.push_back(static_cast<char>(c));
  }
  return false;
}

}  // namespace

std::optional<Incoming> Transport::read() {
  std::optional<std::uint64_t> length;
  std::string line, fault;
  for (bool any = false;; any = true) {
    if (!read_line(in_, line)) return std::nullopt;
    if (line.empty()) {
      if (!any) continue;  // blank lines between messages
      break;
    }
    const llvm::StringRef text = line;
    if (!text.starts_with_insensitive("Content-Length:")) continue;
    const llvm::StringRef number = text.drop_front(15).trim();
    std::uint64_t value = 0;
    if (number.empty() || number.getAsInteger(10, value)) {
      fault = "the header `Content-Length` is no number";
    } else {
      length = value;
    }
  }
  if (!length)
    return Incoming{std::nullopt,
                    fault.empty() ? "a message has no header `Content-Length`" : fault};
  if (*length > kLargest) {
    in_.ignore(static_cast<std::streamsize>(std::min<std::uint64_t>(*length, INT64_MAX)));
    return Incoming{std::nullopt, "the message is larger than 256 MiB"};
  }
  std::string body(*length, '\0');
  in_.read(body.data(), static_cast<std::streamsize>(*length));
  if (static_cast<std::uint64_t>(in_.gcount()) != *length) return std::nullopt;
  if (too_deep(body)) return Incoming{std::nullopt, "the message is nested more than 200 deep"};
  llvm::Expected<llvm::json::Value> value = llvm::json::parse(body);
  if (!value) return Incoming{std::nullopt, llvm::toString(value.takeError())};
  return Incoming{std::move(*value), {}};
}

void Transport::write(const llvm::json::Value& message) {
  std::string body;
  llvm::raw_string_ostream(body) << message;
  const std::lock_guard lock(writing_);
  out_ << "Content-Length: " << body.size() << "\r\n\r\n" << body;
  out_.flush();
}

}  // namespace piper::lsp
