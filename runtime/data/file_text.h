#pragma once
// The bytes of a file or a pipe, or of all files below a folder in sorted order of their paths, one
// after the other.
//
// Guarantees: endless files are not read, only a pipe is waited for, and a pipe without a writer is
// waited for no longer than a writer needs that is started beside this process.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/failure.h"

namespace piper::runtime {

using Text = std::vector<unsigned char>;
struct Table;
struct TableInput;

/// At most the first `limit` bytes. Empty, with the reason in `failure.message` (code
/// kDataUnreadable), on failure; the caller adds the location. Hidden files are left out.
std::optional<Text> read_text(const std::string& path, Failure& failure,
                              std::uint64_t limit = ~std::uint64_t{0});

/// The size of a pipe is unknown.
inline constexpr std::uint64_t kUnknownSize = ~std::uint64_t{0};
/// The number of bytes that `read_text` would give, without reading files whose size is known. It
/// refuses the same paths.
std::optional<std::uint64_t> text_size(const std::string& path, Failure& failure);

/// Whether a text of this many bytes holds a window of `seq` bytes and the byte after it; if not,
/// the reason is in `failure` (code kDataTooShort).
bool holds_window(const std::string& path, std::uint64_t bytes, std::uint64_t seq,
                  Failure& failure);

/// The position of the first byte that is at least `bound` and not `ignored`.
std::optional<std::uint64_t> find_byte_from(std::span<const unsigned char> text, std::int64_t bound,
                                            std::optional<std::int64_t> ignored);

/// Texts and tables that were read, so that one command reads each once: its early check, its
/// executors and the bigram model share them. For one thread.
class TextFiles {
 public:
  /// Null with the reason in `failure`.
  std::shared_ptr<const Text> read(const std::string& path, Failure& failure);
  /// The numbers of a file for these inputs (`table.h`); the location of a wrong number is in
  /// `failure.place`.
  std::shared_ptr<const Table> table(const std::string& path, std::span<const TableInput> inputs,
                                     Failure& failure);

 private:
  std::map<std::string, std::shared_ptr<const Text>> texts_;
  std::map<std::string, std::shared_ptr<const Table>> tables_;  // by path and inputs
};

}  // namespace piper::runtime
